package ratelimit

import (
	"math"
	"slices"
)

// slidingLogRule is a SlidingLog on records.
type slidingLogRule struct{ window int64 }

func (l *slidingLogRule) used(r *record, t int64) int64 {
	return r.log.live(t - l.window - r.base)
}

func (l *slidingLogRule) admits(r *record, a ask) bool {
	return l.used(r, a.t)+a.cost <= a.capacity
}

func (l *slidingLogRule) charge(r *record, a ask) {
	r.log.drop(a.t - l.window - r.base)
	if r.log.n == 0 {
		r.base = a.t
	}
	r.log.pushAny(a.t-r.base, a.cost)
	r.dropHolds(func(h *hold) bool { return h.at <= a.t-l.window })
	if a.id != 0 {
		r.holds = append(r.holds, hold{id: a.id, at: a.t, units: a.cost})
	}
	r.last = a.t
}

func (l *slidingLogRule) remaining(r *record, a ask) int64 {
	return max(0, a.capacity-l.used(r, a.t))
}

func (l *slidingLogRule) wait(r *record, a ask) int64 {
	expired := a.t - l.window - r.base
	return r.log.freed(expired, r.log.live(expired)+a.cost-a.capacity) - expired
}

func (l *slidingLogRule) clearAt(r *record) int64 {
	if r.log.n == 0 {
		return math.MinInt64
	}
	return r.base + r.log.at(int(r.log.n)-1).time() + l.window
}

func (l *slidingLogRule) giveBack(r *record, i int) {
	h := r.holds[i]
	r.holds = slices.Delete(r.holds, i, i+1)
	r.log.take(h.at-r.base, h.units)
}

// fixedWindowRule is a FixedWindow on records, also one on the calendar. Windows of
// the calendar are of the clock, not of the record's time: from r.base to r.part.
type fixedWindowRule struct {
	window   int64
	calendar *calendar
}

// holds reports whether a's time is in the window that r counts. A window of the
// calendar that lies ahead was left behind by a clock that was set back: what r
// counts then counts now.
func (f *fixedWindowRule) holds(r *record, a ask) bool {
	if f.calendar != nil {
		start, _ := f.calendar.window(a.t - a.off)
		return r.base >= start
	}
	return a.t-r.base < f.window
}

func (f *fixedWindowRule) used(r *record, a ask) int64 {
	if !f.holds(r, a) {
		return 0
	}
	return r.used
}

func (f *fixedWindowRule) admits(r *record, a ask) bool { return f.used(r, a)+a.cost <= a.capacity }

func (f *fixedWindowRule) charge(r *record, a ask) {
	if !f.holds(r, a) {
		r.base, r.used, r.last, r.holds = a.t, 0, a.t, r.holds[:0]
	}
	if f.calendar != nil {
		f.move(r, a.t-a.off)
		r.last = a.t
	}
	r.used = min(r.used+a.cost, never)
	if a.id != 0 {
		r.holds = append(r.holds, hold{id: a.id, at: r.base, units: a.cost})
	}
}

// move puts what r counts into the window of the calendar that now is in.
func (f *fixedWindowRule) move(r *record, now int64) {
	r.base, r.part = f.calendar.window(now)
	for i := range r.holds {
		r.holds[i].at = r.base
	}
}

func (f *fixedWindowRule) remaining(r *record, a ask) int64 { return max(0, a.capacity-f.used(r, a)) }

func (f *fixedWindowRule) wait(r *record, a ask) int64 {
	if f.calendar != nil {
		now := a.t - a.off
		_, end := f.calendar.window(now)
		return end - now
	}
	return r.base + f.window - a.t
}

func (f *fixedWindowRule) clearAt(r *record) int64 {
	switch {
	case r.used == 0:
		return math.MinInt64
	case f.calendar != nil:
		return r.part + r.off
	}
	return r.base + f.window
}

func (f *fixedWindowRule) giveBack(r *record, i int) {
	h := r.holds[i]
	r.holds = slices.Delete(r.holds, i, i+1)
	if h.at != r.base {
		return
	}
	if r.used -= h.units; r.used == 0 {
		r.base = longAgo
	}
}

// slidingWindowRule is a SlidingWindow. Parts are numbered from base, where the
// first of them begins; r.part is the number of the newest that was charged, and
// r.parts holds the units of it and of those before it, by number modulo its length.
type slidingWindowRule struct {
	length int64 // of a part
	count  int64 // of parts that count
}

// eachPart calls do with the parts that count at t, oldest first, until it returns
// false. Their number is that of the part.
func (s *slidingWindowRule) eachPart(r *record, t int64, do func(part, units int64) bool) {
	if len(r.parts) == 0 {
		return
	}
	newest := (t - r.base) / s.length
	for p := max(0, newest-s.count+1, r.part-s.count+1); p <= min(newest, r.part); p++ {
		if u := r.parts[p%s.count]; u > 0 && !do(p, int64(u)) {
			return
		}
	}
}

func (s *slidingWindowRule) used(r *record, t int64) (units int64) {
	s.eachPart(r, t, func(_, u int64) bool {
		units += u
		return true
	})
	return units
}

func (s *slidingWindowRule) admits(r *record, a ask) bool {
	return s.used(r, a.t)+a.cost <= a.capacity
}

func (s *slidingWindowRule) charge(r *record, a ask) {
	if s.used(r, a.t) == 0 {
		if int64(cap(r.parts)) < s.count {
			r.parts = make([]uint32, s.count)
		}
		r.parts = r.parts[:s.count]
		clear(r.parts)
		r.base, r.part, r.holds = a.t, 0, r.holds[:0]
	}
	part := (a.t - r.base) / s.length
	for p := r.part + 1; p <= part; p++ { // at most count, or nothing would be used
		r.parts[p%s.count] = 0
	}
	r.part, r.last = part, a.t
	slot := &r.parts[part%s.count]
	*slot = uint32(min(int64(*slot)+a.cost, math.MaxUint32))
	r.dropHolds(func(h *hold) bool { return h.at <= part-s.count })
	if a.id != 0 {
		r.holds = append(r.holds, hold{id: a.id, at: part, units: a.cost})
	}
}

func (s *slidingWindowRule) remaining(r *record, a ask) int64 {
	return max(0, a.capacity-s.used(r, a.t))
}

func (s *slidingWindowRule) wait(r *record, a ask) int64 {
	over := s.used(r, a.t) + a.cost - a.capacity
	var at int64
	s.eachPart(r, a.t, func(part, u int64) bool {
		over -= u
		at = s.end(r, part)
		return over > 0
	})
	return at - a.t
}

// end returns the time at which a part no longer counts.
func (s *slidingWindowRule) end(r *record, part int64) int64 {
	return r.base + (part+s.count)*s.length
}

func (s *slidingWindowRule) clearAt(r *record) int64 {
	if len(r.parts) == 0 {
		return math.MinInt64
	}
	for p := r.part; p >= max(0, r.part-s.count+1); p-- {
		if r.parts[p%s.count] > 0 {
			return s.end(r, p)
		}
	}
	return math.MinInt64
}

func (s *slidingWindowRule) giveBack(r *record, i int) {
	h := r.holds[i]
	r.holds = slices.Delete(r.holds, i, i+1)
	if h.at > r.part-s.count {
		r.parts[h.at%s.count] -= uint32(h.units)
	}
}
