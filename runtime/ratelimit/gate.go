package ratelimit

import (
	"context"
	"sync/atomic"
)

// Gate decides the calls of one method. It is safe for concurrent use. The zero
// Gate returns errors; gates come from Limiter.Gate.
type Gate struct {
	// cur is what the gate is now; Limiter.Update and Subscribe replace it.
	cur atomic.Pointer[gate]
}

// now returns what g is now, nil for a nil or zero Gate.
func (g *Gate) now() *gate {
	if g == nil {
		return nil
	}
	return g.cur.Load()
}

// Charge is one policy's part of a call.
type Charge struct {
	// Key says under which key the call counts. A nil or empty key is absent:
	// Policy.OnEmpty decides. A Global policy ignores the key.
	Key []byte
	// Cost is the number of units that the call takes: 0..Policy.Capacity(). A cost
	// of 0 takes nothing and is admitted unless the policy is Blocked, the key is
	// locked or blocked, or more than the limit is reserved or was charged afterwards.
	// A policy that is Unlimited or Blocked does not look at it.
	Cost int64
	// Limit is the limit of a Dynamic policy, for this call: one that is not
	// positive means Blocked, and one above the greatest that the algorithm takes
	// means that one. Other policies ignore it.
	Limit int64
	// Skip leaves the policy out of this call: it neither decides nor is charged.
	Skip bool
}

// Allow asks the gate's only policy for one unit. It returns nil if the call may
// proceed, and charges it then. If the call came too early, the error is an *Error
// of kind ErrLimited; other kinds say why nothing could be decided. If ctx is done,
// the error is ctx.Err() and nothing is charged. A nil ctx is never done.
//
// If the policy is a LeakyBucket, Allow waits for the call's turn; see AllowAll. A
// Dynamic policy refuses the call, since it brings no limit.
func (g *Gate) Allow(ctx context.Context, key []byte) error {
	return g.AllowN(ctx, key, 1)
}

// AllowN is Allow for cost units. A negative cost, or one above the policy's
// capacity, is an *Error of kind ErrCost, unless the policy is Unlimited or Blocked.
func (g *Gate) AllowN(ctx context.Context, key []byte, cost int64) error {
	s := g.now()
	if s != nil && s.fast != nil {
		c := s.fast
		key = c.key(key)
		if uint64(cost-1) < uint64(c.capacity) && (len(key) > 0 || c.policy.Global) && len(key) <= keyLimit {
			if ctx != nil {
				if err := ctx.Err(); err != nil {
					return err
				}
			}
			// The outcome of an admission is not looked at, and not moved around.
			var o Outcome
			if allowed, found := s.limiter.mem.takeOne(c, key, cost, &o, false); allowed {
				return nil
			} else if found {
				return s.refused(c, &o)
			}
			charges := [1]Charge{{Key: key, Cost: cost}}
			return s.allow(ctx, charges[:])
		}
	}
	charges := [1]Charge{{Key: key, Cost: cost}}
	return s.allowAll(ctx, charges[:])
}

// AllowAll is AllowN for all policies of the gate: charges has one element for
// each, in the order of the Spec. Either every enforced policy admits the call, and
// then each policy that admits it is charged, or nothing is charged. The error
// speaks of the policy that has the longest wait.
//
// If one of the policies is a LeakyBucket, AllowAll returns when it is the call's
// turn. A call that ctx ends before that is refused at once if ctx has a deadline,
// or else leaves the queue when ctx is done; then the error is ctx.Err(). The other
// policies keep what they were charged.
//
// Calls that have an end go through Acquire: AllowAll and Take return an error if a
// policy is Concurrency or TimeQuota, or has Count set.
func (g *Gate) AllowAll(ctx context.Context, charges []Charge) error {
	return g.now().allowAll(ctx, charges)
}

// Take is AllowAll for callers that want to know more: the Decision tells whether
// the call may proceed, and a refusal is no error. Take does not wait for the turn
// of an admitted call: see Decision.Delay.
func (g *Gate) Take(ctx context.Context, charges ...Charge) (Decision, error) {
	return g.now().take(ctx, charges)
}

// Peek tells what Take would decide now, and changes nothing. The Decision of an
// admission speaks of the state before the charge. The RetryAfter of a refusal does
// not include the Policy.Lock that the call would bring about.
func (g *Gate) Peek(ctx context.Context, charges ...Charge) (Decision, error) {
	return g.now().peek(ctx, charges)
}

// Reset forgets what is counted under keys, one for each policy in the order of the
// Spec, so that their next call is their first: locks and blocks too, reservations, and
// the places of calls that are still running. An absent key leaves a policy's counters alone, unless the
// policy is Global or has SharedEmpty. Keys that share an overflow counter (see
// WithMaxKeys) go on sharing it.
func (g *Gate) Reset(ctx context.Context, keys ...[]byte) error {
	return g.now().reset(ctx, keys)
}
