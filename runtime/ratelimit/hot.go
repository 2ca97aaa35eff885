package ratelimit

import (
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// A word holds microseconds << (fracBits + 1) | a fraction << 1 | whether it is held.
	fracBits = 12
	busy     = 1

	// cooled is the word of what is hot no longer.
	cooled = 1<<64 - 1

	// latestHot is the time in microseconds, some 17 years, until which there are words. It
	// also bounds for how long a bucket refills, so what is charged before is full at a
	// time that fits.
	latestHot = 1 << 49

	// hotVotes is how many more calls there have to be for a key than for others before
	// it is hot, so that an allocation is for many calls.
	hotVotes = 1024
)

// hot is the state of a token bucket for which there are so many calls that they are
// decided without a lock: by a compare-and-swap if they are admitted. Refused ones, as
// those of somebody who tries passwords, only look. A policy has at most one. The entry
// of the key is marked by isHot as long as its own state is out of date.
//
// The time of the latest charge is not kept. It is before the bucket is full, so
// neither who is charged nor how much depends on it. What is refused or told goes by a
// time that was read after the word.
//
// Nothing is hot under a clock given by WithClock, which may be set back. Others only
// are if they are of a bubble of testing/synctest, and the limiter is used in another
// one. It shows in a bucket that misses more than all, and ends that it is hot.
type hot struct {
	c     *counter
	key   string
	e     *entry
	s     *shard
	epoch time.Time // of the memory

	// The word changes, and is in a cache line of its own.
	word atomic.Uint64
	_    [56]byte
}

// vote is the key of a shard for which there were most calls of late.
type vote struct {
	e    *entry
	lead int // of its calls, over those for others
}

// vote returns the vote that is for a policy with a number.
func (s *shard) vote(num uint32) *vote { return &s.votes[num%uint32(len(s.votes))] }

// wordOf returns the word of a bucket that is full at base + part/den µs.
func wordOf(base, part int64) uint64 { return uint64(base)<<(fracBits+1) | uint64(part)<<1 }

// bucketOf returns the base and the part that wordOf made w of.
func bucketOf(w uint64) (base, part int64) {
	return int64(w >> (fracBits + 1)), int64(w >> 1 % (1 << fracBits))
}

// getsHot reports whether e, the entry of a key, leads by so many votes that it is to be
// hot, and can be.
func (s *shard) getsHot(m *memory, c *counter, e *entry) bool {
	v := s.vote(c.num)
	return v.lead >= m.hotVotes && v.e == e && m.clock == nil && c.rule == tokenBucket && c.den <= 1<<fracBits &&
		max(e.last, c.fillQ) < latestHot && e.last >= 0 && e.base <= e.last+c.fillQ // it may be overdrawn
}

// heat has e be hot, for which getsHot holds, unless another key is, and its shard is
// not to be had. The shard of e is locked. Either way, it takes as many votes again
// until the next time.
func (s *shard) heat(m *memory, c *counter, e *entry, key []byte) {
	s.vote(c.num).lead = 0
	if h := c.hot.Load(); h != nil {
		if h.s != s && !h.s.mu.TryLock() {
			return
		}
		if c.hot.Load() == h {
			h.s.cool(h.e)
		}
		if h.s != s {
			h.s.mu.Unlock()
		}
	}
	h := &hot{c: c, key: string(key), e: e, s: s, epoch: m.epoch}
	h.word.Store(wordOf(e.base, int64(e.part)))
	if !c.hot.CompareAndSwap(nil, h) {
		return // a key of another shard is
	}
	e.last, e.part = isHot, s.hots.add()
	s.hots.all[e.part] = h
}

// cool gives e, which is hot, its state back. The shard is locked.
func (s *shard) cool(e *entry) {
	i := e.part
	h := s.hots.all[i]
	s.hots.all[i] = nil
	s.hots.remove(i)
	h.c.hot.CompareAndSwap(h, nil)
	for spins := 0; ; spins++ {
		w := h.word.Load()
		if w&busy == 0 && h.word.CompareAndSwap(w, cooled) {
			base, part := bucketOf(w)
			// The last charge was before the bucket is full, and it was not later than now,
			// unless the clock was set back since.
			e.last, e.base, e.part = max(min(base, h.now()), base-h.c.fillQ), base, uint32(part)
			return
		}
		await(spins)
	}
}

// is reports whether h is what calls with a key count under.
func (h *hot) is(key []byte) bool { return h.key == string(key) || h.c.policy.Global }

// now is memory.now.
func (h *hot) now() int64 { return int64(time.Since(h.epoch) / time.Microsecond) }

// await is called while a word is held, which is for a few instructions, unless who
// holds it lost the processor.
func await(spins int) {
	if spins%32 == 31 {
		runtime.Gosched()
	}
}

// spendWord returns the word that follows w if cost is charged at now, and whether that
// is admitted.
func (c *counter) spendWord(w uint64, now, cost int64) (next uint64, admitted bool) {
	q, r := bucketOf(w)
	if q < now {
		q, r = now, 0
	}
	dq, dr := c.unitQ, c.unitR
	if cost != 1 {
		dq, dr = c.span(cost)
	}
	if q, r = q+dq, r+dr; r >= c.den {
		q, r = q+1, r-c.den
	}
	return wordOf(q, r), q < now+c.fillQ || q == now+c.fillQ && r <= c.fillR
}

// take is memory.takeOne for a key that is hot. It does nothing if it is not.
func (h *hot) take(cost int64, o *Outcome, fill bool) (allowed, found bool) {
	now, careful := int64(0), fill
	if !careful {
		now = h.now()
	}
	for spins := 0; ; spins++ {
		w := h.word.Load()
		if w == cooled || now >= latestHot {
			return false, false
		}
		if w&busy != 0 {
			await(spins)
			continue
		}
		if careful {
			now = h.now()
		}
		next, ok := h.c.spendWord(w, now, cost)
		if ok && !fill {
			if h.word.CompareAndSwap(w, next) {
				return true, true
			}
			continue
		}
		if !careful { // now may be before a charge that is in w
			careful = true
			continue
		}
		if ok {
			if !h.word.CompareAndSwap(w, next) {
				continue
			}
			w = next
		}
		base, part := bucketOf(w)
		if base > now+h.c.fillQ { // since it was charged, the clock was set back
			return false, false
		}
		*o = h.c.outcome(&entry{base: base, part: uint32(part)}, nil, now, cost, ok)
		return ok, true
	}
}

// takeBoth charges the keys h and k, if they are hot and both admit it. Or else it does
// nothing and returns false.
func takeBoth(h, k *hot, hcost, kcost int64) bool {
	if h.c.num > k.c.num { // or else two calls could keep each other from holding both
		h, k, hcost, kcost = k, h, kcost, hcost
	}
	now := h.now()
	for spins := 0; ; spins++ {
		w, v := h.word.Load(), k.word.Load()
		if w == cooled || v == cooled || now >= latestHot {
			return false
		}
		if (w|v)&busy != 0 {
			await(spins)
			continue
		}
		wnext, ok := h.c.spendWord(w, now, hcost)
		vnext, also := k.c.spendWord(v, now, kcost)
		if !ok || !also {
			return false
		}
		if !h.word.CompareAndSwap(w, w|busy) {
			continue
		}
		both := k.word.CompareAndSwap(v, vnext)
		if !both {
			wnext = w
		}
		h.word.Store(wnext)
		if both {
			return true
		}
	}
}
