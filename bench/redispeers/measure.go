package main

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	for _, c := range all { // connects, loads scripts
		if err := s.counts(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	for range s.rounds {
		for _, c := range all {
			if err := s.round(ctx, c, keys); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	return nil
}

// counts takes what does not vary much: the server's time, commands and allocations.
func (s settings) counts(ctx context.Context, c *contestant) (err error) {
	var before, after runtime.MemStats
	admit := func() error { return want(c.allow, ctx, hotKey, true) }
	if err := admit(); err != nil {
		return err
	}
	if c.server, c.commands, err = s.onServer(ctx, admit); err != nil {
		return err
	}
	runtime.ReadMemStats(&before)
	for range s.calls {
		if err := admit(); err != nil {
			return err
		}
	}
	runtime.ReadMemStats(&after)
	c.allocs = float64(after.Mallocs-before.Mallocs) / float64(s.calls)
	if c.refuse == nil {
		return nil
	}
	if err := want(c.refuse, ctx, refusedKey, true); err != nil {
		return err
	}
	_, c.refused, err = s.onServer(ctx, func() error { return want(c.refuse, ctx, refusedKey, false) })
	return err
}

// want calls allow and returns an error unless the decision is the one that is expected.
func want(allow limiter, ctx context.Context, key string, admitted bool) error {
	got, err := allow(ctx, key)
	if err == nil && got != admitted {
		err = fmt.Errorf("admitted is %t, want %t", got, admitted)
	}
	return err
}

// onServer returns the server's microseconds and the commands of a call, by its own
// statistics.
func (s settings) onServer(ctx context.Context, call func() error) (micros, commands float64, err error) {
	if err := s.admin.ConfigResetStat(ctx).Err(); err != nil {
		return 0, 0, err
	}
	for range s.calls {
		if err := call(); err != nil {
			return 0, 0, err
		}
	}
	stats, err := s.admin.Info(ctx, "commandstats").Result()
	if err != nil {
		return 0, 0, err
	}
	micros, commands = sent(stats)
	return micros / float64(s.calls), commands / float64(s.calls), nil
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
	start := time.Now()
	for range s.calls {
		if err := want(c.allow, ctx, hotKey, true); err != nil {
			return err
		}
	}
	c.serial = append(c.serial, micros(time.Since(start))/float64(s.calls))
	if c.refuse != nil {
		start := time.Now()
		for range s.calls {
			if err := want(c.refuse, ctx, refusedKey, false); err != nil {
				return err
			}
		}
		c.refusals = append(c.refusals, micros(time.Since(start))/float64(s.calls))
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
				if err := want(allow, ctx, keys[rand.IntN(len(keys))], true); err != nil {
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

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

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
	rr := by[redisRate]
	fmt.Fprintf(w, "Redis: token buckets of %d in %v, %d rounds, medians; %d callers on %d keys in parallel\n\n", limit, window, s.rounds, s.callers, numKeys)
	table := report.New("", "serial µs", "server µs", "commands", "allocs", "parallel/s", "of redis_rate", "refused µs", "refused commands")
	for _, c := range all {
		refusal, refused := "", ""
		if c.refuse != nil {
			refusal, refused = fmt.Sprintf("%.2f", report.Median(c.refusals)), fmt.Sprintf("%.2f", c.refused)
		}
		table.Add(c.name, fmt.Sprintf("%.1f", report.Median(c.serial)), fmt.Sprintf("%.1f", c.server), fmt.Sprintf("%.2f", c.commands),
			fmt.Sprintf("%.0f", c.allocs), fmt.Sprintf("%.0f", report.Median(c.parallel)), fmt.Sprintf("%.2f", ratio(c.parallel, rr.parallel)), refusal, refused)
	}
	if err := table.Write(w); err != nil {
		return false, err
	}
	fmt.Fprintln(w)
	met = true
	targets := report.New("target", "")
	for _, t := range []struct {
		what          string
		value, target float64
	}{
		{"serial call, of " + minimal, ratio(by[ours].serial, by[minimal].serial), 1.05},
		{"server's time, of redis_rate's", by[ours].server / rr.server, 0.85},
		{"server's time of three policies, of one", by[oursThree].server / by[ours].server, 1.6},
		{"redis_rate's throughput, of ours", ratio(rr.parallel, by[ours].parallel), 1 / 1.05},
		{"refused call, of redis_rate's", ratio(by[ours].refusals, rr.refusals), 0.01},
		{"commands of an admitted call", by[ours].commands, 1},
		{"commands of a refused call", by[ours].refused, 0.05},
		{"allocations, of redis_rate's", by[ours].allocs / rr.allocs, 0.5},
	} {
		met = met && t.value <= t.target
		targets.Add(t.what, report.AtMost(t.value, t.target))
	}
	return met, targets.Write(w)
}
