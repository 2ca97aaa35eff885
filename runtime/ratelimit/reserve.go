package ratelimit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
)

// Reservation is a call that was told when it may proceed. It comes from Gate.Reserve.
// Copies of it stand for the same call. The zero Reservation is of a call that was
// refused.
//
//	r, err := gate.Reserve(ctx, charge)
//	switch {
//	case err != nil:
//		return err
//	case !r.OK():
//		return errBusy
//	}
//	schedule(job, r.Delay()) // and r.Cancel() if the job is dropped
type Reservation struct {
	gate     *gate
	charges  []Charge
	id       uint64
	charged  uint64 // policies that were charged, by bits
	name     string // of the reservation in the gate's store; or else it is in memory
	decision Decision
}

// OK reports whether the call may proceed after its Delay. If it may not, nothing was
// charged.
func (r Reservation) OK() bool { return r.decision.Allowed }

// Delay returns how long the call has to wait before it may proceed, counted from when
// it was reserved. It is 0 if the call may proceed at once, and if it is not OK.
func (r Reservation) Delay() time.Duration { return r.decision.Delay }

// Decision returns what was decided. The RetryAfter of a refusal is how long it takes
// until the same call can be reserved.
func (r Reservation) Decision() Decision { return r.decision }

// Reserve is Take for a call that can come later: if it is not admitted now, the charge
// is made ahead, for the first time at which all policies admit the call beside what was
// reserved before it. The Reservation says how long that is from now. A refusal is no
// error, and charges nothing.
//
// What is reserved counts from now on, as if it had been charged already, and no longer
// than a call that is made when it comes. So of one policy calls come in the order in
// which they were reserved, and until they have come, others are admitted only if there
// is room for all. Calls at the times that Reserve returns are never more than what
// Policy.Bound says.
//
// A reservation is refused that would have to wait for longer than the smallest
// Policy.MaxWait or until the deadline of ctx, or for a key that is locked, blocked, or
// has as many reservations ahead as the smallest Policy.MaxQueue, or 1000. A call to wait
// for a place in a Concurrency policy, or for room in a LeakyBucket that is full, is
// refused, too, since nobody knows when calls end, and the bucket is a queue itself:
// Reserve returns the wait for the turn in it. Where a call has such a policy beside
// others, it is refused also if the others admit it only after its turn, or after the
// lease of its place. A key that shares an overflow counter (see WithMaxKeys) has no
// reservations ahead.
//
// For a TimeQuota, a policy with Count, and a Store that cannot reserve, or not this
// call, Reserve returns an error that wraps errors.ErrUnsupported. A call with an immediate admission and a
// call that is refused cost what Take does; one that is reserved ahead allocates, and its
// key takes as much memory as under an algorithm that needs more, until it has come.
func (g *Gate) Reserve(ctx context.Context, charges ...Charge) (Reservation, error) {
	return g.now().reserve(ctx, charges, MaxWindow)
}

// ReserveWithin is Reserve for a call that can wait for so long at most. If that is 0 or
// less, it has to be admitted now.
func (g *Gate) ReserveWithin(ctx context.Context, wait time.Duration, charges ...Charge) (Reservation, error) {
	return g.now().reserve(ctx, charges, wait)
}

// reserve is ReserveWithin.
func (g *gate) reserve(ctx context.Context, charges []Charge, within time.Duration) (Reservation, error) {
	c := call{mode: reserves, full: true, ends: true}
	if err := g.checkReserves(); err != nil {
		return Reservation{}, err
	}
	if !g.open && len(charges) == len(g.counters) {
		p := g.patience(ctx, charges)
		if !p.end.IsZero() {
			within = min(within, time.Until(p.end))
		}
		if !p.deadline.IsZero() {
			within = min(within, time.Until(p.deadline)-1)
		}
	}
	c.within = max(0, min(within, MaxWindow).Microseconds())
	if err := g.decide(ctx, charges, &c); err != nil {
		return Reservation{decision: c.decision}, err
	}
	r := Reservation{decision: c.decision}
	if c.id == 0 && c.name == "" || !r.OK() || r.Delay() == 0 && g.ends == nil && c.name == "" {
		return r, nil // nothing to give back
	}
	r.gate, r.id, r.name, r.charged = g, c.id, c.name, c.charged
	r.charges = make([]Charge, len(charges))
	for i := range charges {
		ch := &charges[i] // whose key stays where it is
		r.charges[i] = Charge{Key: bytes.Clone(ch.Key), Cost: ch.Cost, Limit: ch.Limit, Skip: ch.Skip}
	}
	return r, nil
}

// checkReserves returns an error if the gate cannot reserve.
func (g *gate) checkReserves() error {
	if g == nil || g.limiter == nil {
		return errZeroGate
	}
	if g.open {
		return nil
	}
	for _, c := range g.counters {
		p := &c.policy
		what := ""
		switch {
		case c.kind == off:
		case p.Algorithm == TimeQuota:
			what = "algorithm time-quota, whose calls cost what they take"
		case p.Count:
			what = "count, which needs to know how calls end"
		}
		if what != "" {
			return fmt.Errorf("ratelimit: %s: policy %q cannot be reserved ahead, since it has %s: use Acquire: %w", g.method, p.ID, what, errors.ErrUnsupported)
		}
	}
	if _, ok := g.store.(Reserver); !ok && g.store != nil {
		return g.unsupported(g.counters[0], "reserve calls ahead")
	}
	return nil
}

// unsupported returns the error of a store that cannot do something.
func (g *gate) unsupported(c *counter, what string) error {
	return fmt.Errorf("ratelimit: %s: policy %q is counted in store %q (%T), which cannot %s: %w",
		g.method, c.policy.ID, c.policy.Store, g.store, what, errors.ErrUnsupported)
}

// Cancel gives back what was reserved for a call that will not come. The times of other
// reservations stay, and what is given back can be had by others from then on: what they
// are admitted is no more than if the call had never been made.
//
// Once the call's time has come, Cancel gives back nothing that was charged, and so it
// does for a reservation without a Delay. A place in a Concurrency policy it frees at any
// time: that is how a reserved call ends. A charge also stays if the time of a later
// reservation depends on it. That is possible only where a call makes later ones come
// earlier: when its time would begin a fixed or sliding window, or an interval of a
// bucket, or use up what a bucket with a Warmup has been idle for.
//
// Only the first call does anything. It is safe for concurrent use.
func (r Reservation) Cancel() {
	if r.gate == nil {
		return
	}
	g := r.gate
	if r.name != "" {
		g.cancelInStore(r)
		return
	}
	for i, c := range g.counters {
		if r.charged>>i&1 == 0 {
			continue
		}
		key := c.key(r.charges[i].Key)
		g.limiter.mem.end(c, key, r.id, cancelled, 0)
		g.limiter.watchers.wake(c, key)
	}
}
