package load

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
)

// parseFile parses src and returns its full syntax if asked for, and its
// signatures. A file with syntax errors yields what could be made of it, and nil
// if that is nothing.
func parseFile(fset *token.FileSet, name string, src []byte, full bool, nameOf func(string) string) (file, sig *ast.File, err error) {
	mode := parser.SkipObjectResolution
	if full {
		mode |= parser.ParseComments
	}
	file, err = parser.ParseFile(fset, name, src, mode)
	if file == nil || file.Name == nil || file.Name.Name == "" || file.Name.Name == "_" {
		return nil, nil, err
	}
	return file, signatures(file, nameOf), err
}

// signatures returns a copy of file without function bodies, without what only
// serves them, and without comments. The declarations that remain are shared with
// file, which is not changed.
func signatures(file *ast.File, nameOf func(string) string) *ast.File {
	sig := *file
	sig.Comments = nil
	sig.Decls = make([]ast.Decl, 0, len(file.Decls))
	var specs []*ast.GenDecl
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && (d.Name.Name == "init" || d.Name.Name == "_") {
				continue // nothing can name them
			}
			bodyless := *d
			bodyless.Body = nil
			sig.Decls = append(sig.Decls, &bodyless)
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
	used := qualifiers(sig.Decls)
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

// qualifiers returns the identifiers before a dot in decls, which are the package
// names among other things. Bodies of function literals do not count.
func qualifiers(decls []ast.Decl) map[string]bool {
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
	for _, d := range decls {
		ast.Inspect(d, visit)
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
