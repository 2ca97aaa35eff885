package main

import (
	"strings"
	"testing"
	"time"
)

func TestContestantsAdmitWhatThePolicyAdmits(t *testing.T) {
	t.Parallel()
	for _, c := range contestants() {
		if c.open == nil || c.neverRefuses {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			allow, end := c.open(few)
			if end != nil {
				defer end()
			}
			for i := range 5 {
				if !allow("a") {
					t.Errorf("call %d of 5 is refused", i+1)
				}
			}
			if allow("a") {
				t.Error("the sixth call is admitted")
			}
			if got, want := allow("b"), c.keys != noKeys; got != want {
				t.Errorf("another key is admitted: %v, want %v", got, want)
			}
		})
	}
}

func TestGrowthSeesTheLongestCall(t *testing.T) {
	t.Parallel()
	const pause = 20 * time.Millisecond
	calls := 0
	slow := func(string) bool {
		if calls++; calls == 700 {
			for start := time.Now(); time.Since(start) < pause; {
			}
		}
		return true
	}
	perKey, longest := grow(slow, make([]string, 1000), true)
	if calls != 1000 || longest < pause || perKey < float64(pause)/1000 {
		t.Errorf("%d calls of %v ns, the longest of %v; want 1000 and a pause of %v", calls, perKey, longest, pause)
	}
}

func TestGrowthLeavesOutTheWaitForAProcessor(t *testing.T) {
	t.Parallel()
	const pause = 20 * time.Millisecond
	asleep := func(string) bool { time.Sleep(pause); return true }
	if _, longest := grow(asleep, make([]string, 1), false); longest >= pause && threadTimeIsKnown {
		t.Errorf("the longest call took %v of a sleep of %v", longest, pause)
	}
}

func TestKeysAreOfSixteenBytesAndAllDifferent(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, n := range []uint32{0, 1, 0x10, 0xabcdef, keyCount - 1, 1<<32 - 1} {
		key := keyOf(n)
		if len(key) != 16 || seen[key] {
			t.Errorf("key %q of %d", key, n)
		}
		seen[key] = true
	}
}

func TestTargetsAreMetOrMissed(t *testing.T) {
	t.Parallel()
	r := newResult(settings{}, contestants())
	at := func(ratio float64) *figure { return &figure{NS: 100 * ratio, Ratio: ratio} }
	for i, x := range r.Peers {
		if !x.Measured {
			continue
		}
		ratio := 2 + float64(i)/10
		x.Hot, x.Uniform, x.Parallel[1] = at(ratio), at(ratio), at(ratio)
		x.Growth = &growth{figure: *at(ratio)}
		x.BytesPerKey, x.Allocs, x.RefusedAllocs = new(100.), new(0.), new(0.)
	}
	ours := r.row(nameOfOurs)
	ours.Hot, ours.Uniform, ours.Growth = at(0.5), at(9), &growth{figure: *at(1), Pause: 2.5}
	ours.Parallel[1] = at(7)
	r.Own = []*own{{Name: nameOfWrapper, figure: figure{NS: 52, Ratio: 1.3}}}
	*ours.BytesPerKey, *ours.RefusedAllocs = 45, 1
	r.judge()
	const missed = "one key, two processors, ahead of all that compare keys; a million keys, uniform, ahead of all; " +
		"longest call of a million first ones, ms; what the wrapper adds to Allow, ns"
	var names []string
	for _, target := range r.Targets {
		if !target.Met {
			names = append(names, target.Name)
		}
	}
	if got := strings.Join(names, "; "); got != missed || r.met() {
		t.Errorf("missed: %s\nwant:   %s", got, missed)
	}
	var b strings.Builder
	if err := r.print(&b); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "MISSED"); n != 4 {
		t.Errorf("MISSED is printed %d times, want 4:\n%s", n, b.String())
	}
}

func TestFiguresAreMediansWithTheirQuartiles(t *testing.T) {
	t.Parallel()
	var s series
	for _, ns := range []float64{50, 10, 40, 20, 30} {
		s.add(ns, 10)
	}
	if got, want := s.figure(), (figure{NS: 30, Ratio: 3, Low: 2, High: 4}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
