package generator

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// tidied returns a file in which the functions that evaluate expressions are as one
// would write them.
//
// An expression is rendered part by part, and a part does not see what stands before and
// behind it: a condition asks what another has asked, a default is overwritten at once, a
// variable tells what is always so. To go vet, which runs with every test, some of that
// is a mistake. What calls something stays, as often and in the same order.
//
// The names in declared are the package's own.
func tidied(src []byte, declared map[string]bool) []byte {
	// A file that does not parse is reported by whoever reads it next.
	file, err := parser.ParseFile(token.NewFileSet(), "", src, parser.SkipObjectResolution)
	if err != nil {
		return src
	}
	f := tidier{src: src, start: file.FileStart}
	packages := imported(file)
	for _, d := range file.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && evaluates(fn) {
			f.replace(fn.Pos(), fn.End(), tidiedFunc(f.text(fn), declared, packages))
		}
	}
	return withoutImports(f.edited())
}

// tidiedFunc is tidied for one function.
func tidiedFunc(text string, declared map[string]bool, packages map[string]string) string {
	const head = "package p\n\n"
	src := []byte(head + text)
	for range maxRounds {
		file, err := parser.ParseFile(token.NewFileSet(), "", src, parser.SkipObjectResolution)
		if err != nil {
			return text
		}
		f := tidier{src: src, start: file.FileStart, declared: declared, packages: packages}
		fn := f.function(file.Decls[0].(*ast.FuncDecl))
		// What a rule leaves is what the next one sees.
		for _, rule := range []func(){fn.known, fn.shape, fn.dead, fn.unused} {
			if rule(); len(f.edits) > 0 {
				break
			}
		}
		if len(f.edits) == 0 {
			return string(src[len(head):])
		}
		src = f.edited()
	}
	return string(src[len(head):])
}

// maxRounds is more than any function needs. Each round leaves a function that means
// the same.
const maxRounds = 500

// edit is a range of bytes in place of which text is to stand.
type edit struct {
	from, to int
	text     string
}

type tidier struct {
	src      []byte
	start    token.Pos
	declared map[string]bool   // by the package
	packages map[string]string // name -> path of those that the file imports
	edits    []edit
}

// edited returns the source with the edits. Those inside of others are left out.
func (f *tidier) edited() []byte {
	slices.SortStableFunc(f.edits, func(a, b edit) int { return a.from - b.from })
	var out []byte
	at := 0
	for _, e := range f.edits {
		if e.from >= at {
			out = append(append(out, f.src[at:e.from]...), e.text...)
			at = e.to
		}
	}
	return append(out, f.src[at:]...)
}

func (f *tidier) replace(from, to token.Pos, text string) {
	f.edits = append(f.edits, edit{int(from - f.start), int(to - f.start), text})
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

func (f *tidier) text(n ast.Node) string { return string(f.src[n.Pos()-f.start : n.End()-f.start]) }

// inner is the text of the statements of a block.
func (f *tidier) inner(b *ast.BlockStmt) string {
	return strings.TrimSpace(string(f.src[b.Lbrace+1-f.start : b.Rbrace-f.start]))
}

// evaluates reports whether fn has nothing but what functions have that evaluate
// expressions.
func evaluates(fn *ast.FuncDecl) bool {
	if fn.Recv != nil || fn.Body == nil {
		return false
	}
	known := true
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case nil, *ast.BlockStmt, *ast.AssignStmt, *ast.DeclStmt, *ast.IncDecStmt, *ast.ExprStmt, *ast.IfStmt, *ast.RangeStmt, *ast.ReturnStmt:
		case *ast.BranchStmt:
			known = known && n.Label == nil
		case ast.Stmt, *ast.FuncLit, *ast.CompositeLit, *ast.TypeAssertExpr:
			known = false
		case *ast.UnaryExpr:
			known = known && n.Op != token.AND && n.Op != token.ARROW
		case *ast.GenDecl:
			spec, ok := n.Specs[0].(*ast.ValueSpec)
			known = known && ok && len(n.Specs) == 1 && len(spec.Names) == 1
		}
		return known
	})
	return known
}

// function is one that evaluates an expression. A name means one thing in it, with the
// exceptions that hides knows.
type function struct {
	*tidier
	body     *ast.BlockStmt
	local    map[string]int  // parameters and variables, and how often they are declared
	pointers map[string]bool // parameters that are pointers
	booleans map[string]bool // variables of type bool
	callers  map[string]bool // variables with the runtime's request
	elseIf   map[*ast.IfStmt]*ast.IfStmt
}

func (f *tidier) function(fn *ast.FuncDecl) *function {
	x := &function{f, fn.Body, map[string]int{}, map[string]bool{}, map[string]bool{}, map[string]bool{}, map[*ast.IfStmt]*ast.IfStmt{}}
	for _, p := range fn.Type.Params.List {
		_, pointer := p.Type.(*ast.StarExpr)
		for _, id := range p.Names {
			x.local[id.Name]++
			x.pointers[id.Name] = pointer
		}
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		if s, ok := n.(ast.Stmt); ok {
			for _, id := range declares(s) {
				x.local[id.Name]++
				delete(x.pointers, id.Name)
				x.booleans[id.Name] = x.local[id.Name] == 1 && isBool(s, id)
			}
		}
		if s, ok := n.(*ast.AssignStmt); ok && s.Tok == token.DEFINE && single(s) != "" {
			if call, ok := s.Rhs[0].(*ast.CallExpr); ok && x.runtime(call) == "RequestFrom" {
				x.callers[single(s)] = true
			}
		}
		if s, ok := n.(*ast.IfStmt); ok {
			if inner, ok := s.Else.(*ast.IfStmt); ok {
				x.elseIf[inner] = s
			}
		}
		return true
	})
	return x
}

// declares lists the variables that s itself declares.
func declares(s ast.Stmt) (names []*ast.Ident) {
	add := func(list ...ast.Expr) {
		for _, x := range list {
			if id, ok := x.(*ast.Ident); ok && id.Name != "_" {
				names = append(names, id)
			}
		}
	}
	switch s := s.(type) {
	case *ast.DeclStmt:
		return s.Decl.(*ast.GenDecl).Specs[0].(*ast.ValueSpec).Names
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE {
			add(s.Lhs...)
		}
	case *ast.RangeStmt:
		if s.Tok == token.DEFINE {
			add(s.Key, s.Value)
		}
	}
	return names
}

// isBool reports whether s declares id with the type bool, as far as one can see.
func isBool(s ast.Stmt, id *ast.Ident) bool {
	switch s := s.(type) {
	case *ast.DeclStmt:
		typ, ok := s.Decl.(*ast.GenDecl).Specs[0].(*ast.ValueSpec).Type.(*ast.Ident)
		return ok && typ.Name == "bool"
	case *ast.AssignStmt:
		return len(s.Lhs) == 1 && literalBool(s.Rhs[0]) != unknown || len(s.Lhs) == 2 && s.Lhs[1] == ast.Expr(id)
	}
	return false
}

// hides reports whether the variables of a block may not be those of the block around it.
func (f *function) hides(b *ast.BlockStmt) bool {
	return slices.ContainsFunc(b.List, func(s ast.Stmt) bool {
		return slices.ContainsFunc(declares(s), func(id *ast.Ident) bool { return f.local[id.Name] > 1 })
	})
}

// imported returns the paths of the packages that a file imports, by name.
func imported(file *ast.File) map[string]string {
	packages := map[string]string{}
	for _, spec := range file.Imports {
		path := strings.Trim(spec.Path.Value, `"`)
		name := defaultName(path)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		packages[name] = path
	}
	return packages
}

// withoutImports returns a file without the imports that nothing names any more: of
// packages for expressions, and for the types of their variables.
func withoutImports(src []byte) []byte {
	file, err := parser.ParseFile(token.NewFileSet(), "", src, 0)
	if err != nil {
		return src
	}
	named := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok && id.Obj == nil { // and not a variable
				named[id.Name] = true
			}
		}
		return true
	})
	f := tidier{src: src, start: file.FileStart}
	for name, path := range imported(file) {
		if named[name] {
			continue
		}
		for _, spec := range file.Imports {
			if strings.Trim(spec.Path.Value, `"`) == path {
				f.cutLines(spec)
			}
		}
	}
	return f.edited()
}

// keyPackages are those that the code of expressions calls functions of.
var keyPackages = []string{"math", "regexp", "slices", "strconv", "strings", "unicode/utf8"}

// calls reports whether evaluating n can do anything but give a value.
func (f *function) calls(n ast.Node) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		found = found || ok && !f.pure(call)
		return !found
	})
	return found
}

// pure reports whether a call, but for its operands, does nothing but give a value. A
// function of the package may be called like a predeclared type.
func (f *function) pure(call *ast.CallExpr) bool {
	fn := ast.Unparen(call.Fun)
	if x, ok := fn.(*ast.IndexExpr); ok {
		fn = x.X
	}
	switch fn := fn.(type) {
	case *ast.Ident:
		if f.declared[fn.Name] || f.local[fn.Name] > 0 {
			return false
		}
		_, conversion := types.Universe.Lookup(fn.Name).(*types.TypeName)
		return conversion || slices.Contains([]string{"len", "min", "max", "append"}, fn.Name)
	case *ast.SelectorExpr:
		if name := f.runtime(call); name != "" {
			return name == "RequestFrom" || name == "FiniteLimit" || strings.HasPrefix(name, "Append") || strings.HasSuffix(name, "Units")
		}
		switch x := fn.X.(type) {
		case *ast.Ident:
			return f.local[x.Name] == 0 && slices.Contains(keyPackages, f.packages[x.Name])
		case *ast.SelectorExpr: // the address of a request, which is a netip.Addr
			caller, ok := x.X.(*ast.Ident)
			return ok && f.callers[caller.Name] && f.local[caller.Name] == 1 && x.Sel.Name == "Addr" && fn.Sel.Name == "IsValid"
		}
	}
	return false
}

// runtime returns the function of the runtime that is called, "" if it is none.
func (f *function) runtime(call *ast.CallExpr) string {
	fn := call.Fun
	if x, ok := fn.(*ast.IndexExpr); ok {
		fn = x.X
	}
	if sel, ok := fn.(*ast.SelectorExpr); ok {
		if id, ok := sel.X.(*ast.Ident); ok && f.local[id.Name] == 0 && f.packages[id.Name] == runtimePath {
			return sel.Sel.Name
		}
	}
	return ""
}
