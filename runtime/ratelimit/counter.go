package ratelimit

import (
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// maxPolicies is the number of policies that an entry's meta word can tell apart,
// less the one that marks free entries.
const maxPolicies = 1<<24 - 1

// longAgo is the time at which an entry that was never charged was last charged:
// before every time of a clock, and so that differences do not overflow.
const longAgo = -1 << 61

// kind tells what a policy needs counters for.
type kind uint8

const (
	counted kind = iota
	off
	unlimited
	blocked
)

// rule is an Algorithm that costs no string comparison.
type rule uint8

const (
	slidingLog rule = iota
	fixedWindow
	tokenBucket
	recorded // by the counter's algorithm, on records
)

// counter is a registered policy: its constants in the form that decisions need,
// and the arithmetic of its algorithm on the state of one key: an entry or, if its
// rule is recorded, a record.
//
// A decision is made in steps, so that several policies can be decided as one:
// settle, admits, then charge if all admit, then outcome.
type counter struct {
	policy   Policy
	num      uint32
	kind     kind
	rule     rule
	shadow   bool // of the policy, as the two below
	dynamic  bool // calls have limits of their own
	shared   bool // calls without a key share a counter
	ends     bool // calls end by a Permit
	capacity int64
	most     int64 // the greatest cost
	window   int64 // µs
	mix      uint64

	rate               // of a token bucket
	fillQ, fillR int64 // the whole bucket takes fillQ + fillR/den µs to refill

	exceptions *Exceptions
	adjustable bool // exceptions may be of any limit

	algorithm algorithm
	inRecords *counter // what counts in its place for an entry that has a record
	calendar  *calendar
	staggered bool    // each key has windows, or parts of one, of its own
	queue     *leaky  // the algorithm, if its calls wait for their turn
	locks     []int64 // µs

	pace // of a bucket

	*common

	// hot is the key that is hot, if there is one.
	hot atomic.Pointer[hot]

	// replaced is the counter in whose form the policy counts since it was updated, or
	// nil. It is set with all shards locked.
	replaced atomic.Pointer[counter]
}

// common is what a counter keeps when its policy is updated.
type common struct {
	declared Policy // before all updates
	// forms are those of the keys, if methods have several. It is guarded by Limiter.mu.
	forms []string
	spill spill

	// waiting counts the calls that wait for this policy, and perhaps others.
	waiting atomic.Int32
	// blocks is set once a key was blocked.
	blocks atomic.Bool
}

// newCounter returns a counter of p, which takes the place of old, or of none if that is
// nil.
func newCounter(p Policy, num int, rules rules, exceptions *Exceptions, old *counter) *counter {
	p.Algorithm = p.algorithm()
	if p.Lock = slices.Clone(p.Lock); len(p.Lock) == 0 {
		p.Lock = nil
	}
	c := &counter{
		policy:     p,
		num:        uint32(num),
		shadow:     p.Mode == Shadow,
		dynamic:    p.Dynamic || exceptions != nil,
		exceptions: exceptions,
		shared:     p.Global || p.OnEmpty == SharedEmpty,
		capacity:   p.Capacity(),
		most:       p.Capacity(),
		window:     int64(p.Window / time.Microsecond),
		mix:        uint64(num) * 0x9e3779b97f4a7c15,
		calendar:   rules.calendar,
		ends:       p.Count || p.Algorithm == Concurrency || p.Algorithm == TimeQuota,
	}
	if p.Algorithm == TimeQuota {
		c.capacity = p.Limit
	}
	c.staggered = p.Algorithm == TimeQuota || p.Algorithm == SlidingWindow || p.Algorithm == FixedWindow && c.calendar == nil || p.Algorithm == TokenBucket && p.Refill == Interval
	switch {
	case p.Mode == Off:
		c.kind = off
	case p.Limit == Unlimited && exceptions == nil:
		c.kind = unlimited
	case p.Limit == Blocked && exceptions == nil:
		c.kind = blocked
	}
	c.setRule(rules.custom, old) // also if nothing is counted now, for keys that are blocked
	for _, d := range p.Lock {
		c.locks = append(c.locks, int64(d/time.Microsecond))
	}
	c.common = &common{declared: p}
	c.spill.entry = newEntry()
	c.spill.record = blank
	c.spill.clearAt.Store(math.MinInt64)
	c.inRecords = c.onRecords()
	return c
}

// addForm notes how one more method writes keys. The caller holds Limiter.mu.
func (c *counter) addForm(form string) {
	if len(c.forms) == 0 {
		c.forms = []string{c.declared.KeyForm}
	}
	if !slices.Contains(c.forms, form) {
		c.forms = append(c.forms, form)
	}
}

// setRule chooses the arithmetic of a policy that is counted: on records if it needs
// them, or if old has them.
func (c *counter) setRule(custom CustomAlgorithm, old *counter) {
	p := &c.policy
	plain := (old == nil || old.rule != recorded) && !c.dynamic && !p.Count && len(p.Lock) == 0
	limit := p.Limit
	if limit == Unlimited || limit == Blocked {
		// Meanwhile, what was counted goes on as it did.
		if limit = 1; old != nil {
			limit = old.pace.limit
		}
	}
	c.window = max(c.window, 1) // of a policy that counts nothing, and has none
	c.rule = recorded
	c.pace = pace{c.window, limit}
	switch p.Algorithm {
	case SlidingLog:
		if plain {
			c.rule = slidingLog
			return
		}
		c.algorithm = &slidingLogRule{c.window}
	case FixedWindow:
		if plain && c.calendar == nil {
			c.rule = fixedWindow
			return
		}
		if c.calendar != nil {
			c.window = p.Align.Length().Microseconds()
		}
		c.algorithm = &fixedWindowRule{c.window, c.calendar}
	case TokenBucket:
		initial := p.Initial
		if initial == c.capacity {
			initial = 0
		}
		switch {
		case p.Warmup > 0:
			c.algorithm = &warming{newRate(c.window, limit), p.Warmup.Microseconds()}
		case plain && p.Initial == 0 && p.Refill == Smooth: // which no update changes
			c.rule = tokenBucket
			c.rate = newRate(c.window, limit)
			c.fillQ, c.fillR = c.span(c.capacity)
		default:
			c.algorithm = &bucket{c.window, p.Refill == Interval, initial}
		}
	case SlidingWindow:
		n := int64(p.segments())
		c.algorithm = &slidingWindowRule{(c.window + n - 1) / n, n + 1}
	case LeakyBucket:
		c.queue = &leaky{newRate(c.window, limit)}
		c.algorithm = c.queue
	case Concurrency:
		lease := p.Lease
		if lease == 0 {
			lease = DefaultLease
		}
		c.window = lease.Microseconds()
		c.algorithm = &leases{c.window}
	case TimeQuota:
		c.algorithm = &quota{c.window}
	default:
		c.algorithm = &customRule{custom, p}
		if c.kind != counted && old != nil {
			c.algorithm = old.algorithm // whose Take knows the limit
		}
	}
}

// limits returns the limit and the capacity that a charge is decided by.
func (c *counter) limits(ch *Charge) (limit, capacity int64) {
	if !c.dynamic {
		return c.policy.Limit, c.capacity
	}
	limit = min(c.bring(ch), greatestLimit(c.policy.Algorithm))
	if c.policy.Burst > 0 {
		return limit, c.policy.Burst
	}
	return limit, limit
}

// bring returns the limit that a charge brings, which may be none.
func (c *counter) bring(ch *Charge) int64 {
	limit := c.policy.Limit
	if c.policy.Dynamic {
		limit = ch.Limit
	}
	if c.exceptions == nil {
		return limit
	}
	l := c.exceptions.limitOf(c.key(ch.Key), limit)
	if l > 0 && l != Unlimited && !c.adjustable {
		return limit
	}
	return l
}

// standstill is the longest time for which time stands still for a key, in µs. One that
// is further ahead of the clock was left behind by one that was set back for good. A
// lock-out is no longer than the window and that.
func (c *counter) standstill() int64 {
	return min(c.window, int64(MaxStandstill/time.Microsecond))
}

// settle returns the time of a decision on e: now, or e's latest time if that is
// later. If the clock was set back for good, e moves with it.
func (c *counter) settle(e *entry, now int64) int64 {
	if e.last <= now {
		return now
	}
	if e.last-now > c.standstill() {
		e.base -= e.last - now
		e.last = now
	}
	return e.last
}

// admits reports whether cost, 0..capacity, is admitted at t.
func (c *counter) admits(e *entry, g *ring, t, cost int64) bool {
	switch c.rule {
	case tokenBucket:
		q, r := c.after(e, t, cost)
		return q < t+c.fillQ || q == t+c.fillQ && r <= c.fillR
	case fixedWindow:
		return t-e.last >= c.window || int64(e.part)+cost <= c.capacity
	default:
		return g == nil || int64(g.units)+cost <= c.capacity || g.live(t-c.window-e.base)+cost <= c.capacity
	}
}

// spend charges cost, 1..capacity, at t if it is admitted, and reports whether it
// was: admits and charge in one.
func (c *counter) spend(e *entry, g *ring, t, cost int64) bool {
	if c.rule == tokenBucket {
		// As after, which is too large to be inlined here.
		q, r := e.base, int64(e.part)
		if q < t {
			q, r = t, 0
		}
		dq, dr := c.unitQ, c.unitR
		if cost != 1 {
			dq, dr = c.span(cost)
		}
		if q, r = q+dq, r+dr; r >= c.den {
			q, r = q+1, r-c.den
		}
		if q > t+c.fillQ || q == t+c.fillQ && r > c.fillR {
			return false
		}
		e.base, e.part, e.last = q, uint32(r), t
		return true
	}
	if !c.admits(e, g, t, cost) {
		return false
	}
	c.charge(e, g, t, cost)
	return true
}

// charge takes an admitted cost above 0 from e at t.
func (c *counter) charge(e *entry, g *ring, t, cost int64) {
	switch c.rule {
	case tokenBucket:
		q, r := c.after(e, t, cost)
		e.base, e.part, e.last = q, uint32(r), t
	case fixedWindow:
		if t-e.last >= c.window {
			e.part, e.last = 0, t
		}
		e.part += uint32(cost)
	default:
		g.drop(t - c.window - e.base)
		if g.n == 0 {
			e.base = t
		}
		g.push(t-e.base, cost, int(c.capacity))
		e.last = t
	}
}

// mostUnits is the largest charge after a call. More makes no difference: it is
// above every capacity.
const mostUnits = 2 * MaxLimit

// overdraw takes units above 0 from e at t, whether they are admitted or not.
func (c *counter) overdraw(e *entry, g *ring, t, units int64) {
	switch c.rule {
	case tokenBucket:
		q, r := c.after(e, t, 0)
		if q-t >= longestDebt || c.unitQ > 0 && units > longestDebt/c.unitQ {
			q, r = t+longestDebt, 0
		} else {
			dq, dr := c.span(units)
			if q, r = q+dq, r+dr; r >= c.den {
				q, r = q+1, r-c.den
			}
		}
		e.base, e.part, e.last = q, uint32(r), t
	case fixedWindow:
		if t-e.last >= c.window {
			e.part, e.last = 0, t
		}
		e.part = uint32(min(int64(e.part)+units, math.MaxUint32))
	default:
		g.drop(t - c.window - e.base)
		if g.n == 0 {
			e.base = t
		}
		g.pushAny(t-e.base, units)
		e.last = t
	}
}

// outcome says what e holds at t, and of a refused cost, when to come again.
func (c *counter) outcome(e *entry, g *ring, t, cost int64, allowed bool) Outcome {
	o := Outcome{Allowed: allowed}
	var retry, reset int64
	switch c.rule {
	case tokenBucket:
		q, r := c.after(e, t, 0)
		if allowed || cost != 1 { // or there is none, which need not be counted
			o.Remaining = c.count(t+c.fillQ-q, c.fillR-r)
		}
		if reset = q - t; r > 0 {
			reset++
		}
		if !allowed {
			q, r = c.after(e, t, cost)
			if retry = q - t - c.fillQ; r > c.fillR {
				retry++
			}
		}
	case fixedWindow:
		o.Remaining = c.capacity
		if t-e.last < c.window {
			o.Remaining -= int64(e.part)
			reset = e.last + c.window - t
			retry = reset
		}
	default:
		o.Remaining = c.capacity
		if g != nil {
			expired := t - c.window - e.base
			used := g.live(expired)
			if o.Remaining -= used; used > 0 {
				reset = e.last + c.window - t
			}
			if !allowed {
				retry = g.freed(expired, used+cost-c.capacity) - expired
			}
		}
	}
	if !allowed {
		o.RetryAfter = time.Duration(retry) * time.Microsecond
	}
	o.ResetAfter = time.Duration(reset) * time.Microsecond
	o.Remaining = max(0, o.Remaining)
	return o
}

// clearAt returns the earliest time at which e decides as a new entry.
func (c *counter) clearAt(e *entry) int64 {
	if c.rule != tokenBucket {
		return e.last + c.window
	}
	if e.part > 0 {
		return e.base + 1
	}
	return e.base
}

// after returns the theoretical arrival time that e has at t once cost is charged:
// q + r/den, at least t. The bucket is full at that time.
func (c *counter) after(e *entry, t, cost int64) (q, r int64) {
	q, r = e.base, int64(e.part)
	if q < t {
		q, r = t, 0
	}
	if cost == 0 {
		return q, r
	}
	dq, dr := c.span(cost)
	q, r = q+dq, r+dr
	if r >= c.den {
		q, r = q+1, r-c.den
	}
	return q, r
}
