package keyexpr

import (
	"cmp"
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser/lexer"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
)

// checker turns one expression into nodes and collects what is wrong with it. The
// methods that return a Node return nil for what they have reported.
type checker struct {
	src      string
	scope    *Scope
	text     text
	nodes    int  // checked so far
	named    bool // there is a name in it, other than let's, and so not only literals
	broken   bool // expr's parser would only repeat what has been reported
	limit    bool // it is what max is
	alone    bool // it is a key of one word, which can be "global"
	closures bool // there is a closure, in which # stands alone
	bound    []*binding
	elems    []*Local                  // those that # has stood for; the last is the innermost
	instead  map[*ast.UnaryNode]string // what to write if "not" stands before no condition
	negated  map[ast.Node]bool         // what stands behind "not"
	large    map[int]bool              // places of integers that are 1<<63, of which - makes the least int64
	elvis    map[ast.Node]string       // what to write for a choice, by its condition
	top      *ast.BinaryNode           // an operator that is an element of a key
	places   map[Node]ast.Node         // where what is checked stands
	problems []Problem
}

func newChecker(src string, s *Scope) *checker {
	c := &checker{src: src, scope: s, instead: map[*ast.UnaryNode]string{}, negated: map[ast.Node]bool{}, elvis: map[ast.Node]string{}, large: map[int]bool{}, places: map[Node]ast.Node{}}
	var hidden []string
	for _, name := range []string{"append", "bool", "byte", "false", "float64", "int", "int64", "len", "nil", "string", "true", "uint64"} {
		if s.Pkg != nil && s.Pkg.Scope().Lookup(name) != nil {
			hidden = append(hidden, name)
		}
	}
	if len(hidden) > 0 {
		c.bytesProblem(0, len(src), shadowed, strings.Join(hidden, ", "))
	}
	return c
}

// problem reports r at a place.
func (c *checker) problem(at span, r rule, args ...any) *Problem {
	return c.bytesProblem(c.text.bytes[at.from], c.text.bytes[at.to], r, args...)
}

func (c *checker) bytesProblem(from, to int, r rule, args ...any) *Problem {
	c.problems = append(c.problems, Problem{From: from, To: to, Code: r.code, Message: fmt.Sprintf(r.format, args...)})
	return &c.problems[len(c.problems)-1]
}

// at reports r at a node.
func (c *checker) at(n ast.Node, r rule, args ...any) *Problem {
	return c.problem(c.text.span(n), r, args...)
}

// quote returns the original text of n.
func (c *checker) quote(n ast.Node) string {
	if _, ok := n.(*ast.PointerNode); ok {
		return "#" // also where it is written as the dot of .Field
	}
	return c.text.text(c.text.span(n))
}

// unknown reports an unknown name with the names that are possible.
func (c *checker) unknown(p *Problem, name string, valid []string) {
	slices.Sort(valid)
	p.Valid = slices.Compact(valid)
	p.Suggestion = diag.Suggest(name, p.Valid)
}

func (c *checker) failed() bool {
	return slices.ContainsFunc(c.problems, func(p Problem) bool { return !p.Warning })
}

// full reports whether as many problems have been found as are reported.
func (c *checker) full() bool { return len(c.problems) >= maxProblems }

// sorted returns the first problems in the order of their places, and at most one error
// for each. If the expression is too large, what else was found is of no use.
func (c *checker) sorted() []Problem {
	if i := slices.IndexFunc(c.problems, func(p Problem) bool {
		return p.Code == tooLong.code || p.Code == tooDeep.code || p.Code == tooLarge.code
	}); i >= 0 {
		return c.problems[i : i+1]
	}
	byPlace := func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	}
	errorsFirst := func(a, b Problem) int {
		switch {
		case a.Warning == b.Warning:
			return byPlace(a, b)
		case b.Warning:
			return -1
		}
		return 1
	}
	slices.SortStableFunc(c.problems, errorsFirst)
	problems := slices.CompactFunc(c.problems, func(a, b Problem) bool {
		return byPlace(a, b) == 0 && a.Warning == b.Warning && (!a.Warning || a.Code == b.Code && a.Message == b.Message)
	})
	problems = problems[:min(len(problems), maxProblems)]
	slices.SortStableFunc(problems, byPlace)
	return problems
}

// expr checks n as a value that is no address.
func (c *checker) expr(n ast.Node) Node { return c.isValue(n, c.value(n)) }

func (c *checker) isValue(n ast.Node, x Node) Node {
	if d, ok := x.(*Dim); ok && d.Kind == IP {
		c.at(n, ipText)
		return nil
	}
	return x
}

// compared checks n as what is compared with something but nil.
func (c *checker) compared(n ast.Node) Node {
	x := c.value(n)
	if d, ok := x.(*Dim); ok && d.Kind == IP {
		c.at(n, ipCompared)
		return nil
	}
	return x
}

// count bounds the work, since chains of operators are deep without brackets.
func (c *checker) count(n ast.Node) bool {
	c.nodes++
	if c.nodes == maxNodes+1 {
		c.problem(span{0, len(c.text.runes)}, tooLarge, maxNodes)
	}
	return c.nodes <= maxNodes
}

// value checks n, which may be of any type, or an address.
func (c *checker) value(n ast.Node) Node { return c.placed(n, c.valueOf(n)) }

// placed notes where x stands.
func (c *checker) placed(n ast.Node, x Node) Node {
	if x != nil && c.places[x] == nil {
		c.places[x] = n
	}
	return x
}

func (c *checker) valueOf(n ast.Node) Node {
	switch n := n.(type) {
	case *ast.ConditionalNode:
		return c.choice(n, c.expr)
	case *ast.BinaryNode:
		if n.Operator == "??" {
			return c.choice(n, c.expr)
		}
	}
	if !c.count(n) {
		return nil
	}
	switch n := n.(type) {
	case *ast.NilNode:
		c.at(n, nilValue)
	case *ast.IntegerNode:
		if c.large[n.Location().From] {
			return &Const{Value: constant.MakeUint64(1 << 63), typ: types.Typ[types.UntypedInt]}
		}
		return &Const{Value: constant.MakeInt64(int64(n.Value)), typ: types.Typ[types.UntypedInt]}
	case *ast.BoolNode:
		return &Const{Value: constant.MakeBool(n.Value), typ: types.Typ[types.UntypedBool]}
	case *ast.StringNode:
		return &Const{Value: constant.MakeString(n.Value), typ: types.Typ[types.UntypedString]}
	case *ast.FloatNode:
		return &Const{Value: constant.MakeFloat64(n.Value), typ: types.Typ[types.UntypedFloat]}
	case *ast.BytesNode:
		c.at(n, notSupported, "a literal of bytes", "write text")
	case *ast.IdentifierNode:
		return c.identifier(n)
	case *ast.ChainNode:
		return c.value(n.Node)
	case *ast.MemberNode:
		return c.member(n)
	case *ast.CallNode:
		return c.call(n)
	case *ast.BuiltinNode:
		return c.builtin(n)
	case *ast.UnaryNode:
		return c.unary(n)
	case *ast.BinaryNode:
		return c.binary(n)
	case *ast.SliceNode:
		c.at(n, notSupported, "a part of a list or text", "select one element, as in split(s, \":\")[0], or use a function of the package")
	case *ast.ArrayNode:
		if i := c.text.at[c.text.span(n).from]; i > 0 && c.text.tokens[i-1].Value == "not" && c.local("not") != nil {
			c.at(n, notIndexed, c.quote(n))
			break
		}
		c.at(n, tupleInside)
	case *ast.MapNode:
		c.at(n, notSupported, "a map literal", "use a function of the package")
	case *ast.PredicateNode:
		return c.value(n.Node)
	case *ast.PointerNode:
		return c.elem(n)
	case *ast.VariableDeclaratorNode:
		return c.let(n, c.expr)
	case *ast.SequenceNode:
		c.at(n, notSupported, "a sequence", "write one expression")
	default:
		c.at(n, notSupported, c.quote(n), "use a function of the package")
	}
	return nil
}

// unary checks -x, +x and not x.
func (c *checker) unary(n *ast.UnaryNode) Node {
	if n.Operator == "!" || n.Operator == "not" {
		c.negated[n.Node] = true
		x := c.expr(n.Node)
		if write := c.instead[n]; write != "" && x != nil && keyKindOf(x.Type()) != Boolean {
			c.at(n, notBefore, n.Operator, c.quote(n.Node), c.typeName(x.Type()), write)
			return nil
		}
		if x = c.isCondition(n.Node, x); x == nil {
			return nil
		}
		return &Unary{Op: "!", X: x}
	}
	x := c.number(n.Node)
	if x == nil || n.Operator == "+" {
		return x
	}
	if IsFloat(x.Type()) {
		if v := ConstValue(x); v != nil && constant.Sign(v) == 0 {
			c.at(n, negativeZero)
			return nil
		}
		x = asFloat(x)
	}
	return c.fold(n, &Unary{Op: "-", X: x})
}

// defaults checks "left ?? right" and "left ?: right".
func (c *checker) defaults(n, left, right ast.Node, notEmpty bool, sub func(ast.Node) Node) Node {
	l := sub(left)
	if _, ok := right.(*ast.NilNode); ok {
		return l // absent stays absent
	}
	r := sub(right)
	if l == nil || r == nil {
		return nil
	}
	if write := c.elvisFirst(left, right); write != "" && isElvis(n) && keyKindOf(l.Type()) != Boolean && keyKindOf(r.Type()) == Boolean {
		c.at(n, elvisLast, write)
		return nil
	}
	emptyText := mayBeEmptyText(l)
	if !l.MayBeAbsent() && !mayBeNil(l) && !(notEmpty && emptyText) {
		hint := ""
		if !notEmpty && emptyText && ConstValue(l) == nil && keyKindOf(r.Type()) == Text {
			hint = fmt.Sprintf("; write %s ?: %s for empty text", c.operand(left), c.operand(right))
		}
		op := "??"
		if isElvis(n) {
			op = "?:"
		}
		c.at(n, uselessChoice, c.quote(left), op, hint)
		return nil
	}
	notEmpty = notEmpty && keyKindOf(l.Type()) == Text
	typ, nodes := c.common([]ast.Node{left, right}, []Node{l, r})
	if nodes == nil {
		return nil
	}
	alts := []Alt{{nodes[0], notEmpty}}
	if d, ok := nodes[0].(*Default); ok {
		// (a ?? b) ?? c is a list of three. So is (a ?: b) with anything behind it:
		// the last of the inner ones takes the outer condition.
		last := len(d.Alts) - 1
		if !notEmpty || settled(d.Alts[:last]) {
			alts = append(slices.Clone(d.Alts[:last]), Alt{d.Alts[last].Node, notEmpty})
		}
	}
	if d, ok := nodes[1].(*Default); ok {
		alts = append(alts, d.Alts...)
	} else {
		alts = append(alts, Alt{Node: nodes[1]})
	}
	if absentAlternative(alts) {
		what, hint := c.quote(right), ""
		if _, ok := r.(*Default); ok {
			what = "a part of " + what
		}
		if !notEmpty && emptyText {
			hint = fmt.Sprintf("; write %s ?: %s for empty text", c.operand(left), c.operand(right))
		}
		c.at(right, absentDefault, what, c.quote(left), hint)
		return nil
	}
	return &Default{Alts: alts, typ: typ}
}

// elvisFirst writes "left ?: right" with what right, a comparison without parentheses,
// compares as the default; "" if right is something else.
func (c *checker) elvisFirst(left, right ast.Node) string {
	if i := c.text.at[c.text.bare(right).from]; i > 0 && c.text.tokens[i-1].Is(lexer.Bracket, "(") {
		return ""
	}
	for {
		b, ok := right.(*ast.BinaryNode)
		switch {
		case !ok:
			return ""
		case isComparison(b):
			return "(" + c.quote(left) + " ?: " + c.quote(b.Left) + ") " + b.Operator + " " + c.quote(b.Right)
		}
		right = b.Left
	}
}

// settled reports whether no alternative is taken that is empty text.
func settled(alts []Alt) bool {
	return !slices.ContainsFunc(alts, func(a Alt) bool {
		_, dim := a.Node.(*Dim)
		return !a.NotEmpty && !dim && keyKindOf(a.Type()) == Text
	})
}

func isElvis(n ast.Node) bool { _, ok := n.(*ast.ConditionalNode); return ok }

// conditional checks "cond ? a : b".
func (c *checker) conditional(n *ast.ConditionalNode, sub func(ast.Node) Node) Node {
	c.elvis[n.Cond] = c.elvisOf(n)
	cond := c.part(n.Cond)
	a, b := sub(n.Exp1), sub(n.Exp2)
	if cond == nil || a == nil || b == nil || !c.chosenAbsent(n, cond, a, b) {
		return nil
	}
	c.emptyChoice(n, n, cond, a, b)
	typ, nodes := c.common([]ast.Node{n.Exp1, n.Exp2}, []Node{a, b})
	if nodes == nil {
		return nil
	}
	return &Cond{If: cond, Then: nodes[0], Else: nodes[1], typ: typ}
}

// condition checks n as a boolean.
func (c *checker) condition(n ast.Node) Node { return c.isCondition(n, c.expr(n)) }

func (c *checker) isCondition(n ast.Node, x Node) Node {
	if x == nil {
		return nil
	}
	if keyKindOf(x.Type()) != Boolean || isTypeParam(x.Type()) {
		c.at(n, notCondition, c.quote(n), c.typeName(x.Type()))
		return nil
	}
	return x
}

// integer checks n as an integer.
func (c *checker) integer(n ast.Node) Node {
	x := c.expr(n)
	if x == nil {
		return nil
	}
	if k, ok := x.(*Const); ok && k.Name != "" && isUntyped(k.typ) && IsFloat(k.typ) && constant.ToInt(k.Value).Kind() == constant.Int {
		// As in Go, const million = 1e6 is an integer where one is wanted.
		return &Const{Value: constant.ToInt(k.Value), Name: k.Name, untyped: true, typ: types.Typ[types.UntypedInt]}
	}
	if !isInteger(x.Type()) {
		hint := ""
		switch {
		case keyKindOf(x.Type()) == Text:
			hint = "; len(" + c.quote(n) + ") is the number of its characters"
		case hasFraction(x):
			hint = "; write int(floor(" + c.quote(n) + "))"
		case IsFloat(x.Type()):
			hint = "; write int(" + c.quote(n) + ")"
		}
		c.at(n, notInteger, c.quote(n), c.typeName(x.Type()), hint)
		return nil
	}
	return x
}

// hasFraction reports whether n is a constant, and no literal, that Go does not make an
// integer of.
func hasFraction(n Node) bool {
	v := ConstValue(n)
	return v != nil && IsFloat(n.Type()) && !literal(n) && constant.ToInt(v).Kind() != constant.Int
}

// number checks n as an integer or a float.
func (c *checker) number(n ast.Node) Node { return c.isNumber(n, c.expr(n)) }

func (c *checker) isNumber(n ast.Node, x Node) Node {
	if x == nil || isInteger(x.Type()) || IsFloat(x.Type()) {
		return x
	}
	hint := ""
	if keyKindOf(x.Type()) == Text {
		hint = "; len(" + c.quote(n) + ") is the number of its characters"
	}
	c.at(n, notNumber, c.quote(n), c.typeName(x.Type()), hint)
	return nil
}

// textual checks n as text.
func (c *checker) textual(n ast.Node) Node { return c.isText(n, c.expr(n)) }

func (c *checker) isText(n ast.Node, x Node) Node {
	if x == nil || keyKindOf(x.Type()) == Text {
		return x
	}
	hint := ""
	if k := keyKindOf(x.Type()); k != None && k != mixed {
		hint = "; write " + c.asText(n)
	} else if isError(x.Type()) {
		hint = "; write " + c.quote(n) + ".Error()"
	}
	c.at(n, notText, c.quote(n), c.typeName(x.Type()), hint)
	return nil
}

// local returns the parameter or the receiver of that name.
func (c *checker) local(name string) Node {
	if name == "" || name == "_" {
		return nil
	}
	if c.scope.Sig != nil {
		for i := range c.scope.Sig.Params().Len() {
			if v := c.scope.Sig.Params().At(i); v.Name() == name {
				return &Param{Index: i, Var: v}
			}
		}
	}
	if c.scope.Recv != nil && c.scope.Recv.Name() == name {
		return &Recv{Var: c.scope.Recv}
	}
	return nil
}

func (c *checker) packageObject(name string) types.Object {
	if c.scope.Pkg == nil || !token.IsIdentifier(name) {
		return nil
	}
	return c.scope.Pkg.Scope().Lookup(name)
}

// function returns the function of the package of that name.
func (c *checker) function(name string) *types.Func {
	f, _ := c.packageObject(name).(*types.Func)
	return f
}

// known reports whether a name is one of let's, a parameter's, the receiver's, a
// result's or the package's.
func (c *checker) known(name string) bool {
	return c.binding(name) != nil || c.local(name) != nil || slices.Contains(c.results(), name) || c.packageObject(name) != nil
}
