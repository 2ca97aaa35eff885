// Package grpclimit connects servers of google.golang.org/grpc to limits. Its
// interceptors find out who is calling and what for, for keys such as ip, user and
// path, and turn the error of a limited method into the status that a client
// understands.
//
//	limits := grpclimit.New()
//	server := grpc.NewServer(limits.ServerOptions()...)
//	shoppb.RegisterShopServer(server, NewRateLimitedShop(shop, ratelimit.New()))
//
// # Who is calling
//
// The caller's address is that of the connection's peer. Metadata can be written by
// anyone and is not read, unless the peer is a proxy that WithTrustedProxies names:
// then the rule of package httplimit holds, for the same headers. A peer on a Unix
// socket or on an in-process connection such as bufconn has no address, and limits
// whose key is the address refuse its calls with ratelimit.ErrNoKey.
//
// Path and Route of the ratelimit.Request are the full method, such as
// "/shop.Shop/PlaceOrder". Method is "", since a gRPC call has no HTTP method that
// would tell one from another: limits with key=method refuse it, and key=path is
// what tells methods apart. Headers are the incoming metadata, those whose names end
// in -bin decoded; Host is the :authority. Cookies are read from the metadata
// "cookie", which a proxy for browsers may pass on. There are no query parameters.
//
// # What a refused client gets
//
// An error that is or wraps a *ratelimit.Error becomes a status. It says nothing of
// the key, the policy, the file or the directive.
//
//	ErrLimited  RESOURCE_EXHAUSTED  with QuotaFailure, and RetryInfo unless waiting never helps
//	ErrNoKey    PERMISSION_DENIED
//	ErrCost     INVALID_ARGUMENT
//	ErrStore    UNAVAILABLE         with RetryInfo of a second
//
// The message is the policy's Message if it has one. Its Status is about HTTP and not
// looked at. The trailer grpc-retry-pushback-ms has the wait in milliseconds, rounded
// up, for the retry policies of clients; it is -1, which ends their retries, where
// waiting never helps or takes longer than the 24 days that the trailer can say.
//
// Every other error, such as that of a context that is done, is left as it is.
package grpclimit

import (
	"context"
	"net/netip"

	"google.golang.org/grpc"

	"github.com/ratelimitgen/ratelimitgen/runtime/httplimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// Interceptor tells limits who is calling, and clients why they were refused. New
// makes one. It may be used by many goroutines and servers at once.
type Interceptor struct {
	trusted   []netip.Prefix
	header    string
	proxies   *httplimit.Proxies // made of trusted and header
	user      func(context.Context) string
	role      func(context.Context) string
	onRefusal func(ctx context.Context, method string, err *ratelimit.Error)
}

// Option changes what New does by default.
type Option func(*Interceptor)

// New returns an Interceptor. Without options the caller is the connection's peer,
// no metadata is believed, and the user is unknown. It panics if an option is not
// valid.
func New(opts ...Option) *Interceptor {
	i := &Interceptor{header: "X-Forwarded-For"}
	for _, opt := range opts {
		opt(i)
	}
	proxies, err := httplimit.NewProxies(i.header, i.trusted...)
	if err != nil {
		panic("grpclimit: " + err.Error())
	}
	i.proxies = proxies
	return i
}

// WithTrustedProxies names the networks of the proxies whose metadata is believed.
// Only list what no client can connect from. Several uses add up. It makes New panic
// if a prefix is not valid. See httplimit.WithTrustedProxies.
func WithTrustedProxies(prefixes ...netip.Prefix) Option {
	return func(i *Interceptor) { i.trusted = append(i.trusted, prefixes...) }
}

// WithHeader names the metadata, in any case, in which the trusted proxies pass on
// whom they serve; x-forwarded-for by default. It is the only one that is read. It
// makes New panic if name is empty. See httplimit.WithHeader.
func WithHeader(name string) Option {
	return func(i *Interceptor) { i.header = name }
}

// WithUser tells who the authenticated user of a call is, "" meaning nobody; without
// it there never is one. The function runs once per call or stream, before the
// handler, so an interceptor that authenticates belongs before this one. Its context
// carries the *ratelimit.Request already, whose Header is the metadata. Return an
// identity, not a credential: it becomes part of keys.
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
// of a limit: its context, its full method and the error, which says what the client
// is not told. It runs before the client is answered and must be safe for concurrent
// use. There is one function; the last one given is it.
func WithOnRefusal(f func(ctx context.Context, method string, err *ratelimit.Error)) Option {
	return func(i *Interceptor) { i.onRefusal = f }
}

// ServerOptions returns the options by which a server uses both interceptors. They
// come behind those of options before these.
func (i *Interceptor) ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(i.UnaryServerInterceptor()),
		grpc.ChainStreamInterceptor(i.StreamServerInterceptor()),
	}
}

// UnaryServerInterceptor returns the interceptor of unary calls. The handler's
// context carries a *ratelimit.Request.
func (i *Interceptor) UnaryServerInterceptor() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		res, err := handler(i.identify(ctx, info.FullMethod), req)
		if err == nil {
			return res, nil
		}
		trailer, err := i.answer(ctx, info.FullMethod, err)
		if trailer != nil {
			// It fails where there is no transport, as in tests that call the
			// interceptor: nobody is there to read a trailer.
			_ = grpc.SetTrailer(ctx, trailer)
		}
		return res, err
	}
}

// StreamServerInterceptor returns the interceptor of streams. The stream's context
// carries a *ratelimit.Request. It makes no difference where in the stream the
// limited method was called: what the handler returns is answered, behind the
// messages that were sent already.
func (i *Interceptor) StreamServerInterceptor() grpc.StreamServerInterceptor {
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		ctx := ss.Context()
		err := handler(srv, &stream{ss, i.identify(ctx, info.FullMethod)})
		if err == nil {
			return nil
		}
		trailer, err := i.answer(ctx, info.FullMethod, err)
		if trailer != nil {
			ss.SetTrailer(trailer)
		}
		return err
	}
}

// Fallbacks returns how often a trusted proxy was itself taken for the caller since
// New, because its metadata did not tell: all of its clients then share one counter.
func (i *Interceptor) Fallbacks() uint64 { return i.proxies.Fallbacks() }

// stream is a ServerStream with a context of its own.
type stream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *stream) Context() context.Context { return s.ctx }
