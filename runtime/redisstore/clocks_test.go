package redisstore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

// timed returns policies of every form whose windows are w, where it has one.
func timed(w time.Duration) []*ratelimit.Policy {
	var all []*ratelimit.Policy
	for _, p := range everyForm() {
		switch {
		case p.Algorithm == ratelimit.Concurrency:
			p.Lease = w
		case p.Align != "" && w == time.Minute:
			p.Align = ratelimit.AlignMinute
		case p.Align != "":
			p.Align = ratelimit.AlignHour
		default:
			p.Window = w
		}
		p.Mode = ratelimit.Enforce
		all = append(all, p)
	}
	return all
}

// mostInWindow is the most that a policy of timed admits in any time of a window.
func mostInWindow(p *ratelimit.Policy) int {
	switch p.Algorithm {
	case "", ratelimit.SlidingLog, ratelimit.SlidingWindow, ratelimit.Concurrency:
		return 5
	}
	return 2 * 5 // two windows meet, or a bucket was full
}

// lockOut is the longest that nobody is admitted after the clock was set to before what
// a key records, by ahead, or not so if that is not above 0.
func lockOut(p *ratelimit.Policy, w, ahead time.Duration) time.Duration {
	if p.Align != "" {
		w = p.Align.Length()
	}
	d := w
	if p.Algorithm == ratelimit.SlidingWindow {
		d += w/ratelimit.DefaultSegments + 1
	}
	for _, l := range p.Lock {
		d += l
	}
	// Time stands still for as long. Locks, which the caller does not know, are recorded later.
	if still := min(ahead, w, ratelimit.MaxStandstill); still > 0 && (still == ahead || len(p.Lock) > 0) {
		d += still
	}
	return d
}

// lastRecorded is the latest time that a key records whose calls were admitted at these times:
// of a fixed window and a time quota, that is when the window began.
func lastRecorded(p *ratelimit.Policy, w time.Duration, admitted []int64) int64 {
	last := admitted[len(admitted)-1]
	if p.Algorithm == ratelimit.FixedWindow && p.Align == "" || p.Algorithm == ratelimit.TimeQuota {
		last = admitted[0]
		for _, at := range admitted {
			if at-last >= w.Microseconds() {
				last = at
			}
		}
	}
	return last
}

// An hour that the server's clock is set forward or back locks nobody out for longer
// than the window, and lets nobody have more than the limit from then on. A clock that
// was set back by little is waited for in addition.
func TestFaultsServerClockThatIsSet(t *testing.T) {
	t.Parallel()
	r := &faults
	runs := int64(1)
	if longFaults() {
		runs = 10
	}
	for _, c := range []struct{ w, by time.Duration }{
		{time.Minute, time.Hour},
		{time.Minute, -time.Hour},
		{time.Minute, -30 * time.Second},
		{time.Minute, -5 * time.Second},
		{2 * time.Hour, time.Hour},
		{2 * time.Hour, -time.Hour},
	} {
		w, by := c.w, c.by
		t.Run(fmt.Sprintf("window %v, by %v", w, by), func(t *testing.T) {
			t.Parallel()
			decisions, wrong := 0, 0
			longest := 0.0
			for _, p := range timed(w) {
				for run := range runs {
					f := newFake(t)
					const parts = 20
					step := w.Microseconds() / parts
					if p.Align != "" {
						step = p.Align.Length().Microseconds() / parts
					}
					var set int64 // by how much, so far
					now := run * step / runs * 7 / 3
					var admitted []int64 // when, by a clock that is right
					call := func() {
						f.at(now + set)
						decisions++
						op := ratelimit.Op{Policy: p, Key: "k", Cost: 1, Limit: 5, ID: uint64(decisions)}
						if !f.take(op)[0].Allowed {
							return
						}
						admitted = append(admitted, now)
						if p.Algorithm == ratelimit.TimeQuota {
							if err := f.store.End(context.Background(), []ratelimit.End{{Policy: p, Key: "k", ID: op.ID, What: ratelimit.EndFinish, Units: 1}}); err != nil {
								t.Fatal(err)
							}
						}
					}
					for i := range int64(parts + 3 + run) {
						if i > 0 {
							now += step
						}
						call()
						call()
					}
					at := now
					bound := lockOut(p, w, time.Duration(lastRecorded(p, w, admitted)-at)*time.Microsecond-by)
					set = by.Microseconds()
					admitted = nil
					for now < at+bound.Microseconds()+2*parts*step {
						call()
						call()
						now += step
					}
					after := time.Hour * 9999
					if len(admitted) > 0 {
						after = time.Duration(admitted[0]-at) * time.Microsecond
					}
					if after > bound+time.Duration(step)*time.Microsecond {
						t.Errorf("%s, run %d: nobody was admitted for %v after the clock was set", p.ID, run, after)
						wrong++
					}
					longest = max(longest, after.Seconds()/(parts*time.Duration(step)*time.Microsecond).Seconds())
					for i := range admitted {
						n := 0
						for j := i; j < len(admitted) && admitted[j] < admitted[i]+parts*step; j++ {
							n++
						}
						if n > mostInWindow(p) {
							t.Errorf("%s, run %d: %d admitted in a window", p.ID, run, n)
							wrong++
							break
						}
					}
				}
			}
			r.addDecisions(fmt.Sprintf("server clock set by %v, windows of %v", by, w), decisions, wrong, fmt.Sprintf("locked out for %.2f windows at most", longest))
		})
	}
}

// Whatever time processes think it is, the server's is what counts.
func TestFaultsRD10ClientClocksThatAreOff(t *testing.T) {
	t.Parallel()
	r := &faults
	rounds := 60
	if longFaults() {
		rounds = 600
	}
	for _, off := range []time.Duration{30 * time.Second, time.Hour} {
		t.Run(off.String(), func(t *testing.T) {
			t.Parallel()
			decisions, wrong := 0, 0
			for _, p := range timed(time.Minute) {
				right, mixed := newFake(t), newFake(t)
				now := int64(0)
				store := func(f *fake, off time.Duration) *redisstore.Store {
					return redisstore.NewFakeTime(f.client, f.prefix).WithWall(func() time.Time { return time.UnixMicro(epoch + now).Add(off) })
				}
				alone := store(right, 0)
				several := []*redisstore.Store{store(mixed, off), store(mixed, -off), store(mixed, 0)}
				for i := range rounds {
					right.at(now)
					mixed.at(now)
					op := ratelimit.Op{Policy: p, Key: "k", Cost: 1, Limit: 5, ID: uint64(i) + 1}
					a, b := []ratelimit.Op{op}, []ratelimit.Op{op}
					if err := alone.Take(context.Background(), a); err != nil {
						t.Fatal(err)
					}
					if err := several[i%3].Take(context.Background(), b); err != nil {
						t.Fatal(err)
					}
					decisions++
					if a[0].Outcome != b[0].Outcome || right.dump(p) != mixed.dump(p) {
						t.Errorf("%s at %d µs: %+v, want %+v", p.ID, now, b[0].Outcome, a[0].Outcome)
						wrong++
					}
					now += 3_700_001
				}
			}
			r.addDecisions(fmt.Sprintf("client clocks off by ±%v", off), decisions, wrong, "")
		})
	}
}
