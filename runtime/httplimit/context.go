package httplimit

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// plain knows of a request what the request says itself.
var plain = New()

// Context returns a context for limits of handlers: that of r if a Middleware has
// put into it who is calling, or else one that tells what r does: the socket's peer
// is the caller, no header is believed, and there is no user and no role. Behind a
// proxy that means one counter for all its clients, so use a Middleware there. A nil
// r has the background context.
func Context(r *http.Request) context.Context {
	if r == nil {
		return context.Background()
	}
	if ctx := r.Context(); ratelimit.RequestFrom(ctx) != nil {
		return ctx
	}
	return plain.identify(r).r.Context()
}

// RouteContext is Context for a router that keeps the pattern which the path has
// matched to itself.
func RouteContext(r *http.Request, route string) context.Context {
	ctx := Context(r)
	req := ratelimit.RequestFrom(ctx)
	if req == nil || req.Route != "" || route == "" {
		return ctx
	}
	routed := *req
	routed.Route = route
	return ratelimit.WithRequest(ctx, &routed)
}

// Fiber is what FiberContext reads of a *fiber.Ctx (v2) or a fiber.Ctx (v3).
type Fiber interface {
	IP() string
	Method(override ...string) string
	Path(override ...string) string
	Get(name string, otherwise ...string) string
	Query(name string, otherwise ...string) string
	Cookies(name string, otherwise ...string) string
}

// FiberContext is Context for github.com/gofiber/fiber. The caller's address is what
// fiber says that it is: the socket's peer unless its configuration names trusted
// proxies. A route of "" is unknown. What ctx tells already, it goes on telling. The
// context must not outlive the handler.
func FiberContext(ctx context.Context, c Fiber, route string) context.Context {
	if req := ratelimit.RequestFrom(ctx); req != nil {
		return ctx
	}
	addr, _ := netip.ParseAddr(c.IP())
	return ratelimit.WithRequest(ctx, &ratelimit.Request{
		Addr:   addr.Unmap().WithZone(""),
		Method: c.Method(),
		Path:   c.Path(),
		Route:  route,
		Source: fiberSource{c},
	})
}

type fiberSource struct{ Fiber }

func (s fiberSource) Header(name string) string { return s.Get(name) }
func (s fiberSource) Query(name string) string  { return s.Fiber.Query(name) }
func (s fiberSource) Cookie(name string) string { return s.Cookies(name) }
func (s fiberSource) Route() string             { return "" }
