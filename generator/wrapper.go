package generator

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/types"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimitgen/ratelimitgen/parser"
)

// wrapper is a generated type with the names that it uses.
type wrapper struct {
	*parser.Wrapper
	file    *file
	recv    string // receiver
	field   string // field that holds the wrapped value
	next    string // parameter of the constructor
	limiter string // parameter of the constructor
	sealed  string // interface that is embedded, "" if none is
	methods []*method
}

func (f *file) newWrapper(pw *parser.Wrapper) *wrapper {
	w := &wrapper{Wrapper: pw, file: f}
	if pw.OfFunction() {
		w.reserveParams(pw.Methods[0])
		w.methods = []*method{w.newMethod(pw.Methods[0], nil)}
		return w
	}
	ctor := f.scope.child()
	w.next = ctor.allot("next", "next")
	w.limiter = ctor.allot("limiter", "limiter")
	w.recv = w.receiver()

	fields := &scope{used: map[string]bool{"_": true}}
	for _, m := range pw.Methods {
		fields.reserve(m.Name)
		w.reserveParams(m)
	}
	w.field = fields.allot("next", "next")
	if w.Sealed != nil {
		// Lower-case even if nothing else is, so that nobody can set or replace it.
		w.sealed = f.scope.allot(lowerFirst(pw.Name)+"Sealed", "sealed")
		fields.reserve(w.sealed)
	}
	for _, m := range pw.Methods {
		w.methods = append(w.methods, w.newMethod(m, fields))
	}
	return w
}

// reserveParams keeps the functions that a limited method calls from being called
// like its parameters and results, where those would hide them.
func (w *wrapper) reserveParams(pm *parser.Method) {
	if len(pm.Policies) == 0 {
		return
	}
	s := w.methodScope(pm)
	for _, tuple := range []*types.Tuple{pm.Sig.Params(), pm.Sig.Results()} {
		for v := range tuple.Variables() {
			if name := s.allot(v.Name(), argName(v.Type())); strings.HasPrefix(name, w.stem(pm)) {
				w.file.scope.reserve(name)
			}
		}
	}
}

// stem begins the names of everything at package scope that belongs to a method.
func (w *wrapper) stem(pm *parser.Method) string {
	if w.OfFunction() {
		return w.ofBuild(lowerFirst(pm.Name), pm)
	}
	return w.ofBuild(lowerFirst(w.Source.Name())+upperFirst(pm.Name), pm)
}

// ofBuild makes sure that a stem is that of pm alone. In one file names are allotted,
// but a build may have several files of ours, and what another one declares must not
// depend on whether it is there. So if, by the names that any file of the package
// declares, there may be another method or function with this stem, it gets an end of
// its own.
func (w *wrapper) ofBuild(stem string, pm *parser.Method) string {
	if w.Constraint == nil {
		return stem // the others avoid its names
	}
	for name := range w.file.pkg.Declared {
		rest, ok := strings.CutPrefix(stem, lowerFirst(name))
		if ok && name != w.Source.Name() && (rest == "" || upperFirst(rest) == rest) {
			sum := sha256.Sum256([]byte(w.Source.Name() + "." + pm.Name))
			return stem + "_" + hex.EncodeToString(sum[:4])
		}
	}
	return stem
}

// receiver picks one receiver name for all methods: the first letter of the
// source type unless a parameter has that name somewhere.
func (w *wrapper) receiver() string {
	avoid := w.file.scope.child()
	for _, m := range w.Methods {
		for _, tuple := range []*types.Tuple{m.Sig.Params(), m.Sig.Results()} {
			for v := range tuple.Variables() {
				avoid.reserve(v.Name())
			}
		}
	}
	first, _ := utf8.DecodeRuneInString(w.Source.Name())
	for _, name := range []string{strings.ToLower(string(first)), "w"} {
		if !avoid.taken(name) {
			return name
		}
	}
	return avoid.allot("wrapper", "wrapper")
}

// typeParams renders the type parameter list of a declaration, "[K comparable]".
func (w *wrapper) typeParams() *jen.Statement {
	var ps []jen.Code
	list := slices.Collect(w.TypeParams())
	for i, tp := range list {
		p := w.file.imports.typ(tp)
		if i+1 == len(list) || !types.Identical(list[i+1].Constraint(), tp.Constraint()) || w.file.imports.constraint(list[i+1]) != w.file.imports.constraint(tp) {
			p.Id(w.file.imports.constraint(tp)) // which neighbours share
		}
		ps = append(ps, p)
	}
	if len(ps) == 0 {
		return jen.Null()
	}
	return jen.Types(ps...)
}

// inferred reports whether a call of the source, a generic function, need not name its
// type arguments.
func (w *wrapper) inferred() bool {
	seen := map[*types.TypeName]bool{}
	note := typeWriter{typeName: func(tn *types.TypeName) string {
		seen[tn] = true
		return ""
	}}
	for v := range w.Methods[0].Sig.Params().Variables() {
		note.write(v.Type())
	}
	for tp := range w.TypeParams() {
		if !seen[tp.Obj()] {
			return false
		}
	}
	return true
}

// typeArgs renders the type arguments of a use, "[K]".
func (w *wrapper) typeArgs() *jen.Statement {
	var ps []jen.Code
	for tp := range w.TypeParams() {
		ps = append(ps, w.file.imports.typ(tp))
	}
	if len(ps) == 0 {
		return jen.Null()
	}
	return jen.Types(ps...)
}

// nextType is the type of the wrapped value.
func (w *wrapper) nextType() *jen.Statement {
	t := jen.Id(w.Source.Name()).Add(w.typeArgs())
	if w.Pointer {
		return jen.Op("*").Add(t)
	}
	return t
}

// decls renders everything that belongs to the wrapper.
func (w *wrapper) decls() []jen.Code {
	if w.OfFunction() {
		return w.methods[0].decls()
	}
	f := w.file
	var sealed, fields, values []jen.Code
	if w.sealed != "" {
		sealed = []jen.Code{
			comment(wrap(fmt.Sprintf("%s has the methods that only another package can declare. Every other method of it is declared below.", w.sealed))...),
			jen.Type().Id(w.sealed).Add(w.typeParams()).Interface(f.imports.typ(w.Sealed)),
		}
		fields = append(fields, jen.Id(w.sealed).Add(w.typeArgs()))
		values = append(values, field(w.sealed, jen.Id(w.next)))
	}
	fields = append(fields, jen.Id(w.field).Add(w.nextType()))
	values = append(values, field(w.field, jen.Id(w.next)))
	for _, m := range w.methods {
		if m.limited() {
			fields = append(fields, jen.Id(m.gate).Op("*").Id(f.runtime("Gate")))
			values = append(values, field(m.gate, jen.Id(w.limiter).Dot("MustGate").Call(jen.Op("&").Id(m.spec))))
		}
	}
	ds := []jen.Code{
		comment(wrap(fmt.Sprintf("%s asks a limiter before it calls the %s it wraps.", w.Name, w.Source.Name()))...),
		jen.Type().Id(w.Name).Add(w.typeParams()).Struct(fields...),
	}
	ds = append(ds, sealed...)
	ds = append(ds, w.constructor(values)...)
	ds = append(ds, w.assertions()...)
	for _, m := range w.methods {
		ds = append(ds, m.decls()...)
	}
	return ds
}

func (w *wrapper) constructor(values []jen.Code) []jen.Code {
	f := w.file
	var body []jen.Code
	doc := fmt.Sprintf("%s returns next limited by limiter. It panics if limiter is nil or has no %s for a limit.", w.Constructor, lacks(w.Wrapper))
	if w.nilable() {
		doc = fmt.Sprintf("%s returns next limited by limiter. It panics if either is nil or limiter has no %s for a limit.", w.Constructor, lacks(w.Wrapper))
		body = append(body, jen.If(jen.Id(w.next).Op("==").Nil()).Block(
			jen.Panic(jen.Lit(w.Constructor+": next is nil")),
		))
	}
	body = append(body, jen.Return(jen.Op("&").Id(w.Name).Add(w.typeArgs()).Values(append(values, jen.Line())...)))
	return []jen.Code{
		comment(wrap(doc)...),
		jen.Func().Id(w.Constructor).Add(w.typeParams()).Params(
			jen.Id(w.next).Add(w.nextType()),
			jen.Id(w.limiter).Op("*").Id(f.runtime("Limiter")),
		).Op("*").Id(w.Name).Add(w.typeArgs()).Block(body...),
	}
}

// nilable reports whether next can be compared with nil.
func (w *wrapper) nilable() bool {
	if w.Pointer {
		return true
	}
	switch w.Source.Type().Underlying().(type) {
	case *types.Interface, *types.Signature, *types.Map, *types.Chan, *types.Slice, *types.Pointer:
		return true
	}
	return false
}

// assertions renders what makes the compiler check the interfaces that the wrapper
// stands for.
func (w *wrapper) assertions() []jen.Code {
	var ds []jen.Code
	assert := func(iface *jen.Statement) {
		a := jen.Var().Id("_").Add(iface).Op("=").Parens(jen.Op("*").Id(w.Name).Add(w.typeArgs())).Parens(jen.Nil())
		if w.Generic() {
			a = jen.Func().Id("_").Add(w.typeParams()).Params().Block(a)
		}
		ds = append(ds, a)
	}
	if types.IsInterface(w.Source.Type()) {
		assert(w.nextType())
	}
	for _, t := range w.Implements {
		assert(w.file.imports.typ(t))
	}
	return ds
}

// lacks names what a limiter may lack for the limits of w.
func lacks(w *parser.Wrapper) string {
	for _, m := range w.Methods {
		for _, p := range m.Policies {
			if p.Algorithm.IsCustom() {
				return "store or algorithm"
			}
		}
	}
	return "store"
}
