package ratelimit_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimittest"
)

const us = time.Microsecond

// bounded draws a policy with small numbers, of microseconds.
func bounded(t *rapid.T) ratelimit.Policy {
	p := ratelimit.Policy{
		ID: "p", Global: true,
		Algorithm: rapid.SampledFrom([]ratelimit.Algorithm{
			ratelimit.SlidingLog, ratelimit.SlidingWindow, ratelimit.FixedWindow, ratelimit.TokenBucket, ratelimit.LeakyBucket,
		}).Draw(t, "algorithm"),
		Limit:  rapid.Int64Range(1, 4).Draw(t, "limit"),
		Window: time.Duration(rapid.IntRange(4, 12).Draw(t, "window")) * us,
	}
	switch p.Algorithm {
	case ratelimit.SlidingWindow:
		p.Segments = rapid.IntRange(2, 4).Draw(t, "segments")
	case ratelimit.TokenBucket:
		p.Burst = rapid.Int64Range(1, 5).Draw(t, "burst")
		p.Refill = rapid.SampledFrom([]ratelimit.Refill{ratelimit.Smooth, ratelimit.Interval}).Draw(t, "refill")
	case ratelimit.LeakyBucket:
		p.Burst = 10
	}
	return p
}

func TestBoundOfADynamicPolicyIsThatOfTheLimitItIsGiven(t *testing.T) {
	t.Parallel()
	for _, p := range []ratelimit.Policy{
		{ID: "p", Window: time.Second},
		{ID: "p", Algorithm: ratelimit.SlidingWindow, Window: time.Second},
		{ID: "p", Algorithm: ratelimit.FixedWindow, Window: time.Second},
		{ID: "p", Algorithm: ratelimit.FixedWindow, Align: ratelimit.AlignHour},
		{ID: "p", Algorithm: ratelimit.TokenBucket, Window: time.Second},
		{ID: "p", Algorithm: ratelimit.TokenBucket, Window: time.Second, Burst: 1},
		{ID: "p", Algorithm: ratelimit.TokenBucket, Window: time.Second, Burst: 3, Refill: ratelimit.Interval},
		{ID: "p", Algorithm: ratelimit.Concurrency},
		{ID: "p", Algorithm: ratelimit.TimeQuota, Window: time.Second},
	} {
		p.Limit = 2
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		want := p.Bound()
		p.Dynamic = true
		if b := p.Bound(); b.String() != want.String() || b.Most(time.Hour) != want.Most(time.Hour) {
			t.Errorf("%+v: %v, want %v", p, b, want)
		}
		p.Limit = 0
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		if b := p.Bound(); b.Most(time.Hour) != 0 || b.String() != "nothing" {
			t.Errorf("%+v: %v, want nothing", p, b)
		}
	}
}

// greedy returns the units that a key gets, by the microsecond, for which an adversary
// asks who takes first units at time 0, waits, and from a time on takes all it can get.
// Of a leaky bucket they are counted when they leave.
func greedy(t *rapid.T, p ratelimit.Policy, first int64, from, until int) []int64 {
	begin := time.Unix(1_700_000_000, 0)
	clock := ratelimittest.NewClock(begin)
	gate, err := ratelimit.New(ratelimit.WithClock(clock)).Gate(&ratelimit.Spec{Policies: []ratelimit.Policy{p}})
	if err != nil {
		t.Fatal(err)
	}
	got := make([]int64, until+200)
	take := func(now int) bool {
		d, err := gate.Take(t.Context(), ratelimit.Charge{Cost: 1})
		if err != nil {
			t.Fatal(err)
		}
		if d.Allowed {
			got[now+int((d.Delay+us-1)/us)]++
		}
		return d.Allowed
	}
	for range first {
		take(0)
	}
	clock.Advance(time.Duration(from) * us)
	for now := from; now < until; now++ {
		for take(now) {
		}
		clock.Advance(us)
	}
	return got
}

// The worst that an adversary can do is what Bound says: never more, and for some
// behaviour just that.
func TestBoundIsWhatAnAdversaryGets(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := bounded(t)
		span := int(p.Window / us)
		length := rapid.IntRange(1, 3*span).Draw(t, "length")
		until := 4*span + length + 4
		worst := int64(0)
		for first := int64(0); first <= min(1, p.Capacity()); first++ {
			for from := 0; from <= 2*span+2; from++ {
				got := greedy(t, p, first, from, until)
				for begin := 0; begin+length <= until; begin++ {
					var sum int64
					for _, n := range got[begin : begin+length] {
						sum += n
					}
					worst = max(worst, sum)
				}
			}
		}
		most := p.Bound().Most(time.Duration(length) * us)
		if worst > most {
			t.Fatalf("%+v: %d units in %dµs, and the bound is %d", p, worst, length, most)
		}
		if worst < most {
			t.Fatalf("%+v: %d units in %dµs are the most that was seen, and the bound is %d", p, worst, length, most)
		}
	})
}

func TestBoundsInWords(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		policy ratelimit.Policy
		want   string
		most   int64 // in a minute
	}{
		{ratelimit.Policy{Limit: 5, Window: time.Minute}, "at most 5 in any 1m0s", 5},
		{ratelimit.Policy{Algorithm: ratelimit.FixedWindow, Limit: 5, Window: time.Minute}, "at most 5 in a window of 1m0s, and 9 in any 1m0s", 9},
		{ratelimit.Policy{Algorithm: ratelimit.FixedWindow, Limit: 5, Align: ratelimit.AlignMinute}, "at most 5 in a window of 1m0s, and 10 in any 1m0s", 10},
		{ratelimit.Policy{Algorithm: ratelimit.SlidingWindow, Limit: 5, Window: time.Minute, Segments: 7}, "at most 5 in any 1m0.000004s", 5},
		{ratelimit.Policy{Algorithm: ratelimit.TokenBucket, Limit: 5, Window: time.Minute, Burst: 9}, "at most 9 at once, and 5 more each 1m0s", 13},
		{ratelimit.Policy{Algorithm: ratelimit.TokenBucket, Limit: 5, Window: time.Minute, Burst: 2, Refill: ratelimit.Interval}, "at most 2 at once, and 2 more at the end of each 1m0s", 3},
		{ratelimit.Policy{Algorithm: ratelimit.LeakyBucket, Limit: 5, Window: time.Minute}, "at most one at once, and 5 in 1m0s", 5},
		{ratelimit.Policy{Algorithm: ratelimit.Concurrency, Limit: 5}, "at most 5 in flight", math.MaxInt64},
		{ratelimit.Policy{Algorithm: ratelimit.TimeQuota, Limit: 5e6, Window: time.Minute}, "at most 5s of time in each 1m0s, and what is running", math.MaxInt64},
		{ratelimit.Policy{Limit: ratelimit.Unlimited, Window: time.Minute}, "no bound", math.MaxInt64},
		{ratelimit.Policy{Limit: ratelimit.Blocked, Window: time.Minute}, "nothing", 0},
		{ratelimit.Policy{Limit: 5, Window: time.Minute, Mode: ratelimit.Off}, "no bound", math.MaxInt64},
		{ratelimit.Policy{Limit: 4096, Window: us}, "at most 4096 in any 1µs", 4096 * 60e6},
	} {
		b := tc.policy.Bound()
		if fmt.Sprint(b) != tc.want || b.Most(time.Minute) != tc.most {
			t.Errorf("%+v: %q and %d, want %q and %d", tc.policy, b, b.Most(time.Minute), tc.want, tc.most)
		}
		if n := b.Most(0); n != 0 {
			t.Errorf("%+v: %d in no time", tc.policy, n)
		}
		if b.Most(math.MaxInt64) < b.Most(time.Hour) {
			t.Errorf("%+v: the bound falls", tc.policy)
		}
	}
}

// Of windows of the calendar the worst case is as many as an interval touches anywhere
// in many years.
func TestBoundOfTheCalendarIsWhatTheShortestWindowsAdmit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		align ratelimit.Align
		tz    string
		exact bool // or else never less
	}{
		{ratelimit.AlignMonth, "", true}, {ratelimit.AlignMonth, "Europe/Berlin", false},
		{ratelimit.AlignWeek, "", true}, {ratelimit.AlignWeek, "Europe/Berlin", true},
		{ratelimit.AlignDay, "", true}, {ratelimit.AlignDay, "Europe/Berlin", true}, {ratelimit.AlignDay, "Australia/Lord_Howe", true},
		{ratelimit.AlignDay, "Antarctica/Troll", true}, {ratelimit.AlignDay, "Pacific/Apia", false}, {ratelimit.AlignDay, "Asia/Tokyo", true},
		{ratelimit.AlignHour, "", true}, {ratelimit.AlignHour, "Europe/Berlin", true}, {ratelimit.AlignHour, "Australia/Lord_Howe", false},
		{ratelimit.AlignHour, "Asia/Kolkata", true},
	} {
		p := ratelimit.Policy{ID: "p", Algorithm: ratelimit.FixedWindow, Limit: 3, Align: c.align, TZ: c.tz}
		calendar, err := ratelimit.NewCalendar(&p)
		if err != nil {
			t.Fatal(err)
		}
		from, years := time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC), 30
		switch c.align {
		case ratelimit.AlignHour:
			years = 3
		case ratelimit.AlignMonth:
			from = time.Date(1890, 1, 1, 0, 0, 0, 0, time.UTC) // 1900 has no February 29
		}
		var begins []int64
		for at := from; at.Year() < from.Year()+years; {
			begin, end := calendar.Window(at)
			begins = append(begins, begin.UnixMicro())
			at = end
		}
		bound := p.Bound()
		for n := 1; n <= 60; n++ {
			// The shortest interval that touches n + 2 windows: those between and a
			// microsecond of each beside them.
			least := int64(math.MaxInt64)
			for i := range len(begins) - n {
				least = min(least, begins[i+n]-begins[i]+2)
			}
			d := time.Duration(least) * us
			if got, want := bound.Most(d), int64(n+2)*p.Limit; got < want || c.exact && got != want {
				t.Errorf("%s in %q: at most %d in %v, where %d were seen", c.align, c.tz, got, d, want)
			}
			if got, want := bound.Most(d-us), int64(n+1)*p.Limit; c.exact && got != want {
				t.Errorf("%s in %q: at most %d in %v, where %d were seen", c.align, c.tz, got, d-us, want)
			}
		}
	}
}
