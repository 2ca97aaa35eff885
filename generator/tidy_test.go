package generator

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dave/jennifer/jen"
	"golang.org/x/tools/go/cfg"

	rlparser "github.com/ratelimitgen/ratelimitgen/parser"
)

func TestTidied(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, body, want string }{
		{"an operand that stands there before", "return a && b == c && a && c == b", "return a && b == c"},
		{"what a call can change is asked again", "return p.X == 1 && f() && p.X == 1", "return p.X == 1 && f() && p.X == 1"},
		{"variables are not changed by calls", "return a && f() && a", "return a && f()"},
		{"a method can change its variable", "return m == c && m.f() && m == c", "return m == c && m.f() && m == c"},
		{"calls are not dropped", "return f() && false", "return f() && false"},
		{"nor called twice", "x := f()\nreturn x && x", "return f()"},
		{"a function called like a type", "return rune(1) && a && rune(1)", "return rune(1) && a && rune(1)"},
		{"and one that nothing uses", "x := rune(1)\n_ = x\nreturn a", "_ = rune(1)\nreturn a"},
		{"a type", "x := int32(1)\n_ = x\nreturn a", "return a"},
		{"the opposite", "if a {\nreturn g(1)\n}\nif !a {\nreturn false\n}\nreturn g(2)", "return a && g(1)"},
		{"numbers may be none", "return x < 3 || !(x >= 3)", "return x < 3 || !(x >= 3)"},
		{"lengths are numbers", "return len(s) > 0 && !(len(s) == 0)", "return len(s) > 0"},
		{"their differences can be negative", "if len(s)-len(t) > 0 || !(len(s)-len(t) == 0) {\n} else {\n_ = f()\n}\nreturn a", "if !(len(s)-len(t) > 0 || !(len(s)-len(t) == 0)) {\n_ = f()\n}\nreturn a"},
		{"none is negative", "return len(s) >= 0 && 0 > len(s) || !!(a == b)", "return a == b"},
		{"and parentheses stay where they are needed", "return c == !!(a == b) && c == (b && b)", "return c == (a == b) && c == b"},
		{"a variable of another type", "return flag == true && a", "return flag == true && a"},
		{"two that are compared", "x := f()\nvar ok bool\nok2 := false\nif x {\nok = true\n}\nok2 = true\nreturn ok == ok2", "return f()"},
		{"a loop forgets what it changes", "n := false\nfor range s {\nif n {\nreturn g(1)\n}\nn = true\n}\nreturn g(2)", "n := false\nfor range s {\nif n {\nreturn g(1)\n}\nn = true\n}\nreturn g(2)"},
		{"a variable that says what a condition says", "x := false\nif p != nil {\nx = true\n_ = f()\n}\nif p != nil && a {\nif !x {\nreturn g(1)\n}\nreturn g(2)\n}\nreturn g(3)", "if p != nil {\n_ = f()\n}\nif p != nil && a {\nreturn g(2)\n}\nreturn g(3)"},
		{"but not once the condition may have changed", "x := false\nif p.X == 1 {\nx = true\n}\n_ = f()\nif p.X == 1 {\nreturn x\n}\nreturn g(3)", "x := false\nif p.X == 1 {\nx = true\n}\n_ = f()\nif p.X == 1 {\nreturn x\n}\nreturn g(3)"},
		{"a condition in a variable", "x := false\nif a {\nx = g(1)\n}\nreturn x", "return a && g(1)"},
		{"set in all branches", "x := true\nvar ok bool\nif a {\nx = g(1)\nok = true\n} else {\nx = g(2)\nok = true\n}\nif ok {\nreturn x\n}\nreturn false", "if a {\nreturn g(1)\n}\nreturn g(2)"},
		{"overwritten at once", "x := 1\nx = p.X\nreturn x == p.Y", "x := p.X\nreturn x == p.Y"},
		{"with the type that is written", "var x any\nx = p.X\nreturn x == p.Y", "var x any = p.X\nreturn x == p.Y"},
		{"no use of a total", "x := 0\nfor _, v := range s {\nx += v\n}\nif x < 0 {\nx = -x\n}\nreturn a", "return a"},
		{"of which the parts are called", "x := 0\nfor _, v := range s {\nif f(v) {\nx++\n}\n}\nreturn a", "for _, v := range s {\n_ = f(v)\n}\nreturn a"},
		{"an empty branch", "if a == b {\n} else {\n_ = f()\n}\nreturn b", "if a != b {\n_ = f()\n}\nreturn b"},
		{"a branch asked twice", "x := 0\nif a {\nx = 1\n} else if a {\nx = 2\n} else {\nx = 3\n}\nreturn g(x)", "var x int\nif a {\nx = 1\n} else {\nx = 3\n}\nreturn g(x)"},
		{"a key that a map has", "x := false\nif a {\nif _, ok := s[b]; ok {\nx = ok\n}\n}\nreturn x", "if a {\n_, ok := s[b]\nreturn ok\n}\nreturn false"},
		{"what follows where it has a value", "var x int\nok := false\nif p != nil {\nx = p.X\nok = true\n}\nif ok {\n_ = g(x)\n}\nreturn a", "if p != nil {\nx := p.X\n_ = g(x)\n}\nreturn a"},
		{"what follows unless it has none", "var x int\nok := false\nif y, has := m[1]; has {\nx = y\nok = true\n}\nif !ok || x == 3 {\nreturn a\n}\nreturn g(x)", "y, has := m[1]\nif !has {\nreturn a\n}\nx := y\nif x == 3 {\nreturn a\n}\nreturn g(x)"},
		{"in a loop it may be from before", "ok := false\nfor range s {\nif f() {\nok = true\n}\nif ok {\n_ = g(1)\n}\n}\nreturn a", "ok := false\nfor range s {\nif f() {\nok = true\n}\nif ok {\n_ = g(1)\n}\n}\nreturn a"},
		{"an empty branch of many", "if a == b {\n} else if c {\n_ = f()\n} else {\n_ = g()\n}\nreturn b", "if a != b {\nif c {\n_ = f()\n} else {\n_ = g()\n}\n}\nreturn b"},
		{"what one branch of two reads", "y := a\nif b {\nx := true\nif c {\nif p != nil {\nx = p.X\n}\n}\ny = x\n}\nreturn g(y)", "y := a\nif b {\nx := true\nif c {\nif p != nil {\nx = p.X\n}\n}\ny = x\n}\nreturn g(y)"},
		{"calls in a branch that is empty", "x := 0\nif a {\nx = 1\n} else if f() {\n}\nreturn g(x)", "x := 0\nif a {\nx = 1\n} else {\n_ = f()\n}\nreturn g(x)"},
		{"and in a value that nothing reads", "x := g(1)\nif x {\nx = g(2)\n}\nreturn a", "x := g(1)\nif x {\n_ = g(2)\n}\nreturn a"},
		{"a closure is left alone", "x := func() bool { return a && a }\nreturn x()", "x := func() bool { return a && a }\nreturn x()"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := func(body string) string {
				src, err := format.Source([]byte("package p\n\nfunc x(a, b, c bool, p *P, s []int, m M) bool {\n" + body + "\n}\n"))
				if err != nil {
					t.Fatal(err)
				}
				return string(src)
			}
			got, err := format.Source(tidied([]byte(file(c.body)), map[string]bool{"rune": true}))
			if err != nil {
				t.Fatal(err)
			}
			if want := file(c.want); string(got) != want {
				t.Errorf("%s\nbecomes\n%s\nwant\n%s", c.body, got, want)
			}
		})
	}
}

const predeclaredSource = `package main

import "fmt"

type Service struct{}

func (s *Service) Do(id string, n int) error { return nil }

var calls int

func comparable(s string) bool { calls++; return calls%2 == 1 }

func rune(s string) int { calls++; return n }

const n = 3

`

// Functions of the package may be called like predeclared types.
func TestFunctionsCalledLikePredeclaredTypesAreCalled(t *testing.T) {
	t.Parallel()
	pkg := keyPackage(t, predeclaredSource+"func main() { fmt.Println() }\n")
	f, m, scope := keyTarget(t, pkg, "Service", "Do")
	var out bytes.Buffer
	out.WriteString("package main\n\nimport \"strconv\"\n\n")
	for i, e := range []expression{
		{"when", "comparable(id) and id != '' and comparable(id)"},
		{"key", "let x = rune(id); n > 3 ? (id ?: string(x)) : 'z'"},
	} {
		key, x, problems := e.parse(scope)
		if key == nil && x == nil {
			t.Logf("%s: %+v", e.text, problems)
			continue
		}
		name := fmt.Sprintf("eval%d", i)
		render := func() (*jen.Statement, []keyArg) { return f.condFunc(m, name, x) }
		if key != nil {
			keyImports(f.imports, &rlparser.Policy{KeyExpr: key})
			render = func() (*jen.Statement, []keyArg) { return f.keyFunc(m, name, key) }
		}
		f.imports.allot(f.scope)
		decl, _ := render()
		if err := decl.Render(&out); err != nil {
			t.Fatal(err)
		}
		out.WriteString("\n\n")
	}
	lines := runKeys(t, map[string]string{
		"a.go": predeclaredSource + `func main() {
	holds := eval0("x")
	fmt.Println("when calls are", holds, calls)
	calls = 0
	eval1(nil, "x", 5)
	fmt.Println("key calls are", calls)
}
`,
		"keys.go": string(tidied(out.Bytes(), declaredIn(pkg))),
	})
	if got := lines["when calls are"]; got != "false 2" {
		t.Errorf("the condition, and the calls: %s", got)
	}
	if got := lines["key calls are"]; got != "1" {
		t.Errorf("calls for the key: %s", got)
	}
}

// tried is a random expression with its function.
type tried struct {
	expression
	name string
	args []keyArg
}

// renderRandom renders functions for expressions in a file of the package of keySource.
func renderRandom(t *testing.T, exprs []expression) (src []byte, list []tried) {
	t.Helper()
	pkg := keyPackage(t, keySource+"\nfunc main() {}\n")
	f, m, scope := keyTarget(t, pkg, "Service", "Do")
	f.wrappers, m.wrapper.methods = []*wrapper{m.wrapper}, []*method{m}
	var render []func() (*jen.Statement, []keyArg)
	for _, e := range exprs {
		key, x, _ := e.parse(scope)
		if key == nil && x == nil {
			continue
		}
		name := fmt.Sprintf("eval%d", len(list))
		switch {
		case key != nil:
			p := &policy{Policy: &rlparser.Policy{KeyExpr: key}, key: &computed{keyFunction: keyFunction{name: name}}}
			keyImports(f.imports, p.Policy)
			m.policy = append(m.policy, p)
			render = append(render, func() (*jen.Statement, []keyArg) { return f.keyFunc(m, name, key) })
		case e.condition():
			condImports(f.imports, x)
			render = append(render, func() (*jen.Statement, []keyArg) { return f.condFunc(m, name, x) })
		default:
			amountImports(f.imports, x)
			render = append(render, func() (*jen.Statement, []keyArg) { return f.amountFunc(m, name, x) })
		}
		list = append(list, tried{e, name, nil})
	}
	f.imports.addType(m.Sig)
	f.imports.allot(f.scope)
	var out bytes.Buffer
	out.WriteString("package main\n\n" + f.imports.decl())
	for i, fn := range render {
		decl, args := fn()
		list[i].args = args
		if err := decl.Render(&out); err != nil {
			t.Fatalf("%s: %v", list[i].text, err)
		}
		out.WriteString("\n\n")
	}
	return out.Bytes(), list
}

// randomExpressions has those of key_random_test.go, which call what has effects, and
// those of key_vm_test.go.
func randomExpressions(n int) (exprs []expression) {
	r := expressions{rand.New(rand.NewPCG(uint64(*keySeed), 5))}
	c := conditions(r)
	name := func() string {
		local := []string{r.text(1), r.number(1), r.condition(1), "sum(req.Items, int(.Qty))", "count(req.Tags, tick(#) == id)", "filter(req.Tags, # != id)"}[r.IntN(6)]
		return "let v = " + local + "; "
	}
	use := func() string {
		return []string{"v == nil", "v != nil", "string(v) == id", "string(v) != req.User", "v", "v > 3", "len(v) > 0"}[r.IntN(7)]
	}
	for i := range n {
		switch i % 7 {
		case 0:
			exprs = append(exprs, expression{"key", r.key()})
		case 1:
			exprs = append(exprs, expression{"when", r.condition(3)})
		case 2:
			exprs = append(exprs, expression{"cost", r.number(3)})
		case 3:
			exprs = append(exprs, expression{"when", c.write(3)})
		case 4:
			exprs = append(exprs, expression{"when", name() + "(" + r.condition(1) + " or " + use() + ") and " + use()})
		case 5:
			exprs = append(exprs, expression{"key", name() + r.condition(1) + " ? " + r.text(2) + " : (" + r.text(1) + " ?? string(v))"})
		default:
			exprs = append(exprs, randomExpression.Example(*keySeed*1000+i))
		}
	}
	return exprs
}

// What is tidied has the same values, and calls the same functions in the same order.
func TestTidiedMeansTheSame(t *testing.T) {
	t.Parallel()
	src, list := renderRandom(t, randomExpressions(1200))
	if len(list) < 500 {
		t.Fatalf("only %d expressions are accepted", len(list))
	}
	declared := declaredIn(keyPackage(t, keySource+"\nfunc main() {}\n"))
	after := bytes.ReplaceAll(tidied(src, declared), []byte("eval"), []byte("tidied"))
	// What is not tidied may have variables that nothing uses.
	before := usingAll(t, src)
	var calls strings.Builder
	for i, e := range list {
		show := map[string]string{"key": "text", "cost": "fmt.Sprint"}[e.kind]
		if show == "" {
			show = "fmt.Sprint"
		}
		args := keyArgs(e.args)
		fmt.Fprintf(&calls, "\tcompare(%d, func(req *Req) string { in := req; _ = in; return %s(eval%d(%s)) }, func(req *Req) string { in := req; _ = in; return %s(tidied%d(%s)) })\n",
			i, show, i, args, show, i, args)
	}
	traced := strings.NewReplacer(
		"ticks++; if r == nil", `trace("Account"); if r == nil`, "ticks++; r.Acct", `trace("Wipe"); r.Acct`,
		"ticks++; return s", "trace(s); return s").Replace(keySource)
	inputs := []string{"full()", "nil", "{}"}
	for i := range 12 {
		inputs = append(inputs, randomRequest.Example(*keySeed*1000+i))
	}
	main := "package main\n\nimport (\n\t\"context\"\n\t\"fmt\"\n\t\"net/netip\"\n\t\"" + runtimePath + "\"\n)\n" +
		strings.ReplaceAll(strings.Replace(tidyMain, "CALLS", calls.String(), 1), "INPUTS", strings.Join(inputs, ",\n\t\t"))
	lines := runKeys(t, map[string]string{"a.go": traced, "before.go": before, "after.go": string(after), "main.go": main})
	if lines["compared all -"] != fmt.Sprint(len(list)*len(inputs)) {
		t.Errorf("compared %q", lines["compared all -"])
	}
	failed := 0
	for i, e := range list {
		if got, ok := lines[fmt.Sprintf("differs %d -", i)]; ok {
			if failed++; failed < 10 {
				t.Errorf("%s %s: %s\n%s\n%s", e.kind, e.text, got, functionText(t, before, e.name), functionText(t, string(after), strings.Replace(e.name, "eval", "tidied", 1)))
			}
		}
	}
}

const tidyMain = `
var traces []string

func trace(s string) { traces = append(traces, s) }

var input, compared int

func call(f func(*Req) string, req *Req) (s string) {
	traces = nil
	defer func() {
		if p := recover(); p != nil {
			s = fmt.Sprint("panic: ", p)
		}
		s = fmt.Sprintf("%q after %q", s, traces)
	}()
	return f(req)
}

func compare(i int, before, after func(*Req) string) {
	compared++
	x, y := call(before, reqs()[input]), call(after, reqs()[input])
	if x != y {
		fmt.Printf("differs %d - for input %d, %s became %s\n", i, input, x, y)
	}
}

func main() {
	for input = range reqs() {
		ctx := context.Background()
		if input%2 == 0 {
			ctx = ratelimit.WithRequest(ctx, &ratelimit.Request{Addr: netip.MustParseAddr("192.0.2.1"), User: "caller", Role: "admin", Source: source{}})
		}
		var err error
		s := &Service{region: "eu", owner: &Account{ID: "own"}}
		all(ctx, s, err, make([]byte, 0, 64))
	}
	fmt.Printf("compared all - %d\n", compared)
}

func all(ctx context.Context, s *Service, err error, buf []byte) {
CALLS}

func reqs() []*Req {
	return []*Req{
		INPUTS,
	}
}

func text(b []byte) string {
	if b == nil {
		return "-"
	}
	return string(b)
}

type source struct{}

func (source) Header(name string) string { return map[string]string{"X-Tenant": "acme", "X": "a"}[name] }
func (source) Query(name string) string  { return "" }
func (source) Cookie(name string) string { return "" }
func (source) Route() string             { return "" }
` + fullReq

// usingAll adds uses of all variables of functions.
func usingAll(t *testing.T, src []byte) string {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := tidier{src: src, start: file.FileStart}
	in := func(list []ast.Stmt) {
		for _, s := range list {
			for _, id := range declares(s) {
				if _, ok := s.(*ast.RangeStmt); !ok {
					f.replace(s.End(), s.End(), "; _ = "+id.Name)
				}
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			return n.Tok != token.IMPORT
		case *ast.BlockStmt:
			in(n.List)
		}
		return true
	})
	uses := "\n"
	for name, path := range imported(file) {
		uses += map[string]string{
			"math": "var _ = " + name + ".Abs\n", "regexp": "var _ = " + name + ".Compile\n", "strconv": "var _ = " + name + ".Itoa\n",
			"strings": "var _ = " + name + ".ToLower\n", "unicode/utf8": "var _ = " + name + ".RuneLen\n", "slices": "var _ = " + name + ".Max[[]int]\n",
		}[path]
	}
	return string(f.edited()) + uses
}

func functionText(t *testing.T, src, name string) string {
	t.Helper()
	_, rest, _ := strings.Cut(src, "func "+name+"(")
	rest, _, _ = strings.Cut(rest, "\n}\n")
	return "func " + name + "(" + rest + "\n}"
}

// Nothing is left that staticcheck or ineffassign would report, or a reader would wonder
// at.
func TestTidiedCodeAsksAndSetsNothingInVain(t *testing.T) {
	t.Parallel()
	src, list := renderRandom(t, randomExpressions(2500))
	declared := declaredIn(keyPackage(t, keySource+"\nfunc main() {}\n"))
	src = tidied(src, declared)
	if again := tidied(src, declared); !bytes.Equal(again, src) {
		t.Error("there is more to do the second time")
	}
	file, err := parser.ParseFile(token.NewFileSet(), "", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	for _, d := range file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		for _, problem := range inVain(fn) {
			if failed++; failed < 10 {
				var i int
				fmt.Sscanf(fn.Name.Name, "eval%d", &i) //nolint:errcheck // the first if it has another name
				t.Errorf("%s %s: %s\n%s", list[i].kind, list[i].text, problem, functionText(t, string(src), fn.Name.Name))
			}
		}
	}
	t.Logf("%d of %d functions", failed, len(list))
}

// inVain lists what fn asks or sets in vain.
func inVain(fn *ast.FuncDecl) (problems []string) {
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			if len(n.Body.List) == 0 {
				problems = append(problems, "an empty branch")
			}
			if e, ok := n.Else.(*ast.BlockStmt); ok && len(e.List) == 0 {
				problems = append(problems, "an empty else")
			}
			if literalBool(n.Cond) != unknown {
				problems = append(problems, "a constant condition")
			}
			seen := map[string]bool{types.ExprString(n.Cond): true}
			for e, ok := n.Else.(*ast.IfStmt); ok; e, ok = e.Else.(*ast.IfStmt) {
				cond := types.ExprString(e.Cond)
				if seen[cond] && !strings.Contains(cond, "(") {
					problems = append(problems, "the same condition twice: "+cond)
				}
				seen[cond] = true
			}
		case *ast.RangeStmt:
			if len(n.Body.List) == 0 {
				problems = append(problems, "an empty loop")
			}
		case *ast.BinaryExpr:
			logical := n.Op == token.LAND || n.Op == token.LOR
			if logical && literalBool(n.X) != unknown || logical && literalBool(n.Y) == valueOf(n.Op == token.LAND) {
				problems = append(problems, "a constant operand of "+n.Op.String())
			}
		case *ast.UnaryExpr:
			if n.Op == token.NOT && literalBool(n.X) != unknown {
				problems = append(problems, "a constant operand of !")
			}
		}
		return true
	})
	// As ineffassign does: an assignment is in vain if no way leads from it to a use.
	graph := cfg.New(fn.Body, func(*ast.CallExpr) bool { return true })
	live := map[*cfg.Block]map[string]bool{}
	visit := func(b *cfg.Block, report bool) map[string]bool {
		out := map[string]bool{}
		for _, next := range b.Succs {
			for name := range live[next] {
				out[name] = true
			}
		}
		for i := len(b.Nodes) - 1; i >= 0; i-- {
			uses, sets := flow(b.Nodes[i])
			for _, name := range sets {
				if report && !out[name] {
					problems = append(problems, "a value of "+name+" that nothing reads")
				}
				delete(out, name)
			}
			for _, name := range uses {
				out[name] = true
			}
		}
		return out
	}
	for changed := true; changed; {
		changed = false
		for _, b := range graph.Blocks {
			if in := visit(b, false); len(in) != len(live[b]) {
				live[b], changed = in, true
			}
		}
	}
	for _, b := range graph.Blocks {
		if b.Live {
			visit(b, true)
		} else if len(b.Nodes) > 0 {
			problems = append(problems, "what is never reached")
		}
	}
	return problems
}

// flow lists the variables that n reads, and those that it sets to what it computes.
func flow(n ast.Node) (uses, sets []string) {
	read := func(n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				uses = append(uses, id.Name)
			}
			return true
		})
	}
	switch n := n.(type) {
	case *ast.AssignStmt:
		for _, x := range n.Lhs {
			id, ok := x.(*ast.Ident)
			if !ok || n.Tok != token.ASSIGN && n.Tok != token.DEFINE {
				read(x)
			} else if id.Name != "_" {
				sets = append(sets, id.Name)
			}
		}
		for _, x := range n.Rhs {
			read(x)
		}
	case *ast.ValueSpec:
		if len(n.Values) > 0 {
			sets = append(sets, n.Names[0].Name)
			read(n.Values[0])
		}
	case *ast.DeclStmt:
		return flow(n.Decl.(*ast.GenDecl).Specs[0])
	case *ast.RangeStmt:
	default:
		read(n)
	}
	return uses, sets
}
