package generator

import (
	"fmt"
	"go/types"
	"regexp"
	"time"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimitgen/ratelimitgen/parser"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// method is a method of a wrapper with the names that it uses.
type method struct {
	*parser.Method
	wrapper *wrapper
	params  []string
	results []string // names of the results, empty if they have none
	zeros   []string // variables for the zero results of a refusal
	err     string
	gate    string // field that holds the gate
	spec    string // package-level variable
	policy  []policy
}

// policy holds the names that one policy of a method uses.
type policy struct {
	*parser.Policy
	buf      string // buffer for the key, "" if the key is global
	keyFunc  string
	costFunc string // "" if the cost is constant
}

func (w *wrapper) newMethod(pm *parser.Method, fields *scope) *method {
	m := &method{Method: pm, wrapper: w}
	s := w.methodScope(pm)
	for v := range pm.Sig.Params().Variables() {
		m.params = append(m.params, s.allot(v.Name(), argName(v.Type())))
	}
	if namedResults(pm.Sig) {
		for v := range pm.Sig.Results().Variables() {
			m.results = append(m.results, s.allot(v.Name(), "res"))
		}
	}
	if !m.limited() {
		return m
	}
	if m.results != nil {
		m.zeros = m.results[:len(m.results)-1]
		m.err = m.results[len(m.results)-1]
	} else {
		for range pm.Sig.Results().Len() - 1 {
			m.zeros = append(m.zeros, s.allot("zero", "zero"))
		}
		m.err = s.allot("err", "err")
	}
	m.gate = fields.allot(lowerFirst(pm.Name), "gate")
	stem := w.stem(pm)
	m.spec = w.file.scope.allot(stem+"Spec", "spec")
	for i, pp := range pm.Policies {
		n := ""
		if len(pm.Policies) > 1 {
			n = fmt.Sprint(i + 1)
		}
		p := policy{Policy: pp}
		if !pp.Global {
			p.buf = s.allot("buf"+n, "buf")
			p.keyFunc = w.file.scope.allot(stem+"Key"+n, "key")
			s.reserve(p.keyFunc)
		}
		if pp.CostExpr != nil {
			p.costFunc = w.file.scope.allot(stem+"Cost"+n, "cost")
			s.reserve(p.costFunc)
		}
		m.policy = append(m.policy, p)
	}
	return m
}

// methodScope returns the scope of a method's parameters, results and locals. They
// keep the names of the source, as long as these hide nothing that the method
// itself mentions.
func (w *wrapper) methodScope(pm *parser.Method) *scope {
	s := &scope{used: map[string]bool{"_": true, "nil": true, "byte": true, w.recv: true}}
	f := w.file
	mention := func(text string) {
		for _, word := range identifiers.FindAllString(text, -1) {
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
	return s
}

var identifiers = regexp.MustCompile(`[\pL_][\pL_\pN]*`)

func (m *method) limited() bool { return len(m.Policies) > 0 }

// argName names a parameter that the source does not name.
func argName(t types.Type) string {
	if isContext(t) {
		return "ctx"
	}
	return "arg"
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

// decls renders the method, its inventory and its key functions.
func (m *method) decls() []jen.Code {
	w, f := m.wrapper, m.wrapper.file
	fn := jen.Func().
		Params(jen.Id(w.recv).Op("*").Id(w.Name).Add(w.typeArgs())).
		Id(m.Name).Params(f.variables(m.Sig.Params(), m.params, m.Sig.Variadic())...)
	if results := f.variables(m.Sig.Results(), m.results, false); len(results) == 1 && m.results == nil {
		fn.Add(results...)
	} else if len(results) > 0 {
		fn.Params(results...)
	}
	fn.Block(m.body()...)
	if !m.limited() {
		return []jen.Code{comment(fmt.Sprintf("%s calls the wrapped %s; no limit applies.", m.Name, w.Source.Name())), fn}
	}
	ds := m.doc()
	ds = append(ds, fn, m.specDecl())
	for _, p := range m.policy {
		if p.keyFunc != "" {
			decl, _ := f.keyFunc(m, p)
			ds = append(ds, decl)
		}
		if p.costFunc != "" {
			decl, _ := f.costFunc(m, p)
			ds = append(ds, decl)
		}
	}
	return ds
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
	ds := []jen.Code{
		comment(fmt.Sprintf("%s calls the wrapped %s if it is admitted by", m.Name, m.wrapper.Source.Name()), ""),
	}
	for _, p := range m.Policies {
		ds = append(ds, codeLine(p.Directive))
	}
	return ds
}

// body renders the statements of the method.
func (m *method) body() []jen.Code {
	w := m.wrapper
	var args []jen.Code
	for i, name := range m.params {
		if m.Sig.Variadic() && i == len(m.params)-1 {
			args = append(args, jen.Id(name).Op("..."))
		} else {
			args = append(args, jen.Id(name))
		}
	}
	var body []jen.Code
	if m.limited() {
		body = m.ask()
	}
	call := jen.Id(w.recv).Dot(w.field).Dot(m.Name).Call(args...)
	if m.Sig.Results().Len() > 0 {
		call = jen.Return(call)
	}
	return append(body, call)
}

// ask renders the question to the gate and the way out on refusal.
func (m *method) ask() []jen.Code {
	f := m.wrapper.file
	var body []jen.Code
	var bufs []jen.Code
	for _, p := range m.policy {
		if p.buf != "" {
			bufs = append(bufs, jen.Id(p.buf))
		}
	}
	if len(bufs) > 0 {
		body = append(body, jen.Var().List(bufs...).Index(jen.Lit(64)).Byte())
	}
	gate := jen.Id(m.wrapper.recv).Dot(m.gate)
	ctx := m.context()
	var ask *jen.Statement
	switch {
	case len(m.policy) > 1:
		var charges []jen.Code
		for _, p := range m.policy {
			c := []jen.Code{jen.Id("Cost").Op(":").Add(m.cost(p))}
			if p.buf != "" {
				c = append([]jen.Code{jen.Id("Key").Op(":").Add(m.key(p))}, c...)
			}
			charges = append(charges, jen.Line().Values(c...))
		}
		charges = append(charges, jen.Line())
		ask = gate.Dot("AllowAll").Call(ctx, jen.Index().Id(f.runtime("Charge")).Values(charges...))
	case m.policy[0].costFunc == "" && m.policy[0].Cost == 1:
		ask = gate.Dot("Allow").Call(ctx, m.key(m.policy[0]))
	default:
		ask = gate.Dot("AllowN").Call(ctx, m.key(m.policy[0]), m.cost(m.policy[0]))
	}
	assign := ":="
	if m.results != nil {
		assign = "="
	}
	var out, ret []jen.Code
	for i, z := range m.zeros {
		if m.results == nil {
			out = append(out, jen.Var().Id(z).Add(f.imports.typ(m.Sig.Results().At(i).Type())))
		}
		ret = append(ret, jen.Id(z))
	}
	out = append(out, jen.Return(append(ret, jen.Id(m.err))...))
	return append(body, jen.If(jen.Id(m.err).Op(assign).Add(ask), jen.Id(m.err).Op("!=").Nil()).Block(out...))
}

// context renders the context that the gate gets.
func (m *method) context() *jen.Statement {
	if m.Context < 0 {
		return jen.Id(m.wrapper.file.imports.alias["context"]).Dot("Background").Call()
	}
	name := jen.Id(m.params[m.Context])
	if isContext(m.Sig.Params().At(m.Context).Type()) {
		return name
	}
	return jen.Id(m.wrapper.file.runtime("ContextOf")).Call(name)
}

func (m *method) key(p policy) *jen.Statement {
	if p.buf == "" {
		return jen.Nil()
	}
	_, args := m.wrapper.file.keyFunc(m, p)
	return m.call(p.keyFunc, args, p.buf)
}

func (m *method) cost(p policy) *jen.Statement {
	if p.costFunc == "" {
		return jen.Lit(int(p.Cost))
	}
	_, args := m.wrapper.file.costFunc(m, p)
	return m.call(p.costFunc, args, "")
}

// call renders a call of a key or cost function.
func (m *method) call(fn string, args []keyArg, buf string) *jen.Statement {
	var list []jen.Code
	for _, a := range args {
		switch a.kind {
		case argContext:
			list = append(list, m.context())
		case argBuffer:
			list = append(list, jen.Id(buf).Index(jen.Empty(), jen.Lit(0)))
		case argReceiver:
			list = append(list, jen.Id(m.wrapper.recv).Dot(m.wrapper.field))
		case argParam:
			list = append(list, jen.Id(m.params[a.param]))
		}
	}
	return jen.Id(fn).Call(list...)
}

// specDecl renders the inventory entry of the method.
func (m *method) specDecl() *jen.Statement {
	f := m.wrapper.file
	var policies []jen.Code
	for _, p := range m.Policies {
		policies = append(policies, jen.Values(f.policyFields(&p.Policy)...))
	}
	return jen.Var().Id(m.spec).Op("=").Id(f.runtime("Spec")).Values(
		field("Method", jen.Lit(m.Qualified)),
		field("File", jen.Lit(m.File)),
		field("Policies", jen.Index().Id(f.runtime("Policy")).Values(policies...)),
		jen.Line(),
	)
}

func (f *file) policyFields(p *ratelimit.Policy) []jen.Code {
	fields := []jen.Code{
		field("ID", jen.Lit(p.ID)),
		field("Directive", jen.Lit(p.Directive)),
	}
	if p.Global {
		fields = append(fields, field("Global", jen.True()))
	} else {
		fields = append(fields, field("Key", jen.Lit(p.Key)))
	}
	fields = append(fields, field("Algorithm", jen.Id(f.runtime(algorithmNames[p.Algorithm]))))
	switch p.Limit {
	case ratelimit.Unlimited:
		fields = append(fields, field("Limit", jen.Id(f.runtime("Unlimited"))))
	case ratelimit.Blocked:
		fields = append(fields, field("Limit", jen.Id(f.runtime("Blocked"))))
	default:
		fields = append(fields, field("Limit", jen.Lit(int(p.Limit))))
	}
	fields = append(fields, field("Window", f.duration(p.Window)))
	if p.Burst > 0 {
		fields = append(fields, field("Burst", jen.Lit(int(p.Burst))))
	}
	if p.Mode != ratelimit.Enforce {
		fields = append(fields, field("Mode", jen.Id(f.runtime(modeNames[p.Mode]))))
	}
	return append(fields, jen.Line())
}

// field renders one line of a composite literal.
func field(name string, value jen.Code) *jen.Statement {
	return jen.Line().Id(name).Op(":").Add(value)
}

var modeNames = map[ratelimit.Mode]string{ratelimit.Shadow: "Shadow", ratelimit.Off: "Off"}

var algorithmNames = map[ratelimit.Algorithm]string{
	ratelimit.SlidingLog:  "SlidingLog",
	ratelimit.TokenBucket: "TokenBucket",
	ratelimit.FixedWindow: "FixedWindow",
}

// duration renders d with the largest unit that divides it.
func (f *file) duration(d time.Duration) *jen.Statement {
	pkg := f.imports.alias["time"]
	for _, u := range []struct {
		d    time.Duration
		name string
	}{
		{time.Hour, "Hour"}, {time.Minute, "Minute"}, {time.Second, "Second"},
		{time.Millisecond, "Millisecond"}, {time.Microsecond, "Microsecond"},
	} {
		switch n := d / u.d; {
		case d%u.d != 0:
		case n == 1:
			return jen.Id(pkg).Dot(u.name)
		default:
			return jen.Lit(int(n)).Op("*").Id(pkg).Dot(u.name)
		}
	}
	return jen.Lit(int(d))
}
