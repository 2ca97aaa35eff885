package ratelimit

import (
	"crypto/sha256"
	"time"
)

// plan is what the counters of a queue will hold when its calls have been admitted,
// each as early as it can be. It tells how long the next one will wait.
type plan struct {
	states []*snapshot // by policy; nil for one that calls need not wait for
	at     int64       // when the last of them is admitted
	exact  bool        // no call has left the queue without being admitted
}

// snapshot is a copy of one key's state.
type snapshot struct {
	c      *counter
	entry  entry
	ring   ring
	record *record
}

// planned returns how long a call will wait at least behind the calls in q, and puts it
// into the plan if it can make it.
func (g *gate) planned(q *queue, charges []Charge, p *patience) time.Duration {
	if g.store != nil || p.deadline.IsZero() && p.end.IsZero() {
		q.plan = nil
		return 0
	}
	now := g.limiter.mem.now()
	if q.outdated.Swap(false) {
		q.plan = nil
	}
	if q.plan == nil {
		q.plan = g.newPlan(q, now)
	}
	at, wait := q.plan.wait(g, charges, now)
	if !q.plan.exact && !p.allows(wait) {
		q.plan = g.newPlan(q, now)
		at, wait = q.plan.wait(g, charges, now)
	}
	if p.allows(wait) && !g.isFull(q, charges) {
		q.plan.admit(charges, at)
	}
	return wait
}

// newPlan plans for the calls in q.
func (g *gate) newPlan(q *queue, now int64) *plan {
	p := &plan{states: make([]*snapshot, len(g.counters)), at: now, exact: true}
	for i, c := range g.counters {
		if c.kind == counted && c.isCertain() && c.policy.Mode == Enforce {
			p.states[i] = g.limiter.mem.snapshot(c, q.keys[i])
		}
	}
	for _, w := range q.calls {
		at, _ := p.wait(g, w.charges, now)
		p.admit(w.charges, at)
	}
	return p
}

// isCertain reports whether it is known when a refused call can be admitted at the
// earliest: nothing is given back before that.
func (c *counter) isCertain() bool {
	return !c.ends || c.policy.Algorithm == TimeQuota && !c.policy.Count
}

// applies reports whether a charge has to be admitted by policy i.
func (p *plan) applies(i int, ch *Charge) bool {
	return p.states[i] != nil && !ch.Skip && (len(ch.Key) > 0 || p.states[i].c.shared)
}

// wait returns when a call will be admitted after those that are planned, and how
// long it waits until then.
func (p *plan) wait(g *gate, charges []Charge, now int64) (at int64, wait time.Duration) {
	from := max(p.at, now)
	at = from
	for i := range charges {
		if p.applies(i, &charges[i]) {
			at = max(at, from+p.states[i].wait(&charges[i], from))
		}
	}
	var delay int64
	for i := range charges {
		if p.applies(i, &charges[i]) {
			delay = max(delay, p.states[i].delay(&charges[i], at))
		}
	}
	return at, micros(at + delay - now)
}

func (p *plan) admit(charges []Charge, at int64) {
	for i := range charges {
		if p.applies(i, &charges[i]) {
			p.states[i].charge(&charges[i], at)
		}
	}
	p.at = at
}

// snapshot copies the state of a key.
func (m *memory) snapshot(c *counter, key []byte) *snapshot {
	var digest [sha256.Size]byte
	p, key := m.locate(c, key, &digest)
	s := &m.shards[p.shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	c = c.latest()
	copied := &snapshot{c: c, entry: newEntry(), record: &blank}
	_, e := s.find(p, key)
	if e == nil {
		return copied
	}
	if e.last == inRecord {
		c = c.inRecords
		copied.c = c
	}
	if c.rule == recorded {
		copied.record = s.records.all[e.part].clone()
		return copied
	}
	copied.entry = *e
	if g := s.ring(c, e); g != nil {
		copied.ring = g.clone()
	}
	return copied
}

// wait returns how long a charge waits from now, in microseconds.
func (s *snapshot) wait(ch *Charge, now int64) int64 {
	var o Outcome
	if s.c.rule == recorded {
		s.c.due(s.record, now+s.record.off)
		view, t, off := s.c.settleRecord(s.record, now)
		limit, capacity := s.c.limits(ch)
		a := ask{t: t, off: off, cost: ch.Cost, limit: limit, capacity: capacity}
		if s.c.admitsRecord(view, a) {
			return 0
		}
		o = s.c.outcomeRecord(view, a, false)
	} else {
		t := s.c.settle(&s.entry, now)
		if s.c.admits(&s.entry, &s.ring, t, ch.Cost) {
			return 0
		}
		o = s.c.outcome(&s.entry, &s.ring, t, ch.Cost, false)
	}
	return o.RetryAfter.Microseconds()
}

// delay returns how long a charge that is admitted now waits for its turn.
func (s *snapshot) delay(ch *Charge, now int64) int64 {
	if s.c.queue == nil {
		return 0
	}
	view, t, off := s.c.settleRecord(s.record, now)
	limit, capacity := s.c.limits(ch)
	return s.c.queue.delay(view, ask{t: t, off: off, cost: ch.Cost, limit: limit, capacity: capacity})
}

func (s *snapshot) charge(ch *Charge, now int64) {
	if ch.Cost == 0 {
		return
	}
	if s.c.rule != recorded {
		s.c.charge(&s.entry, &s.ring, s.c.settle(&s.entry, now), ch.Cost)
		return
	}
	view, t, off := s.c.settleRecord(s.record, now)
	limit, capacity := s.c.limits(ch)
	a := ask{t: t, off: off, cost: ch.Cost, limit: limit, capacity: capacity}
	if view == &blank {
		if s.record == &blank {
			s.record = blank.clone()
		}
		s.c.begin(s.record, a)
	} else {
		s.c.moved(s.record, t, off)
	}
	s.c.algorithm.charge(s.record, a)
}
