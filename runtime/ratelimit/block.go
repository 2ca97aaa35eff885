package ratelimit

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"time"
)

// Block refuses calls with keys, one for each policy in the order of the Spec, for so
// long from now, whatever the limit is. An absent key leaves a policy's counters alone,
// unless the policy is Global or has SharedEmpty. Calls that a policy refuses so change
// nothing; their RetryAfter says how long the block lasts at least.
//
// A block of a key takes the place of an earlier one, and 0 lifts it, as does Reset. A
// negative time is an error, and so is one above MaxWindow: to refuse a key for good,
// see Exceptions. Updates leave blocks as they are. A policy in mode Shadow decides on
// blocked keys but refuses none, and one that is Off does not look at them.
//
// What was charged stays, and so do reservations and calls that are running. Calls that
// wait are refused as soon as they cannot make it.
//
// A block is kept as a lock is: no flood of keys frees a key that is blocked. If a key
// has no counter of its own and there is no room for one, Block returns an error (see
// WithMaxKeys). The keys before it are blocked then. A Store that cannot block is an
// error that wraps errors.ErrUnsupported.
func (g *Gate) Block(ctx context.Context, d time.Duration, keys ...[]byte) error {
	return g.now().block(ctx, d, keys)
}

// block is Block.
func (g *gate) block(ctx context.Context, d time.Duration, keys [][]byte) error {
	switch {
	case g == nil || g.limiter == nil:
		return errZeroGate
	case len(keys) != len(g.counters):
		return fmt.Errorf("ratelimit: %s has %d policies, not %d", g.method, len(g.counters), len(keys))
	case d < 0:
		return fmt.Errorf("ratelimit: %s: a block of %v is negative; 0 lifts one", g.method, d)
	case d > MaxWindow:
		return fmt.Errorf("ratelimit: %s: a block of %v is longer than %v", g.method, d, time.Duration(MaxWindow))
	case g.limiter.disabled:
		return nil
	}
	if err := done(ctx); err != nil {
		return err
	}
	blocker, ok := g.store.(Blocker)
	if g.store != nil && !ok {
		return g.unsupported(g.counters[0], "block keys")
	}
	for i, c := range g.counters {
		key := c.key(keys[i])
		if len(key) == 0 && !c.shared {
			continue
		}
		if g.store != nil {
			if c.kind == unlimited {
				return g.unsupported(c, "block keys of an unlimited policy")
			}
			if ctx == nil {
				ctx = context.Background()
			}
			if err := blocker.Block(ctx, c.asked(), string(key), d); err != nil {
				return g.failed(c, c.capacity, ErrStore, err)
			}
		}
		// In memory also beside a store, for when that fails.
		if !g.limiter.mem.block(c, key, d) && g.store == nil {
			return fmt.Errorf("ratelimit: %s: no room to block a key of policy %q: each of %d counters says something still; see WithMaxKeys",
				g.method, c.policy.ID, g.limiter.maxKeys)
		}
		g.limiter.watchers.wake(c, key)
	}
	return nil
}

// mayBlock reports whether a key of c was ever blocked.
func (c *counter) mayBlock() bool { return c.blocks.Load() }

// block refuses a key for d from now, or no more if that is 0. It returns false if
// there is no room.
func (m *memory) block(c *counter, key []byte, d time.Duration) bool {
	var digest [sha256.Size]byte
	var slots [1]slot
	s := &slots[0]
	s.place, key = m.locate(c, key, &digest)
	shard := &m.shards[s.shard]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	c = c.latest()
	s.c = c
	now := m.nowFor(c, m.now())
	if _, s.entry = shard.find(s.place, key); s.entry == nil {
		if d == 0 {
			return true
		}
		if m.provide(s, now, slots[:], true, false) {
			defer m.overflow.Unlock()
		}
		if !s.isNew {
			return false
		}
		m.insert(s, key)
	}
	if c.rule != recorded {
		if s.entry.last != inRecord {
			if d == 0 {
				return true
			}
			c.settle(s.entry, now)
			shard.setRecord(s.entry, c, now)
		}
		c = c.inRecords
	}
	r := shard.records.all[s.entry.part]
	c.due(r, now+r.off)
	view, t, off := c.settleRecord(r, now)
	if view == r {
		c.moved(r, t, off)
	} else {
		r.renew()
	}
	switch {
	case d > 0:
		c.blocks.Store(true)
		// Rounded up, so that no block is none.
		r.last = max(r.last, t) // or else it is longer after the clock was set back
		r.ordered().block = t + int64((d+time.Microsecond-1)/time.Microsecond)
	case r.orders != nil:
		r.orders.block = longAgo
		c.due(r, math.MinInt64) // forgets them, if there are no others
	}
	return true
}

// blocked returns for how long a key is blocked.
func (m *memory) blocked(c *counter, key []byte) time.Duration {
	var digest [sha256.Size]byte
	p, key := m.locate(c, key, &digest)
	s := &m.shards[p.shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	_, e := s.find(p, key)
	if e == nil {
		return 0
	}
	if c = c.latest(); e.last == inRecord {
		c = c.inRecords
	}
	if c.rule != recorded || s.records.all[e.part].orders == nil {
		return 0
	}
	r := s.records.all[e.part]
	now := m.nowFor(c, m.now())
	c.due(r, now+r.off)
	view, t, off := c.settleRecord(r, now)
	if view != r || r.orders == nil {
		return 0
	}
	c.moved(r, t, off) // nobody else looks at the key
	return micros(max(0, r.orders.block-t))
}
