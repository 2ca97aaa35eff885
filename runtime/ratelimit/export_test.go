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
