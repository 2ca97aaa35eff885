package keyexpr

import (
	"go/constant"
	"go/types"
	"strconv"
	"strings"
)

// spelling writes checked expressions so that those that mean the same are written
// the same, and those that do not are not: what it writes can be read again, and is
// then written in the same way.
type spelling struct {
	c     *checker
	lets  map[string]bool   // the names of let's in the whole expression
	elems []*Local          // those that # has stood for; the last is the innermost
	outer map[*Local]string // what an element is called in the closures inside of its own
}

// How tight an operator binds. What stands in parentheses, or needs none, is primary.
const (
	bindLet = iota
	bindChoice
	bindOr
	bindAnd
	bindCompare
	bindAdd
	bindMul
	bindUnary
	bindPrimary
)

var bindingOf = map[string]int{
	"||": bindOr, "&&": bindAnd, "+": bindAdd, "-": bindAdd, "*": bindMul, "/": bindMul, "%": bindMul,
}

// place is where an expression stands, as far as that decides how it is written.
type place struct {
	elem   bool       // where a dimension may stand, and its name alone means that
	member string     // before a dot and this name
	want   types.Type // what a literal is there that says nothing, nil for its default
}

// newSpelling prepares writing nodes, which c has checked.
func newSpelling(c *checker, nodes []Node) *spelling {
	s := &spelling{c: c, lets: map[string]bool{}, outer: map[*Local]string{}}
	for _, n := range nodes {
		Contains(n, func(n Node) bool {
			if let, ok := n.(*Let); ok {
				s.lets[let.Local.Name] = true
			}
			return false
		})
	}
	return s
}

// spelled is the text of a node and how tight it binds.
type spelled struct {
	text  string
	binds int
}

// spell returns how a constant is written that is computed from x: by its value if x
// is made of literals alone.
func (c *checker) spell(x Node) spelled {
	if !Contains(x, isNamed) {
		return spelled{}
	}
	text, binds := newSpelling(c, nil).node(x, place{})
	return spelled{text, binds}
}

// isNamed reports whether n is a constant that is not written as its value.
func isNamed(n Node) bool {
	k, ok := n.(*Const)
	return ok && (k.Name != "" || k.spelled.text != "")
}

// key writes a key.
func (s *spelling) key(k *Key) string {
	if k.Global {
		return "global"
	}
	var b strings.Builder
	for _, l := range k.Lets {
		s.lets[l.Name] = true
	}
	for _, l := range k.Lets {
		b.WriteString("let " + l.Name + " = " + s.in(l.Value, bindChoice, place{}) + "; ")
	}
	elems, dims := make([]string, len(k.Elems)), true
	for i, n := range k.Elems {
		d, ok := n.(*Dim)
		dims = dims && ok && isDim(string(d.Kind))
		elems[i] = s.in(n, bindChoice, place{elem: true})
	}
	switch list := strings.Join(elems, ", "); {
	case len(elems) == 1 && elems[0] == "global":
		return "[global]" // something of the package's
	case len(elems) == 1:
		b.WriteString(list)
	case dims:
		return strings.Join(elems, ",")
	default:
		b.WriteString("[" + list + "]")
	}
	return b.String()
}

// in writes n where an operand must bind as tight as least.
func (s *spelling) in(n Node, least int, at place) string {
	text, binds := s.node(n, at)
	if binds < least {
		return "(" + text + ")"
	}
	return text
}

// args writes the arguments of a call.
func (s *spelling) args(args []Node, want func(i int) types.Type) string {
	list := make([]string, len(args))
	for i, a := range args {
		list[i] = s.in(a, bindChoice, place{want: want(i)})
	}
	return "(" + strings.Join(list, ", ") + ")"
}

// node writes n and tells how tight it binds.
func (s *spelling) node(n Node, at place) (string, int) {
	if text, ok := s.infix(n, ""); ok {
		return text, bindCompare
	}
	switch n := n.(type) {
	case *Dim:
		return s.dim(n)
	case *Const:
		return s.constant(n, at)
	case *Nil:
		return "nil", bindPrimary
	case *Param:
		return s.param(n, at), bindPrimary
	case *Result:
		return s.result(n), bindPrimary
	case *Local:
		return s.local(n, at), bindPrimary
	case *Recv:
		if name := n.Var.Name(); s.nameable(name) {
			return hash(name, at), bindPrimary
		}
		return "#root.target", bindPrimary
	case *Global:
		return s.declared(n.Var.Name(), n.Type(), at), bindPrimary
	case *Field:
		name := n.Path[len(n.Path)-1].Name()
		return s.in(n.X, bindPrimary, place{member: name}) + "." + name, bindPrimary
	case *Index:
		var want types.Type
		if m, ok := n.X.Type().Underlying().(*types.Map); ok {
			want = m.Key()
		}
		return s.in(n.X, bindPrimary, place{}) + "[" + s.in(n.I, bindChoice, place{want: want}) + "]", bindPrimary
	case *Call:
		return s.call(n), bindPrimary
	case *Convert:
		return s.conversion(n), bindPrimary
	case *Builtin:
		return s.builtin(n), bindPrimary
	case *Let:
		return "let " + n.Local.Name + " = " + s.in(n.Local.Value, bindChoice, place{}) + "; " + s.in(n.Body, bindLet, place{elem: at.elem}), bindLet
	case *Loop:
		return s.loop(n), bindPrimary
	case *Unary:
		return s.unary(n, at)
	case *Binary:
		return s.binary(n)
	case *Join:
		parts := make([]string, len(n.Parts))
		for i, p := range n.Parts {
			parts[i] = s.in(p, bindMul, place{})
		}
		return strings.Join(parts, " + "), bindAdd
	case *Cond:
		return s.in(n.If, bindOr, place{}) + " ? " + s.in(n.Then, bindOr, place{elem: at.elem, want: given(n.Else)}) +
			" : " + s.in(n.Else, bindChoice, place{elem: at.elem, want: given(n.Then)}), bindChoice
	case *Default:
		text, _ := s.choice(n.Alts, place{elem: at.elem, want: n.Alts[0].Type()})
		return text, bindChoice
	}
	return "", bindPrimary
}

// dim writes what the request tells: by its name alone if nothing else has that.
func (s *spelling) dim(n *Dim) (string, int) {
	name := string(n.Kind)
	switch {
	case isLookup(name):
		return "request." + name + "(" + strconv.Quote(n.Name) + ")", bindPrimary
	case s.c.known(name):
		name = "request." + name
	}
	if n.Kind == IP && (n.Bits4 != 32 || n.Bits6 != 64) {
		return name + "/" + strconv.Itoa(n.Bits4) + "/" + strconv.Itoa(n.Bits6), bindMul
	}
	return name, bindPrimary
}

// hash writes the name of a parameter, the receiver or a result, with a # where the
// name alone would mean something else.
func hash(name string, at place) string {
	switch name {
	case "not", "let", "if", "true", "false", "nil":
		return "#" + name
	}
	if at.elem && (isDim(name) || name == "global") || name == "request" && isDim(at.member) {
		return "#" + name
	}
	return name
}

// nameable reports whether a parameter or the receiver of that name can be named by it.
func (s *spelling) nameable(name string) bool {
	return name != "" && name != "_" && !s.c.hidesResult(name)
}

func (s *spelling) param(n *Param, at place) string {
	if name := n.Var.Name(); s.nameable(name) {
		return hash(name, at)
	}
	i := strconv.Itoa(n.Index)
	for _, name := range []string{"p" + i, "a" + i} {
		if !s.c.known(name) && !s.lets[name] {
			return "#" + name
		}
	}
	return "#root.args[" + i + "]"
}

func (s *spelling) result(n *Result) string {
	name := n.Var.Name()
	if name == "" || name == "_" {
		name = "result"
		if results := s.c.scope.Results; n.Index == results.Len()-1 && isError(n.Type()) {
			name = "err"
		}
		if s.c.local(name) != nil {
			return "#" + name
		}
	}
	return hash(name, place{})
}

// local writes a name of let's, or an element of a list.
func (s *spelling) local(n *Local, at place) string {
	switch {
	case n.Value != nil:
		return n.Name
	case n != s.elems[len(s.elems)-1]:
		return s.outer[n]
	case at.member != "":
		return "" // .Field
	}
	return "#"
}

// declared writes the name of a variable or a constant of the package.
func (s *spelling) declared(name string, t types.Type, at place) string {
	switch {
	case at.elem && isDim(name) && t == typString:
		return "string(" + name + ")"
	case name == "not" || name == "let" || name == "if":
		return "(" + name + ")"
	}
	return name
}

func (s *spelling) call(n *Call) string {
	fn := n.Fn.Name()
	if n.X != nil {
		fn = s.in(n.X, bindPrimary, place{member: fn}) + "." + fn
	}
	sig := n.Fn.Signature()
	return fn + s.args(n.Args, func(i int) types.Type {
		if last := sig.Params().Len() - 1; sig.Variadic() && i >= last {
			return sig.Params().At(last).Type().Underlying().(*types.Slice).Elem()
		}
		return sig.Params().At(i).Type()
	})
}

func (s *spelling) conversion(n *Convert) string {
	name := "string"
	if b, ok := n.typ.(*types.Basic); ok && b.Kind() == types.Float64 {
		name = "float"
	} else if ok && b.Kind() != types.String {
		name = types.Typ[b.Kind()].Name() // uint8 for byte
	}
	return name + "(" + s.in(n.X, bindChoice, place{}) + ")"
}

func (s *spelling) builtin(n *Builtin) string {
	args := n.Args
	if n.Name == "join" {
		if sep, ok := args[1].(*Const); ok && sep.Name == "" && constant.StringVal(sep.Value) == "" {
			args = args[:1]
		}
	}
	want := given(args...)
	return n.Name + s.args(args, func(int) types.Type { return want })
}

// infix writes an operator that may have "not " before it; ok is false if n is none.
func (s *spelling) infix(n Node, not string) (text string, ok bool) {
	switch n := n.(type) {
	case *In:
		return s.within(n, " "+not+"in "), true
	case *Match:
		return s.in(n.X, bindAdd, place{}) + " " + not + "matches " + strconv.Quote(n.Pattern), true
	case *Builtin:
		switch n.Name {
		case "contains", "startsWith", "endsWith":
			return s.in(n.Args[0], bindAdd, place{}) + " " + not + n.Name + " " + s.in(n.Args[1], bindAdd, place{}), true
		}
	}
	return "", false
}

// within writes x in list, op being " in " or " not in ".
func (s *spelling) within(n *In, op string) string {
	var want types.Type
	switch {
	case n.In == nil:
		want = given(n.Elems[0])
	case listElem(n.In.Type()) != nil:
		want = listElem(n.In.Type())
	default:
		want = n.In.Type().Underlying().(*types.Map).Key()
	}
	text := s.in(n.X, bindAdd, place{want: want}) + op
	if n.In != nil {
		return text + s.in(n.In, bindAdd, place{})
	}
	elems := make([]string, len(n.Elems))
	for i, e := range n.Elems {
		want := given(n.X)
		if i > 0 {
			want = n.X.Type() // from the first one, if need be
		}
		elems[i] = s.in(e, bindChoice, place{want: want})
	}
	return text + "[" + strings.Join(elems, ", ") + "]"
}

func (s *spelling) loop(n *Loop) string {
	text := n.Op + "(" + s.in(n.X, bindChoice, place{})
	body := n.Body
	if c, ok := body.(*Convert); ok && n.Op == "sum" && c.typ == typInt && isInteger(c.X.Type()) && !types.Identical(c.X.Type(), typInt) {
		body = c.X // as sums are of type int
	}
	if n.Op == "sum" && body == Node(n.Elem) {
		return text + ")"
	}
	text += ", "
	s.elems = append(s.elems, n.Elem)
	if Contains(body, func(inner Node) bool {
		l, ok := inner.(*Loop)
		return ok && Contains(l.Body, func(x Node) bool { return x == Node(n.Elem) })
	}) {
		name := s.fresh()
		s.outer[n.Elem] = name
		text += "let " + name + " = #; "
	}
	text += s.in(body, bindLet, place{}) + ")"
	s.elems = s.elems[:len(s.elems)-1]
	return text
}

// fresh returns a name for let that means nothing yet.
func (s *spelling) fresh() string {
	name := "elem"
	for i := 2; s.c.known(name) || s.lets[name]; i++ {
		name = "elem" + strconv.Itoa(i)
	}
	s.lets[name] = true
	return name
}

func (s *spelling) unary(n *Unary, at place) (string, int) {
	if n.Op != "!" {
		return "-" + s.in(n.X, bindPrimary, place{want: at.want}), bindUnary
	}
	if text, ok := s.infix(n.X, "not "); ok {
		return text, bindCompare
	}
	return "!" + s.in(n.X, bindPrimary, place{}), bindUnary
}

func (s *spelling) binary(n *Binary) (string, int) {
	binds, ok := bindingOf[n.Op]
	left := binds
	if !ok {
		binds, left = bindCompare, bindAdd
	}
	return s.in(n.X, left, place{want: given(n.Y)}) + " " + n.Op + " " + s.in(n.Y, binds+1, place{want: given(n.X)}), binds
}

// choice writes the alternatives of a Default, one operator behind the other, and
// tells whether the first operator is "??".
func (s *spelling) choice(alts []Alt, at place) (text string, absent bool) {
	if len(alts) == 1 {
		return s.in(alts[0].Node, bindChoice, at), false
	}
	first, rest := alts[0], alts[1:]
	if first.NotEmpty {
		right, _ := s.choice(rest, at)
		return s.in(first.Node, bindOr, at) + " ?: " + right, false
	}
	left := s.in(first.Node, bindPrimary, at) + " ?? "
	if len(rest) == 1 {
		return left + s.in(rest[0].Node, bindPrimary, at), true
	}
	right, absent := s.choice(rest, at)
	if !absent {
		right = "(" + right + ")"
	}
	return left + right, true
}
