package redisstore_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

func TestManyClientsTogetherGetNoMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := startServer(t)
	for _, p := range policies() {
		p.Limit, p.Window = 200, time.Hour
		other := &ratelimit.Policy{ID: "other", Limit: 4000, Window: time.Hour}
		var admitted atomic.Int64
		var clients sync.WaitGroup
		for range 8 {
			store := redisstore.New(connect(t, s.addr))
			clients.Go(func() {
				for range 50 {
					ops := []ratelimit.Op{{Policy: other, Key: "k", Cost: 1}, {Policy: p, Key: "k", Cost: 1}}
					if err := store.Take(ctx, ops); err != nil {
						t.Error(err)
						return
					}
					if ops[0].Outcome.Allowed && ops[1].Outcome.Allowed {
						admitted.Add(1)
					}
				}
			})
		}
		clients.Wait()
		// A bucket of 200 an hour refills one unit in 18 s.
		if n := admitted.Load(); n < 200 || n > 201 {
			t.Errorf("%s: 400 calls were admitted %d times", p.ID, n)
		}
	}
	ops := []ratelimit.Op{{Policy: &ratelimit.Policy{ID: "other", Limit: 4000, Window: time.Hour}, Key: "k"}}
	if err := redisstore.New(connect(t, s.addr)).Take(ctx, ops); err != nil || ops[0].Outcome.Remaining < 4000-603 || ops[0].Outcome.Remaining > 4000-600 {
		t.Errorf("the policy that admitted all was charged for refused calls: %+v, %v", ops[0].Outcome, err)
	}
}

const hammerEnv = "REDISSTORE_TEST_HAMMER"

// hammer is what TestMain does in a process that RD02 starts: calls without end.
func hammer(addr string) {
	store := redisstore.New(redis.NewClient(&redis.Options{Addr: addr}))
	for range 4 {
		go func() {
			for i := 0; ; i++ {
				var ops []ratelimit.Op
				for _, p := range policies() {
					ops = append(ops, ratelimit.Op{Policy: p, Key: fmt.Sprint(rand.IntN(200)), Cost: 1 + rand.Int64N(3)})
				}
				if err := store.Take(context.Background(), ops); err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				if i%100 == 99 {
					fmt.Println("100 calls")
				}
			}
		}()
	}
	select {}
}

func TestRD02KilledClientsLeaveNoKeyThatStays(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := startServer(t)
	var processes sync.WaitGroup
	for range 4 {
		processes.Go(func() {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), hammerEnv+"="+s.addr)
			cmd.Stderr = os.Stderr
			stdout, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Error(err)
				return
			}
			lines := bufio.NewScanner(stdout)
			for range 2 + rand.IntN(8) {
				if !lines.Scan() {
					t.Error("a client ended by itself")
				}
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
	processes.Wait()

	client := connect(t, s.addr)
	n := 0
	for keys := client.Scan(ctx, 0, "*", 1000).Iterator(); keys.Next(ctx); n++ {
		ttl, err := client.PTTL(ctx, keys.Val()).Result()
		// -2 is a key that has expired since.
		if err != nil || ttl != -2 && (ttl <= 0 || ttl > time.Minute+slack(time.Minute)) {
			t.Errorf("%s lives for %v, %v", keys.Val(), ttl, err)
		}
	}
	least := 300
	if redisstore.InHashes() {
		least = 150 // of 200 users
	}
	if n < least {
		t.Errorf("only %d keys", n)
	}
}
