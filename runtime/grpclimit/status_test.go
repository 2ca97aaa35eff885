package grpclimit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/ratelimitgen/ratelimitgen/runtime/grpclimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// refusal makes the error of a limiter, with something secret in every text.
func refusal(kind error, retryAfter time.Duration) *ratelimit.Error {
	return &ratelimit.Error{
		Kind: kind,
		Decision: ratelimit.Decision{
			Policy: "secret.example/pay.Service.PlaceOrder", Limit: 5,
			RetryAfter: retryAfter, ResetAt: time.Now().Add(time.Hour),
		},
		Method:    "secret.Service.PlaceOrder",
		File:      "secret.go",
		Directive: "max=5 window=1m key=secret",
		Err:       errors.New("redis 127.0.0.1:6379: secret"),
	}
}

func inWords(message string) *ratelimit.Error {
	e := refusal(ratelimit.ErrLimited, time.Second)
	e.Message, e.Status = message, 503
	return e
}

var answers = map[string]struct {
	err      error
	code     codes.Code
	text     string // if it matters
	retry    time.Duration
	pushback string
}{
	"limited":               {refusal(ratelimit.ErrLimited, 11*time.Second+1), codes.ResourceExhausted, "", 11*time.Second + 1, "11001"},
	"limited, wrapped":      {fmt.Errorf("secret: %w", refusal(ratelimit.ErrLimited, time.Second)), codes.ResourceExhausted, "", time.Second, "1000"},
	"limited, joined":       {errors.Join(errors.New("secret"), refusal(ratelimit.ErrLimited, time.Second)), codes.ResourceExhausted, "", time.Second, "1000"},
	"limited, other status": {coded{refusal(ratelimit.ErrLimited, time.Second)}, codes.ResourceExhausted, "", time.Second, "1000"},
	"limited, wait of 0":    {refusal(ratelimit.ErrLimited, 0), codes.ResourceExhausted, "", 1, "1"},
	"limited, clock steps":  {refusal(ratelimit.ErrLimited, -time.Hour), codes.ResourceExhausted, "", 1, "1"},
	"limited for good":      {refusal(ratelimit.ErrLimited, ratelimit.Never), codes.ResourceExhausted, "", 0, "-1"},
	"limited for ages":      {refusal(ratelimit.ErrLimited, ratelimit.Never-1), codes.ResourceExhausted, "", ratelimit.Never - 1, "-1"},
	"limited, own words":    {inWords("slow down, bitte schön"), codes.ResourceExhausted, "slow down, bitte schön", time.Second, "1000"},
	"limited, no text":      {inWords("a\xffb\n"), codes.ResourceExhausted, "a\uFFFDb\n", time.Second, "1000"},
	"no key":                {refusal(ratelimit.ErrNoKey, ratelimit.Never), codes.PermissionDenied, "", 0, "-1"},
	"cost":                  {refusal(ratelimit.ErrCost, ratelimit.Never), codes.InvalidArgument, "", 0, "-1"},
	"store":                 {refusal(ratelimit.ErrStore, 0), codes.Unavailable, "", time.Second, "1000"},
	"store, out of time": {
		&ratelimit.Error{Kind: ratelimit.ErrStore, Err: context.DeadlineExceeded}, codes.Unavailable, "", time.Second, "1000",
	},
}

// coded is an error with a status of its own.
type coded struct{ error }

func (c coded) Unwrap() error            { return c.error }
func (coded) GRPCStatus() *status.Status { return status.New(codes.Internal, "secret") }

func TestALimitsErrorBecomesAStatus(t *testing.T) {
	t.Parallel()
	for name, tt := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := serve(t, inProcess, &service{
				check: func(context.Context) error { return tt.err },
				watch: func(stream grpc.ServerStreamingServer[healthpb.HealthCheckResponse]) error {
					if err := stream.Send(&healthpb.HealthCheckResponse{}); err != nil {
						return err
					}
					return tt.err
				},
			}, grpclimit.New())

			var trailer metadata.MD
			_, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{}, grpc.Trailer(&trailer))
			verify := func(method string, err error, trailer metadata.MD) {
				t.Helper()
				st := status.Convert(err)
				if st.Code() != tt.code || st.Message() == "" || tt.text != "" && st.Message() != tt.text {
					t.Errorf("%s: %v, want %v %q", method, err, tt.code, tt.text)
				}
				if got := trailer.Get("grpc-retry-pushback-ms"); len(got) != 1 || got[0] != tt.pushback {
					t.Errorf("%s: pushback %q, want %q", method, got, tt.pushback)
				}
				var retry time.Duration
				quota := 0
				for _, d := range st.Details() {
					switch d := d.(type) {
					case *errdetails.RetryInfo:
						retry = d.GetRetryDelay().AsDuration()
					case *errdetails.QuotaFailure:
						quota++
						if len(d.GetViolations()) != 1 {
							t.Fatalf("%s: %v", method, d)
						}
						if v := d.GetViolations()[0]; v.GetSubject() != method || v.GetDescription() != st.Message() {
							t.Errorf("%s: violation %v", method, v)
						}
					default:
						t.Errorf("%s: unexpected detail %v", method, d)
					}
				}
				if retry != tt.retry {
					t.Errorf("%s: RetryInfo %v, want %v", method, retry, tt.retry)
				}
				if limited := tt.code == codes.ResourceExhausted; (quota == 1) != limited {
					t.Errorf("%s: %d QuotaFailure", method, quota)
				}
				for _, secret := range []string{"secret", "max=5", "redis", "pay."} {
					if text := fmt.Sprint(st.Proto(), trailer); strings.Contains(text, secret) {
						t.Errorf("%s: the client is told %q: %s", method, secret, text)
					}
				}
			}
			verify(checkMethod, err, trailer)

			stream, err := client.Watch(t.Context(), &healthpb.HealthCheckRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := stream.Recv(); err != nil {
				t.Fatalf("what was sent before the refusal is lost: %v", err)
			}
			_, err = stream.Recv()
			verify(watchMethod, err, stream.Trailer())
		})
	}
}

func TestOtherErrorsAreLeftAlone(t *testing.T) {
	t.Parallel()
	limits := grpclimit.New(grpclimit.WithOnRefusal(func(_ context.Context, method string, err *ratelimit.Error) {
		t.Errorf("%s: the hook is told of %v", method, err)
	}))
	for _, want := range []error{
		errors.New("x"), io.EOF, ratelimit.ErrLimited, &ratelimit.Error{}, &ratelimit.Error{Kind: errors.New("x")},
		context.Canceled, fmt.Errorf("x: %w", context.DeadlineExceeded), status.Error(codes.NotFound, "x"), nil,
	} {
		_, err := limits.UnaryServerInterceptor()(t.Context(), nil, &grpc.UnaryServerInfo{}, func(context.Context, any) (any, error) { return nil, want })
		if err != want {
			t.Errorf("unary: %v became %v", want, err)
		}
		ss := &serverStream{ctx: t.Context()}
		err = limits.StreamServerInterceptor()(nil, ss, &grpc.StreamServerInfo{}, func(any, grpc.ServerStream) error { return want })
		if err != want || ss.trailer != nil {
			t.Errorf("stream: %v became %v, trailer %v", want, err, ss.trailer)
		}
	}
}

func TestTheErrorOfAContextHasItsOwnStatus(t *testing.T) {
	t.Parallel()
	for want, cause := range map[codes.Code]error{
		codes.Canceled:         context.Canceled,
		codes.DeadlineExceeded: fmt.Errorf("waited: %w", context.DeadlineExceeded),
	} {
		client := serve(t, inProcess, &service{
			check: func(context.Context) error { return cause },
			watch: func(grpc.ServerStreamingServer[healthpb.HealthCheckResponse]) error { return cause },
		}, grpclimit.New())
		if _, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{}); status.Code(err) != want {
			t.Errorf("unary: %v, want %v", err, want)
		}
		stream, err := client.Watch(t.Context(), &healthpb.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); status.Code(err) != want {
			t.Errorf("stream: %v, want %v", err, want)
		}
	}
}

// serverStream is a stream without a transport.
type serverStream struct {
	grpc.ServerStream
	ctx     context.Context
	trailer metadata.MD
}

func (s *serverStream) Context() context.Context       { return s.ctx }
func (s *serverStream) SetTrailer(trailer metadata.MD) { s.trailer = metadata.Join(s.trailer, trailer) }

func TestInterceptorsFurtherOutSeeWhatItWas(t *testing.T) {
	t.Parallel()
	cause := refusal(ratelimit.ErrLimited, time.Second)
	_, err := grpclimit.New().UnaryServerInterceptor()(t.Context(), nil, &grpc.UnaryServerInfo{}, func(context.Context, any) (any, error) { return nil, cause })
	var e *ratelimit.Error
	if !errors.Is(err, ratelimit.ErrLimited) || !errors.As(err, &e) || e != cause {
		t.Errorf("%v hides its cause", err)
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("an interceptor that sends the text on tells %q", err)
	}
}

func TestASecondInterceptorChangesNothing(t *testing.T) {
	t.Parallel()
	told := 0
	hook := grpclimit.WithOnRefusal(func(context.Context, string, *ratelimit.Error) { told++ })
	inner, outer := grpclimit.New(hook).StreamServerInterceptor(), grpclimit.New(hook).StreamServerInterceptor()
	ss := &serverStream{ctx: t.Context()}
	info := &grpc.StreamServerInfo{FullMethod: watchMethod}
	err := outer(nil, ss, info, func(srv any, ss grpc.ServerStream) error {
		return inner(srv, ss, info, func(any, grpc.ServerStream) error { return refusal(ratelimit.ErrLimited, time.Second) })
	})
	// Clients do not retry if there are two values.
	if got := ss.trailer.Get("grpc-retry-pushback-ms"); status.Code(err) != codes.ResourceExhausted || len(got) != 1 || told != 1 {
		t.Errorf("%v, pushback %q, told %d times", err, got, told)
	}
}

func TestTheHookIsToldWhatTheClientIsNot(t *testing.T) {
	t.Parallel()
	type key struct{}
	cause := refusal(ratelimit.ErrNoKey, ratelimit.Never)
	var methods []string
	limits := grpclimit.New(grpclimit.WithOnRefusal(func(ctx context.Context, method string, err *ratelimit.Error) {
		if ctx.Value(key{}) != "value" || err != cause {
			t.Errorf("told of %v in %v", err, ctx)
		}
		methods = append(methods, method)
	}))
	ctx := context.WithValue(t.Context(), key{}, "value")
	_, _ = limits.UnaryServerInterceptor()(ctx, nil, &grpc.UnaryServerInfo{FullMethod: checkMethod}, func(context.Context, any) (any, error) { return nil, cause })
	_ = limits.StreamServerInterceptor()(nil, &serverStream{ctx: ctx}, &grpc.StreamServerInfo{FullMethod: watchMethod}, func(any, grpc.ServerStream) error { return fmt.Errorf("x: %w", cause) })
	if fmt.Sprint(methods) != fmt.Sprint([]string{checkMethod, watchMethod}) {
		t.Errorf("told of %q", methods)
	}
}

func TestThePushbackIsAnIntegerThatIsLongEnough(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(11, 39879))
	intercept := grpclimit.New().StreamServerInterceptor()
	for i := range 20_000 {
		wait := time.Duration(rng.Int64N(int64(1) << (1 + rng.IntN(62))))
		switch i % 4 {
		case 0:
			wait = wait / time.Millisecond * time.Millisecond // the exact boundary
		case 1:
			wait = -wait
		}
		ss := &serverStream{ctx: t.Context()}
		_ = intercept(nil, ss, &grpc.StreamServerInfo{}, func(any, grpc.ServerStream) error {
			return &ratelimit.Error{Kind: ratelimit.ErrLimited, Decision: ratelimit.Decision{RetryAfter: wait}}
		})
		values := ss.trailer.Get("grpc-retry-pushback-ms")
		if len(values) != 1 {
			t.Fatalf("wait %v: pushback %q, want one value", wait, values)
		}
		ms, err := strconv.ParseInt(values[0], 10, 32)
		switch {
		case err != nil || ms == 0 || ms < -1:
			t.Fatalf("wait %v: pushback %q", wait, values[0])
		case ms == -1 && wait <= math.MaxInt32*time.Millisecond:
			t.Fatalf("wait %v: never, though it can be said", wait)
		case ms != -1 && time.Duration(ms)*time.Millisecond < wait, ms > 1 && time.Duration(ms-1)*time.Millisecond >= wait:
			t.Fatalf("wait %v: pushback %d, want the least that is not shorter", wait, ms)
		}
	}
}
