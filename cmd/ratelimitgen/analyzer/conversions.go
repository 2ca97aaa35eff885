package analyzer

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// conversions looks at what n converts to an interface, expressly or by putting it
// where a value of an interface type is wanted.
func (c *checker) conversions(n ast.Node, stack []ast.Node) {
	to := func(x ast.Expr, dst types.Type) { c.conversion(x, c.TypesInfo.TypeOf(x), dst, stack) }
	switch n := n.(type) {
	case *ast.CallExpr:
		c.call(n, stack)
	case *ast.AssignStmt:
		// A name that := declares gets the type of its value.
		if n.Tok == token.ASSIGN || n.Tok == token.DEFINE {
			var dst []types.Type
			for _, x := range n.Lhs {
				dst = append(dst, c.TypesInfo.TypeOf(x)) // nil for _
			}
			c.values(n.Rhs, dst, stack, func(i int, methods []string) fate { return c.fateAt(n.Lhs[i], methods) })
		}
	case *ast.ValueSpec:
		if n.Type != nil {
			var dst []types.Type
			for _, id := range n.Names {
				var t types.Type
				if id.Name != "_" { // what only asserts that a type has methods
					t = c.TypesInfo.TypeOf(n.Type)
				}
				dst = append(dst, t)
			}
			c.values(n.Values, dst, stack, func(i int, methods []string) fate { return c.fateAt(n.Names[i], methods) })
		}
	case *ast.ReturnStmt:
		if results := c.enclosingResults(stack); results != nil {
			c.values(n.Results, tupleTypes(results), stack, nil)
		}
	case *ast.SendStmt:
		if ch, ok := coreType(c.TypesInfo.TypeOf(n.Chan)).(*types.Chan); ok {
			to(n.Value, ch.Elem())
		}
	case *ast.IndexExpr:
		if m, ok := coreType(c.TypesInfo.TypeOf(n.X)).(*types.Map); ok {
			to(n.Index, m.Key())
		}
	case *ast.CompositeLit:
		c.literal(n, to)
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			c.rangeValues(n, stack)
		}
	}
}

// values looks at what the assignment of values, or of the results of one call, to
// places of the types dst converts. The fate of a result in the place i is for the
// caller to say; nil if it is not known.
func (c *checker) values(values []ast.Expr, dst []types.Type, stack []ast.Node, place func(i int, methods []string) fate) {
	if len(values) == len(dst) {
		for i, x := range values {
			c.conversion(x, c.TypesInfo.TypeOf(x), dst[i], stack)
		}
		return
	}
	if len(values) != 1 {
		return
	}
	if results, ok := c.TypesInfo.TypeOf(values[0]).(*types.Tuple); ok && results.Len() == len(dst) {
		for i, src := range tupleTypes(results) {
			c.convert(values[0], src, dst[i], stack, func(methods []string) fate {
				if place == nil {
					return fate{}
				}
				return place(i, methods)
			})
		}
	}
}

// call looks at the arguments of a call, or at what a conversion converts.
func (c *checker) call(call *ast.CallExpr, stack []ast.Node) {
	fun, ok := c.TypesInfo.Types[call.Fun]
	switch {
	case !ok:
		return
	case fun.IsType():
		if len(call.Args) == 1 {
			c.conversion(call.Args[0], c.TypesInfo.TypeOf(call.Args[0]), fun.Type, stack)
		}
		return
	case fun.IsBuiltin():
		c.builtin(call, stack)
		return
	}
	sig, ok := coreType(fun.Type).(*types.Signature)
	if !ok {
		return
	}
	params := tupleTypes(sig.Params())
	if c.constructs(sig) != nil {
		params[0] = nil // this is where raw values belong
	}
	args := len(call.Args)
	if args == 1 {
		if results, ok := c.TypesInfo.TypeOf(call.Args[0]).(*types.Tuple); ok {
			args = results.Len()
		}
	}
	if sig.Variadic() && !call.Ellipsis.IsValid() {
		last := params[len(params)-1]
		params = params[:len(params)-1]
		if s, ok := last.(*types.Slice); ok {
			last = s.Elem()
		}
		for len(params) < args {
			params = append(params, last)
		}
	}
	c.values(call.Args, params, stack, func(i int, methods []string) fate {
		f, _ := c.fateGiven(call, i)
		return f
	})
}

// builtin looks at the arguments of those built-in functions that convert them.
func (c *checker) builtin(call *ast.CallExpr, stack []ast.Node) {
	id, ok := ast.Unparen(call.Fun).(*ast.Ident)
	if !ok || len(call.Args) == 0 {
		return
	}
	first := coreType(c.TypesInfo.TypeOf(call.Args[0]))
	var dst types.Type
	switch t := first.(type) {
	case *types.Slice:
		if id.Name == "append" && !call.Ellipsis.IsValid() {
			dst = t.Elem()
		}
	case *types.Map:
		if id.Name == "delete" {
			dst = t.Key()
		}
	}
	if dst == nil {
		return
	}
	for _, x := range call.Args[1:] {
		c.conversion(x, c.TypesInfo.TypeOf(x), dst, stack)
	}
}

// literal looks at the elements of a composite literal.
func (c *checker) literal(lit *ast.CompositeLit, to func(ast.Expr, types.Type)) {
	var key, elem types.Type
	var fields *types.Struct
	t := c.TypesInfo.TypeOf(lit)
	if t == nil {
		return
	}
	switch t := coreType(pointee(t)).(type) {
	case *types.Struct:
		fields = t
	case *types.Slice:
		elem = t.Elem()
	case *types.Array:
		elem = t.Elem()
	case *types.Map:
		key, elem = t.Key(), t.Elem()
	}
	for i, x := range lit.Elts {
		kv, keyed := x.(*ast.KeyValueExpr)
		switch {
		case fields == nil && keyed:
			to(kv.Value, elem)
			if key != nil {
				to(kv.Key, key)
			}
		case fields == nil:
			to(x, elem)
		case keyed:
			if id, ok := kv.Key.(*ast.Ident); ok {
				if v, ok := c.TypesInfo.Uses[id].(*types.Var); ok {
					to(kv.Value, v.Type())
				}
			}
		case i < fields.NumFields():
			to(x, fields.Field(i).Type())
		}
	}
}

// rangeValues looks at the variables that a range statement assigns to.
func (c *checker) rangeValues(n *ast.RangeStmt, stack []ast.Node) {
	var key, value types.Type
	switch t := coreType(c.TypesInfo.TypeOf(n.X)).(type) {
	case *types.Slice:
		value = t.Elem()
	case *types.Array:
		value = t.Elem()
	case *types.Pointer:
		if a, ok := t.Elem().Underlying().(*types.Array); ok {
			value = a.Elem()
		}
	case *types.Map:
		key, value = t.Key(), t.Elem()
	case *types.Chan:
		key = t.Elem()
	case *types.Signature:
		if t.Params().Len() == 1 {
			if yield, ok := coreType(t.Params().At(0).Type()).(*types.Signature); ok {
				yields := append(tupleTypes(yield.Params()), nil, nil)
				key, value = yields[0], yields[1]
			}
		}
	}
	for _, v := range []struct {
		x   ast.Expr
		src types.Type
	}{{n.Key, key}, {n.Value, value}} {
		if v.x != nil {
			c.convert(v.x, v.src, c.TypesInfo.TypeOf(v.x), stack, func(methods []string) fate { return c.fateAt(v.x, methods) })
		}
	}
}

// typeArguments looks at what an instantiation takes for a constraint with methods:
// the generic code calls them.
func (c *checker) typeArguments(id *ast.Ident, stack []ast.Node) {
	inst, ok := c.TypesInfo.Instances[id]
	if !ok {
		return
	}
	var (
		params *types.TypeParamList
		fn     *types.Func
	)
	switch obj := c.TypesInfo.Uses[id].(type) {
	case *types.Func:
		fn = obj
		params = obj.Signature().TypeParams()
		if obj.Origin() != obj {
			params = obj.Origin().Signature().TypeParams()
		}
	case *types.TypeName:
		switch t := obj.Type().(type) {
		case *types.Named:
			params = t.Origin().TypeParams()
		case *types.Alias:
			params = t.Origin().TypeParams()
		}
	}
	for i := range min(params.Len(), inst.TypeArgs.Len()) {
		c.convert(id, inst.TypeArgs.At(i), params.At(i).Constraint(), stack, func([]string) fate {
			if fn == nil {
				return fate{}
			}
			return c.fateOfArgument(fn, i)
		})
	}
}

// conversion looks at a value x of type src where one of type dst is wanted. It is
// reported if a method of dst has a limit that src's does not.
func (c *checker) conversion(x ast.Expr, src, dst types.Type, stack []ast.Node) {
	if src != nil && dst != nil && types.IsInterface(src) && types.IsInterface(dst) && !types.Identical(src, dst) {
		c.becomes[x] = dst
	}
	c.convert(x, src, dst, stack, func(methods []string) fate { return c.fateOf(x, methods, stack) })
}

// convert is conversion for a value that x may be only one of, with its fate.
func (c *checker) convert(x ast.Expr, src, dst types.Type, stack []ast.Node, becomes func(methods []string) fate) {
	if src == nil || dst == nil || !types.IsInterface(dst) || types.Identical(src, dst) {
		return
	}
	iface, ok := dst.Underlying().(*types.Interface)
	if b, basic := src.(*types.Basic); !ok || basic && b.Info()&types.IsUntyped != 0 {
		return
	}
	var (
		raw     *limit // the first limit of src that dst gets past
		names   []string
		skipped []*limit // those of dst that src does not have, one for each of their interfaces
	)
	for i := range iface.NumMethods() {
		m := iface.Method(i)
		obj, index, _ := types.LookupFieldOrMethod(src, true, m.Pkg(), m.Name())
		fn, ok := obj.(*types.Func)
		if !ok {
			continue
		}
		has := c.limitOf(src, index, fn)
		if has != nil && has.raw {
			if raw == nil {
				raw = has
			}
			names = append(names, m.Name())
		}
		wants := c.limitOf(dst, []int{i}, m)
		if wants != nil && (has == nil || has.source != wants.source) &&
			!slices.ContainsFunc(skipped, func(l *limit) bool { return l.source == wants.source }) {
			skipped = append(skipped, wants)
		}
	}
	skipped = slices.DeleteFunc(skipped, func(l *limit) bool { return c.decorates(src, dst, l.source) })
	switch {
	case len(skipped) > 0:
		d := errRawInterface(c.typeString(src), c.typeString(dst), skipped[0].constructor)
		k := leak{x: x, stack: stack, diag: d}
		for _, l := range skipped {
			k.sources = append(k.sources, l.source)
		}
		c.leaks(k, becomes(c.limitedMethods(dst)))
	case raw != nil:
		c.find(x, stack, errRawValue(raw.source.Name(), c.typeString(dst), names, raw.constructor))
	}
}

// typeString is t as messages have it.
func (c *checker) typeString(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p == c.Pkg {
			return ""
		}
		return p.Name()
	})
}

// coreType is the underlying type of t or, if t is a type parameter, the one that
// all of its types have, or nil.
func coreType(t types.Type) types.Type {
	if t == nil {
		return nil
	}
	iface, ok := t.Underlying().(*types.Interface)
	if _, param := types.Unalias(t).(*types.TypeParam); !ok || !param {
		return t.Underlying()
	}
	var core types.Type
	for i := range iface.NumEmbeddeds() {
		u, ok := iface.EmbeddedType(i).(*types.Union)
		if !ok {
			u = types.NewUnion([]*types.Term{types.NewTerm(false, iface.EmbeddedType(i))})
		}
		for term := range u.Terms() {
			if core != nil && !types.Identical(core, term.Type().Underlying()) {
				return nil
			}
			core = term.Type().Underlying()
		}
	}
	return core
}

func tupleTypes(t *types.Tuple) []types.Type {
	list := make([]types.Type, 0, t.Len())
	for v := range t.Variables() {
		list = append(list, v.Type())
	}
	return list
}
