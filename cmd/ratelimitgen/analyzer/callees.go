package analyzer

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/types/typeutil"
)

// callee is a function that a call is known to call: one that is declared, or a
// literal, or what the only assignment to a variable puts there.
type callee struct {
	fn   *types.Func // nil for a literal
	sig  *types.Signature
	recv int // 1 for a method expression, whose first argument is the receiver
}

// elsewhere reports whether the function is declared in another package than pkg.
func (f callee) elsewhere(pkg *types.Package) bool { return f.fn != nil && f.fn.Pkg() != pkg }

// calleeOf is what x, which a call calls, is known to be. Its sig is nil if nothing is.
func (c *checker) calleeOf(x ast.Expr) callee {
	if id, ok := ast.Unparen(x).(*ast.Ident); ok {
		if v, ok := c.TypesInfo.Uses[id].(*types.Var); ok {
			return c.bound[v]
		}
	}
	return c.written(x)
}

// written is the function that x names or writes out.
func (c *checker) written(x ast.Expr) callee {
	x = ast.Unparen(x)
	if lit, ok := x.(*ast.FuncLit); ok {
		sig, _ := c.TypesInfo.TypeOf(lit).(*types.Signature)
		return callee{sig: sig}
	}
	fn := typeutil.StaticCallee(c.TypesInfo, &ast.CallExpr{Fun: x})
	if fn == nil || fn.Pkg() == nil {
		return callee{}
	}
	f := callee{fn: fn.Origin(), sig: fn.Origin().Signature()}
	if sel, ok := x.(*ast.SelectorExpr); ok {
		if s := c.TypesInfo.Selections[sel]; s != nil && s.Kind() == types.MethodExpr {
			f.recv = 1
		}
	}
	return f
}

// parameter returns the function that a call is known to call and which of its
// parameters the argument i becomes, or -1.
func (c *checker) parameter(call *ast.CallExpr, i int) (callee, int) {
	f := c.calleeOf(call.Fun)
	if f.sig == nil {
		return callee{}, -1
	}
	i -= f.recv
	if n := f.sig.Params().Len(); i < 0 || i >= n || f.sig.Variadic() && i == n-1 {
		return callee{}, -1
	}
	return f, i
}

// binds notes the variables of functions to which file assigns once, and so what calls
// of them call. Other packages may assign to an exported one.
func (c *checker) binds(file *ast.File) {
	bind := func(x, value ast.Expr) {
		id, ok := ast.Unparen(x).(*ast.Ident)
		if !ok {
			return
		}
		v, ok := c.TypesInfo.ObjectOf(id).(*types.Var)
		if !ok || v.Parent() == c.Pkg.Scope() && v.Exported() {
			return
		}
		if _, ok := coreType(v.Type()).(*types.Signature); !ok {
			return
		}
		if _, again := c.bound[v]; again || value == nil {
			c.bound[v] = callee{}
			return
		}
		c.bound[v] = c.written(value)
	}
	list := func(names, values []ast.Expr) {
		for i, x := range names {
			if len(names) == len(values) {
				bind(x, values[i])
			} else {
				bind(x, nil)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			list(n.Lhs, n.Rhs)
		case *ast.ValueSpec:
			for i, id := range n.Names {
				switch {
				case len(n.Names) == len(n.Values):
					bind(id, n.Values[i])
				case len(n.Values) > 0:
					bind(id, nil)
				}
			}
		case *ast.RangeStmt:
			for _, x := range []ast.Expr{n.Key, n.Value} {
				if x != nil {
					bind(x, nil)
				}
			}
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				bind(n.X, nil)
			}
		}
		return true
	})
}
