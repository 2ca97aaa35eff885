package grpclimit

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/ratelimitgen/ratelimitgen/runtime/httplimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// caller is a call as limits see it. It is the source of its own headers, so that
// both are one object.
type caller struct {
	ratelimit.Request
	ctx context.Context // with the metadata
}

// identify returns ctx with who is calling the method.
func (i *Interceptor) identify(ctx context.Context, method string) context.Context {
	c := &caller{
		Request: ratelimit.Request{
			Addr: i.proxies.Caller(peerAddr(ctx), func(header string) []string {
				return metadata.ValueFromIncomingContext(ctx, strings.ToLower(header))
			}),
			Path:  method,
			Route: method,
		},
		ctx: ctx,
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

// peerAddr returns the address at the other end of the connection, or the zero Addr.
func peerAddr(ctx context.Context) netip.Addr {
	p, ok := peer.FromContext(ctx)
	if !ok || p.Addr == nil {
		return netip.Addr{}
	}
	if tcp, ok := p.Addr.(*net.TCPAddr); ok {
		addr, _ := netip.AddrFromSlice(tcp.IP)
		return addr
	}
	if strings.HasPrefix(p.Addr.Network(), "unix") {
		// The client chooses the name of its end, which may look like an address.
		return netip.Addr{}
	}
	return httplimit.PeerAddr(p.Addr.String())
}

// Header returns the first value of the metadata of that name.
func (c *caller) Header(name string) string {
	if name == "Host" {
		name = ":authority"
	}
	if values := metadata.ValueFromIncomingContext(c.ctx, strings.ToLower(name)); len(values) > 0 {
		return values[0]
	}
	return ""
}

// Query returns "": a gRPC call has no query.
func (c *caller) Query(string) string { return "" }

// Cookie returns the value of the first cookie of that name.
func (c *caller) Cookie(name string) string {
	r := http.Request{Header: http.Header{"Cookie": metadata.ValueFromIncomingContext(c.ctx, "cookie")}}
	cookie, err := r.Cookie(name)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// Route returns the method, which is the route of every call.
func (c *caller) Route() string { return c.Request.Route }
