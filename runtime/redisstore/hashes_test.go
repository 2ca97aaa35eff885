package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

// All other tests run with hashes too: see RATELIMITGEN_LAYOUT.

// Policies of one key are in one hash, and of that nothing is in what a store without
// hashes counts.
func TestAHashIsOfOneKeyAndOfStoresWithHashes(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := connect(t, startServer(t).addr)
	p := &ratelimit.Policy{ID: "a}b", Limit: 5, Window: time.Minute}
	q := &ratelimit.Policy{ID: "c", Algorithm: ratelimit.LeakyBucket, Limit: 5, Window: time.Minute}
	store := redisstore.New(client, redisstore.WithHashes(), redisstore.WithPrefix("{x}:"))
	for range 2 {
		if err := store.Take(ctx, []ratelimit.Op{{Policy: p, Key: "k}", Cost: 1}, {Policy: q, Key: "k}", Cost: 1}, {Policy: q, Key: "", Cost: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	for hash, fields := range map[string][]string{"{x}:{k%7D}": {"a%7Db:log", "c:leaky"}, "{x}:{%}": {"c:leaky"}} {
		for _, field := range fields {
			if ok, err := client.HExists(ctx, hash, field).Result(); err != nil || !ok {
				t.Errorf("%s has no %s, %v", hash, field, err)
			}
		}
		if n, err := client.HLen(ctx, hash).Result(); err != nil || int(n) != len(fields) {
			t.Errorf("%s has %d fields, %v", hash, n, err)
		}
	}
	if n := client.DBSize(ctx).Val(); n != 2 {
		t.Errorf("%d keys", n)
	}
	if err := store.Reset(ctx, p, "k}"); err != nil {
		t.Fatal(err)
	}
	left := func(store *redisstore.Store, p *ratelimit.Policy) int64 {
		ops := []ratelimit.Op{{Policy: p, Key: "k}"}}
		if err := store.Take(ctx, ops); err != nil {
			t.Fatal(err)
		}
		return ops[0].Outcome.Remaining
	}
	if a, b := left(store, p), left(store, q); a != 5 || b != 3 {
		t.Errorf("%d and %d left after a reset", a, b)
	}
}

// Whoever may not have a hash expire leaves none that never does, and is charged nothing
// for a key that is new.
func TestAHashThatCannotExpireIsNotLeft(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := startServer(t)
	admin := connect(t, s.addr)
	if err := admin.Do(ctx, "acl", "setuser", "u", "on", ">p", "~*", "+@all", "-pexpire").Err(); err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: s.addr, Username: "u", Password: "p", ContextTimeoutEnabled: true})
	t.Cleanup(func() { client.Close() })
	store := redisstore.New(client, redisstore.WithHashes(), quiet, redisstore.WithBreaker(1000))
	var all []*ratelimit.Policy
	all = append(append(all, policies()...), recorded()...)
	op := func(p *ratelimit.Policy, key string) ratelimit.Op {
		return ratelimit.Op{Policy: p, Key: key, Cost: cost(p), Limit: 5, ID: 7}
	}
	same := []ratelimit.Op{op(all[0], "k"), op(all[1], "k"), op(all[2], "k")}
	apart := []ratelimit.Op{op(all[0], "k"), op(all[1], "l"), op(all[2], "m")}
	mixed := []ratelimit.Op{op(all[0], "k"), op(all[3], "k"), op(all[4], "l")}
	calls := map[string]func() error{
		"several of one key": func() error { return store.Take(ctx, same) },
		"several keys":       func() error { return store.Take(ctx, apart) },
		"other policies":     func() error { return store.Take(ctx, mixed) },
		"a block":            func() error { return store.Block(ctx, all[0], "k", time.Hour) },
		"together":           func() error { return store.TakeTogether(ctx, apart)[0] },
	}
	for _, p := range all {
		calls[p.ID] = func() error { return store.Take(ctx, []ratelimit.Op{op(p, "k")}) }
	}
	for what, call := range calls {
		if err := call(); classOf(err) != redisstore.Refused && what != "together" || err == nil {
			t.Errorf("%s: error %v", what, err)
		}
		if keys, err := admin.Keys(ctx, "*").Result(); err != nil || len(keys) > 0 {
			t.Errorf("%s left %q, %v", what, keys, err)
		}
		if err := admin.FlushDB(ctx).Err(); err != nil {
			t.Fatal(err)
		}
	}
}
