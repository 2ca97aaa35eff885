package ratelimit

import (
	"encoding/binary"
	"slices"
	"sync"
)

const (
	inlineKey = 24  // bytes of a key that an entry holds itself
	keyLimit  = 128 // longer keys are kept as their digest

	// Codes for the length of a key that is not inline, and for a free entry.
	longKey   = 254
	digestKey = 255
	freeEntry = maxPolicies<<8 | 255

	// Entries and pages are allocated by these, which fill allocation classes exactly.
	fewLen  = 32
	manyLen = 256

	pageLen     = 7  // with the count and the link, a cache line
	pageLoad    = 4  // entries per page: those that are still to be split have up to twice as many
	keptRingLen = 16 // rings above this are not kept for reuse

	// inRecord is the last of an entry that has a record although others of its policy
	// need none: part is its index. It is after every time, so that who decides on an
	// entry and is not prepared for that finds it ahead of the clock.
	inRecord = 1 << 62

	// isHot is the last of an entry whose state is elsewhere: part is its index. Nobody
	// else sees it: who finds such an entry first gives it its state back.
	isHot = inRecord + 1
)

// entry is the state of one key under one policy. What base and part hold depends
// on the algorithm:
//
//	token-bucket  the time at which the bucket is full, base + part/den µs
//	fixed-window  part is the units used; last is the window's start
//	sliding-log   base is the zero of the stamps' times; part is the ring's index
//
// Of a policy that needs more, part is the index of a record, which holds it all.
type entry struct {
	last int64 // time of the latest charge; µs
	base int64
	part uint32 // of a free entry, the index of the next free one
	meta uint32 // number of the policy << 8 | length of the key or a code
	key  [inlineKey]byte
}

// page lists entries whose hashes end alike. The entry behind a slot is looked at
// only if the whole hash is that of the key, so it is nearly always the right one.
type page struct {
	hash [pageLen]uint32
	n    uint32 // slots in use, the first ones; all of them if there is a next page
	slot [pageLen]uint32
	next uint32 // index among the spare ones of that with what has no room here, or 0
}

// side returns the index of a key that is not inline.
func (e *entry) side() uint32 { return binary.NativeEndian.Uint32(e.key[:]) }

func newEntry() entry { return entry{last: longAgo, base: longAgo} }

// place is where a key's entry is, if there is one.
type place struct {
	hash  uint32 // bits that say nothing of the shard
	meta  uint32 // as in entry
	shard uint32
}

// shard is a part of the table: a hash table by linear hashing (W. Litwin, 1980),
// which splits one page at a time, so that no insertion waits for the whole to
// be rehashed. Entries stay where they are. Everything is guarded by mu.
type shard struct {
	mu    sync.Mutex
	votes [4]vote // by the policies' numbers

	pages  blocks[page]
	count  uint32       // of pages
	mask   uint32       // the least 2^n - 1 that has an index for each page
	spare  blocks[page] // index 0 is not used
	spares uint32       // the highest index ever used
	idle   uint32       // chain of those that are not in use

	entries blocks[entry] // index 0 is not used
	used    uint32        // the highest index ever used
	free    uint32        // chain of free entries below
	live    uint32        // entries in use
	hand    uint32        // where the search for expired entries goes on

	long    side[string]
	rings   side[ring]
	records side[*record]
	hots    side[*hot]
	_       [8]byte // fills up to cache lines
}

// side keeps what does not fit into an entry. Index 0 is not used.
type side[T any] struct {
	all  []T
	free []uint32
}

func (s *side[T]) add() uint32 {
	if n := len(s.free); n > 0 {
		i := s.free[n-1]
		s.free = s.free[:n-1]
		return i
	}
	var zero T
	if len(s.all) == 0 {
		s.all = append(s.all, zero)
	}
	s.all = append(s.all, zero)
	return uint32(len(s.all) - 1)
}

func (s *side[T]) remove(i uint32) { s.free = append(s.free, i) }

// blocks is a slice that grows without being copied: by a few at first and then by
// many, so that a small table is small, and of a large one the pointers stay in the
// processor's cache.
type blocks[T any] struct {
	few  []*[fewLen]T // of the first manyLen
	many []*[manyLen]T
}

func (b *blocks[T]) at(i uint32) *T {
	if i < manyLen {
		return &b.few[i/fewLen][i%fewLen]
	}
	return &b.many[i/manyLen-1][i%manyLen]
}

// reach makes room for index i, the one after the last.
func (b *blocks[T]) reach(i uint32) {
	switch {
	case i < manyLen && i/fewLen == uint32(len(b.few)):
		b.few = append(b.few, new([fewLen]T))
	case i >= manyLen && i/manyLen-1 == uint32(len(b.many)):
		b.many = append(b.many, new([manyLen]T))
	}
}

func (s *shard) entry(i uint32) *entry { return s.entries.at(i) }

// page returns the first page of a hash. There is one.
func (s *shard) page(hash uint32) *page {
	b := hash & s.mask
	if b >= s.count {
		b &= s.mask >> 1
	}
	return s.pages.at(b)
}

// find returns the index and the entry of key at p, or 0 and nil.
func (s *shard) find(p place, key []byte) (uint32, *entry) {
	if s.count == 0 {
		return 0, nil
	}
	for b := s.page(p.hash); ; b = s.spare.at(b.next) {
		for j := range b.hash[:b.n] {
			if b.hash[j] != p.hash {
				continue
			}
			if e := s.entry(b.slot[j]); e.meta == p.meta && s.holds(e, key) {
				if e.last == isHot {
					s.cool(e)
				}
				return b.slot[j], e
			}
		}
		if b.next == 0 {
			return 0, nil
		}
	}
}

// recall is find for a key that may be the one that is asked for most. That is found
// out by a vote (R. Boyer, J S. Moore, 1981).
func (s *shard) recall(p place, key []byte) *entry {
	v := s.vote(p.meta >> 8)
	// Entries stay where they are, and a free one matches no key, so whatever
	// it points to can be asked.
	if e := v.e; e != nil && e.meta == p.meta && s.holds(e, key) {
		if e.last == isHot {
			s.cool(e)
		}
		v.lead++
		return e
	}
	_, e := s.find(p, key)
	if v.lead > 0 {
		v.lead = min(v.lead, hotVotes) - 1
	} else {
		v.e = e
	}
	return e
}

// holds reports whether e, whose meta says that it has a key like this, has it.
func (s *shard) holds(e *entry, key []byte) bool {
	if len(key) <= inlineKey {
		return string(e.key[:len(key)]) == string(key)
	}
	return s.long.all[e.side()] == string(key)
}

// insert adds an entry for key at p, where it has none. Its state is that of
// newEntry; the caller gives it a ring if its algorithm needs one.
func (s *shard) insert(p place, key []byte) *entry {
	s.live++
	for s.count*pageLoad < s.live {
		s.split()
	}
	i := s.free
	if i != 0 {
		s.free = s.entry(i).part
	} else {
		s.used++
		s.entries.reach(s.used)
		i = s.used
	}
	e := s.entry(i)
	*e = newEntry()
	e.meta = p.meta
	if len(key) <= inlineKey {
		copy(e.key[:], key)
	} else {
		j := s.long.add()
		s.long.all[j] = string(key)
		binary.NativeEndian.PutUint32(e.key[:], j)
	}
	s.put(s.page(p.hash), p.hash, i)
	return e
}

// put adds entry i to b, or to a page after it.
func (s *shard) put(b *page, hash, i uint32) {
	for b.n == pageLen {
		if b.next == 0 {
			b.next = s.newSpare()
		}
		b = s.spare.at(b.next)
	}
	b.hash[b.n], b.slot[b.n] = hash, i
	b.n++
}

// newSpare returns the index of an empty page that is not in use.
func (s *shard) newSpare() uint32 {
	if i := s.idle; i != 0 {
		b := s.spare.at(i)
		s.idle, b.next = b.next, 0
		return i
	}
	s.spares++
	s.spare.reach(s.spares)
	return s.spares
}

// remove takes out entry i of a policy with the given rule, whose key has the given
// hash.
func (s *shard) remove(hash, i uint32, r rule) {
	s.take(s.page(hash), i)
	e := s.entry(i)
	if e.last == inRecord {
		r = recorded
	}
	if n := e.meta & 0xff; n == longKey || n == digestKey {
		j := e.side()
		s.long.all[j] = ""
		s.long.remove(j)
	}
	switch r {
	case slidingLog:
		g := &s.rings.all[e.part]
		g.head, g.n, g.units = 0, 0, 0
		if len(g.stamps) > keptRingLen {
			g.stamps = nil
		}
		s.rings.remove(e.part)
	case recorded:
		s.removeRecord(e.part)
	}
	e.meta, e.part, s.free = freeEntry, s.free, i
	s.live--
}

func (s *shard) removeRecord(i uint32) {
	if r := s.records.all[i]; r.large() {
		s.records.all[i] = nil
	} else {
		r.renew()
	}
	s.records.remove(i)
}

// take takes entry i out of the pages from first on, and puts the last one in its place.
func (s *shard) take(first *page, i uint32) {
	b := first
	for !slices.Contains(b.slot[:b.n], i) {
		b = s.spare.at(b.next)
	}
	j := slices.Index(b.slot[:b.n], i)
	before, last := first, first
	for last.next != 0 {
		before, last = last, s.spare.at(last.next)
	}
	last.n--
	b.hash[j], b.slot[j] = last.hash[last.n], last.slot[last.n]
	if last.n == 0 {
		s.cut(before) // last, unless that is the first
	}
}

// cut takes the pages after b out of use. They are empty.
func (s *shard) cut(b *page) {
	for b.next != 0 {
		i := b.next
		spare := s.spare.at(i)
		b.next = spare.next
		spare.next, s.idle = s.idle, i
	}
}

// split adds a page, and moves to it what belongs there from the one page that
// held it so far.
func (s *shard) split() {
	i := s.count
	s.pages.reach(i)
	s.count++
	if i > s.mask {
		s.mask = s.mask<<1 | 1
	}
	if i == 0 {
		return
	}
	to := s.pages.at(i)
	from := s.pages.at(i & (s.mask >> 1))
	last, n := from, uint32(0) // where the next one that stays goes
	for b := from; ; b = s.spare.at(b.next) {
		count := b.n
		for j := range count {
			hash, slot := b.hash[j], b.slot[j]
			if hash&s.mask == i {
				s.put(to, hash, slot)
				continue
			}
			if n == pageLen {
				last, n = s.spare.at(last.next), 0
			}
			last.hash[n], last.slot[n] = hash, slot
			n++
		}
		if b.next == 0 {
			break
		}
	}
	last.n = n
	for b := last; b.next != 0; {
		b = s.spare.at(b.next)
		b.n = 0
	}
	s.cut(last)
}
