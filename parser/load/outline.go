package load

import (
	"go/ast"
	"go/token"
	"maps"
	"slices"
)

// outline returns what an outline keeps of the declarations of a file, whose
// functions have no bodies. See the package comment for what that is, and why.
func outline(decls []ast.Decl) []ast.Decl {
	// What is in the outline in any case decides which packages it imports; the rest
	// is kept if it can do with those.
	imported := map[string]bool{}
	for _, d := range decls {
		if d, ok := d.(*ast.GenDecl); ok {
			switch d.Tok {
			case token.CONST:
				maps.Copy(imported, qualifiers(d))
			case token.TYPE:
				for _, s := range d.Specs {
					maps.Copy(imported, qualifiers(outlineType(s.(*ast.TypeSpec), nil)))
				}
			}
		}
	}
	var kept []ast.Decl
	for _, d := range decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil && d.Name.IsExported() {
				kept = append(kept, outlineMethod(d, imported))
			}
		case *ast.GenDecl:
			switch d.Tok {
			case token.CONST:
				kept = append(kept, d)
			case token.TYPE:
				types := *d
				types.Specs = make([]ast.Spec, len(d.Specs))
				for i, s := range d.Specs {
					types.Specs[i] = outlineType(s.(*ast.TypeSpec), imported)
				}
				kept = append(kept, &types)
			}
		default:
			kept = append(kept, d)
		}
	}
	return kept
}

// outlineType returns s without those unexported fields that mention packages not
// in imported. An embedded field stays whatever its name: it may promote others.
// What an alias stands for stays as it is, since a struct type without a name is
// identical to others.
func outlineType(s *ast.TypeSpec, imported map[string]bool) *ast.TypeSpec {
	t, ok := s.Type.(*ast.StructType)
	if !ok || s.Assign.IsValid() {
		return s
	}
	fields := &ast.FieldList{Opening: t.Fields.Opening, Closing: t.Fields.Closing}
	dropped, comparable := false, true
	for _, f := range t.Fields.List {
		hidden := len(f.Names) > 0 && !slices.ContainsFunc(f.Names, (*ast.Ident).IsExported)
		if hidden && !covers(imported, f.Type) {
			dropped = true
			comparable = comparable && alwaysComparable(f.Type)
			continue
		}
		fields.List = append(fields.List, f)
	}
	if !dropped {
		return s
	}
	fields.List = append(fields.List, &ast.Field{
		Names: []*ast.Ident{unwritable(t.Fields.Closing)},
		Type:  placeholder(t.Fields.Closing, comparable),
	})
	spec := *s
	spec.Type = &ast.StructType{Struct: t.Struct, Fields: fields}
	return &spec
}

// outlineMethod returns d if imported has the packages that its signature
// mentions, and otherwise a method of that name which nobody can call and no
// interface asks for.
func outlineMethod(d *ast.FuncDecl, imported map[string]bool) *ast.FuncDecl {
	if covers(imported, d.Type) {
		return d
	}
	at := d.Type.Params.Opening
	param := &ast.StructType{Struct: at, Fields: &ast.FieldList{List: []*ast.Field{
		{Names: []*ast.Ident{unwritable(at)}, Type: placeholder(at, true)},
	}}}
	method := *d
	method.Type = &ast.FuncType{Func: d.Type.Func, Params: &ast.FieldList{
		Opening: at,
		List:    []*ast.Field{{Type: param}},
		Closing: d.Type.Params.Closing,
	}}
	return &method
}

// unwritable returns a name that no source text can have, so that no other type is
// identical to one with a field of it.
func unwritable(at token.Pos) *ast.Ident { return &ast.Ident{NamePos: at, Name: "?"} }

// placeholder returns a type that takes the place of others.
func placeholder(at token.Pos, comparable bool) ast.Expr {
	if comparable {
		return &ast.StructType{Struct: at, Fields: &ast.FieldList{Opening: at, Closing: at}}
	}
	return &ast.FuncType{Func: at, Params: &ast.FieldList{Opening: at, Closing: at}}
}

// alwaysComparable reports whether values of t can be compared whatever the names
// in it mean.
func alwaysComparable(t ast.Expr) bool {
	switch t := t.(type) {
	case *ast.StarExpr, *ast.ChanType, *ast.InterfaceType:
		return true
	case *ast.ParenExpr:
		return alwaysComparable(t.X)
	}
	return false
}

// covers reports whether all names before a dot in n are among names.
func covers(names map[string]bool, n ast.Node) bool {
	for q := range qualifiers(n) {
		if !names[q] {
			return false
		}
	}
	return true
}

// measured reports whether types, constants or signatures of file depend on a
// length, which can be that of a variable or of any field.
func measured(file *ast.File) bool {
	return slices.ContainsFunc(file.Decls, func(d ast.Decl) bool {
		v, ok := d.(*ast.GenDecl)
		return !(ok && v.Tok == token.VAR) && calls(d, "len", "cap")
	})
}

// sized reports whether sig, the signatures of a file, depends on sizes.
func sized(sig *ast.File) bool {
	for _, spec := range sig.Imports {
		if importPath(spec) != "unsafe" {
			continue
		}
		for _, d := range sig.Decls {
			if calls(d, "Sizeof", "Alignof", "Offsetof") {
				return true
			}
		}
	}
	return false
}

// calls reports whether n holds a call of a function of one of the names, qualified
// or not, outside of bodies.
func calls(n ast.Node, names ...string) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			return false
		case *ast.CallExpr:
			switch f := ast.Unparen(n.Fun).(type) {
			case *ast.Ident:
				found = found || slices.Contains(names, f.Name)
			case *ast.SelectorExpr:
				found = found || slices.Contains(names, f.Sel.Name)
			}
		}
		return !found
	})
	return found
}
