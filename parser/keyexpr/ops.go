package keyexpr

import (
	"go/constant"
	"go/token"
	"go/types"
	"math"

	"github.com/expr-lang/expr/ast"
)

const (
	minus = token.SUB
	shl   = token.SHL
	quo   = token.QUO_ASSIGN // of integers
	rem   = token.REM
	eql   = token.EQL
	lss   = token.LSS
	gtr   = token.GTR
)

// arithmetic are the operators on integers.
var arithmetic = map[string]token.Token{
	"+": token.ADD, "-": token.SUB, "*": token.MUL, "/": token.QUO, "%": token.REM,
}

// refusedOperators are expr's operators that this language has not, with what to
// write.
var refusedOperators = map[string]string{
	"..": "compare instead, as in x >= 1 and x <= 5",
	"**": "write a product",
	"^":  "write a product",
}

// binary checks the operators between two values.
func (c *checker) binary(n *ast.BinaryNode) Node {
	if not, ok := n.Left.(*ast.UnaryNode); ok {
		c.instead[not] = c.notBefore(n, not)
	}
	switch n.Operator {
	case "and", "&&", "or", "||":
		return c.logical(n)
	case "==", "!=":
		return c.equality(n)
	case "<", "<=", ">", ">=":
		return c.comparison(n)
	case "in":
		return c.in(n)
	case "matches":
		return c.matches(n)
	case "contains", "startsWith", "endsWith":
		return c.textOperator(n)
	case "+":
		return c.sum(n)
	case "-", "*", "/", "%":
		x, y := c.number(n.Left), c.number(n.Right)
		if x == nil || y == nil {
			return nil
		}
		return c.numbers(n, x, y)
	}
	remedy, ok := refusedOperators[n.Operator]
	if !ok {
		remedy = "use a function of the package"
	}
	c.problem(c.text.clamp(n.Location()), notSupported, n.Operator, remedy)
	c.expr(n.Left)
	c.expr(n.Right)
	return nil
}

// notBefore returns what to write for "not x in y" and its like, in which "not" stands
// for x alone; "" if n is something else.
func (c *checker) notBefore(n *ast.BinaryNode, not *ast.UnaryNode) string {
	x, y := c.quote(not.Node), c.quote(n.Right)
	switch n.Operator {
	case "in", "contains", "startsWith", "endsWith", "matches":
		return x + " not " + n.Operator + " " + y
	case "==", "!=", "<", "<=", ">", ">=":
		return "not (" + x + " " + n.Operator + " " + y + ")"
	}
	return ""
}

// textOperator checks contains, startsWith and endsWith.
func (c *checker) textOperator(n *ast.BinaryNode) Node {
	left := c.compared(n.Left)
	if left == nil {
		return nil
	}
	if n.Operator == "contains" && listElem(left.Type()) != nil {
		c.at(n, listContains, c.quote(n.Left), c.typeName(left.Type()), c.quote(n.Right)+" in "+c.quote(n.Left))
		return nil
	}
	x, y := c.isText(n.Left, left), c.textual(n.Right)
	if x == nil || y == nil {
		return nil
	}
	if v := ConstValue(y); v != nil && constant.StringVal(v) == "" && literal(y) {
		verdict, hint := "always holds", ""
		if x.MayBeAbsent() {
			verdict, hint = "holds wherever "+c.quote(n.Left)+" has a value", ", or "+c.operand(n.Left)+" != nil"
		}
		c.at(n, emptyPart, c.quote(n), verdict, hint)
		return nil
	}
	return &Builtin{Name: n.Operator, Args: []Node{c.settle(n.Left, x), c.settle(n.Right, y)}, typ: typBool}
}

func (c *checker) logical(n *ast.BinaryNode) Node {
	op := "&&"
	if n.Operator == "or" || n.Operator == "||" {
		op = "||"
	}
	// expr reads a < b < c as a < b && b < c, with b in both.
	if r, ok := n.Right.(*ast.BinaryNode); ok && op == "&&" {
		l := n.Left
		if and, ok := l.(*ast.BinaryNode); ok && and.Operator == "&&" {
			l = and.Right
		}
		if l, ok := l.(*ast.BinaryNode); ok && l.Right == r.Left {
			c.at(n, chained)
			return nil
		}
	}
	var x, y Node
	if op == "||" && c.top == n {
		var ok bool
		if x, y, ok = c.alternatives(n); !ok {
			return nil
		}
		x, y = c.isPart(n.Left, c.isValue(n.Left, x)), c.isPart(n.Right, c.isValue(n.Right, y))
	} else {
		x, y = c.part(n.Left), c.part(n.Right)
	}
	if x == nil || y == nil {
		return nil
	}
	if r, ok := pointless(op, operands(op, x), operands(op, y)); ok {
		c.at(n, r, c.quote(n))
		return nil
	}
	if r, ok := decided(op, append(operands(op, x), operands(op, y)...)); ok {
		c.at(n, r, c.quote(n))
		return nil
	}
	if op == "||" && coversNil(append(operands(op, x), operands(op, y)...)) {
		c.at(n, nilCovered, c.quote(n))
		return nil
	}
	if !c.behindNil(n, op, x, y) {
		return nil
	}
	return &Binary{Op: op, X: x, Y: y, typ: typBool}
}

// alternatives checks both sides of an "or" that is an element of a key. It reports one
// between text and addresses, which is meant to choose; ok is false then.
func (c *checker) alternatives(n *ast.BinaryNode) (x, y Node, ok bool) {
	if left, chain := n.Left.(*ast.BinaryNode); chain {
		c.top = left
	}
	x, y = c.value(n.Left), c.value(n.Right)
	text := func(x Node) bool { return x == nil || keyKindOf(x.Type()) == Text }
	if !text(x) || !text(y) {
		return x, y, true
	}
	if x != nil && y != nil {
		op := "?:"
		if x.MayBeAbsent() {
			op = "??"
		}
		c.at(n, orChooses, n.Operator, c.quote(n.Left), c.quote(n.Right), c.operand(n.Left)+" "+op+" "+c.operand(n.Right))
	}
	return nil, nil, false
}

func (c *checker) equality(n *ast.BinaryNode) Node {
	_, left := n.Left.(*ast.NilNode)
	_, right := n.Right.(*ast.NilNode)
	if left || right {
		other := n.Left
		if left {
			other = n.Right
		}
		if left && right {
			c.at(n, nilValue)
			return nil
		}
		x := c.value(other)
		if x == nil {
			return nil
		}
		if !x.MayBeAbsent() && !nilable(x.Type()) {
			c.at(n, neverNil, c.quote(other), c.typeName(x.Type()))
			return nil
		}
		return &Binary{Op: n.Operator, X: x, Y: &Nil{}, typ: typBool}
	}
	return c.comparison(n)
}

func (c *checker) comparison(n *ast.BinaryNode) Node {
	x, y := c.compared(n.Left), c.compared(n.Right)
	if x == nil || y == nil {
		return nil
	}
	if keyKindOf(x.Type()) == Text && keyKindOf(y.Type()) == Text && !c.neverEmpty(n, &Binary{Op: n.Operator, X: x, Y: y, typ: typBool}) {
		return nil // also if the types differ, as with a named constant
	}
	b := c.compare(n, x, y)
	if b == nil {
		return nil
	}
	if r, ok := withItself(b); ok {
		c.at(n, r, c.quote(n))
		return nil
	}
	if !c.neverEmpty(n, b) || !c.outOfBounds(n, b) {
		return nil
	}
	return b
}

// compare checks a comparison of x and y. Floats are compared as float64.
func (c *checker) compare(n *ast.BinaryNode, x, y Node) *Binary {
	if isError(x.Type()) && isError(y.Type()) {
		not := ""
		if n.Operator == "!=" {
			not = "not "
		}
		c.at(n, comparedError, c.quote(n.Left), not+"name("+c.quote(n.Left)+")", c.quote(n.Left)+", "+c.quote(n.Right))
		return nil
	}
	ok := true
	for _, o := range []struct {
		n ast.Node
		x Node
	}{{n.Left, x}, {n.Right, y}} {
		switch k := keyKindOf(o.x.Type()); {
		case k == None && !IsFloat(o.x.Type()):
			c.at(o.n, notComparable, c.quote(o.n), c.typeName(o.x.Type()))
			ok = false
		case k == Boolean && n.Operator != "==" && n.Operator != "!=":
			c.at(o.n, notOrdered, c.quote(o.n), c.typeName(o.x.Type()))
			ok = false
		}
	}
	if !ok {
		return nil
	}
	if IsFloat(x.Type()) && IsFloat(y.Type()) {
		x, y = asFloat(x), asFloat(y)
	} else if IsFloat(x.Type()) {
		x = asFloat(x)
	} else if IsFloat(y.Type()) {
		y = asFloat(y)
	}
	x, y, _ = c.match(n, x, y)
	if x == nil {
		return nil
	}
	if ConstValue(x) != nil && ConstValue(y) != nil {
		if x, y = c.settle(n.Left, x), c.settle(n.Right, y); x == nil || y == nil {
			return nil
		}
	}
	return &Binary{Op: n.Operator, X: x, Y: y, typ: typBool}
}

// sum checks x + y: joined text, or a sum of numbers.
func (c *checker) sum(n *ast.BinaryNode) Node {
	x, y := c.expr(n.Left), c.expr(n.Right)
	if x == nil || y == nil {
		return nil
	}
	xText, yText := keyKindOf(x.Type()) == Text, keyKindOf(y.Type()) == Text
	if !xText && !yText {
		x, y = c.isNumber(n.Left, x), c.isNumber(n.Right, y)
		if x == nil || y == nil {
			return nil
		}
		return c.numbers(n, x, y)
	}
	for _, o := range []struct {
		n    ast.Node
		x    Node
		text bool
	}{{n.Left, x, xText}, {n.Right, y, yText}} {
		if !o.text {
			hint := ""
			if KindOf(o.x.Type()) != None {
				hint = "; write " + c.asText(o.n)
			}
			c.at(o.n, notText, c.quote(o.n), c.typeName(o.x.Type()), hint)
			return nil
		}
	}
	joined := join(x, y)
	if k, ok := joined.(*Const); ok && len(constant.StringVal(k.Value)) > maxText {
		c.at(n, longText, maxText)
		return nil
	}
	return joined
}

// join puts text behind text.
func join(x, y Node) Node {
	var parts []Node
	for _, n := range []Node{x, y} {
		if j, ok := n.(*Join); ok {
			parts = append(parts, j.Parts...)
		} else {
			parts = append(parts, n)
		}
	}
	// Literals beside each other are one.
	merged := parts[:1]
	for _, p := range parts[1:] {
		a, aok := merged[len(merged)-1].(*Const)
		b, bok := p.(*Const)
		if aok && bok && !isNamed(a) && !isNamed(b) {
			merged[len(merged)-1] = &Const{
				Value: constant.MakeString(constant.StringVal(a.Value) + constant.StringVal(b.Value)),
				typ:   types.Typ[types.UntypedString],
			}
			continue
		}
		merged = append(merged, p)
	}
	if len(merged) == 1 {
		return merged[0]
	}
	return &Join{Parts: merged}
}

// numbers checks an arithmetic operator on two numbers. Floats are computed as
// float64.
func (c *checker) numbers(n *ast.BinaryNode, x, y Node) Node {
	xFloat, yFloat := IsFloat(x.Type()), IsFloat(y.Type())
	if (xFloat || yFloat) && n.Operator == "%" {
		at, f := n.Left, x
		if !xFloat {
			at, f = n.Right, y
		}
		c.at(at, notInteger, c.quote(at), c.typeName(f.Type()), "; write int("+c.quote(at)+")")
		return nil
	}
	if xFloat {
		x = asFloat(x)
	}
	if yFloat {
		y = asFloat(y)
	}
	x, y, t := c.match(n, x, y)
	if x == nil {
		return nil
	}
	if n.Operator == "/" || n.Operator == "%" {
		if v := ConstValue(y); v != nil && constant.Sign(v) == 0 {
			c.at(n.Right, zeroDivision)
			return nil
		}
	}
	return c.fold(n, &Binary{Op: n.Operator, X: x, Y: y, typ: t})
}

// fold makes a literal of what is computed from literals, and checks that what is
// computed from constants fits its type. Named integers are not folded: their value
// can be another on another platform. Floats are, since Go computes its constants
// exactly, and the operators at run time do not.
func (c *checker) fold(n ast.Node, x Node) Node {
	v := ConstValue(x)
	if v == nil {
		return x
	}
	t := x.Type()
	if IsFloat(t) {
		f, _ := constant.Float64Val(v)
		switch {
		case v.Kind() == constant.Unknown || math.IsInf(f, 0):
			c.at(n, overflow, c.quote(n), "float64")
			return nil
		case constant.Sign(v) == 0 && negatesZero(x):
			c.at(n, negativeZero)
			return nil
		}
		return &Const{Value: v, spelled: c.spell(x), typ: t}
	}
	if isUntyped(t) && constant.BitLen(v) > 512 || !isUntyped(t) && !representable(v, t) {
		c.at(n, overflow, c.quote(n), c.typeName(t))
		return nil
	}
	if Contains(x, isNamed) {
		return x
	}
	return &Const{Value: v, typ: t}
}

// match gives an untyped constant the type of the other operand, and reports types
// that do not go together.
func (c *checker) match(n *ast.BinaryNode, x, y Node) (Node, Node, types.Type) {
	switch xu, yu := isUntyped(x.Type()), isUntyped(y.Type()); {
	case xu && yu:
		switch {
		case IsFloat(x.Type()) && isInteger(y.Type()):
			return x, typed(y, x.Type()), x.Type()
		case IsFloat(y.Type()) && isInteger(x.Type()):
			return typed(x, y.Type()), y, y.Type()
		case keyKindOf(x.Type()) == keyKindOf(y.Type()):
			return x, y, x.Type()
		}
	case xu && sameSort(ConstValue(x), y.Type()):
		if x = c.convertConst(n.Left, x, y.Type()); x == nil {
			return nil, nil, nil
		}
		return x, y, y.Type()
	case yu && sameSort(ConstValue(y), x.Type()):
		if y = c.convertConst(n.Right, y, x.Type()); y == nil {
			return nil, nil, nil
		}
		return x, y, x.Type()
	case !xu && !yu && types.Identical(x.Type(), y.Type()):
		return x, y, x.Type()
	}
	c.mismatch(n, n.Left, n.Right, x, y)
	return nil, nil, nil
}

// common returns the type of a value that is one of nodes, which it gives that
// type where they are untyped. Texts of different types become a string.
func (c *checker) common(trees []ast.Node, nodes []Node) (types.Type, []Node) {
	x, y := nodes[0], nodes[1]
	xu, yu := isUntyped(x.Type()), isUntyped(y.Type())
	bothText := keyKindOf(x.Type()) == Text && keyKindOf(y.Type()) == Text
	switch {
	case xu && yu && keyKindOf(x.Type()) == keyKindOf(y.Type()):
		x, y = c.settle(trees[0], x), c.settle(trees[1], y)
	case xu && !yu && sameSort(ConstValue(x), y.Type()):
		x = c.convertConst(trees[0], x, y.Type())
	case yu && !xu && sameSort(ConstValue(y), x.Type()):
		y = c.convertConst(trees[1], y, x.Type())
	case !xu && !yu && types.Identical(x.Type(), y.Type()):
	case !xu && !yu && bothText:
		return typString, []Node{x, y}
	default:
		at := c.text.span(trees[0])
		at.to = c.text.span(trees[1]).to
		before := len(c.problems)
		c.mismatch(trees[0], trees[0], trees[1], x, y)
		for i := before; i < len(c.problems); i++ {
			c.problems[i].From, c.problems[i].To = c.text.bytes[at.from], c.text.bytes[at.to]
		}
		return nil, nil
	}
	if x == nil || y == nil {
		return nil, nil
	}
	return x.Type(), []Node{x, y}
}
