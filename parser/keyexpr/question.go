package keyexpr

import (
	"go/constant"
	"go/token"
	"go/types"
	"slices"

	"github.com/expr-lang/expr/ast"
)

// question is a condition that compares one value, an integer, text or a boolean, with
// literals, and nothing else: whether it holds is told by the value alone.
type question struct {
	value  Node
	bounds []constant.Value // the literals
	holds  func(v constant.Value) bool
}

// absentValue is what a question is asked about a value that is absent.
var absentValue constant.Value

var ordering = map[string]token.Token{
	"==": token.EQL, "!=": token.NEQ, "<": token.LSS, "<=": token.LEQ, ">": token.GTR, ">=": token.GEQ,
}

// questionOf returns what n asks; ok is false if it asks about more than one value, or
// compares with more than literals. A constant of the package may have another value in
// another build.
func questionOf(n Node) (q question, ok bool) {
	switch n := n.(type) {
	case *Unary:
		q, ok = questionOf(n.X)
		holds := q.holds
		q.holds = func(v constant.Value) bool { return !holds(v) }
		return q, ok && n.Op == "!"
	case *In:
		if n.In != nil {
			return question{}, false
		}
		q = question{value: n.X}
		for _, e := range n.Elems {
			v := ConstValue(e)
			if v == nil || !literal(e) {
				return question{}, false
			}
			q.bounds = append(q.bounds, v)
		}
		q.holds = func(v constant.Value) bool {
			return v != absentValue && slices.ContainsFunc(q.bounds, func(b constant.Value) bool { return constant.Compare(v, token.EQL, b) })
		}
		return q, judged(q.value)
	case *Binary:
		if n.Op == "&&" || n.Op == "||" {
			a, first := questionOf(n.X)
			b, second := questionOf(n.Y)
			if !first || !second || !same(a.value, b.value) {
				return question{}, false
			}
			return both(n.Op, a, b), true
		}
		op, ok := ordering[n.Op]
		if !ok {
			return question{}, false
		}
		x, y := n.X, n.Y
		if ConstValue(x) != nil {
			x, y, op = y, x, ordering[mirrored[n.Op]]
		}
		bound := ConstValue(y)
		if bound == nil || !literal(y) || !judged(x) {
			return question{}, false
		}
		holds := func(v constant.Value) bool {
			if v == absentValue {
				return op == token.NEQ
			}
			return constant.Compare(v, op, bound)
		}
		return question{x, []constant.Value{bound}, holds}, true
	}
	return question{}, false
}

// both returns the question that asks a and b, of one value.
func both(op string, a, b question) question {
	return question{a.value, slices.Concat(a.bounds, b.bounds), func(v constant.Value) bool {
		if op == "&&" {
			return a.holds(v) && b.holds(v)
		}
		return a.holds(v) || b.holds(v)
	}}
}

// judged reports whether the values of n are known well enough: integers, text or
// booleans, but no constant, and nothing that may differ from call to call.
func judged(n Node) bool {
	if ConstValue(n) != nil || hasCall(n) || isTypeParam(n.Type()) {
		return false
	}
	k := keyKindOf(n.Type())
	return isInteger(n.Type()) || k == Text || k == Boolean
}

// samples lists values that q.value may have so that every other one is on the same side
// of each of q's bounds as one of them.
func (q question) samples() []constant.Value {
	switch keyKindOf(q.value.Type()) {
	case Boolean:
		return []constant.Value{constant.MakeBool(false), constant.MakeBool(true)}
	case Text:
		list := []constant.Value{constant.MakeString("")}
		for _, b := range q.bounds {
			// Nothing is between a text and the same with a zero byte behind it.
			list = append(list, b, constant.MakeString(constant.StringVal(b)+"\x00"))
		}
		return list
	}
	list := []constant.Value{constant.MakeInt64(0)} // where all bounds are beyond what it may have
	for _, b := range q.bounds {
		for _, d := range []int64{-1, 0, 1} {
			v := constant.BinaryOp(b, token.ADD, constant.MakeInt64(d))
			if mayBe(q.value, v) {
				list = append(list, v)
			}
		}
	}
	return list
}

// mayBe reports whether n, an integer, may have the value v.
func mayBe(n Node, v constant.Value) bool {
	if !representable(v, n.Type()) || isCount(n) && constant.Sign(v) < 0 {
		return false
	}
	switch {
	case madeOf(n) != nil:
		return mayBe(n.(*Convert).X, v)
	case isRemainder(n):
		return constant.Compare(magnitude(v), token.LSS, magnitude(ConstValue(n.(*Binary).Y)))
	}
	return true
}

// madeOf returns the type of the integer that n is converted from, nil if there is none.
func madeOf(n Node) *types.Basic {
	c, ok := n.(*Convert)
	if !ok || isTypeParam(c.X.Type()) || !isInteger(c.X.Type()) {
		return nil
	}
	b, _ := c.X.Type().Underlying().(*types.Basic)
	return b
}

// isRemainder reports whether n is the remainder of a division by a literal.
func isRemainder(n Node) bool {
	b, ok := n.(*Binary)
	return ok && b.Op == "%" && ConstValue(b.Y) != nil && literal(b.Y)
}

func magnitude(v constant.Value) constant.Value {
	if constant.Sign(v) < 0 {
		return constant.UnaryOp(token.SUB, v, 0)
	}
	return v
}

// isCount reports whether n counts something, and so is never below zero.
func isCount(n Node) bool {
	switch n := n.(type) {
	case *Builtin:
		return n.Name == "len"
	case *Loop:
		return n.Op == "count"
	case *Local:
		return n.Value != nil && isCount(n.Value)
	}
	return false
}

// verdict reports whether q holds for every value or for none. Whether it holds where
// the value is absent is the caller's to ask.
func (q question) verdict() (always, never bool) {
	always, never = true, true
	for _, v := range q.samples() {
		if q.holds(v) {
			never = false
		} else {
			always = false
		}
		if !always && !never {
			return false, false
		}
	}
	return always, never
}

// outOfBounds reports a comparison that its literal decides for every value there is; ok
// is false if it has.
func (c *checker) outOfBounds(n *ast.BinaryNode, b *Binary) (ok bool) {
	q, ok := questionOf(b)
	if !ok {
		return true
	}
	at := n.Left
	if ConstValue(b.X) != nil {
		at = n.Right
	}
	always, never := q.verdict()
	absent := q.value.MayBeAbsent()
	switch {
	case never && (!absent || !q.holds(absentValue)):
		c.at(n, beyondBounds, c.quote(n), "never holds", c.quote(at), values(q.value))
	case always && (!absent || q.holds(absentValue)):
		c.at(n, beyondBounds, c.quote(n), "always holds", c.quote(at), values(q.value))
	case always:
		c.at(n, holdsWhereAny, c.quote(n), c.quote(at), values(q.value))
	default:
		return true
	}
	return false
}

// values says which values n has.
func values(n Node) string {
	switch t, _ := n.Type().Underlying().(*types.Basic); {
	case isCount(n):
		return "never below 0"
	case isRemainder(n):
		greatest := constant.BinaryOp(magnitude(ConstValue(n.(*Binary).Y)), token.SUB, constant.MakeInt64(1)).ExactString()
		if t != nil && t.Info()&types.IsUnsigned != 0 {
			return "from 0 to " + greatest
		}
		return "from -" + greatest + " to " + greatest
	case madeOf(n) != nil:
		return "made of " + madeOf(n).Name()
	case keyKindOf(n.Type()) == Text:
		return "never less than empty text"
	case t != nil:
		return "of type " + t.Name()
	}
	return "an integer"
}

// decided returns what is wrong with a chain of op if operands that ask about one value
// leave nothing of it. It judges operands together as far as no call of a function of
// the user's stands between them.
func decided(op string, nodes []Node) (rule, bool) {
	var asked []question
	for _, n := range nodes {
		if hasCall(n) {
			asked = nil
			continue
		}
		q, ok := questionOf(n)
		if !ok {
			continue
		}
		i := slices.IndexFunc(asked, func(o question) bool { return same(o.value, q.value) })
		if i < 0 {
			asked = append(asked, q)
			continue
		}
		q = both(op, asked[i], q)
		asked[i] = q
		always, never := q.verdict()
		if q.value.MayBeAbsent() {
			always, never = always && q.holds(absentValue), never && !q.holds(absentValue)
		}
		switch {
		case op == "&&" && never:
			return noneLeft, true
		case op == "||" && always:
			return noneLeftOut, true
		}
	}
	return rule{}, false
}
