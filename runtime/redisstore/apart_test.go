package redisstore_test

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimittest"
)

// Policies whose keys live apart admit and refuse as those that live together, one
// call after the other: what a refused call was charged is given back.
func TestKeysThatLiveApartAreDecidedAsInMemory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		f := newFake(t)
		clock := ratelimittest.NewClock(time.UnixMicro(epoch))
		window := func() time.Duration {
			return time.Duration(rapid.Int64Range(50_000, 200_000).Draw(rt, "window")) * time.Microsecond
		}
		limit := func() int64 { return rapid.Int64Range(1, 6).Draw(rt, "limit") }
		policies := []ratelimit.Policy{
			{ID: "log", Limit: limit(), Window: window()},
			{ID: "fixed", Algorithm: ratelimit.FixedWindow, Limit: limit(), Window: window()},
			{ID: "bucket", Algorithm: ratelimit.TokenBucket, Limit: limit(), Window: window()},
			{ID: "sliding", Algorithm: ratelimit.SlidingWindow, Limit: limit(), Window: window()},
			{ID: "lock", Limit: limit(), Window: window(), Lock: []time.Duration{20 * time.Millisecond}},
			{ID: "shadow", Limit: limit(), Window: window(), Mode: ratelimit.Shadow},
		}
		policies = rapid.Permutation(policies).Draw(rt, "order")[:rapid.IntRange(2, 4).Draw(rt, "policies")]
		spec := &ratelimit.Spec{Policies: policies}
		near := ratelimit.New(ratelimit.WithClock(clock)).MustGate(spec)
		far := ratelimit.New(ratelimit.WithClock(clock), ratelimit.WithStore("", f.store.Apart())).MustGate(spec)
		now := int64(0)
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			now += rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 50), rapid.Int64Range(0, 60_000), rapid.Int64Range(0, sec)).Draw(rt, "time")
			clock.Set(time.UnixMicro(epoch + now))
			f.at(now)
			charges := make([]ratelimit.Charge, len(policies))
			for i := range charges {
				charges[i].Key = []byte(rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "key"))
				charges[i].Cost = rapid.Int64Range(0, min(3, policies[i].Limit)).Draw(rt, "cost")
			}
			ask := func(g *ratelimit.Gate) ratelimit.Decision {
				d, err := g.Take(context.Background(), charges...)
				if err != nil {
					rt.Fatal(err)
				}
				return d
			}
			if n, r := ask(near), ask(far); n != r {
				rt.Fatalf("%+v of %+v:\nin memory %+v\nin Redis  %+v", charges, policies, n, r)
			}
			for i := range charges {
				for j := range charges {
					charges[j].Skip = j != i
				}
				for _, key := range []string{"a", "b"} {
					charges[i].Key = []byte(key)
					n, err := near.Peek(context.Background(), charges...)
					r, ferr := far.Peek(context.Background(), charges...)
					if err != nil || ferr != nil || n != r {
						rt.Fatalf("peek at %+v of %+v:\nin memory %+v, %v\nin Redis  %+v, %v", charges[i], policies[i], n, err, r, ferr)
					}
				}
			}
		}
	})
}
