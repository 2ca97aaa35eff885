package ratelimit

import (
	"math"
	"math/bits"
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
)

// counter is a registered policy: its constants in the form that decisions need,
// and the arithmetic of its algorithm on the state of one key, an entry.
//
// A decision is made in steps, so that several policies can be decided as one:
// settle, admits, then charge if all admit, then outcome.
type counter struct {
	policy   Policy
	num      uint32
	kind     kind
	rule     rule
	capacity int64
	window   int64 // µs
	mix      uint64

	// A token takes window/limit = unitQ + unitR/den µs to refill, num(erator) and
	// den(ominator) being window and limit reduced; the whole bucket takes
	// fillQ + fillR/den.
	unitNum, den int64
	unitQ, unitR int64
	fillQ, fillR int64

	spill spill
}

func newCounter(p Policy, num int) *counter {
	if p.Algorithm == "" {
		p.Algorithm = SlidingLog
	}
	c := &counter{
		policy:   p,
		num:      uint32(num),
		capacity: p.Capacity(),
		window:   int64(p.Window / time.Microsecond),
		mix:      uint64(num) * 0x9e3779b97f4a7c15,
	}
	switch p.Algorithm {
	case FixedWindow:
		c.rule = fixedWindow
	case TokenBucket:
		c.rule = tokenBucket
	}
	switch {
	case p.Mode == Off:
		c.kind = off
	case p.Limit == Unlimited:
		c.kind = unlimited
	case p.Limit == Blocked:
		c.kind = blocked
	case c.rule == tokenBucket:
		g := gcd(c.window, p.Limit)
		c.unitNum, c.den = c.window/g, p.Limit/g
		c.unitQ, c.unitR = c.unitNum/c.den, c.unitNum%c.den
		c.fillQ, c.fillR = c.span(c.capacity)
	}
	c.spill.entry = newEntry()
	c.spill.clearAt.Store(math.MinInt64)
	return c
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// settle returns the time of a decision on e: now, or e's latest time if that is
// later. If the clock was set back by more than the window, e moves with it.
func (c *counter) settle(e *entry, now int64) int64 {
	if e.last <= now {
		return now
	}
	if e.last-now > c.window {
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
		q, r := c.after(e, t, cost)
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

// outcome says what e holds at t, and of a refused cost, when to come again.
func (c *counter) outcome(e *entry, g *ring, t, cost int64, allowed bool) Outcome {
	o := Outcome{Allowed: allowed}
	var retry, reset int64
	switch c.rule {
	case tokenBucket:
		q, r := c.after(e, t, 0)
		o.Remaining = c.tokens(t+c.fillQ-q, c.fillR-r)
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

// span returns cost * unitNum / den as a whole part and a numerator over den.
// Nothing overflows: Policy.Validate bounds capacity * limit and the time that a
// full refill takes.
func (c *counter) span(cost int64) (q, r int64) {
	if cost == 1 {
		return c.unitQ, c.unitR
	}
	r = cost * c.unitR
	return cost*c.unitQ + r/c.den, r % c.den
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

// tokens returns how many tokens q + r/den µs refill, r being above -den.
func (c *counter) tokens(q, r int64) int64 {
	if r < 0 {
		q, r = q-1, r+c.den
	}
	hi, lo := bits.Mul64(uint64(q), uint64(c.den))
	lo, carry := bits.Add64(lo, uint64(r), 0)
	n, _ := bits.Div64(hi+carry, lo, uint64(c.unitNum))
	return int64(n)
}
