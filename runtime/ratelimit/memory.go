package ratelimit

import (
	"crypto/sha256"
	"hash/maphash"
	"math"
	"math/bits"
	"runtime"
	"slices"
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

	hotVotes int // the constant, but for tests

	shards   []shard
	counters atomic.Pointer[[]*counter] // by number

	_    [64]byte     // what changes is not in a cache line that every call reads
	live atomic.Int64 // entries in all shards and room reserved for more
	ids  atomic.Uint64

	// overflow guards the spills of all counters. It is taken after the shards.
	overflow sync.Mutex
}

// spill is the counter that the keys share for which there was no room.
type spill struct {
	entry  entry
	ring   ring
	record record
	// clearAt is the time at which it is as new.
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
		clock: clock,
		epoch: time.Now(),
		seed:  maphash.MakeSeed(),
		shift: uint(64 - bits.TrailingZeros(uint(n))),
		max:   int64(maxKeys),

		hotVotes: hotVotes,
		shards:   make([]shard, n),
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

// maxQuick is the largest number of policies that takeAll decides.
const maxQuick = 4

// takeAll decides costs of 1..capacity under at most maxQuick plain policies that
// are enforced, charges them, and returns true. If that is not all there is to do,
// since a key has no entry yet, or a policy refuses, it does nothing.
func (m *memory) takeAll(counters []*counter, charges []Charge) bool {
	if len(charges) == 2 {
		c, d := counters[0], counters[1]
		ckey, dkey := c.key(charges[0].Key), d.key(charges[1].Key)
		if len(ckey) <= keyLimit && len(dkey) <= keyLimit {
			return m.takeTwo(c, d, ckey, dkey, charges[0].Cost, charges[1].Cost)
		}
	}
	type part struct {
		place
		e *entry
	}
	var few [maxQuick]part
	parts := few[:len(charges)]
	now := m.now()
	var digest [sha256.Size]byte
	var locks uint64
	for i := range parts {
		parts[i].place, _ = m.locate(counters[i], counters[i].key(charges[i].Key), &digest)
		locks |= 1 << parts[i].shard
	}
	for b := locks; b != 0; b &= b - 1 {
		m.shards[bits.TrailingZeros64(b)].mu.Lock()
	}
	admitted := true
	for i := range parts {
		p := &parts[i]
		if counters[i].replaced.Load() != nil {
			admitted = false
			break
		}
		_, p.e = m.shards[p.shard].find(p.place, stored(counters[i].key(charges[i].Key), &digest))
		if p.e == nil || p.e.last > now {
			admitted = false
			break
		}
	}
	for i := 0; i < len(parts) && admitted; i++ {
		p, c := &parts[i], counters[i]
		admitted = c.admits(p.e, m.shards[p.shard].ring(c, p.e), now, charges[i].Cost)
	}
	for i := 0; i < len(parts) && admitted; i++ {
		p, c := &parts[i], counters[i]
		c.charge(p.e, m.shards[p.shard].ring(c, p.e), now, charges[i].Cost)
	}
	for b := locks; b != 0; b &= b - 1 {
		m.shards[bits.TrailingZeros64(b)].mu.Unlock()
	}
	return admitted
}

// takeTwo is takeAll for two policies, as most methods have that have several, and for
// keys of at most keyLimit bytes.
func (m *memory) takeTwo(c, d *counter, ckey, dkey []byte, ccost, dcost int64) bool {
	now := m.now()
	var cp, dp place
	if len(ckey) == len(dkey) && (len(ckey) == 0 || &ckey[0] == &dkey[0]) {
		// Policies of one method often count by one key.
		code := uint32(len(ckey))
		if code > inlineKey {
			code = longKey
		}
		hash := maphash.Bytes(m.seed, ckey)
		cp, dp = m.at(c, hash, code), m.at(d, hash, code)
	} else {
		cp, dp = m.locateShort(c, ckey), m.locateShort(d, dkey)
	}
	cs, ds := &m.shards[cp.shard], &m.shards[dp.shard]
	if cp.shard <= dp.shard {
		cs.mu.Lock()
	}
	if cp.shard != dp.shard {
		ds.mu.Lock()
	}
	if cp.shard > dp.shard {
		cs.mu.Lock()
	}
	admitted := false
	ce, de := cs.recall(cp, ckey), ds.recall(dp, dkey)
	if ce != nil && de != nil && ce.last <= now && de.last <= now &&
		c.replaced.Load() == nil && d.replaced.Load() == nil {
		if c.rule == slidingLog {
			g := cs.ring(c, ce)
			if admitted = c.admits(ce, g, now, ccost) && d.spend(de, ds.ring(d, de), now, dcost); admitted {
				c.charge(ce, g, now, ccost)
			}
		} else {
			// To charge and take it back is less than to look and then charge.
			last, base, part := ce.last, ce.base, ce.part
			if admitted = c.spend(ce, nil, now, ccost); admitted && !d.spend(de, ds.ring(d, de), now, dcost) {
				ce.last, ce.base, ce.part = last, base, part
				admitted = false
			}
		}
	}
	if admitted && cs.getsHot(m, c, ce) && ds.getsHot(m, d, de) {
		cs.heat(m, c, ce, ckey)
		ds.heat(m, d, de, dkey)
	}
	if cp.shard != dp.shard {
		ds.mu.Unlock()
	}
	cs.mu.Unlock()
	return admitted
}

// nowFor returns the time that c counts by, where now is that of most counters: the
// calendar's windows need the wall clock.
func (m *memory) nowFor(c *counter, now int64) int64 {
	if c.calendar == nil || m.clock != nil {
		return now
	}
	return time.Now().UnixMicro()
}

// locate returns the place of a key, and what is stored of it.
func (m *memory) locate(c *counter, key []byte, digest *[sha256.Size]byte) (place, []byte) {
	if len(key) > keyLimit {
		p := m.locateShort(c, stored(key, digest))
		p.meta |= digestKey
		return p, digest[:]
	}
	return m.locateShort(c, key), key
}

// locateShort returns the place of a key that is stored as it is.
func (m *memory) locateShort(c *counter, key []byte) place {
	code := uint32(len(key))
	if code > inlineKey {
		code = longKey
	}
	return m.at(c, maphash.Bytes(m.seed, key), code)
}

// at returns the place of a key with a hash and a code.
func (m *memory) at(c *counter, hash uint64, code uint32) place {
	// The policies of a method often have the same keys, which are in one shard, so that
	// a call locks one. What counts under no key is not.
	shard := hash
	hash ^= c.mix
	if code == 0 {
		shard = hash
	}
	return place{hash: uint32(hash), meta: c.num<<8 | code, shard: uint32(shard >> m.shift)}
}

// hashOf returns what place.hash was for the key of e, an entry of c in s.
func (m *memory) hashOf(s *shard, e *entry, c *counter) uint32 {
	if n := e.meta & 0xff; n <= inlineKey {
		return uint32(maphash.Bytes(m.seed, e.key[:n]) ^ c.mix)
	}
	return uint32(maphash.String(m.seed, s.long.all[e.side()]) ^ c.mix)
}

// stored returns what is stored of a key: itself or, if it is long, its digest.
func stored(key []byte, digest *[sha256.Size]byte) []byte {
	if len(key) <= keyLimit {
		return key
	}
	*digest = sha256.Sum256(key)
	return digest[:]
}

// takeOne decides cost, 1..capacity, under one policy for a key of at most keyLimit
// bytes, and charges it if admitted. It fills in o, of an admission only if told to. It
// does nothing if the key has no entry and cannot get one of its own.
func (m *memory) takeOne(c *counter, key []byte, cost int64, o *Outcome, fill bool) (allowed, found bool) {
	if h := c.hot.Load(); h != nil && h.key == string(key) {
		if allowed, found = h.take(cost, o, fill); found {
			return allowed, true
		}
	}
	now := m.now()
	p := m.locateShort(c, key)
	s := &m.shards[p.shard]
	s.mu.Lock()
	e := s.recall(p, key)
	if c.replaced.Load() != nil {
		s.mu.Unlock()
		return false, false
	}
	if e == nil {
		e = m.takeNew(c, s, p, key, now, cost)
		if e != nil && fill {
			*o = c.outcome(e, s.ring(c, e), now, cost, true)
		}
		s.mu.Unlock()
		return e != nil, e != nil
	}
	if e.last > now {
		if e.last == inRecord {
			s.mu.Unlock()
			return false, false
		}
		now = m.now()
	}
	t := c.settle(e, now)
	g := s.ring(c, e)
	if allowed = c.spend(e, g, t, cost); !allowed || fill {
		*o = c.outcome(e, g, t, cost, allowed)
	}
	if s.getsHot(m, c, e) {
		s.heat(m, c, e, key)
	}
	s.mu.Unlock()
	return allowed, true
}

// takeNew is takeOne for a key that has no entry in s, which is locked: it makes one
// and charges it, as new ones admit what any can. It does nothing and returns nil if
// that is not all there is to do.
func (m *memory) takeNew(c *counter, s *shard, p place, key []byte, now, cost int64) *entry {
	if c.spill.clearAt.Load() > now || !m.reserve(s, now, nil) {
		return nil
	}
	e := s.insert(p, key)
	if c.rule == slidingLog {
		e.part = s.rings.add()
	}
	c.charge(e, s.ring(c, e), now, cost)
	return e
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
		if e.last == isHot {
			s.cool(e)
		}
		c := counters[e.meta>>8]
		if !m.clear(s, c, e, now, n == sweepFull) || inUse(e, slots) {
			continue
		}
		s.remove(m.hashOf(s, e, c), s.hand, c.rule)
		m.live.Add(-1)
	}
}

// clear reports whether e decides as a new one. If it is to settle, it does: after
// the clock was set back for good, an idle key would hold its place until the time
// that it was charged at comes again.
func (m *memory) clear(s *shard, c *counter, e *entry, now int64, settle bool) bool {
	if e.last == inRecord {
		c = c.inRecords
	}
	if c.rule != recorded {
		if settle {
			c.settle(e, now)
		}
		return c.clearAt(e)+c.lingers(now) <= now
	}
	r := s.records.all[e.part]
	now = m.nowFor(c, now)
	c.due(r, now+r.off)
	view, t, off := c.settleRecord(r, now)
	if settle && view == r {
		c.moved(r, t, off)
	}
	return view == &blank && (c.lingers(now) == 0 || now+r.off >= c.clears(r)+c.window)
}

// lingers returns for how much longer than it says something an entry is kept. The
// windows of the spill begin at other times than those of a key. A key whose window has
// ended and that then shares the spill could get the rest of one window and all of
// the next, at once after its own. So it is with the parts of a sliding window, whose
// units are forgotten the sooner the later in a part they came.
func (c *counter) lingers(now int64) int64 {
	if c.staggered && c.spill.clearAt.Load() > now {
		return c.window
	}
	return 0
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
		s.remove(p.hash, i, c.latest().rule)
		m.live.Add(-1)
	}
	s.mu.Unlock()
}

// ending says how a call ends for a policy.
type ending uint8

const (
	givenBack ending = iota
	kept
	finished // after some time
	left     // the queue, before its turn
	cancelled
)

// told is what a Store is told of an ending.
func (e ending) told() Ending {
	switch e {
	case kept:
		return EndKeep
	case finished:
		return EndFinish
	case left:
		return EndLeave
	}
	return EndGiveBack
}

// end ends the call of the given id for a key. Nothing happens if it has ended, or
// if its charge is forgotten.
func (m *memory) end(c *counter, key []byte, id uint64, how ending, took int64) {
	var digest [sha256.Size]byte
	p, key := m.locate(c, key, &digest)
	s := &m.shards[p.shard]
	s.mu.Lock()
	c = c.latest()
	if _, e := s.find(p, key); e != nil {
		on := c
		if e.last == inRecord {
			on = c.inRecords
		}
		if on.rule == recorded {
			on.end(s.records.all[e.part], id, how, took, m.nowFor(c, m.now()))
		}
	}
	if c.rule == recorded && c.spill.clearAt.Load() != math.MinInt64 {
		m.overflow.Lock()
		c.end(&c.spill.record, id, how, took, m.now())
		c.spill.clearAt.Store(c.clearTime(&c.spill.record))
		m.overflow.Unlock()
	}
	s.mu.Unlock()
}

// end ends a call that r may have a hold of.
func (c *counter) end(r *record, id uint64, how ending, took, now int64) {
	c.due(r, now+r.off)
	i := r.find(id)
	if i < 0 {
		if how == cancelled && r.isBooked() {
			if i = slices.IndexFunc(r.orders.ahead, func(a ask) bool { return a.id == id }); i >= 0 {
				c.cancel(r, i)
			}
		}
		return
	}
	switch how {
	case cancelled:
		switch q, t := c.queue, max(now+r.off, r.last); {
		case q == nil:
			c.giveBack(r, i) // a place, which was taken at once
		case t < q.time(r, r.holds[i].at):
			q.leave(r, i, t)
		}
	case givenBack:
		c.giveBack(r, i)
	case kept:
		r.holds = slices.Delete(r.holds, i, i+1)
	case finished:
		c.algorithm.(*quota).finish(r, i, took)
	case left:
		c.queue.leave(r, i, now+r.off)
	}
}
