package ratelimit_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimitgen/ratelimitgen/internal/waited"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// ender is a Store that admits all, and remembers what it is told.
type ender struct {
	mu   sync.Mutex
	err  error
	slow time.Duration
	ids  []uint64
	ends []ratelimit.End
	told []int // ends told before each take and reset
	// sooner is by how much the last take counts from before it was asked; -1 if not at all.
	sooner time.Duration
}

func (*ender) Supports(*ratelimit.Policy) error { return nil }

func (e *ender) Reset(context.Context, *ratelimit.Policy, string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.told = append(e.told, len(e.ends))
	return nil
}

func (e *ender) Take(ctx context.Context, ops []ratelimit.Op) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sooner = -1
	if at, ok := waited.Start(ctx); ok {
		e.sooner = time.Since(at)
	}
	e.told = append(e.told, len(e.ends))
	for i := range ops {
		e.ids = append(e.ids, ops[i].ID)
		ops[i].Outcome = ratelimit.Outcome{Allowed: true}
	}
	return e.err
}

func (e *ender) End(_ context.Context, ends []ratelimit.End) error {
	time.Sleep(e.slow)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ends = append(e.ends, ends...)
	return nil
}

// whats returns what was told, and forgets it.
func (e *ender) whats() (whats []ratelimit.Ending) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, end := range e.ends {
		whats = append(whats, end.What)
	}
	e.ends = nil
	return whats
}

func (e *ender) gate(t *testing.T, policies ...ratelimit.Policy) *ratelimit.Gate {
	t.Helper()
	for i := range policies {
		policies[i].ID = "p" + string(rune('0'+i))
	}
	gate, err := ratelimit.New(ratelimit.WithStore("", e)).Gate(&ratelimit.Spec{Policies: policies})
	if err != nil {
		t.Fatal(err)
	}
	return gate
}

func TestStoreIsToldHoweverTheCallEnds(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(){
		"return": func() {},
		"panic":  func() { panic("in the call") },
		"Goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := new(ender)
				gate := e.gate(t,
					ratelimit.Policy{Algorithm: ratelimit.Concurrency, Limit: 1, Lease: time.Hour},
					ratelimit.Policy{Limit: 5, Window: time.Hour, Count: true},
					ratelimit.Policy{Algorithm: ratelimit.TimeQuota, Limit: 5, Window: time.Hour},
					ratelimit.Policy{Limit: 5, Window: time.Hour, CostAfter: true},
					ratelimit.Policy{Limit: 5, Window: time.Hour},
				)
				charges := slices.Repeat(one("k"), 5)
				done := make(chan struct{})
				go func() {
					defer close(done)
					defer func() { _ = recover() }()
					permit, err := gate.Acquire(t.Context(), charges)
					if err != nil {
						t.Error(err)
					}
					defer permit.Release()
					permit.Charge(3, 7)
					permit.Charge(4, 7) // is not charged after the call
					time.Sleep(3 * time.Second)
					call()
				}()
				<-done
				synctest.Wait()
				want := []ratelimit.End{
					{ID: e.ids[0], What: ratelimit.EndCharge, Units: 7},
					{ID: e.ids[0], What: ratelimit.EndGiveBack},
					{ID: e.ids[0], What: ratelimit.EndGiveBack},
					{ID: e.ids[0], What: ratelimit.EndFinish, Units: 3_000_000},
				}
				if len(e.ends) != len(want) {
					t.Fatalf("told %+v", e.ends)
				}
				for i, end := range e.ends {
					p := []string{"p3", "p0", "p1", "p2"}[i]
					if end.ID != want[i].ID || end.What != want[i].What || end.Units != want[i].Units || end.Key != "k" || end.Policy.ID != p || end.Limit < 1 {
						t.Errorf("told %+v of %s, want %+v of %s", end, end.Policy.ID, want[i], p)
					}
				}
				// Those that may end have an ID, which is one for all.
				if id := e.ids[0]; id == 0 || !slices.Equal(e.ids, []uint64{id, id, id, 0, 0}) {
					t.Errorf("IDs %d", e.ids)
				}
			})
		})
	}
}

func TestPlacesInAStoreAreRenewedWhileTheCallRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := new(ender)
		gate := e.gate(t, ratelimit.Policy{Algorithm: ratelimit.Concurrency, Limit: 1, Lease: 10 * time.Second})
		permit, err := gate.Acquire(t.Context(), one("k"))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5*time.Second - time.Microsecond)
		synctest.Wait()
		if got := e.whats(); len(got) != 0 {
			t.Errorf("before half of the lease: %v", got)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := e.whats(); !slices.Equal(got, []ratelimit.Ending{ratelimit.EndRenew, ratelimit.EndRenew}) {
			t.Errorf("in one and a half leases: %v", got)
		}
		permit.Release()
		permit.Release()
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := e.whats(); !slices.Equal(got, []ratelimit.Ending{ratelimit.EndGiveBack}) {
			t.Errorf("after the release: %v", got)
		}
	})
}

//go:noinline
func acquireAndForget(t *testing.T, gate *ratelimit.Gate) {
	if _, err := gate.Acquire(t.Context(), one("k")); err != nil {
		t.Error(err)
	}
}

func TestPlaceOfAForgottenPermitIsNotRenewedForever(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := new(ender)
		gate := e.gate(t, ratelimit.Policy{Algorithm: ratelimit.Concurrency, Limit: 1, Lease: 10 * time.Second})
		acquireAndForget(t, gate)
		for range 10 {
			runtime.GC()
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if len(e.whats()) == 0 {
				return
			}
		}
		t.Error("it is still renewed")
	})
}

func TestACallSeesWhatEndedBeforeInItsProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &ender{slow: 30 * time.Millisecond}
		gate := e.gate(t, ratelimit.Policy{Algorithm: ratelimit.Concurrency, Limit: 1})
		for range 3 {
			permit, err := gate.Acquire(t.Context(), one("k"))
			if err != nil {
				t.Fatal(err)
			}
			permit.Release()
		}
		if err := gate.Reset(t.Context(), []byte("k")); err != nil {
			t.Error(err)
		}
		if !slices.Equal(e.told, []int{0, 1, 2, 3}) {
			t.Errorf("takes and a reset after %d ends", e.told)
		}
		// But it waits for no more than a moment, and only once.
		time.Sleep(time.Second)
		synctest.Wait()
		e.slow = time.Hour
		for i, longest := range []time.Duration{50 * time.Millisecond, 50 * time.Millisecond, 0} {
			start := time.Now()
			permit, err := gate.Acquire(t.Context(), one("k"))
			if err != nil {
				t.Fatal(err)
			}
			permit.Release()
			if d := time.Since(start); d > longest {
				t.Errorf("call %d took %v", i, d)
			}
			// The store knows how long it has waited, and has so much less to wait.
			if want := []time.Duration{-1, 50 * time.Millisecond, -1}[i]; e.sooner != want {
				t.Errorf("the store was told that call %d began %v ago, want %v", i, e.sooner, want)
			}
		}
		if permit, err := gate.Acquire(t.Context(), one("other")); err != nil {
			t.Error(err)
		} else {
			permit.Release()
		}
		time.Sleep(3 * time.Hour)
	})
}

func TestACallOfWhichNothingIsKnownIsGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &ender{err: errors.New("connection reset")}
		gate := e.gate(t, ratelimit.Policy{Algorithm: ratelimit.Concurrency, Limit: 1})
		permit, err := gate.Acquire(t.Context(), one("k")) // is decided here
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := e.whats(); !slices.Equal(got, []ratelimit.Ending{ratelimit.EndGiveBack}) {
			t.Errorf("told %v", got)
		}
		if _, err := gate.Acquire(t.Context(), one("k")); !errors.Is(err, ratelimit.ErrLimited) {
			t.Errorf("a second place: %v", err)
		}
		permit.Release()
		synctest.Wait()
		e.whats()
		if permit, err = gate.Acquire(t.Context(), one("k")); err != nil {
			t.Errorf("after the release: %v", err)
		}
		permit.Release()
	})
}

func TestACallThatLeavesTheQueueOfAStoreSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &delaying{}
		gate := ratelimit.New(ratelimit.WithStore("", e)).MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{
			{ID: "q", Algorithm: ratelimit.LeakyBucket, Limit: 5, Window: time.Minute},
		}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := gate.Allow(ctx, []byte("k")); !errors.Is(err, ratelimit.ErrLimited) {
			t.Errorf("a call that cannot wait for its turn: %v", err)
		}
		synctest.Wait()
		if got := e.whats(); !slices.Equal(got, []ratelimit.Ending{ratelimit.EndLeave}) || e.ids[0] == 0 {
			t.Errorf("told %v of %d", got, e.ids)
		}
	})
}

// delaying is an ender that has calls wait.
type delaying struct{ ender }

func (d *delaying) Take(ctx context.Context, ops []ratelimit.Op) error {
	err := d.ender.Take(ctx, ops)
	for i := range ops {
		ops[i].Outcome.Delay = time.Minute
	}
	return err
}
