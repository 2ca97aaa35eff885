// Roundtrips counts the commands that a decision costs on a Redis server, as the
// server's own INFO commandstats counts them. RATELIMITGEN_REDIS is the address
// of the server; its statistics are reset, and a few keys are written that expire
// within a day. It exits with status 1 if a target is missed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitgen/ratelimitgen/bench/pay"
	"github.com/ratelimitgen/ratelimitgen/bench/report"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

// target is the number of commands that a decision may cost.
const target = 1

func main() {
	calls := flag.Int("calls", 2000, "how many decisions are measured in each case")
	flag.Parse()
	if *calls < 1 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	addr := os.Getenv("RATELIMITGEN_REDIS")
	if addr == "" {
		fmt.Fprintln(os.Stderr, "roundtrips: RATELIMITGEN_REDIS is not set; `make bench` starts a server and sets it")
		os.Exit(2)
	}
	met, err := run(addr, *calls)
	if err != nil {
		fmt.Fprintln(os.Stderr, "roundtrips:", err)
		os.Exit(2)
	}
	if !met {
		os.Exit(1)
	}
}

type benchmark struct {
	name string
	call func(i int) error
}

func run(addr string, calls int) (met bool, err error) {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { err = errors.Join(err, client.Close()) }()
	service := pay.NewRateLimitedService(&pay.Service{},
		ratelimit.New(ratelimit.WithStore("", redisstore.New(client, redisstore.WithPrefix("bench:"), redisstore.WithTimeout(time.Second)))))
	// The pid keeps a second run on the same server from meeting refused keys.
	account := fmt.Sprintf("account-%d", os.Getpid())

	met = true
	table := report.New("case", "commands/decision", "target", "inside the script", "median µs")
	for _, b := range []benchmark{
		{"token-bucket, one key", func(int) error { return service.TokenBucket(ctx, account) }},
		{"token-bucket, a new key each", func(i int) error { return service.TokenBucket(ctx, fmt.Sprint(account, "-", i)) }},
		{"fixed-window, one key", func(int) error { return service.FixedWindow(ctx, account) }},
		{"sliding-log, one key", func(int) error { return service.SlidingLog(ctx, account) }},
		{"two policies, two keys", func(int) error { return service.TwoPolicies(ctx, account) }},
		{"refused", func(int) error { return refused(service.Refuse(ctx, account)) }},
	} {
		// The first call connects, loads the script, and uses up the limit of Refuse.
		if err := b.call(-1); err != nil && !errors.Is(err, errAdmitted) {
			return false, err
		}
		if err := client.ConfigResetStat(ctx).Err(); err != nil {
			return false, err
		}
		var times []float64
		for i := range calls {
			start := time.Now()
			if err := b.call(i); err != nil {
				return false, fmt.Errorf("%s: %w", b.name, err)
			}
			times = append(times, float64(time.Since(start).Microseconds()))
		}
		stats, err := client.Info(ctx, "commandstats").Result()
		if err != nil {
			return false, err
		}
		sent, inside := count(stats)
		per := float64(sent) / float64(calls)
		met = met && per <= target
		table.Add(b.name, fmt.Sprintf("%.2f", per), report.AtMost(per, target), inside, fmt.Sprintf("%.0f", report.Median(times)))
	}
	fmt.Printf("Redis: commands for each of %d decisions, by INFO commandstats\n\n", calls)
	return met, table.Write(os.Stdout)
}

var errAdmitted = errors.New("admitted, want a refusal")

// refused turns the refusal that is expected into nil.
func refused(err error) error {
	switch {
	case err == nil:
		return errAdmitted
	case errors.Is(err, ratelimit.ErrLimited):
		return nil
	}
	return err
}

// ours are the commands that this program sends itself.
var ours = []string{"info", "config|resetstat"}

// count returns how many commands clients sent, and names those that ran inside
// of scripts. The server counts both kinds alike, but a script can only run
// commands on data.
func count(commandstats string) (sent int, inside string) {
	var names []string
	for line := range strings.Lines(commandstats) {
		name, rest, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "cmdstat_"), ":calls=")
		if !ok || slices.Contains(ours, name) {
			continue
		}
		number, _, _ := strings.Cut(rest, ",")
		n, err := strconv.Atoi(number)
		if err != nil {
			continue
		}
		switch command, _, _ := strings.Cut(name, "|"); command {
		case "get", "set", "getrange", "setrange", "del", "pttl", "pexpire", "time":
			names = append(names, name)
		default:
			sent += n
		}
	}
	slices.Sort(names)
	return sent, strings.Join(names, " ")
}
