package ratelimit_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimittest"
	"pgregory.net/rapid"
)

// limits are exceptions by key.
func limits(of map[string]int64) *ratelimit.Exceptions {
	return &ratelimit.Exceptions{LimitOf: func(key []byte, limit int64) int64 {
		if l, ok := of[string(key)]; ok {
			return l
		}
		return limit
	}}
}

func switches(of map[string]int64) *ratelimit.Exceptions {
	x := limits(of)
	x.Switches = true
	return x
}

func TestExceptionsGiveKeysLimitsOfTheirOwn(t *testing.T) {
	t.Parallel()
	for _, a := range []ratelimit.Algorithm{ratelimit.SlidingLog, ratelimit.FixedWindow, ratelimit.TokenBucket, ratelimit.SlidingWindow} {
		t.Run(string(a), func(t *testing.T) {
			t.Parallel()
			clock := ratelimittest.NewClock(time.UnixMicro(1 << 50))
			l := ratelimit.New(ratelimit.WithClock(clock))
			p := ratelimit.Policy{ID: "p", Algorithm: a, Limit: 3, Window: time.Minute}
			gate := l.MustGate(&ratelimit.Spec{Method: "m", Policies: []ratelimit.Policy{p}})
			take := func(key string) ratelimit.Decision {
				d, err := gate.Take(context.Background(), ratelimit.Charge{Key: []byte(key), Cost: 1})
				if err != nil {
					t.Fatal(err)
				}
				return d
			}
			for _, key := range []string{"plain", "more", "less", "blocked", "unlimited"} {
				take(key)
				take(key)
			}
			update := func(x *ratelimit.Exceptions) {
				if err := l.Update("p", ratelimit.Patch{Exceptions: x}); err != nil {
					t.Fatal(err)
				}
			}
			update(limits(map[string]int64{"more": 30, "less": 1, "blocked": ratelimit.Blocked, "unlimited": ratelimit.Unlimited}))
			for _, c := range []struct {
				key       string
				allowed   bool
				limit     int64
				remaining int64
			}{
				{"plain", true, 3, 0},
				{"plain", false, 3, 0},
				{"more", true, 30, 27},
				{"less", false, 1, 0},
				{"blocked", false, 0, 0},
				{"unlimited", true, ratelimit.Unlimited, ratelimit.Unlimited},
				{"new", true, 3, 2},
			} {
				if d := take(c.key); d.Allowed != c.allowed || d.Limit != c.limit || d.Remaining != c.remaining {
					t.Errorf("%s: %+v, want allowed %t of %d with %d left", c.key, d, c.allowed, c.limit, c.remaining)
				}
			}
			update(&ratelimit.Exceptions{})
			for key, want := range map[string]bool{"more": false, "less": true, "blocked": true, "unlimited": true, "plain": false} {
				if d := take(key); d.Allowed != want || d.Limit != 3 {
					t.Errorf("%s without exceptions: %+v, want allowed %t", key, d, want)
				}
			}
		})
	}
}

func TestExceptionsThatSwitchGoWithEveryPolicy(t *testing.T) {
	t.Parallel()
	for _, p := range []ratelimit.Policy{
		{ID: "queue", Algorithm: ratelimit.LeakyBucket, Limit: 10, Window: time.Second},
		{ID: "warm", Algorithm: ratelimit.TokenBucket, Limit: 10, Window: time.Second, Warmup: time.Minute},
		{ID: "stored", Algorithm: ratelimit.FixedWindow, Limit: 1, Window: time.Second, Store: "map"},
		{ID: "open", Algorithm: ratelimit.LeakyBucket, Limit: ratelimit.Unlimited, Window: time.Second},
	} {
		clock := ratelimittest.NewClock(time.UnixMicro(1 << 50))
		store := &mapStore{clock: clock, rows: make(map[[2]string]row)}
		l := ratelimit.New(ratelimit.WithClock(clock), ratelimit.WithStore("map", store))
		gate := l.MustGate(&ratelimit.Spec{Method: "m", Policies: []ratelimit.Policy{p}})
		of := map[string]int64{"never": ratelimit.Blocked, "always": ratelimit.Unlimited}
		if err := l.Update(p.ID, ratelimit.Patch{Exceptions: limits(of)}); err == nil {
			t.Errorf("%s: it cannot have a limit for each key", p.ID)
		}
		if err := l.Update(p.ID, ratelimit.Patch{Exceptions: switches(of)}); err != nil {
			t.Errorf("%s: %v", p.ID, err)
		}
		for range 20 {
			for key, want := range map[string]bool{"never": false, "always": true} {
				d, err := gate.Take(context.Background(), ratelimit.Charge{Key: []byte(key), Cost: 1})
				if err != nil || d.Allowed != want || d.Delay != 0 {
					t.Fatalf("%s %s: %+v, %v", p.ID, key, d, err)
				}
			}
		}
		if d, err := gate.Take(context.Background(), ratelimit.Charge{Key: []byte("other"), Cost: 1}); err != nil || !d.Allowed {
			t.Errorf("%s: another key: %+v, %v", p.ID, d, err)
		}
	}
}

func TestExceptionsOfASwitchedPolicyNeedAWholePolicy(t *testing.T) {
	t.Parallel()
	l := ratelimit.New()
	l.MustGate(&ratelimit.Spec{Method: "m", Policies: []ratelimit.Policy{{ID: "p", Limit: ratelimit.Unlimited}}})
	x := limits(map[string]int64{"k": 5})
	if err := l.Update("p", ratelimit.Patch{Exceptions: x}); err == nil || !strings.Contains(err.Error(), "window") {
		t.Errorf("a limit without a window: %v", err)
	}
	window := time.Minute
	if err := l.Update("p", ratelimit.Patch{Exceptions: x, Window: &window}); err != nil {
		t.Error(err)
	}
}

// TestExceptionsThatChangeNothingChangeNothing gives one of two limiters exceptions in
// the middle of a history: what its keys have been charged, in whatever form, counts on.
func TestExceptionsThatChangeNothingChangeNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := ratelimit.Policy{
			ID:        "p",
			Algorithm: rapid.SampledFrom([]ratelimit.Algorithm{ratelimit.SlidingLog, ratelimit.FixedWindow, ratelimit.TokenBucket, ratelimit.SlidingWindow}).Draw(rt, "algorithm"),
			Limit:     rapid.Int64Range(1, 50).Draw(rt, "limit"),
			Window:    time.Duration(rapid.Int64Range(100, 1000).Draw(rt, "window")) * time.Microsecond,
		}
		if p.Algorithm == ratelimit.TokenBucket && rapid.Bool().Draw(rt, "burst") {
			p.Burst = rapid.Int64Range(1, 70).Draw(rt, "of")
		}
		now := int64(1 << 50)
		clock := ratelimittest.NewClock(time.UnixMicro(now))
		maxKeys := rapid.IntRange(1, 4).Draw(rt, "room")
		var gates [2]*ratelimit.Gate
		var limiters [2]*ratelimit.Limiter
		for i := range gates {
			limiters[i] = ratelimit.New(ratelimit.WithClock(clock), ratelimit.WithMaxKeys(maxKeys))
			gates[i] = limiters[i].MustGate(&ratelimit.Spec{Method: "m", Policies: []ratelimit.Policy{p}})
		}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			if rapid.IntRange(0, 4).Draw(rt, "what") == 0 {
				x := limits(nil)
				if rapid.IntRange(0, 3).Draw(rt, "none") == 0 {
					x = &ratelimit.Exceptions{}
				}
				if err := limiters[1].Update("p", ratelimit.Patch{Exceptions: x}); err != nil {
					rt.Fatal(err)
				}
			}
			now += rapid.Int64Range(0, p.Window.Microseconds()/3).Draw(rt, "pause")
			clock.Set(time.UnixMicro(now))
			c := ratelimit.Charge{Key: []byte(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "key")), Cost: rapid.Int64Range(0, p.Capacity()).Draw(rt, "cost")}
			var ds [2]ratelimit.Decision
			for i, g := range gates {
				var err error
				if ds[i], err = g.Take(context.Background(), c); err != nil {
					rt.Fatal(err)
				}
			}
			if ds[0] != ds[1] {
				rt.Fatalf("%+v, %s at %d: %+v without exceptions, %+v with some that say nothing", p, c.Key, now, ds[0], ds[1])
			}
		}
	})
}

func TestExceptionsChangeWhileCallsAreMade(t *testing.T) {
	t.Parallel()
	l := ratelimit.New(ratelimit.WithClock(ratelimittest.NewClock(time.UnixMicro(1 << 50))))
	gate := l.MustGate(&ratelimit.Spec{Method: "m", Policies: []ratelimit.Policy{{ID: "p", Algorithm: ratelimit.TokenBucket, Limit: 100, Window: time.Hour}}})
	var mu sync.Mutex
	admitted := map[string]int{}
	var calls, updates sync.WaitGroup
	stop := make(chan struct{})
	updates.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				x := &ratelimit.Exceptions{}
				if i%2 == 0 {
					x = limits(map[string]int64{"a": 200, "b": 50})
				}
				if err := l.Update("p", ratelimit.Patch{Exceptions: x}); err != nil {
					t.Error(err)
				}
			}
		}
	})
	for range 4 {
		calls.Go(func() {
			for i := range 400 {
				key := string("abc"[i%3])
				if gate.Allow(context.Background(), []byte(key)) == nil {
					mu.Lock()
					admitted[key]++
					mu.Unlock()
				}
			}
		})
	}
	calls.Wait()
	close(stop)
	updates.Wait()
	if admitted["a"] > 200 || admitted["b"] > 100 || admitted["c"] != 100 {
		t.Errorf("admitted %v; no more than the greatest limit of each, and all of c's", fmt.Sprint(admitted))
	}
}

func TestExceptionsOfATimeQuotaCountTime(t *testing.T) {
	t.Parallel()
	clock := ratelimittest.NewClock(time.UnixMicro(1 << 50))
	l := ratelimit.New(ratelimit.WithClock(clock))
	gate := l.MustGate(&ratelimit.Spec{Method: "m", Policies: []ratelimit.Policy{{ID: "p", Algorithm: ratelimit.TimeQuota, Limit: time.Second.Microseconds(), Window: time.Minute}}})
	if err := l.Update("p", ratelimit.Patch{Exceptions: limits(map[string]int64{"more": time.Minute.Microseconds()})}); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]bool{"more": true, "plain": false} {
		charge := []ratelimit.Charge{{Key: []byte(key), Cost: 1}}
		permit, err := gate.Acquire(context.Background(), charge)
		if err != nil {
			t.Fatal(err)
		}
		clock.Advance(2 * time.Second)
		permit.Release()
		again, err := gate.Acquire(context.Background(), charge)
		if (err == nil) != want {
			t.Errorf("%s after two seconds: %v", key, err)
		}
		again.Release()
	}
}

// Keys that share a counter for want of room do not refill it for each other.
func TestAnExceptionRefillsNothingForOthersInTheOverflow(t *testing.T) {
	t.Parallel()
	clock := ratelimittest.NewClock(time.UnixMicro(1 << 50))
	l := ratelimit.New(ratelimit.WithClock(clock), ratelimit.WithMaxKeys(1))
	p := ratelimit.Policy{ID: "p", Algorithm: ratelimit.TokenBucket, Limit: 3, Burst: 10, Window: time.Millisecond}
	gate := l.MustGate(&ratelimit.Spec{Method: "m", Policies: []ratelimit.Policy{p}})
	if err := l.Update("p", ratelimit.Patch{Exceptions: limits(map[string]int64{"big": 1000})}); err != nil {
		t.Fatal(err)
	}
	admitted := map[string]int64{}
	take := func(key string) {
		if gate.Allow(context.Background(), []byte(key)) == nil {
			admitted[key]++
		}
	}
	const steps, step = 400, 10 * time.Microsecond
	for range steps {
		take("first") // which has the room
		take("big")
		take("k")
		clock.Advance(step)
	}
	if most := p.Bound().Most(steps * step); admitted["k"] > most {
		t.Errorf("%d were admitted, at most %d may be", admitted["k"], most)
	}
}
