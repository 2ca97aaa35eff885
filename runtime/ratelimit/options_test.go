package ratelimit_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimittest"
)

func TestOnEmptySaysWhatBecomesOfACallWithoutAKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		onEmpty ratelimit.OnEmpty
		want    [3]error // of three calls without a key, where one is admitted
	}{
		{ratelimit.DenyEmpty, [3]error{ratelimit.ErrNoKey, ratelimit.ErrNoKey, ratelimit.ErrNoKey}},
		{ratelimit.SkipEmpty, [3]error{}},
		{ratelimit.SharedEmpty, [3]error{nil, ratelimit.ErrLimited, ratelimit.ErrLimited}},
	} {
		gate := newGate(t, ratelimit.Policy{Limit: 1, Window: time.Hour, OnEmpty: c.onEmpty})
		for i, want := range c.want {
			err := gate.Allow(t.Context(), [][]byte{nil, {}, nil}[i])
			if !errors.Is(err, want) || want == ratelimit.ErrNoKey && errors.Is(err, ratelimit.ErrLimited) {
				t.Errorf("OnEmpty %d, call %d: %v, want %v", c.onEmpty, i, err, want)
			}
		}
		if err := gate.Allow(t.Context(), []byte("k")); err != nil {
			t.Errorf("OnEmpty %d, with a key: %v", c.onEmpty, err)
		}
		if err := gate.Reset(t.Context(), nil); err != nil {
			t.Error(err)
		}
		if err := gate.Allow(t.Context(), nil); c.onEmpty == ratelimit.SharedEmpty && err != nil {
			t.Errorf("after a Reset without a key: %v", err)
		}
	}
	d, err := newGate(t, ratelimit.Policy{Limit: 1, Window: time.Hour, OnEmpty: ratelimit.SkipEmpty}).Take(t.Context(), ratelimit.Charge{Cost: 1})
	want := ratelimit.Decision{Allowed: true, Limit: ratelimit.Unlimited, Remaining: ratelimit.Unlimited}
	if err != nil || d != want {
		t.Errorf("no policy applies: %+v, %v", d, err)
	}
}

func TestSkippedPolicyNeitherDecidesNorIsCharged(t *testing.T) {
	t.Parallel()
	gate := newGate(t, ratelimit.Policy{Limit: 1, Window: time.Hour}, ratelimit.Policy{Limit: ratelimit.Blocked}, ratelimit.Policy{Limit: 3, Window: time.Hour})
	charges := []ratelimit.Charge{{Key: []byte("k"), Cost: 99, Skip: true}, {Cost: 1, Skip: true}, {Key: []byte("k"), Cost: 1}}
	for i := range int64(3) {
		d, err := gate.Take(t.Context(), charges...)
		if err != nil || !d.Allowed || d.Policy != "p2" || d.Remaining != 2-i {
			t.Errorf("call %d: %+v, %v", i, d, err)
		}
	}
	charges[0], charges[2].Skip = ratelimit.Charge{Key: []byte("k"), Cost: 1}, true
	if err := gate.AllowAll(t.Context(), charges); err != nil {
		t.Errorf("of the policy that was skipped: %v", err)
	}
	charges[1].Skip = false
	if err := gate.AllowAll(t.Context(), charges); !errors.Is(err, ratelimit.ErrLimited) {
		t.Errorf("with the policy that blocks: %v", err)
	}
}

func TestCallsBringTheLimitOfADynamicPolicy(t *testing.T) {
	t.Parallel()
	gate := newGate(t, ratelimit.Policy{Dynamic: true, Window: time.Hour})
	take := func(limit int64) ratelimit.Decision {
		t.Helper()
		d, err := gate.Take(t.Context(), ratelimit.Charge{Key: []byte("k"), Cost: 1, Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for _, c := range []struct {
		limit            int64
		allowed          bool
		capacity, remain int64
	}{
		{2, true, 2, 1},
		{2, true, 2, 0},
		{2, false, 2, 0},
		{1, false, 1, 0},
		{0, false, 0, 0},
		{-5, false, 0, 0},
		{3, true, 3, 0}, // what was counted stays
		{5000, true, ratelimit.MaxLogLimit, ratelimit.MaxLogLimit - 4},
		{ratelimit.Unlimited, true, ratelimit.Unlimited, ratelimit.Unlimited},
		{4, false, 4, 0},
	} {
		if d := take(c.limit); d.Allowed != c.allowed || d.Limit != c.capacity || d.Remaining != c.remain {
			t.Errorf("limit %d: %+v, want allowed = %t, %d of %d", c.limit, d, c.allowed, c.remain, c.capacity)
		}
	}
	if d := take(0); d.RetryAfter != ratelimit.Never {
		t.Errorf("blocked by the call: %+v", d)
	}
	if err := gate.Allow(t.Context(), []byte("k")); !errors.Is(err, ratelimit.ErrLimited) {
		t.Errorf("Allow brings no limit: %v", err)
	}
}

// G11: raising a limit leaves no wait of the lower one.
func TestRaisedLimitIsInForceAtOnce(t *testing.T) {
	t.Parallel()
	for _, a := range []ratelimit.Algorithm{ratelimit.SlidingLog, ratelimit.FixedWindow, ratelimit.SlidingWindow, ratelimit.TokenBucket} {
		synctest.Test(t, func(t *testing.T) {
			gate := newGate(t, ratelimit.Policy{Algorithm: a, Dynamic: true, Window: time.Hour})
			low := ratelimit.Charge{Key: []byte("k"), Cost: 1, Limit: 1}
			high := ratelimit.Charge{Key: []byte("k"), Cost: 1, Limit: 3600}
			for i, c := range []struct {
				ratelimit.Charge
				want bool
			}{{low, true}, {low, false}, {high, true}} {
				if d, err := gate.Take(t.Context(), c.Charge); err != nil || d.Allowed != c.want {
					t.Errorf("%s, call %d: %+v, %v", a, i, d, err)
				}
			}
		})
	}
}

func TestLocksEscalateAndAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const m = time.Minute
		gate := newGate(t, ratelimit.Policy{Algorithm: ratelimit.FixedWindow, Limit: 1, Window: m, Lock: []time.Duration{2 * m, 10 * m, 60 * m}})
		begin := time.Now()
		for _, c := range []struct {
			at    time.Duration
			retry time.Duration // 0 if the call is admitted
		}{
			{0, 0},
			{0, 2 * m},
			{m, m}, // a window is over, the lock is not, nor is it prolonged
			{2*m - 1, 1},
			{2 * m, 0},
			{2 * m, 10 * m},
			{12 * m, 0},
			{12 * m, 60 * m},
			{72 * m, 0},
			{72 * m, 60 * m},
			{133*m - time.Microsecond, 0}, // almost a window without a refusal
			{133*m - time.Microsecond, 60 * m},
			{194 * m, 0}, // a window and a tick
			{194 * m, 2 * m},
		} {
			time.Sleep(c.at - time.Since(begin))
			d, err := gate.Take(t.Context(), one("k")...)
			wait := (c.retry + 999) / 1000 * 1000
			if err != nil || d.Allowed != (c.retry == 0) || d.RetryAfter != wait || !d.Allowed && d.Remaining != 0 {
				t.Errorf("at %v: %+v, %v, want RetryAfter %v", c.at, d, err, wait)
			}
		}
		if err := gate.Allow(t.Context(), []byte("other")); err != nil {
			t.Errorf("another key: %v", err)
		}
		if err := gate.Reset(t.Context(), []byte("k")); err != nil {
			t.Error(err)
		}
		if err := gate.Allow(t.Context(), []byte("k")); err != nil {
			t.Errorf("after a Reset: %v", err)
		}
	})
}

// RT25: a lock of many years is one, and a lock outlives what it was for.
func TestRT25LongLocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const day = 24 * time.Hour
		gate := newGate(t, ratelimit.Policy{Limit: 5, Window: 90 * day, Lock: []time.Duration{30 * time.Second, ratelimit.MaxWindow}})
		charge := ratelimit.Charge{Key: []byte("k"), Cost: 5}
		_, _ = gate.Take(t.Context(), charge)
		if d, _ := gate.Take(t.Context(), charge); d.RetryAfter != 90*day {
			t.Errorf("RetryAfter = %v, want until the window is over", d.RetryAfter)
		}
		time.Sleep(90 * day)
		if d, _ := gate.Take(t.Context(), charge); !d.Allowed {
			t.Errorf("after that: %+v", d)
		}
		if d, _ := gate.Take(t.Context(), charge); d.RetryAfter != ratelimit.MaxWindow {
			t.Errorf("RetryAfter = %v, want ten years", d.RetryAfter)
		}
	})
}

func TestPolicyThatAnotherStopsIsNotLocked(t *testing.T) {
	t.Parallel()
	gate := newGate(t, ratelimit.Policy{Limit: 9, Window: time.Hour, Lock: []time.Duration{time.Minute}}, ratelimit.Policy{Limit: 1, Window: time.Second})
	charges := []ratelimit.Charge{{Key: []byte("k"), Cost: 1}, {Key: []byte("k"), Cost: 1}}
	for range 5 {
		_ = gate.AllowAll(t.Context(), charges)
	}
	charges[1].Skip = true
	if d, err := gate.Take(t.Context(), charges...); err != nil || !d.Allowed || d.Remaining != 7 {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestMessageAndStatusReachTheCaller(t *testing.T) {
	t.Parallel()
	p := ratelimit.Policy{Limit: 1, Window: time.Hour, Message: "try tomorrow", Status: 420}
	roomy := ratelimit.Policy{Limit: 9, Window: time.Hour}
	for _, c := range []struct {
		gate *ratelimit.Gate
		rest []ratelimit.Charge
	}{
		{newGate(t, p), nil},
		{newGate(t, p, roomy), one("k")},
	} {
		for _, key := range []string{"k", "k", ""} {
			err := c.gate.AllowAll(t.Context(), append(one(key), c.rest...))
			var e *ratelimit.Error
			if errors.As(err, &e) && (e.Message != "try tomorrow" || e.Status != 420) {
				t.Errorf("key %q: message %q, status %d", key, e.Message, e.Status)
			}
			if key == "" && !errors.Is(err, ratelimit.ErrNoKey) {
				t.Errorf("without a key: %v", err)
			}
		}
		if err := c.gate.AllowAll(t.Context(), append(one("k"), c.rest...)); !errors.Is(err, ratelimit.ErrLimited) {
			t.Errorf("the second call: %v", err)
		}
	}
}

func TestWarmingBucketStartsSlowly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// 10 a second; 2 s of warmup: after 2 s of idleness the first call takes three
		// times as long, and when a second of them is used up, the pace is reached.
		gate := newGate(t, ratelimit.Policy{Algorithm: ratelimit.TokenBucket, Limit: 10, Window: time.Second, Warmup: 2 * time.Second})
		begin := time.Now()
		var gaps []time.Duration
		for range 20 {
			if err := gate.Wait(t.Context(), one("k")); err != nil {
				t.Fatal(err)
			}
			gaps = append(gaps, time.Since(begin))
			begin = time.Now()
		}
		for i := 2; i < len(gaps); i++ {
			if i <= 10 && gaps[i] >= gaps[i-1] || i > 11 && gaps[i] != 100*time.Millisecond {
				t.Errorf("gap %d is %v after %v", i, gaps[i], gaps[i-1])
			}
		}
		if gaps[1] != 290*time.Millisecond {
			t.Errorf("the first gap is %v, want 290ms: between three and 2.8 times the last", gaps[1])
		}
		var sum time.Duration
		for _, gap := range gaps[1:11] {
			sum += gap
		}
		if sum < 2*time.Second || sum > 2*time.Second+10*time.Microsecond {
			t.Errorf("it warmed up in %v, want 2s", sum)
		}
	})
}

func TestFloodFreesNoKeyThatKeepsARecord(t *testing.T) {
	t.Parallel()
	for _, p := range []ratelimit.Policy{
		{Algorithm: ratelimit.SlidingWindow, Limit: 2, Window: time.Minute},
		{Algorithm: ratelimit.LeakyBucket, Limit: 2, Window: time.Minute},
		{Algorithm: ratelimit.FixedWindow, Limit: 2, Align: ratelimit.AlignMonth},
		{Algorithm: ratelimit.TokenBucket, Limit: 2, Window: time.Minute, Refill: ratelimit.Interval},
		{Algorithm: ratelimit.SlidingLog, Limit: 2, Window: time.Minute, Lock: []time.Duration{time.Hour}},
	} {
		clock := ratelimittest.NewClock(time.Date(2026, 1, 15, 0, 0, 0, 0, time.UTC))
		p.ID = "p"
		l := ratelimit.New(ratelimit.WithMaxKeys(100), ratelimit.WithClock(clock))
		gate := l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{p}})
		take := func(key string) ratelimit.Decision {
			d, err := gate.Take(t.Context(), ratelimit.Charge{Key: []byte(key), Cost: 1})
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		for i := range 50 {
			for range 3 {
				take(fmt.Sprint("refused", i))
			}
		}
		admitted := 0
		for i := range 1000 {
			if take(fmt.Sprint("flood", i)).Allowed {
				admitted++
			}
		}
		if n := ratelimit.Keys(l); n > 100 || admitted != 52 {
			t.Errorf("%+v: %d counters, %d of the flood admitted, want 50 and 2 by the overflow counter", p, n, admitted)
		}
		for i := range 50 {
			if take(fmt.Sprint("refused", i)).Allowed {
				t.Errorf("%+v: the flood freed a refused key", p)
			}
		}
		clock.Advance(31 * 24 * time.Hour)
		for i := range 100 {
			if d := take(fmt.Sprint("new", i)); !d.Allowed || d.Degraded {
				t.Fatalf("%+v: long after the flood: %+v", p, d)
			}
		}
	}
}

// A call that was counted with others gives back its own share, there and in the
// counter that its key gets when there is room.
func TestPermitOfTheOverflowCounterIsGivenBack(t *testing.T) {
	t.Parallel()
	for _, p := range []ratelimit.Policy{
		{Algorithm: ratelimit.Concurrency, Limit: 2},
		{Algorithm: ratelimit.TokenBucket, Limit: 2, Window: time.Hour, Count: true},
	} {
		p.ID = "p"
		l := ratelimit.New(ratelimit.WithMaxKeys(1))
		gate := l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{p}})
		room := acquire(t, gate, "first", true)
		a, b := acquire(t, gate, "a", true), acquire(t, gate, "b", true)
		acquire(t, gate, "c", false)
		a.Release()
		remaining(t, gate, "c", 1)
		c := acquire(t, gate, "c", true)
		room.Release()
		if err := gate.Reset(t.Context(), []byte("first")); err != nil {
			t.Fatal(err)
		}
		b.Release()
		moved := acquire(t, gate, "c", true) // takes along what "c" has in the overflow counter
		remaining(t, gate, "c", 0)
		c.Release()
		moved.Release()
		remaining(t, gate, "c", 2)
		remaining(t, gate, "d", 2)
	}
}
