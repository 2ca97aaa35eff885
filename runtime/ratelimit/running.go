package ratelimit

import (
	"math"
	"slices"
)

// leases is Concurrency: each hold is a place, taken until the end of its lease.
// r.used counts the units of all holds, also of those that ended since the latest
// charge.
type leases struct{ length int64 }

func (l *leases) used(r *record, t int64) int64 {
	used := r.used
	for i := range r.holds {
		if r.holds[i].at > t {
			break
		}
		used -= r.holds[i].units
	}
	return used
}

func (l *leases) admits(r *record, a ask) bool { return l.used(r, a.t)+a.cost <= a.capacity }

func (l *leases) charge(r *record, a ask) {
	r.used = l.used(r, a.t) + a.cost
	r.dropHolds(func(h *hold) bool { return h.at <= a.t })
	// The order is that in which they end, which is not that in which they began where the
	// lease has become shorter.
	at := a.t + l.length
	i := len(r.holds)
	for i > 0 && r.holds[i-1].at > at {
		i--
	}
	r.holds = slices.Insert(r.holds, i, hold{id: a.id, at: at, units: a.cost})
	r.base, r.last = a.t, a.t
}

func (l *leases) remaining(r *record, a ask) int64 { return max(0, a.capacity-l.used(r, a.t)) }

func (l *leases) wait(r *record, a ask) int64 {
	over := l.used(r, a.t) + a.cost - a.capacity
	for i := range r.holds {
		if h := &r.holds[i]; h.at > a.t {
			if over -= h.units; over <= 0 {
				return h.at - a.t
			}
		}
	}
	return 0
}

func (l *leases) clearAt(r *record) int64 {
	if n := len(r.holds); n > 0 {
		return r.holds[n-1].at
	}
	return math.MinInt64
}

func (l *leases) giveBack(r *record, i int) {
	r.used -= r.holds[i].units
	r.holds = slices.Delete(r.holds, i, i+1)
}

// quota is TimeQuota: r.used is the time that was taken by the calls that began in
// the window that begins at r.base, and have returned. Each hold is a call that has
// not, with the begin of its window.
type quota struct{ window int64 }

func (q *quota) used(r *record, t int64) int64 {
	if t-r.base >= q.window {
		return 0
	}
	return r.used
}

func (q *quota) admits(r *record, a ask) bool { return a.cost == 0 || q.used(r, a.t) < a.limit }

func (q *quota) charge(r *record, a ask) {
	if a.t-r.base >= q.window {
		r.base, r.used, r.last, r.holds = a.t, 0, a.t, r.holds[:0]
	}
	r.holds = append(r.holds, hold{id: a.id, at: r.base})
}

func (q *quota) remaining(r *record, a ask) int64 { return max(0, a.limit-q.used(r, a.t)) }

func (q *quota) wait(r *record, a ask) int64 { return r.base + q.window - a.t }

func (q *quota) clearAt(r *record) int64 { return r.base + q.window }

func (q *quota) giveBack(r *record, i int) { r.holds = slices.Delete(r.holds, i, i+1) }

// finish charges what the call of hold i took.
func (q *quota) finish(r *record, i int, took int64) {
	if r.holds[i].at == r.base {
		r.used = min(r.used+took, never)
	}
	q.giveBack(r, i)
}
