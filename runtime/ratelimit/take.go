package ratelimit

import (
	"crypto/sha256"
	"math/bits"
)

// mode says what a decision may change.
type mode uint8

const (
	// takes charges what is admitted, and locks keys that are refused.
	takes mode = iota
	// tries is takes for a call that waits: a refusal is none yet, and locks nothing.
	tries
	// peeks changes nothing.
	peeks
	// refuses is takes for a call that is refused in any case.
	refuses
	// overdraws charges, whether it is admitted or not.
	overdraws
	// reserves is takes for a call that can come later.
	reserves
)

// slot is one policy's part of a decision.
type slot struct {
	place
	c       *counter // nil if the policy is not asked
	entry   *entry   // decided on and charged; if nil, copied is
	copied  entry    // what a peek is decided on, or a new key
	t       int64
	ok      bool
	isNew   bool  // there is no entry yet, but room for one
	spilled bool  // the state is, or was copied from, that of c.spill
	retry   int64 // of a reservation that this policy refuses: after how long it does not

	// If c is recorded:
	record *record // that of the key or, if spilled, of c.spill; nil if it has none
	view   *record // decided on: record, or blank
	off    int64   // of a decision on view
}

func (s *slot) state() *entry {
	if s.entry == nil {
		return &s.copied
	}
	return s.entry
}

// ask returns what the record is asked for a charge.
func (s *slot) ask(ch *Charge, id uint64) ask {
	limit, capacity := s.c.limits(ch)
	if s.spilled && s.c.dynamic && s.view != nil && s.view.limit > 0 {
		// Keys share the bucket, and none refills it at a pace that another has not.
		limit = min(limit, s.view.limit)
	}
	return ask{t: s.t, off: s.off, cost: ch.Cost, limit: limit, capacity: capacity, id: id}
}

// decide settles the record at now and reports whether it admits a charge. It keeps
// the record as it is if the call changes nothing.
func (m *memory) decide(s *slot, ch *Charge, now int64, change bool) bool {
	view := &blank
	if s.record != nil {
		view = s.record
	}
	now = m.nowFor(s.c, now)
	s.c.due(view, now+view.off)
	s.view, s.t, s.off = s.c.settleRecord(view, now)
	if change && s.view == s.record && !(s.isNew && s.spilled) {
		s.c.moved(s.record, s.t, s.off)
	}
	return s.c.admitsRecord(s.view, s.ask(ch, 0))
}

// take decides the charges whose verdicts are asked for as one, and charges them if
// all that are enforced are admitted, which it returns; both as far as mode says.
// It fills the outcomes if asked to or if the call is refused, and the delays in
// any case. If id is not nil, it is set to what the charges are given back by. If a
// policy was updated meanwhile, it does nothing, and current is false. A call that
// reserves can wait for within microseconds.
func (m *memory) take(counters []*counter, charges []Charge, verdicts []verdict, mode mode, within int64, id *uint64, fill bool) (admitted, current bool) {
	var slots []slot
	if n := len(charges); n <= 2 {
		var few [2]slot
		slots = few[:n]
	} else {
		var more [6]slot
		if slots = more[:]; n > len(more) {
			slots = make([]slot, n)
		}
		slots = slots[:n]
	}

	var digest [sha256.Size]byte
	now := m.now()
	var locks uint64
	for i := range slots {
		if verdicts[i].asked {
			s := &slots[i]
			s.c = counters[i]
			s.place, _ = m.locate(s.c, s.c.key(charges[i].Key), &digest)
			locks |= 1 << s.shard
		}
	}
	overflow := false // is locked
	for b := locks; b != 0; b &= b - 1 {
		m.shards[bits.TrailingZeros64(b)].mu.Lock()
	}
	defer func() { // also if a CustomAlgorithm panics
		for i := range slots {
			if slots[i].isNew { // and the room was not used
				m.live.Add(-1)
			}
		}
		if overflow {
			m.overflow.Unlock()
		}
		for b := locks; b != 0; b &= b - 1 {
			m.shards[bits.TrailingZeros64(b)].mu.Unlock()
		}
	}()
	current = true
	for i := range slots {
		current = current && (slots[i].c == nil || slots[i].c.replaced.Load() == nil)
	}
	if !current {
		return false, false
	}
	for i := range slots {
		s := &slots[i]
		if s.c == nil {
			continue
		}
		shard := &m.shards[s.shard]
		if _, s.entry = shard.find(s.place, stored(s.c.key(charges[i].Key), &digest)); s.entry == nil {
			overflow = m.provide(s, now, slots, mode == peeks || charges[i].Cost == 0, overflow)
		} else if s.c.rule == recorded {
			s.record = shard.records.all[s.entry.part]
		} else if s.entry.last == inRecord {
			shard.recollect(s, now)
		}
		if s.isAhead(now) {
			now = m.now()
		}
	}

	admitted = true
	for i := range slots {
		s := &slots[i]
		if s.c == nil {
			continue
		}
		change := mode != peeks && charges[i].Cost != 0
		if s.c.rule == recorded {
			s.ok = m.decide(s, &charges[i], now, change)
		} else {
			if s.entry != nil && !change {
				s.copied, s.entry = *s.entry, nil
			}
			s.t = s.c.settle(s.state(), now)
			s.ok = s.c.admits(s.state(), m.ring(s), s.t, charges[i].Cost)
		}
		s.ok = s.ok || mode == overdraws
		admitted = admitted && (s.ok || s.c.shadow)
	}
	var wait int64
	if mode == reserves {
		wait, admitted = m.schedule(slots, charges, admitted, within)
	}
	charge := admitted && mode != peeks && mode != refuses
	var number uint64
	if id != nil && charge {
		// While all that is charged is locked, so that the holds of a record are in order.
		number = m.ids.Add(1)
		*id = number
	}
	for i := range slots {
		s := &slots[i]
		if s.c == nil {
			continue
		}
		v := &verdicts[i]
		v.degraded = v.degraded || s.spilled
		v.Allowed = s.ok
		var delay int64
		if q := s.c.queue; q != nil && s.ok {
			delay = q.delay(s.view, s.ask(&charges[i], 0))
		}
		switch {
		case charges[i].Cost == 0 || mode == peeks:
		case s.ok && charge:
			switch {
			case wait > 0 && s.c.comesAhead():
				m.chargeAhead(s, &charges[i], &digest, number, now, wait)
			case s.c.rule == recorded:
				m.chargeRecord(s, &charges[i], &digest, number, delay)
			case s.isNew || s.spilled || mode == overdraws:
				m.chargeEntry(s, &charges[i], &digest, mode)
			default:
				s.c.charge(s.entry, m.ring(s), s.t, charges[i].Cost)
			}
		case !s.ok && s.c.rule == recorded:
			m.refuse(s, &charges[i], &digest, mode != tries)
		}
		if fill || !admitted {
			if s.c.rule == recorded {
				v.Outcome = s.c.outcomeRecord(s.view, s.ask(&charges[i], 0), s.ok)
			} else {
				v.Outcome = s.c.outcome(s.state(), m.ring(s), s.t, charges[i].Cost, s.ok)
			}
		}
		if mode == reserves {
			delay = 0
			if admitted && s.ok {
				delay = wait
			}
			if s.retry > 0 {
				if s.view != nil { // it may be locked now
					s.retry = max(s.retry, s.c.opensTo(s.view, s.ask(&charges[i], 0), within))
				}
				v.RetryAfter = micros(s.retry)
			}
		}
		if delay > 0 {
			v.Delay = micros(delay)
		}
	}
	return admitted, true
}

func (m *memory) chargeEntry(s *slot, ch *Charge, digest *[sha256.Size]byte, mode mode) {
	if s.isNew {
		m.insert(s, stored(s.c.key(ch.Key), digest))
	}
	if mode == overdraws {
		s.c.overdraw(s.entry, m.ring(s), s.t, ch.Cost)
	} else {
		s.c.charge(s.entry, m.ring(s), s.t, ch.Cost)
	}
	if s.spilled {
		s.c.spill.clearAt.Store(s.c.clearAt(s.entry))
	}
}

func (m *memory) chargeRecord(s *slot, ch *Charge, digest *[sha256.Size]byte, id uint64, delay int64) {
	if !s.c.ends && delay == 0 {
		id = 0 // nothing will ask for it
	}
	a := s.ask(ch, id)
	m.open(s, a, stored(s.c.key(ch.Key), digest))
	s.c.algorithm.charge(s.record, a)
	m.close(s)
}

// refuse does to a key what a refusal does: a new bucket begins to fill, and the
// key is locked, if it is to be, unless it is.
func (m *memory) refuse(s *slot, ch *Charge, digest *[sha256.Size]byte, lock bool) {
	lock = lock && len(s.c.locks) > 0 && !s.view.isLocked(s.t)
	if !lock && !(s.view == &blank && s.c.policy.Initial != 0) {
		return
	}
	a := s.ask(ch, 0)
	m.open(s, a, stored(s.c.key(ch.Key), digest))
	if lock {
		s.c.lock(s.record, s.t)
	}
	m.close(s)
}

// open gives s a record that may be changed, in the state that was decided on.
func (m *memory) open(s *slot, a ask, key []byte) {
	if s.isNew {
		m.insert(s, key)
	}
	if s.view == &blank {
		s.c.begin(s.record, a)
	} else {
		s.record.off = s.off
	}
	s.view = s.record
}

// close notes that the record of s was changed.
func (m *memory) close(s *slot) {
	if s.spilled {
		s.c.spill.clearAt.Store(s.c.clearTime(s.record))
	}
}

// provide gives s, whose key has no entry, a state to decide on. If there is room,
// that is a new one, or as long as the policy's spill says something, a copy of
// that: the key may have spent it. Without room it is the spill itself. It returns
// whether overflow is locked.
func (m *memory) provide(s *slot, now int64, slots []slot, peek, overflow bool) bool {
	s.copied = newEntry()
	s.isNew = m.reserve(&m.shards[s.shard], now, slots)
	spill := &s.c.spill
	if now = m.nowFor(s.c, now); s.isNew && spill.clearAt.Load() <= now {
		return overflow
	}
	if !overflow {
		m.overflow.Lock()
	}
	s.spilled = true
	if s.c.rule == recorded {
		r := &spill.record
		if view, t, off := s.c.settleRecord(r, now); view == r && !peek && off != r.off {
			s.c.moved(r, t, off)
			spill.clearAt.Store(s.c.clearTime(r))
		}
		s.record = r
		return true
	}
	if spill.entry.last > now && !peek {
		s.c.settle(&spill.entry, m.now())
		spill.clearAt.Store(s.c.clearAt(&spill.entry))
	}
	if s.isNew {
		s.copied = spill.entry
	} else {
		s.entry = &spill.entry
	}
	return true
}

// insert gives s the entry that is reserved for it.
func (m *memory) insert(s *slot, key []byte) {
	shard := &m.shards[s.shard]
	e := shard.insert(s.place, key)
	switch s.c.rule {
	case recorded:
		e.part = shard.records.add()
		r := &shard.records.all[e.part]
		if s.spilled {
			*r = s.record.clone()
		} else if *r == nil {
			*r = blank.clone()
		}
		s.record = *r
	case slidingLog:
		e.last, e.base = s.copied.last, s.copied.base
		e.part = shard.rings.add()
		if s.spilled {
			shard.rings.all[e.part] = s.c.spill.ring.clone()
		}
	default:
		e.last, e.base, e.part = s.copied.last, s.copied.base, s.copied.part
	}
	s.entry, s.isNew, s.spilled = e, false, false
}

// ring returns the log of s, or nil if it has none yet.
func (m *memory) ring(s *slot) *ring {
	if s.spilled {
		return &s.c.spill.ring
	}
	return m.shards[s.shard].ring(s.c, s.state())
}

func (s *shard) ring(c *counter, e *entry) *ring {
	if c.rule != slidingLog || e.part == 0 {
		return nil
	}
	return &s.rings.all[e.part]
}

// isAhead reports whether the state of s is of a later time than now.
func (s *slot) isAhead(now int64) bool {
	if s.c.rule == recorded {
		return s.record != nil && s.c.calendar == nil && s.record.last-s.record.off > now
	}
	return s.state().last > now
}
