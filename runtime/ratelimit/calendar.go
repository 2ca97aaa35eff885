package ratelimit

import (
	"fmt"
	"sync/atomic"
	"time"
)

// calendar cuts time into the windows of Policy.Align.
type calendar struct {
	unit Align
	zone *time.Location
	// latest is the window that was asked for last: nearly all calls are in it.
	latest atomic.Pointer[interval]
}

// newCalendar returns the calendar of p, or nil if p has none.
func newCalendar(p *Policy) (*calendar, error) {
	if p.Align == "" {
		return nil, nil
	}
	zone, err := time.LoadLocation(p.TZ)
	if err != nil {
		return nil, fmt.Errorf("ratelimit: policy %q: tz: %w", p.ID, err)
	}
	return &calendar{unit: p.Align, zone: zone}, nil
}

// Calendar cuts time into the windows of Policy.Align, for a Store that supports it.
// It is safe for concurrent use.
type Calendar struct{ calendar *calendar }

// NewCalendar returns the calendar of p. It is an error if p has no Align, or if there
// is no zone p.TZ.
func NewCalendar(p *Policy) (*Calendar, error) {
	c, err := newCalendar(p)
	switch {
	case err != nil:
		return nil, err
	case c == nil:
		return nil, fmt.Errorf("ratelimit: policy %q has no align", p.ID)
	}
	return &Calendar{c}, nil
}

// Window returns the begin and the end of the window that t is in, in UTC and in whole
// microseconds.
func (c *Calendar) Window(t time.Time) (begin, end time.Time) {
	w := c.calendar.find(t.UnixMicro())
	return time.UnixMicro(w.from).UTC(), time.UnixMicro(w.to).UTC()
}

// Length is the usual length of a window; for months, the greatest.
func (u Align) Length() time.Duration {
	const day = 24 * time.Hour
	switch u {
	case AlignSecond:
		return time.Second
	case AlignMinute:
		return time.Minute
	case AlignHour:
		return time.Hour
	case AlignDay:
		return day
	case AlignWeek:
		return 7 * day
	}
	return 31 * day
}

// window returns the begin and the end of the window that t is in; microseconds
// after the Unix epoch.
func (c *calendar) window(t int64) (start, end int64) {
	if w := c.latest.Load(); w != nil && w.from <= t && t < w.to {
		return w.from, w.to
	}
	w := c.find(t)
	c.latest.Store(&w)
	return w.from, w.to
}

func (c *calendar) find(µs int64) interval {
	switch c.unit {
	case AlignSecond, AlignMinute, AlignHour:
		return c.findShort(µs)
	}
	t := time.UnixMicro(µs).In(c.zone)
	for i := 0; ; i++ {
		// Where the zone's clocks are set back over midnight, the next unit has begun
		// once already, and stays begun.
		w := interval{c.begin(t, i), c.begin(t, i+1)}
		if µs < w.to {
			return w
		}
	}
}

// findShort finds a window of a unit below a day: by the distance from the last
// whole unit of the zone's clock, but within one offset of the zone.
func (c *calendar) findShort(µs int64) interval {
	length := c.unit.Length().Microseconds()
	offset := c.offset(µs)
	into := (µs + offset) % length
	if into < 0 {
		into += length
	}
	w := interval{µs - into, µs - into + length}
	if c.offset(w.from) != offset {
		w.from = c.change(w.from, µs)
	}
	if c.offset(w.to-1) != offset {
		w.to = c.change(µs, w.to-1)
	}
	return w
}

// offset returns by how much the zone's clock is ahead of UTC at t.
func (c *calendar) offset(t int64) int64 {
	_, seconds := time.UnixMicro(t).In(c.zone).Zone()
	return int64(seconds) * 1e6
}

// change returns when the offset changes, if it does so once: after from, and at to
// the latest. (time.Time.ZoneBounds is not used: of years that a zone's file has
// only a rule for, it takes each end for a change, and that of leap years is a day
// early.)
func (c *calendar) change(from, to int64) int64 {
	offset := c.offset(from)
	for to-from > 1 {
		if mid := from + (to-from)/2; c.offset(mid) == offset {
			from = mid
		} else {
			to = mid
		}
	}
	return to
}

// begin returns the first instant of the n-th unit after the one that t is in by
// the zone's calendar.
func (c *calendar) begin(t time.Time, n int) int64 {
	y, m, d := t.Date()
	switch c.unit {
	case AlignDay:
		d += n
	case AlignWeek:
		sinceMonday := (int(t.Weekday()) + 6) % 7
		d += 7*n - sinceMonday
	default:
		m, d = m+time.Month(n), 1
	}
	// The first instant at which the zone's clock shows this midnight, or a later
	// time where it skips midnight or the whole day.
	shown := time.Date(y, m, d, 0, 0, 0, 0, time.UTC).UnixMicro()
	const most = int64(26 * time.Hour / time.Microsecond) // no clock is further from UTC
	before, after := c.offset(shown-most), c.offset(shown+most)
	first := shown - before
	if before == after {
		return first
	}
	if at := c.change(shown-most, shown+most); first >= at {
		return max(at, shown-after)
	}
	return first
}
