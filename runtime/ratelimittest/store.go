package ratelimittest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// Harness tells TestStore how to make what it tests.
type Harness struct {
	// New returns a limiter whose counters nobody used, which asks the store under
	// test. TestStore calls it some thousand times.
	New func(tb testing.TB) Subject

	// Supports tells whether the store under test supports what p says, which may
	// lack its numbers; what ends, by Count, CostAfter, Concurrency or TimeQuota, it does
	// only if it is a ratelimit.Ender. What it does not support is not tested. If it is
	// nil, the store has no method Supports, and is tested with the policies that such a
	// store is taken to support.
	Supports func(p *ratelimit.Policy) bool

	// Reserves tells whether the store under test, which is a ratelimit.Reserver and a
	// ratelimit.Blocker then, can reserve calls of p ahead. If it is nil, it cannot.
	Reserves func(p *ratelimit.Policy) bool
}

// Subject is a limiter under test.
type Subject struct {
	// Limiter counts in the store under test by default.
	Limiter *ratelimit.Limiter

	// SetTime stops the time of the store, and the Clock of the limiter, at so many
	// microseconds after the Unix epoch. The suite sets it before each call, and sets
	// it back too. States may be dropped only when they would decide as new ones by
	// this time: a store whose entries expire by a clock of its own must have them
	// expire late here.
	SetTime func(us int64)

	// After is set if Permit.Charge charges also policies without CostAfter: if Limiter
	// counts in memory.
	After bool

	// Dump, if not nil, returns the bytes that the store holds for a key of p, and
	// nil if there is nothing. A refused call must not change them.
	Dump func(p *ratelimit.Policy, key string) []byte
}

// TestStore runs the suite that every store must pass: what the in-memory counters
// of package ratelimit do, a store does. Its properties are compared, call by call
// and to the microsecond, with an oracle that knows only the definitions of the
// algorithms. The flag -rapid.checks says how many histories are tried.
//
// Policies have IDs of their own in each test, so that all tests can share one
// server.
func TestStore(t *testing.T, h Harness) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(&subjectTest{T: t, Subject: h.New(t), harness: h})
		})
	}
	for _, p := range properties {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.run(t, h)
		})
	}
}

// epoch is the time at which cases begin.
const epoch = 1 << 51

var policies atomic.Int64

// unique gives p an ID that no other policy of this process has.
func unique(p ratelimit.Policy) ratelimit.Policy {
	p.ID = fmt.Sprintf("conformance%d", policies.Add(1))
	return p
}

// subjectTest is a test of one subject.
type subjectTest struct {
	*testing.T
	Subject
	harness  Harness
	policies []ratelimit.Policy // of the latest gate
}

// gate returns a gate of policies with fresh IDs.
func (t *subjectTest) gate(policies ...ratelimit.Policy) *ratelimit.Gate {
	t.Helper()
	t.policies = nil
	for _, p := range policies {
		if !slices.Contains(t.algorithms(), p.Algorithm) {
			t.Skipf("the store does not support %s", p.Algorithm)
		}
		t.policies = append(t.policies, unique(p))
	}
	gate, err := t.Limiter.Gate(&ratelimit.Spec{Method: "conformance.Test", Policies: t.policies})
	if err != nil {
		t.Fatal(err)
	}
	t.at(0)
	return gate
}

// at sets the time to d after epoch.
func (t *subjectTest) at(d time.Duration) { t.SetTime(epoch + d.Microseconds()) }

// take takes cost for key "k" from each of the gate's policies.
func (t *subjectTest) take(gate *ratelimit.Gate, cost int64) ratelimit.Decision {
	t.Helper()
	charges := make([]ratelimit.Charge, len(t.policies))
	for i := range charges {
		charges[i] = ratelimit.Charge{Key: []byte("k"), Cost: cost}
	}
	d, err := gate.Take(context.Background(), charges...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// want takes cost, and checks whether it is admitted.
func (t *subjectTest) want(gate *ratelimit.Gate, cost int64, admitted bool) ratelimit.Decision {
	t.Helper()
	d := t.take(gate, cost)
	if d.Allowed != admitted {
		t.Errorf("a cost of %d: admitted = %t, want %t: %+v", cost, d.Allowed, admitted, d)
	}
	return d
}

// together has eight callers make calls of policies, for keys one after the other, and
// checks how many are admitted.
func (t *subjectTest) together(calls, keys int, cost, want int64, policies ...ratelimit.Policy) {
	t.Helper()
	const callers = 8
	gate := t.gate(policies...)
	var admitted atomic.Int64
	var begin, wait sync.WaitGroup
	begin.Add(callers)
	for range callers {
		wait.Go(func() {
			begin.Done()
			begin.Wait()
			charges := make([]ratelimit.Charge, len(policies))
			for i := range calls / callers {
				key := fmt.Sprint("key ", i*keys*callers/calls)
				for j := range charges {
					charges[j] = ratelimit.Charge{Key: []byte(key), Cost: cost}
				}
				d, err := gate.Take(context.Background(), charges...)
				if err != nil {
					t.Error(err)
					return
				}
				if d.Allowed {
					admitted.Add(1)
				}
			}
		})
	}
	wait.Wait()
	if n := admitted.Load(); n != want {
		t.Errorf("%s: %d of %d calls for %d keys, each of %d policies and %d units, were admitted at once, want %d",
			policies[0].Algorithm, n, calls, keys, len(policies), cost, want)
	}
}

// wantRetry checks a wait.
func (t *subjectTest) wantRetry(d ratelimit.Decision, after time.Duration) {
	t.Helper()
	if d.RetryAfter != after {
		t.Errorf("RetryAfter = %v, want %v", d.RetryAfter, after)
	}
}

// wantError checks the kind of a Take's error, and that it charged nothing.
func (t *subjectTest) wantError(gate *ratelimit.Gate, kind error, key string, cost int64) {
	t.Helper()
	_, err := gate.Take(context.Background(), ratelimit.Charge{Key: []byte(key), Cost: cost})
	var e *ratelimit.Error
	if !errors.Is(err, kind) || !errors.As(err, &e) {
		t.Errorf("key %q, cost %d: error %v, want %v", key, cost, err, kind)
	}
}
