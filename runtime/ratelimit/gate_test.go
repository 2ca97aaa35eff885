package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimittest"
	"pgregory.net/rapid"
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

// TestAllowAllDecidesAsTake compares the ways that a call can take: AllowAll goes the
// short one where it can.
func TestAllowAllDecidesAsTake(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var policies []ratelimit.Policy
		for i := range rapid.IntRange(1, 5).Draw(rt, "policies") {
			p := ratelimit.Policy{
				ID:        fmt.Sprint("p", i),
				Algorithm: rapid.SampledFrom(algorithms).Draw(rt, "algorithm"),
				Limit:     rapid.Int64Range(1, 5).Draw(rt, "limit"),
				Window:    time.Duration(rapid.Int64Range(1, 50).Draw(rt, "window")) * time.Microsecond,
				Global:    rapid.IntRange(0, 3).Draw(rt, "global") == 0,
			}
			policies = append(policies, p)
		}
		now := int64(1 << 50)
		clock := ratelimittest.NewClock(time.UnixMicro(now))
		room := rapid.SampledFrom([]int{3, 1 << 16}).Draw(rt, "room")
		var gates [2]*ratelimit.Gate
		for i := range gates {
			l := ratelimit.New(ratelimit.WithClock(clock), ratelimit.WithMaxKeys(room))
			gates[i] = l.MustGate(&ratelimit.Spec{Method: "m", Policies: policies})
		}
		for range rapid.IntRange(1, 40).Draw(rt, "calls") {
			now += rapid.Int64Range(0, 30).Draw(rt, "pause") // what is over may be dropped, so time set back is not decided alike
			clock.Set(time.UnixMicro(now))
			charges := make([]ratelimit.Charge, len(policies))
			for i := range charges {
				key := rapid.SampledFrom([]string{"a", "b", "a key that is too long to be stored beside its counter, and so by its digest: " + strings.Repeat("x", 300)}).Draw(rt, "key")
				charges[i] = ratelimit.Charge{Key: []byte(key), Cost: rapid.Int64Range(0, policies[i].Limit).Draw(rt, "cost")}
			}
			d, err := gates[0].Take(context.Background(), charges...)
			if err != nil {
				rt.Fatal(err)
			}
			if len(charges) == 1 && rapid.Bool().Draw(rt, "allow") {
				err = gates[1].AllowN(context.Background(), charges[0].Key, charges[0].Cost)
			} else {
				err = gates[1].AllowAll(context.Background(), charges)
			}
			var refusal *ratelimit.Error
			if d.Allowed != (err == nil) || err != nil && (!errors.As(err, &refusal) || refusal.Decision != d) {
				rt.Fatalf("%+v at %d with %+v: Take says %+v, AllowAll %+v", policies, now, charges, d, err)
			}
		}
	})
}
