package ratelimit

import (
	"crypto/sha256"
	"fmt"
)

// Dump returns what l holds in memory for a key of the policy with an ID.
func Dump(l *Limiter, id, key string) []byte {
	c := l.counters[id]
	var digest [sha256.Size]byte
	p, k := l.mem.locate(c, []byte(key), &digest)
	s := &l.mem.shards[p.shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	_, e := s.find(p, k)
	if e == nil {
		return nil
	}
	if c.rule == recorded || e.last == inRecord {
		return fmt.Appendf(nil, "%+v", *s.records.all[e.part])
	}
	b := fmt.Appendf(nil, "last %d base %d part %d", e.last, e.base, e.part)
	if g := s.ring(c, e); g != nil {
		b = fmt.Appendf(b, " ring %+v", *g)
	}
	return b
}

// Keys returns the number of counters in memory.
func Keys(l *Limiter) int { return int(l.mem.live.Load()) }

// HeatAfter has keys of l be hot that have so many calls more than others.
func HeatAfter(l *Limiter, votes int) { l.mem.hotVotes = votes }

// HotKeys returns how many keys of l are hot.
func HotKeys(l *Limiter) (n int) {
	for i := range l.mem.shards {
		s := &l.mem.shards[i]
		s.mu.Lock()
		for _, h := range s.hots.all {
			if h != nil {
				n++
			}
		}
		s.mu.Unlock()
	}
	return n
}

// Hold has the key that is hot of the policy with an ID be held, until release is called.
func Hold(l *Limiter, id string) (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.counters[id].hot.Load()
	w := h.word.Load()
	if w&busy != 0 || !h.word.CompareAndSwap(w, w|busy) {
		panic("somebody calls")
	}
	return func() { h.word.Store(w) }
}
