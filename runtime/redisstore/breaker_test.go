package redisstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitgen/ratelimitgen/internal/waited"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

// logBuffer keeps the lines of a logger.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Split(strings.TrimSuffix(l.buf.String(), "\n"), "\n")
}

func (l *logBuffer) option() redisstore.Option {
	return redisstore.WithLogger(slog.New(slog.NewTextHandler(l, nil)))
}

// quiet is for tests that do not look at what is logged.
var quiet = redisstore.WithLogger(slog.New(slog.DiscardHandler))

func (s *server) signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// classOf returns the class of a store's error.
func classOf(err error) redisstore.Class {
	var e *redisstore.Error
	if errors.As(err, &e) {
		return e.Class
	}
	return ""
}

func oneOp(key string) []ratelimit.Op {
	return []ratelimit.Op{{
		Policy: &ratelimit.Policy{ID: "p", Algorithm: ratelimit.FixedWindow, Limit: ratelimit.MaxLimit, Window: time.Hour},
		Key:    key, Cost: 1,
	}}
}

// until asks for a decision again and again, as traffic does, until done says so.
func until(t testing.TB, within time.Duration, done func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(within); !done(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not within %v", within)
		}
	}
}

func TestBreakerOpensAndClosesWithOneLineEach(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := startServer(t)
	var log logBuffer
	store := redisstore.New(connect(t, s.addr), redisstore.WithTimeout(200*time.Millisecond), redisstore.WithBreaker(3), log.option())
	if err := store.Take(ctx, oneOp("secret")); err != nil {
		t.Fatal(err)
	}
	state := func() redisstore.ServerStats {
		t.Helper()
		servers := store.Stats().Servers
		if len(servers) != 1 || servers[0].Server != s.addr {
			t.Fatalf("servers: %+v", servers)
		}
		return servers[0]
	}
	before := state()

	s.signal(t, syscall.SIGSTOP)
	for i := range 3 {
		if state().Open {
			t.Fatalf("open after %d failures", i)
		}
		if err := store.Take(ctx, oneOp("secret")); classOf(err) != redisstore.Timeout || !strings.HasSuffix(err.Error(), "no answer within 200ms") {
			t.Fatalf("error %v", err)
		}
	}
	if st := state(); !st.Open || !st.Since.After(before.Since) {
		t.Fatalf("after 3 failures: %+v", st)
	}
	start := time.Now()
	if err := store.Take(ctx, oneOp("secret")); classOf(err) != redisstore.Open || time.Since(start) > 100*time.Millisecond {
		t.Errorf("error %v after %v", err, time.Since(start))
	}
	timeouts := store.Stats().Failures[redisstore.Timeout]
	until(t, 5*time.Second, func() bool { // it tries the server with a call
		err := store.Take(ctx, oneOp("secret"))
		return classOf(err) == redisstore.Timeout
	})
	if n := store.Stats().Failures[redisstore.Timeout]; n != timeouts+1 {
		t.Errorf("%d calls tried the server", n-timeouts)
	}

	s.signal(t, syscall.SIGCONT)
	until(t, 5*time.Second, func() bool { return store.Take(ctx, oneOp("secret")) == nil })
	stats := store.Stats()
	if stats.Servers[0].Open || stats.Answers != 2 || stats.Failures[redisstore.Timeout] < 4 || stats.Failures[redisstore.Open] < 2 || len(stats.Failures) != 7 {
		t.Errorf("at last: %+v", stats)
	}
	lines := log.lines()
	if len(lines) != 2 || !strings.Contains(lines[0], "level=WARN") || !strings.Contains(lines[1], "level=INFO") {
		t.Fatalf("logged %q, want a line for each change", lines)
	}
	for _, line := range lines {
		if !strings.Contains(line, "server="+s.addr) || strings.Contains(line, "secret") {
			t.Errorf("logged %q", line)
		}
	}
}

func TestErrorsHaveAClass(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, c := range []struct {
		name  string
		class redisstore.Class
		code  string
		reply string // of a server that always gives it
		opens bool
	}{
		{"loading", redisstore.Refused, "LOADING", "-LOADING Redis is loading the dataset in memory\r\n", true},
		{"replica", redisstore.Refused, "READONLY", "-READONLY You can't write against a read only replica.\r\n", true},
		{"memory", redisstore.Refused, "OOM", "-OOM command not allowed when used memory > 'maxmemory'.\r\n", true},
		{"busy", redisstore.Refused, "BUSY", "-BUSY Redis is busy running a script. secret\r\n", true},
		{"master down", redisstore.Refused, "MASTERDOWN", "-MASTERDOWN Link with MASTER is down\r\n", true},
		{"permission", redisstore.Refused, "NOPERM", "-NOPERM No permissions to access a key\r\n", false},
		{"wrong type", redisstore.Invalid, "WRONGTYPE", "-WRONGTYPE Operation against a key\r\n", false},
		{"script's complaint", redisstore.Invalid, "RATELIMIT", "-RATELIMIT KEYS[1] does not hold the state of a log limit\r\n", false},
		{"nonsense", redisstore.Malformed, "", "*1\r\n:1\r\n", true},
		{"hung up", redisstore.Unreachable, "", "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var log logBuffer
			store := redisstore.New(connect(t, babble(t, c.reply)), redisstore.WithBreaker(2), log.option())
			for range 2 {
				err := store.Take(ctx, oneOp("secret"))
				var e *redisstore.Error
				if !errors.As(err, &e) || e.Class != c.class || e.Code() != c.code {
					t.Errorf("error %v of class %q", err, classOf(err))
				}
			}
			stats := store.Stats()
			if stats.Servers[0].Open != c.opens || stats.Failures[c.class] != 2 || stats.Answers != 0 || stats.InFlight != 0 {
				t.Errorf("%+v, want open %v", stats, c.opens)
			}
			if c.opens {
				if lines := log.lines(); len(lines) != 1 || !strings.Contains(lines[0], "class="+string(c.class)) || strings.Contains(lines[0], "secret") {
					t.Errorf("logged %q", lines)
				}
				if err := store.Take(ctx, oneOp("k")); classOf(err) != redisstore.Open {
					t.Errorf("then error %v", err)
				}
			}
		})
	}
}

func TestCallersThatLeaveDoNotOpenTheBreaker(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	store := redisstore.New(connect(t, s.addr), redisstore.WithTimeout(400*time.Millisecond), redisstore.WithBreaker(1), quiet)
	if err := store.Take(context.Background(), oneOp("k")); err != nil {
		t.Fatal(err)
	}
	s.signal(t, syscall.SIGSTOP)
	take := func(d time.Duration) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), d)
		defer cancel()
		start := time.Now()
		if err := store.Take(ctx, oneOp("k")); !errors.Is(err, context.DeadlineExceeded) || classOf(err) != "" {
			t.Errorf("error %v", err)
		}
		if took := time.Since(start); took > d+200*time.Millisecond {
			t.Errorf("a call with %v took %v", d, took)
		}
	}
	take(20 * time.Millisecond)
	if store.Stats().Servers[0].Open {
		t.Error("open after a call that had no time")
	}
	take(100 * time.Millisecond)
	if !store.Stats().Servers[0].Open {
		t.Error("not open after a call that had a quarter of the timeout")
	}
}

// With -2 for a timeout, connections of go-redis have no deadline, whatever the context says.
func TestAClientWithoutTimeoutsOfConnectionsIsLeftAtTheDeadline(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := startServer(t, "--cluster-enabled", "yes")
	ownSlots(t, connect(t, s.addr), 0, 16383)
	for name, client := range map[string]redis.UniversalClient{
		"single":  redisstore.NewClient(&redis.UniversalOptions{Addrs: []string{s.addr}, ReadTimeout: -2, WriteTimeout: -2}),
		"cluster": redisstore.NewClient(&redis.UniversalOptions{Addrs: []string{s.addr}, ReadTimeout: -2, IsClusterMode: true}),
		"ring":    redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": s.addr}, ReadTimeout: -2, ContextTimeoutEnabled: true}),
	} {
		t.Cleanup(func() { client.Close() })
		for _, n := range []int{0, 1} {
			store := redisstore.New(client, redisstore.WithTimeout(200*time.Millisecond), redisstore.WithPipelines(n), quiet)
			until(t, 10*time.Second, func() bool { return store.Take(ctx, oneOp("k")) == nil })
			s.signal(t, syscall.SIGSTOP)
			resume := time.AfterFunc(3*time.Second, func() { s.signal(t, syscall.SIGCONT) })
			start := time.Now()
			err := store.Take(ctx, oneOp("k"))
			if took := time.Since(start); classOf(err) != redisstore.Timeout || took > time.Second {
				t.Errorf("%s, %d pipelines: error %v after %v", name, n, err, took)
			}
			if resume.Stop() {
				s.signal(t, syscall.SIGCONT)
			}
		}
	}
}

// What a call has waited for before it asks is a part of its time.
func TestACallThatHasWaitedBeforeWaitsLess(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	const timeout = 2 * time.Second
	store := redisstore.New(connect(t, s.addr), redisstore.WithTimeout(timeout), quiet)
	if err := store.Take(context.Background(), oneOp("k")); err != nil {
		t.Fatal(err)
	}
	s.signal(t, syscall.SIGSTOP)
	for _, before := range []time.Duration{timeout / 2, time.Hour} {
		start := time.Now()
		err := store.Take(waited.Since(context.Background(), start.Add(-before)), oneOp("k"))
		want := max(timeout-before, timeout/5)
		if took := time.Since(start); classOf(err) != redisstore.Timeout || took < want || took > want+timeout/4 {
			t.Errorf("a call that has waited %v: error %v after %v, want one after %v", before, err, took, want)
		}
	}
}

func TestCommandsInFlightAreBounded(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := startServer(t)
	store := redisstore.New(connect(t, s.addr), redisstore.WithTimeout(time.Second), redisstore.WithMaxInFlight(2), quiet)
	if err := store.Take(ctx, oneOp("k")); err != nil {
		t.Fatal(err)
	}
	s.signal(t, syscall.SIGSTOP)
	var callers sync.WaitGroup
	for range 2 {
		callers.Go(func() {
			if err := store.Take(ctx, oneOp("k")); classOf(err) != redisstore.Timeout {
				t.Errorf("error %v", err)
			}
		})
	}
	until(t, 5*time.Second, func() bool { return store.Stats().InFlight == 2 })
	start := time.Now()
	if err := store.Take(ctx, oneOp("k")); classOf(err) != redisstore.Overload || !strings.Contains(err.Error(), "2 commands are in flight") {
		t.Errorf("error %v", err)
	}
	if took := time.Since(start); took > 500*time.Millisecond {
		t.Errorf("refused after %v", took)
	}
	callers.Wait()
	if n := store.Stats().InFlight; n != 0 {
		t.Errorf("%d commands in flight at the end", n)
	}
}

// A client of a cluster that does not heed deadlines is left waiting, by a bounded
// number of goroutines, which end.
func TestAClientThatDoesNotHeedDeadlinesIsLeft(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := startServer(t, "--cluster-enabled", "yes")
	ownSlots(t, connect(t, s.addr), 0, 16383)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{s.addr}, ReadTimeout: time.Minute})
	t.Cleanup(func() { client.Close() })
	store := redisstore.New(client, redisstore.WithTimeout(50*time.Millisecond), redisstore.WithMaxInFlight(8), quiet)
	until(t, 10*time.Second, func() bool { return store.Take(ctx, oneOp("k")) == nil })
	s.signal(t, syscall.SIGSTOP)
	var late atomic.Int64
	var callers sync.WaitGroup
	for range 50 {
		callers.Go(func() {
			start := time.Now()
			if err := store.Take(ctx, oneOp("k")); classOf(err) == "" {
				t.Errorf("error %v", err)
			}
			if time.Since(start) > time.Second {
				late.Add(1)
			}
		})
	}
	callers.Wait()
	if n := late.Load(); n > 0 {
		t.Errorf("%d calls took more than a second", n)
	}
	if stats := store.Stats(); stats.InFlight == 0 || stats.InFlight > 8 || stats.Failures[redisstore.Overload] == 0 {
		t.Errorf("%+v, want 1 to 8 in flight", stats)
	}
	if n := workers(store); n == 0 || n > 16 {
		t.Errorf("%d goroutines wait, want 1 to 16", n)
	}
	s.signal(t, syscall.SIGCONT)
	until(t, 10*time.Second, func() bool { return store.Take(ctx, oneOp("k")) == nil && store.Stats().InFlight == 0 })
	until(t, 10*time.Second, func() bool { return workers(store) == 0 })
}

// workers counts the goroutines of store. Other tests run beside it, whose stores have
// goroutines too.
func workers(store *redisstore.Store) int {
	buf := make([]byte, 4<<20)
	return strings.Count(string(buf[:runtime.Stack(buf, true)]), fmt.Sprintf("redisstore.(*Store).work(%p", store))
}

func TestRefusedConnectionsAreErrorsAtOnce(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	until(t, 5*time.Second, func() bool { // at first, connections may be reset
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
		}
		return err != nil && strings.Contains(err.Error(), "connection refused")
	})
	client := redisstore.NewClient(&redis.UniversalOptions{Addrs: []string{addr}})
	t.Cleanup(func() { client.Close() })
	store := redisstore.New(client, redisstore.WithTimeout(50*time.Millisecond), quiet)
	slow := 0
	for i := range 50 {
		start := time.Now()
		err := store.Take(context.Background(), oneOp("k"))
		if took := time.Since(start); took > 10*time.Millisecond {
			slow++
		}
		want := redisstore.Unreachable
		if i >= redisstore.DefaultBreaker {
			want = redisstore.Open
		}
		if classOf(err) != want || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("call %d: %v, want class %s", i, err, want)
		}
	}
	if slow > 5 { // since the machine may be busy
		t.Errorf("%d of 50 calls took more than 10 ms", slow)
	}
	faults.addTest(t, "connections refused", 50, fmt.Sprintf("%d took more than 10 ms", slow))
}

func TestCallersOnAPoolOfOne(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := startServer(t)
	client := redis.NewClient(&redis.Options{Addr: s.addr, PoolSize: 1})
	t.Cleanup(func() { client.Close() })
	patient := redisstore.New(client, redisstore.WithTimeout(10*time.Second), quiet)
	hasty := redisstore.New(client, redisstore.WithTimeout(50*time.Millisecond), redisstore.WithBreaker(1000), quiet)
	for _, frozen := range []bool{false, true} {
		store := patient
		if frozen {
			store = hasty
			s.signal(t, syscall.SIGSTOP)
		}
		var callers sync.WaitGroup
		for range 200 {
			callers.Go(func() {
				start := time.Now()
				err := store.Take(ctx, oneOp("k"))
				switch {
				case !frozen && err != nil:
					t.Errorf("error %v", err)
				case frozen && classOf(err) != redisstore.Timeout:
					t.Errorf("frozen: error %v", err)
				case frozen && time.Since(start) > time.Second:
					t.Errorf("frozen: error after %v", time.Since(start))
				}
			})
		}
		callers.Wait()
	}
	s.signal(t, syscall.SIGCONT)
	until(t, 10*time.Second, func() bool { return patient.Take(ctx, oneOp("k")) == nil })
	ops := oneOp("k")
	ops[0].Cost = 0
	if err := patient.Take(ctx, ops); err != nil {
		t.Fatal(err)
	}
	// One command was with the server when it froze.
	if spent := ratelimit.MaxLimit - ops[0].Outcome.Remaining; spent < 201 || spent > 202 {
		t.Errorf("201 calls that were answered and 200 that were not were charged as %d", spent)
	}
	faults.addTest(t, "200 callers on a pool of one, answered and frozen", 401, "each by its deadline")
}

func TestEachNodeOfAClusterHasABreaker(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	servers, nodes, cluster := startNodes(t)
	store := redisstore.New(cluster, redisstore.WithTimeout(50*time.Millisecond), quiet)
	until(t, 5*time.Second, func() bool { return store.Take(ctx, oneOp("k")) == nil })
	byNode := map[string]string{} // a key on each node
	for i := 0; len(byNode) < len(nodes); i++ {
		key := fmt.Sprint("k", i)
		node, err := cluster.MasterForKey(ctx, store.KeyOf(oneOp(key)[0].Policy, key))
		if err != nil {
			t.Fatal(err)
		}
		byNode[node.Options().Addr] = key
	}
	gone := servers[1]
	gone.signal(t, syscall.SIGSTOP)
	t.Cleanup(func() { gone.signal(t, syscall.SIGCONT) })
	until(t, 5*time.Second, func() bool { return classOf(store.Take(ctx, oneOp(byNode[gone.addr]))) == redisstore.Open })
	for addr, key := range byNode {
		if addr == gone.addr {
			continue
		}
		failures := 0
		for range 20 {
			if err := store.Take(ctx, oneOp(key)); err != nil {
				failures++
			}
		}
		if failures > 2 { // since the machine may be busy
			t.Errorf("%d of 20 calls on the node %s failed", failures, addr)
		}
	}
	for _, st := range store.Stats().Servers {
		if st.Open != (st.Server == gone.addr) {
			t.Errorf("%s is not asked: %v", st.Server, st.Open)
		}
	}
}

// A node that is gone has the client look who serves its slots, once in a while.
func TestLooksAtTheSlotsAreFarBetween(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var looks []time.Time
	client := redis.NewClusterClient(&redis.ClusterOptions{
		DialerRetries: 1,
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			mu.Lock()
			defer mu.Unlock()
			looks = append(looks, time.Now())
			// Nobody listens on port 1.
			return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: "127.0.0.1:1"}}}}, nil
		},
	})
	t.Cleanup(func() { client.Close() })
	store := redisstore.New(client, redisstore.WithTimeout(50*time.Millisecond), redisstore.WithBreaker(1_000_000), quiet)
	until(t, 10*time.Second, func() bool {
		if err := store.Take(context.Background(), oneOp("k")); err == nil {
			t.Fatal("no error")
		}
		mu.Lock()
		defer mu.Unlock()
		return len(looks) == 4
	})
	// The first is of the first call, the second of its failure.
	for i := 2; i < len(looks); i++ {
		if d := looks[i].Sub(looks[i-1]); d < 900*time.Millisecond {
			t.Errorf("look %d came after %v", i, d)
		}
	}
}
