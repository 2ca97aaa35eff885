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

// length is the usual length of a window; for months, the greatest.
func (u Align) length() time.Duration {
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
	t := time.UnixMicro(µs).In(c.zone)
	switch c.unit {
	case AlignSecond, AlignMinute, AlignHour:
		return c.findShort(µs, t)
	}
	var from, to time.Time
	for i := 0; ; i++ {
		// Where the zone's clocks are set back over midnight, the next unit has begun
		// once already, and stays begun.
		from, to = c.begin(t, i), c.begin(t, i+1)
		if t.Before(to) {
			return interval{from.UnixMicro(), to.UnixMicro()}
		}
	}
}

// findShort finds a window of a unit below a day: by the distance from the last
// whole unit of the zone's clock, but within one offset of the zone.
func (c *calendar) findShort(µs int64, t time.Time) interval {
	length := c.unit.length().Microseconds()
	_, offset := t.Zone()
	into := (µs + int64(offset)*1e6) % length
	if into < 0 {
		into += length
	}
	w := interval{µs - into, µs - into + length}
	from, to := t.ZoneBounds()
	if !from.IsZero() {
		w.from = max(w.from, from.UnixMicro())
	}
	if !to.IsZero() {
		w.to = min(w.to, to.UnixMicro())
	}
	return w
}

// begin returns the first instant of the n-th unit after the one that t is in by
// the zone's calendar.
func (c *calendar) begin(t time.Time, n int) time.Time {
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
	shown := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	const most = 26 * time.Hour // no clock is further from UTC
	for at := shown.Add(-most).In(c.zone); ; {
		from, to := at.ZoneBounds()
		_, offset := at.Zone()
		first := shown.Add(-time.Duration(offset) * time.Second).In(c.zone)
		if first.Before(from) {
			first = from
		}
		if to.IsZero() || first.Before(to) {
			return first
		}
		at = to
	}
}
