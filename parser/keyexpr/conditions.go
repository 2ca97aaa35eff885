package keyexpr

import (
	"go/constant"
	"go/token"
	"slices"

	"github.com/expr-lang/expr/ast"
)

// part checks n as an operand of "and" or "or", which literals alone cannot be.
func (c *checker) part(n ast.Node) Node { return c.isPart(n, c.expr(n)) }

func (c *checker) isPart(n ast.Node, x Node) Node {
	x = c.isCondition(n, x)
	if x != nil && literal(x) {
		c.at(n, constantPart, c.quote(n))
		return nil
	}
	return x
}

// literal reports whether n is made of literals alone. A constant of the package may
// have another value in another build, and the name of the method in another method.
func literal(n Node) bool {
	return !Contains(n, func(n Node) bool {
		switch n := n.(type) {
		case *Const:
			return n.Name != "" || n.spelled.text != ""
		case *Local:
			return n.Value == nil || !literal(n.Value)
		}
		return !isConstant(n)
	})
}

func hasCall(n Node) bool {
	return Contains(n, func(n Node) bool { _, ok := n.(*Call); return ok })
}

// operands lists what n, a chain of op, is made of. It takes apart what is a chain in
// other words: x in [a, b] is x == a || x == b, and !(a || b) is !a && !b.
func operands(op string, n Node) []Node {
	switch n := n.(type) {
	case *Binary:
		if n.Op == op {
			return append(operands(op, n.X), operands(op, n.Y)...)
		}
	case *In:
		if n.In != nil || op != "||" && len(n.Elems) > 1 {
			break
		}
		var nodes []Node
		for _, e := range n.Elems {
			// Absent values are equal, but an absent one is in no list.
			if n.X.MayBeAbsent() && e.MayBeAbsent() {
				nodes = append(nodes, &In{X: n.X, Elems: []Node{e}})
			} else {
				nodes = append(nodes, &Binary{Op: "==", X: n.X, Y: e, typ: typBool})
			}
		}
		return nodes
	case *Unary:
		var nodes []Node
		for _, o := range operands(map[string]string{"||": "&&", "&&": "||"}[op], n.X) {
			nodes = append(nodes, opposite(o))
		}
		return nodes
	}
	return []Node{n}
}

// opposite returns the condition that holds where n does not. An absent value is neither
// less nor greater, so that < has no opposite but "not".
func opposite(n Node) Node {
	switch n := n.(type) {
	case *Unary:
		return n.X
	case *Binary:
		if op := map[string]string{"==": "!=", "!=": "=="}[n.Op]; op != "" {
			return &Binary{Op: op, X: n.X, Y: n.Y, typ: n.typ}
		}
	}
	return &Unary{Op: "!", X: n}
}

// pointless returns what is wrong with a chain of op if one of the operands in right
// adds nothing to one in left, or leaves nothing of it. It does not judge what a call of
// a function of the user's stands between, which may change what an operand gives.
func pointless(op string, left, right []Node) (rule, bool) {
	for _, x := range slices.Backward(left) {
		if hasCall(x) {
			break
		}
		for _, y := range right {
			if hasCall(y) {
				break
			}
			switch {
			case sameCondition(x, y):
				return repeatedOperand, true
			case sameCondition(opposite(x), y):
				return map[string]rule{"||": eitherHolds, "&&": bothHold}[op], true
			}
			// Constants of two names may have one value.
			switch v, w := sameWith(map[string]string{"||": "!=", "&&": "=="}[op], x, y); {
			case v == nil:
			case constant.Compare(v, token.EQL, w):
				return repeatedOperand, true
			default:
				return map[string]rule{"||": alwaysHolds, "&&": neverHolds}[op], true
			}
		}
	}
	return rule{}, false
}

// sameCondition reports whether x and y are the same, also if a comparison has its
// operands the other way round.
func sameCondition(x, y Node) bool {
	a, first := x.(*Binary)
	b, second := y.(*Binary)
	return same(x, y) || first && second && a.Op == mirrored[b.Op] && same(a.X, b.Y) && same(a.Y, b.X)
}

// mirrored are the operators that mean the same with their operands the other way round.
var mirrored = map[string]string{"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

// sameWith returns the constants that x and y compare one value with by op, nil if they
// do not.
func sameWith(op string, x, y Node) (v, w constant.Value) {
	a, v := compared(op, x)
	b, w := compared(op, y)
	if v == nil || w == nil || v.Kind() != w.Kind() || !same(a, b) {
		return nil, nil
	}
	return v, w
}

// compared returns what n compares with a constant by op, and the constant.
func compared(op string, n Node) (Node, constant.Value) {
	b, ok := n.(*Binary)
	if !ok || b.Op != op {
		return nil, nil
	}
	if v := ConstValue(b.Y); v != nil {
		return b.X, v
	}
	return b.Y, ConstValue(b.X)
}

// withItself returns what is wrong with a comparison of a value with itself. A float may
// differ from itself, if it is not a number, and an absent value is not even less than or
// equal to itself.
func withItself(b *Binary) (rule, bool) {
	if hasCall(b) || ConstValue(b.X) != nil || !same(b.X, b.Y) {
		return rule{}, false
	}
	switch b.Op {
	case "<", ">":
		return itselfNever, true
	case "!=":
		return itselfNever, !IsFloat(b.X.Type())
	case "==":
		return itselfAlways, !IsFloat(b.X.Type())
	}
	return itselfAlways, !IsFloat(b.X.Type()) && !b.X.MayBeAbsent()
}
