package generator

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
)

// withoutRepeats removes from a file the operands of && and || that stand in the same
// chain before. What one condition of an expression requires, another may say: to go vet,
// which runs with every test, that is a mistake. Operands that call something are kept,
// and those before them may say something else afterwards.
func withoutRepeats(src []byte) []byte {
	for {
		cuts := repeats(src)
		if len(cuts) == 0 {
			return src
		}
		slices.SortFunc(cuts, func(a, b cut) int { return a.from - b.from })
		var out []byte
		at := 0
		for _, c := range cuts {
			if c.from >= at { // and not inside of what is cut already
				out = append(out, src[at:c.from]...)
				at = c.to
			}
		}
		src = append(out, src[at:]...)
	}
}

// cut is a range of bytes that is to go.
type cut struct{ from, to int }

// repeats returns where src says something twice. A file that does not parse is reported
// by whoever reads it next.
func repeats(src []byte) []cut {
	if !bytes.Contains(src, []byte("&&")) && !bytes.Contains(src, []byte("||")) {
		return nil
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", src, parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	f := repeatFinder{start: file.FileStart, chained: map[ast.Expr]bool{}}
	ast.Inspect(file, func(n ast.Node) bool {
		if b, ok := n.(*ast.BinaryExpr); ok && (b.Op == token.LAND || b.Op == token.LOR) && !f.chained[b] {
			f.visit(b, b.Op, map[string]bool{})
		}
		return true
	})
	return f.cuts
}

type repeatFinder struct {
	start   token.Pos
	chained map[ast.Expr]bool // parts of chains that were visited
	cuts    []cut
}

// visit looks at e, in a chain of op in which the operands in seen stand before. It
// returns true if all of e stands there before.
func (f *repeatFinder) visit(e ast.Expr, op token.Token, seen map[string]bool) bool {
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

func (f *repeatFinder) cut(from, to token.Pos) {
	f.cuts = append(f.cuts, cut{int(from - f.start), int(to - f.start)})
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
