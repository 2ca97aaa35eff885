package ratelimit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"pgregory.net/rapid"
)

// hotPair is two limiters of the same policies. In one, keys are hot soon, and in the
// other never.
type hotPair struct {
	limiters [2]*ratelimit.Limiter
	one      [2]*ratelimit.Gate // of the first policy
	two      [2]*ratelimit.Gate // of two policies
	heated   int
}

func newHotPair(p, q ratelimit.Policy, votes, maxKeys int) *hotPair {
	h := &hotPair{}
	for i, votes := range []int{votes, math.MaxInt} {
		l := ratelimit.New(ratelimit.WithMaxKeys(maxKeys))
		ratelimit.HeatAfter(l, votes)
		h.limiters[i] = l
		h.one[i] = l.MustGate(&ratelimit.Spec{Method: "One", Policies: []ratelimit.Policy{p}})
		h.two[i] = l.MustGate(&ratelimit.Spec{Method: "Two", Policies: []ratelimit.Policy{p, q}})
	}
	return h
}

// both does something to the two limiters, and checks that the same comes of it.
func (h *hotPair) both(rt *rapid.T, what string, do func(i int) any) {
	hotKeys := ratelimit.HotKeys(h.limiters[0])
	if hotKeys > 2 {
		rt.Fatalf("%d keys are hot, of two policies", hotKeys)
	}
	h.heated += hotKeys
	hot, cold := do(0), do(1)
	if !reflect.DeepEqual(hot, cold) {
		rt.Fatalf("%s at %v: %+v where keys get hot, and elsewhere %+v", what, time.Now(), hot, cold)
	}
}

// told is what an error says that is about a limit.
func told(err error) any {
	var e *ratelimit.Error
	if errors.As(err, &e) {
		return *e
	}
	return err
}

func drawBucket(rt *rapid.T, id string) ratelimit.Policy {
	return ratelimit.Policy{
		ID: id, Algorithm: ratelimit.TokenBucket,
		Limit:  rapid.OneOf(rapid.Int64Range(1, 5), rapid.Int64Range(1, 5000), rapid.Just(int64(4096))).Draw(rt, "limit"),
		Window: rapid.SampledFrom([]time.Duration{time.Microsecond, 7 * time.Microsecond, time.Millisecond, time.Second, time.Hour}).Draw(rt, "window"),
		Burst:  rapid.SampledFrom([]int64{0, 1, 2, 9}).Draw(rt, "burst"),
		Global: rapid.IntRange(0, 5).Draw(rt, "global") == 0,
	}
}

// inBubble runs f in a bubble, and has what it panics with, as a failure or the end of a
// drawn history does, come out of that.
func inBubble(t *testing.T, f func(context.Context)) {
	var failure any
	synctest.Test(t, func(t *testing.T) {
		defer func() { failure = recover() }()
		f(t.Context())
	})
	if failure != nil {
		panic(failure)
	}
}

// Whatever is done to a limiter, keys that are hot are decided on as others are. Time
// is that of a bubble, as there are no hot keys under a Clock.
func TestHotKeysAreDecidedOnAsOthers(t *testing.T) {
	t.Parallel()
	heated := 0
	rapid.Check(t, func(rt *rapid.T) {
		inBubble(t, func(ctx context.Context) {
			p, q := drawBucket(rt, "p"), drawBucket(rt, "q")
			if p.Validate() != nil || q.Validate() != nil {
				rt.Skip("no such policy")
			}
			h := newHotPair(p, q, rapid.IntRange(1, 4).Draw(rt, "votes"), rapid.SampledFrom([]int{3, 10, 5000}).Draw(rt, "room"))
			keys := []string{"a", "b", "a key of more than twenty-four bytes", string(bytes.Repeat([]byte("long"), 40))}
			flood := 0
			for range rapid.IntRange(10, 120).Draw(rt, "steps") {
				key := []byte(rapid.SampledFrom([]string{keys[0], keys[0], keys[0], keys[0], keys[1], keys[2], keys[3]}).Draw(rt, "key"))
				cost := rapid.SampledFrom([]int64{1, 1, 1, 1, 2, 3, 0, -1}).Draw(rt, "cost")
				charges := []ratelimit.Charge{{Key: key, Cost: cost}, {Key: key, Cost: 1}}
				switch rapid.IntRange(0, 19).Draw(rt, "action") {
				default:
					h.both(rt, "Allow", func(i int) any { return told(h.one[i].AllowN(ctx, key, cost)) })
				case 0, 1, 2:
					h.both(rt, "Take", func(i int) any {
						d, err := h.one[i].Take(ctx, charges[0])
						return []any{d, told(err)}
					})
				case 3, 4, 5, 6:
					h.both(rt, "AllowAll", func(i int) any { return told(h.two[i].AllowAll(ctx, charges)) })
				case 7:
					h.both(rt, "Take of both", func(i int) any {
						d, err := h.two[i].Take(ctx, charges...)
						return []any{d, told(err)}
					})
				case 8:
					h.both(rt, "Peek", func(i int) any {
						d, err := h.two[i].Peek(ctx, charges...)
						return []any{d, told(err)}
					})
				case 9:
					h.both(rt, "Reset", func(i int) any { return told(h.one[i].Reset(ctx, key)) })
				case 10:
					d := time.Duration(rapid.IntRange(0, 1000).Draw(rt, "block"))
					h.both(rt, "Block", func(i int) any { return told(h.one[i].Block(ctx, d, key)) })
				case 11:
					limit := rapid.Int64Range(1, 5000).Draw(rt, "to")
					h.both(rt, "Update", func(i int) any {
						err := h.limiters[i].Update("p", ratelimit.Patch{Limit: &limit})
						return err != nil
					})
				case 12:
					for range rapid.IntRange(1, 20).Draw(rt, "flood") {
						flood++
						key := fmt.Appendf(nil, "flood %d", flood)
						h.both(rt, "Allow for a new key", func(i int) any { return told(h.one[i].Allow(ctx, key)) })
					}
				case 13, 14:
					time.Sleep(time.Duration(rapid.Int64Range(0, 3*p.Window.Nanoseconds()/p.Limit+2000).Draw(rt, "sleep")))
				case 15:
					time.Sleep(time.Duration(rapid.Int64Range(0, 3*q.Window.Nanoseconds()+2000).Draw(rt, "long sleep")))
				}
			}
			for _, key := range keys {
				h.both(rt, "Peek at the end", func(i int) any {
					d, err := h.two[i].Peek(ctx, ratelimit.Charge{Key: []byte(key), Cost: 1}, ratelimit.Charge{Key: []byte(key), Cost: 1})
					return []any{d, told(err)}
				})
			}
			heated += h.heated
		})
	})
	if heated == 0 {
		t.Error("no key was hot in any history")
	}
}

// However many call at once, in whatever order they ask policies, and whatever gives a
// hot key its state back meanwhile, just so many are admitted as there are units.
func TestHotKeysAdmitTheirLimits(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	l := ratelimit.New()
	ratelimit.HeatAfter(l, 3)
	year := 365 * 24 * time.Hour
	key := []byte("somebody")
	var policies []ratelimit.Policy
	var admitted [3]atomic.Int64
	limits := []int64{200_000, 150_000, 100_000} // a unit takes minutes
	calls := 100_000
	if raceEnabled {
		limits, calls = []int64{40_000, 30_000, 20_000}, 20_000
	}
	for i, limit := range limits {
		policies = append(policies, ratelimit.Policy{ID: fmt.Sprint(i), Algorithm: ratelimit.TokenBucket, Limit: limit, Window: year})
	}
	type method struct {
		of   []int
		gate *ratelimit.Gate
	}
	var methods []method
	for _, of := range [][]int{{0}, {1}, {2}, {0, 1}, {1, 2}, {2, 0}} {
		m := method{of: of}
		spec := ratelimit.Spec{Method: fmt.Sprint(of)}
		for _, i := range of {
			spec.Policies = append(spec.Policies, policies[i])
		}
		m.gate = l.MustGate(&spec)
		methods = append(methods, m)
	}
	var callers sync.WaitGroup
	start := make(chan struct{})
	var heated atomic.Int64
	for n := range 8 {
		callers.Go(func() {
			<-start
			rnd := rand.New(rand.NewPCG(1, uint64(n)))
			charges := [2]ratelimit.Charge{{Key: key, Cost: 1}, {Key: key, Cost: 1}}
			mode := ratelimit.Enforce
			for range calls {
				m := &methods[rnd.IntN(len(methods))]
				switch action := rnd.IntN(4000); {
				case action == 0:
					heated.Add(int64(ratelimit.HotKeys(l)))
				case action == 1:
					if _, err := m.gate.Peek(ctx, charges[:len(m.of)]...); err != nil {
						t.Error(err)
					}
				case action == 2:
					if err := l.Update(policies[m.of[0]].ID, ratelimit.Patch{Mode: &mode}); err != nil {
						t.Error(err)
					}
				case action < 500 && len(m.of) == 1:
					if d, err := m.gate.Take(ctx, ratelimit.Charge{Key: key, Cost: 2}); err != nil {
						t.Error(err)
					} else if d.Allowed {
						admitted[m.of[0]].Add(2)
					}
				case m.gate.AllowAll(ctx, charges[:len(m.of)]) == nil:
					for _, i := range m.of {
						admitted[i].Add(1)
					}
				}
			}
		})
	}
	close(start)
	callers.Wait()
	for i := range policies {
		for methods[i].gate.Allow(ctx, key) == nil {
			admitted[i].Add(1)
		}
		// Less than a unit has come back.
		if n := admitted[i].Load(); n != limits[i] {
			t.Errorf("%d units were admitted of %d", n, limits[i])
		}
	}
	if heated.Load() == 0 {
		t.Error("no key was ever hot")
	}
}

// Whoever needs a key that another call holds waits for it, and decides on what that
// leaves.
func TestWhoHoldsAHotKeyIsWaitedFor(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	key := []byte("somebody")
	one := []ratelimit.Charge{{Key: key, Cost: 1}}
	two := []ratelimit.Charge{{Key: key, Cost: 1}, {Key: key, Cost: 1}}
	limit := int64(50)
	for _, c := range []struct {
		name string
		hold string
		does func(*ratelimit.Limiter, *ratelimit.Gate, *ratelimit.Gate) error
		left int64 // of 10, of which 4 were charged before
	}{
		{"Allow", "p", func(_ *ratelimit.Limiter, p, _ *ratelimit.Gate) error { return p.Allow(ctx, key) }, 5},
		{"Take", "p", func(_ *ratelimit.Limiter, p, _ *ratelimit.Gate) error {
			d, err := p.Take(ctx, one...)
			if d.Remaining != 5 {
				t.Errorf("Take told of %d remaining, want 5", d.Remaining)
			}
			return err
		}, 5},
		{"AllowAll, the first", "p", func(_ *ratelimit.Limiter, _, both *ratelimit.Gate) error { return both.AllowAll(ctx, two) }, 5},
		{"AllowAll, the second", "q", func(_ *ratelimit.Limiter, _, both *ratelimit.Gate) error { return both.AllowAll(ctx, two) }, 5},
		{"Peek", "p", func(_ *ratelimit.Limiter, p, _ *ratelimit.Gate) error { _, err := p.Peek(ctx, one...); return err }, 6},
		{"Update", "p", func(l *ratelimit.Limiter, _, _ *ratelimit.Gate) error {
			return l.Update("p", ratelimit.Patch{Limit: &limit})
		}, 46},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := ratelimit.New()
			ratelimit.HeatAfter(l, 2)
			p := ratelimit.Policy{ID: "p", Algorithm: ratelimit.TokenBucket, Limit: 10, Window: 24 * time.Hour}
			q := p
			q.ID = "q"
			gate := l.MustGate(&ratelimit.Spec{Method: "One", Policies: []ratelimit.Policy{p}})
			both := l.MustGate(&ratelimit.Spec{Method: "Two", Policies: []ratelimit.Policy{p, q}})
			for range 4 {
				if err := both.AllowAll(ctx, two); err != nil {
					t.Fatal(err)
				}
			}
			release := ratelimit.Hold(l, c.hold)
			done := make(chan error)
			go func() { done <- c.does(l, gate, both) }()
			select {
			case err := <-done:
				t.Fatalf("it did not wait: %v", err)
			case <-time.After(20 * time.Millisecond): // which a decision is far below
			}
			release()
			if err := <-done; err != nil {
				t.Error(err)
			}
			if d, err := gate.Peek(ctx, one...); err != nil || d.Remaining != c.left {
				t.Errorf("%d remain, %v, want %d", d.Remaining, err, c.left)
			}
		})
	}
}

// A key that is asked for by turns in a way that makes it hot and in one that does not is
// not given a new state for each call.
func TestKeysDoNotGetHotForEachCall(t *testing.T) {
	ctx := t.Context()
	key := []byte("somebody")
	l := ratelimit.New()
	p := ratelimit.Policy{ID: "p", Algorithm: ratelimit.TokenBucket, Limit: 1_000_000, Window: time.Minute}
	q := p
	q.ID, q.Algorithm = "q", ratelimit.FixedWindow
	one := l.MustGate(&ratelimit.Spec{Method: "One", Policies: []ratelimit.Policy{p}})
	two := l.MustGate(&ratelimit.Spec{Method: "Two", Policies: []ratelimit.Policy{p, q}})
	var before, after runtime.MemStats
	const calls = 20_000
	runtime.ReadMemStats(&before)
	for range calls {
		if err := one.Allow(ctx, key); err != nil {
			t.Fatal(err)
		}
		if err := two.AllowAll(ctx, []ratelimit.Charge{{Key: key, Cost: 1}, {Key: key, Cost: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if n := after.Mallocs - before.Mallocs; n > calls/10 {
		t.Errorf("%d allocations in %d calls", n, 2*calls)
	}
}

// Time is set back where a limiter is used in two bubbles. Nobody is refused for longer
// then than by an empty bucket.
func TestHotKeysOfAnotherBubble(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	key := []byte("somebody")
	for _, heats := range []string{"before", "after"} {
		for _, both := range []bool{false, true} {
			var l *ratelimit.Limiter
			var gate *ratelimit.Gate
			charges := []ratelimit.Charge{{Key: key, Cost: 1}, {Key: key, Cost: 1}}[:1]
			use := func(n int) {
				for range n {
					_ = gate.AllowAll(ctx, charges)
				}
			}
			synctest.Test(t, func(*testing.T) {
				time.Sleep(time.Hour)
				l = ratelimit.New()
				ratelimit.HeatAfter(l, 5)
				p := ratelimit.Policy{ID: "p", Algorithm: ratelimit.TokenBucket, Limit: 10, Window: time.Minute}
				policies := []ratelimit.Policy{p}
				if both {
					p.ID = "q"
					policies, charges = append(policies, p), charges[:2]
				}
				gate = l.MustGate(&ratelimit.Spec{Method: "M", Policies: policies})
				time.Sleep(time.Hour)
				if use(2); heats == "before" {
					use(8)
				}
			})
			synctest.Test(t, func(*testing.T) {
				use(20)
				d, err := gate.Take(ctx, charges...)
				if err != nil || d.Allowed || d.RetryAfter > 6*time.Second {
					t.Errorf("heated %s, both %t: %+v, %v", heats, both, d, err)
				}
				time.Sleep(d.RetryAfter)
				if err := gate.AllowAll(ctx, charges); err != nil {
					t.Errorf("heated %s, both %t: %v after its RetryAfter", heats, both, err)
				}
				use(100)
				time.Sleep(2 * time.Minute)
				for range 10 {
					if err := gate.AllowAll(ctx, charges); err != nil {
						t.Errorf("heated %s, both %t: %v from a bucket that is full", heats, both, err)
					}
				}
			})
		}
	}
}
