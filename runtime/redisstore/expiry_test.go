package redisstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

// roomy are policies of all kinds that common.lua decides, with room for many calls.
func roomy() []*ratelimit.Policy {
	return []*ratelimit.Policy{
		{ID: "log", Limit: 1000, Window: time.Minute},
		{ID: "fixed", Algorithm: ratelimit.FixedWindow, Limit: 1000, Window: time.Minute},
		{ID: "bucket", Algorithm: ratelimit.TokenBucket, Limit: 1000, Window: time.Minute},
	}
}

// slack is for how much longer a key lives than its state says something, at most.
func slack(need time.Duration) time.Duration { return min(need/16, 30*time.Minute) + time.Second }

// Calls in a row set once when the key expires. Then it lives for long enough, and not for
// much longer.
func TestCallsInARowDoNotSetAnewWhenAKeyExpires(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, several := range []bool{false, true} {
		client := connect(t, startServer(t).addr)
		store := redisstore.New(client)
		var ops []ratelimit.Op
		for _, p := range roomy() {
			ops = append(ops, ratelimit.Op{Policy: p, Key: "k", Cost: 1})
		}
		const n = 10 // a bucket is as new in 0.6 s then, for which the first call provides
		for range n {
			if several {
				if err := store.Take(ctx, ops); err != nil {
					t.Fatal(err)
				}
				continue
			}
			for i := range ops {
				if err := store.Take(ctx, ops[i:i+1]); err != nil {
					t.Fatal(err)
				}
			}
		}
		made := calls(t, client)
		if redisstore.InHashes() {
			writes := n * len(ops)
			if several {
				writes = n
			}
			if made["hset"] != writes || made["pexpire"] != 1 {
				t.Errorf("several is %t: %d hset and %d pexpire for %d calls", several, made["hset"], made["pexpire"], n*len(ops))
			}
		} else if made["set"] != n+2 || made["setrange"] != (n-1)*(len(ops)-1) {
			// The log grows, and is written as a whole, but keeps its time to live.
			t.Errorf("several is %t: %d set and %d setrange for %d calls", several, made["set"], made["setrange"], n*len(ops))
		}
		for _, op := range ops {
			ttl := client.PTTL(ctx, place(store.KeyOf(op.Policy, "k"))).Val()
			if need := op.Outcome.ResetAfter; ttl < need-100*time.Millisecond || ttl > time.Minute+slack(time.Minute) {
				t.Errorf("several is %t: %s is as new in %v and lives %v", several, op.Policy.ID, need, ttl)
			}
		}
	}
}

// Whatever a key's time to live is, after a call it is long enough, and not longer than it
// would have to be by more than an hour.
func TestACallSetsWhenAKeyExpiresIfItDoesNotFit(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client, prefix := sharedClient(t)
	store := redisstore.New(client, redisstore.WithPrefix(prefix))
	for _, p := range roomy() {
		key := place(store.KeyOf(p, "k"))
		changes := map[string]func() error{
			"no time to live": func() error { return client.Persist(ctx, key).Err() },
			"too short":       func() error { return client.PExpire(ctx, key, 10*time.Second).Err() },
			"too long":        func() error { return client.PExpire(ctx, key, 100*time.Hour).Err() },
		}
		if redisstore.InHashes() {
			delete(changes, "too long") // another state of the hash may need it
		}
		for what, change := range changes {
			ops := []ratelimit.Op{{Policy: p, Key: "k", Cost: 200}} // 12 s of a bucket
			if err := store.Take(ctx, ops); err != nil {
				t.Fatal(err)
			}
			if err := change(); err != nil {
				t.Fatal(err)
			}
			if err := store.Take(ctx, ops); err != nil {
				t.Fatal(err)
			}
			need := ops[0].Outcome.ResetAfter
			ttl := client.PTTL(ctx, key).Val()
			if used := p.Limit - ops[0].Outcome.Remaining; used < 390 || ttl < need-5*time.Second || ttl > need+time.Hour {
				t.Errorf("%s, %s: %d used, as new in %v and lives %v", p.ID, what, used, need, ttl)
			}
			if err := store.Reset(ctx, p, "k"); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Where the state is shorter than the one before, nothing of that is left behind it.
func TestALogThatHasBecomeShorterIsWrittenAsAWhole(t *testing.T) {
	t.Parallel()
	p := roomy()[0]
	common, plain := newFake(t), newFake(t)
	for _, µs := range []int64{0, 100_000, 200_000, 59 * sec, 61 * sec, 62 * sec} {
		common.at(µs)
		plain.at(µs)
		got := common.take(ratelimit.Op{Policy: p, Key: "k", Cost: 1})[0]
		ops := []ratelimit.Op{{Policy: p, Key: "k", Cost: 1}}
		if err := plain.store.TakePlain(context.Background(), ops); err != nil {
			t.Fatal(err)
		}
		if got != ops[0].Outcome || common.dump(p) != plain.dump(p) {
			t.Errorf("at %d µs: %+v and %q, want %+v and %q", µs, got, common.dump(p), ops[0].Outcome, plain.dump(p))
		}
	}
}

// A user who may do all but what makes decisions quick is served. Without another right,
// a call for a new key is charged nothing.
func TestAUserWithoutTheRightsThatMakeDecisionsQuickIsServed(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := startServer(t)
	admin := connect(t, s.addr)
	type right struct {
		without string
		works   bool
	}
	rights := []right{{"setrange", true}, {"pttl", true}, {"set", false}, {"get", false}}
	if redisstore.InHashes() {
		rights = []right{{"hmget", true}, {"pttl", false}, {"hset", false}}
	}
	for _, c := range rights {
		store := redisstore.New(admin, redisstore.WithPrefix(c.without+":"))
		var ops []ratelimit.Op
		for _, p := range roomy() {
			ops = append(ops, ratelimit.Op{Policy: p, Key: "k", Cost: 1})
		}
		if err := store.Take(ctx, ops[1:]); err != nil { // so that some keys are new, and some are not
			t.Fatal(err)
		}
		if err := admin.Do(ctx, "acl", "setuser", c.without, "on", ">p", "~*", "+@all", "-"+c.without).Err(); err != nil {
			t.Fatal(err)
		}
		client := redis.NewClient(&redis.Options{Addr: s.addr, Username: c.without, Password: "p", ContextTimeoutEnabled: true})
		t.Cleanup(func() { client.Close() })
		limited := redisstore.New(client, redisstore.WithPrefix(c.without+":"))
		err := limited.Take(ctx, ops)
		var e *redisstore.Error
		if (err == nil) != c.works || err != nil && !errors.As(err, &e) {
			t.Errorf("without %s: error %v", c.without, err)
		}
		for i, op := range ops {
			want := op.Policy.Limit - 1
			if c.works && i > 0 {
				want--
			}
			if i == 0 && !c.works {
				want++
			}
			peek := []ratelimit.Op{{Policy: op.Policy, Key: "k"}}
			if err := store.Take(ctx, peek); err != nil || peek[0].Outcome.Remaining != want {
				t.Errorf("without %s: %s has %d left, want %d; error %v", c.without, op.Policy.ID, peek[0].Outcome.Remaining, want, err)
			}
		}
	}
}
