package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitgen/ratelimitgen/internal/cli"
	"github.com/ratelimitgen/ratelimitgen/internal/rediskey"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

// listenRedis runs a server of the test's own and returns its address.
func listenRedis(t *testing.T, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatalf("this test needs redis-server, which `make test` provides: %v", err)
	}
	for range 20 { // another process may take the port between our look and its use
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := l.Addr().String()
		l.Close()
		_, port, _ := net.SplitHostPort(addr)
		cmd := exec.Command(path, append([]string{"--bind", "127.0.0.1", "--port", port, "--dir", t.TempDir(), "--save", "", "--appendonly", "no"}, args...)...)
		stdout, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		ready := make(chan bool, 1)
		go func() {
			lines := bufio.NewScanner(stdout)
			for lines.Scan() { // to the end, so that the server never blocks on its log
				if strings.Contains(lines.Text(), "Ready to accept connections") {
					ready <- true
				}
			}
			ready <- false
		}()
		stop := func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		if <-ready {
			t.Cleanup(stop)
			return addr
		}
		stop()
	}
	t.Fatal("redis-server did not start")
	return ""
}

// counting is a server with counters of a service.
type counting struct {
	t      *testing.T
	addr   string
	client *redis.Client
	store  *redisstore.Store
	hashes bool // it has WithHashes
}

// eachLayout runs a test with services that keep strings, and that keep hashes.
func eachLayout(t *testing.T, test func(t *testing.T, hashes bool)) {
	t.Parallel()
	for name, hashes := range map[string]bool{"strings": false, "hashes": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, hashes)
		})
	}
}

// storeOf returns a store as services have it.
func storeOf(client redis.UniversalClient, hashes bool, opts ...redisstore.Option) *redisstore.Store {
	opts = append(opts, redisstore.WithTimeout(10*time.Second), redisstore.WithRefusalMemory(0))
	if hashes {
		opts = append(opts, redisstore.WithHashes())
	}
	return redisstore.New(client, opts...)
}

// column is what inspect prints for a form, and done what reset and block print.
func (c *counting) column(form string) string {
	if c.hashes {
		return form + " (hash)"
	}
	return form
}

func (c *counting) done(form string) string {
	if c.hashes {
		return "(" + form + ", hash)"
	}
	return "(" + form + ")"
}

var (
	loginPolicy  = &ratelimit.Policy{ID: "api.Login", Limit: 3, Window: time.Hour}
	searchPolicy = &ratelimit.Policy{ID: "api.Search", Algorithm: ratelimit.FixedWindow, Limit: 100, Window: time.Hour}
	payPolicy    = &ratelimit.Policy{ID: "pay", Limit: 1, Window: time.Hour, Lock: []time.Duration{time.Hour}}
)

const hostile = "a b\x1b[2J\n}{*"

func newCounting(t *testing.T, hashes bool) *counting {
	t.Helper()
	addr := listenRedis(t)
	client := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { client.Close() })
	c := &counting{t: t, addr: addr, client: client, store: storeOf(client, hashes), hashes: hashes}
	for _, key := range []string{"203.0.113.9", "203.0.113.90", hostile} {
		c.take(loginPolicy, key)
		c.take(loginPolicy, key)
		c.take(searchPolicy, key)
	}
	c.take(payPolicy, "")
	c.take(payPolicy, "")
	return c
}

func (c *counting) take(p *ratelimit.Policy, key string) ratelimit.Outcome {
	c.t.Helper()
	ops := []ratelimit.Op{{Policy: p, Key: key, Cost: 1}}
	if err := c.store.Take(context.Background(), ops); err != nil {
		c.t.Fatal(err)
	}
	return ops[0].Outcome
}

// run runs the program with the server and returns what it prints.
func (c *counting) run(code int, args ...string) (stdout, stderr string) {
	c.t.Helper()
	var out, errs bytes.Buffer
	if got := run(context.Background(), append([]string{args[0], "-addr", c.addr}, args[1:]...), &out, &errs); got != code {
		c.t.Errorf("%q: exit status %d, want %d; printed %s%s", args, got, code, out.String(), errs.String())
	}
	return out.String(), errs.String()
}

func TestInspectPrintsCounters(t *testing.T) { eachLayout(t, testInspectPrintsCounters) }

func testInspectPrintsCounters(t *testing.T, hashes bool) {
	c := newCounting(t, hashes)
	line := func(policy, key, form, state string) string {
		return regexp.QuoteMeta(policy) + ` +` + regexp.QuoteMeta(key) + ` +` + regexp.QuoteMeta(c.column(form)) + ` +(1h3m[34]\ds|1h0m0s|59m5\ds) +` + state + "\n"
	}
	jobs := &ratelimit.Policy{ID: "jobs", Algorithm: ratelimit.Concurrency, Limit: 1, Lease: time.Hour}
	for id := range uint64(2) {
		ops := []ratelimit.Op{{Policy: jobs, Key: "mail", Cost: 1, ID: id + 1, Waits: true, Ticket: 1<<32 | id + 1}}
		if err := c.store.Take(context.Background(), ops); err != nil || ops[0].Outcome.Allowed != (id == 0) {
			t.Fatalf("%+v, %v", ops[0].Outcome, err)
		}
	}
	const head = `POLICY +KEY +FORM +EXPIRES IN +STATE\n`
	const age = ` \S+ ago`
	printedKey := `"a b\x1b[2J\n}{*"`
	for _, r := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"203.0.113.9"}, exitDone,
			head + line("api.Login", "203.0.113.9", "log", "2 charged, last charged"+age) + line("api.Search", "203.0.113.9", "fixed", "1 charged, window began"+age)},
		{[]string{"-policy", "api.Login", hostile}, exitDone, head + line("api.Login", printedKey, "log", "2 charged, last charged"+age)},
		{[]string{hostile}, exitDone, head + line("api.Login", printedKey, "log", ".*") + line("api.Search", printedKey, "fixed", ".*")},
		{[]string{"-policy", "api.Login"}, exitDone,
			head + line("api.Login", "203.0.113.9", "log", ".*") + line("api.Login", "203.0.113.90", "log", ".*") + line("api.Login", printedKey, "log", ".*")},
		{[]string{"-policy=pay", ""}, exitDone, head + line("pay", `""`, "log+", `locked for \S+, last charged`+age)},
		{[]string{"-policy=pay"}, exitDone, head + line("pay", `""`, "log+", `locked for \S+, last charged`+age)},
		{[]string{"-policy=jobs", "mail"}, exitDone, head + line("jobs", "mail", "concurrency", `1 in flight, 1 in line, last asked for`+age)},
		{[]string{"203.0.113"}, exitProblem, ""},
		{[]string{"*"}, exitProblem, ""},
		{[]string{"-policy", "api.*"}, exitProblem, ""},
		{[]string{"-policy", "api.Search", "-prefix", "other:", "203.0.113.9"}, exitProblem, ""},
	} {
		stdout, stderr := c.run(r.code, append([]string{"inspect"}, r.args...)...)
		if !regexp.MustCompile("^" + r.want + "$").MatchString(stdout) {
			t.Errorf("inspect %q printed\n%s\nwant %s", r.args, stdout, r.want)
		}
		if (stderr == "") != (r.code == exitDone) {
			t.Errorf("inspect %q printed on standard error: %s", r.args, stderr)
		}
	}
}

func TestResetMakesTheNextCallTheFirst(t *testing.T) {
	eachLayout(t, testResetMakesTheNextCallTheFirst)
}

func testResetMakesTheNextCallTheFirst(t *testing.T, hashes bool) {
	c := newCounting(t, hashes)
	if stdout, _ := c.run(exitDone, "reset", "-n", "203.0.113.9"); stdout != "would reset 203.0.113.9 of api.Login "+c.done("log")+"\nwould reset 203.0.113.9 of api.Search "+c.done("fixed")+"\n" {
		t.Errorf("with -n: %s", stdout)
	}
	if got := c.take(loginPolicy, "203.0.113.9"); got.Remaining != 0 {
		t.Errorf("-n removed something: %+v", got)
	}
	if stdout, _ := c.run(exitDone, "reset", "-policy", "api.Login", "203.0.113.9"); stdout != "reset 203.0.113.9 of api.Login "+c.done("log")+"\n" {
		t.Errorf("one key: %s", stdout)
	}
	if got := c.take(loginPolicy, "203.0.113.9"); got.Remaining != 2 {
		t.Errorf("after reset: %+v", got)
	}
	if got := c.take(searchPolicy, "203.0.113.9"); got.Remaining != 98 {
		t.Errorf("another policy after reset: %+v", got)
	}
	stdout, stderr := c.run(exitProblem, "reset", "203.0.113.9", "nobody\r")
	if strings.Count(stdout, "\n") != 2 || stderr != "ratelimitgen-redis: no counter of key \"nobody\\r\" under ratelimit:\n" {
		t.Errorf("a key that is not there: %s%s", stdout, stderr)
	}
	// All that a policy has, also in more than one batch.
	for i := range 2 * batch {
		c.take(searchPolicy, fmt.Sprint("user", i))
	}
	if stdout, _ := c.run(exitDone, "reset", "-policy", "api.Search"); strings.Count(stdout, "reset ") != 2*batch+2 {
		t.Errorf("%d counters of a policy were reset", strings.Count(stdout, "reset "))
	}
	c.run(exitProblem, "inspect", "-policy", "api.Search")
	if got := c.take(loginPolicy, hostile); got.Remaining != 0 {
		t.Errorf("another policy after reset: %+v", got)
	}
}

func TestBlockRefusesAKey(t *testing.T) { eachLayout(t, testBlockRefusesAKey) }

func testBlockRefusesAKey(t *testing.T, hashes bool) {
	c := newCounting(t, hashes)
	if stdout, _ := c.run(exitDone, "block", "-n", "-policy", "api.Login", "-for", "1h", hostile); stdout != "would block \"a b\\x1b[2J\\n}{*\" of api.Login "+c.done("log")+" for 1h0m0s\n" {
		t.Errorf("with -n: %s", stdout)
	}
	if got := c.take(loginPolicy, hostile); !got.Allowed {
		t.Errorf("-n blocked something: %+v", got)
	}
	c.run(exitDone, "block", "-policy", "api.Search", "-for", "30m", "203.0.113.9", "new")
	for _, key := range []string{"203.0.113.9", "new"} {
		if got := c.take(searchPolicy, key); got.Allowed || got.RetryAfter > 30*time.Minute || got.RetryAfter < 29*time.Minute {
			t.Errorf("%s is blocked: %+v", key, got)
		}
	}
	if stdout, _ := c.run(exitDone, "inspect", "-policy", "api.Search", "203.0.113.9", "new"); strings.Count(stdout, "blocked for ") != 2 || !strings.Contains(stdout, ", 1 charged") {
		t.Errorf("inspect: %s", stdout)
	}
	if stdout, _ := c.run(exitDone, "block", "-policy", "api.Search", "-for", "0", "203.0.113.9"); stdout != "unblocked 203.0.113.9 of api.Search "+c.done("fixed")+"\n" {
		t.Errorf("-for 0: %s", stdout)
	}
	if got := c.take(searchPolicy, "203.0.113.9"); !got.Allowed || got.Remaining != 98 {
		t.Errorf("after -for 0: %+v", got)
	}
	c.run(exitProblem, "block", "-policy", "api.Search", "-for", "0", "nobody")

	// A policy that has counted nothing yet.
	fresh := &ratelimit.Policy{ID: "fresh", Algorithm: ratelimit.TokenBucket, Limit: 5, Window: time.Hour}
	if _, stderr := c.run(exitProblem, "block", "-policy", "fresh", "-for", "1h", "k"); !strings.Contains(stderr, "say it by -form (log, ") {
		t.Errorf("a policy without counters: %s", stderr)
	}
	args := []string{"block", "-policy", fresh.ID, "-form", "bucket", "-for", "1h", "k"}
	if hashes {
		if stdout, stderr := c.run(exitTrouble, args...); stdout != "" || !strings.Contains(stderr, "-hashes says that") {
			t.Errorf("where others are in hashes: %s%s", stdout, stderr)
		}
		args = slices.Insert(args, 1, "-hashes")
	}
	if stdout, _ := c.run(exitDone, args...); stdout != "blocked k of fresh "+c.done("bucket")+" for 1h0m0s\n" {
		t.Errorf("with -form: %s", stdout)
	}
	if got := c.take(fresh, "k"); got.Allowed {
		t.Errorf("with -form: %+v", got)
	}
	if stdout, _ := c.run(exitDone, "block", "-policy", fresh.ID, "-form", "bucket", "-for", "0", "k"); stdout != "unblocked k of fresh "+c.done("bucket")+"\n" {
		t.Errorf("with -form and -for 0: %s", stdout)
	}
	if got := c.take(fresh, "k"); !got.Allowed {
		t.Errorf("with -form and -for 0: %+v", got)
	}
}

// Services may be newer than this program.
func TestCountersOfUnknownFormsAreLeftAlone(t *testing.T) {
	eachLayout(t, testCountersOfUnknownFormsAreLeftAlone)
}

func testCountersOfUnknownFormsAreLeftAlone(t *testing.T, hashes bool) {
	c := newCounting(t, hashes)
	names := []string{"ratelimit:{203.0.113.9}api.Login:later", "ratelimit:{203.0.113.90}api.Login:later", "ratelimit:{k}new:a\x1bb"}
	for _, name := range names {
		err := c.client.Set(context.Background(), name, "x", 0).Err()
		if hashes {
			hash, field := rediskey.SplitAt(name, len("ratelimit:{"))
			err = cmp.Or(c.client.Del(context.Background(), name).Err(), c.client.HSet(context.Background(), hash, field, "x", "who knows", "").Err())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	say := "ratelimitgen-redis: left alone %d of form %s, which ratelimitgen-redis " + cli.Version() + " does not know: take the version of the services\n"
	for _, r := range []struct {
		args []string
		want string
	}{
		{[]string{"inspect", "203.0.113.9"}, fmt.Sprintf(say, 1, "later")},
		{[]string{"reset", "203.0.113.9"}, fmt.Sprintf(say, 1, "later")},
		{[]string{"reset", "-policy", "api.Login"}, fmt.Sprintf(say, 2, "later")},
		{[]string{"inspect", "k"}, "ratelimitgen-redis: no counter of key k under ratelimit:\n" + fmt.Sprintf(say, 1, `"a\x1bb"`)},
		{[]string{"block", "-policy", "api.Login", "-for", "1h", "somebody"}, "ratelimitgen-redis: policy api.Login has counted nothing under ratelimit:, so that nobody knows how it counts: say it by -form (" +
			strings.Join(rediskey.Forms(), ", ") + ")\n" + fmt.Sprintf(say, 2, "later")},
	} {
		if _, stderr := c.run(exitProblem, r.args...); stderr != r.want {
			t.Errorf("%q printed %s\nwant %s", r.args, stderr, r.want)
		}
	}
	for _, name := range names {
		left := c.client.Exists(context.Background(), name).Val() > 0
		if hash, field := rediskey.SplitAt(name, len("ratelimit:{")); hashes {
			left = c.client.HExists(context.Background(), hash, field).Val() && c.client.HExists(context.Background(), hash, "who knows").Val()
		}
		if !left {
			t.Errorf("%q is gone", name)
		}
	}
}

func TestSaysWhatIsWrong(t *testing.T) {
	t.Setenv(redisURLEnv, "")
	addr := listenRedis(t, "--requirepass", "s3cret")
	for _, r := range []struct {
		env  string
		args []string
		code int
		want string
	}{
		{"", []string{"insect", "k"}, exitTrouble, `unknown verb "insect"; did you mean "inspect"?`},
		{"", []string{"cube"}, exitTrouble, `unknown verb "cube". There are`},
		{"", []string{"-nonsense", "inspect", "k"}, exitTrouble, "not defined: -nonsense"},
		{"", []string{"-for", "ever", "block", "-policy", "p", "k"}, exitTrouble, `invalid value "ever" for flag -for`},
		{"", []string{"-C", "nowhere", "inspect", "k"}, exitTrouble, "nowhere: no such file"},
		{"", []string{"version", "k"}, exitTrouble, "takes no argument"},
		{"", []string{"inspect"}, exitTrouble, "which KEY?"},
		{"", []string{"block", "-policy", "p", "k"}, exitTrouble, "-for says for how long"},
		{"", []string{"block", "-for", "1h", "k"}, exitTrouble, "-policy says whose limit"},
		{"", []string{"block", "-n", "-for", "100000h", "-policy", "p", "-form", "log", "k"}, exitTrouble, "-for is 100000h0m0s, and 87840h0m0s at most"},
		{"", []string{"block", "-for", "1h", "-policy", "p"}, exitTrouble, "which KEY?"},
		{"", []string{"block", "-for", "1h", "-policy", "p", "-form", "cube", "k"}, exitTrouble, `no form "cube"; there are log, `},
		{"", []string{"inspect", "-n", "k"}, exitTrouble, "not defined: -n"},
		{"", []string{"inspect", "-addr", addr, "-url", "redis://" + addr, "k"}, exitTrouble, "both -addr and -url"},
		{"", []string{"inspect", "-addr", addr, "k"}, exitTrouble, "NOAUTH"},
		{"redis://:wr0ng@" + addr, []string{"inspect", "k"}, exitTrouble, "WRONGPASS"},
		{"redis://:s3cret@" + addr, []string{"inspect", "k"}, exitProblem, "no counter of key k under ratelimit:"},
		{"redis://:s3cret@" + addr, []string{"-prefix", "p:", "inspect", "k"}, exitProblem, "no counter of key k under p:"},
		{"redis://:wr0ng@" + addr, []string{"inspect", "-url", "redis://:s3cret@" + addr, "k"}, exitProblem, "no counter of key k"},
		{"redis://:s3cret@localhost:port", []string{"inspect", "k"}, exitTrouble, "REDIS_URL is not the URL of a server"},
		{"http://:s3cret@localhost", []string{"inspect", "k"}, exitTrouble, "REDIS_URL is not the URL of a server"},
		{"", []string{"inspect", "-addr", "127.0.0.1:1", "k"}, exitTrouble, "connection refused"},
	} {
		t.Setenv(redisURLEnv, r.env)
		var stdout, stderr bytes.Buffer
		code := run(context.Background(), r.args, &stdout, &stderr)
		if code != r.code || !strings.Contains(stderr.String(), r.want) || stdout.Len() > 0 {
			t.Errorf("%q: exit status %d, printed %s%s; want %d, %s", r.args, code, stdout.String(), stderr.String(), r.code, r.want)
		}
		if strings.Contains(stderr.String(), "s3cret") {
			t.Errorf("%q tells the password: %s", r.args, stderr.String())
		}
	}
	for _, args := range [][]string{{"-h"}, {"help"}, {"--help", "inspect"}} {
		var stdout, stderr bytes.Buffer
		if code := run(context.Background(), args, &stdout, &stderr); code != exitDone || !strings.Contains(stdout.String(), "redis inspect") {
			t.Errorf("%q: exit status %d, %s%s", args, code, stdout.String(), stderr.String())
		}
	}
}

func TestOnOneNodeOfACluster(t *testing.T) { eachLayout(t, testOnOneNodeOfACluster) }

func testOnOneNodeOfACluster(t *testing.T, hashes bool) {
	addr := listenRedis(t, "--cluster-enabled", "yes")
	client := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { client.Close() })
	if err := client.ClusterAddSlotsRange(context.Background(), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		if info, err := client.ClusterInfo(context.Background()).Result(); err != nil || time.Now().After(deadline) {
			t.Fatalf("the cluster is not up: %v", err)
		} else if strings.Contains(info, "cluster_state:ok") {
			break
		}
	}
	c := &counting{t: t, addr: addr, client: client, store: storeOf(client, hashes), hashes: hashes}
	c.take(loginPolicy, "k")
	for _, args := range [][]string{{"inspect", "-cluster", "k"}, {"inspect", "-cluster", "-policy", "api.Login"}, {"reset", "-cluster", "-policy", "api.Login", "k"}} {
		if stdout, _ := c.run(exitDone, args...); !strings.Contains(stdout, "api.Login") {
			t.Errorf("%q: %s", args, stdout)
		}
	}
	// The node alone is not all there is, and does not say so.
	c.take(loginPolicy, "k")
	if stdout, _ := c.run(exitDone, "block", "-cluster", "-for", "1h", "-policy", "api.Login", "other"); stdout != "blocked other of api.Login "+c.done("log")+" for 1h0m0s\n" || c.take(loginPolicy, "other").Allowed {
		t.Errorf("block of a key without counters: %s", stdout)
	}
	if hashes {
		if _, stderr := c.run(exitTrouble, "block", "-cluster", "-for", "1h", "-policy", "new", "-form", "log", "other"); !strings.Contains(stderr, "-hashes says that") {
			t.Errorf("block of a policy without counters: %s", stderr)
		}
	}
	for _, args := range [][]string{{"inspect", "k"}, {"reset", "-policy", "api.Login"}, {"reset", "-n", "-policy", "api.Login"}, {"block", "-for", "1h", "-policy", "api.Login", "new"}} {
		if stdout, stderr := c.run(exitTrouble, args...); !strings.Contains(stderr, "with -cluster") || stdout != "" {
			t.Errorf("%q without -cluster: %s%s", args, stdout, stderr)
		}
	}
	tagged := storeOf(client, hashes, redisstore.WithPrefix("{limits}:"))
	if err := tagged.Take(context.Background(), []ratelimit.Op{{Policy: loginPolicy, Key: "k", Cost: 1}}); err != nil {
		t.Fatal(err)
	}
	if stdout, _ := c.run(exitDone, "inspect", "-prefix", "{limits}:", "k"); !strings.Contains(stdout, "api.Login") {
		t.Errorf("where the prefix has all on one node: %s", stdout)
	}
}

// What is not done must not look like what is not there.
func TestARightThatIsMissingIsTrouble(t *testing.T) { eachLayout(t, testARightThatIsMissingIsTrouble) }

func testARightThatIsMissingIsTrouble(t *testing.T, hashes bool) {
	c := newCounting(t, hashes)
	rights := []string{"scan", "dbsize", "exists", "pttl", "time", "get"}
	if hashes {
		rights = []string{"scan", "dbsize", "exists", "pttl", "time", "hexists", "hget", "hscan"}
	}
	inspect := func(missing string, args ...string) (code int, stdout, stderr string) {
		t.Helper()
		rule := []any{"acl", "setuser", "without-" + missing, "on", ">p", "~ratelimit:*"}
		for _, right := range rights {
			if right != missing {
				rule = append(rule, "+"+right)
			}
		}
		if err := c.client.Do(context.Background(), rule...).Err(); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		code = run(context.Background(), append([]string{"inspect", "-url", "redis://without-" + missing + ":p@" + c.addr}, args...), &out, &errs)
		return code, out.String(), errs.String()
	}
	one, scan := []string{"-policy", "api.Login", "203.0.113.9"}, []string{"203.0.113.9"}
	for _, args := range [][]string{one, scan} {
		if code, stdout, stderr := inspect("", args...); code != exitDone || !strings.Contains(stdout, "2 charged") {
			t.Errorf("with all rights: exit status %d, printed %s%s", code, stdout, stderr)
		}
	}
	for missing, ways := range map[string][][]string{
		"get": {one, scan}, "hget": {one, scan}, "pttl": {one, scan}, "exists": {one, scan}, "scan": {scan}, "hscan": {scan}, "hexists": {one},
	} {
		if !slices.Contains(rights, missing) {
			continue
		}
		for _, args := range ways {
			if code, stdout, stderr := inspect(missing, args...); code != exitTrouble || !strings.Contains(stderr, "NOPERM") || stdout != "" {
				t.Errorf("without %s: exit status %d, printed %s%s", missing, code, stdout, stderr)
			}
		}
	}
	// Without the flag, a block might be in the wrong place.
	var stdout, stderr bytes.Buffer
	args := []string{"block", "-url", "redis://without-scan:p@" + c.addr, "-policy", "new", "-form", "log", "-for", "1h", "new"}
	if code := run(context.Background(), args, &stdout, &stderr); code != exitTrouble || !strings.Contains(stderr.String(), "'scan'") || !strings.Contains(stderr.String(), "-hashes=false") || stdout.Len() > 0 {
		t.Errorf("block -form without scan: exit status %d, printed %s%s", code, stdout.String(), stderr.String())
	}
}

func TestWhatIsNoCounter(t *testing.T) { eachLayout(t, testWhatIsNoCounter) }

func testWhatIsNoCounter(t *testing.T, hashes bool) {
	c := newCounting(t, hashes)
	ctx := context.Background()
	for _, err := range []error{
		c.client.LPush(ctx, "ratelimit:{list}api.Login:log", "x").Err(),
		c.client.HSet(ctx, "ratelimit:{list}api.Search:fixed", "api.Login:log", "x").Err(),
		c.client.Set(ctx, "ratelimit:{list}", "x", 0).Err(),
		c.client.LPush(ctx, "ratelimit:{more}", "x").Err(),
		c.client.HSet(ctx, "ratelimit:{%41}", "api.Login:log", "x").Err(), // is not how A is written
		c.client.HSet(ctx, "ratelimit:{hash}", "", "x", "}api.Login:log", "x", "api.Login:log", "\x1b[2J").Err(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	stdout, _ := c.run(exitDone, "inspect", "list", "203.0.113.9")
	if strings.Count(stdout, "not a counter: ") != 2 || strings.Count(stdout, "\n") != 5 {
		t.Errorf("no strings, and no hash: %s", stdout)
	}
	for _, args := range [][]string{{"more"}, {"A"}, {"-policy", "api.Login", "more"}, {"-policy", "api.Login", "A"}} {
		if stdout, stderr := c.run(exitProblem, append([]string{"inspect"}, args...)...); stdout != "" || !strings.Contains(stderr, "no counter") {
			t.Errorf("inspect %q printed %s%s", args, stdout, stderr)
		}
	}
	for _, args := range [][]string{{"hash"}, {"-policy", "api.Login", "hash"}} {
		want := `^POLICY.*\napi\.Login +hash +log \(hash\) +never +4 bytes that ratelimitgen-redis cannot read\n$`
		if stdout, _ := c.run(exitDone, append([]string{"inspect"}, args...)...); !regexp.MustCompile(want).MatchString(stdout) {
			t.Errorf("inspect %q printed %s", args, stdout)
		}
	}
	if stdout, _ := c.run(exitDone, "reset", "-policy", "api.Login"); strings.Count(stdout, "\n") != 5 {
		t.Errorf("reset: %s", stdout)
	}
	if n := c.client.Exists(ctx, "ratelimit:{list}", "ratelimit:{more}", "ratelimit:{%41}", "ratelimit:{hash}").Val(); n != 4 {
		t.Errorf("%d of 4 keys of others are left", n)
	}
}

// A deployment that goes over to hashes has both for a while.
func TestBothLayoutsOfAKey(t *testing.T) {
	t.Parallel()
	c := newCounting(t, false)
	both := &counting{t: t, addr: c.addr, client: c.client, store: storeOf(c.client, true), hashes: true}
	ask := func() string {
		t.Helper()
		stdout, _ := c.run(exitDone, "inspect", "203.0.113.9")
		return regexp.MustCompile(`(?m)^(\S+) +\S+ +(\S+( \(hash\))?)  +\S+ +(.*?)(, last .*|, window .*)?$`).ReplaceAllString(stdout, "$1 $2: $4")
	}
	both.take(loginPolicy, "203.0.113.9")
	if got, want := ask(), "POLICY FORM: IN  STATE\napi.Login log: 2 charged\napi.Login log (hash): 1 charged\napi.Search fixed: 1 charged\n"; got != want {
		t.Errorf("inspect printed\n%s, want\n%s", got, want)
	}
	if stdout, _ := c.run(exitDone, "block", "-policy", "api.Login", "-for", "1h", "203.0.113.9"); stdout != "blocked 203.0.113.9 of api.Login (log) for 1h0m0s\nblocked 203.0.113.9 of api.Login (log, hash) for 1h0m0s\n" {
		t.Errorf("block: %s", stdout)
	}
	// Other keys tell that the policy has both.
	c.run(exitDone, "block", "-policy", "api.Login", "-for", "1h", "new")
	for _, key := range []string{"203.0.113.9", "new"} {
		if c.take(loginPolicy, key).Allowed || both.take(loginPolicy, key).Allowed {
			t.Errorf("%q is not blocked in both", key)
		}
	}
	if stdout, _ := c.run(exitDone, "block", "-policy", "api.Login", "-for", "0", "new"); strings.Count(stdout, "unblocked new of ") != 2 {
		t.Errorf("block -for 0: %s", stdout)
	}
	if !c.take(loginPolicy, "new").Allowed || !both.take(loginPolicy, "new").Allowed {
		t.Error("new is blocked")
	}
	if stdout, _ := c.run(exitDone, "reset", "-policy", "api.Login", "203.0.113.9"); stdout != "reset 203.0.113.9 of api.Login (log)\nreset 203.0.113.9 of api.Login (log, hash)\n" {
		t.Errorf("reset: %s", stdout)
	}
	if a, b := c.take(loginPolicy, "203.0.113.9"), both.take(loginPolicy, "203.0.113.9"); a.Remaining != 2 || b.Remaining != 2 {
		t.Errorf("after reset: %+v, %+v", a, b)
	}

	// The flag decides where only strings are.
	for _, r := range []struct {
		args []string
		want string
	}{
		{[]string{"-hashes", "203.0.113.90"}, "blocked 203.0.113.90 of api.Search (fixed, hash) for 1h0m0s\n"},
		{[]string{"-hashes", "-n", "newer"}, "would block newer of api.Search (fixed, hash) for 1h0m0s\n"},
		{[]string{"-hashes=false", "newer"}, "blocked newer of api.Search (fixed) for 1h0m0s\n"},
		{[]string{"-hashes", "-form", "bucket", "203.0.113.90"}, "blocked 203.0.113.90 of api.Search (bucket, hash) for 1h0m0s\n"},
		{[]string{"-hashes=false", "-form", "bucket", "newer"}, "blocked newer of api.Search (bucket) for 1h0m0s\n"},
		{[]string{"-form", "fixed", "203.0.113.9"}, "blocked 203.0.113.9 of api.Search (fixed) for 1h0m0s\n"},
	} {
		if stdout, _ := c.run(exitDone, append([]string{"block", "-policy", "api.Search", "-for", "1h"}, r.args...)...); stdout != r.want {
			t.Errorf("block %q printed %swant %s", r.args, stdout, r.want)
		}
	}
	if !c.take(searchPolicy, "203.0.113.90").Allowed || both.take(searchPolicy, "203.0.113.90").Allowed {
		t.Error("the flag did not decide")
	}
}

// Between the steps of a scan and what is asked then.
func TestHashesThatExpireMeanwhile(t *testing.T) {
	t.Parallel()
	c := newCounting(t, true)
	o := operator{ctx: context.Background(), client: c.client, prefix: "ratelimit:"}
	known, unknown, err := o.counters(o.ctx, nil, []string{"ratelimit:{gone}", "ratelimit:{203.0.113.9}"})
	if len(known) != 2 || len(unknown) != 0 || err != nil {
		t.Errorf("%+v, %+v, %v", known, unknown, err)
	}
}

// A hash that takes several steps of HSCAN.
func TestAKeyOfManyPolicies(t *testing.T) {
	t.Parallel()
	c := newCounting(t, true)
	const n = 700
	for i := range n {
		c.take(&ratelimit.Policy{ID: fmt.Sprintf("p%03d", i), Limit: 3, Window: time.Hour}, "many")
	}
	stdout, _ := c.run(exitDone, "inspect", "many")
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if len(lines) != n+1 || !slices.IsSorted(lines[1:]) {
		t.Errorf("%d lines: %s", len(lines), stdout)
	}
	if stdout, _ := c.run(exitDone, "inspect", "-policy", "p070"); strings.Count(stdout, "\n") != 2 {
		t.Errorf("one policy: %s", stdout)
	}
	c.run(exitDone, "reset", "many")
	if c.client.Exists(context.Background(), "ratelimit:{many}").Val() != 0 {
		t.Error("there is a hash after reset")
	}
}

// A flag behind a KEY would be one KEY more, and -n have no effect.
func TestFlagsBehindAKeyAreTrouble(t *testing.T) { eachLayout(t, testFlagsBehindAKeyAreTrouble) }

func testFlagsBehindAKeyAreTrouble(t *testing.T, hashes bool) {
	c := newCounting(t, hashes)
	for _, args := range [][]string{
		{"reset", "203.0.113.9", "-n"},
		{"reset", "203.0.113.9", "--dry-run"},
		{"reset", "203.0.113.9", "-policy", "api.Search"},
		{"reset", "203.0.113.9", "--", "-n"},
		{"inspect", "203.0.113.9", "-policy=api.Search"},
		{"block", "-policy", "api.Login", "-for", "1h", "203.0.113.9", "-n"},
	} {
		if stdout, stderr := c.run(exitTrouble, args...); stdout != "" || !strings.Contains(stderr, "Flags come before the first KEY") {
			t.Errorf("%q printed %s%s", args, stdout, stderr)
		}
	}
	if got := c.take(loginPolicy, "203.0.113.9"); !got.Allowed || got.Remaining != 0 {
		t.Errorf("something was done: %+v", got)
	}
	c.take(loginPolicy, "-n")
	if stdout, _ := c.run(exitDone, "reset", "--", "203.0.113.9", "-n"); stdout != "reset -n of api.Login "+c.done("log")+"\nreset 203.0.113.9 of api.Login "+c.done("log")+"\nreset 203.0.113.9 of api.Search "+c.done("fixed")+"\n" {
		t.Errorf("behind --: %s", stdout)
	}
	c.run(exitProblem, "inspect", "-")
}

func TestScanShowsItsProgressAtATerminal(t *testing.T) {
	eachLayout(t, testScanShowsItsProgressAtATerminal)
}

func testScanShowsItsProgressAtATerminal(t *testing.T, hashes bool) {
	c := newCounting(t, hashes)
	var line string
	o := operator{ctx: context.Background(), client: c.client, prefix: "ratelimit:", say: func(text string) { line = text }}
	if _, err := o.scan(nil); err != nil {
		t.Fatal(err)
	}
	want := "scanned 7 of 7 names, 7 counters"
	if hashes {
		want = "scanned 4 of 4 names, 7 counters"
	}
	if line != want {
		t.Errorf("the line says %q", line)
	}
}
