// Hotpath measures what a generated wrapper costs on the in-memory limiter,
// against one golang.org/x/time/rate.Limiter, which knows no keys. The cases take
// turns in short rounds, so that what else the machine does hits all alike. The
// figures are medians over the rounds, also the ratio, which is taken within each
// round. It exits with status 1 if a target is missed.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/ratelimitgen/ratelimitgen/bench/pay"
	"github.com/ratelimitgen/ratelimitgen/bench/report"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// target is the most that the wrapper with one hot key may cost, in calls of
// rate.Limiter.Allow.
const target = 0.8

const account = "account-12345678"

// perSecond is a rate that no machine reaches.
const perSecond = 90_000_000

type benchmark struct {
	name   string
	op     func(n int) // n calls
	allocs float64     // per call, the most allowed
	target float64     // 0 for none
}

func main() {
	rounds := flag.Int("rounds", 75, "how often each case is measured")
	slice := flag.Duration("slice", 10*time.Millisecond, "how long a case runs in a round")
	flag.Parse()
	if *rounds < 1 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	fmt.Printf("Hot path, in memory: one goroutine, medians of %d rounds of %v, %s, %s/%s\n\n",
		*rounds, *slice, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	met, err := run(benchmarks(), *rounds, *slice)
	if err != nil {
		fmt.Fprintln(os.Stderr, "hotpath:", err)
		os.Exit(2)
	}
	if !met {
		os.Exit(1)
	}
}

// benchmarks returns the cases. The first is what the others are compared with.
func benchmarks() []benchmark {
	ctx := context.Background()
	addr := ratelimit.WithRequest(ctx, &ratelimit.Request{Addr: netip.MustParseAddr("2001:db8::1")})
	service := pay.NewRateLimitedService(&pay.Service{}, ratelimit.New())
	disabled := pay.NewRateLimitedService(&pay.Service{}, ratelimit.Disabled())
	one := rate.NewLimiter(perSecond, perSecond)
	perKey := byKey{limiters: map[string]*rate.Limiter{}}
	many := make([]string, 10_000)
	for i := range many {
		many[i] = fmt.Sprintf("account-%08d", i)
	}
	must(service.Refuse(ctx, account)) // the one call that is admitted
	return []benchmark{
		{name: "x/time/rate Limiter.Allow, no key", op: func(n int) {
			for range n {
				if !one.Allow() {
					panic("refused")
				}
			}
		}},
		{name: "wrapper, token-bucket, one key", target: target, op: func(n int) {
			for range n {
				must(service.TokenBucket(ctx, account))
			}
		}},
		{name: "map of x/time/rate Limiters behind a mutex", op: func(n int) {
			for range n {
				if !perKey.allow(account) {
					panic("refused")
				}
			}
		}},
		{name: "wrapper, token-bucket, 10,000 keys", op: func(n int) {
			for i := range n {
				must(service.TokenBucket(ctx, many[i%len(many)]))
			}
		}},
		{name: "wrapper, token-bucket, key=ip", op: func(n int) {
			for range n {
				must(service.ByAddress(addr))
			}
		}},
		{name: "wrapper, fixed-window, one key", op: func(n int) {
			for range n {
				must(service.FixedWindow(ctx, account))
			}
		}},
		{name: "wrapper, sliding-log, one key, 10 entries", op: func(n int) {
			for range n {
				must(service.SlidingLog(ctx, account))
			}
		}},
		{name: "wrapper, two policies", op: func(n int) {
			for range n {
				must(service.TwoPolicies(ctx, account))
			}
		}},
		{name: "wrapper, refused", allocs: 1, op: func(n int) {
			for range n {
				if service.Refuse(ctx, account) == nil {
					panic("admitted")
				}
			}
		}},
		{name: "wrapper, limiter disabled", op: func(n int) {
			for range n {
				must(disabled.TokenBucket(ctx, account))
			}
		}},
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// byKey is what services write by hand; it never forgets a key.
type byKey struct {
	mu       sync.Mutex
	limiters map[string]*rate.Limiter
}

func (b *byKey) allow(key string) bool {
	b.mu.Lock()
	l, ok := b.limiters[key]
	if !ok {
		l = rate.NewLimiter(perSecond, perSecond)
		b.limiters[key] = l
	}
	b.mu.Unlock()
	return l.Allow()
}

// run measures the cases, prints the table, and reports whether all targets are
// met.
func run(cases []benchmark, rounds int, slice time.Duration) (bool, error) {
	calls := make([]int, len(cases))
	for i, c := range cases {
		calls[i] = calibrate(c.op, slice)
	}
	times, ratios := make([][]float64, len(cases)), make([][]float64, len(cases))
	for range rounds {
		var reference float64
		for i, c := range cases {
			start := time.Now()
			c.op(calls[i])
			ns := float64(time.Since(start)) / float64(calls[i])
			if i == 0 {
				reference = ns
			}
			times[i], ratios[i] = append(times[i], ns), append(ratios[i], ns/reference)
		}
	}
	met := true
	table := report.New("case", "ns/op", "ratio", "target", "allocs/op", "target")
	for i, c := range cases {
		ns, ratio, verdict := report.Median(times[i]), report.Median(ratios[i]), "-"
		if c.target > 0 {
			verdict = report.AtMost(ratio, c.target)
			met = met && ratio <= c.target
		}
		allocs := testing.AllocsPerRun(1000, func() { c.op(1) })
		met = met && allocs <= c.allocs
		table.Add(c.name, fmt.Sprintf("%.1f", ns), fmt.Sprintf("%.2f", ratio), verdict,
			fmt.Sprint(allocs), report.AtMost(allocs, c.allocs))
	}
	return met, table.Write(os.Stdout)
}

// calibrate returns how many calls of op take about d.
func calibrate(op func(int), d time.Duration) int {
	for n := 100; ; n *= 2 {
		start := time.Now()
		op(n)
		if took := time.Since(start); took > d/8 {
			return max(1, int(float64(n)*float64(d)/float64(took)))
		}
	}
}
