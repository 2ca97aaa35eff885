package generator

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
)

// effects returns what n can change.
func (k *knower) effects(n ast.Node) effects {
	e := effects{names: map[string]bool{}}
	name := func(x ast.Expr) {
		if id, ok := x.(*ast.Ident); ok {
			e.names[id.Name] = true
		} else if x != nil {
			e.memory = true
		}
	}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, x := range n.Lhs {
				name(x)
			}
		case *ast.ValueSpec:
			for _, id := range n.Names {
				name(id)
			}
		case *ast.IncDecStmt:
			name(n.X)
		case *ast.RangeStmt:
			name(n.Key)
			name(n.Value)
		case *ast.CallExpr:
			if k.pure(n) {
				break
			}
			e.memory = true
			// A method can change the variable that it is called on.
			x := n.Fun
			for {
				switch n := x.(type) {
				case *ast.SelectorExpr:
					x = n.X
					continue
				case *ast.ParenExpr:
					x = n.X
					continue
				case *ast.IndexExpr:
					x = n.X
					continue
				case *ast.Ident:
					if !k.pointers[n.Name] {
						e.names[n.Name] = true
					}
				}
				break
			}
		}
		return true
	})
	return e
}

func (e effects) and(x effects) effects {
	maps.Copy(e.names, x.names)
	e.memory = e.memory || x.memory
	return e
}

// atom returns the text of a condition, the same for all that say the same or the
// opposite, and the value of the condition where the text holds.
func (k *knower) atom(e ast.Expr) (text string, is bool) {
	e = ast.Unparen(e)
	is = true
	switch n := e.(type) {
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			text, is = k.atom(n.X)
			return text, !is
		}
	case *ast.BinaryExpr:
		if n.Op == token.LAND || n.Op == token.LOR {
			parts := slices.Sorted(slices.Values(k.parts(n, n.Op)))
			text, is = "("+strings.Join(slices.Compact(parts), " && ")+")", n.Op == token.LAND
			break
		}
		x, y, op := types.ExprString(ast.Unparen(n.X)), types.ExprString(ast.Unparen(n.Y)), n.Op
		length := isLength(n.X)
		if isLength(n.Y) && !length {
			x, y, op, length = y, x, mirrored(op), true
		}
		if length { // an integer, and none is negative
			switch {
			case op == token.GTR && y == "0", op == token.GEQ && y == "1":
				y, op = "0", token.NEQ
			case op == token.LEQ && y == "0", op == token.LSS && y == "1":
				y, op = "0", token.EQL
			}
			switch op {
			case token.LEQ:
				op, is = token.GTR, false
			case token.LSS:
				op, is = token.GEQ, false
			}
			if op == token.GEQ && y == "0" {
				return "true", is
			}
		}
		switch op {
		case token.NEQ, token.EQL:
			is = op == token.EQL
			if y < x {
				x, y = y, x
			}
			op = token.EQL
		}
		text = x + " " + op.String() + " " + y
	}
	if text == "" {
		text = types.ExprString(e)
	}
	if _, ok := k.atoms[text]; !ok {
		k.atoms[text] = k.dependsOn(e)
	}
	return text, is
}

// parts lists what a condition joins by &&, or the opposites of what it joins by ||.
func (k *knower) parts(e ast.Expr, op token.Token) []string {
	e = ast.Unparen(e)
	if b, ok := e.(*ast.BinaryExpr); ok && b.Op == op {
		return append(k.parts(b.X, op), k.parts(b.Y, op)...)
	}
	text, is := k.atom(e)
	if is != (op == token.LAND) {
		text = "!" + text
	}
	return []string{text}
}

// isLength reports whether e is a call of len.
func isLength(e ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	id, ok := call.Fun.(*ast.Ident)
	return ok && id.Name == "len"
}

// mirrored is the operator for operands that change places.
func mirrored(op token.Token) token.Token {
	switch op {
	case token.LSS:
		return token.GTR
	case token.LEQ:
		return token.GEQ
	case token.GTR:
		return token.LSS
	case token.GEQ:
		return token.LEQ
	}
	return op
}

func (k *knower) dependsOn(e ast.Expr) effects {
	d := effects{names: map[string]bool{}}
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			d.memory = true
			ast.Inspect(n.X, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					d.names[id.Name] = true
				}
				return true
			})
			return false
		case *ast.Ident:
			if k.local[n.Name] > 0 {
				d.names[n.Name] = true
			} else if types.Universe.Lookup(n.Name) == nil || k.declared[n.Name] {
				d.memory = true
			}
		case *ast.IndexExpr, *ast.StarExpr, *ast.SliceExpr, *ast.CallExpr:
			d.memory = true
		}
		return true
	})
	return d
}
