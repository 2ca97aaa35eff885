package analyzer

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// A value of a limited interface is a wrapper or something made of one, wherever it
// comes from, because what is not is reported where it is converted. A few are known
// to be raw without a conversion that is reported: what a wrapper wraps, what a
// constructor is given, and what a local variable holds on its way there. Every use
// of these is judged instead.

// wrapped is what is known of a variable or field that holds a raw value as an
// interface.
type wrapped struct {
	source      *types.TypeName
	methods     []string // that have a limit, by their names
	constructor string
}

// rawVariable is what is known of the variable or field that x reads if it holds a
// raw value, or nil.
func (c *checker) rawVariable(x ast.Expr) *wrapped {
	switch x := ast.Unparen(x).(type) {
	case *ast.Ident:
		if v, ok := c.TypesInfo.Uses[x].(*types.Var); ok && !v.IsField() {
			return c.raw[v]
		}
	case *ast.SelectorExpr:
		if sel := c.TypesInfo.Selections[x]; sel != nil && sel.Kind() == types.FieldVal {
			return c.raw[sel.Obj().(*types.Var).Origin()]
		}
	}
	return nil
}

// wrapsFields notes the fields of a wrapper that hold what it wraps as an interface.
func (c *checker) wrapsFields(wrapper *types.TypeName, w *wrapped) {
	s, ok := wrapper.Type().Underlying().(*types.Struct)
	if !ok {
		return
	}
	for v := range s.Fields() {
		if types.IsInterface(v.Type()) { // the others are gates, or show what they are
			c.raw[v] = w
		}
	}
}

// takes notes the parameter of a function that is written like a constructor and has
// its type. A raw value may be given to it, so that it is answerable for that.
func (c *checker) takes(sig *types.Signature) {
	f := c.constructs(sig)
	if f == nil {
		return
	}
	v := sig.Params().At(0)
	if methods := c.limitedMethods(v.Type()); len(methods) > 0 {
		c.raw[v] = &wrapped{source: named(v.Type()), methods: methods, constructor: f.Constructor}
	}
}

// constructs is the fact of the wrapper that a function of type sig makes of its
// first parameter, or nil.
func (c *checker) constructs(sig *types.Signature) *wrapperType {
	if sig.Params().Len() != 2 || sig.Results().Len() != 1 || !isLimiter(sig.Params().At(1).Type()) {
		return nil
	}
	source, wrapper := named(sig.Params().At(0).Type()), named(sig.Results().At(0).Type())
	f := new(wrapperType)
	if source == nil || wrapper == nil || source.Pkg() != wrapper.Pkg() || !c.ImportObjectFact(wrapper, f) || f.Source != source.Name() {
		return nil
	}
	return f
}

// limitedMethods lists the methods of an interface that have a limit.
func (c *checker) limitedMethods(t types.Type) []string {
	iface, ok := t.Underlying().(*types.Interface)
	if !ok {
		return nil
	}
	var names []string
	for i := range iface.NumMethods() {
		if m := iface.Method(i); c.limitOf(t, []int{i}, m) != nil {
			names = append(names, m.Name())
		}
	}
	return names
}

// rawUse looks at a use of a variable or field that is an interface. Of one that
// holds a raw value it is reported unless the value stays what it is; of a local one
// it is noted, as it matters if a raw value is put there.
func (c *checker) rawUse(x ast.Expr, stack []ast.Node) {
	if w := c.rawVariable(x); w != nil {
		f := c.fateOf(x, w.methods, stack)
		name := w.source.Pkg().Name() + "." + w.source.Name()
		switch {
		case f.kept:
		case f.method != nil && isCalled(f.method, f.stack):
			c.find(f.method.Sel, stack, errCall(name+"."+f.method.Sel.Name, w.source.Name(), w.constructor))
		case f.method != nil:
			c.find(f.method.Sel, stack, errValue(name+"."+f.method.Sel.Name, w.source.Name(), w.constructor))
		default:
			d := errRawUse(w.source.Name(), c.typeString(c.TypesInfo.TypeOf(x)), w.methods, w.constructor)
			c.leaks(leak{x: x, stack: stack, sources: []*types.TypeName{w.source}, diag: d}, f)
		}
		return
	}
	id, ok := x.(*ast.Ident)
	if !ok {
		return
	}
	v, ok := c.TypesInfo.Uses[id].(*types.Var)
	if !ok || !c.follows(v) {
		return
	}
	methods := c.limitedMethods(v.Type())
	if len(methods) == 0 {
		return
	}
	w, at := c.way(v), siteOf(v, x, stack)
	switch f := c.fateOf(x, methods, stack); {
	case f.wrapped:
		w.wrapped = append(w.wrapped, at)
	case f.kept:
	case f.in != nil && f.given:
		w.given = append(w.given, gift{at, f})
	case f.in == v: // inside of a decorator, say
		w.again = append(w.again, at)
	case f.returns && w.param:
		w.returned = append(w.returned, at)
	default:
		w.escapes = append(w.escapes, at)
	}
}

// isLocal reports whether v is a variable that a function declares for itself, of an
// interface type.
func isLocal(v *types.Var) bool {
	return v.Kind() == types.LocalVar && types.IsInterface(v.Type())
}

// fate is what becomes of a raw value.
type fate struct {
	kept    bool              // nobody can call a limited method on it
	wrapped bool              // it is kept because it is given to a constructor
	in      *types.Var        // the variable or parameter that it is put in
	held    bool              // it is put there inside of another value
	given   bool              // it is put there by a call of the parameter's function
	at      site              // where it is in the variable, for then
	then    *fate             // of the result of that call, if the function returns it
	returns bool              // it is the only result of a declared function, or inside of that
	typ     *types.TypeParam  // the type parameter whose values it is among
	method  *ast.SelectorExpr // that selects a limited method of it
	stack   []ast.Node        // of method
}

// fateOf says what becomes of the value of x, which has the given limited methods
// and the last of stack as its parent.
func (c *checker) fateOf(x ast.Expr, methods []string, stack []ast.Node) fate {
	return c.fateHeld(x, false, methods, stack)
}

// fateHeld is fateOf for a value that x may only hold, as a literal does.
func (c *checker) fateHeld(x ast.Expr, held bool, methods []string, stack []ast.Node) fate {
	for len(stack) > 0 {
		parent := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		switch n := parent.(type) {
		case *ast.ParenExpr:
			x = n
			continue
		case *ast.SelectorExpr:
			if slices.Contains(methods, n.Sel.Name) {
				return fate{method: n, stack: stack}
			}
			return fate{kept: !held}
		case *ast.BinaryExpr, *ast.SwitchStmt, *ast.CaseClause: // a comparison
			return fate{kept: !held}
		case *ast.UnaryExpr:
			if held { // a literal's address
				x = n
				continue
			}
		case *ast.KeyValueExpr, *ast.CompositeLit:
			lit, ok := n.(*ast.CompositeLit)
			if kv, keyed := n.(*ast.KeyValueExpr); keyed && kv.Value == x {
				lit, ok = stack[len(stack)-1].(*ast.CompositeLit)
				stack = stack[:len(stack)-1]
			}
			if !ok || !c.visible(x, methods) {
				break
			}
			if _, is := coreType(c.TypesInfo.TypeOf(lit)).(*types.Struct); is {
				x, held = lit, true
				continue
			}
			if held {
				break
			}
			switch n := stack[len(stack)-1].(type) {
			case *ast.RangeStmt:
				if n.X == lit && n.Tok == token.DEFINE && n.Value != nil {
					return c.fateAt(n.Value, methods)
				}
			case *ast.AssignStmt, *ast.ValueSpec:
				if id, ok := assigned(n, lit).(*ast.Ident); ok && id.Name != "_" {
					return c.fatePut(id, true, methods)
				}
			}
		case *ast.IndexExpr:
			if held && n.X == x { // an element
				x, held = n, false
				continue
			}
		case *ast.TypeAssertExpr:
			if s, ok := stack[max(len(stack)-2, 0)].(*ast.TypeSwitchStmt); ok && n.Type == nil {
				return fate{kept: c.onlyHidden(s, methods)}
			}
			return fate{kept: !held && n.Type != nil && !shows(c.TypesInfo.TypeOf(n.Type), methods)}
		case *ast.CallExpr:
			fun := c.TypesInfo.Types[n.Fun]
			if fun.IsType() && n.Fun != x && c.visible(x, methods) {
				x = n
				continue
			}
			sig, ok := coreType(fun.Type).(*types.Signature)
			if ok && len(n.Args) == 2 && n.Args[0] == x && c.constructs(sig) != nil && types.IsInterface(sig.Params().At(0).Type()) {
				return fate{kept: true, wrapped: true}
			}
			if i := slices.Index(n.Args, x); i >= 0 && c.visible(x, methods) {
				if c.carriedElsewhere(n, i) {
					x, held = n, true
					continue
				}
				if f, known := c.fateGiven(n, i); known {
					if f.given {
						f.then = c.fateOfResult(n, methods, stack)
					}
					return f
				}
			}
		case *ast.AssignStmt:
			if slices.Contains(n.Lhs, x) {
				return fate{kept: true}
			}
			if dst := assigned(n, x); dst != nil && c.visible(x, methods) {
				return c.fatePut(dst, held, methods)
			}
		case *ast.RangeStmt:
			if n.Key == x || n.Value == x {
				return fate{kept: true}
			}
			if n.X == x && held && n.Tok == token.DEFINE && n.Value != nil {
				return c.fateAt(n.Value, methods)
			}
		case *ast.ReturnStmt:
			// Of a function literal that is called where it stands.
			if i := called(stack); i >= 0 && len(n.Results) == 1 {
				x, stack = stack[i].(*ast.CallExpr), stack[:i]
				continue
			}
			if c.visible(x, methods) && len(n.Results) == 1 && isDeclared(stack) {
				return fate{returns: true}
			}
		case *ast.ValueSpec:
			if dst := assigned(n, x); dst != nil && c.visible(x, methods) {
				return c.fatePut(dst, held, methods)
			}
		}
		break
	}
	return fate{kept: !c.visible(x, methods)}
}

// onlyHidden reports whether a type switch has no case that shows one of the methods,
// and does not use its variable where that has the type of the value.
func (c *checker) onlyHidden(n *ast.TypeSwitchStmt, methods []string) bool {
	for _, clause := range n.Body.List {
		clause := clause.(*ast.CaseClause)
		for _, t := range clause.List {
			if shows(c.TypesInfo.TypeOf(t), methods) {
				return false
			}
		}
		v := c.TypesInfo.Implicits[clause]
		if v == nil || !shows(v.Type(), methods) {
			continue
		}
		for n := range ast.Preorder(clause) {
			if id, ok := n.(*ast.Ident); ok && c.TypesInfo.Uses[id] == v {
				return false
			}
		}
	}
	return true
}

// fateAt is the fate of a raw value that is assigned to x, of whose type its methods
// are.
func (c *checker) fateAt(x ast.Expr, methods []string) fate {
	if c.rawVariable(x) != nil {
		return fate{kept: true}
	}
	id, ok := ast.Unparen(x).(*ast.Ident)
	if !ok {
		return fate{}
	}
	if id.Name == "_" {
		return fate{kept: true}
	}
	if v, ok := c.TypesInfo.ObjectOf(id).(*types.Var); ok && c.follows(v) && shows(v.Type(), methods) {
		return fate{in: v}
	}
	return fate{}
}

// fatePut is fateAt for a value that may be held by what is assigned to x.
func (c *checker) fatePut(x ast.Expr, held bool, methods []string) fate {
	if id, ok := x.(*ast.Ident); ok && held {
		if v, ok := c.TypesInfo.ObjectOf(id).(*types.Var); ok && v.Kind() == types.LocalVar && !types.IsInterface(v.Type()) {
			return fate{in: v, held: true}
		}
	}
	return c.fateAt(x, methods)
}

// fateOfResult is the fate of a raw value that is the result of a call or inside of it.
func (c *checker) fateOfResult(call *ast.CallExpr, methods []string, stack []ast.Node) *fate {
	f := c.fateHeld(call, true, methods, stack)
	if f.in != nil && !f.given {
		f.at = siteOf(f.in, call, stack)
		if f.held {
			c.way(f.in).hold(stack[1], methods)
		}
	}
	return &f
}

// carriedElsewhere reports whether a call gives the argument i to a function of another
// package that returns it.
func (c *checker) carriedElsewhere(call *ast.CallExpr, i int) bool {
	f, i := c.parameter(call, i)
	fact := new(wrapsParams)
	return i >= 0 && f.elsewhere(c.Pkg) && c.ImportObjectFact(f.fn, fact) && slices.Contains(fact.Carries, i)
}

// isDeclared reports whether the innermost function in the stack is a declared one.
func isDeclared(stack []ast.Node) bool {
	for _, n := range slices.Backward(stack) {
		switch n.(type) {
		case *ast.FuncDecl:
			return true
		case *ast.FuncLit:
			return false
		}
	}
	return false
}

// assigned is what n, an assignment or a declaration of variables, assigns the value of
// x to, or nil.
func assigned(n ast.Node, x ast.Expr) ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if i := slices.Index(n.Rhs, x); i >= 0 && len(n.Lhs) == len(n.Rhs) {
			return n.Lhs[i]
		}
	case *ast.ValueSpec:
		if i := slices.Index(n.Values, x); i >= 0 && len(n.Names) == len(n.Values) {
			return n.Names[i]
		}
	}
	return nil
}

// called returns the index in the stack of the call of the innermost function, if that
// is a literal which is called where it stands, or -1.
func called(stack []ast.Node) int {
	for i := len(stack) - 1; i > 0; i-- {
		switch n := stack[i].(type) {
		case *ast.FuncDecl:
			return -1
		case *ast.FuncLit:
			if call, ok := stack[i-1].(*ast.CallExpr); ok && call.Fun == n {
				return i - 1
			}
			return -1
		}
	}
	return -1
}

// fateGiven is the fate of a raw value as the argument i of a call, if anything is
// known of what is called.
func (c *checker) fateGiven(call *ast.CallExpr, i int) (f fate, known bool) {
	callee, i := c.parameter(call, i)
	if i < 0 {
		return fate{}, false
	}
	v := callee.sig.Params().At(i)
	if callee.elsewhere(c.Pkg) {
		fact := new(wrapsParams)
		known = c.ImportObjectFact(callee.fn, fact) && slices.Contains(fact.Params, i)
		return fate{kept: known, wrapped: known}, known
	}
	known = len(c.limitedMethods(v.Type())) > 0
	if known {
		f = fate{in: v, given: true}
	}
	return f, known
}

// visible reports whether the methods can still be called when x is converted to what
// is wanted where it stands.
func (c *checker) visible(x ast.Expr, methods []string) bool {
	dst, ok := c.becomes[x]
	return !ok || shows(dst, methods)
}

// shows reports whether t is an interface with one of the methods.
func shows(t types.Type, methods []string) bool {
	if t == nil { // of code with errors
		return false
	}
	iface, ok := t.Underlying().(*types.Interface)
	if !ok {
		return false
	}
	for m := range iface.Methods() {
		if slices.Contains(methods, m.Name()) {
			return true
		}
	}
	return false
}
