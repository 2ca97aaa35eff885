package ratelimit_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// login has the shape of a generated wrapper.
type login struct {
	gate *ratelimit.Gate
	next func(context.Context, string) error
}

func (s *login) Login(ctx context.Context, user string) error {
	var buf [64]byte
	if err := s.gate.Allow(ctx, ratelimit.AppendText(buf[:0], user)); err != nil {
		return err
	}
	return s.next(ctx, user)
}

// transfer is the same with two policies.
type transfer struct {
	gate *ratelimit.Gate
}

func (s *transfer) Transfer(ctx context.Context, user string, amount int64) error {
	var buf [64]byte
	return s.gate.AllowAll(ctx, []ratelimit.Charge{
		{Cost: 1},
		{Key: ratelimit.AppendText(buf[:0], user), Cost: amount},
	})
}

func nothing(context.Context, string) error { return nil }

func newLogin(p ratelimit.Policy) *login {
	p.ID = "login"
	return &login{ratelimit.New().MustGate(&ratelimit.Spec{Method: "auth.Service.Login", Policies: []ratelimit.Policy{p}}), nothing}
}

var (
	roomy = map[string]ratelimit.Policy{
		"token-bucket": {Algorithm: ratelimit.TokenBucket, Limit: 1 << 26, Burst: 1 << 26, Window: time.Second},
		"fixed-window": {Algorithm: ratelimit.FixedWindow, Limit: 1 << 30, Window: time.Hour},
		"sliding-log":  {Algorithm: ratelimit.SlidingLog, Limit: 4096, Window: 100 * time.Microsecond},
	}
	tight = ratelimit.Policy{Algorithm: ratelimit.TokenBucket, Limit: 1, Window: time.Hour}
)

func BenchmarkAllow(b *testing.B) {
	ctx := context.Background()
	for _, a := range algorithms {
		b.Run(string(a), func(b *testing.B) {
			s := newLogin(roomy[string(a)])
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Login(ctx, "some.user@example"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("refused", func(b *testing.B) {
		s := newLogin(tight)
		_ = s.Login(ctx, "some.user@example")
		b.ReportAllocs()
		for b.Loop() {
			if err := s.Login(ctx, "some.user@example"); err == nil {
				b.Fatal("admitted")
			}
		}
	})
	b.Run("two policies", func(b *testing.B) {
		p, q := roomy["token-bucket"], roomy["token-bucket"]
		p.ID, p.Global, q.ID = "all", true, "user"
		s := &transfer{ratelimit.New().MustGate(&ratelimit.Spec{Method: "pay.Service.Transfer", Policies: []ratelimit.Policy{p, q}})}
		b.ReportAllocs()
		for b.Loop() {
			if err := s.Transfer(ctx, "some.user@example", 2); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("parallel", func(b *testing.B) {
		s := newLogin(roomy["token-bucket"])
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := s.Login(ctx, "some.user@example"); err != nil {
					b.Error(err)
				}
			}
		})
	})
}

func BenchmarkAllowManyKeys(b *testing.B) {
	keys := make([]string, 1<<19)
	for i := range keys {
		keys[i] = "user" + strconv.Itoa(100_000_000_000+i)
	}
	s := newLogin(roomy["token-bucket"])
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Login(ctx, keys[rand.Uint32()%uint32(len(keys))]); err != nil {
			b.Fatal(err)
		}
	}
}

// Every key is new, and there is room for none.
func BenchmarkAllowFlood(b *testing.B) {
	p := tight
	p.ID = "login"
	gate := ratelimit.New(ratelimit.WithMaxKeys(100_000)).MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{p}})
	ctx := context.Background()
	for i := range int64(100_000) {
		var buf [64]byte
		_ = gate.Allow(ctx, ratelimit.AppendInt(buf[:0], i))
	}
	i := int64(100_000)
	b.ReportAllocs()
	for b.Loop() {
		i++
		var buf [64]byte
		_ = gate.Allow(ctx, ratelimit.AppendInt(buf[:0], i))
	}
}

func BenchmarkMemoryPerKey(b *testing.B) {
	const keys = 500_000
	for _, a := range algorithms {
		b.Run(string(a), func(b *testing.B) {
			for b.Loop() {
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				s := newLogin(ratelimit.Policy{Algorithm: a, Limit: 5, Window: time.Hour})
				for i := range keys {
					if err := s.Login(b.Context(), strconv.Itoa(1e15+i)); err != nil {
						b.Fatal(err)
					}
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/keys, "B/key")
				runtime.KeepAlive(s)
			}
		})
	}
}
