package ratelimittest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"pgregory.net/rapid"
)

// world is a subject beside the oracle's beliefs of it.
type world struct {
	t        *testing.T
	rt       *rapid.T
	s        Subject
	now      int64
	policies []ratelimit.Policy
	gate     *ratelimit.Gate   // of all policies
	singles  []*ratelimit.Gate // of each policy
	states   map[state]*beliefs
	events   []int64 // times at which something ends
	permits  bool    // calls have an end
	running  []*running
	calls    int
}

type state struct {
	policy int
	key    string
}

// running is a call that was admitted.
type running struct {
	permit   ratelimit.Permit
	number   int
	began    int64
	keys     []string
	asks     []asked
	admitted []bool // by policy
}

func newWorld(t *testing.T, rt *rapid.T, s Subject, policies []ratelimit.Policy) *world {
	w := &world{t: t, rt: rt, s: s, policies: policies, states: map[state]*beliefs{}}
	w.gate = w.newGate(policies)
	for i := range policies {
		p := &policies[i]
		w.singles = append(w.singles, w.newGate(policies[i:i+1]))
		w.permits = w.permits || ends(p) || p.CostAfter
	}
	w.permits = w.permits || s.After && rapid.Bool().Draw(rt, "permits")
	w.setTime((firstTime + lastTime) / 2)
	return w
}

func ends(p *ratelimit.Policy) bool {
	return p.Count || p.Algorithm == ratelimit.Concurrency || p.Algorithm == ratelimit.TimeQuota
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
		w.states[id].rough = !w.s.After
	}
	return w.states[id]
}

func (w *world) run() {
	for range rapid.IntRange(1, 40).Draw(w.rt, "steps") {
		w.move()
		if w.end() {
			continue
		}
		keys := make([]string, len(w.policies))
		asks := make([]asked, len(w.policies))
		key := w.drawKey()
		for i := range keys {
			keys[i], asks[i] = key, w.drawAsk(&w.policies[i])
			if rapid.IntRange(0, 3).Draw(w.rt, "own key") == 0 {
				keys[i] = w.drawKey()
			}
		}
		if rapid.IntRange(0, 19).Draw(w.rt, "reset") == 0 {
			w.reset(keys)
		}
		w.call(keys, asks)
	}
}

func (w *world) drawKey() string {
	return rapid.SampledFrom([]string{"a", "b", "a key of more than twenty-four bytes"}).Draw(w.rt, "key")
}

func (w *world) drawAsk(p *ratelimit.Policy) asked {
	a := ask(p, 0)
	if p.Dynamic {
		a.limit = rapid.OneOf(rapid.Int64Range(1, 5), rapid.Int64Range(1, 4096)).Draw(w.rt, "limit")
		if p.Algorithm == ratelimit.TimeQuota {
			a.limit = rapid.Int64Range(1, p.Window.Microseconds()).Draw(w.rt, "µs")
		}
		if a.capacity = a.limit; p.Burst > 0 {
			a.capacity = p.Burst
		}
	}
	most := a.most(p)
	a.cost = rapid.OneOf(
		rapid.Just(int64(1)),
		rapid.Int64Range(0, 3),
		rapid.Int64Range(0, most),
		rapid.Just(most+1),
	).Draw(w.rt, "cost")
	return a
}

// move moves the clock, mostly forward, and often to where something ends.
func (w *world) move() {
	p := &w.policies[rapid.IntRange(0, len(w.policies)-1).Draw(w.rt, "window of")]
	window := windowOf(p)
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
		w.setTime(w.now - rapid.OneOf(
			rapid.Int64Range(0, window),
			rapid.Int64Range(0, movesAfter(p)),
			rapid.Int64Range(movesAfter(p)-1, movesAfter(p)+1),
		).Draw(w.rt, "back"))
	case 9:
		w.setTime(w.now + rapid.Int64Range(-3*window, 3*window).Draw(w.rt, "jump"))
	}
}

func (w *world) reset(keys []string) {
	bytes := make([][]byte, len(keys))
	for i, key := range keys {
		bytes[i] = []byte(key)
		w.beliefs(i, key).of = []past{{}}
	}
	if err := w.gate.Reset(context.Background(), bytes...); err != nil {
		w.rt.Fatal(err)
	}
}

// end ends one of the running calls, or charges it more, and tells whether it did.
func (w *world) end() bool {
	if len(w.running) == 0 || rapid.IntRange(0, 2).Draw(w.rt, "end") > 0 {
		return false
	}
	n := rapid.IntRange(0, len(w.running)-1).Draw(w.rt, "which")
	r := w.running[n]
	if rapid.IntRange(0, 3).Draw(w.rt, "charge") == 0 {
		w.chargeAfter(r)
		return true
	}
	w.running = slices.Delete(w.running, n, n+1)
	for i := range w.policies {
		p := &w.policies[i]
		b := w.beliefs(i, r.keys[i])
		keep := rapid.IntRange(0, 3).Draw(w.rt, "keep") == 0
		if keep {
			r.permit.Keep(i)
		}
		if !ends(p) || !r.admitted[i] {
			continue
		}
		b.each(func(h past) past {
			switch {
			case p.Algorithm == ratelimit.TimeQuota && (keep || !p.Count):
				return h.finished(r.number, max(0, w.now-r.began))
			case p.Algorithm == ratelimit.TimeQuota, p.Count && keep:
				return h
			}
			return h.gaveBack(p, r.number)
		})
		b.seen(w.now)
	}
	r.permit.Release()
	r.permit.Release()
	w.settle(r)
	return true
}

// settle asks for what has happened to a call to have happened: a decision comes after
// what was given back before under its keys.
func (w *world) settle(r *running) {
	for i, gate := range w.singles {
		if _, err := gate.Peek(context.Background(), w.charge(i, r.keys[i], asked{limit: 1})); err != nil {
			w.rt.Fatal(err)
		}
	}
}

// chargeAfter charges a running call more.
func (w *world) chargeAfter(r *running) {
	for i := range w.policies {
		p := &w.policies[i]
		most := r.asks[i].capacity
		if p.Algorithm == ratelimit.TokenBucket {
			most = min(most, (1<<51)/p.Window.Microseconds())
		}
		units := rapid.Int64Range(-1, 2*most).Draw(w.rt, "units")
		r.permit.Charge(i, units)
		if units <= 0 || !r.admitted[i] || !w.s.After && !p.CostAfter || p.Warmup > 0 || p.Algorithm == ratelimit.LeakyBucket ||
			p.Algorithm == ratelimit.Concurrency || p.Algorithm == ratelimit.TimeQuota {
			continue
		}
		a := r.asks[i]
		if !p.Dynamic {
			a = ask(p, 0) // the policy may have been updated
		}
		a.cost = units
		w.beliefs(i, r.keys[i]).decide(w.now, a, true, true, 0)
	}
	w.settle(r)
}

// call makes one call, and compares it with what the oracle says.
func (w *world) call(keys []string, asks []asked) {
	charges := make([]ratelimit.Charge, len(keys))
	before := make([][]byte, len(keys))
	still := make([]bool, len(keys)) // a refusal leaves the state as it is
	expectError, allowed := false, true
	for i, key := range keys {
		p := &w.policies[i]
		charges[i] = w.charge(i, key, asks[i])
		if asks[i].cost > asks[i].most(p) {
			expectError = expectError || p.Mode == ratelimit.Enforce
			continue
		}
		w.peek(i, key, asks[i])
		b := w.beliefs(i, key)
		admits := b.admits(w.now, asks[i])
		if !admits && p.Mode == ratelimit.Enforce {
			allowed = false
		}
		still[i] = !b.moves(w.now) && (admits || len(p.Lock) == 0 && !beginsShort(p))
		before[i] = w.dump(i, key)
	}
	d, permit, err := w.take(charges)
	if expectError {
		if !errors.Is(err, ratelimit.ErrCost) {
			w.rt.Fatalf("asked %v: error %v, want %v", asks, err, ratelimit.ErrCost)
		}
		return
	}
	if err != nil {
		w.rt.Fatal(err)
	}
	w.calls++
	admitted := w.compare(d, keys, asks, allowed)
	for i, key := range keys {
		if after := w.dump(i, key); !allowed && still[i] && !w.unchanged(i, key, before[i], after) {
			w.rt.Fatalf("G2: a refusal changed the state of %+v from %s to %s", w.policies[i], before[i], after)
		}
	}
	if allowed && w.permits {
		w.running = append(w.running, &running{permit, w.calls, w.now, keys, asks, admitted})
	}
}

func (w *world) charge(i int, key string, a asked) ratelimit.Charge {
	c := ratelimit.Charge{Key: []byte(key), Cost: a.cost}
	if w.policies[i].Dynamic {
		c.Limit = a.limit
	}
	return c
}

// take makes a call. Of one with a permit, only the decision of a refusal is known.
func (w *world) take(charges []ratelimit.Charge) (ratelimit.Decision, ratelimit.Permit, error) {
	ctx := context.Background()
	if !w.permits {
		d, err := w.gate.Take(ctx, charges...)
		return d, ratelimit.Permit{}, err
	}
	var permit ratelimit.Permit
	var err error
	if slices.ContainsFunc(w.policies, func(p ratelimit.Policy) bool { return p.Algorithm == ratelimit.LeakyBucket }) {
		// The call waits for its turn, by a time that has nothing to do with the clock.
		synctest.Test(w.t, func(*testing.T) { permit, err = w.gate.Acquire(ctx, charges) })
	} else {
		permit, err = w.gate.Acquire(ctx, charges)
	}
	var e *ratelimit.Error
	if errors.As(err, &e) && e.Kind == ratelimit.ErrLimited {
		return e.Decision, permit, nil
	}
	return ratelimit.Decision{Allowed: true}, permit, err
}

// compare checks the decision of a call, and notes it. It returns by which policies
// the call was admitted.
func (w *world) compare(d ratelimit.Decision, keys []string, asks []asked, allowed bool) []bool {
	want := ratelimit.Decision{Allowed: allowed}
	found := false
	var mode ratelimit.Mode
	admitted := make([]bool, len(keys))
	for i, key := range keys {
		p := &w.policies[i]
		a := asks[i]
		o := ratelimit.Outcome{RetryAfter: ratelimit.Never}
		asked := a.cost <= a.most(p)
		if asked {
			b := w.beliefs(i, key)
			ok := b.admits(w.now, a)
			admitted[i] = ok
			says := w.narrow(i, key, a, b.decide(w.now, a, ok, ok && allowed, w.calls))
			o = says.Outcome
			w.events = append(w.events, says.at+o.ResetAfter.Microseconds())
			if !ok {
				w.events = append(w.events, says.at+o.RetryAfter.Microseconds())
			}
		}
		if !w.s.After {
			o = roughly(o)
		}
		if p.Mode == ratelimit.Shadow {
			want.Shadow = want.Shadow || !o.Allowed
		}
		if allowed && p.Mode == ratelimit.Enforce {
			want.Delay = max(want.Delay, o.Delay)
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
			want.Policy, want.Limit, want.Remaining = p.ID, a.capacity, o.Remaining
			want.RetryAfter, want.ResetAt = o.RetryAfter, time.Time{}
			if allowed {
				want.RetryAfter = 0
			}
			if asked {
				want.ResetAt = time.UnixMicro(w.now).Add(o.ResetAfter)
			}
		}
	}
	if allowed && w.permits {
		if !d.Allowed {
			w.rt.Fatalf("asked %v for %q at %d of %+v: refused by %+v", asks, keys, w.now, w.policies, d)
		}
		return admitted
	}
	if !w.s.After {
		d = w.roughly(d)
	}
	if !d.ResetAt.Equal(want.ResetAt) {
		w.rt.Fatalf("asked %v for %q at %d of %+v: ResetAt %v, want %v", asks, keys, w.now, w.policies, d.ResetAt, want.ResetAt)
	}
	d.ResetAt = want.ResetAt
	if d != want {
		w.rt.Fatalf("asked %v for %q at %d of %+v:\n got %+v\nwant %+v", asks, keys, w.now, w.policies, d, want)
	}
	return admitted
}

// roughly is what a store may say in place of d.
func (w *world) roughly(d ratelimit.Decision) ratelimit.Decision {
	now := time.UnixMicro(w.now)
	o := ratelimit.Outcome{RetryAfter: d.RetryAfter}
	if !d.ResetAt.IsZero() {
		o.ResetAfter = d.ResetAt.Sub(now)
	}
	o = roughly(o)
	d.RetryAfter = o.RetryAfter
	if !d.ResetAt.IsZero() {
		d.ResetAt = now.Add(o.ResetAfter)
	}
	return d
}

// peek peeks at a policy alone, and narrows the beliefs by what it says.
func (w *world) peek(i int, key string, a asked) {
	before := w.dump(i, key)
	b := w.beliefs(i, key)
	was := slices.Clone(b.of)
	d, seen := w.look(i, key, a)
	if !b.observe(w.now, a, seen) {
		for j := range was {
			h, t := was[j].settle(b.policy, w.now)
			w.rt.Logf("believed at %d: %+v", t, h.outcome(b.policy, t, a, b.admitsBy(h, t, a)))
		}
		w.rt.Fatalf("peek with %+v for %q at %d of %+v: %+v; admitted so far, by one of these histories: %+v",
			a, key, w.now, w.policies[i], d, was)
	}
	if after := w.dump(i, key); !w.unchanged(i, key, before, after) {
		w.rt.Fatalf("G2: a peek changed the state of %+v from %s to %s", w.policies[i], before, after)
	}
}

// look peeks at a policy alone.
func (w *world) look(i int, key string, a asked) (ratelimit.Decision, ratelimit.Outcome) {
	d, err := w.singles[i].Peek(context.Background(), w.charge(i, key, a))
	if err != nil {
		w.rt.Fatal(err)
	}
	return d, ratelimit.Outcome{
		Allowed:    d.Allowed && !d.Shadow,
		Remaining:  d.Remaining,
		RetryAfter: d.RetryAfter,
		ResetAfter: d.ResetAt.Sub(time.UnixMicro(w.now)),
		Delay:      d.Delay,
	}
}

// narrow returns what is said of a decision by the beliefs that are left after another
// look: what a peek before told of all of them alike, such as how often a key was locked,
// can make a difference to a decision.
func (w *world) narrow(i int, key string, a asked, says []said) said {
	b := w.beliefs(i, key)
	if len(b.of) == 1 {
		return says[0]
	}
	d, seen := w.look(i, key, a)
	var left []past
	var leftSays []said
	for j, h := range b.of {
		if b.agrees(h, w.now, a, seen) {
			left, leftSays = append(left, h), append(leftSays, says[j])
		}
	}
	if len(left) == 0 {
		w.rt.Fatalf("after a decision, peek with %+v for %q at %d of %+v: %+v; by one of these histories: %+v",
			a, key, w.now, w.policies[i], d, b.of)
	}
	b.of = left
	return leftSays[0]
}

// unchanged tells whether a state is as it was before, or was dropped because it
// said nothing any more.
func (w *world) unchanged(i int, key string, before, after []byte) bool {
	if len(after) == 0 && slices.ContainsFunc(w.beliefs(i, key).of, func(h past) bool { return !h.known() }) {
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
