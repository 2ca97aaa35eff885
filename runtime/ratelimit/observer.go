package ratelimit

import "context"

// Observer is told of decisions, for metrics and logs. Decided is called after
// each decision of a Limiter's gates, in the goroutine of the call and before it
// proceeds, so it must be quick and safe for concurrent use. It is not called for
// a Peek, for a call whose context was done, or by a gate that admits at once
// because the limiter is disabled or all its policies are off.
type Observer interface {
	Decided(ctx context.Context, e *Event)
}

// Event is one decision. The Observer may keep it and must not change it.
type Event struct {
	// Method is that of the gate's Spec.
	Method string
	// Decision is what was decided. Decision.Shadow tells that a policy in shadow
	// mode would have refused an admitted call.
	Decision Decision
	// Err is nil if the call was decided, either way. Otherwise it is an *Error of
	// kind ErrNoKey, ErrCost or ErrStore. If Decision.Degraded is set as well, the
	// store failed, and Policy.OnError decided.
	Err error
	// Ops are the policies that were evaluated, in the order of the Spec, with what
	// each of them said.
	Ops []Op
}
