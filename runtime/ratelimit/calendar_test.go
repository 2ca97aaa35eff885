package ratelimit

import (
	"testing"
	"time"
	_ "time/tzdata"

	"pgregory.net/rapid"
)

func newTestCalendar(t interface{ Fatal(...any) }, unit Align, zone string) *calendar {
	c, err := newCalendar(&Policy{ID: "p", Align: unit, TZ: zone})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWindowsLieOnTheCalendar(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		unit     Align
		zone     string
		at       string // UTC, as the two below
		from, to string
	}{
		{"a second", AlignSecond, "", "2026-03-29T12:34:56Z", "2026-03-29T12:34:56Z", "2026-03-29T12:34:57Z"},
		{"a minute", AlignMinute, "", "2026-03-29T12:34:56Z", "2026-03-29T12:34:00Z", "2026-03-29T12:35:00Z"},
		{"an hour of a zone that is half an hour off", AlignHour, "Asia/Kolkata", "2026-03-29T12:34:56Z", "2026-03-29T12:30:00Z", "2026-03-29T13:30:00Z"},
		{"the first hour of an hour that comes twice", AlignHour, "Europe/Paris", "2026-10-25T00:30:00Z", "2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z"},
		{"an hour cut by half an hour", AlignHour, "Australia/Lord_Howe", "2026-04-04T15:20:00Z", "2026-04-04T15:00:00Z", "2026-04-04T15:30:00Z"},
		{"a day", AlignDay, "", "2026-03-29T23:59:59Z", "2026-03-29T00:00:00Z", "2026-03-30T00:00:00Z"},
		{"a day of 23 hours", AlignDay, "Europe/Paris", "2026-03-29T12:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"},
		{"a day of 25 hours", AlignDay, "Europe/Paris", "2026-10-25T12:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"},
		{"a day without a midnight", AlignDay, "America/Sao_Paulo", "2017-10-15T12:00:00Z", "2017-10-15T03:00:00Z", "2017-10-16T02:00:00Z"},
		{"a day with two midnights", AlignDay, "America/Havana", "2026-11-01T04:30:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"},
		{"the day before one that was skipped", AlignDay, "Pacific/Apia", "2011-12-30T09:00:00Z", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"},
		{"the day after one that was skipped", AlignDay, "Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"},
		{"a day that began, ended for a minute's sake, and began again", AlignDay, "America/St_Johns", "2010-11-07T02:45:00Z", "2010-11-07T02:30:00Z", "2010-11-08T03:30:00Z"},
		{"the last day of a leap year that has only a rule", AlignDay, "America/New_York", "2060-12-31T12:00:00Z", "2060-12-31T05:00:00Z", "2061-01-01T05:00:00Z"},
		{"a week", AlignWeek, "", "2026-03-29T12:00:00Z", "2026-03-23T00:00:00Z", "2026-03-30T00:00:00Z"},
		{"a week from its Monday on", AlignWeek, "Europe/Paris", "2026-03-30T12:00:00Z", "2026-03-29T22:00:00Z", "2026-04-05T22:00:00Z"},
		{"a month", AlignMonth, "Europe/Paris", "2026-03-15T12:00:00Z", "2026-02-28T23:00:00Z", "2026-03-31T22:00:00Z"},
		{"December", AlignMonth, "", "2026-12-31T23:59:59Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"before 1970", AlignHour, "", "1969-12-31T23:30:00Z", "1969-12-31T23:00:00Z", "1970-01-01T00:00:00Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			at, err := time.Parse(time.RFC3339, c.at)
			if err != nil {
				t.Fatal(err)
			}
			cal := newTestCalendar(t, c.unit, c.zone)
			for range 2 { // the second time, from what was found the first time
				from, to := cal.window(at.UnixMicro())
				got := [2]string{time.UnixMicro(from).UTC().Format(time.RFC3339), time.UnixMicro(to).UTC().Format(time.RFC3339)}
				if got != [2]string{c.from, c.to} {
					t.Errorf("%s is in %v, want [%s %s]", c.at, got, c.from, c.to)
				}
			}
		})
	}
}

// Windows cover all times and do not overlap, in any zone.
func TestWindowsOfTheCalendarPartitionTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom([]string{"", "Europe/Paris", "America/New_York", "America/St_Johns", "America/Sao_Paulo", "Africa/Casablanca",
			"Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia", "Pacific/Kiritimati", "Asia/Gaza", "Antarctica/Troll"}).Draw(t, "zone")
		unit := rapid.SampledFrom([]Align{AlignSecond, AlignMinute, AlignHour, AlignDay, AlignWeek, AlignMonth}).Draw(t, "unit")
		c := newTestCalendar(t, unit, zone)
		at := rapid.Int64Range(-1<<51, 1<<52).Draw(t, "at")
		for range 40 {
			w := c.find(at)
			if w.from > at || w.to <= at {
				t.Fatalf("%s of %s: %d is not in %v", unit, zone, at, w)
			}
			if length := w.to - w.from; length > (unit.Length() + 30*time.Hour).Microseconds() {
				t.Fatalf("%s of %s: %v is longer than any", unit, zone, w)
			}
			for _, t2 := range []int64{w.from, w.from + (w.to-w.from)/2, w.to - 1} {
				if other := c.find(t2); other != w {
					t.Fatalf("%s of %s: %d is in %v, but %d in %v", unit, zone, at, w, t2, other)
				}
			}
			if next := c.find(w.to); next.from != w.to {
				t.Fatalf("%s of %s: after %v comes %v", unit, zone, w, next)
			}
			at = w.to
		}
	})
}

func TestUnknownZoneIsAnError(t *testing.T) {
	t.Parallel()
	p := Policy{ID: "p", Algorithm: FixedWindow, Limit: 1, Align: AlignDay, TZ: "Europe/Atlantis"}
	if gate, err := New().Gate(&Spec{Policies: []Policy{p}}); gate != nil || err == nil {
		t.Errorf("Gate: %v, %v", gate, err)
	}
}
