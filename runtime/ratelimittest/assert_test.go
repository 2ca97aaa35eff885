package ratelimittest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

func TestClockMovesOnlyWhenMoved(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	c := NewClock(start)
	c.Advance(time.Minute)
	c.Advance(-time.Second)
	if got := c.Now().Sub(start); got != 59*time.Second {
		t.Errorf("advanced by %v, want 59s", got)
	}
	c.Set(start)
	if !c.Now().Equal(start) {
		t.Errorf("set to %v, want %v", c.Now(), start)
	}
}

// failures collects what a test would have reported.
type failures struct {
	testing.TB
	texts []string
}

func (f *failures) Helper() {}

func (f *failures) Errorf(format string, args ...any) {
	f.texts = append(f.texts, fmt.Sprintf(format, args...))
}

type brokenStore struct{ model }

var errBroken = errors.New("broken")

func (*brokenStore) Take(context.Context, []ratelimit.Op) error { return errBroken }

func TestAdmitsReportsTooFewAndTooMany(t *testing.T) {
	t.Parallel()
	policies := []ratelimit.Policy{{ID: "p", Limit: 3, Window: time.Hour, OnError: ratelimit.DenyOnError}}
	for _, c := range []struct {
		n       int
		options []ratelimit.Option
		want    string
	}{
		{n: 2, want: `policy "p", key "k": 3 calls admitted, want 2`},
		{n: 3},
		{n: 4, want: `policy "p", key "k": 3 calls admitted, want 4: denied by `},
		{n: 0, options: []ratelimit.Option{ratelimit.WithStore("", &brokenStore{})}, want: "call 1: denied by : rate limit store unavailable: broken, want rate limit exceeded"},
	} {
		f := &failures{TB: t}
		Admits(f, ratelimit.New(c.options...).MustGate(&ratelimit.Spec{Policies: policies}), c.n, "k")
		if got := strings.Join(f.texts, "\n"); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("Admits of %d where 3 are: %q, want %q", c.n, got, c.want)
		}
	}
}

func TestRefusedReportsWhatIsNoRefusal(t *testing.T) {
	t.Parallel()
	limited := &ratelimit.Error{Kind: ratelimit.ErrLimited, Decision: ratelimit.Decision{Policy: "p", RetryAfter: time.Minute}}
	for _, c := range []struct {
		err  error
		want string
	}{
		{limited, ""},
		{fmt.Errorf("login: %w", limited), ""},
		{nil, `the call was admitted, want it refused by policy "p"`},
		{errBroken, `error broken, want a refusal by policy "p"`},
		{&ratelimit.Error{Kind: ratelimit.ErrStore, Decision: ratelimit.Decision{Policy: "p"}}, "unavailable, want a refusal"},
		{&ratelimit.Error{Kind: ratelimit.ErrLimited, Decision: ratelimit.Decision{Policy: "q"}}, `refused by policy "q", want "p"`},
	} {
		f := &failures{TB: t}
		after := Refused(f, c.err, "p")
		if got := strings.Join(f.texts, "\n"); (got == "") != (c.want == "") || !strings.Contains(got, c.want) || (after == time.Minute) != (got == "") {
			t.Errorf("%v: %q and %v, want %q", c.err, got, after, c.want)
		}
	}
}

func TestRecorderCountsByPolicyAndByCall(t *testing.T) {
	t.Parallel()
	var seen Recorder
	if _, ok := seen.Last(); ok {
		t.Error("there is a last event before any")
	}
	store := &brokenStore{}
	limiter := ratelimit.New(ratelimit.WithObserver(&seen), ratelimit.WithStore("far", store), ratelimit.WithClock(new(Clock)))
	both := limiter.MustGate(&ratelimit.Spec{Method: "pay.Pay", Policies: []ratelimit.Policy{
		{ID: "user", Limit: 2, Window: time.Hour},
		{ID: "all", Limit: 1, Window: time.Hour, Global: true, Mode: ratelimit.Shadow},
	}})
	local := limiter.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{{ID: "local", Limit: 1, Window: time.Hour, Store: "far"}}})
	deny := limiter.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{
		{ID: "deny", Limit: 1, Window: time.Hour, Store: "far", OnError: ratelimit.DenyOnError},
	}})
	ctx := t.Context()
	for _, key := range []string{"a", "a", "a", ""} {
		_ = both.AllowAll(ctx, []ratelimit.Charge{{Key: []byte(key), Cost: 1}, {Cost: 1}})
	}
	_ = local.Allow(ctx, []byte("a"))
	_ = local.Allow(ctx, []byte("a"))
	_ = deny.Allow(ctx, []byte("a"))
	for policy, want := range map[string]Count{
		"user":  {Admitted: 2, Refused: 1, Failed: 1},
		"all":   {Admitted: 1, Refused: 2},
		"local": {Admitted: 1, Refused: 1, Degraded: 2},
		"deny":  {Failed: 1},
		"none":  {},
	} {
		if got := seen.Count(policy); got != want {
			t.Errorf("policy %s: %+v, want %+v", policy, got, want)
		}
	}
	if got, want := seen.Calls(), (Count{Admitted: 3, Refused: 2, Degraded: 2, Failed: 2}); got != want {
		t.Errorf("calls: %+v, want %+v", got, want)
	}
	if e, ok := seen.Last(); !ok || !errors.Is(e.Err, ratelimit.ErrStore) || len(seen.Events()) != 7 {
		t.Errorf("the last of %d events: %+v", len(seen.Events()), e)
	}
	seen.Reset()
	if n := len(seen.Events()); n != 0 || seen.Calls() != (Count{}) {
		t.Errorf("%d events after a Reset", n)
	}
}

func TestRecorderIsToldByManyAtOnce(t *testing.T) {
	t.Parallel()
	var seen Recorder
	gate := ratelimit.New(ratelimit.WithObserver(&seen)).MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{{ID: "p", Limit: 50, Window: time.Hour}}})
	var calls sync.WaitGroup
	for range 4 {
		calls.Go(func() {
			for range 25 {
				_ = gate.Allow(context.Background(), []byte("k"))
				_, _ = seen.Last()
				_ = seen.Count("p")
			}
		})
	}
	calls.Wait()
	if got, want := seen.Count("p"), (Count{Admitted: 50, Refused: 50}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Without a Clock, a limiter in a bubble of synctest goes by the time of the bubble.
func TestAllOfItWorksInABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var seen Recorder
		limiter := ratelimit.New(ratelimit.WithObserver(&seen))
		gate := limiter.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{{ID: "p", Limit: 3, Window: time.Minute, MaxWait: time.Hour}}})
		Admits(t, gate, 3, "k")
		if after := Refused(t, gate.Allow(t.Context(), []byte("k")), "p"); after != time.Minute {
			t.Errorf("RetryAfter = %v, want a minute", after)
		}
		done := make(chan error, 1)
		go func() { done <- gate.Wait(t.Context(), []ratelimit.Charge{{Key: []byte("k"), Cost: 1}}) }()
		synctest.Wait()
		if n := seen.Calls(); n != (Count{Admitted: 3, Refused: 2}) {
			t.Errorf("while a call waits: %+v", n)
		}
		if err := <-done; err != nil {
			t.Errorf("the call that waits: %v", err)
		}
		Admits(t, gate, 2, "k")
		time.Sleep(time.Minute)
		Admits(t, gate, 3, "k")
		if n := seen.Count("p"); n != (Count{Admitted: 9, Refused: 4}) {
			t.Errorf("at the end: %+v", n)
		}
	})
}
