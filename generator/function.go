package generator

import (
	"fmt"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimitgen/ratelimitgen/parser"
)

// function renders the function that takes the place of the source,
//
//	func NewRateLimitedLogin(limiter *ratelimit.Limiter) func(name string) error
func (m *method) function() []jen.Code {
	w, f := m.wrapper, m.wrapper.file
	lines := append(wrap(fmt.Sprintf("%s returns %s limited by limiter. It panics if limiter is nil or has no %s for a limit.", w.Constructor, w.Source.Name(), lacks(w.Wrapper))), "")
	lines = append(lines, wrap("The function "+m.what())...)
	ds := []jen.Code{comment(append(lines, "")...)}
	for _, p := range m.Policies {
		ds = append(ds, codeLine(p.Directive))
	}
	ds = append(ds, m.deprecation()...)
	setup := []jen.Code{jen.Id(m.gate).Op(":=").Id(w.limiter).Dot("MustGate").Call(jen.Op("&").Id(m.spec))}
	if other := m.limitedFallback(); other != nil {
		setup = append(setup, jen.Id(m.limitedVar).Op(":=").Id(other.Constructor).Add(w.typeArgs()).Call(jen.Id(w.limiter)))
	}
	decl := jen.Func().Id(w.Constructor).Add(w.typeParams()).
		Params(jen.Id(w.limiter).Op("*").Id(f.runtime("Limiter"))).
		Add(m.signature(jen.Func())).
		Block(append(setup, jen.Return(m.signature(jen.Func()).Block(m.body()...)))...)
	return append(ds, decl)
}

// limitedFallback is the limited function that m falls back to, or nil.
func (m *method) limitedFallback() *parser.Wrapper {
	w := m.wrapper
	if !w.OfFunction() {
		return nil
	}
	for _, other := range w.file.pkg.Wrappers {
		if other.OfFunction() && other.Source.Name() == m.Fallback.Text {
			return other
		}
	}
	return nil
}
