package ratelimit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// gate is a Gate for as long as its policies stay as they are. A nil gate is that
// of a zero Gate.
type gate struct {
	limiter    *Limiter
	method     string
	file       string
	counters   []*counter
	directives []string // of the counters
	store      Store    // nil: in memory
	enders     *enders  // of a store that is an Ender, or nil
	open       bool     // admits at once
	fast       *counter // of a gate for which Allow can go straight to memory
	quick      bool     // so can AllowAll
	ends       *counter // one whose calls end by a Permit, or nil
	queued     bool     // admitted calls may have to wait for their turn
	waiters    *waiters
	observers  []*subscription
}

// subscription is an Observer that can be taken away again.
type subscription struct{ Observer }

// call is a call under way, and what becomes of it.
// Charges are passed beside it, so that they can stay on the caller's stack.
type call struct {
	mode mode
	full bool   // the decision of an admission is wanted
	ends bool   // something may end what is charged
	id   uint64 // by this; set when it is charged
	far  bool   // the store decided, and not the limiter in its place

	ticket uint32 // of a call that waits for places in a store, else 0
	lined  bool   // the store may know its ticket
	before int64  // calls that are in line before it

	within int64  // µs that a call which reserves can wait
	name   string // that a store gave to a reservation

	decision Decision
	speaker  *counter      // that the decision is of, or nil
	charged  uint64        // policies that admitted it, by bits
	least    time.Duration // that a refused call must wait in any case
	trouble  error         // of a store; the call was decided all the same
}

// wantedID returns where the id of the call is wanted, or nil.
func (c *call) wantedID() *uint64 {
	if c.ends {
		return &c.id
	}
	return nil
}

// latest returns g with the policies that are in force now.
func (g *gate) latest() *gate {
	g.limiter.mu.Lock()
	defer g.limiter.mu.Unlock()
	return g.limiter.inForce(g)
}

// errUpdated is that a policy was updated while it was asked.
var errUpdated = errors.New("ratelimit: the policy was updated")

var errZeroGate = errors.New("ratelimit: zero Gate; gates come from Limiter.Gate")

// isQuick reports whether the counters alone decide, by costs above 0.
func (g *gate) isQuick(charges []Charge) bool {
	if len(charges) != len(g.counters) {
		return false
	}
	for i, c := range g.counters {
		ch := &charges[i]
		if ch.Skip || uint64(ch.Cost-1) >= uint64(c.capacity) || len(ch.Key) == 0 && !c.policy.Global {
			return false
		}
	}
	return true
}

// admit decides a call, and returns an error if it is refused.
func (g *gate) admit(ctx context.Context, charges []Charge, c *call) error {
	c.ends = c.ends || g != nil && g.queued
	if err := g.decide(ctx, charges, c); err != nil {
		return err
	}
	if !c.decision.Allowed {
		return g.newError(c.speaker, ErrLimited, c.decision)
	}
	return nil
}

// checkEndless returns an error if the gate needs to know when calls end.
func (g *gate) checkEndless() error {
	if g == nil || g.open || g.ends == nil {
		return nil
	}
	p := &g.ends.policy
	what := "algorithm " + string(p.Algorithm)
	if p.Count {
		what = "count"
	}
	return fmt.Errorf("ratelimit: %s: policy %q has %s, which needs to know when calls end: use Acquire", g.method, p.ID, what)
}

// key returns what a call is counted under whose key is the given one.
func (c *counter) key(key []byte) []byte {
	if c.policy.Global {
		return nil
	}
	return key
}

func done(ctx context.Context) error {
	if ctx == nil {
		return nil
	}
	return ctx.Err()
}

// decide makes a decision, into c. That of an admission is filled in only if it is
// wanted or there is an observer, but for its Delay.
func (g *gate) decide(ctx context.Context, charges []Charge, c *call) error {
	switch {
	case g == nil || g.limiter == nil:
		return errZeroGate
	case g.open:
		c.decision = Decision{Allowed: true, Limit: Unlimited, Remaining: Unlimited}
		return nil
	case len(charges) != len(g.counters):
		return fmt.Errorf("ratelimit: %s has %d policies, not %d", g.method, len(g.counters), len(charges))
	}
	if err := done(ctx); err != nil {
		return err
	}
	for _, counter := range g.counters {
		if counter.replaced.Load() != nil { // while the call waited
			return g.latest().decide(ctx, charges, c)
		}
	}
	var verdicts []verdict
	if n := len(charges); n <= 2 { // as most methods, so that little is cleared
		var few [2]verdict
		verdicts = few[:n]
	} else {
		var more [6]verdict
		if verdicts = more[:]; n > len(more) {
			verdicts = make([]verdict, n)
		}
		verdicts = verdicts[:n]
	}

	observed := len(g.observers) > 0 && c.mode != peeks
	full := c.full || observed || c.mode == refuses
	admitted, asks, err := g.examine(charges, verdicts)
	if err == nil && admitted && asks {
		if g.store == nil {
			var current bool
			if admitted, current = g.limiter.mem.take(g.counters, charges, verdicts, c.mode, c.within, c.wantedID(), full); !current {
				err = errUpdated
			}
		} else {
			admitted, err = g.ask(ctx, charges, c, verdicts, full)
		}
	}
	if err == errUpdated {
		return g.latest().decide(ctx, charges, c)
	}
	if err == nil && (full || !admitted) {
		i := g.speaker(verdicts, admitted)
		c.decision = g.decision(charges, verdicts, admitted, i)
		if i >= 0 {
			c.speaker = g.counters[i]
		}
	} else {
		c.decision.Allowed = admitted && err == nil
	}
	if admitted && err == nil {
		for i := range verdicts {
			if v := &verdicts[i]; v.asked && v.Allowed {
				c.charged |= 1 << i
			}
			if g.counters[i].policy.Mode == Enforce { // nobody waits for a shadow's turn
				c.decision.Delay = max(c.decision.Delay, verdicts[i].Delay)
			}
		}
	}
	switch {
	case c.mode == refuses && err == nil:
		// By those that wait ahead of it, if not by the counters.
		c.decision.Allowed, c.decision.Delay, c.charged = false, 0, 0
		c.decision.RetryAfter = max(c.decision.RetryAfter, c.least)
	case !admitted && err == nil:
		c.least = g.least(verdicts)
	}
	e, failed := err.(*Error)
	if failed {
		c.decision = e.Decision
	}
	observed = observed && (err == nil || failed) // not of a call that nobody waits for
	if observed && (c.mode != tries || admitted || err != nil) {
		g.tell(ctx, g.event(charges, c, err, verdicts), charges, c)
	}
	return err
}

// tell tells the observers of a call. If one panics, nobody gets a Permit of the call, and
// what it has taken until it ends is given back.
func (g *gate) tell(ctx context.Context, e *Event, charges []Charge, c *call) {
	told := false
	defer func() {
		if told || !c.ends {
			return
		}
		own := make([]Charge, len(charges)) // or the caller's would be on the heap in any case
		for i := range charges {
			own[i] = Charge{Key: bytes.Clone(charges[i].Key), Cost: charges[i].Cost, Limit: charges[i].Limit, Skip: charges[i].Skip}
		}
		p := g.permit(own, c)
		p.Release()
	}()
	for _, o := range g.observers {
		o.Decided(ctx, e)
	}
	told = true
}

// least returns how long a refused call must wait, whatever is given back.
func (g *gate) least(verdicts []verdict) (least time.Duration) {
	for i, c := range g.counters {
		v := &verdicts[i]
		if v.spoken && !v.Allowed && c.policy.Mode == Enforce && (c.isCertain() || v.RetryAfter == Never) {
			least = max(least, v.RetryAfter)
		}
	}
	return least
}

// examine settles what needs no counters, and says whether the call is admitted so
// far and whether counters must be asked. An error is that of the first policy
// that cannot be decided; where a policy in shadow mode cannot, it refuses.
func (g *gate) examine(charges []Charge, verdicts []verdict) (admitted, asks bool, err error) {
	admitted = true
	for i, c := range g.counters {
		ch := &charges[i]
		if c.kind == off || ch.Skip {
			continue
		}
		noKey := len(ch.Key) == 0 && !c.shared
		if noKey && c.policy.OnEmpty == SkipEmpty {
			continue
		}
		v := &verdicts[i]
		v.spoken = true
		kind, most := c.kind, c.most
		if c.dynamic && kind == counted {
			kind, most = c.kindOf(ch)
		}
		var fault error
		switch {
		case kind == blocked:
			v.RetryAfter = Never
			admitted = admitted && c.shadow
		case noKey && kind != unlimited:
			fault = ErrNoKey // before the cost, which may be absent for the same reason
		case kind == unlimited: // whatever the call costs
			v.Allowed, v.Remaining = true, Unlimited
			if c.mayBlock() && !noKey {
				if v.RetryAfter = g.limiter.mem.blocked(c, c.key(ch.Key)); v.RetryAfter > 0 {
					v.Allowed, v.Remaining = false, 0
					admitted = admitted && c.shadow
				}
			}
		case ch.Cost < 0 || ch.Cost > most:
			fault = ErrCost
		default:
			v.asked, asks = true, true
		}
		if fault != nil {
			if !c.shadow {
				return false, false, g.failed(c, c.limitOf(ch), fault, nil)
			}
			v.RetryAfter = Never
		}
	}
	if !admitted {
		for i := range verdicts {
			if verdicts[i].asked {
				verdicts[i] = verdict{}
			}
		}
	}
	return admitted, asks, nil
}

// kindOf returns what a Dynamic policy is for a charge, and the greatest cost.
func (c *counter) kindOf(ch *Charge) (kind, int64) {
	switch limit := c.bring(ch); {
	case limit <= 0:
		return blocked, 0
	case limit == Unlimited:
		return unlimited, Unlimited
	case c.policy.Algorithm == TimeQuota:
		return counted, 1
	}
	_, capacity := c.limits(ch)
	return counted, capacity
}

// limitOf returns the Decision.Limit of a charge.
func (c *counter) limitOf(ch *Charge) int64 {
	if !c.dynamic || c.kind != counted {
		return max(c.capacity, 0)
	}
	switch kind, _ := c.kindOf(ch); kind {
	case blocked:
		return 0
	case unlimited:
		return Unlimited
	}
	_, capacity := c.limits(ch)
	return capacity
}

// allowAll is AllowAll.
func (g *gate) allowAll(ctx context.Context, charges []Charge) error {
	if g != nil && g.open {
		return nil
	}
	if g != nil && g.quick && g.isQuick(charges) {
		if err := done(ctx); err != nil {
			return err
		}
		switch len(charges) {
		case 1:
			if c := g.fast; c != nil && len(charges[0].Key) <= keyLimit {
				var o Outcome
				if allowed, found := g.limiter.mem.takeOne(c, c.key(charges[0].Key), charges[0].Cost, &o, false); allowed {
					return nil
				} else if found {
					return g.refused(c, &o)
				}
				return g.allow(ctx, charges)
			}
		case 2:
			h, k := g.counters[0].hot.Load(), g.counters[1].hot.Load()
			if h != nil && k != nil && h.is(charges[0].Key) && k.is(charges[1].Key) && takeBoth(h, k, charges[0].Cost, charges[1].Cost) {
				return nil
			}
		}
		if g.limiter.mem.takeAll(g.counters, charges) {
			return nil
		}
	}
	return g.allow(ctx, charges)
}

// allow is AllowAll where that is not all there is to do.
func (g *gate) allow(ctx context.Context, charges []Charge) error {
	if err := g.checkEndless(); err != nil {
		return err
	}
	var c call
	if err := g.admit(ctx, charges, &c); err != nil {
		return err
	}
	if c.decision.Delay > 0 {
		return g.turn(ctx, charges, &c, nil)
	}
	return nil
}

// take is Take.
func (g *gate) take(ctx context.Context, charges []Charge) (Decision, error) {
	if g != nil && g.fast != nil && g.isQuick(charges) {
		if err := done(ctx); err != nil {
			return Decision{}, err
		}
		c := g.fast
		var o Outcome
		if key := c.key(charges[0].Key); len(key) <= keyLimit {
			if allowed, found := g.limiter.mem.takeOne(c, key, charges[0].Cost, &o, true); found {
				return Decision{
					Allowed:    allowed,
					Policy:     c.policy.ID,
					Limit:      c.capacity,
					Remaining:  o.Remaining,
					RetryAfter: o.RetryAfter,
					ResetAt:    g.limiter.wall().Add(o.ResetAfter),
				}, nil
			}
		}
	}
	if err := g.checkEndless(); err != nil {
		return Decision{}, err
	}
	c := call{full: true}
	err := g.decide(ctx, charges, &c)
	return c.decision, err
}

// peek is Peek.
func (g *gate) peek(ctx context.Context, charges []Charge) (Decision, error) {
	c := call{mode: peeks, full: true}
	err := g.decide(ctx, charges, &c)
	return c.decision, err
}

// reset is Reset.
func (g *gate) reset(ctx context.Context, keys [][]byte) error {
	switch {
	case g == nil || g.limiter == nil:
		return errZeroGate
	case g.open && !slices.ContainsFunc(g.counters, (*counter).mayBlock):
		return nil
	case len(keys) != len(g.counters):
		return fmt.Errorf("ratelimit: %s has %d policies, not %d", g.method, len(g.counters), len(keys))
	}
	if err := done(ctx); err != nil {
		return err
	}
	for i, c := range g.counters {
		key := c.key(keys[i])
		if c.kind != counted && !c.mayBlock() || len(key) == 0 && !c.shared {
			continue
		}
		g.limiter.mem.reset(c, key)
		if g.store != nil && c.kind == counted {
			g.enders.settle(ctx, c, string(key)) // or what was charged before comes after it
			if err := g.store.Reset(ctx, &c.policy, string(key)); err != nil {
				return g.failed(c, c.capacity, ErrStore, err)
			}
		}
		g.limiter.watchers.wake(c, key)
	}
	return nil
}
