package ratelimit

import (
	"context"
	"errors"
	"fmt"
)

// Gate decides the calls of one method. It is safe for concurrent use. The zero
// Gate returns errors; gates come from Limiter.Gate.
type Gate struct {
	limiter  *Limiter
	method   string
	file     string
	counters []*counter
	store    Store    // nil: in memory
	open     bool     // admits at once
	fast     *counter // of a gate for which Allow can go straight to memory
}

// Charge is one policy's part of a call.
type Charge struct {
	// Key says under which key the call counts. A nil or empty key is absent:
	// Policy.OnEmpty decides. A Global policy ignores the key.
	Key []byte
	// Cost is the number of units that the call takes: 0..Policy.Capacity(). A cost
	// of 0 takes nothing and is admitted unless the policy is Blocked.
	Cost int64
}

// verdict is an Outcome under way.
type verdict struct {
	Outcome
	spoken   bool // the policy is not off
	asked    bool // the counters decide
	degraded bool
}

var errZeroGate = errors.New("ratelimit: zero Gate; gates come from Limiter.Gate")

// Allow asks the gate's only policy for one unit. It returns nil if the call may
// proceed, and charges it then. If the call came too early, the error is an *Error
// of kind ErrLimited; other kinds say why nothing could be decided. If ctx is done,
// the error is ctx.Err() and nothing is charged. A nil ctx is never done.
func (g *Gate) Allow(ctx context.Context, key []byte) error {
	return g.AllowN(ctx, key, 1)
}

// AllowN is Allow for cost units. A negative cost, or one above the policy's
// capacity, is an *Error of kind ErrCost.
func (g *Gate) AllowN(ctx context.Context, key []byte, cost int64) error {
	if g != nil && g.fast != nil {
		c := g.fast
		key = c.key(key)
		if uint64(cost-1) < uint64(c.capacity) && (len(key) > 0 || c.policy.Global) {
			if ctx != nil {
				if err := ctx.Err(); err != nil {
					return err
				}
			}
			if o, found := g.limiter.mem.takeOne(c, key, cost); found {
				if o.Allowed {
					return nil
				}
				return g.refused(c, &o)
			}
		}
	}
	charges := [1]Charge{{Key: key, Cost: cost}}
	return g.AllowAll(ctx, charges[:])
}

// AllowAll is AllowN for all policies of the gate: charges has one element for
// each, in the order of the Spec. Either every enforced policy admits the call, and
// then each policy that admits it is charged, or nothing is charged. The error
// speaks of the policy that has the longest wait.
func (g *Gate) AllowAll(ctx context.Context, charges []Charge) error {
	if g != nil && g.open {
		return nil
	}
	d, i, err := g.decide(ctx, charges, false, false)
	if err != nil || d.Allowed {
		return err
	}
	return &Error{Kind: ErrLimited, Decision: d, Method: g.method, File: g.file, Directive: g.counters[i].policy.Directive}
}

// Take is AllowAll for callers that want to know more: the Decision tells whether
// the call may proceed, and a refusal is no error.
func (g *Gate) Take(ctx context.Context, charges ...Charge) (Decision, error) {
	d, _, err := g.decide(ctx, charges, false, true)
	return d, err
}

// Peek tells what Take would decide now, and changes nothing. The Decision of an
// admission speaks of the state before the charge.
func (g *Gate) Peek(ctx context.Context, charges ...Charge) (Decision, error) {
	d, _, err := g.decide(ctx, charges, true, true)
	return d, err
}

// Reset forgets what is counted under keys, one for each policy in the order of the
// Spec, so that their next call is their first. An absent key leaves a policy's
// counters alone, unless the policy is Global. Keys that share an overflow counter
// (see WithMaxKeys) go on sharing it.
func (g *Gate) Reset(ctx context.Context, keys ...[]byte) error {
	switch {
	case g == nil || g.limiter == nil:
		return errZeroGate
	case g.open:
		return nil
	case len(keys) != len(g.counters):
		return fmt.Errorf("ratelimit: %s has %d policies, not %d", g.method, len(g.counters), len(keys))
	}
	if err := done(ctx); err != nil {
		return err
	}
	for i, c := range g.counters {
		key := c.key(keys[i])
		if c.kind != counted || len(key) == 0 && !c.policy.Global {
			continue
		}
		if g.store == nil {
			g.limiter.mem.reset(c, key)
		} else if err := g.store.Reset(ctx, &c.policy, string(key)); err != nil {
			return g.failed(c, ErrStore, err)
		}
	}
	return nil
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

// decide makes a decision, and returns the index of the policy it speaks of. The
// Decision of an admission is filled in only if full is set or there is an
// observer.
func (g *Gate) decide(ctx context.Context, charges []Charge, peek, full bool) (Decision, int, error) {
	switch {
	case g == nil || g.limiter == nil:
		return Decision{}, 0, errZeroGate
	case g.open:
		return Decision{Allowed: true, Limit: Unlimited, Remaining: Unlimited}, 0, nil
	case len(charges) != len(g.counters):
		return Decision{}, 0, fmt.Errorf("ratelimit: %s has %d policies, not %d", g.method, len(g.counters), len(charges))
	}
	if err := done(ctx); err != nil {
		return Decision{}, 0, err
	}
	var few [4]verdict
	verdicts := few[:]
	if len(charges) > len(few) {
		verdicts = make([]verdict, len(charges))
	}
	verdicts = verdicts[:len(charges)]

	observed := g.limiter.observer != nil && !peek
	full = full || observed
	admitted, asks, err := g.examine(charges, verdicts)
	if err == nil && admitted && asks {
		if g.store == nil {
			admitted = g.limiter.mem.take(g.counters, charges, verdicts, peek, full)
		} else {
			admitted, err = g.ask(ctx, charges, verdicts, peek)
		}
	}
	var d Decision
	var i int
	if err == nil && (full || !admitted) {
		i = g.speaker(verdicts, admitted)
		d = g.decision(verdicts, admitted, i)
	} else {
		d.Allowed = admitted && err == nil
	}
	if e, ok := err.(*Error); ok {
		d = e.Decision
	}
	if observed {
		g.limiter.observer.Decided(ctx, g.event(d, err, charges, verdicts))
	}
	return d, i, err
}

// examine settles what needs no counters, and says whether the call is admitted so
// far and whether counters must be asked. An error is that of the first policy
// that cannot be decided; where a policy in shadow mode cannot, it refuses.
func (g *Gate) examine(charges []Charge, verdicts []verdict) (admitted, asks bool, err error) {
	admitted = true
	for i, c := range g.counters {
		if c.kind == off {
			continue
		}
		v := &verdicts[i]
		v.spoken = true
		cost := charges[i].Cost
		var fault error
		switch {
		case c.kind == blocked:
			v.RetryAfter = Never
			admitted = admitted && c.policy.Mode == Shadow
		case c.kind == counted && len(charges[i].Key) == 0 && !c.policy.Global:
			fault = ErrNoKey // before the cost, which may be absent for the same reason
		case cost < 0 || cost > c.capacity:
			fault = ErrCost
		case c.kind == unlimited:
			v.Allowed, v.Remaining = true, Unlimited
		default:
			v.asked, asks = true, true
		}
		if fault != nil {
			if c.policy.Mode == Enforce {
				return false, false, g.failed(c, fault, nil)
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

// ask has the store decide.
func (g *Gate) ask(ctx context.Context, charges []Charge, verdicts []verdict, peek bool) (admitted bool, err error) {
	if ctx == nil {
		ctx = context.Background()
	}
	ops := make([]Op, 0, len(charges))
	var first *counter
	for i, c := range g.counters {
		if !verdicts[i].asked {
			continue
		}
		if first == nil {
			first = c
		}
		ops = append(ops, Op{Policy: &c.policy, Key: string(c.key(charges[i].Key)), Cost: charges[i].Cost, Peek: peek})
	}
	if err := g.store.Take(ctx, ops); err != nil {
		return false, g.failed(first, ErrStore, err)
	}
	admitted = true
	for i, c := range g.counters {
		v := &verdicts[i]
		if !v.asked {
			continue
		}
		v.Outcome, ops = ops[0].Outcome, ops[1:]
		admitted = admitted && (v.Allowed || c.policy.Mode == Shadow)
	}
	return admitted, nil
}

// speaker returns the index of the policy that a decision speaks of. See Decision.
func (g *Gate) speaker(verdicts []verdict, admitted bool) int {
	best := -1
	for i := range verdicts {
		v := &verdicts[i]
		if !v.spoken || !admitted && (v.Allowed || g.counters[i].policy.Mode == Shadow) {
			continue
		}
		if best < 0 {
			best = i
			continue
		}
		w := &verdicts[best]
		mode, other := g.counters[i].policy.Mode, g.counters[best].policy.Mode
		if mode != other {
			if mode == Enforce {
				best = i
			}
		} else if admitted && v.Remaining < w.Remaining || !admitted && v.RetryAfter > w.RetryAfter {
			best = i
		}
	}
	return best
}

// decision returns a decision that speaks of policy i.
func (g *Gate) decision(verdicts []verdict, admitted bool, i int) Decision {
	v := &verdicts[i]
	d := g.counters[i].decision(&v.Outcome)
	d.Allowed = admitted
	if admitted {
		d.RetryAfter = 0 // v may be a shadow's refusal
	}
	if v.asked {
		d.ResetAt = g.limiter.wall().Add(v.ResetAfter)
	}
	for j := range verdicts {
		d.Degraded = d.Degraded || verdicts[j].degraded
		d.Shadow = d.Shadow || verdicts[j].spoken && !verdicts[j].Allowed && g.counters[j].policy.Mode == Shadow
	}
	return d
}

func (c *counter) decision(o *Outcome) Decision {
	return Decision{
		Allowed:    o.Allowed,
		Policy:     c.policy.ID,
		Limit:      max(c.capacity, 0),
		Remaining:  o.Remaining,
		RetryAfter: o.RetryAfter,
	}
}

// refused returns the error of a refusal by the gate's only policy.
func (g *Gate) refused(c *counter, o *Outcome) error {
	e := &Error{Kind: ErrLimited, Decision: c.decision(o), Method: g.method, File: g.file, Directive: c.policy.Directive}
	e.Decision.ResetAt = g.limiter.wall().Add(o.ResetAfter)
	return e
}

// failed returns the error of a call that c could not decide.
func (g *Gate) failed(c *counter, kind, cause error) error {
	e := &Error{Kind: kind, Method: g.method, File: g.file, Directive: c.policy.Directive, Err: cause}
	e.Decision.Policy = c.policy.ID
	e.Decision.Limit = max(c.capacity, 0)
	if kind != ErrStore {
		e.Decision.RetryAfter = Never
	}
	return e
}

func (g *Gate) event(d Decision, err error, charges []Charge, verdicts []verdict) *Event {
	e := &Event{Method: g.method, Decision: d, Err: err}
	if err != nil {
		return e
	}
	for i, c := range g.counters {
		if verdicts[i].spoken {
			e.Ops = append(e.Ops, Op{
				Policy:  &c.policy,
				Key:     string(c.key(charges[i].Key)),
				Cost:    charges[i].Cost,
				Outcome: verdicts[i].Outcome,
			})
		}
	}
	return e
}
