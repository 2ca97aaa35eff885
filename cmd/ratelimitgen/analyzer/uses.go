package analyzer

import (
	"go/ast"
	"go/types"
	"iter"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
)

// uses looks at every use of something limited in a file.
func (c *checker) uses(file *ast.File) {
	ast.PreorderStack(file, nil, func(n ast.Node, stack []ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			c.rebinds(n, stack)
		case *ast.ReturnStmt:
			c.returns(n, stack)
		case *ast.SelectorExpr:
			switch sel := c.TypesInfo.Selections[n]; {
			case sel == nil:
			case sel.Kind() == types.FieldVal:
				c.rawUse(n, stack)
			default:
				c.methodUse(n, sel, stack)
			}
		case *ast.Ident:
			if fn, ok := c.TypesInfo.Uses[n].(*types.Func); ok && fn.Signature().Recv() == nil {
				c.functionUse(n, fn.Origin(), stack)
			}
			c.rawUse(n, stack)
			c.typeArguments(n, stack)
		}
		c.conversions(n, append(stack, n))
		return true
	})
}

// declared lists the functions and methods with bodies that files declare, and notes
// the parameters of these and of function literals.
func (c *checker) declared(files []*source) []declaration {
	var functions []declaration
	for _, f := range files {
		for n := range ast.Preorder(f.syntax) {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if fn, ok := c.TypesInfo.Defs[n.Name].(*types.Func); ok && n.Body != nil {
					c.takes(fn.Signature())
					c.declares(fn.Signature(), n.Body)
					functions = append(functions, declaration{fn, n})
				}
			case *ast.FuncLit:
				if sig, ok := c.TypesInfo.TypeOf(n).(*types.Signature); ok {
					c.takes(sig)
					c.declares(sig, n.Body)
				}
			}
		}
	}
	for _, f := range c.sources {
		c.binds(f.syntax)
	}
	return functions
}

// methodUse looks at the selection of a method.
func (c *checker) methodUse(n *ast.SelectorExpr, sel *types.Selection, stack []ast.Node) {
	fn := sel.Obj().(*types.Func)
	l := c.limitOf(sel.Recv(), sel.Index(), fn)
	switch {
	case l == nil || c.rawVariable(n.X) != nil: // of which rawUse knows
		return
	case l.wrapper:
		c.report.Sites[Method{nameOf(l.source), fn.Name()}]++
		return
	case !l.raw:
		c.report.InterfaceSites[Method{nameOf(l.source), fn.Name()}]++
		return
	}
	name := l.source.Pkg().Name() + "." + l.source.Name() + "." + fn.Name()
	self, delegates := c.inside(n, fn, stack)
	switch {
	case delegates:
	case self:
		c.find(n.Sel, stack, warnSelfCall(name))
	case isCalled(n, stack):
		c.find(n.Sel, stack, errCall(name, l.source.Name(), l.constructor))
	default:
		c.find(n.Sel, stack, errValue(name, l.source.Name(), l.constructor))
	}
}

// functionUse looks at a use of a function.
func (c *checker) functionUse(id *ast.Ident, fn *types.Func, stack []ast.Node) {
	if w := new(wrapperFunc); fn.Pkg() != nil && c.ImportObjectFact(fn, w) {
		c.report.Sites[Method{fn.Pkg().Path(), w.Source}]++
		return
	}
	f := new(limitedFunc)
	if fn.Pkg() == nil || !c.ImportObjectFact(fn, f) {
		return
	}
	name := fn.Pkg().Name() + "." + fn.Name()
	var expr ast.Expr = id
	if sel, ok := stack[len(stack)-1].(*ast.SelectorExpr); ok {
		expr, stack = sel, stack[:len(stack)-1] // with the name of its package
	}
	switch decl := enclosingFunc(stack); {
	case decl != nil && c.TypesInfo.Defs[decl.Name] == fn:
		c.find(id, stack, warnSelfCall(name))
	case isCalled(expr, stack):
		c.find(id, stack, errFunctionCall(name, f.Constructor))
	default:
		c.find(id, stack, errFunctionValue(name, f.Constructor))
	}
}

// find reports what is wrong with n unless that is excused.
func (c *checker) find(n ast.Node, stack []ast.Node, d diag.Diagnostic) bool {
	if c.excused(n.Pos(), stack) {
		return false
	}
	c.add(n.Pos(), n.End(), d)
	return true
}

// limit is the limit that a selected method has.
type limit struct {
	source      *types.TypeName // the limited type
	constructor string          // of its wrapper
	wrapper     bool            // the method is the wrapper's
	// raw is set if the selection gets past the limit: it is neither a method of the
	// wrapper nor one of a limited interface, whose values are judged where they are
	// converted to it.
	raw bool
}

// limitOf returns the limit of a method that is selected from a value of type recv by way of
// the fields in index, or nil if it has none.
func (c *checker) limitOf(recv types.Type, index []int, fn *types.Func) *limit {
	for tn := range selectedFrom(recv, index, fn) {
		if f := c.wrappedBy(tn, fn.Name()); f != nil {
			if source, ok := tn.Pkg().Scope().Lookup(f.Source).(*types.TypeName); ok {
				return &limit{source: source, constructor: f.Constructor, wrapper: true}
			}
		}
		if f := c.limitedBy(tn, fn.Name()); f != nil {
			return &limit{source: tn, constructor: f.Constructor, raw: !f.Interface}
		}
	}
	return nil
}

// selectedFrom yields the named types that a selection goes through, from that of
// the value to the one that declares the method.
func selectedFrom(recv types.Type, index []int, fn *types.Func) iter.Seq[*types.TypeName] {
	return func(yield func(*types.TypeName) bool) {
		t := recv
		for len(index) > 0 {
			if tn := named(t); tn != nil && !yield(tn) {
				return
			}
			s, ok := pointee(t).Underlying().(*types.Struct)
			if !ok || len(index) == 1 || index[0] >= s.NumFields() {
				break
			}
			t, index = s.Field(index[0]).Type(), index[1:]
		}
		if r := fn.Signature().Recv(); r != nil {
			if tn := named(r.Type()); tn != nil {
				yield(tn)
			}
		}
	}
}

func pointee(t types.Type) types.Type {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		return p.Elem()
	}
	return t
}

// inside reports whether the method fn is selected from the receiver of the method
// that n stands in, and whether that is an outer type's own answer to a limit
// of the type that it embeds, to which the generator makes it say limit or off.
func (c *checker) inside(n *ast.SelectorExpr, fn *types.Func, stack []ast.Node) (self, delegates bool) {
	decl := enclosingFunc(stack)
	if decl == nil || decl.Recv == nil || len(decl.Recv.List) == 0 || len(decl.Recv.List[0].Names) == 0 {
		return false, false
	}
	receiver := c.TypesInfo.Defs[decl.Recv.List[0].Names[0]]
	isReceiver := func(x ast.Expr) bool {
		if star, ok := ast.Unparen(x).(*ast.StarExpr); ok {
			x = star.X
		}
		id, ok := ast.Unparen(x).(*ast.Ident)
		return ok && receiver != nil && c.TypesInfo.Uses[id] == receiver
	}
	if isReceiver(n.X) {
		return true, false
	}
	field, ok := ast.Unparen(n.X).(*ast.SelectorExpr)
	if !ok || !isReceiver(field.X) || decl.Name.Name != fn.Name() {
		return false, false
	}
	v, ok := c.TypesInfo.Uses[field.Sel].(*types.Var)
	return false, ok && v.Embedded() && c.decided(decl)
}

// decided reports whether a directive stands on decl.
func (c *checker) decided(decl *ast.FuncDecl) bool {
	for _, s := range c.sources {
		targets, _ := c.targets(s)
		for _, t := range targets {
			if t.Node == decl {
				return true
			}
		}
	}
	return false
}

// enclosingFunc is the declared function that a node with this stack is in, or nil.
func enclosingFunc(stack []ast.Node) *ast.FuncDecl {
	for _, n := range stack {
		if decl, ok := n.(*ast.FuncDecl); ok {
			return decl
		}
	}
	return nil
}

// isCalled reports whether expr is what a call calls.
func isCalled(expr ast.Expr, stack []ast.Node) bool {
	for i := len(stack) - 1; i >= 0; i-- {
		switch parent := stack[i].(type) {
		case *ast.ParenExpr:
			expr = parent
		case *ast.IndexExpr:
			if parent.X != expr {
				return false
			}
			expr = parent
		case *ast.IndexListExpr:
			if parent.X != expr {
				return false
			}
			expr = parent
		case *ast.CallExpr:
			return parent.Fun == expr
		default:
			return false
		}
	}
	return false
}

// enclosingResults are the results of the innermost function that a node with this
// stack is in, or nil.
func (c *checker) enclosingResults(stack []ast.Node) *types.Tuple {
	for i := len(stack) - 1; i >= 0; i-- {
		var t types.Type
		switch n := stack[i].(type) {
		case *ast.FuncLit:
			t = c.TypesInfo.TypeOf(n)
		case *ast.FuncDecl:
			t = c.TypesInfo.TypeOf(n.Name)
		default:
			continue
		}
		if sig, ok := t.(*types.Signature); ok {
			return sig.Results()
		}
		return nil
	}
	return nil
}
