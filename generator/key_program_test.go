package generator

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/dave/jennifer/jen"

	rlparser "github.com/ratelimitgen/ratelimitgen/parser"
	"github.com/ratelimitgen/ratelimitgen/parser/keyexpr"
)

// expression is a key, a condition ("when") or a cost, which is evaluated before
// the call, or a condition ("count") or a cost ("after") that knows results.
type expression struct{ kind, text string }

func (e expression) condition() bool { return e.kind == "when" || e.kind == "count" }

// parse returns the key or the expression; both are nil if e is refused.
func (e expression) parse(s *keyexpr.Scope) (key *keyexpr.Key, x *keyexpr.Expr, problems []keyexpr.Problem) {
	after := *s
	after.Results = s.Sig.Results()
	switch e.kind {
	case "key":
		key, problems = keyexpr.ParseKey(e.text, s)
	case "when":
		x, problems = keyexpr.ParseCondition(e.text, s)
	case "count":
		x, problems = keyexpr.ParseCondition(e.text, &after)
	case "after":
		x, problems = keyexpr.ParseCost(e.text, &after)
	default:
		x, problems = keyexpr.ParseCost(e.text, s)
	}
	return key, x, problems
}

// evaluation is what became of an expression for one input. Absent values are "-",
// for a cost and from expr's interpreter too; errors of that are "!".
type evaluation struct{ ours, vm string }

// forgiving reports whether n turns absent values into others, so that it can have
// a value where expr's interpreter stops.
func forgiving(nodes []keyexpr.Node) bool {
	for _, n := range nodes {
		if keyexpr.Contains(n, func(n keyexpr.Node) bool {
			switch n := n.(type) {
			case *keyexpr.Cond, *keyexpr.Default, *keyexpr.In:
				return true
			case *keyexpr.Unary:
				return n.Op == "!"
			case *keyexpr.Binary:
				return strings.Contains("== != && ||", n.Op)
			case *keyexpr.Loop:
				return n.Op != "map" && n.Op != "sum"
			}
			return false
		}) {
			return true
		}
	}
	return false
}

// evaluate compiles the expressions into one program, and runs them, and expr's
// interpreter without its optimizer, for every input, an expression of type *Req in
// Go. The second result tells which of the expressions are forgiving.
func evaluate(t *testing.T, exprs []expression, inputs []string) (values [][]evaluation, lenient []bool) {
	t.Helper()
	pkg := keyPackage(t, keySource+"\nfunc main() {}\n")
	f, m, scope := keyTarget(t, pkg, "Service", "Do")
	type function struct {
		render func() (*jen.Statement, []keyArg)
		nodes  []keyexpr.Node
		filled bool // the key is never empty
	}
	var functions []function
	f.wrappers, m.wrapper.methods = []*wrapper{m.wrapper}, []*method{m}
	for i, e := range exprs {
		name := fmt.Sprintf("eval%d", i)
		key, x, problems := e.parse(scope)
		if key == nil && x == nil {
			t.Fatalf("%s: %+v", e.text, problems)
		}
		var fn function
		switch {
		case key != nil:
			p := &policy{Policy: &rlparser.Policy{KeyExpr: key}, key: &computed{keyFunction: keyFunction{name: name}}}
			keyImports(f.imports, p.Policy)
			m.policy = append(m.policy, p)
			fn = function{func() (*jen.Statement, []keyArg) { return f.keyFunc(m, p.key.name, p.KeyExpr) }, key.Nodes(), !key.MayBeEmpty()}
		case e.condition():
			condImports(f.imports, x)
			fn = function{func() (*jen.Statement, []keyArg) { return f.condFunc(m, name, x) }, []keyexpr.Node{x.Node}, false}
		default:
			amountImports(f.imports, x)
			fn = function{func() (*jen.Statement, []keyArg) { return f.amountFunc(m, name, x) }, []keyexpr.Node{x.Node}, false}
		}
		functions = append(functions, fn)
		lenient = append(lenient, forgiving(fn.nodes))
	}
	f.imports.addType(m.Sig)
	for path, name := range map[string]string{"context": "context", "fmt": "fmt", "net/netip": "netip", runtimePath: "ratelimit", "github.com/expr-lang/expr": "expr", "github.com/expr-lang/expr/vm": "vm"} {
		f.imports.add(path, name)
	}
	f.imports.allot(f.scope)
	var out, calls bytes.Buffer
	out.WriteString("package main\n\n" + f.imports.decl())
	for i, fn := range functions {
		decl, args := fn.render()
		if err := decl.Render(&out); err != nil {
			t.Fatalf("%s: %v", exprs[i].text, err)
		}
		out.WriteString("\n\n")
		show := map[string]string{"key": "text", "cost": "amount", "after": "amount"}[exprs[i].kind]
		if show == "" {
			show = "fmt.Sprint"
		}
		fmt.Fprintf(&calls, "\tours(%d, i, func() string { return %s(eval%d(%s)) })\n\tinterpreted(%d, i, %q, env(ctx, s, req, err))\n",
			i, show, i, keyArgs(args), i, exprs[i].text)
	}
	out.WriteString(vmMain + "\nfunc eval(i int, ctx context.Context, s *Service, req *Req, err error) {\n\tin, buf := req, make([]byte, 0, 64)\n\t_, _ = in, buf\n" + calls.String() +
		"}\n\nfunc reqs() []*Req {\n\treturn []*Req{\n\t\t" + strings.Join(inputs, ",\n\t\t") + ",\n\t}\n}\n")
	lines := runKeys(t, map[string]string{"a.go": keySource, "keys.go": string(tidied(out.Bytes(), declaredIn(pkg)))})
	for i := range exprs {
		values = append(values, nil)
		for j := range inputs {
			ours, ok1 := lines[fmt.Sprintf("ours %d %d", i, j)]
			vm, ok2 := lines[fmt.Sprintf("expr %d %d", i, j)]
			if !ok1 || !ok2 {
				t.Fatalf("%s, input %d: no value", exprs[i].text, j)
			}
			if functions[i].filled && (ours == "-" || ours == "") {
				t.Errorf("%s, input %d: %q, though the key is never empty", exprs[i].text, j, ours)
			}
			if vm == "-1" && (exprs[i].kind == "cost" || exprs[i].kind == "after") {
				vm = "-" // our function returns -1 for both
			}
			if vm == "-" && exprs[i].condition() {
				vm = "false" // what an absent condition is
			}
			values[i] = append(values[i], evaluation{ours, vm})
		}
	}
	return values, lenient
}

const vmMain = `
// The caller is known for the inputs with even numbers, and the call fails for those
// that 3 divides.
func main() {
	s := &Service{region: "eu"}
	for i, req := range reqs() {
		ctx := context.Background()
		if i%2 == 0 {
			ctx = ratelimit.WithRequest(ctx, &ratelimit.Request{Addr: netip.MustParseAddr("192.0.2.1"), User: "caller", Role: "admin", Method: "GET", Path: "/orders/7", Route: "/orders/{id}", Source: source{}})
		}
		var err error
		if i%3 == 0 {
			err = fmt.Errorf("failure %d", i)
		}
		eval(i, ctx, s, req, err)
	}
}

type source struct{}

func (source) Header(name string) string { return map[string]string{"X-Tenant": "acme", "Authorization": "Bearer x"}[name] }
func (source) Query(name string) string  { return map[string]string{"team": "blue"}[name] }
func (source) Cookie(name string) string { return map[string]string{"sid": "s1"}[name] }
func (source) Route() string             { return "" }

` + fullReq + `func text(b []byte) string {
	if b == nil {
		return "-"
	}
	return string(b)
}

func amount(n int64) string {
	if n == -1 {
		return "-"
	}
	return fmt.Sprint(n)
}

func ours(expr, input int, f func() string) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Printf("ours %d %d panic: %v\n", expr, input, p)
		}
	}()
	fmt.Printf("ours %d %d %s\n", expr, input, f())
}

func env(ctx context.Context, s *Service, req *Req, err error) map[string]any {
	var user any
	if r := ratelimit.RequestFrom(ctx); r != nil {
		user = r.User
	}
	return map[string]any{
		"user": user, "ctx": ctx, "req": req, "id": "id", "n": 42, "u": uint8(200), "neg": int64(-5), "tag": TenantID("tag"), "s": s, "err": err,
		"tenantOf": tenantOf, "tick": tick, "joinAll": joinAll, "box": box, "item": item, "same": same,
		"noAccount": noAccount, "defaultTenant": defaultTenant, "prefix": prefix, "shards": shards, "maxRegion": maxRegion,
	}
}

var programs = map[int]*vm.Program{}

func interpreted(i, input int, src string, env map[string]any) {
	value := "!"
	program := programs[i]
	if program == nil {
		program, _ = expr.Compile(src, expr.Optimize(false))
		programs[i] = program
	}
	if program != nil {
		if v, err := expr.Run(program, env); err == nil {
			if value = fmt.Sprint(v); v == nil {
				value = "-"
			}
		}
	}
	fmt.Printf("expr %d %d %s\n", i, input, value)
}
`

// fullReq is a request that has everything.
const fullReq = `func full() *Req {
	return &Req{
		Base: &Base{BaseID: "base"}, Tenant: "ACME", User: "ann", Email: "Ann@Example.ORG", Shard: 35, Small: -7, Region: 3,
		Admin: true, Beta: true,
		Acct:  &Account{ID: "a1", Num: 9, secret: "s3", Parent: &Account{ID: "boss"}},
		Owner: &Account{ID: "own"},
		Tags: []string{"t0", "t1"}, Items: []Item{{SKU: "sku", Qty: 200}, {SKU: "b", Qty: 100}}, Ptrs: []*Account{nil, {ID: "p1"}},
		Labels: map[string]string{"tenant": "L", "empty": ""}, Quota: map[Region]int{3: 30},
		ByUser: map[TenantID]*Account{"ACME": {ID: "by"}, "NIL": nil},
		Pair: [2]string{"x", "y"}, Raw: []byte("raw"), N: 7, D: 2, Amount: 99.5, Rate: 0.5, Scores: []float64{1.5, 2.5},
	}
}

`
