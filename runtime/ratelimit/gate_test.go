package ratelimit_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

func TestAllowRefusesUntilRetryAfter(t *testing.T) {
	t.Parallel()
	for _, a := range []ratelimit.Algorithm{ratelimit.SlidingLog, ratelimit.FixedWindow, ratelimit.TokenBucket} {
		t.Run(string(a), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				gate := ratelimit.New().MustGate(&ratelimit.Spec{
					Method:   "auth.Service.Login",
					File:     "auth.go",
					Policies: []ratelimit.Policy{{ID: "login", Directive: "max=3 window=1m", Algorithm: a, Limit: 3, Window: time.Minute}},
				})
				for i := range 3 {
					if err := gate.Allow(t.Context(), []byte("k")); err != nil {
						t.Fatalf("call %d: %v", i, err)
					}
				}
				err := gate.Allow(t.Context(), []byte("k"))
				var e *ratelimit.Error
				if !errors.As(err, &e) || !errors.Is(err, ratelimit.ErrLimited) {
					t.Fatalf("call 4: %v, want ErrLimited", err)
				}
				if err := gate.Allow(t.Context(), []byte("other")); err != nil {
					t.Errorf("another key: %v", err)
				}
				time.Sleep(e.Decision.RetryAfter - time.Microsecond)
				if err := gate.Allow(t.Context(), []byte("k")); err == nil {
					t.Error("admitted before RetryAfter")
				}
				time.Sleep(time.Microsecond)
				if err := gate.Allow(t.Context(), []byte("k")); err != nil {
					t.Errorf("after RetryAfter: %v", err)
				}
			})
		})
	}
}
