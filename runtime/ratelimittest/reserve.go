package ratelimittest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"pgregory.net/rapid"
)

// agenda is the past of a key with what is to come: calls that were reserved, and until
// when the key is blocked. Like the rest of the oracle it goes by the definition:
//
//   - a reserved call is a call at its time, no more and no less;
//   - until it has come, its cost counts as if it had been charged already. A bucket
//     with a warmup, which does not add costs up, admits nothing before it;
//   - a call is reserved for the first time at which it is admitted beside the others.
type agenda struct {
	past  past
	ahead []charge // by time
	block int64
}

// due returns the agenda at t, with what has come until then.
func (g agenda) due(p *ratelimit.Policy, t int64) agenda {
	for len(g.ahead) > 0 && g.ahead[0].at <= t {
		c := g.ahead[0]
		g.ahead = g.ahead[1:]
		g.past = g.past.charged(p, c.at, c.asked, 0)
	}
	return g
}

func (g agenda) admits(p *ratelimit.Policy, t int64, a asked) bool {
	g = g.due(p, t)
	if t < g.block || g.past.locked(t) {
		return false
	}
	return g.fits(p, t, a)
}

// fits is admits but for blocks and locks.
func (g agenda) fits(p *ratelimit.Policy, t int64, a asked) bool {
	g = g.due(p, t)
	for _, c := range g.ahead {
		if p.Warmup == 0 {
			a.cost += c.cost
		} else if a.cost > 0 {
			return false
		}
	}
	h := g.past
	if !h.known() {
		h.charges = h.born(p, t, a)
	}
	return a.cost <= a.capacity && h.charges.sum(p).admits(t, a)
}

// begun returns the agenda of a key that is looked at first at t.
func (g agenda) begun(p *ratelimit.Policy, t int64, a asked) agenda {
	if !g.past.known() {
		g.past.charges = g.past.born(p, t, a)
	}
	return g
}

// booked returns the agenda with a call that is to come. Where calls were cancelled, it
// may come before one that was reserved earlier.
func (g agenda) booked(c charge) agenda {
	i := len(g.ahead)
	for i > 0 && g.ahead[i-1].at > c.at {
		i--
	}
	g.ahead = slices.Insert(slices.Clone(g.ahead), i, c)
	return g
}

// earliest returns after how long a call is admitted.
func (g agenda) earliest(p *ratelimit.Policy, t int64, a asked) int64 {
	g = g.begun(p, t, a)
	return least(horizon, func(d int64) bool { return g.fits(p, t+d, a) })
}

func (g agenda) fresh(p *ratelimit.Policy, t int64) bool {
	g = g.due(p, t)
	return len(g.ahead) == 0 && t >= g.block && g.past.fresh(p, t)
}

// settled returns the agenda that a decision at t is made on. Unless something is to
// come, what says nothing any more is forgotten.
func (g agenda) settled(p *ratelimit.Policy, t int64) agenda {
	g = g.due(p, t)
	switch {
	case g.fresh(p, t):
		return agenda{}
	case len(g.ahead) == 0 && g.past.fresh(p, t):
		return agenda{block: g.block}
	}
	return g
}

func (g agenda) outcome(p *ratelimit.Policy, t int64, a asked, allowed bool) ratelimit.Outcome {
	o := ratelimit.Outcome{Allowed: allowed}
	if g.past.known() || len(g.ahead) > 0 || g.block > t {
		o.ResetAfter = micros(least(horizon, func(d int64) bool { return g.fresh(p, t+d) }))
	}
	g = g.begun(p, t, a)
	o.Remaining = least(a.capacity, func(n int64) bool { return !g.admits(p, t, asked{n + 1, a.limit, a.capacity}) })
	if !allowed {
		o.RetryAfter = micros(least(horizon, func(d int64) bool { return g.admits(p, t+d, a) }))
	}
	return o
}

// cancelled returns the agenda without a call that is to come. Of one whose absence
// would have a later one come too early, nothing is given back.
func (g agenda) cancelled(p *ratelimit.Policy, call int) agenda {
	i := slices.IndexFunc(g.ahead, func(c charge) bool { return c.call == call })
	if i < 0 {
		return g
	}
	without := g
	without.ahead = slices.Delete(slices.Clone(g.ahead), i, i+1)
	stands := func(g agenda) map[int]bool {
		m := map[int]bool{}
		for h, rest := g.past, g.ahead; len(rest) > 0; rest = rest[1:] {
			c := rest[0]
			m[c.call] = h.charges.sum(p).admits(c.at, c.asked)
			h = h.charged(p, c.at, c.asked, 0)
		}
		return m
	}
	with := stands(g)
	for call, ok := range stands(without) {
		if with[call] && !ok {
			return g
		}
	}
	return without
}

// horizon is more than any wait here.
const horizon = 1 << 32

// reservable draws a policy that can be reserved ahead, with numbers small enough for
// limits to be met.
func reservable(rt *rapid.T, name string) ratelimit.Policy {
	p := ratelimit.Policy{
		ID: name,
		Algorithm: rapid.SampledFrom([]ratelimit.Algorithm{
			ratelimit.SlidingLog, ratelimit.SlidingWindow, ratelimit.FixedWindow, ratelimit.TokenBucket,
		}).Draw(rt, "algorithm"),
		Limit:  rapid.Int64Range(1, 6).Draw(rt, "limit"),
		Window: time.Duration(rapid.Int64Range(10, 60).Draw(rt, "window")) * time.Microsecond,
	}
	switch p.Algorithm {
	case ratelimit.SlidingWindow:
		p.Segments = rapid.IntRange(2, 4).Draw(rt, "segments")
	case ratelimit.FixedWindow:
		if rapid.IntRange(0, 4).Draw(rt, "align") == 0 {
			p.Window, p.Align = 0, ratelimit.AlignSecond
		}
	case ratelimit.TokenBucket:
		switch rapid.IntRange(0, 5).Draw(rt, "kind") {
		case 0:
			p.Warmup = time.Duration(rapid.Int64Range(10, 100).Draw(rt, "warmup")) * time.Microsecond
		case 1:
			p.Refill = ratelimit.Interval
		case 2:
			p.Initial = rapid.Int64Range(-1, 1).Draw(rt, "initial")
			p.Window = 10 * p.Window
		}
		if p.Warmup == 0 {
			p.Burst = rapid.Int64Range(1, 6).Draw(rt, "burst")
		}
	}
	if rapid.IntRange(0, 4).Draw(rt, "lock") == 0 {
		p.Lock = []time.Duration{time.Duration(rapid.Int64Range(1, 40).Draw(rt, "lock for")) * time.Microsecond}
	}
	return p
}

// reserving runs a limiter beside the oracle, with calls that are reserved.
type reserving struct {
	rt       *rapid.T
	setTime  func(us int64)
	now      int64
	policies []ratelimit.Policy
	gate     *ratelimit.Gate
	agendas  map[state]agenda
	made     []made
	calls    int
}

// made is a reservation.
type made struct {
	ratelimit.Reservation
	call int
	keys []string
}

func newReserving(rt *rapid.T, s Subject, policies []ratelimit.Policy) *reserving {
	r := &reserving{rt: rt, setTime: s.SetTime, now: epoch, policies: policies, agendas: map[state]agenda{}}
	r.setTime(r.now)
	var err error
	if r.gate, err = s.Limiter.Gate(&ratelimit.Spec{Policies: policies}); err != nil {
		rt.Fatal(err)
	}
	return r
}

func (r *reserving) agenda(i int, key string) agenda {
	return r.agendas[state{i, key}].settled(&r.policies[i], r.now)
}

// decide does what a call that can wait for so long does, and compares it. A negative
// wait is that of a Take.
func (r *reserving) decide(keys []string, costs []int64, within int64, peek bool) {
	var charges []ratelimit.Charge
	var wait int64
	asks := make([]asked, len(keys))
	alone := make([]int64, len(keys)) // after how long each admits it
	for i, key := range keys {
		p := &r.policies[i]
		charges = append(charges, ratelimit.Charge{Key: []byte(key), Cost: costs[i]})
		asks[i] = ask(p, costs[i])
		g := r.agenda(i, key)
		if alone[i] = g.earliest(p, r.now, asks[i]); r.now < g.block || g.past.locked(r.now) {
			alone[i] = longest
		}
		wait = max(wait, alone[i])
	}
	allowed := wait <= max(within, 0)
	var d ratelimit.Decision
	var m made
	var err error
	switch {
	case peek:
		d, err = r.gate.Peek(context.Background(), charges...)
	case within < 0:
		d, err = r.gate.Take(context.Background(), charges...)
	default:
		m.Reservation, err = r.gate.ReserveWithin(context.Background(), micros(within), charges...)
		d = m.Decision()
		if m.OK() != d.Allowed || m.Delay() != d.Delay {
			r.rt.Fatalf("%t and %v of %+v", m.OK(), m.Delay(), d)
		}
	}
	if err != nil {
		r.rt.Fatal(err)
	}
	r.calls++
	want := ratelimit.Decision{Allowed: allowed}
	if allowed && within >= 0 {
		want.Delay = micros(wait)
	}
	found := false
	for i, key := range keys {
		p, a, id := &r.policies[i], asks[i], state{i, key}
		g := r.agenda(i, key)
		ok := alone[i] <= max(within, 0)
		after := g
		switch {
		case peek || a.cost == 0:
		case allowed && wait == 0:
			after.past = g.past.charged(p, r.now, a, 0)
		case allowed:
			after = g.begun(p, r.now, a).booked(charge{at: r.now + wait, cost: a.cost, units: a.cost, asked: a, call: r.calls})
		case !ok && r.now >= g.block:
			after.past = g.past.refused(p, r.now, a)
		}
		r.agendas[id] = after
		o := after.outcome(p, r.now, a, ok)
		if !ok && within >= 0 {
			o.RetryAfter = r.retry(p, after, a, within)
		}
		if !allowed && ok {
			continue
		}
		if better := allowed && o.Remaining < want.Remaining || !allowed && o.RetryAfter > want.RetryAfter; !found || better {
			found = true
			want.Policy, want.Limit, want.Remaining = p.ID, a.capacity, o.Remaining
			want.RetryAfter, want.ResetAt = o.RetryAfter, time.UnixMicro(r.now).Add(o.ResetAfter)
		}
	}
	if !d.ResetAt.Equal(want.ResetAt) || !same(d, want) {
		r.rt.Fatalf("call %d of %v for %q at %d within %d of %+v:\n got %+v\nwant %+v\nagendas %+v", r.calls, costs, keys, r.now, within, r.policies, d, want, r.agendas)
	}
	if allowed && within >= 0 && !peek {
		m.call, m.keys = r.calls, keys
		r.made = append(r.made, m)
	}
}

func same(d, e ratelimit.Decision) bool {
	d.ResetAt, e.ResetAt = time.Time{}, time.Time{}
	return d == e
}

// retry returns after how long a call can be reserved that can wait for so long.
func (r *reserving) retry(p *ratelimit.Policy, g agenda, a asked, within int64) time.Duration {
	g = g.begun(p, r.now, a)
	return micros(least(horizon, func(d int64) bool {
		t := r.now + d
		return t >= g.block && !g.past.locked(t) && g.due(p, t).earliest(p, t, a) <= within
	}))
}

func (r *reserving) cancel(n int) {
	m := r.made[n]
	m.Cancel()
	m.Cancel()
	for i, key := range m.keys {
		r.agendas[state{i, key}] = r.agendas[state{i, key}].due(&r.policies[i], r.now).cancelled(&r.policies[i], m.call)
	}
}

func (r *reserving) block(keys []string, d int64) {
	bytes := make([][]byte, len(keys))
	for i, key := range keys {
		bytes[i] = []byte(key)
		g := r.agenda(i, key)
		if g.block = 0; d > 0 {
			g.block = r.now + d
		}
		r.agendas[state{i, key}] = g
	}
	if err := r.gate.Block(context.Background(), micros(d), bytes...); err != nil {
		r.rt.Fatal(err)
	}
}

func (r *reserving) reset(keys []string) {
	bytes := make([][]byte, len(keys))
	for i, key := range keys {
		bytes[i] = []byte(key)
		r.agendas[state{i, key}] = agenda{}
	}
	if err := r.gate.Reset(context.Background(), bytes...); err != nil {
		r.rt.Fatal(err)
	}
}

func (r *reserving) step() {
	span := int64(60)
	keys := make([]string, len(r.policies))
	costs := make([]int64, len(keys))
	for i := range keys {
		keys[i] = rapid.SampledFrom([]string{"a", "a", "b", "a key of more than twenty-four bytes"}).Draw(r.rt, "key")
		costs[i] = rapid.OneOf(rapid.Just(int64(1)), rapid.Int64Range(0, r.policies[i].Capacity())).Draw(r.rt, "cost")
	}
	switch rapid.IntRange(0, 13).Draw(r.rt, "action") {
	case 0, 1, 2:
		r.now += rapid.OneOf(rapid.Int64Range(0, 5), rapid.Int64Range(0, 3*span)).Draw(r.rt, "forward")
		r.setTime(r.now)
	case 3, 4:
		if len(r.made) > 0 {
			r.cancel(rapid.IntRange(max(0, len(r.made)-5), len(r.made)-1).Draw(r.rt, "which"))
		}
	case 5:
		if rapid.Bool().Draw(r.rt, "block") {
			r.block(keys, rapid.Int64Range(0, span).Draw(r.rt, "for"))
		}
	case 6:
		if rapid.IntRange(0, 3).Draw(r.rt, "reset") == 0 {
			r.reset(keys)
		}
	case 7:
		r.decide(keys, costs, -1, true)
	case 8, 9:
		r.decide(keys, costs, -1, false)
	default:
		r.decide(keys, costs, rapid.OneOf(rapid.Just(int64(1e8)), rapid.Int64Range(0, 3*span)).Draw(r.rt, "within"), false)
	}
}

// checkReservations has calls of n policies reserved, cancelled, made and blocked in any
// order. They are decided as the oracle decides them, to the microsecond.
func checkReservations(t *testing.T, h Harness, n int) {
	rapid.Check(t, func(rt *rapid.T) {
		var policies []ratelimit.Policy
		for i := range n {
			p := unique(reservable(rt, fmt.Sprint("p", i)))
			if !h.Reserves(&p) {
				rt.Skip("a policy that cannot be reserved")
			}
			policies = append(policies, p)
		}
		r := newReserving(rt, h.New(t), policies)
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			r.step()
		}
	})
}
