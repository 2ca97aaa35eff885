package ratelimit

import (
	"context"
	"net/netip"
)

// Request says who is calling, and what. Middleware (see httplimit) puts it into
// the context; keys such as ip and user read it from there. Text that is "" is
// unknown.
type Request struct {
	// Addr is the caller's address. The zero Addr is unknown.
	Addr netip.Addr
	// User is the authenticated caller.
	User string
	// Role is what the caller is, such as "admin".
	Role string
	// Method is "GET", "POST" and so on; "" for what is not HTTP.
	Method string
	// Path is the path that the caller asks for, as it wrote it.
	Path string
	// Route is the pattern that the path matched, such as "/orders/{id}". If it is
	// "", Source is asked.
	Route string
	// Source tells what else the request holds. Nil holds nothing.
	Source Source
}

// Source tells what a request holds under a name. Each method returns the first
// value, or "" if there is none. They are called while the request is served, by
// one goroutine at a time unless the service calls limited methods concurrently.
type Source interface {
	// Header returns a header field. The name is in canonical form.
	Header(name string) string
	// Query returns a parameter of the query, decoded.
	Query(name string) string
	// Cookie returns the value of a cookie.
	Cookie(name string) string
	// Route returns the pattern that the path has matched so far.
	Route() string
}

// Header returns the first header field of that name, which is in canonical form,
// or "" if r is nil or has none.
func (r *Request) Header(name string) string {
	if r == nil || r.Source == nil {
		return ""
	}
	return r.Source.Header(name)
}

// Query returns the first query parameter of that name, decoded, or "" if r is nil
// or has none.
func (r *Request) Query(name string) string {
	if r == nil || r.Source == nil {
		return ""
	}
	return r.Source.Query(name)
}

// Cookie returns the value of the first cookie of that name, or "" if r is nil or
// has none.
func (r *Request) Cookie(name string) string {
	if r == nil || r.Source == nil {
		return ""
	}
	return r.Source.Cookie(name)
}

// RoutePattern returns r.Route or, if that is "", the route that r.Source knows: a
// router that runs behind the middleware finds it only later. It is "" if r is nil
// or has none.
func (r *Request) RoutePattern() string {
	switch {
	case r == nil:
		return ""
	case r.Route == "" && r.Source != nil:
		return r.Source.Route()
	}
	return r.Route
}

type requestKey struct{}

// WithRequest returns a context that carries r. The caller must not change r
// afterwards.
func WithRequest(ctx context.Context, r *Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// RequestFrom returns the request that ctx carries, or nil. A nil ctx carries none.
func RequestFrom(ctx context.Context) *Request {
	if ctx == nil {
		return nil
	}
	r, _ := ctx.Value(requestKey{}).(*Request)
	return r
}

// ContextOf returns the context of r, such as an *http.Request, or the background
// context if r is nil.
func ContextOf[R interface {
	comparable
	Context() context.Context
}](r R) context.Context {
	var none R
	if r == none {
		return context.Background()
	}
	return r.Context()
}
