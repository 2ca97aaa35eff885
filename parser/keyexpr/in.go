package keyexpr

import (
	"go/types"
	"slices"

	"github.com/expr-lang/expr/ast"
)

// in checks x in list.
func (c *checker) in(n *ast.BinaryNode) Node {
	if r, ok := n.Right.(*ast.BinaryNode); ok && r.Operator == ".." {
		l := c.quote(n.Left)
		c.at(r, rangeOperator, l+" >= "+c.quote(r.Left)+" and "+l+" <= "+c.quote(r.Right))
		return nil
	}
	x := c.compared(n.Left)
	if array, ok := n.Right.(*ast.ArrayNode); ok {
		return c.inLiteral(n, array, x)
	}
	list := c.expr(n.Right)
	if x == nil || list == nil {
		return nil
	}
	elem := listElem(list.Type())
	if m, ok := list.Type().Underlying().(*types.Map); ok && !isTypeParam(list.Type()) {
		elem = m.Key()
	}
	switch {
	case keyKindOf(list.Type()) == Text:
		c.at(n, textInText, c.quote(n.Right), c.quote(n.Left))
		return nil
	case elem == nil:
		c.at(n.Right, notCollection, c.quote(n.Right), c.typeName(list.Type()))
		return nil
	case keyKindOf(elem) == None && !types.Identical(elem, typFloat) || isTypeParam(elem):
		c.at(n.Right, uncomparedElems, c.quote(n.Right), c.typeName(list.Type()))
		return nil
	}
	if x = c.assign(n.Left, x, elem, "the list"); x == nil {
		return nil
	}
	return &In{X: x, In: list}
}

// inLiteral checks x in [a, b].
func (c *checker) inLiteral(n *ast.BinaryNode, array *ast.ArrayNode, x Node) Node {
	if len(array.Nodes) == 0 {
		c.at(n, emptyList, c.quote(n))
		return nil
	}
	in := &In{X: x}
	for _, e := range array.Nodes {
		equal := &ast.BinaryNode{Operator: "==", Left: n.Left, Right: e}
		if x == nil {
			c.expr(e) // for its own problems
			continue
		}
		y := c.expr(e)
		if y == nil {
			continue
		}
		if b := c.compare(equal, in.X, y); b != nil {
			if slices.ContainsFunc(in.Elems, func(e Node) bool { return same(e, b.Y) && !hasCall(e) }) {
				c.at(e, repeatedInList, c.quote(e))
				continue
			}
			if text, _ := emptyTest(b); text != nil && !mayBeEmptyText(text) {
				at := n.Left
				if ConstValue(b.X) != nil {
					at = e
				}
				write := "leave it out"
				if text.MayBeAbsent() {
					write += ", and ask " + c.operand(at) + " " + map[bool]string{false: "==", true: "!="}[c.negated[n]] + " nil beside it"
				}
				c.at(e, emptyInList, c.quote(at), write)
				continue
			}
			in.X = b.X
			in.Elems = append(in.Elems, b.Y)
		}
	}
	if len(in.Elems) < len(array.Nodes) {
		return nil
	}
	return in
}
