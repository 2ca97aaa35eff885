// Redispeers compares limiters that keep their counters in Redis: the same policy, the
// same server, one table. The contestants take turns in short rounds, and what is
// printed are medians. RATELIMITGEN_REDIS is the address of the server, whose
// statistics are reset; a few thousand keys are written that expire within some hours.
// It exits with status 1 if a target is missed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
)

func main() {
	s := settings{}
	flag.IntVar(&s.rounds, "rounds", 11, "how often each contestant is measured")
	flag.IntVar(&s.calls, "calls", 400, "how many calls one after the other a round has")
	flag.DurationVar(&s.slice, "slice", 200*time.Millisecond, "for how long callers call in parallel in a round")
	flag.IntVar(&s.callers, "callers", 64, "how many call in parallel")
	flag.Parse()
	if s.rounds < 1 || s.calls < 1 || s.slice <= 0 || s.callers < 1 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	addr := os.Getenv("RATELIMITGEN_REDIS")
	if addr == "" {
		fmt.Fprintln(os.Stderr, "redispeers: RATELIMITGEN_REDIS is not set; `make bench` starts a server and sets it")
		os.Exit(2)
	}
	met, err := run(context.Background(), addr, s)
	if err != nil {
		fmt.Fprintln(os.Stderr, "redispeers:", err)
		os.Exit(2)
	}
	if !met {
		os.Exit(1)
	}
}

// run measures all contestants and prints the tables.
func run(ctx context.Context, addr string, s settings) (met bool, err error) {
	s.admin = redis.NewClient(&redis.Options{Addr: addr})
	defer func() { err = errors.Join(err, s.admin.Close()) }()
	all, closeAll, err := contestants(addr, fmt.Sprintf("bench-%d-", os.Getpid()))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	if err := s.measure(ctx, all); err != nil {
		return false, err
	}
	return s.print(os.Stdout, all)
}
