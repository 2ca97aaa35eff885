package analyzer

import (
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"slices"
	"strings"

	"github.com/ratelimitgen/ratelimitgen/parser/directive"
)

// limitedType is the fact that values of a type are to be wrapped.
type limitedType struct {
	Methods     []string // that have a limit, sorted
	Constructor string   // of the wrapper, "" if it is not generated
	Interface   bool
}

// limitedFunc is the fact that a function has a limit.
type limitedFunc struct {
	Constructor string // of the function with its limit, "" if it is not generated
}

// wrapperType is the fact that a type is a generated wrapper.
type wrapperType struct {
	Source      string // what it wraps, a type of its package
	Methods     []string
	Constructor string
}

// AFact marks a fact.
func (*limitedType) AFact() {}

// AFact marks a fact.
func (*limitedFunc) AFact() {}

// wrapperFunc is the fact that a function is the generated constructor of another
// with its limit.
type wrapperFunc struct {
	Source string // what it limits, a function of its package
}

// AFact marks a fact.
func (*wrapperType) AFact() {}

// AFact marks a fact.
func (*wrapperFunc) AFact() {}

// wrapsParams is the fact that a function gives some of its parameters, or the values
// of some of its type parameters, to the constructor of a wrapper, and does nothing
// else with them.
type wrapsParams struct {
	Params []int // ascending
	Types  []int // ascending
	// Carries are the parameters that a function returns, itself or inside of its only
	// result, and also does nothing else with.
	Carries []int // ascending
}

// AFact marks a fact.
func (*wrapsParams) AFact() {}

func (f *wrapsParams) String() string {
	text := fmt.Sprintf("onlyWraps%v", f.Params)
	if len(f.Types) > 0 {
		text += fmt.Sprintf("types%v", f.Types)
	}
	if len(f.Carries) > 0 {
		text += fmt.Sprintf("carries%v", f.Carries)
	}
	return text
}
func (f *limitedType) String() string { return "limited(" + strings.Join(f.Methods, ",") + ")" }
func (f *limitedFunc) String() string { return "limited" }
func (f *wrapperType) String() string {
	return fmt.Sprintf("wraps(%s,%s)", f.Source, strings.Join(f.Methods, ","))
}
func (f *wrapperFunc) String() string { return fmt.Sprintf("wraps(%s)", f.Source) }

// draft is what the directives say about a type.
type draft struct {
	all     bool // a limit on the type
	limited map[string]bool
	off     map[string]bool
}

// exportFacts notes what the package limits, and by which wrappers.
func (c *checker) exportFacts() {
	drafts := map[*types.TypeName]*draft{}
	functions := map[*types.Func]*limitedFunc{}
	for _, s := range c.sources {
		if s.test {
			continue // directives have no effect there, as is reported
		}
		targets, _ := c.targets(s)
		for _, t := range targets {
			c.draft(drafts, functions, t)
		}
	}
	limited := map[*types.TypeName]*limitedType{}
	for tn, d := range drafts {
		if methods := d.methods(tn.Type()); len(methods) > 0 {
			limited[tn] = &limitedType{Methods: methods, Interface: types.IsInterface(tn.Type())}
		}
	}
	for _, s := range c.sources {
		if s.ours {
			c.constructors(s.syntax, limited, functions)
		}
	}
	for tn, f := range limited {
		c.ExportObjectFact(tn, f)
		for _, name := range f.Methods {
			c.report.Limited = append(c.report.Limited, Method{nameOf(tn), name})
		}
	}
	for fn, f := range functions {
		c.ExportObjectFact(fn, f)
		c.report.Limited = append(c.report.Limited, Method{c.Pkg.Path(), fn.Name()})
	}
}

// draft notes what the directives of one declaration say.
func (c *checker) draft(drafts map[*types.TypeName]*draft, functions map[*types.Func]*limitedFunc, t *directive.Target) {
	has := func(verb string) bool {
		return slices.ContainsFunc(t.Directives, func(d *directive.Directive) bool { return d.Verb == verb })
	}
	if t.Kind == directive.Func {
		if fn, ok := c.Pkg.Scope().Lookup(t.Name).(*types.Func); ok && has(directive.VerbLimit) {
			functions[fn] = &limitedFunc{}
		}
		return
	}
	name := t.Type
	if t.Kind == directive.TypeDecl {
		name = t.Name
	}
	tn, ok := c.Pkg.Scope().Lookup(name).(*types.TypeName)
	if !ok {
		return
	}
	// A method may be declared on an alias of its type.
	if tn = named(tn.Type()); tn == nil || tn.Pkg() != c.Pkg {
		return
	}
	d := drafts[tn]
	if d == nil {
		d = &draft{limited: map[string]bool{}, off: map[string]bool{}}
		drafts[tn] = d
	}
	switch {
	case t.Kind == directive.TypeDecl:
		d.all = has(directive.VerbLimit)
	case has(directive.VerbLimit):
		d.limited[t.Name] = true
	case has(directive.VerbOff):
		d.off[t.Name] = true
	}
}

// methods lists the methods of t that have a limit.
func (d *draft) methods(t types.Type) []string {
	names := maps.Clone(d.limited)
	if d.all {
		if !types.IsInterface(t) {
			t = types.NewPointer(t)
		}
		for sel := range types.NewMethodSet(t).Methods() {
			if name := sel.Obj().Name(); sel.Obj().Exported() && !d.off[name] {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// constructors finds the wrappers of a generated file by their constructors, which
// are its functions with a *ratelimit.Limiter as the last parameter.
func (c *checker) constructors(file *ast.File, limited map[*types.TypeName]*limitedType, functions map[*types.Func]*limitedFunc) {
	for _, d := range file.Decls {
		decl, ok := d.(*ast.FuncDecl)
		if !ok || decl.Recv != nil || decl.Body == nil {
			continue
		}
		fn, ok := c.TypesInfo.Defs[decl.Name].(*types.Func)
		if !ok {
			continue
		}
		sig := fn.Signature()
		n := sig.Params().Len()
		if n == 0 || sig.Results().Len() != 1 || !isLimiter(sig.Params().At(n-1).Type()) {
			continue
		}
		if n == 1 {
			// The function that it limits is the only limited one that it calls.
			for id := range ast.Preorder(decl.Body) {
				if id, ok := id.(*ast.Ident); ok {
					if source, ok := c.TypesInfo.Uses[id].(*types.Func); ok && functions[source] != nil {
						functions[source].Constructor = fn.Name()
						c.ExportObjectFact(fn, &wrapperFunc{Source: source.Name()})
					}
				}
			}
			continue
		}
		source, wrapper := named(sig.Params().At(0).Type()), named(sig.Results().At(0).Type())
		if source == nil || wrapper == nil || wrapper.Pkg() != c.Pkg || limited[source] == nil {
			continue
		}
		f := limited[source]
		f.Constructor = fn.Name()
		c.ExportObjectFact(wrapper, &wrapperType{Source: source.Name(), Methods: f.Methods, Constructor: fn.Name()})
		c.wrapsFields(wrapper, &wrapped{source: source, methods: f.Methods, constructor: fn.Name()})
	}
}

// isLimiter reports whether t is *ratelimit.Limiter of the runtime.
func isLimiter(t types.Type) bool {
	p, ok := types.Unalias(t).(*types.Pointer)
	if !ok {
		return false
	}
	tn := named(p.Elem())
	return tn != nil && tn.Name() == "Limiter" && tn.Pkg() != nil && strings.HasSuffix(tn.Pkg().Path(), "runtime/ratelimit")
}

// named is the name of t, or of what t points to, without type arguments; nil if it
// has none.
func named(t types.Type) *types.TypeName {
	t = types.Unalias(t)
	if p, ok := t.(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	if n, ok := t.(*types.Named); ok {
		return n.Obj()
	}
	return nil
}

// limitedBy is the fact of tn if it limits method, or nil.
func (c *checker) limitedBy(tn *types.TypeName, method string) *limitedType {
	f := new(limitedType)
	if c.ImportObjectFact(tn, f) && slices.Contains(f.Methods, method) {
		return f
	}
	return nil
}

// wrappedBy is the fact of tn if it is a wrapper that limits method, or nil.
func (c *checker) wrappedBy(tn *types.TypeName, method string) *wrapperType {
	f := new(wrapperType)
	if c.ImportObjectFact(tn, f) && slices.Contains(f.Methods, method) {
		return f
	}
	return nil
}
