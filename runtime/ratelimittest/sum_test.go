package ratelimittest

import (
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"pgregory.net/rapid"
)

// admitsInAllSuffixes is suffixSum's admits to the letter.
func admitsInAllSuffixes(h history, p *ratelimit.Policy, t int64, a asked) bool {
	units := a.cost
	if units > a.capacity {
		return false
	}
	for _, c := range slices.Backward(h) {
		units += c.cost
		over := product(units-a.capacity, p.Window.Microseconds())
		if over.Add(over, big.NewInt(c.owed)); (c.cost > 0 || c.owed > 0) && over.Cmp(product(p.Limit, t-c.at)) > 0 {
			return false
		}
	}
	return true
}

func TestOneSuffixStandsForAll(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := &ratelimit.Policy{
			Algorithm: ratelimit.TokenBucket,
			Limit:     rapid.OneOf(rapid.Int64Range(1, 10), rapid.Int64Range(1, ratelimit.MaxLimit)).Draw(rt, "limit"),
			Window:    rapid.SampledFrom([]time.Duration{time.Microsecond, 7 * time.Microsecond, time.Minute, ratelimit.MaxWindow}).Draw(rt, "window"),
		}
		a := ask(p, 0)
		unit := 1 + p.Window.Microseconds()/p.Limit
		pause := rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, 3*unit))
		cost := rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, a.capacity))
		at := int64(firstTime)
		var h history
		for i := range rapid.IntRange(0, 20).Draw(rt, "charges") {
			at += pause.Draw(rt, "pause")
			c := charge{at: at, cost: cost.Draw(rt, "cost")}
			if i == 0 && rapid.Bool().Draw(rt, "updated") {
				c.cost, c.owed = 0, rapid.Int64Range(0, 3*p.Window.Microseconds()).Draw(rt, "owed")
			}
			h = append(h, c)
		}
		s := h.suffixSum(p, at)
		for range 10 {
			at += pause.Draw(rt, "pause")
			a.cost = rapid.OneOf(cost, rapid.Just(a.capacity), rapid.Just(a.capacity+1)).Draw(rt, "cost")
			if want := admitsInAllSuffixes(h, p, at, a); s.admits(at, a) != want {
				rt.Fatalf("%+v, %+v at %d: %t is admitted, want %t", h, a, at, !want, want)
			}
		}
	})
}

// The oracle looks for times that are far away, too, which multiplied by a limit are no
// integers.
func TestAQueueOfAnyLimitEnds(t *testing.T) {
	t.Parallel()
	for _, limit := range []int64{1, 127, 128, 266, 100_000} {
		p := ratelimit.Policy{Algorithm: ratelimit.LeakyBucket, Limit: limit, Window: time.Second, Burst: 2}
		a := asked{cost: 2, limit: limit, capacity: 2}
		h := past{}.charged(&p, lastTime, a, 1)
		want := micros((2*time.Second.Microseconds() + limit - 1) / limit)
		if o := h.outcome(&p, lastTime, a, false); o.ResetAfter != want {
			t.Errorf("limit %d: two calls are served after %v, want %v", limit, o.ResetAfter, want)
		}
	}
}
