package ratelimittest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// Admits reports an error unless gate, which has one policy, admits exactly n calls
// with key and then refuses one. The time must stand still meanwhile.
func Admits(tb testing.TB, gate *ratelimit.Gate, n int, key string) {
	tb.Helper()
	ctx := context.Background()
	var policy string // is told by an admission, too, but not to Allow
	if d, err := gate.Peek(ctx, ratelimit.Charge{Key: []byte(key)}); err == nil {
		policy = d.Policy
	}
	for i := range n {
		if err := gate.Allow(ctx, []byte(key)); err != nil {
			tb.Errorf("policy %q, key %q: %d calls admitted, want %d: %v", policy, key, i, n, err)
			return
		}
	}
	switch err := gate.Allow(ctx, []byte(key)); {
	case err == nil:
		tb.Errorf("policy %q, key %q: %d calls admitted, want %d", policy, key, n+1, n)
	case !errors.Is(err, ratelimit.ErrLimited):
		tb.Errorf("policy %q, key %q: call %d: %v, want %v", policy, key, n+1, err, ratelimit.ErrLimited)
	}
}

// Refused reports an error unless err is, or wraps, the refusal of a call that came too
// early for the policy with the given ID. It returns how long the caller is told to
// wait, which is ratelimit.Never if waiting does not help, and 0 if it was no refusal.
func Refused(tb testing.TB, err error, policy string) (retryAfter time.Duration) {
	tb.Helper()
	var e *ratelimit.Error
	switch {
	case err == nil:
		tb.Errorf("the call was admitted, want it refused by policy %q", policy)
	case !errors.As(err, &e) || e.Kind != ratelimit.ErrLimited:
		tb.Errorf("error %v, want a refusal by policy %q", err, policy)
	case e.Decision.Policy != policy:
		tb.Errorf("refused by policy %q, want %q: %v", e.Decision.Policy, policy, err)
	default:
		return e.Decision.RetryAfter
	}
	return 0
}
