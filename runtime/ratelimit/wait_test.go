package ratelimit_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// arrivals has n calls wait, in order, and returns when each was admitted after the
// first came, or -1 for a refusal.
func arrivals(t *testing.T, gate *ratelimit.Gate, n int) []time.Duration {
	t.Helper()
	begin := time.Now()
	at := make([]time.Duration, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			err := gate.Wait(t.Context(), one("k"))
			at[i] = time.Since(begin)
			if errors.Is(err, ratelimit.ErrLimited) {
				if at[i] != 0 {
					t.Errorf("call %d was refused after %v, want at once", i, at[i])
				}
				at[i] = -1
			} else if err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
	}
	wg.Wait()
	return at
}

func TestWaitingCallsProceedInOrder(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for _, c := range []struct {
		name   string
		policy ratelimit.Policy
		want   []time.Duration
	}{
		{"RT15 longest wait", ratelimit.Policy{Algorithm: ratelimit.FixedWindow, Limit: 3, Window: 10 * s, MaxWait: 12 * s},
			[]time.Duration{0, 0, 0, 10 * s, 10 * s, 10 * s, -1, -1, -1}},
		{"a log", ratelimit.Policy{Limit: 2, Window: 10 * s, MaxWait: 20 * s}, []time.Duration{0, 0, 10 * s, 10 * s, 20 * s, 20 * s, -1}},
		{"a bucket", ratelimit.Policy{Algorithm: ratelimit.TokenBucket, Limit: 1, Window: s}, []time.Duration{0, s, 2 * s, 3 * s}},
		{"longest queue", ratelimit.Policy{Algorithm: ratelimit.TokenBucket, Limit: 1, Window: s, MaxQueue: 2}, []time.Duration{0, s, 2 * s, -1, -1}},
		{"locks", ratelimit.Policy{Limit: 1, Window: 10 * s, Lock: []time.Duration{time.Hour}, MaxWait: 15 * s},
			[]time.Duration{0, -1, -1}}, // the third cannot make it, which locks out the second
		{"a leaky bucket", ratelimit.Policy{Algorithm: ratelimit.LeakyBucket, Limit: 1, Window: s, Burst: 2, MaxWait: 3 * s},
			[]time.Duration{0, s, 2 * s, 3 * s, -1}},
		{"shadow", ratelimit.Policy{Limit: 1, Window: s, Mode: ratelimit.Shadow, MaxWait: s}, []time.Duration{0, 0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				if got := arrivals(t, newGate(t, c.policy), len(c.want)); !slices.Equal(got, c.want) {
					t.Errorf("admitted at %v, want %v", got, c.want)
				}
			})
		})
	}
}

func TestRefusedWaitLocksTheKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := newGate(t, ratelimit.Policy{Limit: 1, Window: 10 * time.Second, Lock: []time.Duration{time.Hour}, MaxWait: time.Second})
		_ = gate.Wait(t.Context(), one("k"))
		err := gate.Wait(t.Context(), one("k"))
		var e *ratelimit.Error
		if !errors.As(err, &e) || e.Decision.RetryAfter != time.Hour || e.Decision.Allowed {
			t.Errorf("the second call: %v, want a lock of an hour", err)
		}
		time.Sleep(time.Hour - time.Second)
		if err := gate.Wait(t.Context(), one("k")); err != nil {
			t.Errorf("a second before the lock ends: %v", err)
		}
	})
}

func TestWaitHeedsItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := newGate(t, ratelimit.Policy{Algorithm: ratelimit.TokenBucket, Limit: 1, Window: 10 * time.Second})
		_ = gate.Wait(t.Context(), one("k"))
		short, cancel := context.WithTimeout(t.Context(), 9*time.Second)
		defer cancel()
		begin := time.Now()
		if err := gate.Wait(short, one("k")); !errors.Is(err, ratelimit.ErrLimited) || time.Since(begin) != 0 {
			t.Errorf("a call that cannot make it: %v after %v, want a refusal at once", err, time.Since(begin))
		}

		// Of three that wait, the second goes away; the third moves up.
		var at [3]time.Duration
		var errs [3]error
		patient, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		ctx, leave := context.WithCancel(patient)
		var wg sync.WaitGroup
		for i, ctx := range []context.Context{patient, ctx, patient} {
			wg.Go(func() {
				errs[i] = gate.Wait(ctx, one("k"))
				at[i] = time.Since(begin)
			})
			synctest.Wait()
		}
		time.Sleep(5 * time.Second)
		leave()
		synctest.Wait()
		// A fourth fits in before its deadline only because the second has left.
		long, cancel := context.WithTimeout(t.Context(), 26*time.Second)
		defer cancel()
		if err := gate.Wait(long, one("k")); err != nil || time.Since(begin) != 30*time.Second {
			t.Errorf("the fourth: %v after %v", err, time.Since(begin))
		}
		wg.Wait()
		if errs != [3]error{nil, context.Canceled, nil} || at != [3]time.Duration{10 * time.Second, 5 * time.Second, 20 * time.Second} {
			t.Errorf("the three ended by %v at %v", errs, at)
		}
		done, cancel := context.WithCancel(t.Context())
		cancel()
		if err := gate.Wait(done, one("other")); err != context.Canceled {
			t.Errorf("with a context that was done: %v", err)
		}
		//lint:ignore SA1012 a nil context is allowed
		if err := gate.Wait(nil, one("k")); err != nil || time.Since(begin) != 40*time.Second {
			t.Errorf("without a context: %v after %v", err, time.Since(begin))
		}
	})
}

// TestAShorterLongestWaitHoldsBehindCallsThatWaitLonger lowers MaxWait while a call waits,
// which goes on by the MaxWait that it began with.
func TestAShorterLongestWaitHoldsBehindCallsThatWaitLonger(t *testing.T) {
	t.Parallel()
	for _, longer := range []time.Duration{0, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			l := ratelimit.New()
			p := ratelimit.Policy{ID: "p", Algorithm: ratelimit.Concurrency, Limit: 1, Lease: time.Hour, MaxWait: longer}
			gate := l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{p}})
			running, err := gate.Acquire(t.Context(), one("k"))
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			var wg sync.WaitGroup
			wait := func(want time.Duration, refused bool) {
				wg.Go(func() {
					permit, err := gate.AcquireWait(t.Context(), one("k"))
					if at := time.Since(begin); at != want || errors.Is(err, ratelimit.ErrLimited) != refused {
						t.Errorf("after %v: %v, want to wait for %v, refused %t", at, err, want, refused)
					}
					permit.Release()
				})
				synctest.Wait()
			}
			wait(5*time.Second, false)
			if err := l.Update("p", ratelimit.Patch{MaxWait: new(2 * time.Second)}); err != nil {
				t.Fatal(err)
			}
			wait(2*time.Second, true)
			time.Sleep(4 * time.Second)
			wait(5*time.Second, false)
			time.Sleep(time.Second)
			running.Release()
			wg.Wait()
		})
	}
}

func TestFirstInLineThatLeavesLetsTheNextTry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := newGate(t, ratelimit.Policy{Algorithm: ratelimit.TokenBucket, Limit: 2, Window: 2 * time.Second})
		big := []ratelimit.Charge{{Key: []byte("k"), Cost: 2}}
		_ = gate.Wait(t.Context(), big)
		ctx, leave := context.WithCancel(t.Context())
		begin := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() { _ = gate.Wait(ctx, big) })
		synctest.Wait()
		wg.Go(func() {
			if err := gate.Wait(t.Context(), one("k")); err != nil || time.Since(begin) != 1500*time.Millisecond {
				t.Errorf("the next: %v after %v", err, time.Since(begin))
			}
		})
		synctest.Wait()
		time.Sleep(1500 * time.Millisecond) // a token is there for half a second, but not for the first
		leave()
		wg.Wait()
	})
}

func TestWaitingCallGetsThePlaceThatIsGivenBack(t *testing.T) {
	t.Parallel()
	for _, p := range []ratelimit.Policy{
		{Algorithm: ratelimit.Concurrency, Limit: 1, Lease: time.Hour},
		{Algorithm: ratelimit.FixedWindow, Limit: 1, Window: time.Hour, Count: true},
	} {
		p.MaxWait = time.Minute
		synctest.Test(t, func(t *testing.T) {
			gate := newGate(t, p)
			begin := time.Now()
			var order []int
			var mu sync.Mutex
			var wg sync.WaitGroup
			for i := range 4 {
				wg.Go(func() {
					permit, err := gate.AcquireWait(t.Context(), one("k"))
					if err != nil {
						t.Error(err)
					}
					defer permit.Release()
					if want := time.Duration(i) * time.Second; time.Since(begin) != want {
						t.Errorf("call %d was admitted after %v, want %v", i, time.Since(begin), want)
					}
					mu.Lock()
					order = append(order, i)
					mu.Unlock()
					time.Sleep(time.Second)
				})
				synctest.Wait()
			}
			wg.Wait()
			if !slices.Equal(order, []int{0, 1, 2, 3}) {
				t.Errorf("admitted in the order %v", order)
			}
			permit, err := gate.AcquireWait(t.Context(), one("k"))
			if err != nil {
				t.Fatal(err)
			}
			begin = time.Now()
			if _, err := gate.AcquireWait(t.Context(), one("k")); !errors.Is(err, ratelimit.ErrLimited) || time.Since(begin) != time.Minute {
				t.Errorf("nobody left: %v after %v, want a refusal after a minute", err, time.Since(begin))
			}
			permit.Release()
		})
	}
}

func TestResetWakesThoseWhoWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := newGate(t, ratelimit.Policy{Limit: 1, Window: time.Hour})
		_ = gate.Allow(t.Context(), []byte("k"))
		begin := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := gate.Wait(t.Context(), one("k")); err != nil || time.Since(begin) != time.Minute {
				t.Errorf("%v after %v", err, time.Since(begin))
			}
		})
		time.Sleep(time.Minute)
		if err := gate.Reset(t.Context(), []byte("k")); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
}

func TestWaitRefusesAtOnceWhatNeverHelps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := newGate(t, ratelimit.Policy{Limit: 1, Window: time.Hour, Dynamic: false}, ratelimit.Policy{Dynamic: true, Window: time.Hour})
		charges := []ratelimit.Charge{{Key: []byte("k"), Cost: 1}, {Key: []byte("k"), Cost: 1, Limit: -3}}
		err := gate.Wait(t.Context(), charges)
		var e *ratelimit.Error
		if !errors.As(err, &e) || e.Decision.RetryAfter != ratelimit.Never || e.Decision.Policy != "p1" {
			t.Errorf("blocked: %v", err)
		}
		charges[1].Limit, charges[0].Cost = 1, 2
		if err := gate.Wait(t.Context(), charges); !errors.Is(err, ratelimit.ErrCost) {
			t.Errorf("a cost that never fits: %v", err)
		}
	})
}

func TestQueueIsLeftAtAnEvenPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := newGate(t, ratelimit.Policy{Algorithm: ratelimit.LeakyBucket, Limit: 3, Window: 10 * time.Second, Burst: 5})
		begin := time.Now()
		var left []time.Duration
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if err := gate.Allow(t.Context(), []byte("k")); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				left = append(left, time.Since(begin))
			})
			synctest.Wait()
		}
		err := gate.Allow(t.Context(), []byte("k"))
		var e *ratelimit.Error
		if !errors.As(err, &e) || e.Decision.RetryAfter != 3333334*time.Microsecond {
			t.Errorf("into a full queue: %v", err)
		}
		wg.Wait()
		want := []time.Duration{0, 3333334 * time.Microsecond, 6666667 * time.Microsecond, 10 * time.Second, 13333334 * time.Microsecond}
		if !slices.Equal(left, want) {
			t.Errorf("left at %v, want %v", left, want)
		}
	})
}

// RT04: calls that do not get a place use up none.
func TestRT04CallThatLeavesTheQueueFreesItsPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := ratelimit.Policy{Algorithm: ratelimit.LeakyBucket, Limit: 1, Window: time.Second, Burst: 3}
		gate := newGate(t, p)
		_ = gate.Allow(t.Context(), []byte("k"))
		for range 10 {
			short, cancel := context.WithTimeout(t.Context(), time.Second/2)
			begin := time.Now()
			err := gate.Allow(short, []byte("k"))
			var e *ratelimit.Error
			if !errors.As(err, &e) || e.Decision.RetryAfter != time.Second || time.Since(begin) != 0 {
				t.Errorf("a call whose turn is after its deadline: %v after %v", err, time.Since(begin))
			}
			cancel()
		}
		remaining(t, gate, "k", 2)

		// The second of three leaves: its place is free, the third keeps its time.
		begin := time.Now()
		ctx, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := gate.Allow(ctx, []byte("k")); err != context.Canceled {
				t.Errorf("the second: %v", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if err := gate.Allow(t.Context(), []byte("k")); err != nil || time.Since(begin) != 2*time.Second {
				t.Errorf("the third: %v after %v, want its time kept", err, time.Since(begin))
			}
		})
		synctest.Wait()
		remaining(t, gate, "k", 0)
		leave()
		synctest.Wait()
		remaining(t, gate, "k", 1)
		if err := gate.Allow(t.Context(), []byte("k")); err != nil || time.Since(begin) != 3*time.Second {
			t.Errorf("the fourth: %v after %v", err, time.Since(begin))
		}
		wg.Wait()
		d, err := gate.Take(t.Context(), one("k")...)
		if err != nil || !d.Allowed || d.Delay != time.Second {
			t.Errorf("Take says %+v, %v, want a delay of a second that it leaves to the caller", d, err)
		}
	})
}

func TestObserverIsToldOfACallThatWaitsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var seen events
		p := ratelimit.Policy{ID: "p", Limit: 1, Window: time.Minute, MaxWait: time.Minute}
		gate := ratelimit.New(ratelimit.WithObserver(&seen)).MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{p}})
		for range 2 {
			if err := gate.Wait(t.Context(), one("k")); err != nil {
				t.Error(err)
			}
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := gate.Wait(short, one("k"))
		var e *ratelimit.Error
		if !errors.As(err, &e) || len(seen) != 3 {
			t.Fatalf("%v after %d events, want a refusal and 3", err, len(seen))
		}
		for i, want := range []bool{true, true, false} {
			if seen[i].Decision.Allowed != want {
				t.Errorf("event %d: %+v", i, seen[i])
			}
		}
		if seen[2].Decision != e.Decision {
			t.Errorf("the observer was told %+v, the caller %+v", seen[2].Decision, e.Decision)
		}
	})
}

func TestNobodyWaitsForTheTurnOfAShadow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := newGate(t, ratelimit.Policy{
			Algorithm: ratelimit.LeakyBucket, Limit: 1, Window: time.Second, Burst: 2, Mode: ratelimit.Shadow,
		})
		begin := time.Now()
		for range 4 {
			if err := gate.Allow(t.Context(), []byte("k")); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("four calls took %v", took)
		}
	})
}
