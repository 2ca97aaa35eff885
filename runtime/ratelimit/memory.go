package ratelimit

import (
	"crypto/sha256"
	"hash/maphash"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// memory keeps counters in the process: a table in shards of their own locks,
// which are taken in order.
type memory struct {
	clock Clock
	epoch time.Time
	seed  maphash.Seed
	shift uint // of a hash, to the index of its shard
	max   int64

	shards   []shard
	counters atomic.Pointer[[]*counter] // by number

	_    [64]byte     // what changes is not in a cache line that every call reads
	live atomic.Int64 // entries in all shards and room reserved for more

	// overflow guards the spills of all counters. It is taken after the shards.
	overflow sync.Mutex
}

// spill is the counter that the keys share for which there was no room.
type spill struct {
	entry entry
	ring  ring
	// clearAt is the time at which entry is as new.
	clearAt atomic.Int64
}

const (
	maxShards    = 64 // take decides on a set of them, held in a word
	minShardKeys = 1024

	// How many entries are looked at for expired ones, for each new key.
	sweepPassing = 4
	sweepFull    = 32
)

func newMemory(clock Clock, maxKeys int) *memory {
	n := 1
	for n < maxShards && n < 4*runtime.GOMAXPROCS(0) && maxKeys/(2*n) >= minShardKeys {
		n *= 2
	}
	m := &memory{
		clock:  clock,
		epoch:  time.Now(),
		seed:   maphash.MakeSeed(),
		shift:  uint(64 - bits.TrailingZeros(uint(n))),
		max:    int64(maxKeys),
		shards: make([]shard, n),
	}
	m.counters.Store(new([]*counter))
	return m
}

// add makes c known. The caller holds the limiter's lock. Who reads the slice sees
// no more of its array than there was.
func (m *memory) add(c *counter) {
	all := append(*m.counters.Load(), c)
	m.counters.Store(&all)
}

// now returns the time in microseconds, within bounds that keep differences from
// overflowing.
func (m *memory) now() int64 {
	if m.clock == nil {
		return int64(time.Since(m.epoch) / time.Microsecond)
	}
	return max(-1<<60, min(m.clock.Now().UnixMicro(), 1<<60))
}

// locate returns the place of a key, and what is stored of it.
func (m *memory) locate(c *counter, key []byte, digest *[sha256.Size]byte) (place, []byte) {
	code := uint32(len(key))
	switch {
	case len(key) > keyLimit:
		code = digestKey
	case len(key) > inlineKey:
		code = longKey
	}
	key = stored(key, digest)
	h := maphash.Bytes(m.seed, key) ^ c.mix
	return place{hash: uint32(h), meta: c.num<<8 | code, shard: uint32(h >> m.shift)}, key
}

// stored returns what is stored of a key: itself or, if it is long, its digest.
func stored(key []byte, digest *[sha256.Size]byte) []byte {
	if len(key) <= keyLimit {
		return key
	}
	*digest = sha256.Sum256(key)
	return digest[:]
}

// takeOne decides cost, 1..capacity, under one policy, and charges it if admitted.
// It does nothing if the key has no entry yet.
func (m *memory) takeOne(c *counter, key []byte, cost int64) (o Outcome, found bool) {
	now := m.now()
	var digest [sha256.Size]byte
	p, key := m.locate(c, key, &digest)
	s := &m.shards[p.shard]
	s.mu.Lock()
	_, e := s.find(p, key)
	if e == nil {
		s.mu.Unlock()
		return o, false
	}
	if e.last > now {
		now = m.now()
	}
	t := c.settle(e, now)
	g := s.ring(c, e)
	if o.Allowed = c.spend(e, g, t, cost); !o.Allowed {
		o = c.outcome(e, g, t, cost, false)
	}
	s.mu.Unlock()
	return o, true
}

// slot is one policy's part of a decision.
type slot struct {
	place
	c       *counter // nil if the policy is not asked
	entry   *entry   // decided on and charged; if nil, copied is
	copied  entry    // what a peek is decided on, or a new key
	t       int64
	ok      bool
	isNew   bool // there is no entry yet, but room for one
	spilled bool // the state is, or was copied from, that of c.spill
}

func (s *slot) state() *entry {
	if s.entry == nil {
		return &s.copied
	}
	return s.entry
}

// take decides the charges whose verdicts are asked for as one, and unless it
// peeks, charges them if all that are enforced are admitted, which it returns. It
// fills the outcomes if asked to or if the call is refused.
func (m *memory) take(counters []*counter, charges []Charge, verdicts []verdict, peek, fill bool) bool {
	var few [4]slot
	slots := few[:]
	if len(charges) > len(few) {
		slots = make([]slot, len(charges))
	}
	slots = slots[:len(charges)]

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
	for b := locks; b != 0; b &= b - 1 {
		m.shards[bits.TrailingZeros64(b)].mu.Lock()
	}
	overflow := false // is locked
	for i := range slots {
		s := &slots[i]
		if s.c == nil {
			continue
		}
		if _, s.entry = m.shards[s.shard].find(s.place, stored(s.c.key(charges[i].Key), &digest)); s.entry == nil {
			overflow = m.provide(s, now, slots, peek || charges[i].Cost == 0, overflow)
		}
		if s.state().last > now {
			now = m.now()
		}
	}

	admitted := true
	for i := range slots {
		s := &slots[i]
		if s.c == nil {
			continue
		}
		if s.entry != nil && (peek || charges[i].Cost == 0) {
			s.copied, s.entry = *s.entry, nil
		}
		s.t = s.c.settle(s.state(), now)
		s.ok = s.c.admits(s.state(), m.ring(s), s.t, charges[i].Cost)
		admitted = admitted && (s.ok || s.c.policy.Mode == Shadow)
	}
	for i := range slots {
		s := &slots[i]
		if s.c == nil {
			continue
		}
		verdicts[i].degraded = s.spilled
		if s.ok && admitted && !peek && charges[i].Cost > 0 {
			if s.isNew {
				m.insert(s, stored(s.c.key(charges[i].Key), &digest))
			}
			s.c.charge(s.entry, m.ring(s), s.t, charges[i].Cost)
			if s.spilled {
				s.c.spill.clearAt.Store(s.c.clearAt(s.entry))
			}
		}
		if s.isNew {
			m.live.Add(-1)
		}
		if fill || !admitted {
			verdicts[i].Outcome = s.c.outcome(s.state(), m.ring(s), s.t, charges[i].Cost, s.ok)
		}
	}
	if overflow {
		m.overflow.Unlock()
	}
	for b := locks; b != 0; b &= b - 1 {
		m.shards[bits.TrailingZeros64(b)].mu.Unlock()
	}
	return admitted
}

// provide gives s, whose key has no entry, a state to decide on. If there is room,
// that is a new one, or as long as the policy's spill says something, a copy of
// that: the key may have spent it. Without room it is the spill itself. It returns
// whether overflow is locked.
func (m *memory) provide(s *slot, now int64, slots []slot, peek, overflow bool) bool {
	s.copied = newEntry()
	s.isNew = m.reserve(&m.shards[s.shard], now, slots)
	spill := &s.c.spill
	if s.isNew && spill.clearAt.Load() <= now {
		return overflow
	}
	if !overflow {
		m.overflow.Lock()
	}
	s.spilled = true
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
	e.last, e.base, e.part = s.copied.last, s.copied.base, s.copied.part
	if s.c.rule == slidingLog {
		e.part = shard.rings.add()
		if s.spilled {
			shard.rings.all[e.part] = s.c.spill.ring.clone()
		}
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

// reserve makes room for an entry, if it can. The caller inserts it or gives the
// room back.
func (m *memory) reserve(s *shard, now int64, slots []slot) bool {
	m.sweep(s, now, sweepPassing, slots)
	if m.live.Add(1) <= m.max {
		return true
	}
	m.sweep(s, now, sweepFull, slots)
	if m.live.Load() <= m.max {
		return true
	}
	m.live.Add(-1)
	return false
}

// sweep looks at n entries of s, and drops those that decide as new ones and that
// no slot is about to use.
func (m *memory) sweep(s *shard, now int64, n uint32, slots []slot) {
	counters := *m.counters.Load()
	for range min(n, s.used) {
		if s.hand++; s.hand > s.used {
			s.hand = 1
		}
		e := s.entry(s.hand)
		if e.meta == freeEntry {
			continue
		}
		c := counters[e.meta>>8]
		if n == sweepFull {
			// After the clock was set back for good, an idle key would hold its
			// place until the time that it was charged at comes again.
			c.settle(e, now)
		}
		if c.clearAt(e) > now || inUse(e, slots) {
			continue
		}
		s.remove(s.hand, c.rule == slidingLog)
		m.live.Add(-1)
	}
}

func inUse(e *entry, slots []slot) bool {
	for i := range slots {
		if slots[i].entry == e {
			return true
		}
	}
	return false
}

// reset forgets a key.
func (m *memory) reset(c *counter, key []byte) {
	var digest [sha256.Size]byte
	p, key := m.locate(c, key, &digest)
	s := &m.shards[p.shard]
	s.mu.Lock()
	if i, e := s.find(p, key); e != nil {
		s.remove(i, c.rule == slidingLog)
		m.live.Add(-1)
	}
	s.mu.Unlock()
}
