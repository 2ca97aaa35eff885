package keyexpr

import (
	"fmt"
	"go/types"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// call checks f(...) and x.f(...).
func (c *checker) call(n *ast.CallNode) Node {
	switch callee := n.Callee.(type) {
	case *ast.IdentifierNode:
		name := c.text.name(callee)
		if name == "T" && !c.known("T") {
			c.at(n, typeRef, "T(...)")
			return nil
		}
		if f := c.function(name); f != nil && c.local(name) == nil {
			return c.invoke(n, name, &Call{Fn: f})
		}
		if t, ok := types.Universe.Lookup(name).(*types.TypeName); ok && !c.known(name) {
			switch {
			case isInteger(t.Type()):
				return c.integerConversion(n, name, t.Type(), n.Arguments)
			case t.Type() == typFloat:
				return c.floatConversion(n, name, n.Arguments)
			}
		}
		c.notFunction(callee, name, n.Arguments)
	case *ast.MemberNode:
		return c.methodCall(n, callee)
	case *ast.ChainNode:
		if m, ok := callee.Node.(*ast.MemberNode); ok {
			return c.methodCall(n, m)
		}
		c.at(n, notCallable, c.quote(callee))
	default:
		c.at(n, notCallable, c.quote(callee))
	}
	for _, a := range n.Arguments {
		c.expr(a) // for their own problems
	}
	return nil
}

// notFunction reports the call of a name that is no function.
func (c *checker) notFunction(n ast.Node, name string, args []ast.Node) {
	switch _, isType := c.packageObject(name).(*types.TypeName); {
	case isType:
		c.at(n, typeConversion, name)
	case c.known(name) || strings.HasPrefix(name, "#"):
		c.at(n, notCallable, name)
	case c.springCall(name, args) != "":
		c.at(n, javaName, name, c.springCall(name, args))
	case isLookup(name):
		c.at(n, elsewhereCalled, name, c.lookupText("request."+name+"($x)", args))
	case isDim(name) && len(args) == 0:
		c.at(n, elsewhereCalled, name, name)
	default:
		valid := slices.Clone(builtins)
		if c.scope.Pkg != nil {
			for _, known := range c.scope.Pkg.Scope().Names() {
				if c.function(known) != nil {
					valid = append(valid, known)
				}
			}
		}
		c.unknown(c.at(n, unknownFunction, name), name, valid)
	}
}

// methodCall checks x.f(...).
func (c *checker) methodCall(n *ast.CallNode, callee *ast.MemberNode) Node {
	if c.typeCall(n, callee) {
		return nil
	}
	if x, ok := c.lookupCall(n, callee); ok {
		return x
	}
	if write := c.requestHabit(callee, n.Arguments); write != "" {
		c.problem(c.text.clamp(callee.Property.Location()), javaName, memberName(callee), write)
		return nil
	}
	if x, ok := c.special(callee); ok {
		_, isDim := x.(*Dim)
		switch {
		case c.failed():
		case isDim && len(n.Arguments) == 0:
			c.at(callee, elsewhereCalled, c.quote(callee), c.quote(callee))
		default:
			c.at(callee, notCallable, c.quote(callee))
		}
		return nil
	}
	if id, ok := callee.Node.(*ast.IdentifierNode); ok && !c.known(c.text.name(id)) && c.goCall(n, id, memberName(callee)) {
		return nil
	}
	x := c.expr(callee.Node)
	if x == nil {
		for _, a := range n.Arguments {
			c.expr(a) // for their own problems
		}
		return nil
	}
	name := memberName(callee)
	at := c.text.clamp(callee.Property.Location())
	obj, path, ok := c.lookup(callee, x, name)
	if !ok {
		return nil
	}
	switch obj := obj.(type) {
	case *types.Func:
		return c.invoke(n, c.quote(callee), &Call{X: x, Path: path, Fn: obj})
	case *types.Var:
		if _, ok := obj.Type().Underlying().(*types.Signature); ok {
			c.problem(at, fieldCall, name, "use a function of the package that calls it")
		} else {
			c.problem(at, fieldCall, name, "write "+c.quote(callee))
		}
	default:
		c.noMember(callee, x, name, "()", n.Arguments)
	}
	return nil
}

// invoke checks the arguments and results of a call.
func (c *checker) invoke(n *ast.CallNode, what string, call *Call) Node {
	c.named = true
	sig := call.Fn.Type().(*types.Signature)
	at := c.text.span(n.Callee)
	if sig.TypeParams().Len() > 0 {
		c.problem(at, genericCall, what)
		return nil
	}
	ok := true
	if sig.Results().Len() != 1 {
		c.problem(at, resultCount, what, sig.Results().Len())
		ok = false
	}
	params, fixed := sig.Params(), sig.Params().Len()
	if sig.Variadic() {
		fixed--
	}
	if got := len(n.Arguments); got < fixed || got > fixed && !sig.Variadic() {
		takes := fmt.Sprint(fixed, " arguments")
		switch {
		case sig.Variadic():
			takes = "at least " + takes
		case fixed == 0:
			takes = "no arguments"
		case fixed == 1:
			takes = "one argument"
		}
		c.at(n, argumentCount, what, takes, got)
		ok = false
	}
	for i, a := range n.Arguments {
		x := c.expr(a)
		if x == nil || !ok {
			ok = false
			continue
		}
		var t types.Type
		if i < fixed {
			t = params.At(i).Type()
		} else {
			t = params.At(fixed).Type().Underlying().(*types.Slice).Elem()
		}
		if x = c.assign(a, x, t, what); x == nil {
			ok = false
		}
		call.Args = append(call.Args, x)
	}
	if !ok {
		return nil
	}
	call.typ = sig.Results().At(0).Type()
	return c.valid(n, call)
}

// assign checks that x can be passed where what takes a t.
func (c *checker) assign(n ast.Node, x Node, t types.Type, what string) Node {
	if isUntyped(x.Type()) {
		if v := ConstValue(x); v == nil || representable(v, t) {
			return typed(x, t)
		} else if sameSort(v, t) {
			c.at(n, overflow, valueText(v), c.typeName(t))
			return nil
		}
		x = typed(x, types.Default(x.Type()))
	}
	if !types.AssignableTo(x.Type(), t) && !c.willImplement(x.Type(), t) {
		c.at(n, argumentType, c.quote(n), c.typeName(x.Type()), what, c.typeName(t))
		return nil
	}
	return x
}

// willImplement reports whether t is an interface that x implements with what is
// generated for it.
func (c *checker) willImplement(x, t types.Type) bool {
	iface, ok := t.Underlying().(*types.Interface)
	if !ok || !iface.IsMethodSet() {
		return false
	}
	for m := range iface.Methods() {
		obj, _, _ := types.LookupFieldOrMethod(x, false, m.Pkg(), m.Name())
		fn, _ := obj.(*types.Func)
		if _, ok := x.Underlying().(*types.Pointer); ok && obj == nil {
			fn = c.generated(x, m.Pkg(), m.Name())
		}
		if fn == nil || !types.Identical(fn.Type(), m.Type()) {
			return false
		}
	}
	return true
}

// generated returns a method that is generated for t or a pointer to it, or nil.
func (c *checker) generated(t types.Type, pkg *types.Package, name string) *types.Func {
	if c.scope.WillHave == nil {
		return nil
	}
	return c.scope.WillHave(t, pkg, name)
}
