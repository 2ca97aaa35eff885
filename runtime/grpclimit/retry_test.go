package grpclimit_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/ratelimitgen/ratelimitgen/runtime/grpclimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimittest"
)

// retrying makes a client try up to five times, almost without a wait of its own.
var retrying = grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}], "retryPolicy": {
	"maxAttempts": 5, "initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1,
	"retryableStatusCodes": ["RESOURCE_EXHAUSTED", "PERMISSION_DENIED"]}}]}`)

// attempts are the times at which a method was called.
type attempts struct {
	mu    sync.Mutex
	times []time.Time
}

func (a *attempts) add() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.times = append(a.times, time.Now())
}

func (a *attempts) all() []time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.times
}

func TestARetryingClientWaitsAsLongAsItIsTold(t *testing.T) {
	t.Parallel()
	const window = 150 * time.Millisecond
	// The limiter's clock stands still, so that a slow machine changes nothing. It
	// moves when a call is refused, by what the client is told to wait.
	clock := ratelimittest.NewClock(time.Now())
	gate := ratelimit.New(ratelimit.WithClock(clock)).MustGate(&ratelimit.Spec{Method: "x", Policies: []ratelimit.Policy{
		{ID: "x", Global: true, Limit: 1, Window: window},
	}})
	var tries attempts
	client := serve(t, tcp, &service{check: func(ctx context.Context) error {
		tries.add()
		return gate.Allow(ctx, nil)
	}}, grpclimit.New(grpclimit.WithOnRefusal(func(_ context.Context, _ string, err *ratelimit.Error) {
		clock.Advance(err.Decision.RetryAfter)
	})), retrying)
	for range 2 {
		if _, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
			t.Fatalf("after the wait that the client was told: %v", err)
		}
	}
	times := tries.all()
	if len(times) != 3 {
		t.Fatalf("%d attempts, want one for the first call and two for the second", len(times))
	}
	if waited := times[2].Sub(times[1]); waited < window {
		t.Errorf("the client waited %v, and was told %v", waited, window)
	}
}

func TestARetryingClientStopsWhereWaitingNeverHelps(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  error
		code codes.Code
		want int
	}{
		"limited for good": {refusal(ratelimit.ErrLimited, ratelimit.Never), codes.ResourceExhausted, 1},
		"no key":           {refusal(ratelimit.ErrNoKey, ratelimit.Never), codes.PermissionDenied, 1},
		// It is the trailer that stops the others.
		"no limit's error": {status.Error(codes.ResourceExhausted, "out of disk"), codes.ResourceExhausted, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tries attempts
			client := serve(t, tcp, &service{check: func(context.Context) error {
				tries.add()
				return tt.err
			}}, grpclimit.New(), retrying)
			if _, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{}); status.Code(err) != tt.code {
				t.Errorf("%v, want %v", err, tt.code)
			}
			if n := len(tries.all()); n != tt.want {
				t.Errorf("%d attempts, want %d", n, tt.want)
			}
		})
	}
}
