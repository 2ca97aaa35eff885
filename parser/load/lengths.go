package load

import (
	"go/ast"
	"go/types"
	"strings"
)

// length is how the source writes the length of an array.
type length struct {
	expr ast.Expr
	uses map[*ast.Ident]types.Object
}

// Length returns the length of an array as the source writes it: the number that the
// type has may be that of one platform only. What name returns takes the place of the
// constants, types and functions that it mentions; they are those of a package or
// predeclared. Length returns "" if the source writes a number, if what it writes is
// too involved, if name refuses something, and for arrays of which the source is not
// known: those of export data and of outlines, and those whose elements depend on a
// type parameter of a generic type.
func (r *Result) Length(a *types.Array, name func(types.Object) (string, bool)) string {
	l, ok := r.ld.lengths[a]
	if !ok {
		return ""
	}
	w := lengthWriter{uses: l.uses, name: name}
	if !w.write(l.expr) {
		return ""
	}
	return w.String()
}

// lengthsIn returns the array types in files whose lengths are not written as
// numbers.
func lengthsIn(files []*ast.File) []*ast.ArrayType {
	var all []*ast.ArrayType
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			if t, ok := n.(*ast.ArrayType); ok {
				switch t.Len.(type) {
				case nil, *ast.BasicLit, *ast.Ellipsis:
				default:
					all = append(all, t)
				}
			}
			_, body := n.(*ast.BlockStmt)
			return !body
		})
	}
	return all
}

// noteLengths remembers how the arrays were written that the type checker has seen.
func (ld *loader) noteLengths(arrays []*ast.ArrayType, info *types.Info) {
	for _, t := range arrays {
		if a, ok := info.Types[t].Type.(*types.Array); ok {
			ld.lengths[a] = length{expr: t.Len, uses: info.Uses}
		}
	}
}

// lengthWriter writes an expression with other names for what it mentions.
type lengthWriter struct {
	strings.Builder
	uses map[*ast.Ident]types.Object
	name func(types.Object) (string, bool)
}

// write reports false if it does not know how to write e.
func (w *lengthWriter) write(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		w.WriteString(e.Value)
		return true
	case *ast.Ident:
		return w.object(w.uses[e])
	case *ast.SelectorExpr:
		if id, ok := e.X.(*ast.Ident); ok {
			if _, ok := w.uses[id].(*types.PkgName); ok {
				return w.object(w.uses[e.Sel])
			}
		}
	case *ast.ParenExpr:
		return w.text("(") && w.write(e.X) && w.text(")")
	case *ast.UnaryExpr:
		return w.text(e.Op.String()) && w.write(e.X)
	case *ast.BinaryExpr:
		return w.write(e.X) && w.text(" "+e.Op.String()+" ") && w.write(e.Y)
	case *ast.CallExpr:
		if !w.write(e.Fun) || !w.text("(") {
			return false
		}
		for i, arg := range e.Args {
			if i > 0 {
				w.WriteString(", ")
			}
			if !w.write(arg) {
				return false
			}
		}
		return w.text(")")
	}
	return false
}

func (w *lengthWriter) text(s string) bool {
	w.WriteString(s)
	return true
}

// object writes the name of something predeclared or of package scope.
func (w *lengthWriter) object(obj types.Object) bool {
	if obj == nil || obj.Parent() != types.Universe && (obj.Pkg() == nil || obj.Parent() != obj.Pkg().Scope()) {
		return false
	}
	name, ok := w.name(obj)
	return ok && w.text(name)
}
