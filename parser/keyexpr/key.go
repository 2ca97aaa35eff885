package keyexpr

import (
	"go/constant"
	"go/types"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// key checks the expression as a key.
func (c *checker) key() *Key {
	spans, ok := c.read()
	if !ok {
		return nil
	}
	if len(spans) == 1 && c.text.text(spans[0]) == "global" {
		if c.local("global") == nil {
			return &Key{Global: true}
		}
		c.problem(spans[0], ambiguousAll)
		return nil
	}
	c.alone = len(c.text.tokens) == 1
	var elems []ast.Node
	for _, s := range spans {
		if n := c.parse(s); n != nil {
			elems = append(elems, n)
		}
	}
	k := &Key{}
	if len(spans) == 1 && len(elems) == 1 {
		// What let names can be used in every element of a tuple.
		outer := len(c.bound)
		lets := func(n ast.Node) ast.Node {
			for let, ok := n.(*ast.VariableDeclaratorNode); ok; let, ok = n.(*ast.VariableDeclaratorNode) {
				c.count(let)
				if l := c.bind(let); l != nil {
					k.Lets = append(k.Lets, l)
				}
				n = let.Expr
			}
			return n
		}
		elems[0] = lets(elems[0])
		defer c.unbind(outer)
		if array, ok := elems[0].(*ast.ArrayNode); ok {
			if elems = array.Nodes; len(elems) == 0 {
				c.at(array, emptyExpression)
			} else if let, ok := elems[0].(*ast.VariableDeclaratorNode); ok && len(elems) == 1 && c.text.bracketed(let) {
				elems[0] = lets(let) // [(let x = a; b)] is let x = a; b
			}
		}
	}
	for _, n := range elems {
		if let, ok := n.(*ast.VariableDeclaratorNode); ok && !c.text.bracketed(let) {
			c.at(let, letInList)
			continue
		}
		x := c.keyElement(n)
		if x != nil && slices.ContainsFunc(k.Elems, func(y Node) bool { return y != nil && same(x, y) }) {
			c.at(n, repeatedElem, c.quote(n))
		}
		k.Elems = append(k.Elems, x)
	}
	if len(k.Elems) == len(elems) {
		c.nilBeside(elems, k.Elems)
	}
	if c.failed() {
		return k
	}
	if !slices.ContainsFunc(k.Nodes(), func(n Node) bool { return !isConstant(n) }) {
		c.problem(span{0, len(c.text.runes)}, constantKey, c.unquoted(elems)).Warning = c.named
	}
	c.distrust(k)
	for _, l := range k.Lets {
		c.nameLet(l, nil)
	}
	for i, n := range k.Elems {
		c.nameTypes(n, elems[i], element)
	}
	return k
}

// unquoted returns what to write where an element is an expression in quotes; "" if none
// is.
func (c *checker) unquoted(elems []ast.Node) string {
	for _, n := range elems {
		text, ok := n.(*ast.StringNode)
		if !ok || text.Value == "global" || len(text.Value) >= len(c.src) {
			continue
		}
		if _, problems := ParseKey(text.Value, c.scope); !slices.ContainsFunc(problems, func(p Problem) bool { return !p.Warning }) {
			return "write " + text.Value + " without quotes, or "
		}
	}
	return ""
}

// whole reads one expression, which check checks.
func (c *checker) whole(what string, check func(ast.Node) Node) Node {
	spans, ok := c.read()
	if !ok {
		return nil
	}
	if len(spans) > 1 {
		c.problem(span{spans[1].from, len(c.text.runes)}, notSupported, "a list", "a "+what+" is one expression")
	}
	tree := c.parse(spans[0])
	if tree == nil {
		return nil
	}
	n := check(tree)
	if n == nil {
		return nil
	}
	return c.settle(tree, n)
}

// refuseConstant reports an expression without any name: it is the same for every
// call, and does not need to be one.
func (c *checker) refuseConstant(r rule, args ...any) {
	if !c.named && !c.failed() {
		c.problem(span{0, len(c.text.runes)}, r, args...)
	}
}

// constantAmount says what is the same for every call whose amount of the given kind is
// n, and what to write instead.
func constantAmount(kind amountKind, n Node) string {
	v := ConstValue(n)
	if v == nil {
		return "the amount is the same for every call; write the number"
	}
	switch text, sign := v.ExactString(), constant.Sign(v); {
	case kind == ofCostAfter && sign > 0:
		return "every call is charged " + text + " afterwards; add that to cost instead"
	case kind == ofCostAfter:
		return "nothing is ever charged afterwards; leave the option out"
	case kind == ofLimit && sign > 0:
		return "the limit is " + text + " for every call; write max=" + text
	case kind == ofLimit:
		return "the limit is " + text + " for every call; write max=blocked to refuse every call"
	case sign < 0:
		return "every call costs " + text + ", and none can give units back; write a number of 0 or more"
	default:
		return "every call costs " + text + "; write cost=" + text
	}
}

// cost checks n as a cost.
func (c *checker) cost(n ast.Node) Node {
	x := c.integer(n)
	if x == nil {
		return nil
	}
	if v := outOfRange(x); v != nil {
		c.at(n, overflow, valueText(v), "int64")
		return nil
	}
	return x
}

// outOfRange returns a constant that does not fit into an int64 and that n may be; nil if
// there is none.
func outOfRange(n Node) constant.Value {
	if v := ConstValue(n); v != nil {
		if representable(v, types.Typ[types.Int64]) {
			return nil
		}
		return v
	}
	var nodes []Node
	switch n := n.(type) {
	case *Cond:
		nodes = []Node{n.Then, n.Else}
	case *Default:
		nodes = n.Operands()
	case *Let:
		nodes = []Node{n.Body}
	}
	for _, n := range nodes {
		if v := outOfRange(n); v != nil {
			return v
		}
	}
	return nil
}

// keyElement checks n as an element of the key.
func (c *checker) keyElement(n ast.Node) Node {
	if array, ok := n.(*ast.ArrayNode); ok {
		c.at(array, nestedTuple)
		return nil
	}
	x := c.settle(n, c.element(n))
	if x == nil {
		return nil
	}
	if v := ConstValue(x); v != nil && v.Kind() == constant.String && constant.StringVal(v) == "" {
		c.at(n, emptyKey)
		return nil
	}
	if join := joined(x); join != nil {
		c.at(n, joinedKey, "["+c.pieces(n)+"]").Warning = true
	}
	return x
}

// isConstant reports whether n is the same for every call.
func isConstant(n Node) bool {
	return !Contains(n, func(n Node) bool {
		switch n.(type) {
		case *Dim, *Param, *Result, *Recv, *Global, *Call:
			return true
		}
		return false
	})
}

// joined returns the join of several values that n is, also with its case changed.
func joined(n Node) *Join {
	switch n := n.(type) {
	case *Builtin:
		if n.Type() == typString && n.Name != "join" {
			return joined(n.Args[0])
		}
	case *Let:
		return joined(n.Body)
	case *Join:
		variable := 0
		for _, p := range n.Parts {
			if ConstValue(p) == nil {
				variable++
			}
		}
		if variable > 1 {
			return n
		}
	}
	return nil
}

// pieces writes the values that n joins as elements of a tuple.
func (c *checker) pieces(n ast.Node) string {
	if b, ok := n.(*ast.BinaryNode); ok && b.Operator == "+" {
		l, r := c.pieces(b.Left), c.pieces(b.Right)
		if l == "" || r == "" {
			return l + r
		}
		return l + ", " + r
	}
	if b, ok := n.(*ast.BuiltinNode); ok && len(b.Arguments) == 1 {
		if inner, ok := b.Arguments[0].(*ast.BinaryNode); ok {
			return b.Name + "(" + strings.ReplaceAll(c.pieces(inner), ", ", "), "+b.Name+"(") + ")"
		}
	}
	switch n := n.(type) {
	case *ast.StringNode:
		return ""
	case *ast.IdentifierNode:
		if name := c.text.name(n); isDim(name) && c.local(name) != nil {
			return "#" + name
		}
	}
	return c.quote(n)
}

// element checks n where a dimension may stand: an element, or an alternative of
// one. The result is of text, integer or boolean type.
func (c *checker) element(n ast.Node) Node {
	var x Node
	switch n := n.(type) {
	case *ast.ConditionalNode:
		x = c.choice(n, c.element)
	case *ast.BinaryNode:
		var ok bool
		c.top = n
		if x, ok = c.prefix(n); !ok {
			x = c.choice(n, c.element)
		}
	case *ast.VariableDeclaratorNode:
		if c.count(n) {
			x = c.let(n, c.element)
		}
	case *ast.IdentifierNode:
		var ok bool
		if x, ok = c.dimension(n); !ok {
			return nil
		}
		if x == nil {
			x = c.value(n)
		}
	default:
		x = c.value(n)
	}
	if x == nil {
		return nil
	}
	if _, ok := x.(*Dim); ok {
		return x
	}
	return c.keyable(n, c.placed(n, x))
}

// choice checks the operators that choose among alternatives; sub checks those.
// Other operators go to value.
func (c *checker) choice(n ast.Node, sub func(ast.Node) Node) Node {
	switch n := n.(type) {
	case *ast.ConditionalNode:
		switch {
		case !c.count(n) || !n.Ternary:
			return nil // reported, at "if"
		case n.Cond == n.Exp1:
			return c.defaults(n, n.Cond, n.Exp2, true, sub)
		}
		return c.conditional(n, sub)
	case *ast.BinaryNode:
		if n.Operator == "??" {
			if !c.count(n) {
				return nil
			}
			return c.defaults(n, n.Left, n.Right, false, sub)
		}
	}
	return c.value(n)
}
