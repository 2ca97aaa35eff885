package ratelimit_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimittest"
)

// What other limiters got wrong, as their trackers tell, restated for this one: a test
// each, by its id. RT04, RT21, RT23 and RT25 are beside the tests of what they are
// about, and those that every store must pass are cases of ratelimittest, too.

// timed has every algorithm that decides by time, at 1 unit a second.
var timed = []ratelimit.Policy{
	{Algorithm: ratelimit.SlidingLog},
	{Algorithm: ratelimit.FixedWindow},
	{Algorithm: ratelimit.SlidingWindow},
	{Algorithm: ratelimit.TokenBucket},
	{Algorithm: ratelimit.TokenBucket, Refill: ratelimit.Interval},
	{Algorithm: ratelimit.TokenBucket, Count: true},
	{Algorithm: ratelimit.LeakyBucket},
	{Algorithm: ratelimit.SlidingLog, Lock: []time.Duration{time.Microsecond}},
}

// subject is a gate of one policy, with key "k", by a clock of its own.
type subject struct {
	*testing.T
	limiter *ratelimit.Limiter
	clock   *ratelimittest.Clock
	gate    *ratelimit.Gate
}

var begin = time.Unix(1_700_000_000, 0)

func newSubject(t *testing.T, p ratelimit.Policy) *subject {
	t.Helper()
	s := &subject{T: t, clock: ratelimittest.NewClock(begin)}
	s.limiter = ratelimit.New(ratelimit.WithClock(s.clock))
	p.ID = "p"
	gate, err := s.limiter.Gate(&ratelimit.Spec{Method: "pay.Service.Pay", Policies: []ratelimit.Policy{p}})
	if err != nil {
		t.Fatal(err)
	}
	s.gate = gate
	return s
}

func (s *subject) at(d time.Duration) *subject {
	s.clock.Set(begin.Add(d))
	return s
}

// take asks for cost units, of a call that does not end.
func (s *subject) take(cost int64) ratelimit.Decision {
	s.Helper()
	charges := []ratelimit.Charge{{Key: []byte("k"), Cost: cost}}
	d, err := s.gate.Peek(s.Context(), charges...)
	if err == nil && d.Delay == 0 {
		// Acquire is for all policies, but waits, and does not tell what remains.
		_, err = s.gate.Acquire(s.Context(), charges)
	} else if err == nil {
		_, err = s.gate.Take(s.Context(), charges...)
	}
	var e *ratelimit.Error
	if errors.As(err, &e) && e.Kind == ratelimit.ErrLimited {
		return e.Decision
	}
	if err != nil {
		s.Fatal(err)
	}
	return d
}

func (s *subject) want(cost int64, admitted bool) ratelimit.Decision {
	s.Helper()
	d := s.take(cost)
	if d.Allowed != admitted {
		s.Errorf("%+v: %d units at %v: %+v, want admitted = %t", s.limiter.Policies(), cost, s.clock.Now().Sub(begin), d, admitted)
	}
	return d
}

func TestRT01ARateOfZeroAdmitsNothing(t *testing.T) {
	t.Parallel()
	for _, p := range timed {
		p.Window = time.Second
		if err := p.Validate(); err == nil {
			t.Errorf("%+v: a limit of 0 is valid", p)
		}
		p.Limit = ratelimit.Blocked
		s := newSubject(t, p)
		for range 1000 {
			if d := s.want(1, false); d.RetryAfter != ratelimit.Never {
				t.Fatalf("%+v: %+v", p, d)
			}
		}
	}
}

func TestRT02TimeThatStepsBackAndForthBringsNothing(t *testing.T) {
	t.Parallel()
	for _, p := range timed {
		p.Limit, p.Window = 1, time.Second
		s := newSubject(t, p)
		s.at(time.Second).want(1, true)
		s.at(0).want(1, false)
		s.at(time.Second).want(1, false)
		if d := s.take(1); d.RetryAfter > 1100*time.Millisecond {
			t.Errorf("%+v: %+v", p, d)
		}
	}
}

// A queue has no credit for idle time; a token bucket has as much as its burst.
func TestRT06IdleTimeIsWorthNoMoreThanTheBurst(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		policy    ratelimit.Policy
		immediate int
	}{
		{ratelimit.Policy{Algorithm: ratelimit.LeakyBucket, Limit: 1, Burst: 25, Window: time.Second}, 1},
		{ratelimit.Policy{Algorithm: ratelimit.TokenBucket, Limit: 1, Burst: 2, Window: time.Second}, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			gate := newGate(t, c.policy)
			if err := gate.Wait(t.Context(), one("k")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
			begin := time.Now()
			for i := range 25 {
				if err := gate.Wait(t.Context(), one("k")); err != nil {
					t.Fatal(err)
				}
				if got, want := time.Since(begin), time.Duration(max(0, i+1-c.immediate))*time.Second; got != want {
					t.Errorf("%s: call %d after %v, want %v", c.policy.Algorithm, i, got, want)
				}
			}
		})
	}
}

func TestRT08AClockSetBackForGoodLocksNobodyOut(t *testing.T) {
	t.Parallel()
	for _, p := range append(timed, ratelimit.Policy{Algorithm: ratelimit.Concurrency, Lease: 10 * time.Second}) {
		p.Limit = 5
		if p.Algorithm != ratelimit.Concurrency {
			p.Window = 10 * time.Second
		}
		s := newSubject(t, p)
		s.at(100 * time.Second)
		for range 3 {
			s.want(1, true)
		}
		s.at(40 * time.Second)
		for range 2 {
			s.want(1, true)
		}
		d := s.want(1, false)
		if d.RetryAfter <= 0 || d.RetryAfter > 11*time.Second {
			t.Errorf("%+v: RetryAfter %v, want within the window", p, d.RetryAfter)
		}
		s.at(40*time.Second+d.RetryAfter).want(1, true)
	}
}

func TestRT12WhatRemainsIsWithinTheLimit(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(12, 0))
	for _, p := range timed {
		p.Limit, p.Window = 3, time.Minute
		s := newSubject(t, p)
		for i := range 1000 {
			s.at(time.Duration(rnd.Int64N(300)) * time.Second)
			d := s.take(rnd.Int64N(4))
			if d.Remaining < 0 || d.Remaining > d.Limit || d.Limit != 3 {
				t.Fatalf("%+v, call %d: %+v", p, i, d)
			}
		}
	}
}

func TestRT14AWindowThatHasShrunkIsOver(t *testing.T) {
	t.Parallel()
	for _, p := range timed {
		p.Limit, p.Window = 2, time.Hour
		s := newSubject(t, p)
		s.take(1)
		s.take(1)
		s.at(time.Minute).want(2, false)
		window := time.Second
		if err := s.limiter.Update("p", ratelimit.Patch{Window: &window}); err != nil {
			t.Fatal(err)
		}
		switch p.Algorithm {
		case ratelimit.SlidingWindow, ratelimit.LeakyBucket, ratelimit.TokenBucket:
			s.at(time.Minute + 2*time.Second) // they owe what they owed, at the new pace
		default:
			s.at(time.Minute + time.Microsecond)
		}
		s.want(2, true)
	}
}

func TestRT15CallsWaitNoLongerThanTheyMay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const s = time.Second
		gate := newGate(t, ratelimit.Policy{Algorithm: ratelimit.FixedWindow, Limit: 3, Window: 10 * s, MaxWait: 12 * s})
		want := []time.Duration{0, 0, 0, 10 * s, 10 * s, 10 * s, -1, -1, -1}
		if got := arrivals(t, gate, 9); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("admitted at %v, want %v", got, want)
		}
	})
}

func TestRT18ACostThatNeverFitsChargesNothing(t *testing.T) {
	t.Parallel()
	for _, p := range timed {
		p.Limit, p.Window = 10, time.Minute
		s := newSubject(t, p)
		s.want(5, true)
		_, err := s.gate.Acquire(t.Context(), []ratelimit.Charge{{Key: []byte("k"), Cost: 100}})
		var e *ratelimit.Error
		if !errors.As(err, &e) || e.Kind != ratelimit.ErrCost || e.Decision.RetryAfter != ratelimit.Never {
			t.Errorf("%+v: a cost of 100: %v", p, err)
		}
		s.want(3, true)
		s.want(3, false)
	}
}

func TestRT20RefusedTriesStarveNobody(t *testing.T) {
	t.Parallel()
	for _, p := range timed {
		if p.Algorithm == ratelimit.SlidingWindow || p.Algorithm == ratelimit.LeakyBucket || p.Algorithm == ratelimit.TokenBucket {
			continue // bring other numbers, by their definitions
		}
		p.Limit, p.Window = 10, 10*time.Minute
		s := newSubject(t, p)
		admitted := 0
		for i := range 40 {
			if s.at(time.Duration(i) * 30 * time.Second).take(1).Allowed {
				admitted++
			}
		}
		if admitted != 20 {
			t.Errorf("%+v: %d of 40 tries are admitted, want 20", p, admitted)
		}
	}
}

func TestRT22WhatIsMissingIsAnError(t *testing.T) {
	t.Parallel()
	spec := &ratelimit.Spec{Policies: []ratelimit.Policy{perMinute("p", 1)}}
	for name, make := range map[string]func() (*ratelimit.Gate, error){
		"nil limiter":  func() (*ratelimit.Gate, error) { return (*ratelimit.Limiter)(nil).Gate(spec) },
		"zero limiter": func() (*ratelimit.Gate, error) { return new(ratelimit.Limiter).Gate(spec) },
		"nil store":    func() (*ratelimit.Gate, error) { return ratelimit.New(ratelimit.WithStore("", nil)).Gate(spec) },
		"nil spec":     func() (*ratelimit.Gate, error) { return ratelimit.New().Gate(nil) },
		"no policy":    func() (*ratelimit.Gate, error) { return ratelimit.New().Gate(&ratelimit.Spec{}) },
		"zero policy": func() (*ratelimit.Gate, error) {
			return ratelimit.New().Gate(&ratelimit.Spec{Policies: []ratelimit.Policy{{}}})
		},
	} {
		if gate, err := make(); err == nil || gate != nil {
			t.Errorf("%s: %v, %v", name, gate, err)
		}
	}
	for _, gate := range []*ratelimit.Gate{nil, {}} {
		_, acquire := gate.Acquire(t.Context(), one("k"))
		_, acquireWait := gate.AcquireWait(t.Context(), one("k"))
		for i, err := range []error{gate.Allow(t.Context(), []byte("k")), gate.Wait(t.Context(), one("k")), acquire, acquireWait} {
			if err == nil {
				t.Errorf("call %d of a gate that is none: no error", i)
			}
		}
	}
}

func TestCF01NumbersThatAreNotPositiveAreErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		policy ratelimit.Policy
		want   string
	}{
		{"limit 0", ratelimit.Policy{Window: time.Minute}, "limit 0"},
		{"limit -1", ratelimit.Policy{Limit: -1, Window: time.Minute}, "limit -1"},
		{"window 0", ratelimit.Policy{Limit: 1}, "window 0s"},
		{"window -1s", ratelimit.Policy{Limit: 1, Window: -time.Second}, "window -1s"},
		{"burst -3", ratelimit.Policy{Algorithm: ratelimit.TokenBucket, Limit: 1, Window: time.Minute, Burst: -3}, "burst -3"},
		{"lease -1s", ratelimit.Policy{Algorithm: ratelimit.Concurrency, Limit: 1, Lease: -time.Second}, "lease -1s"},
		{"lock 0", ratelimit.Policy{Limit: 1, Window: time.Minute, Lock: []time.Duration{0}}, "lock 0s"},
		{"wait -1s", ratelimit.Policy{Limit: 1, Window: time.Minute, MaxWait: -time.Second}, "wait -1s"},
		{"queue -1", ratelimit.Policy{Limit: 1, Window: time.Minute, MaxQueue: -1}, "queue -1"},
	} {
		c.policy.ID = "p"
		_, err := ratelimit.New().Gate(&ratelimit.Spec{Policies: []ratelimit.Policy{c.policy}})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	// A burst of 0 is that the policy names none: it is the limit.
	if p := (ratelimit.Policy{Algorithm: ratelimit.TokenBucket, Limit: 7}); p.Capacity() != 7 {
		t.Errorf("without a burst: %d", p.Capacity())
	}
}

func TestCF03AStoreThatIsNotThereIsAnError(t *testing.T) {
	t.Parallel()
	p := perMinute("p", 1)
	p.Store = "memroy"
	l := ratelimit.New(ratelimit.WithStore("memory", &recorder{}))
	if gate, err := l.Gate(&ratelimit.Spec{Policies: []ratelimit.Policy{p}}); gate != nil || err == nil || !strings.Contains(err.Error(), `"memroy"`) {
		t.Errorf("%v, %v", gate, err)
	}
}

func TestCF04NoLimitAndNoCallHaveWordsOfTheirOwn(t *testing.T) {
	t.Parallel()
	for _, p := range timed {
		p.Limit, p.Window = ratelimit.Unlimited, time.Second
		s := newSubject(t, p)
		for range 100 {
			s.want(1<<40, true)
		}
		p.Limit = ratelimit.Blocked
		newSubject(t, p).want(1, false)
		for _, limit := range []int64{0, -1, ratelimit.Blocked + 1} {
			if p.Limit = limit; p.Validate() == nil {
				t.Errorf("%+v is valid", p)
			}
		}
	}
}

func TestCF06TheZoneIsThePolicysOwn(t *testing.T) {
	t.Parallel()
	day := ratelimit.Policy{ID: "p", Algorithm: ratelimit.FixedWindow, Limit: 1, Align: ratelimit.AlignDay, TZ: "Mars/Base"}
	if _, err := ratelimit.New().Gate(&ratelimit.Spec{Policies: []ratelimit.Policy{day}}); err == nil || !strings.Contains(err.Error(), "Mars/Base") {
		t.Errorf("an unknown zone: %v", err)
	}
	for zone, offset := range map[string]time.Duration{"": 0, "Asia/Tokyo": 9 * time.Hour} {
		day.TZ = zone
		s := newSubject(t, day)
		midnight := begin.Add(offset).Truncate(24 * time.Hour).Add(24*time.Hour - offset).Sub(begin)
		s.at(midnight-time.Microsecond).want(1, true)
		s.want(1, false)
		s.at(midnight).want(1, true)
	}
}

// A time.Duration has its unit, and the shortest that counts is a microsecond.
func TestCF09AWindowWithoutAUnitIsAnError(t *testing.T) {
	t.Parallel()
	for _, window := range []time.Duration{100, 90, 1500, -time.Hour} {
		p := ratelimit.Policy{ID: "p", Limit: 1, Window: window}
		if p.Validate() == nil {
			t.Errorf("a window of %v is valid", window)
		}
	}
	s := newSubject(t, ratelimit.Policy{Limit: 1, Window: 24 * time.Hour})
	s.want(1, true)
	s.at(24*time.Hour-time.Microsecond).want(1, false)
	s.at(24*time.Hour).want(1, true)
}

func TestCF12ACostAboveTheBurstIsAnError(t *testing.T) {
	t.Parallel()
	for _, a := range []ratelimit.Algorithm{ratelimit.TokenBucket, ratelimit.LeakyBucket} {
		s := newSubject(t, ratelimit.Policy{Algorithm: a, Limit: 10, Burst: 3, Window: time.Second})
		if _, err := s.gate.Take(t.Context(), ratelimit.Charge{Key: []byte("k"), Cost: 4}); !errors.Is(err, ratelimit.ErrCost) {
			t.Errorf("%s: %v", a, err)
		}
		s.want(3, true)
	}
}

func TestCF14AnUpdateThatIsWrongChangesNothing(t *testing.T) {
	t.Parallel()
	for _, p := range timed {
		p.Limit, p.Window = 2, time.Minute
		s := newSubject(t, p)
		s.want(1, true)
		before := fmt.Sprint(s.limiter.Policies())
		zero, wrong, far := int64(0), -time.Second, int64(3)
		for _, patch := range []ratelimit.Patch{{Limit: &zero}, {Window: &wrong}, {Limit: &far, Window: &wrong}, {MaxWait: &wrong}} {
			if err := s.limiter.Update("p", patch); err == nil {
				t.Errorf("%+v: %+v is taken", p, patch)
			}
		}
		if after := fmt.Sprint(s.limiter.Policies()); after != before {
			t.Errorf("%s became %s", before, after)
		}
		s.want(2, false)
		s.at(time.Microsecond).want(1, true)
	}
}

// Locks are remembered for a window after the last one has ended, also where a clock that
// was set back for good puts what is counted into another window of the calendar.
func TestResetAtIsWhenLocksAreForgotten(t *testing.T) {
	t.Parallel()
	clock := ratelimittest.NewClock(time.Date(2030, 5, 15, 12, 0, 0, 0, time.UTC))
	gate := ratelimit.New(ratelimit.WithClock(clock)).MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{
		{ID: "p", Algorithm: ratelimit.FixedWindow, Limit: 1, Align: ratelimit.AlignDay, Lock: []time.Duration{time.Second, time.Minute}},
	}})
	c := ratelimit.Charge{Key: []byte("k"), Cost: 1}
	for range 2 { // admitted, and refused and so locked
		if _, err := gate.Take(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	for _, back := range []time.Duration{0, 48 * time.Hour} {
		clock.Advance(-back)
		want := clock.Now().Add(24*time.Hour + time.Second)
		if d, err := gate.Peek(t.Context(), c); err != nil || !d.ResetAt.Equal(want) {
			t.Errorf("set back by %v: as new at %v, want %v: %v", back, d.ResetAt, want, err)
		}
	}
}

// A bucket that begins empty fills while its key is locked, and is that bucket still when
// the lock ends.
func TestALockedBucketThatBeginsEmptyFills(t *testing.T) {
	t.Parallel()
	clock := ratelimittest.NewClock(time.Unix(1_700_000_000, 0))
	l := ratelimit.New(ratelimit.WithClock(clock))
	gate := l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{{
		ID: "p", Algorithm: ratelimit.TokenBucket, Limit: 10, Window: time.Second, Initial: ratelimit.Empty, Lock: []time.Duration{time.Minute},
	}}})
	d, err := gate.Take(t.Context(), one("k")...)
	if err != nil || d.Allowed || d.RetryAfter != time.Minute {
		t.Fatalf("at first: %+v, %v", d, err)
	}
	clock.Advance(d.RetryAfter)
	if d, err := gate.Take(t.Context(), one("k")...); err != nil || !d.Allowed || d.Remaining != 9 {
		t.Errorf("when it was told to come: %+v, %v", d, err)
	}
}
