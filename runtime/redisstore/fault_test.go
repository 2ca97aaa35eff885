package redisstore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

func TestRD03AnyBadArgumentIsAnErrorBeforeTheFirstWrite(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := connect(t, startServer(t).addr)
	store := redisstore.New(client)
	var ops []ratelimit.Op
	for _, p := range policies() {
		ops = append(ops, ratelimit.Op{Policy: p, Key: "k", Cost: 1})
	}
	expectRefused := func(what string, cmd []any) {
		t.Helper()
		if err := client.Do(ctx, redisstore.Sent(cmd)...).Err(); err == nil || !strings.Contains(err.Error(), "RATELIMIT") {
			t.Errorf("%s: error %v", what, err)
		}
		if n, err := client.DBSize(ctx).Result(); n != 0 || err != nil {
			t.Fatalf("%s: %d keys were written, %v", what, n, err)
		}
	}
	arguments := 3 + len(ops)
	for i := arguments; i < len(store.Command("eval", ops)); i++ {
		for _, bad := range []string{"1500.7", "-1", "nan", "-nan", "inf", "1e400", "", "five", "9223372036854775808", "9007199254740992"} {
			cmd := store.Command("eval", ops)
			cmd[i] = bad
			expectRefused(fmt.Sprintf("ARGV[%d] = %q", i-arguments+1, bad), cmd)
		}
	}
	cmd := store.Command("eval", ops)
	expectRefused("an argument less", cmd[:len(cmd)-1])
	expectRefused("an argument more", append(cmd, "1"))
	cmd = store.Command("eval", ops)
	cmd[2] = "0"
	expectRefused("no keys", cmd)

	if err := store.Take(ctx, ops); err != nil {
		t.Errorf("the arguments as they are: %v", err)
	}
}

func TestForeignContentAtAKeyIsAnError(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := newFake(t)
	states := map[string]string{}
	for _, p := range policies() {
		f.take(ratelimit.Op{Policy: p, Key: "k", Cost: 2})
		states[p.ID] = f.dump(p)
	}
	for _, p := range policies() {
		key := f.store.KeyOf(p, "k")
		expectError := func(what string) {
			t.Helper()
			before, _ := f.client.Dump(ctx, place(key)).Result()
			err := f.store.Take(ctx, []ratelimit.Op{{Policy: p, Key: "k", Cost: 1}})
			if err == nil || !strings.Contains(err.Error(), strconv.Quote(key)) {
				t.Errorf("%s with %s: error %v", p.ID, what, err)
			}
			if after, _ := f.client.Dump(ctx, place(key)).Result(); after != before {
				t.Errorf("%s with %s was overwritten", p.ID, what)
			}
		}
		whole := states[p.ID]
		content := []string{"hello", "5", `{"tokens":5}`, strings.Repeat("\xff", len(whole)), whole[:1] + strings.Repeat("\xff", len(whole)-1),
			whole[:1] + strings.Repeat("\x00", len(whole)-1), whole + "\x00"}
		for i := range whole {
			content = append(content, whole[:i])
		}
		if p.Algorithm == ratelimit.SlidingLog {
			header, times := "L\x04\x06\x00\x00\x00\x00\x00\x00", "\x00\x00\x00\x01"
			content = append(content,
				header+"\x00\x00"+times+"\x00\x00",                  // no units
				header+"\x00\x00"+times+"\x10\x01",                  // 4097
				header+"\x00\x00"+times+"\x00\x01"+times+"\x00\x01", // an entry of none
			)
		}
		for other, state := range states {
			if other != p.ID {
				content = append(content, state)
			}
		}
		for _, c := range content {
			_ = setState(ctx, f.client, key, c, time.Hour)
			expectError(strconv.Quote(c))
		}
		f.client.Del(ctx, place(key))
		f.client.RPush(ctx, place(key), "a")
		expectError("a list")
	}
}

func TestAServerThatRefusesToWriteIsAnErrorThatChargesNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, c := range []struct {
		class string
		on    [][]any
	}{
		{"OOM", [][]any{{"config", "set", "maxmemory", "1"}}},
		{"READONLY", [][]any{{"replicaof", "127.0.0.1", "1"}}},
		{"NOREPLICAS", [][]any{{"config", "set", "min-replicas-to-write", "1"}}},
		{"NOPERM", [][]any{
			{"acl", "setuser", "default", "resetkeys", "~*p:log"}, // not the key of the second policy
		}},
	} {
		t.Run(c.class, func(t *testing.T) {
			t.Parallel()
			client := connect(t, startServer(t).addr)
			store := redisstore.New(client)
			var ops []ratelimit.Op
			for _, p := range policies() {
				p.ID = "p"
				ops = append(ops, ratelimit.Op{Policy: p, Key: "k", Cost: 1})
			}
			for _, cmd := range c.on {
				if err := client.Do(ctx, cmd...).Err(); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 { // by EVAL, and by EVALSHA
				if err := store.Take(ctx, ops); err == nil || !strings.Contains(err.Error(), c.class) {
					t.Errorf("error %v, want %s", err, c.class)
				}
			}
			if n, err := client.DBSize(ctx).Result(); n != 0 || err != nil {
				t.Errorf("%d keys were written, %v", n, err)
			}
		})
	}
}

func TestRD06AFlushedOrRestartedServerIsNoError(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := startServer(t)
	client := connect(t, s.addr)
	store := redisstore.New(client)
	p := &ratelimit.Policy{ID: "p", Algorithm: ratelimit.TokenBucket, Limit: 1 << 20, Window: time.Hour}

	var flushes atomic.Int64
	done := make(chan struct{})
	var flusher, callers sync.WaitGroup
	flusher.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				if err := client.ScriptFlush(ctx).Err(); err != nil {
					t.Error(err)
					return
				}
				flushes.Add(1)
			}
		}
	})
	for range 8 {
		callers.Go(func() {
			for range 250 {
				if err := store.Take(ctx, []ratelimit.Op{{Policy: p, Key: "k", Cost: 1}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	callers.Wait()
	close(done)
	flusher.Wait()
	ops := []ratelimit.Op{{Policy: p, Key: "k"}}
	if err := store.Take(ctx, ops); err != nil {
		t.Fatal(err)
	}
	if spent := p.Limit - ops[0].Outcome.Remaining; spent < 2000-spare(p) || spent > 2000 {
		t.Errorf("2000 calls and %d flushes were charged as %d", flushes.Load(), spent)
	}

	s.kill()
	if err := s.run(); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if err := store.Take(ctx, ops); err != nil {
			t.Errorf("after a restart: %v", err)
		}
	}
}

// spare is what a policy refills in a minute, longer than any test takes.
func spare(p *ratelimit.Policy) int64 { return p.Limit / int64(p.Window/time.Minute) }

func TestOneCommandDecidesACall(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := connect(t, startServer(t).addr)
	store := redisstore.New(client, redisstore.WithRefusalMemory(0))
	var ops []ratelimit.Op
	for i, p := range policies() {
		ops = append(ops, ratelimit.Op{Policy: p, Key: fmt.Sprint("k", i), Cost: 1})
	}
	if err := store.Take(ctx, ops); err != nil { // loads the script
		t.Fatal(err)
	}
	before := calls(t, client)
	const n = 50
	for range n {
		if err := store.Take(ctx, ops[:1]); err != nil {
			t.Fatal(err)
		}
		if err := store.Take(ctx, ops); err != nil {
			t.Fatal(err)
		}
	}
	sent := 0
	for name, count := range calls(t, client) {
		switch name {
		case "time", "get", "pttl", "set", "setrange", "hget", "hmget", "hset", "pexpire": // what the script calls
		case "info": // what the test calls
		case "evalsha":
			sent += count - before[name]
		default:
			if count != before[name] {
				t.Errorf("%d %s were sent too", count-before[name], name)
			}
		}
	}
	if sent != 2*n {
		t.Errorf("%d commands decided %d calls", sent, 2*n)
	}
}

func TestACallThatIsOverIsNotSent(t *testing.T) {
	t.Parallel()
	client := connect(t, startServer(t).addr)
	store := redisstore.New(client)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	p := policies()[0]
	if err := store.Take(ctx, []ratelimit.Op{{Policy: p, Key: "k", Cost: 1}}); !errors.Is(err, context.Canceled) {
		t.Errorf("Take: error %v", err)
	}
	if err := store.Reset(ctx, p, "k"); !errors.Is(err, context.Canceled) {
		t.Errorf("Reset: error %v", err)
	}
	if n := calls(t, client); n["evalsha"]+n["eval"]+n["del"] != 0 {
		t.Errorf("commands were sent: %v", n)
	}
	faults.addTest(t, "context done already", 1, "nothing sent")
}

func TestErrorsNameTheServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	for name, client := range map[string]redis.UniversalClient{
		"redis " + addr + ": dial tcp " + addr + ": connect: connection refused":         redis.NewClient(&redis.Options{Addr: addr, DialerRetries: 1}),
		"redis cluster " + addr + ": dial tcp " + addr + ": connect: connection refused": redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{addr}, DialerRetries: 1}),
		"redis ring " + addr + ": ": redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": addr}, DialerRetries: 1}),
	} {
		store := redisstore.New(client)
		if err := store.Take(context.Background(), []ratelimit.Op{{Policy: policies()[0], Key: "k", Cost: 1}}); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("Take: error %v, want %s", err, name)
		}
		if err := store.Reset(context.Background(), policies()[0], "k"); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("Reset: error %v, want %s", err, name)
		}
		client.Close()
	}
	if err := redisstore.New(nil).Take(context.Background(), nil); err == nil {
		t.Error("no client is no error")
	}
}

func TestRD19AReplyThatMakesNoSenseIsAnError(t *testing.T) {
	t.Parallel()
	for _, reply := range []string{
		"*0\r\n", "*3\r\n:1\r\n:4\r\n:0\r\n", "*5\r\n:1\r\n:4\r\n:0\r\n:9\r\n:9\r\n", "*8\r\n" + strings.Repeat(":1\r\n", 8),
		":6\r\n", ":-1\r\n", ":9223372036854775807\r\n", "+OK\r\n", "$-1\r\n", "*-1\r\n", "_\r\n", "#t\r\n", "$1\r\n1\r\n", "*1\r\n*4\r\n:1\r\n:4\r\n:0\r\n:9\r\n",
		"*4\r\n$1\r\n1\r\n:4\r\n:0\r\n:9\r\n", "*4\r\n:1\r\n:4\r\n:0\r\n,9.5\r\n", "*4\r\n:1\r\n$-1\r\n:0\r\n:9\r\n",
		"*4\r\n:2\r\n:4\r\n:0\r\n:9\r\n", "*4\r\n:-1\r\n:4\r\n:0\r\n:9\r\n", // allowed
		"*4\r\n:1\r\n:6\r\n:0\r\n:9\r\n", "*4\r\n:1\r\n:-1\r\n:0\r\n:9\r\n", // remaining
		"*4\r\n:1\r\n:4\r\n:1\r\n:9\r\n", "*4\r\n:0\r\n:0\r\n:0\r\n:9\r\n", "*4\r\n:0\r\n:0\r\n:-1\r\n:9\r\n", "*4\r\n:0\r\n:0\r\n:9223372036854775807\r\n:9\r\n", // retry
		"*4\r\n:1\r\n:4\r\n:0\r\n:-1\r\n", "*4\r\n:1\r\n:4\r\n:0\r\n:9223372036854775807\r\n", // reset
		"-ERR no\r\n", "-NOSCRIPT again\r\n", "*4\r\n:1\r\n-ERR no\r\n:0\r\n:9\r\n", "?\r\n", "",
	} {
		client := connect(t, babble(t, reply))
		ops := []ratelimit.Op{{Policy: policies()[0], Key: "k", Cost: 1}}
		if err := redisstore.New(client).Take(context.Background(), ops); err == nil || ops[0].Outcome != (ratelimit.Outcome{}) {
			t.Errorf("%q: %+v, error %v", reply, ops[0].Outcome, err)
		}
	}
	client := connect(t, babble(t, "*4\r\n:1\r\n:4\r\n:0\r\n:9\r\n"))
	ops := []ratelimit.Op{{Policy: policies()[0], Key: "k", Cost: 1}}
	if err := redisstore.New(client).Take(context.Background(), ops); err != nil || ops[0].Outcome != admitted(4, 9*time.Microsecond) {
		t.Errorf("a good reply: %+v, error %v", ops[0].Outcome, err)
	}
}

// babble listens for connections and gives every script the same reply, or hangs
// up for an empty one.
func babble(t *testing.T, reply string) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				r := bufio.NewReader(c)
				for {
					cmd, err := readCommand(r)
					if err != nil {
						return
					}
					answer := "-ERR unknown command\r\n"
					if strings.HasPrefix(cmd[0], "eval") {
						answer = reply
					}
					if answer == "" {
						return
					}
					if _, err := io.WriteString(c, answer); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// readCommand reads one command as clients send them.
func readCommand(r *bufio.Reader) ([]string, error) {
	number := func(kind byte) (int, error) {
		line, err := r.ReadString('\n')
		if err != nil {
			return 0, err
		}
		if line[0] != kind {
			return 0, fmt.Errorf("%q where %q was expected", line, kind)
		}
		return strconv.Atoi(strings.TrimSpace(line[1:]))
	}
	n, err := number('*')
	if err != nil {
		return nil, err
	}
	cmd := make([]string, n)
	for i := range cmd {
		size, err := number('$')
		if err != nil {
			return nil, err
		}
		text := make([]byte, size+2)
		if _, err := io.ReadFull(r, text); err != nil {
			return nil, err
		}
		cmd[i] = string(text[:size])
	}
	return cmd, nil
}
