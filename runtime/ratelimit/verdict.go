package ratelimit

import "slices"

// verdict is an Outcome under way.
type verdict struct {
	Outcome
	spoken   bool // the policy applies
	asked    bool // the counters decide
	degraded bool
}

// speaker returns the index of the policy that a decision speaks of, or -1 if none
// applies. See Decision.
func (g *gate) speaker(verdicts []verdict, admitted bool) int {
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
func (g *gate) decision(charges []Charge, verdicts []verdict, admitted bool, i int) Decision {
	if i < 0 {
		return Decision{Allowed: true, Limit: Unlimited, Remaining: Unlimited}
	}
	v := &verdicts[i]
	d := decisionOf(g.counters[i], &charges[i], &v.Outcome)
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

func decisionOf(c *counter, ch *Charge, o *Outcome) Decision {
	return Decision{
		Allowed:    o.Allowed,
		Policy:     c.policy.ID,
		Limit:      c.limitOf(ch),
		Remaining:  o.Remaining,
		RetryAfter: o.RetryAfter,
	}
}

// refused returns the error of a refusal by the gate's only policy.
func (g *gate) refused(c *counter, o *Outcome) error {
	p := &c.policy
	return &Error{
		Kind: ErrLimited,
		Decision: Decision{
			Policy:     p.ID,
			Limit:      c.capacity,
			Remaining:  o.Remaining,
			RetryAfter: o.RetryAfter,
			ResetAt:    g.limiter.wall().Add(o.ResetAfter),
		},
		Method:    g.method,
		File:      g.file,
		Directive: g.directive(c),
		Message:   p.Message,
		Status:    p.Status,
	}
}

// directive is the text that c was generated from on this gate's method. Methods of
// one group share a counter, each with a directive of its own.
func (g *gate) directive(c *counter) string {
	if i := slices.Index(g.counters, c); i >= 0 {
		return g.directives[i]
	}
	return c.policy.Directive
}

// newError returns the error of a call that c did not let through.
func (g *gate) newError(c *counter, kind error, d Decision) *Error {
	p := &c.policy
	return &Error{
		Kind:      kind,
		Decision:  d,
		Method:    g.method,
		File:      g.file,
		Directive: g.directive(c),
		Message:   p.Message,
		Status:    p.Status,
	}
}

// failed returns the error of a call that c, whose limit is given, could not
// decide.
func (g *gate) failed(c *counter, limit int64, kind, cause error) error {
	d := Decision{Policy: c.policy.ID, Limit: max(limit, 0)}
	if kind != ErrStore {
		d.RetryAfter = Never
	}
	e := g.newError(c, kind, d)
	e.Err = cause
	return e
}

func (g *gate) event(charges []Charge, c *call, err error, verdicts []verdict) *Event {
	e := &Event{Method: g.method, Decision: c.decision, Err: err}
	if err != nil {
		return e
	}
	e.Err = c.trouble
	for i, counter := range g.counters {
		if verdicts[i].spoken {
			limit, _ := counter.limits(&charges[i])
			e.Ops = append(e.Ops, Op{
				Policy:  &counter.policy,
				Key:     string(counter.key(charges[i].Key)),
				Cost:    max(charges[i].Cost, 0), // an unlimited policy admits any
				Limit:   limit,
				Outcome: verdicts[i].Outcome,
			})
		}
	}
	return e
}
