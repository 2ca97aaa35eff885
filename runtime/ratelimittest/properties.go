package ratelimittest

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"pgregory.net/rapid"
)

// properties hold whatever the policy and the history are. They are of these rules, for
// every algorithm that the store supports; more of the in-memory counters is tested
// where it says so.
//
//	G1   the same state, call and time give the same result in every store: all that
//	     is decided is compared with the oracle, to the microsecond
//	G2   what is refused or peeked at leaves the state as it is: Subject.Dump
//	G3   0 <= Remaining <= Limit, and it is the greatest cost that is admitted: the
//	     oracle finds it by trying
//	G4   a cost above the capacity is an error, and so is a negative one; 0 is a peek:
//	     each call draws one of them at times, and the cases RT18 and RD18
//	G5   a refused call is admitted after RetryAfter, if nobody else calls,
//	G6   and not a microsecond before,
//	G7   and it is bounded, also after the clock was set back: checkWaits, and for those
//	     whose waits depend on more than charges, the oracle, which tries
//	G8   time does not run backwards for a key: histories step the clock back
//	G9   keys do not depend on each other: histories have three of them. At the bound
//	     of a limiter in memory: TestFloodOfMillionsOfKeys of ratelimit, TestSimulation
//	G10  what is dropped would decide as new: histories go on after it is, with beliefs
//	     of both. Of a store that drops by itself, its own tests say that it does
//	G11  an update is in force at once, raises leave no old wait, counters are kept:
//	     TestSimulation, TestConcurrentCallsAreLinearizable, and the tests of
//	     Limiter.Update of ratelimit and redisstore
//	G12  a Reset key is a new one: histories, and the end of checkWaits
//	G13  no number panics or overflows: checkNumbers, and TestNoTimeOfAClockPanics of
//	     ratelimit
var properties = []struct {
	name string
	run  func(*testing.T, Harness)
}{
	{"G1-G8 single policies decide as the oracle", func(t *testing.T, h Harness) {
		for _, k := range h.kinds() {
			t.Run(k.name, func(t *testing.T) {
				t.Parallel()
				rapid.Check(t, func(rt *rapid.T) {
					w := newWorld(t, rt, h.New(t), []ratelimit.Policy{h.draw(rt, k)})
					w.run()
				})
			})
		}
	}},
	{"G1-G9 several policies decide as one and as the oracle", func(t *testing.T, h Harness) {
		rapid.Check(t, func(rt *rapid.T) {
			s := h.New(t)
			var ps []ratelimit.Policy
			var queued, placed bool
			for range rapid.IntRange(2, 6).Draw(rt, "policies") {
				p := h.draw(rt, rapid.SampledFrom(h.kinds()).Draw(rt, "kind"))
				queued = queued || p.Algorithm == ratelimit.LeakyBucket
				placed = placed || p.Algorithm == ratelimit.Concurrency
				if queued && placed && !s.After {
					// World.take has calls wait for their turn in a bubble of synctest, and
					// the timer that renews a place in a store cannot leave that.
					rt.Skip("a queue and places in one store")
				}
				p.Global = rapid.IntRange(0, 3).Draw(rt, "global") == 0
				if rapid.IntRange(0, 3).Draw(rt, "shadow") == 0 {
					p.Mode = ratelimit.Shadow
				}
				ps = append(ps, p)
			}
			newWorld(t, rt, s, ps).run()
		})
	}},
	{"G5-G7 a wait is honest, tight and bounded", func(t *testing.T, h Harness) {
		rapid.Check(t, func(rt *rapid.T) {
			k := rapid.SampledFrom(h.kinds()).Filter(func(k kind) bool { return k.waits }).Draw(rt, "kind")
			checkWaits(t, rt, h.New(t), h.draw(rt, k))
		})
	}},
	{"calls that are reserved are decided as the oracle", func(t *testing.T, h Harness) {
		if h.Reserves == nil {
			t.Skip("a store that cannot reserve")
		}
		for n := 1; n <= 3; n++ {
			t.Run(fmt.Sprint(n, " policies"), func(t *testing.T) {
				t.Parallel()
				checkReservations(t, h, n)
			})
		}
	}},
	{"G13 no number panics or is admitted above the limit", func(t *testing.T, h Harness) {
		if len(h.countingAlgorithms()) == 0 {
			t.Skip("a store of leaky buckets")
		}
		rapid.Check(t, func(rt *rapid.T) { checkNumbers(t, rt, h) })
	}},
}

// The times that properties move in: 71 to 142 years after 1970, so that a double
// holds every time and every time plus a window exactly.
const (
	firstTime = 1 << 51
	lastTime  = 1 << 52
)

// checkWaits fills a policy in some way until it refuses.
func checkWaits(t *testing.T, rt *rapid.T, s Subject, p ratelimit.Policy) {
	w := newWorld(t, rt, s, []ratelimit.Policy{p})
	ctx, key := context.Background(), []byte("k")
	cost := rapid.Int64Range(1, p.Capacity()).Draw(rt, "cost")
	take := func(cost int64) ratelimit.Decision {
		d, err := w.gate.Take(ctx, ratelimit.Charge{Key: key, Cost: cost})
		if err != nil {
			rt.Fatal(err)
		}
		return d
	}
	d := take(cost)
	for d.Allowed {
		w.setTime(w.now + rapid.Int64Range(0, p.Window.Microseconds()/4).Draw(rt, "pause"))
		if cost = rapid.Int64Range(1, p.Capacity()).Draw(rt, "cost"); cost > d.Remaining/2 {
			cost = p.Capacity()
		}
		d = take(cost)
	}
	bound := micros(longestWait(&p))
	if d.RetryAfter <= 0 || d.RetryAfter > bound {
		rt.Fatalf("G7: %+v: RetryAfter %v is not in (0, %v]", p, d.RetryAfter, bound)
	}
	if d.Remaining >= cost {
		rt.Fatalf("G3: %+v: refused %d while %d remain", p, cost, d.Remaining)
	}
	refused := w.now
	w.setTime(refused + d.RetryAfter.Microseconds() - 1)
	if again := take(cost); again.Allowed || again.RetryAfter != time.Microsecond {
		rt.Fatalf("G6: %+v: a tick before RetryAfter: %+v", p, again)
	}
	back := rapid.OneOf(
		rapid.Int64Range(0, 3*p.Window.Microseconds()),
		rapid.Int64Range(0, 2*movesAfter(&p)),
	).Draw(rt, "back")
	w.setTime(refused - back)
	if again := take(cost); again.RetryAfter > bound {
		rt.Fatalf("G7: %+v: RetryAfter %v is above %v after the clock was set back by %d µs", p, again.RetryAfter, bound, back)
	}
	if rapid.Bool().Draw(rt, "waits on") {
		// Time stands still for no longer than that.
		d := take(cost)
		w.setTime(w.now + movesAfter(&p) + d.RetryAfter.Microseconds())
		if again := take(cost); !d.Allowed && !again.Allowed {
			rt.Fatalf("G7: %+v: set back by %d µs, and after a RetryAfter of %v: %+v", p, back, d.RetryAfter, again)
		}
	} else if back <= p.Window.Microseconds() {
		w.setTime(refused + d.RetryAfter.Microseconds())
		if again := take(cost); !again.Allowed {
			rt.Fatalf("G5: %+v: after RetryAfter: %+v", p, again)
		}
	}
	if err := w.gate.Reset(ctx, key); err != nil {
		rt.Fatal(err)
	}
	if first := take(p.Capacity()); !first.Allowed || first.Remaining != 0 {
		rt.Fatalf("G12: %+v: all of it after a Reset: %+v", p, first)
	}
}

// longestWait bounds every wait of a policy that locks nothing.
func longestWait(p *ratelimit.Policy) int64 {
	w := p.Window.Microseconds()
	switch p.Algorithm {
	case ratelimit.SlidingWindow:
		segments := int64(p.Segments)
		if segments == 0 {
			segments = ratelimit.DefaultSegments
		}
		return (w + segments - 1) / segments * (segments + 1)
	case ratelimit.TokenBucket, ratelimit.LeakyBucket:
		if p.Refill == ratelimit.Interval {
			return (p.Capacity() + p.Limit - 1) / p.Limit * w
		}
		return new(big.Int).Div(product(p.Capacity(), w), big.NewInt(p.Limit)).Int64() + 1
	}
	return w
}

// countingAlgorithms returns the algorithms that the store supports, but for the leaky
// bucket: the oracle's own numbers are too small for it.
func (h Harness) countingAlgorithms() []ratelimit.Algorithm {
	supported := h.algorithms()
	for _, a := range []ratelimit.Algorithm{ratelimit.SlidingWindow, ratelimit.Concurrency, ratelimit.TimeQuota} {
		if h.Supports != nil && h.Supports(&ratelimit.Policy{Algorithm: a}) {
			supported = append(supported, a)
		}
	}
	return supported
}

// algorithms returns those of algorithms that the store supports.
func (h Harness) algorithms() []ratelimit.Algorithm {
	return slices.DeleteFunc(slices.Clone(algorithms), func(a ratelimit.Algorithm) bool {
		return h.Supports != nil && !h.Supports(&ratelimit.Policy{Algorithm: a})
	})
}

// checkNumbers draws policies from all that are valid, and any cost.
func checkNumbers(t *testing.T, rt *rapid.T, h Harness) {
	p := unique(ratelimit.Policy{
		Algorithm: rapid.SampledFrom(h.countingAlgorithms()).Draw(rt, "algorithm"),
		Limit:     rapid.Int64Range(1, ratelimit.MaxLimit).Draw(rt, "limit"),
		Window:    time.Duration(rapid.Int64Range(1_000_000, ratelimit.MaxWindow.Microseconds()).Draw(rt, "window")) * time.Microsecond,
	})
	switch p.Algorithm {
	case ratelimit.SlidingLog:
		p.Limit = min(p.Limit, ratelimit.MaxLogLimit)
	case ratelimit.TokenBucket:
		p.Burst = rapid.Int64Range(1, ratelimit.MaxLimit).Draw(rt, "burst")
		for p.Validate() != nil {
			p.Burst = (p.Burst + 1) / 2
			p.Limit = (p.Limit + 1) / 2
		}
	case ratelimit.Concurrency:
		p.Lease, p.Window = p.Window, 0
	case ratelimit.TimeQuota:
		p.Limit = rapid.Int64Range(1, ratelimit.MaxWindow.Microseconds()).Draw(rt, "µs")
	}
	w := newWorld(t, rt, h.New(t), []ratelimit.Policy{p})
	key := "k"
	for range rapid.IntRange(1, 20).Draw(rt, "steps") {
		if rapid.Bool().Draw(rt, "time goes on") {
			w.setTime(rapid.Int64Range(firstTime, lastTime).Draw(rt, "time"))
		}
		cost := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-1, p.Capacity()+1)).Draw(rt, "cost")
		if cost >= 0 {
			w.call([]string{key}, []asked{ask(&p, cost)})
			continue
		}
		if _, _, err := w.take([]ratelimit.Charge{{Key: []byte(key), Cost: cost}}); !errors.Is(err, ratelimit.ErrCost) {
			rt.Fatalf("cost %d: %v, want %v", cost, err, ratelimit.ErrCost)
		}
	}
}
