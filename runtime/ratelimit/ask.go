package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/ratelimitgen/ratelimitgen/internal/waited"
)

// ask has the store decide, or if it fails, Policy.OnError.
func (g *gate) ask(ctx context.Context, charges []Charge, c *call, verdicts []verdict, full bool) (admitted bool, err error) {
	if ctx == nil {
		ctx = context.Background()
	}
	c.far = false
	var id uint64
	var start time.Time // of what the call waits for before it asks
	ops := make([]Op, 0, len(charges))
	for i, counter := range g.counters {
		if !verdicts[i].asked {
			continue
		}
		op := g.op(i, &charges[i], c.mode == peeks || c.mode == refuses)
		op.Waits, op.Refused = c.mode == tries, c.mode == refuses
		if c.ends && g.enders != nil && (counter.ends || counter.queue != nil) {
			if id == 0 {
				id = 1 + rand.Uint64N(math.MaxUint64)
			}
			op.ID = id
			if op.Ticket = c.ticketFor(counter, op.Cost); op.Ticket != 0 {
				c.lined = true // also if there is no answer
			}
		}
		if at := g.enders.settle(ctx, counter, op.Key); start.IsZero() {
			start = at
		}
		ops = append(ops, op)
	}
	asking := ctx
	if !start.IsZero() {
		asking = waited.Since(ctx, start) // the store is to wait for so much less
	}
	take := g.store.Take
	if c.mode == reserves {
		take = func(ctx context.Context, ops []Op) (err error) {
			c.name, err = g.store.(Reserver).Reserve(ctx, ops, time.Duration(c.within)*time.Microsecond)
			return err
		}
	}
	if err := take(asking, ops); err != nil {
		c.name = ""
		if id != 0 {
			g.forget(charges, verdicts, id) // it may have been charged all the same
		}
		if err := over(ctx); err != nil {
			return false, err // nobody waits for an answer
		}
		if c.mode == reserves && errors.Is(err, errors.ErrUnsupported) {
			return false, fmt.Errorf("ratelimit: %s: store %q (%T) cannot reserve the call ahead: %w", g.method, g.counters[0].policy.Store, g.store, err)
		}
		return g.manage(charges, c, verdicts, full, err)
	}
	admitted, c.id, c.far, c.before = true, id, true, 0
	for i, counter := range g.counters {
		v := &verdicts[i]
		if !v.asked {
			continue
		}
		v.Outcome, ops = ops[0].Outcome, ops[1:]
		admitted = admitted && (v.Allowed || counter.policy.Mode == Shadow)
		c.before = max(c.before, v.Before)
	}
	c.lined = c.lined && !admitted
	return admitted, nil
}

// ticketFor returns the ticket of c for places of a counter, 0 for none.
func (c *call) ticketFor(counter *counter, cost int64) uint64 {
	if c.ticket == 0 || c.mode == peeks || c.mode == refuses || cost <= 0 ||
		counter.policy.Algorithm != Concurrency || counter.policy.Mode == Shadow {
		return 0
	}
	return uint64(cost)<<32 | uint64(c.ticket)
}

// quit has the store forget the tickets of c, which does not wait any more.
func (g *gate) quit(charges []Charge, c *call) {
	for i, counter := range g.counters {
		if charges[i].Skip {
			continue
		}
		if t := c.ticketFor(counter, charges[i].Cost); t != 0 {
			g.limiter.end(counter, &charges[i], t, EndGiveBack, 0)
		}
	}
	c.lined = false
}

// over is ctx.Err(), also where the deadline has passed and ctx does not say so yet: the
// timer of a store that left at that deadline may come before that of ctx.
func over(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if at, ok := ctx.Deadline(); ok && !time.Now().Before(at) {
		return context.DeadlineExceeded
	}
	return nil
}

// forget gives back what a call was charged of which the store did not say whether it
// is admitted.
func (g *gate) forget(charges []Charge, verdicts []verdict, id uint64) {
	for i, c := range g.counters {
		switch {
		case !verdicts[i].asked || charges[i].Cost == 0:
		case c.ends:
			g.limiter.end(c, &charges[i], id, EndGiveBack, 0)
		case c.queue != nil:
			g.limiter.end(c, &charges[i], id, EndLeave, 0)
		}
	}
}

// asked returns the policy as a Store is to see it.
func (c *counter) asked() *Policy {
	if !c.adjustable || c.policy.Dynamic {
		return &c.policy
	}
	p := c.policy
	p.Dynamic, p.Limit = true, 0
	return &p
}

// manage decides without the store, which failed by err.
func (g *gate) manage(charges []Charge, c *call, verdicts []verdict, full bool, err error) (admitted bool, _ error) {
	var asks bool
	for i, counter := range g.counters {
		v := &verdicts[i]
		if !v.asked {
			continue
		}
		v.degraded = true
		if c.trouble == nil {
			c.trouble = g.failed(counter, counter.limitOf(&charges[i]), ErrStore, err)
		}
		switch counter.policy.OnError {
		case LocalOnError:
			asks = true
			continue
		case AllowOnError:
			v.Allowed, v.Remaining = true, counter.limitOf(&charges[i])
		case DenyOnError:
			if counter.policy.Mode == Enforce {
				return false, g.failed(counter, counter.limitOf(&charges[i]), ErrStore, err)
			}
		}
		v.asked = false
	}
	if !asks {
		return true, nil
	}
	replicas := g.limiter.replicas
	var parts [MaxPolicies]Charge
	if replicas > 1 {
		//lint:ignore S1001 copy would have all keys escape
		for i := range charges {
			parts[i] = charges[i]
		}
		charges = parts[:len(charges)]
		g.inflate(charges, verdicts, replicas)
	}
	admitted, current := g.limiter.mem.take(g.counters, charges, verdicts, c.mode, c.within, c.wantedID(), full)
	if !current {
		return false, errUpdated
	}
	if replicas > 1 {
		g.deflate(charges, verdicts, replicas)
	}
	return admitted, nil
}

// op returns what the store is asked of policy i.
func (g *gate) op(i int, ch *Charge, peek bool) Op {
	c := g.counters[i]
	limit, _ := c.limits(ch)
	return Op{Policy: c.asked(), Key: string(c.key(ch.Key)), Cost: ch.Cost, Limit: limit, Peek: peek}
}

// cancelInStore gives back what the store has reserved. If that fails, the charges stay:
// nobody is admitted for them, and there is nobody to tell.
func (g *gate) cancelInStore(r Reservation) {
	var ops []Op
	for i := range g.counters {
		if r.charged>>i&1 != 0 {
			ops = append(ops, g.op(i, &r.charges[i], false))
		}
	}
	_ = g.store.(Reserver).Cancel(context.Background(), ops, r.name)
	for i, c := range g.counters {
		g.limiter.watchers.wake(c, c.key(r.charges[i].Key))
	}
}

// inflate makes charges those of a process that has one part in n of each limit: n
// times the costs. The limits stay, so that no counter has to be made for them. A
// cost above the part takes all of the limit, as it could not be admitted otherwise.
func (g *gate) inflate(charges []Charge, verdicts []verdict, n int64) {
	for i := range charges {
		if ch := &charges[i]; verdicts[i].asked {
			_, capacity := g.counters[i].limits(ch)
			if ch.Cost > capacity/n {
				ch.Cost = capacity
			} else {
				ch.Cost *= n
			}
		}
	}
}

// deflate has the outcomes of inflated charges speak of what they were.
func (g *gate) deflate(charges []Charge, verdicts []verdict, n int64) {
	for i := range verdicts {
		if v := &verdicts[i]; v.asked {
			_, capacity := g.counters[i].limits(&charges[i])
			if v.Remaining == capacity {
				v.Remaining = max(capacity/n, min(capacity, 1))
			} else {
				v.Remaining /= n
			}
		}
	}
}
