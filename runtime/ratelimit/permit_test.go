package ratelimit_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

func newGate(tb testing.TB, policies ...ratelimit.Policy) *ratelimit.Gate {
	tb.Helper()
	for i := range policies {
		policies[i].ID = "p" + string(rune('0'+i))
	}
	gate, err := ratelimit.New().Gate(&ratelimit.Spec{Method: "pay.Service.Pay", Policies: policies})
	if err != nil {
		tb.Fatal(err)
	}
	return gate
}

func one(key string) []ratelimit.Charge { return []ratelimit.Charge{{Key: []byte(key), Cost: 1}} }

func acquire(t *testing.T, gate *ratelimit.Gate, key string, admitted bool) ratelimit.Permit {
	t.Helper()
	permit, err := gate.Acquire(t.Context(), one(key))
	if (err == nil) != admitted || err != nil && !errors.Is(err, ratelimit.ErrLimited) {
		t.Errorf("Acquire of %q: %v, want admitted = %t", key, err, admitted)
	}
	return permit
}

func remaining(t *testing.T, gate *ratelimit.Gate, key string, want int64) {
	t.Helper()
	d, err := gate.Peek(t.Context(), ratelimit.Charge{Key: []byte(key)})
	if err != nil || d.Remaining != want {
		t.Errorf("%q: %d remain (%v), want %d", key, d.Remaining, err, want)
	}
}

func TestPermitEndsHoweverTheCallEnds(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(){
		"return": func() {},
		"panic":  func() { panic("in the call") },
		"Goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				places := newGate(t, ratelimit.Policy{Algorithm: ratelimit.Concurrency, Limit: 1})
				failures := newGate(t, ratelimit.Policy{Algorithm: ratelimit.SlidingLog, Limit: 1, Window: time.Hour, Count: true})
				quota := newGate(t, ratelimit.Policy{Algorithm: ratelimit.TimeQuota, Limit: time.Minute.Microseconds(), Window: time.Hour})
				done := make(chan struct{})
				go func() {
					defer close(done)
					defer func() { _ = recover() }()
					for _, gate := range []*ratelimit.Gate{places, failures, quota} {
						permit, err := gate.Acquire(t.Context(), one("k"))
						if err != nil {
							t.Error(err)
						}
						defer permit.Release()
					}
					time.Sleep(20 * time.Second)
					call()
				}()
				synctest.Wait()
				acquire(t, places, "k", false)
				acquire(t, failures, "k", false)
				<-done
				remaining(t, places, "k", 1)
				remaining(t, failures, "k", 1)
				remaining(t, quota, "k", (40 * time.Second).Microseconds())
			})
		})
	}
}

func TestReleaseIsIdempotentAndKeptChargesStay(t *testing.T) {
	t.Parallel()
	gate := newGate(t, ratelimit.Policy{Algorithm: ratelimit.FixedWindow, Limit: 3, Window: time.Hour, Count: true})
	first, second := acquire(t, gate, "k", true), acquire(t, gate, "k", true)
	copied := first
	first.Release()
	first.Release()
	copied.Release()
	remaining(t, gate, "k", 2)
	second.Keep(0)
	second.Keep(-1)
	second.Keep(7)
	second.Release()
	second.Release()
	remaining(t, gate, "k", 2)
	second.Charge(0, 1)
	remaining(t, gate, "k", 2)
	var zero ratelimit.Permit
	zero.Keep(0)
	zero.Charge(0, 1)
	zero.Release()
}

// RT23: a place is given back once, by its holder or by the end of its lease.
func TestRT23PlacesAreGivenBackOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := newGate(t, ratelimit.Policy{Algorithm: ratelimit.Concurrency, Limit: 1, Lease: time.Minute})
		a := acquire(t, gate, "k", true)
		_, err := gate.Acquire(t.Context(), one("k"))
		var e *ratelimit.Error
		if !errors.As(err, &e) || e.Decision.RetryAfter != time.Minute || e.Decision.Remaining != 0 {
			t.Errorf("a second place: %v", err)
		}
		time.Sleep(time.Minute)
		b := acquire(t, gate, "k", true)
		a.Release()
		a.Release()
		acquire(t, gate, "k", false)
		b.Release()
		acquire(t, gate, "k", true)
	})
}

func TestChargeAfterTheCallMayExceedTheLimit(t *testing.T) {
	t.Parallel()
	for _, p := range []ratelimit.Policy{
		{Algorithm: ratelimit.SlidingLog},
		{Algorithm: ratelimit.FixedWindow},
		{Algorithm: ratelimit.TokenBucket},
		{Algorithm: ratelimit.SlidingWindow},
		{Algorithm: ratelimit.SlidingLog, Lock: []time.Duration{time.Second}},
		{Algorithm: ratelimit.TokenBucket, Refill: ratelimit.Interval},
	} {
		p.Limit, p.Window, p.CostAfter = 10, time.Minute, true
		synctest.Test(t, func(t *testing.T) {
			gate := newGate(t, p)
			charges := []ratelimit.Charge{{Key: []byte("k")}} // free until it is known what it cost
			permit, err := gate.Acquire(t.Context(), charges)
			if err != nil {
				t.Fatal(err)
			}
			permit.Charge(0, -5)
			permit.Charge(0, 4)
			remaining(t, gate, "k", 6)
			permit.Charge(0, 16)
			permit.Release()
			remaining(t, gate, "k", 0)
			d, err := gate.Take(t.Context(), charges...)
			if err != nil || d.Allowed || d.RetryAfter <= 0 || d.RetryAfter > 2*time.Minute {
				t.Errorf("%+v: a free call, 10 above the limit: %+v, %v", p, d, err)
			}
			time.Sleep(d.RetryAfter)
			if d, err := gate.Take(t.Context(), charges...); err != nil || !d.Allowed {
				t.Errorf("%+v: a free call after RetryAfter: %+v, %v", p, d, err)
			}
			permit, err = gate.Acquire(t.Context(), charges)
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				permit.Charge(0, 1<<62)
			}
			if d, err := gate.Take(t.Context(), charges...); err != nil || d.Allowed || d.Remaining != 0 || d.RetryAfter <= 0 {
				t.Errorf("%+v: after the largest charges: %+v, %v", p, d, err)
			}
		})
	}
}

func TestOnlyAdmittingPoliciesAreChargedAfterTheCall(t *testing.T) {
	t.Parallel()
	shadow := ratelimit.Policy{Limit: 1, Window: time.Hour, Mode: ratelimit.Shadow}
	limit := ratelimit.Policy{Limit: 5, Window: time.Hour}
	gate := newGate(t, shadow, limit, limit)
	charges := []ratelimit.Charge{{Key: []byte("k"), Cost: 1}, {Key: []byte("k"), Cost: 1}, {Key: []byte("k"), Skip: true}}
	for range 2 {
		permit, err := gate.Acquire(t.Context(), charges)
		if err != nil {
			t.Fatal(err)
		}
		defer permit.Release()
		permit.Charge(0, 0)
		permit.Charge(1, 1)
		permit.Charge(2, 1)
	}
	charges[2].Skip = false
	d, err := gate.Peek(t.Context(), charges...)
	if err != nil || !d.Allowed || d.Remaining != 1 {
		t.Errorf("after two calls of 2: %+v, %v", d, err)
	}
	charges[1].Skip = true
	if d, err := gate.Peek(t.Context(), charges...); err != nil || d.Remaining != 5 {
		t.Errorf("of the policy that was skipped: %+v, %v", d, err)
	}
}

func TestCallsThatEndNeedAPermit(t *testing.T) {
	t.Parallel()
	for _, p := range []ratelimit.Policy{
		{Algorithm: ratelimit.Concurrency, Limit: 1},
		{Algorithm: ratelimit.TimeQuota, Limit: 1, Window: time.Second},
		{Limit: 1, Window: time.Second, Count: true},
	} {
		gate := newGate(t, p)
		_, take := gate.Take(t.Context(), one("k")...)
		for _, err := range []error{gate.Allow(t.Context(), []byte("k")), gate.AllowAll(t.Context(), one("k")), gate.Wait(t.Context(), one("k")), take} {
			if err == nil {
				t.Errorf("%+v: admitted a call that has no end", p)
			}
		}
		permit := acquire(t, gate, "k", true)
		permit.Release()
	}
	if _, err := new(ratelimit.Gate).Acquire(t.Context(), nil); err == nil {
		t.Error("a zero Gate gives permits")
	}
	if _, err := (*ratelimit.Gate)(nil).AcquireWait(t.Context(), nil); err == nil {
		t.Error("a nil Gate gives permits")
	}
}

func TestPlacesInUseNeverExceedTheLimit(t *testing.T) {
	t.Parallel()
	gate := newGate(t, ratelimit.Policy{Algorithm: ratelimit.Concurrency, Limit: 3}, ratelimit.Policy{Limit: 4000, Window: time.Hour, Count: true})
	charges := []ratelimit.Charge{{Key: []byte("k"), Cost: 1}, {Key: []byte("k"), Cost: 1}}
	var inside, kept atomic.Int64
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for range 500 {
				permit, err := gate.Acquire(context.Background(), charges)
				if err != nil {
					continue
				}
				if n := inside.Add(1); n > 3 {
					t.Errorf("%d calls in flight", n)
				}
				runtime.Gosched()
				inside.Add(-1)
				if n == 0 {
					kept.Add(1)
					permit.Keep(1)
				}
				permit.Release()
			}
		})
	}
	wg.Wait()
	for i, want := range []int64{3, 4000 - kept.Load()} {
		charges[1-i].Skip, charges[i].Skip = true, false
		if d, err := gate.Peek(t.Context(), charges...); err != nil || d.Remaining != want {
			t.Errorf("policy %d: %+v, %v, want %d to remain", i, d, err, want)
		}
	}
}

func TestPermitDoesNotAllocate(t *testing.T) {
	ctx := t.Context()
	for _, p := range []ratelimit.Policy{
		{Algorithm: ratelimit.Concurrency, Limit: 2},
		{Algorithm: ratelimit.TimeQuota, Limit: time.Hour.Microseconds(), Window: time.Hour},
		{Algorithm: ratelimit.SlidingLog, Limit: 100, Window: time.Hour, Count: true},
		{Algorithm: ratelimit.TokenBucket, Limit: 100, Window: time.Hour, Count: true},
		{Algorithm: ratelimit.TokenBucket, Limit: 1 << 20, Burst: 1 << 20, Window: time.Second, CostAfter: true},
		{Algorithm: ratelimit.SlidingWindow, Limit: 1 << 30, Window: time.Hour},
		{Algorithm: ratelimit.FixedWindow, Limit: 1 << 30, Align: ratelimit.AlignDay},
	} {
		gate := newGate(t, p)
		call := func(id int64) {
			var buf [64]byte
			permit, err := gate.Acquire(ctx, []ratelimit.Charge{{Key: ratelimit.AppendInt(buf[:0], id), Cost: 1}})
			if err != nil {
				t.Error(err)
			}
			defer permit.Release()
			permit.Charge(0, 1)
		}
		if p.CostAfter || p.Limit == 1<<30 {
			call(1)
		} else {
			call = func(id int64) {
				var buf [64]byte
				permit, err := gate.AcquireWait(ctx, []ratelimit.Charge{{Key: ratelimit.AppendInt(buf[:0], id), Cost: 1}})
				if err != nil {
					t.Error(err)
				}
				defer permit.Release()
			}
			call(1)
		}
		wantAllocs(t, string(p.Algorithm), 0, func() { call(1) })
	}
	waits := newGate(t, roomy["token-bucket"])
	wantAllocs(t, "Wait", 0, func() {
		var buf [64]byte
		_ = waits.Wait(ctx, []ratelimit.Charge{{Key: ratelimit.AppendInt(buf[:0], 1), Cost: 1}})
	})
}

type panicker struct{ times atomic.Int64 }

func (p *panicker) Decided(context.Context, *ratelimit.Event) {
	if p.times.Add(-1) >= 0 {
		panic("in the observer")
	}
}

// Nobody has the Permit of a call whose observer panicked.
func TestAPanicOfAnObserverLeavesNoPlaceTaken(t *testing.T) {
	t.Parallel()
	o := new(panicker)
	l := ratelimit.New(ratelimit.WithObserver(o))
	gate := l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{{ID: "p", Algorithm: ratelimit.Concurrency, Limit: 1}}})
	for range 3 {
		o.times.Store(1)
		func() {
			defer func() {
				if r := recover(); r != "in the observer" {
					t.Errorf("recovered %v", r)
				}
			}()
			_, _ = gate.Acquire(t.Context(), one("k"))
		}()
	}
	permit := acquire(t, gate, "k", true)
	acquire(t, gate, "k", false)
	permit.Release()
	acquire(t, gate, "k", true)
}
