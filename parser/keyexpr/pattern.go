package keyexpr

import (
	"errors"
	"go/constant"
	"regexp/syntax"
	"slices"
	"strconv"

	"github.com/expr-lang/expr/ast"
)

// matches checks text matches 'pattern'.
func (c *checker) matches(n *ast.BinaryNode) Node {
	x := c.isText(n.Left, c.compared(n.Left))
	p := c.textual(n.Right)
	if p == nil {
		return nil
	}
	v := ConstValue(p)
	if v == nil {
		c.at(n.Right, dynamicPattern)
		return nil
	}
	pattern := constant.StringVal(v)
	if !c.pattern(n.Right, pattern) || x == nil {
		return nil
	}
	return &Match{X: c.settle(n.Left, x), Pattern: pattern}
}

// pattern checks a regular expression.
func (c *checker) pattern(n ast.Node, pattern string) bool {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		var e *syntax.Error
		if errors.As(err, &e) {
			c.at(n, badPattern, e.Code.String(), strconv.Quote(e.Expr))
		} else {
			c.at(n, badPattern, err.Error(), strconv.Quote(pattern))
		}
		return false
	}
	if !anchored(re, 0) || !anchored(re, -1) {
		c.at(n, unanchored).Warning = true
	}
	return true
}

// anchored reports whether every match of re begins (end is 0) or ends (end is -1)
// where the text does, or at what may be anything, which is written out then.
func anchored(re *syntax.Regexp, end int) bool {
	switch re.Op {
	case syntax.OpBeginText:
		return end == 0
	case syntax.OpEndText:
		return end == -1
	case syntax.OpStar, syntax.OpPlus:
		return re.Sub[0].Op == syntax.OpAnyChar || re.Sub[0].Op == syntax.OpAnyCharNotNL
	case syntax.OpCapture:
		return anchored(re.Sub[0], end)
	case syntax.OpConcat:
		if len(re.Sub) == 0 {
			return false
		}
		return anchored(re.Sub[(end+len(re.Sub))%len(re.Sub)], end)
	case syntax.OpAlternate:
		return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !anchored(sub, end) })
	}
	return false
}
