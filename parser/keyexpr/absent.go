package keyexpr

import (
	"cmp"
	"go/constant"
	"go/token"
	"go/types"
	"slices"

	"github.com/expr-lang/expr/ast"
)

// emptyTest returns the text that n asks whether it is empty; holds tells whether n
// holds then. The text is nil if n is no such question.
func emptyTest(n Node) (text Node, holds bool) {
	b, ok := n.(*Binary)
	if !ok || mirrored[b.Op] == "" {
		return nil, false
	}
	x, v, op := b.X, ConstValue(b.Y), b.Op
	if v == nil {
		x, v, op = b.Y, ConstValue(b.X), mirrored[b.Op]
	}
	if v == nil || ConstValue(x) != nil {
		return nil, false
	}
	if v.Kind() == constant.String {
		if constant.StringVal(v) == "" && op != "<" && op != ">=" {
			return x, op == "==" || op == "<="
		}
		return nil, false
	}
	l, ok := x.(*Builtin)
	if !ok || l.Name != "len" || keyKindOf(l.Args[0].Type()) != Text || v.Kind() != constant.Int {
		return nil, false
	}
	bound := 0
	if op == "<" || op == ">=" {
		bound = 1
	}
	if !constant.Compare(v, token.EQL, constant.MakeInt64(int64(bound))) {
		return nil, false
	}
	return l.Args[0], op == "==" || op == "<=" || op == "<"
}

// neverEmpty reports b if it asks whether text is empty that never is: what the request
// does not tell is absent. ok is false if it has.
func (c *checker) neverEmpty(n *ast.BinaryNode, b *Binary) (ok bool) {
	x, holds := emptyTest(b)
	if x == nil || mayBeEmptyText(x) {
		return true
	}
	if !holds && b.Op != "!=" {
		return true // len(x) > 0 holds where x has a value
	}
	at := n.Left
	if ConstValue(b.X) != nil {
		at = n.Right
	}
	if l, ok := at.(*ast.BuiltinNode); ok && l.Name == "len" {
		at = l.Arguments[0]
	}
	verdict, op := "never", "=="
	if !holds {
		verdict, op = "always", "!="
	}
	if !x.MayBeAbsent() {
		c.at(n, neverEmptyText, c.quote(n), verdict, c.quote(at))
		return false
	}
	write := c.operand(at) + " " + op + " nil"
	if choice := c.elvis[n]; choice != "" {
		write += ", or " + choice
	}
	c.at(n, absentNotEmpty, c.quote(n), verdict, c.quote(at), write)
	return false
}

// unset returns the value that n asks whether it is empty text, an empty list or zero;
// holds tells whether n holds then. The value is nil if n is no such question.
func unset(n Node) (x Node, holds bool) {
	if x, holds = emptyTest(n); x != nil {
		return x, holds
	}
	b, ok := n.(*Binary)
	if !ok || ordering[b.Op] == 0 {
		return nil, false
	}
	x, v, op := b.X, ConstValue(b.Y), b.Op
	if v == nil {
		x, v, op = b.Y, ConstValue(b.X), mirrored[b.Op]
	}
	if v == nil || ConstValue(x) != nil || !isInteger(x.Type()) {
		return nil, false
	}
	zero := constant.MakeInt64(0)
	if op == "<" || op == ">=" {
		zero = constant.MakeInt64(1)
	}
	if !constant.Compare(v, token.EQL, zero) {
		return nil, false
	}
	return x, op == "==" || op == "<=" || op == "<"
}

// absentTogether reports whether n is absent wherever x is, or wherever what x is a part
// of is nil.
func absentTogether(n, x Node) bool {
	if absentWith(n, x) {
		return true
	}
	p := parent(x)
	if b, ok := x.(*Builtin); ok && b.Name == "len" {
		// The length of what is nil is 0, unlike that of a field of what is nil.
		if f, ok := b.Args[0].(*Field); ok && len(f.Path) == 1 {
			if p = f.X; !mayBeNil(p) {
				p = parent(p)
			}
		}
	}
	return p != nil && absentWith(n, p)
}

// elvisOf returns what to write for x != "" ? x : y, or x == "" ? y : x; "" if n is
// something else.
func (c *checker) elvisOf(n *ast.ConditionalNode) string {
	cond, ok := n.Cond.(*ast.BinaryNode)
	if !ok {
		return ""
	}
	for _, x := range []ast.Node{cond.Left, cond.Right} {
		if l, ok := x.(*ast.BuiltinNode); ok && l.Name == "len" && len(l.Arguments) == 1 {
			x = l.Arguments[0]
		}
		switch text := c.quote(x); {
		case text == c.quote(n.Exp1):
			return c.operand(x) + " ?: " + c.operand(n.Exp2)
		case text == c.quote(n.Exp2):
			return c.operand(x) + " ?: " + c.operand(n.Exp1)
		}
	}
	return ""
}

// emptyChoice warns of n, which chooses another value where a value is empty or zero, but
// not where it is absent: the alternative chosen there is absent with it. The warning
// stands at a place that holds n.
func (c *checker) emptyChoice(at ast.Node, n *ast.ConditionalNode, cond, then, other Node) {
	if not, ok := cond.(*Unary); ok {
		if inner, ok := n.Cond.(*ast.UnaryNode); ok {
			swapped := &ast.ConditionalNode{Cond: inner.Node, Exp1: n.Exp2, Exp2: n.Exp1}
			c.emptyChoice(at, swapped, not.X, other, then)
		}
		return
	}
	x, holds := unset(cond)
	if x == nil || !x.MayBeAbsent() {
		return
	}
	op := cond.(*Binary).Op
	if !holds && op != "!=" {
		return // len(x) > 0 does not hold where x is absent
	}
	chosen := n.Exp1
	if holds {
		then, other, chosen = other, then, n.Exp2
	}
	if text, _ := emptyTest(cond); text != nil && same(x, then) {
		c.at(at, emptyNotAbsent, c.quote(n.Cond), cmp.Or(c.elvisOf(n), "x ?: y")).Warning = true
		return
	}
	if hasCall(cond) || hasCall(then) || !absentTogether(then, x) || absentTogether(other, x) {
		return
	}
	verdict := "does not hold"
	if !holds {
		verdict = "holds"
	}
	// What is compared gets a default.
	b, ok := n.Cond.(*ast.BinaryNode)
	if !ok {
		return
	}
	asked, zero := b.Left, "0"
	if ConstValue(cond.(*Binary).X) != nil {
		asked = b.Right
	}
	if keyKindOf(cond.(*Binary).X.Type()) == Text {
		zero = `""`
	}
	write := "(" + c.operand(asked) + " ?? " + zero + ")"
	if asked == b.Left {
		write += " " + b.Operator + " " + c.quote(b.Right)
	} else {
		write = c.quote(b.Left) + " " + b.Operator + " " + write
	}
	c.at(at, absentChosen, c.quote(n.Cond), verdict, c.quote(asked), c.quote(chosen), write).Warning = true
}

// absentWith reports whether n is absent wherever x is absent or nil, as all is that is
// computed from it.
func absentWith(n, x Node) bool {
	within := func(o Node) bool { return absentWith(o, x) }
	if same(n, x) {
		return !nilable(x.Type()) // nil is a value
	}
	switch n := n.(type) {
	case *Field:
		return same(n.X, x) || within(n.X)
	case *Index:
		return same(n.X, x) || within(n.X) || within(n.I)
	case *Convert, *Builtin, *Match, *Join:
		return slices.ContainsFunc(n.Operands(), within)
	case *Unary:
		return n.Op == "-" && within(n.X)
	case *Binary:
		switch n.Op {
		case "==", "!=", "&&", "||":
			return false
		}
		return within(n.X) || within(n.Y)
	case *Let:
		return within(n.Body)
	case *Cond:
		return within(n.Then) && within(n.Else)
	case *Default:
		return !slices.ContainsFunc(n.Operands(), func(o Node) bool { return !within(o) })
	}
	return false
}

// falseWith reports whether the condition n does not hold wherever x is absent or nil.
func falseWith(n, x Node) bool {
	if absentWith(n, x) {
		return true
	}
	switch n := n.(type) {
	case *Binary:
		switch _, isNil := n.Y.(*Nil); {
		case n.Op == "&&":
			return falseWith(n.X, x) || falseWith(n.Y, x)
		case n.Op == "||":
			return falseWith(n.X, x) && falseWith(n.Y, x)
		case n.Op == "==" && !isNil:
			return absentWith(n.X, x) && !n.Y.MayBeAbsent() || absentWith(n.Y, x) && !n.X.MayBeAbsent()
		case n.Op == "!=" && isNil:
			return absentWith(n.X, x)
		}
	case *In:
		return absentWith(n.X, x) || n.In != nil && absentWith(n.In, x)
	}
	return false
}

// nilTests lists what conditions compare with nil by op.
func nilTests(op string, conditions []Node) []Node {
	var nodes []Node
	for _, n := range conditions {
		if b, ok := n.(*Binary); ok && b.Op == op && !hasCall(b) {
			if _, ok := b.Y.(*Nil); ok {
				nodes = append(nodes, b.X)
			}
		}
	}
	return nodes
}

// nilOp is the comparison with nil after which a value is nil in the right operand of a
// logical operator.
var nilOp = map[string]string{"&&": "==", "||": "!="}

// trueWith reports whether the condition n holds wherever x is absent or nil.
func trueWith(n, x Node) bool {
	switch n := n.(type) {
	case *Unary:
		return n.Op == "!" && falseWith(n.X, x)
	case *Binary:
		switch _, isNil := n.Y.(*Nil); {
		case n.Op == "&&":
			return trueWith(n.X, x) && trueWith(n.Y, x)
		case n.Op == "||":
			return trueWith(n.X, x) || trueWith(n.Y, x)
		case n.Op == "!=" && !isNil:
			return absentWith(n.X, x) && !n.Y.MayBeAbsent() || absentWith(n.Y, x) && !n.X.MayBeAbsent()
		case n.Op == "==" && isNil:
			return absentWith(n.X, x)
		}
	}
	return false
}

// coversNil reports whether one of nodes, an operand of "or", holds wherever a value is
// not nil and another holds wherever it is.
func coversNil(nodes []Node) bool {
	if slices.ContainsFunc(nodes, hasCall) {
		return false
	}
	for _, x := range nilTests("!=", nodes) {
		if slices.ContainsFunc(nodes, func(n Node) bool { return trueWith(n, x) }) {
			return true
		}
	}
	return false
}

// behindNil reports the right operand of n if it is only evaluated where what it asks is
// nil; ok is false if it has.
func (c *checker) behindNil(n *ast.BinaryNode, op string, left, right Node) (ok bool) {
	if hasCall(left) || hasCall(right) {
		return true
	}
	for _, x := range nilTests(nilOp[op], operands(op, left)) {
		if falseWith(right, x) {
			write := map[string]string{"&&": "write != nil there", "||": "write and"}[op]
			does := map[string]string{"&&": "does", "||": "does not"}[op]
			c.at(n, neverBehind, c.quote(n.Right), c.quote(n.Left), does, write)
			return false
		}
	}
	return true
}

// chosenAbsent reports an alternative of n that is only chosen where it is absent; ok is
// false if it has.
func (c *checker) chosenAbsent(n *ast.ConditionalNode, cond, then, other Node) (ok bool) {
	for _, arm := range []struct {
		at        ast.Node
		x         Node
		op, holds string
	}{{n.Exp1, then, "&&", "holds"}, {n.Exp2, other, "||", "does not hold"}} {
		for _, x := range nilTests(nilOp[arm.op], operands(arm.op, cond)) {
			if !hasCall(cond) && !hasCall(arm.x) && absentWith(arm.x, x) {
				c.at(arm.at, absentArm, c.quote(arm.at), c.quote(n.Cond), arm.holds)
				return false
			}
		}
	}
	return true
}

// nilBeside reports an element that asks whether a value is nil which another element
// has a part of: every call that has a key gives the same answer.
func (c *checker) nilBeside(trees []ast.Node, elems []Node) {
	for i, n := range elems {
		if n == nil || hasCall(n) {
			continue
		}
		for _, x := range slices.Concat(nilTests("==", []Node{n}), nilTests("!=", []Node{n})) {
			j := slices.IndexFunc(elems, func(o Node) bool { return o != nil && !hasCall(o) && absentWith(o, x) })
			if j >= 0 {
				c.at(trees[i], constantElem, c.quote(trees[i]), c.quote(trees[j]))
				break
			}
		}
	}
}

// parent returns the value whose absence or nilness alone makes n absent or nil, or nil.
func parent(n Node) Node {
	f, ok := n.(*Field)
	if !ok || slices.ContainsFunc(f.Path, func(v *types.Var) bool { return nilable(v.Type()) }) {
		return nil
	}
	if mayBeNil(f.X) {
		return f.X
	}
	return parent(f.X)
}

// absentAlternative reports whether one of alts is absent wherever one before it is, so
// that it is never used.
func absentAlternative(alts []Alt) bool {
	for i, a := range alts {
		x := parent(a.Node)
		if x == nil || hasCall(a.Node) || a.NotEmpty && mayBeEmptyText(a.Node) {
			continue
		}
		for _, b := range alts[i+1:] {
			if hasCall(b.Node) {
				break
			}
			if absentWith(b.Node, x) {
				return true
			}
		}
	}
	return false
}
