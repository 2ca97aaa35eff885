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

// RequestFrom returns the request that ctx carries, or nil.
func RequestFrom(ctx context.Context) *Request {
	r, _ := ctx.Value(requestKey{}).(*Request)
	return r
}
