package generator

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// shape gives statements the form that one would write.
func (f *function) shape() {
	f.shapeList(f.body.List)
	ast.Inspect(f.body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			f.empty(n)
			f.shapeList(n.Body.List)
			if e, ok := n.Else.(*ast.BlockStmt); ok {
				f.shapeList(e.List)
			}
		case *ast.RangeStmt:
			if f.idle(n.Body.List) && !f.calls(n.X) {
				f.cutLines(n)
			}
			f.shapeList(n.Body.List)
		}
		return true
	})
}

// idle reports whether statements do nothing but end a loop.
func (f *function) idle(list []ast.Stmt) bool {
	return !slices.ContainsFunc(list, func(s ast.Stmt) bool {
		switch s := s.(type) {
		case *ast.BranchStmt:
			return false
		case *ast.IfStmt:
			return s.Init != nil || s.Else != nil || f.calls(s.Cond) || !f.idle(s.Body.List)
		case *ast.RangeStmt:
			return f.calls(s.X) || !f.idle(s.Body.List)
		}
		return true
	})
}

// empty takes out branches without statements.
func (f *function) empty(n *ast.IfStmt) {
	if e, ok := n.Else.(*ast.BlockStmt); ok && len(e.List) == 0 {
		f.cut(n.Body.End(), e.End())
		return
	}
	if len(n.Body.List) > 0 {
		return
	}
	if n.Else != nil {
		not, _ := f.negated(n.Cond)
		text := f.text(n.Else)
		if _, ok := n.Else.(*ast.IfStmt); ok {
			text = "{\n" + text + "\n}"
		}
		f.replace(n.Cond.Pos(), n.End(), not+" "+text)
		return
	}
	outer := f.elseIf[n]
	init, _ := n.Init.(*ast.AssignStmt)
	switch {
	case n.Init != nil && (init == nil || slices.ContainsFunc(init.Rhs, func(x ast.Expr) bool { return f.calls(x) })):
	case outer != nil && !f.calls(n.Cond):
		f.cut(outer.Body.End(), n.End())
	case outer != nil && n.Init == nil:
		f.replace(n.Pos(), n.End(), "{\n_ = "+f.text(n.Cond)+"\n}")
	case outer != nil:
	case !f.calls(n.Cond):
		f.cutLines(n)
	case n.Init == nil:
		f.replace(n.Pos(), n.End(), "_ = "+f.text(n.Cond))
	}
}

// negated is the opposite of a condition. It is plain if no operator stands before
// parentheses.
func (f *function) negated(e ast.Expr) (text string, plain bool) {
	v, plain := f.opposite(e)
	return v.text, plain
}

func (f *function) opposite(e ast.Expr) (v val, plain bool) {
	e = ast.Unparen(e)
	switch n := e.(type) {
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			x := ast.Unparen(n.X)
			v := val{text: f.text(x), prec: precPrimary}
			if b, ok := x.(*ast.BinaryExpr); ok {
				v.prec = b.Op.Precedence()
			}
			return v, true
		}
	case *ast.BinaryExpr:
		switch n.Op {
		case token.LAND, token.LOR:
			x, xok := f.opposite(n.X)
			y, yok := f.opposite(n.Y)
			op := map[token.Token]string{token.LAND: "||", token.LOR: "&&"}[n.Op]
			prec := precedence[op]
			if xok && yok {
				return val{text: x.in(prec) + " " + op + " " + y.in(prec), prec: prec}, true
			}
		case token.EQL, token.NEQ:
			op := map[token.Token]string{token.EQL: " != ", token.NEQ: " == "}[n.Op]
			return val{text: f.text(n.X) + op + f.text(n.Y), prec: precCompare}, true
		case token.GTR, token.LEQ:
			// Other numbers may be none.
			if isLength(n.X) {
				op := map[token.Token]string{token.GTR: " <= ", token.LEQ: " > "}[n.Op]
				if f.text(n.Y) == "0" && n.Op == token.GTR {
					op = " == "
				}
				return val{text: f.text(n.X) + op + f.text(n.Y), prec: precCompare}, true
			}
		}
		return val{text: "!(" + f.text(e) + ")", prec: precUnary}, false
	}
	return val{text: "!" + f.text(e), prec: precUnary}, true
}

func (f *function) shapeList(list []ast.Stmt) {
	for i := range list[:max(len(list)-1, 0)] {
		if f.pair(list[i], list[i+1]) {
			return
		}
	}
}

// pair gives two statements that follow each other another form. It reports whether it
// does.
func (f *function) pair(a, b ast.Stmt) bool {
	ret, _ := b.(*ast.ReturnStmt)
	var result ast.Expr
	if ret != nil && len(ret.Results) == 1 {
		result = ret.Results[0]
	}
	switch a := a.(type) {
	case *ast.AssignStmt:
		x := single(a)
		if x == "" {
			return false
		}
		if id, ok := result.(*ast.Ident); ok && id.Name == x {
			f.replace(a.Pos(), b.End(), "return "+f.text(a.Rhs[0]))
			return true
		}
		// The variable of a condition that is asked for once.
		n, ok := b.(*ast.IfStmt)
		if ok && n.Init == nil && a.Tok == token.DEFINE && strings.TrimRight(x, "0123456789") == "holds" && f.mentions(f.body, x) == 2 {
			switch c := n.Cond.(type) {
			case *ast.Ident:
				if c.Name == x {
					f.replace(a.Pos(), c.End(), "if "+f.text(a.Rhs[0]))
					return true
				}
			case *ast.UnaryExpr:
				if id, ok := c.X.(*ast.Ident); ok && id.Name == x {
					not, _ := f.negated(a.Rhs[0])
					f.replace(a.Pos(), c.End(), "if "+not)
					return true
				}
			}
		}
	case *ast.IfStmt:
		if n, ok := b.(*ast.IfStmt); ok {
			return f.joins(a, n)
		}
		switch id, ok := result.(*ast.Ident); {
		case !ok:
		case literalBool(id) != unknown:
			return f.decides(a, ret, literalBool(id))
		case f.local[id.Name] == 1 && f.assigns(a, id.Name):
			// The branches return what they set.
			done := ends(a.Body.List)
			e, hasBlock := a.Else.(*ast.BlockStmt)
			if done && a.Else == nil || hasBlock && (f.hides(e) || done && ends(e.List)) {
				return false
			}
			text := f.text(a)[:a.Body.Lbrace-a.Pos()] + "{\n" + f.inner(a.Body)
			if !done {
				text += "\nreturn " + id.Name
			}
			text += "\n}"
			if hasBlock {
				text += "\n" + f.inner(e)
			} else if a.Else != nil {
				text += "\n" + f.text(a.Else)
			}
			f.replace(a.Pos(), a.End(), text)
			return true
		}
	}
	return false
}

// decides joins an if that returns a condition with the return of a constant behind it.
func (f *function) decides(n *ast.IfStmt, ret *ast.ReturnStmt, otherwise value) bool {
	if len(n.Body.List) != 1 || n.Else != nil {
		return false
	}
	inner, ok := n.Body.List[0].(*ast.ReturnStmt)
	if !ok || len(inner.Results) != 1 {
		return false
	}
	init := ""
	if n.Init != nil {
		// Its variables are those of the function then.
		for _, id := range declares(n.Init) {
			if f.local[id.Name] > 1 {
				return false
			}
		}
		init = f.text(n.Init) + "\n"
	}
	then := inner.Results[0]
	cond := func(e ast.Expr, op string) string {
		v := val{text: f.text(e), prec: precPrimary}
		if b, ok := e.(*ast.BinaryExpr); ok {
			v.prec = b.Op.Precedence()
		}
		return v.in(precedence[op])
	}
	var text string
	switch not, plain := f.negated(n.Cond); {
	case otherwise == isFalse && literalBool(then) == isTrue:
		text = f.text(n.Cond)
	case otherwise == isTrue && literalBool(then) == isFalse:
		text = not
	case literalBool(then) != unknown:
		return false // both are the same
	case otherwise == isFalse:
		text = cond(n.Cond, "&&") + " && " + cond(then, "&&")
	case plain:
		text = not + " || " + cond(then, "||")
	default:
		return false
	}
	f.replace(n.Pos(), ret.End(), init+"return "+text)
	return true
}

// joins puts b into a if b asks for a variable that a alone sets, so that it says whether
// the condition of a holds.
func (f *function) joins(a, b *ast.IfStmt) bool {
	if a.Else != nil || b.Else != nil || b.Init != nil || ends(a.Body.List) || f.inLoop(a) || f.hides(a.Body) {
		return false
	}
	first, rest := b.Cond, "" // the operand that is asked first, and the others
	for {
		n, ok := first.(*ast.BinaryExpr)
		if !ok || n.Op != token.LOR {
			break
		}
		first, rest = n.X, string(f.src[n.Y.Pos()-f.start:b.Cond.End()-f.start])
	}
	not, ok := first.(*ast.UnaryExpr)
	if ok && not.Op == token.NOT {
		first = not.X
	}
	id, isName := first.(*ast.Ident)
	if !isName || !f.tells(a, id.Name) {
		return false
	}
	if !ok {
		if rest == "" {
			f.replace(a.Body.Rbrace, b.End(), f.inner(b.Body)+"\n}")
		}
		return rest == ""
	}
	if !ends(b.Body.List) || rest != "" && len(b.Body.List) > 1 {
		return false
	}
	text := ""
	if a.Init != nil {
		if slices.ContainsFunc(declares(a.Init), func(id *ast.Ident) bool { return f.local[id.Name] > 1 }) {
			return false
		}
		text = f.text(a.Init) + "\n"
	}
	opposite, _ := f.negated(a.Cond)
	text += "if " + opposite + " " + f.text(b.Body) + "\n" + f.inner(a.Body)
	if rest != "" {
		text += "\nif " + rest + " " + f.text(b.Body)
	}
	f.replace(a.Pos(), b.End(), text)
	return true
}

// tells reports whether a variable is set to true by a, if the condition of a holds, and
// to false before, and nowhere else.
func (f *function) tells(a *ast.IfStmt, name string) bool {
	if f.local[name] != 1 {
		return false
	}
	before, inside, others := false, false, false
	ast.Inspect(f.body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.DeclStmt:
			spec := n.Decl.(*ast.GenDecl).Specs[0].(*ast.ValueSpec)
			if id, ok := spec.Type.(*ast.Ident); ok && spec.Names[0].Name == name {
				before = id.Name == "bool" && len(spec.Values) == 0
			}
		case *ast.AssignStmt:
			switch x := single(n); {
			case x == name && n.Tok == token.DEFINE:
				before = literalBool(n.Rhs[0]) == isFalse
			case x == name && slices.Contains(a.Body.List, ast.Stmt(n)) && literalBool(n.Rhs[0]) == isTrue:
				inside = true
			default:
				others = others || slices.ContainsFunc(n.Lhs, func(x ast.Expr) bool {
					id, ok := x.(*ast.Ident)
					return ok && id.Name == name
				})
			}
		}
		return true
	})
	return before && inside && !others
}

// single returns the variable that is all that a sets, "" if there is none.
func single(a *ast.AssignStmt) string {
	if len(a.Lhs) == 1 && (a.Tok == token.ASSIGN || a.Tok == token.DEFINE) {
		if id, ok := a.Lhs[0].(*ast.Ident); ok && id.Name != "_" {
			return id.Name
		}
	}
	return ""
}

// ends reports whether what follows statements is never reached.
func ends(list []ast.Stmt) bool {
	if len(list) == 0 {
		return false
	}
	switch s := list[len(list)-1].(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
		return true
	case *ast.IfStmt:
		e, ok := s.Else.(*ast.BlockStmt)
		return ok && ends(s.Body.List) && ends(e.List)
	}
	return false
}

// mentions counts how often a variable stands in n.
func (f *function) mentions(n ast.Node, name string) int {
	count := 0
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			count += f.mentions(n.X, name)
			return false
		case *ast.Ident:
			if n.Name == name {
				count++
			}
		}
		return true
	})
	return count
}

// assigns reports whether n sets a variable where it is not in a loop.
func (f *function) assigns(n ast.Node, name string) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok && single(a) == name && a.Tok == token.ASSIGN {
			found = true
		}
		_, loop := n.(*ast.RangeStmt)
		return !loop && !found
	})
	return found
}
