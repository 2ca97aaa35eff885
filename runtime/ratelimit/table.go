package ratelimit

import (
	"encoding/binary"
	"sync"
)

const (
	inlineKey = 24  // bytes of a key that an entry holds itself
	keyLimit  = 128 // longer keys are kept as their digest

	// Codes for the length of a key that is not inline, and for a free entry.
	longKey   = 254
	digestKey = 255
	freeEntry = maxPolicies<<8 | 255

	chunkBits   = 5 // entries per chunk: 32 fill an allocation class exactly
	chunkLen    = 1 << chunkBits
	headBits    = 6
	headLen     = 1 << headBits
	keptRingLen = 16 // rings above this are not kept for reuse

	// inRecord is the last of an entry that has a record although others of its policy
	// need none: part is its index. It is after every time, so that who decides on an
	// entry and is not prepared for that finds it ahead of the clock.
	inRecord = 1 << 62
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
	part uint32
	next uint32 // index of the next entry in the same bucket, or of the next free one
	hash uint32
	meta uint32 // number of the policy << 8 | length of the key or a code
	key  [inlineKey]byte
}

func newEntry() entry { return entry{last: longAgo, base: longAgo} }

// place is where a key's entry is, if there is one.
type place struct {
	hash  uint32 // bits that say nothing of the shard
	meta  uint32 // as in entry
	shard uint32
}

// shard is a part of the table: a hash table by linear hashing (W. Litwin, 1980),
// which splits one bucket at a time, so that no insertion waits for the whole to
// be rehashed. Entries stay where they are. Everything is guarded by mu.
type shard struct {
	mu     sync.Mutex
	recent *entry // that recall found last, or nil

	heads   []*[headLen]uint32 // of the buckets' chains
	buckets uint32
	mask    uint32 // the least 2^n - 1 that has an index for each bucket

	chunks  []*[chunkLen]entry // index 0 is not used
	used    uint32             // the highest index ever used
	free    uint32             // chain of free entries below
	entries uint32
	hand    uint32 // where the search for expired entries goes on

	long    side[string]
	rings   side[ring]
	records side[*record]
	_       [24]byte // fills up to cache lines
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

func (s *shard) entry(i uint32) *entry { return &s.chunks[i>>chunkBits][i%chunkLen] }

func (s *shard) head(hash uint32) *uint32 {
	b := hash & s.mask
	if b >= s.buckets {
		b &= s.mask >> 1
	}
	return &s.heads[b>>headBits][b%headLen]
}

// find returns the index and the entry of key at p, or 0 and nil.
func (s *shard) find(p place, key []byte) (uint32, *entry) {
	if s.buckets == 0 {
		return 0, nil
	}
	for i := *s.head(p.hash); i != 0; {
		e := s.entry(i)
		if e.hash == p.hash && e.meta == p.meta && s.holds(e, key) {
			return i, e
		}
		i = e.next
	}
	return 0, nil
}

// recall is find for a key that may be the one that was asked for last.
func (s *shard) recall(p place, key []byte) *entry {
	// Entries stay where they are, and a free one matches no key, so whatever
	// recent points to can be asked.
	if e := s.recent; e != nil && e.hash == p.hash && e.meta == p.meta && s.holds(e, key) {
		return e
	}
	_, e := s.find(p, key)
	if e != nil {
		s.recent = e
	}
	return e
}

// holds reports whether e, whose meta says that it has a key like this, has it.
func (s *shard) holds(e *entry, key []byte) bool {
	if len(key) <= inlineKey {
		return string(e.key[:len(key)]) == string(key)
	}
	return s.long.all[binary.NativeEndian.Uint32(e.key[:])] == string(key)
}

// insert adds an entry for key at p, where it has none. Its state is that of
// newEntry; the caller gives it a ring if its algorithm needs one.
func (s *shard) insert(p place, key []byte) *entry {
	s.entries++
	for s.buckets < s.entries {
		s.split()
	}
	i := s.free
	if i != 0 {
		s.free = s.entry(i).next
	} else {
		if s.used++; s.used>>chunkBits == uint32(len(s.chunks)) {
			s.chunks = append(s.chunks, new([chunkLen]entry))
		}
		i = s.used
	}
	e := s.entry(i)
	*e = newEntry()
	e.hash, e.meta = p.hash, p.meta
	if len(key) <= inlineKey {
		copy(e.key[:], key)
	} else {
		j := s.long.add()
		s.long.all[j] = string(key)
		binary.NativeEndian.PutUint32(e.key[:], j)
	}
	head := s.head(e.hash)
	e.next, *head = *head, i
	return e
}

// remove takes out entry i of a policy with the given rule.
func (s *shard) remove(i uint32, r rule) {
	e := s.entry(i)
	if e.last == inRecord {
		r = recorded
	}
	link := s.head(e.hash)
	for *link != i {
		link = &s.entry(*link).next
	}
	*link = e.next
	if n := e.meta & 0xff; n == longKey || n == digestKey {
		j := binary.NativeEndian.Uint32(e.key[:])
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
	e.meta, e.next, s.free = freeEntry, s.free, i
	s.entries--
}

func (s *shard) removeRecord(i uint32) {
	if r := s.records.all[i]; r.large() {
		s.records.all[i] = nil
	} else {
		r.renew()
	}
	s.records.remove(i)
}

// split adds a bucket, and moves to it what belongs there from the one bucket that
// held it so far.
func (s *shard) split() {
	b := s.buckets
	if b%headLen == 0 {
		s.heads = append(s.heads, new([headLen]uint32))
	}
	s.buckets++
	if b > s.mask {
		s.mask = s.mask<<1 | 1
	}
	if b == 0 {
		return
	}
	to := &s.heads[b>>headBits][b%headLen]
	b0 := b & (s.mask >> 1)
	link := &s.heads[b0>>headBits][b0%headLen]
	for *link != 0 {
		i := *link
		e := s.entry(i)
		if e.hash&s.mask != b {
			link = &e.next
			continue
		}
		*link = e.next
		e.next, *to = *to, i
	}
}
