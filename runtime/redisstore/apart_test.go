package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimittest"
	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

// Policies whose keys live apart admit and refuse as those that live together, one
// call after the other: what a refused call was charged is given back.
func TestKeysThatLiveApartAreDecidedAsInMemory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		f := newFake(t)
		clock := ratelimittest.NewClock(time.UnixMicro(epoch))
		window := func() time.Duration {
			return time.Duration(rapid.Int64Range(50_000, 200_000).Draw(rt, "window")) * time.Microsecond
		}
		limit := func() int64 { return rapid.Int64Range(1, 6).Draw(rt, "limit") }
		policies := []ratelimit.Policy{
			{ID: "log", Limit: limit(), Window: window()},
			{ID: "fixed", Algorithm: ratelimit.FixedWindow, Limit: limit(), Window: window()},
			{ID: "bucket", Algorithm: ratelimit.TokenBucket, Limit: limit(), Window: window()},
			{ID: "sliding", Algorithm: ratelimit.SlidingWindow, Limit: limit(), Window: window()},
			{ID: "lock", Limit: limit(), Window: window(), Lock: []time.Duration{20 * time.Millisecond}},
			{ID: "shadow", Limit: limit(), Window: window(), Mode: ratelimit.Shadow},
		}
		policies = rapid.Permutation(policies).Draw(rt, "order")[:rapid.IntRange(2, 4).Draw(rt, "policies")]
		spec := &ratelimit.Spec{Policies: policies}
		near := ratelimit.New(ratelimit.WithClock(clock)).MustGate(spec)
		far := ratelimit.New(ratelimit.WithClock(clock), ratelimit.WithStore("", f.store.Apart())).MustGate(spec)
		now := int64(0)
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			now += rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 50), rapid.Int64Range(0, 60_000), rapid.Int64Range(0, sec)).Draw(rt, "time")
			clock.Set(time.UnixMicro(epoch + now))
			f.at(now)
			charges := make([]ratelimit.Charge, len(policies))
			for i := range charges {
				charges[i].Key = []byte(rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "key"))
				charges[i].Cost = rapid.Int64Range(0, min(3, policies[i].Limit)).Draw(rt, "cost")
			}
			ask := func(g *ratelimit.Gate) ratelimit.Decision {
				d, err := g.Take(context.Background(), charges...)
				if err != nil {
					rt.Fatal(err)
				}
				return d
			}
			if n, r := ask(near), ask(far); n != r {
				rt.Fatalf("%+v of %+v:\nin memory %+v\nin Redis  %+v", charges, policies, n, r)
			}
			for i := range charges {
				for j := range charges {
					charges[j].Skip = j != i
				}
				for _, key := range []string{"a", "b"} {
					charges[i].Key = []byte(key)
					n, err := near.Peek(context.Background(), charges...)
					r, ferr := far.Peek(context.Background(), charges...)
					if err != nil || ferr != nil || n != r {
						rt.Fatalf("peek at %+v of %+v:\nin memory %+v, %v\nin Redis  %+v, %v", charges[i], policies[i], n, err, r, ferr)
					}
				}
			}
		}
	})
}

// distance is a hook that has each command of a server take a time more.
type distance time.Duration

func (d distance) DialHook(next redis.DialHook) redis.DialHook { return next }

func (d distance) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		select {
		case <-time.After(time.Duration(d)):
			return next(ctx, cmd)
		case <-ctx.Done():
			cmd.SetErr(ctx.Err())
			return ctx.Err()
		}
	}
}

func (d distance) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// All commands of a call have the time of one, and what was charged is given back also
// when that is over.
func TestCallsWhoseKeysLiveApartHaveOneDeadline(t *testing.T) {
	t.Parallel()
	const step = 600 * time.Millisecond // each command takes that, and half of it is for a machine that is busy
	addrs := map[string]string{"a": startServer(t).addr, "b": startServer(t).addr}
	ring := func() *redis.Ring {
		r := redis.NewRing(&redis.RingOptions{Addrs: addrs, ContextTimeoutEnabled: true})
		t.Cleanup(func() { r.Close() })
		return r
	}
	ctx := context.Background()
	near, far := ring(), ring()
	if err := far.ForEachShard(ctx, func(ctx context.Context, c *redis.Client) error {
		defer c.AddHook(distance(step))
		return c.Ping(ctx).Err() // so that there is a connection
	}); err != nil {
		t.Fatal(err)
	}
	first := &ratelimit.Policy{ID: "first", Algorithm: ratelimit.FixedWindow, Limit: 10, Window: time.Hour}
	second := &ratelimit.Policy{ID: "second", Algorithm: ratelimit.FixedWindow, Limit: 1, Window: time.Hour}
	quick := redisstore.New(near)
	peek := func(p *ratelimit.Policy, key string) int64 {
		t.Helper()
		ops := []ratelimit.Op{{Policy: p, Key: key, Cost: 1, Limit: p.Limit, Peek: true}}
		if err := quick.Take(ctx, ops); err != nil {
			t.Fatal(err)
		}
		return ops[0].Outcome.Remaining
	}
	keys := map[string]string{} // one on each server, both of which know the script then
	for i := 0; len(keys) < 2; i++ {
		key := fmt.Sprint("k", i)
		shard, err := near.GetShardClientForKey(quick.KeyOf(first, key))
		if err != nil {
			t.Fatal(err)
		}
		keys[shard.Options().Addr] = key
		peek(first, key)
	}
	a, b := keys[addrs["a"]], keys[addrs["b"]]
	take := func(ctx context.Context, timeout, most time.Duration) ([]ratelimit.Op, error) {
		t.Helper()
		store := redisstore.New(far, redisstore.WithTimeout(timeout), quiet)
		ops := []ratelimit.Op{{Policy: first, Key: a, Cost: 1, Limit: 10}, {Policy: second, Key: b, Cost: 1, Limit: 1}}
		began := time.Now()
		err := store.Take(ctx, ops)
		if took := time.Since(began); took > most+step/2 {
			t.Errorf("with %v it took %v, want at most %v", timeout, took, most)
		}
		until(t, 10*time.Second, func() bool { return err == nil && ops[1].Outcome.Allowed || peek(first, a) == 10 })
		return ops, err
	}
	if _, err := take(ctx, 3*step/2, 3*step/2); classOf(err) != redisstore.Timeout {
		t.Errorf("with time for one command: error %v", err)
	}
	if n := peek(second, b); n != 1 {
		t.Errorf("%d left of what was not asked in time", n)
	}
	early, cancel := context.WithTimeout(ctx, 3*step/2)
	defer cancel()
	if _, err := take(early, 10*time.Second, 3*step/2); !errors.Is(err, context.DeadlineExceeded) || classOf(err) != "" {
		t.Errorf("with a deadline of the caller: error %v", err)
	}
	if ops, err := take(ctx, 5*step/2, 5*step/2); err != nil || !ops[0].Outcome.Allowed || !ops[1].Outcome.Allowed {
		t.Errorf("with time for two commands: %+v, %v", ops, err)
	}
	if err := quick.Reset(ctx, first, a); err != nil {
		t.Fatal(err)
	}
	if ops, err := take(ctx, 5*step/2, 5*step/2); err != nil || !ops[0].Outcome.Allowed || ops[1].Outcome.Allowed || ops[1].Outcome.RetryAfter < time.Minute {
		t.Errorf("refused, with time for two commands: %+v, %v", ops, err)
	}
	if ops, err := take(ctx, 30*time.Second, 30*time.Second); err != nil || ops[0].Outcome.Remaining != 10 || ops[1].Outcome.Allowed {
		t.Errorf("refused, with time for all commands: %+v, %v", ops, err)
	}
}
