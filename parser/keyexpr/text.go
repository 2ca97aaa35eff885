package keyexpr

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/parser/lexer"
)

// text is an expression on its way to expr's parser. The parser is given the
// expression with some tokens replaced by others of the same length, so that
// places stay what they are; names are always read from the original. Places are
// counted in characters, as expr does, until they are reported.
type text struct {
	src    string
	runes  []rune
	bytes  []int // byte offset of each character, and the length of src
	tokens []lexer.Token
	pair   []int       // for a bracket, the index of the other one, else -1
	within []int       // the index of the bracket that a token stands in, or -1
	at     map[int]int // place of a token -> its index
}

// span is a range of characters.
type span struct{ from, to int }

// at returns the original text of a span.
func (t *text) text(s span) string { return t.src[t.bytes[s.from]:t.bytes[s.to]] }

// clamp turns a location of expr's into a span inside the text.
func (t *text) clamp(l file.Location) span {
	to := min(max(l.To, 0), len(t.runes))
	return span{min(max(l.From, 0), to), to}
}

// read splits src into tokens, reports what expr's parser would not explain, and
// replaces what it would stumble over. It returns the elements between the commas
// outside of all brackets, or false if there is nothing to parse.
func (c *checker) read() ([]span, bool) {
	t := &c.text
	t.src = c.src
	if len(c.src) > maxText {
		c.bytesProblem(0, len(c.src), tooLong, len(c.src), maxText)
		return nil, false
	}
	for i, r := range c.src {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(c.src[i:]); n == 1 {
				c.bytesProblem(i, i+1, invalidText)
				return nil, false
			}
		}
		t.runes = append(t.runes, r)
		t.bytes = append(t.bytes, i)
	}
	t.bytes = append(t.bytes, len(c.src))
	if !c.lex() || !c.brackets() {
		return nil, false
	}
	c.rewrite()
	if c.full() {
		return nil, false
	}
	elems := c.split()
	if len(elems) > maxNodes {
		c.problem(span{0, len(t.runes)}, tooLarge, maxNodes)
		return nil, false
	}
	return elems, !c.broken
}

// lex fills tokens. A '@' becomes a '_', so that what follows is checked too. That means
// to begin again, but not for more of them than are reported.
func (c *checker) lex() bool {
	t := &c.text
	for {
		tokens, err := lexer.Lex(file.NewSource(string(t.runes)))
		if err == nil {
			t.tokens = tokens[:len(tokens)-1] // without the end
			return true
		}
		var e *file.Error
		if !errors.As(err, &e) {
			e = &file.Error{Message: err.Error()}
		}
		at := t.clamp(e.Location)
		c.broken = true
		if at.from < at.to && t.runes[at.from] == '@' {
			c.problem(at, beanRef)
			t.runes[at.from] = '_'
			if c.full() {
				return false
			}
			continue
		}
		c.problem(at, syntaxError, e.Message)
		return false
	}
}

// brackets pairs the brackets and bounds their depth.
func (c *checker) brackets() bool {
	t := &c.text
	t.at = make(map[int]int, len(t.tokens))
	t.pair = make([]int, len(t.tokens))
	t.within = make([]int, len(t.tokens))
	var open []int
	for i, tok := range t.tokens {
		t.at[tok.From] = i
		t.pair[i], t.within[i] = -1, -1
		if len(open) > 0 {
			t.within[i] = open[len(open)-1]
		}
		if tok.Kind != lexer.Bracket {
			continue
		}
		if strings.Contains("([{", tok.Value) {
			if open = append(open, i); len(open) > maxDepth {
				c.problem(span{tok.From, tok.To}, tooDeep, maxDepth)
				return false
			}
		} else if len(open) > 0 {
			t.pair[i] = open[len(open)-1]
			t.pair[t.pair[i]] = i
			open = open[:len(open)-1]
		}
	}
	return true
}

// split returns the elements between the commas outside of all brackets.
func (c *checker) split() []span {
	var elems []span
	depth, first := 0, 0
	add := func(last int, end span) {
		if first == last {
			c.broken = true
			c.problem(end, emptyExpression)
			return
		}
		elems = append(elems, span{c.text.tokens[first].From, c.text.tokens[last-1].To})
	}
	for i, tok := range c.text.tokens {
		if c.full() {
			return elems
		}
		switch {
		case tok.Is(lexer.Bracket, "(", "[", "{"):
			depth++
		case tok.Is(lexer.Bracket):
			depth--
		case depth == 0 && tok.Is(lexer.Operator, ","):
			add(i, span{tok.From, tok.To})
			first = i + 1
		}
	}
	n := len(c.text.tokens)
	end := span{0, len(c.text.runes)}
	if n > 0 {
		end = span{c.text.tokens[n-1].From, c.text.tokens[n-1].To}
	}
	add(n, end)
	return elems
}

// wordOperators are SpEL's, with what they are in expr, of the same length.
var wordOperators = map[string]string{
	"eq": "==", "ne": "!=", "lt": "< ", "le": "<=", "gt": "> ", "ge": ">=", "div": "/  ", "mod": "%  ",
	"EQ": "==", "NE": "!=", "LT": "< ", "LE": "<=", "GT": "> ", "GE": ">=", "DIV": "/  ", "MOD": "%  ",
}

// rewrite replaces tokens that expr's parser would stumble over.
func (c *checker) rewrite() {
	t := &c.text
	operand := false // whether the token before ends an operand
	for i := 0; i < len(t.tokens) && !c.full(); i++ {
		tok := t.tokens[i]
		at := span{tok.From, tok.To}
		switch {
		case tok.Kind == lexer.Number:
			c.literal(i)
			operand = true
		case tok.Kind == lexer.Bytes:
			operand = true
		case tok.Kind == lexer.String:
			if i > 0 && t.tokens[i-1].Kind == lexer.String && t.tokens[i-1].To == tok.From {
				c.broken = true
				prev := t.tokens[i-1]
				c.problem(span{prev.From, tok.To}, doubledQuote, strconv.Quote(prev.Value+"'"+tok.Value))
			}
			operand = true
		case tok.Kind == lexer.Bracket:
			if tok.Value == "{" && !operand {
				c.refuseList(i)
			}
			operand = strings.Contains(")]}", tok.Value)
		case c.isMemberName(i):
			operand = true
		case tok.Kind == lexer.Identifier:
			if last, ok := c.rewriteHabit(i, operand); ok {
				operand = last > i || operand && strings.EqualFold(tok.Value, "not")
				i = last
				continue
			}
			c.rewriteName(i, operand)
			_, operator := wordOperators[tok.Value]
			operand = !operand || !operator
		case strings.HasPrefix(tok.Value, "#"):
			if n := c.next(i); n.Is(lexer.Bracket, "{") && n.From == tok.To {
				i = c.refuseTemplate(i)
				operand = true
				continue
			}
			if tok.Value != "#" || c.next(i).Kind != lexer.Identifier || c.next(i).From != tok.To {
				if !c.closures {
					c.broken = true
					c.problem(at, loneHash)
				}
				operand = true
				continue
			}
			if c.closures && c.next(i).Value == "this" && c.local("this") == nil {
				c.spaces(c.next(i)) // SpEL's name for the element
				i++
				operand = true
				continue
			}
			t.runes[tok.From] = '_'
			i++ // the name
			operand = true
		case isWord(tok.Value):
			if c.isName(i, operand) {
				c.blank(at)
				operand = true
				continue
			}
			if last, ok := c.refuseCall(i, operand); ok {
				i, operand = last, true
				continue
			}
			if operand && tok.Value == "not" {
				i++ // "not in" and its like
			}
			if tok.Value == "if" && !operand {
				c.problem(at, notSupported, "if", "write condition ? a : b")
			}
			operand = false
		default:
			c.refuseOperator(i)
			operand = false
		}
	}
}

// rewriteName handles an identifier that is no member's name.
func (c *checker) rewriteName(i int, operand bool) {
	tok := c.text.tokens[i]
	at := span{tok.From, tok.To}
	if operand {
		if op, ok := wordOperators[tok.Value]; ok {
			c.problem(at, wordOperator, tok.Value, strings.TrimSpace(op))
			copy(c.text.runes[tok.From:], []rune(op))
		}
		return
	}
	// A function of the package hides the built-in one of its name.
	if b, ok := builtin.Index[tok.Value]; ok && c.next(i).Is(lexer.Bracket, "(") {
		if c.function(tok.Value) != nil {
			c.blank(at)
		} else if builtin.Builtins[b].Predicate {
			c.closures = true
		}
	}
}

// spaces replaces a token by nothing.
func (c *checker) spaces(tok lexer.Token) {
	for i := tok.From; i < tok.To; i++ {
		c.text.runes[i] = ' '
	}
}

// blank replaces a name by one that means nothing to expr.
func (c *checker) blank(s span) {
	for i := s.from; i < s.to; i++ {
		c.text.runes[i] = '_'
	}
}

func (c *checker) next(i int) lexer.Token {
	if i+1 < len(c.text.tokens) {
		return c.text.tokens[i+1]
	}
	return lexer.Token{Kind: lexer.EOF}
}

// isMemberName reports whether token i names a member, which may be any word.
func (c *checker) isMemberName(i int) bool {
	tok := c.text.tokens[i]
	return i > 0 && c.text.tokens[i-1].Is(lexer.Operator, ".", "?.") && (tok.Kind == lexer.Identifier || isWord(tok.Value))
}

// isWord reports whether an operator of expr's could be a name.
func isWord(op string) bool {
	switch op {
	case "in", "not", "and", "or", "let", "if", "else", "matches", "contains", "startsWith", "endsWith":
		return true
	}
	return false
}

// binaryWord reports whether op is a word that stands between two operands alone.
func binaryWord(op string) bool {
	return isWord(op) && op != "not" && op != "let" && op != "if" && op != "else"
}

// isName reports whether word i, an operator for expr, is the name of something
// here: where an operand must stand, and for "not", "let" and "if", which may begin
// an operand, if none follows.
func (c *checker) isName(i int, operand bool) bool {
	word := c.text.tokens[i].Value
	if operand || !c.known(word) {
		return false
	}
	if word != "not" && word != "let" && word != "if" {
		return true
	}
	switch next := c.next(i); next.Kind {
	case lexer.Operator:
		if binaryWord(next.Value) {
			return !c.known(next.Value) // which is no operand, then
		}
		return next.Value != "!" && next.Value != "-" && next.Value != "+" && next.Value != "#" && !isWord(next.Value)
	case lexer.Bracket:
		return strings.Contains(")]}", next.Value)
	case lexer.EOF:
		return true
	}
	return false
}

func (c *checker) refuseOperator(i int) {
	tok := c.text.tokens[i]
	at := span{tok.From, tok.To}
	switch tok.Value {
	case "|":
		c.broken = true
		c.problem(at, notSupported, "|", "write the call around its argument: lower(x)")
	case "::":
		c.problem(at, notSupported, "::", "leave it out")
	case "=":
		if i < 2 || !c.text.tokens[i-2].Is(lexer.Operator, "let") {
			c.broken = true
			if c.misspeltLet(i) {
				c.problem(at, letForm)
			} else {
				c.problem(at, assignment)
			}
		}
	case ">":
		if i > 0 && c.text.tokens[i-1].Is(lexer.Operator, "<") && c.text.tokens[i-1].To == tok.From {
			c.broken = true
			c.problem(span{tok.From - 1, tok.To}, wordOperator, "<>", "!=")
		}
	case ".":
		// SpEL's .?[ ], .![ ], .^[ ] and .$[ ].
		if n := c.next(i); i+2 < len(c.text.tokens) && c.text.tokens[i+2].Is(lexer.Bracket, "[") && slices.Contains([]string{"?", "!", "^", "$"}, n.Value) {
			c.broken = true
			write := "filter(list, condition)"
			switch n.Value {
			case "!":
				write = "map(list, expression)"
			case "^":
				write = "filter(list, condition)[0]"
			case "$":
				write = "a function of the package"
			}
			c.problem(span{tok.From, c.text.tokens[i+2].To}, selection, "."+n.Value+"[...]", write)
		}
	}
}

// misspeltLet reports whether the = at token i is that of a let that is not written as
// one: let a := b, let #a = b, let = b, or the second of let a = b, c = d.
func (c *checker) misspeltLet(i int) bool {
	t := c.text.tokens
	for j := i - 1; j >= 0 && !t[j].Is(lexer.Operator, ";"); j-- {
		if t[j].Is(lexer.Operator, "let") {
			return j == i-1 || t[i-1].Is(lexer.Operator, ":") || t[i-2].Is(lexer.Operator, "#", ",")
		}
	}
	return false
}

// parse parses one element.
func (c *checker) parse(s span) ast.Node {
	t := &c.text
	masked := make([]rune, s.to)
	for i := range s.from {
		masked[i] = ' '
	}
	copy(masked[s.from:], t.runes[s.from:s.to])
	tree, err := parser.Parse(string(masked))
	if err == nil {
		return tree.Node
	}
	var e *file.Error
	if !errors.As(err, &e) {
		e = &file.Error{Message: err.Error(), Location: file.Location{From: s.from, To: s.to}}
	}
	at := t.clamp(e.Location)
	i, ok := t.at[at.from]
	switch {
	case strings.Contains(e.Message, "unexpected token EOF") || strings.HasPrefix(e.Message, "unexpected end"):
		c.problem(at, syntaxError, "the expression is not complete")
	case strings.HasPrefix(e.Message, "unexpected token") && ok && c.roundTuple(i):
	case strings.HasPrefix(e.Message, "unexpected token") && ok:
		c.problem(at, syntaxError, "unexpected "+strconv.Quote(t.text(span{t.tokens[i].From, t.tokens[i].To})))
	case strings.HasPrefix(e.Message, "Operator ("):
		c.problem(at, mixedDefault, c.mixedWith(s))
	default:
		c.problem(at, syntaxError, e.Message)
	}
	return nil
}

// roundTuple reports a list in parentheses, which has the comma at token i; ok is false
// if that is another.
func (c *checker) roundTuple(i int) (ok bool) {
	t := &c.text
	open := t.within[i]
	if !t.tokens[i].Is(lexer.Operator, ",") || open < 0 || !t.tokens[open].Is(lexer.Bracket, "(") || t.pair[open] < open {
		return false
	}
	if open > 0 {
		if prev := t.tokens[open-1]; prev.Kind == lexer.Identifier || prev.Is(lexer.Bracket, ")", "]") {
			return false // a call
		}
	}
	end := t.tokens[t.pair[open]]
	c.problem(span{t.tokens[open].From, end.To}, roundList, "["+t.text(span{t.tokens[open].To, end.From})+"]")
	return true
}

// mixedWith says how ?? stands beside the other operator in s.
func (c *checker) mixedWith(s span) string {
	if text := c.text.text(s); strings.Contains(text, "ip/") {
		return "(x ?? y) + z, or x ?? (ip/24/56)"
	}
	return "(x ?? y) + z, or x ?? (y + z)"
}
