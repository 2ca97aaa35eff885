package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	goredisstore "github.com/throttled/throttled/v2/store/goredisstore.v9"
	ulule "github.com/ulule/limiter/v3"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

// The policy that every contestant is configured for: a million calls in an hour, all
// of them at once if need be. None uses it up in a run.
const (
	limit  = 1_000_000
	window = time.Hour
)

// A limiter decides about one call for key.
type limiter func(ctx context.Context, key string) (allowed bool, err error)

// contestant is a limiter, or a floor that no limiter gets below.
type contestant struct {
	name  string
	floor bool
	allow limiter
	warm  bool // it has to see calls for some time to be as fast as it gets
	// refuse is allow with a policy of one call in the window.
	refuse limiter

	admitted, refused []sample  // of each round, one call after the other
	inTurn            []float64 // for how long calls took, of each round
	parallel          []float64 // calls in a second, of each round
	allocs            float64
}

// poolSize is how many connections each client may have.
const poolSize = 64

// contestants opens all of them, on clients of their own. Their keys begin with prefix.
func contestants(addr, prefix string) (all []*contestant, closeAll func() error, err error) {
	var closers []func() error
	closeAll = func() (err error) {
		for _, c := range closers {
			err = errors.Join(err, c())
		}
		return err
	}
	client := func() *redis.Client {
		c := redis.NewClient(&redis.Options{Addr: addr, PoolSize: poolSize, ContextTimeoutEnabled: true})
		closers = append(closers, c.Close)
		return c
	}
	add := func(c *contestant) { all = append(all, c) }

	ping := client()
	add(&contestant{name: "PING", floor: true, allow: func(ctx context.Context, _ string) (bool, error) {
		return true, ping.Ping(ctx).Err()
	}})
	incr := client()
	add(&contestant{name: "INCR", floor: true, allow: func(ctx context.Context, key string) (bool, error) {
		return true, incr.Incr(ctx, prefix+"incr"+key).Err()
	}})
	bare := client()
	add(&contestant{name: minimal, floor: true,
		allow:  gcra(bare, prefix+"gcra", limit),
		refuse: gcra(bare, prefix+"gcra-one", 1)})

	one := []ratelimit.Policy{bucket("one", limit)}
	add(&contestant{name: ours, allow: own(client(), prefix, one), refuse: own(client(), prefix, []ratelimit.Policy{bucket("refuse", 1)})})
	three := []ratelimit.Policy{bucket("a", limit), bucket("b", limit), bucket("c", limit)}
	add(&contestant{name: oursThree, allow: own(client(), prefix, three)})
	add(&contestant{name: oursHash, allow: own(client(), prefix+"hash", one, redisstore.WithHashes())})
	add(&contestant{name: oursHashThree, allow: own(client(), prefix+"hash", three, redisstore.WithHashes())})

	add(&contestant{name: oursLeased, warm: true, allow: own(client(), prefix+"leased", one, redisstore.WithLease(100, time.Minute))})
	add(&contestant{name: oursPiped, allow: own(client(), prefix, one, redisstore.WithPipelines(4), redisstore.WithLinger(time.Millisecond))})

	rr := redis_rate.NewLimiter(client())
	rated := func(n int) limiter {
		l := redis_rate.Limit{Rate: n, Burst: n, Period: window}
		return func(ctx context.Context, key string) (bool, error) {
			r, err := rr.Allow(ctx, prefix+strconv.Itoa(n)+key, l)
			return err == nil && r.Allowed > 0, err
		}
	}
	add(&contestant{name: redisRate, allow: rated(limit), refuse: rated(1)})

	store, err := goredisstore.NewCtx(client(), prefix)
	if err != nil {
		return nil, closeAll, err
	}
	throttle := func(n int) (limiter, error) {
		l, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerHour(n), MaxBurst: n - 1})
		return func(ctx context.Context, key string) (bool, error) {
			limited, _, err := l.RateLimitCtx(ctx, strconv.Itoa(n)+key, 1)
			return err == nil && !limited, err
		}, err
	}
	t := &contestant{name: "throttled"}
	if t.allow, err = throttle(limit); err != nil {
		return nil, closeAll, err
	}
	if t.refuse, err = throttle(1); err != nil {
		return nil, closeAll, err
	}
	add(t)

	windows, err := ululeredis.NewStoreWithOptions(client(), ulule.StoreOptions{Prefix: prefix + "ulule"})
	if err != nil {
		return nil, closeAll, err
	}
	fixed := func(n int64) limiter {
		l := ulule.New(windows, ulule.Rate{Period: window, Limit: n})
		return func(ctx context.Context, key string) (bool, error) {
			c, err := l.Get(ctx, strconv.FormatInt(n, 10)+key)
			return err == nil && !c.Reached, err
		}
	}
	add(&contestant{name: "ulule/limiter, fixed window", allow: fixed(limit), refuse: fixed(1)})
	return all, closeAll, nil
}

// Names that the targets are about.
const (
	minimal       = "minimal GCRA, EVALSHA"
	ours          = "ratelimitgen"
	oursThree     = "ratelimitgen, three policies"
	oursHash      = "ratelimitgen, WithHashes"
	oursHashThree = "ratelimitgen, WithHashes, three policies"
	oursPiped     = "ratelimitgen, WithPipelines(4), WithLinger(1ms)"
	oursLeased    = "ratelimitgen, WithLease(100, 1m)"
	redisRate     = "redis_rate"
)

// own is our limiter: key counts for all of the policies.
func own(client *redis.Client, prefix string, policies []ratelimit.Policy, opts ...redisstore.Option) limiter {
	opts = append(opts, redisstore.WithPrefix(prefix), redisstore.WithTimeout(time.Second))
	l := ratelimit.New(ratelimit.WithStore("", redisstore.New(client, opts...)))
	g := l.MustGate(&ratelimit.Spec{Method: "redispeers.Call", Policies: policies})
	return func(ctx context.Context, key string) (bool, error) {
		var err error
		if len(policies) == 1 {
			err = g.Allow(ctx, []byte(key))
		} else {
			charges := make([]ratelimit.Charge, len(policies))
			for i := range charges {
				charges[i] = ratelimit.Charge{Key: []byte(key), Cost: 1}
			}
			err = g.AllowAll(ctx, charges)
		}
		if errors.Is(err, ratelimit.ErrLimited) {
			return false, nil
		}
		return err == nil, err
	}
}

func bucket(id string, limit int64) ratelimit.Policy {
	return ratelimit.Policy{ID: id, Key: "key", Algorithm: ratelimit.TokenBucket, Limit: limit, Window: window, OnError: ratelimit.DenyOnError}
}

// gcraScript is about the least that a script with GCRA can do: its state is the key's
// time to live, and it replies with one number, the microseconds to wait.
var gcraScript = redis.NewScript(`
local ttl = redis.call("PTTL", KEYS[1])
if ttl < 0 then ttl = 0 end
local interval = tonumber(ARGV[1])
local next = ttl + interval
if next > interval * tonumber(ARGV[2]) then return 1 end
redis.call("SET", KEYS[1], "", "PX", next)
return 0
`)

// gcra is the minimal limiter, whose interval is rounded up to milliseconds.
func gcra(client *redis.Client, prefix string, n int64) limiter {
	interval := (window.Milliseconds() + n - 1) / n
	return func(ctx context.Context, key string) (bool, error) {
		wait, err := gcraScript.EvalSha(ctx, client, []string{prefix + key}, interval, n).Int64()
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			wait, err = gcraScript.Eval(ctx, client, []string{prefix + key}, interval, n).Int64()
		}
		return err == nil && wait == 0, err
	}
}
