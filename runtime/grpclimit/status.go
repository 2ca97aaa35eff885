package grpclimit

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ratelimitgen/ratelimitgen/runtime/internal/rpcrefusal"
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
	a, ok := rpcrefusal.Of(e)
	if !ok {
		return nil, err
	}
	if i.onRefusal != nil {
		i.onRefusal(ctx, method, e)
	}
	var details []protoadapt.MessageV1
	if a.Wait != ratelimit.Never {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(a.Wait)})
	}
	if a.Code == rpcrefusal.ResourceExhausted {
		details = append(details, &errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{
			Subject:     strings.ToValidUTF8(method, "\uFFFD"),
			Description: a.Text,
		}}})
	}
	st := status.New(codes.Code(a.Code), a.Text)
	if len(details) > 0 {
		if detailed, err := st.WithDetails(details...); err == nil {
			st = detailed
		}
	}
	return metadata.Pairs("grpc-retry-pushback-ms", a.Pushback()), &refusal{st, err}
}
