package main

import (
	"context"
	"math"
	"net/http"
	"sync"
	"time"
	"unsafe"

	"github.com/didip/tollbooth/v7"
	tollboothlimiter "github.com/didip/tollbooth/v7/limiter"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/go-chi/httprate"
	juju "github.com/juju/ratelimit"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	ulule "github.com/ulule/limiter/v3"
	ululememory "github.com/ulule/limiter/v3/drivers/store/memory"
	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"

	"github.com/ratelimitgen/ratelimitgen/bench/pay"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// policy is what every contestant is configured for: limit calls in a window, all of
// them at once if need be.
type policy struct {
	limit  int
	window time.Duration
}

// The policies are those of the methods of pay.Service.
var (
	// hot is not used up in a run, not even by a contestant that never refills.
	hot = policy{90_000_000, time.Hour}
	// wide keeps a key for half a minute after each call, so that none is forgotten
	// between its first call and the measurement.
	wide = policy{1_000_000, 365 * 24 * time.Hour}
	few  = policy{5, time.Hour}
	once = policy{1, 24 * time.Hour}
)

func (p policy) perSecond() float64      { return float64(p.limit) / p.window.Seconds() }
func (p policy) interval() time.Duration { return p.window / time.Duration(p.limit) }

// A limiter reports whether it admits a call for a key.
type limiter func(key string) bool

// How a contestant tells keys apart.
const (
	exactly = "exact"
	byHash  = "hash" // one caller may be admitted on another's account
	noKeys  = "none"
)

type contestant struct {
	name string
	keys string
	// note says how the contestant counts, and where that is not the policy.
	note string
	ours bool
	// waits is set if calls are decided by another goroutine, or sleep.
	waits        bool
	neverRefuses bool
	// slow is set if the first calls of a million keys take so long that a tenth of
	// them has to do.
	slow bool
	// open returns a new limiter, and what ends it if that is not nil. It is nil if
	// the contestant is not measured, which note explains.
	open func(p policy) (allow limiter, end func())
}

// contestants returns who is measured. The first is the unit of all ratios, the
// second is ours.
func contestants() []contestant {
	ctx := context.Background()
	return append([]contestant{
		{
			name: "x/time/rate, one Limiter", keys: noKeys,
			note: "token bucket in floating point, ns; no keys: the unit of all ratios",
			open: func(p policy) (limiter, func()) {
				l := newRate(p)
				return func(string) bool { return l.Allow() }, nil
			},
		},
		{
			name: "ratelimitgen, Gate.Allow", keys: exactly, ours: true,
			note: "token bucket (GCRA) in integers, µs; at most a million keys, idle ones are forgotten",
			open: func(p policy) (limiter, func()) {
				g := gate(ratelimit.New(), policyOf(ratelimit.TokenBucket, p))
				return func(key string) bool { return g.Allow(ctx, bytesOf(key)) == nil }, nil
			},
		},
		{
			name: "ratelimitgen, generated wrapper", keys: exactly, ours: true,
			note: "the same, with the key computed from a parameter and the call passed on",
			open: func(p policy) (limiter, func()) {
				s := pay.NewRateLimitedService(&pay.Service{}, ratelimit.New())
				return wrapped(s, p), nil
			},
		},
		{
			name: "x/time/rate, mutex map", keys: exactly,
			note: "a map[string]*rate.Limiter behind a mutex; never forgets a key",
			open: func(p policy) (limiter, func()) {
				return inMutexMap(func() *rate.Limiter { return newRate(p) }, (*rate.Limiter).Allow), nil
			},
		},
		{
			name: "x/time/rate, sync.Map", keys: exactly,
			note: "never forgets a key",
			open: func(p policy) (limiter, func()) {
				var m sync.Map
				return func(key string) bool {
					l, ok := m.Load(key)
					if !ok {
						l, _ = m.LoadOrStore(key, newRate(p))
					}
					return l.(*rate.Limiter).Allow()
				}, nil
			},
		},
		{
			name: "sethvargo/go-limiter", keys: exactly,
			note: "memorystore; refills at the end of each interval, ns; sweeps every 6 h in a goroutine",
			open: func(p policy) (limiter, func()) {
				s, err := memorystore.New(&memorystore.Config{Tokens: uint64(p.limit), Interval: p.window})
				must(err)
				return func(key string) bool {
					_, _, _, ok, err := s.Take(ctx, key)
					return ok && err == nil
				}, func() { must(s.Close(ctx)) }
			},
		},
		{
			name: "throttled/throttled/v2", keys: exactly,
			note: "memstore without a bound; GCRA, ns; never forgets a key",
			open: func(p policy) (limiter, func()) {
				store, err := memstore.NewCtx(0)
				must(err)
				l, err := throttled.NewGCRARateLimiterCtx(store,
					throttled.RateQuota{MaxRate: throttled.PerDuration(p.limit, p.window), MaxBurst: p.limit - 1})
				must(err)
				l.SetMaxCASAttemptsLimit(math.MaxInt) // ten by default: then a call in a race ends with an error
				return func(key string) bool {
					limited, _, err := l.RateLimitCtx(ctx, key, 1)
					return !limited && err == nil
				}, nil
			},
		},
		{
			name: "ulule/limiter/v3", keys: exactly,
			note: "memory store; fixed window, ns; a goroutine sweeps, here every hour",
			open: func(p policy) (limiter, func()) {
				l := ulule.New(ululememory.NewStoreWithOptions(ulule.StoreOptions{Prefix: "limiter", CleanUpInterval: time.Hour}),
					ulule.Rate{Period: p.window, Limit: int64(p.limit)})
				return func(key string) bool {
					c, err := l.Get(ctx, key)
					return !c.Reached && err == nil
				}, nil
			},
		},
		{
			name: "didip/tollbooth/v7", keys: exactly,
			note: "LimitReached; its copy of x/time/rate; keys are forgotten after a year",
			open: func(p policy) (limiter, func()) {
				l := tollbooth.NewLimiter(p.perSecond(), &tollboothlimiter.ExpirableOptions{DefaultExpirationTTL: 365 * 24 * time.Hour})
				l.SetBurst(p.limit)
				return func(key string) bool { return !l.LimitReached(key) }, nil
			},
		},
		{
			name: "go-chi/httprate", keys: byHash,
			note: "OnLimit without headers; two fixed windows weighted by time; keys are 64-bit hashes",
			open: func(p policy) (limiter, func()) {
				l := httprate.NewRateLimiter(p.limit, p.window, httprate.WithResponseHeaders(httprate.ResponseHeaders{}))
				r, err := http.NewRequest(http.MethodGet, "/", nil)
				must(err)
				return func(key string) bool { return !l.OnLimit(nil, r, key) }, nil
			},
		},
		{
			name: "failsafe-go, mutex map", keys: exactly,
			note: "bursty; refills at the end of each period, ns; has no keys of its own",
			open: func(p policy) (limiter, func()) {
				return inMutexMap(func() ratelimiter.RateLimiter[any] {
					return ratelimiter.NewBursty[any](uint(p.limit), p.window)
				}, ratelimiter.RateLimiter[any].TryAcquirePermit), nil
			},
		},
		{
			name: "go.uber.org/ratelimit, mutex map", keys: exactly, waits: true, neverRefuses: true,
			note: "leaky bucket that sleeps and never refuses; here one call each ns, whatever the policy; has no keys of its own",
			open: func(policy) (limiter, func()) {
				return inMutexMap(func() uber.Limiter { return uber.New(1_000_000_000) },
					func(l uber.Limiter) bool { l.Take(); return true }), nil
			},
		},
		{
			name: "juju/ratelimit, mutex map", keys: exactly,
			note: "token bucket that counts whole intervals, ns; has no keys of its own",
			open: func(p policy) (limiter, func()) {
				return inMutexMap(func() *juju.Bucket { return juju.NewBucketWithQuantum(p.interval(), int64(p.limit), 1) },
					func(b *juju.Bucket) bool { return b.TakeAvailable(1) == 1 }), nil
			},
		},
	}, gubernators...)
}

// elsewhere are contestants that cannot be had here.
var elsewhere = []struct {
	name, keys string
	ratio      float64
}{
	{"webriots/rate", byHash, 0.41},
	{"clipperhouse/rate", exactly, 0.68},
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func newRate(p policy) *rate.Limiter { return rate.NewLimiter(rate.Limit(p.perSecond()), p.limit) }

// inMutexMap gives keys to limiters that have none, as services do by hand.
func inMutexMap[L any](open func() L, allow func(L) bool) limiter {
	var mu sync.Mutex
	limiters := map[string]L{}
	return func(key string) bool {
		mu.Lock()
		l, ok := limiters[key]
		if !ok {
			l = open()
			limiters[key] = l
		}
		mu.Unlock()
		return allow(l)
	}
}

func policyOf(a ratelimit.Algorithm, p policy) ratelimit.Policy {
	return ratelimit.Policy{ID: "p", Algorithm: a, Limit: int64(p.limit), Window: p.window}
}

func gate(l *ratelimit.Limiter, policies ...ratelimit.Policy) *ratelimit.Gate {
	return l.MustGate(&ratelimit.Spec{Method: "peers.Call", Policies: policies})
}

// wrapped returns the method of s that has policy p.
func wrapped(s *pay.RateLimitedService, p policy) limiter {
	method := map[policy]func(context.Context, string) error{hot: s.Hot, wide: s.Wide, few: s.Few, once: s.Refuse}[p]
	ctx := context.Background()
	return func(key string) bool { return method(ctx, key) == nil }
}

// bytesOf stands for a caller that has its key as bytes already.
func bytesOf(key string) []byte { return unsafe.Slice(unsafe.StringData(key), len(key)) }
