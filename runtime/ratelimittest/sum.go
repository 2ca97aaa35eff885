package ratelimittest

import (
	"math"
	"math/big"
	"slices"
	"sync"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// sum is what a history comes to under the definition of an algorithm.
type sum struct {
	latest int64 // time that the history cannot be behind
	admits func(t int64, a asked) bool
	fresh  func(t int64) bool           // whether it decides as an empty one
	used   func(t int64) int64          // of a time quota
	delay  func(t int64, a asked) int64 // of a leaky bucket
	served func(t int64) int64          // how long the unit at its head was, in 1/limit µs; or how much of an interval is over
}

// sum returns what h comes to.
func (h history) sum(p *ratelimit.Policy) sum {
	latest := int64(math.MinInt64)
	if len(h) > 0 {
		latest = h[len(h)-1].at
	}
	w := p.Window.Microseconds()
	switch p.Algorithm {
	case ratelimit.FixedWindow:
		if p.Align != "" {
			return h.calendarSum(p, latest)
		}
		return h.fixedSum(w)
	case ratelimit.SlidingWindow:
		return h.slidingSum(p, latest)
	case ratelimit.TokenBucket:
		switch {
		case p.Warmup > 0:
			return h.warmingSum(p, latest)
		case p.Refill == ratelimit.Interval:
			return h.intervalSum(p, latest)
		case p.Dynamic || beginsShort(p):
			return h.levelSum(p, latest)
		}
		return h.suffixSum(p, latest)
	case ratelimit.LeakyBucket:
		return h.leakySum(p, latest)
	case ratelimit.Concurrency:
		return h.leaseSum(windowOf(p), latest)
	case ratelimit.TimeQuota:
		return h.quotaSum(w)
	}
	return counting(latest, func(t int64) (used int64) {
		for _, c := range h {
			if t-c.at < w {
				used += c.cost
			}
		}
		return used
	})
}

// counting is the sum of an algorithm that compares a count with the capacity.
func counting(latest int64, used func(t int64) int64) sum {
	return sum{
		latest: latest,
		admits: func(t int64, a asked) bool { return used(t)+a.cost <= a.capacity },
		fresh:  func(t int64) bool { return t >= latest && used(t) == 0 },
		used:   used,
	}
}

func (h history) fixedSum(w int64) sum {
	start, used := int64(math.MinInt64), int64(0)
	for i, c := range h {
		if i == 0 || c.at-start >= w {
			start, used = c.at, 0
		}
		used += c.cost
	}
	return counting(start, func(t int64) int64 {
		if len(h) == 0 || t-start >= w {
			return 0
		}
		return used
	})
}

func (h history) calendarSum(p *ratelimit.Policy, latest int64) sum {
	var begin, end int64 // of the latest window that was asked for
	return counting(latest, func(t int64) (used int64) {
		if t < begin || t >= end {
			begin, end = window(p, t)
		}
		for _, c := range h {
			if c.at >= begin && c.at < end {
				used += c.cost
			}
		}
		return used
	})
}

// window returns the window of the calendar that t is in, by walking there from a
// while before. In the zones that properties use, each day has a midnight, and
// offsets are whole hours.
func window(p *ratelimit.Policy, t int64) (begin, end int64) {
	zone, err := time.LoadLocation(p.TZ)
	if err != nil {
		panic(err)
	}
	step := func(from time.Time) time.Time { return from.Add(time.Duration(windowOf(p)) * time.Microsecond) }
	y, m, d := time.UnixMicro(t).In(zone).Date()
	from := time.Date(y, m, d-1, 0, 0, 0, 0, zone)
	switch p.Align {
	case ratelimit.AlignSecond, ratelimit.AlignMinute, ratelimit.AlignHour:
		from = time.UnixMicro(t).Truncate(time.Hour)
		n := (time.UnixMicro(t).Sub(from).Microseconds()) / windowOf(p)
		from = from.Add(time.Duration(n*windowOf(p)) * time.Microsecond)
	case ratelimit.AlignDay:
		step = func(from time.Time) time.Time { return from.AddDate(0, 0, 1) }
	case ratelimit.AlignWeek:
		for from.Weekday() != time.Monday {
			from = from.AddDate(0, 0, -1)
		}
		step = func(from time.Time) time.Time { return from.AddDate(0, 0, 7) }
	case ratelimit.AlignMonth:
		from = time.Date(y, m-1, 1, 0, 0, 0, 0, zone)
		step = func(from time.Time) time.Time { return from.AddDate(0, 1, 0) }
	}
	for {
		next := step(from)
		if next.UnixMicro() > t {
			return from.UnixMicro(), next.UnixMicro()
		}
		from = next
	}
}

func (h history) slidingSum(p *ratelimit.Policy, latest int64) sum {
	segments := int64(p.Segments)
	if segments == 0 {
		segments = ratelimit.DefaultSegments
	}
	length := (p.Window.Microseconds() + segments - 1) / segments
	var base int64 // where parts begin: at a charge when nothing counts
	used := func(h history, t int64) (used int64) {
		for _, c := range h {
			if c.at >= base && (t-base)/length-(c.at-base)/length <= segments {
				used += c.cost
			}
		}
		return used
	}
	for _, c := range h {
		if c.opens {
			base = c.at
		}
	}
	return counting(latest, func(t int64) int64 { return used(h, t) })
}

func product(a, b int64) *big.Int {
	return new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
}

// suffixSum is the token bucket by its bound: in every suffix of the history, at
// most burst + limit * T / window. With a call at t, a suffix that begins at c.at keeps
// to that if
//
//	(units + cost - capacity) * window + owed <= limit * (t - c.at)
//
// so that the suffix to look at is, for all calls, the one of which units * window +
// owed + limit * c.at is the most.
func (h history) suffixSum(p *ratelimit.Policy, latest int64) sum {
	w := p.Window.Microseconds()
	most := sync.OnceValue(func() (most *big.Int) {
		var units int64
		for _, c := range slices.Backward(h) {
			if units += c.cost; c.cost == 0 && c.owed == 0 {
				continue // nothing begins here
			}
			of := product(units, w)
			of.Add(of, big.NewInt(c.owed))
			if of.Add(of, product(p.Limit, c.at)); most == nil || of.Cmp(most) > 0 {
				most = of
			}
		}
		return most
	})
	s := sum{latest: latest, admits: func(t int64, a asked) bool {
		if a.cost > a.capacity {
			return false
		}
		if most() == nil {
			return true
		}
		of := product(a.cost-a.capacity, w)
		return of.Add(of, most()).Cmp(product(p.Limit, t)) <= 0
	}}
	s.fresh = func(t int64) bool { return t >= latest && s.admits(t, ask(p, p.Capacity())) }
	return s
}

// levelSum is the token bucket by what it misses, which comes back at the rate of
// the limit that a call brings.
func (h history) levelSum(p *ratelimit.Policy, latest int64) sum {
	refill := func(missing *big.Rat, d, limit int64) *big.Rat {
		back := new(big.Rat).SetFrac(product(d, limit), big.NewInt(p.Window.Microseconds()))
		if back.Sub(missing, back); back.Sign() < 0 {
			return new(big.Rat)
		}
		return back
	}
	missing := new(big.Rat)
	var last charge
	for i, c := range h {
		if i > 0 {
			missing = refill(missing, c.at-last.at, c.asked.limit)
		}
		missing.Add(missing, new(big.Rat).SetInt64(c.cost))
		missing.Add(missing, new(big.Rat).SetFrac64(c.owed, p.Window.Microseconds()))
		last = c
	}
	return sum{
		latest: latest,
		admits: func(t int64, a asked) bool {
			if len(h) == 0 {
				return a.cost <= a.capacity
			}
			after := refill(missing, t-latest, a.limit)
			return after.Add(after, new(big.Rat).SetInt64(a.cost)).Cmp(new(big.Rat).SetInt64(a.capacity)) <= 0
		},
		fresh: func(t int64) bool {
			if beginsShort(p) {
				t -= p.Window.Microseconds() // full for so long
			}
			return t >= latest && refill(missing, t-latest, last.asked.limit).Sign() == 0
		},
	}
}

// intervalSum is the token bucket that refills at once.
func (h history) intervalSum(p *ratelimit.Policy, latest int64) sum {
	w := p.Window.Microseconds()
	var missing, phase int64
	var last charge
	after := func(t, limit int64) int64 {
		if n := (t - phase) / w; n < missing {
			return max(0, missing-n*limit)
		}
		return 0
	}
	for i, c := range h {
		if left := after(c.at, c.asked.limit); i > 0 && left > 0 {
			missing, phase = left, phase+(c.at-phase)/w*w
		} else {
			missing, phase = 0, c.at
		}
		missing += c.cost
		last = c
	}
	return sum{
		latest: latest,
		admits: func(t int64, a asked) bool {
			return len(h) == 0 || after(t, a.limit)+a.cost <= a.capacity
		},
		fresh: func(t int64) bool {
			if beginsShort(p) {
				t -= w
			}
			return t >= latest && after(t, last.asked.limit) == 0
		},
		used:   func(t int64) int64 { return after(t, p.Limit) },
		served: func(t int64) int64 { return (t - phase) % w },
	}
}

// warmingSum is Guava's SmoothWarmingUp. Surcharges are rounded up, as documented.
func (h history) warmingSum(p *ratelimit.Policy, latest int64) sum {
	rat := func(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }
	warmup := rat(p.Warmup.Microseconds())
	half := new(big.Rat).Quo(warmup, rat(2))
	var free *big.Rat // when the next call is admitted
	cold := warmup    // idle time that is not used up
	coldAt := func(t *big.Rat) *big.Rat {
		if free == nil {
			return warmup
		}
		c := new(big.Rat).Add(cold, new(big.Rat).Sub(t, free))
		if c.Cmp(warmup) > 0 {
			return warmup
		}
		return c
	}
	// slow is the integral from 0 of what a cold bucket takes longer: of a unit of
	// time that is used up, from nothing at half the warmup to twice it.
	slow := func(cold *big.Rat) *big.Rat {
		above := new(big.Rat).Sub(rat(ceil(cold)), half)
		if above.Sign() < 0 {
			return rat(0)
		}
		n := new(big.Rat).Mul(above, above)
		return n.Quo(n.Mul(n, rat(2)), warmup)
	}
	for _, c := range h {
		from := coldAt(rat(c.at))
		span := new(big.Rat).SetFrac(product(c.cost, p.Window.Microseconds()), big.NewInt(p.Limit))
		to := new(big.Rat).Sub(from, span)
		if to.Sign() < 0 {
			to = rat(0)
		}
		longer := new(big.Rat).Sub(slow(from), slow(to))
		free = span.Add(span, rat(c.at+ceil(longer)))
		cold = to
	}
	return sum{
		latest: latest,
		admits: func(t int64, a asked) bool {
			return a.cost == 0 || free == nil || rat(t).Cmp(free) >= 0
		},
		fresh: func(t int64) bool {
			return free == nil || rat(t).Cmp(free) >= 0 && coldAt(rat(t)).Cmp(warmup) == 0
		},
	}
}

func ceil(r *big.Rat) int64 {
	q, m := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int))
	if m.Sign() > 0 {
		return q.Int64() + 1
	}
	return q.Int64()
}

// leakySum is a queue. Times are multiples of 1/limit µs after the first charge.
func (h history) leakySum(p *ratelimit.Policy, latest int64) sum {
	unit := p.Window.Microseconds()
	type slot struct {
		from, units int64
		back        bool
	}
	var slots []slot
	var end, first int64
	scaled := func(t int64) int64 {
		if t-first > math.MaxInt64/p.Limit {
			return math.MaxInt64 // after all that is queued
		}
		return (t - first) * p.Limit
	}
	for i, c := range h {
		if i == 0 {
			first = c.at
		}
		from := max(end, scaled(c.at))
		slots = append(slots, slot{from, c.units, c.back})
		end = from + c.units*unit
	}
	inside := func(t int64) (n int64) {
		for _, s := range slots {
			if left := s.units - max(0, scaled(t)-s.from)/unit; left > 0 && !s.back {
				n += left
			}
		}
		return n
	}
	s := counting(latest, inside)
	s.fresh = func(t int64) bool { return t >= latest && scaled(t) >= end }
	s.delay = func(t int64, a asked) int64 {
		if a.cost == 0 || len(h) == 0 {
			return 0
		}
		return max(0, (end-scaled(t)+p.Limit-1)/p.Limit)
	}
	s.served = func(t int64) int64 {
		for _, s := range slots {
			if done := scaled(t) - s.from; done >= 0 && done < s.units*unit && !s.back {
				return done % unit
			}
		}
		return 0 // the unit was given back, and the next one begins
	}
	return s
}

func (h history) leaseSum(lease, latest int64) sum {
	return counting(latest, func(t int64) (used int64) {
		for _, c := range h {
			if t-c.at < lease {
				used += c.cost
			}
		}
		return used
	})
}

func (h history) quotaSum(w int64) sum {
	start, used := int64(math.MinInt64), int64(0)
	for i, c := range h {
		if i == 0 || c.at-start >= w {
			start, used = c.at, 0
		}
		used += c.took
	}
	s := counting(start, func(t int64) int64 {
		if len(h) == 0 || t-start >= w {
			return 0
		}
		return used
	})
	s.admits = func(t int64, a asked) bool { return a.cost == 0 || s.used(t) < a.limit }
	s.fresh = func(t int64) bool { return len(h) == 0 || t-start >= w }
	return s
}
