package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimittest"
)

// updatable are policies of every algorithm whose counters are kept, at 5 a minute.
var updatable = map[string]ratelimit.Policy{
	"log":             {Algorithm: ratelimit.SlidingLog},
	"log with lock":   {Algorithm: ratelimit.SlidingLog, Lock: []time.Duration{time.Millisecond}},
	"window":          {Algorithm: ratelimit.FixedWindow},
	"calendar window": {Algorithm: ratelimit.FixedWindow, Align: ratelimit.AlignMinute},
	"sliding window":  {Algorithm: ratelimit.SlidingWindow},
	"bucket":          {Algorithm: ratelimit.TokenBucket},
	"bucket record":   {Algorithm: ratelimit.TokenBucket, Refill: ratelimit.Interval},
	"concurrency":     {Algorithm: ratelimit.Concurrency},
}

func updateLimit(t *testing.T, l *ratelimit.Limiter, limit int64) {
	t.Helper()
	if err := l.Update("p", ratelimit.Patch{Limit: &limit}); err != nil {
		t.Fatal(err)
	}
}

// calls counts how many of n calls are admitted.
func calls(t *testing.T, gate *ratelimit.Gate, n int) (admitted int) {
	t.Helper()
	for range n {
		_, err := gate.Acquire(t.Context(), one("k"))
		switch {
		case err == nil:
			admitted++
		case !errors.Is(err, ratelimit.ErrLimited):
			t.Fatal(err)
		}
	}
	return admitted
}

func TestAnUpdateIsInForceAtTheNextDecisionAndKeepsCounters(t *testing.T) {
	t.Parallel()
	for name, policy := range updatable {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := ratelimittest.NewClock(time.Unix(1_700_000_000, 0))
			l := ratelimit.New(ratelimit.WithClock(clock))
			policy.ID, policy.Limit = "p", 5
			if policy.Algorithm != ratelimit.Concurrency && policy.Align == "" {
				policy.Window = time.Minute
			}
			gate, err := l.Gate(&ratelimit.Spec{Policies: []ratelimit.Policy{policy}})
			if err != nil {
				t.Fatal(err)
			}
			if n := calls(t, gate, 3); n != 3 {
				t.Fatalf("%d of the first 3 calls", n)
			}
			for _, step := range []struct{ limit, want int64 }{
				{4, 1}, // one is left
				{10, 6},
				{3, 0},
				{ratelimit.Blocked, 0},
				{12, 2},
				{ratelimit.Unlimited, 20}, // which are not counted
				{13, 1},
			} {
				updateLimit(t, l, step.limit)
				clock.Advance(2 * time.Millisecond) // past any lock
				if n := calls(t, gate, 20); int64(n) != step.want {
					t.Errorf("at %d: %d calls are admitted, want %d", step.limit, n, step.want)
				}
			}
		})
	}
}

func TestARaisedLimitLeavesNoOldWait(t *testing.T) {
	t.Parallel()
	for _, policy := range []ratelimit.Policy{
		{Algorithm: ratelimit.TokenBucket},
		{Algorithm: ratelimit.TokenBucket, Refill: ratelimit.Interval},
		{Algorithm: ratelimit.TokenBucket, Warmup: time.Second},
		{Algorithm: ratelimit.LeakyBucket},
	} {
		t.Run(fmt.Sprintf("%v %v %v", policy.Algorithm, policy.Refill, policy.Warmup), func(t *testing.T) {
			t.Parallel()
			clock := ratelimittest.NewClock(time.Unix(1_700_000_000, 0))
			l := ratelimit.New(ratelimit.WithClock(clock))
			policy.ID, policy.Limit, policy.Window = "p", 1, time.Hour
			gate, err := l.Gate(&ratelimit.Spec{Policies: []ratelimit.Policy{policy}})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if _, err := gate.Take(t.Context(), one("k")...); err != nil {
					t.Fatal(err)
				}
			}
			limit, window := int64(60), time.Minute
			if err := l.Update("p", ratelimit.Patch{Limit: &limit, Window: &window}); err != nil {
				t.Fatal(err)
			}
			clock.Advance(4 * time.Second)
			d, err := gate.Take(t.Context(), one("k")...)
			if err != nil || !d.Allowed || d.Delay > time.Second {
				t.Errorf("got %+v, %v", d, err)
			}
		})
	}
}

func TestWaitingCallsHearOfAnUpdate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.New()
		gate, err := l.Gate(&ratelimit.Spec{Policies: []ratelimit.Policy{{ID: "p", Algorithm: ratelimit.TokenBucket, Limit: 1, Window: time.Hour}}})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if err := gate.Wait(t.Context(), one("k")); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		limit, window := int64(1), time.Second
		if err := l.Update("p", ratelimit.Patch{Limit: &limit, Window: &window}); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if took := time.Since(begin); took > 3*time.Second {
			t.Errorf("the calls waited for %v", took)
		}
	})
}

func TestUpdatesThatCannotBeMade(t *testing.T) {
	t.Parallel()
	l := ratelimit.New()
	gate, err := l.Gate(&ratelimit.Spec{Policies: []ratelimit.Policy{
		{ID: "p", Algorithm: ratelimit.SlidingLog, Limit: 2, Window: time.Minute},
		{ID: "d", Algorithm: ratelimit.TokenBucket, Dynamic: true, Window: time.Minute, Global: true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	before := fmt.Sprint(l.Policies())
	five, huge, none, negative := int64(5), int64(5000), time.Duration(0), -1
	for _, tc := range []struct {
		id    string
		patch ratelimit.Patch
	}{
		{"p", ratelimit.Patch{Limit: new(int64)}},
		{"p", ratelimit.Patch{Limit: &huge}}, // of a sliding log
		{"p", ratelimit.Patch{Window: &none}},
		{"p", ratelimit.Patch{Burst: &five}},
		{"p", ratelimit.Patch{MaxQueue: &negative}},
		{"d", ratelimit.Patch{Limit: &five}},
	} {
		if err := l.Update(tc.id, tc.patch); err == nil {
			t.Errorf("%s: %+v is accepted", tc.id, tc.patch)
		}
	}
	var unknown *ratelimit.UnknownPolicyError
	if err := l.Update("x", ratelimit.Patch{}); !errors.As(err, &unknown) || unknown.ID != "x" {
		t.Errorf("an unknown policy: %v", err)
	}
	for _, l := range []*ratelimit.Limiter{nil, {}} {
		if l.Update("p", ratelimit.Patch{}) == nil || l.Policies() != nil {
			t.Error("a zero limiter has policies")
		}
		l.Subscribe(nil)()
	}
	if after := fmt.Sprint(l.Policies()); after != before {
		t.Errorf("got %s, want %s", after, before)
	}
	charges := []ratelimit.Charge{{Key: []byte("k"), Cost: 1}, {Cost: 1, Limit: 3}}
	for i, want := range []bool{true, true, false} {
		if d, err := gate.Take(t.Context(), charges...); err != nil || d.Allowed != want {
			t.Errorf("call %d: %+v, %v", i, d, err)
		}
	}
}

func TestADynamicPolicyCanBeSwitched(t *testing.T) {
	t.Parallel()
	l := ratelimit.New()
	gate, err := l.Gate(&ratelimit.Spec{Policies: []ratelimit.Policy{{ID: "p", Dynamic: true, Window: time.Minute, Global: true}}})
	if err != nil {
		t.Fatal(err)
	}
	take := func() bool {
		d, err := gate.Take(t.Context(), ratelimit.Charge{Cost: 1, Limit: 2})
		if err != nil {
			t.Fatal(err)
		}
		return d.Allowed
	}
	if !take() {
		t.Error("the first call")
	}
	updateLimit(t, l, ratelimit.Blocked)
	if take() {
		t.Error("blocked")
	}
	updateLimit(t, l, ratelimit.Unlimited)
	for range 5 {
		if !take() {
			t.Error("unlimited")
		}
	}
	updateLimit(t, l, 0)
	if !take() || take() {
		t.Error("dynamic again: the counters were not kept")
	}
}

func TestAGateThatIsMadeAfterAnUpdateHasIt(t *testing.T) {
	t.Parallel()
	l := ratelimit.New()
	spec := &ratelimit.Spec{Policies: []ratelimit.Policy{{ID: "p", Limit: 5, Window: time.Minute}}}
	first, err := l.Gate(spec)
	if err != nil {
		t.Fatal(err)
	}
	updateLimit(t, l, 2)
	second, err := l.Gate(spec)
	if err != nil {
		t.Fatal(err)
	}
	if n := calls(t, first, 1) + calls(t, second, 5); n != 2 {
		t.Errorf("%d calls are admitted, want 2", n)
	}
	if p := l.Policies(); len(p) != 1 || p[0].Limit != 2 {
		t.Errorf("got %+v", p)
	}
}

// Whatever happens at the same time, no more is admitted than by the greatest limit.
func TestUpdatesWhileCallsAreDecided(t *testing.T) {
	t.Parallel()
	for name, policy := range updatable {
		if policy.Algorithm == ratelimit.Concurrency || policy.Align != "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := ratelimittest.NewClock(time.Unix(1_700_000_000, 0))
			l := ratelimit.New(ratelimit.WithClock(clock))
			policy.ID, policy.Limit, policy.Window = "p", 40, time.Minute
			policy.Lock, policy.Initial = nil, 0
			specs := &ratelimit.Spec{Policies: []ratelimit.Policy{policy}}
			gate, err := l.Gate(specs)
			if err != nil {
				t.Fatal(err)
			}
			other, err := l.Gate(&ratelimit.Spec{Policies: []ratelimit.Policy{policy, {ID: "q", Limit: 4000, Window: time.Hour, Global: true}}})
			if err != nil {
				t.Fatal(err)
			}
			var admitted atomic.Int64
			var wg sync.WaitGroup
			for i := range 4 {
				wg.Go(func() {
					for range 200 {
						var err error
						switch i % 2 {
						case 0:
							err = gate.Allow(context.Background(), []byte("k"))
						default:
							err = other.AllowAll(context.Background(), []ratelimit.Charge{{Key: []byte("k"), Cost: 1}, {Cost: 1}})
						}
						if err == nil {
							admitted.Add(1)
						} else if !errors.Is(err, ratelimit.ErrLimited) {
							t.Error(err)
						}
					}
				})
			}
			for i := range 100 {
				limit, window := int64(20+i%21), time.Minute+time.Duration(i%3)*time.Second
				if err := l.Update("p", ratelimit.Patch{Limit: &limit, Window: &window}); err != nil {
					t.Error(err)
				}
			}
			wg.Wait()
			if n := admitted.Load(); n > 40 {
				t.Errorf("%d calls are admitted", n)
			}
		})
	}
}

type counting struct{ n atomic.Int64 }

func (c *counting) Decided(context.Context, *ratelimit.Event) { c.n.Add(1) }

func TestSubscribersComeAndGo(t *testing.T) {
	t.Parallel()
	var first, second counting
	l := ratelimit.New(ratelimit.WithObserver(&first), ratelimit.WithObserver(nil))
	gate, err := l.Gate(&ratelimit.Spec{Policies: []ratelimit.Policy{{ID: "p", Limit: 100, Window: time.Minute}}})
	if err != nil {
		t.Fatal(err)
	}
	calls(t, gate, 1)
	leave := l.Subscribe(&second)
	again := l.Subscribe(&second)
	calls(t, gate, 1)
	leave()
	leave()
	calls(t, gate, 1)
	again()
	calls(t, gate, 1)
	if first.n.Load() != 4 || second.n.Load() != 3 {
		t.Errorf("told of %d and %d decisions, want 4 and 3", first.n.Load(), second.n.Load())
	}
}

// What says nothing when the policy is updated says nothing afterwards, at whatever
// pace its units would have left.
func TestAnUpdateBringsBackNothingThatIsOver(t *testing.T) {
	t.Parallel()
	for _, policy := range []ratelimit.Policy{
		{Algorithm: ratelimit.LeakyBucket},
		{Algorithm: ratelimit.TokenBucket},
		{Algorithm: ratelimit.TokenBucket, Refill: ratelimit.Interval},
		{Algorithm: ratelimit.TokenBucket, Warmup: time.Second},
		{Algorithm: ratelimit.SlidingWindow},
	} {
		clock := ratelimittest.NewClock(time.Unix(1_700_000_000, 0))
		l := ratelimit.New(ratelimit.WithClock(clock))
		policy.ID, policy.Limit, policy.Window = "p", 4, time.Minute
		gate := l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{policy}})
		for range 4 {
			if _, err := gate.Take(t.Context(), one("k")...); err != nil {
				t.Fatal(err)
			}
		}
		clock.Advance(2 * time.Minute)
		limit, window := int64(2), time.Hour
		if err := l.Update("p", ratelimit.Patch{Limit: &limit, Window: &window}); err != nil {
			t.Fatal(err)
		}
		d, err := gate.Peek(t.Context(), one("k")...)
		if err != nil || d.Remaining != 2 || d.Delay != 0 {
			t.Errorf("%+v: %+v, %v, want both units to remain", policy, d, err)
		}
	}
}

// The rest of a microsecond that a bucket was short of is one of its old pace.
func TestAFullBucketIsUpdatedAndTheClockSetBack(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1_700_000_000, 0)
	clock := ratelimittest.NewClock(begin)
	l := ratelimit.New(ratelimit.WithClock(clock))
	policy := ratelimit.Policy{ID: "p", Algorithm: ratelimit.TokenBucket, Limit: 1_000_000_007, Burst: 1000, Window: time.Second}
	gate := l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{policy}})
	if err := gate.Allow(t.Context(), []byte("k")); err != nil {
		t.Fatal(err)
	}
	clock.Advance(10 * time.Microsecond)
	updateLimit(t, l, 1)
	clock.Set(begin)
	d, err := gate.Peek(t.Context(), one("k")...)
	if err != nil || !d.Allowed || d.Remaining < 999 || d.Remaining > 1000 {
		t.Errorf("%+v, %v, want 999 or 1000 to remain", d, err)
	}
}

// A bucket that is new with as many tokens as it holds is as one without Initial, until
// an update makes it hold more.
func TestAnUpdateOfABucketThatBeginsFull(t *testing.T) {
	t.Parallel()
	clock := ratelimittest.NewClock(time.Unix(1_700_000_000, 0))
	l := ratelimit.New(ratelimit.WithClock(clock))
	policy := ratelimit.Policy{ID: "p", Algorithm: ratelimit.TokenBucket, Limit: 5, Initial: 5, Window: time.Minute}
	gate := l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{policy}})
	for _, step := range []struct{ limit, want int64 }{{5, 5}, {8, 3}, {5, 0}, {9, 1}} {
		updateLimit(t, l, step.limit)
		if n := calls(t, gate, 20); int64(n) != step.want {
			t.Errorf("at %d: %d calls are admitted, want %d", step.limit, n, step.want)
		}
	}
}

// What an operator does by a policy's name is done to the counters of the method's gate.
func TestGateOfIsAGateOfThePolicy(t *testing.T) {
	t.Parallel()
	l := ratelimit.New()
	if _, err := l.GateOf("login"); !errors.As(err, new(*ratelimit.UnknownPolicyError)) {
		t.Errorf("before there is one: %v", err)
	}
	p := ratelimit.Policy{ID: "login", Key: "user", Limit: 1, Window: time.Hour}
	gate := l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{p, {ID: "all", Global: true, Limit: 100, Window: time.Hour}}})
	two := int64(2)
	if err := l.Update("login", ratelimit.Patch{Limit: &two}); err != nil {
		t.Fatal(err)
	}
	call := func() error {
		return gate.AllowAll(t.Context(), []ratelimit.Charge{{Key: []byte("ann"), Cost: 1}, {Cost: 1}})
	}
	of, err := l.GateOf("login")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(of.Allow(t.Context(), []byte("ann")), call()); err != nil {
		t.Error(err)
	}
	if err := call(); !errors.Is(err, ratelimit.ErrLimited) {
		t.Errorf("after one call by each gate: %v", err)
	}
	if err := errors.Join(of.Reset(t.Context(), []byte("ann")), call()); err != nil {
		t.Errorf("after a reset: %v", err)
	}
	if err := of.Block(t.Context(), time.Minute, []byte("ann")); err != nil {
		t.Error(err)
	}
	if err := call(); !errors.Is(err, ratelimit.ErrLimited) {
		t.Errorf("blocked: %v", err)
	}
	if _, err := (*ratelimit.Limiter)(nil).GateOf("login"); err == nil {
		t.Error("a nil limiter has gates")
	}
}

// What a bucket owes is kept through a pace that is very slow, or very fast, and back.
func TestABucketOwesTheSameAfterAnUpdateAndBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit, burst, cost, other int64
		window                    time.Duration
	}{
		{100_000, 0, 100_000, 1, 24 * time.Hour},
		{1_000_000, 0, 1_000_000, 1, 24 * time.Hour},
		{1_000_000, 0, 999_999, 2, ratelimit.MaxWindow},
		{5, 5, 1, 1_000_000_000, time.Second},
		{5, 5, 1, 10_000_000, time.Second},
		{5, 5, 5, 1_000_000_000, time.Minute},
		{7, 0, 3, 11, time.Hour},
	} {
		clock := ratelimittest.NewClock(time.Unix(1_700_000_000, 0))
		l := ratelimit.New(ratelimit.WithClock(clock))
		gate := l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{{ID: "p", Algorithm: ratelimit.TokenBucket, Limit: c.limit, Burst: c.burst, Window: c.window}}})
		charge := ratelimit.Charge{Key: []byte("k"), Cost: c.cost}
		if _, err := gate.Take(t.Context(), charge); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			updateLimit(t, l, c.other)
			updateLimit(t, l, c.limit)
		}
		d, err := gate.Peek(t.Context(), one("k")...)
		want := c.limit - c.cost
		if err != nil || d.Remaining != want || d.Allowed != (want > 0) {
			t.Errorf("%+v: %+v, %v, want %d to remain", c, d, err, want)
		}
		owes := time.Duration(float64(c.window) / float64(c.limit) * float64(c.cost)).Round(time.Second)
		if reset := d.ResetAt.Sub(clock.Now()); (reset - owes).Abs() > max(owes/1e6, time.Second) {
			t.Errorf("%+v: full after %v, want %v", c, reset, owes)
		}
	}
}

// Nothing is owed by a bucket that was full when its pace changed, or more than was owed
// then, wherever the clock is set back to.
func TestAnUpdateIsNotUndoneByTheClock(t *testing.T) {
	t.Parallel()
	for _, after := range []struct {
		time  time.Duration
		limit int64
		want  int64
	}{{time.Hour, 1000, 10}, {time.Hour, 1, 10}, {30 * time.Minute, 1000, 5}, {30 * time.Minute, 1, 5}} {
		begin := time.Unix(1_700_000_000, 0)
		clock := ratelimittest.NewClock(begin)
		l := ratelimit.New(ratelimit.WithClock(clock))
		gate := l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{{ID: "p", Algorithm: ratelimit.TokenBucket, Limit: 10, Window: time.Hour, Burst: 10}}})
		if n := calls(t, gate, 10); n != 10 {
			t.Fatalf("%d calls are admitted", n)
		}
		clock.Advance(after.time)
		updateLimit(t, l, after.limit)
		clock.Set(begin.Add(after.time / 2))
		if d, err := gate.Peek(t.Context(), one("k")...); err != nil || d.Remaining != after.want {
			t.Errorf("after %v at %d: %+v, %v, want %d to remain", after.time, after.limit, d, err, after.want)
		}
	}
}

// The unit at the head of a queue has been served for as much of its time after an update
// as before.
func TestAnUpdateDoesNotServeAUnitAnew(t *testing.T) {
	t.Parallel()
	clock := ratelimittest.NewClock(time.Unix(1_700_000_000, 0))
	l := ratelimit.New(ratelimit.WithClock(clock))
	gate := l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{{ID: "p", Algorithm: ratelimit.LeakyBucket, Limit: 1, Burst: 1, Window: time.Hour}}})
	if n := calls(t, gate, 2); n != 1 {
		t.Fatalf("%d calls are admitted", n)
	}
	clock.Advance(time.Hour - time.Second)
	updateLimit(t, l, 2)
	if d, err := gate.Peek(t.Context(), one("k")...); err != nil || d.Allowed || d.RetryAfter != time.Second/2 {
		t.Errorf("%+v, %v, want a wait of half a second", d, err)
	}
	admitted := 0
	for i := range 6 * 24 {
		updateLimit(t, l, int64(1+i%2))
		admitted += calls(t, gate, 1)
		clock.Advance(10 * time.Minute)
	}
	if admitted < 24 || admitted > 48 {
		t.Errorf("at 1 and 2 an hour by turns, %d calls of a day are admitted", admitted)
	}
}

// A key whose window has ended is as new in a longer one, whether its counter was
// reclaimed meanwhile, for the sake of other keys, or not.
func TestALongerWindowBringsBackNothingThatHasEnded(t *testing.T) {
	t.Parallel()
	for _, policy := range []ratelimit.Policy{
		{Algorithm: ratelimit.FixedWindow},
		{Algorithm: ratelimit.FixedWindow, Count: true},
		{Algorithm: ratelimit.SlidingLog},
		{Algorithm: ratelimit.SlidingLog, Count: true},
		{Algorithm: ratelimit.SlidingWindow},
		{Algorithm: ratelimit.TimeQuota},
	} {
		for _, others := range []int{0, 1, 100} {
			clock := ratelimittest.NewClock(time.Unix(1_700_000_000, 0))
			l := ratelimit.New(ratelimit.WithClock(clock))
			policy.ID, policy.Limit, policy.Window = "p", 1, time.Second
			gate := l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{policy}})
			use := func(key string) bool {
				permit, err := gate.Acquire(t.Context(), one(key))
				if err == nil {
					permit.Keep(0)
					clock.Advance(time.Millisecond)
					permit.Release()
				}
				return err == nil
			}
			use("k")
			clock.Advance(3 * time.Second)
			for i := range others {
				use(fmt.Sprint("other ", i))
			}
			window := time.Hour
			if err := l.Update("p", ratelimit.Patch{Window: &window}); err != nil {
				t.Fatal(err)
			}
			if !use("k") {
				t.Errorf("%v, count %v, %d others: refused", policy.Algorithm, policy.Count, others)
			}
			if use("k") {
				t.Errorf("%v, count %v, %d others: admitted twice", policy.Algorithm, policy.Count, others)
			}
		}
	}
}

// A key that is blocked and has nothing in its queue has no unit that is served.
func TestAnUpdateOfAQueueThatIsEmptyAndBlocked(t *testing.T) {
	t.Parallel()
	clock := ratelimittest.NewClock(time.Unix(1_700_000_000, 0))
	l := ratelimit.New(ratelimit.WithClock(clock))
	gate := l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{{ID: "p", Algorithm: ratelimit.LeakyBucket, Limit: ratelimit.MaxLimit, Burst: 1000, Window: time.Minute}}})
	if err := gate.Block(t.Context(), time.Minute, []byte("k")); err != nil {
		t.Fatal(err)
	}
	updateLimit(t, l, 1<<29)
	clock.Advance(time.Minute)
	if n := calls(t, gate, 1); n != 1 {
		t.Error("refused")
	}
}

// Nothing is recorded of a queue that is empty, or a bucket that is full, when it is
// updated, so that a lock is remembered by its own time then, wherever the clock is set
// back to.
func TestAnUpdateKeepsTheTimeOfALock(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_700_000_000, 0)
	for _, c := range []struct {
		name                  string
		charged, updated, now time.Duration // after start, when the key is locked
		want                  time.Duration // until it is as new
	}{
		{"set back by 20 s", 0, 30 * time.Second, 10 * time.Second, 51 * time.Second},
		{"set back by 40 s, to 10 s before the lock", 0, 30 * time.Second, -10 * time.Second, 61 * time.Second},
		{"set back for good", 20 * time.Second, -time.Hour, -time.Hour, 41 * time.Second},
	} {
		for _, algorithm := range []ratelimit.Algorithm{ratelimit.LeakyBucket, ratelimit.TokenBucket} {
			t.Run(string(algorithm)+" "+c.name, func(t *testing.T) {
				t.Parallel()
				clock := ratelimittest.NewClock(start)
				l := ratelimit.New(ratelimit.WithClock(clock))
				gate := l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{{ID: "p", Algorithm: algorithm,
					Limit: 60, Burst: 1, Window: time.Minute, Lock: []time.Duration{time.Second, 2 * time.Second}}}})
				take := func(cost int64) ratelimit.Decision {
					d, err := gate.Take(t.Context(), ratelimit.Charge{Key: []byte("k"), Cost: cost})
					if err != nil {
						t.Fatal(err)
					}
					return d
				}
				if first, second := take(1), take(1); !first.Allowed || second.Allowed {
					t.Fatalf("at first: %+v, %+v", first, second)
				}
				if c.charged > 0 {
					clock.Set(start.Add(c.charged))
					if d := take(1); !d.Allowed {
						t.Fatalf("after the lock: %+v", d)
					}
				}
				clock.Set(start.Add(c.updated))
				updateLimit(t, l, 3)
				clock.Set(start.Add(c.now))
				if reset := take(0).ResetAt.Sub(clock.Now()); reset != c.want {
					t.Errorf("as new after %v, want %v", reset, c.want)
				}
			})
		}
	}
}

// A bucket that refills by the interval does not begin an interval anew.
func TestAnUpdateDoesNotBeginAnIntervalAnew(t *testing.T) {
	t.Parallel()
	clock := ratelimittest.NewClock(time.Unix(1_700_000_000, 0))
	l := ratelimit.New(ratelimit.WithClock(clock))
	gate := l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{{ID: "p", Algorithm: ratelimit.TokenBucket, Refill: ratelimit.Interval, Limit: 3, Burst: 3, Window: time.Second}}})
	if n := calls(t, gate, 4); n != 3 {
		t.Fatalf("%d calls are admitted", n)
	}
	clock.Advance(900 * time.Millisecond)
	for limit := int64(4); limit < 9; limit++ {
		updateLimit(t, l, limit)
		if d, err := gate.Peek(t.Context(), one("k")...); err != nil || d.RetryAfter != 100*time.Millisecond {
			t.Errorf("at %d: %+v, %v, want a wait of a tenth of a second", limit, d, err)
		}
	}
	window := 2 * time.Second
	if err := l.Update("p", ratelimit.Patch{Window: &window}); err != nil {
		t.Fatal(err)
	}
	if d, err := gate.Peek(t.Context(), one("k")...); err != nil || d.RetryAfter != 200*time.Millisecond {
		t.Errorf("with twice the interval: %+v, %v, want two tenths of a second", d, err)
	}
}

// Where the clock was set back for good, the time of a key goes on from the update.
func TestTimeGoesOnFromAnUpdate(t *testing.T) {
	t.Parallel()
	lock := []time.Duration{time.Hour} // which takes a record
	for _, p := range []ratelimit.Policy{
		{Algorithm: ratelimit.TokenBucket, Lock: lock},
		{Algorithm: ratelimit.TokenBucket, Warmup: time.Minute},
		{Algorithm: ratelimit.LeakyBucket, Burst: 5},
		{Algorithm: ratelimit.SlidingWindow},
	} {
		p.ID, p.Limit, p.Window = "p", 5, time.Minute
		clock := ratelimittest.NewClock(time.Unix(1_700_000_000, 0))
		l := ratelimit.New(ratelimit.WithClock(clock))
		gate := l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{p}})
		take := func(cost int64) ratelimit.Decision {
			d, err := gate.Take(t.Context(), ratelimit.Charge{Key: []byte("k"), Cost: cost})
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		take(1)
		clock.Advance(-time.Hour)
		if err := l.Update("p", ratelimit.Patch{Window: new(2 * time.Minute)}); err != nil {
			t.Fatal(err)
		}
		at := take(0).ResetAt
		clock.Advance(time.Second)
		if d := take(0); !d.ResetAt.Equal(at) {
			t.Errorf("%+v: as new at %v, and a second later at %v", p, at, d.ResetAt)
		}
	}
}

// A full bucket that an update has left may have begun an interval at a time that the
// clock is set back from.
func TestAnUpdateOfAnIntervalAheadOfTheClock(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_700_000_000, 0)
	clock := ratelimittest.NewClock(start)
	l := ratelimit.New(ratelimit.WithClock(clock))
	gate := l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{{ID: "p", Algorithm: ratelimit.TokenBucket, Refill: ratelimit.Interval,
		Limit: 1, Window: time.Minute, Lock: []time.Duration{time.Second, 2 * time.Second}}}})
	if n := calls(t, gate, 2); n != 1 {
		t.Fatalf("%d are admitted of 1", n)
	}
	clock.Set(start.Add(60*time.Second + 500*time.Millisecond))
	updateLimit(t, l, 2)
	clock.Set(start.Add(50 * time.Second))
	if err := l.Update("p", ratelimit.Patch{Window: new(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if n := calls(t, gate, 3); n != 2 {
		t.Errorf("%d are admitted of 2", n)
	}
}

// A lease that an update makes shorter ends the places of running calls, too, and none of
// them with another's.
func TestAnUpdateOfTheLease(t *testing.T) {
	t.Parallel()
	clock := ratelimittest.NewClock(time.Unix(1_700_000_000, 0))
	l := ratelimit.New(ratelimit.WithClock(clock))
	gate := l.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{{ID: "p", Algorithm: ratelimit.Concurrency, Limit: 2, Lease: time.Hour}}})
	lease := func(d time.Duration) {
		t.Helper()
		if err := l.Update("p", ratelimit.Patch{Lease: &d}); err != nil {
			t.Fatal(err)
		}
	}
	want := func(remaining int64) {
		t.Helper()
		if d, err := gate.Peek(t.Context(), one("k")...); err != nil || d.Remaining != remaining {
			t.Errorf("after %v: %+v, %v, want %d places", clock.Now(), d, err, remaining)
		}
	}
	calls(t, gate, 1)
	clock.Advance(10 * time.Second)
	lease(time.Minute)
	clock.Advance(30 * time.Second)
	calls(t, gate, 1)
	want(0)
	clock.Advance(30*time.Second - time.Microsecond)
	want(0)
	clock.Advance(time.Microsecond) // a minute after the update
	want(1)
	clock.Advance(30*time.Second - time.Microsecond)
	want(1)
	clock.Advance(time.Microsecond)
	want(2)
	lease(time.Hour)
	calls(t, gate, 2)
	clock.Advance(time.Hour - time.Microsecond)
	want(0)
}
