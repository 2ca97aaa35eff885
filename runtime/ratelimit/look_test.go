package ratelimit_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimittest"
)

// shut is a Store that admits a call each from times on, and remembers when it was asked.
type shut struct {
	ender
	began time.Time
	mu    sync.Mutex
	looks []time.Duration // since began
	opens []time.Time     // of the calls still to be admitted
	says  time.Time       // when it says that it opens
}

func (s *shut) Take(_ context.Context, ops []ratelimit.Op) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.looks = append(s.looks, now.Sub(s.began))
	if len(s.opens) > 0 && !now.Before(s.opens[0]) {
		s.opens = s.opens[1:]
		ops[0].Outcome = ratelimit.Outcome{Allowed: true}
		return nil
	}
	says := s.says
	if says.IsZero() {
		says = s.opens[0]
	}
	ops[0].Outcome = ratelimit.Outcome{RetryAfter: says.Sub(now)}
	return nil
}

// A call that waits asks the store when it was told to, and not before that but to see
// within a second what another process has changed; those behind it ask nothing.
func TestOnlyTheFirstInLineAsksTheStoreAndSeldom(t *testing.T) {
	t.Parallel()
	const ms, s = time.Millisecond, time.Second
	places := ratelimit.Policy{ID: "p", Algorithm: ratelimit.Concurrency, Limit: 1, Lease: time.Hour}
	log := ratelimit.Policy{ID: "p", Limit: 1, Window: time.Hour}
	for _, c := range []struct {
		name   string
		policy ratelimit.Policy
		says   time.Duration // 0: when it opens
		opens  []time.Duration
		looks  []time.Duration // the first two are by a call that comes and joins the line
		admits []time.Duration // in the order in which they came
	}{
		{"in time", log, 0, []time.Duration{300 * ms},
			[]time.Duration{0, 0, 300 * ms}, []time.Duration{300 * ms}},
		{"one after the other", log, 0, []time.Duration{300 * ms, 500 * ms, 500 * ms},
			[]time.Duration{0, 0, 300 * ms, 300 * ms, 500 * ms, 500 * ms}, []time.Duration{300 * ms, 500 * ms, 500 * ms}},
		{"reset elsewhere", log, time.Hour, []time.Duration{2500 * ms},
			[]time.Duration{0, 0, s, 2 * s, 3 * s}, []time.Duration{3 * s}},
		{"given back elsewhere", places, time.Hour, []time.Duration{2500 * ms, 2600 * ms},
			[]time.Duration{0, 0, 50 * ms, 150 * ms, 350 * ms, 750 * ms, 1550 * ms, 2550 * ms, 2550 * ms, 2600 * ms},
			[]time.Duration{2550 * ms, 2600 * ms}},
		{"the lease ends", places, 120 * ms, []time.Duration{120 * ms},
			[]time.Duration{0, 0, 50 * ms, 120 * ms}, []time.Duration{120 * ms}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := &shut{began: time.Now()}
				if c.says > 0 {
					store.says = store.began.Add(c.says)
				}
				for _, d := range c.opens {
					store.opens = append(store.opens, store.began.Add(d))
				}
				gate := ratelimit.New(ratelimit.WithStore("", store)).MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{c.policy}})
				got := make([]time.Duration, len(c.opens))
				var calls sync.WaitGroup
				for i := range c.opens {
					calls.Go(func() {
						permit, err := gate.AcquireWait(t.Context(), one("k"))
						if err != nil {
							t.Error(err)
						}
						got[i] = time.Since(store.began)
						_ = permit // is kept
					})
					synctest.Wait()
				}
				calls.Wait()
				if !slices.Equal(store.looks, c.looks) {
					t.Errorf("asked at %v, want %v", store.looks, c.looks)
				}
				if !slices.Equal(got, c.admits) {
					t.Errorf("admitted at %v, want %v", got, c.admits)
				}
			})
		})
	}
}

// A key is as new when the bucket is full by the limit of the call that was charged, so a
// call that brings a lower one is told to wait no longer.
func TestAWaitOfADynamicBucketEndsWhereItIsNew(t *testing.T) {
	t.Parallel()
	clock := ratelimittest.NewClock(time.Unix(1_700_000_000, 0))
	l := ratelimit.New(ratelimit.WithClock(clock))
	gate := l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{{ID: "p", Algorithm: ratelimit.TokenBucket, Dynamic: true, Window: time.Second}}})
	take := func(cost, limit int64) ratelimit.Decision {
		d, err := gate.Take(t.Context(), ratelimit.Charge{Key: []byte("k"), Cost: cost, Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	take(20, 20)
	d := take(1, 1)
	if d.Allowed || d.RetryAfter != time.Second {
		t.Errorf("got %+v, want a wait of a second", d)
	}
	clock.Advance(d.RetryAfter - time.Microsecond)
	if d := take(1, 1); d.Allowed || d.RetryAfter != time.Microsecond {
		t.Errorf("before its time: %+v", d)
	}
	clock.Advance(time.Microsecond)
	if d := take(1, 1); !d.Allowed {
		t.Errorf("when it was told to come: %+v", d)
	}
}
