package keyexpr

import (
	"go/constant"
	"go/types"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// mismatch reports two values whose types do not go together.
func (c *checker) mismatch(n, left, right ast.Node, x, y Node) {
	args := []any{c.quote(left), c.typeName(x.Type()), c.quote(right), c.typeName(y.Type())}
	var hints []string
	xk, yk := keyKindOf(x.Type()), keyKindOf(y.Type())
	switch {
	case left != n && isComparison(n) && (isComparison(left) && yk != Boolean || isComparison(right) && xk != Boolean):
		c.at(n, comparedFirst, args...)
	case xk == Text && yk == Text:
		for _, o := range []struct {
			n ast.Node
			x Node
		}{{left, x}, {right, y}} {
			if !types.Identical(o.x.Type(), typString) {
				hints = append(hints, "string("+c.quote(o.n)+")")
			}
		}
		c.at(n, mismatched, append(args, strings.Join(hints, " and "))...)
	case isInteger(x.Type()) && isInteger(y.Type()) && !isUntyped(x.Type()) && !isUntyped(y.Type()):
		c.at(n, mismatched, append(args, c.integerHint(left, right, x, y))...)
	case isWhole(x) && isInteger(y.Type()):
		c.convertHint(n, args, left, "int("+c.quote(left)+")")
	case isInteger(x.Type()) && isWhole(y):
		c.convertHint(n, args, right, "int("+c.quote(right)+")")
	case IsFloat(x.Type()) && isInteger(y.Type()):
		c.convertHint(n, args, right, c.asDecimal(right))
	case isInteger(x.Type()) && IsFloat(y.Type()):
		c.convertHint(n, args, left, c.asDecimal(left))
	case xk == Text && yk != None && yk != mixed:
		c.convertHint(n, args, right, c.asText(right))
	case yk == Text && xk != None && xk != mixed:
		c.convertHint(n, args, left, c.asText(left))
	case pointsToValue(x.Type()):
		c.at(n, pointedTo, append(args, c.quote(left))...)
	case pointsToValue(y.Type()):
		c.at(n, pointedTo, append(args, c.quote(right))...)
	default:
		c.at(n, incompatible, args...)
	}
}

// isWhole reports whether n is a float constant of the package without a fraction, such
// as 1e3.
func isWhole(n Node) bool {
	k, ok := n.(*Const)
	return ok && k.untyped && IsFloat(k.typ) && constant.ToInt(k.Value).Kind() == constant.Int
}

// pointsToValue reports whether t is a pointer to what is compared by itself.
func pointsToValue(t types.Type) bool {
	p, ok := t.Underlying().(*types.Pointer)
	return ok && (keyKindOf(p.Elem()) != None || IsFloat(p.Elem()))
}

// isComparison reports whether n is a comparison.
func isComparison(n ast.Node) bool {
	b, ok := n.(*ast.BinaryNode)
	return ok && slices.Contains([]string{"==", "!=", "<", "<=", ">", ">=", "in", "matches", "contains", "startsWith", "endsWith"}, b.Operator)
}

// convertHint reports two values of which write is what one, n, is converted by.
func (c *checker) convertHint(at ast.Node, args []any, n ast.Node, write string) {
	r := mismatched
	if isLiteral(n) {
		r = respelled
	}
	c.at(at, r, append(args, write)...)
}

// isLiteral reports whether n is a number or a boolean as it stands in the source.
func isLiteral(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return true
	case *ast.UnaryNode:
		return n.Operator == "-" && isLiteral(n.Node)
	}
	return false
}

// asText writes n as text.
func (c *checker) asText(n ast.Node) string {
	if isLiteral(n) {
		return strconv.Quote(c.quote(n))
	}
	return "string(" + c.quote(n) + ")"
}

// asDecimal writes the integer n as a float.
func (c *checker) asDecimal(n ast.Node) string {
	if text := c.quote(n); isLiteral(n) && strings.Trim(text, "-0123456789") == "" {
		return text + ".0"
	}
	return "float(" + c.quote(n) + ")"
}

// integerHint writes the conversion that makes two integers go together: to the wider
// type, so that no value changes, where there is one, and that of the first where not.
func (c *checker) integerHint(left, right ast.Node, x, y Node) string {
	_, xPlain := types.Unalias(x.Type()).(*types.Basic)
	_, yPlain := types.Unalias(y.Type()).(*types.Basic)
	xb, xok := x.Type().Underlying().(*types.Basic)
	yb, yok := y.Type().Underlying().(*types.Basic)
	both := func(name string) string {
		return name + "(" + c.quote(left) + ") and " + name + "(" + c.quote(right) + ")"
	}
	known := xok && yok
	switch {
	case known && holds(xb, yb) && (xPlain || !holds(yb, xb)):
		if xPlain {
			return xb.Name() + "(" + c.quote(right) + ")"
		}
		return both(xb.Name())
	case known && holds(yb, xb):
		if yPlain {
			return yb.Name() + "(" + c.quote(left) + ")"
		}
		return both(yb.Name())
	case known && holds(types.Typ[types.Int64], xb) && holds(types.Typ[types.Int64], yb):
		return both("int64")
	case xPlain:
		return xb.Name() + "(" + c.quote(right) + ")"
	case yPlain:
		return yb.Name() + "(" + c.quote(left) + ")"
	}
	return both("int64")
}

// holds reports whether every value of type u is one of type t. An int has fewer bits
// than an int64, as on some platforms, and more than an int32.
func holds(t, u *types.Basic) bool {
	width := func(b *types.Basic) int {
		switch b.Kind() {
		case types.Int, types.Uint, types.Uintptr:
			return 63
		}
		return bits(b)
	}
	switch tu, uu := t.Info()&types.IsUnsigned != 0, u.Info()&types.IsUnsigned != 0; {
	case tu == uu:
		return width(t) >= width(u)
	case tu:
		return false
	}
	return width(t) > bits(u)
}
