package generator

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"math/rand/v2"
	"strings"
	"testing"

	rlparser "github.com/ratelimitgen/ratelimitgen/parser"
	"github.com/ratelimitgen/ratelimitgen/parser/keyexpr"
)

// expressions writes random expressions, most of which are well typed.
type expressions struct{ *rand.Rand }

func (r expressions) pick(list ...func(int) string) func(int) string { return list[r.IntN(len(list))] }

func always(s string) func(int) string { return func(int) string { return s } }

func (r expressions) text(depth int) string {
	if depth == 0 {
		return r.pick(always("id"), always("req.User"), always("req?.Acct?.ID"), always("'x'"), always("prefix"),
			always("req.Labels.tenant"), always("user"), always("item(req).SKU"), always("req.Account().ID"),
			always("defaultTenant"), always("s.region"), always("req.Tags[1]"), always("#root.methodName"))(0)
	}
	d := depth - 1
	return r.pick(
		r.text,
		func(int) string { return "lower(" + r.text(d) + ")" },
		func(int) string { return "trim(" + r.text(d) + ", " + r.text(d) + ")" },
		func(int) string { return "(" + r.text(d) + " + " + r.text(d) + ")" },
		func(int) string { return "(" + r.text(d) + " ?? " + r.text(d) + ")" },
		func(int) string { return "(" + r.text(d) + " ?: " + r.text(d) + ")" },
		func(int) string { return "(" + r.condition(d) + " ? " + r.text(d) + " : " + r.text(d) + ")" },
		func(int) string { return "string(" + r.number(d) + ")" },
		func(int) string { return "string(" + r.condition(d) + ")" },
		func(int) string { return "tick(" + r.text(d) + ")" },
		func(int) string { return "joinAll(" + r.text(d) + ", " + r.text(d) + ", " + r.text(d) + ")" },
		func(int) string { return "req.Labels[" + r.text(d) + "]" },
		func(int) string { return "req.Tags[" + r.number(d) + "]" },
		func(int) string { return "req.Pair[" + r.number(d) + "]" },
		func(int) string { return r.account(d) + ".ID" },
		func(int) string { return r.account(d) + ".Label()" },
	)(d)
}

func (r expressions) account(depth int) string {
	if depth == 0 {
		return r.pick(always("req.Acct"), always("noAccount"), always("req.Ptrs[0]"), always("req.ByUser.ACME"), always("s.owner"))(0)
	}
	d := depth - 1
	return r.pick(
		r.account,
		func(int) string { return r.account(d) + ".Boss()" },
		func(int) string { return "same(" + r.account(d) + ")" },
		func(int) string { return r.account(d) + "?.Parent" },
		func(int) string { return "(" + r.account(d) + " ?? " + r.account(d) + ")" },
		func(int) string { return "(" + r.condition(d) + " ? " + r.account(d) + " : " + r.account(d) + ")" },
	)(d)
}

func (r expressions) number(depth int) string {
	if depth == 0 {
		return r.pick(always("n"), always("req.N"), always("req.D"), always("3"), always("0"), always("shards"), always("int(u)"),
			always("int(neg)"), always("len(req.Tags)"), always("req.Quota[req.Region]"), always("-1"))(0)
	}
	d := depth - 1
	op := []string{"+", "-", "*", "/", "%"}[r.IntN(5)]
	return r.pick(
		r.number,
		func(int) string { return "(" + r.number(d) + " " + op + " " + r.number(d) + ")" },
		func(int) string { return "-" + r.number(d) },
		func(int) string { return "int(uint8(" + r.number(d) + "))" },
		func(int) string { return "len(" + r.text(d) + ")" },
		func(int) string { return "(" + r.number(d) + " ?? " + r.number(d) + ")" },
		func(int) string { return "(" + r.condition(d) + " ? " + r.number(d) + " : " + r.number(d) + ")" },
	)(d)
}

func (r expressions) condition(depth int) string {
	if depth == 0 {
		return r.pick(always("req.Admin"), always("req.Beta"), always("req != nil"), always("req == nil"), always("user != nil"),
			always("ip == nil"), always("true"), always("req.Wipe()"), always("req.Labels.tenant == nil"), always("req.Acct != nil"))(0)
	}
	d := depth - 1
	return r.pick(
		r.condition,
		func(int) string { return "(" + r.condition(d) + " and " + r.condition(d) + ")" },
		func(int) string { return "(" + r.condition(d) + " || " + r.condition(d) + ")" },
		func(int) string { return "not " + r.condition(d) },
		func(int) string { return "(" + r.text(d) + " == " + r.text(d) + ")" },
		func(int) string { return "(" + r.number(d) + " != " + r.number(d) + ")" },
		func(int) string { return "(" + r.number(d) + " < " + r.number(d) + ")" },
		func(int) string { return "(" + r.account(d) + " == nil)" },
		func(int) string { return "(" + r.text(d) + " != nil)" },
		func(int) string { return "(" + r.condition(d) + " == " + r.condition(d) + ")" },
		func(int) string { return "(" + r.condition(d) + " ? " + r.condition(d) + " : " + r.condition(d) + ")" },
	)(d)
}

func (r expressions) key() string {
	part := func() string {
		switch r.IntN(6) {
		case 0:
			return "user ?? ip"
		case 1:
			return "(" + r.text(1) + " ?? ip) ?: " + r.text(1)
		case 2:
			return r.number(2)
		case 3:
			return r.condition(2)
		case 4:
			return "(" + r.condition(1) + " ? ip : " + r.text(1) + ") ?? " + r.text(1)
		}
		return r.text(3)
	}
	s := part()
	for range r.IntN(3) {
		s += ", " + part()
	}
	return s
}

func TestWhatIsAcceptedCompiles(t *testing.T) {
	t.Parallel()
	src := keySource + "\nfunc main() {}\n"
	pkg := keyPackage(t, src)
	f, m, scope := keyTarget(t, pkg, "Service", "Do")
	r := expressions{rand.New(rand.NewPCG(1, 2))}
	var sources []string
	var policies []*policy
	texts := []string{ // in which something is known before a default or a branch that asks for it
		"let u = user; let w = role; [u, u ?? w]", "let w = lower(id); [req.Acct.ID, req.Acct.Label() ?? w]", "let w = req.Acct; [req.Acct.ID, req.Acct.ID ?? w.ID]",
		"let v = trim(id); req.ID == 'x' ? (req.ID ?? v) : 'q'", "let v = tick(id); user in ['x', 'y'] ? (user ?? v) : 'q'", "let m = req.Labels['x']; [req.User, req.User ?? m]",
		"[req.Acct.ID, req.Acct.ID ?? (id matches '^a$' ? 'x' : 'y')]", "user != nil ? (user ?? (id matches '^b$' ? 'x' : 'y')) : 'z'", "[req.User, req.User ?? 'none']",
		"req != nil ? (req.User ?? user) : 'z'", "[req.User, (req.User ?? ip), n]", "let w = req.Tags[0]; [req.User, req.User ?? w]",
		"(let User = req.Tags[0]; User != nil ? 'a' : 'b') + req.User", "(let Tags = req.User; Tags != nil ? 'a' : 'b') + req.Tags[0]", // called like a field
	}
	for range 3000 {
		texts = append(texts, r.key())
	}
	for _, text := range texts {
		k, _ := keyexpr.ParseKey(text, scope)
		if k == nil {
			continue
		}
		p := &policy{Policy: &rlparser.Policy{KeyExpr: k}, key: &computed{keyFunction: keyFunction{name: fmt.Sprintf("key%d", len(policies))}}}
		keyImports(f.imports, p.Policy)
		policies, sources = append(policies, p), append(sources, text)
	}
	if len(policies) < 500 {
		t.Fatalf("only %d expressions were accepted", len(policies))
	}
	f.imports.addType(m.Sig)
	f.imports.allot(f.scope)
	var out bytes.Buffer
	out.WriteString("package main\n\n" + f.imports.decl())
	// An expression is Go when it runs, and nothing looks at it or at types any more.
	if decl := f.imports.decl(); strings.Contains(decl, `"reflect"`) || strings.Contains(decl, "expr-lang") {
		t.Errorf("the functions import what they must not:\n%s", decl)
	}
	for i, p := range policies {
		decl, _ := f.keyFunc(m, p.key.name, p.KeyExpr)
		var fn bytes.Buffer
		if err := decl.Render(&fn); err != nil {
			t.Fatalf("%s: %v", sources[i], err)
		}
		again, _ := f.keyFunc(m, p.key.name, p.KeyExpr)
		if text := fmt.Sprintf("%#v", again); text != fn.String() {
			t.Errorf("%s: rendered differently the second time", sources[i])
		}
		fmt.Fprintf(&out, "//line key:%d\n%s\n\n", i+1, strings.ReplaceAll(fn.String(), "\n", fmt.Sprintf("\n//line key:%d\n", i+1)))
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for name, text := range map[string]string{"a.go": src, "key": string(tidied(out.Bytes(), declaredIn(pkg)))} {
		file, err := parser.ParseFile(fset, name, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	failed := 0
	conf := types.Config{Importer: exportData(t), Error: func(err error) {
		if failed++; failed > 10 {
			return
		}
		if e, ok := err.(types.Error); ok {
			if line := fset.Position(e.Pos).Line; line <= len(sources) {
				t.Errorf("%s: %s", sources[line-1], e.Msg)
				return
			}
		}
		t.Error(err)
	}}
	conf.Check(pkg.Path(), fset, files, nil) //nolint:errcheck // reported above
}
