package ratelimit

import (
	"context"
	"errors"
	"time"
)

// Store keeps counters outside of the process. The in-memory counters that a
// Limiter has by default do not go through this interface, but obey the same
// contract, and the suite in ratelimittest holds every store to it.
//
// Implementations must be safe for concurrent use.
type Store interface {
	// Take decides ops as one: either every op in enforcing mode is admitted, and
	// each admitted op is charged, or none is charged. It fills the Outcome of
	// every op. An op that is a peek, or costs 0, is decided but never changes state.
	// A non-nil error means that nothing is known about ops; it should name the
	// server that was asked.
	//
	// The caller has validated policies and costs: 0 <= Cost <= Policy.Capacity(),
	// Limit neither Unlimited nor Blocked, Mode Enforce or Shadow. All ops have
	// distinct (Policy.ID, Key). Times come from the store's own clock, which may be set
	// back: a key's time does not run backwards then, as the package comment says.
	Take(ctx context.Context, ops []Op) error

	// Reset forgets the counter of key, so that the next call is its first.
	Reset(ctx context.Context, p *Policy, key string) error
}

// Supporter is implemented by a Store that supports other policies than SlidingLog,
// FixedWindow and TokenBucket with a Limit, a Window and a Burst, which is what a
// Store without this method is taken to support. Policies whose calls end, it can
// support only if it is an Ender.
type Supporter interface {
	// Supports returns nil, or an error that says what of p, which is valid, the
	// store does not support. It is called when gates are made.
	Supports(p *Policy) error
}

// Reserver is implemented by a Store that can charge calls ahead, for Gate.Reserve.
type Reserver interface {
	// Reserve decides ops as Take does, except that it makes the charges for the first
	// time, up to so long from now, at which all ops in enforcing mode are admitted
	// beside what was reserved before. That takes room from now on: until the time has
	// come, another call is admitted only if the algorithm would admit its cost together
	// with the costs of all that is reserved for the key. Outcome.Delay of each op that
	// is charged is how long it is until then.
	//
	// Outcome.Allowed tells of each op whether it keeps the call from being reserved,
	// and RetryAfter for how long it does. A wait of 0 is Take. The name is what the
	// reservation is cancelled by; it is "" if nothing was reserved ahead. A place in a
	// Concurrency policy is cancelled by it, too.
	//
	// A store that cannot reserve such ops returns an error that wraps
	// errors.ErrUnsupported, and has charged nothing. Gate.Reserve returns it, whatever
	// Policy.OnError says.
	Reserve(ctx context.Context, ops []Op, wait time.Duration) (name string, err error)

	// Cancel takes out the charges of ops that were reserved under a name, unless their
	// time has come by the store's own clock. The times of other reservations stay.
	// Nothing happens if there is no such reservation.
	Cancel(ctx context.Context, ops []Op, name string) error
}

// Blocker is implemented by a Store that can refuse single keys for a time, for
// Gate.Block.
type Blocker interface {
	// Block has Take refuse a key of p for so long from now, whatever its counter says,
	// and RetryAfter be no less than what is left of that. It takes the place of an
	// earlier block; 0 lifts it, as does Reset. It must outlive all limits of p.
	Block(ctx context.Context, p *Policy, key string, d time.Duration) error
}

// supports returns nil, or an error that says what of p the store s does not support.
func supports(s Store, p *Policy) error {
	if s, ok := s.(Supporter); ok {
		return s.Supports(p)
	}
	a := p.algorithm()
	if what := needsEnder(p); what != "" {
		return errors.New(what)
	}
	for _, o := range []struct {
		used bool
		name string
	}{
		{a != SlidingLog && a != FixedWindow && a != TokenBucket, "algorithm " + string(a)},
		{p.Dynamic, "a limit that each call brings"},
		{p.Initial != 0, "initial"},
		{p.Refill != Smooth, "refill interval"},
		{p.Warmup != 0, "warmup"},
		{p.Align != "", "align"},
		{len(p.Lock) > 0, "lock"},
	} {
		if o.used {
			return errors.New(o.name)
		}
	}
	return nil
}

// needsEnder returns what of p only an Ender supports: what follows a call.
func needsEnder(p *Policy) string {
	switch {
	case p.Algorithm == Concurrency || p.Algorithm == TimeQuota:
		return "algorithm " + string(p.Algorithm)
	case p.Count:
		return "count"
	case p.CostAfter:
		return "a cost after the call"
	}
	return ""
}

// Op is one policy's part of a call.
type Op struct {
	Policy *Policy
	Key    string
	Cost   int64
	// Limit is Policy.Limit or, of a Dynamic policy, that of the call: at least 1.
	Limit int64
	// Peek asks what would become of Cost, and changes nothing. It is set on all
	// ops of a call or on none.
	Peek bool
	// ID, if not 0, names the call among all calls that the store knows of, so that it
	// can be referred to when it ends. See Ender.
	ID uint64
	// Waits is set if a refusal is not the last word, because the call waits: it must
	// not lock the key by Policy.Lock.
	Waits bool
	// Refused is set, besides Peek, if the call is refused whatever this op says, for
	// example because it waited too long. If the op refuses it too, it must lock the
	// key by Policy.Lock.
	Refused bool
	// Ticket, if not 0, names a call that waits for a place of a Concurrency policy: the
	// same one each time it asks, and Cost in its upper 32 bits. A store that other
	// processes use lets those that wait have places in the order in which their tickets
	// came, tells in Outcome.Before how many are first, and forgets a ticket when its call
	// is admitted, with an End with the ticket for ID and EndGiveBack, and some seconds
	// after it asked last. A store that does not know tickets lets them have places as they
	// ask.
	Ticket uint64

	// Outcome is set by Store.Take.
	Outcome Outcome
}

// Outcome is what a policy says about a call. The fields are those of Decision.
// After a call that was admitted they speak of the state after the charge, and
// after one that was refused, of the state as it stays. A wait of more than 2^53 µs,
// some 285 years, may be told as a longer one.
type Outcome struct {
	// Allowed tells whether this policy alone would admit the call. The call as a
	// whole is admitted iff every policy in Enforce mode allows it; only then are
	// the policies that allow it charged.
	Allowed bool
	// Remaining is the greatest cost that would be admitted now.
	Remaining int64
	// RetryAfter is 0 if Allowed, else the shortest wait after which this policy
	// would admit the same cost.
	RetryAfter time.Duration
	// ResetAfter is how long it takes until the state is as new.
	ResetAfter time.Duration
	// Delay is how long an admitted call waits for its turn in a LeakyBucket.
	Delay time.Duration
	// Before is how many calls with other tickets come before a refused one with a
	// Ticket.
	Before int64
}
