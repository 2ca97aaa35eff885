package grpclimit

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// refusal is what a limit's error becomes: the client gets the status, and
// interceptors further out can still tell what it was.
type refusal struct {
	status *status.Status
	err    error
}

func (r *refusal) Error() string              { return r.status.Err().Error() }
func (r *refusal) GRPCStatus() *status.Status { return r.status }
func (r *refusal) Unwrap() error              { return r.err }

// answer returns the trailer and the error by which a call is answered that ended
// with err. There is no trailer if err is no limit's.
func (i *Interceptor) answer(ctx context.Context, method string, err error) (metadata.MD, error) {
	var done *refusal
	if errors.As(err, &done) {
		return nil, err // by another Interceptor, behind this one
	}
	var e *ratelimit.Error
	if !errors.As(err, &e) {
		return nil, err
	}
	code, text, wait := meaning(e)
	if code == codes.Unknown {
		return nil, err
	}
	if i.onRefusal != nil {
		i.onRefusal(ctx, method, e)
	}
	var details []protoadapt.MessageV1
	if wait != ratelimit.Never {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(wait)})
	}
	if code == codes.ResourceExhausted {
		details = append(details, &errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{
			Subject:     strings.ToValidUTF8(method, "\uFFFD"),
			Description: text,
		}}})
	}
	st := status.New(code, text)
	if len(details) > 0 {
		if detailed, err := st.WithDetails(details...); err == nil {
			st = detailed
		}
	}
	return metadata.Pairs("grpc-retry-pushback-ms", pushback(wait)), &refusal{st, err}
}

// meaning returns what the client is told of e: Unknown if it is of no known kind,
// and the wait, which is Never where waiting does not help.
func meaning(e *ratelimit.Error) (code codes.Code, text string, wait time.Duration) {
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
		return codes.ResourceExhausted, text, wait
	case ratelimit.ErrNoKey:
		return codes.PermissionDenied, "the call does not say who is calling", ratelimit.Never
	case ratelimit.ErrCost:
		return codes.InvalidArgument, "the call asks for more than the rate limit can ever admit", ratelimit.Never
	case ratelimit.ErrStore:
		return codes.Unavailable, "the rate limit could not be checked", time.Second
	}
	return codes.Unknown, "", 0
}

// pushback returns the wait in milliseconds, rounded up, as the gRPC specification of
// retries has it: a signed integer of 32 bits, negative for never.
func pushback(wait time.Duration) string {
	ms := int64(wait / time.Millisecond)
	if wait%time.Millisecond > 0 {
		ms++
	}
	if ms > math.MaxInt32 {
		ms = -1
	}
	return strconv.FormatInt(ms, 10)
}
