package ratelimittest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"pgregory.net/rapid"
)

var properties = []struct {
	name string
	run  func(*testing.T, Harness)
}{
	{"G1-G8 single policies decide as the oracle", func(t *testing.T, h Harness) {
		for _, a := range algorithms {
			t.Run(string(a), func(t *testing.T) {
				t.Parallel()
				rapid.Check(t, func(rt *rapid.T) {
					w := newWorld(rt, h.New(t), []ratelimit.Policy{drawPolicy(rt, a)})
					w.run()
				})
			})
		}
	}},
	{"G1-G9 several policies decide as one and as the oracle", func(t *testing.T, h Harness) {
		rapid.Check(t, func(rt *rapid.T) {
			var ps []ratelimit.Policy
			for range rapid.IntRange(2, 6).Draw(rt, "policies") {
				p := drawPolicy(rt, rapid.SampledFrom(algorithms).Draw(rt, "algorithm"))
				p.Global = rapid.IntRange(0, 3).Draw(rt, "global") == 0
				if rapid.IntRange(0, 3).Draw(rt, "shadow") == 0 {
					p.Mode = ratelimit.Shadow
				}
				ps = append(ps, p)
			}
			newWorld(rt, h.New(t), ps).run()
		})
	}},
	{"G5-G7 a wait is honest, tight and bounded", func(t *testing.T, h Harness) {
		rapid.Check(t, func(rt *rapid.T) { checkWaits(rt, h.New(t)) })
	}},
	{"G13 no number panics or is admitted above the limit", func(t *testing.T, h Harness) {
		rapid.Check(t, func(rt *rapid.T) { checkNumbers(rt, h.New(t)) })
	}},
}

// The times that properties move in: 71 to 142 years after 1970, so that a double
// holds every time and every time plus a window exactly.
const (
	firstTime = 1 << 51
	lastTime  = 1 << 52
)

// drawPolicy returns a valid policy with an ID of its own.
func drawPolicy(rt *rapid.T, a ratelimit.Algorithm) ratelimit.Policy {
	p := unique(ratelimit.Policy{Algorithm: a})
	p.Window = rapid.OneOf(
		rapid.SampledFrom([]time.Duration{time.Second, time.Minute, 24 * time.Hour}),
		rapid.Custom(func(rt *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(1_000_000, 100_000_000).Draw(rt, "µs")) * time.Microsecond
		}),
		rapid.Just(ratelimit.MaxWindow),
	).Draw(rt, "window")
	p.Limit = rapid.OneOf(rapid.Int64Range(1, 5), rapid.Int64Range(1, 40), rapid.Int64Range(1, 4096)).Draw(rt, "limit")
	if a == ratelimit.TokenBucket {
		p.Burst = rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(1, p.Limit)).Draw(rt, "burst")
	}
	return p
}

// world is a subject beside the oracle's beliefs of it.
type world struct {
	rt       *rapid.T
	s        Subject
	now      int64
	policies []ratelimit.Policy
	gate     *ratelimit.Gate   // of all policies
	singles  []*ratelimit.Gate // of each policy
	states   map[state]*beliefs
	events   []int64 // times at which something ends
}

type state struct {
	policy int
	key    string
}

func newWorld(rt *rapid.T, s Subject, policies []ratelimit.Policy) *world {
	w := &world{rt: rt, s: s, policies: policies, states: map[state]*beliefs{}}
	w.gate = w.newGate(policies)
	for i := range policies {
		w.singles = append(w.singles, w.newGate(policies[i:i+1]))
	}
	w.setTime((firstTime + lastTime) / 2)
	return w
}

func (w *world) newGate(policies []ratelimit.Policy) *ratelimit.Gate {
	gate, err := w.s.Limiter.Gate(&ratelimit.Spec{Method: "conformance.Property", Policies: policies})
	if err != nil {
		w.rt.Fatal(err)
	}
	return gate
}

func (w *world) setTime(us int64) {
	w.now = max(firstTime, min(us, lastTime))
	w.s.SetTime(w.now)
	for _, b := range w.states {
		b.seen(w.now)
	}
}

func (w *world) beliefs(i int, key string) *beliefs {
	if w.policies[i].Global {
		key = ""
	}
	id := state{i, key}
	if w.states[id] == nil {
		w.states[id] = newBeliefs(&w.policies[i])
	}
	return w.states[id]
}

func (w *world) run() {
	for range rapid.IntRange(1, 40).Draw(w.rt, "steps") {
		w.move()
		keys := make([]string, len(w.policies))
		costs := make([]int64, len(w.policies))
		key := w.drawKey()
		for i := range keys {
			keys[i], costs[i] = key, w.drawCost(&w.policies[i])
			if rapid.IntRange(0, 3).Draw(w.rt, "own key") == 0 {
				keys[i] = w.drawKey()
			}
		}
		if rapid.IntRange(0, 19).Draw(w.rt, "reset") == 0 {
			w.reset(keys)
		}
		w.call(keys, costs)
	}
}

func (w *world) drawKey() string {
	return rapid.SampledFrom([]string{"a", "b", "a key of more than twenty-four bytes"}).Draw(w.rt, "key")
}

func (w *world) drawCost(p *ratelimit.Policy) int64 {
	return rapid.OneOf(
		rapid.Just(int64(1)),
		rapid.Int64Range(0, 3),
		rapid.Int64Range(0, p.Capacity()),
		rapid.Just(p.Capacity()+1),
	).Draw(w.rt, "cost")
}

// move moves the clock, mostly forward, and often to where something ends.
func (w *world) move() {
	window := w.policies[rapid.IntRange(0, len(w.policies)-1).Draw(w.rt, "window of")].Window.Microseconds()
	switch rapid.IntRange(0, 9).Draw(w.rt, "move") {
	case 0, 1, 2:
	case 3, 4:
		w.setTime(w.now + rapid.Int64Range(0, window).Draw(w.rt, "forward"))
	case 5, 6, 7:
		if n := len(w.events); n > 0 {
			at := w.events[rapid.IntRange(max(0, n-4), n-1).Draw(w.rt, "event")]
			w.setTime(at + rapid.Int64Range(-1, 1).Draw(w.rt, "off by"))
		}
	case 8:
		w.setTime(w.now - rapid.Int64Range(0, window).Draw(w.rt, "back"))
	case 9:
		w.setTime(w.now + rapid.Int64Range(-3*window, 3*window).Draw(w.rt, "jump"))
	}
}

func (w *world) reset(keys []string) {
	bytes := make([][]byte, len(keys))
	for i, key := range keys {
		bytes[i] = []byte(key)
		w.beliefs(i, key).of = []history{nil}
	}
	if err := w.gate.Reset(context.Background(), bytes...); err != nil {
		w.rt.Fatal(err)
	}
}

// call makes one call, and compares it with what the oracle says.
func (w *world) call(keys []string, costs []int64) {
	charges := make([]ratelimit.Charge, len(keys))
	before := make([][]byte, len(keys))
	moves := make([]bool, len(keys)) // with a clock that was set back for good
	expectError, allowed := false, true
	for i, key := range keys {
		p := &w.policies[i]
		charges[i] = ratelimit.Charge{Key: []byte(key), Cost: costs[i]}
		if costs[i] > p.Capacity() {
			expectError = expectError || p.Mode == ratelimit.Enforce
			continue
		}
		w.peek(i, key, costs[i])
		if !w.beliefs(i, key).admits(w.now, costs[i]) && p.Mode == ratelimit.Enforce {
			allowed = false
		}
		moves[i] = w.beliefs(i, key).moves(w.now)
		before[i] = w.dump(i, key)
	}
	d, err := w.gate.Take(context.Background(), charges...)
	if expectError {
		if !errors.Is(err, ratelimit.ErrCost) {
			w.rt.Fatalf("costs %v: error %v, want %v", costs, err, ratelimit.ErrCost)
		}
		return
	}
	if err != nil {
		w.rt.Fatal(err)
	}
	w.compare(d, keys, costs, allowed)
	for i, key := range keys {
		if after := w.dump(i, key); !allowed && !moves[i] && costs[i] <= w.policies[i].Capacity() && !w.unchanged(i, key, before[i], after) {
			w.rt.Fatalf("G2: a refusal changed the state of %+v from %x to %x", w.policies[i], before[i], after)
		}
	}
}

// compare checks the decision of a call, and notes it.
func (w *world) compare(d ratelimit.Decision, keys []string, costs []int64, allowed bool) {
	want := ratelimit.Decision{Allowed: allowed}
	found := false
	var mode ratelimit.Mode
	for i, key := range keys {
		p := &w.policies[i]
		o := ratelimit.Outcome{RetryAfter: ratelimit.Never}
		asked := costs[i] <= p.Capacity()
		if asked {
			b := w.beliefs(i, key)
			ok := b.admits(w.now, costs[i])
			var at int64
			at, o = b.decide(w.now, costs[i], ok, ok && allowed)
			w.events = append(w.events, at+o.ResetAfter.Microseconds())
			if !ok {
				w.events = append(w.events, at+o.RetryAfter.Microseconds())
			}
		}
		if p.Mode == ratelimit.Shadow {
			want.Shadow = want.Shadow || !o.Allowed
		}
		if !allowed && (o.Allowed || p.Mode == ratelimit.Shadow) {
			continue
		}
		better := !found || p.Mode == ratelimit.Enforce && mode == ratelimit.Shadow
		if found && p.Mode == mode {
			better = allowed && o.Remaining < want.Remaining || !allowed && o.RetryAfter > want.RetryAfter
		}
		if better {
			found, mode = true, p.Mode
			want.Policy, want.Limit, want.Remaining = p.ID, p.Capacity(), o.Remaining
			want.RetryAfter, want.ResetAt = o.RetryAfter, time.Time{}
			if allowed {
				want.RetryAfter = 0
			}
			if asked {
				want.ResetAt = time.UnixMicro(w.now).Add(o.ResetAfter)
			}
		}
	}
	if !d.ResetAt.Equal(want.ResetAt) {
		w.rt.Fatalf("costs %v for %q at %d of %+v: ResetAt %v, want %v", costs, keys, w.now, w.policies, d.ResetAt, want.ResetAt)
	}
	d.ResetAt = want.ResetAt
	if d != want {
		w.rt.Fatalf("costs %v for %q at %d of %+v:\n got %+v\nwant %+v", costs, keys, w.now, w.policies, d, want)
	}
}

// peek peeks at a policy alone, and narrows the beliefs by what it says.
func (w *world) peek(i int, key string, cost int64) {
	before := w.dump(i, key)
	d, err := w.singles[i].Peek(context.Background(), ratelimit.Charge{Key: []byte(key), Cost: cost})
	if err != nil {
		w.rt.Fatal(err)
	}
	b := w.beliefs(i, key)
	was := slices.Clone(b.of)
	seen := ratelimit.Outcome{
		Allowed:    d.Allowed && !d.Shadow,
		Remaining:  d.Remaining,
		RetryAfter: d.RetryAfter,
		ResetAfter: d.ResetAt.Sub(time.UnixMicro(w.now)),
	}
	if !b.observe(w.now, cost, seen) {
		w.rt.Fatalf("peek at a cost of %d for %q at %d of %+v: %+v; admitted so far, by one of these histories: %v",
			cost, key, w.now, w.policies[i], d, was)
	}
	if after := w.dump(i, key); !w.unchanged(i, key, before, after) {
		w.rt.Fatalf("G2: a peek changed the state of %+v from %x to %x", w.policies[i], before, after)
	}
}

// unchanged tells whether a state is as it was before, or was dropped because it
// said nothing any more.
func (w *world) unchanged(i int, key string, before, after []byte) bool {
	if len(after) == 0 && slices.ContainsFunc(w.beliefs(i, key).of, func(h history) bool { return len(h) == 0 }) {
		return true
	}
	return bytes.Equal(before, after)
}

func (w *world) dump(i int, key string) []byte {
	if w.s.Dump == nil {
		return nil
	}
	if w.policies[i].Global {
		key = ""
	}
	return bytes.Clone(w.s.Dump(&w.policies[i], key))
}

// checkWaits fills a policy in some way until it refuses.
func checkWaits(rt *rapid.T, s Subject) {
	p := drawPolicy(rt, rapid.SampledFrom(algorithms).Draw(rt, "algorithm"))
	w := newWorld(rt, s, []ratelimit.Policy{p})
	ctx, key := context.Background(), []byte("k")
	cost := rapid.Int64Range(1, p.Capacity()).Draw(rt, "cost")
	take := func(cost int64) ratelimit.Decision {
		d, err := w.gate.Take(ctx, ratelimit.Charge{Key: key, Cost: cost})
		if err != nil {
			rt.Fatal(err)
		}
		return d
	}
	d := take(cost)
	for d.Allowed {
		w.setTime(w.now + rapid.Int64Range(0, p.Window.Microseconds()/4).Draw(rt, "pause"))
		if cost = rapid.Int64Range(1, p.Capacity()).Draw(rt, "cost"); cost > d.Remaining/2 {
			cost = p.Capacity()
		}
		d = take(cost)
	}
	bound := micros(longest(&p))
	if d.RetryAfter <= 0 || d.RetryAfter > bound {
		rt.Fatalf("G7: %+v: RetryAfter %v is not in (0, %v]", p, d.RetryAfter, bound)
	}
	if d.Remaining >= cost {
		rt.Fatalf("G3: %+v: refused %d while %d remain", p, cost, d.Remaining)
	}
	refused := w.now
	w.setTime(refused + d.RetryAfter.Microseconds() - 1)
	if again := take(cost); again.Allowed || again.RetryAfter != time.Microsecond {
		rt.Fatalf("G6: %+v: a tick before RetryAfter: %+v", p, again)
	}
	back := rapid.Int64Range(0, 3*p.Window.Microseconds()).Draw(rt, "back")
	w.setTime(refused - back)
	if again := take(cost); again.RetryAfter > bound {
		rt.Fatalf("G7: %+v: RetryAfter %v is above %v after the clock was set back by %d µs", p, again.RetryAfter, bound, back)
	}
	if back <= p.Window.Microseconds() {
		w.setTime(refused + d.RetryAfter.Microseconds())
		if again := take(cost); !again.Allowed {
			rt.Fatalf("G5: %+v: after RetryAfter: %+v", p, again)
		}
	}
	if err := w.gate.Reset(ctx, key); err != nil {
		rt.Fatal(err)
	}
	if first := take(p.Capacity()); !first.Allowed || first.Remaining != 0 {
		rt.Fatalf("G12: %+v: all of it after a Reset: %+v", p, first)
	}
}

// checkNumbers draws policies from all that are valid, and any cost.
func checkNumbers(rt *rapid.T, s Subject) {
	p := unique(ratelimit.Policy{
		Algorithm: rapid.SampledFrom(algorithms).Draw(rt, "algorithm"),
		Limit:     rapid.Int64Range(1, ratelimit.MaxLimit).Draw(rt, "limit"),
		Window:    time.Duration(rapid.Int64Range(1_000_000, ratelimit.MaxWindow.Microseconds()).Draw(rt, "window")) * time.Microsecond,
	})
	switch p.Algorithm {
	case ratelimit.SlidingLog:
		p.Limit = min(p.Limit, ratelimit.MaxLogLimit)
	case ratelimit.TokenBucket:
		p.Burst = rapid.Int64Range(1, ratelimit.MaxLimit).Draw(rt, "burst")
		for p.Validate() != nil {
			p.Burst = (p.Burst + 1) / 2
			p.Limit = (p.Limit + 1) / 2
		}
	}
	w := newWorld(rt, s, []ratelimit.Policy{p})
	key := "k"
	for range rapid.IntRange(1, 20).Draw(rt, "steps") {
		if rapid.Bool().Draw(rt, "time goes on") {
			w.setTime(rapid.Int64Range(firstTime, lastTime).Draw(rt, "time"))
		}
		cost := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-1, p.Capacity()+1)).Draw(rt, "cost")
		if cost >= 0 {
			w.call([]string{key}, []int64{cost})
			continue
		}
		if _, err := w.gate.Take(context.Background(), ratelimit.Charge{Key: []byte(key), Cost: cost}); !errors.Is(err, ratelimit.ErrCost) {
			rt.Fatalf("cost %d: %v, want %v", cost, err, ratelimit.ErrCost)
		}
	}
}
