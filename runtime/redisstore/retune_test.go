package redisstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimittest"
)

func TestAChangedLimitKeepsWhatWasCounted(t *testing.T) {
	t.Parallel()
	for _, p := range policies() {
		t.Run(string(p.Algorithm), func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.at(0)
			f.take(ratelimit.Op{Policy: p, Key: "k", Cost: 4})
			raised := *p
			raised.Limit = 50
			if got := f.take(ratelimit.Op{Policy: &raised, Key: "k"})[0]; got.Remaining != 46 {
				t.Errorf("raised from 5 to 50: %+v", got)
			}
			lowered := *p
			lowered.Limit = 2
			got := f.take(ratelimit.Op{Policy: &lowered, Key: "k", Cost: 1})[0]
			if got.Allowed || got.Remaining != 0 || got.RetryAfter > time.Minute {
				t.Errorf("lowered from 5 to 2: %+v", got)
			}
			f.at(got.RetryAfter.Microseconds() - 1)
			if f.take(ratelimit.Op{Policy: &lowered, Key: "k", Cost: 1})[0].Allowed {
				t.Error("admitted before RetryAfter")
			}
			f.at(got.RetryAfter.Microseconds())
			if got := f.take(ratelimit.Op{Policy: &lowered, Key: "k", Cost: 1})[0]; !got.Allowed {
				t.Errorf("after RetryAfter: %+v", got)
			}
		})
	}
}

func TestALoweredBurstIsOwedAtMostOnce(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	p := &ratelimit.Policy{ID: "p", Algorithm: ratelimit.TokenBucket, Limit: 10, Window: 10 * time.Second, Burst: 100}
	f.want(0, p, 100, admitted(0, 100*time.Second))
	p.Burst = 5
	f.want(0, p, 1, refused(0, time.Second, 5*time.Second))
	f.want(sec-1, p, 1, refused(0, time.Microsecond, 4*time.Second+time.Microsecond))
	f.want(sec, p, 1, admitted(0, 5*time.Second))
	p.Limit, p.Burst = 10000, 5
	f.want(sec, p, 1, refused(0, time.Millisecond, 5*time.Millisecond))
}

func TestARaisedLimitLeavesNoOldWait(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	slow := &ratelimit.Policy{ID: "p", Algorithm: ratelimit.TokenBucket, Limit: 10, Window: 100 * time.Hour}
	f.want(0, slow, 10, admitted(0, 100*time.Hour))
	fast := &ratelimit.Policy{ID: "p", Algorithm: ratelimit.TokenBucket, Limit: 10, Window: 10 * time.Second}
	f.want(0, fast, 1, refused(0, time.Second, 10*time.Second))
	f.want(sec-1, fast, 1, refused(0, time.Microsecond, 9*time.Second+time.Microsecond))
	f.want(sec, fast, 1, admitted(0, 10*time.Second))
}

func TestAShortenedWindowIsInForceAtOnce(t *testing.T) {
	t.Parallel()
	for _, p := range policies() {
		f := newFake(t)
		p.Window = 100 * time.Hour
		f.at(0)
		f.take(ratelimit.Op{Policy: p, Key: "k", Cost: 5})
		p.Window = time.Second
		f.at(sec)
		if got := f.take(ratelimit.Op{Policy: p, Key: "k", Cost: 5})[0]; !got.Allowed {
			t.Errorf("%s: %+v", p.ID, got)
		}
	}
}

// During a rolling deploy old and new limits decide by turns. Neither may add to
// nor forget what the other counted.
func TestLimitsThatAlternateKeepTheCount(t *testing.T) {
	t.Parallel()
	for _, rates := range [][2]ratelimit.Policy{
		{{Limit: 1, Window: time.Second}, {Limit: 2, Window: time.Second}},
		{{Limit: 7, Window: 3 * time.Second}, {Limit: 11, Window: 13 * time.Second}},
		{{Limit: 999983, Window: 13 * time.Hour}, {Limit: 99991, Window: 2 * time.Hour}},
	} {
		f := newFake(t)
		for i := range rates {
			rates[i].ID, rates[i].Algorithm, rates[i].Burst = "p", ratelimit.TokenBucket, 1000
		}
		slow := min(perSecond(&rates[0]), perSecond(&rates[1]))
		fast := max(perSecond(&rates[0]), perSecond(&rates[1]))
		f.at(0)
		f.take(ratelimit.Op{Policy: &rates[0], Key: "k", Cost: 1000})
		const seconds, hertz = 3, 100
		taken := 0
		for i := range seconds * hertz {
			f.at(int64(i) * sec / hertz)
			if f.take(ratelimit.Op{Policy: &rates[i%2], Key: "k", Cost: 1})[0].Allowed {
				taken++
			}
		}
		if low, high := slow*seconds-1, fast*seconds+1; float64(taken) < low || float64(taken) > high {
			t.Errorf("%d and %d by turns admit %d in %d s, want %.1f to %.1f", rates[0].Limit, rates[1].Limit, taken, seconds, low, high)
		}
	}
}

func perSecond(p *ratelimit.Policy) float64 { return float64(p.Limit) / p.Window.Seconds() }

func TestALongerWindowKeepsTheLog(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	p := &ratelimit.Policy{ID: "p", Limit: 10, Window: time.Second}
	f.want(0, p, 2, admitted(8, time.Second))
	f.want(3, p, 3, admitted(5, time.Second))
	f.want(700, p, 1, admitted(4, time.Second))
	for _, window := range []time.Duration{time.Minute, 2 * time.Hour, 20 * 24 * time.Hour, ratelimit.MaxWindow} {
		p.Window = window
		f.want(800, p, 0, admitted(4, window-100*time.Microsecond))
		f.want(800, p, 8, refused(4, window-797*time.Microsecond, window-100*time.Microsecond))
	}
	f.want(800, p, 1, admitted(3, ratelimit.MaxWindow))
	if n := len(f.dump(p)); n != 11+4*(7+2) {
		t.Errorf("the state has %d bytes", n)
	}
	f.want(800, p, 4, refused(3, ratelimit.MaxWindow-800*time.Microsecond, ratelimit.MaxWindow))
	f.want(800, p, 9, refused(3, ratelimit.MaxWindow-100*time.Microsecond, ratelimit.MaxWindow))
	p.Window = time.Second
	f.want(sec+2, p, 5, admitted(0, time.Second))
}

// A policy that gets exceptions, or loses them, has the limits that calls bring.
func TestLimitsThatCallsBringKeepTheCount(t *testing.T) {
	t.Parallel()
	for _, p := range policies() {
		f := newFake(t)
		f.at(0)
		f.take(ratelimit.Op{Policy: p, Key: "k", Cost: 3})
		brought := *p
		brought.Dynamic, brought.Limit = true, 0
		if got := f.take(ratelimit.Op{Policy: &brought, Key: "k", Cost: 1, Limit: 10})[0]; !got.Allowed || got.Remaining != 6 {
			t.Errorf("%s: 1 of 10 after 3 of 5: %+v", p.ID, got)
		}
		if got := f.take(ratelimit.Op{Policy: p, Key: "k", Cost: 1})[0]; !got.Allowed || got.Remaining != 0 {
			t.Errorf("%s: 1 of 5 after 4: %+v", p.ID, got)
		}
		if got := f.take(ratelimit.Op{Policy: &brought, Key: "k", Cost: 1, Limit: 2})[0]; got.Allowed || got.Remaining != 0 {
			t.Errorf("%s: 1 of 2 after 5: %+v", p.ID, got)
		}
	}
}

func TestExceptionsAreCountedInTheStore(t *testing.T) {
	t.Parallel()
	for _, p := range policies() {
		f := newFake(t)
		l := ratelimit.New(ratelimit.WithStore("", f.store))
		gate := l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{*p}})
		admit := func(n int64, key string, want bool) {
			t.Helper()
			if err := gate.AllowN(t.Context(), []byte(key), n); (err == nil) != want {
				t.Errorf("%s: %d for %s: %v", p.ID, n, key, err)
			}
		}
		admit(5, "a", true)
		admit(5, "b", true)
		err := l.Update(p.ID, ratelimit.Patch{Exceptions: &ratelimit.Exceptions{LimitOf: func(key []byte, limit int64) int64 {
			if string(key) == "a" {
				return 4 * limit
			}
			return limit
		}}})
		if err != nil {
			t.Fatal(err)
		}
		admit(15, "a", true)
		admit(1, "a", false)
		admit(1, "b", false)
		if err := l.Update(p.ID, ratelimit.Patch{Exceptions: new(ratelimit.Exceptions)}); err != nil {
			t.Fatal(err)
		}
		admit(1, "a", false)
		admit(5, "c", true)
	}
}

// The unit at the head of a queue is not served anew when the pace changes.
func TestAChangedPaceDoesNotServeAUnitAnew(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	slow := &ratelimit.Policy{ID: "p", Algorithm: ratelimit.LeakyBucket, Limit: 1, Burst: 1, Window: time.Hour}
	f.at(0)
	if got := f.take(ratelimit.Op{Policy: slow, Key: "k", Cost: 1})[0]; !got.Allowed {
		t.Fatalf("at first: %+v", got)
	}
	f.at(3599 * sec)
	for limit, want := range map[int64]time.Duration{1: time.Second, 2: time.Second / 2, 4: time.Second / 4, 1_000_000_000: time.Microsecond} {
		other := *slow
		other.Limit = limit
		if got := f.take(ratelimit.Op{Policy: &other, Key: "k", Cost: 1})[0]; got.Allowed || got.RetryAfter != want {
			t.Errorf("at %d an hour: %+v, want a wait of %v", limit, got, want)
		}
	}
}

// A queue that is empty when its pace changes has the time of its lock, also where the
// first call at the new pace has only moved the key with a clock that was set back for
// good.
func TestAChangedPaceOfAnEmptyQueueKeepsTheTimeOfItsLock(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	clock := ratelimittest.NewClock(time.UnixMicro(epoch))
	at := func(d time.Duration) {
		clock.Set(time.UnixMicro(epoch).Add(d))
		f.at(d.Microseconds())
	}
	charges := func(queue, full int64) []ratelimit.Charge {
		return []ratelimit.Charge{{Key: []byte("k"), Cost: queue, Skip: queue == 0}, {Key: []byte("k"), Cost: full, Skip: full == 0}}
	}
	for name, opts := range map[string][]ratelimit.Option{"memory": nil, "Redis": {ratelimit.WithStore("", f.store)}} {
		l := ratelimit.New(append(opts, ratelimit.WithClock(clock))...)
		gate := l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{
			{ID: "queue", Algorithm: ratelimit.LeakyBucket, Limit: 60, Burst: 1, Window: time.Minute, Count: true,
				Lock: []time.Duration{time.Second, 2 * time.Second}},
			{ID: "full", Limit: 1, Window: 10 * time.Hour},
		}})
		acquire := func(what string, allowed bool, queue, full int64) ratelimit.Permit {
			t.Helper()
			permit, err := gate.Acquire(t.Context(), charges(queue, full))
			if allowed && err != nil || !allowed && !errors.Is(err, ratelimit.ErrLimited) {
				t.Fatalf("%s, %s: %v", name, what, err)
			}
			return permit
		}
		peek := func() ratelimit.Decision {
			t.Helper()
			d, err := gate.Peek(t.Context(), charges(1, 0)...)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return d
		}
		at(0)
		acquire("the other limit", true, 0, 1)
		acquire("at first", true, 1, 0)
		acquire("locked", false, 1, 0)
		at(20 * time.Second)
		permit := acquire("after the lock", true, 1, 0)
		permit.Release()
		for began := time.Now(); !peek().Allowed; { // until the store knows
			if time.Since(began) > 30*time.Second {
				t.Fatalf("%s: nothing was given back", name)
			}
		}
		at(-time.Hour)
		if err := l.Update("queue", ratelimit.Patch{Limit: new(int64(3))}); err != nil {
			t.Fatal(err)
		}
		acquire("at the new pace", false, 1, 1)
		at(-time.Hour - 10*time.Second)
		// A lock is remembered until a window after its end, at 61 s, and it is 10 s now.
		if got, want := peek().ResetAt.Sub(clock.Now()), 51*time.Second; got != want {
			t.Errorf("%s: as new after %v, want %v", name, got, want)
		}
	}
}
