package ratelimit

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Wait is AllowAll for calls that can wait: it returns nil when the call may
// proceed, and has charged it then. Calls with the same keys proceed in the order
// in which they came. The waiting calls of a key are as many goroutines, and none
// besides.
//
// Wait returns an *Error of kind ErrLimited at once if the call cannot make it: if
// it would have to wait, behind those that wait already, for longer than the
// smallest Policy.MaxWait or until the deadline of ctx, if as many calls as the
// smallest Policy.MaxQueue wait already, or if waiting does not help. Such a refusal
// locks the key as any other. Of a Concurrency policy, or one with Count set, nobody
// knows when calls end, so such a call waits for as long as it may. If ctx is done
// while the call waits, the error is ctx.Err(): nothing is charged, and those behind
// move up.
//
// With a Store, the first call in line asks it when it was told to and once a second at
// least, so that what another process gives back or resets is seen.
//
// Calls that do not wait, and calls under other keys that share one of the
// counters, may be admitted meanwhile. Wait sleeps by the time of the process, also
// if the limiter has a Clock.
func (g *Gate) Wait(ctx context.Context, charges []Charge) error {
	return g.now().waitAll(ctx, charges)
}

// waitAll is Wait.
func (g *gate) waitAll(ctx context.Context, charges []Charge) error {
	if g != nil && g.open {
		return nil
	}
	if err := g.checkEndless(); err != nil {
		return err
	}
	c := call{mode: tries}
	return g.wait(ctx, charges, &c)
}

// AcquireWait is Acquire for calls that can wait; see Wait.
func (g *Gate) AcquireWait(ctx context.Context, charges []Charge) (Permit, error) {
	return g.now().acquireWait(ctx, charges)
}

// acquireWait is AcquireWait.
func (g *gate) acquireWait(ctx context.Context, charges []Charge) (Permit, error) {
	if g != nil && g.open {
		return Permit{}, nil
	}
	c := call{mode: tries}
	if err := g.prepare(&c); err != nil {
		return Permit{}, err
	}
	err := g.wait(ctx, charges, &c)
	if err == nil {
		return g.permit(charges, &c), nil
	}
	if c.decision.Allowed { // but did not get its turn
		permit := g.permit(charges, &c)
		permit.Release()
	}
	return Permit{}, err
}

// A call that waits asks a store again when it was told to. Other processes may give back,
// reset keys and lift blocks earlier, and do not say so: it asks once a second at least,
// and where calls end, the first times sooner: after firstLook, and each time twice that.
// Only the first in a queue asks.
const (
	firstLook = 50 * time.Millisecond
	lastLook  = time.Second
	// lineLook is how often a call asks at least that is not the first of those of all
	// processes: it does not hear of it when it is, and nobody else gets a place then.
	lineLook = 250 * time.Millisecond
)

// waiters are the calls of a gate that wait, in one queue for each list of keys.
type waiters struct {
	count  atomic.Int32
	mu     sync.Mutex
	queues map[string]*queue
}

// queue is the calls that wait with the same keys, first come first served. The
// first one sleeps until it can be admitted; the others, until they are the first.
type queue struct {
	name  string
	keys  [][]byte // by policy
	calls []*waiter
	plan  *plan         // nil if it is not known
	poke  chan struct{} // something was given back: the first call tries again

	end     time.Time // the latest of the calls that there were
	patient bool      // one of them had none

	outdated atomic.Bool // a policy was updated, so the plan is wrong
}

type waiter struct {
	charges []Charge
	first   chan struct{} // closed when it is the first
	end     time.Time     // of its patience by MaxWait; zero for none
	early   bool          // that may be before the end of one ahead of it, whose MaxWait was longer
}

// patience is how long a call may wait.
type patience struct {
	deadline time.Time // of its context; zero for none
	end      time.Time // by MaxWait; zero for none
}

func (g *gate) patience(ctx context.Context, charges []Charge) patience {
	var p patience
	if ctx != nil {
		p.deadline, _ = ctx.Deadline()
	}
	longest := time.Duration(0)
	for i, c := range g.counters {
		if w := c.policy.MaxWait; w > 0 && i < len(charges) && !charges[i].Skip && (longest == 0 || w < longest) {
			longest = w
		}
	}
	if longest > 0 {
		p.end = time.Now().Add(longest)
	}
	return p
}

// allows reports whether a call may wait for d from now.
func (p *patience) allows(d time.Duration) bool {
	return d != Never &&
		(p.deadline.IsZero() || d < time.Until(p.deadline)) &&
		(p.end.IsZero() || d <= time.Until(p.end))
}

// wait decides c, whose mode is tries, when it can be admitted.
func (g *gate) wait(ctx context.Context, charges []Charge, c *call) error {
	c.ends = c.ends || g != nil && g.queued
	if g == nil || g.waiters.count.Load() == 0 || !g.waits(charges) {
		if err := g.decide(ctx, charges, c); err != nil {
			return err
		}
	}
	p := g.patience(ctx, charges)
	if !c.decision.Allowed {
		if err := g.line(ctx, charges, c, &p); err != nil {
			return err
		}
	}
	if c.decision.Delay == 0 {
		return nil
	}
	return g.turn(ctx, charges, c, &p)
}

// waits reports whether calls with these keys wait.
func (g *gate) waits(charges []Charge) bool {
	if len(charges) != len(g.counters) {
		return false
	}
	var buf [128]byte
	name := g.queueName(buf[:0], charges)
	g.waiters.mu.Lock()
	defer g.waiters.mu.Unlock()
	return g.waiters.queues[string(name)] != nil
}

// queueName appends what tells lists of keys apart.
func (g *gate) queueName(b []byte, charges []Charge) []byte {
	for i, c := range g.counters {
		if charges[i].Skip {
			b = append(b, 0) // nor does it wait for those that do not skip it
			continue
		}
		key := c.key(charges[i].Key)
		b = binary.AppendUvarint(b, 1+uint64(len(key)))
		b = append(b, key...)
	}
	return b
}

// line has c wait in its queue until it is admitted.
func (g *gate) line(ctx context.Context, charges []Charge, c *call, p *patience) error {
	q, w, planned := g.join(charges, c, p)
	if w == nil {
		return g.refuse(ctx, charges, c, planned)
	}
	defer func() { g.leave(q, w, c.decision.Allowed) }()
	var never <-chan struct{}
	if ctx != nil {
		never = ctx.Done()
	}
	var end <-chan time.Time
	if w.early {
		timer := time.NewTimer(time.Until(w.end))
		defer timer.Stop()
		end = timer.C
	}
	select {
	case <-w.first:
	case <-end:
		select {
		case <-w.first:
		default:
			return g.refuse(ctx, charges, c, 0)
		}
	case <-never:
		return ctx.Err()
	}
	if g.store != nil {
		c.ticket = 1 + rand.Uint32N(math.MaxUint32)
		defer func() {
			if c.lined {
				c.mode = tries
				g.quit(charges, c)
			}
		}()
	}
	before := int64(0)
	for look := firstLook; ; look = min(2*look, lastLook) {
		if err := g.decide(ctx, charges, c); err != nil {
			return err
		}
		if c.decision.Allowed {
			return nil
		}
		if c.before < before {
			look = firstLook // those who come first have changed
		}
		if before = c.before; before > 0 {
			look = min(look, lineLook)
		}
		if !p.allows(c.least) {
			return g.refuse(ctx, charges, c, 0)
		}
		sleep := c.decision.RetryAfter
		if g.store != nil {
			sleep = min(sleep, max(min(c.least, lastLook), look))
		}
		if !p.end.IsZero() {
			sleep = min(sleep, time.Until(p.end))
		}
		timer := time.NewTimer(sleep)
		select {
		case <-timer.C:
		case <-q.poke:
			timer.Stop()
		case <-never:
			timer.Stop()
			return ctx.Err()
		}
		if !p.end.IsZero() && !time.Now().Before(p.end) {
			// The last try is at the end of its patience.
			c.mode = takes
			return g.admit(ctx, charges, c)
		}
	}
}

// refuse refuses c, and returns the error. planned is how long c would have waited,
// as far as that is known.
func (g *gate) refuse(ctx context.Context, charges []Charge, c *call, planned time.Duration) error {
	c.mode, c.least = refuses, planned
	if err := g.decide(ctx, charges, c); err != nil {
		return err
	}
	for i, counter := range g.counters {
		if len(counter.locks) > 0 {
			g.limiter.watchers.wake(counter, counter.key(charges[i].Key)) // to be refused, too
		}
	}
	return g.newError(c.speaker, ErrLimited, c.decision)
}

// join puts c at the end of its queue. The waiter is nil if it cannot make it; then
// planned is how long it would have to wait.
func (g *gate) join(charges []Charge, c *call, p *patience) (q *queue, w *waiter, planned time.Duration) {
	name := string(g.queueName(nil, charges))
	g.waiters.mu.Lock()
	defer g.waiters.mu.Unlock()
	q = g.waiters.queues[name]
	if q == nil {
		q = &queue{name: name, poke: make(chan struct{}, 1)}
		for i, c := range g.counters {
			q.keys = append(q.keys, bytes.Clone(c.key(charges[i].Key)))
		}
	}
	planned = max(c.least, g.planned(q, charges, p))
	if g.isFull(q, charges) || !p.allows(planned) {
		return nil, nil, planned
	}
	w = &waiter{charges: make([]Charge, len(charges)), first: make(chan struct{}), end: p.end}
	w.early = !p.end.IsZero() && (q.patient || q.end.After(p.end))
	if q.patient = q.patient || p.end.IsZero(); p.end.After(q.end) {
		q.end = p.end
	}
	for i := range charges {
		ch := &charges[i] // whose key stays where it is
		w.charges[i] = Charge{Key: bytes.Clone(ch.Key), Cost: ch.Cost, Limit: ch.Limit, Skip: ch.Skip}
	}
	if len(q.calls) == 0 {
		if g.waiters.queues == nil {
			g.waiters.queues = make(map[string]*queue)
		}
		g.waiters.queues[name] = q
		g.limiter.watchers.watch(g, q)
		close(w.first)
	}
	q.calls = append(q.calls, w)
	g.waiters.count.Add(1)
	return q, w, planned
}

// isFull reports whether a call may not join the queue.
func (g *gate) isFull(q *queue, charges []Charge) bool {
	for i, c := range g.counters {
		if n := c.policy.MaxQueue; n > 0 && !charges[i].Skip && len(q.calls) >= n {
			return true
		}
	}
	return false
}

// leave takes w out of its queue.
func (g *gate) leave(q *queue, w *waiter, admitted bool) {
	g.waiters.mu.Lock()
	defer g.waiters.mu.Unlock()
	if q.plan != nil && !admitted {
		q.plan.exact = false
	}
	i := slices.Index(q.calls, w)
	q.calls = slices.Delete(q.calls, i, i+1)
	g.waiters.count.Add(-1)
	if len(q.calls) == 0 {
		delete(g.waiters.queues, q.name)
		g.limiter.watchers.unwatch(g, q)
		return
	}
	if i == 0 {
		close(q.calls[0].first)
	}
}

// turn has an admitted call wait for its turn in a LeakyBucket. The call leaves the
// queue if ctx is done before that or it may not wait for so long.
func (g *gate) turn(ctx context.Context, charges []Charge, c *call, p *patience) error {
	if p == nil {
		p = new(patience)
		if ctx != nil {
			p.deadline, _ = ctx.Deadline()
		}
	}
	if !p.allows(c.decision.Delay) {
		g.abandon(charges, c)
		return g.tooLong(c)
	}
	timer := time.NewTimer(c.decision.Delay)
	if ctx == nil {
		<-timer.C
		return nil
	}
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		timer.Stop()
		g.abandon(charges, c)
		return ctx.Err()
	}
}

// tooLong returns the error of an admitted call that may not wait for its turn.
func (g *gate) tooLong(c *call) error {
	for i, counter := range g.counters {
		if counter.queue != nil && c.charged>>i&1 != 0 {
			return g.newError(counter, ErrLimited, Decision{
				Policy:     counter.policy.ID,
				Limit:      counter.capacity,
				RetryAfter: c.decision.Delay,
			})
		}
	}
	return g.newError(g.counters[0], ErrLimited, Decision{RetryAfter: c.decision.Delay})
}

// abandon gives back the places in queues of an admitted call.
func (g *gate) abandon(charges []Charge, c *call) {
	for i, counter := range g.counters {
		if counter.queue != nil && c.charged>>i&1 != 0 {
			key := counter.key(charges[i].Key)
			if c.far {
				g.limiter.end(counter, &charges[i], c.id, EndLeave, 0)
				continue
			}
			g.limiter.mem.end(counter, key, c.id, left, 0)
			g.limiter.watchers.wake(counter, key)
		}
	}
}

// watchers are the queues that wait for a counter.
type watchers struct {
	mu     sync.Mutex
	queues map[uint32]map[*queue][]byte // by number, and the key that they wait for
}

// watch has the queue hear of what is given back to its counters.
func (w *watchers) watch(g *gate, q *queue) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queues == nil {
		w.queues = make(map[uint32]map[*queue][]byte)
	}
	for i, c := range g.counters {
		if w.queues[c.num] == nil {
			w.queues[c.num] = make(map[*queue][]byte)
		}
		w.queues[c.num][q] = q.keys[i]
		c.waiting.Add(1)
	}
}

func (w *watchers) unwatch(g *gate, q *queue) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range g.counters {
		delete(w.queues[c.num], q)
		if len(w.queues[c.num]) == 0 {
			delete(w.queues, c.num)
		}
		c.waiting.Add(-1)
	}
}

// wakeAll has all calls try again that wait for c, which was updated.
func (w *watchers) wakeAll(c *counter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for q := range w.queues[c.num] {
		q.outdated.Store(true)
		select {
		case q.poke <- struct{}{}:
		default:
		}
	}
}

// wake has the calls try again that wait for what was given back.
func (w *watchers) wake(c *counter, key []byte) {
	if c.waiting.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for q, k := range w.queues[c.num] {
		if bytes.Equal(k, key) {
			select {
			case q.poke <- struct{}{}:
			default:
			}
		}
	}
}
