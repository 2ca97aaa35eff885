package connectlimit

import (
	"context"
	"net/http"
	"net/url"

	"connectrpc.com/connect"

	"github.com/ratelimitgen/ratelimitgen/runtime/httplimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// caller is a call as limits see it. It is the source of its own headers, so that
// both are one object.
type caller struct {
	ratelimit.Request
	header http.Header
	query  url.Values
}

// identify returns ctx with who is calling the procedure.
func (i *Interceptor) identify(ctx context.Context, procedure, method string, peer connect.Peer, header http.Header) context.Context {
	c := &caller{
		Request: ratelimit.Request{
			Addr:   i.proxies.Caller(httplimit.PeerAddr(peer.Addr), func(name string) []string { return header[name] }),
			Method: method,
			Path:   procedure,
			Route:  procedure,
		},
		header: header,
		query:  peer.Query,
	}
	c.Source = c
	ctx = ratelimit.WithRequest(ctx, &c.Request)
	if i.user != nil {
		c.User = i.user(ctx)
	}
	if i.role != nil {
		c.Role = i.role(ctx)
	}
	return ctx
}

// Header returns the first field of that name.
func (c *caller) Header(name string) string {
	return c.header.Get(name)
}

// Query returns the first parameter of that name.
func (c *caller) Query(name string) string { return c.query.Get(name) }

// Cookie returns the value of the first cookie of that name.
func (c *caller) Cookie(name string) string {
	r := http.Request{Header: c.header}
	cookie, err := r.Cookie(name)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// Route returns the procedure, which is the route of every call.
func (c *caller) Route() string { return c.Request.Route }
