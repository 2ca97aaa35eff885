package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

func perMinute(id string, limit int64) ratelimit.Policy {
	return ratelimit.Policy{ID: id, Limit: limit, Window: time.Minute}
}

func TestWrongWiringIsAnError(t *testing.T) {
	t.Parallel()
	one := []ratelimit.Policy{perMinute("a", 1)}
	elsewhere := perMinute("b", 1)
	elsewhere.Store = "far"
	far := ratelimit.WithStore("far", &recorder{})
	for _, c := range []struct {
		name    string
		limiter *ratelimit.Limiter
		spec    *ratelimit.Spec
		want    string
	}{
		{"RT22 nil limiter", nil, &ratelimit.Spec{Policies: one}, "nil Limiter"},
		{"RT22 zero limiter", &ratelimit.Limiter{}, &ratelimit.Spec{Policies: one}, "zero Limiter"},
		{"RT22 nil store", ratelimit.New(ratelimit.WithStore("far", nil)), &ratelimit.Spec{Policies: one}, `store "far" is nil`},
		{"no keys", ratelimit.New(ratelimit.WithMaxKeys(0)), &ratelimit.Spec{Policies: one}, "less than 1"},
		{"RT22 nil spec", ratelimit.New(), nil, "nil Spec"},
		{"RT22 no policy", ratelimit.New(), &ratelimit.Spec{}, "without policies"},
		{"RT01 zero policy", ratelimit.New(), &ratelimit.Spec{Policies: make([]ratelimit.Policy, 1)}, "without an ID"},
		{"RT01 rate of 0", ratelimit.New(), &ratelimit.Spec{Policies: []ratelimit.Policy{perMinute("a", 0)}}, "limit 0 is less than 1"},
		{"CF01 negative limit", ratelimit.New(), &ratelimit.Spec{Policies: []ratelimit.Policy{perMinute("a", -1)}}, "less than 1"},
		{"disabled, too", ratelimit.Disabled(), &ratelimit.Spec{Policies: []ratelimit.Policy{perMinute("a", 0)}}, "less than 1"},
		{"one identity twice", ratelimit.New(), &ratelimit.Spec{Policies: []ratelimit.Policy{one[0], one[0]}}, "twice"},
		{"unknown store", ratelimit.New(), &ratelimit.Spec{Policies: []ratelimit.Policy{elsewhere}}, `no store "far"`},
		{"two stores", ratelimit.New(far), &ratelimit.Spec{Policies: []ratelimit.Policy{one[0], elsewhere}}, "different stores"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			gate, err := c.limiter.Gate(c.spec)
			if gate != nil || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Gate: %v, %v, want an error with %q", gate, err, c.want)
			}
		})
	}
}

func TestMustGatePanicsWithTheMethodsName(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]*ratelimit.Limiter{"nil": nil, "New": ratelimit.New()} {
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.Contains(text, "pay.Service.Pay") {
					t.Errorf("%s: panic %q does not name the method", name, text)
				}
			}()
			l.MustGate(&ratelimit.Spec{Method: "pay.Service.Pay"})
		}()
	}
}

func TestZeroGateReturnsErrors(t *testing.T) {
	t.Parallel()
	for _, gate := range []*ratelimit.Gate{nil, {}} {
		_, take := gate.Take(t.Context(), ratelimit.Charge{})
		_, peek := gate.Peek(t.Context(), ratelimit.Charge{})
		for i, err := range []error{gate.Allow(t.Context(), nil), gate.AllowN(t.Context(), nil, 1), gate.AllowAll(t.Context(), nil), take, peek, gate.Reset(t.Context())} {
			if err == nil {
				t.Errorf("call %d: no error", i)
			}
		}
	}
}

func TestChargesMustMatchPolicies(t *testing.T) {
	t.Parallel()
	gate := ratelimit.New().MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{perMinute("a", 1), perMinute("b", 1)}})
	for i, err := range []error{gate.Allow(t.Context(), []byte("k")), gate.AllowAll(t.Context(), make([]ratelimit.Charge, 3)), gate.Reset(t.Context(), nil)} {
		if err == nil || !strings.Contains(err.Error(), "has 2 policies") {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

func TestGatesShareThePoliciesOfOneID(t *testing.T) {
	t.Parallel()
	l := ratelimit.New()
	p := perMinute("shared", 1)
	first := l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{p}})
	p.Algorithm = ratelimit.SlidingLog // the default, spelt out
	second := l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{p}})
	if err := first.Allow(t.Context(), []byte("k")); err != nil {
		t.Error(err)
	}
	if err := second.Allow(t.Context(), []byte("k")); !errors.Is(err, ratelimit.ErrLimited) {
		t.Errorf("the other gate: %v, want %v", err, ratelimit.ErrLimited)
	}
	differs := perMinute("shared", 2)
	if _, err := l.Gate(&ratelimit.Spec{Policies: []ratelimit.Policy{perMinute("new", 1), differs}}); err == nil {
		t.Error("a policy of the same ID and another limit was taken")
	}
	if _, err := l.Gate(&ratelimit.Spec{Policies: []ratelimit.Policy{perMinute("new", 5)}}); err != nil {
		t.Errorf("the refused spec left a policy behind: %v", err)
	}
}

func TestDisabledAndOffAdmitAtOnce(t *testing.T) {
	t.Parallel()
	off := perMinute("a", 1)
	off.Mode = ratelimit.Off
	shut := ratelimit.Policy{ID: "a", Limit: ratelimit.Blocked}
	ends := ratelimit.Policy{ID: "a", Algorithm: ratelimit.TimeQuota, Limit: 1, Window: time.Second}
	endsOff := ends
	endsOff.Mode = ratelimit.Off
	for name, gate := range map[string]*ratelimit.Gate{
		"disabled":                    ratelimit.Disabled().MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{shut}}),
		"disabled, of calls that end": ratelimit.Disabled().MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{ends}}),
		"off":                         ratelimit.New().MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{off}}),
		"off, of calls that end":      ratelimit.New().MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{endsOff}}),
	} {
		for range 5 {
			if err := gate.Allow(t.Context(), nil); err != nil {
				t.Errorf("%s: Allow: %v", name, err)
			}
			if d, err := gate.Take(t.Context(), ratelimit.Charge{Cost: -1}); err != nil || !d.Allowed {
				t.Errorf("%s: Take: %+v, %v", name, d, err)
			}
		}
		if err := gate.Reset(t.Context(), nil); err != nil {
			t.Errorf("%s: Reset: %v", name, err)
		}
	}
}

// events is an Observer.
type events []*ratelimit.Event

func (o *events) Decided(_ context.Context, e *ratelimit.Event) { *o = append(*o, e) }

func TestObserverIsToldOfEveryDecision(t *testing.T) {
	t.Parallel()
	var seen events
	shadow := perMinute("shadow", 1)
	shadow.Mode = ratelimit.Shadow
	gate := ratelimit.New(ratelimit.WithObserver(&seen)).MustGate(&ratelimit.Spec{
		Method:   "pay.Service.Pay",
		Policies: []ratelimit.Policy{perMinute("user", 2), shadow},
	})
	ctx, cancel := context.WithCancel(t.Context())
	charges := []ratelimit.Charge{{Key: []byte("eve"), Cost: 1}, {Key: []byte("eve"), Cost: 1}}
	for range 3 {
		_ = gate.AllowAll(ctx, charges)
	}
	charges[0].Key = nil
	noKey := gate.AllowAll(ctx, charges)
	_, _ = gate.Peek(ctx, charges...)
	cancel()
	_ = gate.AllowAll(ctx, charges)

	if len(seen) != 4 {
		t.Fatalf("%d events, want 4", len(seen))
	}
	for i, want := range []ratelimit.Decision{
		{Allowed: true, Policy: "user", Limit: 2, Remaining: 1},
		{Allowed: true, Policy: "user", Limit: 2, Shadow: true},
		{Policy: "user", Limit: 2, Shadow: true, RetryAfter: seen[2].Decision.RetryAfter},
		{Policy: "user", Limit: 2, RetryAfter: ratelimit.Never},
	} {
		e := seen[i]
		d := e.Decision
		d.ResetAt = time.Time{}
		if e.Method != "pay.Service.Pay" || d != want || (e.Err != nil) != (i == 3) {
			t.Errorf("event %d: %+v, want %+v", i, e, want)
		}
		if i < 3 && (len(e.Ops) != 2 || e.Ops[0].Key != "eve" || e.Ops[1].Policy.ID != "shadow" || e.Ops[1].Outcome.Allowed != (i == 0)) {
			t.Errorf("event %d: ops %+v", i, e.Ops)
		}
	}
	if seen[3].Err != noKey || !errors.Is(noKey, ratelimit.ErrNoKey) {
		t.Errorf("the caller got %v, the observer %v", noKey, seen[3].Err)
	}
}

func TestRT21LimitersLeaveNoGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	for i := range 1000 {
		gate := ratelimit.New().MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{perMinute("a", 1)}})
		if err := gate.Allow(t.Context(), fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines, %d before", after, before)
	}
}
