package ratelimittest

import (
	"context"
	"slices"
	"sync"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// Recorder is a ratelimit.Observer that keeps what it is told, so that a test can ask
// what was decided. The zero Recorder is ready for use. It is safe for concurrent use
// and must not be copied.
type Recorder struct {
	mu     sync.Mutex
	events []ratelimit.Event
}

// Decided keeps the event. It implements [ratelimit.Observer].
func (r *Recorder) Decided(_ context.Context, e *ratelimit.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, *e)
}

// Events returns the events since the latest Reset, in the order in which they were
// told. Of calls that are made at the same time, that need not be the order in which
// they were decided.
func (r *Recorder) Events() []ratelimit.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Last returns the latest event, and whether there is one.
func (r *Recorder) Last() (e ratelimit.Event, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.events) == 0 {
		return ratelimit.Event{}, false
	}
	return r.events[len(r.events)-1], true
}

// Count is how many calls ended how.
type Count struct {
	// Admitted is the number of calls that the policy admitted, which may have been
	// refused by others.
	Admitted int
	// Refused is the number of calls that the policy refused. One in shadow mode
	// refuses, too, though the call proceeds.
	Refused int
	// Degraded is how many of both were calls of which a part was not decided by the
	// store that was asked, or not by a counter of the key's own.
	Degraded int
	// Failed is the number of calls that could not be decided for what the policy
	// says: without a key, with a cost that never fits, or because the store failed
	// and the policy refuses then.
	Failed int
}

// Count returns how the calls since the latest Reset ended for the policy with the
// given ID. It leaves out calls that the policy did not apply to, and those that were
// refused before it was asked, since another one is Blocked.
func (r *Recorder) Count(policy string) Count {
	r.mu.Lock()
	defer r.mu.Unlock()
	var n Count
	for i := range r.events {
		e := &r.events[i]
		if e.Err != nil && !e.Decision.Degraded {
			if e.Decision.Policy == policy {
				n.Failed++
			}
			continue
		}
		for j := range e.Ops {
			if op := &e.Ops[j]; op.Policy.ID == policy {
				n.add(&op.Outcome, e.Decision.Degraded)
			}
		}
	}
	return n
}

func (n *Count) add(o *ratelimit.Outcome, degraded bool) {
	if o.Allowed {
		n.Admitted++
	} else {
		n.Refused++
	}
	if degraded {
		n.Degraded++
	}
}

// Calls returns how the calls since the latest Reset ended as a whole: Refused counts
// those that were refused by a policy, and Failed those that could not be decided.
func (r *Recorder) Calls() Count {
	r.mu.Lock()
	defer r.mu.Unlock()
	var n Count
	for i := range r.events {
		e := &r.events[i]
		if e.Err != nil && !e.Decision.Degraded {
			n.Failed++
			continue
		}
		n.add(&ratelimit.Outcome{Allowed: e.Decision.Allowed}, e.Decision.Degraded)
	}
	return n
}

// Reset forgets all events.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = nil
}
