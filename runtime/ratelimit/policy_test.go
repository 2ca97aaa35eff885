package ratelimit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

func TestValidateSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	const bucket, fixed = ratelimit.TokenBucket, ratelimit.FixedWindow
	for _, c := range []struct {
		policy ratelimit.Policy
		want   string // "" for a valid policy
	}{
		{ratelimit.Policy{Limit: 5, Window: time.Minute}, ""},
		{ratelimit.Policy{Limit: ratelimit.Unlimited}, ""},
		{ratelimit.Policy{Limit: ratelimit.Blocked}, ""},
		{ratelimit.Policy{Limit: 1, Window: time.Microsecond}, ""},
		{ratelimit.Policy{Limit: 4096, Window: ratelimit.MaxWindow}, ""},
		{ratelimit.Policy{Algorithm: bucket, Limit: 5, Burst: 50, Window: time.Minute}, ""},
		{ratelimit.Policy{Limit: 5}, "window 0s is not positive"},
		{ratelimit.Policy{Limit: 5, Window: -time.Second}, "window -1s is not positive"},
		{ratelimit.Policy{Limit: 5, Window: time.Microsecond + 1}, "not a whole number of microseconds"},
		{ratelimit.Policy{Limit: 5, Window: ratelimit.MaxWindow + time.Microsecond}, "is longer than"},
		{ratelimit.Policy{Limit: 0, Window: time.Minute}, "limit 0 is less than 1"},
		{ratelimit.Policy{Limit: -1, Window: time.Minute}, "limit -1 is less than 1"},
		{ratelimit.Policy{Algorithm: ratelimit.FixedWindow, Limit: ratelimit.MaxLimit + 1, Window: time.Minute}, "is above"},
		{ratelimit.Policy{Limit: 4097, Window: time.Minute}, "use sliding-window, token-bucket or fixed-window"},
		{ratelimit.Policy{Limit: 5, Window: time.Minute, Burst: 5}, "burst is for token-bucket, leaky-bucket and custom algorithms only"},
		{ratelimit.Policy{Algorithm: bucket, Limit: 5, Window: time.Minute, Burst: -3}, "burst -3"},
		{ratelimit.Policy{Algorithm: bucket, Limit: ratelimit.Unlimited, Burst: -3}, "burst -3"},
		{ratelimit.Policy{Algorithm: bucket, Limit: ratelimit.MaxLimit, Window: time.Minute}, "too large to be exact"},
		{ratelimit.Policy{Algorithm: bucket, Limit: 1, Burst: 2, Window: ratelimit.MaxWindow}, "takes longer than"},
		{ratelimit.Policy{Algorithm: "Bucket", Limit: 5, Window: time.Minute}, `unknown algorithm "Bucket"`},
		{ratelimit.Policy{Limit: 5, Window: time.Minute, Mode: 9}, "unknown mode 9"},
		{ratelimit.Policy{Limit: 5, Window: time.Minute, OnEmpty: 9}, "unknown OnEmpty 9"},
		{ratelimit.Policy{Limit: 5, Window: time.Minute, OnError: 9}, "unknown OnError 9"},
		{ratelimit.Policy{Algorithm: bucket, Limit: 5, Window: time.Minute, Refill: 9}, "unknown refill 9"},
		{ratelimit.Policy{Algorithm: fixed, Limit: 5, Align: "year"}, `unknown align "year"`},

		{ratelimit.Policy{Dynamic: true, Window: time.Minute}, ""},
		{ratelimit.Policy{Dynamic: true, Window: time.Minute, Limit: 5}, "limit 5 would be ignored"},
		{ratelimit.Policy{Dynamic: true}, "window 0s is not positive"},
		{ratelimit.Policy{Dynamic: true, Algorithm: ratelimit.LeakyBucket, Window: time.Minute}, "one limit for all calls"},
		{ratelimit.Policy{Dynamic: true, Algorithm: bucket, Window: time.Minute, Warmup: time.Second}, "one limit for all calls"},
		{ratelimit.Policy{Limit: 5, Window: time.Minute, Global: true, OnEmpty: ratelimit.SharedEmpty}, "no key can be empty"},

		{ratelimit.Policy{Algorithm: bucket, Limit: 5, Window: time.Minute, Initial: ratelimit.Empty}, ""},
		{ratelimit.Policy{Algorithm: bucket, Limit: 5, Window: time.Minute, Initial: 5}, ""},
		{ratelimit.Policy{Algorithm: bucket, Limit: 5, Window: time.Minute, Initial: 6}, "initial 6 is above the capacity of 5"},
		{ratelimit.Policy{Algorithm: bucket, Limit: 9, Burst: 5, Window: time.Minute, Initial: 6}, "initial 6 is above the burst of 5"},
		{ratelimit.Policy{Algorithm: bucket, Limit: 5, Window: time.Minute, Initial: -2}, "initial -2"},
		{ratelimit.Policy{Limit: 5, Window: time.Minute, Initial: 1}, "initial is for token-bucket only"},
		{ratelimit.Policy{Limit: 5, Window: time.Minute, Refill: ratelimit.Interval}, "refill is for token-bucket only"},
		{ratelimit.Policy{Algorithm: bucket, Limit: 1, Burst: 2, Window: ratelimit.MaxWindow, Refill: ratelimit.Interval}, "takes longer than"},

		{ratelimit.Policy{Algorithm: bucket, Limit: 5, Window: time.Minute, Warmup: time.Second}, ""},
		{ratelimit.Policy{Algorithm: fixed, Limit: 5, Window: time.Minute, Warmup: time.Second}, "warmup is for token-bucket only"},
		{ratelimit.Policy{Algorithm: bucket, Limit: 5, Window: time.Minute, Warmup: -time.Second}, "warmup -1s is not positive"},
		{ratelimit.Policy{Algorithm: bucket, Limit: 5, Window: time.Minute, Warmup: 1}, "warmup 1ns is not a whole number"},
		{ratelimit.Policy{Algorithm: bucket, Limit: 5, Window: time.Minute, Warmup: time.Second, Burst: 9}, "has no burst"},
		{ratelimit.Policy{Algorithm: bucket, Limit: 5, Window: time.Minute, Warmup: time.Second, Initial: 1}, "begins cold"},
		{ratelimit.Policy{Algorithm: bucket, Limit: 5, Window: time.Minute, Warmup: time.Second, Refill: ratelimit.Interval}, "refills smoothly"},
		{ratelimit.Policy{Algorithm: bucket, Limit: 5, Window: time.Minute, Warmup: time.Second, Count: true}, "cannot be given back"},
		{ratelimit.Policy{Algorithm: bucket, Limit: 5, Window: time.Minute, Warmup: time.Second, CostAfter: true}, "cannot be charged after"},
		{ratelimit.Policy{Algorithm: bucket, Limit: 5, Window: time.Minute, Refill: ratelimit.Interval, Count: true}, "cannot be given back"},

		{ratelimit.Policy{Algorithm: ratelimit.SlidingWindow, Limit: ratelimit.MaxLimit, Window: time.Minute}, ""},
		{ratelimit.Policy{Algorithm: ratelimit.SlidingWindow, Limit: 5, Window: time.Minute, Segments: 60}, ""},
		{ratelimit.Policy{Algorithm: ratelimit.SlidingWindow, Limit: 5, Window: time.Minute, Segments: 61}, "segments 61 are not in 2..60"},
		{ratelimit.Policy{Algorithm: ratelimit.SlidingWindow, Limit: 5, Window: time.Minute, Segments: 1}, "segments 1"},
		{ratelimit.Policy{Algorithm: ratelimit.SlidingWindow, Limit: 5, Window: 9 * time.Microsecond}, "too short for 10 segments"},
		{ratelimit.Policy{Algorithm: fixed, Limit: 5, Window: time.Minute, Segments: 10}, "segments are for sliding-window only"},

		{ratelimit.Policy{Algorithm: fixed, Limit: 5, Align: ratelimit.AlignDay}, ""},
		{ratelimit.Policy{Algorithm: fixed, Limit: 5, Align: ratelimit.AlignDay, TZ: "Europe/Paris"}, ""},
		{ratelimit.Policy{Algorithm: fixed, Limit: 5, Align: ratelimit.AlignDay, Window: time.Minute}, "no other window"},
		{ratelimit.Policy{Algorithm: fixed, Limit: 5, TZ: "Europe/Paris", Window: time.Minute}, "tz is for align only"},
		{ratelimit.Policy{Algorithm: bucket, Limit: 5, Align: ratelimit.AlignDay}, "align is for fixed-window only"},

		{ratelimit.Policy{Algorithm: ratelimit.LeakyBucket, Limit: 5, Burst: 9, Window: time.Minute}, ""},
		{ratelimit.Policy{Algorithm: ratelimit.LeakyBucket, Limit: 5, Burst: 9, Window: time.Minute, CostAfter: true}, "cannot be charged after"},
		{ratelimit.Policy{Algorithm: ratelimit.LeakyBucket, Limit: 1, Burst: 2, Window: ratelimit.MaxWindow}, "takes longer than"},

		{ratelimit.Policy{Algorithm: ratelimit.Concurrency, Limit: 5, Lease: time.Second}, ""},
		{ratelimit.Policy{Algorithm: ratelimit.Concurrency, Limit: 5, Window: time.Minute}, "concurrency has no window"},
		{ratelimit.Policy{Algorithm: ratelimit.Concurrency, Limit: 5, Count: true}, "count does not change concurrency"},
		{ratelimit.Policy{Algorithm: ratelimit.Concurrency, Limit: 5, CostAfter: true}, "a cost after the call"},
		{ratelimit.Policy{Algorithm: ratelimit.Concurrency, Limit: 5, Lease: -1}, "lease -1ns is not positive"},
		{ratelimit.Policy{Limit: 5, Window: time.Minute, Lease: time.Minute}, "lease is for concurrency only"},

		{ratelimit.Policy{Algorithm: ratelimit.TimeQuota, Limit: ratelimit.MaxWindow.Microseconds(), Window: time.Minute}, ""},
		{ratelimit.Policy{Algorithm: ratelimit.TimeQuota, Limit: ratelimit.MaxWindow.Microseconds() + 1, Window: time.Minute}, "is above"},
		{ratelimit.Policy{Algorithm: ratelimit.TimeQuota, Limit: 5, Window: time.Minute, CostAfter: true}, "a cost after the call"},

		{ratelimit.Policy{Limit: 5, Window: time.Minute, Lock: []time.Duration{time.Second, time.Minute}}, ""},
		{ratelimit.Policy{Limit: 5, Window: time.Minute, Lock: []time.Duration{time.Minute, time.Minute}}, "lock 1m0s is not longer than the 1m0s before it"},
		{ratelimit.Policy{Limit: 5, Window: time.Minute, Lock: []time.Duration{0}}, "lock 0s is not positive"},
		{ratelimit.Policy{Limit: 5, Window: time.Minute, Lock: []time.Duration{1}}, "lock 1ns is not a whole number"},
		{ratelimit.Policy{Limit: 5, Window: time.Minute, Lock: make([]time.Duration, 33)}, "33 locks are more than 32"},

		{ratelimit.Policy{Limit: 5, Window: time.Minute, MaxWait: time.Second, MaxQueue: 9, Message: "m", Status: 400}, ""},
		{ratelimit.Policy{Limit: 5, Window: time.Minute, MaxWait: -1}, "wait -1ns is negative"},
		{ratelimit.Policy{Limit: 5, Window: time.Minute, MaxQueue: -1}, "queue -1 is negative"},
		{ratelimit.Policy{Limit: 5, Window: time.Minute, Status: 399}, "status 399"},
		{ratelimit.Policy{Limit: 5, Window: time.Minute, Status: 600}, "status 600"},
	} {
		c.policy.ID = "p"
		err := c.policy.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q", c.policy, err, c.want)
		}
	}
}
