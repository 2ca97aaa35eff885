package ratelimit_test

import (
	"testing"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

func TestErrorSaysWhatWasDeniedByWhatAndWhenToRetry(t *testing.T) {
	t.Parallel()
	const denied = `denied by pay.Service.Pay (service.go) "max=5 window=1m"`
	for _, c := range []struct {
		kind  error
		after time.Duration
		want  string
	}{
		{ratelimit.ErrLimited, 11*time.Second + 1, ", retry in 12s"},
		{ratelimit.ErrLimited, 1234 * time.Millisecond, ", retry in 1.3s"},
		{ratelimit.ErrLimited, 1234 * time.Microsecond, ", retry in 2ms"},
		{ratelimit.ErrLimited, time.Microsecond, ", retry in 1µs"},
		{ratelimit.ErrLimited, ratelimit.Never, ", never admitted"},
		{ratelimit.ErrNoKey, ratelimit.Never, ": no key to count the call under"},
		{ratelimit.ErrCost, ratelimit.Never, ": cost can never be admitted"},
	} {
		err := &ratelimit.Error{
			Kind:      c.kind,
			Method:    "pay.Service.Pay",
			File:      "service.go",
			Directive: "max=5 window=1m",
			Decision:  ratelimit.Decision{RetryAfter: c.after},
		}
		if got := err.Error(); got != denied+c.want {
			t.Errorf("got  %s\nwant %s", got, denied+c.want)
		}
	}
}
