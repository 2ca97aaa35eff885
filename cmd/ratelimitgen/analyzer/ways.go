package analyzer

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
)

// A raw value may pass through local variables, results and parameters on its way to a
// constructor. What is done with one of these is judged when all of its uses are
// known: a use matters if a raw value that was put there reaches it.

// way is what is known of a local variable, or of a parameter or named result of a
// function whose body is looked at.
type way struct {
	v        *types.Var
	param    bool
	result   bool
	leaks    []leak   // raw values that are put there
	wrapped  []site   // uses that give it to a constructor
	escapes  []site   // uses after which anything may call its methods
	given    []gift   // uses that put it in a parameter
	rebound  []region // where it holds what was assigned last
	again    []site   // uses that put it in itself
	returned []site   // uses of a parameter that return it

	// Of a variable that is no interface but holds raw values: a struct or a slice, say.
	decl    ast.Node // that declares it
	methods []string // of the values

	// Of what a parameter is given: whether it gets to a constructor, is returned, and
	// gets elsewhere.
	wraps, carries, leaves bool
}

// site is a place in the function that declares a variable, or in a function literal
// there, which may run at another time. The zero site is where a parameter is given.
type site struct {
	pos token.Pos
	lit bool
}

// gift is a use that puts a variable in a parameter or, by a loop, in another variable.
type gift struct {
	site
	fate
}

// region is the rest of a block, behind an assignment to a variable. As no other code
// runs between the two, a use in the region finds what was assigned there or in the
// region.
type region struct {
	assign   ast.Node
	from, to token.Pos
	again    bool // the block may run again with the same variable
}

// leak is a place where a raw value gets into limited interfaces.
type leak struct {
	x       ast.Expr
	stack   []ast.Node
	sources []*types.TypeName // the interfaces
	diag    diag.Diagnostic
	at      site  // where it is in a way
	then    *fate // see fate
}

// way is the one of v.
func (c *checker) way(v *types.Var) *way {
	w := c.ways[v]
	if w == nil {
		w = &way{v: v}
		c.ways[v] = w
	}
	return w
}

// follows reports whether all uses of v can be looked at.
func (c *checker) follows(v *types.Var) bool {
	w := c.ways[v]
	return isLocal(v) || w != nil && (w.param || w.result)
}

// declares notes the parameters and results of a function that is written here. What
// the results hold may be returned at any time if something recovers from a panic.
func (c *checker) declares(sig *types.Signature, body *ast.BlockStmt) {
	for v := range sig.Params().Variables() {
		if c.raw[v] == nil && len(c.limitedMethods(v.Type())) > 0 {
			c.way(v).param = true
		}
	}
	for v := range sig.Results().Variables() {
		if v.Name() != "" && len(c.limitedMethods(v.Type())) > 0 {
			c.way(v).result = !contains(body, func(n ast.Node) bool { _, is := n.(*ast.DeferStmt); return is })
		}
	}
}

// returns notes that a return without values, with this stack, gives away the results.
func (c *checker) returns(n *ast.ReturnStmt, stack []ast.Node) {
	if results := c.enclosingResults(stack); results != nil && len(n.Results) == 0 {
		for v := range results.Variables() {
			if w := c.ways[v]; w != nil {
				w.escapes = append(w.escapes, siteOf(v, n, stack))
			}
		}
	}
}

func contains(n ast.Node, is func(ast.Node) bool) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		found = found || n != nil && is(n)
		return !found
	})
	return found
}

// siteOf is where n, which has this stack, stands in the function that declares v.
func siteOf(v *types.Var, n ast.Node, stack []ast.Node) site {
	return site{n.Pos(), slices.ContainsFunc(stack, func(n ast.Node) bool {
		_, lit := n.(*ast.FuncLit)
		return lit && !encloses(n, v.Pos())
	})}
}

func encloses(n ast.Node, pos token.Pos) bool { return n.Pos() <= pos && pos < n.End() }

// rebinds notes the variables that an assignment, with this stack, gives another value
// for the rest of its block.
func (c *checker) rebinds(n *ast.AssignStmt, stack []ast.Node) {
	switch stack[len(stack)-1].(type) {
	case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
	default:
		return
	}
	for _, x := range n.Lhs {
		id, ok := x.(*ast.Ident)
		if !ok {
			continue
		}
		v, ok := c.TypesInfo.Uses[id].(*types.Var) // := may assign, too
		if !ok || !c.follows(v) || siteOf(v, n, stack).lit || c.jumps(stack) {
			continue
		}
		again := slices.ContainsFunc(stack, func(n ast.Node) bool {
			switch n.(type) {
			case *ast.ForStmt, *ast.RangeStmt:
				return !encloses(n, v.Pos())
			}
			return false
		})
		w := c.way(v)
		w.rebound = append(w.rebound, region{n, n.End(), stack[len(stack)-1].End(), again})
	}
}

// jumps reports whether the declaration that a node with this stack is in has a goto,
// which could leap over an assignment.
func (c *checker) jumps(stack []ast.Node) bool {
	decl := stack[1]
	found, ok := c.gotos[decl]
	if !ok {
		found = contains(decl, func(n ast.Node) bool { b, is := n.(*ast.BranchStmt); return is && b.Tok == token.GOTO })
		c.gotos[decl] = found
	}
	return found
}

// reaches reports whether a value that is put in a variable at one site may be found
// there at another.
func (w *way) reaches(from, to site) bool {
	in := func(s site, r region) bool { return r.from <= s.pos && s.pos < r.to }
	return !slices.ContainsFunc(w.rebound, func(r region) bool {
		return in(to, r) && !in(from, r) && !from.lit && !(to.lit && r.again)
	})
}

// isWrapped reports whether what is put in a variable at a site gets to a constructor.
func (c *checker) isWrapped(w *way, at site) bool {
	return slices.ContainsFunc(w.wrapped, func(s site) bool { return w.reaches(at, s) }) ||
		slices.ContainsFunc(w.given, func(g gift) bool { return c.wraps(&g.fate) && w.reaches(at, g.site) })
}

// isReturned reports whether what is given to a parameter is returned.
func (c *checker) isReturned(w *way, at site) bool {
	return slices.ContainsFunc(w.returned, func(s site) bool { return w.reaches(at, s) }) ||
		slices.ContainsFunc(w.given, func(g gift) bool { return c.goesBack(&g.fate) && w.reaches(at, g.site) })
}

// escaped reports whether what is put in a variable at a site gets elsewhere.
func (c *checker) escaped(w *way, at site) bool {
	return slices.ContainsFunc(w.escapes, func(s site) bool { return w.reaches(at, s) }) ||
		slices.ContainsFunc(w.given, func(g gift) bool {
			return (c.leaves(&g.fate) || !w.param && c.goesBack(&g.fate)) && w.reaches(at, g.site)
		})
}

// visit is a question that is being answered. One that comes up again meanwhile, as a
// value may be put in the same variable again and again, has no answer of its own.
type visit struct {
	kind byte
	w    *way
	at   site
}

// once asks a question unless it is being answered.
func (c *checker) once(kind byte, w *way, at site, ask func(*way, site) bool) bool {
	v := visit{kind, w, at}
	if c.visits[v] {
		return false
	}
	c.visits[v] = true
	defer delete(c.visits, v)
	return ask(w, at)
}

// wraps reports whether a value with the fate f gets to a constructor.
func (c *checker) wraps(f *fate) bool {
	switch {
	case f == nil:
		return false
	case f.given:
		w := c.way(f.in)
		return w.wraps || w.carries && c.wraps(f.then)
	case f.in != nil:
		return c.once('w', c.way(f.in), f.at, c.isWrapped)
	}
	return f.wrapped
}

// goesBack reports whether a value with the fate f is returned by the function it is in.
func (c *checker) goesBack(f *fate) bool {
	switch {
	case f == nil:
		return false
	case f.given:
		return c.way(f.in).carries && c.goesBack(f.then)
	case f.in != nil:
		return c.once('r', c.way(f.in), f.at, c.isReturned)
	}
	return f.returns
}

// leaves reports whether a value with the fate f gets elsewhere.
func (c *checker) leaves(f *fate) bool {
	switch {
	case f == nil:
		return true
	case f.given:
		w := c.way(f.in)
		return w.leaves || !w.wraps && !w.carries || w.carries && c.leaves(f.then)
	case f.in != nil:
		return c.once('e', c.way(f.in), f.at, c.escaped)
	}
	return !f.kept && !f.returns
}

// leaks reports a leak: at once, or when all uses of the variable are known that the
// value is put in.
func (c *checker) leaks(k leak, f fate) {
	switch {
	case f.kept:
	case f.typ != nil:
		k.stack = slices.Clone(k.stack)
		c.instances = append(c.instances, instance{f.typ, k})
	case f.in != nil:
		k.stack = slices.Clone(k.stack)
		k.then = f.then
		if !f.given {
			k.at = siteOf(f.in, k.x, k.stack)
		}
		w := c.way(f.in)
		w.leaks = append(w.leaks, k)
		for _, tn := range k.sources {
			if f.held {
				w.hold(k.stack[1], c.limitedMethods(tn.Type()))
			}
		}
	case c.find(k.x, k.stack, k.diag):
		for _, tn := range k.sources {
			c.report.Raw[nameOf(tn)] = true
		}
	}
}

// settle reports the leaks into variables and parameters that are not only given to a
// constructor. All uses of them are known then.
func (c *checker) settle(functions []declaration) {
	for _, w := range c.ways {
		w.rebound = slices.DeleteFunc(w.rebound, func(r region) bool { // by a raw value
			return slices.ContainsFunc(w.leaks, func(k leak) bool { return k.at.pos.IsValid() && encloses(r.assign, k.at.pos) }) ||
				slices.ContainsFunc(w.again, func(s site) bool { return encloses(r.assign, s.pos) })
		})
	}
	for _, w := range slices.Collect(maps.Values(c.ways)) {
		if w.decl != nil {
			c.holds(w)
		}
	}
	for again := true; again; again = c.unbind() {
		c.spread(func(w *way) *bool { return &w.wraps }, c.isWrapped)
		c.spread(func(w *way) *bool { return &w.carries }, c.isReturned)
	}
	c.spread(func(w *way) *bool { return &w.leaves }, c.escaped)
	for _, w := range slices.Collect(maps.Values(c.ways)) {
		for _, k := range w.leaks {
			f := &fate{in: w.v, at: k.at}
			if !k.at.pos.IsValid() { // by a call
				f = &fate{in: w.v, given: true, then: k.then}
			}
			if c.leaves(f) || c.goesBack(f) || w.decl == nil && !c.follows(w.v) || w.param && !c.wraps(f) {
				c.leaks(k, fate{})
			}
		}
	}
	c.settleInstances(functions)
}

// unbind forgets the assignments of what a function returns with a raw value inside, of
// which spread has found out, and reports whether there were any.
func (c *checker) unbind() bool {
	changed := false
	assigned := func(pos token.Pos, f *fate) {
		for f != nil && f.given && c.way(f.in).carries {
			f = f.then
		}
		if f == nil || f.in == nil || f.given {
			return
		}
		w := c.way(f.in)
		n := len(w.rebound)
		w.rebound = slices.DeleteFunc(w.rebound, func(r region) bool { return encloses(r.assign, pos) })
		changed = changed || len(w.rebound) < n
	}
	for _, w := range slices.Collect(maps.Values(c.ways)) {
		for _, g := range w.given {
			assigned(g.pos, &g.fate)
		}
		for _, k := range w.leaks {
			if w.carries {
				assigned(k.x.Pos(), k.then)
			}
		}
	}
	return changed
}

// hold notes that a variable, which decl declares, holds values with methods.
func (w *way) hold(decl ast.Node, methods []string) {
	w.decl = decl
	w.methods = append(w.methods, methods...)
}

// holds looks at the uses of a variable that holds raw values.
func (c *checker) holds(w *way) {
	ast.PreorderStack(w.decl, nil, func(n ast.Node, stack []ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok || c.TypesInfo.Uses[id] != w.v {
			return true
		}
		at := siteOf(w.v, id, stack)
		switch f := c.fateHeld(id, true, w.methods, stack); {
		case f.wrapped:
			w.wrapped = append(w.wrapped, at)
		case f.kept:
		case f.in != nil && f.given:
			w.given = append(w.given, gift{at, f})
		case f.in != nil && isLocal(f.in):
			f.at = siteOf(f.in, id, stack)
			w.given = append(w.given, gift{at, f})
		default:
			w.escapes = append(w.escapes, at)
		}
		return true
	})
}

// spread finds out what is true of parameters, as it may be of one that is given to
// another for which it is.
func (c *checker) spread(known func(*way) *bool, find func(*way, site) bool) {
	for changed := true; changed; {
		changed = false
		for _, w := range c.ways {
			if is := known(w); w.param && !*is && find(w, site{}) {
				*is, changed = true, true
			}
		}
	}
}

// onlyWraps notes which parameters and type parameters of the functions declared here
// are only given to a constructor, for packages that import this one.
func (c *checker) onlyWraps(functions []declaration) {
	for _, d := range functions {
		fn := d.fn
		f := new(wrapsParams)
		for i := range fn.Signature().Params().Len() {
			if w := c.ways[fn.Signature().Params().At(i)]; w != nil && !w.leaves {
				switch {
				case w.carries:
					f.Carries = append(f.Carries, i)
				case w.wraps:
					f.Params = append(f.Params, i)
				}
			}
		}
		for i := range fn.Signature().TypeParams().Len() {
			if c.wrapsTypes[fn.Signature().TypeParams().At(i)] {
				f.Types = append(f.Types, i)
			}
		}
		if len(f.Params)+len(f.Types)+len(f.Carries) > 0 {
			c.ExportObjectFact(fn, f)
		}
	}
}
