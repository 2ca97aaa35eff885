package generator

import (
	"go/types"
	"maps"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimitgen/ratelimitgen/parser/keyexpr"
)

// cond renders n as a condition, which does not hold if n is absent. It requires
// nothing of b.
func (k *keyCode) cond(b *block, n keyexpr.Node) val {
	switch n := n.(type) {
	case *keyexpr.Unary:
		x := k.cond(b, n.X)
		if known := map[string]string{"true": "false", "false": "true"}[x.text]; known != "" {
			return name(known)
		}
		return val{text: "!" + x.in(precUnary), prec: precUnary, use: x.use, ifTrue: x.ifFalse, ifFalse: x.ifTrue}
	case *keyexpr.Let:
		k.bind(b, n.Local)
		return k.cond(b, n.Body)
	case *keyexpr.In:
		return k.within(b, n)
	case *keyexpr.Binary:
		switch {
		case n.Op == "&&" || n.Op == "||":
			return k.logical(b, n)
		case isNil(n.X):
			return k.present(b, n.Y, n.Op)
		case isNil(n.Y):
			return k.present(b, n.X, n.Op)
		case n.Op == "==" || n.Op == "!=":
			return k.equal(b, n)
		}
	}
	return k.holds(b, func(in *block) val {
		return k.as(k.value(in, n), n.Type(), types.Bool, "bool")
	})
}

func isNil(n keyexpr.Node) bool { _, ok := n.(*keyexpr.Nil); return ok }

// holds renders the condition that f returns, given that what it requires holds.
func (k *keyCode) holds(b *block, f func(*block) val) val {
	in := k.nested()
	var v val
	facts := k.scoped(func() { v = f(in) })
	if in.plain() {
		if len(in.pending) > 0 {
			v = val{text: allHold(in.pending) + " && " + v.in(precAnd), prec: precAnd, use: v.use}
		}
		v.ifTrue = facts
		return v
	}
	id := k.names.allot("holds", "holds")
	b.add(jen.Id(id).Op(":=").False())
	b.add(in.done(jen.Id(id).Op("=").Id(v.text))...)
	return name(id)
}

// logical renders x && y and x || y. What y needs is evaluated only if y is.
func (k *keyCode) logical(b *block, n *keyexpr.Binary) val {
	x := k.cond(b, n.X)
	if n.Op == "||" {
		x.ifTrue, x.ifFalse = x.ifFalse, x.ifTrue
	}
	in := k.nested()
	var y val
	k.scoped(func() {
		k.learn(x.ifTrue)
		y = k.cond(in, n.Y)
	})
	if n.Op == "||" {
		y.ifTrue, y.ifFalse = y.ifFalse, y.ifTrue
	}
	prec := precedence[n.Op]
	if !in.plain() {
		id := k.names.allot("holds", "holds")
		test := id
		if n.Op == "||" {
			test = "!" + id
		}
		b.add(jen.Id(id).Op(":=").Id(x.text))
		b.add(jen.If(jen.Id(test)).Block(in.done(jen.Id(id).Op("=").Id(y.text))...))
		return name(id)
	}
	facts := maps.Clone(x.ifTrue)
	if keyexpr.Contains(n.Y, isCall) {
		maps.DeleteFunc(facts, func(_ string, changes bool) bool { return changes })
	}
	if facts == nil {
		facts = map[string]bool{}
	}
	maps.Copy(facts, y.ifTrue)
	v := val{text: x.in(prec) + " " + n.Op + " " + y.in(prec), prec: prec, use: min(x.use, y.use)}
	// What is known already does not stand there twice, which go vet calls redundant.
	if y.text == "true" || y.text == "false" {
		decides := map[string]string{"&&": "false", "||": "true"}[n.Op]
		switch {
		case x.text == decides, x.text == y.text, x.prec == prec && strings.HasSuffix(x.text, n.Op+" "+y.text):
			v.text, v.prec = x.text, x.prec
		case x.text == "true" || x.text == "false":
			v.text, v.prec = y.text, y.prec
		}
	}
	if v.ifTrue = facts; n.Op == "||" {
		v.ifTrue, v.ifFalse = nil, facts
	}
	return v
}

// present renders n == nil and n != nil.
func (k *keyCode) present(b *block, n keyexpr.Node, op string) val {
	if d, ok := n.(*keyexpr.Dim); ok {
		if v, ok := k.lookup(d); ok {
			return val{text: v.text + " " + op + ` ""`, prec: precCompare}
		}
	}
	in := k.nested()
	facts := k.scoped(func() {
		if ix, ok := n.(*keyexpr.Index); ok && isMap(ix.X.Type()) && !canBeNil(n.Type()) {
			vals := k.operands(in, ix.Operands())
			k.entry(in, ix, val{text: vals[0].in(precPrimary) + "[" + vals[1].text + "]"}, true)
			return
		}
		if v := k.value(in, n); canBeNil(n.Type()) {
			k.notNil(in, v)
		} else if v.use == useOnce || !in.plain() {
			in.add(jen.Id("_").Op("=").Id(v.text)) // called for its effects, and its operands used
		}
	})
	if in.plain() && len(in.pending) > 0 {
		holds := val{text: allHold(in.pending), prec: precAnd, ifTrue: facts}
		fails := val{text: oneFails(in.pending), prec: precOr, ifFalse: facts}
		if len(in.pending) == 1 {
			holds.prec, fails.prec = precCompare, precCompare
		}
		if op == "==" {
			return fails
		}
		return holds
	}
	if in.plain() {
		// All of it is known already.
		return name(map[string]string{"==": "false", "!=": "true"}[op])
	}
	id := k.names.allot("ok", "ok")
	b.add(jen.Id(id).Op(":=").False())
	b.add(in.done(jen.Id(id).Op("=").True())...)
	if op == "==" {
		return val{text: "!" + id, prec: precUnary, use: useAlways}
	}
	return name(id)
}

// equal renders x == y and x != y, which are never absent.
func (k *keyCode) equal(b *block, n *keyexpr.Binary) val {
	if n.X.MayBeAbsent() && n.Y.MayBeAbsent() {
		return k.equalOrAbsent(b, n)
	}
	compare := func(in *block) val {
		vals := k.operands(in, []keyexpr.Node{n.X, n.Y})
		return val{
			text: vals[0].in(precCompare+1) + " " + n.Op + " " + vals[1].in(precCompare+1),
			prec: precCompare,
			use:  min(vals[0].use, vals[1].use),
		}
	}
	if n.Op == "==" {
		return k.holds(b, compare)
	}
	// An absent value differs from every other.
	in := k.nested()
	var v val
	facts := k.scoped(func() { v = compare(in) })
	if in.plain() {
		if len(in.pending) > 0 {
			v = val{text: oneFails(in.pending) + " || " + v.in(precOr), prec: precOr, use: v.use}
		}
		v.ifFalse = facts
		return v
	}
	id := k.names.allot("differs", "differs")
	b.add(jen.Id(id).Op(":=").True())
	b.add(in.done(jen.Id(id).Op("=").Id(v.text))...)
	return name(id)
}

// equalOrAbsent compares two values that may both be absent, and are equal then.
func (k *keyCode) equalOrAbsent(b *block, n *keyexpr.Binary) val {
	x, xok := k.variable(b, n.X)
	y, yok := k.variable(b, n.Y)
	if n.Op == "!=" {
		return val{text: xok + " != " + yok + " || " + x.text + " != " + y.text, prec: precOr, use: useAlways}
	}
	return val{text: xok + " == " + yok + " && " + x.text + " == " + y.text, prec: precAnd, use: useAlways}
}
