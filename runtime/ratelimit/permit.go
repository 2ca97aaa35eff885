package ratelimit

import (
	"context"
	"fmt"
)

// Permit is an admitted call that is running. It comes from Gate.Acquire, and is
// for one goroutine. The zero Permit is of a call that nothing counts.
//
//	permit, err := gate.Acquire(ctx, charges)
//	if err != nil {
//		return err
//	}
//	defer permit.Release()
type Permit struct {
	gate    *gate
	charges []Charge
	id      uint64
	began   int64  // µs by the clock of the counters
	charged uint64 // policies that were charged, by bits
	kept    uint64 // policies whose charges stay
	far     bool   // they were charged in the gate's store
	ended   bool
	held    *held // nil unless places in the store are renewed
}

// Acquire is AllowAll for calls with something to do when they end. The Permit
// holds on to charges, and to the keys in them, until it is released; they must not
// change before that. In memory, an admitted call allocates nothing.
//
// A gate whose policies are counted in a Store that is no Ender returns an error.
func (g *Gate) Acquire(ctx context.Context, charges []Charge) (Permit, error) {
	return g.now().acquire(ctx, charges)
}

// acquire is Acquire.
func (g *gate) acquire(ctx context.Context, charges []Charge) (Permit, error) {
	if g != nil && g.open {
		return Permit{}, nil
	}
	var c call
	if err := g.prepare(&c); err != nil {
		return Permit{}, err
	}
	if err := g.admit(ctx, charges, &c); err != nil {
		return Permit{}, err
	}
	permit := g.permit(charges, &c)
	if c.decision.Delay > 0 {
		if err := g.turn(ctx, charges, &c, nil); err != nil {
			permit.Release()
			return Permit{}, err
		}
		permit.began = g.limiter.mem.now()
	}
	return permit, nil
}

// prepare makes c a call that will end by a Permit.
func (g *gate) prepare(c *call) error {
	switch {
	case g == nil || g.limiter == nil:
		return errZeroGate
	case g.store != nil && g.enders == nil:
		return fmt.Errorf("ratelimit: %s: policy %q is counted in store %q, and what follows a call is supported in memory and by stores that are Enders only",
			g.method, g.counters[0].policy.ID, g.counters[0].policy.Store)
	}
	c.ends = true
	return nil
}

func (g *gate) permit(charges []Charge, c *call) Permit {
	return Permit{gate: g, charges: charges, id: c.id, began: g.limiter.mem.now(), charged: c.charged, far: c.far, held: g.renew(charges, c)}
}

// counter returns the counter of policy i, or nil if it has not charged the call.
func (p *Permit) counter(i int) *counter {
	if p.ended || i < 0 || i >= len(p.charges) || p.charged>>i&1 == 0 {
		return nil
	}
	return p.gate.counters[i]
}

// Keep has the charge of policy i, in the order of the Spec, stay when the Permit is
// released. It is for a policy with Count set; on others it does nothing.
func (p *Permit) Keep(i int) {
	if c := p.counter(i); c != nil && c.policy.Count {
		p.kept |= 1 << i
	}
}

// Charge charges policy i units more. It is never refused: the units count even if
// they exceed the limit, and then calls are refused until enough have come back. A
// policy that did not decide or admit the call is not charged, and neither is one of
// Concurrency, TimeQuota or LeakyBucket, or with a Warmup. Units that are not
// positive are ignored. What it charges is not given back. In a Store, it charges
// policies with CostAfter set only.
func (p *Permit) Charge(i int, units int64) {
	c := p.counter(i)
	if c == nil || units <= 0 {
		return
	}
	switch c.algorithm.(type) {
	case *leases, *quota, *leaky, *warming:
		return
	}
	ch := [1]Charge{p.charges[i]}
	ch[0].Cost = min(units, mostUnits)
	if p.far {
		if !c.policy.CostAfter {
			return
		}
		p.gate.limiter.end(c, &ch[0], p.id, EndCharge, ch[0].Cost)
		return
	}
	for current := false; !current; {
		counters := [1]*counter{c.latest()}
		verdicts := [1]verdict{{asked: true}}
		_, current = p.gate.limiter.mem.take(counters[:], ch[:], verdicts[:], overdraws, 0, nil, false)
	}
}

// Release ends the call: it gives back the charges of policies with Count set that
// are not kept, frees the places of Concurrency policies, and charges TimeQuota
// policies the time since Acquire, unless they have Count set and the charge is not
// kept. Only the first call does anything. It is to be deferred, so that it also
// runs when the call panics.
func (p *Permit) Release() {
	if p.ended || p.gate == nil {
		return
	}
	if p.held != nil {
		p.gate.limiter.renewals.stop(p.id)
	}
	m := p.gate.limiter.mem
	for i := range p.charges {
		c := p.counter(i)
		if c == nil || !c.ends {
			continue
		}
		keep := p.kept>>i&1 != 0
		how, took := givenBack, int64(0)
		switch {
		case c.policy.Algorithm == TimeQuota && (keep || !c.policy.Count):
			how, took = finished, max(0, m.now()-p.began)
		case keep:
			how = kept
		}
		if p.far {
			p.gate.limiter.end(c, &p.charges[i], p.id, how.told(), took)
			continue
		}
		key := c.key(p.charges[i].Key)
		m.end(c, key, p.id, how, took)
		if how != kept {
			p.gate.limiter.watchers.wake(c, key)
		}
	}
	p.ended = true
}
