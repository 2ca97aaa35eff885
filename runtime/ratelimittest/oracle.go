package ratelimittest

import (
	"math/big"
	"slices"
	"sort"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// charge is an admitted cost. Times are microseconds.
type charge struct{ at, cost int64 }

// history is all that a policy ever admitted for a key. The oracle decides on it by
// the definitions of the algorithms, and finds waits by trying: slow and obvious.
type history []charge

// latest is the time that the history cannot be behind.
func (h history) latest(p *ratelimit.Policy) int64 {
	if p.Algorithm == ratelimit.FixedWindow {
		start, _ := h.window(p)
		return start
	}
	return h[len(h)-1].at
}

// window returns the start of the latest window and what was charged in it.
func (h history) window(p *ratelimit.Policy) (start, used int64) {
	for i, c := range h {
		if i == 0 || c.at-start >= p.Window.Microseconds() {
			start, used = c.at, 0
		}
		used += c.cost
	}
	return start, used
}

// settle returns the history that a decision at now is made on, and the time of
// the decision.
func (h history) settle(p *ratelimit.Policy, now int64) (history, int64) {
	if len(h) == 0 || h.latest(p) <= now {
		return h, now
	}
	back := h.latest(p) - now
	if back <= p.Window.Microseconds() {
		return h, h.latest(p)
	}
	moved := slices.Clone(h)
	for i := range moved {
		moved[i].at -= back
	}
	return moved, now
}

// admits tells whether cost is admitted at t.
func (h history) admits(p *ratelimit.Policy, t, cost int64) bool {
	w := p.Window.Microseconds()
	switch p.Algorithm {
	case ratelimit.TokenBucket:
		// In every suffix of the history, at most burst + limit * T / w.
		sum := cost
		if sum > p.Capacity() {
			return false
		}
		for _, c := range slices.Backward(h) {
			sum += c.cost
			if product(sum-p.Capacity(), w).Cmp(product(p.Limit, t-c.at)) > 0 {
				return false
			}
		}
		return true
	case ratelimit.FixedWindow:
		start, used := h.window(p)
		if len(h) == 0 || t-start >= w {
			used = 0
		}
		return used+cost <= p.Limit
	default:
		var used int64
		for _, c := range h {
			if t-c.at < w {
				used += c.cost
			}
		}
		return used+cost <= p.Limit
	}
}

func product(a, b int64) *big.Int {
	return new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
}

// fresh tells whether at t the history decides as an empty one.
func (h history) fresh(p *ratelimit.Policy, t int64) bool {
	return len(h) == 0 || h.latest(p) <= t && h.admits(p, t, p.Capacity())
}

// outcome is what the policy says at t of a call that was decided, as the history
// stands after it.
func (h history) outcome(p *ratelimit.Policy, t, cost int64, allowed bool) ratelimit.Outcome {
	o := ratelimit.Outcome{
		Allowed:    allowed,
		Remaining:  least(p.Capacity(), func(n int64) bool { return !h.admits(p, t, n+1) }),
		ResetAfter: micros(least(longest(p), func(d int64) bool { return h.fresh(p, t+d) })),
	}
	if !allowed {
		o.RetryAfter = micros(least(longest(p), func(d int64) bool { return h.admits(p, t+d, cost) }))
	}
	return o
}

// longest is more than any wait.
func longest(p *ratelimit.Policy) int64 {
	n := p.Window.Microseconds()
	if p.Algorithm == ratelimit.TokenBucket {
		fill := new(big.Int).Div(product(p.Capacity(), n), big.NewInt(p.Limit))
		n = fill.Int64() + 1
	}
	return n
}

// least returns the smallest of 0..n for which holds is true, and n if none is.
func least(n int64, holds func(int64) bool) int64 {
	return int64(sort.Search(int(n), func(i int) bool { return holds(int64(i)) }))
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// beliefs is what a key's history may be. There is more than one as soon as a time
// was seen at which the state was as new: the store may have dropped it then, or
// not, which makes a difference if the clock steps back afterwards.
type beliefs struct {
	policy *ratelimit.Policy
	of     []history
}

func newBeliefs(p *ratelimit.Policy) *beliefs {
	return &beliefs{policy: p, of: []history{nil}}
}

// seen notes that the store may have seen the time now.
func (b *beliefs) seen(now int64) {
	for _, h := range b.of {
		if len(h) == 0 {
			return
		}
	}
	for _, h := range b.of {
		if h.fresh(b.policy, now) {
			b.of = append(b.of, nil)
			return
		}
	}
}

// observe drops the beliefs that a peek at now contradicts, and reports whether
// any remain.
func (b *beliefs) observe(now, cost int64, seen ratelimit.Outcome) bool {
	b.of = slices.DeleteFunc(b.of, func(h history) bool {
		h, t := h.settle(b.policy, now)
		o := h.outcome(b.policy, t, cost, h.admits(b.policy, t, cost))
		if b.policy.Mode == ratelimit.Shadow {
			o.RetryAfter = 0 // the call is admitted, so nobody is told to wait
		}
		return o != seen
	})
	return len(b.of) > 0
}

// moves tells whether a decision at now moves the state because the clock was set
// back for good.
func (b *beliefs) moves(now int64) bool {
	return slices.ContainsFunc(b.of, func(h history) bool {
		_, t := h.settle(b.policy, now)
		return len(h) > 0 && h.latest(b.policy) > t
	})
}

// admits tells whether a call at now is admitted. The beliefs agree on that once
// they have been observed.
func (b *beliefs) admits(now, cost int64) bool {
	h, t := b.of[0].settle(b.policy, now)
	return h.admits(b.policy, t, cost)
}

// decide notes that a call was decided at now, and returns the time that it was
// decided at and what is to be said of it.
func (b *beliefs) decide(now, cost int64, allowed, charged bool) (int64, ratelimit.Outcome) {
	var at int64
	var o ratelimit.Outcome
	for i, h := range b.of {
		moved, t := h.settle(b.policy, now)
		if cost > 0 {
			h = moved
		}
		if charged && cost > 0 {
			h = append(slices.Clip(h), charge{t, cost})
			moved = h
		}
		b.of[i] = h
		if i == 0 {
			at, o = t, moved.outcome(b.policy, t, cost, allowed)
		}
	}
	return at, o
}
