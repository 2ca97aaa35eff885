package generator

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// tidied returns a file without what expressions leave behind of which a part is known
// already where it stands.
//
// Operands of && and || go that stand in the same chain before: what one condition
// requires, another may say, and to go vet, which runs with every test, that is a mistake.
// Operands that call something are kept, and those before them may say something else
// afterwards. Variables go that nothing uses, as no default or branch is left that would.
func tidied(src []byte) []byte {
	for {
		// A file that does not parse is reported by whoever reads it next.
		file, err := parser.ParseFile(token.NewFileSet(), "", src, parser.SkipObjectResolution)
		if err != nil {
			return src
		}
		f := tidier{src: src, start: file.FileStart, chained: map[ast.Expr]bool{}}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if (n.Op == token.LAND || n.Op == token.LOR) && !f.chained[n] {
					f.visit(n, n.Op, map[string]bool{})
				}
			case *ast.FuncDecl:
				if n.Body != nil {
					f.unused(n)
				}
			}
			return true
		})
		f.imports(file)
		if len(f.edits) == 0 {
			return src
		}
		slices.SortStableFunc(f.edits, func(a, b edit) int { return a.from - b.from })
		var out []byte
		at := 0
		for _, e := range f.edits {
			if e.from >= at { // and not inside of what is gone already
				out = append(append(out, src[at:e.from]...), e.text...)
				at = e.to
			}
		}
		src = append(out, src[at:]...)
	}
}

// edit is a range of bytes in place of which text is to stand.
type edit struct {
	from, to int
	text     string
}

type tidier struct {
	src     []byte
	start   token.Pos
	chained map[ast.Expr]bool // parts of chains that were visited
	edits   []edit
}

// unused takes out local variables that fn sets and does not use, and what is empty then.
// In our functions a name means one thing.
func (f *tidier) unused(fn *ast.FuncDecl) {
	local, used := map[string]bool{}, map[string]bool{}
	set := map[*ast.Ident]bool{} // identifiers that are no use of a variable
	init := map[ast.Stmt]bool{}
	declare := func(id *ast.Ident) {
		local[id.Name] = true
		set[id] = true
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for _, id := range n.Names {
				declare(id)
			}
		case *ast.AssignStmt:
			for _, x := range n.Lhs {
				switch id, ok := x.(*ast.Ident); {
				case ok && n.Tok == token.DEFINE:
					declare(id)
				case ok && n.Tok == token.ASSIGN:
					set[id] = true
				}
			}
		case *ast.SelectorExpr:
			set[n.Sel] = true // a field or method, which may be called like a variable
		case *ast.IfStmt:
			init[n.Init] = true
		case *ast.ForStmt:
			init[n.Init], init[n.Post] = true, true
		case *ast.Ident:
			if !set[n] {
				used[n.Name] = true
			}
		}
		return true
	})
	idle := func(id *ast.Ident) bool { return local[id.Name] && !used[id.Name] && id.Name != "_" }
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.DeclStmt:
			if spec, ok := n.Decl.(*ast.GenDecl).Specs[0].(*ast.ValueSpec); ok {
				f.idleNames(spec.Names, idle, n, len(spec.Values) == 0)
			}
		case *ast.AssignStmt:
			var names []*ast.Ident
			for _, x := range n.Lhs {
				if id, ok := x.(*ast.Ident); ok {
					names = append(names, id)
				}
			}
			all := f.idleNames(names, idle, n, len(names) == len(n.Lhs) && !init[n] && !slices.ContainsFunc(n.Rhs, calls))
			if all && len(names) == len(n.Lhs) && n.Tok == token.DEFINE {
				f.replace(n.TokPos, n.TokPos+2, "=")
			}
		case *ast.IfStmt:
			if def, _ := n.Init.(*ast.AssignStmt); len(n.Body.List) == 0 && n.Else == nil && !calls(n.Cond) &&
				(n.Init == nil || def != nil && !slices.ContainsFunc(def.Rhs, calls)) {
				f.cutLines(n)
			}
		}
		return true
	})
}

// idleNames takes out the names that are idle of a statement that sets names, and the
// whole statement if all are and it may go. It reports whether all are.
func (f *tidier) idleNames(names []*ast.Ident, idle func(*ast.Ident) bool, s ast.Stmt, mayGo bool) bool {
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

// visit looks at e, in a chain of op in which the operands in seen stand before. It
// returns true if all of e stands there before.
func (f *tidier) visit(e ast.Expr, op token.Token, seen map[string]bool) bool {
	e = ast.Unparen(e)
	b, ok := e.(*ast.BinaryExpr)
	if !ok || b.Op != op {
		if calls(e) {
			clear(seen)
			return false
		}
		text := types.ExprString(e)
		before := seen[text]
		seen[text] = true
		return before
	}
	f.chained[b] = true
	x := f.visit(b.X, op, seen)
	y := f.visit(b.Y, op, seen)
	switch {
	case x && y:
		return true
	case x:
		f.cut(b.X.Pos(), b.Y.Pos())
	case y:
		f.cut(b.X.End(), b.Y.End())
	}
	return false
}

func (f *tidier) cut(from, to token.Pos) { f.replace(from, to, "") }

// cutLines is cut with the blanks and the end of line before it.
func (f *tidier) cutLines(n ast.Node) {
	from := n.Pos()
	for from > f.start && strings.IndexByte(" \t\n", f.src[from-1-f.start]) >= 0 {
		if from--; f.src[from-f.start] == '\n' {
			break
		}
	}
	f.cut(from, n.End())
}

// imports takes out packages of the standard library that nothing names any more.
func (f *tidier) imports(file *ast.File) {
	named := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok {
				named[id.Name] = true
			}
		}
		return true
	})
	for _, spec := range file.Imports {
		path := strings.Trim(spec.Path.Value, `"`)
		name := path[strings.LastIndexByte(path, '/')+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if slices.Contains(keyPackages, path) && !named[name] {
			f.cutLines(spec)
		}
	}
}

// keyPackages are those that the code of expressions names.
var keyPackages = []string{"math", "regexp", "slices", "strconv", "strings", "unicode/utf8"}

func (f *tidier) replace(from, to token.Pos, text string) {
	f.edits = append(f.edits, edit{int(from - f.start), int(to - f.start), text})
}

// calls reports whether e calls anything but len or a conversion to a predeclared type.
func calls(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			id, ok := ast.Unparen(call.Fun).(*ast.Ident)
			if !ok {
				found = true
			} else if _, conversion := types.Universe.Lookup(id.Name).(*types.TypeName); !conversion && id.Name != "len" {
				found = true
			}
		}
		return !found
	})
	return found
}
