package keyexpr

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/parser/lexer"
)

// refuseCall reports an operator that is called like a function, as startsWith(x, y), at
// token i; ok is false if that is something else.
func (c *checker) refuseCall(i int, operand bool) (last int, ok bool) {
	t := &c.text
	op, open := t.tokens[i], i+1
	if operand || !binaryWord(op.Value) || !c.next(i).Is(lexer.Bracket, "(") || t.pair[open] < open {
		return 0, false
	}
	last = t.pair[open]
	args, from := []string{}, open+1
	for j := from; j <= last; j++ {
		if j == last || t.within[j] == open && t.tokens[j].Is(lexer.Operator, ",") {
			args = append(args, c.argumentText(from, j))
			from = j + 1
		}
	}
	if len(args) != 2 || args[0] == "" || args[1] == "" {
		args = []string{"x", "y"}
	}
	write := args[0] + " " + op.Value + " " + args[1]
	if i > 0 && t.tokens[i-1].Is(lexer.Operator, "not", "!") {
		write = "(" + write + ")"
	}
	c.broken = true
	c.problem(span{op.From, t.tokens[last].To}, betweenOperands, op.Value, write)
	return last, true
}

// argumentText returns the text of the tokens from first up to end, in parentheses if an
// operator stands in it outside of all brackets.
func (c *checker) argumentText(first, end int) string {
	t := &c.text
	if first >= end {
		return ""
	}
	text := t.text(span{t.tokens[first].From, t.tokens[end-1].To})
	for i := first; i < end; i++ {
		if tok := t.tokens[i]; t.within[i] == t.within[first] && tok.Kind == lexer.Operator && !tok.Is(lexer.Operator, ".", "?.", "#") && !c.isMemberName(i) {
			return "(" + text + ")"
		}
	}
	return text
}

// literal reports an integer that expr's parser would refuse, or read otherwise than Go,
// at token i.
func (c *checker) literal(i int) {
	tok := c.text.tokens[i]
	digits := strings.ToLower(strings.ReplaceAll(tok.Value, "_", ""))
	base := 10
	if len(digits) > 1 && strings.Contains("xbo", digits[1:2]) {
		base = 0
	} else if strings.ContainsAny(digits, ".e") {
		return
	}
	if base == 10 && len(digits) > 1 && digits[0] == '0' {
		c.broken = true
		c.problem(span{tok.From, tok.To}, leadingZeros, tok.Value, cmp.Or(strings.TrimLeft(digits, "0"), "0"))
		return
	}
	if _, err := strconv.ParseInt(digits, base, 64); err != nil {
		if n, err := strconv.ParseUint(digits, base, 64); err == nil && n == 1<<63 && c.negated63(i) {
			return
		}
		c.broken = true
		c.problem(span{tok.From, tok.To}, longLiteral, tok.Value)
	}
}

// negated63 reads the number at token i, which is 1<<63, as one that expr's parser
// accepts; ok is false if no - before it makes the least int64 of it.
func (c *checker) negated63(i int) (ok bool) {
	t := &c.text
	if i == 0 || !t.tokens[i-1].Is(lexer.Operator, "-") {
		return false
	}
	if i > 1 {
		if before := t.tokens[i-2]; before.Kind != lexer.Operator && !before.Is(lexer.Bracket, "(", "[", "{") || before.Is(lexer.Operator, "#") {
			return false // it is subtracted
		}
	}
	tok := t.tokens[i]
	for at := tok.From; at < tok.To; at++ {
		t.runes[at] = '0'
	}
	c.large[tok.From] = true
	return true
}
