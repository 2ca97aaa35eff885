package redisstore_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

// server is a redis-server of our own on a loopback port, without persistence.
type server struct {
	addr string
	dir  string
	args []string
	cmd  *exec.Cmd
}

// run starts the server, and returns when it accepts connections.
func (s *server) run() error {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return fmt.Errorf("these tests need redis-server, which `make test` provides: %w", err)
	}
	_, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		return err
	}
	args := append([]string{
		"--bind", "127.0.0.1", "--port", port, "--dir", s.dir, "--save", "", "--appendonly", "no",
	}, s.args...)
	cmd := exec.Command(path, args...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ready := make(chan error, 1)
	go func() {
		var log strings.Builder
		lines := bufio.NewScanner(stdout)
		started := false
		for lines.Scan() { // to the end, so that the server never blocks on its log
			if started {
				continue
			}
			fmt.Fprintln(&log, lines.Text())
			if strings.Contains(lines.Text(), "Ready to accept connections") {
				started = true
				ready <- nil
			}
		}
		if !started {
			ready <- fmt.Errorf("redis-server %s did not start:\n%s", s.addr, log.String())
		}
	}()
	select {
	case err = <-ready:
	case <-time.After(20 * time.Second):
		err = fmt.Errorf("redis-server %s did not start in 20 s", s.addr)
	}
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return err
	}
	s.cmd = cmd
	return nil
}

func (s *server) kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// start runs a server on a free port; the caller kills it.
func start(dir string, args ...string) (*server, error) {
	var err error
	for range 20 { // another process may take the port between our look and its use
		var l net.Listener
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return nil, err
		}
		s := &server{addr: l.Addr().String(), dir: dir, args: args}
		l.Close()
		if l.Addr().(*net.TCPAddr).Port+10000 > 65535 {
			err = fmt.Errorf("no port for the bus of a cluster above %s", s.addr)
			continue
		}
		if err = s.run(); err == nil {
			return s, nil
		}
	}
	return nil, err
}

// startServer runs a server for one test.
func startServer(t testing.TB, args ...string) *server {
	t.Helper()
	s, err := start(t.TempDir(), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	return s
}

// connect returns a client of addr for one test.
func connect(t testing.TB, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { c.Close() })
	return c
}

var (
	shared     *server
	prefixes   atomic.Int64
	sharedOnce = sync.OnceValues(func() (*server, error) {
		dir, err := os.MkdirTemp("", "redisstore")
		if err != nil {
			return nil, err
		}
		shared, err = start(dir)
		return shared, err
	})
)

func TestMain(m *testing.M) {
	if addr := os.Getenv(hammerEnv); addr != "" {
		hammer(addr)
	}
	if os.Getenv(workerEnv) != "" {
		work()
	}
	logging.Disable() // go-redis's reports of the failures that tests provoke
	code := m.Run()
	faults.print()
	if shared != nil {
		shared.kill()
		os.RemoveAll(shared.dir)
	}
	os.Exit(code)
}

// sharedClient returns a client of the server that tests share, and a prefix that
// no other test uses.
func sharedClient(t testing.TB) (client *redis.Client, prefix string) {
	t.Helper()
	s, err := sharedOnce()
	if err != nil {
		t.Fatal(err)
	}
	return connect(t, s.addr), fmt.Sprintf("t%d:", prefixes.Add(1))
}

// calls returns how often the server was sent each command.
func calls(t testing.TB, client *redis.Client) map[string]int {
	t.Helper()
	info, err := client.Info(context.Background(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	n := map[string]int{}
	for line := range strings.Lines(info) {
		if name, rest, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls="); ok {
			digits, _, _ := strings.Cut(rest, ",")
			if n[name], err = strconv.Atoi(digits); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
		}
	}
	return n
}
