package keyexpr

import (
	"go/constant"
	"go/types"

	"github.com/expr-lang/expr/ast"
)

// builtin checks the functions that expr has built in. Those of the package hide
// them; see rewrite.
func (c *checker) builtin(n *ast.BuiltinNode) Node {
	switch n.Name {
	case "lower", "upper":
		return c.textFunction(n, 1, 1)
	case "trim":
		return c.textFunction(n, 1, 2)
	case "len":
		return c.length(n)
	case "string":
		return c.stringConversion(n)
	case "int":
		return c.integerConversion(n, n.Name, typInt, n.Arguments)
	}
	remedy := "use a function of the package"
	c.problem(c.text.clamp(n.Location()), notSupported, n.Name, remedy)
	return nil
}

// arguments checks the number of arguments.
func (c *checker) arguments(n ast.Node, name string, args []ast.Node, least, most int) bool {
	if len(args) >= least && len(args) <= most {
		return true
	}
	takes := "one argument"
	if most > least {
		takes = "one or two arguments"
	}
	c.at(n, argumentCount, name, takes, len(args))
	return false
}

func (c *checker) textFunction(n *ast.BuiltinNode, least, most int) Node {
	if !c.arguments(n, n.Name, n.Arguments, least, most) {
		return nil
	}
	b := &Builtin{Name: n.Name}
	for _, a := range n.Arguments {
		if x := c.textual(a); x != nil {
			b.Args = append(b.Args, c.settle(a, x))
		}
	}
	if len(b.Args) < len(n.Arguments) {
		return nil
	}
	return b
}

func (c *checker) length(n *ast.BuiltinNode) Node {
	if !c.arguments(n, n.Name, n.Arguments, 1, 1) {
		return nil
	}
	a := n.Arguments[0]
	x := c.expr(a)
	if x == nil {
		return nil
	}
	ok := keyKindOf(x.Type()) == Text
	if !isTypeParam(x.Type()) {
		switch x.Type().Underlying().(type) {
		case *types.Slice, *types.Array, *types.Map:
			ok = true
		}
	}
	if !ok {
		c.at(a, noLength, c.quote(a), c.typeName(x.Type()))
		return nil
	}
	return &Builtin{Name: "len", Args: []Node{c.settle(a, x)}}
}

// stringConversion checks string(x).
func (c *checker) stringConversion(n *ast.BuiltinNode) Node {
	if !c.arguments(n, n.Name, n.Arguments, 1, 1) {
		return nil
	}
	a := n.Arguments[0]
	x := c.settle(a, c.expr(a))
	if x == nil {
		return nil
	}
	switch k := keyKindOf(x.Type()); {
	case k == mixed:
		c.at(a, mixedKey, c.typeName(x.Type()))
		return nil
	case k == None && !isBytes(x.Type()):
		c.at(a, notConvert, c.quote(a), c.typeName(x.Type()), "string", "; "+c.remedy(a, x.Type()))
		return nil
	}
	if types.Identical(x.Type(), typString) {
		return x
	}
	if k, ok := x.(*Const); ok && k.Name == "" {
		return &Const{Value: foldConvert(&Convert{X: k, typ: typString}), typ: types.Typ[types.UntypedString]}
	}
	return &Convert{X: x, typ: typString}
}

// integerConversion checks int64(x) and its like.
func (c *checker) integerConversion(n ast.Node, name string, t types.Type, args []ast.Node) Node {
	if !c.arguments(n, name, args, 1, 1) {
		return nil
	}
	a := args[0]
	x := c.expr(a)
	if x == nil {
		return nil
	}
	if !isInteger(x.Type()) {
		hint := ""
		if keyKindOf(x.Type()) == Text {
			hint = "; use a function of the package"
		}
		c.at(a, notConvert, c.quote(a), c.typeName(x.Type()), name, hint)
		return nil
	}
	if v := ConstValue(x); v != nil && !representable(v, t) {
		c.at(a, overflow, v.ExactString(), name)
		return nil
	}
	if k, ok := x.(*Const); ok && (k.Name == "" || isUntyped(k.typ)) {
		return &Const{Value: constant.ToInt(k.Value), Name: k.Name, typ: t}
	}
	return &Convert{X: x, typ: t}
}
