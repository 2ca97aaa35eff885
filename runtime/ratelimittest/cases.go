package ratelimittest

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

var (
	algorithms = []ratelimit.Algorithm{ratelimit.SlidingLog, ratelimit.FixedWindow, ratelimit.TokenBucket}

	perSecond = ratelimit.Policy{Algorithm: ratelimit.TokenBucket, Limit: 1, Window: time.Second}
)

// algorithms are those of algorithms that the store supports.
func (t *subjectTest) algorithms() []ratelimit.Algorithm {
	t.Helper()
	supported := t.harness.algorithms()
	if len(supported) == 0 {
		t.Skip("the store supports none of the algorithms")
	}
	return supported
}

// some is log, or another algorithm if the store does not support that.
func (t *subjectTest) some(limit int64, window time.Duration) ratelimit.Policy {
	t.Helper()
	return ratelimit.Policy{Algorithm: t.algorithms()[0], Limit: limit, Window: window}
}

func log(limit int64, window time.Duration) ratelimit.Policy {
	return ratelimit.Policy{Algorithm: ratelimit.SlidingLog, Limit: limit, Window: window}
}

// cases are single histories. The names that begin with RT and RD are of reports
// from trackers of other limiters.
var cases = []struct {
	name string
	run  func(*subjectTest)
}{
	{"RT02 a bucket gains nothing when time steps back and forth", func(t *subjectTest) {
		gate := t.gate(perSecond)
		t.at(time.Second)
		t.want(gate, 1, true)
		t.at(0)
		t.want(gate, 1, false)
		t.at(time.Second)
		t.want(gate, 1, false)
		t.at(2 * time.Second)
		t.want(gate, 1, true)
	}},
	{"calls at one time are admitted no more than the limit together", func(t *subjectTest) {
		for _, a := range t.algorithms() {
			one := ratelimit.Policy{Algorithm: a, Limit: 700, Window: time.Hour}
			other := ratelimit.Policy{Algorithm: ratelimit.FixedWindow, Limit: 2000, Window: time.Hour}
			t.together(1600, 1, 1, 700, one)
			t.together(800, 1, 3, 233, one)
			t.together(1600, 1, 1, 700, one, other)
			t.together(1600, 200, 1, 200, ratelimit.Policy{Algorithm: a, Limit: 1, Window: time.Hour})
		}
	}},
	{"RT08 a clock set back for good neither panics nor locks out", func(t *subjectTest) {
		for _, a := range t.algorithms() {
			gate := t.gate(ratelimit.Policy{Algorithm: a, Limit: 5, Window: 10 * time.Second})
			t.at(100 * time.Second)
			for range 3 {
				t.want(gate, 1, true)
			}
			t.at(40 * time.Second)
			for range 2 {
				t.want(gate, 1, true)
			}
			if d := t.want(gate, 1, false); d.RetryAfter <= 0 || d.RetryAfter > 10*time.Second {
				t.Errorf("%s: RetryAfter = %v, want within the window", a, d.RetryAfter)
			}
			t.at(50 * time.Second)
			t.want(gate, 1, true)
		}
	}},
	{"RT08 a refusal keeps the state that moved with the clock", func(t *subjectTest) {
		for _, a := range t.algorithms() {
			gate := t.gate(ratelimit.Policy{Algorithm: a, Limit: 1, Window: 10 * time.Second})
			t.at(100 * time.Second)
			t.want(gate, 1, true)
			t.at(0)
			t.wantRetry(t.want(gate, 1, false), 10*time.Second)
			t.at(4 * time.Second)
			t.wantRetry(t.want(gate, 1, false), 6*time.Second)
			t.at(10 * time.Second)
			t.want(gate, 1, true)
		}
	}},
	{"a clock set back by little stands still, and by more than 10 s is believed", func(t *subjectTest) {
		for _, a := range t.algorithms() {
			for _, w := range []time.Duration{4 * time.Second, time.Minute, 2 * time.Hour} {
				// Time stands still by up to a window, and by MaxStandstill if that is longer.
				still := min(w, 10*time.Second)
				gate := t.gate(ratelimit.Policy{Algorithm: a, Limit: 1, Window: w})
				t.at(10 * time.Hour)
				t.want(gate, 1, true)
				t.at(10*time.Hour - still)
				t.wantRetry(t.want(gate, 1, false), w)
				t.at(10*time.Hour + w - time.Microsecond)
				t.wantRetry(t.want(gate, 1, false), time.Microsecond)
				t.at(10*time.Hour - still - time.Microsecond)
				t.wantRetry(t.want(gate, 1, false), w)
				t.at(10*time.Hour - still + w - 2*time.Microsecond)
				t.wantRetry(t.want(gate, 1, false), time.Microsecond)
				t.at(10*time.Hour - still + w - time.Microsecond)
				t.want(gate, 1, true)
			}
		}
	}},
	{"RT12 what remains is never above the limit", func(t *subjectTest) {
		for _, a := range t.algorithms() {
			gate := t.gate(ratelimit.Policy{Algorithm: a, Limit: 3, Window: time.Minute})
			for i := range 300 {
				t.at(time.Duration(i*i%71) * time.Second)
				if d := t.take(gate, int64(i%3)); d.Remaining < 0 || d.Remaining > d.Limit || d.Limit != 3 {
					t.Fatalf("%s, call %d: %d of %d remain", a, i, d.Remaining, d.Limit)
				}
			}
		}
	}},
	{"RT18 a cost that can never fit is an error of its own and charges nothing", func(t *subjectTest) {
		gate := t.gate(t.some(10, time.Minute))
		t.want(gate, 5, true)
		t.wantError(gate, ratelimit.ErrCost, "k", 100)
		if d := t.want(gate, 3, true); d.Remaining != 2 {
			t.Errorf("%d remain, want 2", d.Remaining)
		}
		t.want(gate, 3, false)
	}},
	{"RT20 refused tries are not counted", func(t *subjectTest) {
		gate := t.gate(log(10, 10*time.Minute))
		admitted := 0
		for i := range 40 {
			t.at(time.Duration(i) * 30 * time.Second)
			if t.take(gate, 1).Allowed {
				admitted++
			}
		}
		if admitted != 20 {
			t.Errorf("%d of 40 tries admitted, want 20", admitted)
		}
	}},
	{"RD12 a log of which all has expired admits", func(t *subjectTest) {
		gate := t.gate(log(2, time.Second))
		t.want(gate, 1, true)
		t.at(time.Millisecond)
		t.want(gate, 1, true)
		t.want(gate, 1, false)
		t.at(time.Second + time.Millisecond)
		if d := t.want(gate, 2, true); d.Remaining != 0 {
			t.Errorf("%d remain, want 0", d.Remaining)
		}
	}},
	{"RD16 a bucket of 6 per minute refills each 10 s to the microsecond", func(t *subjectTest) {
		gate := t.gate(ratelimit.Policy{Algorithm: ratelimit.TokenBucket, Limit: 6, Window: time.Minute})
		for range 6 {
			t.want(gate, 1, true)
		}
		t.wantRetry(t.want(gate, 1, false), 10*time.Second)
		t.at(10*time.Second - time.Microsecond)
		t.wantRetry(t.want(gate, 1, false), time.Microsecond)
		t.at(10 * time.Second)
		t.want(gate, 1, true)
		t.want(gate, 1, false)
	}},
	{"RD18 a negative cost is an error and a cost of 0 a peek", func(t *subjectTest) {
		for _, a := range t.algorithms() {
			gate := t.gate(ratelimit.Policy{Algorithm: a, Limit: 2, Window: time.Minute})
			t.wantError(gate, ratelimit.ErrCost, "k", -5)
			t.wantError(gate, ratelimit.ErrCost, "k", math.MinInt64)
			t.wantError(gate, ratelimit.ErrCost, "k", math.MaxInt64)
			for range 3 {
				if d := t.want(gate, 0, true); d.Remaining != 2 {
					t.Errorf("%s: %d remain, want 2", a, d.Remaining)
				}
			}
			t.want(gate, 2, true)
			t.want(gate, 0, true)
			t.want(gate, 1, false)
		}
	}},
	{"the first unit of a log no longer counts at first + window", func(t *subjectTest) {
		gate := t.gate(log(2, time.Minute))
		t.want(gate, 1, true)
		t.at(30 * time.Second)
		t.want(gate, 1, true)
		t.at(time.Minute - time.Microsecond)
		t.wantRetry(t.want(gate, 1, false), time.Microsecond)
		t.at(time.Minute)
		t.want(gate, 1, true)
		t.wantRetry(t.want(gate, 1, false), 30*time.Second)
		t.wantRetry(t.want(gate, 2, false), time.Minute)
	}},
	{"a log that rolls on and then grows keeps its order", func(t *subjectTest) {
		gate := t.gate(log(100, 3500*time.Millisecond))
		var now time.Duration
		for range 11 {
			t.at(now)
			if d := t.want(gate, 1, true); now >= 3*time.Second && d.Remaining != 96 {
				t.Errorf("at %v %d remain, want 96", now, d.Remaining)
			}
			now += time.Second
		}
		now -= time.Second
		for i := range 96 {
			t.at(now + time.Duration(i)*time.Microsecond)
			t.want(gate, 1, true)
		}
		for i := range 3 {
			wait := time.Duration(i)*time.Second + 500*time.Millisecond - 95*time.Microsecond
			t.wantRetry(t.want(gate, int64(i+1), false), wait)
		}
	}},
	{"a fixed window begins with the key's first admitted call", func(t *subjectTest) {
		gate := t.gate(ratelimit.Policy{Algorithm: ratelimit.FixedWindow, Limit: 2, Window: time.Minute})
		t.at(59 * time.Second)
		t.want(gate, 1, true)
		t.at(118 * time.Second)
		t.want(gate, 1, true)
		t.wantRetry(t.want(gate, 1, false), time.Second)
		t.at(119 * time.Second)
		t.want(gate, 2, true)
		t.wantRetry(t.want(gate, 1, false), time.Minute)
	}},
	{"a bucket whose rate is no whole number of microseconds does not drift", func(t *subjectTest) {
		// 7 per 10 s: one each 1428571 3/7 µs.
		gate := t.gate(ratelimit.Policy{Algorithm: ratelimit.TokenBucket, Limit: 7, Window: 10 * time.Second})
		t.want(gate, 7, true)
		for i := range int64(70) {
			due := time.Duration(((i+1)*10_000_000+6)/7) * time.Microsecond
			t.at(due - time.Microsecond)
			t.wantRetry(t.want(gate, 1, false), time.Microsecond)
			t.at(due)
			t.want(gate, 1, true)
		}
	}},
	{"all counts at one instant", func(t *subjectTest) {
		for _, a := range t.algorithms() {
			gate := t.gate(ratelimit.Policy{Algorithm: a, Limit: 200, Window: time.Minute})
			for range 200 {
				t.want(gate, 1, true)
			}
			t.want(gate, 1, false)
		}
	}},
	{"the largest limits do not overflow", func(t *subjectTest) {
		const year = 365 * 24 * time.Hour
		for _, p := range []ratelimit.Policy{
			{Algorithm: ratelimit.FixedWindow, Limit: ratelimit.MaxLimit, Window: ratelimit.MaxWindow},
			{Algorithm: ratelimit.SlidingLog, Limit: ratelimit.MaxLogLimit, Window: ratelimit.MaxWindow},
			{Algorithm: ratelimit.TokenBucket, Limit: 94_906_265, Window: year},
			{Algorithm: ratelimit.TokenBucket, Limit: ratelimit.MaxLimit, Burst: 1 << 22, Window: time.Microsecond},
			{Algorithm: ratelimit.TokenBucket, Limit: 3, Burst: 30, Window: year - time.Microsecond},
		} {
			if !slices.Contains(t.algorithms(), p.Algorithm) {
				continue
			}
			gate := t.gate(p)
			capacity := p.Capacity()
			if d := t.want(gate, capacity, true); d.Remaining != 0 {
				t.Errorf("%+v: %d remain of a burst", p, d.Remaining)
			}
			d := t.want(gate, capacity, false)
			t.at(d.RetryAfter)
			t.want(gate, capacity, true)
		}
	}},
	{"a refusal by one policy charges none, in any order", func(t *subjectTest) {
		for _, a := range t.algorithms() {
			wide, narrow := log(10, time.Minute), log(1, time.Second)
			wide.Algorithm, narrow.Algorithm = a, a
			for i, order := range [][]ratelimit.Policy{{wide, narrow}, {narrow, wide}} {
				gate := t.gate(order...)
				t.want(gate, 1, true)
				for range 20 {
					t.wantRetry(t.want(gate, 1, false), time.Second)
				}
				single, err := t.Limiter.Gate(&ratelimit.Spec{Policies: t.policies[i : i+1]})
				if err != nil {
					t.Fatal(err)
				}
				d, err := single.Take(context.Background(), ratelimit.Charge{Key: []byte("k"), Cost: 9})
				if err != nil || !d.Allowed || d.Remaining != 0 {
					t.Errorf("%s: after refusals, 9 of 10: %+v, %v", a, d, err)
				}
			}
		}
	}},
	{"a shadow refuses nothing, and is charged only for what it would admit", func(t *subjectTest) {
		shadow := log(1, time.Minute)
		shadow.Mode = ratelimit.Shadow
		gate := t.gate(log(3, time.Minute), shadow)
		if d := t.want(gate, 1, true); d.Shadow {
			t.Errorf("the first call: %+v, want no shadow refusal", d)
		}
		t.at(30 * time.Second)
		if d := t.want(gate, 1, true); !d.Shadow || d.Policy != t.policies[0].ID || d.Remaining != 1 {
			t.Errorf("the second call: %+v, want a shadow refusal told by the other policy", d)
		}
		t.at(time.Minute)
		if d := t.want(gate, 1, true); d.Shadow {
			t.Errorf("after a minute: %+v, want no shadow refusal", d)
		}
	}},
	{"keys are told apart whatever their bytes", func(t *subjectTest) {
		gate := t.gate(t.some(1, time.Minute))
		long := make([]byte, 1000)
		keys := [][]byte{{0}, []byte("a"), []byte("A"), []byte("a "), []byte("a\x00"), []byte("{a}"), []byte("}"), []byte("%"), []byte("%25"),
			[]byte("a:b"), []byte("a|b"), []byte(`a\|b`), []byte("\xff\xfe"), []byte("é"), []byte("e\u0301"), []byte("\r\n"), long, long[:999], long[:25], long[:24], long[:129]}
		for range 2 {
			for _, key := range keys {
				_ = gate.Reset(context.Background(), key)
			}
			for i, want := range []bool{true, false} {
				for _, key := range keys {
					d, err := gate.Take(context.Background(), ratelimit.Charge{Key: key, Cost: 1})
					if err != nil || d.Allowed != want {
						t.Errorf("key %q, call %d: %+v, %v", key, i+1, d, err)
					}
				}
			}
		}
	}},
	{"calls without a key are refused, unless the policy is global", func(t *subjectTest) {
		p := t.some(1, time.Minute)
		t.wantError(t.gate(p), ratelimit.ErrNoKey, "", 1)
		p.Global = true
		gate := t.gate(p)
		for i, key := range []string{"a", "b", ""} {
			d, err := gate.Take(context.Background(), ratelimit.Charge{Key: []byte(key), Cost: 1})
			if err != nil || d.Allowed != (i == 0) {
				t.Errorf("call %d of one global counter: %+v, %v", i+1, d, err)
			}
		}
	}},
	{"a call whose context is done charges nothing", func(t *subjectTest) {
		gate := t.gate(t.some(1, time.Minute))
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := gate.Allow(ctx, []byte("k")); err != context.Canceled {
			t.Errorf("error %v, want %v", err, context.Canceled)
		}
		t.want(gate, 1, true)
	}},
}
