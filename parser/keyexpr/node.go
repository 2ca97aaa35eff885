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

// The dimensions. All but IP are of type string, and absent if they are empty.
const (
	IP     DimKind = "ip"     // the caller's address
	User   DimKind = "user"   // the caller's name
	Role   DimKind = "role"   // what the caller may do
	Method DimKind = "method" // the request's method
	Path   DimKind = "path"   // the request's path
	Route  DimKind = "route"  // the pattern that the path matched
	Header DimKind = "header" // the first header field of a name
	Query  DimKind = "query"  // the first query parameter of a name
	Cookie DimKind = "cookie" // the first cookie of a name
)

type (
	// Dim is what the request tells. IP is an element of a key or a branch of one,
	// or is compared with nil.
	Dim struct {
		Kind DimKind
		// Name is that of a header field, in its canonical form, of a query parameter
		// or of a cookie; "" for the other kinds.
		Name string
		// Bits4 and Bits6 are how many bits of an address tell callers apart: 1..32 of
		// an IPv4 address and 1..128 of an IPv6 address. 0 for the other kinds.
		Bits4, Bits6 int
	}

	// Const is a constant: a literal, or one that the package declares.
	Const struct {
		Value constant.Value
		// Name is the name of the declared constant, "" for a literal.
		Name    string
		untyped bool    // it is declared without a type
		spelled spelled // what it is written as, if that is neither name nor value
		typ     types.Type
	}

	// Nil is an operand of == or !=.
	Nil struct{}

	// Param is a parameter of the method.
	Param struct {
		Index int
		Var   *types.Var
	}

	// Result is a result of the method.
	Result struct {
		Index int
		Var   *types.Var
	}

	// Local is a name of let's, or the element at hand in a Loop.
	Local struct {
		Name string
		// Value is what let gives it; nil for an element.
		Value Node
		typ   types.Type
		size  int // of Value
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

	// Convert makes text of X ("string"), an integer of another type, or a float64.
	// A float64 that becomes an integer and does not fit is absent.
	Convert struct {
		X   Node
		typ types.Type
	}

	// Builtin is one of the functions in builtins, or contains, startsWith or
	// endsWith.
	Builtin struct {
		Name string
		Args []Node
		typ  types.Type
	}

	// Match reports whether X has a match of a regular expression.
	Match struct {
		X       Node
		Pattern string
	}

	// In reports whether X is one of Elems or, if In is not nil, an element of that
	// slice or array or a key of that map.
	In struct {
		X     Node
		In    Node
		Elems []Node
	}

	// Let is Body, in which Local has a value.
	Let struct {
		Local *Local
		Body  Node
	}

	// Loop is any, all, none, one, count, sum, filter or map of X, a slice or an
	// array. Body is what it evaluates for each element, which Elem stands for there.
	Loop struct {
		Op   string
		X    Node
		Elem *Local
		Body Node
		typ  types.Type
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
	typFloat  = types.Typ[types.Float64]
	typInt    = types.Typ[types.Int]
)

// Untyped reports whether n is declared without a type.
func (n *Const) Untyped() bool { return n.untyped }

func (n *Dim) Type() types.Type     { return typString }
func (n *Const) Type() types.Type   { return n.typ }
func (n *Nil) Type() types.Type     { return types.Typ[types.UntypedNil] }
func (n *Param) Type() types.Type   { return n.Var.Type() }
func (n *Result) Type() types.Type  { return n.Var.Type() }
func (n *Local) Type() types.Type   { return n.typ }
func (n *Recv) Type() types.Type    { return n.Var.Type() }
func (n *Global) Type() types.Type  { return n.Var.Type() }
func (n *Field) Type() types.Type   { return n.Path[len(n.Path)-1].Type() }
func (n *Index) Type() types.Type   { return n.typ }
func (n *Call) Type() types.Type    { return n.typ }
func (n *Convert) Type() types.Type { return n.typ }
func (n *Builtin) Type() types.Type { return n.typ }
func (n *Match) Type() types.Type   { return typBool }
func (n *In) Type() types.Type      { return typBool }
func (n *Let) Type() types.Type     { return n.Body.Type() }
func (n *Loop) Type() types.Type    { return n.typ }
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
func (n *Result) MayBeAbsent() bool { return false }
func (n *Local) MayBeAbsent() bool  { return n.Value != nil && n.Value.MayBeAbsent() }
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
func (n *Convert) MayBeAbsent() bool {
	return n.X.MayBeAbsent() || IsFloat(n.X.Type()) && isInteger(n.typ)
}
func (n *Builtin) MayBeAbsent() bool { return anyAbsent(n.Args) }
func (n *Match) MayBeAbsent() bool   { return n.X.MayBeAbsent() }
func (n *In) MayBeAbsent() bool      { return false }
func (n *Let) MayBeAbsent() bool     { return n.Body.MayBeAbsent() }
func (n *Loop) MayBeAbsent() bool {
	return n.X.MayBeAbsent() || (n.Op == "sum" || n.Op == "map") && n.Body.MayBeAbsent()
}
func (n *Unary) MayBeAbsent() bool { return n.Op != "!" && n.X.MayBeAbsent() }
func (n *Binary) MayBeAbsent() bool {
	switch n.Op {
	case "==", "!=", "&&", "||":
		return false
	case "/", "%":
		if ConstValue(n.Y) == nil && !IsFloat(n.typ) {
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
func (n *Result) Operands() []Node { return nil }
func (n *Local) Operands() []Node  { return nil }
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
func (n *Match) Operands() []Node   { return []Node{n.X} }
func (n *In) Operands() []Node {
	if n.In != nil {
		return []Node{n.X, n.In}
	}
	return append([]Node{n.X}, n.Elems...)
}
func (n *Let) Operands() []Node    { return []Node{n.Local.Value, n.Body} }
func (n *Loop) Operands() []Node   { return []Node{n.X, n.Body} }
func (n *Unary) Operands() []Node  { return []Node{n.X} }
func (n *Binary) Operands() []Node { return []Node{n.X, n.Y} }
func (n *Join) Operands() []Node   { return n.Parts }
func (n *Cond) Operands() []Node   { return []Node{n.If, n.Then, n.Else} }
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
