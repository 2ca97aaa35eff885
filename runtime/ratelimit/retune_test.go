package ratelimit_test

import (
	"errors"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimittest"
)

// levels are the least and the most that a bucket can owe, or a queue can have in it: the
// definition, in exact fractions of a unit, with and without what each update may round up.
type levels struct{ least, most *big.Rat }

func (l *levels) each(change func(*big.Rat)) {
	for _, level := range []*big.Rat{l.least, l.most} {
		if change(level); level.Sign() < 0 {
			level.SetInt64(0)
		}
	}
}

func ceiling(r *big.Rat) int64 {
	q, rest := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q.Int64()
}

// Whatever updates come, in whichever order, nothing of what a bucket owes or a queue has
// in it is forgotten, and to no more than a unit, or a microsecond of a unit's time, is
// it added by each update.
func TestUpdatesKeepWhatIsOwed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := ratelimit.Policy{ID: "p", Algorithm: ratelimit.TokenBucket}
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 1:
			p.Count = true // counts in a record
		case 2:
			p.Algorithm = ratelimit.LeakyBucket
		}
		draw := func() (limit, burst int64, window time.Duration) {
			limit = rapid.OneOf(rapid.Int64Range(1, 10), rapid.Int64Range(1, 1e6), rapid.Int64Range(1, 1e9), rapid.Just(int64(1e9))).Draw(t, "limit")
			burst = rapid.OneOf(rapid.Just(limit), rapid.Int64Range(1, 20), rapid.Int64Range(1, 1e6)).Draw(t, "burst")
			window = rapid.SampledFrom([]time.Duration{time.Microsecond, 7 * time.Microsecond, time.Second, time.Minute, 7919 * time.Millisecond, time.Hour, 24 * time.Hour, 300 * 24 * time.Hour}).Draw(t, "window")
			return limit, burst, window
		}
		for {
			p.Limit, p.Burst, p.Window = draw()
			if p.Validate() == nil {
				break
			}
		}
		clock := ratelimittest.NewClock(time.Unix(1_700_000_000, 0))
		l := ratelimit.New(ratelimit.WithClock(clock))
		gate := l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{p}})
		key := []byte("k")
		owed := levels{new(big.Rat), new(big.Rat)}
		pace := func(d time.Duration) *big.Rat { // what comes back in d
			return big.NewRat(d.Microseconds(), 1).Mul(big.NewRat(d.Microseconds(), 1), big.NewRat(p.Limit, p.Window.Microseconds()))
		}
		take := func(charge ratelimit.Charge) bool {
			if !p.Count {
				d, err := gate.Take(t.Context(), charge)
				if err != nil {
					t.Fatal(err)
				}
				return d.Allowed
			}
			permit, err := gate.Acquire(t.Context(), []ratelimit.Charge{charge})
			if err != nil && !errors.Is(err, ratelimit.ErrLimited) {
				t.Fatal(err)
			}
			permit.Keep(0)
			permit.Release()
			return err == nil
		}
		look := func(what string) {
			d, err := gate.Peek(t.Context(), ratelimit.Charge{Key: key})
			if err != nil {
				t.Fatal(err)
			}
			low, high := max(0, p.Burst-ceiling(owed.most)), max(0, p.Burst-ceiling(owed.least))
			if d.Remaining < low || d.Remaining > high {
				t.Fatalf("%s: %d remain of %+v, want %d to %d, as %v to %v are owed", what, d.Remaining, p, low, high,
					owed.least.FloatString(6), owed.most.FloatString(6))
			}
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				unit := max(p.Window/time.Duration(p.Limit), time.Microsecond)
				d := rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, 3*unit.Microseconds()), rapid.Int64Range(0, p.Window.Microseconds())).Draw(t, "µs")
				clock.Advance(time.Duration(d) * time.Microsecond)
				back := pace(time.Duration(d) * time.Microsecond)
				owed.each(func(r *big.Rat) { r.Sub(r, back) })
				look("later")
			case 1:
				cost := rapid.OneOf(rapid.Just(int64(1)), rapid.Int64Range(1, p.Burst)).Draw(t, "cost")
				admitted := take(ratelimit.Charge{Key: key, Cost: cost})
				if admitted {
					owed.each(func(r *big.Rat) { r.Add(r, big.NewRat(cost, 1)) })
				}
				look("charged")
				if admitted && ceiling(owed.least) > p.Burst {
					t.Fatalf("%+v admitted %d, so that %v are owed", p, cost, owed.least.FloatString(6))
				}
			default:
				limit, burst, window := draw()
				next := p
				next.Limit, next.Burst, next.Window = limit, burst, window
				err := l.Update("p", ratelimit.Patch{Limit: &limit, Burst: &burst, Window: &window})
				if (err == nil) != (next.Validate() == nil) {
					t.Fatalf("an update to %+v: %v", next, err)
				}
				if err != nil {
					continue
				}
				changed := p.Limit != limit || p.Window != window
				p = next
				if changed && owed.most.Sign() > 0 {
					w := p.Window.Microseconds()
					rounds := big.NewRat(new(big.Int).GCD(nil, nil, big.NewInt(w), big.NewInt(limit)).Int64(), w)
					if p.Algorithm == ratelimit.LeakyBucket {
						rounds = big.NewRat(limit, w)
					}
					owed.most.Add(owed.most, rounds)
				}
				look("updated")
			}
		}
	})
}
