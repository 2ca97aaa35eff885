package policyfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/policyfile"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// newLimiter returns a limiter with policies of many kinds.
func newLimiter(t *testing.T) *ratelimit.Limiter {
	t.Helper()
	l := ratelimit.New()
	addGate(t, l, policies()...)
	return l
}

func policies() []ratelimit.Policy {
	return []ratelimit.Policy{
		{ID: "login", Limit: 5, Window: time.Minute, Key: "ip"},
		{ID: "example.com/pay.Service.Order", Algorithm: ratelimit.TokenBucket, Limit: 10, Window: time.Second, Key: "[req.Tenant, req.User]", Message: "slow down", Waits: true},
		{ID: "uploads", Algorithm: ratelimit.Concurrency, Limit: 3, Key: "user", Waits: true},
		{ID: "reports", Algorithm: ratelimit.TimeQuota, Limit: 1_000_000, Window: time.Hour, Key: "user"},
		{ID: "all", Algorithm: ratelimit.FixedWindow, Limit: 1000, Window: time.Second, Global: true, Key: "global"},
		{ID: "plan", Algorithm: ratelimit.SlidingWindow, Dynamic: true, Window: time.Minute, Key: "user"},
		{ID: "queue", Algorithm: ratelimit.LeakyBucket, Limit: 10, Window: time.Second, Burst: 20, Key: "user"},
	}
}

func addGate(t *testing.T, l *ratelimit.Limiter, policies ...ratelimit.Policy) *ratelimit.Gate {
	t.Helper()
	gate, err := l.Gate(&ratelimit.Spec{Method: "M", Policies: policies})
	if err != nil {
		t.Fatal(err)
	}
	return gate
}

func parse(t *testing.T, text string) *policyfile.File {
	t.Helper()
	f, err := policyfile.Parse("limits.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	return f
}

// policy returns a policy as it is in force.
func policy(t *testing.T, l *ratelimit.Limiter, id string) ratelimit.Policy {
	t.Helper()
	for _, p := range l.Policies() {
		if p.ID == id {
			return p
		}
	}
	t.Fatalf("no policy %q", id)
	return ratelimit.Policy{}
}

// problems returns what is wrong, a problem a line.
func problems(t *testing.T, err error) []string {
	t.Helper()
	var all *policyfile.Error
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &all) || len(all.Problems) == 0:
		t.Fatalf("%T is no *Error: %v", err, err)
	}
	var lines []string
	for _, p := range all.Problems {
		lines = append(lines, p.Error())
	}
	return lines
}

// wantProblems checks that each problem has the text that is wanted, in order.
func wantProblems(t *testing.T, err error, want ...string) {
	t.Helper()
	got := problems(t, err)
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("missing: %s", want[i])
		case i >= len(want):
			t.Errorf("too many: %s", got[i])
		case !strings.Contains(got[i], want[i]):
			t.Errorf("got  %s\nwant …%s…", got[i], want[i])
		}
	}
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// replace puts a file in place of another, as deployments do.
func replace(t *testing.T, path, text string) {
	t.Helper()
	next := write(t, filepath.Dir(path), filepath.Base(path)+".next", text)
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
}
