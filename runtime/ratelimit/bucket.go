package ratelimit

import (
	"math"
	"math/bits"
	"slices"
)

// level is a number of tokens that a bucket misses: whole + part/window. A token
// is thus divided so that what comes back in a microsecond is exact at any limit.
type level struct{ whole, part int64 }

// minus returns l less a number of tokens, at least 0.
func (l level) minus(tokens int64) level {
	if l.whole < tokens {
		return level{}
	}
	return level{l.whole - tokens, l.part}
}

func (l level) less(m level) bool {
	return l.whole < m.whole || l.whole == m.whole && l.part < m.part
}

func larger(l, m level) level {
	if l.less(m) {
		return m
	}
	return l
}

// mostMissing bounds the debt of a bucket that is charged after calls.
const mostMissing = 1 << 40

// bucket is a TokenBucket on records. It keeps what the bucket missed (r.used,
// r.part) at base, which is the time of the latest charge or, if it refills by the
// interval, the begin of one.
//
// A charge that may be given back has a level of its own in its hold: what the
// bucket would miss if it had been full when that was charged. Without the charge
// the bucket would miss less by its units, but no less than that level.
type bucket struct {
	window   int64
	interval bool
	initial  int64 // as in Policy
}

// missing returns the level at a's time.
func (b *bucket) missing(r *record, a ask) level {
	if b.isNew(r) {
		return level{whole: b.born(a)}
	}
	return b.refilled(level{r.used, r.part}, r.base, a)
}

// isNew reports whether r says nothing of the bucket, also if it says that the key is
// blocked: calls that are refused so do not begin a bucket.
func (b *bucket) isNew(r *record) bool { return r.base == longAgo }

// born returns how many tokens a new bucket misses.
func (b *bucket) born(a ask) int64 {
	if b.initial == 0 {
		return 0
	}
	return a.capacity - min(max(b.initial, 0), a.capacity)
}

// fill makes r a new bucket.
func (b *bucket) fill(r *record, a ask) {
	r.used, r.part, r.base, r.last, r.limit = b.born(a), 0, a.t, a.t, a.limit
}

// refilled returns a level that was l at a time, at a's time.
func (b *bucket) refilled(l level, since int64, a ask) level {
	if l == (level{}) {
		return l
	}
	if b.interval {
		if n := (a.t - since) / b.window; n < (l.whole+a.limit-1)/a.limit {
			return level{whole: l.whole - n*a.limit}
		}
		return level{}
	}
	hi, lo := bits.Mul64(uint64(a.t-since), uint64(a.limit))
	if hi >= uint64(b.window) {
		return level{}
	}
	tokens, part := bits.Div64(hi, lo, uint64(b.window))
	if tokens > uint64(l.whole) {
		return level{}
	}
	l.whole -= int64(tokens)
	if l.part -= int64(part); l.part < 0 {
		l.whole--
		l.part += b.window
	}
	if l.whole < 0 {
		return level{}
	}
	return l
}

// until returns how long it takes for l to fall to a number of tokens, which it is
// above, of a bucket whose base is as given.
func (b *bucket) until(l level, tokens, base int64, a ask) int64 {
	if b.interval {
		n := (l.whole - tokens + a.limit - 1) / a.limit
		if n > never/b.window {
			return never
		}
		return n*b.window - (a.t-base)%b.window
	}
	hi, lo := bits.Mul64(uint64(l.whole-tokens), uint64(b.window))
	lo, carry := bits.Add64(lo, uint64(l.part), 0)
	if hi += carry; hi >= uint64(a.limit) {
		return never
	}
	n, rest := bits.Div64(hi, lo, uint64(a.limit))
	if rest > 0 {
		n++
	}
	return int64(min(n, never))
}

func (b *bucket) admits(r *record, a ask) bool {
	l := b.missing(r, a)
	return !(level{whole: a.capacity - a.cost}).less(l)
}

func (b *bucket) charge(r *record, a ask) {
	l := b.missing(r, a)
	for i := range r.holds {
		h := &r.holds[i]
		h.since = b.refilled(h.since, r.base, a)
	}
	// Where a level is the bucket's, giving back would change nothing.
	r.dropHolds(func(h *hold) bool { return h.since == l })
	switch {
	case !b.interval || l == (level{}):
		r.base = a.t
	default:
		r.base += (a.t - r.base) / b.window * b.window
	}
	l.whole = min(l.whole+a.cost, mostMissing)
	for i := range r.holds {
		h := &r.holds[i]
		h.since.whole = min(h.since.whole+a.cost, mostMissing)
	}
	if a.id != 0 {
		r.holds = append(r.holds, hold{id: a.id, units: a.cost})
	}
	r.used, r.part, r.last, r.limit = l.whole, l.part, a.t, a.limit
}

func (b *bucket) remaining(r *record, a ask) int64 {
	l := b.missing(r, a)
	if l.part > 0 {
		l.whole++
	}
	return max(0, a.capacity-l.whole)
}

func (b *bucket) wait(r *record, a ask) int64 {
	base := r.base
	if b.isNew(r) {
		base = a.t
	}
	return b.until(b.missing(r, a), a.capacity-a.cost, base, a)
}

func (b *bucket) clearAt(r *record) int64 {
	at := r.base
	l := level{r.used, r.part}
	switch {
	case l != (level{}):
		at = min(at+b.until(l, 0, r.base, ask{t: r.base, limit: r.limit}), never)
	case b.initial == 0:
		return math.MinInt64
	}
	if b.initial != 0 {
		at += b.window // full for so long
	}
	return at
}

func (b *bucket) giveBack(r *record, i int) {
	h := r.holds[i]
	for j := range i {
		r.holds[j].since = larger(r.holds[j].since.minus(h.units), h.since)
	}
	l := larger(level{r.used, r.part}.minus(h.units), h.since)
	r.used, r.part = l.whole, l.part
	r.holds = slices.Delete(r.holds, i, i+1)
}
