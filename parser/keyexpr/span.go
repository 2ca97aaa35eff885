package keyexpr

import (
	"cmp"
	"slices"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser/lexer"
)

// bracketed reports whether parentheses stand around the let n.
func (t *text) bracketed(n *ast.VariableDeclaratorNode) bool {
	let := t.at[t.bare(n).from]
	return let > 0 && t.tokens[let-1].Is(lexer.Bracket, "(")
}

// closing returns the end of the bracket that opens at token i.
func (t *text) closing(i int) int {
	if i < len(t.tokens) && t.pair[i] > i {
		return t.tokens[t.pair[i]].To
	}
	return len(t.runes)
}

// span returns the place of a node without brackets around it.
func (t *text) span(n ast.Node) span { return t.balance(t.bare(n)) }

// balance widens s until it holds both brackets of every pair it holds one of.
func (t *text) balance(s span) span {
	first, _ := slices.BinarySearchFunc(t.tokens, s.from, func(tok lexer.Token, from int) int { return cmp.Compare(tok.From, from) })
	for i := first; i < len(t.tokens) && t.tokens[i].To <= s.to; i++ {
		if t.pair[i] < 0 {
			continue
		}
		other := t.tokens[t.pair[i]]
		s.from, s.to = min(s.from, other.From), max(s.to, other.To)
	}
	return s
}

// bare is span without brackets at the ends: where a begins or b ends in "(a) + (b)".
func (t *text) bare(n ast.Node) span {
	at := t.clamp(n.Location())
	switch n := n.(type) {
	case *ast.UnaryNode:
		x := t.bare(n.Node)
		return span{min(at.from, x.from), x.to}
	case *ast.BinaryNode:
		return span{t.bare(n.Left).from, t.bare(n.Right).to}
	case *ast.ChainNode:
		return t.bare(n.Node)
	case *ast.MemberNode:
		if t.indexed(n) {
			at.to = t.closing(t.at[at.from])
		}
		return span{t.bare(n.Node).from, at.to}
	case *ast.SliceNode:
		return span{t.bare(n.Node).from, t.closing(t.at[at.from])}
	case *ast.CallNode:
		return span{t.bare(n.Callee).from, t.closing(t.at[at.from] + 1)}
	case *ast.BuiltinNode:
		return span{at.from, t.closing(t.at[at.from] + 1)}
	case *ast.ArrayNode, *ast.MapNode:
		return span{at.from, t.closing(t.at[at.from])}
	case *ast.ConditionalNode:
		return span{t.bare(n.Cond).from, t.bare(n.Exp2).to}
	case *ast.VariableDeclaratorNode:
		return span{t.tokens[max(t.at[at.from]-1, 0)].From, t.bare(n.Expr).to}
	case *ast.PredicateNode:
		return t.bare(n.Node)
	case *ast.SequenceNode:
		return span{t.bare(n.Nodes[0]).from, t.bare(n.Nodes[len(n.Nodes)-1]).to}
	}
	return at
}

// indexed reports whether n is x[i] and not x.name.
func (t *text) indexed(n *ast.MemberNode) bool {
	return t.runes[min(n.Location().From, len(t.runes)-1)] == '['
}

// name returns the original text of an identifier, with the # before it.
func (t *text) name(n ast.Node) string { return t.text(t.clamp(n.Location())) }
