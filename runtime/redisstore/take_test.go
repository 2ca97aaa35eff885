package redisstore_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

// epoch is when fake time begins, in µs: today's magnitude, so that products that
// are not exact show.
const epoch = int64(1_790_000_000_000_000)

// fake is a store in fake time.
type fake struct {
	t      testing.TB
	store  *redisstore.Store
	client *redis.Client
	prefix string
}

func newFake(t testing.TB) *fake {
	t.Helper()
	client, prefix := sharedClient(t)
	f := &fake{t: t, store: redisstore.NewFakeTime(client, prefix), client: client, prefix: prefix}
	f.at(0)
	return f
}

// at sets the time to µs after the epoch.
func (f *fake) at(µs int64) {
	f.t.Helper()
	if err := f.client.Set(context.Background(), f.prefix+"now", epoch+µs, 0).Err(); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fake) take(ops ...ratelimit.Op) []ratelimit.Outcome {
	f.t.Helper()
	if err := f.store.Take(context.Background(), ops); err != nil {
		f.t.Fatal(err)
	}
	var outcomes []ratelimit.Outcome
	for _, op := range ops {
		outcomes = append(outcomes, op.Outcome)
	}
	return outcomes
}

// want takes cost from p at µs and compares the outcome.
func (f *fake) want(µs int64, p *ratelimit.Policy, cost int64, want ratelimit.Outcome) {
	f.t.Helper()
	f.at(µs)
	if got := f.take(ratelimit.Op{Policy: p, Key: "k", Cost: cost})[0]; got != want {
		f.t.Errorf("cost %d at %d µs: got %+v, want %+v", cost, µs, got, want)
	}
}

// dump returns the state of p for key k, and "" for none.
func (f *fake) dump(p *ratelimit.Policy) string {
	f.t.Helper()
	raw, err := getState(context.Background(), f.client, f.store.KeyOf(p, "k")).Result()
	if err != nil && err != redis.Nil {
		f.t.Fatal(err)
	}
	return raw
}

// ttl returns the time to live that the script gave to the state of p.
func (f *fake) ttl(p *ratelimit.Policy) time.Duration {
	f.t.Helper()
	ttl, err := f.client.PTTL(context.Background(), place(f.store.KeyOf(p, "k"))).Result()
	if err != nil {
		f.t.Fatal(err)
	}
	return ttl - time.Hour
}

func admitted(remaining int64, reset time.Duration) ratelimit.Outcome {
	return ratelimit.Outcome{Allowed: true, Remaining: remaining, ResetAfter: reset}
}

func refused(remaining int64, retry, reset time.Duration) ratelimit.Outcome {
	return ratelimit.Outcome{Remaining: remaining, RetryAfter: retry, ResetAfter: reset}
}

const (
	ms  = int64(1000)
	sec = 1000 * ms
)

func TestSlidingLogForgetsEachCallWhenItIsAWindowOld(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	p := &ratelimit.Policy{ID: "p", Limit: 3, Window: time.Second}
	f.want(0, p, 1, admitted(2, time.Second))
	f.want(100*ms, p, 2, admitted(0, time.Second))
	f.want(200*ms, p, 1, refused(0, 800*time.Millisecond, 900*time.Millisecond))
	f.want(200*ms, p, 2, refused(0, 900*time.Millisecond, 900*time.Millisecond))
	f.want(sec-1, p, 1, refused(0, time.Microsecond, 100*time.Millisecond+time.Microsecond))
	f.want(sec, p, 1, admitted(0, time.Second))
	f.want(sec+100*ms-1, p, 2, refused(0, time.Microsecond, 900*time.Millisecond+time.Microsecond))
	f.want(sec+100*ms, p, 2, admitted(0, time.Second))
	f.want(9*sec, p, 0, admitted(3, 0))
}

func TestFixedWindowBeginsWithTheFirstCall(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	p := &ratelimit.Policy{ID: "p", Algorithm: ratelimit.FixedWindow, Limit: 3, Window: time.Second}
	f.want(500*ms, p, 2, admitted(1, time.Second))
	f.want(600*ms, p, 2, refused(1, 900*time.Millisecond, 900*time.Millisecond))
	f.want(600*ms, p, 1, admitted(0, 900*time.Millisecond))
	f.want(1500*ms-1, p, 1, refused(0, time.Microsecond, time.Microsecond))
	f.want(1500*ms, p, 3, admitted(0, time.Second))
}

func TestRD16TokenBucketRefillsAtItsRate(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	p := &ratelimit.Policy{ID: "p", Algorithm: ratelimit.TokenBucket, Limit: 6, Window: time.Minute, Burst: 6}
	for i := range int64(6) {
		f.want(0, p, 1, admitted(5-i, time.Duration(i+1)*10*time.Second))
	}
	f.want(0, p, 1, refused(0, 10*time.Second, time.Minute))
	f.want(9999*ms, p, 1, refused(0, time.Millisecond, 50*time.Second+time.Millisecond))
	f.want(10*sec, p, 1, admitted(0, time.Minute))
}

func TestTokenBucketDoesNotDrift(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	// A unit takes 142857 and 1/7 µs.
	p := &ratelimit.Policy{ID: "p", Algorithm: ratelimit.TokenBucket, Limit: 7, Window: time.Second, Burst: 2}
	f.want(0, p, 2, admitted(0, 285715*time.Microsecond))
	for i := int64(1); i <= 21; i++ {
		due := func(unit int64) int64 { return (unit*sec + 6) / 7 }
		now, next, full := due(i), time.Duration(due(i+1)-due(i)), time.Duration(due(i+2)-due(i))
		f.want(now-1, p, 1, refused(0, time.Microsecond, (next+1)*time.Microsecond))
		f.want(now, p, 1, admitted(0, full*time.Microsecond))
	}
}

func TestTokenBucketRemainsAreWhole(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	// 69 units refill in 22581818181 and 9/11 µs, which divided by the time of one
	// unit is a little less than 69 in floating point.
	p := &ratelimit.Policy{ID: "p", Algorithm: ratelimit.TokenBucket, Limit: 11, Window: time.Hour, Burst: 118}
	f.want(0, p, 49, admitted(69, (49*3600*time.Second/11+time.Microsecond).Truncate(time.Microsecond)))
	f.want(0, p, 70, refused(69, (3600*time.Second/11+time.Microsecond).Truncate(time.Microsecond), (49*3600*time.Second/11+time.Microsecond).Truncate(time.Microsecond)))
}

func TestTokenBucketIsExactAtTheBoundsOfAPolicy(t *testing.T) {
	t.Parallel()
	for _, p := range []*ratelimit.Policy{
		{Limit: 94906265, Burst: 94906265, Window: ratelimit.MaxWindow - time.Microsecond}, // burst × limit just below 2^53
		{Limit: 94906265, Burst: 94906265, Window: time.Microsecond},
		{Limit: 1<<30 - 1, Burst: 1 << 23, Window: ratelimit.MaxWindow - time.Microsecond},
		{Limit: 1<<23 - 1, Burst: 1 << 30, Window: 999999937 * time.Microsecond},
		{Limit: 1, Burst: 1, Window: ratelimit.MaxWindow},
	} {
		t.Run(fmt.Sprintf("%d+%d per %v", p.Burst, p.Limit, p.Window), func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			p.ID, p.Algorithm = "p", ratelimit.TokenBucket
			if err := p.Validate(); err != nil {
				t.Fatal(err)
			}
			half := (p.Burst + 1) / 2
			f.at(0)
			if got := f.take(ratelimit.Op{Policy: p, Key: "k", Cost: half})[0]; !got.Allowed || got.Remaining != p.Burst-half {
				t.Fatalf("%+v of %d left after %d", got, p.Burst, half)
			}
			if rest := p.Burst - half; rest > 0 {
				if got := f.take(ratelimit.Op{Policy: p, Key: "k", Cost: rest})[0]; !got.Allowed || got.Remaining != 0 {
					t.Fatalf("%+v after the rest", got)
				}
			}
			got := f.take(ratelimit.Op{Policy: p, Key: "k", Cost: p.Burst})[0]
			if got.Allowed || got.RetryAfter != got.ResetAfter || got.RetryAfter > ratelimit.MaxWindow {
				t.Fatalf("%+v of an empty bucket", got)
			}
			full := got.RetryAfter.Microseconds()
			f.at(full - 1)
			if got := f.take(ratelimit.Op{Policy: p, Key: "k", Cost: p.Burst})[0]; got.Allowed || got.RetryAfter != time.Microsecond {
				t.Fatalf("%+v a tick before it is full", got)
			}
			f.want(full, p, p.Burst, admitted(0, got.RetryAfter))
		})
	}
}

func TestRD12AFullLogWhoseCallsAllExpiredAdmits(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	p := &ratelimit.Policy{ID: "p", Limit: ratelimit.MaxLogLimit, Window: time.Second}
	for i := range int64(16) {
		f.want(i, p, 256, admitted(4096-256*(i+1), time.Second))
	}
	f.want(20, p, 1, refused(0, time.Second-20*time.Microsecond, time.Second-5*time.Microsecond))
	f.want(sec+15, p, 4096, admitted(0, time.Second))
	if n := len(f.dump(p)); n != 11+5 {
		t.Errorf("the state has %d bytes", n)
	}
}

func TestSlidingLogOutlivesTheRangeOfItsNumbers(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	// Three bytes hold 16.7 s and two hold 65535 units.
	const third = 5 * sec
	p := &ratelimit.Policy{ID: "p", Limit: 4096, Window: 15 * time.Second}
	f.want(0, p, 1365, admitted(2731, p.Window))
	f.want(third, p, 1365, admitted(1366, p.Window))
	for i := int64(2); i < 200; i++ {
		f.want(i*third, p, 1365, admitted(1, p.Window))
		f.want(i*third, p, 2, refused(1, 5*time.Second, p.Window))
		f.want(i*third, p, 1368, refused(1, 10*time.Second, p.Window))
	}
	if n := len(f.dump(p)); n != 11+3*5 {
		t.Errorf("the state has %d bytes", n)
	}
}

func TestCallsOfOneInstantShareAnEntryOfTheLog(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	p := &ratelimit.Policy{ID: "p", Limit: 10, Window: time.Minute}
	f.want(0, p, 1, admitted(9, time.Minute))
	f.want(0, p, 1, admitted(8, time.Minute))
	f.want(1, p, 1, admitted(7, time.Minute))
	f.want(0, p, 1, admitted(6, time.Minute)) // the clock was set back
	f.want(1, p, 8, refused(6, time.Minute-time.Microsecond, time.Minute))
	if n := len(f.dump(p)); n != 11+2*6 {
		t.Errorf("the state has %d bytes", n)
	}
}

func TestSlidingLogCountsACallPerEntry(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	p := &ratelimit.Policy{ID: "p", Limit: 1000, Window: time.Minute}
	for i := range int64(1000) {
		f.want(7*i, p, 1, admitted(999-i, time.Minute))
	}
	if n := len(f.dump(p)); n != 11+6*1000 {
		t.Errorf("the state has %d bytes", n)
	}
	for _, cost := range []int64{1, 2, 500, 999, 1000} {
		at := 60*sec + 7*(cost-1) - 1
		f.at(at)
		got := f.take(ratelimit.Op{Policy: p, Key: "k", Cost: cost})[0]
		want := refused(cost-1, time.Microsecond, time.Duration(60*sec+7*999-at)*time.Microsecond)
		if got != want {
			t.Errorf("cost %d: got %+v, want %+v", cost, got, want)
		}
	}
}

func TestRD18CostZeroIsAPeekAndANegativeCostAnError(t *testing.T) {
	t.Parallel()
	for _, p := range policies() {
		t.Run(string(p.Algorithm), func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.want(0, p, 0, admitted(5, 0))
			if f.dump(p) != "" {
				t.Error("a peek made a state")
			}
			f.take(ratelimit.Op{Policy: p, Key: "k", Cost: 2})
			before := f.dump(p)
			f.at(10)
			if got := f.take(ratelimit.Op{Policy: p, Key: "k"})[0]; !got.Allowed || got.Remaining != 3 {
				t.Errorf("peek: %+v", got)
			}
			for _, cost := range []int64{-5, -1, 6, math.MinInt64, math.MaxInt64} {
				ops := []ratelimit.Op{{Policy: p, Key: "k", Cost: cost}}
				if err := f.store.Take(context.Background(), ops); err == nil {
					t.Errorf("cost %d is no error: %+v", cost, ops[0].Outcome)
				}
			}
			if after := f.dump(p); after != before {
				t.Errorf("state %q became %q", before, after)
			}
		})
	}
}

// policies returns one of each algorithm, 5 a minute.
func policies() []*ratelimit.Policy {
	return []*ratelimit.Policy{
		{ID: "log", Algorithm: ratelimit.SlidingLog, Limit: 5, Window: time.Minute},
		{ID: "fixed", Algorithm: ratelimit.FixedWindow, Limit: 5, Window: time.Minute},
		{ID: "bucket", Algorithm: ratelimit.TokenBucket, Limit: 5, Window: time.Minute},
	}
}

func TestARefusalLeavesEveryStateAsItIs(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	full := &ratelimit.Policy{ID: "full", Limit: 1, Window: time.Minute}
	ops := []ratelimit.Op{{Policy: full, Key: "k", Cost: 1}}
	for _, p := range policies() {
		ops = append(ops, ratelimit.Op{Policy: p, Key: "k", Cost: 1})
	}
	f.take(ops...)
	var before []string
	for _, op := range ops {
		before = append(before, f.dump(op.Policy))
	}
	f.at(sec)
	outcomes := f.take(ops...)
	for i, op := range ops {
		if after := f.dump(op.Policy); after != before[i] {
			t.Errorf("%s: state %q became %q", op.Policy.ID, before[i], after)
		}
		if outcomes[i].Allowed != (i != 0) || (i != 0 && outcomes[i].Remaining != 4) {
			t.Errorf("%s: %+v", op.Policy.ID, outcomes[i])
		}
	}
	ops[0].Policy.Mode = ratelimit.Shadow
	for i, outcome := range f.take(ops...) {
		if outcome.Allowed != (i != 0) || (i != 0 && outcome.Remaining != 3) {
			t.Errorf("with a shadow, %s: %+v", ops[i].Policy.ID, outcome)
		}
	}
	if after := f.dump(full); after != before[0] {
		t.Errorf("a refusing shadow was charged: %q became %q", before[0], after)
	}
}

func TestAClockSetBackForGoodTakesTheStateWithIt(t *testing.T) {
	t.Parallel()
	for _, p := range policies() {
		t.Run(string(p.Algorithm), func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.at(0)
			f.take(ratelimit.Op{Policy: p, Key: "k", Cost: 5})
			state := f.dump(p)

			// For a little, time stands still.
			f.at(-10 * sec)
			still := f.take(ratelimit.Op{Policy: p, Key: "k", Cost: 1})[0]
			if still.Allowed || f.dump(p) != state {
				t.Errorf("10 s back: %+v", still)
			}
			// Beyond, a refusal sets the state back, once, and a peek does not.
			for _, back := range []int64{10*sec + 1, 30 * sec, 60 * sec, 3600 * sec} {
				f.at(-back)
				if peek := f.take(ratelimit.Op{Policy: p, Key: "k"})[0]; peek.Remaining != 0 || f.dump(p) != state {
					t.Errorf("peek: %+v", peek)
				}
				moved := f.take(ratelimit.Op{Policy: p, Key: "k", Cost: 1})[0]
				if moved != still || f.dump(p) == state {
					t.Errorf("%d µs back: %+v, want %+v", back, moved, still)
				}
				state = f.dump(p)
				if again := f.take(ratelimit.Op{Policy: p, Key: "k", Cost: 1})[0]; again != moved || f.dump(p) != state {
					t.Errorf("%d µs back, and again: %+v, want %+v", back, again, moved)
				}
				if ttl := f.ttl(p); ttl > longest(moved.ResetAfter, time.Minute+slack(time.Minute)) || ttl < moved.ResetAfter-5*time.Second {
					t.Errorf("TTL %v for a reset after %v", ttl, moved.ResetAfter)
				}
				f.at(-back + moved.RetryAfter.Microseconds() - 1)
				if got := f.take(ratelimit.Op{Policy: p, Key: "k", Cost: 1})[0]; got.Allowed || got.RetryAfter != time.Microsecond {
					t.Errorf("before RetryAfter: %+v", got)
				}
				f.at(-back + moved.RetryAfter.Microseconds())
				if got := f.take(ratelimit.Op{Policy: p, Key: "k", Cost: 1})[0]; !got.Allowed {
					t.Errorf("after RetryAfter: %+v", got)
				}
				if err := f.store.Reset(context.Background(), p, "k"); err != nil {
					t.Fatal(err)
				}
				f.at(0)
				f.take(ratelimit.Op{Policy: p, Key: "k", Cost: 5})
				state = f.dump(p)
			}
		})
	}
}

func TestRD04AStateLivesUntilItIsAsNew(t *testing.T) {
	t.Parallel()
	for _, p := range policies() {
		t.Run(string(p.Algorithm), func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			var most time.Duration // for time to live is real, and does not pass as the fake one
			for _, µs := range []int64{0, 500, 20 * sec, 10 * sec, 81 * sec} {
				f.at(µs)
				got := f.take(ratelimit.Op{Policy: p, Key: "k", Cost: 1})[0]
				need := got.ResetAfter
				if µs == 10*sec && p.Algorithm != ratelimit.FixedWindow {
					need += 10 * time.Second // the state is 10 s ahead of the clock
				}
				most = max(most, need+slack(need))
				if ttl := f.ttl(p); ttl > most+time.Millisecond || ttl < need-5*time.Second {
					t.Errorf("at %d µs the state is as new in %v and lives %v", µs, need, ttl)
				}
			}
		})
	}
}

func TestResetMakesTheNextCallTheFirst(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	for _, p := range policies() {
		first := f.take(ratelimit.Op{Policy: p, Key: "k", Cost: 5})[0]
		f.take(ratelimit.Op{Policy: p, Key: "other", Cost: 5})
		if err := f.store.Reset(context.Background(), p, "k"); err != nil {
			t.Fatal(err)
		}
		if got := f.take(ratelimit.Op{Policy: p, Key: "k", Cost: 5})[0]; got != first {
			t.Errorf("%s: %+v after a reset, %+v at first", p.ID, got, first)
		}
		if got := f.take(ratelimit.Op{Policy: p, Key: "other", Cost: 1})[0]; got.Allowed {
			t.Errorf("%s: another key was reset too", p.ID)
		}
	}
}
