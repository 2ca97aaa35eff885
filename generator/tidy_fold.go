package generator

import (
	"go/ast"
	"go/token"
)

// expr replaces what is known in e, and returns the value of a condition.
func (k *knower) expr(e ast.Expr, s *facts) value { return k.operand(e, s, precOr) }

// operand is expr where what stands there must bind at least as tight as prec.
func (k *knower) operand(e ast.Expr, s *facts, prec int) value {
	switch n := e.(type) {
	case *ast.Ident, *ast.ParenExpr, *ast.BinaryExpr:
		return k.condition(e, s, prec)
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			return k.condition(e, s, prec)
		}
		k.operand(n.X, s, precUnary)
	case *ast.SelectorExpr:
		k.operand(n.X, s, precPrimary)
	case *ast.StarExpr:
		k.operand(n.X, s, precUnary)
	case *ast.SliceExpr:
		k.operand(n.X, s, precPrimary)
	case *ast.IndexExpr:
		k.operand(n.X, s, precPrimary)
		k.expr(n.Index, s)
	case *ast.CallExpr:
		// When operands are evaluated that are no calls, Go leaves open.
		k.forget(s, k.effects(n))
		if _, ok := n.Fun.(*ast.Ident); !ok {
			k.expr(n.Fun, s)
		}
		for _, arg := range n.Args {
			k.expr(arg, s)
		}
	}
	return unknown
}

func (k *knower) condition(e ast.Expr, s *facts, prec int) value {
	c := k.fold(e, s)
	if c.changed {
		k.replace(e.Pos(), e.End(), c.in(prec))
	}
	return c.is
}

// folded is a condition without what is known of it.
type folded struct {
	text    string
	prec    int
	is      value
	changed bool
}

func (c folded) in(prec int) string { return val{text: c.text, prec: c.prec}.in(prec) }

func decided(v value) folded {
	return folded{text: v.String(), prec: precPrimary, is: v, changed: true}
}

func (k *knower) fold(e ast.Expr, s *facts) folded {
	c := folded{text: k.text(e), prec: precPrimary}
	switch n := e.(type) {
	case *ast.ParenExpr:
		if x := k.fold(n.X, s); x.changed {
			return x
		} else {
			c.is = x.is
		}
		return c
	case *ast.UnaryExpr:
		if n.Op != token.NOT {
			break
		}
		c.prec = precUnary
		if again, ok := ast.Unparen(n.X).(*ast.UnaryExpr); ok && again.Op == token.NOT {
			x := k.fold(ast.Unparen(again.X), s)
			x.changed = true
			return x
		}
		x := k.fold(n.X, s)
		switch {
		case x.is != unknown:
			return decided(x.is.not())
		case x.changed:
			c.text, c.changed = "!"+x.in(precUnary), true
		}
		return c
	case *ast.BinaryExpr:
		c.prec = n.Op.Precedence()
		if n.Op == token.LAND || n.Op == token.LOR {
			return k.foldLogical(n, c, s)
		}
		for _, side := range [][2]ast.Expr{{n.X, n.Y}, {n.Y, n.X}} {
			v := literalBool(side[0])
			id, ok := side[1].(*ast.Ident)
			if v == unknown || !ok || n.Op != token.EQL && n.Op != token.NEQ {
				continue
			}
			if other := literalBool(id); other != unknown {
				return decided(valueOf((v == other) == (n.Op == token.EQL)))
			}
			if !k.booleans[id.Name] {
				continue // its type may be another than that of the comparison
			}
			if (v == isTrue) == (n.Op == token.EQL) {
				return folded{text: id.Name, prec: precPrimary, changed: true}
			}
			return folded{text: "!" + id.Name, prec: precUnary, changed: true}
		}
	}
	if v := literalBool(e); v != unknown {
		c.is = v
		return c
	}
	k.forget(s, k.effects(e))
	if v := k.value(e, *s); v != unknown {
		return decided(v)
	}
	switch n := e.(type) {
	case *ast.BinaryExpr:
		k.operand(n.X, s, precUnary)
		k.operand(n.Y, s, precUnary)
	case *ast.Ident:
	default:
		k.expr(e, s)
	}
	return c
}

func (k *knower) foldLogical(n *ast.BinaryExpr, c folded, s *facts) folded {
	if v := k.value(n, *s); v != unknown {
		return decided(v)
	}
	before := s.clone()
	x := k.fold(n.X, s)
	after := before
	k.assert(n.X, n.Op == token.LAND, &after)
	y := k.fold(n.Y, &after)
	k.forget(s, k.effects(n.Y))
	decides := valueOf(n.Op == token.LOR)
	part := func(p folded) folded {
		p.changed = true
		return p
	}
	switch {
	case x.is == decides:
		return decided(decides)
	case x.is != unknown:
		return part(y)
	case y.is == decides && !k.calls(n.X):
		return decided(decides)
	case y.is == decides.not():
		return part(x)
	case x.changed || y.changed:
		c.text, c.changed = x.in(c.prec)+" "+n.Op.String()+" "+y.in(c.prec), true
	}
	return c
}

// splice puts what of n is reached in its place.
func (k *knower) splice(n *ast.IfStmt, v value) bool {
	outer := k.elseIf[n]
	var rest ast.Stmt = n.Body
	if v == isFalse {
		rest = n.Else
	}
	switch block, _ := rest.(*ast.BlockStmt); {
	case outer != nil && (rest == nil || block != nil && len(block.List) == 0):
		k.cut(outer.Body.End(), n.End())
	case outer != nil || rest != nil && block == nil:
		k.replace(n.Pos(), n.End(), k.text(rest))
	case rest == nil || len(block.List) == 0:
		k.cutLines(n)
	case k.hides(block):
		return false
	default:
		k.replace(n.Pos(), n.End(), k.inner(block))
	}
	return true
}
