package ratelimit

import (
	"fmt"
	"time"
)

// CustomAlgorithm is a way of counting that this package does not have. WithAlgorithm
// gives it to a limiter, by the name that policies refer to it by. It is arithmetic
// only: the limiter finds the state of a key, decides on one call at a time, charges
// all policies of a call or none, locks keys, lets calls wait and forgets idle keys.
//
// The methods are called while a part of the limiter is locked: they must be quick and
// not use the limiter. What they return must depend on nothing but their arguments,
// which they must not keep: they are called more than once for a decision. They may be
// called by many goroutines at once.
//
// The suite ratelimittest.TestAlgorithm holds an implementation to the contract.
type CustomAlgorithm interface {
	// Check returns nil, or an error that says what of p the algorithm cannot count
	// by. It is called when gates are made and when policies are updated. What
	// Policy.Validate asks of every policy holds for p.
	Check(p *Policy) error

	// Take says what becomes of a call, as a Store does, where s is the state of its
	// key. It returns the state after the charge, or s if the call is refused or costs
	// nothing. A cost of 0 is admitted, unless the state is above the limit.
	//
	// Outcome.Allowed, Remaining, RetryAfter and ResetAfter are to be set; the Delay is
	// ignored. A refusal's RetryAfter is the shortest wait after which the same cost is
	// admitted if nothing else is charged meanwhile, in whole microseconds, and the
	// limiter makes it at least 1 µs. After ResetAfter the state must decide as a new
	// one, because the limiter drops it then.
	Take(q Question, s State) (Outcome, State)
}

// State is what a CustomAlgorithm remembers of a key. A new key's is all zeros. What
// the words mean is up to the algorithm.
type State [4]int64

// Question is what a CustomAlgorithm is asked.
type Question struct {
	Policy *Policy
	// Limit is Policy.Limit or, of a Dynamic policy and of a key with an exception,
	// that of the call: 1..MaxLimit.
	Limit int64
	// Capacity is Policy.Burst or, without that, Limit.
	Capacity int64
	// Cost is what the call takes: 0..Capacity.
	Cost int64
	// Now is the time in microseconds since some time before the first call. For one
	// key it never goes back, not even when a clock is set back.
	Now int64
}

// WithAlgorithm gives the limiter an algorithm of your own by a name that
// Policy.Algorithm refers to, and algorithm= in directives: lower-case letters, digits
// and dashes, beginning with a letter, and no built-in algorithm's.
//
// It counts in memory. A Store that counts by the algorithm, too, says so in its method
// Supports. Policies of the algorithm have a Window, a Limit and perhaps a Burst, can be
// Dynamic and Lock keys, but know no Count and CostAfter: charges are not given back, and
// not made after a call.
func WithAlgorithm(name string, a CustomAlgorithm) Option {
	return func(l *Limiter) {
		switch {
		case a == nil:
			l.fail(fmt.Errorf("ratelimit: algorithm %q is nil", name))
		case Algorithm(name).isBuiltIn():
			l.fail(fmt.Errorf("ratelimit: algorithm %q is built in and cannot be replaced", name))
		case !Algorithm(name).IsCustom():
			l.fail(fmt.Errorf("ratelimit: algorithm %q is not a name of lower-case letters, digits and dashes", name))
		default:
			l.algorithms[Algorithm(name)] = a
		}
	}
}

// isBuiltIn reports whether a is one of this package's algorithms.
func (a Algorithm) isBuiltIn() bool {
	switch a {
	case SlidingLog, FixedWindow, TokenBucket, SlidingWindow, LeakyBucket, Concurrency, TimeQuota:
		return true
	}
	return false
}

// IsCustom reports whether a can be the name of an algorithm that is not built in; see
// WithAlgorithm.
func (a Algorithm) IsCustom() bool {
	if a == "" || a.isBuiltIn() || a[0] < 'a' || a[0] > 'z' || len(a) > maxAlgorithmName {
		return false
	}
	for i := range len(a) {
		if c := a[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

const maxAlgorithmName = 64

// customRule is a CustomAlgorithm on records. The base of a record is the time at which
// its state is as new.
type customRule struct {
	CustomAlgorithm
	policy *Policy
}

// ask returns what the algorithm says, within what it may say.
func (c *customRule) ask(r *record, a ask) (Outcome, State) {
	o, s := c.Take(Question{Policy: c.policy, Limit: a.limit, Capacity: a.capacity, Cost: a.cost, Now: a.t}, r.state)
	o.Delay = 0
	o.Remaining = max(0, min(o.Remaining, a.capacity))
	o.RetryAfter = o.RetryAfter.Truncate(time.Microsecond)
	if o.Allowed {
		o.RetryAfter = 0
	} else {
		o.RetryAfter, s = max(o.RetryAfter, time.Microsecond), r.state
	}
	o.ResetAfter = max(0, o.ResetAfter)
	return o, s
}

func (c *customRule) admits(r *record, a ask) bool {
	o, _ := c.ask(r, a)
	return o.Allowed
}

func (c *customRule) charge(r *record, a ask) {
	o, s := c.ask(r, a)
	r.state, r.last, r.limit = s, a.t, a.limit
	r.base = endOf(a.t, o)
}

// endOf returns the time at which a state is as new that was described at t.
func endOf(t int64, o Outcome) int64 {
	// Rounded up: a state that is dropped too late does no harm.
	return t + int64((o.ResetAfter+time.Microsecond-1)/time.Microsecond)
}

func (c *customRule) remaining(r *record, a ask) int64 {
	a.cost = 0
	o, _ := c.ask(r, a)
	return o.Remaining
}

func (c *customRule) wait(r *record, a ask) int64 {
	o, _ := c.ask(r, a)
	return o.RetryAfter.Microseconds()
}

func (c *customRule) clearAt(r *record) int64 { return r.base }

// giveBack is never called: Policy.Validate refuses Count.
func (c *customRule) giveBack(*record, int) {}

// adopt makes the record of another policy's one of c's.
func (c *customRule) adopt(r *record, t int64) {
	if r.state == (State{}) {
		return // nothing is counted
	}
	limit := c.policy.Limit
	if c.policy.Dynamic {
		limit = r.limit
	}
	a := ask{t: t, limit: limit, capacity: limit}
	if c.policy.Burst > 0 {
		a.capacity = c.policy.Burst
	}
	o, _ := c.ask(r, a)
	r.base = endOf(t, o)
}
