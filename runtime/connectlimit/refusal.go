package connectlimit

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// refusal is what the *connect.Error of a refusal wraps: the client gets the text, and
// interceptors further out can still tell what it was.
type refusal struct {
	text string
	err  error
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return r.err }

// answer returns the error by which a call is answered that ended with err.
func (i *Interceptor) answer(ctx context.Context, procedure, protocol string, err error) error {
	var done *refusal
	if errors.As(err, &done) {
		return err // by another Interceptor, behind this one
	}
	var e *ratelimit.Error
	if !errors.As(err, &e) {
		return err
	}
	code, text, wait := meaning(e)
	if code == connect.CodeUnknown {
		return err
	}
	if i.onRefusal != nil {
		i.onRefusal(ctx, procedure, e)
	}
	answer := connect.NewError(code, &refusal{text, err})
	if wait != ratelimit.Never {
		answer.Meta().Set("Retry-After", strconv.FormatInt(roundUp(wait, time.Second), 10))
		addDetail(answer, &errdetails.RetryInfo{RetryDelay: durationpb.New(wait)})
	}
	if code == connect.CodeResourceExhausted {
		addDetail(answer, &errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{
			Subject:     procedure,
			Description: text,
		}}})
	}
	if protocol != connect.ProtocolConnect {
		answer.Meta().Set("Grpc-Retry-Pushback-Ms", pushback(wait))
	}
	return answer
}

func addDetail(e *connect.Error, message proto.Message) {
	if detail, err := connect.NewErrorDetail(message); err == nil {
		e.AddDetail(detail)
	}
}

// meaning returns what the client is told of e: CodeUnknown if it is of no known kind,
// and the wait, which is Never where waiting does not help.
func meaning(e *ratelimit.Error) (code connect.Code, text string, wait time.Duration) {
	switch e.Kind {
	case ratelimit.ErrLimited:
		text = "the rate limit is used up"
		wait = max(e.Decision.RetryAfter, 1)
		if wait == ratelimit.Never {
			text = "the rate limit does not admit this call"
		}
		if e.Message != "" {
			text = strings.ToValidUTF8(e.Message, "\uFFFD") // or it could not be sent
		}
		return connect.CodeResourceExhausted, text, wait
	case ratelimit.ErrNoKey:
		return connect.CodePermissionDenied, "the call does not say who is calling", ratelimit.Never
	case ratelimit.ErrCost:
		return connect.CodeInvalidArgument, "the call asks for more than the rate limit can ever admit", ratelimit.Never
	case ratelimit.ErrStore:
		return connect.CodeUnavailable, "the rate limit could not be checked", time.Second
	}
	return connect.CodeUnknown, "", 0
}

// pushback returns the wait in milliseconds, rounded up, as the gRPC specification of
// retries has it: a signed integer of 32 bits, negative for never.
func pushback(wait time.Duration) string {
	ms := roundUp(wait, time.Millisecond)
	if ms > math.MaxInt32 {
		ms = -1
	}
	return strconv.FormatInt(ms, 10)
}

// roundUp returns d in units, because a client that waits too short is refused again.
func roundUp(d, unit time.Duration) int64 {
	n := int64(d / unit)
	if d%unit > 0 {
		n++
	}
	return n
}
