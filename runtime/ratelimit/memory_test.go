package ratelimit_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimittest"
	"pgregory.net/rapid"
)

var algorithms = []ratelimit.Algorithm{ratelimit.SlidingLog, ratelimit.FixedWindow, ratelimit.TokenBucket}

func TestFloodOfKeysFreesNoRefusedKey(t *testing.T) {
	t.Parallel()
	const bound = 2048
	for i, a := range algorithms {
		flood := []int{100_000, 10_000, 10_000}[i]
		t.Run(string(a), func(t *testing.T) {
			t.Parallel()
			clock := ratelimittest.NewClock(time.Now())
			l := ratelimit.New(ratelimit.WithMaxKeys(bound), ratelimit.WithClock(clock))
			gate := l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{{ID: "p", Algorithm: a, Limit: 3, Window: time.Minute}}})
			var refused [][]byte
			for i := range 100 {
				key := fmt.Appendf(nil, "refused %d", i)
				refused = append(refused, key)
				ratelimittest.Admits(t, gate, 3, string(key))
			}
			var admitted, degraded int
			for range flood {
				d, err := gate.Take(t.Context(), ratelimit.Charge{Key: fmt.Append(nil, rand.Uint64()), Cost: 1})
				if err != nil {
					t.Fatal(err)
				}
				if d.Allowed {
					admitted++
				}
				if d.Degraded {
					degraded++
				}
			}
			if n := ratelimit.Keys(l); n > bound {
				t.Errorf("%d counters are kept, want %d at most", n, bound)
			}
			if want := bound - len(refused) + 3; admitted != want {
				t.Errorf("%d of the flood admitted, want %d: as many as there is room for, and 3 by the overflow counter", admitted, want)
			}
			if want := flood - (bound - len(refused)); degraded != want {
				t.Errorf("%d decisions marked degraded, want %d", degraded, want)
			}
			for _, key := range refused {
				if err := gate.Allow(t.Context(), key); !errors.Is(err, ratelimit.ErrLimited) {
					t.Fatalf("after the flood, %s: %v", key, err)
				}
			}
			clock.Advance(time.Minute)
			ratelimittest.Admits(t, gate, 3, "after the flood")
		})
	}
}

// A key that was counted with others gets no second limit when there is room for a
// counter of its own.
func TestKeyThatLeavesTheOverflowTakesItsChargesAlong(t *testing.T) {
	t.Parallel()
	for _, a := range algorithms {
		clock := ratelimittest.NewClock(time.Now())
		l := ratelimit.New(ratelimit.WithMaxKeys(1), ratelimit.WithClock(clock))
		gate := l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{{ID: "p", Algorithm: a, Limit: 3, Window: time.Minute}}})
		take := func(key string) ratelimit.Decision {
			d, err := gate.Take(t.Context(), ratelimit.Charge{Key: []byte(key), Cost: 1})
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		take("first")
		clock.Advance(time.Second)
		for i := range 2 {
			if d := take("k"); !d.Allowed || !d.Degraded || d.Remaining != int64(2-i) {
				t.Errorf("%s: call %d of a key without room: %+v", a, i+1, d)
			}
		}
		if err := gate.Reset(t.Context(), []byte("first")); err != nil {
			t.Fatal(err)
		}
		if d := take("k"); !d.Allowed || !d.Degraded || d.Remaining != 0 {
			t.Errorf("%s: call 3, with room: %+v", a, d)
		}
		if n := ratelimit.Keys(l); n != 1 {
			t.Errorf("%s: %d counters, want 1", a, n)
		}
		if d := take("k"); d.Allowed || d.Degraded {
			t.Errorf("%s: call 4: %+v", a, d)
		}
		clock.Advance(time.Minute)
		if d := take("k"); !d.Allowed || d.Degraded {
			t.Errorf("%s: a minute later: %+v", a, d)
		}
	}
}

func TestExpiredCountersAreReclaimedAsKeysPass(t *testing.T) {
	t.Parallel()
	for _, a := range algorithms {
		clock := ratelimittest.NewClock(time.Now())
		l := ratelimit.New(ratelimit.WithClock(clock))
		gate := l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{{ID: "p", Algorithm: a, Limit: 1, Window: time.Second}}})
		for i := range 20_000 {
			clock.Advance(time.Millisecond)
			if err := gate.Allow(t.Context(), fmt.Appendf(nil, "%*d", 1+i%200, i)); err != nil {
				t.Fatal(err)
			}
		}
		if n := ratelimit.Keys(l); n > 2000 {
			t.Errorf("%s: %d counters for 1000 keys that say something", a, n)
		}
	}
}

func TestClockSetBackForGoodDoesNotFillTheTable(t *testing.T) {
	t.Parallel()
	clock := ratelimittest.NewClock(time.Now())
	l := ratelimit.New(ratelimit.WithClock(clock), ratelimit.WithMaxKeys(100))
	gate := l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{perMinute("p", 1)}})
	for i := range 1000 {
		_ = gate.Allow(t.Context(), fmt.Append(nil, i))
	}
	clock.Advance(-24 * 365 * time.Hour)
	for i := range 1000 {
		_ = gate.Allow(t.Context(), fmt.Append(nil, "probe", i))
	}
	clock.Advance(time.Minute)
	for i := range 100 {
		if d, err := gate.Take(t.Context(), ratelimit.Charge{Key: fmt.Append(nil, "new", i), Cost: 1}); err != nil || !d.Allowed || d.Degraded {
			t.Fatalf("key %d, a minute after the clock was set back: %+v, %v", i, d, err)
		}
	}
}

func TestNoTimeOfAClockPanics(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		clock := new(ratelimittest.Clock)
		l := ratelimit.New(ratelimit.WithClock(clock), ratelimit.WithMaxKeys(rapid.IntRange(1, 3).Draw(t, "keys")))
		var ps []ratelimit.Policy
		for _, a := range algorithms {
			ps = append(ps, ratelimit.Policy{ID: string(a), Algorithm: a, Limit: 3, Window: time.Duration(rapid.Int64Range(1, ratelimit.MaxWindow.Microseconds()).Draw(t, "window")) * time.Microsecond})
		}
		gate := l.MustGate(&ratelimit.Spec{Policies: ps})
		for range rapid.IntRange(1, 20).Draw(t, "calls") {
			clock.Set(time.UnixMicro(rapid.Int64().Draw(t, "µs")))
			key := []byte(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key"))
			d, err := gate.Take(context.Background(), ratelimit.Charge{Key: key, Cost: 1}, ratelimit.Charge{Key: key, Cost: 2}, ratelimit.Charge{Key: key, Cost: 3})
			if err != nil || d.Remaining < 0 || d.Remaining > 3 || d.RetryAfter < 0 || d.RetryAfter > ratelimit.MaxWindow+time.Microsecond {
				t.Fatalf("%+v, %v", d, err)
			}
		}
	})
}

func TestManyGoroutinesAreAdmittedNoMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	for _, a := range algorithms {
		t.Run(string(a), func(t *testing.T) {
			t.Parallel()
			l := ratelimit.New()
			p := ratelimit.Policy{ID: "p", Algorithm: a, Limit: 100, Window: time.Hour}
			q := ratelimit.Policy{ID: "q", Algorithm: a, Limit: 1000, Window: time.Hour, Global: true}
			gates := []*ratelimit.Gate{
				l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{p, q}}),
				l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{q, p}}),
			}
			var admitted [20]atomic.Int64
			var wg sync.WaitGroup
			for n := range 8 {
				wg.Go(func() {
					for i := range 20 * 60 {
						key := i % len(admitted)
						c := ratelimit.Charge{Key: fmt.Append(nil, "key", key), Cost: 1}
						if gates[(n+i)%2].AllowAll(t.Context(), []ratelimit.Charge{c, c}) == nil {
							admitted[key].Add(1)
						}
					}
				})
			}
			wg.Wait()
			var total int64
			for i := range admitted {
				n := admitted[i].Load()
				if total += n; n > 100 {
					t.Errorf("key %d: %d admitted, want 100 at most", i, n)
				}
			}
			if total != 1000 {
				t.Errorf("%d admitted, want 1000", total)
			}
		})
	}
}

// script is a Clock that tells each of its times once.
type script []time.Duration

func (c *script) Now() time.Time {
	now := time.Unix(1<<30, 0).Add((*c)[0])
	*c = (*c)[1:]
	return now
}

// A goroutine that reads the clock and then waits for its turn is not taken for a
// clock that was set back by more than a short window.
func TestWindowsShorterThanADelayHold(t *testing.T) {
	t.Parallel()
	const µs = time.Microsecond
	for _, a := range algorithms {
		clock := &script{
			1000 * µs,
			900 * µs, 1001 * µs, 1001 * µs, // the last for ResetAt
			900 * µs, 1001 * µs, 1001 * µs,
			1001 * µs, 1001 * µs,
		}
		gate := ratelimit.New(ratelimit.WithClock(clock)).MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{{ID: "p", Algorithm: a, Limit: 1, Window: 10 * µs}}})
		key := []byte("k")
		if err := gate.Allow(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		if err := gate.Allow(t.Context(), key); err == nil {
			t.Errorf("%s: a stale time admits", a)
		}
		d, err := gate.Take(t.Context(), ratelimit.Charge{Key: key, Cost: 1})
		if err != nil || d.Allowed || d.RetryAfter != 9*µs {
			t.Errorf("%s: after a stale time: %+v, %v", a, d, err)
		}
		if err := gate.Allow(t.Context(), key); err == nil {
			t.Errorf("%s: the stale times moved the state", a)
		}
	}
}

func TestWhatIsNotChargedTakesNoRoom(t *testing.T) {
	t.Parallel()
	l := ratelimit.New(ratelimit.WithMaxKeys(2))
	gate := l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{perMinute("a", 1), perMinute("b", 1)}})
	full := []byte("full")
	if err := gate.AllowAll(t.Context(), []ratelimit.Charge{{Key: full, Cost: 1}, {Key: full, Cost: 1}}); err != nil {
		t.Fatal(err)
	}
	if err := gate.Reset(t.Context(), full, nil); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		key := fmt.Append(nil, i)
		if err := gate.AllowAll(t.Context(), []ratelimit.Charge{{Key: key, Cost: 1}, {Key: full, Cost: 1}}); err == nil {
			t.Error("admitted though one policy is used up")
		}
		if _, err := gate.Peek(t.Context(), ratelimit.Charge{Key: key, Cost: 1}, ratelimit.Charge{Key: full}); err != nil {
			t.Error(err)
		}
	}
	if n := ratelimit.Keys(l); n != 1 {
		t.Errorf("%d counters, want 1", n)
	}
}

func TestLongKeyAndItsDigestAreDifferentKeys(t *testing.T) {
	t.Parallel()
	gate := ratelimit.New().MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{perMinute("p", 1)}})
	long := strings.Repeat("x", 500)
	digest := sha256.Sum256([]byte(long))
	ratelimittest.Admits(t, gate, 1, long)
	ratelimittest.Admits(t, gate, 1, string(digest[:]))
	ratelimittest.Admits(t, gate, 1, long[1:])
}

func TestExpiredCounterThatIsAboutToBeUsedIsNotReclaimed(t *testing.T) {
	t.Parallel()
	for _, a := range algorithms {
		clock := ratelimittest.NewClock(time.Now())
		l := ratelimit.New(ratelimit.WithClock(clock), ratelimit.WithMaxKeys(10)) // in one shard
		p := ratelimit.Policy{ID: "p", Algorithm: a, Limit: 1, Window: time.Minute}
		q := ratelimit.Policy{ID: "q", Algorithm: a, Limit: 1, Window: time.Minute}
		one := l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{p}})
		two := l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{p, q}})
		ratelimittest.Admits(t, one, 1, "k")
		clock.Advance(time.Minute)
		if err := two.AllowAll(t.Context(), []ratelimit.Charge{{Key: []byte("k"), Cost: 1}, {Key: []byte("new"), Cost: 1}}); err != nil {
			t.Fatal(err)
		}
		ratelimittest.Admits(t, one, 0, "k")
		if n := ratelimit.Keys(l); n != 2 {
			t.Errorf("%s: %d counters, want 2", a, n)
		}
	}
}

// A key that comes to share the overflow counter, and leaves it, is admitted no more
// within any time than one that has a counter of its own all along.
func TestTheOverflowHoldsTheBound(t *testing.T) {
	t.Parallel()
	policies := []ratelimit.Policy{
		{Algorithm: ratelimit.SlidingLog},
		{Algorithm: ratelimit.FixedWindow},
		{Algorithm: ratelimit.FixedWindow, Lock: []time.Duration{time.Second}},
		{Algorithm: ratelimit.FixedWindow, Align: ratelimit.AlignMinute},
		{Algorithm: ratelimit.SlidingWindow, Segments: 2},
		{Algorithm: ratelimit.SlidingWindow, Segments: 7},
		{Algorithm: ratelimit.TokenBucket},
		{Algorithm: ratelimit.TokenBucket, Burst: 5},
		{Algorithm: ratelimit.TokenBucket, Refill: ratelimit.Interval},
	}
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SampledFrom(policies).Draw(t, "policy")
		p.ID, p.Limit, p.Key = "p", 3, "k"
		if p.Window = time.Minute; p.Align != "" {
			p.Window = 0
		}
		clock := ratelimittest.NewClock(time.Unix(0, 0))
		l := ratelimit.New(ratelimit.WithMaxKeys(rapid.IntRange(1, 2).Draw(t, "max")), ratelimit.WithClock(clock))
		gate := l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{p}})
		at := map[string][]time.Duration{}
		now := time.Duration(0)
		for range rapid.IntRange(1, 30).Draw(t, "calls") {
			d := rapid.SampledFrom([]time.Duration{0, time.Second, 29 * time.Second, 30 * time.Second, 59 * time.Second, time.Minute}).Draw(t, "after")
			clock.Advance(d)
			now += d
			key := rapid.SampledFrom([]string{"a", "a", "b", "c"}).Draw(t, "key")
			for range rapid.SampledFrom([]int{1, 2, 3}).Draw(t, "times") {
				if gate.Allow(context.Background(), []byte(key)) == nil {
					at[key] = append(at[key], now)
				}
			}
		}
		bound := p.Bound()
		for key, times := range at {
			for i := range times {
				for j := i; j < len(times); j++ {
					if n, most := int64(j-i+1), bound.Most(times[j]-times[i]+time.Microsecond); n > most {
						t.Fatalf("%s: %d admitted from %v to %v, at most %d are", key, n, times[i], times[j], most)
					}
				}
			}
		}
	})
}

// A key gets no more from the end of a window of its own and two windows of the overflow
// counter than from two windows.
func TestAWindowOfTheOverflowIsNoThirdOne(t *testing.T) {
	t.Parallel()
	for _, p := range []ratelimit.Policy{{Algorithm: ratelimit.FixedWindow}, {Algorithm: ratelimit.FixedWindow, Lock: []time.Duration{time.Second}}} {
		p.ID, p.Limit, p.Key, p.Window = "p", 3, "k", time.Minute
		clock := ratelimittest.NewClock(time.Unix(0, 0))
		gate := ratelimit.New(ratelimit.WithMaxKeys(1), ratelimit.WithClock(clock)).MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{p}})
		admitted := 0
		call := func(key string, times int) {
			for range times {
				if gate.Allow(context.Background(), []byte(key)) == nil && key == "a" {
					admitted++
				}
			}
		}
		call("a", 1)
		clock.Advance(30 * time.Second)
		call("b", 1)
		clock.Advance(29 * time.Second)
		admitted = 0
		call("a", 2)
		clock.Advance(time.Second)
		call("c", 1)
		call("a", 3)
		clock.Advance(30 * time.Second)
		call("a", 3)
		if most := p.Bound().Most(31*time.Second + time.Microsecond); int64(admitted) > most {
			t.Errorf("%v, lock %v: %d admitted within 31 s, at most %d are", p.Algorithm, p.Lock, admitted, most)
		}
	}
}

// A key gets no more from the end of a part of a sliding window of its own, and the ends of
// parts of the overflow counter, which are at other times.
func TestPartsOfTheOverflowAreNoShorterOnes(t *testing.T) {
	t.Parallel()
	const us = time.Microsecond
	p := ratelimit.Policy{ID: "p", Algorithm: ratelimit.SlidingWindow, Limit: 10, Window: 24 * us, Segments: 4}
	clock := ratelimittest.NewClock(begin)
	gate, err := ratelimit.New(ratelimit.WithClock(clock), ratelimit.WithMaxKeys(1)).Gate(&ratelimit.Spec{Policies: []ratelimit.Policy{p}})
	if err != nil {
		t.Fatal(err)
	}
	var units int64
	for _, c := range []struct {
		at   time.Duration
		key  string
		cost int64
	}{{0, "a", 1}, {1, "b", 1}, {5, "a", 9}, {30, "c", 1}, {30, "a", 9}, {31, "a", 1}, {55, "a", 9}} {
		clock.Set(begin.Add(c.at * us))
		d, err := gate.Take(t.Context(), ratelimit.Charge{Key: []byte(c.key), Cost: c.cost})
		if err != nil {
			t.Fatal(err)
		}
		if d.Allowed && c.key == "a" && c.at > 0 {
			units += c.cost
		}
	}
	if most := p.Bound().Most(51 * us); units > most {
		t.Errorf("a key was admitted %d units within 51 µs, and %d is the most", units, most)
	}
}
