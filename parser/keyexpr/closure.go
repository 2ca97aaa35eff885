package keyexpr

import (
	"go/types"

	"github.com/expr-lang/expr/ast"
)

// binding is a name of let's while its body is checked.
type binding struct {
	name string
	node Node // nil if its value is wrong, which has been reported
	used bool
	at   ast.Node
}

// binding returns what let gives that name, or nil.
func (c *checker) binding(name string) *binding {
	for i := len(c.bound) - 1; i >= 0; i-- {
		if c.bound[i].name == name {
			return c.bound[i]
		}
	}
	return nil
}

// bind checks the value of a let and gives it its name, until unbind. It returns
// what must be evaluated for that: nil if the value is a name or a constant, which
// stands for itself.
func (c *checker) bind(n *ast.VariableDeclaratorNode) *Local {
	name := c.text.name(n)
	predeclared := name == "true" || name == "false" || name == "nil"
	if predeclared || c.known(name) || isDim(name) || name == "request" || name == "global" {
		c.problem(c.text.clamp(n.Location()), nameTaken, name)
	}
	b := &binding{name: name, at: n}
	x := c.expr(n.Value)
	c.bound = append(c.bound, b)
	switch x := x.(type) {
	case nil:
	case *Const, *Param, *Recv, *Result, *Local:
		b.node = x
	default:
		if x = c.settle(n.Value, x); x != nil {
			l := &Local{Name: name, Value: x, typ: x.Type(), size: size(x)}
			if l.size > maxWritten {
				c.at(n.Value, tooLargeWritten, name, maxWritten)
				return nil
			}
			b.node = l
			return l
		}
	}
	return nil
}

// size is the number of nodes of n with all names of let written out. It is of what let
// names, which may use names in turn, again and again.
func size(n Node) int {
	if l, ok := n.(*Local); ok && l.Value != nil {
		return l.size
	}
	sum := 1
	for _, o := range n.Operands() {
		sum += size(o)
	}
	return sum
}

// unbind forgets the names but for the first, and reports those that nothing uses.
func (c *checker) unbind(first int) {
	for _, b := range c.bound[first:] {
		if !b.used && !c.failed() {
			c.problem(c.text.clamp(b.at.Location()), unusedName, b.name)
		}
	}
	c.bound = c.bound[:first]
}

// let checks "let name = value; body"; sub checks the body.
func (c *checker) let(n *ast.VariableDeclaratorNode, sub func(ast.Node) Node) Node {
	outer := len(c.bound)
	l := c.bind(n)
	body := c.settle(n.Expr, sub(n.Expr)) // from here on it is no constant
	c.unbind(outer)
	if body == nil || l == nil {
		return body
	}
	return &Let{Local: l, Body: body}
}

// elem checks #.
func (c *checker) elem(n ast.Node) Node {
	if len(c.elems) == 0 {
		c.at(n, loneHash)
		return nil
	}
	return c.valid(n, c.elems[len(c.elems)-1])
}

// loop checks a closure over a list: any(list, condition) and its like.
func (c *checker) loop(n *ast.BuiltinNode) Node {
	least := 2
	if n.Name == "sum" {
		least = 1
	}
	if !c.arguments(n, n.Name, n.Arguments, least, 2) {
		return nil
	}
	list := n.Arguments[0]
	x := c.expr(list)
	if x == nil {
		return nil
	}
	of := listElem(x.Type())
	if of == nil {
		c.at(list, notList, c.quote(list), c.typeName(x.Type()), n.Name)
		return nil
	}
	elem := &Local{Name: elemName(x), typ: of}
	loop := &Loop{Op: n.Name, X: x, Elem: elem, Body: elem}
	body := list
	if len(n.Arguments) == 2 {
		body = n.Arguments[1]
		if p, ok := body.(*ast.PredicateNode); ok {
			body = p.Node
		}
		c.elems = append(c.elems, elem)
		loop.Body = c.body(n.Name, body)
		c.elems = c.elems[:len(c.elems)-1]
		if loop.Body == nil {
			return nil
		}
	}
	switch n.Name {
	case "count":
		loop.typ = typInt
	case "filter":
		loop.typ = types.NewSlice(of)
	case "map":
		loop.typ = types.NewSlice(loop.Body.Type())
	case "sum":
		return c.sumOf(loop, list, body)
	default:
		loop.typ = typBool
	}
	return loop
}

// body checks what a closure evaluates for an element.
func (c *checker) body(name string, n ast.Node) Node {
	switch name {
	case "map", "sum":
		return c.settle(n, c.expr(n))
	}
	x := c.condition(n)
	if x != nil && literal(x) {
		c.at(n, constantBody, c.quote(n))
		return nil
	}
	return x
}

// sumOf checks what a sum adds. Integers are added as int, whatever their type, so
// that small ones do not wrap around.
func (c *checker) sumOf(loop *Loop, list, body ast.Node) Node {
	switch t := loop.Body.Type(); {
	case IsFloat(t):
		loop.Body, loop.typ = asFloat(loop.Body), typFloat
	case isInteger(t):
		if !types.Identical(t, typInt) {
			loop.Body = &Convert{X: loop.Body, typ: typInt}
		}
		loop.typ = typInt
	default:
		if body == list {
			write := "x"
			if names := c.fields(t, func(t types.Type) bool { return isInteger(t) || IsFloat(t) }); len(names) > 0 {
				write = "." + names[0]
			} else if keyKindOf(t) == Text {
				write = "len(#)"
			}
			c.at(body, notNumbers, c.quote(body), c.typeName(t), c.quote(list), write)
			return nil
		}
		c.at(body, notNumber, c.quote(body), c.typeName(t), "")
		return nil
	}
	return loop
}

// listElem returns the type of the elements of a slice or an array, nil for other
// types.
func listElem(t types.Type) types.Type {
	if isTypeParam(t) {
		return nil
	}
	switch t := t.Underlying().(type) {
	case *types.Slice:
		return t.Elem()
	case *types.Array:
		return t.Elem()
	}
	return nil
}

// elemName names the element of a list in the code: Items has an item.
func elemName(list Node) string {
	name := ""
	switch list := list.(type) {
	case *Field:
		name = list.Path[len(list.Path)-1].Name()
	case *Param:
		name = list.Var.Name()
	case *Local:
		name = list.Name
	}
	if n := len(name); n > 2 && name[n-1] == 's' && name[n-2] != 's' {
		return name[:n-1]
	}
	return "elem"
}
