package connectlimit_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/ratelimitgen/ratelimitgen/runtime/connectlimit"
)

const (
	checkProcedure = "/test.v1.Test/Check"
	watchProcedure = "/test.v1.Test/Watch"
)

type (
	request  = connect.Request[emptypb.Empty]
	response = connect.Response[emptypb.Empty]
	sender   = connect.ServerStream[emptypb.Empty]
	client   = connect.Client[emptypb.Empty, emptypb.Empty]
)

// protocols are what a client may speak.
var protocols = map[string][]connect.ClientOption{
	connect.ProtocolConnect: nil,
	connect.ProtocolGRPC:    {connect.WithGRPC()},
	connect.ProtocolGRPCWeb: {connect.WithGRPCWeb()},
}

// service is a service whose calls end as its functions say.
type service struct {
	check func(context.Context) error
	watch func(context.Context, *sender) error
}

func (s *service) handler(opts ...connect.HandlerOption) http.Handler {
	mux := http.NewServeMux()
	mux.Handle(checkProcedure, connect.NewUnaryHandler(checkProcedure, func(ctx context.Context, _ *request) (*response, error) {
		if err := s.check(ctx); err != nil {
			return nil, err
		}
		return connect.NewResponse(&emptypb.Empty{}), nil
	}, append(opts, connect.WithIdempotency(connect.IdempotencyNoSideEffects))...))
	mux.Handle(watchProcedure, connect.NewServerStreamHandler(watchProcedure, func(ctx context.Context, _ *request, stream *sender) error {
		return s.watch(ctx, stream)
	}, opts...))
	return mux
}

// serve starts a server, which is gone when the test ends, and returns clients of its
// procedures.
func serve(t *testing.T, s *service, limits *connectlimit.Interceptor, opts ...connect.ClientOption) (check, watch *client) {
	t.Helper()
	server := httptest.NewUnstartedServer(s.handler(connect.WithInterceptors(limits)))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return connect.NewClient[emptypb.Empty, emptypb.Empty](server.Client(), server.URL+checkProcedure, opts...),
		connect.NewClient[emptypb.Empty, emptypb.Empty](server.Client(), server.URL+watchProcedure, opts...)
}

func empty() *request { return connect.NewRequest(&emptypb.Empty{}) }
