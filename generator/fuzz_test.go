package generator

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"testing"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	rlparser "github.com/ratelimitgen/ratelimitgen/parser"
	"github.com/ratelimitgen/ratelimitgen/parser/directive"
	"github.com/ratelimitgen/ratelimitgen/parser/keyexpr"
)

const fuzzSource = `package pay

import "context"

type Req struct {
	User  *User
	Size  int
	Price float64
	Tags  []string
	Meta  map[string]string
}

type User struct{ ID string; Admin bool }

func (u *User) Name() string { return u.ID }

func tenant(ctx context.Context, s string) string { return s }

type Service struct{ region string }

func (s *Service) Do(ctx context.Context, req *Req, name string, n int64, more ...string) (res *Req, err error) {
	return req, nil
}

func (s *Service) Other(ctx context.Context, req *Req, name string, n int64, more ...string) (res *Req, err error) {
	return req, nil
}
`

// model makes the model of a method with one directive, or reports false if the
// directive is refused.
func model(t *testing.T, comment string) (*rlparser.Package, bool) {
	d, diags := directive.Parse(comment, diag.Pos{File: "a.go", Line: 1, Col: 1})
	if d == nil || diags.HasErrors() || d.Verb != directive.VerbLimit {
		return nil, false
	}
	if diags := directive.Resolve([]*directive.Directive{d}); diags.HasErrors() {
		return nil, false
	}
	l, diags := d.Limit()
	if diags.HasErrors() || directive.CheckLimits([]directive.Limit{l}).HasErrors() {
		return nil, false
	}
	pkg := keyPackage(t, fuzzSource)
	_, m, scope := keyTarget(t, pkg, "Service", "Do")
	p := &rlparser.Policy{Policy: l.Policy(), Cost: l.Cost}
	p.ID = "id"
	ok := true
	if l.Key != nil {
		key, _ := keyexpr.ParseKey(l.Key.Text, scope)
		if ok = key != nil; ok {
			p.KeyExpr, p.Global = key, key.Global
		}
	}
	after := *scope
	after.Results = m.Sig.Results()
	for _, e := range []struct {
		value *directive.Value
		parse func(string, *keyexpr.Scope) (*keyexpr.Expr, []keyexpr.Problem)
		scope *keyexpr.Scope
		to    **keyexpr.Expr
	}{
		{l.CostExpr, keyexpr.ParseCost, scope, &p.CostExpr},
		{l.MaxExpr, keyexpr.ParseLimit, scope, &p.MaxExpr},
		{l.When, keyexpr.ParseCondition, scope, &p.When},
		{l.Unless, keyexpr.ParseCondition, scope, &p.Unless},
		{l.Count, keyexpr.ParseCondition, &after, &p.CountExpr},
		{l.CostAfter, keyexpr.ParseCostAfter, &after, &p.CostAfterExpr},
	} {
		if e.value != nil {
			*e.to, _ = e.parse(e.value.Text, e.scope)
			ok = ok && *e.to != nil
		}
	}
	if l.OnLimit == directive.OnLimitFallback && l.Fallback.Text != "Other" || !ok {
		return nil, false
	}
	limited := *m.Method
	limited.Qualified, limited.File, limited.Policies = "pay.Service.Do", "a.go", []*rlparser.Policy{p}
	limited.OnLimit, limited.Fallback = l.OnLimit, l.Fallback
	other := &rlparser.Method{Name: "Other", Sig: m.Sig, Context: -1}
	return &rlparser.Package{
		Path: pkg.Path(), Name: pkg.Name(), Types: pkg, Dir: "/src/pay",
		Declared: map[string]bool{"Req": true, "User": true, "Service": true, "tenant": true},
		Wrappers: []*rlparser.Wrapper{{
			Source: m.wrapper.Source, Name: "RateLimitedService", Constructor: "NewRateLimitedService",
			Pointer: true, Methods: []*rlparser.Method{&limited, other},
		}},
		Check: func(files map[string][]byte) (*types.Package, []error) { return checkWith(t, files) },
	}, true
}

// checkWith type-checks sources together with fuzzSource.
func checkWith(t *testing.T, sources map[string][]byte) (*types.Package, []error) {
	fset := token.NewFileSet()
	var files []*ast.File
	sources = maps.Clone(sources)
	sources["a.go"] = []byte(fuzzSource)
	for name, src := range sources {
		f, err := parser.ParseFile(fset, name, src, 0)
		if err != nil {
			return nil, []error{err}
		}
		files = append(files, f)
	}
	var errs []error
	conf := types.Config{Importer: exportData(t), Error: func(err error) { errs = append(errs, err) }}
	pkg, _ := conf.Check("example.com/pay", fset, files, nil)
	return pkg, errs
}

// FuzzDirective holds that whatever a directive says, it is refused, or what is
// generated compiles and declares what was planned and nothing else.
func FuzzDirective(f *testing.F) {
	for _, s := range []string{
		"//ratelimit:max=5 window=1m key=ip",
		"//ratelimit:max=`n` key=`[req.User.ID, name]` cost=`req.Size * 2 + 1`",
		"//ratelimit:key=`req.User.ID ?? 'x'` when=`any(req.Tags, # == name)` unless=`name matches '^a\"*/$'`",
		"//ratelimit:count=`err != nil` cost-after=`res.Size` key=`request.header(\"X\\\"\\n\")`",
		"//ratelimit:on-limit=fallback:Other message=\"*/ }\\nfunc init() {}\" status=420",
		"//ratelimit:algorithm=concurrency max=3 lease=1s key=`tenant(ctx, lower(name))`",
		"//ratelimit:key=`let k = req.Meta[\"a`",
		"//ratelimit:max=2 when=`let u = req.User.Name(); name in req.Meta and (u ?? name) == name` key=`(let s = sum(req.Tags, len(#)); req.Size > 3 ? (req.User.ID ?? string(s)) : name)`",
		"//ratelimit:max=2 cost=`req.Size % (req.User != nil ? len(req.Tags) : int(n))` unless=`req.User == nil ? false : req.User.Admin ?? true`",
		"//ratelimit:name=x)\nfunc init(){}",
		"//ratelimit:algorithm=fixed-window align=day tz=Europe/Paris on-limit=zero lock=1m,2m",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, comment string) {
		p, ok := model(t, comment)
		if !ok {
			return
		}
		files, diags := Generate(&rlparser.Result{Packages: []*rlparser.Package{p}})
		if len(diags) > 0 {
			t.Fatalf("%q: %v", comment, diags)
		}
		if len(files) != 1 || files[0].Path != filepath.Join("/src/pay", OutputName) {
			t.Fatalf("%q: %v", comment, files)
		}
	})
}

func TestAPlanThatTheOutputDoesNotFollowIsNoticed(t *testing.T) {
	t.Parallel()
	p, ok := model(t, "//ratelimit:max=5 key=name")
	if !ok {
		t.Fatal("the directive is refused")
	}
	f := newFile(p, p.Wrappers, nil)
	src, err := f.render()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.comparePlan(src); err != nil {
		t.Error(err)
	}
	for _, extra := range []string{
		"\nfunc init() {}\n", "\nvar x = 1\n", "\ntype y int\n", "\nfunc (s *RateLimitedService) More() {}\n", "\nvar _ = 1\n",
	} {
		if err := f.comparePlan(append(src[:len(src):len(src)], extra...)); err == nil {
			t.Errorf("%q goes unnoticed", extra)
		}
	}
}
