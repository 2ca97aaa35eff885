package ratelimit_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimittest"
)

func block(t *testing.T, gate *ratelimit.Gate, d time.Duration) {
	t.Helper()
	if err := gate.Block(t.Context(), d, []byte("k")); err != nil {
		t.Fatal(err)
	}
}

var blockable = []ratelimit.Policy{
	{Algorithm: ratelimit.SlidingLog},
	{Algorithm: ratelimit.SlidingWindow},
	{Algorithm: ratelimit.FixedWindow},
	{Algorithm: ratelimit.TokenBucket},
	{Algorithm: ratelimit.TokenBucket, Refill: ratelimit.Interval},
	{Algorithm: ratelimit.TokenBucket, Warmup: time.Second},
	{Algorithm: ratelimit.LeakyBucket},
	{Algorithm: ratelimit.SlidingLog, Lock: []time.Duration{time.Second}},
	{Algorithm: ratelimit.TokenBucket, Limit: ratelimit.Unlimited},
	{Algorithm: ratelimit.SlidingWindow, Limit: ratelimit.Unlimited},
}

func TestBlockRefusesAKey(t *testing.T) {
	t.Parallel()
	for _, p := range blockable {
		if p.Limit == 0 {
			p.Limit, p.Window = 1000, time.Second
		}
		r := newReserver(t, p)
		if p.Warmup == 0 {
			r.take(true, charge(1))
		}
		block(t, r.gate, time.Hour)
		r.clock.Advance(time.Minute)
		for range 2 {
			if d := r.take(false, charge(1)); d.RetryAfter != 59*time.Minute || d.Remaining != 0 {
				t.Errorf("%+v: %+v", p, d)
			}
			if d, err := r.gate.Peek(t.Context(), charge(0)); err != nil || d.Allowed || d.RetryAfter != 59*time.Minute {
				t.Errorf("%+v: peek: %+v, %v", p, d, err)
			}
			err := r.gate.Allow(t.Context(), []byte("k"))
			if d := ratelimittest.Refused(t, err, "p0"); d != 59*time.Minute {
				t.Errorf("%+v: %v", p, err)
			}
		}
		r.take(true, ratelimit.Charge{Key: []byte("other"), Cost: 1})
		r.clock.Advance(59*time.Minute - time.Microsecond)
		r.take(false, charge(1))
		r.clock.Advance(time.Microsecond)
		r.take(true, charge(1))

		block(t, r.gate, time.Hour)
		block(t, r.gate, 2*time.Hour)
		r.clock.Advance(time.Hour)
		r.take(false, charge(1))
		block(t, r.gate, 0)
		r.take(true, charge(1))
		r.clock.Advance(time.Minute)
		block(t, r.gate, time.Hour)
		if err := r.gate.Reset(t.Context(), []byte("k")); err != nil {
			t.Fatal(err)
		}
		r.take(true, charge(1))
	}
}

func TestBlockLeavesCountersAlone(t *testing.T) {
	t.Parallel()
	for _, p := range []ratelimit.Policy{{Algorithm: ratelimit.SlidingLog}, {Algorithm: ratelimit.FixedWindow}, {Algorithm: ratelimit.TokenBucket}} {
		p.Limit, p.Window = 3, 3*time.Minute
		r := newReserver(t, p)
		r.take(true, charge(2))
		block(t, r.gate, time.Second)
		r.take(false, charge(1))
		r.clock.Advance(time.Second)
		ratelimittest.Admits(t, r.gate, 1, "k")
		block(t, r.gate, time.Second)
		block(t, r.gate, 0)
		ratelimittest.Admits(t, r.gate, 0, "k")
	}
}

func TestBlockSurvivesUpdates(t *testing.T) {
	t.Parallel()
	for _, p := range blockable {
		if p.Limit == 0 {
			p.Limit, p.Window = 1000, time.Second
		}
		r := newReserver(t, p)
		block(t, r.gate, time.Hour)
		patches := []ratelimit.Patch{
			{Limit: new(int64(5)), Window: new(time.Minute)},
			{Limit: new(ratelimit.Unlimited)},
			{Limit: new(int64(7))},
			{Limit: new(ratelimit.Blocked)},
			{Mode: new(ratelimit.Off)},
			{Mode: new(ratelimit.Enforce), Limit: new(int64(50))},
			{Exceptions: &ratelimit.Exceptions{Switches: true, LimitOf: func([]byte, int64) int64 { return ratelimit.Unlimited }}},
		}
		for i, patch := range patches {
			if err := r.limiter.Update("p0", patch); err != nil {
				t.Fatal(err)
			}
			if off := patch.Mode != nil && *patch.Mode == ratelimit.Off; off {
				continue
			}
			d := r.take(false, charge(1))
			if blocked := patch.Limit != nil && *patch.Limit == ratelimit.Blocked; !blocked && d.RetryAfter != time.Hour {
				t.Errorf("%+v, update %d: %+v", p, i, d)
			}
		}
		r.clock.Advance(time.Hour)
		r.take(true, charge(1))
	}
}

func TestBlockOfWrongLength(t *testing.T) {
	t.Parallel()
	r := newReserver(t, perSecond(ratelimit.SlidingLog))
	for _, d := range []time.Duration{-1, -time.Hour, ratelimit.MaxWindow + 1, 1e9 * time.Second, ratelimit.Never} {
		if err := r.gate.Block(t.Context(), d, []byte("k")); err == nil {
			t.Errorf("a block of %v", d)
		}
	}
	if err := r.gate.Block(t.Context(), time.Second); err == nil || !strings.Contains(err.Error(), "1 policies, not 0") {
		t.Errorf("without a key: %v", err)
	}
	if err := new(ratelimit.Gate).Block(t.Context(), time.Second); err == nil {
		t.Error("a zero Gate blocked")
	}
	if _, err := new(ratelimit.Gate).Reserve(t.Context()); err == nil {
		t.Error("a zero Gate reserved")
	}
	r.take(true, charge(1))
	if err := r.gate.Block(t.Context(), 1, []byte("k")); err != nil { // a nanosecond is a tick
		t.Fatal(err)
	}
	r.clock.Advance(time.Second)
	r.take(true, charge(1))
}

func TestBlockAndShadow(t *testing.T) {
	t.Parallel()
	p := ratelimit.Policy{Limit: 5, Window: time.Minute, Mode: ratelimit.Shadow}
	r := newReserver(t, p)
	block(t, r.gate, time.Hour)
	if d := r.take(true, charge(1)); !d.Shadow {
		t.Errorf("%+v", d)
	}
	off := ratelimit.Disabled().MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{{ID: "p", Limit: 1, Window: time.Minute}}})
	block(t, off, time.Hour)
	for range 3 {
		if r, err := off.Reserve(t.Context(), charge(1)); err != nil || !r.OK() || r.Delay() != 0 {
			t.Errorf("%+v, %v", r, err)
		}
	}
}

// A block is not forgotten while other keys come, whatever their number.
func TestFloodFreesNoBlockedKey(t *testing.T) {
	t.Parallel()
	for _, p := range []ratelimit.Policy{
		{Algorithm: ratelimit.TokenBucket}, {Algorithm: ratelimit.SlidingLog}, {Algorithm: ratelimit.SlidingWindow}, {Algorithm: ratelimit.FixedWindow},
	} {
		p.ID, p.Limit, p.Window = "p", 2, time.Second
		clock := ratelimittest.NewClock(time.Unix(1_700_000_000, 0))
		gate := ratelimit.New(ratelimit.WithClock(clock), ratelimit.WithMaxKeys(100)).MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{p}})
		block(t, gate, time.Hour)
		var buf [24]byte
		for i := range int64(10_000) {
			clock.Advance(300 * time.Millisecond)
			_ = gate.Allow(t.Context(), ratelimit.AppendInt(buf[:0], i))
			if err := gate.Allow(t.Context(), []byte("k")); i < 11_999 && !errors.Is(err, ratelimit.ErrLimited) {
				t.Fatalf("%s: key %d: %v", p.Algorithm, i, err)
			}
		}
		clock.Advance(10 * time.Minute)
		ratelimittest.Admits(t, gate, 2, "k")
	}
}

// A call that waits for a key is refused when it is blocked for longer than it can wait.
func TestBlockRefusesThoseThatWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := ratelimit.New().MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{{ID: "p", Limit: 1, Window: time.Minute}}})
		_ = gate.Allow(t.Context(), []byte("k"))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		begin := time.Now()
		go func() {
			time.Sleep(time.Second)
			if err := gate.Block(t.Context(), time.Hour, []byte("k")); err != nil {
				t.Error(err)
			}
		}()
		err := gate.Wait(ctx, []ratelimit.Charge{charge(1)})
		if d := ratelimittest.Refused(t, err, "p"); d != time.Hour || time.Since(begin) != time.Second {
			t.Errorf("%v, after %v", err, time.Since(begin))
		}
	})
}

// A clock that is set back for good moves blocks and reservations with it.
func TestOrdersMoveWithTheClock(t *testing.T) {
	t.Parallel()
	for _, p := range blockable {
		if p.Limit == 0 {
			p.Limit, p.Window = 1, time.Second
		}
		r := newReserver(t, p)
		block(t, r.gate, time.Hour)
		r.clock.Advance(-24 * time.Hour)
		if d := r.take(false, charge(1)); d.RetryAfter != time.Hour {
			t.Errorf("%+v: blocked for %v", p, d.RetryAfter)
		}
		r.clock.Advance(time.Hour)
		if p.Limit == ratelimit.Unlimited || p.Algorithm == ratelimit.LeakyBucket {
			r.take(true, charge(1))
			continue
		}
		r.reserve(0, charge(1))
		for {
			ahead, err := r.gate.Reserve(t.Context(), charge(1))
			if err != nil || !ahead.OK() {
				t.Fatal(ahead.Decision(), err)
			}
			if ahead.Delay() < 3*time.Second {
				continue
			}
			r.clock.Advance(-24 * time.Hour)
			r.take(false, charge(1))
			r.clock.Advance(ahead.Delay() - time.Microsecond)
			r.take(false, charge(1))
			r.clock.Advance(3 * time.Second)
			r.take(true, charge(1))
			break
		}
	}
}

// A block is no longer after the clock was set back, also if nothing but a lock is left of
// what the key was charged.
func TestABlockIsNoLongerForTheClock(t *testing.T) {
	t.Parallel()
	for name, lapse := range map[string]func(*ratelimit.Limiter, ratelimit.Permit){
		"given back": func(_ *ratelimit.Limiter, p ratelimit.Permit) { p.Release() },
		"updated":    func(l *ratelimit.Limiter, _ ratelimit.Permit) { updateLimit(t, l, 3) },
	} {
		clock := ratelimittest.NewClock(time.Unix(1_700_000_000, 0))
		l := ratelimit.New(ratelimit.WithClock(clock))
		gate := l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{{ID: "p", Algorithm: ratelimit.TokenBucket, Count: true,
			Limit: 60, Burst: 1, Window: time.Minute, Lock: []time.Duration{time.Second, 2 * time.Second}}}})
		permit, err := gate.Acquire(t.Context(), one("k"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := gate.Acquire(t.Context(), one("k")); !errors.Is(err, ratelimit.ErrLimited) {
			t.Fatal(err)
		}
		clock.Advance(30 * time.Second)
		if err := gate.Block(t.Context(), 10*time.Minute, []byte("k")); err != nil {
			t.Fatal(err)
		}
		lapse(l, permit)
		clock.Advance(-25 * time.Second)
		if _, err := gate.Acquire(t.Context(), one("k")); ratelimittest.Refused(t, err, "p") != 10*time.Minute {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a key is told while it is blocked is what holds when that is over.
func TestBlockedKeyIsToldWhatHoldsAfterTheBlock(t *testing.T) {
	t.Parallel()
	// A new bucket is empty, and does not begin to fill while the key is blocked.
	r := newReserver(t, ratelimit.Policy{Algorithm: ratelimit.TokenBucket, Limit: 5, Window: time.Minute, Initial: ratelimit.Empty})
	block(t, r.gate, time.Second)
	if d := r.take(false, charge(1)); d.RetryAfter != 12*time.Second {
		t.Errorf("an empty bucket: %+v", d)
	}
	// One that is full by then at the limit of its last call is so at any.
	r = newReserver(t, ratelimit.Policy{Algorithm: ratelimit.TokenBucket, Dynamic: true, Window: time.Minute})
	at := func(limit int64) ratelimit.Charge { return ratelimit.Charge{Key: []byte("k"), Cost: 3, Limit: limit} }
	r.take(true, at(30))
	block(t, r.gate, time.Minute)
	r.clock.Advance(6 * time.Second)
	if d := r.take(false, at(3)); d.RetryAfter != 54*time.Second {
		t.Errorf("a bucket that was full at another limit: %+v", d)
	}
}
