package connectlimit

import (
	"context"
	"errors"
	"strconv"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ratelimitgen/ratelimitgen/runtime/internal/rpcrefusal"
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
	a, ok := rpcrefusal.Of(e)
	if !ok {
		return err
	}
	if i.onRefusal != nil {
		i.onRefusal(ctx, procedure, e)
	}
	answer := connect.NewError(connect.Code(a.Code), &refusal{a.Text, err})
	if a.Wait != ratelimit.Never {
		answer.Meta().Set("Retry-After", strconv.FormatInt(rpcrefusal.RoundUp(a.Wait, time.Second), 10))
		addDetail(answer, &errdetails.RetryInfo{RetryDelay: durationpb.New(a.Wait)})
	}
	if a.Code == rpcrefusal.ResourceExhausted {
		addDetail(answer, &errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{
			Subject:     procedure,
			Description: a.Text,
		}}})
	}
	if protocol != connect.ProtocolConnect {
		answer.Meta().Set("Grpc-Retry-Pushback-Ms", a.Pushback())
	}
	return answer
}

func addDetail(e *connect.Error, message proto.Message) {
	if detail, err := connect.NewErrorDetail(message); err == nil {
		e.AddDetail(detail)
	}
}
