package keyexpr

import (
	"fmt"
	"go/types"

	"github.com/expr-lang/expr/ast"
)

// position says what becomes of a value, and with it whether a variable is declared for
// it where it is chosen from others. Other values are given to variables as they are,
// which names no type.
type position uint8

const (
	operand  position = iota // something is computed from it
	element                  // it is the result, or an element of it
	tried                    // it is so if it has a value
	assigned                 // a variable is there for it
)

// nameTypes reports values for which the code would have to declare a variable whose type
// the package cannot write.
func (c *checker) nameTypes(n Node, at ast.Node, pos position) {
	if a := c.places[n]; a != nil {
		at = a
	}
	switch n := n.(type) {
	case *Let:
		c.nameLet(n.Local, at)
		if pos == assigned {
			pos = operand
		}
		c.nameTypes(n.Body, at, pos)
		return
	case *Local:
		if n.Value != nil && c.hidden(n.typ) != "" && Declared(n) && !hasCall(n.Value) {
			c.nameTypes(n.Value, at, pos) // which stands in its place
		}
		return
	case *Cond:
		c.nameTypes(n.If, at, operand)
		if pos == operand {
			c.nameable(n.typ, at, "")
			pos = assigned
		}
		c.nameTypes(n.Then, at, pos)
		c.nameTypes(n.Else, at, pos)
		return
	case *Default:
		if pos == operand || pos == tried {
			c.nameable(n.typ, at, "")
			pos = assigned
		}
		last := len(n.Alts) - 1
		for _, alt := range n.Alts[:last] {
			first := operand
			if pos == element {
				first = tried
			}
			c.nameTypes(alt.Node, at, first)
		}
		c.nameTypes(n.Alts[last].Node, at, pos)
		return
	case *Loop:
		if n.Op == "map" && n.Body != Node(n.Elem) {
			c.nameable(n.Body.Type(), at, "")
		}
	case *Binary:
		if (n.Op == "==" || n.Op == "!=") && n.X.MayBeAbsent() && n.Y.MayBeAbsent() && !isNil(n) {
			// The variables are of predeclared types.
			c.nameTypes(n.X, at, assigned)
			c.nameTypes(n.Y, at, assigned)
			return
		}
	}
	for _, o := range n.Operands() {
		c.nameTypes(o, at, operand)
	}
}

// isNil reports whether n compares with nil.
func isNil(n *Binary) bool {
	_, x := n.X.(*Nil)
	_, y := n.Y.(*Nil)
	return x || y
}

// nameLet is nameTypes for what let names.
func (c *checker) nameLet(l *Local, at ast.Node) {
	if a := c.places[l.Value]; a != nil {
		at = a
	}
	switch {
	case !Declared(l):
		c.nameTypes(l.Value, at, operand)
	case c.hidden(l.typ) == "":
		c.nameTypes(l.Value, at, assigned)
	case hasCall(l.Value):
		c.nameable(l.typ, at, ", or write it where "+l.Name+" stands")
	}
}

// Declared reports whether a variable for l, a name of let's, must be declared before
// it is known what its value is, and whether it has one.
func Declared(l *Local) bool {
	switch l.Value.(type) {
	case *Cond, *Default:
		return true
	}
	return l.Value.MayBeAbsent()
}

// nameable reports a value of type t, for which a variable is needed, if the package
// cannot write t. hint says what to write besides a function of the package, if not "".
func (c *checker) nameable(t types.Type, at ast.Node, hint string) {
	why := c.hidden(t)
	if why == "" {
		return
	}
	switch {
	case hint != "" || isTypeParam(t):
	case keyKindOf(t) == Text:
		hint = ", or convert the values: string(x)"
	case isInteger(t):
		hint = ", or convert the values: int64(x)"
	case IsFloat(t):
		hint = ", or convert the values: float(x)"
	}
	c.at(at, hiddenType, c.quote(at), why, hint)
}

// hidden says which part of t the package cannot write, and why; "" if there is none.
func (c *checker) hidden(t types.Type) string {
	self := c.scope.Pkg
	all := func(parts ...types.Type) string {
		for _, t := range parts {
			if why := c.hidden(t); why != "" {
				return why
			}
		}
		return ""
	}
	member := func(obj types.Object) string {
		if obj.Exported() || obj.Pkg() == self {
			return c.hidden(obj.Type())
		}
		return fmt.Sprintf("a type with a member %s that package %s does not export", obj.Name(), obj.Pkg().Path())
	}
	name := func(obj *types.TypeName, args *types.TypeList) string {
		switch of := obj.Pkg(); {
		case of == nil || of == self:
		case !obj.Exported():
			return fmt.Sprintf("type %s, which package %s does not export", obj.Name(), of.Path())
		case c.scope.Importable != nil && !c.scope.Importable(of.Path()):
			return fmt.Sprintf("type %s of package %s, which this package may not import", obj.Name(), of.Path())
		}
		for t := range args.Types() {
			if why := c.hidden(t); why != "" {
				return why
			}
		}
		return ""
	}
	switch t := t.(type) {
	case *types.Named:
		return name(t.Obj(), t.TypeArgs())
	case *types.Alias:
		return name(t.Obj(), t.TypeArgs())
	case *types.Map:
		return all(t.Key(), t.Elem())
	case interface{ Elem() types.Type }: // a pointer, a slice, an array or a channel
		return all(t.Elem())
	case *types.Signature:
		for _, tuple := range []*types.Tuple{t.Params(), t.Results()} {
			for v := range tuple.Variables() {
				if why := c.hidden(v.Type()); why != "" {
					return why
				}
			}
		}
	case *types.Struct:
		for f := range t.Fields() {
			if why := member(f); why != "" {
				return why
			}
		}
	case *types.Interface:
		for m := range t.ExplicitMethods() {
			if why := member(m); why != "" {
				return why
			}
		}
		for e := range t.EmbeddedTypes() {
			if why := c.hidden(e); why != "" {
				return why
			}
		}
	}
	return ""
}
