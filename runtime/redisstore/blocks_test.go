package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimittest"
	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

// Calls of keys that are blocked now and then are told the same in memory.
func TestBlocksAreDecidedAsInMemory(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client, _ := sharedClient(t)
	all := append(everyForm(),
		&ratelimit.Policy{ID: "empty", Algorithm: ratelimit.TokenBucket, Limit: 5, Window: time.Minute, Initial: ratelimit.Empty},
		&ratelimit.Policy{ID: "locked initial", Algorithm: ratelimit.TokenBucket, Limit: 5, Window: time.Minute, Initial: 1, Lock: []time.Duration{time.Second, time.Minute}},
		&ratelimit.Policy{ID: "interval empty", Algorithm: ratelimit.TokenBucket, Limit: 5, Window: time.Minute, Initial: ratelimit.Empty, Refill: ratelimit.Interval},
		&ratelimit.Policy{ID: "dynamic capacity", Algorithm: ratelimit.TokenBucket, Dynamic: true, Window: time.Minute},
		&ratelimit.Policy{ID: "dynamic initial", Algorithm: ratelimit.TokenBucket, Dynamic: true, Window: time.Minute, Initial: 2},
		&ratelimit.Policy{ID: "dynamic interval", Algorithm: ratelimit.TokenBucket, Dynamic: true, Window: time.Minute, Refill: ratelimit.Interval},
		&ratelimit.Policy{ID: "dynamic sliding", Algorithm: ratelimit.SlidingWindow, Dynamic: true, Window: time.Minute})
	for _, p := range slices.Clone(all) {
		// Where a microsecond makes a difference.
		if p.Algorithm == ratelimit.TokenBucket && p.Warmup == 0 {
			small := *p
			small.ID += ", small"
			small.Window = 101 * time.Microsecond
			all = append(all, &small)
		}
	}
	for _, p := range all {
		if p.Algorithm == ratelimit.Concurrency || p.Algorithm == ratelimit.TimeQuota {
			continue // Take is not for them
		}
		p.Count, p.CostAfter = false, false // nor for these
		t.Run(p.ID, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				prefix := fmt.Sprintf("t%d:", prefixes.Add(1))
				clock := ratelimittest.NewClock(time.UnixMicro(epoch))
				spec := &ratelimit.Spec{Policies: []ratelimit.Policy{*p}}
				memory := ratelimit.New(ratelimit.WithClock(clock)).MustGate(spec)
				store := ratelimit.New(ratelimit.WithClock(clock), ratelimit.WithStore("", redisstore.NewFakeTime(client, prefix))).MustGate(spec)
				now, unit := int64(0), max(1, p.Window.Microseconds()/60)
				for range rapid.IntRange(1, 20).Draw(rt, "steps") {
					now += rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, 30*unit), rapid.Int64Range(0, 150*unit)).Draw(rt, "passes")
					clock.Set(time.UnixMicro(epoch + now))
					if err := client.Set(ctx, prefix+"now", epoch+now, 0).Err(); err != nil {
						rt.Fatal(err)
					}
					charge := ratelimit.Charge{Key: []byte("k"), Cost: rapid.Int64Range(0, 3).Draw(rt, "cost"), Limit: rapid.OneOf(rapid.Int64Range(3, 7), rapid.Int64Range(3, 1000)).Draw(rt, "limit")}
					var a, b ratelimit.Decision
					var errs [2]error
					what := rapid.SampledFrom([]string{"take", "take", "take", "take", "peek", "block", "lift", "reset"}).Draw(rt, "what")
					switch what {
					case "take":
						a, errs[0] = memory.Take(ctx, charge)
						b, errs[1] = store.Take(ctx, charge)
					case "peek":
						a, errs[0] = memory.Peek(ctx, charge)
						b, errs[1] = store.Peek(ctx, charge)
					case "reset":
						errs[0], errs[1] = memory.Reset(ctx, charge.Key), store.Reset(ctx, charge.Key)
					default:
						d := time.Duration(0)
						if what == "block" {
							d = time.Duration(rapid.Int64Range(1, 60*unit).Draw(rt, "for")) * time.Microsecond
						}
						errs[0], errs[1] = memory.Block(ctx, d, charge.Key), store.Block(ctx, d, charge.Key)
					}
					if err := errors.Join(errs[:]...); err != nil {
						rt.Fatal(err)
					}
					if a != b {
						rt.Fatalf("%s at %d µs, cost %d, limit %d:\nmemory %+v\nRedis  %+v", what, now, charge.Cost, charge.Limit, a, b)
					}
				}
			})
		})
	}
}
