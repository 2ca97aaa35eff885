package connectlimit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/ratelimitgen/ratelimitgen/runtime/connectlimit"
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
	err        error
	code       connect.Code
	text       string // if it matters
	retry      time.Duration
	retryAfter string
	pushback   string
}{
	"limited":             {refusal(ratelimit.ErrLimited, 11*time.Second+1), connect.CodeResourceExhausted, "", 11*time.Second + 1, "12", "11001"},
	"limited, wrapped":    {fmt.Errorf("secret: %w", refusal(ratelimit.ErrLimited, time.Second)), connect.CodeResourceExhausted, "", time.Second, "1", "1000"},
	"limited, joined":     {errors.Join(errors.New("secret"), refusal(ratelimit.ErrLimited, time.Second)), connect.CodeResourceExhausted, "", time.Second, "1", "1000"},
	"limited, other code": {connect.NewError(connect.CodeInternal, refusal(ratelimit.ErrLimited, time.Second)), connect.CodeResourceExhausted, "", time.Second, "1", "1000"},
	"limited, wait of 0":  {refusal(ratelimit.ErrLimited, 0), connect.CodeResourceExhausted, "", 1, "1", "1"},
	"limited for good":    {refusal(ratelimit.ErrLimited, ratelimit.Never), connect.CodeResourceExhausted, "", 0, "", "-1"},
	"limited for ages":    {refusal(ratelimit.ErrLimited, ratelimit.Never-1), connect.CodeResourceExhausted, "", ratelimit.Never - 1, "9223372037", "-1"},
	"limited, own words":  {inWords("slow down, bitte schön"), connect.CodeResourceExhausted, "slow down, bitte schön", time.Second, "1", "1000"},
	"limited, no text":    {inWords("a\xffb\n"), connect.CodeResourceExhausted, "a\uFFFDb\n", time.Second, "1", "1000"},
	"no key":              {refusal(ratelimit.ErrNoKey, ratelimit.Never), connect.CodePermissionDenied, "", 0, "", "-1"},
	"cost":                {refusal(ratelimit.ErrCost, ratelimit.Never), connect.CodeInvalidArgument, "", 0, "", "-1"},
	"store":               {refusal(ratelimit.ErrStore, 0), connect.CodeUnavailable, "", time.Second, "1", "1000"},
	"store, out of time": {
		&ratelimit.Error{Kind: ratelimit.ErrStore, Err: context.DeadlineExceeded}, connect.CodeUnavailable, "", time.Second, "1", "1000",
	},
}

func TestALimitsErrorBecomesOneOfConnect(t *testing.T) {
	t.Parallel()
	for name, tt := range answers {
		for protocol, opts := range protocols {
			t.Run(name+"/"+protocol, func(t *testing.T) {
				t.Parallel()
				check, watch := serve(t, &service{
					check: func(context.Context) error { return tt.err },
					watch: func(_ context.Context, stream *sender) error {
						if err := stream.Send(&emptypb.Empty{}); err != nil {
							return err
						}
						return tt.err
					},
				}, connectlimit.New(), opts...)
				verify := func(procedure string, err error) {
					t.Helper()
					var e *connect.Error
					if !errors.As(err, &e) {
						t.Fatalf("%s: %v", procedure, err)
					}
					if e.Code() != tt.code || e.Message() == "" || tt.text != "" && e.Message() != tt.text {
						t.Errorf("%s: %v, want %v %q", procedure, err, tt.code, tt.text)
					}
					pushback := tt.pushback
					if protocol == connect.ProtocolConnect {
						pushback = ""
					}
					for name, want := range map[string]string{"Retry-After": tt.retryAfter, "Grpc-Retry-Pushback-Ms": pushback} {
						if got := strings.Join(e.Meta().Values(name), " and "); got != want {
							t.Errorf("%s: %s %q, want %q", procedure, name, got, want)
						}
					}
					var retry time.Duration
					quota := 0
					for _, d := range e.Details() {
						value, err := d.Value()
						if err != nil {
							t.Fatal(err)
						}
						switch d := value.(type) {
						case *errdetails.RetryInfo:
							retry = d.GetRetryDelay().AsDuration()
						case *errdetails.QuotaFailure:
							quota++
							if len(d.GetViolations()) != 1 {
								t.Fatalf("%s: %v", procedure, d)
							}
							if v := d.GetViolations()[0]; v.GetSubject() != procedure || v.GetDescription() != e.Message() {
								t.Errorf("%s: violation %v", procedure, v)
							}
						default:
							t.Errorf("%s: unexpected detail %v", procedure, d)
						}
					}
					if retry != tt.retry {
						t.Errorf("%s: RetryInfo %v, want %v", procedure, retry, tt.retry)
					}
					if limited := tt.code == connect.CodeResourceExhausted; (quota == 1) != limited {
						t.Errorf("%s: %d QuotaFailure", procedure, quota)
					}
					for _, secret := range []string{"secret", "max=5", "redis", "pay."} {
						if text := fmt.Sprint(e, e.Meta()); strings.Contains(text, secret) {
							t.Errorf("%s: the client is told %q: %s", procedure, secret, text)
						}
					}
				}
				_, err := check.CallUnary(t.Context(), empty())
				verify(checkProcedure, err)

				stream, err := watch.CallServerStream(t.Context(), empty())
				if err != nil {
					t.Fatal(err)
				}
				if !stream.Receive() {
					t.Fatalf("what was sent before the refusal is lost: %v", stream.Err())
				}
				if stream.Receive() {
					t.Fatal("a message from nowhere")
				}
				verify(watchProcedure, stream.Err())
				if err := stream.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// run calls a handler that returns err behind the interceptors, the first one the
// innermost, without a transport.
func run(ctx context.Context, err error, limits ...*connectlimit.Interceptor) error {
	next := func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) { return nil, err }
	for _, i := range limits {
		next = i.WrapUnary(next)
	}
	_, err = next(ctx, empty())
	return err
}

func TestOtherErrorsAreLeftAlone(t *testing.T) {
	t.Parallel()
	limits := connectlimit.New(connectlimit.WithOnRefusal(func(_ context.Context, procedure string, err *ratelimit.Error) {
		t.Errorf("%s: the hook is told of %v", procedure, err)
	}))
	for _, want := range []error{
		errors.New("x"), ratelimit.ErrLimited, &ratelimit.Error{}, &ratelimit.Error{Kind: errors.New("x")},
		context.Canceled, fmt.Errorf("x: %w", context.DeadlineExceeded), connect.NewError(connect.CodeNotFound, errors.New("x")), nil,
	} {
		if err := run(t.Context(), want, limits); err != want {
			t.Errorf("%v became %v", want, err)
		}
	}
}

func TestTheErrorOfAContextHasItsOwnCode(t *testing.T) {
	t.Parallel()
	for want, cause := range map[connect.Code]error{
		connect.CodeCanceled:         context.Canceled,
		connect.CodeDeadlineExceeded: fmt.Errorf("waited: %w", context.DeadlineExceeded),
	} {
		for _, opts := range protocols {
			check, watch := serve(t, &service{
				check: func(context.Context) error { return cause },
				watch: func(context.Context, *sender) error { return cause },
			}, connectlimit.New(), opts...)
			if _, err := check.CallUnary(t.Context(), empty()); connect.CodeOf(err) != want {
				t.Errorf("unary: %v, want %v", err, want)
			}
			stream, err := watch.CallServerStream(t.Context(), empty())
			if err != nil {
				t.Fatal(err)
			}
			if stream.Receive() || connect.CodeOf(stream.Err()) != want {
				t.Errorf("stream: %v, want %v", stream.Err(), want)
			}
			if err := stream.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestASecondInterceptorChangesNothingAndTheHookIsToldOnce(t *testing.T) {
	t.Parallel()
	type key struct{}
	cause := refusal(ratelimit.ErrLimited, time.Second)
	told := 0
	hook := connectlimit.WithOnRefusal(func(ctx context.Context, _ string, err *ratelimit.Error) {
		told++
		if ctx.Value(key{}) != "value" || err != cause {
			t.Errorf("told of %v in %v", err, ctx)
		}
	})
	once := run(context.WithValue(t.Context(), key{}, "value"), cause, connectlimit.New(hook), connectlimit.New(hook))
	var e *ratelimit.Error
	if !errors.Is(once, ratelimit.ErrLimited) || !errors.As(once, &e) || e != cause {
		t.Errorf("%v hides its cause from interceptors further out", once)
	}
	if told != 1 || connect.CodeOf(once) != connect.CodeResourceExhausted || strings.Contains(once.Error(), "secret") {
		t.Errorf("told %d times, %v", told, once)
	}
}
