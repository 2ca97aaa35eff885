package keyexpr

import (
	"go/constant"
	"go/types"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// key checks the expression as a key.
func (c *checker) key() *Key {
	spans, ok := c.read()
	if !ok {
		return nil
	}
	if len(spans) == 1 && c.text.text(spans[0]) == "global" {
		if c.local("global") == nil {
			return &Key{Global: true}
		}
		c.problem(spans[0], ambiguousAll)
		return nil
	}
	var elems []ast.Node
	for _, s := range spans {
		if n := c.parse(s); n != nil {
			elems = append(elems, n)
		}
	}
	if array, ok := only(elems).(*ast.ArrayNode); ok && len(spans) == 1 {
		if elems = array.Nodes; len(elems) == 0 {
			c.at(array, emptyExpression)
		}
	}
	k := &Key{}
	for _, n := range elems {
		k.Elems = append(k.Elems, c.keyElement(n))
	}
	if !c.failed() && !slices.ContainsFunc(k.Elems, func(n Node) bool { return ConstValue(n) == nil }) {
		c.problem(span{0, len(c.text.runes)}, constantKey).Warning = true
	}
	return k
}

// cost checks the expression as a cost.
func (c *checker) cost() Node {
	spans, ok := c.read()
	if !ok {
		return nil
	}
	if len(spans) > 1 {
		c.problem(span{spans[1].from, len(c.text.runes)}, notSupported, "a list", "a cost is one expression")
	}
	tree := c.parse(spans[0])
	if tree == nil {
		return nil
	}
	n := c.integer(tree)
	if n == nil {
		return nil
	}
	if v := ConstValue(n); v != nil && !representable(v, types.Typ[types.Int64]) {
		c.at(tree, overflow, v.ExactString(), "int64")
		return nil
	}
	return c.settle(tree, n)
}

func only(nodes []ast.Node) ast.Node {
	if len(nodes) == 1 {
		return nodes[0]
	}
	return nil
}

// keyElement checks n as an element of the key.
func (c *checker) keyElement(n ast.Node) Node {
	if array, ok := n.(*ast.ArrayNode); ok {
		c.at(array, nestedTuple)
		return nil
	}
	x := c.settle(n, c.element(n))
	if x == nil {
		return nil
	}
	if v := ConstValue(x); v != nil && v.Kind() == constant.String && constant.StringVal(v) == "" {
		c.at(n, emptyKey)
		return nil
	}
	if join := joined(x); join != nil {
		c.at(n, joinedKey, "["+c.pieces(n)+"]").Warning = true
	}
	return x
}

// joined returns the join of several values that n is, also with its case changed.
func joined(n Node) *Join {
	switch n := n.(type) {
	case *Builtin:
		if n.Name != "len" {
			return joined(n.Args[0])
		}
	case *Join:
		variable := 0
		for _, p := range n.Parts {
			if ConstValue(p) == nil {
				variable++
			}
		}
		if variable > 1 {
			return n
		}
	}
	return nil
}

// pieces writes the values that n joins as elements of a tuple.
func (c *checker) pieces(n ast.Node) string {
	if b, ok := n.(*ast.BinaryNode); ok && b.Operator == "+" {
		l, r := c.pieces(b.Left), c.pieces(b.Right)
		if l == "" || r == "" {
			return l + r
		}
		return l + ", " + r
	}
	if b, ok := n.(*ast.BuiltinNode); ok && len(b.Arguments) == 1 {
		if inner, ok := b.Arguments[0].(*ast.BinaryNode); ok {
			return b.Name + "(" + strings.ReplaceAll(c.pieces(inner), ", ", "), "+b.Name+"(") + ")"
		}
	}
	switch n := n.(type) {
	case *ast.StringNode:
		return ""
	case *ast.IdentifierNode:
		if name := c.text.name(n); slices.Contains(requestMembers, name) && c.local(name) != nil {
			return "#" + name
		}
	}
	return c.quote(n)
}

// element checks n where a dimension may stand: an element, or an alternative of
// one. The result is of text, integer or boolean type.
func (c *checker) element(n ast.Node) Node {
	var x Node
	switch n := n.(type) {
	case *ast.ConditionalNode, *ast.BinaryNode:
		x = c.choice(n, c.element)
	case *ast.IdentifierNode:
		var ok bool
		if x, ok = c.dimension(n); !ok {
			return nil
		}
		if x == nil {
			x = c.value(n)
		}
	default:
		x = c.value(n)
	}
	if x == nil {
		return nil
	}
	if _, ok := x.(*Dim); ok {
		return x
	}
	return c.keyable(n, x)
}

// choice checks the operators that choose among alternatives; sub checks those.
// Other operators go to value.
func (c *checker) choice(n ast.Node, sub func(ast.Node) Node) Node {
	switch n := n.(type) {
	case *ast.ConditionalNode:
		switch {
		case !c.count(n) || !n.Ternary:
			return nil // reported, at "if"
		case n.Cond == n.Exp1:
			return c.defaults(n, n.Cond, n.Exp2, true, sub)
		}
		return c.conditional(n, sub)
	case *ast.BinaryNode:
		if n.Operator == "??" {
			if !c.count(n) {
				return nil
			}
			return c.defaults(n, n.Left, n.Right, false, sub)
		}
	}
	return c.value(n)
}

// dimension returns the dimension that a bare name stands for in an element, nil if
// it stands for none, and false if a problem has been reported.
func (c *checker) dimension(n *ast.IdentifierNode) (dim Node, ok bool) {
	name := c.text.name(n)
	if name != "global" && name != string(IP) && name != string(User) {
		return nil, true
	}
	declared := false
	switch c.packageObject(name).(type) {
	case *types.Var, *types.Const:
		declared = true
	}
	switch {
	case c.local(name) != nil && name == "global":
		c.at(n, ambiguousAll)
	case c.local(name) != nil:
		c.at(n, ambiguousName, name)
	case name == "global" && declared:
		return nil, true
	case name == "global":
		c.at(n, globalAlone)
	case declared:
		c.at(n, ambiguousGlobal, name, "string("+name+")")
	default:
		dim = c.told(n, DimKind(name))
		return dim, dim != nil
	}
	return nil, false
}

// told returns the dimension if the method can tell it.
func (c *checker) told(n ast.Node, kind DimKind) Node {
	if !c.scope.Request {
		c.at(n, noRequest, c.quote(n))
		return nil
	}
	return &Dim{Kind: kind}
}
