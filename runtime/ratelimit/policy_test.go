package ratelimit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

func TestValidateSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	const bucket = ratelimit.TokenBucket
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
		{ratelimit.Policy{Limit: 5, Window: time.Minute, Burst: 5}, "burst is for token-bucket and leaky-bucket only"},
		{ratelimit.Policy{Algorithm: bucket, Limit: 5, Window: time.Minute, Burst: -3}, "burst -3"},
		{ratelimit.Policy{Algorithm: bucket, Limit: ratelimit.Unlimited, Burst: -3}, "burst -3"},
		{ratelimit.Policy{Algorithm: bucket, Limit: ratelimit.MaxLimit, Window: time.Minute}, "too large to be exact"},
		{ratelimit.Policy{Algorithm: bucket, Limit: 1, Burst: 2, Window: ratelimit.MaxWindow}, "takes longer than"},
		{ratelimit.Policy{Algorithm: "bucket", Limit: 5, Window: time.Minute}, `unknown algorithm "bucket"`},
		{ratelimit.Policy{Limit: 5, Window: time.Minute, Mode: 9}, "unknown mode 9"},
		{ratelimit.Policy{Limit: 5, Window: time.Minute, OnEmpty: 9}, "unknown OnEmpty 9"},
	} {
		c.policy.ID = "p"
		err := c.policy.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q", c.policy, err, c.want)
		}
	}
}
