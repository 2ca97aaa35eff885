// Package connectlimit connects services of connectrpc.com/connect to limits,
// whichever of the protocols Connect, gRPC and gRPC-Web a client speaks. Its
// interceptor finds out who is calling and what for, for keys such as ip, user and
// path, and turns the error of a limited method into the one that a client
// understands.
//
//	limits := connectlimit.New()
//	mux := http.NewServeMux()
//	mux.Handle(shoppbconnect.NewShopHandler(
//		NewRateLimitedShop(shop, ratelimit.New()), connect.WithInterceptors(limits)))
//
// # Who is calling
//
// The caller's address is that of the connection's peer. Headers can be written by
// anyone and are not read, unless the peer is a proxy that WithTrustedProxies names:
// then the rule of package httplimit holds. A peer on a Unix socket has no address,
// and limits whose key is the address refuse its calls with ratelimit.ErrNoKey. A
// service behind the middleware of httplimit needs this package for its refusals all
// the same; what this interceptor finds out is then what counts, so give the options
// to this one.
//
// Path and Route of the ratelimit.Request are the procedure, such as
// "/shop.Shop/PlaceOrder". Method is the HTTP method: POST, or GET for unary calls
// without side effects whose client asks for it. Headers and cookies are those of the
// HTTP request, but for Host, which Connect does not tell; the query is known where the
// client speaks the Connect protocol.
//
// # What a refused client gets
//
// An error that is or wraps a *ratelimit.Error becomes a *connect.Error, also if it
// is wrapped in one of another code. It says nothing of the key, the policy, the file
// or the directive.
//
//	ErrLimited  resource_exhausted  with QuotaFailure, and RetryInfo unless waiting never helps
//	ErrNoKey    permission_denied
//	ErrCost     invalid_argument
//	ErrStore    unavailable         with RetryInfo of a second
//
// The message is the policy's Message if it has one. Its Status is not looked at: the
// code has one of its own, 429 for resource_exhausted. Where there is RetryInfo, the
// metadata of the error, which is header or trailer depending on the protocol and the
// kind of call, has Retry-After in seconds, rounded up. Clients of gRPC also get
// grpc-retry-pushback-ms, the wait in milliseconds, rounded up; it is -1 where waiting
// never helps or takes longer than the 24 days that it can say.
//
// Every other error, such as that of a context that is done, is left as it is.
package connectlimit

import (
	"context"
	"net/http"
	"net/netip"

	"connectrpc.com/connect"

	"github.com/ratelimitgen/ratelimitgen/runtime/httplimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// Interceptor tells limits who is calling, and clients why they were refused. New
// makes one. It may be used by many goroutines and handlers at once. Clients that use
// it are not changed.
type Interceptor struct {
	trusted   []netip.Prefix
	header    string
	proxies   *httplimit.Proxies // made of trusted and header
	user      func(context.Context) string
	role      func(context.Context) string
	onRefusal func(ctx context.Context, procedure string, err *ratelimit.Error)
}

var _ connect.Interceptor = (*Interceptor)(nil)

// Option changes what New does by default.
type Option func(*Interceptor)

// New returns an Interceptor. Without options the caller is the connection's peer,
// no header is believed, and the user is unknown. It panics if an option is not
// valid.
func New(opts ...Option) *Interceptor {
	i := &Interceptor{header: "X-Forwarded-For"}
	for _, opt := range opts {
		opt(i)
	}
	proxies, err := httplimit.NewProxies(i.header, i.trusted...)
	if err != nil {
		panic("connectlimit: " + err.Error())
	}
	i.proxies = proxies
	return i
}

// WithTrustedProxies names the networks of the proxies whose header is believed. Only
// list what no client can connect from. Several uses add up. It makes New panic if a
// prefix is not valid. See httplimit.WithTrustedProxies.
func WithTrustedProxies(prefixes ...netip.Prefix) Option {
	return func(i *Interceptor) { i.trusted = append(i.trusted, prefixes...) }
}

// WithHeader names the header in which the trusted proxies pass on whom they serve;
// X-Forwarded-For by default. It is the only one that is read. It makes New panic if
// name is empty. See httplimit.WithHeader.
func WithHeader(name string) Option {
	return func(i *Interceptor) { i.header = name }
}

// WithUser tells who the authenticated user of a call is, "" meaning nobody; without
// it there never is one. The function runs once per call or stream, before the
// handler, so an interceptor that authenticates belongs before this one. Its context
// carries the *ratelimit.Request already, whose Header tells the headers;
// connect.CallInfoForHandlerContext does so for unary calls only. Return an identity,
// not a credential: it becomes part of keys.
func WithUser(user func(context.Context) string) Option {
	return func(i *Interceptor) { i.user = user }
}

// WithRole tells what a call's user is, such as "admin", "" meaning nothing in
// particular; without it there is no role. It runs as WithUser's function does, after
// that: the user is known.
func WithRole(role func(context.Context) string) Option {
	return func(i *Interceptor) { i.role = role }
}

// WithOnRefusal has the function told of each call or stream that ends with the error
// of a limit: its context, its procedure and the error, which says what the client is
// not told. It runs before the client is answered and must be safe for concurrent use.
// There is one function; the last one given is it.
func WithOnRefusal(f func(ctx context.Context, procedure string, err *ratelimit.Error)) Option {
	return func(i *Interceptor) { i.onRefusal = f }
}

// WrapUnary returns a handler that calls next with a *ratelimit.Request in the
// context. A client's next is returned as it is.
func (i *Interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		procedure := req.Spec().Procedure
		if req.Spec().IsClient {
			return next(ctx, req)
		}
		res, err := next(i.identify(ctx, procedure, req.HTTPMethod(), req.Peer(), req.Header()), req)
		if err != nil {
			return nil, i.answer(ctx, procedure, req.Peer().Protocol, err)
		}
		return res, nil
	}
}

// WrapStreamingHandler returns a handler that calls next with a *ratelimit.Request in
// the context. It makes no difference where in the stream a limited method was called:
// what next returns is answered, behind the messages that were sent already.
func (i *Interceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		procedure := conn.Spec().Procedure
		err := next(i.identify(ctx, procedure, http.MethodPost, conn.Peer(), conn.RequestHeader()), conn)
		if err != nil {
			return i.answer(ctx, procedure, conn.Peer().Protocol, err)
		}
		return nil
	}
}

// WrapStreamingClient returns next.
func (i *Interceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// Fallbacks returns how often a trusted proxy was itself taken for the caller since
// New, because its header did not tell: all of its clients then share one counter.
func (i *Interceptor) Fallbacks() uint64 { return i.proxies.Fallbacks() }
