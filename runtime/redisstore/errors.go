package redisstore

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Class says why there is no answer from the server. Its text is fit for the label
// of a metric.
type Class string

const (
	// Timeout is that the deadline passed; see WithTimeout. The call may have been
	// charged.
	Timeout Class = "timeout"
	// Overload is that as many commands were in flight as WithMaxInFlight allows.
	// Nothing was sent.
	Overload Class = "overload"
	// Open is that the calls before failed, so that the server is not asked until it
	// is tried again; see WithBreaker. Nothing was sent.
	Open Class = "open"
	// Unreachable is that there is no connection, or that it broke before the reply,
	// so that the call may have been charged.
	Unreachable Class = "unreachable"
	// Refused is that the server said no, and charged nothing: it is a replica
	// (READONLY), loads its data (LOADING), runs a script for too long (BUSY), has no
	// memory left (OOM), or does not permit it (NOPERM, NOAUTH).
	Refused Class = "refused"
	// Invalid is that the script found fault with what a key holds, or with the
	// policy, and charged nothing. The server is well: this class opens no breaker.
	Invalid Class = "invalid"
	// Malformed is a reply that the script does not give.
	Malformed Class = "malformed"
)

var classes = []Class{Timeout, Overload, Open, Unreachable, Refused, Invalid, Malformed}

// Error is the error of a call that the server did not decide.
type Error struct {
	Class Class
	// Server names the server or servers, like "redis 127.0.0.1:6379".
	Server string
	// Err is the cause.
	Err error
}

func (e *Error) Error() string { return e.Server + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Code returns the first word of what a server said that refused, like "READONLY",
// and "" of any other error.
func (e *Error) Code() string { return code(e.Err) }

func code(err error) string {
	var reply redis.Error
	if err == redis.Nil || !errors.As(err, &reply) {
		return ""
	}
	word, _, _ := strings.Cut(reply.Error(), " ")
	return word
}

// movedError is that of a command that went out with others and was sent elsewhere. What
// came of it there is not known: go-redis keeps the first error of such a command, which
// may be that it was moved though the connection to the other node broke.
type movedError struct{ error }

func (e movedError) Unwrap() error { return e.error }

// classify returns the class of an error of go-redis.
func classify(err error) Class {
	var network net.Error
	var moved movedError
	switch {
	case errors.As(err, &moved):
		return Unreachable
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, redis.ErrPoolTimeout):
		return Timeout
	case errors.As(err, &network) && network.Timeout():
		return Timeout
	case errors.Is(err, redis.Nil):
		return Malformed
	}
	switch code(err) {
	case "":
		return Unreachable
	case "WRONGTYPE", "RATELIMIT":
		return Invalid
	}
	if strings.Contains(err.Error(), "RATELIMIT ") { // as some versions wrap it
		return Invalid
	}
	return Refused
}

// isLocal reports whether the error is about the call's keys, and says nothing about
// what becomes of others on the same server.
func isLocal(err *Error) bool {
	if err.Class == Invalid {
		return true
	}
	switch err.Code() {
	case "NOPERM", "TRYAGAIN", "CROSSSLOT":
		return true
	}
	return isElsewhere(err)
}

// isOfKeys reports whether the server did not execute a command because of keys of it, or
// because of one. The script may also be refused something once it runs, of which the
// server then names the script.
func isOfKeys(err error) bool {
	c := code(err)
	return c == "CROSSSLOT" || c == "NOPERM" && !strings.Contains(err.Error(), "script")
}

// isElsewhere reports whether a node of a cluster said that another one has the slot.
func isElsewhere(err error) bool {
	c := code(err)
	return c == "MOVED" || c == "ASK"
}
