// Package rpcrefusal says what a client of gRPC or Connect is told of a limiter's
// error, in words that need neither: their codes are the same numbers.
package rpcrefusal

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// The codes of google.rpc.Code that refusals have.
const (
	InvalidArgument   = 3
	PermissionDenied  = 7
	ResourceExhausted = 8
	Unavailable       = 14
)

// Answer is what the client is told.
type Answer struct {
	Code uint32
	// Text discloses no key, policy, method or file, and is valid UTF-8.
	Text string
	// Wait is how long the client is to wait, above 0; ratelimit.Never where waiting
	// does not help.
	Wait time.Duration
}

// Of returns what the client is told of e. It returns false if e is of no known kind.
func Of(e *ratelimit.Error) (Answer, bool) {
	switch e.Kind {
	case ratelimit.ErrLimited:
		a := Answer{ResourceExhausted, "the rate limit is used up", max(e.Decision.RetryAfter, 1)}
		if a.Wait == ratelimit.Never {
			a.Text = "the rate limit does not admit this call"
		}
		if e.Message != "" {
			a.Text = strings.ToValidUTF8(e.Message, "\uFFFD") // or it could not be sent
		}
		return a, true
	case ratelimit.ErrNoKey:
		return Answer{PermissionDenied, "the call does not say who is calling", ratelimit.Never}, true
	case ratelimit.ErrCost:
		return Answer{InvalidArgument, "the call asks for more than the rate limit can ever admit", ratelimit.Never}, true
	case ratelimit.ErrStore:
		return Answer{Unavailable, "the rate limit could not be checked", time.Second}, true
	}
	return Answer{}, false
}

// Pushback returns the wait in milliseconds, rounded up, as gRPC's specification of
// retries has it: a signed integer of 32 bits, negative for never.
func (a Answer) Pushback() string {
	ms := RoundUp(a.Wait, time.Millisecond)
	if ms > math.MaxInt32 {
		ms = -1
	}
	return strconv.FormatInt(ms, 10)
}

// RoundUp returns d in units, because a client that waits too short is refused again.
func RoundUp(d, unit time.Duration) int64 {
	n := int64(d / unit)
	if d%unit > 0 {
		n++
	}
	return n
}
