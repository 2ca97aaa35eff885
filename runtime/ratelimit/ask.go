package ratelimit

import (
	"context"
	"math"
	"math/rand/v2"
)

// ask has the store decide, or if it fails, Policy.OnError.
func (g *gate) ask(ctx context.Context, charges []Charge, c *call, verdicts []verdict, full bool) (admitted bool, err error) {
	if ctx == nil {
		ctx = context.Background()
	}
	c.far = false
	var id uint64
	ops := make([]Op, 0, len(charges))
	for i, counter := range g.counters {
		if verdicts[i].asked {
			limit, _ := counter.limits(&charges[i])
			op := Op{
				Policy:  counter.asked(),
				Key:     string(counter.key(charges[i].Key)),
				Cost:    charges[i].Cost,
				Limit:   limit,
				Peek:    c.mode == peeks || c.mode == refuses,
				Waits:   c.mode == tries,
				Refused: c.mode == refuses,
			}
			if c.ends && g.enders != nil && (counter.ends || counter.queue != nil) {
				if id == 0 {
					id = 1 + rand.Uint64N(math.MaxUint64)
				}
				op.ID = id
			}
			g.enders.settle(ctx, counter, op.Key)
			ops = append(ops, op)
		}
	}
	if err := g.store.Take(ctx, ops); err != nil {
		if id != 0 {
			g.forget(charges, verdicts, id) // it may have been charged all the same
		}
		if err := ctx.Err(); err != nil {
			return false, err // nobody waits for an answer
		}
		return g.manage(charges, c, verdicts, full, err)
	}
	admitted, c.id, c.far = true, id, true
	for i, counter := range g.counters {
		v := &verdicts[i]
		if !v.asked {
			continue
		}
		v.Outcome, ops = ops[0].Outcome, ops[1:]
		admitted = admitted && (v.Allowed || counter.policy.Mode == Shadow)
	}
	return admitted, nil
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
	admitted, current := g.limiter.mem.take(g.counters, charges, verdicts, c.mode, c.wantedID(), full)
	if !current {
		return false, errUpdated
	}
	return admitted, nil
}
