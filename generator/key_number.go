package generator

import (
	"fmt"
	"go/types"
	"slices"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimitgen/ratelimitgen/parser/keyexpr"
)

// binary renders arithmetic, and < <= > >=.
func (k *keyCode) binary(b *block, n *keyexpr.Binary) val {
	vals := k.operands(b, []keyexpr.Node{n.X, n.Y})
	float := keyexpr.IsFloat(n.X.Type())
	if (n.Op == "/" || n.Op == "%") && keyexpr.ConstValue(n.Y) == nil && !float {
		vals[1] = k.keep(b, n.Y, vals[1], useAgain)
		y := vals[1].in(precCompare + 1)
		b.require(check{y + " != 0", y + " == 0"}, vals[1].use == useAlways)
	}
	if fn := saturating[n.Op]; fn != "" && k.saturate && overflows(n) {
		return val{
			text: k.runtime(fn) + "(" + vals[0].text + ", " + vals[1].text + ")",
			prec: precPrimary,
			use:  min(vals[0].use, vals[1].use),
		}
	}
	prec := precedence[n.Op]
	v := val{
		text: vals[0].in(prec) + " " + n.Op + " " + vals[1].in(prec+1),
		prec: prec,
		use:  min(vals[0].use, vals[1].use),
	}
	if float && n.Op == "*" {
		// Otherwise the product may be fused with a sum, and not be rounded.
		v.text, v.prec = "float64("+v.text+")", precPrimary
	}
	return v
}

// saturating are the operators that would wrap around, and what stands for them.
var saturating = map[string]string{"+": "AddUnits", "-": "SubUnits", "*": "MulUnits", "/": "DivUnits"}

// overflows reports whether the value of an operator can be none of its type. The
// compiler checks constants.
func overflows(n *keyexpr.Binary) bool {
	switch {
	case keyexpr.ConstValue(n) != nil || keyexpr.IsFloat(n.Type()):
		return false
	case n.Op == "/":
		// Only the least value has no opposite.
		by := keyexpr.ConstValue(n.Y)
		return keyexpr.KindOf(n.Type()) != keyexpr.Unsigned && (by == nil || by.ExactString() == "-1")
	}
	return saturating[n.Op] != ""
}

// negative renders -x.
func (k *keyCode) negative(b *block, n *keyexpr.Unary) val {
	x := k.value(b, n.X)
	if k.saturate && keyexpr.ConstValue(n) == nil && !keyexpr.IsFloat(n.Type()) {
		return val{text: k.runtime("SubUnits") + "(0, " + x.text + ")", prec: precPrimary, use: x.use}
	}
	return val{text: "-" + x.in(precPrimary), prec: precUnary, use: x.use}
}

// int64 renders an integer as what amountFunc's functions return.
func (k *keyCode) int64(b *block, n keyexpr.Node, _ bool) string {
	v := k.value(b, n)
	if keyexpr.ConstValue(n) == nil && !fits(n.Type(), types.Typ[types.Int64]) {
		v = k.converted(v, "int64")
	} else {
		v = k.as(v, n.Type(), types.Int64, "int64")
	}
	if k.finite && stops(n) {
		return k.runtime("FiniteLimit") + "(" + v.text + ")"
	}
	return v.text
}

// converted renders a conversion to an integer type that stops at its bounds.
func (k *keyCode) converted(v val, to string) val {
	return val{text: k.runtime("ConvertUnits") + "[" + to + "](" + v.text + ")", prec: precPrimary, use: v.use}
}

// fits reports whether all integers of one type are of another on every platform.
func fits(from, to types.Type) bool {
	x, xok := from.Underlying().(*types.Basic)
	y, yok := to.Underlying().(*types.Basic)
	if !xok || !yok {
		return false // a type parameter can be several types
	}
	if x.Kind() == y.Kind() {
		return true
	}
	signed := func(b *types.Basic) bool { return b.Info()&types.IsUnsigned == 0 }
	least, most := width(y)[0], width(x)[1]
	switch {
	case signed(x) == signed(y):
		return most <= least
	case signed(y):
		return most < least
	}
	return false
}

// width returns the least and the greatest number of bits of an integer type.
func width(b *types.Basic) [2]int {
	switch b.Kind() {
	case types.Int8, types.Uint8:
		return [2]int{8, 8}
	case types.Int16, types.Uint16:
		return [2]int{16, 16}
	case types.Int32, types.Uint32:
		return [2]int{32, 32}
	case types.Int64, types.Uint64:
		return [2]int{64, 64}
	}
	return [2]int{32, 64}
}

// stops reports whether the value of n is computed in a way that can stop at the
// bounds of its type, as distinct from one that is just passed on.
func stops(n keyexpr.Node) bool {
	switch n := n.(type) {
	case *keyexpr.Binary:
		return overflows(n)
	case *keyexpr.Unary:
		return keyexpr.ConstValue(n) == nil
	case *keyexpr.Convert:
		return keyexpr.ConstValue(n) == nil && !fits(n.X.Type(), n.Type()) || stops(n.X)
	case *keyexpr.Loop:
		return n.Op == "sum"
	case *keyexpr.Builtin:
		switch n.Name {
		case "abs":
			return true
		case "min", "max":
			return slices.ContainsFunc(n.Args, stops)
		}
	case *keyexpr.Local:
		return n.Value != nil && stops(n.Value)
	case *keyexpr.Let:
		return stops(n.Body)
	case *keyexpr.Cond:
		return stops(n.Then) || stops(n.Else)
	case *keyexpr.Default:
		return slices.ContainsFunc(n.Alts, func(a keyexpr.Alt) bool { return stops(a.Node) })
	}
	return keyexpr.ConstValue(n) == nil && !fits(n.Type(), types.Typ[types.Int64])
}

// abs renders abs(x).
func (k *keyCode) abs(b *block, n *keyexpr.Builtin, x val) val {
	if keyexpr.IsFloat(n.Type()) {
		return val{text: k.pkg("math", "math") + "Abs(" + x.text + ")", prec: precPrimary, use: min(x.use, useAgain)}
	}
	id := k.names.allot("abs", "abs")
	if x.literal {
		b.add(jen.Var().Id(id).Add(k.typ(n.Type())).Op("=").Id(x.text))
	} else {
		b.add(jen.Id(id).Op(":=").Id(x.text))
	}
	opposite := "-" + id
	if k.saturate {
		opposite = k.runtime("SubUnits") + "(0, " + id + ")"
	}
	b.add(jen.If(jen.Id(id + " < 0")).Block(jen.Id(id).Op("=").Id(opposite)))
	return name(id)
}

// convert renders string(x), float(x) and conversions to integers.
func (k *keyCode) convert(b *block, n *keyexpr.Convert) val {
	v, from, to := k.value(b, n.X), n.X.Type(), n.Type()
	if keyexpr.KindOf(to) != keyexpr.Text {
		switch whole := !keyexpr.IsFloat(to); {
		case keyexpr.IsFloat(from) && whole && k.saturate:
			v = k.keep(b, n.X, v, useAgain)
			nan := k.pkg("math", "math") + "IsNaN(" + v.text + ")"
			b.require(check{"!" + nan, nan}, v.use == useAlways)
			return val{text: k.runtime("FloatUnits") + "[" + to.String() + "](" + v.text + ")", prec: precPrimary, use: v.use}
		case keyexpr.IsFloat(from) && whole:
			// The comparisons do not hold for what is not a number either.
			v = k.keep(b, n.X, v, useAgain)
			x := v.in(precCompare + 1)
			b.require(check{x + " >= -1<<63", "!(" + x + " >= -1<<63)"}, v.use == useAlways)
			b.require(check{x + " < 1<<63", "!(" + x + " < 1<<63)"}, v.use == useAlways)
		case whole && k.saturate && keyexpr.ConstValue(n) == nil && !fits(from, to):
			return k.converted(v, to.String())
		}
		return val{text: to.String() + "(" + v.text + ")", prec: precPrimary, use: v.use}
	}
	text := func(format string, args ...any) val {
		return val{text: k.pkg("strconv", "strconv") + fmt.Sprintf(format, args...), prec: precPrimary, use: min(v.use, useAgain)}
	}
	switch keyexpr.KindOf(from) {
	case keyexpr.Signed:
		if b, ok := types.Unalias(from).(*types.Basic); ok && b.Kind() == types.Int {
			return text("Itoa(%s)", v.text)
		}
		return text("FormatInt(%s, 10)", k.as(v, from, types.Int64, "int64").text)
	case keyexpr.Unsigned:
		return text("FormatUint(%s, 10)", k.as(v, from, types.Uint64, "uint64").text)
	case keyexpr.Boolean:
		return text("FormatBool(%s)", k.as(v, from, types.Bool, "bool").text)
	}
	return val{text: "string(" + v.text + ")", prec: precPrimary, use: v.use}
}
