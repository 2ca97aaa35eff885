package keyexpr

import (
	"go/constant"
	"go/types"
)

// Node is a checked expression.
type Node interface {
	// Type is the type of the value, nil for Nil. It is untyped only for a constant
	// whose type nothing determines.
	Type() types.Type
	// MayBeAbsent reports whether evaluation may yield no value.
	MayBeAbsent() bool
	// Operands lists the nodes directly below, in the order of evaluation.
	Operands() []Node
}

// DimKind is one of the things that a request tells.
type DimKind string

// The dimensions.
const (
	IP   DimKind = "ip"   // the caller's address
	User DimKind = "user" // the caller's name, of type string
)

type (
	// Dim is what the request tells. IP is an element of a key or a branch of one,
	// or is compared with nil.
	Dim struct{ Kind DimKind }

	// Const is a constant: a literal, or one that the package declares.
	Const struct {
		Value constant.Value
		// Name is the name of the declared constant, "" for a literal.
		Name string
		typ  types.Type
	}

	// Nil is an operand of == or !=.
	Nil struct{}

	// Param is a parameter of the method.
	Param struct {
		Index int
		Var   *types.Var
	}

	// Recv is the wrapped value, which is not nil.
	Recv struct{ Var *types.Var }

	// Global is a variable of the package.
	Global struct{ Var *types.Var }

	// Field selects a field of X, a struct or a pointer to one. Path leads through
	// the embedded fields to the field itself, which is last.
	Field struct {
		X    Node
		Path []*types.Var
	}

	// Index is an element of X, a slice, an array or a map.
	Index struct {
		X, I Node
		typ  types.Type
	}

	// Call calls a function of the package, or a method if X is not nil. Path leads
	// through the embedded fields of X to the method's receiver.
	Call struct {
		X    Node
		Path []*types.Var
		Fn   *types.Func
		Args []Node
		typ  types.Type
	}

	// Convert makes text of X ("string"), or an integer of another type.
	Convert struct {
		X   Node
		typ types.Type
	}

	// Builtin is lower, upper, trim or len.
	Builtin struct {
		Name string
		Args []Node
	}

	// Unary is -X or !X.
	Unary struct {
		Op string
		X  Node
	}

	// Binary is an operator: + - * / % == != < <= > >= && ||. The + of text is Join.
	Binary struct {
		Op   string
		X, Y Node
		typ  types.Type
	}

	// Join is text behind text.
	Join struct{ Parts []Node }

	// Cond is Then if If holds, else Else.
	Cond struct {
		If, Then, Else Node
		typ            types.Type
	}

	// Default is the first of Alts that has a value: that is neither absent nor nil,
	// and not empty text where the alternative says so. The last is taken as it is.
	Default struct {
		Alts []Alt
		typ  types.Type
	}

	// Alt is an alternative of a Default.
	Alt struct {
		Node
		// NotEmpty is set if empty text does not count, as before "?:".
		NotEmpty bool
	}
)

var (
	typString = types.Typ[types.String]
	typBool   = types.Typ[types.Bool]
	typInt    = types.Typ[types.Int]
)

func (n *Dim) Type() types.Type     { return typString }
func (n *Const) Type() types.Type   { return n.typ }
func (n *Nil) Type() types.Type     { return types.Typ[types.UntypedNil] }
func (n *Param) Type() types.Type   { return n.Var.Type() }
func (n *Recv) Type() types.Type    { return n.Var.Type() }
func (n *Global) Type() types.Type  { return n.Var.Type() }
func (n *Field) Type() types.Type   { return n.Path[len(n.Path)-1].Type() }
func (n *Index) Type() types.Type   { return n.typ }
func (n *Call) Type() types.Type    { return n.typ }
func (n *Convert) Type() types.Type { return n.typ }
func (n *Builtin) Type() types.Type {
	if n.Name == "len" {
		return typInt
	}
	return typString
}
func (n *Unary) Type() types.Type {
	if n.Op == "!" {
		return typBool
	}
	return n.X.Type()
}
func (n *Binary) Type() types.Type  { return n.typ }
func (n *Join) Type() types.Type    { return typString }
func (n *Cond) Type() types.Type    { return n.typ }
func (n *Default) Type() types.Type { return n.typ }

func (n *Dim) MayBeAbsent() bool    { return true }
func (n *Const) MayBeAbsent() bool  { return false }
func (n *Nil) MayBeAbsent() bool    { return true }
func (n *Param) MayBeAbsent() bool  { return false }
func (n *Recv) MayBeAbsent() bool   { return false }
func (n *Global) MayBeAbsent() bool { return false }
func (n *Field) MayBeAbsent() bool {
	if n.X.MayBeAbsent() || mayBeNil(n.X) {
		return true
	}
	for _, f := range n.Path[:len(n.Path)-1] {
		if nilable(f.Type()) {
			return true
		}
	}
	return false
}
func (n *Index) MayBeAbsent() bool {
	if n.X.MayBeAbsent() || n.I.MayBeAbsent() {
		return true
	}
	// A constant index of an array has been checked.
	_, array := n.X.Type().Underlying().(*types.Array)
	return !array || ConstValue(n.I) == nil
}
func (n *Call) MayBeAbsent() bool {
	if n.X != nil && (n.X.MayBeAbsent() || mayBeNil(n.X)) {
		return true
	}
	for _, f := range n.Path {
		if nilable(f.Type()) {
			return true
		}
	}
	return anyAbsent(n.Args)
}
func (n *Convert) MayBeAbsent() bool { return n.X.MayBeAbsent() }
func (n *Builtin) MayBeAbsent() bool { return anyAbsent(n.Args) }
func (n *Unary) MayBeAbsent() bool   { return n.Op != "!" && n.X.MayBeAbsent() }
func (n *Binary) MayBeAbsent() bool {
	switch n.Op {
	case "==", "!=", "&&", "||":
		return false
	case "/", "%":
		if ConstValue(n.Y) == nil {
			return true
		}
	}
	return n.X.MayBeAbsent() || n.Y.MayBeAbsent()
}
func (n *Join) MayBeAbsent() bool    { return anyAbsent(n.Parts) }
func (n *Cond) MayBeAbsent() bool    { return n.Then.MayBeAbsent() || n.Else.MayBeAbsent() }
func (n *Default) MayBeAbsent() bool { return n.Alts[len(n.Alts)-1].MayBeAbsent() }

func (n *Dim) Operands() []Node    { return nil }
func (n *Const) Operands() []Node  { return nil }
func (n *Nil) Operands() []Node    { return nil }
func (n *Param) Operands() []Node  { return nil }
func (n *Recv) Operands() []Node   { return nil }
func (n *Global) Operands() []Node { return nil }
func (n *Field) Operands() []Node  { return []Node{n.X} }
func (n *Index) Operands() []Node  { return []Node{n.X, n.I} }
func (n *Call) Operands() []Node {
	if n.X == nil {
		return n.Args
	}
	return append([]Node{n.X}, n.Args...)
}
func (n *Convert) Operands() []Node { return []Node{n.X} }
func (n *Builtin) Operands() []Node { return n.Args }
func (n *Unary) Operands() []Node   { return []Node{n.X} }
func (n *Binary) Operands() []Node  { return []Node{n.X, n.Y} }
func (n *Join) Operands() []Node    { return n.Parts }
func (n *Cond) Operands() []Node    { return []Node{n.If, n.Then, n.Else} }
func (n *Default) Operands() []Node {
	nodes := make([]Node, len(n.Alts))
	for i, a := range n.Alts {
		nodes[i] = a.Node
	}
	return nodes
}

// Contains reports whether pred holds for n or a node below it.
func Contains(n Node, pred func(Node) bool) bool {
	if pred(n) {
		return true
	}
	for _, o := range n.Operands() {
		if Contains(o, pred) {
			return true
		}
	}
	return false
}

func needsRequest(n Node) bool {
	return Contains(n, func(n Node) bool { _, ok := n.(*Dim); return ok })
}

func anyAbsent(nodes []Node) bool {
	for _, n := range nodes {
		if n.MayBeAbsent() {
			return true
		}
	}
	return false
}

// nilable reports whether values of type t can be compared with nil.
func nilable(t types.Type) bool {
	if _, ok := types.Unalias(t).(*types.TypeParam); ok {
		return false
	}
	switch u := t.Underlying().(type) {
	case *types.Pointer, *types.Interface, *types.Map, *types.Slice, *types.Chan, *types.Signature:
		return true
	case *types.Basic:
		return u.Kind() == types.UnsafePointer
	}
	return false
}

// mayBeNil reports whether the value of n may be nil where it has one.
func mayBeNil(n Node) bool {
	_, recv := n.(*Recv)
	return !recv && nilable(n.Type())
}

// ConstValue returns the value of n if it is a constant expression, else nil.
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
