package generator

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
)

// dead takes out values that variables are given and that nothing reads.
func (f *function) dead() {
	l := liveness{function: f}
	l.list(f.body.List, nil)
	if len(f.edits) > 0 {
		return
	}
	f.late(f.body)
}

// liveness goes through a function from its end, with the variables whose values are
// read behind the place where it is.
type liveness struct {
	*function
	exit, head map[string]bool // where break and continue lead
	quiet      bool            // this is not the last time
	partly     bool            // what stands behind the end may read anything
}

func (l *liveness) list(list []ast.Stmt, live map[string]bool) map[string]bool {
	live = maps.Clone(live)
	if live == nil {
		live = map[string]bool{}
	}
	for _, s := range slices.Backward(list) {
		live = l.stmt(s, live)
	}
	return live
}

func (l *liveness) stmt(s ast.Stmt, live map[string]bool) map[string]bool {
	switch s := s.(type) {
	case *ast.AssignStmt:
		x := single(s)
		if x != "" && l.local[x] == 1 && !l.partly && !live[x] && s.Tok == token.ASSIGN {
			calls := l.calls(s.Rhs[0])
			switch {
			case l.quiet:
			case calls:
				l.replace(s.Lhs[0].Pos(), s.Lhs[0].End(), "_")
			default:
				l.cutLines(s)
			}
			if !calls {
				return live
			}
		}
		for _, x := range s.Lhs {
			if id, ok := x.(*ast.Ident); ok && (s.Tok == token.ASSIGN || s.Tok == token.DEFINE) {
				delete(live, id.Name)
			} else {
				l.read(x, live)
			}
		}
		for _, x := range s.Rhs {
			l.read(x, live)
		}
	case *ast.DeclStmt:
		spec := s.Decl.(*ast.GenDecl).Specs[0].(*ast.ValueSpec)
		if name := spec.Names[0].Name; !l.quiet && !live[name] && len(spec.Values) == 1 && spec.Type != nil && l.local[name] == 1 && !l.calls(spec.Values[0]) {
			l.cut(spec.Type.End(), spec.End()) // it is set before it is read
		}
		delete(live, spec.Names[0].Name)
		for _, x := range spec.Values {
			l.read(x, live)
		}
	case *ast.IfStmt:
		then, otherwise := l.list(s.Body.List, live), live
		if s.Else != nil {
			otherwise = l.stmt(s.Else, maps.Clone(live))
		}
		live = maps.Clone(otherwise)
		maps.Copy(live, then)
		l.read(s.Cond, live)
		if s.Init != nil {
			// It declares what the if alone sees.
			quiet := l.quiet
			l.quiet = true
			live = l.stmt(s.Init, live)
			l.quiet = quiet
		}
	case *ast.BlockStmt:
		return l.list(s.List, live)
	case *ast.RangeStmt:
		exit, head, quiet := l.exit, l.head, l.quiet
		l.exit, l.head, l.quiet = live, maps.Clone(live), true
		for {
			before := len(l.head)
			maps.Copy(l.head, l.list(s.Body.List, l.head))
			if len(l.head) == before {
				break
			}
		}
		if l.quiet = quiet; !quiet {
			l.list(s.Body.List, l.head)
		}
		live = maps.Clone(l.head)
		l.exit, l.head = exit, head
		l.read(s.X, live)
	case *ast.ReturnStmt:
		live = map[string]bool{}
		for _, x := range s.Results {
			l.read(x, live)
		}
	case *ast.BranchStmt:
		if s.Tok == token.BREAK {
			return maps.Clone(l.exit)
		}
		return maps.Clone(l.head)
	default:
		l.read(s, live)
	}
	return live
}

func (l *liveness) read(n ast.Node, live map[string]bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			l.read(n.X, live)
			return false
		case *ast.Ident:
			if l.local[n.Name] > 0 {
				live[n.Name] = true
			}
		}
		return true
	})
}

// late declares variables where they are set, or in the branch that uses them.
func (f *function) late(n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		if b, ok := n.(*ast.BlockStmt); ok {
			for i, s := range b.List {
				if f.lateDeclared(s, b.List[i+1:]) {
					return false
				}
			}
		}
		return true
	})
}

func (f *function) lateDeclared(s ast.Stmt, rest []ast.Stmt) bool {
	var (
		name   string
		define bool
		typ    ast.Expr
	)
	switch s := s.(type) {
	case *ast.DeclStmt:
		spec := s.Decl.(*ast.GenDecl).Specs[0].(*ast.ValueSpec)
		if len(spec.Values) > 0 && f.calls(spec.Values[0]) {
			return false
		}
		name, typ = spec.Names[0].Name, spec.Type
	case *ast.AssignStmt:
		if name = single(s); s.Tok != token.DEFINE || f.calls(s.Rhs[0]) {
			return false
		}
		define = true
	}
	if name == "" || f.local[name] != 1 {
		return false
	}
	i := slices.IndexFunc(rest, func(s ast.Stmt) bool { return f.mentions(s, name) > 0 })
	if i < 0 {
		return false
	}
	a, ok := rest[i].(*ast.AssignStmt)
	if ok && single(a) == name && f.mentions(a.Rhs[0], name) == 0 {
		f.cutLines(s)
		if define || f.typed(a.Rhs[0], typ) {
			f.replace(a.TokPos, a.TokPos+1, ":=")
		} else {
			f.replace(a.Pos(), a.TokPos, "var "+name+" "+f.text(typ)+" ")
		}
		return true
	}
	// What all branches set needs no value before.
	literal := ""
	if d, ok := s.(*ast.AssignStmt); ok {
		switch x := d.Rhs[0].(type) {
		case *ast.BasicLit:
			literal = map[token.Token]string{token.STRING: "string", token.INT: "int", token.FLOAT: "float64"}[x.Kind]
		case *ast.Ident:
			if literalBool(x) != unknown {
				literal = "bool"
			}
		}
	}
	spec, isVar := s.(*ast.DeclStmt)
	if n, ok := rest[i].(*ast.IfStmt); ok && (literal != "" || isVar && len(spec.Decl.(*ast.GenDecl).Specs[0].(*ast.ValueSpec).Values) == 0) &&
		f.mentions(&ast.BlockStmt{List: rest}, name) == f.mentions(n.Body, name) {
		f.cutLines(s)
		f.replace(n.Body.Lbrace+1, n.Body.Lbrace+1, "\n"+f.text(s))
		return true
	}
	l := liveness{function: f, quiet: true, partly: true}
	if _, ok := rest[i].(*ast.IfStmt); ok && literal != "" && !f.inLoop(s) && !l.list(rest[i:], nil)[name] {
		f.replace(s.Pos(), s.End(), "var "+name+" "+literal)
		return true
	}
	return false
}

// inLoop reports whether s is in a loop, behind which more is read than stands behind s.
func (f *function) inLoop(s ast.Stmt) bool {
	found := false
	ast.Inspect(f.body, func(n ast.Node) bool {
		_, loop := n.(*ast.RangeStmt)
		found = found || loop && n.Pos() < s.Pos() && s.End() <= n.End()
		return !found
	})
	return found
}

// typed reports whether a variable that is given the value e has the type that is
// written, if no type is.
func (f *function) typed(e ast.Expr, typ ast.Expr) bool {
	switch t := typ.(type) {
	case *ast.Ident:
		if types.Universe.Lookup(t.Name) == nil || f.declared[t.Name] || t.Name == "any" || t.Name == "error" {
			return false
		}
	case *ast.ArrayType, *ast.StarExpr:
	default:
		return false
	}
	e = ast.Unparen(e)
	if minus, ok := e.(*ast.UnaryExpr); ok && minus.Op == token.SUB {
		e = minus.X
	}
	switch e := e.(type) {
	case *ast.Ident:
		return f.local[e.Name] > 0 || literalBool(e) != unknown
	case *ast.BasicLit:
		id, ok := typ.(*ast.Ident)
		return ok && (e.Kind == token.STRING && id.Name == "string" || e.Kind == token.INT && id.Name == "int")
	case *ast.SelectorExpr:
		x, ok := e.X.(*ast.Ident)
		return !ok || f.local[x.Name] > 0
	case *ast.IndexExpr:
		return true
	case *ast.CallExpr:
		id, ok := e.Fun.(*ast.Ident)
		return !ok || types.Universe.Lookup(id.Name) == nil || f.declared[id.Name] || id.Name == types.ExprString(typ)
	}
	return false
}

// unused takes out variables that are set and that nothing uses but what sets them.
func (f *function) unused() {
	used := map[string]bool{}
	var uses func(n ast.Node, except string)
	uses = func(n ast.Node, except string) {
		if n == nil {
			return
		}
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for _, x := range n.Values {
					uses(x, "")
				}
				return false
			case *ast.AssignStmt:
				name := except
				if id, ok := n.Lhs[0].(*ast.Ident); ok && len(n.Lhs) == 1 && !f.calls(n.Rhs[0]) {
					name = id.Name
				}
				for _, x := range n.Lhs {
					if _, ok := x.(*ast.Ident); !ok {
						uses(x, except)
					}
				}
				for _, x := range n.Rhs {
					uses(x, name)
				}
				return false
			case *ast.IncDecStmt:
				if _, ok := n.X.(*ast.Ident); ok {
					return false
				}
			case *ast.RangeStmt:
				uses(n.X, except)
				uses(n.Body, except)
				return false
			case *ast.IfStmt:
				// Of what asks whether to set a variable again, and sets no other.
				if len(n.Body.List) == 1 && n.Init == nil && n.Else == nil && !f.calls(n.Cond) {
					if a, ok := n.Body.List[0].(*ast.AssignStmt); ok && single(a) != "" && !f.calls(a.Rhs[0]) {
						uses(n.Cond, single(a))
						uses(n.Body, except)
						return false
					}
				}
			case *ast.SelectorExpr:
				uses(n.X, except)
				return false
			case *ast.Ident:
				if n.Name != except {
					used[n.Name] = true
				}
			}
			return true
		})
	}
	uses(f.body, "")
	init := map[ast.Stmt]bool{}
	idle := func(id *ast.Ident) bool { return f.local[id.Name] > 0 && !used[id.Name] && id.Name != "_" }
	ast.Inspect(f.body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.DeclStmt:
			spec := n.Decl.(*ast.GenDecl).Specs[0].(*ast.ValueSpec)
			f.idleNames(spec.Names, idle, n, !slices.ContainsFunc(spec.Values, func(x ast.Expr) bool { return f.calls(x) }))
		case *ast.IncDecStmt:
			if id, ok := n.X.(*ast.Ident); ok && idle(id) {
				f.cutLines(n)
			}
		case *ast.IfStmt:
			init[n.Init] = true
		case *ast.RangeStmt:
			f.idleRange(n, idle)
		case *ast.AssignStmt:
			var names []*ast.Ident
			for _, x := range n.Lhs {
				if id, ok := x.(*ast.Ident); ok {
					names = append(names, id)
				}
			}
			if id, ok := n.Lhs[0].(*ast.Ident); ok && len(n.Lhs) == 1 && id.Name == "_" && !f.calls(n.Rhs[0]) {
				f.cutLines(n)
				break
			}
			all := f.idleNames(names, idle, n, len(names) == len(n.Lhs) && !init[n] && !slices.ContainsFunc(n.Rhs, func(x ast.Expr) bool { return f.calls(x) }))
			if all && len(names) == len(n.Lhs) && n.Tok != token.ASSIGN {
				f.replace(n.TokPos, n.TokPos+token.Pos(len(n.Tok.String())), "=")
			}
		}
		return true
	})
}

// idleRange takes the variable out of a loop that does not use it.
func (f *function) idleRange(n *ast.RangeStmt, idle func(*ast.Ident) bool) {
	if id, ok := n.Value.(*ast.Ident); ok && idle(id) {
		if key, ok := n.Key.(*ast.Ident); ok && key.Name == "_" {
			f.cut(n.Key.Pos(), n.Range)
		}
	}
}

// idleNames takes out the names that are idle of a statement that sets names, and the
// whole statement if all are and it may go. It reports whether all are.
func (f *function) idleNames(names []*ast.Ident, idle func(*ast.Ident) bool, s ast.Stmt, mayGo bool) bool {
	n, blank := 0, 0
	for _, id := range names {
		if id.Name == "_" {
			blank++
		} else if idle(id) {
			n++
		}
	}
	all := n > 0 && n+blank == len(names)
	if all && mayGo {
		f.cutLines(s)
		return true
	}
	for _, id := range names {
		if idle(id) {
			f.replace(id.Pos(), id.End(), "_")
		}
	}
	return all
}
