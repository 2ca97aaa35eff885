package ratelimit_test

import (
	"testing"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimittest"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	all := func(*ratelimit.Policy) bool { return true }
	ratelimittest.TestStore(t, ratelimittest.Harness{Supports: all, Reserves: all, New: func(testing.TB) ratelimittest.Subject {
		clock := new(ratelimittest.Clock)
		l := ratelimit.New(ratelimit.WithClock(clock))
		return ratelimittest.Subject{
			Limiter: l,
			After:   true,
			SetTime: func(us int64) { clock.Set(time.UnixMicro(us)) },
			Dump: func(p *ratelimit.Policy, key string) []byte {
				return ratelimit.Dump(l, p.ID, key)
			},
		}
	}})
}
