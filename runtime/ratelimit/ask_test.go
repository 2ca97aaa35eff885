package ratelimit_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

func TestOnErrorDecidesWhenTheStoreFails(t *testing.T) {
	t.Parallel()
	trouble := errors.New("connection refused")
	for _, c := range []struct {
		name     string
		policies []ratelimit.Policy
		admitted int  // of 5 calls
		err      bool // of the others; or else they are refused
	}{
		{"local", []ratelimit.Policy{{Limit: 2, Window: time.Hour}}, 2, false},
		{"allow", []ratelimit.Policy{{Limit: 2, Window: time.Hour, OnError: ratelimit.AllowOnError}}, 5, false},
		{"deny", []ratelimit.Policy{{Limit: 2, Window: time.Hour, OnError: ratelimit.DenyOnError}}, 0, true},
		{"allow and local", []ratelimit.Policy{{Limit: 1, Window: time.Hour, OnError: ratelimit.AllowOnError}, {Limit: 3, Window: time.Hour}}, 3, false},
		{"local and deny", []ratelimit.Policy{{Limit: 3, Window: time.Hour}, {Limit: 3, Window: time.Hour, OnError: ratelimit.DenyOnError}}, 0, true},
		{"local and a shadow that denies", []ratelimit.Policy{{Limit: 3, Window: time.Hour}, {Limit: 3, Window: time.Hour, OnError: ratelimit.DenyOnError, Mode: ratelimit.Shadow}}, 3, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var seen events
			for i := range c.policies {
				c.policies[i].ID = string(rune('a' + i))
			}
			r := &recorder{err: trouble}
			gate := ratelimit.New(ratelimit.WithStore("", r), ratelimit.WithObserver(&seen)).MustGate(&ratelimit.Spec{Policies: c.policies})
			charges := make([]ratelimit.Charge, len(c.policies))
			for i := range charges {
				charges[i] = ratelimit.Charge{Key: []byte("k"), Cost: 1}
			}
			admitted := 0
			for range 5 {
				d, err := gate.Take(t.Context(), charges...)
				switch {
				case err != nil:
					if !c.err || !errors.Is(err, ratelimit.ErrStore) || !errors.Is(err, trouble) {
						t.Errorf("Take: %v", err)
					}
				case !d.Degraded:
					t.Errorf("not marked as degraded: %+v", d)
				case d.Allowed:
					admitted++
				}
			}
			if admitted != c.admitted {
				t.Errorf("%d of 5 admitted, want %d", admitted, c.admitted)
			}
			for _, e := range seen {
				if !errors.Is(e.Err, trouble) || e.Decision.Degraded == c.err {
					t.Errorf("the observer was told %+v", e)
				}
			}
			r.err = nil
			r.outcomes = map[string]ratelimit.Outcome{"a": {Allowed: true, Remaining: 1}, "b": {Allowed: true, Remaining: 1}}
			if d, err := gate.Take(t.Context(), charges...); err != nil || !d.Allowed || d.Degraded {
				t.Errorf("when the store is back: %+v, %v", d, err)
			}
		})
	}
}

// cancelling is a Store that fails because the caller went away.
type cancelling struct {
	recorder
	cancel context.CancelFunc
}

func (c *cancelling) Take(ctx context.Context, _ []ratelimit.Op) error {
	c.cancel()
	return ctx.Err()
}

func TestCallThatEndsWhileTheStoreIsAskedIsNotDecided(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var seen events
	gate := ratelimit.New(ratelimit.WithStore("", &cancelling{cancel: cancel}), ratelimit.WithObserver(&seen)).MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{perMinute("a", 1)}})
	if err := gate.Allow(ctx, []byte("k")); err != context.Canceled {
		t.Errorf("Allow: %v, want %v", err, context.Canceled)
	}
	if len(seen) > 0 {
		t.Errorf("the observer was told %+v", seen)
	}
}

// punctual is a Store that leaves at the deadline of the caller.
type punctual struct{ recorder }

func (p *punctual) Take(ctx context.Context, _ []ratelimit.Op) error {
	at, _ := ctx.Deadline()
	time.Sleep(time.Until(at))
	return context.DeadlineExceeded
}

// tardy is a context whose timer comes late.
type tardy struct {
	context.Context
	at time.Time
}

func (c tardy) Deadline() (time.Time, bool) { return c.at, true }

func TestCallThatEndsByItsDeadlineIsNotDecidedThoughTheStoreKnowsFirst(t *testing.T) {
	t.Parallel()
	var seen events
	gate := ratelimit.New(ratelimit.WithStore("", new(punctual)), ratelimit.WithObserver(&seen)).MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{perMinute("a", 1)}})
	ctx := tardy{t.Context(), time.Now().Add(time.Millisecond)}
	if err := gate.Allow(ctx, []byte("k")); err != context.DeadlineExceeded {
		t.Errorf("Allow: %v, want %v", err, context.DeadlineExceeded)
	}
	if len(seen) > 0 {
		t.Errorf("the observer was told %+v", seen)
	}
}

func TestReplicasShareTheLimitWhenTheStoreFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		policy   ratelimit.Policy
		replicas int
		costs    []int64
		want     []int64 // Remaining after each, or -1 if it is refused
	}{
		{"one", ratelimit.Policy{Limit: 2}, 1, []int64{1, 1, 1}, []int64{1, 0, -1}},
		{"rounded down", ratelimit.Policy{Limit: 11}, 3, []int64{0, 1, 1, 1, 1}, []int64{3, 2, 1, 0, -1}},
		{"a call in any case", ratelimit.Policy{Limit: 2}, 100, []int64{0, 1, 1}, []int64{1, 0, -1}},
		{"burst", ratelimit.Policy{Algorithm: ratelimit.TokenBucket, Limit: 1, Burst: 10}, 5, []int64{1, 1, 1}, []int64{1, 0, -1}},
		{"fixed window", ratelimit.Policy{Algorithm: ratelimit.FixedWindow, Limit: 10}, 2, []int64{2, 2, 2, 1, 1}, []int64{3, 1, -1, 0, -1}},
		{"a cost above the part", ratelimit.Policy{Limit: 10}, 5, []int64{7, 1}, []int64{0, -1}},
		{"a cost above the part, later", ratelimit.Policy{Limit: 10}, 5, []int64{1, 7, 1}, []int64{1, -1, 0}},
		{"the largest limit", ratelimit.Policy{Algorithm: ratelimit.FixedWindow, Limit: ratelimit.MaxLimit}, ratelimit.MaxReplicas, []int64{ratelimit.MaxLimit, 1}, []int64{0, -1}},
		{"shadow", ratelimit.Policy{Limit: 4, Mode: ratelimit.Shadow}, 4, []int64{1, 1}, []int64{0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var seen events
			c.policy.ID, c.policy.Global, c.policy.Window = "a", true, time.Hour
			trouble := errors.New("connection refused")
			gate := ratelimit.New(ratelimit.WithStore("", &recorder{err: trouble}), ratelimit.WithReplicas(c.replicas), ratelimit.WithObserver(&seen)).
				MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{c.policy}})
			for i, cost := range c.costs {
				d, err := gate.Take(t.Context(), ratelimit.Charge{Cost: cost})
				if err != nil || !d.Degraded || d.Allowed != (c.want[i] >= 0) || d.Allowed && d.Remaining != c.want[i] || d.Limit != c.policy.Capacity() {
					t.Errorf("call %d of cost %d: %+v, %v, want %d left", i, cost, d, err, c.want[i])
				}
			}
			for i, e := range seen {
				if len(seen) != len(c.costs) || !errors.Is(e.Err, trouble) || !e.Decision.Degraded || e.Ops[0].Cost != c.costs[i] {
					t.Errorf("the observer was told %+v, as one of %d", e, len(seen))
				}
			}
		})
	}
	for _, n := range []int{-1, 0, ratelimit.MaxReplicas + 1} {
		if _, err := ratelimit.New(ratelimit.WithReplicas(n)).Gate(&ratelimit.Spec{Policies: []ratelimit.Policy{perMinute("a", 1)}}); err == nil {
			t.Errorf("%d replicas are no error", n)
		}
	}
}

// Together the replicas stay within the limit, or within a call for each of them.
func TestReplicasTogetherStayWithinTheLimit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit, replicas := rapid.Int64Range(1, 50).Draw(t, "limit"), rapid.IntRange(1, 20).Draw(t, "replicas")
		most := rapid.Int64Range(1, limit).Draw(t, "largest cost")
		var total int64
		for range replicas {
			gate := ratelimit.New(ratelimit.WithStore("", &recorder{err: errors.New("gone")}), ratelimit.WithReplicas(replicas)).
				MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{{ID: "a", Global: true, Limit: limit, Window: time.Hour}}})
			for i := range 2 * limit {
				cost := rapid.Int64Range(1, most).Draw(t, "cost")
				d, err := gate.Take(context.Background(), ratelimit.Charge{Cost: cost})
				if err != nil || i == 0 && !d.Allowed {
					t.Fatalf("call %d: %+v, %v", i, d, err)
				}
				if d.Allowed {
					total += cost
				}
			}
		}
		if bound := max(limit, int64(replicas)*most); total > bound {
			t.Fatalf("%d units were admitted, and the bound is %d", total, bound)
		}
	})
}

// able is a Store that supports some policies that others do not.
type able struct{ recorder }

func (*able) Supports(p *ratelimit.Policy) error {
	if p.Algorithm == ratelimit.LeakyBucket {
		return errors.New("algorithm leaky-bucket")
	}
	return nil
}

func TestPolicyThatItsStoreDoesNotSupportIsAnError(t *testing.T) {
	t.Parallel()
	const window = time.Minute
	plain := ratelimit.WithStore("far", &recorder{})
	for _, c := range []struct {
		policy ratelimit.Policy
		store  ratelimit.Option
		want   string // "" if it is supported
	}{
		{ratelimit.Policy{Limit: 1, Window: window}, plain, ""},
		{ratelimit.Policy{Limit: 1, Algorithm: ratelimit.TokenBucket, Burst: 2, Window: window}, plain, ""},
		{ratelimit.Policy{Limit: 1, Algorithm: ratelimit.SlidingWindow, Window: window}, plain, "algorithm sliding-window"},
		{ratelimit.Policy{Limit: 1, Algorithm: ratelimit.LeakyBucket, Window: window}, plain, "algorithm leaky-bucket"},
		{ratelimit.Policy{Limit: 1, Algorithm: ratelimit.Concurrency}, plain, "algorithm concurrency is supported in memory and by stores that are Enders only"},
		{ratelimit.Policy{Limit: 1, Algorithm: ratelimit.TimeQuota, Window: window}, plain, "algorithm time-quota is supported in memory and by stores that are Enders only"},
		{ratelimit.Policy{Limit: 1, Window: window, Count: true}, plain, "count is supported in memory and by stores that are Enders only"},
		{ratelimit.Policy{Limit: 1, Window: window, CostAfter: true}, plain, "a cost after the call is supported in memory and by stores that are Enders only"},
		{ratelimit.Policy{Dynamic: true, Window: window}, plain, "a limit that each call brings"},
		{ratelimit.Policy{Limit: 1, Window: window, Lock: []time.Duration{window}}, plain, "lock"},
		{ratelimit.Policy{Limit: 1, Algorithm: ratelimit.TokenBucket, Window: window, Initial: ratelimit.Empty}, plain, "initial"},
		{ratelimit.Policy{Limit: 1, Algorithm: ratelimit.TokenBucket, Window: window, Refill: ratelimit.Interval}, plain, "refill interval"},
		{ratelimit.Policy{Limit: 1, Algorithm: ratelimit.TokenBucket, Window: window, Warmup: window}, plain, "warmup"},
		{ratelimit.Policy{Limit: 1, Algorithm: ratelimit.FixedWindow, Align: ratelimit.AlignDay}, plain, "align"},
		{ratelimit.Policy{Dynamic: true, Window: window}, ratelimit.WithStore("far", &able{}), ""},
		{ratelimit.Policy{Limit: 1, Algorithm: ratelimit.LeakyBucket, Window: window}, ratelimit.WithStore("far", &able{}), "algorithm leaky-bucket"},
		{ratelimit.Policy{Limit: 1, Window: window, Count: true}, ratelimit.WithStore("far", &able{}), "count is supported in memory and by stores that are Enders only"},
	} {
		c.policy.ID, c.policy.Store = "login", "far"
		gate, err := ratelimit.New(c.store).Gate(&ratelimit.Spec{Policies: []ratelimit.Policy{c.policy}})
		if c.want == "" {
			if err != nil {
				t.Errorf("%+v: %v", c.policy, err)
			}
			continue
		}
		if gate != nil || err == nil {
			t.Errorf("%+v: no error, want %q", c.policy, c.want)
			continue
		}
		for _, want := range []string{c.want, `"login"`, `"far"`} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: error %q does not say %q", c.policy, err, want)
			}
		}
	}
}

func TestStoreIsToldTheLimitOfTheCall(t *testing.T) {
	t.Parallel()
	r := &able{recorder{outcomes: map[string]ratelimit.Outcome{"a": {Allowed: true, Remaining: 6}}}}
	gate := ratelimit.New(ratelimit.WithStore("", r)).MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{{ID: "a", Dynamic: true, Window: time.Minute}}})
	d, err := gate.Take(t.Context(), ratelimit.Charge{Key: []byte("k"), Cost: 1, Limit: 7})
	if err != nil || d.Limit != 7 || len(r.ops) != 1 || r.ops[0].Limit != 7 {
		t.Errorf("%+v, %v, asked for %+v", d, err, r.ops)
	}
	if _, err := gate.Acquire(t.Context(), []ratelimit.Charge{{Key: []byte("k"), Cost: 1, Limit: 7}}); err == nil || len(r.ops) != 1 {
		t.Errorf("a permit on a store: %v", err)
	}
}
