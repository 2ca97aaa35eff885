package ratelimittest

import (
	"math"
	"math/big"
	"slices"
	"sort"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// past is all that a policy ever admitted for a key, and whether it is locked. The
// oracle decides on it by the definitions of the algorithms, and finds waits by
// trying: slow and obvious. Times are microseconds.
type past struct {
	charges  history
	lockedAt int64
	unlock   int64
	locks    int // that are remembered
}

// charge is an admitted cost.
type charge struct {
	at, cost int64
	asked    asked
	call     int   // which may end; 0 for none
	back     bool  // was given back: of its cost, 0 is left
	units    int64 // the cost, also if it was given back
	took     int64 // of a call of a time quota that has ended
	opens    bool  // nothing else counted then
	owed     int64 // what a bucket owed when it was updated; units times the window
}

type history []charge

// asked is what a call brings.
type asked struct {
	cost, limit, capacity int64
}

// ask returns what a call of a policy without a dynamic limit brings.
func ask(p *ratelimit.Policy, cost int64) asked {
	capacity := p.Capacity()
	if p.Algorithm == ratelimit.TimeQuota {
		capacity = p.Limit
	}
	return asked{cost, p.Limit, capacity}
}

// most is the greatest cost that a policy takes.
func (a asked) most(p *ratelimit.Policy) int64 {
	if p.Algorithm == ratelimit.TimeQuota {
		return 1
	}
	return a.capacity
}

// latest is the time that the past cannot be behind.
func (h past) latest(p *ratelimit.Policy) int64 {
	latest := int64(math.MinInt64)
	if len(h.charges) > 0 {
		latest = h.charges.sum(p).latest
	}
	if h.locks > 0 {
		latest = max(latest, h.lockedAt)
	}
	return latest
}

// known tells whether there is anything to know.
func (h past) known() bool { return len(h.charges) > 0 || h.locks > 0 }

// settle returns the past that a decision at now is made on, and the time of the
// decision.
func (h past) settle(p *ratelimit.Policy, now int64) (past, int64) {
	if h.fresh(p, now) {
		return past{}, now
	}
	latest := h.latest(p)
	if latest <= now {
		return h, now
	}
	back := latest - now
	if back <= movesAfter(p) {
		return h, latest
	}
	moved := h
	moved.charges = slices.Clone(h.charges)
	if p.Align != "" {
		// The calendar stays. What was charged in windows that had ended counts no more,
		// also where the time comes to them again.
		begin, _ := window(p, latest)
		moved.charges = slices.DeleteFunc(moved.charges, func(c charge) bool { return c.at < begin })
	}
	for i := range moved.charges {
		if c := &moved.charges[i]; p.Align == "" {
			c.at -= back
		} else {
			c.at = now
		}
	}
	moved.lockedAt -= back
	moved.unlock -= back
	return moved, now
}

// movesAfter is by how much at most a clock that was set back is waited for: more is
// for good.
func movesAfter(p *ratelimit.Policy) int64 {
	const most = 10_000_000 // µs, as documented
	return min(windowOf(p), most)
}

// windowOf is how long a unit counts, in µs: of places, a lease, and of a window on the
// calendar, the greatest length.
func windowOf(p *ratelimit.Policy) int64 {
	switch {
	case p.Algorithm == ratelimit.Concurrency && p.Lease == 0:
		return time.Minute.Microseconds()
	case p.Algorithm == ratelimit.Concurrency:
		return p.Lease.Microseconds()
	case p.Align != "":
		return map[ratelimit.Align]time.Duration{
			ratelimit.AlignSecond: time.Second,
			ratelimit.AlignMinute: time.Minute,
			ratelimit.AlignHour:   time.Hour,
			ratelimit.AlignDay:    24 * time.Hour,
			ratelimit.AlignWeek:   7 * 24 * time.Hour,
			ratelimit.AlignMonth:  31 * 24 * time.Hour,
		}[p.Align].Microseconds()
	}
	return p.Window.Microseconds()
}

func (h past) locked(t int64) bool { return h.locks > 0 && t < h.unlock }

// admits tells whether a call is admitted at t.
func (h past) admits(p *ratelimit.Policy, t int64, a asked) bool {
	return !h.locked(t) && h.charges.sum(p).admits(t, a)
}

// fresh tells whether at t the past decides as an empty one.
func (h past) fresh(p *ratelimit.Policy, t int64) bool { return h.freshBy(p, h.charges.sum(p), t) }

// freshBy is fresh where the charges come to s.
func (h past) freshBy(p *ratelimit.Policy, s sum, t int64) bool {
	if h.locks > 0 {
		end := h.unlock
		if len(p.Lock) > 1 || beginsShort(p) {
			end += windowOf(p)
		}
		if t < end {
			return false
		}
	}
	return len(h.charges) == 0 || s.fresh(t)
}

// charged returns the past after a charge at t.
func (h past) charged(p *ratelimit.Policy, t int64, a asked, call int) past {
	opens := len(h.charges) == 0
	if p.Algorithm == ratelimit.SlidingWindow {
		opens = h.charges.sum(p).used(t) == 0
	}
	h.charges = append(h.born(p, t, a), charge{at: t, cost: a.cost, units: a.cost, asked: a, call: call, opens: opens})
	return h
}

// born returns the charges with those of a bucket that is not full when it is new.
func (h past) born(p *ratelimit.Policy, t int64, a asked) history {
	if missing := missingWhenNew(p, a); len(h.charges) == 0 && missing > 0 {
		return history{{at: t, cost: missing, units: missing, asked: a}}
	}
	return slices.Clip(h.charges)
}

// beginsShort tells whether a new bucket is not full.
func beginsShort(p *ratelimit.Policy) bool {
	return p.Initial != 0 && (p.Dynamic && p.Burst == 0 || p.Initial != p.Capacity())
}

func missingWhenNew(p *ratelimit.Policy, a asked) int64 {
	switch {
	case !beginsShort(p):
		return 0
	case p.Initial == ratelimit.Empty:
		return a.capacity
	}
	return max(0, a.capacity-p.Initial)
}

// refused returns the past after a refusal at t.
func (h past) refused(p *ratelimit.Policy, t int64, a asked) past {
	if h.locked(t) {
		return h
	}
	h.charges = h.born(p, t, a)
	if len(p.Lock) == 0 {
		return h
	}
	if h.locks > 0 && t >= h.unlock+windowOf(p) {
		h.locks = 0
	}
	h.lockedAt = t
	h.unlock = t + p.Lock[min(h.locks, len(p.Lock)-1)].Microseconds()
	h.locks++
	return h
}

// gaveBack returns the past without what a call was charged.
func (h past) gaveBack(p *ratelimit.Policy, call int) past {
	i := slices.IndexFunc(h.charges, func(c charge) bool { return c.call == call })
	if i < 0 {
		return h
	}
	h.charges = slices.Clone(h.charges)
	h.charges[i].cost, h.charges[i].back = 0, true
	if s := h.charges.sum(p); s.fresh(s.latest) {
		h.charges = nil
	}
	return h
}

// finished returns the past after a call of a time quota has ended.
func (h past) finished(call int, took int64) past {
	i := slices.IndexFunc(h.charges, func(c charge) bool { return c.call == call })
	if i < 0 {
		return h
	}
	h.charges = slices.Clone(h.charges)
	h.charges[i].took = took
	return h
}

// retuned returns the past as p counts it from now on, which was old before: a
// bucket owes what it owed, and refills at its new pace, and a queue begins anew with
// what is in it, the first unit of which has been served in part. All others go on
// counting what they counted. The window is the same.
func (h past) retuned(old, p *ratelimit.Policy, now int64) past {
	bucket, queue := p.Algorithm == ratelimit.TokenBucket, p.Algorithm == ratelimit.LeakyBucket
	if len(h.charges) == 0 || old.Limit == p.Limit || !bucket && !queue {
		return h
	}
	h, t := h.settle(old, now)
	if !h.known() {
		return h
	}
	charges := h.charges
	h.charges = nil
	switch {
	case queue:
		if s := charges.sum(old); s.used(t) > 0 {
			// As much of a unit's time is over at any pace.
			begin, left := t-s.served(t)/p.Limit, s.used(t)
			h.charges = history{{at: begin, units: left, cost: left, asked: ask(p, 0)}, {at: t, asked: ask(p, 0)}}
		}
	case p.Refill == ratelimit.Interval:
		s := charges.sum(old)
		left, begin := s.used(t), t-s.served(t)
		h.charges = history{{at: begin, units: left, cost: left, asked: ask(p, 0)}, {at: t, asked: ask(p, 0)}}
	default:
		owed := charges.owes(old, t).Int64()
		if isPlain(p) {
			// It is kept as the time of a refill, by the least part of a microsecond that
			// units are multiples of.
			g := new(big.Int).GCD(nil, nil, big.NewInt(p.Window.Microseconds()), big.NewInt(p.Limit)).Int64()
			owed = (owed + g - 1) / g * g
		}
		h.charges = history{{at: t, owed: owed, asked: ask(p, 0)}}
	}
	if h.charges.sum(p).fresh(t) {
		h.charges = nil // of a queue that is empty, or a bucket that is full, there is nothing to know
	}
	return h
}

// isPlain tells whether a token bucket is one of the simplest kind.
func isPlain(p *ratelimit.Policy) bool {
	return p.Refill == ratelimit.Smooth && p.Warmup == 0 && !p.Count && len(p.Lock) == 0 && p.Initial == 0
}

// owes returns what a bucket misses at t that refills smoothly, times its window.
func (h history) owes(p *ratelimit.Policy, t int64) *big.Int {
	owed := new(big.Int)
	since := int64(math.MinInt64)
	refill := func(t int64) {
		if owed.Sign() > 0 {
			owed.Sub(owed, product(t-since, p.Limit))
		}
		if owed.Sign() < 0 {
			owed.SetInt64(0)
		}
		since = t
	}
	for _, c := range h {
		refill(c.at)
		owed.Add(owed, product(c.cost, p.Window.Microseconds()))
		owed.Add(owed, big.NewInt(c.owed))
	}
	refill(t)
	return owed
}

// outcome is what the policy says at t of a call that was decided, as the past
// stands after it.
func (h past) outcome(p *ratelimit.Policy, t int64, a asked, allowed bool) ratelimit.Outcome {
	s := h.born(p, t, a).sum(p)
	admits := func(t, cost int64) bool {
		return !h.locked(t) && s.admits(t, asked{cost, a.limit, a.capacity})
	}
	o := ratelimit.Outcome{Allowed: allowed}
	switch {
	case h.locked(t):
	case p.Algorithm == ratelimit.TimeQuota:
		o.Remaining = max(0, a.limit-s.used(t))
	default:
		o.Remaining = least(a.capacity, func(n int64) bool { return !admits(t, n+1) })
	}
	if h.known() {
		o.ResetAfter = micros(least(longest, func(d int64) bool { return h.freshBy(p, s, t+d) }))
	}
	if !allowed {
		fits := past{charges: past{}.born(p, t, a)}.admits(p, t, a) // where the key is new
		o.RetryAfter = micros(least(longest, func(d int64) bool {
			return admits(t+d, a.cost) || fits && h.freshBy(p, s, t+d)
		}))
	}
	o.Delay = h.delay(p, t, a, allowed)
	return o
}

// delay is how long a call waits for its turn that was decided at t.
func (h past) delay(p *ratelimit.Policy, t int64, a asked, allowed bool) time.Duration {
	s := h.born(p, t, a).sum(p)
	if !allowed || s.delay == nil {
		return 0
	}
	return micros(s.delay(t, a))
}

// longest is more than any wait.
const longest = 1 << 56

// least returns the smallest of 0..n for which holds is true, and n if none is.
func least(n int64, holds func(int64) bool) int64 {
	return int64(sort.Search(int(n), func(i int) bool { return holds(int64(i)) }))
}

func micros(n int64) time.Duration {
	return time.Duration(min(n, math.MaxInt64/1000)) * time.Microsecond
}

// roughly is what a store may say in place of o: times above 2^53 µs, which many
// languages cannot count, are the longest.
func roughly(o ratelimit.Outcome) ratelimit.Outcome {
	for _, d := range []*time.Duration{&o.RetryAfter, &o.ResetAfter} {
		if *d > micros(1<<53-1) && *d != ratelimit.Never {
			*d = micros(longest)
		}
	}
	return o
}

// beliefs is what a key's past may be. There is more than one as soon as a time
// was seen at which the state was as new: the store may have dropped it then, or
// not, which makes a difference if the clock steps back afterwards.
type beliefs struct {
	policy *ratelimit.Policy
	of     []past
	rough  bool // about times that are very long
}

func newBeliefs(p *ratelimit.Policy) *beliefs {
	return &beliefs{policy: p, of: []past{{}}}
}

// seen notes that the store may have seen the time now.
func (b *beliefs) seen(now int64) {
	for _, h := range b.of {
		if !h.known() {
			return
		}
	}
	for _, h := range b.of {
		if h.fresh(b.policy, now) {
			b.of = append(b.of, past{})
			return
		}
	}
}

// observe drops the beliefs that a peek at now contradicts, and reports whether
// any remain.
func (b *beliefs) observe(now int64, a asked, seen ratelimit.Outcome) bool {
	b.of = slices.DeleteFunc(b.of, func(h past) bool { return !b.agrees(h, now, a, seen) })
	return len(b.of) > 0
}

// agrees tells whether a peek at now says of h what was seen.
func (b *beliefs) agrees(h past, now int64, a asked, seen ratelimit.Outcome) bool {
	h, t := h.settle(b.policy, now)
	o := h.outcome(b.policy, t, a, b.admitsBy(h, t, a))
	if b.policy.Mode == ratelimit.Shadow {
		o.RetryAfter, o.Delay = 0, 0 // the call is admitted, so nobody is told to wait
	}
	if b.rough {
		return roughly(o) == roughly(seen)
	}
	return o == seen
}

// admitsBy tells whether a call is admitted at t by a settled past.
func (b *beliefs) admitsBy(h past, t int64, a asked) bool {
	if len(h.charges) == 0 {
		h.charges = h.born(b.policy, t, a)
	}
	return h.admits(b.policy, t, a)
}

// moves tells whether a decision at now moves the state because the clock was set
// back for good.
func (b *beliefs) moves(now int64) bool {
	return slices.ContainsFunc(b.of, func(h past) bool {
		settled, t := h.settle(b.policy, now)
		return settled.known() && h.latest(b.policy) > t
	})
}

// admits tells whether a call at now is admitted. The beliefs agree on that once
// they have been observed.
func (b *beliefs) admits(now int64, a asked) bool {
	h, t := b.of[0].settle(b.policy, now)
	return b.admitsBy(h, t, a)
}

// said is what is to be said of a decision at a time.
type said struct {
	at int64
	ratelimit.Outcome
}

// decide notes that a call was decided at now, and returns what is to be said of that, for
// each belief. A call of which the number is not 0 may end.
func (b *beliefs) decide(now int64, a asked, allowed, charged bool, call int) []said {
	says := make([]said, len(b.of))
	for i, h := range b.of {
		settled, t := h.settle(b.policy, now)
		delay := settled.delay(b.policy, t, a, allowed)
		after := settled
		switch {
		case a.cost == 0:
		case charged:
			after = settled.charged(b.policy, t, a, call)
		case !allowed:
			after = settled.refused(b.policy, t, a)
		}
		if a.cost > 0 && (after.known() || !h.fresh(b.policy, now)) {
			b.of[i] = after
		}
		says[i] = said{t, after.outcome(b.policy, t, a, allowed)}
		says[i].Delay = delay
	}
	return says
}

// each changes all beliefs.
func (b *beliefs) each(change func(past) past) {
	for i := range b.of {
		b.of[i] = change(b.of[i])
	}
}
