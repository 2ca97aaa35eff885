package redisstore_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimittest"
	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client, _ := sharedClient(t)
	ratelimittest.TestStore(t, ratelimittest.Harness{Supports: supported, Reserves: reserves, New: func(tb testing.TB) ratelimittest.Subject {
		prefix := fmt.Sprintf("conformance%d:", prefixes.Add(1))
		store := redisstore.NewFakeTime(client, prefix)
		clock := ratelimittest.NewClock(time.Unix(0, 0))
		return ratelimittest.Subject{
			Limiter: ratelimit.New(ratelimit.WithStore("", unrenewed{store}), ratelimit.WithClock(clock)),
			SetTime: func(us int64) {
				clock.Set(time.UnixMicro(us))
				if err := client.Set(ctx, prefix+"now", us, 0).Err(); err != nil {
					tb.Fatal(err)
				}
			},
			Dump: func(p *ratelimit.Policy, key string) []byte {
				raw, err := getState(ctx, client, store.KeyOf(p, key)).Bytes()
				if err != nil && err != redis.Nil {
					tb.Fatal(err)
				}
				return raw
			},
		}
	}})
}

func supported(p *ratelimit.Policy) bool { return redisstore.New(nil).Supports(p) == nil }

func reserves(p *ratelimit.Policy) bool { return p.Align == "" }

// unrenewed is a store that renews no leases: renewals come by the time of the process,
// which passes while fake time does not.
type unrenewed struct{ *redisstore.Store }

func (u unrenewed) End(ctx context.Context, ends []ratelimit.End) error {
	ends = slices.DeleteFunc(slices.Clone(ends), func(e ratelimit.End) bool { return e.What == ratelimit.EndRenew })
	if len(ends) == 0 {
		return nil
	}
	return u.Store.End(ctx, ends)
}
