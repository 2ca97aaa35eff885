package generator

import (
	"go/types"
	"slices"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimitgen/ratelimitgen/parser/keyexpr"
)

// local is the variable for a name of let's or for the element of a loop.
type local struct {
	v  val
	ok string // variable that tells whether it has a value, "" if it always has
}

// bind makes a variable of a name of let's.
func (k *keyCode) bind(b *block, l *keyexpr.Local) {
	if k.meant(l) != keyexpr.Node(l) {
		return
	}
	if !keyexpr.Declared(l) {
		v := k.value(b, l.Value)
		id := k.names.allot(l.Name, "v")
		b.add(jen.Id(id).Op(":=").Id(v.text))
		k.locals[l] = local{v: name(id)}
		return
	}
	v, ok := k.variableNamed(b, l.Value, l.Name)
	k.locals[l] = local{v, ok}
}

// meant returns what is rendered for n: the value of a name of let's, wherever the name
// stands, if a variable would have to be declared for it whose type cannot be written. It
// calls nothing; that is for keyexpr to see to.
func (k *keyCode) meant(n keyexpr.Node) keyexpr.Node {
	for {
		l, ok := n.(*keyexpr.Local)
		if !ok || l.Value == nil || !keyexpr.Declared(l) || !k.hidden(l.Type()) {
			return n
		}
		n = l.Value
	}
}

// hidden reports whether the package cannot write t.
func (k *keyCode) hidden(t types.Type) bool {
	return k.imports.source != nil && unnameable(k.imports.source, t) != ""
}

func (k *keyCode) localValue(b *block, l *keyexpr.Local) val {
	if n := k.meant(l); n != keyexpr.Node(l) {
		return k.value(b, n)
	}
	x := k.locals[l]
	if x.ok != "" {
		b.require(check{x.ok, "!" + x.ok}, true)
	}
	return x.v
}

// loop renders a closure over a list as a loop before what uses its result.
func (k *keyCode) loop(b *block, n *keyexpr.Loop) val {
	list := k.value(b, n.X)
	empty := k.emptyList(b, n, &list)
	b.flush()
	if keyexpr.Contains(n.Body, isCall) {
		k.forget() // the second round begins with what the first has changed
	}
	elem := ""
	if keyexpr.Contains(n.Body, func(x keyexpr.Node) bool { return x == keyexpr.Node(n.Elem) }) || n.Op == "filter" {
		elem = k.names.allot(lowerFirst(n.Elem.Name), "elem")
		k.locals[n.Elem] = local{v: name(elem)}
	}
	run := func(body []jen.Code) {
		head := "range " + list.text
		if elem != "" {
			head = "_, " + elem + " := " + head
		}
		b.add(jen.For(jen.Id(head)).Block(body...))
	}
	switch n.Op {
	case "sum", "map":
		return k.collect(b, n, empty, run)
	}
	declared, id := k.loopResult(n, empty)
	b.add(declared)
	set := func(text string) []jen.Code { return []jen.Code{jen.Id(id).Op("=").Id(text), jen.Break()} }
	in := k.nested()
	var body []jen.Code
	k.scoped(func() {
		c := k.cond(in, n.Body)
		test, then := c.text, set("true")
		switch n.Op {
		case "all":
			test, then = "!"+c.in(precUnary), set("false")
		case "none":
			then = set("false")
		case "count", "one":
			then = []jen.Code{jen.Id(id).Op("++")}
		case "filter":
			then = []jen.Code{jen.Id(id).Op("=").Append(jen.Id(id), jen.Id(elem))}
		}
		body = in.done(jen.If(jen.Id(test)).Block(then...))
	})
	run(body)
	if n.Op == "one" {
		return val{text: id + " == 1", prec: precCompare, use: useAlways}
	}
	return name(id)
}

// emptyList returns a list without elements of the type that filter and map give, made of
// the list that they are asked about, where that type cannot be written.
func (k *keyCode) emptyList(b *block, n *keyexpr.Loop, list *val) string {
	if n.Op != "filter" && n.Op != "map" || !k.hidden(n.Type()) {
		return ""
	}
	if _, ok := n.X.Type().Underlying().(*types.Array); ok {
		list.use = useOnce // to have an address
	}
	*list = k.keep(b, n.X, *list, useAlways)
	return list.in(precPrimary) + "[:0:0]"
}

// loopResult declares the variable that a loop sets, which begins as empty if that is
// not "".
func (k *keyCode) loopResult(n *keyexpr.Loop, empty string) (declaration jen.Code, id string) {
	want := map[string]string{"any": "found", "one": "count", "sum": "total", "filter": "kept", "map": "mapped"}[n.Op]
	if want == "" {
		want = n.Op
	}
	id = k.names.allot(want, want)
	switch n.Op {
	case "filter", "map":
		if empty != "" {
			return jen.Id(id).Op(":=").Id(empty), id
		}
		return jen.Var().Id(id).Add(k.typ(n.Type())), id
	case "sum":
		if keyexpr.IsFloat(n.Type()) {
			return jen.Id(id).Op(":=").Id("0.0"), id
		}
		return jen.Id(id).Op(":=").Id("0"), id
	case "count", "one":
		return jen.Id(id).Op(":=").Id("0"), id
	case "any":
		return jen.Id(id).Op(":=").False(), id
	}
	return jen.Id(id).Op(":=").True(), id
}

// collect renders sum and map, which an absent value makes absent.
func (k *keyCode) collect(b *block, n *keyexpr.Loop, empty string, run func([]jen.Code)) val {
	declared, id := k.loopResult(n, empty)
	b.add(declared)
	in := &block{code: k, leave: true}
	ok := ""
	if n.Body.MayBeAbsent() {
		ok = k.names.allot("ok", "ok")
		b.add(jen.Id(ok).Op(":=").True())
		in.exit = []jen.Code{jen.Id(ok).Op("=").False(), jen.Break()}
	}
	var body []jen.Code
	k.scoped(func() {
		v := k.value(in, n.Body)
		if n.Op == "sum" && k.saturate && !keyexpr.IsFloat(n.Type()) {
			body = in.done(jen.Id(id).Op("=").Id(k.runtime("AddUnits") + "(" + id + ", " + v.text + ")"))
		} else if n.Op == "sum" {
			body = in.done(jen.Id(id).Op("+=").Id(v.text))
		} else {
			body = in.done(jen.Id(id).Op("=").Append(jen.Id(id), jen.Id(v.text)))
		}
	})
	run(body)
	if ok != "" {
		b.require(check{ok, "!" + ok}, true)
	}
	return name(id)
}

// within renders x in list, which is never absent.
func (k *keyCode) within(b *block, n *keyexpr.In) val {
	return k.holds(b, func(in *block) val {
		if n.In == nil {
			return k.oneOf(in, n)
		}
		vals := k.operands(in, []keyexpr.Node{n.X, n.In})
		x, list := vals[0], vals[1]
		switch n.In.Type().Underlying().(type) {
		case *types.Map:
			ok := k.names.allot("ok", "ok")
			in.lookup("_, "+ok+" := "+list.in(precPrimary)+"["+x.text+"]", ok)
			return name(ok)
		case *types.Array:
			// A variable, since only what has an address can be sliced.
			list.use = useOnce
			list = k.keep(in, n.In, list, useAlways)
			list.text += "[:]"
		}
		return val{
			text: k.pkg("slices", "slices") + "Contains(" + list.text + ", " + x.text + ")",
			prec: precPrimary, use: min(x.use, list.use, useAgain),
		}
	})
}

// oneOf renders x in [a, b] as comparisons.
func (k *keyCode) oneOf(b *block, n *keyexpr.In) val {
	if len(n.Elems) == 1 {
		vals := k.operands(b, []keyexpr.Node{n.X, n.Elems[0]})
		return val{
			text: vals[0].in(precCompare+1) + " == " + vals[1].in(precCompare+1), prec: precCompare,
			use: min(vals[0].use, vals[1].use),
		}
	}
	need := useAgain
	if slices.ContainsFunc(n.Elems, func(e keyexpr.Node) bool { return keyexpr.Contains(e, isCall) }) {
		need = useAlways
	}
	x := k.keep(b, n.X, k.value(b, n.X), need)
	tests, use := make([]string, len(n.Elems)), x.use
	for i, e := range n.Elems {
		c := k.holds(b, func(in *block) val {
			y := k.value(in, e)
			return val{text: x.in(precCompare+1) + " == " + y.in(precCompare+1), prec: precCompare, use: min(x.use, y.use)}
		})
		tests[i], use = c.in(precOr), min(use, c.use)
	}
	return val{text: strings.Join(tests, " || "), prec: precOr, use: use}
}
