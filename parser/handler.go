package parser

import (
	"bytes"
	"go/types"

	"github.com/ratelimitgen/ratelimitgen/parser/keyexpr"
	"github.com/ratelimitgen/ratelimitgen/parser/scan"
)

// Carrier is what carries the request of a call: who is calling, and what for.
type Carrier string

// The carriers. The frameworks are known by the path of their module, which holds
// its major version, and the name of the type; they are not imported.
const (
	NoCarrier      Carrier = ""
	ContextCarrier Carrier = "context.Context"
	RequestCarrier Carrier = "*http.Request"
	GinCarrier     Carrier = "*gin.Context"
	EchoCarrier    Carrier = "echo.Context"
	FiberCarrier   Carrier = "*fiber.Ctx"
	Fiber3Carrier  Carrier = "fiber.Ctx"
	// StreamCarrier is what has a context of its own, as the streams of gRPC have.
	StreamCarrier Carrier = "Context() context.Context"
)

// carriers are the types that carry a request, those first that are preferred.
var carriers = []struct {
	carrier    Carrier
	pointer    bool
	path, name string
}{
	{ContextCarrier, false, "context", "Context"},
	{GinCarrier, true, "github.com/gin-gonic/gin", "Context"},
	{EchoCarrier, false, "github.com/labstack/echo/v4", "Context"},
	{EchoCarrier, true, "github.com/labstack/echo/v5", "Context"},
	{FiberCarrier, true, "github.com/gofiber/fiber/v2", "Ctx"},
	{Fiber3Carrier, false, "github.com/gofiber/fiber/v3", "Ctx"},
	{RequestCarrier, true, "net/http", "Request"},
}

// carrierOf returns the parameter of sig that carries the request and what it is, or
// -1 and NoCarrier.
func carrierOf(sig *types.Signature) (int, Carrier) {
	for _, c := range carriers {
		for i := range sig.Params().Len() {
			t := types.Unalias(sig.Params().At(i).Type())
			if p, ok := t.(*types.Pointer); ok == c.pointer {
				if ok {
					t = types.Unalias(p.Elem())
				}
				if isNamed(t, c.path, c.name) && !(sig.Variadic() && i == sig.Params().Len()-1) {
					return i, c.carrier
				}
			}
		}
	}
	for i := range sig.Params().Len() {
		if t := sig.Params().At(i).Type(); hasContext(t) && !(sig.Variadic() && i == sig.Params().Len()-1) {
			return i, StreamCarrier
		}
	}
	return -1, NoCarrier
}

// hasContext reports whether values of t, which may be nil, have a method Context that
// returns a context.Context.
func hasContext(t types.Type) bool {
	if _, ok := types.Unalias(t).(*types.TypeParam); ok || !types.Comparable(t) {
		return false
	}
	m := types.NewMethodSet(t).Lookup(nil, "Context")
	if m == nil {
		return false
	}
	sig, ok := m.Type().(*types.Signature)
	return ok && sig.Params().Len() == 0 && sig.Results().Len() == 1 &&
		isNamed(types.Unalias(sig.Results().At(0).Type()), "context", "Context")
}

// mentionsRequests reports whether a file with directives imports a package whose
// types carry requests.
func mentionsRequests(found *scan.Result) bool {
	for _, d := range found.Dirs {
		for _, f := range d.Files {
			for _, c := range carriers {
				if c.carrier != ContextCarrier && bytes.Contains(f.Src, []byte(`"`+c.path+`"`)) {
					return true
				}
			}
		}
	}
	return false
}

// takesRequests reports whether a limited method has to be told who is calling, and
// not by a context.
func (res *Result) takesRequests() bool {
	for _, p := range res.Packages {
		for _, w := range p.Wrappers {
			for _, m := range w.Methods {
				if m.FromRequest() {
					return true
				}
			}
		}
	}
	return false
}

// isHandler reports whether sig is that of an HTTP handler, so that a refusal is a
// response: that of net/http, or one of a framework.
func isHandler(sig *types.Signature) bool {
	params, results := sig.Params(), sig.Results()
	_, carrier := carrierOf(sig)
	switch carrier {
	case RequestCarrier:
		return params.Len() == 2 && results.Len() == 0 &&
			isNamed(types.Unalias(params.At(0).Type()), "net/http", "ResponseWriter")
	case GinCarrier:
		return params.Len() == 1 && results.Len() == 0
	case EchoCarrier, FiberCarrier, Fiber3Carrier:
		return params.Len() == 1 && results.Len() == 1 && returnsError(sig)
	}
	return false
}

// identify notes what the expressions of m need to know of the request.
func (m *Method) identify() {
	for _, p := range m.Policies {
		for _, n := range p.nodes() {
			keyexpr.Contains(n, func(n keyexpr.Node) bool {
				if d, ok := n.(*keyexpr.Dim); ok {
					m.Identified = true
					m.Routed = m.Routed || d.Kind == keyexpr.Route
				}
				return false
			})
		}
	}
}
