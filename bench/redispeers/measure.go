package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitgen/ratelimitgen/bench/report"
)

// settings say how much is measured.
type settings struct {
	rounds, calls, callers int
	slice                  time.Duration
	admin                  *redis.Client // for the server's statistics
}

// numKeys is how many keys the calls in parallel are spread over.
const numKeys = 10_000

// The keys of the calls that are made one after the other.
const (
	hotKey     = "account-12345678"
	refusedKey = "account-87654321"
)

// measure fills in the figures of all.
func (s settings) measure(ctx context.Context, all []*contestant) error {
	keys := make([]string, numKeys)
	for i := range keys {
		keys[i] = fmt.Sprintf("account-%08d", i)
	}
	for _, c := range all {
		if err := s.begin(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	for _, c := range all {
		warm := s
		warm.slice *= 30
		if !c.warm {
			continue
		}
		if _, err := warm.inParallel(ctx, c.allow, keys); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	for range s.rounds {
		for _, c := range all {
			if err := s.round(ctx, c, keys); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
		if err := s.inTurn(ctx, all); err != nil {
			return err
		}
	}
	return nil
}

// begin connects c, and measures what does not vary: its allocations.
func (s settings) begin(ctx context.Context, c *contestant) error {
	var before, after runtime.MemStats
	for i := range s.calls + 1 {
		if i == 1 {
			runtime.ReadMemStats(&before)
		}
		if err := want(ctx, c.allow, hotKey, true); err != nil {
			return err
		}
	}
	runtime.ReadMemStats(&after)
	c.allocs = math.Floor(float64(after.Mallocs-before.Mallocs) / float64(s.calls)) // as testing.AllocsPerRun counts
	if c.refuse == nil {
		return nil
	}
	return want(ctx, c.refuse, refusedKey, true) // which is all that it admits
}

// want calls allow and returns an error unless the decision is the one that is expected.
func want(ctx context.Context, allow limiter, key string, admitted bool) error {
	got, err := allow(ctx, key)
	if err == nil && got != admitted {
		err = fmt.Errorf("admitted is %t, want %t", got, admitted)
	}
	return err
}

// sample is what calls that were made one after the other took, each.
type sample struct {
	micros   float64
	server   float64 // of these, by the server's own statistics
	commands float64 // that clients sent
}

// serial makes calls one after the other. Those that are refused go on for a slice, as a
// client does that does not give up: a number of calls would be over for one contestant
// when it has hardly begun, and take another for long.
func (s settings) serial(ctx context.Context, allow limiter, key string, admitted bool) (sample, error) {
	if err := s.admin.ConfigResetStat(ctx).Err(); err != nil {
		return sample{}, err
	}
	calls := 0
	start := time.Now()
	for more := true; more; {
		for range s.calls {
			if err := want(ctx, allow, key, admitted); err != nil {
				return sample{}, err
			}
		}
		calls += s.calls
		more = !admitted && time.Since(start) < s.slice
	}
	took := float64(time.Since(start).Nanoseconds()) / 1e3
	stats, err := s.admin.Info(ctx, "commandstats").Result()
	micros, commands := sent(stats)
	n := float64(calls)
	return sample{took / n, micros / n, commands / n}, err
}

// inTurn has ours and the minimal script make calls in turn: what these take of each other
// differs by less than what a machine does from one moment to the next.
func (s settings) inTurn(ctx context.Context, all []*contestant) error {
	var pair []*contestant
	for _, c := range all {
		if c.name == ours || c.name == minimal {
			pair = append(pair, c)
		}
	}
	var took [2]time.Duration
	for range 5 * s.calls {
		for i, c := range pair {
			start := time.Now()
			if err := want(ctx, c.allow, hotKey, true); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			took[i] += time.Since(start)
		}
	}
	for i, c := range pair {
		c.inTurn = append(c.inTurn, float64(took[i]))
	}
	return nil
}

// sent returns the microseconds and the number of the commands in commandstats that
// clients sent. Those that scripts ran are listed alike, but a call of a script has
// spent their time as well.
func sent(commandstats string) (micros, commands float64) {
	scripts := strings.Contains(commandstats, "cmdstat_eval")
	for line := range strings.Lines(commandstats) {
		name, rest, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "cmdstat_"), ":calls=")
		if !ok || name == "info" || strings.HasPrefix(name, "config") {
			continue
		}
		if scripts && !slices.Contains([]string{"eval", "evalsha", "ping", "hello", "client|setinfo"}, name) && !strings.HasPrefix(name, "client") {
			continue
		}
		calls, rest, _ := strings.Cut(rest, ",usec=")
		usec, _, _ := strings.Cut(rest, ",")
		n, _ := strconv.ParseFloat(calls, 64)
		t, _ := strconv.ParseFloat(usec, 64)
		commands += n
		micros += t
	}
	return micros, commands
}

// round measures c once.
func (s settings) round(ctx context.Context, c *contestant, keys []string) error {
	runtime.GC()
	one, err := s.serial(ctx, c.allow, hotKey, true)
	if err != nil {
		return err
	}
	c.admitted = append(c.admitted, one)
	if c.refuse != nil {
		one, err := s.serial(ctx, c.refuse, refusedKey, false)
		if err != nil {
			return err
		}
		c.refused = append(c.refused, one)
	}
	rate, err := s.inParallel(ctx, c.allow, keys)
	c.parallel = append(c.parallel, rate)
	return err
}

// inParallel returns how many calls were admitted in a second.
func (s settings) inParallel(ctx context.Context, allow limiter, keys []string) (float64, error) {
	var calls atomic.Int64
	var all sync.WaitGroup
	errs := make(chan error, s.callers)
	start := time.Now()
	for range s.callers {
		all.Go(func() {
			for n := int64(0); ; n++ {
				if time.Since(start) > s.slice {
					calls.Add(n)
					return
				}
				if err := want(ctx, allow, keys[rand.IntN(len(keys))], true); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	all.Wait()
	took := time.Since(start)
	close(errs)
	var err error
	for e := range errs {
		err = errors.Join(err, e)
	}
	return float64(calls.Load()) / took.Seconds(), err
}

// of returns one figure of each sample.
func of(samples []sample, figure func(sample) float64) []float64 {
	var all []float64
	for _, s := range samples {
		all = append(all, figure(s))
	}
	return all
}

func took(s sample) float64     { return s.micros }
func server(s sample) float64   { return s.server }
func commands(s sample) float64 { return s.commands }

// ratio is the median of the ratios of the rounds.
func ratio(a, b []float64) float64 {
	var all []float64
	for i := range min(len(a), len(b)) {
		all = append(all, a[i]/b[i])
	}
	return report.Median(all)
}

// print prints the tables, and tells whether the targets are met.
func (s settings) print(w io.Writer, all []*contestant) (met bool, err error) {
	by := map[string]*contestant{}
	for _, c := range all {
		by[c.name] = c
	}
	us, rr := by[ours], by[redisRate]
	fmt.Fprintf(w, "Redis: token buckets of %d in %v, %d rounds, medians; %d callers on %d keys in parallel\n\n", limit, window, s.rounds, s.callers, numKeys)
	table := report.New("", "serial µs", "server µs", "commands", "allocs", "parallel/s", "of redis_rate", "refused µs", "refused commands")
	for _, c := range all {
		refusal, refused := "", ""
		if c.refuse != nil {
			refusal = fmt.Sprintf("%.2f", report.Median(of(c.refused, took)))
			refused = fmt.Sprintf("%.2f", report.Median(of(c.refused, commands)))
		}
		figure := func(format string, f func(sample) float64) string {
			return fmt.Sprintf(format, report.Median(of(c.admitted, f)))
		}
		table.Add(c.name, figure("%.1f", took), figure("%.1f", server), figure("%.2f", commands),
			fmt.Sprintf("%.0f", c.allocs), fmt.Sprintf("%.0f", report.Median(c.parallel)), fmt.Sprintf("%.2f", ratio(c.parallel, rr.parallel)), refusal, refused)
	}
	if err := table.Write(w); err != nil {
		return false, err
	}
	fmt.Fprintln(w)
	between := func(a, b *contestant, f func(sample) float64) float64 {
		return ratio(of(a.admitted, f), of(b.admitted, f))
	}
	met = true
	targets := report.New("ratios of one round", "")
	for _, t := range []struct {
		what          string
		value, target float64
	}{
		{"serial call, of " + minimal + ", in turn", ratio(us.inTurn, by[minimal].inTurn), 1.05},
		{"server's time, of redis_rate's", between(us, rr, server), 0.85},
		{"server's time of three policies, of one", between(by[oursThree], us, server), 1.6},
		{"server's time of three policies, of one, WithHashes", between(by[oursHashThree], by[oursHash], server), 1.6},
		{"redis_rate's throughput, of ours", ratio(rr.parallel, us.parallel), 1 / 1.05},
		{"redis_rate's throughput, of ours WithPipelines(4), WithLinger(1ms)", ratio(rr.parallel, by[oursPiped].parallel), 1.0 / 4},
		{"redis_rate's throughput, of ours WithLease(100, 1m)", ratio(rr.parallel, by[oursLeased].parallel), 1.0 / 20},
		{"commands of a leased call", report.Median(of(by[oursLeased].admitted, commands)), 0.02},
		{"refused call, of redis_rate's", ratio(of(us.refused, took), of(rr.refused, took)), 0.01},
		{"commands of an admitted call", report.Median(of(us.admitted, commands)), 1},
		{"commands of a refused call", report.Median(of(us.refused, commands)), 0.05},
		{"allocations, of redis_rate's", us.allocs / rr.allocs, 0.5},
	} {
		met = met && t.value <= t.target
		targets.Add(t.what, report.AtMost(t.value, t.target))
	}
	return met, targets.Write(w)
}
