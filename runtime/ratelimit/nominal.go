package ratelimit

import "time"

// nominal is how short windows of the calendar can be, one after the other.
type nominal struct {
	align  Align
	length int64 // µs
	// shift is by how much the clocks of the zone are set at most, and cuts tells whether
	// that may be in the midst of a window.
	shift int64
	cuts  bool
}

// rarely is less than the time between two changes of a zone's clocks.
const rarely = int64(14 * 24 * time.Hour / time.Microsecond)

// newNominal returns the windows of a policy with Align. It looks at what the zone's
// clocks show over a century, which has all of the changes that are known.
func newNominal(p *Policy) *nominal {
	n := &nominal{align: p.Align, length: p.Align.Length().Microseconds()}
	c, err := newCalendar(p)
	if err != nil {
		return n // which no policy in force has
	}
	begin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	least := c.offset(begin.UnixMicro())
	most := least
	for t := begin; t.Year() < 2100; t = t.Add(24 * time.Hour) {
		offset := c.offset(t.UnixMicro())
		n.cuts = n.cuts || (offset-least)%n.length != 0
		least, most = min(least, offset), max(most, offset)
	}
	n.shift = most - least
	return n
}

// within returns how many whole windows, one after the other, there can be in t µs, at
// least 0.
func (n *nominal) within(t int64) int64 {
	switch n.align {
	case AlignSecond, AlignMinute, AlignHour:
		windows := t / n.length
		if n.cuts && t > 0 {
			windows += 1 + t/rarely
		}
		return windows
	case AlignMonth:
		return monthsIn((t + n.shift) / AlignDay.Length().Microseconds())
	}
	return (t + n.shift) / n.length
}

// monthsIn returns how many whole months there can be in a number of days.
func monthsIn(days int64) int64 {
	// The first days of the months of 300 years, among them those around 1900, which has
	// no February 29: no years have fewer days.
	var firsts []int64
	for m := range 300 * 12 {
		firsts = append(firsts, time.Date(1800, time.Month(1+m), 1, 0, 0, 0, 0, time.UTC).Unix()/(24*60*60))
	}
	least := func(months int) int64 {
		least := firsts[months] - firsts[0]
		for i := range len(firsts) - months {
			least = min(least, firsts[i+months]-firsts[i])
		}
		return least
	}
	months := int(days / 31)
	for months+1 < len(firsts) && least(months+1) <= days {
		months++
	}
	return int64(months)
}
