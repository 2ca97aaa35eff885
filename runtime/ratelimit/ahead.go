package ratelimit

import (
	"crypto/sha256"
	"slices"
)

// orders are what was said of a key beforehand: until when it is blocked, and which
// calls were reserved. Few records have them.
type orders struct {
	block int64 // the key is refused before that
	// ahead are the calls that were reserved, by their time. What they take counts from
	// the time at which they were reserved, and is charged when their time has come.
	ahead []ask
	units int64 // of all of them
}

// maxAhead bounds the calls of one key that are reserved at a time, and with them what
// a decision on the key has to look at.
const maxAhead = 1000

// clone returns a copy of o that shares nothing with it.
func (o *orders) clone() *orders {
	if o == nil {
		return nil
	}
	return &orders{o.block, slices.Clone(o.ahead), o.units}
}

// ordered returns the orders of r, which may have none yet.
func (r *record) ordered() *orders {
	if r.orders == nil {
		r.orders = &orders{block: longAgo}
	}
	return r.orders
}

// isBooked reports whether calls will come that were reserved.
func (r *record) isBooked() bool { return r.orders != nil && len(r.orders.ahead) > 0 }

// opens returns the time before which r is refused whatever it has left.
func (r *record) opens() int64 {
	at := int64(longAgo)
	if r.locks > 0 {
		at = r.unlock
	}
	if r.orders != nil {
		at = max(at, r.orders.block)
	}
	return at
}

// due charges what was reserved for t or before, and forgets orders that are over.
func (c *counter) due(r *record, t int64) {
	o := r.orders
	if o == nil {
		return
	}
	n := 0
	for ; n < len(o.ahead) && o.ahead[n].t <= t; n++ {
		a := o.ahead[n]
		a.off, a.id = r.off, 0
		o.units -= a.cost
		c.algorithm.charge(r, a)
	}
	o.ahead = slices.Delete(o.ahead, 0, n)
	switch {
	case len(o.ahead) > 0:
	case o.block <= t:
		r.orders = nil
	case t >= c.clearsAside(r):
		// What else r says is forgotten as if the key were not blocked: a new bucket may be
		// less than full, and one that was full at another limit not be so at this one.
		last, off := r.last, r.off
		r.renew()
		r.last, r.off, r.orders = last, off, o
	}
}

// book has r charged at a's time.
func (r *record) book(a ask) {
	o := r.ordered()
	i := len(o.ahead)
	for i > 0 && o.ahead[i-1].t > a.t {
		i--
	}
	o.ahead = slices.Insert(o.ahead, i, a)
	o.units += a.cost
}

// adds reports whether it depends on the sum of their costs alone when calls are
// admitted. Where it does not, a call comes after all that were reserved.
func (c *counter) adds() bool {
	switch c.algorithm.(type) {
	case *warming, *customRule:
		return false
	}
	return true
}

// beside returns what a asks for if that which is reserved counts as charged. The cost
// is above the capacity if a has to wait for that.
//
// If a is admitted so, everything that is reserved can come at its time: until then no
// more is charged than that, and what was charged only counts less.
func (c *counter) beside(r *record, a ask) ask {
	switch {
	case !r.isBooked():
	case c.adds():
		a.cost += r.orders.units
	case a.cost > 0:
		a.cost = a.capacity + 1
	}
	return a
}

// fits reports whether the cost is admitted beside what is reserved.
func (c *counter) fits(r *record, a ask) bool {
	b := c.beside(r, a)
	return (b.cost == a.cost || b.cost <= b.capacity) && c.algorithm.admits(r, b)
}

// left returns the greatest cost that is admitted beside what is reserved.
func (c *counter) left(r *record, a ask) int64 {
	n := c.algorithm.remaining(r, a)
	switch {
	case !r.isBooked():
		return n
	case !c.adds():
		return 0
	}
	return max(0, n-r.orders.units)
}

// earliest returns after how long, but at least from, a is admitted beside what is
// reserved, or never.
func (c *counter) earliest(r *record, a ask, from int64) int64 {
	if from == 0 && !r.isBooked() {
		if c.algorithm.admits(r, a) {
			return 0
		}
		return c.algorithm.wait(r, a)
	}
	begin := a.t
	later := r
	if r == &blank {
		later = r.clone()
		c.begin(later, a)
	} else if r.orders != nil || a.off != r.off {
		later = r.clone()
		c.moved(later, a.t, a.off)
		if b, ok := c.algorithm.(*bucket); ok && b.isNew(later) {
			b.fill(later, a)
		}
	}
	a.t += from
	for {
		c.due(later, a.t)
		next := int64(never)
		if later.isBooked() {
			next = later.orders.ahead[0].t
		}
		if b := c.beside(later, a); b.cost == a.cost || b.cost <= b.capacity {
			if c.algorithm.admits(later, b) {
				return a.t - begin
			}
			next = min(next, a.t+c.algorithm.wait(later, b))
		}
		if next >= never || next <= a.t {
			return never
		}
		a.t = next
	}
}

// opensTo returns after how long a call that can wait for within is not refused because r
// is, whatever it has left.
func (c *counter) opensTo(r *record, a ask, within int64) int64 {
	wait := r.opens() - a.t
	if wait > 0 && r.isBooked() {
		wait = max(wait, c.earliest(r, a, wait)-within)
	}
	return wait
}

// cancel takes out what was reserved, by its index, and reports whether it did. It does
// not if what was reserved after it would not be admitted at its time then, because a
// window would begin at another time, or a bucket be colder.
func (c *counter) cancel(r *record, i int) bool {
	with, without := c.stands(r, -1), c.stands(r, i)
	for j := i + 1; j < len(with); j++ {
		if with[j] && !without[j] {
			return false
		}
	}
	o := r.orders
	o.units -= o.ahead[i].cost
	o.ahead = slices.Delete(o.ahead, i, i+1)
	if len(o.ahead) == 0 && o.block == longAgo {
		r.orders = nil
	}
	return true
}

// stands returns which of the calls that are reserved will be admitted at their time
// if the one whose index is skip does not come.
func (c *counter) stands(r *record, skip int) []bool {
	later := r.clone()
	ahead := later.orders.ahead
	later.orders = nil
	admitted := make([]bool, len(ahead))
	for j, a := range ahead {
		if j == skip {
			continue
		}
		a.off, a.id = r.off, 0
		admitted[j] = c.algorithm.admits(later, a)
		c.algorithm.charge(later, a)
	}
	return admitted
}

// recollect has s, whose entry is of a policy that needs no records but has one, be
// decided on that, if it says anything still.
func (s *shard) recollect(slot *slot, now int64) {
	e, c := slot.entry, slot.c.inRecords
	r := s.records.all[e.part]
	c.due(r, now+r.off)
	if view, _, _ := c.settleRecord(r, now); view == r {
		slot.c, slot.record = c, r
		return
	}
	s.removeRecord(e.part)
	e.last, e.base, e.part = longAgo, longAgo, 0
	if slot.c.rule == slidingLog {
		e.part = s.rings.add()
	}
}

// setRecord gives an entry of a policy that needs no records a record that says the
// same.
func (s *shard) setRecord(e *entry, c *counter, now int64) *record {
	s.record(e, c, now)
	e.last = inRecord
	return s.records.all[e.part]
}

// comesAhead reports whether calls are charged when they come that were reserved. Others
// are charged at once: they take a turn in a queue, or a place.
func (c *counter) comesAhead() bool {
	switch c.algorithm.(type) {
	case *leaky, *leases, *quota:
		return false
	}
	return true
}

// schedule returns after how long a call is admitted by all policies that are enforced,
// and whether that is within what it can wait. Of those that keep it from being granted,
// ok is not set, and retry says after how long they do not, where that is not when they
// would admit the call.
func (m *memory) schedule(slots []slot, charges []Charge, admitted bool, within int64) (wait int64, granted bool) {
	queued := false
	for i := range slots {
		queued = queued || slots[i].c != nil && slots[i].c.queue != nil
	}
	if admitted && !queued {
		return 0, true
	}
	granted = true
	for i := range slots {
		if s := &slots[i]; s.c != nil && !s.c.shadow {
			wait = max(wait, m.alone(s, &charges[i], within))
			granted = granted && s.ok
		}
	}
	for i := range slots {
		s := &slots[i]
		switch {
		case s.c == nil || charges[i].Cost == 0:
		case s.c.shadow && s.c.comesAhead():
			if s.spilled && !s.isNew {
				s.ok = s.ok && wait == 0 // nothing is ahead in what keys share
			} else {
				s.ok = !s.isLocked() && m.earliest(s, &charges[i], wait) == wait
			}
		case s.c.shadow:
		default:
			m.together(s, &charges[i], wait)
			granted = granted && s.ok
		}
	}
	return wait, granted
}

// isLocked reports whether the key of s is refused whatever it has left.
func (s *slot) isLocked() bool { return s.c.rule == recorded && s.view.isLocked(s.t) }

// earliest returns after how long, but at least from, the policy of s admits the call.
func (m *memory) earliest(s *slot, ch *Charge, from int64) int64 {
	if s.c.rule == recorded {
		return s.c.earliest(s.view, s.ask(ch, 0), from)
	}
	if s.ok {
		return from
	}
	o := s.c.outcome(s.state(), m.ring(s), s.t, ch.Cost, false)
	return max(from, o.RetryAfter.Microseconds())
}

// alone returns after how long the policy of s would admit the call if there were no
// other, and sees to ok and retry as schedule says.
func (m *memory) alone(s *slot, ch *Charge, within int64) (wait int64) {
	c := s.c
	admitted := s.ok
	switch {
	case c.queue != nil:
		a := s.ask(ch, 0)
		wait = c.queue.delay(s.view, a)
		if !s.ok {
			s.retry = c.outcomeRecord(s.view, a, false).RetryAfter.Microseconds()
		}
	case s.ok:
	case !c.comesAhead() || s.spilled && !s.isNew:
		return 0
	default:
		wait = m.earliest(s, ch, 0)
		if s.isLocked() {
			s.retry = c.opensTo(s.view, s.ask(ch, 0), within)
		}
		most := maxAhead
		if c.policy.MaxQueue > 0 {
			most = min(most, c.policy.MaxQueue)
		}
		if c.rule == recorded && s.view.isBooked() && len(s.view.orders.ahead) >= most {
			s.retry = max(s.retry, s.view.orders.ahead[0].t-s.t)
		}
		admitted = s.retry == 0
	}
	if s.ok = admitted && wait <= within; !s.ok && wait > within {
		s.retry = max(s.retry, wait-within)
	}
	return wait
}

// together sees to ok and retry of a call that comes after wait, because one of the
// policies admits it no earlier.
func (m *memory) together(s *slot, ch *Charge, wait int64) {
	c := s.c
	var retry int64
	switch l, ok := c.algorithm.(*leases); {
	case ok:
		if wait >= l.length {
			retry = wait - l.length + 1 // the place would be lost before
		}
	case c.queue != nil:
		if c.queue.delay(s.view, s.ask(ch, 0)) != wait {
			retry = wait // a turn cannot be put off
		}
	case s.spilled && !s.isNew:
		retry = wait
	case c.rule == recorded && !s.isLocked():
		if later := m.earliest(s, ch, wait); later != wait {
			retry = later // since what is reserved is ahead of it
		}
	}
	if retry > 0 {
		s.ok, s.retry = false, max(s.retry, retry)
	}
}

// chargeAhead has s charged when the call comes.
func (m *memory) chargeAhead(s *slot, ch *Charge, digest *[sha256.Size]byte, id uint64, now, wait int64) {
	a := s.ask(ch, id)
	if s.c.rule == recorded {
		m.open(s, a, stored(s.c.key(ch.Key), digest))
	} else {
		if s.isNew {
			m.insert(s, stored(s.c.key(ch.Key), digest))
		}
		s.record = m.shards[s.shard].setRecord(s.entry, s.c, now)
		s.c, s.view = s.c.inRecords, s.record
	}
	s.record.last = max(s.record.last, a.t)
	a.t += wait
	s.record.book(a)
}
