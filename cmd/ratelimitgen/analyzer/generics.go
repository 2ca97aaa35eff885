package analyzer

import (
	"go/ast"
	"go/types"
	"slices"
)

// A type argument lets generic code call the methods of its constraint on values that
// may be raw. That is fine in a function that only gives such values to a constructor,
// like
//
//	func wrap[S Store](s S, l *ratelimit.Limiter) Store { return NewRateLimitedStore(s, l) }

// declaration is a function or method that is declared with a body.
type declaration struct {
	fn   *types.Func
	decl *ast.FuncDecl
}

// instance is a leak by a type argument for a type parameter of a function that is
// declared here.
type instance struct {
	param *types.TypeParam
	leak
}

// fateOfArgument is the fate of the values of a raw type that is the type argument i of
// an instantiation of fn.
func (c *checker) fateOfArgument(fn *types.Func, i int) fate {
	if fn = fn.Origin(); fn.Pkg() == c.Pkg {
		return fate{typ: fn.Signature().TypeParams().At(i)}
	}
	return fate{kept: c.onlyWrapsArgument(fn, i)}
}

// onlyWrapsArgument reports whether fn only gives the values of its type argument i to
// a constructor.
func (c *checker) onlyWrapsArgument(fn *types.Func, i int) bool {
	if fn = fn.Origin(); fn.Pkg() == c.Pkg {
		return c.wrapsTypes[fn.Signature().TypeParams().At(i)]
	}
	f := new(wrapsParams)
	return fn.Pkg() != nil && c.ImportObjectFact(fn, f) && slices.Contains(f.Types, i)
}

// settleInstances reports the type arguments for type parameters whose values are not
// only given to a constructor. What parameters are for is known then.
//
// A type parameter may be the type argument for another. All are taken to be fine until
// one turns out not to be, as functions may call each other.
func (c *checker) settleInstances(functions []declaration) {
	for _, d := range functions {
		for tp := range d.fn.Signature().TypeParams().TypeParams() {
			c.wrapsTypes[tp] = true
		}
	}
	for changed := true; changed; {
		changed = false
		for _, d := range functions {
			for tp := range d.fn.Signature().TypeParams().TypeParams() {
				if c.wrapsTypes[tp] && !c.onlyWrapsType(d.decl, tp) {
					c.wrapsTypes[tp], changed = false, true
				}
			}
		}
	}
	for _, k := range c.instances {
		if !c.wrapsTypes[k.param] {
			c.leaks(k.leak, fate{})
		}
	}
}

// onlyWrapsType reports whether all values of the type parameter tp that a function has
// are its parameters and conversions, and whether these are given to a constructor and
// used in no other way than a variable with a raw value may be.
func (c *checker) onlyWrapsType(decl *ast.FuncDecl, tp *types.TypeParam) bool {
	methods := c.limitedMethods(tp)
	if len(methods) == 0 {
		return false
	}
	wraps, ok := false, true
	ast.PreorderStack(decl, nil, func(n ast.Node, stack []ast.Node) bool {
		if id, is := n.(*ast.Ident); is {
			if c.TypesInfo.Uses[id] == tp.Obj() && !c.namesType(decl, id, stack) {
				ok = false // there may be values of types that are made of it
			}
			fn, _ := c.TypesInfo.Uses[id].(*types.Func)
			args := c.TypesInfo.Instances[id].TypeArgs
			for i := range args.Len() {
				ok = ok && (!types.Identical(args.At(i), tp) || fn != nil && c.onlyWrapsArgument(fn, i))
			}
		}
		x, is := n.(ast.Expr)
		if _, parens := n.(*ast.ParenExpr); !is || parens {
			return ok
		}
		if tv := c.TypesInfo.Types[x]; !tv.IsValue() || !types.Identical(tv.Type, tp) {
			return ok
		}
		switch f := c.fateOf(x, methods, stack); {
		case f.kept:
			wraps = wraps || f.wrapped
		case f.in != nil && f.given:
			wraps, ok = true, ok && c.wraps(&f) && !c.leaves(&f) && !c.goesBack(&f)
		case f.in != nil && !types.Identical(f.in.Type(), tp):
			w, at := c.way(f.in), siteOf(f.in, x, stack)
			wraps, ok = wraps || c.isWrapped(w, at), ok && !c.escaped(w, at) && !c.isReturned(w, at)
		case f.in != nil: // all uses of that are looked at here
		default:
			ok = false
		}
		return ok
	})
	return wraps && ok
}

// namesType reports whether id, which names a type parameter of decl, is there to be
// the type of a parameter or variable or of a conversion, or a type argument of a
// function.
func (c *checker) namesType(decl *ast.FuncDecl, id *ast.Ident, stack []ast.Node) bool {
	switch n := stack[len(stack)-1].(type) {
	case *ast.Field:
		return stack[len(stack)-2] == decl.Type.Params
	case *ast.ValueSpec:
		return n.Type == id
	case *ast.CallExpr:
		return n.Fun == id
	case *ast.IndexExpr:
		return !c.TypesInfo.Types[n].IsType()
	case *ast.IndexListExpr:
		return !c.TypesInfo.Types[n].IsType()
	}
	return false
}
