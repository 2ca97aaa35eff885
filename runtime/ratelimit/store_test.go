package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// recorder is a Store that answers with outcomes, or fails.
type recorder struct {
	outcomes map[string]ratelimit.Outcome
	err      error
	ops      []ratelimit.Op
	resets   []string
}

func (r *recorder) Take(_ context.Context, ops []ratelimit.Op) error {
	r.ops = append(r.ops, slices.Clone(ops)...)
	for i := range ops {
		ops[i].Outcome = r.outcomes[ops[i].Policy.ID]
	}
	return r.err
}

func (r *recorder) Reset(_ context.Context, p *ratelimit.Policy, key string) error {
	r.resets = append(r.resets, p.ID+"/"+key)
	return r.err
}

func TestStoreIsAskedForWhatNeedsCounting(t *testing.T) {
	t.Parallel()
	r := &recorder{outcomes: map[string]ratelimit.Outcome{
		"a": {Allowed: true, Remaining: 4, ResetAfter: time.Second},
		"b": {Allowed: true, Remaining: 2, ResetAfter: time.Minute},
	}}
	gate := ratelimit.New(ratelimit.WithStore("far", r)).MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{
		{ID: "a", Limit: 5, Window: time.Minute, Global: true, Store: "far"},
		{ID: "off", Limit: 5, Window: time.Minute, Mode: ratelimit.Off, Store: "far"},
		{ID: "b", Limit: 5, Window: time.Minute, Store: "far"},
		{ID: "unlimited", Limit: ratelimit.Unlimited, Store: "far"},
		{ID: "blocked", Limit: ratelimit.Blocked, Mode: ratelimit.Shadow, Store: "far"},
	}})
	k := []byte("k")
	charges := []ratelimit.Charge{{Key: k, Cost: 1}, {Cost: -1}, {Key: k, Cost: 2}, {Cost: 1 << 40}, {Cost: 1}}
	//lint:ignore SA1012 a nil context is allowed
	d, err := gate.Take(nil, charges...)
	if err != nil || !d.Allowed || d.Policy != "b" || d.Remaining != 2 || d.Limit != 5 || !d.Shadow {
		t.Errorf("Take: %+v, %v", d, err)
	}
	if len(r.ops) != 2 || r.ops[0].Policy.ID != "a" || r.ops[0].Key != "" || r.ops[0].Cost != 1 ||
		r.ops[1].Policy.ID != "b" || r.ops[1].Key != "k" || r.ops[1].Cost != 2 {
		t.Errorf("the store was asked for %+v", r.ops)
	}
	r.ops = nil
	charges[2].Cost = 3
	r.outcomes["b"] = ratelimit.Outcome{Remaining: 2, RetryAfter: time.Second, ResetAfter: time.Minute}
	if d, err := gate.Peek(t.Context(), charges...); err != nil || d.Allowed || d.Policy != "b" || d.RetryAfter != time.Second {
		t.Errorf("Peek at 3 where 2 remain: %+v, %v", d, err)
	}
	for _, op := range r.ops {
		if !op.Peek || op.Cost == 0 {
			t.Errorf("Peek takes from the store: %+v", op)
		}
	}
	if err := gate.Reset(t.Context(), k, k, k, k, k); err != nil || !slices.Equal(r.resets, []string{"a/", "b/k"}) {
		t.Errorf("Reset: %v, %v", r.resets, err)
	}
	r.resets = nil
	if err := gate.Reset(t.Context(), nil, nil, nil, nil, nil); err != nil || !slices.Equal(r.resets, []string{"a/"}) {
		t.Errorf("Reset of no key: %v, %v", r.resets, err)
	}
}

func TestStoreTroubleIsNoRefusal(t *testing.T) {
	t.Parallel()
	trouble := errors.New("redis 127.0.0.1:6379: connection refused")
	gate := ratelimit.New(ratelimit.WithStore("", &recorder{err: trouble})).MustGate(&ratelimit.Spec{
		Method:   "pay.Service.Pay",
		File:     "pay.go",
		Policies: []ratelimit.Policy{{ID: "a", Directive: "max=5", Limit: 5, Window: time.Minute, OnError: ratelimit.DenyOnError}},
	})
	err := gate.Allow(t.Context(), []byte("k"))
	if !errors.Is(err, ratelimit.ErrStore) || errors.Is(err, ratelimit.ErrLimited) || !errors.Is(err, trouble) {
		t.Errorf("Allow: %v", err)
	}
	want := `denied by pay.Service.Pay (pay.go) "max=5": rate limit store unavailable: redis 127.0.0.1:6379: connection refused`
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
	if err := gate.Reset(t.Context(), []byte("k")); !errors.Is(err, ratelimit.ErrStore) {
		t.Errorf("Reset: %v", err)
	}
}

func TestBlockedMethodReachesNoStoreAndChargesNothing(t *testing.T) {
	t.Parallel()
	r := &recorder{}
	gate := ratelimit.New(ratelimit.WithStore("", r)).MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{
		{ID: "a", Limit: 5, Window: time.Minute},
		{ID: "shut", Limit: ratelimit.Blocked},
	}})
	d, err := gate.Take(t.Context(), ratelimit.Charge{Key: []byte("k"), Cost: 1}, ratelimit.Charge{Cost: 1})
	want := ratelimit.Decision{Policy: "shut", RetryAfter: ratelimit.Never}
	if err != nil || d != want || len(r.ops) != 0 {
		t.Errorf("%+v, %v, after asking for %v", d, err, r.ops)
	}
}

func TestUnlimitedMethodReachesNoStore(t *testing.T) {
	t.Parallel()
	r := &recorder{}
	gate := ratelimit.New(ratelimit.WithStore("", r)).MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{{ID: "a", Limit: ratelimit.Unlimited}}})
	d, err := gate.Take(t.Context(), ratelimit.Charge{Cost: 1 << 62})
	want := ratelimit.Decision{Allowed: true, Policy: "a", Limit: ratelimit.Unlimited, Remaining: ratelimit.Unlimited}
	if err != nil || d != want || len(r.ops) != 0 {
		t.Errorf("%+v, %v, after asking for %v", d, err, r.ops)
	}
	if err := gate.AllowN(t.Context(), nil, -1); err != nil {
		t.Errorf("a negative cost: %v", err)
	}
}

// An absent cost arrives as -1.
func TestUnlimitedAdmitsEveryCost(t *testing.T) {
	t.Parallel()
	unlimited := ratelimit.Policy{ID: "p", Limit: ratelimit.Unlimited}
	timed := ratelimit.Policy{ID: "p", Limit: 5, Window: time.Minute}
	bursts := ratelimit.Policy{ID: "p", Limit: 5, Window: time.Minute, Algorithm: ratelimit.TokenBucket}
	blocked := ratelimit.Policy{ID: "p", Limit: ratelimit.Blocked}
	brought := ratelimit.Policy{ID: "p", Window: time.Minute, Dynamic: true}
	shadow := ratelimit.Policy{ID: "p", Limit: ratelimit.Unlimited, Mode: ratelimit.Shadow}
	updated := func(l *ratelimit.Limiter) error {
		limit := int64(ratelimit.Unlimited)
		return l.Update("p", ratelimit.Patch{Limit: &limit})
	}
	excepted := func(l *ratelimit.Limiter) error {
		return l.Update("p", ratelimit.Patch{Exceptions: limits(map[string]int64{"k": ratelimit.Unlimited})})
	}
	for name, test := range map[string]struct {
		policy  ratelimit.Policy
		limit   int64
		prepare func(*ratelimit.Limiter) error
		want    error
	}{
		"declared":            {unlimited, 0, nil, nil},
		"shadow":              {shadow, 0, nil, nil},
		"updated":             {timed, 0, updated, nil},
		"an updated bucket":   {bursts, 0, updated, nil},
		"by an exception":     {timed, 0, excepted, nil},
		"brought by the call": {brought, ratelimit.Unlimited, nil, nil},
		"limited":             {timed, 0, nil, ratelimit.ErrCost},
		"limited by the call": {brought, 5, nil, ratelimit.ErrCost},
		"blocked":             {blocked, 0, nil, ratelimit.ErrLimited},
		"blocked by the call": {brought, 0, nil, ratelimit.ErrLimited},
	} {
		for _, beside := range []bool{false, true} {
			events := &sums{}
			l := ratelimit.New(ratelimit.WithObserver(events))
			spec := &ratelimit.Spec{Policies: []ratelimit.Policy{test.policy}}
			charges := []ratelimit.Charge{{Key: []byte("k"), Cost: -1, Limit: test.limit}}
			if beside {
				spec.Policies = append(spec.Policies, ratelimit.Policy{ID: "other", Limit: 1, Window: time.Minute, Global: true})
				charges = append(charges, ratelimit.Charge{Cost: 1})
			}
			gate := l.MustGate(spec)
			if test.prepare != nil {
				if err := test.prepare(l); err != nil {
					t.Fatal(err)
				}
			}
			if err := gate.AllowAll(t.Context(), charges); !errors.Is(err, test.want) {
				t.Errorf("%s, beside another %t: %v, not %v", name, beside, err, test.want)
			}
			if events.negative {
				t.Errorf("%s: an observer is told of a negative cost", name)
			}
			if beside && test.want == nil {
				if err := gate.AllowAll(t.Context(), charges); !errors.Is(err, ratelimit.ErrLimited) {
					t.Errorf("%s: the other policy does not refuse the second call: %v", name, err)
				}
			}
		}
	}
}

// sums notes whether it was told of a negative cost.
type sums struct{ negative bool }

func (s *sums) Decided(_ context.Context, e *ratelimit.Event) {
	for _, op := range e.Ops {
		s.negative = s.negative || op.Cost < 0
	}
}

// aheadStore is a recorder that reserves and blocks.
type aheadStore struct {
	recorder
	wait      time.Duration
	cancelled []string
	blocked   []string
}

func (s *aheadStore) Reserve(ctx context.Context, ops []ratelimit.Op, wait time.Duration) (string, error) {
	s.wait = wait
	return "r1", s.Take(ctx, ops)
}

func (s *aheadStore) Cancel(_ context.Context, ops []ratelimit.Op, name string) error {
	for i := range ops {
		s.cancelled = append(s.cancelled, fmt.Sprintf("%s %s/%s %d", name, ops[i].Policy.ID, ops[i].Key, ops[i].Cost))
	}
	return s.err
}

func (s *aheadStore) Block(_ context.Context, p *ratelimit.Policy, key string, d time.Duration) error {
	s.blocked = append(s.blocked, fmt.Sprintf("%s/%s %v", p.ID, key, d))
	return s.err
}

func TestStoreReservesAndBlocks(t *testing.T) {
	t.Parallel()
	s := &aheadStore{recorder: recorder{outcomes: map[string]ratelimit.Outcome{
		"a": {Allowed: true, Remaining: 4, Delay: 3 * time.Second},
		"b": {Allowed: true, Remaining: 2, Delay: 3 * time.Second},
	}}}
	gate := ratelimit.New(ratelimit.WithStore("", s)).MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{
		{ID: "a", Limit: 5, Window: time.Minute, MaxWait: time.Hour},
		{ID: "b", Limit: 5, Window: time.Minute, Global: true},
	}})
	k := []byte("k")
	r, err := gate.ReserveWithin(t.Context(), time.Minute, ratelimit.Charge{Key: k, Cost: 1}, ratelimit.Charge{Cost: 2})
	if err != nil || !r.OK() || r.Delay() != 3*time.Second || r.Decision().Policy != "b" || s.wait != time.Minute {
		t.Fatalf("%+v, %v, within %v", r.Decision(), err, s.wait)
	}
	copy(k, "x") // the key is the caller's again
	r.Cancel()
	if !slices.Equal(s.cancelled, []string{"r1 a/k 1", "r1 b/ 2"}) {
		t.Errorf("cancelled %q", s.cancelled)
	}
	if err := gate.Block(t.Context(), time.Second, k, nil); err != nil || !slices.Equal(s.blocked, []string{"a/x 1s", "b/ 1s"}) {
		t.Errorf("blocked %q, %v", s.blocked, err)
	}

	// When the store fails, the policies decide in memory, where the keys are blocked, too.
	s.err = errors.New("connection refused")
	if r, err := gate.Reserve(t.Context(), ratelimit.Charge{Key: k, Cost: 1}, ratelimit.Charge{Cost: 2}); err != nil || r.OK() || !r.Decision().Degraded {
		t.Errorf("%+v, %v", r.Decision(), err)
	}
	// What it cannot reserve is not reserved in memory.
	s.err = fmt.Errorf("windows ahead: %w", errors.ErrUnsupported)
	want := `ratelimit: : store "" (*ratelimit_test.aheadStore) cannot reserve the call ahead: windows ahead: unsupported operation`
	if r, err := gate.Reserve(t.Context(), ratelimit.Charge{Key: k, Cost: 1}, ratelimit.Charge{Cost: 2}); err == nil || !errors.Is(err, errors.ErrUnsupported) || err.Error() != want || r.OK() {
		t.Errorf("%+v, %v", r.Decision(), err)
	}
	if _, err := gate.Take(t.Context(), ratelimit.Charge{Key: k, Cost: 1}, ratelimit.Charge{Cost: 2}); errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Take: %v", err)
	}
	s.err = errors.New("connection refused")
	_ = gate.Reset(t.Context(), k, nil)
	if err := gate.Block(t.Context(), 0, k, nil); !errors.Is(err, ratelimit.ErrStore) {
		t.Errorf("lifted: %v", err)
	}
}

func TestStoreThatCannotReserveOrBlock(t *testing.T) {
	t.Parallel()
	gate := ratelimit.New(ratelimit.WithStore("far", &recorder{})).MustGate(&ratelimit.Spec{Method: "m", Policies: []ratelimit.Policy{
		{ID: "a", Limit: 5, Window: time.Minute, Store: "far"},
	}})
	_, err := gate.Reserve(t.Context(), ratelimit.Charge{Key: []byte("k"), Cost: 1})
	want := `ratelimit: m: policy "a" is counted in store "far" (*ratelimit_test.recorder), which cannot reserve calls ahead: unsupported operation`
	if !errors.Is(err, errors.ErrUnsupported) || err.Error() != want {
		t.Errorf("Reserve: %v", err)
	}
	err = gate.Block(t.Context(), time.Second, []byte("k"))
	want = `ratelimit: m: policy "a" is counted in store "far" (*ratelimit_test.recorder), which cannot block keys: unsupported operation`
	if !errors.Is(err, errors.ErrUnsupported) || err.Error() != want {
		t.Errorf("Block: %v", err)
	}
}
