package ratelimit

import (
	"math"
	"math/bits"
)

// paceOf returns the limit by which the calls with the key of an entry are decided, as far
// as that is known, and 0 if each call brings its own.
func (c *counter) paceOf(s *shard, e *entry) int64 {
	if c.policy.Dynamic {
		return 0
	}
	if c.exceptions == nil || e == nil {
		return c.pace.limit
	}
	var key []byte
	switch n := e.meta & 0xff; n {
	case longKey:
		key = []byte(s.long.all[e.side()])
	case digestKey:
		return c.pace.limit
	default:
		key = e.key[:n]
	}
	if limit, _ := c.limits(&Charge{Key: key}); limit > 0 && limit != Unlimited {
		return limit
	}
	return c.pace.limit
}

// onRecords returns a counter that counts on records as c does in entries, or nil if c
// has records itself.
func (c *counter) onRecords() *counter {
	on := &counter{
		policy:    c.policy,
		num:       c.num,
		kind:      c.kind,
		rule:      recorded,
		shadow:    c.shadow,
		shared:    c.shared,
		capacity:  c.capacity,
		most:      c.most,
		window:    c.window,
		mix:       c.mix,
		pace:      c.pace,
		staggered: c.staggered,
		common:    c.common,
	}
	switch c.rule {
	case slidingLog:
		on.algorithm = &slidingLogRule{c.window}
	case fixedWindow:
		on.algorithm = &fixedWindowRule{c.window, nil}
	case tokenBucket:
		on.algorithm = &bucket{c.pace.window, false, 0}
	default:
		return nil
	}
	return on
}

// record gives an entry of c, which has none, a record that says the same.
func (s *shard) record(e *entry, c *counter, now int64) {
	i := s.records.add()
	r := &s.records.all[i]
	if *r == nil {
		*r = blank.clone()
	} else {
		(*r).renew()
	}
	g := s.ring(c, e)
	c.write(*r, e, g, now)
	if c.rule == slidingLog {
		*g = ring{} // which the record has now
		s.rings.remove(e.part)
	}
	e.part = i
}

// write makes r, which is blank, say what c has counted in e and g.
func (c *counter) write(r *record, e *entry, g *ring, now int64) {
	switch c.rule {
	case slidingLog:
		r.log, r.base, r.last = *g, e.base, e.last
	case fixedWindow:
		r.used, r.base, r.last = int64(e.part), e.last, e.last
	case tokenBucket:
		t := max(now, e.last)
		d := e.base - t
		if d < 0 || d == 0 && e.part == 0 {
			return // full
		}
		// What refills in d + part/den µs is missing.
		tokens, part := quotient(d, c.pace.limit, c.pace.window)
		if part += uint64(e.part) * uint64(c.pace.limit/c.den); part >= uint64(c.pace.window) {
			tokens, part = tokens+int64(part/uint64(c.pace.window)), part%uint64(c.pace.window)
		}
		r.used, r.part, r.base, r.last, r.limit = tokens, int64(part), t, t, c.pace.limit
	}
}

// pace is how long a window of a bucket is, in µs, and how many units come back in it.
type pace struct{ window, limit int64 }

// scale returns how long it takes at the pace of r to get back what takes d + part/den µs
// at that of from, in whole µs and a part of r.den, rounded up. It is not ok if that is
// longer than can be counted so.
func (r *rate) scale(from *rate, d, part int64) (whole, rest int64, ok bool) {
	// Parts of from.den, times r.unitNum, by from.unitNum, are parts of r.den.
	hi, lo := bits.Mul64(uint64(d), uint64(from.den))
	lo, carry := bits.Add64(lo, uint64(part), 0)
	hi += carry
	top, middle := bits.Mul64(hi, uint64(r.unitNum))
	high, low := bits.Mul64(lo, uint64(r.unitNum))
	middle, carry = bits.Add64(middle, high, 0)
	top += carry
	by := uint64(from.unitNum)
	if top >= by {
		return longestDebt, 0, false
	}
	q1, over := bits.Div64(top, middle, by)
	q0, over := bits.Div64(over, low, by)
	if over > 0 {
		q0, carry = bits.Add64(q0, 1, 0)
		q1 += carry
	}
	if q1 >= uint64(r.den) {
		return longestDebt, 0, false
	}
	q, m := bits.Div64(q1, q0, uint64(r.den))
	if q > longestDebt {
		return longestDebt, 0, false
	}
	return int64(q), int64(m), true
}

// longestDebt is the most µs that a bucket's debt takes to refill where it is kept as a
// time.
const longestDebt = 1 << 52

// adopt makes an entry of old's one of c's. It is not ok if that takes a record.
func (c *counter) adopt(e *entry, g *ring, old *counter, now int64) (ok bool) {
	if e.last == longAgo || c.pace == old.pace && c.window == old.window {
		return true
	}
	if now >= old.clearAt(e)+old.lingers(now) {
		// It says nothing, and must not in a longer window or at another pace. Whether it
		// was reclaimed meanwhile makes no difference so.
		e.last, e.base = longAgo, longAgo
		if c.rule != slidingLog {
			e.part = 0
		} else if g != nil {
			g.drop(math.MaxInt64)
		}
		return true
	}
	if c.rule != tokenBucket {
		return true
	}
	t := max(now, e.last)
	q, r, ok := c.scale(&old.rate, e.base-t, int64(e.part))
	// The clock is not set back behind now, when the pace was another.
	e.base, e.part, e.last = t+q, uint32(r), t
	return ok
}

// adoptRecord makes a record of old's one of c's, whose calls are decided by a limit, if
// that is known.
func (c *counter) adoptRecord(r *record, old *counter, now, limit int64) {
	old.due(r, now+r.off)
	if r.orders != nil && c.kind == counted && !c.dynamic {
		for i := range r.orders.ahead {
			a := &r.orders.ahead[i]
			a.limit, a.capacity = c.policy.Limit, c.capacity
		}
	}
	view, t, off := old.settleRecord(r, now)
	if view != r {
		// It says nothing, and must not at another pace, or in a longer window.
		switch to := c.algorithm.(type) {
		case *bucket, *leaky, *warming:
			r.renew()
		case *slidingWindowRule:
			if *to != *old.algorithm.(*slidingWindowRule) {
				r.renew()
			}
		default:
			if c.window != old.window && now+r.off >= old.clears(r)+old.lingers(now) {
				r.renew()
			}
		}
		return
	}
	switch to := c.algorithm.(type) {
	case *bucket:
		from := old.algorithm.(*bucket)
		if limit == 0 {
			limit = r.limit
		}
		if *to == *from && limit == r.limit && c.exceptions == old.exceptions {
			return
		}
		l := from.missing(r, ask{t: t, limit: r.limit, capacity: old.capacity})
		hi, lo := bits.Mul64(uint64(l.part), uint64(to.window))
		part, rest := bits.Div64(hi, lo, uint64(from.window))
		if rest > 0 {
			part++
		}
		if l.part = int64(part); l.part >= to.window {
			l.whole, l.part = l.whole+1, 0
		}
		base := t
		if from.interval && t > r.base {
			// As much of an interval is over as before.
			hi, lo := bits.Mul64(uint64((t-r.base)%from.window), uint64(to.window))
			over, _ := bits.Div64(hi, lo, uint64(from.window))
			base -= int64(over)
		}
		r.used, r.part, r.base, r.last, r.limit, r.off = l.whole, l.part, base, t, limit, off
		r.holds = r.holds[:0] // what they charged stays charged
		c.lapse(r)
	case *slidingWindowRule:
		from := old.algorithm.(*slidingWindowRule)
		if *to == *from {
			return
		}
		used := from.used(r, t)
		r.parts, r.holds = r.parts[:0], r.holds[:0]
		r.base, r.off = longAgo, off
		if used > 0 {
			to.charge(r, ask{t: t, cost: used, capacity: math.MaxInt64})
		}
	case *leaky:
		from := old.algorithm.(*leaky)
		if *to == *from {
			return
		}
		inside, base := from.inside(r, t), t
		if inside > 0 {
			base -= from.served(r, t, to)
		}
		r.holes, r.holds = r.holes[:0], r.holds[:0]
		r.base, r.used, r.last, r.off = base, inside, t, off
		c.lapse(r)
	case *leases:
		for i := range r.holds {
			h := &r.holds[i]
			h.at = min(h.at, t+to.length) // in which order they end stays so
		}
	case *customRule:
		to.adopt(r, t)
	case *warming:
		from := old.algorithm.(*warming)
		if *to == *from {
			return
		}
		if d := r.base - t; d > 0 || d == 0 && r.part > 0 {
			q, part, _ := to.scale(&from.rate, d, r.part)
			r.base, r.part = t+q, part
		} else {
			r.used, r.frac = from.cold(r, t)
			r.base, r.part = t, 0
		}
		r.frac, r.off = 0, off
	}
}
