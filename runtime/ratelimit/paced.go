package ratelimit

import (
	"math"
	"math/bits"
	"slices"
)

// rate is the pace of a bucket: a unit takes unitNum/den = unitQ + unitR/den µs,
// unitNum and den being window and limit reduced.
type rate struct {
	unitNum, den int64
	unitQ, unitR int64
}

func newRate(window, limit int64) rate {
	g := gcd(window, limit)
	r := rate{unitNum: window / g, den: limit / g}
	r.unitQ, r.unitR = r.unitNum/r.den, r.unitNum%r.den
	return r
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// span returns units * unitNum / den as a whole part and a numerator over den.
// Nothing overflows: Policy.Validate bounds capacity * limit and the time that a
// full refill takes.
func (r *rate) span(units int64) (whole, part int64) {
	if units == 1 {
		return r.unitQ, r.unitR
	}
	part = units * r.unitR
	return units*r.unitQ + part/r.den, part % r.den
}

// count returns how many units fit into whole + part/den µs, part being above -den.
func (r *rate) count(whole, part int64) int64 {
	if part < 0 {
		whole, part = whole-1, part+r.den
	}
	if whole < 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(whole), uint64(r.den))
	lo, carry := bits.Add64(lo, uint64(part), 0)
	n, _ := bits.Div64(hi+carry, lo, uint64(r.unitNum))
	return int64(n)
}

// leaky is a LeakyBucket. Its units leave at even distances from r.base on, when
// the queue was last empty: unit n, counted from 0, leaves n units of time later
// and is served until the next one's time. r.used units were admitted since.
//
// A unit that is given back leaves a hole: it takes no room any more, but those
// behind it keep their times, unless there are none.
type leaky struct {
	rate
}

// time returns when unit n leaves, rounded up: never, if that is thousands of years away,
// as an update to a slow pace can make it.
func (l *leaky) time(r *record, n int64) int64 {
	if l.unitQ > 0 && n >= never/2/(l.unitQ+1) {
		return never
	}
	q, part := l.span(n)
	if part > 0 {
		q++
	}
	return r.base + q
}

// idle reports whether nothing is queued or served at t.
func (l *leaky) idle(r *record, t int64) bool { return r.used == 0 || t >= l.time(r, r.used) }

// serving returns the number of the unit that is being served at t, of a queue that
// is not idle.
func (l *leaky) serving(r *record, t int64) int64 { return l.count(t-r.base, 0) }

// inside returns how many units are queued or served at t.
func (l *leaky) inside(r *record, t int64) int64 {
	if l.idle(r, t) {
		return 0
	}
	first := l.serving(r, t)
	n := r.used - first
	for _, h := range r.holes {
		n -= max(0, h.to-max(h.from, first))
	}
	return n
}

// served returns for how long at the pace of to the unit would have been served that is
// served at t, of a queue that is not idle: for as much of its time as it was.
func (l *leaky) served(r *record, t int64, to *leaky) int64 {
	first := l.serving(r, t)
	for _, h := range r.holes {
		if h.from <= first && first < h.to {
			return 0 // it was given back, and the next one begins
		}
	}
	hi, lo := bits.Mul64(uint64(t-r.base), uint64(l.den))
	done := bits.Rem64(hi, lo, uint64(l.unitNum)) // of unitNum
	hi, lo = bits.Mul64(done, uint64(to.unitNum))
	parts, _ := bits.Div64(hi, lo, uint64(l.unitNum))
	return int64(parts) / to.den
}

func (l *leaky) admits(r *record, a ask) bool { return l.inside(r, a.t)+a.cost <= a.capacity }

// delay returns how long a call waits for its turn that is admitted now.
func (l *leaky) delay(r *record, a ask) int64 {
	if a.cost == 0 || l.idle(r, a.t) {
		return 0
	}
	return l.time(r, r.used) - a.t
}

func (l *leaky) charge(r *record, a ask) {
	if l.idle(r, a.t) {
		r.base, r.used = a.t, 0
		r.holes, r.holds = r.holes[:0], r.holds[:0]
	} else {
		l.advance(r, l.serving(r, a.t))
	}
	if a.id != 0 {
		r.holds = append(r.holds, hold{id: a.id, at: r.used, units: a.cost})
	}
	r.used += a.cost
	r.last = a.t
}

// advance forgets what left before the unit that is being served, and keeps the
// numbers of the units small: den units take a whole number of microseconds.
func (l *leaky) advance(r *record, serving int64) {
	r.dropHolds(func(h *hold) bool { return h.at+h.units <= serving })
	n := 0
	for n < len(r.holes) && r.holes[n].to <= serving {
		n++
	}
	r.holes = slices.Delete(r.holes, 0, n)
	turns := serving / l.den
	if turns == 0 {
		return
	}
	by := turns * l.den
	r.base += turns * l.unitNum
	r.used -= by
	for i := range r.holds {
		r.holds[i].at -= by
	}
	for i := range r.holes {
		r.holes[i].from -= by
		r.holes[i].to -= by
	}
}

func (l *leaky) remaining(r *record, a ask) int64 { return max(0, a.capacity-l.inside(r, a.t)) }

func (l *leaky) wait(r *record, a ask) int64 {
	over := l.inside(r, a.t) + a.cost - a.capacity
	n := l.serving(r, a.t) // units before it have left
	for _, h := range r.holes {
		queued := max(0, h.from-n)
		if queued >= over {
			break
		}
		over -= queued
		n = max(n, h.to)
	}
	return l.time(r, n+over) - a.t
}

func (l *leaky) clearAt(r *record) int64 {
	if r.used == 0 {
		return math.MinInt64
	}
	return l.time(r, r.used)
}

// giveBack makes room where units were queued or served. It cannot know which have
// left: that makes no difference, since they take no room any more.
func (l *leaky) giveBack(r *record, i int) {
	h := r.holds[i]
	r.holds = slices.Delete(r.holds, i, i+1)
	hole := interval{h.at, h.at + h.units}
	j, _ := slices.BinarySearchFunc(r.holes, hole, func(a, b interval) int { return int(a.from - b.from) })
	r.holes = slices.Insert(r.holes, j, hole)
}

// leave gives back the place of a call that has not left the queue, at time t.
func (l *leaky) leave(r *record, i int, t int64) {
	l.giveBack(r, i)
	if l.idle(r, t) {
		return
	}
	first := l.serving(r, t) + 1
	for n := len(r.holes); n > 0 && r.holes[n-1].to == r.used; n = len(r.holes) {
		r.used = max(first, r.holes[n-1].from)
		if r.used > r.holes[n-1].from {
			r.holes[n-1].to = r.used
			return
		}
		r.holes = r.holes[:n-1]
	}
}

// coldFactor is how much slower a cold bucket is than a warm one.
const coldFactor = 3

// warming is a TokenBucket with a warmup, as Guava's SmoothWarmingUp. The next call
// is admitted at r.base + r.part/den, whatever it costs; its cost is paid by the one
// after it. r.used + r.frac/den is how cold the bucket is: the time that it was idle
// for, up to warmup. A unit takes its time off that. While more than half of
// warmup is left, it is slower, in proportion, by up to coldFactor.
//
// The time that a cold call takes longer is rounded up to whole microseconds; all
// else is exact.
type warming struct {
	rate
	warmup int64
}

// free reports whether the next call is admitted at t.
func (w *warming) free(r *record, t int64) bool {
	return t > r.base || t == r.base && r.part == 0
}

// cold returns how cold the bucket is at t, at which it is free.
func (w *warming) cold(r *record, t int64) (whole, part int64) {
	if r.base == longAgo {
		return w.warmup, 0
	}
	whole, part = r.used+t-r.base, r.frac-r.part
	if part < 0 {
		whole, part = whole-1, part+w.den
	}
	if whole >= w.warmup {
		return w.warmup, 0
	}
	return whole, part
}

func (w *warming) admits(r *record, a ask) bool { return a.cost == 0 || w.free(r, a.t) }

func (w *warming) charge(r *record, a ask) {
	from, fromPart := w.cold(r, a.t)
	q, part := w.span(a.cost)
	to, toPart := from-q, fromPart-part
	if toPart < 0 {
		to, toPart = to-1, toPart+w.den
	}
	if to < 0 {
		to, toPart = 0, 0
	}
	r.base, r.part = a.t+q+w.surcharge(roundedUp(from, fromPart), roundedUp(to, toPart)), part
	r.used, r.frac, r.last = to, toPart, a.t
}

func roundedUp(whole, part int64) int64 {
	if part > 0 {
		return whole + 1
	}
	return whole
}

// surcharge returns the time that it takes longer to use up coldness from one value
// to another: the integral of (coldFactor-1) * (2x - warmup) / warmup.
func (w *warming) surcharge(from, to int64) int64 {
	// In halves of a microsecond above warmup / 2.
	f, t := max(0, 2*from-w.warmup), max(0, 2*to-w.warmup)
	hi, lo := bits.Mul64(uint64(f-t), uint64(f+t)*(coldFactor-1))
	n, rest := bits.Div64(hi, lo, uint64(4*w.warmup))
	if rest > 0 {
		n++
	}
	return int64(n)
}

func (w *warming) remaining(r *record, a ask) int64 {
	if !w.free(r, a.t) {
		return 0
	}
	return a.capacity
}

func (w *warming) wait(r *record, a ask) int64 { return roundedUp(r.base, r.part) - a.t }

func (w *warming) clearAt(r *record) int64 {
	at := r.base + w.warmup - r.used
	if r.part > r.frac {
		at++
	}
	return at
}

func (w *warming) giveBack(r *record, i int) { r.holds = slices.Delete(r.holds, i, i+1) }
