package ratelimit_test

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimittest"
)

// mapStore is a Store of the three algorithms that every one has. It holds what a row
// of a database would, one for each policy and key, under one lock where a database
// would have a transaction.
type mapStore struct {
	clock ratelimit.Clock
	mu    sync.Mutex
	rows  map[[2]string]row
}

// row is what is known of a key. Its times are in microseconds of the store's clock.
type row struct {
	last int64 // time of the latest charge or, of a fixed window, of its first
	// A sliding log is what was charged when, a fixed window has r charged, and a bucket
	// is full at the time q + r/limit.
	log  []charged
	q, r int64
}

type charged struct{ at, units int64 }

func (s *mapStore) Take(_ context.Context, ops []ratelimit.Op) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	admitted, peek := true, false
	for i := range ops {
		op := &ops[i]
		r, t := s.row(op)
		op.Outcome.Allowed = op.Cost <= r.left(op, t)
		admitted = admitted && (op.Outcome.Allowed || op.Policy.Mode == ratelimit.Shadow)
		peek = op.Peek
	}
	for i := range ops {
		op := &ops[i]
		r, t := s.row(op)
		if op.Outcome.Allowed && admitted && !peek && op.Cost > 0 {
			r = r.charge(op, t)
			s.rows[[2]string{op.Policy.ID, op.Key}] = r // to be dropped after ResetAfter
		}
		wait := func(cost int64) time.Duration {
			const horizon = int64(2 * ratelimit.MaxWindow / time.Microsecond)
			d := sort.Search(int(horizon), func(d int) bool { return cost <= r.left(op, t+int64(d)) })
			return time.Duration(d) * time.Microsecond
		}
		op.Outcome.Remaining = r.left(op, t)
		if !op.Outcome.Allowed {
			op.Outcome.RetryAfter = wait(op.Cost)
		}
		op.Outcome.ResetAfter = wait(op.Policy.Capacity())
	}
	return nil
}

func (s *mapStore) Reset(_ context.Context, p *ratelimit.Policy, key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.rows, [2]string{p.ID, key})
	return nil
}

// row returns what is known of a key, and the time of a decision. That does not run
// backwards. If the clock was set back for good, by more than MaxStandstill or a shorter
// window, what was charged is taken to have been charged as much earlier, or else it
// would be held against the key until the clock gets there again.
func (s *mapStore) row(op *ratelimit.Op) (row, int64) {
	now := s.clock.Now().UnixMicro()
	r, known := s.rows[[2]string{op.Policy.ID, op.Key}]
	if !known || r.last <= now {
		return r, now
	}
	back := r.last - now
	if back <= min(op.Policy.Window, ratelimit.MaxStandstill).Microseconds() {
		return r, r.last
	}
	r.last, r.q = now, r.q-back
	r.log = slices.Clone(r.log)
	for i := range r.log {
		r.log[i].at -= back
	}
	if !op.Peek && op.Cost > 0 {
		s.rows[[2]string{op.Policy.ID, op.Key}] = r
	}
	return r, now
}

// left returns the greatest cost that is admitted at t.
func (r row) left(op *ratelimit.Op, t int64) int64 {
	window := op.Policy.Window.Microseconds()
	switch op.Policy.Algorithm {
	case ratelimit.FixedWindow:
		if t-r.last >= window {
			return op.Limit
		}
		return op.Limit - r.r
	case ratelimit.TokenBucket:
		burst := op.Policy.Capacity()
		if r.last == 0 || r.q < t {
			return burst
		}
		// What came back, (t + full - q) and a fraction, in units of window/limit.
		full, part := divided(burst, window, op.Limit)
		full, part = t+full-r.q, part-r.r
		if part < 0 {
			full, part = full-1, part+op.Limit
		}
		if full < 0 {
			return 0
		}
		hi, lo := bits.Mul64(uint64(full), uint64(op.Limit))
		lo, carry := bits.Add64(lo, uint64(part), 0)
		units, _ := bits.Div64(hi+carry, lo, uint64(window))
		return int64(units)
	default:
		used := int64(0)
		for _, c := range r.log {
			if t-c.at < window {
				used += c.units
			}
		}
		return op.Limit - used
	}
}

// charge returns r with the cost, which is admitted at t.
func (r row) charge(op *ratelimit.Op, t int64) row {
	window := op.Policy.Window.Microseconds()
	switch op.Policy.Algorithm {
	case ratelimit.FixedWindow:
		if t-r.last >= window {
			r.last, r.r = t, 0
		}
		r.r += op.Cost
		return r
	case ratelimit.TokenBucket:
		if r.last == 0 || r.q < t {
			r.q, r.r = t, 0
		}
		q, rest := divided(op.Cost, window, op.Limit)
		if r.q, r.r = r.q+q, r.r+rest; r.r >= op.Limit {
			r.q, r.r = r.q+1, r.r-op.Limit
		}
	default:
		r.log = append(slices.Clone(r.log), charged{t, op.Cost})
		r.log = slices.DeleteFunc(r.log, func(c charged) bool { return t-c.at >= window })
	}
	r.last = t
	return r
}

// divided returns a*b/c and the rest.
func divided(a, b, c int64) (quotient, rest int64) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, r := bits.Div64(hi, lo, uint64(c))
	return int64(q), int64(r)
}

// A store of your own keeps the counters where processes share them.
func ExampleWithStore() {
	clock := ratelimittest.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	store := &mapStore{clock: clock, rows: make(map[[2]string]row)}
	spec := &ratelimit.Spec{
		Method: "pay.Service.PlaceOrder",
		Policies: []ratelimit.Policy{{
			ID:        "orders",
			Algorithm: ratelimit.TokenBucket,
			Limit:     2,
			Window:    time.Minute,
		}},
	}
	// Two processes have a limiter each, and one store.
	one := ratelimit.New(ratelimit.WithStore("", store), ratelimit.WithClock(clock)).MustGate(spec)
	two := ratelimit.New(ratelimit.WithStore("", store), ratelimit.WithClock(clock)).MustGate(spec)
	ctx, caller := context.Background(), []byte("alice")
	fmt.Println(one.Allow(ctx, caller))
	fmt.Println(two.Allow(ctx, caller))
	fmt.Println(one.Allow(ctx, caller))
	// Output:
	// <nil>
	// <nil>
	// denied by pay.Service.PlaceOrder, retry in 30s
}
