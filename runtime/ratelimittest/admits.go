package ratelimittest

import (
	"context"
	"errors"
	"testing"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// Admits reports an error unless gate, which has one policy, admits exactly n calls
// with key and then refuses one. The time must stand still meanwhile.
func Admits(tb testing.TB, gate *ratelimit.Gate, n int, key string) {
	tb.Helper()
	for i := range n {
		if err := gate.Allow(context.Background(), []byte(key)); err != nil {
			tb.Errorf("key %q: call %d of %d: %v", key, i+1, n, err)
			return
		}
	}
	switch err := gate.Allow(context.Background(), []byte(key)); {
	case err == nil:
		tb.Errorf("key %q: call %d admitted, want %d at most", key, n+1, n)
	case !errors.Is(err, ratelimit.ErrLimited):
		tb.Errorf("key %q: call %d: %v, want %v", key, n+1, err, ratelimit.ErrLimited)
	}
}
