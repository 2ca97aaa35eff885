package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

// BenchmarkPing is the round trip that every decision costs at least.
func BenchmarkPing(b *testing.B) {
	client, _ := sharedClient(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := client.Ping(context.Background()).Err(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTake(b *testing.B) {
	const week = 7 * 24 * time.Hour
	log := &ratelimit.Policy{ID: "log", Limit: 100, Window: time.Minute}
	longLog := &ratelimit.Policy{ID: "longlog", Limit: ratelimit.MaxLogLimit, Window: week}
	fixed := &ratelimit.Policy{ID: "fixed", Algorithm: ratelimit.FixedWindow, Limit: 1 << 30, Window: week}
	bucket := &ratelimit.Policy{ID: "bucket", Algorithm: ratelimit.TokenBucket, Limit: 1000, Window: time.Millisecond}
	for _, bench := range []struct {
		name     string
		policies []*ratelimit.Policy
		before   int // calls made before the measured ones
	}{
		{"TokenBucket", []*ratelimit.Policy{bucket}, 0},
		{"FixedWindow", []*ratelimit.Policy{fixed}, 0},
		{"FullLogOf100", []*ratelimit.Policy{log}, 100},
		{"FullLogOf4096", []*ratelimit.Policy{longLog}, 4096},
		{"ThreePolicies", []*ratelimit.Policy{bucket, fixed, log}, 0},
	} {
		b.Run(bench.name, func(b *testing.B) {
			client, prefix := sharedClient(b)
			store := redisstore.New(client, redisstore.WithPrefix(prefix))
			ops := make([]ratelimit.Op, len(bench.policies))
			for i, p := range bench.policies {
				ops[i] = ratelimit.Op{Policy: p, Key: "203.0.113.9", Cost: 1}
			}
			take := func() {
				if err := store.Take(context.Background(), ops); err != nil {
					b.Fatal(err)
				}
			}
			for range bench.before {
				take()
			}
			b.ReportAllocs()
			for b.Loop() {
				take()
			}
		})
	}
}

// BenchmarkDirect is BenchmarkTake/TokenBucket without deadline and breaker.
func BenchmarkDirect(b *testing.B) {
	client, prefix := sharedClient(b)
	store := redisstore.New(client, redisstore.WithPrefix(prefix))
	bucket := &ratelimit.Policy{ID: "bucket", Algorithm: ratelimit.TokenBucket, Limit: 1000, Window: time.Millisecond}
	ops := []ratelimit.Op{{Policy: bucket, Key: "203.0.113.9", Cost: 1}}
	b.ReportAllocs()
	for b.Loop() {
		if err := store.Direct(context.Background(), ops); err != nil {
			b.Fatal(err)
		}
	}
}
