package ratelimit

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"time"
	"weak"
)

// Ender is implemented by a Store that supports policies whose calls end: those of
// Concurrency and TimeQuota, and those with Count or CostAfter set. It is what Acquire
// asks for.
//
// A decision is not held up by what follows a call: the limiter collects ends, and has
// a goroutine tell the store of them, as long as there are any. The next call of the
// same limiter with the same key waits until the store knows, if that takes less than
// a moment. What does not reach the store, because it is down or the process ends, is
// not repeated: a charge stays then, and a place until its lease is over.
type Ender interface {
	Store

	// End does what ends say, in their order. There are not several calls of End by
	// one limiter at a time. Where the store does not know a call any more, an end of
	// it does nothing. An error means that some may not have been done; it should name
	// the server that was asked.
	End(ctx context.Context, ends []End) error
}

// End is what becomes of one policy's part of a call that was admitted.
type End struct {
	Policy *Policy
	Key    string
	// ID is the Op.ID of the call.
	ID   uint64
	What Ending
	// Units are those of EndCharge, and the microseconds of EndFinish.
	Units int64
	// Limit is as Op.Limit.
	Limit int64
}

// Ending says what an End does.
type Ending uint8

const (
	// EndGiveBack gives back what the call was charged: a charge of a policy with Count,
	// or the place of a Concurrency policy.
	EndGiveBack Ending = iota
	// EndKeep says that what the call was charged stays.
	EndKeep
	// EndFinish charges a TimeQuota what the call took: Units microseconds, if they
	// belong to the window that the store counts.
	EndFinish
	// EndLeave takes a call out of the queue of a LeakyBucket before its turn. Those
	// behind it in the queue keep their turns.
	EndLeave
	// EndCharge charges Units more, also above the limit. It is not given back.
	EndCharge
	// EndRenew begins the lease of a Concurrency policy anew. A place that was taken
	// back is taken again only if it is free and the store still knows of it.
	EndRenew
)

// Bounds of what a limiter tells a store of ends.
const (
	// mostEnds are those that wait to be told. More are not told.
	mostEnds = 1 << 14
	// settleTime is for how long a call waits until an earlier one has ended.
	settleTime = 50 * time.Millisecond
)

// enders tells one store of ends.
type enders struct {
	store    Ender
	watchers *watchers

	pending atomic.Int64 // ends that the store may not know
	slow    atomic.Bool  // nobody waits for the store to know, until it does

	mu     sync.Mutex
	next   *endBatch // being collected, or nil
	busy   bool      // a goroutine tells the store
	latest map[endKey]*endBatch
}

// endKey is a counter of a store.
type endKey struct {
	num uint32
	key string
}

// endBatch is what a store is told at once.
type endBatch struct {
	ends     []End
	counters []*counter
	done     chan struct{} // closed when the store was told
}

// add has the store told of an end.
func (e *enders) add(c *counter, end End) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.next == nil {
		e.next = &endBatch{done: make(chan struct{})}
	}
	b := e.next
	if len(b.ends) >= mostEnds {
		return
	}
	b.ends, b.counters = append(b.ends, end), append(b.counters, c)
	if e.latest == nil {
		e.latest = make(map[endKey]*endBatch)
	}
	e.latest[endKey{c.num, end.Key}] = b
	e.pending.Add(1)
	if !e.busy {
		e.busy = true
		go e.tell()
	}
}

// tell tells the store of ends until there are none.
func (e *enders) tell() {
	for {
		e.mu.Lock()
		b := e.next
		if e.next = nil; b == nil {
			e.busy = false
			e.mu.Unlock()
			return
		}
		e.mu.Unlock()
		_ = e.store.End(context.Background(), b.ends) // nobody waits for it, and a charge that stays admits no more
		e.mu.Lock()
		for i := range b.ends {
			if k := (endKey{b.counters[i].num, b.ends[i].Key}); e.latest[k] == b {
				delete(e.latest, k)
			}
		}
		e.pending.Add(int64(-len(b.ends)))
		e.slow.Store(false)
		close(b.done)
		e.mu.Unlock()
		for i := range b.ends {
			e.watchers.wake(b.counters[i], []byte(b.ends[i].Key))
		}
	}
}

// settle waits until the store knows of what has ended with a key. It returns when that
// began, and zero if there was nothing to wait for.
func (e *enders) settle(ctx context.Context, c *counter, key string) (since time.Time) {
	if e == nil || e.pending.Load() == 0 || e.slow.Load() {
		return since
	}
	e.mu.Lock()
	b := e.latest[endKey{c.num, key}]
	e.mu.Unlock()
	if b == nil {
		return since
	}
	since = time.Now()
	var never <-chan struct{}
	if ctx != nil {
		never = ctx.Done()
	}
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	select {
	case <-b.done:
	case <-never:
	case <-timer.C:
		e.slow.Store(true)
	}
	return since
}

// end has the store of c told what becomes of a policy's part of a call. It is not a
// method of gate so that a Permit does not make charges escape to the heap.
func (l *Limiter) end(c *counter, ch *Charge, id uint64, what Ending, units int64) {
	c = c.latest()
	limit, _ := c.limits(ch)
	l.enders[c.policy.Store].add(c, End{
		Policy: c.asked(),
		Key:    string(c.key(ch.Key)),
		ID:     id,
		What:   what,
		Units:  units,
		Limit:  max(limit, 1),
	})
}

// renewals renew the places of calls in stores, for as long as somebody may release
// them: until Permit.Release, or until nobody has the Permit any more.
type renewals struct {
	mu  sync.Mutex
	all map[uint64]*renewal // by the id of the call
}

// renewal is what is renewed of a call.
type renewal struct {
	permit  weak.Pointer[held]
	charges []Charge // with keys of their own
	places  []*counter
	every   time.Duration
	timer   *time.Timer
}

// held is reachable as long as a Permit is.
type held struct{ _ *held } // with a pointer, or else its memory could be shared

// shortestRenewal bounds how often a place is renewed.
const shortestRenewal = time.Millisecond

// renew has the places of a call renewed that it has in a store. It returns nil if
// there are none.
func (g *gate) renew(charges []Charge, c *call) *held {
	if !c.far {
		return nil
	}
	r := &renewal{every: 1 << 62}
	for i, counter := range g.counters {
		if c.charged>>i&1 == 0 || counter.policy.Algorithm != Concurrency {
			continue
		}
		ch := &charges[i] // whose key stays where it is
		r.places = append(r.places, counter)
		r.charges = append(r.charges, Charge{Key: bytes.Clone(ch.Key), Cost: ch.Cost, Limit: ch.Limit})
		r.every = max(shortestRenewal, min(r.every, time.Duration(counter.window/2)*time.Microsecond))
	}
	if len(r.places) == 0 {
		return nil
	}
	h := new(held)
	r.permit = weak.Make(h)
	l, id := g.limiter, c.id
	l.renewals.mu.Lock()
	defer l.renewals.mu.Unlock()
	if l.renewals.all == nil {
		l.renewals.all = make(map[uint64]*renewal)
	}
	l.renewals.all[id] = r
	r.timer = time.AfterFunc(r.every, func() { l.renewAgain(id) })
	return h
}

// renewAgain renews the places of a call, unless it has ended or will not.
func (l *Limiter) renewAgain(id uint64) {
	l.renewals.mu.Lock()
	defer l.renewals.mu.Unlock()
	r := l.renewals.all[id]
	switch {
	case r == nil:
		return
	case r.permit.Value() == nil:
		delete(l.renewals.all, id)
		return
	}
	for i, c := range r.places {
		l.end(c, &r.charges[i], id, EndRenew, 0)
	}
	r.timer.Reset(r.every)
}

// stop ends the renewals of a call. None follows.
func (r *renewals) stop(id uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if renewal := r.all[id]; renewal != nil {
		renewal.timer.Stop()
		delete(r.all, id)
	}
}
