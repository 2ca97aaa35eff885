package generator

import (
	"go/types"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimitgen/ratelimitgen/parser/keyexpr"
)

func isMap(t types.Type) bool { _, ok := t.Underlying().(*types.Map); return ok }

// element renders what uses n: the last one returns from the function.
func (k *keyCode) element(b *block, n keyexpr.Node, last bool) {
	n = k.meant(n)
	switch n := n.(type) {
	case *keyexpr.Cond:
		k.elementCond(b, n, last)
		return
	case *keyexpr.Default:
		k.elementDefault(b, n, last)
		return
	case *keyexpr.Let:
		k.bind(b, n.Local)
		k.element(b, n.Body, last)
		return
	}
	b.add(k.finish(k.leaf(b, n, false), last)...)
}

// finish uses the result of a leaf.
func (k *keyCode) finish(result string, last bool) []jen.Code {
	if last {
		return []jen.Code{jen.Return(jen.Id(result))}
	}
	return []jen.Code{jen.Id(k.buf).Op("=").Id(result)}
}

func (k *keyCode) elementCond(b *block, n *keyexpr.Cond, last bool) {
	c := k.cond(b, n.If)
	branch := func(n keyexpr.Node, facts map[string]bool) []jen.Code {
		in := &block{code: k, leave: true}
		k.scoped(func() {
			k.learn(facts)
			k.element(in, n, last)
		})
		return in.done()
	}
	b.flush()
	then := branch(n.Then, c.ifTrue)
	if last {
		b.add(jen.If(jen.Id(c.text)).Block(then...))
		k.learn(c.ifFalse)
		k.element(b, n.Else, true)
		return
	}
	b.add(ifElse(c.text, then, branch(n.Else, c.ifFalse)))
}

func (k *keyCode) elementDefault(b *block, n *keyexpr.Default, last bool) {
	b.flush()
	rest := n.Alts[len(n.Alts)-1].Node
	if last {
		for _, alt := range n.Alts[:len(n.Alts)-1] {
			code, always := k.attempt(alt.Node, alt.NotEmpty, func(result string) []jen.Code { return k.finish(result, true) })
			if b.add(code...); always {
				return // what it depends on was seen to hold before
			}
		}
		k.element(b, rest, true)
		return
	}
	alt := n.Alts[0]
	if len(n.Alts) > 2 {
		rest = &keyexpr.Default{Alts: n.Alts[1:]}
	}
	otherwise := func() []jen.Code {
		in := &block{code: k, leave: true}
		k.scoped(func() { k.element(in, rest, false) })
		return in.done()
	}
	if in, result := k.plainAttempt(alt); in != nil {
		if len(in.pending) == 0 {
			b.add(k.finish(result, false)...)
			return
		}
		b.add(ifElse(allHold(in.pending), k.finish(result, false), otherwise()))
		return
	}
	found := k.names.allot("found", "found")
	b.add(jen.Id(found).Op(":=").False())
	code, _ := k.attempt(alt.Node, alt.NotEmpty, func(result string) []jen.Code {
		return append(k.finish(result, false), jen.Id(found).Op("=").True())
	})
	b.add(code...)
	b.add(jen.If(jen.Op("!").Id(found)).Block(otherwise()...))
}

// attempt renders statements that use n if it has a value, and do nothing if not. It
// reports whether it always has one, by what is known at this place.
func (k *keyCode) attempt(n keyexpr.Node, notEmpty bool, use func(result string) []jen.Code) (code []jen.Code, always bool) {
	in := k.nested()
	n = k.meant(n)
	switch n := n.(type) {
	case *keyexpr.Cond:
		c := k.cond(in, n.If)
		var then, otherwise []jen.Code
		var both [2]bool
		k.scoped(func() {
			k.learn(c.ifTrue)
			then, both[0] = k.attempt(n.Then, notEmpty, use)
		})
		k.scoped(func() {
			k.learn(c.ifFalse)
			otherwise, both[1] = k.attempt(n.Else, notEmpty, use)
		})
		always = in.unconditional() && both[0] && both[1]
		return in.done(ifElse(c.text, then, otherwise)), always
	case *keyexpr.Default:
		if chosenDim(n) {
			return k.attemptFirst(n.Alts, notEmpty, use), false
		}
	case *keyexpr.Let:
		k.bind(in, n.Local)
		always = in.unconditional()
		body, has := k.attempt(n.Body, notEmpty, use)
		return in.done(body...), always && has
	}
	var result string
	k.scoped(func() { result = k.leaf(in, n, notEmpty) })
	always = in.unconditional()
	return in.done(use(result)...), always
}

// plainAttempt renders an alternative that depends on checks alone; nil if it does
// not.
func (k *keyCode) plainAttempt(alt keyexpr.Alt) (in *block, result string) {
	switch k.meant(alt.Node).(type) {
	case *keyexpr.Cond, *keyexpr.Default, *keyexpr.Let:
		return nil, ""
	}
	saved := k.names
	k.names = saved.child() // for names that are dropped again
	in = k.nested()
	k.scoped(func() { result = k.leaf(in, alt.Node, alt.NotEmpty) })
	k.names = saved
	if !in.plain() {
		return nil, ""
	}
	return in, result
}

// attemptFirst is attempt for the first of alts that has a value. If that is empty,
// and must not be, the others are not asked.
func (k *keyCode) attemptFirst(alts []keyexpr.Alt, notEmpty bool, use func(result string) []jen.Code) []jen.Code {
	alt := alts[0]
	if len(alts) == 1 {
		code, _ := k.attempt(alt.Node, notEmpty, use)
		return code
	}
	found := k.names.allot("found", "found")
	code := []jen.Code{jen.Id(found).Op(":=").False()}
	if _, isCond := alt.Node.(*keyexpr.Cond); isDim(alt.Node) || isCond && chosenDim(alt.Node) {
		first, _ := k.attempt(alt.Node, alt.NotEmpty || notEmpty, func(result string) []jen.Code {
			return append([]jen.Code{jen.Id(found).Op("=").True()}, use(result)...)
		})
		code = append(code, first...)
	} else {
		in := k.nested()
		var result string
		k.scoped(func() {
			v := k.notEmpty(in, alt.Node, k.keep(in, alt.Node, k.value(in, alt.Node), useAgain), alt.NotEmpty)
			in.add(jen.Id(found).Op("=").True())
			result = k.appendValue(k.notEmpty(in, alt.Node, v, notEmpty), alt.Node)
		})
		code = append(code, in.done(use(result)...)...)
	}
	return append(code, jen.If(jen.Op("!").Id(found)).Block(k.attemptFirst(alts[1:], notEmpty, use)...))
}

// variable makes n a variable, which is zero if n is absent, and ok, if not "", a
// variable that tells whether it is there.
func (k *keyCode) variable(b *block, n keyexpr.Node) (v val, ok string) {
	return k.variableNamed(b, n, localName(n))
}

func (k *keyCode) variableNamed(b *block, n keyexpr.Node, want string) (v val, ok string) {
	b.flush()
	t := n.Type()
	if k.hidden(t) {
		t = t.Underlying() // it is only compared, or keyexpr would have refused it
	}
	id := k.names.allot(want, "v")
	if d, isDefault := n.(*keyexpr.Default); isDefault && len(d.Alts) == 2 && keyexpr.ConstValue(d.Alts[1].Node) != nil {
		last := k.fit(k.value(b, d.Alts[1].Node), d.Alts[1].Type(), t)
		in := k.nested()
		var first val
		k.scoped(func() { first = k.fit(k.alternative(in, d, 0), d.Alts[0].Type(), t) })
		basic, ok := t.(*types.Basic)
		converted := !types.Identical(d.Alts[1].Type(), t)
		if converted || ok && isLiteral(d.Alts[1].Node) && isDefaultType(basic) {
			b.add(jen.Id(id).Op(":=").Id(last.text))
		} else {
			b.add(jen.Var().Id(id).Add(k.typ(t)).Op("=").Id(last.text))
		}
		b.add(in.done(jen.Id(id).Op("=").Id(first.text))...)
		return name(id), ""
	}
	b.add(jen.Var().Id(id).Add(k.typ(t)))
	if n.MayBeAbsent() {
		ok = k.names.allot("ok", "ok")
		b.add(jen.Var().Id(ok).Bool())
	}
	b.add(k.assign(n, t, func(v string) []jen.Code {
		set := []jen.Code{jen.Id(id).Op("=").Id(v)}
		if ok != "" {
			set = append(set, jen.Id(ok).Op("=").True())
		}
		return set
	})...)
	return name(id), ok
}

// isDefaultType reports whether a literal has type t where nothing says otherwise.
func isDefaultType(t *types.Basic) bool {
	return t.Kind() == types.String || t.Kind() == types.Int || t.Kind() == types.Bool
}

// assign renders statements that set a variable of type t if n has a value.
func (k *keyCode) assign(n keyexpr.Node, t types.Type, set func(string) []jen.Code) []jen.Code {
	in := k.nested()
	n = k.meant(n)
	switch n := n.(type) {
	case *keyexpr.Cond:
		c := k.cond(in, n.If)
		var then, otherwise []jen.Code
		k.scoped(func() {
			k.learn(c.ifTrue)
			then = k.assign(n.Then, t, set)
		})
		k.scoped(func() {
			k.learn(c.ifFalse)
			otherwise = k.assign(n.Else, t, set)
		})
		return in.done(ifElse(c.text, then, otherwise))
	case *keyexpr.Default:
		return k.assignFirst(n, t, set)
	}
	var v val
	k.scoped(func() { v = k.fit(k.value(in, n), n.Type(), t) })
	return in.done(set(v.text)...)
}

// assignFirst sets a variable to the first alternative that has a value.
func (k *keyCode) assignFirst(d *keyexpr.Default, t types.Type, set func(string) []jen.Code) []jen.Code {
	if len(d.Alts) == 1 {
		return k.assign(d.Alts[0].Node, t, set)
	}
	rest := &keyexpr.Default{Alts: d.Alts[1:]}
	in := k.nested()
	var v val
	k.scoped(func() { v = k.fit(k.alternative(in, d, 0), d.Alts[0].Type(), t) })
	if in.plain() && len(in.pending) > 0 {
		return []jen.Code{ifElse(allHold(in.pending), set(v.text), k.assignFirst(rest, t, set))}
	}
	found := k.names.allot("found", "found")
	code := []jen.Code{jen.Id(found).Op(":=").False()}
	code = append(code, in.done(append(set(v.text), jen.Id(found).Op("=").True())...)...)
	return append(code, jen.If(jen.Op("!").Id(found)).Block(k.assignFirst(rest, t, set)...))
}

// alternative renders alternative i of d and requires that it counts as a value.
func (k *keyCode) alternative(b *block, d *keyexpr.Default, i int) val {
	alt := d.Alts[i]
	v := k.value(b, alt.Node)
	if canBeNil(alt.Type()) {
		v = k.keep(b, alt.Node, v, useAgain)
		k.notNil(b, v)
	}
	return k.notEmpty(b, alt.Node, v, alt.NotEmpty)
}

// notEmpty requires that the text v is not empty, if asked for.
func (k *keyCode) notEmpty(b *block, n keyexpr.Node, v val, asked bool) val {
	if !asked {
		return v
	}
	v = k.keep(b, n, v, useAgain)
	text := v.in(precCompare + 1)
	b.require(check{text + ` != ""`, text + ` == ""`}, v.use == useAlways)
	return v
}

// fit converts text of one type to a string where alternatives differ, and a value whose
// type cannot be written to a predeclared one.
func (k *keyCode) fit(v val, from, to types.Type) val {
	if types.Identical(from, to) {
		return v
	}
	if keyexpr.KindOf(to) == keyexpr.Text {
		return k.as(v, from, types.String, "string")
	}
	if basic, ok := to.(*types.Basic); ok && k.hidden(from) {
		return k.as(v, from, basic.Kind(), basic.Name())
	}
	return v
}
