package keyexpr

import (
	"go/constant"
	"go/token"
	"math"
)

// ConstValue returns the value of n if it is a constant expression, else nil. It is
// of kind Unknown if n is a float that is not finite.
func ConstValue(n Node) constant.Value {
	switch n := n.(type) {
	case *Const:
		return n.Value
	case *Unary:
		return foldUnary(n)
	case *Binary:
		return foldBinary(n)
	case *Convert:
		return foldConvert(n)
	}
	return nil
}

// valueText writes v for a message: shortened if it has many digits.
func valueText(v constant.Value) string {
	text := v.ExactString()
	if len(text) > 40 {
		if f := constant.ToFloat(v); f.Kind() == constant.Float {
			return f.String()
		}
	}
	return text
}

func foldUnary(n *Unary) constant.Value {
	v := ConstValue(n.X)
	if n.Op != "-" || v == nil || v.Kind() == constant.Unknown {
		return nil
	}
	return constant.UnaryOp(minus, v, 0)
}

func foldBinary(n *Binary) constant.Value {
	op, ok := arithmetic[n.Op]
	if !ok {
		return nil
	}
	x, y := ConstValue(n.X), ConstValue(n.Y)
	if x == nil || y == nil {
		return nil
	}
	if IsFloat(n.typ) {
		return foldFloats(op, x, y)
	}
	if op == token.QUO || op == token.REM {
		if constant.Sign(y) == 0 {
			return nil
		}
		if op == token.QUO {
			op = quo
		}
	}
	return constant.BinaryOp(x, op, y)
}

// foldFloats computes as a program does, in float64.
func foldFloats(op token.Token, x, y constant.Value) constant.Value {
	a, _ := constant.Float64Val(x)
	b, _ := constant.Float64Val(y)
	switch op {
	case token.ADD:
		a += b
	case token.SUB:
		a -= b
	case token.MUL:
		a *= b
	case token.QUO:
		a /= b
	}
	return constant.MakeFloat64(a)
}

// negatesZero reports whether n is a product or quotient that is negative zero at
// run time.
func negatesZero(n Node) bool {
	b, ok := n.(*Binary)
	if !ok || b.Op != "*" && b.Op != "/" {
		return false
	}
	x, y := ConstValue(b.X), ConstValue(b.Y)
	return constant.Sign(x) < 0 && constant.Sign(y) >= 0 || constant.Sign(x) >= 0 && constant.Sign(y) < 0
}

func foldConvert(n *Convert) constant.Value {
	v := ConstValue(n.X)
	if v == nil {
		return nil
	}
	switch {
	case IsFloat(n.typ):
		return constant.ToFloat(v)
	case v.Kind() == constant.Float:
		f, _ := constant.Float64Val(v)
		if f = math.Trunc(f); f < math.MinInt64 || f >= 1<<63 {
			return constant.MakeUnknown()
		}
		return constant.MakeInt64(int64(f))
	case keyKindOf(n.typ) != Text || v.Kind() == constant.String:
		return v
	}
	return constant.MakeString(v.ExactString())
}

// asFloat makes a float64 of x, a float. A constant without a type stays without.
func asFloat(x Node) Node {
	switch {
	case isUntyped(x.Type()) || x.Type() == typFloat:
		return x
	case ConstValue(x) != nil:
		k := &Const{Value: constant.ToFloat(ConstValue(x)), typ: typFloat}
		if named, ok := x.(*Const); ok {
			if k.spelled = named.spelled; named.Name != "" {
				k.spelled = spelled{named.Name, bindPrimary}
			}
		}
		return k
	}
	return &Convert{X: x, typ: typFloat}
}
