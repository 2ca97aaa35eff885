package load

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"strings"
)

// Incomplete returns why the type that obj, a name of p, declares may have methods
// that are not known, or type parameters whose constraints are not: something that
// it embeds or is defined as does not resolve, here or in a package that is checked
// from source, or a file that may declare methods of it is not understood. It is ""
// if all is known. Signatures are not looked at.
func (p *Package) Incomplete(obj *types.TypeName) (cause string) {
	w := gaps{p: p, seen: map[*types.Named]bool{}, blamed: map[*types.TypeName]bool{}}
	if named, ok := obj.Type().(*types.Named); ok {
		for tp := range named.TypeParams().TypeParams() {
			c := tp.Constraint()
			if cause := w.of(c, obj); cause != "" {
				return cause
			}
			if strings.Contains(types.TypeString(c, nil), "invalid type") {
				return w.unresolved(obj)
			}
		}
	}
	return w.of(obj.Type(), obj)
}

// gaps looks for what is missing from the method set of a type of p.
type gaps struct {
	p      *Package
	seen   map[*types.Named]bool
	blamed map[*types.TypeName]bool
}

// of returns what is missing from the methods of t, which stands in the declaration
// of by.
func (w *gaps) of(t types.Type, by *types.TypeName) string {
	switch t := t.(type) {
	case *types.Basic:
		if t.Kind() == types.Invalid {
			return w.unresolved(by)
		}
	case *types.Alias:
		return w.of(types.Unalias(t), t.Obj())
	case *types.Named:
		t = t.Origin()
		if w.seen[t] {
			return ""
		}
		w.seen[t] = true
		if w.p.ld.isStub(t.Obj()) {
			return fmt.Sprintf("%s has the methods of %s, which is generated, too; keep it in a field with a name", w.name(by), w.name(t.Obj()))
		}
		if cause := w.unread(t); cause != "" {
			return cause
		}
		return w.of(t.Underlying(), t.Obj())
	case *types.Pointer:
		return w.of(t.Elem(), by)
	case *types.Struct:
		for f := range t.Fields() {
			if f.Embedded() {
				if cause := w.of(f.Type(), by); cause != "" {
					return cause
				}
			}
		}
	case *types.Interface:
		for e := range t.EmbeddedTypes() {
			if cause := w.element(e, by); cause != "" {
				return cause
			}
		}
	case *types.Union:
		for term := range t.Terms() {
			if cause := w.element(term.Type(), by); cause != "" {
				return cause
			}
		}
	}
	return ""
}

// element is of for an element of an interface, to which only interfaces and unions
// add methods.
func (w *gaps) element(t types.Type, by *types.TypeName) string {
	if n, ok := types.Unalias(t).(*types.Named); ok && !types.IsInterface(n) {
		return ""
	}
	return w.of(t, by)
}

// source returns the package that declares obj if it is checked from source.
func (w *gaps) source(obj types.Object) *Package {
	if obj.Pkg() == nil {
		return nil
	}
	return w.p.ld.source[obj.Pkg().Path()]
}

// unread names a file that may declare methods of t and is not understood.
func (w *gaps) unread(t *types.Named) string {
	q := w.source(t.Obj())
	if q == nil || types.IsInterface(t) {
		return ""
	}
	for _, name := range q.Names {
		if err := q.syntax[name]; err != nil {
			return fmt.Sprintf("methods of %s may be missing: %s", w.name(t.Obj()), w.describe(name, err))
		}
	}
	return ""
}

// unresolved says what of the declaration of by does not resolve.
func (w *gaps) unresolved(by *types.TypeName) string {
	q := w.source(by)
	if q != nil && !w.blamed[by] {
		w.blamed[by] = true
		for _, f := range q.signatures {
			spec := typeSpec(f, by)
			if spec == nil {
				continue
			}
			for _, e := range definedBy(spec) {
				if why := w.why(q, f, e); why != "" {
					return fmt.Sprintf("%s depends on %s, which does not resolve: %s", w.name(by), types.ExprString(e), why)
				}
				// Nothing is said of the use of an alias whose own declaration is wrong.
				if alias := brokenAlias(q.Types, e); alias != nil {
					return w.unresolved(alias)
				}
			}
		}
	}
	return fmt.Sprintf("something that %s depends on does not resolve", w.name(by))
}

// brokenAlias returns an alias that e mentions and that stands for nothing, or nil.
func brokenAlias(pkg *types.Package, e ast.Expr) *types.TypeName {
	var found *types.TypeName
	note := func(pkg *types.Package, name string) {
		if t, ok := pkg.Scope().Lookup(name).(*types.TypeName); ok && t.IsAlias() && types.Unalias(t.Type()) == types.Typ[types.Invalid] {
			found = t
		}
	}
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			note(pkg, n.Name)
		case *ast.SelectorExpr:
			for _, imp := range pkg.Imports() {
				if id, ok := n.X.(*ast.Ident); ok && id.Name == imp.Name() {
					note(imp, n.Sel.Name)
				}
			}
			return false
		}
		return true
	})
	return found
}

// why returns what the type checker says of e in file f of q, or of an import that e
// is qualified with.
func (w *gaps) why(q *Package, f *ast.File, e ast.Expr) string {
	if err := q.errorWithin(e); err != "" {
		return err
	}
	used := qualifiers(e)
	for _, spec := range f.Imports {
		name := path.Base(importPath(spec)) // what the type checker takes it for
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if used[name] || name == "." {
			if err := q.errorWithin(spec); err != "" {
				return err
			}
		}
	}
	return ""
}

// errorWithin returns what the type checker says of n.
func (p *Package) errorWithin(n ast.Node) string {
	for _, err := range p.Errors {
		var te types.Error
		if errors.As(err, &te) && n.Pos() <= te.Pos && te.Pos < n.End() {
			return p.ld.place(te.Pos) + ": " + te.Msg
		}
	}
	return ""
}

// describe gives an error of a file's syntax its place as place does.
func (w *gaps) describe(name string, err error) string {
	text := err.Error()
	if rel := w.p.ld.relative(name); strings.HasPrefix(text, name) {
		return rel + strings.TrimPrefix(text, name)
	}
	return text
}

// name is how p would write the name of obj.
func (w *gaps) name(obj *types.TypeName) string {
	if pkg := obj.Pkg(); pkg != nil && pkg.Path() != w.p.Path {
		return pkg.Name() + "." + obj.Name()
	}
	return obj.Name()
}

// place writes pos with a file name that is relative to where the load happens.
func (ld *loader) place(pos token.Pos) string {
	at := ld.position(pos)
	at.Filename = ld.relative(at.Filename)
	return at.String()
}

func (ld *loader) relative(name string) string {
	if rel, err := filepath.Rel(ld.cfg.Dir, name); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return name
}

// shortened is what the go command says, with names of files as relative gives them.
func (ld *loader) shortened(msg string) string {
	return strings.ReplaceAll(msg, filepath.Clean(ld.cfg.Dir)+string(filepath.Separator), "")
}

// typeSpec finds the declaration of obj.
func typeSpec(f *ast.File, obj types.Object) *ast.TypeSpec {
	for _, d := range f.Decls {
		if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.TYPE {
			for _, s := range d.Specs {
				if s := s.(*ast.TypeSpec); s.Name.Pos() == obj.Pos() {
					return s
				}
			}
		}
	}
	return nil
}

// definedBy returns what in spec the methods and type parameters of its type depend
// on.
func definedBy(spec *ast.TypeSpec) []ast.Expr {
	var exprs []ast.Expr
	if spec.TypeParams != nil {
		for _, f := range spec.TypeParams.List {
			exprs = append(exprs, f.Type)
		}
	}
	var fields *ast.FieldList
	switch t := spec.Type.(type) {
	case *ast.StructType:
		fields = t.Fields
	case *ast.InterfaceType:
		fields = t.Methods
	default:
		return append(exprs, t)
	}
	for _, f := range fields.List {
		if len(f.Names) == 0 {
			exprs = append(exprs, f.Type)
		}
	}
	return exprs
}
