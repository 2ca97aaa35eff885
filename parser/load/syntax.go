package load

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"strconv"
)

// parseFile parses as much of src as depth needs, and of a whole package everything
// only if full is set; nothing is kept of what stands in function bodies. A file with
// syntax errors yields what could be made of it, and nil if that is nothing.
func parseFile(fset *token.FileSet, name string, src []byte, depth depth, full bool) (*ast.File, error) {
	mode := parser.SkipObjectResolution
	switch {
	case full:
		mode |= parser.ParseComments
	case depth == outlined:
		src = stripToOutline(src)
	default:
		src = stripBodies(src)
	}
	file, err := parser.ParseFile(fset, name, src, mode)
	if file == nil {
		return nil, err
	}
	err = Unadjusted(fset.File(file.FileStart), err)
	if file.Name == nil || file.Name.Name == "" || file.Name.Name == "_" {
		return nil, err
	}
	emptyBodies(file)
	return file, err
}

// emptyBodies drops what stands in the bodies of the functions of file.
func emptyBodies(file *ast.File) {
	for _, d := range file.Decls {
		if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil {
			d.Body = &ast.BlockStmt{Lbrace: d.Body.Lbrace, Rbrace: d.Body.Rbrace}
		}
	}
}

// Unadjusted gives syntax errors their places in file itself, not those that "//line"
// comments say, and their order there.
func Unadjusted(file *token.File, err error) error {
	var list scanner.ErrorList
	if !errors.As(err, &list) {
		return err
	}
	for _, e := range list {
		e.Pos = file.PositionFor(file.Pos(e.Pos.Offset), false)
	}
	list.Sort()
	return list
}

// signatures returns a copy of file without comments, and without what only serves
// those and the bodies of functions; of an outlined file, it returns the outline. What
// remains is shared with file, which is not changed.
func signatures(file *ast.File, depth depth, nameOf func(string) string) *ast.File {
	sig := *file
	sig.Comments = nil
	sig.Decls = make([]ast.Decl, 0, len(file.Decls))
	var specs []*ast.GenDecl
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && (d.Name.Name == "init" || d.Name.Name == "_") {
				continue // nothing can name it
			}
			sig.Decls = append(sig.Decls, d)
		case *ast.GenDecl:
			if d.Tok == token.IMPORT {
				specs = append(specs, d)
				continue
			}
			sig.Decls = append(sig.Decls, d)
		default:
			sig.Decls = append(sig.Decls, d)
		}
	}
	if depth == outlined {
		sig.Decls = outline(sig.Decls)
	}
	used := qualifiers(sig.Decls...)
	sig.Imports = nil
	var imports []ast.Decl
	for _, d := range specs {
		kept := *d
		kept.Specs = nil
		for _, s := range d.Specs {
			spec := s.(*ast.ImportSpec)
			if needed(spec, used, nameOf) {
				kept.Specs = append(kept.Specs, spec)
				sig.Imports = append(sig.Imports, spec)
			}
		}
		if len(kept.Specs) > 0 {
			imports = append(imports, &kept)
		}
	}
	sig.Decls = append(imports, sig.Decls...)
	return &sig
}

// embeddedPaths returns the import paths of the packages from which types of file
// get methods: by embedding a type, or by being defined as one. A dot import may be
// one of them, and what it declares counts as names of the file in any case.
func embeddedPaths(file *ast.File, nameOf func(string) string) map[string]bool {
	names := map[string]bool{}
	note := func(t ast.Expr) {
		for {
			switch e := t.(type) {
			case *ast.StarExpr:
				t = e.X
			case *ast.ParenExpr:
				t = e.X
			case *ast.IndexExpr:
				t = e.X
			case *ast.IndexListExpr:
				t = e.X
			case *ast.SelectorExpr:
				if id, ok := e.X.(*ast.Ident); ok {
					names[id.Name] = true
				}
				return
			default:
				return
			}
		}
	}
	noteUnnamed := func(fields *ast.FieldList) {
		for _, f := range fields.List {
			if len(f.Names) == 0 {
				note(f.Type)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSpec:
			note(n.Type)
		case *ast.StructType:
			noteUnnamed(n.Fields)
		case *ast.InterfaceType:
			noteUnnamed(n.Methods)
		}
		return true
	})
	paths := map[string]bool{}
	for _, spec := range file.Imports {
		if needed(spec, names, nameOf) {
			paths[importPath(spec)] = true
		}
	}
	return paths
}

// qualifiers returns the identifiers before a dot in nodes, which are the package
// names among other things. Bodies of function literals do not count.
func qualifiers[N ast.Node](nodes ...N) map[string]bool {
	used := map[string]bool{}
	visit := func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			return false
		case *ast.SelectorExpr:
			if id, ok := n.X.(*ast.Ident); ok {
				used[id.Name] = true
			}
		}
		return true
	}
	for _, n := range nodes {
		ast.Inspect(n, visit)
	}
	return used
}

// needed reports whether spec may provide one of the names in used. nameOf tells
// what the package at a path is called; an import of unknown name is kept, since
// one too many costs time and one too few would be wrong.
func needed(spec *ast.ImportSpec, used map[string]bool, nameOf func(string) string) bool {
	var name string
	switch {
	case spec.Name != nil:
		name = spec.Name.Name
	case nameOf != nil:
		name = nameOf(importPath(spec))
	}
	switch name {
	case "_":
		return false
	case ".", "":
		return true
	}
	return used[name]
}

func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return ""
	}
	return p
}
