package ratelimit_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimittest"
)

func TestTheExampleOfAnAlgorithmKeepsTheContract(t *testing.T) {
	t.Parallel()
	ratelimittest.TestAlgorithm(t, slidingCounter{})
}

func TestTheExampleOfAStoreKeepsTheContract(t *testing.T) {
	t.Parallel()
	ratelimittest.TestStore(t, ratelimittest.Harness{New: func(testing.TB) ratelimittest.Subject {
		clock := new(ratelimittest.Clock)
		store := &mapStore{clock: clock, rows: make(map[[2]string]row)}
		return ratelimittest.Subject{
			Limiter: ratelimit.New(ratelimit.WithStore("", store), ratelimit.WithClock(clock)),
			SetTime: func(us int64) { clock.Set(time.UnixMicro(us)) },
		}
	}})
}

// custom is a policy of an algorithm that is registered as "own".
func custom(limit int64) ratelimit.Policy {
	return ratelimit.Policy{ID: "custom", Algorithm: "own", Limit: limit, Window: time.Minute}
}

func TestAnAlgorithmThatIsNotRegisteredIsAnErrorOfTheGate(t *testing.T) {
	t.Parallel()
	own := ratelimit.WithAlgorithm("own", slidingCounter{})
	burst := custom(5)
	burst.Burst = 2
	count := custom(5)
	count.Count = true
	after := custom(5)
	after.CostAfter = true
	segments := custom(5)
	segments.Segments = 5
	for _, c := range []struct {
		name    string
		options []ratelimit.Option
		policy  ratelimit.Policy
		want    string
	}{
		{"not registered", nil, custom(5), `the limiter has no algorithm "own"; give it one with WithAlgorithm`},
		{"registered by another name", []ratelimit.Option{ratelimit.WithAlgorithm("owns", slidingCounter{})}, custom(5), `no algorithm "own"`},
		{"nil", []ratelimit.Option{ratelimit.WithAlgorithm("own", nil)}, custom(5), `algorithm "own" is nil`},
		{"built in", []ratelimit.Option{ratelimit.WithAlgorithm("token-bucket", slidingCounter{})}, custom(5), "built in"},
		{"no name", []ratelimit.Option{ratelimit.WithAlgorithm("", slidingCounter{})}, custom(5), "not a name"},
		{"bad name", []ratelimit.Option{ratelimit.WithAlgorithm("Own\n", slidingCounter{})}, custom(5), "not a name"},
		{"refused by Check", []ratelimit.Option{own}, burst, "burst: there is none"},
		{"count", []ratelimit.Option{own}, count, "count"},
		{"cost after the call", []ratelimit.Option{own}, after, "cost after the call"},
		{"another algorithm's option", []ratelimit.Option{own}, segments, "segments are for sliding-window only"},
		{"in a store without it", []ratelimit.Option{own, ratelimit.WithStore("", &mapStore{})}, custom(5), "algorithm own"},
	} {
		_, err := ratelimit.New(c.options...).Gate(&ratelimit.Spec{Method: "m", Policies: []ratelimit.Policy{c.policy}})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error that says %s", c.name, err, c.want)
		}
	}
	gate, err := ratelimit.Disabled().Gate(&ratelimit.Spec{Method: "m", Policies: []ratelimit.Policy{custom(1)}})
	if err != nil {
		t.Fatalf("a disabled limiter needs no algorithms: %v", err)
	}
	for range 3 {
		if err := gate.Allow(context.Background(), []byte("k")); err != nil {
			t.Errorf("a disabled limiter: %v", err)
		}
	}
}

func TestACustomAlgorithmLocksWaitsAndIsUpdated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, key := t.Context(), []byte("k")
		l := ratelimit.New(ratelimit.WithAlgorithm("own", slidingCounter{}))
		p := custom(2)
		gate := l.MustGate(&ratelimit.Spec{Method: "m", Policies: []ratelimit.Policy{p}})
		ratelimittest.Admits(t, gate, 2, "k")
		begin := time.Now()
		if err := gate.Wait(ctx, []ratelimit.Charge{{Key: key, Cost: 1}}); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(begin); waited != 90*time.Second {
			t.Errorf("waited for %v, want %v", waited, 90*time.Second)
		}
		if err := l.Update("custom", ratelimit.Patch{Limit: new(int64(4))}); err != nil {
			t.Fatal(err)
		}
		if d, _ := gate.Peek(ctx, ratelimit.Charge{Key: key, Cost: 1}); d.Remaining != 2 {
			t.Errorf("%d remain of 4 after the update, want 2, since 1 is charged in this window and half of 2 counts", d.Remaining)
		}
		if err := l.Update("custom", ratelimit.Patch{Burst: new(int64(4))}); err == nil {
			t.Error("an update was not checked by the algorithm")
		}

		p = custom(1)
		p.ID, p.Lock = "locking", []time.Duration{time.Hour}
		gate = l.MustGate(&ratelimit.Spec{Method: "m", Policies: []ratelimit.Policy{p}})
		ratelimittest.Admits(t, gate, 1, "k")
		time.Sleep(time.Hour - time.Minute)
		var e *ratelimit.Error
		if err := gate.Allow(ctx, key); !errors.As(err, &e) || e.Decision.RetryAfter != time.Minute {
			t.Errorf("a locked key: %v", err)
		}
	})
}

// trap is an algorithm that panics at a cost of 13.
type trap struct{ slidingCounter }

func (c trap) Take(q ratelimit.Question, s ratelimit.State) (ratelimit.Outcome, ratelimit.State) {
	if q.Cost == 13 {
		panic("thirteen")
	}
	return c.slidingCounter.Take(q, s)
}

func TestAPanicOfAnAlgorithmLocksNobodyOut(t *testing.T) {
	t.Parallel()
	l := ratelimit.New(ratelimit.WithAlgorithm("own", trap{}), ratelimit.WithMaxKeys(3))
	gate := l.MustGate(&ratelimit.Spec{Method: "m", Policies: []ratelimit.Policy{custom(20)}})
	for i := range 10 {
		func() {
			defer func() {
				if recover() != "thirteen" {
					t.Error("the panic does not reach the caller")
				}
			}()
			_ = gate.AllowN(context.Background(), []byte{'k', byte(i)}, 13)
		}()
	}
	for _, key := range []string{"a", "b", "c"} {
		d, err := gate.Take(context.Background(), ratelimit.Charge{Key: []byte(key), Cost: 1})
		if err != nil || !d.Allowed || d.Degraded {
			t.Errorf("%s after panics: %+v, %v; no room may be lost", key, d, err)
		}
	}
}

// Calls of an algorithm of your own are reserved one after the other.
func TestReserveByACustomAlgorithm(t *testing.T) {
	t.Parallel()
	clock := ratelimittest.NewClock(time.Unix(1_700_000_000, 0))
	l := ratelimit.New(ratelimit.WithClock(clock), ratelimit.WithAlgorithm("own", slidingCounter{}))
	gate := l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{{ID: "p", Algorithm: "own", Limit: 2, Window: time.Minute}}})
	c := ratelimit.Charge{Key: []byte("k"), Cost: 2}
	var last time.Duration
	var made []ratelimit.Reservation
	for i := range 4 {
		r, err := gate.Reserve(t.Context(), c)
		if err != nil || !r.OK() || r.Delay() <= last && i > 0 {
			t.Fatalf("call %d: %+v after %v, %v", i, r.Decision(), last, err)
		}
		last, made = r.Delay(), append(made, r)
	}
	d, err := gate.Take(t.Context(), c)
	if err != nil || d.Allowed || d.Remaining != 0 || d.RetryAfter <= last {
		t.Errorf("%+v, %v", d, err)
	}
	made[3].Cancel()
	if d, err = gate.Take(t.Context(), c); err != nil || d.RetryAfter != last {
		t.Errorf("after the last was cancelled: %+v, %v", d, err)
	}
	clock.Advance(last - time.Microsecond)
	if d, _ := gate.Take(t.Context(), c); d.Allowed {
		t.Errorf("early: %+v", d)
	}
	clock.Advance(time.Microsecond)
	if d, _ := gate.Take(t.Context(), c); !d.Allowed {
		t.Errorf("at its time: %+v", d)
	}
}
