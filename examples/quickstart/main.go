// Quickstart serves a small shop over HTTP whose methods carry limits, sends it
// requests from a few made-up callers, and prints which were admitted.
//
//	go run ./quickstart                       counters in memory
//	go run ./quickstart -redis 127.0.0.1:6379 counters in a Redis
//	go run ./quickstart -serve 127.0.0.1:8080 serve until interrupted
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitgen/ratelimitgen/examples/quickstart/shop"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

func main() {
	redisAddr := flag.String("redis", "", "keep the counters in the Redis at this `address`")
	prefix := flag.String("prefix", "quickstart:"+rand.Text()+":", "`prefix` of the Redis keys; processes with one prefix share their limits")
	serve := flag.String("serve", "", "serve on this `address` until interrupted, and send no requests")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *redisAddr, *prefix, *serve); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, redisAddr, prefix, serve string) error {
	limiter := ratelimit.New()
	where := "in memory"
	if redisAddr != "" {
		// Trying once is enough to say that nobody is there.
		client := redis.NewClient(&redis.Options{Addr: redisAddr, DialerRetries: 1, MaxRetries: -1})
		defer client.Close()
		if err := client.Ping(ctx).Err(); err != nil {
			return fmt.Errorf("redis at %s: %w", redisAddr, err)
		}
		limiter = ratelimit.New(ratelimit.WithStore("", redisstore.New(client, redisstore.WithPrefix(prefix))))
		where = "in the Redis at " + redisAddr
	}
	service := shop.NewRateLimitedService(&shop.Service{}, limiter)

	addr := serve
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	// The made-up callers all connect from this machine and say in a header who they
	// are, as clients behind a proxy do.
	server := &http.Server{
		Handler:           handler(service, netip.MustParsePrefix("127.0.0.0/8")),
		ReadHeaderTimeout: 5 * time.Second,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	defer func() {
		_ = server.Close() // ends Serve, whose error is then of no interest
	}()

	fmt.Fprintf(out, "shop on http://%s, counters %s\n", listener.Addr(), where)
	if serve == "" {
		return drive(ctx, "http://"+listener.Addr().String(), out)
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return err
	}
}
