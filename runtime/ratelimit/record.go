package ratelimit

import (
	"math"
	"slices"
	"sort"
	"time"
)

// record is the state of one key under a policy that needs more than an entry
// holds. Which fields say something is up to the policy's algorithm.
//
// Its times are those of the clock plus off, which grows when the clock is set
// back for good: what is recorded stays as it is.
type record struct {
	off  int64
	last int64 // latest time recorded; the record's time never precedes it
	base int64 // begin of what is counted
	used int64 // units
	part int64 // fraction of a unit or of base
	frac int64 // fraction of used, if part is of base
	// limit is that of the latest charge.
	limit int64
	state State // of a CustomAlgorithm

	log   ring
	parts []uint32
	holes []interval
	holds []hold // by increasing id

	locked int64 // time of the latest lock
	unlock int64 // time at which it ends
	locks  int   // locks so far, 0 if none is remembered

	orders *orders // nil for nearly all
}

// hold is a charge that may be given back, or a place that is taken.
type hold struct {
	id    uint64
	at    int64 // what was charged: a stamp, a window, the end of a lease
	units int64
	since level // of a bucket: what it would miss if it had been full then
}

// interval is a range of numbers, from included and to not.
type interval struct{ from, to int64 }

// blank is the record of a key of which nothing is known. It is never changed.
var blank = record{last: longAgo, base: longAgo}

// renew makes r a record of which nothing is known, and keeps its memory.
func (r *record) renew() {
	log, parts, holes, holds := r.log.stamps, r.parts, r.holes, r.holds
	*r = blank
	r.log.stamps, r.parts, r.holes, r.holds = log, parts[:0], holes[:0], holds[:0]
}

// large reports whether r has memory that is not worth keeping for another key.
func (r *record) large() bool {
	return len(r.log.stamps) > keptRingLen || cap(r.parts) > 4*keptRingLen || cap(r.holds) > keptRingLen || cap(r.holes) > keptRingLen
}

// clone returns a copy of r that shares nothing with it.
func (r *record) clone() *record {
	c := *r
	c.log = r.log.clone()
	c.parts, c.holes, c.holds = slices.Clone(r.parts), slices.Clone(r.holes), slices.Clone(r.holds)
	c.orders = r.orders.clone()
	return &c
}

// find returns the index of a hold, or -1.
func (r *record) find(id uint64) int {
	i := sort.Search(len(r.holds), func(i int) bool { return r.holds[i].id >= id })
	if i == len(r.holds) || r.holds[i].id != id {
		return -1
	}
	return i
}

// dropHolds forgets the oldest holds, as long as old says so.
func (r *record) dropHolds(old func(h *hold) bool) {
	n := 0
	for n < len(r.holds) && old(&r.holds[n]) {
		n++
	}
	if n > 0 {
		r.holds = slices.Delete(r.holds, 0, n)
	}
}

// ask is what a record is asked: for cost units at time t, which the record's off is
// added to, of a policy whose limit and capacity are then as given. A charge whose
// id is not 0 can be given back.
type ask struct {
	t, off, cost    int64
	limit, capacity int64
	id              uint64
}

// algorithm is the arithmetic of a policy on records. It holds constants only.
// charge changes a record, and giveBack; nothing else does.
type algorithm interface {
	// admits reports whether the cost is admitted.
	admits(r *record, a ask) bool
	// charge takes the cost, even if it is not admitted.
	charge(r *record, a ask)
	// remaining returns the greatest cost that is admitted.
	remaining(r *record, a ask) int64
	// wait returns how long it takes until the cost, which is not admitted, is.
	wait(r *record, a ask) int64
	// clearAt returns the earliest time at which r decides as one of which nothing
	// is known.
	clearAt(r *record) int64
	// giveBack takes out what was charged under a hold, which is then forgotten.
	giveBack(r *record, i int)
}

// never is a time after all others, which differences can be formed of.
const never = 1 << 61

// settleRecord returns what a decision on r, of whose orders none is due, is made on
// now: r or, if it says nothing any more, blank; the time of the decision; and the off
// that is in force then. See counter.settle.
func (c *counter) settleRecord(r *record, now int64) (view *record, t, off int64) {
	t = now + r.off
	switch {
	case r == &blank || r.orders == nil && t >= c.clears(r):
		return &blank, now, 0
	case t >= r.last:
		return r, t, r.off
	case r.last-t <= c.standstill():
		return r, r.last, r.off
	}
	return r, r.last, r.last - now
}

// clears is clearAt for all that a record may say.
func (c *counter) clears(r *record) int64 {
	if o := r.orders; o != nil {
		later := r.clone()
		c.due(later, never)
		return max(c.clears(later), o.block)
	}
	return c.clearsAside(r)
}

// clearsAside is clears without the orders of r.
func (c *counter) clearsAside(r *record) int64 {
	at := c.algorithm.clearAt(r)
	if r.locks > 0 {
		unlock := r.unlock
		if b, ok := c.algorithm.(*bucket); len(c.locks) > 1 || ok && b.initial != 0 {
			unlock += c.window // or a call that comes when it may would begin a bucket, and be refused
		}
		at = max(at, unlock)
	}
	return at
}

// clearTime is clears by the clock.
func (c *counter) clearTime(r *record) int64 {
	if at := c.clears(r); at > -never {
		return at - r.off
	}
	return math.MinInt64
}

// begin makes r, of which nothing is known, the record of a key that is first seen.
func (c *counter) begin(r *record, a ask) {
	r.renew()
	if b, ok := c.algorithm.(*bucket); ok && b.initial != 0 {
		b.fill(r, a)
	}
}

func (r *record) isLocked(t int64) bool { return t < r.opens() }

// lock refuses the key from t on.
func (c *counter) lock(r *record, t int64) {
	if r.locks > 0 && t >= r.unlock+c.window {
		r.locks = 0
	}
	r.unlock = t + c.locks[min(r.locks, len(c.locks)-1)]
	r.locks = min(r.locks+1, len(c.locks))
	r.locked, r.last = t, max(r.last, t)
}

func (c *counter) admitsRecord(r *record, a ask) bool {
	return !r.isLocked(a.t) && c.fits(r, a)
}

func (c *counter) outcomeRecord(r *record, a ask, allowed bool) Outcome {
	o := Outcome{Allowed: allowed}
	locked := r.isLocked(a.t)
	if !locked {
		o.Remaining = c.left(r, a)
	}
	if !allowed {
		var wait int64
		if locked {
			wait = r.opens() - a.t
		}
		switch {
		case r.isBooked():
			// What fits now may not do so when the key opens: until then a bucket refills by
			// the limits of the calls that come.
			wait = c.earliest(r, a, wait)
		case !c.fits(r, a):
			wait = max(wait, c.earliest(r, a, 0))
		}
		if c.dynamic && r != &blank {
			// It is as new by the limit of the call that was charged.
			if left := c.clears(r) - a.t; left < wait && c.fits(&blank, a) {
				wait = left
			}
		}
		o.RetryAfter = micros(wait)
	}
	if r == &blank {
		return o
	}
	if c.calendar != nil && a.off != r.off {
		r = r.clone() // what was moved, had the call changed anything
		c.moved(r, a.t, a.off)
	}
	o.ResetAfter = micros(max(0, c.clears(r)-a.t))
	return o
}

// giveBack takes out what was charged under hold i of r.
func (c *counter) giveBack(r *record, i int) {
	c.algorithm.giveBack(r, i)
	c.lapse(r)
}

// lapse puts r back to the time of its lock, if nothing else is recorded any more.
func (c *counter) lapse(r *record) {
	if r.locks > 0 && r.orders == nil && c.algorithm.clearAt(r) == math.MinInt64 {
		r.last = r.locked
	}
}

// micros returns n µs, or the longest time that is not Never.
func micros(n int64) time.Duration {
	const most = int64((Never - 1) / time.Microsecond)
	return time.Duration(min(n, most)) * time.Microsecond
}

// moved notes the off that a decision at t was made by.
func (c *counter) moved(r *record, t, off int64) {
	if f, ok := c.algorithm.(*fixedWindowRule); ok && f.calendar != nil && off != r.off {
		f.move(r, t-off)
	}
	r.off = off
}
