package keyexpr

import (
	"go/constant"
	"go/types"
	"math"
	"slices"
	"strconv"
	"strings"
)

// given returns the type of the first of nodes that is not a literal, and so gives
// the others their type, nil if there is none.
func given(nodes ...Node) types.Type {
	if i := slices.IndexFunc(nodes, func(n Node) bool { return !flexible(n) }); i >= 0 {
		return nodes[i].Type()
	}
	return nil
}

// flexible reports whether n has the type that is asked for: a literal, a constant
// declared without a type, or what is computed from these.
func flexible(n Node) bool {
	switch n := n.(type) {
	case *Const:
		return n.Name == "" || n.untyped
	case *Unary:
		return n.Op == "-" && flexible(n.X)
	case *Binary:
		return arithmetic[n.Op] != 0 && flexible(n.X) && flexible(n.Y)
	}
	return false
}

// constant writes a constant. An integer that would have another type at this place
// is converted.
func (s *spelling) constant(n *Const, at place) (string, int) {
	var text string
	binds := bindPrimary
	switch {
	case n.spelled.text != "":
		return n.spelled.text, n.spelled.binds
	case n.Name != "":
		text = s.declared(n.Name, n.typ, at)
	case n.Value.Kind() == constant.String:
		return strconv.Quote(constant.StringVal(n.Value)), binds
	case n.Value.Kind() == constant.Bool:
		return n.Value.String(), binds
	case IsFloat(n.typ):
		text = floatText(n.Value, at.want)
	default:
		text, binds = integerText(n.Value)
	}
	if b, ok := types.Unalias(n.typ).(*types.Basic); ok && flexible(n) && isInteger(b) && !isUntyped(b) && b.Kind() != types.Int &&
		(at.want == nil || !types.Identical(at.want, b)) {
		return types.Typ[b.Kind()].Name() + "(" + text + ")", bindPrimary
	}
	if strings.HasPrefix(text, "-") {
		binds = bindUnary
	}
	return text, binds
}

// floatText writes a float: as an integer only where that becomes a float.
func floatText(v constant.Value, want types.Type) string {
	f, _ := constant.Float64Val(v)
	text := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") && (want == nil || !IsFloat(want) || math.Abs(f) >= 1<<53) {
		text += ".0"
	}
	return text
}

// integerText writes an integer of any size. Literals end at the greatest int64.
func integerText(v constant.Value) (string, int) {
	greatest := constant.MakeInt64(1<<63 - 1)
	if constant.Sign(v) < 0 {
		text, binds := integerText(constant.UnaryOp(minus, v, 0))
		if binds < bindPrimary {
			text = "(" + text + ")"
		}
		return "-" + text, bindUnary
	}
	if !constant.Compare(v, gtr, greatest) {
		return v.ExactString(), bindPrimary
	}
	high, binds := integerText(constant.BinaryOp(v, quo, greatest))
	if binds < bindPrimary {
		high = "(" + high + ")"
	}
	return greatest.ExactString() + " * " + high + " + " + constant.BinaryOp(v, rem, greatest).ExactString(), bindAdd
}
