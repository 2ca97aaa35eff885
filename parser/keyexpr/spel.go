package keyexpr

import (
	"cmp"
	"go/types"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/parser/lexer"
)

// javaMethods are methods that values have in Java, with what to write instead: $x
// stands for the value, $y and $z for the arguments.
var javaMethods = []struct {
	name string
	of   string // text, list, map, or other: an integer or a boolean
	args int
	here string
}{
	{"isEmpty", "text", 0, `$x == ""`},
	{"isEmpty", "list map", 0, "len($x) == 0"},
	{"isBlank", "text", 0, `trim($x) == ""`},
	{"length", "text list", 0, "len($x)"},
	{"size", "text list map", 0, "len($x)"},
	{"toLowerCase", "text", 0, "lower($x)"},
	{"toUpperCase", "text", 0, "upper($x)"},
	{"trim", "text", 0, "trim($x)"},
	{"strip", "text", 0, "trim($x)"},
	{"equals", "text other", 1, "$x == $y"},
	{"equalsIgnoreCase", "text", 1, "lower($x) == lower($y)"},
	{"startsWith", "text", 1, "$x startsWith $y"},
	{"endsWith", "text", 1, "$x endsWith $y"},
	{"contains", "text", 1, "$x contains $y"},
	{"contains", "list", 1, "$y in $x"},
	{"containsKey", "map", 1, "$y in $x"},
	{"matches", "text", 1, "$x matches $y"},
	{"get", "list map", 1, "$x[$y]"},
	{"getOrDefault", "map", 2, "$x[$y] ?? $z"},
	{"split", "text", 1, "split($x, $y)"},
	{"replace", "text", 2, "replace($x, $y, $z)"},
	{"concat", "text", 1, "$x + $y"},
	{"charAt", "text", 1, "name($x), a function of the package"},
	{"indexOf", "text", 1, "name($x), a function of the package"},
	{"substring", "text", 1, "name($x), a function of the package"},
	{"substring", "text", 2, "name($x), a function of the package"},
	{"toString", "text", 0, "$x"},
	{"toString", "other", 0, "string($x)"},
	{"hashCode", "text other", 0, "name($x), a function of the package"},
}

// javaMethod returns what to write for a method of Java's, "" if values of type t
// have none of that name there.
func (c *checker) javaMethod(n *ast.MemberNode, t types.Type, name string, args []ast.Node) string {
	sort := "other"
	switch k := keyKindOf(t); {
	case k == Text:
		sort = "text"
	case k == Signed || k == Unsigned || k == Boolean:
	case listElem(t) != nil:
		sort = "list"
	default:
		if _, ok := t.Underlying().(*types.Map); !ok || isTypeParam(t) {
			return ""
		}
		sort = "map"
	}
	for _, m := range javaMethods {
		if m.name == name && m.args == len(args) && slices.Contains(strings.Fields(m.of), sort) {
			if name == "matches" {
				return c.operand(n.Node) + " matches " + c.wholePattern(args[0])
			}
			return c.filled(m.here, slices.Concat([]ast.Node{n.Node}, args))
		}
	}
	return ""
}

// wholePattern writes the regular expression n so that it matches the whole text, as
// Java's do.
func (c *checker) wholePattern(n ast.Node) string {
	text := c.operand(n)
	if _, ok := n.(*ast.StringNode); !ok {
		return text
	}
	before, inner, after := "", text[1:len(text)-1], ""
	if !strings.HasPrefix(inner, "^") {
		before = "^"
	}
	if !strings.HasSuffix(inner, "$") {
		after = "$"
	}
	if strings.Contains(inner, "|") {
		if before == "" || after == "" {
			return text
		}
		before, after = "^(?:", ")$"
	}
	return text[:1] + before + inner + after + text[len(text)-1:]
}

// filled returns what to write, in which $x, $y and $z stand for the arguments.
func (c *checker) filled(write string, args []ast.Node) string {
	words := []string{"$x", "x", "$y", "y", "$z", "z"}
	for i, a := range args {
		if 2*i < len(words) {
			words[2*i+1] = c.operand(a)
		}
	}
	return strings.NewReplacer(words...).Replace(write)
}

// operand quotes n, in parentheses if it is an operator.
func (c *checker) operand(n ast.Node) string {
	switch n.(type) {
	case *ast.BinaryNode, *ast.UnaryNode, *ast.ConditionalNode, *ast.VariableDeclaratorNode:
		return "(" + c.quote(n) + ")"
	}
	return c.quote(n)
}

// noMember reports a member that x has not. suffix is "()" for a method.
func (c *checker) noMember(n *ast.MemberNode, x Node, name, suffix string, args []ast.Node) {
	if here := c.javaMethod(n, x.Type(), name, args); here != "" {
		if name == "isEmpty" && keyKindOf(x.Type()) == Text && !mayBeEmptyText(x) && x.MayBeAbsent() {
			here = c.operand(n.Node) + " == nil"
		}
		c.problem(c.text.clamp(n.Property.Location()), javaName, name, here)
		return
	}
	at := c.text.clamp(n.Property.Location())
	p := c.problem(at, unknownMember, c.quote(n.Node)+" ("+c.typeName(x.Type())+")", name)
	c.unknown(p, name+suffix, c.members(x.Type()))
	if getter := getterOf(name, p.Valid); getter != "" {
		p.Suggestion = getter
	}
}

// getterOf returns the one of valid that a getter of Java's, such as getUserId, or the
// property that it stands for, is in Go: a field or a method.
func getterOf(name string, valid []string) string {
	names := []string{name}
	for _, prefix := range []string{"get", "is"} {
		if property, ok := strings.CutPrefix(name, prefix); ok && property != "" {
			names = append(names, property)
		}
	}
	names = append(names, "get"+name)
	for _, name := range names {
		for _, v := range valid {
			if strings.EqualFold(strings.TrimSuffix(v, "()"), name) {
				return v
			}
		}
	}
	return ""
}

// springNames are what Spring has in scope, with what to write.
var springNames = map[string]string{
	"request":        "request, without #",
	"authentication": "user or role",
	"principal":      "user",
	"args":           "#root.args[0] for the first parameter",
	"target":         "#root.target",
	"methodName":     "#root.methodName",
	"this":           "the name of a parameter, or # inside any(...), map(...) and their like",
}

// springCalls are what Spring Security has in scope, with what to write instead.
var springCalls = map[string]string{
	"hasRole":         "role == $x",
	"hasAuthority":    "role == $x",
	"hasAnyRole":      "role in [$all]",
	"hasAnyAuthority": "role in [$all]",
	"isAuthenticated": "user != nil",
	"isAnonymous":     "user == nil",
}

// springCall returns what to write for a call of Spring Security's, "" if it is none.
func (c *checker) springCall(name string, args []ast.Node) string {
	write := springCalls[name]
	if len(args) == 0 && strings.Contains(write, "$") {
		return ""
	}
	all := make([]string, len(args))
	for i, a := range args {
		all[i] = c.quote(a)
	}
	return c.filled(strings.ReplaceAll(write, "$all", strings.Join(all, ", ")), args)
}

// rootHints say what to write for members of SpEL's #root.
var rootHints = map[string]string{
	"method":      "write #root.methodName",
	"targetClass": "leave it out, as each method has counters of its own",
	"caches":      "leave it out",
}

// rewriteHabit handles an identifier that SpEL or Java would read as an operator; ok
// is false if it is none. operand tells whether an operand ends before it. last is
// the last token that belongs to it.
func (c *checker) rewriteHabit(i int, operand bool) (last int, ok bool) {
	t := &c.text
	tok, next := t.tokens[i], c.next(i)
	at := span{tok.From, tok.To}
	switch lower := strings.ToLower(tok.Value); {
	case tok.Value == "$" && next.Is(lexer.Bracket, "{") && next.From == tok.To:
		c.broken = true
		last = c.upTo(i + 1)
		c.problem(span{tok.From, t.tokens[last].To}, placeholder)
		return last, true
	case operand && tok.Value == "instanceof":
		c.broken = true
		c.problem(at, instanceOf)
		return i, true
	case operand && tok.Value == "between":
		c.broken = true
		last = i
		if next.Is(lexer.Bracket, "{") {
			last = c.upTo(i + 1)
		}
		c.problem(span{tok.From, t.tokens[last].To}, wordOperator, tok.Value, "x >= least and x <= greatest")
		return last, true
	case !operand && tok.Value == "new" && next.Kind == lexer.Identifier && !c.known("new"):
		c.broken = true
		c.problem(at, newObject)
		return i, true
	case lower == tok.Value || !isWord(lower) || lower == "let" || lower == "if" || lower == "else" || c.known(tok.Value):
		return 0, false
	case operand, lower == "not" && beginsOperand(next):
		c.problem(at, wordOperator, tok.Value, lower)
		copy(t.runes[tok.From:], []rune(lower))
		return i, true
	}
	return 0, false
}

func beginsOperand(tok lexer.Token) bool {
	return tok.Kind != lexer.EOF && (tok.Kind != lexer.Operator || strings.HasPrefix(tok.Value, "#") || isWord(tok.Value))
}

// upTo returns the index of the bracket that closes bracket i, or the last token.
func (c *checker) upTo(i int) int {
	if c.text.pair[i] > i {
		return c.text.pair[i]
	}
	return len(c.text.tokens) - 1
}

// refuseTemplate reports #{ ... }; token i is the #.
func (c *checker) refuseTemplate(i int) (last int) {
	t := &c.text
	c.broken = true
	last = c.upTo(i + 1)
	end := t.tokens[last].To
	if t.pair[i+1] == last {
		end = t.tokens[last].From
	}
	inner := t.text(span{t.tokens[i+1].To, end})
	c.problem(span{t.tokens[i].From, t.tokens[last].To}, template, cmp.Or(strings.TrimSpace(inner), "what stands between them"))
	return last
}

// refuseList reports a list in braces, which token i opens where an operand stands.
func (c *checker) refuseList(i int) {
	t := &c.text
	last := t.pair[i]
	if last <= i+1 || i > 0 && t.tokens[i-1].Is(lexer.Operator, "else") || c.isClosure(i) || t.tokens[i+2].Is(lexer.Operator, ":") {
		return
	}
	c.broken = true
	list := "[" + t.text(span{t.tokens[i].To, t.tokens[last].From}) + "]"
	if last+3 < len(t.tokens) && t.tokens[last+2].Value == "contains" && t.pair[last+3] > last+3 {
		open, end := last+3, t.pair[last+3]
		list = strings.TrimSpace(t.text(span{t.tokens[open].To, t.tokens[end].From})) + " in " + list
		last = end
	}
	c.problem(span{t.tokens[i].From, t.tokens[last].To}, braces, list)
}

// isClosure reports whether bracket i is in the arguments of any, map and their like.
func (c *checker) isClosure(i int) bool {
	t := &c.text
	if i == 0 || !t.tokens[i-1].Is(lexer.Operator, ",") {
		return false
	}
	j := t.within[i]
	if j < 1 {
		return false
	}
	b, ok := builtin.Index[t.tokens[j-1].Value]
	return ok && builtin.Builtins[b].Predicate
}

// typeCall reports T(...).f(...) and Math.f(...); ok is false if n is something else.
func (c *checker) typeCall(n *ast.CallNode, callee *ast.MemberNode) (ok bool) {
	base := callee.Node
	id, isName := base.(*ast.IdentifierNode)
	want := "Math"
	if isName && c.text.name(id) == "String" {
		want = "String"
	}
	if call, isCall := base.(*ast.CallNode); isCall {
		id, isName = call.Callee.(*ast.IdentifierNode)
		want = "T"
	}
	if !isName || c.text.name(id) != want || c.known(want) {
		return false
	}
	name, args := memberName(callee), make([]string, len(n.Arguments))
	for i, a := range n.Arguments {
		args[i] = c.quote(a)
	}
	if class := strings.TrimSuffix(c.quote(base), ")"); name == "valueOf" && strings.HasSuffix(class, "String") && len(args) == 1 {
		name = "string"
	}
	if !slices.Contains(builtins, name) && c.function(name) == nil {
		c.at(base, typeRef, c.quote(base))
		return true
	}
	c.at(n, typeCall, c.quote(base), name+"("+strings.Join(args, ", ")+")")
	return true
}
