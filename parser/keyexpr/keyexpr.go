// Package keyexpr reads the expressions of directives: what a key, a cost or a
// condition is computed from. The grammar is that of github.com/expr-lang/expr and
// is parsed by it; names and types are those of Go and are checked against
// go/types, so that the generator can write the expression as plain Go.
//
// There are the parameters and the receiver by name, "#name" for a parameter, SpEL's
// #p0, #a0, #root.args[0], #root.target and #root.methodName, and what the package
// declares; request.ip, .user, .role, .method, .path and .route, also without the
// "request." where nothing else has the name, request.header("X"), .query("q") and
// .cookie("c"); where results are known, those by name, result and err, or #result and
// #err, which mean the results though a parameter has the name. There are
// members, indexes, calls with one result; the operators + - * / % == != < <= > >=
// in contains startsWith endsWith matches and or not && || ! ?: ?? and ?.; let; the
// closures any, all, none, one, count, sum, filter and map, with # for the element
// and .Field for #.Field; split, join, lower, upper, trim, trimPrefix, trimSuffix,
// replace, hasPrefix, hasSuffix, len, string, abs, min, max, ceil, floor, round,
// float, and conversions between integers such as int64(x). The problem that
// anything else gives says what to write instead.
//
// # Absent values
//
// Evaluation never panics, except where a function of the user's does. What Go
// would panic at has no value instead; it is absent:
//
//   - A field or method of a nil pointer or nil interface, an index out of range,
//     a missing key of a map, the quotient and the remainder of a division by zero,
//     a float that is no integer's when it becomes one, and what the request does not
//     tell are absent. A nil pointer itself is a value, which may be passed to a
//     function.
//   - What is computed from an absent value is absent, but for what the next points
//     name: members, indexes, calls with an absent argument, arithmetic, joined text,
//     < <= > >=, contains and the other operators on text, closures over an absent
//     list, and the sum and the map of absent values. A function is not called then.
//   - == and != are never absent. x == nil holds if x is absent or nil. Otherwise an
//     absent value differs from every value, and is equal to another absent one: with
//     a nil Owner, req.Owner.ID == req.Owner.Boss.ID holds.
//   - An absent value is in no list, no list has an absent value in it, and nothing
//     is in an absent one. "in" is never absent.
//   - As a condition, absent counts as false: in "and", "or", "not", before "?" and
//     in a closure. Their results are never absent.
//   - x ?? y is y if x is absent or nil. x ?: y is also y if x is empty text.
//   - A key with an absent element is absent as a whole.
//
// # Where expr's interpreter differs
//
// Integers divide as in Go: 7 / 2 is 3, not 3.5. Integers keep their types, wrap
// around as in Go (but stop at the bounds of their types in a cost or a limit), and do
// not mix with each other or with floats; sums of integers
// are of type int, floats are computed as float64. An index below zero is out of
// range, and does not count from the end; a missing key of a map is absent, not a
// zero value. x ?: y asks for absence and emptiness, as in SpEL, where expr wants a
// condition. string(x) of a byte slice is its text. len of text counts characters,
// as in expr and unlike Go. Where expr's interpreter stops with an error (nil < 1,
// not nil, a nil pointer without ?.), the rules above hold.
package keyexpr

import (
	"go/types"
	"slices"
	"strings"
)

// Bounds of what is read. They keep expr's parser, which is recursive, far from
// the end of the stack.
const (
	maxText  = 4 << 10 // bytes
	maxDepth = 32      // brackets within brackets
	maxNodes = 200     // operands and operators

	// maxWritten is the most operands and operators of what a name of let stands for, if
	// the names in it are written out: what is checked follows them.
	maxWritten = 500

	maxProblems = 10 // that are reported; the others would only hide the first
)

// Scope says what an expression can refer to.
type Scope struct {
	// Pkg is the annotated package: its functions, constants and variables are in
	// scope, and its unexported names can be used.
	Pkg *types.Package
	// Recv is the receiver with the name that the source gives it, which may be ""
	// or "_". Its type is that of the wrapped value: a pointer to a named type, a
	// named type or an interface. Nil if there is none.
	Recv *types.Var
	// Sig holds the parameters as in the source; names may be "" or "_".
	Sig *types.Signature
	// Method is the method's name, for #root.methodName.
	Method string
	// Imports holds the names of the packages that files of the package import, also of
	// those that Pkg does not list because no declaration needs them.
	Imports []string
	// Results holds the method's results where an expression is evaluated after the
	// call, which may be none; nil where it is evaluated before.
	Results *types.Tuple
	// Request is set if the method has a parameter that tells who is calling.
	Request bool
	// NoRequest says why a parameter that comes close to it does not, "" if there is
	// none.
	NoRequest string
	// Importable reports whether the package may import the one at a path; nil if it may
	// import any.
	Importable func(path string) bool
	// WillHave returns the method that t, or a pointer to it, has once what is generated
	// for it is there; nil if there is none. So is WillHave itself if nothing is generated.
	WillHave func(t types.Type, pkg *types.Package, method string) *types.Func
}

// Problem is something wrong with an expression.
type Problem struct {
	// From and To are byte offsets in the expression: 0 <= From <= To <= len.
	From, To int
	// Code is stable and kebab-case.
	Code string
	// Message says what is wrong and what to write instead.
	Message string
	// Suggestion is the name that was probably meant, or "".
	Suggestion string
	// Valid lists the names that are possible at this place, or nil.
	Valid []string
	// Warning is set if the expression can be used all the same.
	Warning bool
}

// Key is whose calls share a counter.
type Key struct {
	// Global is set if all calls share one; Elems is empty then.
	Global bool
	// Lets holds the names that the elements share, in the order in which they get
	// their values.
	Lets []*Local
	// Elems holds the elements; more than one are a tuple. Each is a Dim, or an
	// expression of text, integer or boolean type.
	Elems []Node

	spelling string
}

// String returns k in the one spelling of all that mean the same: names without a #
// or "request." before them where that is possible, double quotes, && and ||, "." for
// "?.", and tuples as [a, b], but for those of dimensions alone, as ip,user. It can be
// parsed in the same scope, and gives the same text then. Keys that differ have
// different spellings. It is "" for a Key that ParseKey has not returned.
func (k *Key) String() string { return k.spelling }

// Kind returns what the elements are: addresses, texts, integers or booleans. The same
// key can only be meant by keys of one kind.
func (k *Key) Kind() string {
	kinds := make([]string, len(k.Elems))
	for i, n := range k.Elems {
		kinds[i] = "text"
		if d, ok := n.(*Dim); ok {
			if d.Kind == IP {
				kinds[i] = "address"
			}
			continue
		}
		if b, ok := n.Type().Underlying().(*types.Basic); ok {
			switch info := b.Info(); {
			case info&types.IsInteger != 0:
				kinds[i] = "integer"
			case info&types.IsBoolean != 0:
				kinds[i] = "boolean"
			}
		}
	}
	return strings.Join(kinds, ", ")
}

// MayBeEmpty reports whether there may be calls whose key is absent, or has an absent
// or an empty element.
func (k *Key) MayBeEmpty() bool { return slices.ContainsFunc(k.Elems, mayBeEmpty) }

// Nodes lists everything that k evaluates.
func (k *Key) Nodes() []Node {
	var nodes []Node
	for _, l := range k.Lets {
		nodes = append(nodes, l.Value)
	}
	return append(nodes, k.Elems...)
}

// NeedsRequest reports whether k reads who is calling.
func (k *Key) NeedsRequest() bool { return slices.ContainsFunc(k.Nodes(), needsRequest) }

// Expr is an expression of integer type, from ParseCost and its neighbours, or of boolean type, from
// ParseCondition.
type Expr struct {
	Node Node

	spelling string
}

// String returns e in the one spelling of all that mean the same. See Key.String.
func (e *Expr) String() string { return e.spelling }

// NeedsRequest reports whether e reads who is calling.
func (e *Expr) NeedsRequest() bool { return needsRequest(e.Node) }

// ParseKey reads a key: "global", a list of elements with commas between them, an
// array literal, or one expression. An element is a dimension such as ip, user or
// ip/24/56, or an expression. A key of literals alone is refused. The key is nil if a problem is not a warning. Problems
// are in the order of their places.
func ParseKey(src string, s *Scope) (*Key, []Problem) {
	c := newChecker(src, s)
	k := c.key()
	if c.failed() {
		return nil, c.sorted()
	}
	k.spelling = newSpelling(c, k.Nodes()).key(k)
	return k, c.sorted()
}

// amountKind is what an integer is for.
type amountKind uint8

const (
	ofCost amountKind = iota
	ofCostAfter
	ofLimit
)

// ParseCost reads an expression of integer type: what a call costs. One of literals
// alone is refused. The expression is nil if a problem is not a warning. Problems are
// in the order of their places.
func ParseCost(src string, s *Scope) (*Expr, []Problem) { return parseAmount(ofCost, src, s) }

// ParseCostAfter is ParseCost for what a call is charged when it has ended.
func ParseCostAfter(src string, s *Scope) (*Expr, []Problem) { return parseAmount(ofCostAfter, src, s) }

// ParseLimit is ParseCost for the limit that a call brings.
func ParseLimit(src string, s *Scope) (*Expr, []Problem) { return parseAmount(ofLimit, src, s) }

func parseAmount(kind amountKind, src string, s *Scope) (*Expr, []Problem) {
	c := newChecker(src, s)
	c.limit = kind == ofLimit
	n := c.whole(kind.String(), c.cost)
	if n != nil {
		c.refuseConstant(constantCost, constantAmount(kind, n))
	}
	return c.expression(n, element), c.sorted()
}

func (k amountKind) String() string { return [...]string{"cost", "cost", "limit"}[k] }

// ParseCondition reads an expression of boolean type. If it is absent, it does not
// hold. One of literals alone is refused. The expression is nil if a problem is not a warning. Problems are in the
// order of their places.
func ParseCondition(src string, s *Scope) (*Expr, []Problem) {
	c := newChecker(src, s)
	n := c.whole("condition", c.condition)
	c.refuseConstant(constantWhen)
	return c.expression(n, operand), c.sorted()
}

// Opposite reports whether e and o are conditions of which each is written as the
// opposite of the other.
func (e *Expr) Opposite(o *Expr) bool {
	return sameCondition(opposite(e.Node), o.Node) || sameCondition(e.Node, opposite(o.Node))
}

// expression makes an Expr of n, nil if there is a problem that is not a warning.
func (c *checker) expression(n Node, pos position) *Expr {
	if !c.failed() {
		c.nameTypes(n, c.places[n], pos)
	}
	if c.failed() {
		return nil
	}
	text, _ := newSpelling(c, []Node{n}).node(n, place{})
	return &Expr{Node: n, spelling: text}
}
