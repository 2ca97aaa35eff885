package ratelimit

import (
	"context"
	"net/netip"
)

// Request says who is calling. Middleware (see httplimit) puts it into the
// context; keys such as ip and user read it from there.
type Request struct {
	// Addr is the caller's address. The zero Addr is unknown.
	Addr netip.Addr
	// User is the authenticated caller, or "" if there is none.
	User string
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
