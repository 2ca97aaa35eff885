package policyfile_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/policyfile"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"pgregory.net/rapid"
)

func TestApplyChangesWhatTheFileSaysAndTakesItBack(t *testing.T) {
	t.Parallel()
	l := newLimiter(t)
	declared := l.Policies()
	b := policyfile.Bind(l)
	apply := func(text string) {
		t.Helper()
		if err := b.Apply(parse(t, text)); err != nil {
			t.Fatal(err)
		}
	}
	apply(`
defaults: {mode: shadow, on-error: allow}
limits:
  login: {max: 100, window: 1d, mode: enforce, on-empty: skip, message: later, status: 503}
  example.com/pay.Service.Order: {max: 7, burst: 70}
  uploads: {lease: 5m, max-wait: 2s, max-queue: 9}
  reports: {max: 90s}
  all: {max: unlimited}
  plan: {max: blocked}
`)
	p := policy(t, l, "login")
	if p.Limit != 100 || p.Window != 24*time.Hour || p.Mode != ratelimit.Enforce || p.OnEmpty != ratelimit.SkipEmpty || p.Message != "later" || p.Status != 503 || p.OnError != ratelimit.AllowOnError {
		t.Errorf("login: %+v", p)
	}
	if p := policy(t, l, "example.com/pay.Service.Order"); p.Limit != 7 || p.Burst != 70 || p.Mode != ratelimit.Shadow {
		t.Errorf("order: %+v", p)
	}
	if p := policy(t, l, "uploads"); p.Lease != 5*time.Minute || p.MaxWait != 2*time.Second || p.MaxQueue != 9 {
		t.Errorf("uploads: %+v", p)
	}
	if p := policy(t, l, "reports"); p.Limit != 90_000_000 {
		t.Errorf("reports: %+v", p)
	}
	if p := policy(t, l, "all"); p.Limit != ratelimit.Unlimited {
		t.Errorf("all: %+v", p)
	}
	if p := policy(t, l, "plan"); p.Limit != ratelimit.Blocked {
		t.Errorf("plan: %+v", p)
	}
	apply("limits: {login: {max: 6}}")
	if p := policy(t, l, "login"); p.Limit != 6 || p.Window != time.Minute || p.Message != "" {
		t.Errorf("login after another file: %+v", p)
	}
	apply("defaults: {mode: enforce}")
	if got := l.Policies(); !reflect.DeepEqual(got, declared) {
		t.Errorf("what no file says:\n%+v, want\n%+v", got, declared)
	}
}

func TestAFileThatIsWrongForTheLimiterChangesNothing(t *testing.T) {
	t.Parallel()
	l := newLimiter(t)
	declared := l.Policies()
	err := parse(t, `limits:
  login: {max: 1}
  logn: {max: 1}
  all: {burst: 5}
  reports: {max: 5}
  uploads: {window: 1m}
  plan: {max: 5}
  queue:
    keys: [{key: acme, times: 2}]
  example.com/pay.Service.Order:
    keys: [{key: acme, max: 2}]
`).Apply(l)
	text := fmt.Sprint(problems(t, err))
	for _, want := range []string{
		`limits.yaml:3:3: no limit has the name "logn"; did you mean "login"?`,
		"limits.yaml:4:", "burst is for token-bucket",
		"limits.yaml:5:18:", "a time-quota counts time",
		"limits.yaml:6:", "concurrency has no window",
		"limits.yaml:7:", "each call of this limit brings its own",
		"limits.yaml:9:", "has one pace for all",
		"limits.yaml:11:", "of 2 elements",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no problem says %s:\n%s", want, text)
		}
	}
	if got := l.Policies(); !reflect.DeepEqual(got, declared) {
		t.Errorf("a file with problems was applied in part: %+v", got)
	}
}

// plain is a store that knows no limits of single keys.
type plain struct{}

func (plain) Take(_ context.Context, ops []ratelimit.Op) error {
	for i := range ops {
		ops[i].Outcome = ratelimit.Outcome{Allowed: true}
	}
	return nil
}

func (plain) Reset(context.Context, *ratelimit.Policy, string) error { return nil }

func TestWhatOnlyTheLimiterKnowsToBeWrongIsTakenBack(t *testing.T) {
	t.Parallel()
	l := ratelimit.New(ratelimit.WithStore("plain", plain{}))
	addGate(t, l, ratelimit.Policy{ID: "a", Limit: 5, Window: time.Minute, Key: "user"})
	addGate(t, l, ratelimit.Policy{ID: "b", Limit: 5, Window: time.Minute, Key: "user", Store: "plain"})
	err := parse(t, "limits:\n  a: {max: 6}\n  b:\n    keys: [{key: acme, max: 7}]\n").Apply(l)
	wantProblems(t, err, "limits.yaml:3:3: ")
	if p := policy(t, l, "a"); p.Limit != 5 {
		t.Errorf("a was left changed: %+v", p)
	}
	if err := parse(t, "limits:\n  b:\n    keys: [{key: acme, max: blocked}]\n").Apply(l); err != nil {
		t.Errorf("switching a key in a store: %v", err)
	}
}

func TestBoundsOfWaitsAreForLimitsThatWait(t *testing.T) {
	t.Parallel()
	l := newLimiter(t)
	err := parse(t, "limits:\n  login: {max-wait: 2s}\n  plan: {max-queue: 3}\n  uploads: {max-wait: 2s}\n").Apply(l)
	wantProblems(t, err,
		"limits.yaml:2:21: max-wait: calls of this limit do not wait",
		"limits.yaml:3:21: max-queue: calls of this limit do not wait")
	if p := policy(t, l, "uploads"); p.MaxWait != 0 {
		t.Errorf("uploads was left changed: %+v", p)
	}
}

func TestExceptionsOfKeysAreInForce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "blocked.txt", "# bad\n198.51.100.0/24\n2001:db8:bad::/48\n")
	path := write(t, dir, "limits.yaml", `
limits:
  login:
    max: 2
    keys:
      - {cidr: 198.51.100.7, max: unlimited}
      - {cidr-file: blocked.txt, max: blocked}
      - {cidr: [192.0.2.0/24, "2001:db8::/32"], times: 2}
  order:
    keys:
      - {key: [acme, 12], max: 4}
      - {key: ["a|b", c], max: blocked}
`)
	l := ratelimit.New()
	login := addGate(t, l, ratelimit.Policy{ID: "login", Limit: 5, Window: time.Hour, Key: "ip"})
	order := addGate(t, l, ratelimit.Policy{ID: "order", Algorithm: ratelimit.TokenBucket, Limit: 1, Window: time.Hour, Key: "[req.Tenant, req.ID]"})
	f, err := policyfile.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Apply(l); err != nil {
		t.Fatal(err)
	}
	admitted := func(g *ratelimit.Gate, key []byte) (n int) {
		for range 10 {
			if g.Allow(context.Background(), key) == nil {
				n++
			}
		}
		return n
	}
	for addr, want := range map[string]int{"203.0.113.1": 2, "192.0.2.200": 4, "2001:db8::1": 4, "198.51.100.7": 10, "198.51.100.8": 0, "2001:db8:bad:1::2": 0} {
		key := ratelimit.AppendIP([]byte{}, &ratelimit.Request{Addr: netip.MustParseAddr(addr)})
		if n := admitted(login, key); n != want {
			t.Errorf("%s: %d admitted, want %d", addr, n, want)
		}
	}
	for want, key := range map[int][]byte{
		4: ratelimit.AppendInt(ratelimit.AppendText([]byte{}, "acme"), 12),
		1: ratelimit.AppendInt(ratelimit.AppendText([]byte{}, "acme"), 13),
		0: ratelimit.AppendText(ratelimit.AppendText([]byte{}, "a|b"), "c"),
	} {
		if n := admitted(order, key); n != want {
			t.Errorf("%s: %d admitted, want %d", key, n, want)
		}
	}
}

// TestExceptionsAreForKeysAsTheGeneratorWritesThem has keys of which the generator escapes
// the text or not, and tells an address from a user who is called like it.
func TestExceptionsAreForKeysAsTheGeneratorWritesThem(t *testing.T) {
	t.Parallel()
	addr := func(s string) []byte {
		return ratelimit.AppendIP([]byte{}, &ratelimit.Request{Addr: netip.MustParseAddr(s)})
	}
	tagged := func(s string) []byte {
		return ratelimit.AppendTaggedIP([]byte{}, &ratelimit.Request{Addr: netip.MustParseAddr(s)})
	}
	user := func(s string) []byte { return ratelimit.AppendText([]byte{}, s) }
	text := func(s string) []byte { return []byte(s) }
	for _, c := range []struct {
		of, keys  string
		is, isNot [][]byte
	}{
		{"user ?? ip", "cidr: 10.0.0.0/8", [][]byte{tagged("10.1.2.3")}, [][]byte{user("10.1.2.3"), tagged("11.1.2.3"), user("ann")}},
		{"user ?? ip", `cidr: "2001:db8::/32"`, [][]byte{tagged("2001:db8::1")}, [][]byte{user("2001:db8::/64"), user(`\2001:db8::/64`)}},
		{"(user ?? role) ?? (ip)", "cidr: 10.0.0.0/8", [][]byte{tagged("10.1.2.3")}, [][]byte{user("10.1.2.3")}},
		{`role == "a" ? user ?? ip/24/48 : ip`, "cidr: 10.0.0.0/8", [][]byte{tagged("10.1.2.3")}, [][]byte{user("10.1.2.3")}},
		{`let x = req.Name; x + "?" ?: request.ip`, "cidr: 10.0.0.0/8", [][]byte{tagged("10.1.2.3")}, [][]byte{user("10.1.2.3")}},
		{"req.Big ? ip/8/16 : ip", "cidr: 10.0.0.0/8", [][]byte{addr("10.1.2.3")}, [][]byte{tagged("10.1.2.3")}},
		{"[ip / 24 / 56]", "cidr: 10.0.0.0/8", [][]byte{addr("10.1.2.3")}, [][]byte{tagged("10.1.2.3")}},
		{"#ip", `cidr: "2001:db8::1"`, [][]byte{text("2001:db8::1")}, [][]byte{text("2001:db8::2")}},
		{"#ip", `key: "2001:db8::1"`, [][]byte{text("2001:db8::1")}, [][]byte{text("2001:db8::2")}},
		{"req.Name", `key: 'corp\ann'`, [][]byte{text(`corp\ann`)}, [][]byte{text(`corp\\ann`)}},
		{"[lower(req.Name)]", `key: ['a|b']`, [][]byte{text("a|b")}, [][]byte{text(`a\|b`)}},
		{`req.Names["x?y"]?.Name ?? "a:b"`, `key: 'a|b'`, [][]byte{text("a|b")}, [][]byte{text(`a\|b`)}},
		{"user == nil ? role : req.Name", `key: 'a|b'`, [][]byte{text("a|b")}, [][]byte{text(`a\|b`)}},
		{"user", `key: 'corp\ann'`, [][]byte{user(`corp\ann`)}, [][]byte{text(`corp\ann`)}},
		{"user ?? req.Name", `key: 'corp\ann'`, [][]byte{user(`corp\ann`)}, [][]byte{text(`corp\ann`)}},
		{"user ?? ip", `key: 'corp\ann'`, [][]byte{user(`corp\ann`)}, [][]byte{text(`corp\ann`)}},
		{`let x = req.Name; [x ?? "", ip ?? user]`, "key: ['a|b', c]", [][]byte{append(user("a|b"), "|c"...)}, [][]byte{text("a|b|c")}},
		{"", `key: 'a|b'`, [][]byte{user("a|b")}, [][]byte{text("a|b")}},
		{"", "cidr: 10.0.0.0/8", [][]byte{addr("10.1.2.3")}, [][]byte{text("11.1.2.3")}},
	} {
		l := ratelimit.New()
		gate := addGate(t, l, ratelimit.Policy{ID: "login", Limit: 5, Window: time.Hour, Key: c.of})
		f, err := policyfile.Parse("limits.yaml", []byte("limits:\n  login:\n    keys:\n      - {"+c.keys+", max: 7}\n"))
		if err == nil {
			err = f.Apply(l)
		}
		if err != nil {
			t.Errorf("%s of %s: %v", c.keys, c.of, err)
			continue
		}
		limitOf := func(key []byte) int64 {
			d, err := gate.Peek(t.Context(), ratelimit.Charge{Key: key, Cost: 1})
			if err != nil {
				t.Fatal(err)
			}
			return d.Limit
		}
		for _, key := range c.is {
			if n := limitOf(key); n != 7 {
				t.Errorf("%s of %s: %s has the limit %d, want that of the exception, 7", c.keys, c.of, key, n)
			}
		}
		for _, key := range c.isNot {
			if n := limitOf(key); n != 5 {
				t.Errorf("%s of %s: %s has the limit %d, want that of others, 5", c.keys, c.of, key, n)
			}
		}
	}
}

// TestExceptionsOfKeysThatAreNotKnownAreRefused has policies that do not tell how their keys
// are written, so that an exception might be for nobody, or for somebody else.
func TestExceptionsOfKeysThatAreNotKnownAreRefused(t *testing.T) {
	t.Parallel()
	policy := func(key, form string) ratelimit.Policy {
		return ratelimit.Policy{ID: "login", Limit: 5, Window: time.Hour, Key: key, KeyForm: form}
	}
	for _, c := range []struct {
		policies []ratelimit.Policy
		keys     string
		want     string
	}{
		{[]ratelimit.Policy{policy("user ?? ip // c ? a : b", "")}, "cidr: 10.0.0.0/8", "it cannot be told how the keys"},
		{[]ratelimit.Policy{policy("user /* a, b */", "")}, "key: ann", "it cannot be told how the keys"},
		{[]ratelimit.Policy{policy("[a,]", "")}, "key: ann", "it cannot be told how the keys"},
		{[]ratelimit.Policy{policy("[", "")}, "key: [ann, b]", "of 1 elements, and this one has 2"},
		{[]ratelimit.Policy{policy("x", "text|place")}, "key: ann", `it is not known here how the keys of this limit are written, "text|place"`},
		{[]ratelimit.Policy{policy("user", "user"), policy("user", "")}, "key: ann", "some methods"},
		{[]ratelimit.Policy{policy("user", "user"), policy("[a, b]", "text text")}, "key: ann", "different numbers of elements"},
		{[]ratelimit.Policy{policy("user ?? ip", "user|ip/32/64"), policy("a", "text")}, "cidr: 10.0.0.0/8", "in different ways"},
		{[]ratelimit.Policy{policy("user", "user"), policy("a", "text")}, `key: 'a|b'`, "in different ways"},
		{[]ratelimit.Policy{policy(`let x = a["b,c"]; [x, ip]`, "")}, "cidr: 10.0.0.0/8", "networks are for keys that are addresses"},
		{[]ratelimit.Policy{policy(`[a["b,c"], ip]`, "")}, "key: ann", "of 2 elements, and this one has 1"},
		{[]ratelimit.Policy{policy("request.user", "")}, "cidr: 10.0.0.0/8", "networks are for keys that are addresses"},
	} {
		l := ratelimit.New()
		for _, p := range c.policies {
			addGate(t, l, p)
		}
		err := parse(t, "limits:\n  login:\n    keys:\n      - {"+c.keys+", max: 7}\n").Apply(l)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %s: %v, want an error that says %s", c.keys, c.policies[0].Key, err, c.want)
		}
	}
}

// TestExceptionsOfMethodsWhoseKeysAreOfSeveralTypesAreForOneOfThem has methods that share a
// limit, of which one counts by an integer and another by something else.
func TestExceptionsOfMethodsWhoseKeysAreOfSeveralTypesAreForOneOfThem(t *testing.T) {
	t.Parallel()
	hash := string(ratelimit.AppendHash([]byte{}, "secret"))
	for _, c := range []struct {
		forms     []string
		is, isNot []string
	}{
		{[]string{"int", "bool"}, []string{"12", "-12", "true", "false"}, []string{"ann", "012", "True"}},
		{[]string{"hash", "int"}, []string{hash, "12"}, []string{"ann", "012", "true", hash[1:]}},
		{[]string{"bool", "hash"}, []string{hash, "true"}, []string{"ann", "12"}},
		{[]string{"int", "text"}, []string{"12", "012", "ann"}, nil},
	} {
		for _, key := range slices.Concat(c.is, c.isNot) {
			l := ratelimit.New()
			var gate *ratelimit.Gate
			for _, form := range c.forms {
				gate = addGate(t, l, ratelimit.Policy{ID: "login", Limit: 5, Window: time.Hour, Key: "a", KeyForm: form})
			}
			err := parse(t, "limits:\n  login:\n    keys:\n      - {key: '"+key+"', max: 7}\n").Apply(l)
			if want := slices.Contains(c.is, key); (err == nil) != want {
				t.Errorf("%s where keys are %q: %v, want it to be applied: %t", key, c.forms, err, want)
				continue
			}
			if err != nil {
				continue
			}
			d, err := gate.Peek(t.Context(), ratelimit.Charge{Key: []byte(key), Cost: 1})
			if err != nil || d.Limit != 7 {
				t.Errorf("%s where keys are %q: %+v, %v, want the limit of the exception, 7", key, c.forms, d, err)
			}
		}
	}
}

// TestAMethodThatWritesKeysInAnotherWayIsHeeded makes a gate of a limit after its exceptions
// were applied, whose keys are not for those.
func TestAMethodThatWritesKeysInAnotherWayIsHeeded(t *testing.T) {
	t.Parallel()
	l := ratelimit.New()
	p := ratelimit.Policy{ID: "login", Limit: 5, Window: time.Hour, Key: "user ?? ip", KeyForm: "user|ip/32/64"}
	addGate(t, l, p)
	b := policyfile.Bind(l)
	if err := b.Apply(parse(t, "limits:\n  login:\n    max: 3\n    keys:\n      - {cidr: 10.0.0.0/8, max: 7}\n")); err != nil {
		t.Fatal(err)
	}
	if err := b.Check(); err != nil {
		t.Fatal(err)
	}
	p.Key, p.KeyForm = "req.Addr", "text"
	addGate(t, l, p)
	if form := policy(t, l, "login").KeyForm; form != "user|ip/32/64;text" {
		t.Errorf("KeyForm is %q", form)
	}
	for range 2 {
		wantProblems(t, b.Check(), "limits.yaml:4:5: keys: methods that share this limit write the caller's address in different ways")
	}
	if err := b.Apply(parse(t, "defaults: {mode: enforce}")); err != nil {
		t.Fatal(err)
	}
	if n := policy(t, l, "login").Limit; n != 5 {
		t.Errorf("the limit is %d, want that of the directive again", n)
	}
	if err := b.Check(); err != nil {
		t.Fatal(err)
	}
}

func TestTheEnvironmentTakesPrecedence(t *testing.T) {
	t.Parallel()
	l := newLimiter(t)
	b := policyfile.Bind(l, policyfile.WithEnviron("RATELIMIT_", []string{
		"HOME=/", "RATELIMIT_LOGIN_MAX=9", "RATELIMIT_EXAMPLE_COM_PAY_SERVICE_ORDER_MAX_WAIT=3s", "RATELIMIT_DEFAULTS_MODE=shadow",
	}))
	if err := b.Apply(parse(t, "limits: {login: {max: 8, window: 2m}}")); err != nil {
		t.Fatal(err)
	}
	if p := policy(t, l, "login"); p.Limit != 9 || p.Window != 2*time.Minute || p.Mode != ratelimit.Shadow {
		t.Errorf("login: %+v", p)
	}
	if p := policy(t, l, "example.com/pay.Service.Order"); p.MaxWait != 3*time.Second {
		t.Errorf("order: %+v", p)
	}
	wrong := policyfile.Bind(newLimiter(t), policyfile.WithEnviron("RATELIMIT_", []string{"RATELIMIT_LOGN_MAX=9", "RATELIMIT_LOGIN_MAX=-1"}))
	text := fmt.Sprint(problems(t, wrong.Apply(nil)))
	for _, want := range []string{"RATELIMIT_LOGN_MAX", "RATELIMIT_LOGIN_MAX", "a limit is at least 1"} {
		if !strings.Contains(text, want) {
			t.Errorf("no problem says %s: %s", want, text)
		}
	}
	if strings.Contains(text, "DEFAULTS_MAX") {
		t.Errorf("a variable is named that would be an error: %s", text)
	}
}

func TestGatesThatAreMadeLater(t *testing.T) {
	t.Parallel()
	l := newLimiter(t)
	f := parse(t, "limits: {late: {max: 9}}")
	wantProblems(t, policyfile.Bind(l).Apply(f), `no limit has the name "late"`)
	b := policyfile.Bind(l, policyfile.WithLaterGates())
	if err := b.Apply(f); err != nil {
		t.Fatal(err)
	}
	wantProblems(t, b.Check(), `no limit has the name "late"`)
	addGate(t, l, ratelimit.Policy{ID: "late", Limit: 1, Window: time.Second, Key: "user"})
	if err := b.Check(); err != nil {
		t.Error(err)
	}
	if p := policy(t, l, "late"); p.Limit != 9 {
		t.Errorf("late: %+v", p)
	}
}

// TestCF14AnInvalidFileLeavesTheLastGoodOne watches a file that goes wrong and is
// mended.
func TestCF14AnInvalidFileLeavesTheLastGoodOne(t *testing.T) {
	t.Parallel()
	path := write(t, t.TempDir(), "limits.yaml", "limits: {login: {max: 6}}\n")
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t)
		var told []error
		w, err := policyfile.Watch(t.Context(), path, l, policyfile.OnReload(func(err error) { told = append(told, err) }))
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		after := func(text string, limit int64, tells int, wrong bool) {
			t.Helper()
			replace(t, path, text)
			time.Sleep(3 * policyfile.DefaultInterval)
			synctest.Wait()
			if p := policy(t, l, "login"); p.Limit != limit {
				t.Errorf("after %q: %+v", text, p)
			}
			if len(told) != tells || (told[len(told)-1] != nil) != wrong || (w.Err() != nil) != wrong {
				t.Errorf("after %q: told %v, and %v is wrong", text, told, w.Err())
			}
		}
		after("limits: {login: {max: 7}}\n", 7, 1, false)
		after("limits: {login: {max: 0}}\n", 7, 2, true)
		after("limits: {nobody: {max: 5}}\n", 7, 3, true)
		after("limits: {login: {max: 8}}\n", 8, 4, false)
		if got := w.Stats(); got.Applied != 3 || got.Failed != 2 || time.Since(got.AppliedAt) > 3*policyfile.DefaultInterval {
			t.Errorf("%+v", got)
		}
	})
}

// TestAFileThatIsNeverLeftAloneIsRead writes a file faster than it is looked at.
func TestAFileThatIsNeverLeftAloneIsRead(t *testing.T) {
	t.Parallel()
	path := write(t, t.TempDir(), "limits.yaml", "limits: {login: {max: 6}}\n")
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t)
		w, err := policyfile.Watch(t.Context(), path, l)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		const pause = policyfile.DefaultInterval / 20
		for i := range 12 * policyfile.DefaultInterval / pause {
			replace(t, path, fmt.Sprintf("limits: {login: {max: %d}} # %d\n", 7, i))
			time.Sleep(pause)
			if i == 5*policyfile.DefaultInterval/pause && policy(t, l, "login").Limit != 6 {
				t.Error("was read while it was written")
			}
		}
		if p := policy(t, l, "login"); p.Limit != 7 || w.Err() != nil {
			t.Errorf("%+v, %v", p, w.Err())
		}
	})
}

func TestAFileThatIsReplacedUnderLoadNeverAdmitsMore(t *testing.T) {
	t.Parallel()
	const most = 40
	path := write(t, t.TempDir(), "limits.yaml", "limits: {login: {max: 30}}\n")
	l := ratelimit.New()
	gate := addGate(t, l, ratelimit.Policy{ID: "login", Limit: 30, Window: time.Hour, Key: "user"})
	w, err := policyfile.Watch(t.Context(), path, l, policyfile.WithInterval(time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	var stop atomic.Bool
	var admitted [3]atomic.Int64
	for i := range admitted {
		calls.Go(func() {
			for !stop.Load() {
				if gate.Allow(context.Background(), []byte{'a' + byte(i)}) == nil {
					admitted[i].Add(1)
				}
			}
		})
	}
	for i := range 100 {
		text := fmt.Sprintf("limits: {login: {max: %d, keys: [{key: b, max: %d}]}}\n", 20+i%(most-19), 5+i%5)
		if i%7 == 3 {
			text = "limits: {login: {max: none}}\n"
		}
		replace(t, path, text)
		if i%3 == 0 {
			_ = w.Reload()
		}
	}
	stop.Store(true)
	calls.Wait()
	w.Close()
	for i := range admitted {
		if n := admitted[i].Load(); n > most {
			t.Errorf("key %c: %d admitted, no limit was above %d", 'a'+byte(i), n, most)
		}
	}
}

func TestNetworksAreFoundAsByTrying(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		addr := func(label string) netip.Addr {
			if rapid.Bool().Draw(rt, label+" v4") {
				return netip.AddrFrom4([4]byte{10, byte(rapid.IntRange(0, 3).Draw(rt, label)), byte(rapid.IntRange(0, 3).Draw(rt, label)), byte(rapid.IntRange(0, 255).Draw(rt, label))})
			}
			return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, byte(rapid.IntRange(0, 3).Draw(rt, label)), 0, 0, byte(rapid.IntRange(0, 3).Draw(rt, label))})
		}
		var prefixes []netip.Prefix
		text := "limits:\n  login:\n    keys:\n"
		for range rapid.IntRange(1, 8).Draw(rt, "rules") {
			a := addr("network")
			bits := rapid.IntRange(8, 32).Draw(rt, "bits")
			if a.Is6() {
				bits = rapid.IntRange(16, 64).Draw(rt, "bits")
			}
			p := netip.PrefixFrom(a, bits).Masked()
			covered := false
			for _, q := range prefixes {
				covered = covered || q.Bits() <= p.Bits() && q.Contains(p.Addr())
			}
			if !covered { // which would be an error
				prefixes = append(prefixes, p)
				text += fmt.Sprintf("      - {cidr: %q, max: %d}\n", p, len(prefixes)+10)
			}
		}
		l := ratelimit.New()
		gate, err := l.Gate(&ratelimit.Spec{Method: "M", Policies: []ratelimit.Policy{{ID: "login", Limit: 5, Window: time.Hour, Key: "ip"}}})
		if err != nil {
			rt.Fatal(err)
		}
		f, err := policyfile.Parse(filepath.Join("dir", "f.yaml"), []byte(text))
		if err == nil {
			err = f.Apply(l)
		}
		if err != nil {
			rt.Fatalf("%s\n%v", text, err)
		}
		for range 10 {
			a := addr("caller")
			want := int64(5)
			for i, p := range prefixes {
				if p.Contains(a) {
					want = int64(i + 11)
					break
				}
			}
			d, err := gate.Peek(context.Background(), ratelimit.Charge{Key: ratelimit.AppendIP([]byte{}, &ratelimit.Request{Addr: a}), Cost: 1})
			if err != nil || d.Limit != want {
				rt.Fatalf("%s\n%v: %+v, %v, want a limit of %d", text, a, d, err, want)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add("limits: {login: {max: 5, keys: [{key: [a, 1], times: 2}]}}")
	f.Add("defaults:\n  mode: shadow\n# é\nlimits:\n  'a b': &x {window: 1h}\n  b: *x\n")
	f.Fuzz(func(t *testing.T, text string) {
		_, err := policyfile.Parse("f.yaml", []byte(text))
		lines := strings.Count(text, "\n") + strings.Count(text, "\r") + strings.Count(text, "\u2028") + strings.Count(text, "\u2029") + strings.Count(text, "\u0085") + 1
		if err == nil {
			return
		}
		for _, p := range err.(*policyfile.Error).Problems {
			if p.Line > lines+1 || p.Line < 0 || p.Col < 0 || strings.ContainsAny(p.Error(), "\n\x00\x1b\u202e") {
				t.Errorf("problem %q of %q, which has %d lines", p.Error(), text, lines)
			}
		}
	})
}

func BenchmarkExceptions(b *testing.B) {
	var list strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&list, "%d.%d.%d.0/24\n", 11+(i>>16), i>>8&255, i&255)
	}
	dir := b.TempDir()
	for name, text := range map[string]string{
		"list.txt":    list.String(),
		"limits.yaml": "limits: {login: {keys: [{cidr-file: list.txt, max: 7}]}}",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	f, err := policyfile.Load(filepath.Join(dir, "limits.yaml"))
	if err != nil {
		b.Fatal(err)
	}
	l := ratelimit.New()
	gate := l.MustGate(&ratelimit.Spec{Method: "M", Policies: []ratelimit.Policy{{ID: "login", Algorithm: ratelimit.TokenBucket, Limit: 1 << 20, Window: time.Millisecond, Key: "ip"}}})
	key := ratelimit.AppendIP([]byte{}, &ratelimit.Request{Addr: netip.MustParseAddr("198.51.100.1")})
	for _, name := range []string{"none", "100,000 networks"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := gate.Allow(context.Background(), key); err != nil {
					b.Fatal(err)
				}
			}
		})
		if err := f.Apply(l); err != nil {
			b.Fatal(err)
		}
	}
}
