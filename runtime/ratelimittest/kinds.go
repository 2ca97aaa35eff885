package ratelimittest

import (
	"time"
	_ "time/tzdata" // for the zones of policies on the calendar

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"pgregory.net/rapid"
)

// kind is a kind of policy that properties are checked for.
type kind struct {
	name   string
	policy ratelimit.Policy // what all of the kind have
	// waits is set if a refused call with a cost is admitted after RetryAfter, and
	// refused before, by what was charged alone.
	waits bool
}

var kinds = []kind{
	{name: "sliding-log", policy: ratelimit.Policy{Algorithm: ratelimit.SlidingLog}, waits: true},
	{name: "fixed-window", policy: ratelimit.Policy{Algorithm: ratelimit.FixedWindow}, waits: true},
	{name: "token-bucket", policy: ratelimit.Policy{Algorithm: ratelimit.TokenBucket}, waits: true},
	{name: "sliding-window", policy: ratelimit.Policy{Algorithm: ratelimit.SlidingWindow}, waits: true},
	{name: "leaky-bucket", policy: ratelimit.Policy{Algorithm: ratelimit.LeakyBucket}, waits: true},
	{name: "concurrency", policy: ratelimit.Policy{Algorithm: ratelimit.Concurrency}},
	{name: "time-quota", policy: ratelimit.Policy{Algorithm: ratelimit.TimeQuota}},
	{name: "token-bucket refill=interval", policy: ratelimit.Policy{Algorithm: ratelimit.TokenBucket, Refill: ratelimit.Interval}, waits: true},
	{name: "token-bucket initial", policy: ratelimit.Policy{Algorithm: ratelimit.TokenBucket, Initial: ratelimit.Empty}},
	{name: "token-bucket warmup", policy: ratelimit.Policy{Algorithm: ratelimit.TokenBucket, Warmup: 1}},
	{name: "fixed-window align", policy: ratelimit.Policy{Algorithm: ratelimit.FixedWindow, Align: ratelimit.AlignDay}},
	{name: "dynamic sliding-log", policy: ratelimit.Policy{Algorithm: ratelimit.SlidingLog, Dynamic: true}},
	{name: "dynamic fixed-window", policy: ratelimit.Policy{Algorithm: ratelimit.FixedWindow, Dynamic: true}},
	{name: "dynamic token-bucket", policy: ratelimit.Policy{Algorithm: ratelimit.TokenBucket, Dynamic: true}},
	{name: "dynamic sliding-window", policy: ratelimit.Policy{Algorithm: ratelimit.SlidingWindow, Dynamic: true}},
	{name: "dynamic concurrency", policy: ratelimit.Policy{Algorithm: ratelimit.Concurrency, Dynamic: true}},
	{name: "dynamic time-quota", policy: ratelimit.Policy{Algorithm: ratelimit.TimeQuota, Dynamic: true}},
	{name: "sliding-log count", policy: ratelimit.Policy{Algorithm: ratelimit.SlidingLog, Count: true}},
	{name: "fixed-window count", policy: ratelimit.Policy{Algorithm: ratelimit.FixedWindow, Count: true}},
	{name: "token-bucket count", policy: ratelimit.Policy{Algorithm: ratelimit.TokenBucket, Count: true}},
	{name: "sliding-window count", policy: ratelimit.Policy{Algorithm: ratelimit.SlidingWindow, Count: true}},
	{name: "leaky-bucket count", policy: ratelimit.Policy{Algorithm: ratelimit.LeakyBucket, Count: true}},
	{name: "time-quota count", policy: ratelimit.Policy{Algorithm: ratelimit.TimeQuota, Count: true}},
	{name: "fixed-window align count", policy: ratelimit.Policy{Algorithm: ratelimit.FixedWindow, Align: ratelimit.AlignDay, Count: true}},
	{name: "sliding-log cost after", policy: ratelimit.Policy{Algorithm: ratelimit.SlidingLog, CostAfter: true}},
	{name: "fixed-window cost after", policy: ratelimit.Policy{Algorithm: ratelimit.FixedWindow, CostAfter: true}},
	{name: "token-bucket cost after", policy: ratelimit.Policy{Algorithm: ratelimit.TokenBucket, CostAfter: true}},
	{name: "sliding-window cost after", policy: ratelimit.Policy{Algorithm: ratelimit.SlidingWindow, CostAfter: true}},
	{name: "token-bucket count and cost after", policy: ratelimit.Policy{Algorithm: ratelimit.TokenBucket, Count: true, CostAfter: true}},
	{name: "lock", policy: ratelimit.Policy{Lock: []time.Duration{1}}}, // and any of the above
}

// kinds returns the kinds that the store under test supports.
func (h Harness) kinds() []kind {
	if h.Supports == nil {
		return kinds[:3]
	}
	var supported []kind
	for _, k := range kinds {
		p := k.policy
		if h.Supports(&p) {
			supported = append(supported, k)
		}
	}
	return supported
}

func drawDuration(rt *rapid.T, name string) time.Duration {
	return rapid.OneOf(
		rapid.SampledFrom([]time.Duration{time.Second, time.Minute, 24 * time.Hour}),
		rapid.Custom(func(rt *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(1_000_000, 100_000_000).Draw(rt, "µs")) * time.Microsecond
		}),
		rapid.Just(ratelimit.MaxWindow),
	).Draw(rt, name)
}

// draw returns a valid policy of the kind, with an ID of its own.
func (h Harness) draw(rt *rapid.T, k kind) ratelimit.Policy {
	p := unique(k.policy)
	if len(p.Lock) > 0 {
		return h.drawLocking(rt)
	}
	if p.Algorithm != ratelimit.Concurrency && p.Align == "" {
		p.Window = drawDuration(rt, "window")
	}
	most := int64(4096)
	if p.Algorithm == ratelimit.LeakyBucket {
		most = 64
	}
	if !p.Dynamic {
		p.Limit = rapid.OneOf(rapid.Int64Range(1, 5), rapid.Int64Range(1, 40), rapid.Int64Range(1, most)).Draw(rt, "limit")
	}
	switch p.Algorithm {
	case ratelimit.TokenBucket, ratelimit.LeakyBucket:
		if p.Warmup == 0 {
			most := max(p.Limit, 1)
			if p.Window <= 24*time.Hour && p.Algorithm == ratelimit.TokenBucket {
				most = max(3*p.Limit, 40)
			}
			p.Burst = rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(1, most)).Draw(rt, "burst")
		}
	case ratelimit.SlidingWindow:
		p.Segments = rapid.OneOf(rapid.Just(0), rapid.IntRange(2, 60)).Draw(rt, "segments")
	case ratelimit.Concurrency:
		p.Lease = rapid.SampledFrom([]time.Duration{0, time.Second, time.Hour}).Draw(rt, "lease")
	case ratelimit.TimeQuota:
		if !p.Dynamic {
			p.Limit = rapid.OneOf(rapid.Just(p.Limit), rapid.Int64Range(1, 3*p.Window.Microseconds())).Draw(rt, "µs")
			p.Limit = min(p.Limit, ratelimit.MaxWindow.Microseconds())
		}
	}
	if p.Align != "" {
		p.Align = rapid.SampledFrom([]ratelimit.Align{ratelimit.AlignSecond, ratelimit.AlignMinute, ratelimit.AlignHour,
			ratelimit.AlignDay, ratelimit.AlignWeek, ratelimit.AlignMonth}).Draw(rt, "align")
		p.TZ = rapid.SampledFrom([]string{"", "America/New_York", "Europe/Paris", "Asia/Tokyo"}).Draw(rt, "tz")
	}
	if p.Warmup != 0 {
		p.Warmup = drawDuration(rt, "warmup")
	}
	if p.Initial != 0 && p.Capacity() > 0 {
		p.Initial = rapid.OneOf(rapid.Just(ratelimit.Empty), rapid.Int64Range(1, p.Capacity())).Draw(rt, "initial")
	}
	return p
}

// drawLocking returns a policy of any kind with locks.
func (h Harness) drawLocking(rt *rapid.T) ratelimit.Policy {
	k := rapid.SampledFrom(h.kinds()).Filter(func(k kind) bool { return len(k.policy.Lock) == 0 }).Draw(rt, "kind")
	p := h.draw(rt, k)
	length := time.Duration(0)
	for range rapid.IntRange(1, 3).Draw(rt, "locks") {
		length += time.Duration(rapid.Int64Range(1, 30_000_000).Draw(rt, "lock")) * time.Microsecond
		p.Lock = append(p.Lock, length)
	}
	return p
}
