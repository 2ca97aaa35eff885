package main

import (
	"bytes"
	"context"
	"net"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const table = `CALL          FROM         WHO                        SENT  ADMITTED  REFUSED  RETRY AFTER
POST /login   203.0.113.7  guessing ann's password    8     5         3 (429)  N s
POST /login   203.0.113.8  ann, from another address  2     2         0        -
POST /orders  203.0.113.8  acme, ann                  5     3         2 (429)  N s
POST /orders  203.0.113.8  acme, bob                  2     2         0        -
POST /orders  203.0.113.9  globex, ann                2     2         0        -
POST /orders  203.0.113.9  globex, nobody             1     0         1 (403)  -
GET /search   203.0.113.7  one caller                 6     6         0        -
GET /search   203.0.113.9  another caller             6     4         2 (429)  N s
`

// drives runs the quickstart and returns what it printed below the first line.
func drives(t *testing.T, redisAddr, prefix string) string {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), &out, redisAddr, prefix, ""); err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(out.String(), "\n")
	if !strings.HasPrefix(head, "shop on http://127.0.0.1:") {
		t.Errorf("the first line is %q", head)
	}
	return seconds.ReplaceAllString(rest, "N s")
}

// seconds are left out of comparisons: they tell how long the test took.
var seconds = regexp.MustCompile(`\b\d+ s\b`)

func TestQuickstartInMemory(t *testing.T) {
	t.Parallel()
	if got := drives(t, "", ""); got != table {
		t.Errorf("printed\n%swant\n%s", got, table)
	}
}

func TestQuickstartOnRedis(t *testing.T) {
	t.Parallel()
	addr := startRedis(t)
	if got := drives(t, addr, "one:"); got != table {
		t.Errorf("printed\n%swant\n%s", got, table)
	}
	// A second process with the same prefix shares the limits that the first used up.
	if got := drives(t, addr, "one:"); !strings.Contains(got, "guessing ann's password    8     0         8 (429)") {
		t.Errorf("another process is not limited by what the first one did:\n%s", got)
	}
}

func TestAMissingRedisIsNamed(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	err := run(t.Context(), &bytes.Buffer{}, addr, "", "")
	if err == nil || !strings.Contains(err.Error(), addr) {
		t.Errorf("error %v, want one that names %s", err, addr)
	}
}

func TestServeEndsWhenInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, &bytes.Buffer{}, "", "", "127.0.0.1:0"); err != nil {
		t.Error(err)
	}
}

// freeAddr is an address on which nobody listens.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

// startRedis starts a Redis of the test's own.
func startRedis(t *testing.T) (addr string) {
	t.Helper()
	addr = freeAddr(t)
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir())
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v; make test installs what the tests need", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	})
	client := redis.NewClient(&redis.Options{Addr: addr, DialerRetries: 1})
	defer client.Close()
	for deadline := time.Now().Add(10 * time.Second); client.Ping(t.Context()).Err() != nil; {
		if time.Now().After(deadline) {
			t.Fatalf("redis-server at %s does not answer", addr)
		}
	}
	return addr
}
