package generator

import (
	"fmt"
	"go/types"

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
	if fn := saturating[n.Op]; fn != "" && k.saturate && !float {
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
var saturating = map[string]string{"+": "AddUnits", "-": "SubUnits", "*": "MulUnits"}

// int64 renders an integer as what amountFunc's functions return.
func (k *keyCode) int64(b *block, n keyexpr.Node, _ bool) string {
	return k.as(k.value(b, n), n.Type(), types.Int64, "int64").text
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
	b.add(jen.If(jen.Id(id + " < 0")).Block(jen.Id(id).Op("=").Id("-" + id)))
	return name(id)
}

// convert renders string(x), float(x) and conversions to integers.
func (k *keyCode) convert(b *block, n *keyexpr.Convert) val {
	v, from, to := k.value(b, n.X), n.X.Type(), n.Type()
	if keyexpr.KindOf(to) != keyexpr.Text {
		if keyexpr.IsFloat(from) && !keyexpr.IsFloat(to) {
			// The comparisons do not hold for what is not a number either.
			v = k.keep(b, n.X, v, useAgain)
			x := v.in(precCompare + 1)
			b.require(check{x + " >= -1<<63", "!(" + x + " >= -1<<63)"}, v.use == useAlways)
			b.require(check{x + " < 1<<63", "!(" + x + " < 1<<63)"}, v.use == useAlways)
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
