package parser

import (
	"bytes"
	"fmt"
	"go/token"
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

// whyNoCarrier says of a signature without one which parameter comes close to it, and
// why it is none, or "".
func whyNoCarrier(sig *types.Signature, pkg *types.Package) string {
	for i := range sig.Params().Len() {
		v := sig.Params().At(i)
		t, name := v.Type(), "parameter "+v.Name()
		if v.Name() == "" || v.Name() == "_" {
			name = fmt.Sprintf("parameter %d", i+1)
		}
		if s, ok := t.(*types.Slice); ok && sig.Variadic() && i == sig.Params().Len()-1 {
			one := types.NewTuple(types.NewParam(token.NoPos, nil, "", s.Elem()))
			if _, c := carrierOf(types.NewSignatureType(nil, nil, nil, one, nil, false)); c != NoCarrier {
				return name + " is variadic, so that a call may have none or several"
			}
			continue
		}
		typeName := types.TypeString(t, func(p *types.Package) string {
			if p == pkg {
				return ""
			}
			return p.Name()
		})
		_, isParam := types.Unalias(t).(*types.TypeParam)
		switch m := methodOf(t, "Context"); {
		case m == nil && types.IsInterface(t):
		case m == nil:
			if p := types.NewPointer(t); returnsContext(methodOf(p, "Context")) {
				return fmt.Sprintf("%s is no pointer, and only *%s has the method Context", name, typeName)
			}
		case !returnsContext(m):
			return fmt.Sprintf("the method Context of %s is not func() context.Context", name)
		case isParam:
			return fmt.Sprintf("the type of %s is a type parameter, %s, so that it cannot be told whether it is nil before its method Context is called", name, typeName)
		case !types.Comparable(t):
			return fmt.Sprintf("%s cannot be compared, so that it cannot be told whether there is one before its method Context is called", name)
		}
	}
	return ""
}

// hasContext reports whether values of t, which may be nil, have a method Context that
// returns a context.Context.
func hasContext(t types.Type) bool {
	if _, ok := types.Unalias(t).(*types.TypeParam); ok || !types.Comparable(t) {
		return false
	}
	return returnsContext(methodOf(t, "Context"))
}

// methodOf is the exported method of t that has a name, or nil.
func methodOf(t types.Type, name string) *types.Signature {
	m := types.NewMethodSet(t).Lookup(nil, name)
	if m == nil {
		return nil
	}
	sig, _ := m.Type().(*types.Signature)
	return sig
}

// returnsContext reports whether sig is func() context.Context.
func returnsContext(sig *types.Signature) bool {
	return sig != nil && sig.Params().Len() == 0 && sig.Results().Len() == 1 &&
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
