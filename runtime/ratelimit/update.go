package ratelimit

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

// Patch says what Limiter.Update changes of a policy. What is nil stays as it is.
type Patch struct {
	// Limit is as in Policy: units per Window, Unlimited or Blocked. A policy that is
	// declared as Dynamic takes only the latter two, and 0 to be dynamic again.
	Limit    *int64
	Window   *time.Duration
	Burst    *int64
	Lease    *time.Duration
	MaxWait  *time.Duration
	MaxQueue *int
	Mode     *Mode
	OnEmpty  *OnEmpty
	OnError  *OnError
	Message  *string
	Status   *int
	// Exceptions give single keys limits of their own, in place of those that an earlier
	// patch gave. A zero Exceptions takes them away.
	Exceptions *Exceptions
}

// Exceptions give single keys of a policy limits of their own: an address that is
// blocked, a customer that may do ten times as much. They take effect and end as other
// updates do, and counters are kept. A policy that has them costs its calls a call of
// LimitOf, a few times, and its keys as much memory as those of a Dynamic policy.
type Exceptions struct {
	// LimitOf returns the limit of a key, where limit is that of the policy or, if it is
	// Dynamic, of the call: limit itself for a key that is no exception, Unlimited, 0 or
	// less for Blocked, or a number up to MaxLimit. Where Policy.Burst is set, it stays
	// the capacity. The key is that of the Charge, as AppendText and the functions beside
	// it wrote it; it is empty if the policy is Global or the call has no key.
	//
	// It is called by many goroutines at once, while parts of the limiter are locked: it
	// must be quick, not use the limiter, not keep the key, and return the same for the
	// same arguments for as long as the policy has these Exceptions.
	LimitOf func(key []byte, limit int64) int64
	// Switches is set if LimitOf returns nothing but limit, Unlimited and Blocked. Then
	// policies of all algorithms and stores can have the exceptions; otherwise not
	// LeakyBucket, Warmup, and stores that do not support Dynamic policies. Another limit
	// is not heeded.
	Switches bool
}

// keyCopies are what LimitOf gets to see, so that a Charge's own key can stay on the
// caller's stack.
var keyCopies = sync.Pool{New: func() any { return new([]byte) }}

func (x *Exceptions) limitOf(key []byte, limit int64) int64 {
	b := keyCopies.Get().(*[]byte)
	*b = append((*b)[:0], key...)
	limit = x.LimitOf(*b, limit)
	keyCopies.Put(b)
	return limit
}

// apply returns p with the changes of the patch.
func (c *Patch) apply(p Policy) Policy {
	set(&p.Limit, c.Limit)
	set(&p.Window, c.Window)
	set(&p.Burst, c.Burst)
	set(&p.Lease, c.Lease)
	set(&p.MaxWait, c.MaxWait)
	set(&p.MaxQueue, c.MaxQueue)
	set(&p.Mode, c.Mode)
	set(&p.OnEmpty, c.OnEmpty)
	set(&p.OnError, c.OnError)
	set(&p.Message, c.Message)
	set(&p.Status, c.Status)
	return p
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// UnknownPolicyError is the error of Update and GateOf for an ID that the limiter does not
// know.
type UnknownPolicyError struct{ ID string }

func (e *UnknownPolicyError) Error() string {
	return fmt.Sprintf("ratelimit: the limiter has no policy %q", e.ID)
}

// Policies returns the policies of all gates that were made, as they are in force,
// sorted by ID.
func (l *Limiter) Policies() []Policy {
	if l == nil || !l.ready {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []Policy
	for _, c := range l.counters {
		p := c.policy
		p.Lock = slices.Clone(p.Lock)
		p.KeyForm = strings.Join(c.forms, ";")
		all = append(all, p)
	}
	slices.SortFunc(all, func(p, q Policy) int { return strings.Compare(p.ID, q.ID) })
	return all
}

// Update changes a policy of all gates that have it. The change is in force at the
// next decision, and calls that wait try again. Counters are kept: what was charged
// stays charged, a bucket owes the tokens that it owed and refills at its new pace
// from now on, and a window that is longer counts what is still known of it, but nothing
// of a key that had nothing left to count. Where the length of a sliding window changes,
// all that it counted counts as charged now. A Lease that is shorter holds for the calls
// that run, from now on. Calls that wait go on by the MaxWait they began with, and those
// of a LeakyBucket keep the turn that they were given: others that come after a raise may
// go before them.
//
// Several updates of one policy add up: each changes what the one before has made of
// it. A gate that is made later gets the policy as it is in force, whatever its Spec
// says in the fields that a Patch has.
//
// If the policy would not be valid, or its store does not support it, Update returns an
// error and changes nothing; if the limiter has no such policy, an
// *UnknownPolicyError. In memory, Update stops all calls of the limiter for as long as
// it takes to look at every key: for a million some ten milliseconds, and some tenths of
// a second if they have records, as those of all options and algorithms but the simplest
// have. A Redis store converts a key at its next call.
func (l *Limiter) Update(id string, patch Patch) error {
	if l == nil || !l.ready {
		return fmt.Errorf("ratelimit: zero Limiter; use New or Disabled")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.counters[id]
	if old == nil {
		return &UnknownPolicyError{id}
	}
	p := patch.apply(old.policy)
	if old.declared.Dynamic && patch.Limit != nil {
		p.Dynamic = p.Limit != Unlimited && p.Limit != Blocked
	}
	rules, err := l.check(&p)
	if err != nil {
		return err
	}
	exceptions := old.exceptions
	if patch.Exceptions != nil {
		exceptions = nil
		if patch.Exceptions.LimitOf != nil {
			exceptions = new(*patch.Exceptions)
		}
	}
	if exceptions != nil {
		if err := l.checkExceptions(p, exceptions); err != nil {
			return err
		}
	}
	c := newCounter(p, int(old.num), rules, exceptions, old)
	c.adjustable = exceptions != nil && !exceptions.Switches
	c.common = old.common
	l.counters[id] = c
	l.mem.replace(old, c)
	l.refreshAll()
	l.watchers.wakeAll(c)
	return nil
}

// checkExceptions returns what keeps p from having exceptions.
func (l *Limiter) checkExceptions(p Policy, x *Exceptions) error {
	if p.Limit == Unlimited || p.Limit == Blocked {
		p.Limit = 1 // the rest has to be valid for other limits, too
	}
	if !x.Switches {
		p.Dynamic, p.Limit = true, 0
	}
	if _, err := l.check(&p); err != nil {
		return fmt.Errorf("ratelimit: policy %q cannot have these exceptions: %w", p.ID, err)
	}
	return nil
}

// Subscribe has the limiter tell o of each decision from now on, besides other
// observers, until the function that it returns is called. That may be done several
// times. Decisions under way may still be told.
func (l *Limiter) Subscribe(o Observer) (unsubscribe func()) {
	if l == nil || !l.ready || o == nil {
		return func() {}
	}
	s := &subscription{o}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.observers = append(slices.Clip(l.observers), s)
	l.refreshAll()
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if i := slices.Index(l.observers, s); i >= 0 {
			l.observers = slices.Delete(slices.Clone(l.observers), i, i+1)
			l.refreshAll()
		}
	}
}

// latest returns what c counts as now. The caller has locked a shard.
func (c *counter) latest() *counter {
	for n := c.replaced.Load(); n != nil; n = c.replaced.Load() {
		c = n
	}
	return c
}

// replace has c count in place of old, with which it shares its number.
func (m *memory) replace(old, c *counter) {
	for i := range m.shards {
		m.shards[i].mu.Lock()
		defer m.shards[i].mu.Unlock() // also if a CustomAlgorithm panics
	}
	m.overflow.Lock()
	defer m.overflow.Unlock()
	now := m.now()
	for i := range m.shards {
		s := &m.shards[i]
		for j := uint32(1); j <= s.used; j++ {
			e := s.entry(j)
			if e.meta == freeEntry || e.meta>>8 != old.num {
				continue
			}
			if e.last == isHot {
				s.cool(e)
			}
			limit := c.paceOf(s, e)
			switch {
			case old.rule == recorded:
				c.adoptRecord(s.records.all[e.part], old, m.nowFor(old, now), limit)
			case e.last == inRecord && c.rule == recorded:
				e.last = longAgo
				c.adoptRecord(s.records.all[e.part], old.inRecords, now, limit)
			case e.last == inRecord:
				c.inRecords.adoptRecord(s.records.all[e.part], old.inRecords, now, limit)
			case c.rule == recorded:
				s.record(e, old, now)
				c.adoptRecord(s.records.all[e.part], old.inRecords, now, limit)
			default:
				if was := *e; !c.adopt(e, s.ring(c, e), old, now) {
					*e = was
					c.inRecords.adoptRecord(s.setRecord(e, old, now), old.inRecords, now, limit)
				}
			}
		}
	}
	switch {
	case old.rule == recorded:
		c.adoptRecord(&c.spill.record, old, m.nowFor(old, now), c.paceOf(nil, nil))
	case c.rule == recorded:
		old.write(&c.spill.record, &c.spill.entry, &c.spill.ring, now)
		c.adoptRecord(&c.spill.record, old.inRecords, now, c.paceOf(nil, nil))
	default:
		_ = c.adopt(&c.spill.entry, &c.spill.ring, old, now) // the longest debt there is will do
	}
	if c.spill.clearAt.Load() != math.MinInt64 {
		if c.rule == recorded {
			c.spill.clearAt.Store(c.clearTime(&c.spill.record))
		} else {
			c.spill.clearAt.Store(c.clearAt(&c.spill.entry))
		}
	}
	all := slices.Clone(*m.counters.Load())
	all[c.num] = c
	m.counters.Store(&all)
	old.replaced.Store(c)
}
