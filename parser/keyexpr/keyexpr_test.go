package keyexpr

import (
	"flag"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const testSource = `package pay

import (
	"context"
	"net/http"
	"strings"
	"time"
)

type TenantID string
type Role string
type Region int32
type Acct struct {
	ID      string
	Parent  *Acct
	private string
}

func (a *Acct) Name() string { return a.ID }
func (a *Acct) Two() (string, error) { return "", nil }

type Item struct {
	SKU string
	Qty uint8
}

type Left struct{ Both string }
type Right struct{ Both string }
type Base struct{ BaseID string }

type Req struct {
	*Base
	Left
	Right
	TenantID TenantID
	UserID   string
	Shard    uint64
	Region   Region
	Acct     *Acct
	Tags     []string
	Labels   map[string]string
	ByBool   map[bool]string
	When     time.Time
	Wait     time.Duration
	Weekday  time.Weekday
	F        float64
	F32      float32
	Items    []Item
	Accts    []*Acct
	Ints     []int8
	Any      any
	Raw      []byte
	Sum      [16]byte
	Admin    bool
	Ptr      *string
	Fn       func() string
	Page     http.Header
	ip       string
}

func tenantOf(ctx context.Context, r *Req) string { return strings.ToLower(r.UserID) }
func pair() (int, error)                          { return 0, nil }
func nothing()                                    {}
func pick[T any](v T) string                      { return "" }
func small(n int8) string                         { return "" }
func named(t TenantID) string                     { return "" }
func any1(v any) string                           { return "" }
func count(xs []string) int                       { return len(xs) }

const shards = 16
const ratio = 1.5
const zero = 0
const million = 1e6
const anonymous Role = ""

var defaultTenant = "x"
var user2 = "x"
var errGone error

const huge = 1e400

// Asked is a request that answers as the caller's does.
type Asked struct{ ID string }

func (a *Asked) header(name string) string { return name }

type Service struct{ region string }

func (s *Service) Do(ctx context.Context, req *Req, in *Req, id string, ip string, n int, matches bool, _ bool, more ...string) error { return nil }
func (s *Service) Plain(id string) error { return nil }
func (s *Service) Make(ctx context.Context, req *Req) (made *Acct, n int, err error) { return nil, 0, nil }
func (s *Service) Find(err string) (*Acct, bool) { return nil, false }
func (s *Service) Hide(err, result string) (int, error) { return 0, nil }
func (s *Service) Ask(ctx context.Context, request *Asked) error { return nil }
func (s *Service) Stop() {}
func (s *Service) Not(not bool, id string) error { return nil }
func (s *Service) Handle(request *Req, r *http.Request) error { return nil }

type Store[K ~string | ~int, N ~int | ~int64, V any, S ~string] struct{}

func (s *Store[K, N, V, S]) Get(key K, n N, value V, text S) error { return nil }
`

var testPackage = sync.OnceValues(func() (*types.Package, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "a.go", testSource, 0)
	if err != nil {
		return nil, err
	}
	conf := types.Config{Importer: importer.Default()}
	return conf.Check("example.com/pay", fset, []*ast.File{f}, nil)
})

// scopeOf is the scope of a method of a type of the test's package.
func scopeOf(t testing.TB, typeName, method string) *Scope {
	t.Helper()
	pkg, err := testPackage()
	if err != nil {
		t.Fatal(err)
	}
	recv := types.NewPointer(pkg.Scope().Lookup(typeName).Type())
	obj, _, _ := types.LookupFieldOrMethod(recv, true, pkg, method)
	sig := obj.Type().(*types.Signature)
	return &Scope{
		Imports: []string{"bytes"},
		Pkg:     pkg,
		Recv:    types.NewVar(token.NoPos, pkg, "s", recv),
		Sig:     sig,
		Method:  method,
		Request: method == "Do" || method == "Handle" || method == "Make" || method == "Ask",
	}
}

// render writes a problem in one line.
func render(p Problem) string {
	s := fmt.Sprintf("%d-%d %s: %s", p.From, p.To, p.Code, p.Message)
	if p.Warning {
		s = "warning " + s
	}
	if p.Suggestion != "" {
		s += "; did you mean " + p.Suggestion
	}
	if len(p.Valid) > 0 {
		s += " (" + strings.Join(p.Valid, " ") + ")"
	}
	return s
}

// parseAs parses src as a key, a "when" or "count" condition or a "cost", and
// reports whether it is accepted.
func parseAs(kind, src string, s *Scope) (bool, []Problem) {
	switch kind {
	case "count":
		if s.Results = s.Sig.Results(); s.Results == nil {
			s.Results = new(types.Tuple)
		}
		fallthrough
	case "when":
		e, problems := ParseCondition(src, s)
		return e != nil, problems
	case "limit":
		e, problems := ParseLimit(src, s)
		return e != nil, problems
	case "cost":
		e, problems := ParseCost(src, s)
		return e != nil, problems
	}
	k, problems := ParseKey(src, s)
	return k != nil, problems
}

var update = flag.Bool("update", false, "rewrite testdata/problems.golden")

func TestProblemsAreReportedAtTheirPlace(t *testing.T) {
	t.Parallel()
	const golden = "testdata/problems.golden"
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for line := range strings.Lines(string(want)) {
		if strings.HasPrefix(line, "\t") {
			continue
		}
		got.WriteString(line)
		if strings.HasPrefix(line, "#") {
			continue
		}
		method, src, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		typeName := "Service"
		if method == "Get" {
			typeName = "Store"
		}
		method, kind, _ := strings.Cut(method, "/")
		ok, problems := parseAs(kind, src, scopeOf(t, typeName, method))
		if errors := slices.ContainsFunc(problems, func(p Problem) bool { return !p.Warning }); errors == ok {
			t.Errorf("%s: accepted %v beside %v", src, ok, problems)
		}
		inside(t, src, problems)
		for _, p := range problems {
			got.WriteString("\t" + render(p) + "\n")
		}
	}
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got.String() != string(want) {
		t.Errorf("problems differ from %s; with -update:\n%s", golden, got.String())
	}
}

func TestCostIsAnInteger(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ expr, want string }{
		{"shards", ""},
		{"#a5", ""},
		{"1", "0-1 constant-expression: every call costs 1; write cost=1"},
		{"len(req.Tags) + 1", ""},
		{"req.Shard", ""},
		{"req.Admin ? 1 : n", ""},
		{"req?.Shard ?? 1", ""},
		{"user == 'batch' ? 10 : 1", ""},
		{"id", "0-2 not-an-integer: id is string, not an integer; len(id) is the number of its characters"},
		{"req.F", "0-5 not-an-integer: req.F is float64, not an integer; write int(req.F)"},
		{"1, 2", "3-4 not-supported: a list is not supported; a cost is one expression"},
		{"user", "0-4 not-an-integer: user is string, not an integer; len(user) is the number of its characters"},
		{"request.ip", "0-10 address-in-expression: the caller's address is an element of its own, not text; write a tuple: ip, ..."},
		{"9223372036854775807 * 2", "0-23 constant-overflow: 18446744073709551614 does not fit into int64"},
	} {
		e, problems := ParseCost(c.expr, scopeOf(t, "Service", "Do"))
		var got []string
		for _, p := range problems {
			got = append(got, render(p))
		}
		if strings.Join(got, "\n") != c.want || (e == nil) != (c.want != "") {
			t.Errorf("%s: %q, want %q", c.expr, got, c.want)
		}
	}
}

func TestExpressionsAreBounded(t *testing.T) {
	t.Parallel()
	list := "any(req.Tags, "
	for _, c := range []struct{ name, expr, code string }{
		{"a million brackets", strings.Repeat("(", 1e6), tooLong.code},
		{"a million exclamation marks", strings.Repeat("!", 1e6) + "matches", tooLong.code},
		{"a million signs", strings.Repeat("-", 1e6) + "n", tooLong.code},
		{"a million closures", strings.Repeat(list, 1e6), tooLong.code},
		{"deep", strings.Repeat("(", maxDepth+1) + "id" + strings.Repeat(")", maxDepth+1), tooDeep.code},
		{"deep closures", strings.Repeat(list, maxDepth+1) + "true" + strings.Repeat(")", maxDepth+1), tooDeep.code},
		{"unbalanced", strings.Repeat("[", 4000), tooDeep.code},
		{"long chain", "id" + strings.Repeat("+id", maxNodes), tooLarge.code},
		{"long chain of signs", strings.Repeat("- ", 1500) + "n", tooLarge.code},
		{"long chain of negations", strings.Repeat("!", 4000) + "matches", tooLarge.code},
		{"long chain of choices", strings.Repeat("matches?id:", 300) + "id", tooLarge.code},
		{"long chain of lets", longLets(120) + "a119 == 1", tooLarge.code},
		{"names that are taken", strings.Repeat("let n = 1; ", 300) + "n", tooLarge.code},
		{"many comparisons", "n in [" + strings.Repeat("n,", maxNodes) + "n]", tooLarge.code},
		{"no text", "id + \"\xff\"", invalidText.code},
	} {
		for _, kind := range []string{"key", "when", "count", "cost"} {
			var ok bool
			var problems []Problem
			least := time.Hour
			for range 3 { // one of them is not disturbed
				start := time.Now()
				ok, problems = parseAs(kind, c.expr, scopeOf(t, "Service", "Do"))
				least = min(least, time.Since(start))
			}
			if least > 100*time.Millisecond {
				t.Errorf("%s as %s: took %v", c.name, kind, least)
			}
			if ok || !slices.ContainsFunc(problems, func(p Problem) bool { return p.Code == c.code }) {
				t.Errorf("%s as %s: %d problems, want one of %s: %.200v", c.name, kind, len(problems), c.code, problems)
			}
			if len(problems) != 1 {
				t.Errorf("%s as %s: %d problems besides", c.name, kind, len(problems)-1)
			}
			inside(t, c.expr, problems)
		}
	}
	deepest := strings.Repeat("(", maxDepth) + "id" + strings.Repeat(")", maxDepth)
	if k, problems := ParseKey(deepest, scopeOf(t, "Service", "Do")); k == nil {
		t.Errorf("brackets of the greatest depth: %v", problems)
	}
}

// longLets gives n names, each of which stands for the sum of the one before and
// itself, which would grow without bounds if names were replaced by what they mean.
func longLets(n int) string {
	var b strings.Builder
	b.WriteString("let a0 = n + 1; ")
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, "let a%d = a%d + a%d; ", i, i-1, i-1)
	}
	return b.String()
}

func TestKeyTellsWhetherItReadsTheRequest(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]bool{
		"user": true, "request.ip, id": true, "id": false, "lower(user)": true, "user == nil ? id : 'x'": true,
		"tenantOf(ctx, req)": false, "#ip": false, "global": false,
	} {
		k, problems := ParseKey(expr, scopeOf(t, "Service", "Do"))
		if k == nil {
			t.Errorf("%s: %v", expr, problems)
		} else if k.NeedsRequest() != want {
			t.Errorf("%s: needs the request: %v", expr, !want)
		}
	}
}

func TestGlobalStandsAlone(t *testing.T) {
	t.Parallel()
	for _, src := range []string{"global", " global "} {
		if k, problems := ParseKey(src, scopeOf(t, "Service", "Do")); k == nil || !k.Global || len(k.Elems) != 0 || problems != nil {
			t.Errorf("%q: %+v, %v", src, k, problems)
		}
	}
}

func TestPackagesThatRedeclarePredeclaredNamesAreRefused(t *testing.T) {
	t.Parallel()
	pkg := types.NewPackage("example.com/p", "p")
	pkg.Scope().Insert(types.NewTypeName(token.NoPos, pkg, "string", types.Typ[types.Int]))
	sig := types.NewSignatureType(nil, nil, nil, types.NewTuple(types.NewVar(token.NoPos, pkg, "n", types.Typ[types.Int])), nil, false)
	k, problems := ParseKey("n", &Scope{Pkg: pkg, Sig: sig})
	if k != nil || len(problems) != 1 || problems[0].Code != shadowed.code {
		t.Errorf("%v, %v", k, problems)
	}
}

// inside checks that the places of problems are in src.
func inside(t *testing.T, src string, problems []Problem) {
	t.Helper()
	for _, p := range problems {
		if p.From < 0 || p.From > p.To || p.To > len(src) {
			t.Errorf("%.100q: place %d-%d of %q", src, p.From, p.To, p.Message)
		}
		if p.Code == "" || p.Message == "" || strings.Contains(p.Message, "%!") {
			t.Errorf("%.100q: problem %+v", src, p)
		}
	}
}

func FuzzParseKey(f *testing.F) {
	golden, err := os.ReadFile("testdata/problems.golden")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(golden)) {
		if _, src, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " "); ok && line[0] != '\t' {
			f.Add(src)
		}
	}
	f.Fuzz(func(t *testing.T, src string) {
		scope := scopeOf(t, "Service", "Do")
		k, problems := ParseKey(src, scope)
		inside(t, src, problems)
		if k == nil && len(problems) == 0 {
			t.Errorf("%q: neither a key nor a problem", src)
		}
		if k != nil && !k.Global {
			for _, n := range k.Elems {
				if KindOf(n.Type()) == None || isUntyped(n.Type()) {
					t.Errorf("%q: element of type %v", src, n.Type())
				}
			}
		}
		for _, kind := range []string{"cost", "when", "count"} {
			ok, problems := parseAs(kind, src, scope)
			inside(t, src, problems)
			if !ok && len(problems) == 0 {
				t.Errorf("%q: neither a %s nor a problem", src, kind)
			}
		}
		for _, kind := range []string{"key", "cost", "when", "count"} {
			spelling, _ := parseText(kind, src, scopeOf(t, "Service", "Do"))
			if spelling == "" {
				continue
			}
			again, problems := parseText(kind, spelling, scopeOf(t, "Service", "Do"))
			bounded := slices.ContainsFunc(problems, func(p Problem) bool { return strings.HasPrefix(p.Code, "expression-too-") })
			if again != spelling && !bounded {
				t.Errorf("%s %q is spelled %q, and that %q: %v", kind, src, spelling, again, problems)
			}
		}
	})
}
