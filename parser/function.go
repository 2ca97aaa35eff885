package parser

import (
	"go/types"
	"slices"

	"github.com/ratelimitgen/ratelimitgen/parser/directive"
)

// function makes the model of what is generated for a limited function, or nil if
// there is nothing to make.
func (b *builder) function(d *draft, fn *types.Func) *Wrapper {
	first, md := d.first(), d.methods[d.name]
	if md == nil || len(md.limits) == 0 {
		b.res.Diags.Add(errWrapperWithoutLimit(first, d.name))
		return nil
	}
	w := &Wrapper{Source: fn, Pos: first.Pos}
	_, w.Constructor = names(d.name)
	if d.wrapper != nil {
		b.wrapperOptions(w, d)
	}
	sig := fn.Signature()
	m := &Method{
		Name:       d.name,
		Sig:        sig,
		Qualified:  b.pkg.Name + "." + d.name,
		File:       md.file,
		Handler:    isHandler(sig),
		Deprecated: deprecated(md.decl),
	}
	m.Context, m.Carrier = carrierOf(sig)
	w.Methods = []*Method{m}
	if hasInvalid(sig) || b.errorIn(md.decl) != "" {
		b.res.Diags.Add(errBadSignature(md.limits[0], m.Qualified, b.brokenBecause(md.decl)))
		return nil
	}
	policies, known := b.policies(d, m, md.limits, nil)
	m.Policies = policies
	m.identify()
	if !known || !b.refusable(d, m, md, md.limits[0], nil) || len(policies) == 0 {
		return nil
	}
	var own []types.Object
	if m.OnLimit == directive.OnLimitFallback {
		own = append(own, b.pkg.Types.Scope().Lookup(m.Fallback.Text))
	}
	w.Constraint = b.constraintOfWrapper(w, own)
	return w
}

// functionFallback is fallback for a function.
func (b *builder) functionFallback(m *Method) bool {
	scope := b.pkg.Types.Scope()
	fn, ok := scope.Lookup(m.Fallback.Text).(*types.Func)
	if !ok {
		functions := slices.DeleteFunc(scope.Names(), func(name string) bool {
			_, ok := scope.Lookup(name).(*types.Func)
			return !ok
		})
		b.res.Diags.Add(errNoFallbackFunction(m.Fallback, b.pkg.Name, functions))
		return false
	}
	return b.fits(m, fn.Type())
}

// checkFunctionFallbacks is checkFallbacks for all functions of the package.
func (b *builder) checkFunctionFallbacks(p *Package) {
	var functions []*Method
	for _, w := range p.Wrappers {
		if w.OfFunction() {
			functions = append(functions, w.Methods...)
		}
	}
	b.checkFallbacks(functions)
}

// isFunction reports whether d is the draft of a function.
func (b *builder) isFunction(d *draft) bool {
	_, ok := b.pkg.Types.Scope().Lookup(d.name).(*types.Func)
	return ok
}
