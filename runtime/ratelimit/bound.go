package ratelimit

import (
	"fmt"
	"math"
	"math/bits"
	"time"
)

// Bound is the worst case of a policy: what it admits at most of one key, whatever
// its callers do. It comes from Policy.Bound.
//
// Calls that stay counted only sometimes (Count), that are charged afterwards
// (CostAfter), that cost nothing, or that a store's failure lets through are not in it,
// and neither is what a shadow admits.
type Bound struct {
	rule     boundRule
	limit    int64 // units
	capacity int64
	span     int64 // µs after which what was charged counts no more, or a bucket's window
	// gap is after how many µs all that was charged last of a window may come again, if
	// the call which began the window came as early as it could.
	gap  int64
	unit *nominal // of the calendar
}

type boundRule uint8

const (
	boundNone     boundRule = iota // of calls in time
	boundAll                       // everything
	boundNothing                   // nothing
	boundSpan                      // limit within span
	boundParts                     // limit within span, or from the end of a part on, within gap
	boundWindow                    // limit per window, which the first call begins
	boundCalendar                  // limit per window, which the calendar begins
	boundBucket                    // capacity at once, and limit per span evenly
	boundInterval                  // capacity at once, and limit each span
	boundPaced                     // one, and limit per span evenly
	boundInFlight                  // limit at once
	boundTime                      // limit of time per span, and what is running
)

// Bound returns the worst case of p, which is valid. Of a Dynamic policy it is that
// of calls that bring the limit p.Limit: none of those that bring 0 is admitted.
func (p Policy) Bound() Bound {
	b := Bound{limit: p.Limit, capacity: p.Capacity(), span: p.Window.Microseconds()}
	switch {
	case p.Mode == Off || p.Limit == Unlimited:
		b.rule = boundAll
		return b
	case p.Limit == Blocked || p.Dynamic && p.Limit <= 0: // as its calls that bring no more
		b.rule = boundNothing
		return b
	}
	switch p.algorithm() {
	case SlidingLog:
		b.rule = boundSpan
	case SlidingWindow:
		n := int64(p.segments())
		part := (b.span + n - 1) / n
		b.rule, b.span, b.gap = boundParts, part*(n+1), part*n+1
	case FixedWindow:
		b.rule, b.gap = boundWindow, 1
		if p.Align != "" {
			b.rule, b.span, b.unit = boundCalendar, p.Align.Length().Microseconds(), newNominal(&p)
		}
	case TokenBucket:
		b.rule = boundBucket
		switch {
		case p.Refill == Interval:
			b.rule, b.gap = boundInterval, 1
		case b.capacity == 1:
			// Without tolerance each call comes at a whole microsecond.
			b.rule, b.span, b.limit = boundSpan, (b.span+b.limit-1)/b.limit, 1
		}
	case LeakyBucket:
		b.rule = boundPaced
	case Concurrency:
		b.rule = boundInFlight
	case TimeQuota:
		b.rule = boundTime
	}
	return b
}

// Most returns how many units may be admitted within an interval of length d, its
// begin included and its end not: 0 for d <= 0, math.MaxInt64 for no bound, as of
// policies that count calls in flight or their time. Of a LeakyBucket it is how many
// leave the bucket, and of a bucket with a Warmup, the true worst case may be less.
//
// Of windows of the calendar it goes by the shortest there are: a February, and a day or
// an hour in which the clocks of the zone Policy.TZ are changed. So three of them may lie
// in 23 hours, or touch the 29 days around a February.
//
//	SlidingLog                 L for each W that d has begun
//	SlidingWindow              L for each W that d has begun, or somewhat longer
//	FixedWindow                L for each window that d touches, but that the call
//	                           which begins the first of them may lie before
//	FixedWindow with Align     L for each window that d can touch
//	TokenBucket                Burst and what comes back in d
//	LeakyBucket                what leaves in d, which is at least 1
func (b Bound) Most(d time.Duration) int64 {
	t := d.Microseconds()
	if d%time.Microsecond != 0 {
		t++
	}
	if t <= 0 {
		return 0
	}
	switch b.rule {
	case boundNothing:
		return 0
	case boundSpan:
		return times(b.limit, (t-1)/b.span+1)
	case boundWindow, boundParts, boundInterval:
		// With the call that begins the first window, or before the interval.
		each := b.limit
		if b.rule == boundInterval {
			each = min(b.limit, b.capacity)
		}
		most := plus(b.capacity, times(each, (t-1)/b.span))
		if t > b.gap {
			most = max(most, plus(b.capacity-1, times(each, (t-1-b.gap)/b.span+1)))
		}
		return most
	case boundCalendar:
		if t == 1 {
			return b.limit
		}
		return times(b.limit, b.unit.within(t-2)+2) // and a microsecond of each beside these
	case boundBucket:
		n, _ := quotient(t-1, b.limit, b.span)
		return plus(b.capacity, n)
	case boundPaced:
		// Times of leaving are rounded up to whole microseconds.
		n, rest := quotient(t, b.limit, b.span)
		if rest > 0 {
			n = plus(n, 1)
		}
		return n
	}
	return math.MaxInt64
}

// quotient returns a*b/c and the rest, or the greatest number if it is greater.
func quotient(a, b, c int64) (n int64, rest uint64) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return math.MaxInt64, 0
	}
	q, rest := bits.Div64(hi, lo, uint64(c))
	if q > math.MaxInt64 {
		return math.MaxInt64, 0
	}
	return int64(q), rest
}

func times(a, n int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(n))
	if hi > 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// String says the bound in words, like "at most 5 in any 1m0s".
func (b Bound) String() string {
	span := time.Duration(b.span) * time.Microsecond
	switch b.rule {
	case boundNothing:
		return "nothing"
	case boundSpan:
		return fmt.Sprintf("at most %d in any %v", b.limit, span)
	case boundParts:
		return fmt.Sprintf("at most %d in any %v", b.limit, time.Duration(b.gap)*time.Microsecond)
	case boundWindow, boundCalendar:
		return fmt.Sprintf("at most %d in a window of %v, and %d in any %v", b.limit, span, b.Most(span), span)
	case boundPaced:
		return fmt.Sprintf("at most one at once, and %d in %v", b.limit, span)
	case boundBucket:
		return fmt.Sprintf("at most %d at once, and %d more each %v", b.capacity, b.limit, span)
	case boundInterval:
		return fmt.Sprintf("at most %d at once, and %d more at the end of each %v", b.capacity, min(b.limit, b.capacity), span)
	case boundInFlight:
		return fmt.Sprintf("at most %d in flight", b.limit)
	case boundTime:
		return fmt.Sprintf("at most %v of time in each %v, and what is running", time.Duration(b.limit)*time.Microsecond, span)
	}
	return "no bound"
}
