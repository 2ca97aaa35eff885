package generator

import (
	"fmt"
	"go/token"
	"go/types"
	"regexp"
	"slices"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimitgen/ratelimitgen/parser"
	"github.com/ratelimitgen/ratelimitgen/parser/directive"
	"github.com/ratelimitgen/ratelimitgen/parser/keyexpr"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// method is a method of a wrapper with the names that it uses.
type method struct {
	*parser.Method
	wrapper    *wrapper
	params     []string
	results    []string // names of the results in the signature, nil if they have none
	err        string   // variable for what the gate says
	refusal    string   // variable for the response of a fiber handler
	header     string   // variable for a field of its header
	bare       bool     // results that have names are returned without: they hold a lock
	permit     string   // variable for what is settled after the call
	chargeVar  string   // variable for the charges, if some depend on a condition
	outs       []string // variables for the results, if something looks at them
	gate       string   // field, or of a function variable, that holds the gate
	ctx        string   // variable for the context of the call, if it is computed
	limitedVar string   // variable for the limited function that a function falls back to
	spec       string   // package-level variable
	zeros      []string // variables for zero results of a refusal, "" where none is needed
	policy     []*policy
}

// policy is a policy of a method with the functions that it needs.
type policy struct {
	*parser.Policy
	buf string // variable for the key, "" if the key is global

	key, cost, limit, when, unless, count, after *computed // nil if there is none
}

// computed is a function that computes something of a call.
type computed struct {
	keyFunction
	// render gives the declaration and what to pass. Regular expressions are shared
	// among the functions of a file, so it works only once all of them are known.
	render func() (*jen.Statement, []keyArg)
}

func (w *wrapper) newMethod(pm *parser.Method, fields *scope) *method {
	m := &method{Method: pm, wrapper: w}
	s := w.methodScope(pm)
	params := pm.Sig.Params()
	m.params = make([]string, params.Len())
	for _, named := range []bool{true, false} { // so that those of the source keep theirs
		for i := range params.Len() {
			v := params.At(i)
			if has := v.Name() != "" && v.Name() != "_"; has == named {
				m.params[i] = s.allot(v.Name(), argName(v.Type()))
			}
		}
	}
	if namedResults(pm.Sig) {
		for v := range pm.Sig.Results().Variables() {
			m.results = append(m.results, s.allot(v.Name(), "res"))
		}
	}
	if !m.limited() {
		return m
	}
	if pm.ResultsHoldLock() && (m.results != nil || m.looks()) {
		m.bare = true
		if m.results == nil {
			m.results = m.resultNames(s)
		}
	}
	if fields == nil {
		w.limiter = s.allot("limiter", "limiter")
		m.gate = s.allot("gate", "gate")
		if pm.OnLimit == directive.OnLimitFallback {
			m.limitedVar = s.allot("limited", "limited")
		}
	} else {
		m.gate = fields.allot(lowerFirst(pm.Name), "gate")
	}
	stem := w.stem(pm)
	m.spec = w.file.scope.allot(stem+"Spec", "spec")
	for i, pp := range pm.Policies {
		n := ""
		if len(pm.Policies) > 1 {
			n = fmt.Sprint(i + 1)
		}
		m.policy = append(m.policy, m.newPolicy(pp, stem, n, s))
	}
	switch {
	case m.OnLimit != directive.OnLimitError && m.OnLimit != directive.OnLimitWait:
		m.err = s.allot("refused", "refused")
	case m.results != nil:
		m.err = m.results[len(m.results)-1]
	default:
		m.err = s.allot("err", "err")
	}
	if m.Handler && m.Carrier != parser.RequestCarrier {
		m.refusal, m.header = s.allot("refusal", "refusal"), s.allot("h", "h")
	}
	if pm.FromRequest() || pm.Identified && pm.Carrier == parser.StreamCarrier {
		m.ctx = s.allot("ctx", "ctx")
	}
	if m.settles() {
		m.permit = s.allot("permit", "permit")
	}
	if len(m.policy) > 1 && slices.ContainsFunc(m.policy, (*policy).guarded) {
		m.chargeVar = s.allot("charges", "charges")
	}
	if m.looks() {
		m.outs = m.resultVariables(s)
	}
	m.zeros = m.zeroVariables(s)
	return m
}

// newPolicy allots the names that a policy needs and renders its functions.
func (m *method) newPolicy(pp *parser.Policy, stem, n string, s *scope) *policy {
	f := m.wrapper.file
	p := &policy{Policy: pp}
	named := func(what string) string {
		name := f.scope.allot(stem+what+n, "compute")
		s.reserve(name)
		return name
	}
	if !pp.Global {
		p.buf = s.allot("buf"+n, "buf")
		name := named("Key")
		p.key = &computed{keyFunction{name, pp.KeyExpr.Nodes()}, func() (*jen.Statement, []keyArg) {
			return f.keyFunc(m, name, pp.KeyExpr)
		}}
	}
	for _, e := range []struct {
		expr   *keyexpr.Expr
		what   string
		render func(*method, string, *keyexpr.Expr) (*jen.Statement, []keyArg)
		to     **computed
	}{
		{pp.CostExpr, "Cost", f.amountFunc, &p.cost},
		{pp.MaxExpr, "Max", f.amountFunc, &p.limit},
		{pp.When, "When", f.condFunc, &p.when},
		{pp.Unless, "Unless", f.condFunc, &p.unless},
		{pp.CountExpr, "Counts", f.condFunc, &p.count},
		{pp.CostAfterExpr, "CostAfter", f.amountFunc, &p.after},
	} {
		if e.expr == nil {
			continue
		}
		name := named(e.what)
		*e.to = &computed{keyFunction{name, []keyexpr.Node{e.expr.Node}}, func() (*jen.Statement, []keyArg) {
			return e.render(m, name, e.expr)
		}}
	}
	return p
}

// guarded reports whether p applies to some calls only.
func (p *policy) guarded() bool { return p.when != nil || p.unless != nil }

// functions lists the functions of p.
func (p *policy) functions() []*computed {
	return slices.DeleteFunc([]*computed{p.key, p.cost, p.limit, p.when, p.unless, p.count, p.after},
		func(fn *computed) bool { return fn == nil })
}

// resultVariables allots variables for the results of the wrapped method. The
// error is held by the variable that the gate's answer was in.
func (m *method) resultVariables(s *scope) []string {
	if m.results != nil {
		return m.results
	}
	var outs []string
	last := m.Sig.Results().Len() - 1
	for i := range m.Sig.Results().Len() {
		if i == last && m.returnsErr() {
			outs = append(outs, m.err)
		} else {
			outs = append(outs, s.allot("res", "res"))
		}
	}
	return outs
}

// resultNames allots names for results of which some have none.
func (m *method) resultNames(s *scope) []string {
	var names []string
	results := m.Sig.Results()
	for i := range results.Len() {
		name := results.At(i).Name()
		switch {
		case name != "" && name != "_":
		case i == results.Len()-1 && m.returnsErr():
			name = "err"
		default:
			name = "res"
		}
		names = append(names, s.allot(name, "res"))
	}
	return names
}

// zeroVariables allots variables for the results of a refusal that are zero and that
// nothing shorter gives.
func (m *method) zeroVariables(s *scope) []string {
	zeros := make([]string, m.Sig.Results().Len())
	if m.results != nil || m.OnLimit == directive.OnLimitFallback {
		return zeros
	}
	for i := range zeros {
		if m.zeroValue(i) == nil {
			zeros[i] = s.allot("zero", "zero")
		}
	}
	return zeros
}

// zeroValue renders the zero value of result i, or returns nil if that takes a
// variable: its type is a type parameter, or the package gives another meaning to what
// Go predeclares.
func (m *method) zeroValue(i int) *jen.Statement {
	f := m.wrapper.file
	t := m.Sig.Results().At(i).Type()
	if _, ok := types.Unalias(t).(*types.TypeParam); ok {
		return nil
	}
	value := "nil"
	switch u := t.Underlying().(type) {
	case *types.Struct, *types.Array:
		return jen.Id(f.imports.typeString(t)).Values()
	case *types.Basic:
		switch info := u.Info(); {
		case info&types.IsString != 0:
			return jen.Lit("")
		case info&types.IsNumeric != 0:
			return jen.Lit(0)
		case info&types.IsBoolean != 0:
			value = "false"
		case u.Kind() != types.UnsafePointer:
			return nil
		}
	}
	if f.pkg.Declared[value] {
		return nil
	}
	return jen.Id(value)
}

// methodScope returns the scope of a method's parameters, results and locals. They
// keep the names of the source, as long as these hide nothing that the method
// itself mentions.
func (w *wrapper) methodScope(pm *parser.Method) *scope {
	s := &scope{used: map[string]bool{"_": true, "nil": true, "false": true, "byte": true, w.recv: true}}
	if w.OfFunction() {
		s.reserve(w.Source.Name())
		s.reserve(pm.Fallback.Text)
	}
	f := w.file
	mention := func(text string) {
		for _, word := range identifiers.FindAllString(literals.ReplaceAllString(text, ""), -1) {
			s.reserve(word)
		}
	}
	for _, tuple := range []*types.Tuple{pm.Sig.Params(), pm.Sig.Results()} {
		for v := range tuple.Variables() {
			mention(f.imports.typeString(v.Type()))
		}
	}
	for tp := range w.TypeParams() {
		s.reserve(f.imports.typeString(tp))
	}
	mention(f.imports.alias[runtimePath])
	mention(f.imports.alias["context"])
	mention(f.imports.alias[httpPath])
	if slices.ContainsFunc(pm.Policies, func(p *parser.Policy) bool { return p.MaxExpr != nil && p.Algorithm == ratelimit.TimeQuota }) {
		mention(f.imports.alias["time"])
		s.reserve("int64")
	}
	return s
}

var (
	identifiers = regexp.MustCompile(`[\pL_][\pL_\pN]*`)
	literals    = regexp.MustCompile("`[^`]*`" + `|"(?:[^"\\]|\\.)*"`) // tags of fields
)

func (m *method) limited() bool { return len(m.Policies) > 0 }

// argName names a parameter that the source does not name: after its type, unless that
// gives a name that means something else.
func argName(t types.Type) string {
	if isContext(t) {
		return "ctx"
	}
	t = types.Unalias(t)
	if p, ok := t.(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	n, ok := t.(*types.Named)
	if !ok || n.Obj().Pkg() == nil {
		return "arg"
	}
	name := lowerFirst(n.Obj().Name())
	if name == n.Obj().Name() || name == n.Obj().Pkg().Name() || types.Universe.Lookup(name) != nil || token.IsKeyword(name) {
		return "arg"
	}
	return name
}

func isContext(t types.Type) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "context" && named.Obj().Name() == "Context"
}

// namedResults reports whether every result has a name that can be referred to.
func namedResults(sig *types.Signature) bool {
	for v := range sig.Results().Variables() {
		if v.Name() == "" || v.Name() == "_" {
			return false
		}
	}
	return sig.Results().Len() > 0
}

// settles reports whether something is to be done after the call.
func (m *method) settles() bool {
	return slices.ContainsFunc(m.Policies, (*parser.Policy).After)
}

// looks reports whether something looks at the results of the call.
func (m *method) looks() bool {
	return slices.ContainsFunc(m.Policies, func(p *parser.Policy) bool { return p.CountExpr != nil || p.CostAfterExpr != nil })
}

// returnsErr reports whether a refusal is the last result.
func (m *method) returnsErr() bool {
	return m.OnLimit == directive.OnLimitError || m.OnLimit == directive.OnLimitWait
}

// decls renders the method, its inventory and its functions.
func (m *method) decls() []jen.Code {
	w := m.wrapper
	var ds []jen.Code
	if w.OfFunction() {
		ds = append(m.function(), m.specDecl())
	} else {
		fn := m.signature(jen.Func().Params(jen.Id(w.recv).Op("*").Id(w.Name).Add(w.typeArgs())).Id(m.Name)).Block(m.body()...)
		if !m.limited() {
			ds := []jen.Code{comment(fmt.Sprintf("%s calls the wrapped %s; no limit applies.", m.Name, w.Source.Name()))}
			return append(append(ds, m.deprecation()...), fn)
		}
		ds = append(m.doc(), fn, m.specDecl())
	}
	for _, p := range m.policy {
		for _, fn := range p.functions() {
			decl, _ := fn.render()
			ds = append(ds, decl)
		}
	}
	return ds
}

// signature adds the parameters and results of m to fn.
func (m *method) signature(fn *jen.Statement) *jen.Statement {
	f := m.wrapper.file
	fn.Params(f.variables(m.Sig.Params(), m.params, m.Sig.Variadic())...)
	if results := f.variables(m.Sig.Results(), m.results, false); len(results) == 1 && m.results == nil {
		fn.Add(results...)
	} else if len(results) > 0 {
		fn.Params(results...)
	}
	return fn
}

// variables renders parameters or results. Neighbours of one type share it, as
// in a, b int; without names each stands for itself.
func (f *file) variables(t *types.Tuple, names []string, variadic bool) []jen.Code {
	var list []jen.Code
	for i := 0; i < t.Len(); i++ {
		typ := f.imports.typeString(t.At(i).Type())
		if variadic && i == t.Len()-1 {
			typ = "..." + f.imports.typeString(t.At(i).Type().(*types.Slice).Elem())
		}
		if names == nil {
			list = append(list, jen.Id(typ))
			continue
		}
		last := i == t.Len()-1 || variadic && i == t.Len()-2
		if last || f.imports.typeString(t.At(i+1).Type()) != typ {
			list = append(list, jen.Id(names[i]+" "+typ))
		} else {
			list = append(list, jen.Id(names[i]))
		}
	}
	return list
}

func (m *method) doc() []jen.Code {
	ds := []jen.Code{comment(append(wrap(m.Name+" "+m.what()), "")...)}
	for _, p := range m.Policies {
		ds = append(ds, codeLine(p.Directive))
	}
	return append(ds, m.deprecation()...)
}

// deprecation renders the rest of the comment if the source is deprecated.
func (m *method) deprecation() []jen.Code {
	if m.Deprecated == "" {
		return nil
	}
	return []jen.Code{comment(append([]string{""}, wrap(m.Deprecated)...)...)}
}

// what says what a limited method does; the directives follow.
func (m *method) what() string {
	source, its := "the wrapped "+m.wrapper.Source.Name(), "its "
	if m.wrapper.OfFunction() {
		source, its = m.Name, ""
	}
	switch {
	case m.OnLimit == directive.OnLimitWait:
		return "calls " + source + " once it is admitted by"
	case m.OnLimit == directive.OnLimitZero:
		return "calls " + source + ", or returns zero values if it is not admitted by"
	case m.OnLimit == directive.OnLimitFallback:
		return "calls " + source + ", or " + its + m.Fallback.Text + " if it is not admitted by"
	case m.Handler:
		return "calls " + source + ", or answers the request with a refusal if it is not admitted by"
	}
	return "calls " + source + " if it is admitted by"
}
