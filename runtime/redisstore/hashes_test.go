package redisstore_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
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

// However many limits a call has, and whatever their replies are, the outcomes are those of
// a store without hashes.
func TestCallsOfAnyNumberOfLimitsAreDecidedAlike(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client, prefix := sharedClient(t)
	plain := redisstore.NewFakeTime(client, prefix)
	hashed := redisstore.NewFakeTime(client, prefix+"h").Hashes()
	kinds := map[string]func(i int) *ratelimit.Policy{
		"bucket": func(i int) *ratelimit.Policy {
			return &ratelimit.Policy{Algorithm: ratelimit.TokenBucket, Limit: 4, Window: time.Duration(i+1) * time.Minute}
		},
		"fractions": func(i int) *ratelimit.Policy {
			return &ratelimit.Policy{Algorithm: ratelimit.TokenBucket, Limit: 7, Window: time.Duration(i+1) * time.Minute}
		},
		"log": func(i int) *ratelimit.Policy {
			return &ratelimit.Policy{Limit: 4, Window: time.Duration(i+1) * time.Minute}
		},
		"fixed": func(i int) *ratelimit.Policy {
			return &ratelimit.Policy{Algorithm: ratelimit.FixedWindow, Limit: 4, Window: time.Duration(i+1) * time.Minute}
		},
	}
	for first := range kinds {
		for others := range kinds {
			for n := 1; n <= 6; n++ {
				var policies []*ratelimit.Policy
				for i := range n {
					kind := others
					if i == 0 {
						kind = first
					}
					p := kinds[kind](i)
					p.ID = fmt.Sprint(first, others, n, i)
					policies = append(policies, p)
				}
				for step := range int64(8) {
					at := fmt.Sprint(epoch + step*7*sec)
					if err := client.MSet(ctx, prefix+"now", at, prefix+"hnow", at).Err(); err != nil {
						t.Fatal(err)
					}
					var a, b []ratelimit.Op
					for _, p := range policies {
						a = append(a, ratelimit.Op{Policy: p, Key: "k", Cost: 1})
					}
					b = slices.Clone(a)
					if err := errors.Join(plain.Take(ctx, a), hashed.Take(ctx, b)); err != nil {
						t.Fatal(err)
					}
					for i := range a {
						if a[i].Outcome != b[i].Outcome {
							t.Fatalf("%s and %s, limit %d of %d, call %d: %+v, want %+v", first, others, i, n, step, b[i].Outcome, a[i].Outcome)
						}
					}
				}
			}
		}
	}
}

func TestAReplyAboutSeveralLimitsThatMakesNoSenseIsAnError(t *testing.T) {
	t.Parallel()
	number := func(n uint64) string { return string(binary.BigEndian.AppendUint64(nil, n)[1:]) }
	p := &ratelimit.Policy{ID: "p", Limit: 5, Window: time.Minute}
	q := &ratelimit.Policy{ID: "q", Algorithm: ratelimit.TokenBucket, Limit: 5, Window: time.Minute}
	f := &ratelimit.Policy{ID: "f", Algorithm: ratelimit.FixedWindow, Limit: 5, Window: time.Minute}
	for _, c := range []struct {
		reply  string
		second *ratelimit.Policy
		good   bool
	}{
		{number(5) + number(60_000_000), q, true},
		{number(6) + number(60_000_000), q, false},
		{number(5) + number(60_000_001), q, false},
		{number(5) + number(60_000_000) + "x", q, false},
		{number(5) + number(60_000_000)[:6], q, false},
		{number(5), q, false},
		{number(5) + number(60_000_000) + number(1), q, false},
		{"", q, false},
		{number(5) + number(5), f, false},
	} {
		client := connect(t, babble(t, fmt.Sprintf("$%d\r\n%s\r\n", len(c.reply), c.reply)))
		ops := []ratelimit.Op{{Policy: p, Key: "k", Cost: 1}, {Policy: c.second, Key: "k", Cost: 1}}
		err := redisstore.New(client, quiet, redisstore.WithHashes()).Take(context.Background(), ops)
		if c.good && (err != nil || !ops[0].Outcome.Allowed || ops[0].Outcome.Remaining != 0 || ops[1].Outcome.ResetAfter != time.Minute) {
			t.Errorf("%q: %+v, error %v", c.reply, ops, err)
		}
		if !c.good && (classOf(err) != redisstore.Malformed || ops[0].Outcome != ratelimit.Outcome{}) {
			t.Errorf("%q: %+v, error %v, want one", c.reply, ops[0].Outcome, err)
		}
	}
}

// Each hash lives for as long as what was written to it needs.
func TestHashesOfACallLiveAsLongAsTheirOwnStates(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client, prefix := sharedClient(t)
	store := redisstore.New(client, redisstore.WithHashes(), redisstore.WithPrefix(prefix))
	for i, algorithm := range []ratelimit.Algorithm{ratelimit.SlidingLog, ratelimit.FixedWindow, ratelimit.TokenBucket} {
		windows := []time.Duration{time.Hour, time.Second, time.Minute}
		var ops []ratelimit.Op
		for j, window := range windows {
			p := &ratelimit.Policy{ID: fmt.Sprint(j), Algorithm: algorithm, Limit: 2, Window: window}
			ops = append(ops, ratelimit.Op{Policy: p, Key: fmt.Sprint("key", i, j), Cost: 2})
		}
		if err := store.Take(ctx, ops); err != nil {
			t.Fatal(err)
		}
		for j, window := range windows {
			hash, _ := redisstore.Split(store.KeyOf(ops[j].Policy, ops[j].Key))
			if ttl := client.PTTL(ctx, hash).Val(); ttl < window || ttl > window+slack(window)+time.Millisecond {
				t.Errorf("%s of %v lives for %v", algorithm, window, ttl)
			}
		}
	}
}

// A server that is out of memory refuses a call, also one that would have a hash live longer.
func TestAServerOutOfMemoryWritesToNoHash(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := connect(t, startServer(t).addr)
	store := redisstore.New(client, redisstore.WithHashes(), quiet, redisstore.WithBreaker(1000))
	all := append(policies(), recorded()...)
	for _, p := range all {
		ops := []ratelimit.Op{{Policy: p, Key: p.ID, Cost: cost(p), ID: 1}}
		if err := store.Take(ctx, ops); err != nil {
			t.Fatal(err)
		}
		hash, _ := redisstore.Split(store.KeyOf(p, p.ID))
		if err := client.PExpire(ctx, hash, time.Second).Err(); err != nil {
			t.Fatal(err)
		}
		before := client.HGetAll(ctx, hash).Val()
		if err := client.ConfigSet(ctx, "maxmemory", "1").Err(); err != nil {
			t.Fatal(err)
		}
		ops[0].ID = 2
		err := store.Take(ctx, ops)
		limited := err == nil && !ops[0].Outcome.Allowed // nothing is written then
		if !limited && classOf(err) != redisstore.Refused || !maps.Equal(client.HGetAll(ctx, hash).Val(), before) {
			t.Errorf("%s: %+v, error %v, or written", p.ID, ops[0].Outcome, err)
		}
		if err := client.ConfigSet(ctx, "maxmemory", "0").Err(); err != nil {
			t.Fatal(err)
		}
	}
}
