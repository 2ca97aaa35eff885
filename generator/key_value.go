package generator

import (
	"go/constant"
	"go/types"
	"strconv"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimitgen/ratelimitgen/parser/keyexpr"
)

// val is a Go expression.
type val struct {
	text    string
	prec    int
	use     use
	literal bool // it has the type that is asked for
	// Of a condition: what holds if it does, and if it does not.
	ifTrue, ifFalse map[string]bool
}

// use says how often an expression may be written.
type use uint8

const (
	useOnce   use = iota // it calls something
	useAgain             // until something is called
	useAlways            // a constant or a variable that nothing changes
)

// Precedences of Go's operators.
const (
	precOr = iota + 1
	precAnd
	precCompare
	precAdd
	precMul
	precUnary
	precPrimary
)

var precedence = map[string]int{
	"||": precOr, "&&": precAnd,
	"==": precCompare, "!=": precCompare, "<": precCompare, "<=": precCompare, ">": precCompare, ">=": precCompare,
	"+": precAdd, "-": precAdd, "*": precMul, "/": precMul, "%": precMul,
}

func name(text string) val { return val{text: text, prec: precPrimary, use: useAlways} }

// in returns the text as an operand that must bind at least as tight as prec.
func (v val) in(prec int) string {
	if v.prec < prec {
		return "(" + v.text + ")"
	}
	return v.text
}

// value renders n. What it depends on is required of b.
func (k *keyCode) value(b *block, n keyexpr.Node) val {
	switch n := n.(type) {
	case *keyexpr.Dim:
		return k.dim(b, n)
	case *keyexpr.Const:
		return constVal(n)
	case *keyexpr.Param:
		return name(k.param[n.Index])
	case *keyexpr.Result:
		return name(k.res[n.Index])
	case *keyexpr.Local:
		return k.localValue(b, n)
	case *keyexpr.Let:
		k.bind(b, n.Local)
		return k.value(b, n.Body)
	case *keyexpr.Loop:
		return k.loop(b, n)
	case *keyexpr.In:
		return k.cond(b, n)
	case *keyexpr.Match:
		v := k.text(k.value(b, n.X), n.X.Type())
		return val{text: k.pattern(n.Pattern) + ".MatchString(" + v.text + ")", prec: precPrimary, use: min(v.use, useAgain)}
	case *keyexpr.Recv:
		return name(k.next)
	case *keyexpr.Global:
		return val{text: n.Var.Name(), prec: precPrimary, use: useAgain}
	case *keyexpr.Field:
		x := k.through(b, n.X, k.value(b, n.X), n.Path[:len(n.Path)-1])
		return val{text: x.in(precPrimary) + "." + n.Path[len(n.Path)-1].Name(), prec: precPrimary, use: min(x.use, useAgain)}
	case *keyexpr.Index:
		return k.index(b, n)
	case *keyexpr.Call:
		return k.call(b, n)
	case *keyexpr.Convert:
		return k.convert(b, n)
	case *keyexpr.Builtin:
		return k.builtin(b, n)
	case *keyexpr.Unary:
		if n.Op == "!" {
			return k.cond(b, n)
		}
		return k.negative(b, n)
	case *keyexpr.Binary:
		switch n.Op {
		case "==", "!=", "&&", "||":
			return k.cond(b, n)
		}
		return k.binary(b, n)
	case *keyexpr.Join:
		vals := k.operands(b, n.Parts)
		texts := make([]string, len(vals))
		least := useAlways
		for i, v := range vals {
			texts[i] = k.text(v, n.Parts[i].Type()).in(precAdd + 1)
			least = min(least, v.use)
		}
		return val{text: strings.Join(texts, " + "), prec: precAdd, use: least}
	}
	v, ok := k.variable(b, n)
	if ok != "" {
		b.require(check{ok, "!" + ok}, true)
	}
	return v
}

// dim requires that the request tells n.
func (k *keyCode) dim(b *block, n *keyexpr.Dim) val {
	if v, ok := k.lookup(n); ok {
		v = k.keep(b, n, v, useAlways)
		b.require(check{v.text + ` != ""`, v.text + ` == ""`}, true)
		return v
	}
	caller := k.request()
	b.require(check{caller + " != nil", caller + " == nil"}, true)
	if n.Kind == keyexpr.IP {
		v := val{text: caller + ".Addr", prec: precPrimary, use: useAlways}
		b.require(check{v.text + ".IsValid()", "!" + v.text + ".IsValid()"}, true)
		return v
	}
	v := val{text: caller + "." + upperFirst(string(n.Kind)), prec: precPrimary, use: useAlways}
	b.require(check{v.text + ` != ""`, v.text + ` == ""`}, true)
	return v
}

// lookup renders what the request is asked for by a call, which a nil request
// answers too; ok is false for a dimension that is a field.
func (k *keyCode) lookup(n *keyexpr.Dim) (v val, ok bool) {
	method := map[keyexpr.DimKind]string{
		keyexpr.Header: "Header", keyexpr.Query: "Query", keyexpr.Cookie: "Cookie", keyexpr.Route: "RoutePattern",
	}[n.Kind]
	arg := ""
	if n.Name != "" {
		arg = strconv.Quote(n.Name)
	}
	if method == "" {
		return val{}, false
	}
	return val{text: k.request() + "." + method + "(" + arg + ")", prec: precPrimary}, true
}

func constVal(n *keyexpr.Const) val {
	if n.Name != "" {
		return name(n.Name)
	}
	v := name(n.Value.ExactString())
	v.literal = true
	switch {
	case n.Value.Kind() == constant.String:
		v.text = strconv.Quote(constant.StringVal(n.Value))
	case n.Value.Kind() == constant.Float:
		f, _ := constant.Float64Val(n.Value)
		v.text = strconv.FormatFloat(f, 'g', -1, 64)
		if !strings.ContainsAny(v.text, ".e") {
			v.text += ".0"
		}
	}
	if strings.HasPrefix(v.text, "-") {
		v.prec = precUnary
	}
	return v
}

// operands renders nodes that are evaluated one after the other. Where one of them
// calls something, all are evaluated before any is used.
func (k *keyCode) operands(b *block, nodes []keyexpr.Node) []val {
	calls, others := false, 0
	for _, n := range nodes {
		if keyexpr.ConstValue(n) == nil {
			others++
		}
		calls = calls || keyexpr.Contains(n, isCall)
	}
	vals := make([]val, len(nodes))
	for i, n := range nodes {
		vals[i] = k.value(b, n)
		if calls && others > 1 {
			vals[i] = k.keep(b, n, vals[i], useAlways)
		}
	}
	return vals
}

func isCall(n keyexpr.Node) bool { _, ok := n.(*keyexpr.Call); return ok }

// keep makes v a variable if it cannot be written as often as need says.
func (k *keyCode) keep(b *block, n keyexpr.Node, v val, need use) val {
	if v.use >= need {
		return v
	}
	id := k.names.allot(localName(n), "v")
	b.add(jen.Id(id).Op(":=").Id(v.text))
	return name(id)
}

// localName is what a variable with the value of n is called.
func localName(n keyexpr.Node) string {
	switch n := n.(type) {
	case *keyexpr.Field:
		return lowerFirst(n.Path[len(n.Path)-1].Name())
	case *keyexpr.Call:
		if s, ok := strings.CutPrefix(n.Fn.Name(), "Get"); ok && s != "" {
			return lowerFirst(s)
		}
		return lowerFirst(n.Fn.Name())
	case *keyexpr.Index:
		if c, ok := n.I.(*keyexpr.Const); ok && c.Value.Kind() == constant.String {
			return lowerFirst(constant.StringVal(c.Value))
		}
		return "elem"
	case *keyexpr.Default:
		return localName(n.Alts[0].Node)
	case *keyexpr.Convert:
		return localName(n.X)
	case *keyexpr.Builtin:
		if n.Name == "split" {
			return "parts"
		}
		return localName(n.Args[0])
	case *keyexpr.Let:
		return localName(n.Body)
	case *keyexpr.Local:
		return n.Name
	case *keyexpr.Dim:
		return string(n.Kind)
	}
	return "v"
}

// through requires what selecting a member of x depends on: that x and the
// embedded fields on the way are not nil.
func (k *keyCode) through(b *block, n keyexpr.Node, x val, path []*types.Var) val {
	if _, recv := n.(*keyexpr.Recv); !recv && canBeNil(n.Type()) {
		x = k.keep(b, n, x, useAgain)
		k.notNil(b, x)
	}
	at := x
	for _, f := range path {
		at = val{text: at.in(precPrimary) + "." + f.Name(), prec: precPrimary, use: min(at.use, useAgain)}
		if canBeNil(f.Type()) {
			if at.use == useOnce {
				// The structure itself is kept, so that the member is promoted as written.
				x = k.keep(b, n, x, useAgain)
				return k.through(b, n, x, path)
			}
			k.notNil(b, at)
		}
	}
	return x
}

func (k *keyCode) notNil(b *block, v val) {
	b.require(check{v.text + " != nil", v.text + " == nil"}, v.use == useAlways)
}

// canBeNil reports whether values of type t can be compared with nil.
func canBeNil(t types.Type) bool {
	if _, ok := types.Unalias(t).(*types.TypeParam); ok {
		return false
	}
	switch t.Underlying().(type) {
	case *types.Pointer, *types.Interface, *types.Map, *types.Slice, *types.Chan, *types.Signature:
		return true
	}
	return false
}

// index renders x[i], which is there or absent.
func (k *keyCode) index(b *block, n *keyexpr.Index) val {
	vals := k.operands(b, []keyexpr.Node{n.X, n.I})
	x, i := vals[0], vals[1]
	elem := func() val {
		return val{text: x.in(precPrimary) + "[" + i.text + "]", prec: precPrimary, use: min(x.use, i.use, useAgain)}
	}
	switch n.X.Type().Underlying().(type) {
	case *types.Map:
		return k.entry(b, n, elem(), false)
	case *types.Array:
		if keyexpr.ConstValue(n.I) != nil {
			return elem()
		}
	}
	x = k.keep(b, n.X, x, useAgain)
	i = k.keep(b, n.I, i, useAgain)
	stable := x.use == useAlways && i.use == useAlways
	length := "len(" + x.text + ")"
	v := keyexpr.ConstValue(n.I)
	switch {
	case v != nil && constant.Sign(v) == 0 && isLiteral(n.I):
		b.require(check{length + " > 0", length + " == 0"}, stable)
	case v != nil && isLiteral(n.I):
		b.require(check{length + " > " + i.text, length + " <= " + i.text}, stable)
	default:
		at := i.in(precCompare + 1)
		limit := length
		if b, ok := types.Unalias(n.I.Type()).(*types.Basic); !ok || b.Kind() != types.Int {
			// int can be narrower than the index, and the index than a length.
			wide, kind := "int64", types.Int64
			if keyexpr.KindOf(n.I.Type()) == keyexpr.Unsigned {
				wide, kind = "uint64", types.Uint64
			}
			at, limit = k.as(i, n.I.Type(), kind, wide).in(precCompare+1), wide+"("+length+")"
		}
		if keyexpr.KindOf(n.I.Type()) != keyexpr.Unsigned {
			low := i.in(precCompare + 1)
			b.require(check{low + " >= 0", low + " < 0"}, stable)
		}
		b.require(check{at + " < " + limit, at + " >= " + limit}, stable)
	}
	return elem()
}

func isLiteral(n keyexpr.Node) bool {
	c, ok := n.(*keyexpr.Const)
	return ok && c.Name == ""
}

// entry looks a key up in a map; presence alone does not need the value.
func (k *keyCode) entry(b *block, n *keyexpr.Index, elem val, presence bool) val {
	id := "_"
	if !presence {
		id = k.names.allot(localName(n), "elem")
	}
	ok := k.names.allot("ok", "ok")
	b.lookup(id+", "+ok+" := "+elem.text, ok)
	return name(id)
}

// call renders a call of a function or method.
func (k *keyCode) call(b *block, n *keyexpr.Call) val {
	vals := k.operands(b, n.Operands())
	fn := n.Fn.Name()
	if n.X != nil {
		x := vals[0]
		vals = vals[1:]
		x = k.through(b, n.X, x, n.Path)
		if (pointerReceiver(n.Fn) || isGenerated(n)) && !canBeNil(n.X.Type()) && (x.use == useOnce || x.prec < precPrimary || keyexpr.ConstValue(n.X) != nil) {
			x.use = useOnce
			x = k.keep(b, n.X, x, useAlways) // to have an address
		}
		fn = x.in(precPrimary) + "." + fn
	}
	args := make([]string, len(vals))
	for i, v := range vals {
		args[i] = v.text
	}
	k.forget()
	return val{text: fn + "(" + strings.Join(args, ", ") + ")", prec: precPrimary}
}

func pointerReceiver(f *types.Func) bool {
	recv := f.Signature().Recv()
	if recv == nil {
		return false
	}
	_, ok := types.Unalias(recv.Type()).(*types.Pointer)
	return ok
}

// isGenerated reports whether n calls a method of a wrapper that is still to be written.
// Those have a pointer as receiver, whatever the method has that is wrapped.
func isGenerated(n *keyexpr.Call) bool {
	obj, _, _ := types.LookupFieldOrMethod(n.X.Type(), true, n.Fn.Pkg(), n.Fn.Name())
	return obj == nil
}

// text renders v, text of type t, as a string.
func (k *keyCode) text(v val, t types.Type) val { return k.as(v, t, types.String, "string") }

// as converts v from type t to a predeclared type, if it is not of that.
func (k *keyCode) as(v val, t types.Type, kind types.BasicKind, to string) val {
	if b, ok := types.Unalias(t).(*types.Basic); ok && (b.Kind() == kind || b.Info()&types.IsUntyped != 0) || v.literal {
		return v
	}
	return val{text: to + "(" + v.text + ")", prec: precPrimary, use: v.use}
}

// findTypeParams adds the type parameters in t, and in their constraints, to seen.
func findTypeParams(t types.Type, seen map[types.Type]bool) {
	if t == nil || seen[t] {
		return
	}
	seen[t] = true
	each := func(tuple *types.Tuple) {
		for v := range tuple.Variables() {
			findTypeParams(v.Type(), seen)
		}
	}
	args := func(list *types.TypeList) {
		for arg := range list.Types() {
			findTypeParams(arg, seen)
		}
	}
	switch t := t.(type) {
	case *types.TypeParam:
		findTypeParams(t.Constraint(), seen)
	case *types.Named:
		args(t.TypeArgs())
	case *types.Alias:
		args(t.TypeArgs())
		findTypeParams(t.Rhs(), seen)
	case *types.Pointer:
		findTypeParams(t.Elem(), seen)
	case *types.Slice:
		findTypeParams(t.Elem(), seen)
	case *types.Array:
		findTypeParams(t.Elem(), seen)
	case *types.Chan:
		findTypeParams(t.Elem(), seen)
	case *types.Map:
		findTypeParams(t.Key(), seen)
		findTypeParams(t.Elem(), seen)
	case *types.Signature:
		each(t.Params())
		each(t.Results())
	case *types.Struct:
		for f := range t.Fields() {
			findTypeParams(f.Type(), seen)
		}
	case *types.Interface:
		for m := range t.ExplicitMethods() {
			findTypeParams(m.Type(), seen)
		}
		for e := range t.EmbeddedTypes() {
			findTypeParams(e, seen)
		}
	case *types.Union:
		for term := range t.Terms() {
			findTypeParams(term.Type(), seen)
		}
	}
}
