package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/ratelimitgen/ratelimitgen/bench/pay"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// own is one of our cases beside the one that it is compared with.
type own struct {
	Name   string  `json:"name"`
	Base   string  `json:"compared_with"`
	Target float64 `json:"target"`
	figure
	op, base operation
}

// paced is a clock that is ten microseconds ahead of itself with each reading, so
// that a log of five units in 50 µs has four of them whenever it is asked.
type paced struct {
	start time.Time
	calls atomic.Int64
}

const pace = 10 * time.Microsecond

func (c *paced) Now() time.Time {
	return c.start.Add(time.Since(c.start) + time.Duration(c.calls.Add(1))*pace)
}

const ownKey = "account-12345678"

// ownCases returns what is measured of our own.
func ownCases() []*own {
	ctx := context.Background()
	key := bytesOf(ownKey)
	allowing := func(l *ratelimit.Limiter, p ratelimit.Policy) operation {
		g := gate(l, p)
		return onOneKey(func(string) bool { return g.Allow(ctx, key) == nil }, ownKey, true)
	}
	taking := func(p policy, admitted bool) operation {
		g := gate(ratelimit.New(), policyOf(ratelimit.TokenBucket, p))
		_ = g.Allow(ctx, key) // the one call that a policy of one admits
		return onOneKey(func(string) bool {
			d, err := g.Take(ctx, ratelimit.Charge{Key: key, Cost: 1})
			return d.Allowed && err == nil
		}, ownKey, admitted)
	}
	clocked := func() *ratelimit.Limiter { return ratelimit.New(ratelimit.WithClock(&paced{start: time.Now()})) }

	bucket := allowing(ratelimit.New(), policyOf(ratelimit.TokenBucket, hot))
	first, second := policyOf(ratelimit.TokenBucket, hot), policyOf(ratelimit.TokenBucket, hot)
	first.ID, second.ID = "first", "second"
	one, two := gate(ratelimit.New(), first), gate(ratelimit.New(), first, second)
	inAll := func(g *ratelimit.Gate, n int) operation {
		return onOneKey(func(string) bool {
			charges := [2]ratelimit.Charge{{Key: key, Cost: 1}, {Key: key, Cost: 1}}
			return g.AllowAll(ctx, charges[:n]) == nil
		}, ownKey, true)
	}
	refused := gate(ratelimit.New(), policyOf(ratelimit.TokenBucket, once))
	_ = refused.Allow(ctx, key)
	wrapper := pay.NewRateLimitedService(&pay.Service{}, ratelimit.New())
	log := policy{5, 5 * pace}
	return []*own{
		{Name: "fixed-window", Base: "token-bucket", Target: 1.3,
			op: allowing(ratelimit.New(), policyOf(ratelimit.FixedWindow, hot)), base: bucket},
		{Name: "sliding-log of 5, paced clock", Base: "token-bucket, paced clock", Target: 1.3,
			op:   allowing(clocked(), policyOf(ratelimit.SlidingLog, log)),
			base: allowing(clocked(), policyOf(ratelimit.TokenBucket, policy{1000, 5 * pace}))},
		{Name: "two policies, AllowAll", Base: "one policy, Allow", Target: 1.5, op: inAll(two, 2), base: bucket},
		{Name: "two policies, AllowAll", Base: "one policy, AllowAll", op: inAll(two, 2), base: inAll(one, 1)},
		{Name: "Take, refused", Base: "Take, admitted", Target: 1, op: taking(once, false), base: taking(hot, true)},
		{Name: "Allow, refused", Base: "Allow, admitted",
			op: onOneKey(func(string) bool { return refused.Allow(ctx, key) == nil }, ownKey, false), base: bucket},
		{Name: "Take, admitted", Base: "Allow, admitted", op: taking(hot, true), base: bucket},
		{Name: nameOfWrapper, Base: "Allow", op: onOneKey(wrapped(wrapper, hot), ownKey, true), base: bucket},
	}
}

// measureOwn fills in the figures of cases: each is measured in turns with its base.
func (s settings) measureOwn(cases []*own) {
	for _, c := range cases {
		c.figure = *s.compare(c.Name, []operation{c.base, c.op})[1]
	}
}
