// Package httplimit connects net/http to limits: its middleware finds out who is
// calling and what for, for keys such as ip, user and route, and its error helpers turn a refusal
// into the response that a client understands.
//
//	limiter := ratelimit.New()
//	orders := pay.NewRateLimitedService(service, limiter)
//
//	mux := http.NewServeMux()
//	mux.Handle("POST /orders", httplimit.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
//		_, err := orders.PlaceOrder(r.Context(), order(r))
//		return err // a refusal becomes 429 with Retry-After
//	}))
//	http.ListenAndServe(":8080", httplimit.New().Handler(mux))
//
// # Who is calling
//
// The caller's address is that of the socket's peer. Headers can be written by
// anyone and are not read, unless the peer is a proxy that WithTrustedProxies
// names. Then X-Forwarded-For (or what WithHeader names instead) is read from
// its right end, where the nearest proxy wrote, to the left: the first address
// that is no trusted proxy is the caller. What stands further left is the
// caller's own word and is not looked at. If the header is absent, does not
// parse up to that point, or names trusted proxies only, the caller is the peer;
// Middleware.Fallbacks counts that, because it mostly means that a proxy is not
// set up to write the header.
//
// The address is unmapped (::ffff:192.0.2.1 is 192.0.2.1) and has no zone and no
// port. Keys group IPv6 addresses by /64; see ratelimit.AppendIP.
package httplimit

import (
	"net/http"
	"net/netip"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// Middleware tells limits who is calling. New makes one. It may be used by many
// goroutines at once.
type Middleware struct {
	trusted []netip.Prefix
	header  string
	proxies *Proxies // made of trusted and header
	user    func(*http.Request) string
	role    func(*http.Request) string
}

// Option changes what New does by default.
type Option func(*Middleware)

// New returns a Middleware. Without options the caller is the socket's peer, no
// header is read, and the user is unknown. It panics if an option is not valid.
func New(opts ...Option) *Middleware {
	m := &Middleware{header: "X-Forwarded-For"}
	for _, opt := range opts {
		opt(m)
	}
	proxies, err := NewProxies(m.header, m.trusted...)
	if err != nil {
		panic("httplimit: " + err.Error())
	}
	m.proxies = proxies
	return m
}

// WithTrustedProxies names the networks of the proxies whose header is believed.
// Only list what no client can connect from: an address of these networks is
// never taken for a caller's while another one is known. Several uses add up.
// It makes New panic if a prefix is not valid.
func WithTrustedProxies(prefixes ...netip.Prefix) Option {
	return func(m *Middleware) { m.trusted = append(m.trusted, prefixes...) }
}

// WithHeader names the header in which the trusted proxies pass on whom they
// serve; X-Forwarded-For by default. It is the only one that is read: where
// several are tried in turn, clients send the one that the proxy does not write.
// Forwarded is read as RFC 7239 says, quoted strings included; any other header,
// X-Real-IP say, as a list of addresses, with or without ports, that has commas
// between them. It makes New panic if name is empty.
func WithHeader(name string) Option {
	return func(m *Middleware) { m.header = name }
}

// WithUser tells who the authenticated user of a request is, "" meaning nobody;
// without it there never is one. The function runs once per request, before the
// wrapped handler, so authentication that adds to the request's context belongs
// outside of this middleware. Return an identity, not a credential: it becomes
// part of keys.
func WithUser(user func(*http.Request) string) Option {
	return func(m *Middleware) { m.user = user }
}

// WithRole tells what a request's user is, such as "admin", "" meaning nothing in
// particular; without it there is no role. It runs as WithUser's function does.
func WithRole(role func(*http.Request) string) Option {
	return func(m *Middleware) { m.role = role }
}

// Handler returns a handler that calls next with a *ratelimit.Request in the
// request's context. The request is not changed otherwise: RemoteAddr and the
// headers stay as they are.
//
// The route, for keys that name it, is r.Pattern. A ServeMux behind the middleware
// sets it in time; another router's pattern is not known.
func (m *Middleware) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, m.identify(r).r)
	})
}

// identify finds out who is calling, and puts that into the context of c.r.
func (m *Middleware) identify(r *http.Request) *caller {
	c := &caller{Request: ratelimit.Request{
		Addr:   m.Addr(r),
		Method: r.Method,
		Path:   r.URL.Path,
		Route:  r.Pattern,
	}}
	if m.user != nil {
		c.User = m.user(r)
	}
	if m.role != nil {
		c.Role = m.role(r)
	}
	c.r = r.WithContext(ratelimit.WithRequest(r.Context(), &c.Request))
	c.Source = c
	return c
}

// Addr returns the caller's address as the package comment defines it, or the
// zero Addr if RemoteAddr holds none, as for a Unix socket; calls are then refused
// by limits whose key is the address. It reads at most 64 addresses of the
// header; if all are trusted, the caller is the peer.
func (m *Middleware) Addr(r *http.Request) netip.Addr {
	return m.proxies.Caller(PeerAddr(r.RemoteAddr), func(header string) []string { return r.Header[header] })
}

// Fallbacks returns how often a trusted proxy was itself taken for the caller
// since New, because its header did not tell: all of its clients then share one
// counter. Anything but a small number calls for a look at the proxy.
func (m *Middleware) Fallbacks() uint64 { return m.proxies.Fallbacks() }
