package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimittest"
)

// slidingCounter counts two windows, the one that a call is in and the one before,
// and takes it that the calls of the latter were spread evenly. It is what content
// delivery networks limit by: three numbers for a key, whatever the limit is, and an
// estimate where a sliding log is exact.
type slidingCounter struct{}

// The words of a state: when the window began and what is charged in it and in the one
// before.
const (
	began = iota
	current
	before
)

func (slidingCounter) Check(p *ratelimit.Policy) error {
	if p.Burst != 0 {
		return errors.New("burst: there is none, only max")
	}
	return nil
}

func (c slidingCounter) Take(q ratelimit.Question, s ratelimit.State) (ratelimit.Outcome, ratelimit.State) {
	window := q.Policy.Window.Microseconds()
	at := turned(s, q.Now, window)
	left := q.Limit - at[current] - weighted(at[before], window-(q.Now-at[began]), window)
	o := ratelimit.Outcome{Allowed: q.Cost <= left, Remaining: max(0, left)}
	if !o.Allowed {
		o.RetryAfter = micros(c.wait(q, at, window))
	} else if q.Cost > 0 {
		at[current] += q.Cost
		o.Remaining -= q.Cost
		s = at
	}
	if at[current] > 0 {
		o.ResetAfter = micros(at[began] + 2*window - q.Now)
	} else if at[before] > 0 {
		o.ResetAfter = micros(at[began] + window - q.Now)
	}
	return o, s
}

// turned returns s with the window that now is in.
func turned(s ratelimit.State, now, window int64) ratelimit.State {
	switch age := now - s[began]; {
	case s[current] == 0 && s[before] == 0 || age >= 2*window:
		return ratelimit.State{began: now}
	case age >= window:
		return ratelimit.State{began: s[began] + window, before: s[current]}
	}
	return s
}

// weighted returns n*part/whole, rounded up: an estimate that is never too low.
func weighted(n, part, whole int64) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(part))
	q, rest := bits.Div64(hi, lo, uint64(whole))
	if rest > 0 {
		q++
	}
	return int64(q)
}

// wait returns how long it takes until the cost is admitted: in this window, when
// enough of the one before has moved out, or else in the next.
func (slidingCounter) wait(q ratelimit.Question, s ratelimit.State, window int64) int64 {
	first := func(from, used, before int64) int64 {
		// The least age of the window, 0..window, at which the calls before weigh so
		// little that there is room for the cost.
		room := q.Limit - used - q.Cost
		if room < 0 {
			return -1
		}
		low, high := int64(0), window
		for low < high {
			if age := (low + high) / 2; weighted(before, window-age, window) <= room {
				high = age
			} else {
				low = age + 1
			}
		}
		return from + low - q.Now
	}
	if wait := first(s[began], s[current], s[before]); wait >= 0 && q.Now+wait < s[began]+window {
		return wait
	}
	return first(s[began]+window, 0, s[current])
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// An algorithm of your own is used by its name, in directives too:
//
//	//ratelimit:algorithm=sliding-counter max=10 window=1m key=user
func ExampleWithAlgorithm() {
	clock := ratelimittest.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	limiter := ratelimit.New(
		ratelimit.WithClock(clock),
		ratelimit.WithAlgorithm("sliding-counter", slidingCounter{}),
	)
	gate := limiter.MustGate(&ratelimit.Spec{
		Method: "search.Index.Find",
		Policies: []ratelimit.Policy{{
			ID:        "find",
			Algorithm: "sliding-counter",
			Limit:     10,
			Window:    time.Minute,
		}},
	})
	ctx, caller := context.Background(), []byte("alice")
	fmt.Println(gate.AllowN(ctx, caller, 10))
	clock.Advance(90 * time.Second) // half of what was charged counts still
	d, err := gate.Take(ctx, ratelimit.Charge{Key: caller, Cost: 6})
	fmt.Println(d.Allowed, d.Remaining, d.RetryAfter, err)
	// Output:
	// <nil>
	// false 5 6s <nil>
}
