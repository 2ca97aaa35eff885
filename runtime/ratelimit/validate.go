package ratelimit

import (
	"fmt"
	"math/bits"
	"slices"
	"time"
)

// Bounds of options, beside those that are exported.
const (
	minSegments = 2
	maxSegments = 60
	maxLocks    = 32
)

// Validate reports what is wrong with p, or nil. New gates call it, and so does
// the generator, which turns the same text into an error at the directive. An
// option that would change nothing is wrong. Limiter.Gate also looks up the zone TZ.
func (p *Policy) Validate() error {
	if p.ID == "" {
		return fmt.Errorf("ratelimit: policy without an ID")
	}
	for _, check := range []func(*Policy) string{
		(*Policy).wrongWord,
		(*Policy).wrongOption,
		(*Policy).wrongNumber,
		(*Policy).wrongLimit,
	} {
		if problem := check(p); problem != "" {
			return fmt.Errorf("ratelimit: policy %q: %s", p.ID, problem)
		}
	}
	return nil
}

// wrongWord returns what is wrong with the fields that choose among words.
func (p *Policy) wrongWord() string {
	if a := p.algorithm(); !a.isBuiltIn() && !a.IsCustom() {
		return fmt.Sprintf("unknown algorithm %q", p.Algorithm)
	}
	switch p.Align {
	case "", AlignSecond, AlignMinute, AlignHour, AlignDay, AlignWeek, AlignMonth:
	default:
		return fmt.Sprintf("unknown align %q", p.Align)
	}
	switch {
	case p.Mode > Off:
		return fmt.Sprintf("unknown mode %d", p.Mode)
	case p.OnEmpty > SharedEmpty:
		return fmt.Sprintf("unknown OnEmpty %d", p.OnEmpty)
	case p.OnError > DenyOnError:
		return fmt.Sprintf("unknown OnError %d", p.OnError)
	case p.Refill > Interval:
		return fmt.Sprintf("unknown refill %d", p.Refill)
	}
	return ""
}

// wrongOption returns which option would be ignored beside the others.
func (p *Policy) wrongOption() string {
	a := p.algorithm()
	bucket := a == TokenBucket || a == LeakyBucket
	custom := !a.isBuiltIn()
	for _, o := range []struct {
		set, ok bool
		problem string
	}{
		{p.Burst != 0, bucket || custom, "burst is for token-bucket, leaky-bucket and custom algorithms only"},
		{p.Initial != 0, a == TokenBucket, "initial is for token-bucket only"},
		{p.Refill != Smooth, a == TokenBucket, "refill is for token-bucket only"},
		{p.Warmup != 0, a == TokenBucket, "warmup is for token-bucket only"},
		{p.Segments != 0, a == SlidingWindow, "segments are for sliding-window only"},
		{p.Align != "", a == FixedWindow, "align is for fixed-window only"},
		{p.TZ != "", p.Align != "", "tz is for align only"},
		{p.Lease != 0, a == Concurrency, "lease is for concurrency only"},
		{p.Window != 0, a != Concurrency, "concurrency has no window"},
		{p.Window != 0, p.Align == "", "align says how long the window is, so there is no other window"},
		{p.Burst != 0, p.Warmup == 0, "a bucket with a warmup has no burst"},
		{p.Initial != 0, p.Warmup == 0, "a bucket with a warmup begins cold, without an initial number of tokens"},
		{p.Refill != Smooth, p.Warmup == 0, "a bucket with a warmup refills smoothly"},
		{p.Dynamic, p.Warmup == 0, "a bucket with a warmup needs one limit for all calls"},
		{p.Dynamic, a != LeakyBucket, "a leaky-bucket needs one limit for all calls"},
		{p.Count, a != Concurrency, "count does not change concurrency, whose places are given back in any case"},
		{p.Count, p.Warmup == 0, "what a bucket with a warmup was charged cannot be given back, so it has no count"},
		{p.Count, p.Refill == Smooth, "what a bucket that refills by the interval was charged cannot be given back, so it has no count"},
		{p.CostAfter, a != LeakyBucket && p.Warmup == 0, "a leaky-bucket, or a bucket with a warmup, cannot be charged after the call, which others wait for already"},
		{p.Count, !custom, "a custom algorithm does not know how to give back what was charged, so it has no count"},
		{p.CostAfter, !custom, "a custom algorithm refuses what is above its limit, so it has no cost after the call"},
		{p.CostAfter, a != Concurrency && a != TimeQuota, "a cost after the call is not for concurrency and time-quota, which count what is running"},
		{p.OnEmpty != DenyEmpty, !p.Global, "all calls share one counter, so no key can be empty"},
	} {
		if o.set && !o.ok {
			return o.problem
		}
	}
	return ""
}

// wrongNumber returns what is wrong with the numbers other than the limit.
func (p *Policy) wrongNumber() string {
	switch {
	case p.Burst < 0 || p.Burst > MaxLimit:
		return fmt.Sprintf("burst %d is not in 1..%d", p.Burst, int64(MaxLimit))
	case p.Initial < Empty || p.Initial > MaxLimit:
		return fmt.Sprintf("initial %d is not in 1..%d, and not Empty", p.Initial, int64(MaxLimit))
	case p.Burst > 0 && p.Initial > p.Burst:
		return fmt.Sprintf("initial %d is above the burst of %d", p.Initial, p.Burst)
	case p.Segments != 0 && (p.Segments < minSegments || p.Segments > maxSegments):
		return fmt.Sprintf("segments %d are not in %d..%d", p.Segments, minSegments, maxSegments)
	case len(p.Lock) > maxLocks:
		return fmt.Sprintf("%d locks are more than %d", len(p.Lock), maxLocks)
	case p.MaxWait < 0:
		return fmt.Sprintf("the longest wait %v is negative", p.MaxWait)
	case p.MaxQueue < 0:
		return fmt.Sprintf("the longest queue %d is negative", p.MaxQueue)
	case p.Status != 0 && (p.Status < 400 || p.Status > 599):
		return fmt.Sprintf("status %d is not in 400..599", p.Status)
	}
	for _, d := range slices.Concat([]span{{"warmup", p.Warmup}, {"lease", p.Lease}}, locks(p.Lock)) {
		if problem := d.wrong(); problem != "" && d.length != 0 {
			return problem
		}
	}
	for i, d := range p.Lock {
		switch {
		case d <= 0:
			return fmt.Sprintf("lock %v is not positive", d)
		case i > 0 && d <= p.Lock[i-1]:
			return fmt.Sprintf("lock %v is not longer than the %v before it", d, p.Lock[i-1])
		}
	}
	return ""
}

// span is a length of time by the name of its option.
type span struct {
	name   string
	length time.Duration
}

func locks(times []time.Duration) []span {
	spans := make([]span, len(times))
	for i, d := range times {
		spans[i] = span{"lock", d}
	}
	return spans
}

func (s span) wrong() string {
	switch {
	case s.length <= 0:
		return fmt.Sprintf("%s %v is not positive", s.name, s.length)
	case s.length > MaxWindow:
		return fmt.Sprintf("%s %v is longer than %v", s.name, s.length, time.Duration(MaxWindow))
	case s.length%time.Microsecond != 0:
		return fmt.Sprintf("%s %v is not a whole number of microseconds", s.name, s.length)
	}
	return ""
}

// wrongLimit returns what is wrong with the limit and the window.
func (p *Policy) wrongLimit() string {
	if p.Dynamic && p.Limit != 0 {
		return fmt.Sprintf("each call brings its limit, so limit %d would be ignored", p.Limit)
	}
	if p.Limit == Unlimited || p.Limit == Blocked {
		return ""
	}
	a := p.algorithm()
	if !p.Dynamic {
		switch greatest := greatestLimit(a); {
		case p.Limit < 1:
			return fmt.Sprintf("limit %d is less than 1; use Unlimited or Blocked to switch a limit off or a method shut", p.Limit)
		case a == SlidingLog && p.Limit > greatest:
			return fmt.Sprintf("a sliding log keeps every call, so its limit is at most %d; use sliding-window, token-bucket or fixed-window for %d", greatest, p.Limit)
		case p.Limit > greatest:
			return fmt.Sprintf("limit %d is above %d", p.Limit, greatest)
		case p.Initial > p.Capacity():
			return fmt.Sprintf("initial %d is above the capacity of %d", p.Initial, p.Capacity())
		}
	}
	if a == Concurrency || p.Align != "" {
		return ""
	}
	if problem := (span{"window", p.Window}).wrong(); problem != "" {
		return problem
	}
	if p.Window < time.Duration(p.segments())*time.Microsecond {
		return fmt.Sprintf("window %v is too short for %d segments", p.Window, p.segments())
	}
	if (a == TokenBucket || a == LeakyBucket) && !p.Dynamic {
		return p.wrongBucket()
	}
	return ""
}

// segments is the number of parts of the window.
func (p *Policy) segments() int {
	switch {
	case p.algorithm() != SlidingWindow:
		return 1
	case p.Segments == 0:
		return DefaultSegments
	}
	return p.Segments
}

// greatestLimit is the largest limit that an algorithm takes.
func greatestLimit(a Algorithm) int64 {
	switch a {
	case SlidingLog:
		return MaxLogLimit
	case TimeQuota:
		return int64(MaxWindow / time.Microsecond)
	}
	return MaxLimit
}

// wrongBucket returns what is wrong with the numbers of a bucket together: burst *
// limit and burst * window / limit bound all of its arithmetic.
func (p *Policy) wrongBucket() string {
	burst := p.Capacity()
	if hi, lo := bits.Mul64(uint64(burst), uint64(p.Limit)); hi != 0 || lo >= 1<<53 {
		return fmt.Sprintf("burst × limit = %d × %d is too large to be exact (2^53)", burst, p.Limit)
	}
	tooLong := fmt.Sprintf("the bucket takes longer than %v to fill", time.Duration(MaxWindow))
	hi, lo := bits.Mul64(uint64(burst), uint64(p.Window/time.Microsecond))
	if hi >= uint64(p.Limit) {
		return tooLong
	}
	fill, _ := bits.Div64(hi, lo, uint64(p.Limit))
	if p.Refill == Interval {
		fill = 0
		if (burst+p.Limit-1)/p.Limit > int64(MaxWindow/p.Window) {
			return tooLong
		}
	}
	if fill > uint64(MaxWindow/time.Microsecond) {
		return tooLong
	}
	return ""
}
