package generator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/types"
	"math/rand/v2"
	"strings"
	"testing"

	rlparser "github.com/ratelimitgen/ratelimitgen/parser"
	"github.com/ratelimitgen/ratelimitgen/parser/keyexpr"
)

// tree is an expression for the interpreter in keyReference.
type tree struct {
	Op    string  `json:",omitempty"`
	Name  string  `json:",omitempty"`
	Type  string  `json:",omitempty"`
	Index int     `json:",omitempty"`
	Flags []bool  `json:",omitempty"`
	Args  []*tree `json:",omitempty"`
}

// treeOf writes n for the interpreter.
func treeOf(pkg *types.Package, n keyexpr.Node) *tree {
	t := &tree{Op: strings.TrimPrefix(fmt.Sprintf("%T", n), "*keyexpr.")}
	t.Type = types.TypeString(types.Default(n.Type()), types.RelativeTo(pkg))
	for _, o := range n.Operands() {
		t.Args = append(t.Args, treeOf(pkg, o))
	}
	switch n := n.(type) {
	case *keyexpr.Dim:
		t.Name = string(n.Kind)
	case *keyexpr.Const:
		t.Name = strings.Trim(n.Value.ExactString(), `"`)
	case *keyexpr.Param:
		t.Index = n.Index
	case *keyexpr.Global:
		t.Name = n.Var.Name()
	case *keyexpr.Field:
		t.Name = n.Path[len(n.Path)-1].Name()
	case *keyexpr.Call:
		t.Name = n.Fn.Name()
		if n.X != nil {
			t.Index = 1
		}
	case *keyexpr.Builtin:
		t.Name = n.Name
	case *keyexpr.Unary:
		t.Name = n.Op
	case *keyexpr.Binary:
		t.Name = n.Op
	case *keyexpr.Default:
		for _, a := range n.Alts {
			t.Flags = append(t.Flags, a.NotEmpty)
		}
	}
	return t
}

// keyReference interprets expressions by the rules of package keyexpr's comment, by
// reflection: another way to the same values.
const keyReference = `package main

import (
	"context"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

type tree struct {
	Op, Name, Type string
	Index          int
	Flags          []bool
	Args           []*tree
}

type env struct {
	params []any
	s      *Service
	caller *ratelimit.Request
}

var typesByName = map[string]reflect.Type{
	"string": reflect.TypeFor[string](), "bool": reflect.TypeFor[bool](), "Flag": reflect.TypeFor[Flag](), "int": reflect.TypeFor[int](), "uint8": reflect.TypeFor[uint8](), "int64": reflect.TypeFor[int64](),
	"TenantID": reflect.TypeFor[TenantID](), "Region": reflect.TypeFor[Region](),
}

var funcs = map[string]any{"tick": tick, "joinAll": joinAll, "same": same, "item": item}

type address struct{}

func isNil(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice:
		return v.IsNil()
	}
	return false
}

// all evaluates every operand; ok if none is absent.
func (e *env) all(ts []*tree) ([]reflect.Value, bool) {
	var vs []reflect.Value
	for _, t := range ts {
		v, ok := e.eval(t)
		if !ok {
			return nil, false
		}
		vs = append(vs, v)
	}
	return vs, true
}

func (e *env) holds(t *tree) bool {
	v, ok := e.eval(t)
	return ok && v.Bool()
}

func (e *env) eval(t *tree) (v reflect.Value, ok bool) {
	switch t.Op {
	case "Dim":
		switch {
		case e.caller == nil:
			return v, false
		case t.Name == "ip":
			return reflect.ValueOf(address{}), e.caller.Addr.IsValid()
		}
		return reflect.ValueOf(e.caller.User), e.caller.User != ""
	case "Const":
		return e.constant(t), true
	case "Param":
		return reflect.ValueOf(e.params[t.Index]), true
	case "Recv":
		return reflect.ValueOf(e.s), true
	case "Global":
		return map[string]reflect.Value{"defaultTenant": reflect.ValueOf(defaultTenant), "noAccount": reflect.ValueOf(noAccount)}[t.Name], true
	case "Cond":
		if e.holds(t.Args[0]) {
			return e.eval(t.Args[1])
		}
		return e.eval(t.Args[2])
	case "Default":
		for i, a := range t.Args {
			v, ok := e.eval(a)
			if i == len(t.Args)-1 || ok && !isNil(v) && !(t.Flags[i] && v.Kind() == reflect.String && v.Len() == 0) {
				return v, ok
			}
		}
	case "Unary":
		if t.Name == "!" {
			return reflect.ValueOf(!e.holds(t.Args[0])), true
		}
	case "Binary":
		if v, done := e.logical(t); done {
			return v, true
		}
	}
	vs, ok := e.all(t.Args)
	if !ok {
		return v, false
	}
	switch t.Op {
	case "Field":
		x := vs[0]
		if isNil(x) {
			return v, false
		}
		x = reflect.Indirect(x)
		if f := x.FieldByName(t.Name); f.CanAddr() {
			return reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem(), true
		} else {
			return f, true
		}
	case "Index":
		if vs[0].Kind() == reflect.Map {
			v = vs[0].MapIndex(vs[1])
			return v, v.IsValid()
		}
		i := vs[1].Convert(typesByName["int"]).Int()
		if i < 0 || i >= int64(vs[0].Len()) {
			return v, false
		}
		return vs[0].Index(int(i)), true
	case "Call":
		fn := reflect.ValueOf(funcs[t.Name])
		if t.Index == 1 {
			if isNil(vs[0]) {
				return v, false
			}
			fn, vs = vs[0].MethodByName(t.Name), vs[1:]
		}
		return fn.Call(vs)[0], true
	case "Convert":
		if t.Type == "string" {
			return reflect.ValueOf(text(vs[0])), true
		}
		return vs[0].Convert(typesByName[t.Type]), true
	case "Join":
		joined := ""
		for _, v := range vs {
			joined += v.String()
		}
		return reflect.ValueOf(joined), true
	case "Builtin":
		switch x := vs[0]; t.Name {
		case "lower":
			return reflect.ValueOf(strings.ToLower(x.String())), true
		case "trim":
			return reflect.ValueOf(strings.Trim(x.String(), vs[1].String())), true
		case "len":
			if x.Kind() == reflect.String {
				return reflect.ValueOf(utf8.RuneCountInString(x.String())), true
			}
			return reflect.ValueOf(x.Len()), true
		}
	case "Unary":
		return reflect.ValueOf(int(-vs[0].Int())), true
	case "Binary":
		x, y := vs[0].Int(), vs[1].Int()
		switch t.Name {
		case "+":
			return reflect.ValueOf(int(x + y)), true
		case "-":
			return reflect.ValueOf(int(x - y)), true
		case "*":
			return reflect.ValueOf(int(x * y)), true
		case "<":
			return reflect.ValueOf(x < y), true
		}
		if y == 0 {
			return v, false
		}
		if t.Name == "/" {
			return reflect.ValueOf(int(x / y)), true
		}
		return reflect.ValueOf(int(x % y)), true
	}
	panic(t.Op + " " + t.Name)
}

// logical evaluates what is never absent.
func (e *env) logical(t *tree) (v reflect.Value, done bool) {
	result := false
	switch t.Name {
	case "&&":
		result = e.holds(t.Args[0]) && e.holds(t.Args[1])
	case "||":
		result = e.holds(t.Args[0]) || e.holds(t.Args[1])
	case "==", "!=":
		if t.Args[1].Op == "Nil" {
			v, ok := e.eval(t.Args[0])
			result = !ok || isNil(v)
		} else {
			x, xok := e.eval(t.Args[0])
			y, yok := e.eval(t.Args[1])
			result = xok == yok && (!xok || x.Equal(y))
		}
		if t.Name == "!=" {
			result = !result
		}
	default:
		return v, false
	}
	return reflect.ValueOf(result), true
}

func (e *env) constant(t *tree) reflect.Value {
	typ, ok := typesByName[t.Type]
	if !ok {
		panic("type " + t.Type)
	}
	switch typ.Kind() {
	case reflect.String:
		return reflect.ValueOf(t.Name).Convert(typ)
	case reflect.Bool:
		return reflect.ValueOf(t.Name == "true").Convert(typ)
	}
	n, err := strconv.Atoi(t.Name)
	if err != nil {
		panic(err)
	}
	return reflect.ValueOf(n).Convert(typ)
}

func text(v reflect.Value) string {
	switch {
	case v.Kind() == reflect.String:
		return v.String()
	case v.Kind() == reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10)
	}
	return strconv.FormatUint(v.Uint(), 10)
}

// mayBeText reports whether t, which was an address, is a text for another call.
func mayBeText(t *tree) bool {
	switch t.Op {
	case "Dim":
		return t.Name != "ip"
	case "Let":
		return mayBeText(t.Args[len(t.Args)-1])
	case "Cond":
		return mayBeText(t.Args[1]) || mayBeText(t.Args[2])
	case "Default":
		for _, a := range t.Args {
			if mayBeText(a) {
				return true
			}
		}
		return false
	}
	typ, ok := typesByName[t.Type]
	return ok && typ.Kind() == reflect.String
}

func separated(b []byte) []byte {
	if len(b) > 0 {
		b = append(b, '|')
	}
	return b
}

// reference computes the key of the trees in src.
func reference(src string, raw bool, ctx context.Context, s *Service, req *Req) []byte {
	var elems []*tree
	if err := json.Unmarshal([]byte(src), &elems); err != nil {
		panic(err)
	}
	e := &env{params: []any{ctx, req, req, "id", 42, uint8(200), int64(-5), TenantID("tag"), true}, s: s, caller: ratelimit.RequestFrom(ctx)}
	b := make([]byte, 0, 64)
	for _, t := range elems {
		v, ok := e.eval(t)
		switch {
		case !ok:
			return nil
		case v.Type() == reflect.TypeFor[address]():
			if b = separated(b); mayBeText(t) {
				b = append(b, '\\')
			}
			b = append(b, ratelimit.AppendIP([]byte{}, e.caller)...)
		case raw:
			return append(b, text(v)...)
		default:
			b = ratelimit.AppendText(b, text(v))
		}
	}
	return b
}
`

func TestGeneratedCodeAgreesWithAnInterpreter(t *testing.T) {
	t.Parallel()
	pkg := keyPackage(t, keySource+"\nfunc main() {}\n")
	f, m, scope := keyTarget(t, pkg, "Service", "Do")
	r := expressions{rand.New(rand.NewPCG(3, 4))}
	var policies []*policy
	var sources []string
	for len(policies) < 400 {
		text := r.key()
		k, _ := keyexpr.ParseKey(text, scope)
		if k == nil || strings.Contains(text, "Wipe") {
			continue // what a call changes may or may not be read before
		}
		p := &policy{Policy: &rlparser.Policy{KeyExpr: k}, key: &computed{keyFunction: keyFunction{name: fmt.Sprintf("key%d", len(policies))}}}
		keyImports(f.imports, p.Policy)
		policies, sources = append(policies, p), append(sources, text)
	}
	f.imports.addType(m.Sig)
	for path, name := range map[string]string{"fmt": "fmt", "net/netip": "netip", runtimePath: "ratelimit", "github.com/expr-lang/expr": "expr"} {
		f.imports.add(path, name)
	}
	f.imports.allot(f.scope)
	var out, calls bytes.Buffer
	out.WriteString("package main\n\n" + f.imports.decl())
	for i, p := range policies {
		decl, args := f.keyFunc(m, p.key.name, p.KeyExpr)
		if err := decl.Render(&out); err != nil {
			t.Fatal(err)
		}
		out.WriteString("\n\n")
		var trees []*tree
		for _, n := range p.KeyExpr.Elems {
			trees = append(trees, treeOf(pkg, n))
		}
		b, err := json.Marshal(trees)
		if err != nil {
			t.Fatal(err)
		}
		raw := len(trees) == 1 && !chosenDim(p.KeyExpr.Elems[0])
		fmt.Fprintf(&calls, "\treport(%d, i, func(req, in *Req, buf []byte) []byte { return key%d(%s) })\n", i, i, keyArgs(args))
		fmt.Fprintf(&calls, "\treport(%d, i, func(req, in *Req, buf []byte) []byte { return reference(%q, %v, ctx, s, req) })\n", i+len(policies), b, raw)
	}
	out.WriteString(keyMain + "\nvar _ = expr.Run\n\nfunc call(i int, ctx context.Context, s *Service) {\n" + calls.String() + "}\n")
	values := runKeys(t, map[string]string{"a.go": keySource, "keys.go": out.String(), "reference.go": keyReference})
	present := 0
	for i, text := range sources {
		for input := range 3 {
			_, got, ok := strings.Cut(values[fmt.Sprintf("key %d %d", i, input)], " ")
			_, want, _ := strings.Cut(values[fmt.Sprintf("key %d %d", i+len(sources), input)], " ")
			if !ok || got != want {
				t.Errorf("%s, input %d: %q, the interpreter says %q", text, input, got, want)
			}
			if want != "-" {
				present++
			}
		}
	}
	if present < len(sources)/2 {
		t.Errorf("only %d values of %d are present", present, 3*len(sources))
	}
}
