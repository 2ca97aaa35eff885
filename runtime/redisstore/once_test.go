package redisstore_test

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

// proxy passes connections on to a server, and can lose a reply: it waits for the
// server's answer to a command, and closes the connection in its place.
type proxy struct {
	addr, server string
	mu           sync.Mutex
	command      string // whose next reply is lost, or ""
	lost         int
}

func startProxy(t testing.TB, l net.Listener, server string) *proxy {
	p := &proxy{addr: l.Addr().String(), server: server}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	defer server.Close()
	doomed := make(chan struct{})
	go func() {
		defer server.Close()
		buf := make([]byte, 1<<20)
		for {
			n, err := client.Read(buf)
			if err != nil {
				return
			}
			if p.doom(buf[:n]) {
				close(doomed)
			}
			if _, err := server.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	buf := make([]byte, 1<<20)
	for {
		n, err := server.Read(buf)
		if err != nil {
			return
		}
		select {
		case <-doomed:
			p.mu.Lock()
			p.lost++
			p.mu.Unlock()
			return
		default:
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}

// doom reports whether what the client sent is the command whose reply is lost.
func (p *proxy) doom(sent []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.command == "" || !bytes.Contains(sent, []byte("\r\n"+p.command+"\r\n")) {
		return false
	}
	p.command = ""
	return true
}

// lose loses the reply to the next command of this name.
func (p *proxy) lose(command string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.command = command
}

func (p *proxy) losses() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

func TestACallWhoseReplyIsLostIsChargedOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := &ratelimit.Policy{ID: "p", Limit: 100, Window: time.Hour}
	one := func(key string) []ratelimit.Op { return []ratelimit.Op{{Policy: p, Key: key, Cost: 1}} }

	for name, newClient := range map[string]func(addr string) redis.UniversalClient{
		"single": func(addr string) redis.UniversalClient { return redis.NewClient(&redis.Options{Addr: addr}) },
		"cluster": func(addr string) redis.UniversalClient {
			return redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{addr}})
		},
		"ring": func(addr string) redis.UniversalClient {
			return redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": addr}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			var s *server
			if name == "cluster" {
				// A cluster of one, which tells its clients that it is where the proxy is.
				_, port, _ := net.SplitHostPort(l.Addr().String())
				s = startServer(t, "--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1", "--cluster-announce-port", port)
				ownSlots(t, connect(t, s.addr), 0, 16383)
			} else {
				s = startServer(t)
			}
			proxy := startProxy(t, l, s.addr)
			client := newClient(proxy.addr)
			t.Cleanup(func() { client.Close() })
			direct := redisstore.New(connect(t, s.addr))
			store := redisstore.New(client)
			spent := func(key string) int64 {
				t.Helper()
				ops := []ratelimit.Op{{Policy: p, Key: key}}
				if err := direct.Take(ctx, ops); err != nil {
					t.Fatal(err)
				}
				return p.Limit - ops[0].Outcome.Remaining
			}

			proxy.lose("eval") // the script's first use
			if err := store.Take(ctx, one("first")); err == nil || !strings.HasPrefix(err.Error(), "redis ") {
				t.Errorf("the reply to EVAL is lost: error %v", err)
			}
			if n := spent("first"); n != 1 {
				t.Errorf("the reply to EVAL is lost: charged %d times", n)
			}

			proxy.lose("evalsha")
			if err := store.Take(ctx, one("k")); err == nil {
				t.Error("the reply to EVALSHA is lost: no error")
			}
			if n := spent("k"); n != 1 {
				t.Errorf("the reply to EVALSHA is lost: charged %d times", n)
			}

			proxy.lose("evalsha")
			pipe := client.Pipeline()
			for range 3 {
				_ = pipe.Process(ctx, redisstore.OnceCmd(redisstore.Sent(store.Command("evalsha", one("pipe")))))
			}
			if _, err := pipe.Exec(ctx); err == nil {
				t.Error("the replies of a pipeline are lost: no error")
			}
			if n := spent("pipe"); n < 1 || n > 3 {
				t.Errorf("the replies of a pipeline of 3 are lost: charged %d times", n)
			}

			// What go-redis does to a command that does not forbid it, lest this
			// test tests nothing.
			proxy.lose("evalsha")
			if err := client.Do(ctx, redisstore.Sent(store.Command("evalsha", one("plain")))...).Err(); err != nil {
				t.Errorf("go-redis did not retry: %v", err)
			}
			if n := spent("plain"); n != 2 {
				t.Errorf("the reply to a plain command is lost: charged %d times", n)
			}
			if n := proxy.losses(); n != 4 {
				t.Errorf("%d replies were lost", n)
			}
			faults.addTest(t, "reply lost after execution, "+name, 5, "each charged once")
		})
	}
}
