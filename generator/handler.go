package generator

import (
	"github.com/dave/jennifer/jen"

	"github.com/ratelimitgen/ratelimitgen/parser"
)

// httpPath is imported by files with methods whose request is not in a context.
const httpPath = "github.com/ratelimitgen/ratelimitgen/runtime/httplimit"

// context renders the context that the gate gets.
func (m *method) context() *jen.Statement {
	if m.ctx != "" {
		return jen.Id(m.ctx)
	}
	f := m.wrapper.file
	switch m.Carrier {
	case parser.NoCarrier:
		return jen.Id(f.imports.alias["context"]).Dot("Background").Call()
	case parser.ContextCarrier:
		return m.carrier()
	case parser.FiberCarrier, parser.Fiber3Carrier:
		return m.userContext()
	}
	return jen.Id(f.runtime("ContextOf")).Call(m.request())
}

// identified renders a context that tells who is calling.
func (m *method) identified() *jen.Statement {
	http := func(name string) *jen.Statement {
		return jen.Id(m.wrapper.file.imports.alias[httpPath]).Dot(name)
	}
	var route *jen.Statement
	switch m.Carrier {
	case parser.StreamCarrier:
		return jen.Id(m.wrapper.file.runtime("ContextOf")).Call(m.carrier())
	case parser.GinCarrier:
		route = m.carrier().Dot("FullPath").Call()
	case parser.EchoCarrier:
		route = m.carrier().Dot("Path").Call()
	case parser.FiberCarrier, parser.Fiber3Carrier:
		route = jen.Lit("")
		if m.Routed {
			route = m.carrier().Dot("Route").Call().Dot("Path")
		}
		return http("FiberContext").Call(m.userContext(), m.carrier(), route)
	}
	if route != nil && m.Routed {
		return http("RouteContext").Call(m.request(), route)
	}
	return http("Context").Call(m.request())
}

// carrier renders the parameter that carries the request.
func (m *method) carrier() *jen.Statement { return jen.Id(m.params[m.Context]) }

// request renders the *http.Request of the call.
func (m *method) request() *jen.Statement {
	switch m.Carrier {
	case parser.GinCarrier:
		return m.carrier().Dot("Request")
	case parser.EchoCarrier:
		return m.carrier().Dot("Request").Call()
	}
	return m.carrier()
}

// userContext renders the context that fiber keeps for the user.
func (m *method) userContext() *jen.Statement {
	if m.Carrier == parser.FiberCarrier {
		return m.carrier().Dot("UserContext").Call()
	}
	return m.carrier().Dot("Context").Call()
}

// respond renders the response of a handler to a refused request.
func (m *method) respond() []jen.Code {
	f := m.wrapper.file
	write := func(w *jen.Statement) *jen.Statement {
		return jen.Id(f.runtime("WriteRefusal")).Call(w, jen.Id(m.err))
	}
	switch c := m.carrier(); m.Carrier {
	case parser.GinCarrier:
		return []jen.Code{write(c.Clone().Dot("Writer")), c.Clone().Dot("Abort").Call(), jen.Return()}
	case parser.EchoCarrier:
		return []jen.Code{write(c.Dot("Response").Call()), jen.Return(jen.Nil())}
	case parser.FiberCarrier, parser.Fiber3Carrier:
		return []jen.Code{
			jen.Id(m.refusal).Op(":=").Id(f.runtime("Refuse")).Call(jen.Id(m.err)),
			jen.For(jen.List(jen.Id("_"), jen.Id(m.header)).Op(":=").Range().Id(m.refusal).Dot("Header")).Block(
				c.Clone().Dot("Set").Call(jen.Id(m.header).Dot("Name"), jen.Id(m.header).Dot("Value")),
			),
			jen.Return(c.Clone().Dot("Status").Call(jen.Id(m.refusal).Dot("Status")).Dot("SendString").Call(jen.Id(m.refusal).Dot("Body"))),
		}
	}
	return []jen.Code{write(jen.Id(m.params[0])), jen.Return()}
}
