package generator

import (
	"github.com/dave/jennifer/jen"

	"github.com/ratelimitgen/ratelimitgen/parser/directive"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// body renders the statements of the method.
func (m *method) body() []jen.Code {
	if !m.limited() {
		return []jen.Code{m.returned(m.call(m.Name))}
	}
	var body []jen.Code
	if m.ctx != "" {
		body = append(body, jen.Id(m.ctx).Op(":=").Add(m.identified()))
	}
	if p := m.policy[0]; len(m.policy) == 1 && p.guarded() {
		body = append(body, jen.If(m.skips(p)).Block(m.leave(m.call(m.Name))...))
	}
	body = append(body, m.buffers()...)
	if m.chargeVar != "" {
		body = append(body, m.declareCharges()...)
	}
	if !m.settles() {
		body = append(body, m.ask()...)
		return append(body, m.returned(m.call(m.Name)))
	}
	body = append(body,
		jen.List(jen.Id(m.permit), jen.Id(m.err)).Op(":=").Add(m.gateCall("Acquire", "AcquireWait", m.charges())),
		jen.If(jen.Id(m.err).Op("!=").Nil()).Block(m.refuse()...),
		jen.Defer().Id(m.permit).Dot("Release").Call(),
	)
	if !m.looks() {
		return append(body, m.returned(m.call(m.Name)))
	}
	if len(m.outs) > 0 {
		body = append(body, m.assign(m.call(m.Name)))
	} else {
		body = append(body, m.call(m.Name))
	}
	for i, p := range m.policy {
		depends := m.chargeVar != "" && p.guarded()
		charged := jen.Op("!").Id(m.chargeVar).Index(jen.Lit(i)).Dot("Skip")
		var after []jen.Code // what becomes of a call that counts
		if p.count != nil {
			after = append(after, jen.Id(m.permit).Dot("Keep").Call(jen.Lit(i)))
		}
		if p.after != nil {
			after = append(after, jen.Id(m.permit).Dot("Charge").Call(jen.Lit(i), m.apply(p.after, "")))
		}
		switch {
		case len(after) == 0:
		case p.count != nil && depends:
			body = append(body, jen.If(charged.Clone().Op("&&").Add(m.apply(p.count, ""))).Block(after...))
		case p.count != nil:
			body = append(body, jen.If(m.apply(p.count, "")).Block(after...))
		case depends:
			body = append(body, jen.If(charged).Block(after...))
		default:
			body = append(body, after...)
		}
	}
	switch {
	case m.bare:
		body = append(body, jen.Return())
	case len(m.outs) > 0:
		body = append(body, jen.Return(ids(m.outs)...))
	}
	return body
}

func ids(names []string) []jen.Code {
	var list []jen.Code
	for _, n := range names {
		list = append(list, jen.Id(n))
	}
	return list
}

// call renders the call of a method of the wrapped value with the parameters.
func (m *method) call(name string) *jen.Statement {
	if m.wrapper.OfFunction() {
		fn := jen.Id(name)
		if !m.wrapper.inferred() {
			fn.Add(m.wrapper.typeArgs())
		}
		return m.callOf(fn)
	}
	return m.callOf(jen.Id(m.wrapper.recv).Dot(m.wrapper.field).Dot(name))
}

// callOf renders the call of fn with the parameters.
func (m *method) callOf(fn *jen.Statement) *jen.Statement {
	var args []jen.Code
	for i, p := range m.params {
		if m.Sig.Variadic() && i == len(m.params)-1 {
			args = append(args, jen.Id(p).Op("..."))
		} else {
			args = append(args, jen.Id(p))
		}
	}
	return fn.Call(args...)
}

// fallback renders the call of the method that a refused caller gets. Its own limits
// apply.
func (m *method) fallback() *jen.Statement {
	if m.limitedFallback() != nil {
		return m.callOf(jen.Id(m.limitedVar))
	}
	for _, other := range m.wrapper.Methods {
		if other.Name == m.Fallback.Text && len(other.Policies) > 0 {
			return m.callOf(jen.Id(m.wrapper.recv).Dot(other.Name))
		}
	}
	return m.call(m.Fallback.Text)
}

// returned renders the return of what call returns.
func (m *method) returned(call *jen.Statement) *jen.Statement {
	if m.Sig.Results().Len() == 0 {
		return call
	}
	return jen.Return(call)
}

// leave renders what returned does where more follows.
func (m *method) leave(call *jen.Statement) []jen.Code {
	if m.Sig.Results().Len() == 0 {
		return []jen.Code{call, jen.Return()}
	}
	return []jen.Code{jen.Return(call)}
}

// assign renders the assignment of the results of call to their variables.
func (m *method) assign(call *jen.Statement) *jen.Statement {
	op := "="
	if m.results == nil && (len(m.outs) > 1 || !m.returnsErr()) {
		op = ":=" // all but the error are new
	}
	return jen.List(ids(m.outs)...).Op(op).Add(call)
}

// buffers declares the variables for the keys.
func (m *method) buffers() []jen.Code {
	var bufs []jen.Code
	for _, p := range m.policy {
		if p.buf != "" {
			bufs = append(bufs, jen.Id(p.buf))
		}
	}
	if len(bufs) == 0 {
		return nil
	}
	return []jen.Code{jen.Var().List(bufs...).Index(jen.Lit(64)).Byte()}
}

// ask renders the question to the gate and the way out on refusal. A question of
// several lines is a statement of its own.
func (m *method) ask() []jen.Code {
	p := m.policy[0]
	plain := len(m.policy) == 1 && p.limit == nil && m.OnLimit != directive.OnLimitWait
	var call *jen.Statement
	switch {
	case !plain:
		call = m.gateCall("AllowAll", "Wait", m.charges())
	case p.cost == nil && p.Cost == 1:
		call = m.gateCall("Allow", "", m.key(p))
	default:
		call = m.gateCall("AllowN", "", m.key(p), m.cost(p))
	}
	long := !plain && m.chargeVar == ""
	if !m.returnsErr() && !long {
		return []jen.Code{jen.If(call.Op("!=").Nil()).Block(m.refuse()...)}
	}
	op := ":="
	if m.returnsErr() && m.results != nil {
		op = "="
	}
	ask, refused := jen.Id(m.err).Op(op).Add(call), jen.Id(m.err).Op("!=").Nil()
	if long {
		return []jen.Code{ask, jen.If(refused).Block(m.refuse()...)}
	}
	return []jen.Code{jen.If(ask, refused).Block(m.refuse()...)}
}

// gateCall renders a call of a method of the gate, the second one if the caller
// waits.
func (m *method) gateCall(name, waiting string, args ...jen.Code) *jen.Statement {
	if m.OnLimit == directive.OnLimitWait {
		name = waiting
	}
	gate := jen.Id(m.gate)
	if !m.wrapper.OfFunction() {
		gate = jen.Id(m.wrapper.recv).Dot(m.gate)
	}
	return gate.Dot(name).Call(append([]jen.Code{m.context()}, args...)...)
}

// refuse renders what a refused caller gets.
func (m *method) refuse() []jen.Code {
	if m.OnLimit == directive.OnLimitFallback {
		return m.leave(m.fallback())
	}
	if m.Handler {
		return m.respond()
	}
	if m.bare {
		return []jen.Code{jen.Return()}
	}
	f := m.wrapper.file
	var out, ret []jen.Code
	var names, types []string // of zero values; neighbours of one type share it
	for i, zero := range m.zeros {
		last := i == len(m.zeros)-1
		switch {
		case last && m.returnsErr():
			ret = append(ret, jen.Id(m.err))
		case m.results != nil:
			ret = append(ret, jen.Id(m.results[i]))
		case zero == "":
			ret = append(ret, m.zeroValue(i))
		default:
			typ := f.imports.typeString(m.Sig.Results().At(i).Type())
			if n := len(names); n > 0 && typ == types[n-1] {
				names[n-1] += ", " + zero
			} else {
				names, types = append(names, zero), append(types, typ)
			}
			ret = append(ret, jen.Id(zero))
		}
	}
	for i := range names {
		out = append(out, jen.Var().Id(names[i]).Id(types[i]))
	}
	return append(out, jen.Return(ret...))
}

// charges renders what each policy takes of the call.
func (m *method) charges() *jen.Statement {
	if m.chargeVar != "" {
		return jen.Id(m.chargeVar)
	}
	return m.chargeList(m.charge)
}

// chargeList renders the slice of the policies' charges.
func (m *method) chargeList(charge func(p *policy) []jen.Code) *jen.Statement {
	var list []jen.Code
	for _, p := range m.policy {
		list = append(list, jen.Line().Values(charge(p)...))
	}
	return jen.Index().Id(m.wrapper.file.runtime("Charge")).Values(append(list, jen.Line())...)
}

// charge renders the fields of what p takes of the call.
func (m *method) charge(p *policy) []jen.Code {
	var fields []jen.Code
	field := func(name string, value jen.Code) {
		fields = append(fields, jen.Id(name).Op(":").Add(value))
	}
	if p.buf != "" {
		field("Key", m.key(p))
	}
	field("Cost", m.cost(p))
	if p.limit != nil {
		limit := m.apply(p.limit, "")
		if p.Algorithm == ratelimit.TimeQuota { // counted in microseconds
			limit = limit.Op("/").Int64().Call(jen.Id(m.wrapper.file.imports.alias["time"]).Dot("Microsecond"))
		}
		field("Limit", limit)
	}
	return fields
}

// declareCharges declares the charges where some depend on a condition. Nothing of a policy is
// evaluated unless it applies.
func (m *method) declareCharges() []jen.Code {
	body := []jen.Code{jen.Id(m.chargeVar).Op(":=").Add(m.chargeList(func(p *policy) []jen.Code {
		if p.guarded() {
			return []jen.Code{jen.Id("Skip").Op(":").True()}
		}
		return m.charge(p)
	}))}
	for i, p := range m.policy {
		if p.guarded() {
			body = append(body, jen.If(m.applies(p)).Block(
				jen.Id(m.chargeVar).Index(jen.Lit(i)).Op("=").Id(m.wrapper.file.runtime("Charge")).Values(m.charge(p)...),
			))
		}
	}
	return body
}

// applies renders the condition on which a guarded policy applies to the call.
func (m *method) applies(p *policy) *jen.Statement {
	switch {
	case p.unless == nil:
		return m.apply(p.when, "")
	case p.when == nil:
		return jen.Op("!").Add(m.apply(p.unless, ""))
	}
	return m.apply(p.when, "").Op("&&").Op("!").Add(m.apply(p.unless, ""))
}

// skips renders the opposite of applies.
func (m *method) skips(p *policy) *jen.Statement {
	switch {
	case p.unless == nil:
		return jen.Op("!").Add(m.apply(p.when, ""))
	case p.when == nil:
		return m.apply(p.unless, "")
	}
	return jen.Op("!").Add(m.apply(p.when, "")).Op("||").Add(m.apply(p.unless, ""))
}

func (m *method) key(p *policy) *jen.Statement {
	if p.buf == "" {
		return jen.Nil()
	}
	return m.apply(p.key, p.buf)
}

func (m *method) cost(p *policy) *jen.Statement {
	if p.cost == nil {
		return jen.Lit(int(p.Cost))
	}
	return m.apply(p.cost, "")
}

// apply renders a call of one of the functions of a policy.
func (m *method) apply(fn *computed, buf string) *jen.Statement {
	var list []jen.Code
	_, args := fn.render()
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
		case argResult:
			list = append(list, jen.Id(m.outs[a.param]))
		}
	}
	return jen.Id(fn.name).Call(list...)
}
