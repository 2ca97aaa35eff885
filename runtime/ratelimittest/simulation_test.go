package ratelimittest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"pgregory.net/rapid"
)

// simulation is a world in which more happens: policies are updated, and floods of keys
// come to a limiter that has room for few.
//
// A key that once shared the overflow counter is tainted: what the oracle knows of it
// is no more than what it is admitted at most. All others are decided exactly.
type simulation struct {
	*world
	tainted  map[state]bool
	admitted map[state][]charge
	keys     int
}

// TestSimulation interleaves callers, clocks that step forwards, backwards and far,
// updates, resets, floods, and permits that are released late or never. A failure
// prints the seed, and the flag that repeats it; see also the flags -rapid.checks and
// -rapid.seed, and for all that happened, -rapid.v. One seed is one history.
func TestSimulation(t *testing.T) {
	t.Parallel()
	h := Harness{Supports: func(*ratelimit.Policy) bool { return true }}
	for _, algorithm := range []ratelimit.Algorithm{ratelimit.SlidingLog, ratelimit.FixedWindow, ratelimit.SlidingWindow,
		ratelimit.TokenBucket, ratelimit.LeakyBucket, ratelimit.Concurrency, ratelimit.TimeQuota, "any, with locks"} {
		t.Run(string(algorithm), func(t *testing.T) {
			t.Parallel()
			first := rapid.SampledFrom(h.kinds()).Filter(func(k kind) bool {
				return k.policy.Algorithm == algorithm || k.policy.Algorithm == "" && algorithm == "any, with locks"
			})
			rapid.Check(t, func(rt *rapid.T) {
				policies := []ratelimit.Policy{h.draw(rt, first.Draw(rt, "kind"))}
				for range max(0, rapid.IntRange(-2, 2).Draw(rt, "more policies")) {
					policies = append(policies, h.draw(rt, rapid.SampledFrom(h.kinds()).Draw(rt, "kind")))
				}
				newSimulation(t, rt, policies).run()
			})
		})
	}
}

func newSimulation(t *testing.T, rt *rapid.T, policies []ratelimit.Policy) *simulation {
	clock := new(Clock)
	// So few that they are in one shard, or else what is dropped depends on hashes.
	room := rapid.IntRange(1, 12).Draw(rt, "room")
	subject := Subject{
		Limiter: ratelimit.New(ratelimit.WithClock(clock), ratelimit.WithMaxKeys(room)),
		SetTime: func(us int64) { clock.Set(time.UnixMicro(us)) },
		After:   true,
	}
	return &simulation{
		world:    newWorld(t, rt, subject, policies),
		tainted:  map[state]bool{},
		admitted: map[state][]charge{},
	}
}

func (s *simulation) run() {
	forward := rapid.Bool().Draw(s.rt, "forward only")
	for range rapid.IntRange(1, 100).Draw(s.rt, "steps") {
		before := s.now
		s.move()
		switch {
		case s.now >= before:
		case forward:
			s.setTime(before)
		default:
			clear(s.admitted)
		}
		switch rapid.IntRange(0, 11).Draw(s.rt, "action") {
		case 0:
			s.update(rapid.IntRange(0, len(s.policies)-1).Draw(s.rt, "policy"))
		case 1:
			for range rapid.IntRange(1, 15).Draw(s.rt, "flood") {
				s.keys++
				s.call(fmt.Sprint("flood", s.keys))
			}
		case 2:
			keys := s.sameKeys(s.drawKey())
			s.reset(keys)
			for i, key := range keys {
				delete(s.admitted, state{i, key})
				if !slices.ContainsFunc(s.running, func(r *running) bool { return r.number == 0 && r.keys[i] == key }) {
					delete(s.tainted, state{i, key}) // or else it may be charged more, by who knows which policies
				}
			}
		default:
			s.mayMove()
			s.mayShare() // and looks for room, so that
			s.mayShare() // what is over of the keys that it asked for first is dropped, too
			if !s.end() {
				s.call(s.drawKey())
			}
		}
	}
}

// drawKey draws a key that may have come with a flood.
func (s *simulation) drawKey() string {
	if s.keys > 0 && rapid.Bool().Draw(s.rt, "of a flood") {
		return fmt.Sprint("flood", rapid.IntRange(max(1, s.keys-3), s.keys).Draw(s.rt, "number"))
	}
	return s.world.drawKey()
}

func (s *simulation) sameKeys(key string) []string {
	return slices.Repeat([]string{key}, len(s.policies))
}

// degraded tells whether a call may be decided by the overflow counter. It asks as often
// as it takes to have the limiter drop all that it can: each gate several times in a row,
// as no look drops what it is about, and a few looks at different gates in turn might
// come to the same entries again and again.
func (s *simulation) degraded(charges []ratelimit.Charge) (degraded bool, err error) {
	for range 2 { // again, since what one gate had dropped may be another one's
		for i, gate := range append(s.singles, s.gate) {
			of := charges
			if i < len(charges) {
				of = charges[i : i+1]
			}
			for range 4 { // of 4 entries each, and there is room for 12
				d, err := gate.Peek(s.t.Context(), of...)
				if err != nil {
					return false, err
				}
				degraded = degraded || d.Degraded
			}
		}
	}
	return degraded, nil
}

// call makes one call.
func (s *simulation) call(key string) {
	s.mayMove()
	keys := s.sameKeys(key)
	asks := make([]asked, len(keys))
	charges := make([]ratelimit.Charge, len(keys))
	exact := true
	for i := range keys {
		asks[i] = s.drawAsk(&s.policies[i])
		charges[i] = s.charge(i, key, asks[i])
		exact = exact && !s.tainted[state{i, key}]
	}
	degraded, err := s.degraded(charges)
	if errors.Is(err, ratelimit.ErrCost) {
		return
	}
	if err != nil {
		s.rt.Fatal(err)
	}
	if exact && !degraded {
		s.world.call(keys, asks)
		return
	}
	for i, key := range keys {
		s.tainted[state{i, key}] = true
	}
	d, permit, err := s.take(charges)
	if err != nil {
		s.rt.Fatal(err)
	}
	s.checkSane(d)
	if !d.Allowed {
		return
	}
	if s.permits {
		s.running = append(s.running, &running{permit, 0, s.now, keys, asks, make([]bool, len(keys))})
	}
	for i, key := range keys {
		s.checkBound(i, key, asks[i].cost)
	}
}

// mayMove adds the beliefs that hold if the limiter looks for room, and on its way moves
// what was charged before the clock was set back for good.
func (s *simulation) mayMove() {
	for id, b := range s.states {
		for _, h := range b.of {
			settled, t := h.settle(&s.policies[id.policy], s.now)
			if !settled.known() || h.latest(b.policy) <= t {
				continue
			}
			if !slices.ContainsFunc(b.of, func(h past) bool { return reflect.DeepEqual(h, settled) }) {
				b.of = append(b.of, settled)
			}
		}
	}
}

// mayShare taints the keys of running calls that would be charged more by the overflow
// counter, since their own is over.
func (s *simulation) mayShare() {
	for _, r := range s.running {
		charges := make([]ratelimit.Charge, len(r.keys))
		for i, key := range r.keys {
			charges[i] = s.charge(i, key, asked{limit: 1})
		}
		degraded, err := s.degraded(charges)
		if err != nil {
			s.rt.Fatal(err)
		}
		if !degraded {
			continue
		}
		for i, key := range r.keys {
			s.tainted[state{i, key}] = true
		}
	}
}

func (s *simulation) checkSane(d ratelimit.Decision) {
	if d.Remaining < 0 || d.Remaining > d.Limit || d.RetryAfter < 0 || d.Delay < 0 || d.Allowed && d.RetryAfter != 0 {
		s.rt.Fatalf("%+v", d)
	}
	if !d.Allowed && d.RetryAfter == 0 {
		s.rt.Fatalf("refused, but to be repeated at once: %+v", d)
	}
}

// checkBound notes that a key that is tainted was admitted, and checks that it was not
// admitted more than its policy admits at most. That is so by the time of the clock, as
// long as it is not set back, nothing is given back and the policy stays the same.
func (s *simulation) checkBound(i int, key string, cost int64) {
	p := &s.policies[i]
	plain := p.Algorithm == ratelimit.SlidingLog || p.Algorithm == ratelimit.SlidingWindow ||
		p.Algorithm == ratelimit.TokenBucket && p.Refill == ratelimit.Smooth && p.Warmup == 0
	if !plain || p.Mode != ratelimit.Enforce || p.Dynamic || s.permits {
		return
	}
	id := state{i, key}
	s.admitted[id] = append(s.admitted[id], charge{at: s.now, cost: cost})
	var units int64
	for _, c := range slices.Backward(s.admitted[id]) {
		units += c.cost
		if most := p.Bound().Most(micros(s.now - c.at + 1)); units > most {
			s.rt.Fatalf("%+v admitted %d to %q since %d, at %d, and %d is the most", *p, units, key, c.at, s.now, most)
		}
	}
}

// update changes the limit or the mode of a policy.
func (s *simulation) update(i int) {
	p := s.policies[i]
	var patch ratelimit.Patch
	if rapid.Bool().Draw(s.rt, "mode") {
		patch.Mode = new(rapid.SampledFrom([]ratelimit.Mode{ratelimit.Enforce, ratelimit.Shadow}).Draw(s.rt, "to"))
		p.Mode = *patch.Mode
	} else if p.Dynamic || p.Warmup > 0 || p.Algorithm == ratelimit.TokenBucket && p.Window >= 24*time.Hour {
		return // what a bucket owes is bounded, by about a century
	} else {
		patch.Limit = new(rapid.OneOf(rapid.Int64Range(1, 5), rapid.Int64Range(1, 2*p.Limit), rapid.Int64Range(1, 64)).Draw(s.rt, "to"))
		p.Limit = *patch.Limit
	}
	for id, b := range s.states {
		if id.policy == i && b.moves(s.now) {
			return // with which decision it moves, the store may choose
		}
	}
	err := s.s.Limiter.Update(p.ID, patch)
	if (err == nil) != (p.Validate() == nil) {
		s.rt.Fatalf("an update to %+v: %v", p, err)
	}
	if err != nil {
		return
	}
	old := s.policies[i]
	s.policies[i] = p
	for id, b := range s.states {
		if id.policy == i {
			b.each(func(h past) past { return h.retuned(&old, &p, s.now) })
			b.seen(s.now)
		}
	}
	clear(s.admitted)
}
