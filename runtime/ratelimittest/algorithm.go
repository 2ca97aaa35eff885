package ratelimittest

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"pgregory.net/rapid"
)

// TestAlgorithm runs the suite that every ratelimit.CustomAlgorithm must pass. It draws
// policies that the algorithm's Check accepts, and checks on histories of calls what its
// Take says: that nothing but a charge changes a state, that what remains is the greatest
// cost that is admitted, that a wait is as long as it has to be and no longer, that a
// state may be dropped when it says so, and that all of this is so in a limiter, too.
// The flag -rapid.checks says how many histories are tried.
func TestAlgorithm(t *testing.T, a ratelimit.CustomAlgorithm) {
	for _, p := range []struct {
		name string
		run  func(*rapid.T, ratelimit.CustomAlgorithm)
	}{
		{"Take keeps its contract", checkArithmetic},
		{"a limiter decides as Take says", checkInLimiter},
		{"a flood of keys frees none", checkFlood},
	} {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) { p.run(rt, a) })
		})
	}
	t.Run("goroutines share it", func(t *testing.T) {
		t.Parallel()
		checkShared(t, a)
	})
}

const customName = "custom"

// drawCustom draws a policy that a accepts.
func drawCustom(rt *rapid.T, a ratelimit.CustomAlgorithm) *ratelimit.Policy {
	const tries = 100
	var err error
	for range tries {
		p := ratelimit.Policy{ID: "policy", Algorithm: customName, Window: drawDuration(rt, "window")}
		switch rapid.IntRange(0, 2).Draw(rt, "size") {
		case 0:
			p.Limit = rapid.Int64Range(1, 3).Draw(rt, "limit")
		case 1:
			p.Limit = rapid.Int64Range(1, 1000).Draw(rt, "limit")
		default:
			p.Limit = rapid.Int64Range(1, ratelimit.MaxLimit).Draw(rt, "limit")
		}
		if rapid.Bool().Draw(rt, "has burst") {
			p.Burst = rapid.Int64Range(1, 2*min(p.Limit, ratelimit.MaxLimit/2)).Draw(rt, "burst")
		}
		if rapid.IntRange(0, 3).Draw(rt, "dynamic") == 0 {
			p.Dynamic, p.Limit = true, 0
		}
		if err = p.Validate(); err == nil {
			err = a.Check(&p)
		}
		if err == nil {
			return &p
		}
	}
	rt.Fatalf("none of %d policies is accepted, the last one because of: %v", tries, err)
	return nil
}

// customKey is one key's state and the time of what was charged last.
type customKey struct {
	a     ratelimit.CustomAlgorithm
	p     *ratelimit.Policy
	limit int64 // of the call
	state ratelimit.State
	now   int64
}

// question asks with the limit of the call.
func (k *customKey) question(cost, now int64) ratelimit.Question {
	q := ratelimit.Question{Policy: k.p, Limit: k.limit, Capacity: k.limit, Cost: cost, Now: now}
	if k.p.Burst > 0 {
		q.Capacity = k.p.Burst
	}
	return q
}

// newKey returns a key of p that nothing is known of.
func newKey(a ratelimit.CustomAlgorithm, p *ratelimit.Policy) *customKey {
	k := &customKey{a: a, p: p, limit: p.Limit}
	if p.Dynamic {
		k.limit = 1
	}
	return k
}

func (k *customKey) ask(rt *rapid.T, cost, now int64) (ratelimit.Outcome, ratelimit.State) {
	q := k.question(cost, now)
	before := *k.p
	asked := fmt.Sprintf("a cost of %d at %d, of a limit of %d and a capacity of %d, by %+v,", q.Cost, q.Now, q.Limit, q.Capacity, before)
	o, s := k.a.Take(q, k.state)
	if again, state := k.a.Take(q, k.state); again != o || state != s {
		rt.Fatalf("%s of %v: %+v and %v, and the second time %+v and %v", asked, k.state, o, s, again, state)
	}
	if !reflect.DeepEqual(*k.p, before) {
		rt.Fatalf("the policy %+v was changed to %+v", before, *k.p)
	}
	if (!o.Allowed || cost == 0) && s != k.state {
		rt.Fatalf("%s which charges nothing, made %v of %v", asked, s, k.state)
	}
	switch {
	case o.Remaining < 0 || o.Remaining > q.Capacity:
		rt.Fatalf("%s of %v: %d remain, which is not in 0..%d", asked, k.state, o.Remaining, q.Capacity)
	case o.Allowed != (o.RetryAfter == 0):
		rt.Fatalf("%s of %v: allowed %t, but to be retried after %v", asked, k.state, o.Allowed, o.RetryAfter)
	case o.RetryAfter < 0 || o.RetryAfter == ratelimit.Never || o.RetryAfter%time.Microsecond != 0:
		rt.Fatalf("%s of %v: a wait of %v is not a whole number of microseconds", asked, k.state, o.RetryAfter)
	case o.ResetAfter < 0:
		rt.Fatalf("%s of %v: as new after %v", asked, k.state, o.ResetAfter)
	}
	return o, s
}

// check checks what is said of the key now.
func (k *customKey) check(rt *rapid.T) {
	capacity := k.question(0, 0).Capacity
	free, _ := k.ask(rt, 0, k.now)
	if !free.Allowed && !k.p.Dynamic { // else the limit may have fallen below what is charged
		rt.Fatalf("%+v: a cost of 0 is refused at %d in %v", k.p, k.now, k.state)
	}
	for _, cost := range []int64{1, free.Remaining, free.Remaining + 1, capacity, rapid.Int64Range(1, capacity).Draw(rt, "cost")} {
		if cost < 1 || cost > capacity {
			continue
		}
		o, _ := k.ask(rt, cost, k.now)
		if o.Allowed != (cost <= free.Remaining && free.Allowed) {
			rt.Fatalf("%+v: %d remain at %d in %v, and a cost of %d is allowed: %t", k.p, free.Remaining, k.now, k.state, cost, o.Allowed)
		}
		if o.Allowed {
			continue
		}
		wait := o.RetryAfter.Microseconds()
		if at, _ := k.ask(rt, cost, k.now+wait); !at.Allowed {
			rt.Fatalf("%+v: a cost of %d in %v is to be retried %v after %d, and refused then", k.p, cost, k.state, o.RetryAfter, k.now)
		}
		if early, _ := k.ask(rt, cost, k.now+wait-1); early.Allowed {
			rt.Fatalf("%+v: a cost of %d in %v is to be retried %v after %d, and allowed 1 µs before", k.p, cost, k.state, o.RetryAfter, k.now)
		}
	}
	// What is dropped decides as what was never there.
	over := k.now + int64((free.ResetAfter+time.Microsecond-1)/time.Microsecond)
	fresh := &customKey{a: k.a, p: k.p, limit: k.limit}
	for _, at := range []int64{over, over + rapid.Int64Range(0, 3*k.p.Window.Microseconds()).Draw(rt, "later")} {
		for _, cost := range []int64{0, 1, capacity} {
			o, _ := k.ask(rt, cost, at)
			want, _ := fresh.ask(rt, cost, at)
			if o != want {
				rt.Fatalf("%+v: %v is as new %v after %d, but says %+v of a cost of %d then, and a new one %+v", k.p, k.state, free.ResetAfter, k.now, o, cost, want)
			}
		}
	}
}

func checkArithmetic(rt *rapid.T, a ratelimit.CustomAlgorithm) {
	k := newKey(a, drawCustom(rt, a))
	k.now = rapid.SampledFrom([]int64{0, 1, 1 << 40, lastTime}).Draw(rt, "begin")
	if o, _ := k.ask(rt, 1, k.now); !o.Allowed {
		rt.Fatalf("%+v: the first call of a key is refused", k.p)
	}
	for range rapid.IntRange(1, 12).Draw(rt, "calls") {
		k.check(rt)
		k.now += drawPause(rt, k)
		k.drawLimit(rt)
		cost := drawCost(rt, k)
		before, _ := k.ask(rt, 0, k.now)
		o, s := k.ask(rt, cost, k.now)
		if !o.Allowed {
			continue
		}
		k.state = s
		if after, _ := k.ask(rt, 0, k.now); before.Allowed && after.Remaining != before.Remaining-cost || after.Remaining != o.Remaining {
			rt.Fatalf("%+v: %d remained at %d, a cost of %d was charged, which left %d by its outcome, and %d remain", k.p, before.Remaining, k.now, cost, o.Remaining, after.Remaining)
		}
	}
	k.check(rt)
}

// drawLimit draws the limit of the next call, if calls bring their own.
func (k *customKey) drawLimit(rt *rapid.T) {
	if k.p.Dynamic {
		k.limit = rapid.OneOf(rapid.Int64Range(1, 10), rapid.Int64Range(1, ratelimit.MaxLimit)).Draw(rt, "limit of the call")
	}
}

func drawCost(rt *rapid.T, k *customKey) int64 {
	capacity := k.question(0, 0).Capacity
	return rapid.OneOf(rapid.Int64Range(0, min(3, capacity)), rapid.Int64Range(0, capacity)).Draw(rt, "cost")
}

func drawPause(rt *rapid.T, k *customKey) int64 {
	w := k.p.Window.Microseconds()
	return rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, w), rapid.Int64Range(0, 1+w/max(1, k.limit)), rapid.Int64Range(w-1, 2*w+1)).Draw(rt, "pause")
}

// newCustom returns a gate of p and its clock.
func newCustom(rt *rapid.T, a ratelimit.CustomAlgorithm, p *ratelimit.Policy, opts ...ratelimit.Option) (*ratelimit.Gate, *Clock) {
	clock := NewClock(time.UnixMicro(firstTime))
	l := ratelimit.New(append(opts, ratelimit.WithClock(clock), ratelimit.WithAlgorithm(customName, a))...)
	gate, err := l.Gate(&ratelimit.Spec{Method: "m", Policies: []ratelimit.Policy{*p}})
	if err != nil {
		rt.Fatal(err)
	}
	return gate, clock
}

func checkInLimiter(rt *rapid.T, a ratelimit.CustomAlgorithm) {
	p := drawCustom(rt, a)
	gate, clock := newCustom(rt, a, p)
	now := int64(firstTime)
	keys := map[string]*customKey{}
	for range rapid.IntRange(1, 12).Draw(rt, "calls") {
		key := rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "key")
		k := keys[key]
		if k == nil {
			k = newKey(a, p)
			keys[key] = k
		}
		now += drawPause(rt, k)
		clock.Set(time.UnixMicro(now))
		k.drawLimit(rt)
		cost := drawCost(rt, k)
		d, err := gate.Take(context.Background(), ratelimit.Charge{Key: []byte(key), Cost: cost, Limit: k.limit})
		if err != nil {
			rt.Fatal(err)
		}
		o, s := k.ask(rt, cost, now)
		k.state = s
		if d.Allowed != o.Allowed || d.Remaining != o.Remaining || d.RetryAfter != o.RetryAfter {
			rt.Fatalf("%+v: a cost of %d at %d: the limiter says %+v, Take %+v", p, cost, now, d, o)
		}
	}
}

// checkFlood uses up one key while others come and go in a limiter that is too small.
func checkFlood(rt *rapid.T, a ratelimit.CustomAlgorithm) {
	p := drawCustom(rt, a)
	gate, clock := newCustom(rt, a, p, ratelimit.WithMaxKeys(4))
	take := func(key string, cost int64) ratelimit.Decision {
		d, err := gate.Take(context.Background(), ratelimit.Charge{Key: []byte(key), Cost: cost, Limit: 3})
		if err != nil {
			rt.Fatal(err)
		}
		return d
	}
	take("used up", 1)
	if left := take("used up", 0).Remaining; left > 0 {
		take("used up", left)
	}
	if d := take("used up", 0); d.Remaining > 0 {
		rt.Fatalf("%+v: all that remained was charged, and %d remain at the same time", p, d.Remaining)
	}
	wait := take("used up", 1).RetryAfter
	if wait == 0 {
		rt.Skip() // used up at no time, as with a limit per microsecond
	}
	for i := range rapid.IntRange(1, 20).Draw(rt, "keys") {
		take(fmt.Sprint("other ", i), 1)
	}
	clock.Advance(wait - time.Microsecond)
	if d := take("used up", 1); d.Allowed {
		rt.Fatalf("%+v: admitted 1 µs early after a flood", p)
	}
	clock.Advance(time.Microsecond)
	if d := take("used up", 1); !d.Allowed {
		rt.Fatalf("%+v: refused at its time after a flood: %+v", p, d)
	}
}

// checkShared has goroutines call the algorithm, for the race detector.
func checkShared(t *testing.T, a ratelimit.CustomAlgorithm) {
	p := rapid.Custom(func(rt *rapid.T) *ratelimit.Policy { return drawCustom(rt, a) }).Example(1)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			var s ratelimit.State
			for now := range int64(1000) {
				k := newKey(a, p)
				_, s = a.Take(k.question(1, now), s)
			}
		})
	}
	all.Wait()
}
