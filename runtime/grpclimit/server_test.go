package grpclimit_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/test/bufconn"

	"github.com/ratelimitgen/ratelimitgen/runtime/grpclimit"
)

const (
	checkMethod = "/grpc.health.v1.Health/Check"
	watchMethod = "/grpc.health.v1.Health/Watch"
)

// service is a service whose calls end as its functions say.
type service struct {
	healthpb.UnimplementedHealthServer
	check func(context.Context) error
	watch func(grpc.ServerStreamingServer[healthpb.HealthCheckResponse]) error
}

func (s *service) Check(ctx context.Context, _ *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	return &healthpb.HealthCheckResponse{}, nil
}

func (s *service) Watch(_ *healthpb.HealthCheckRequest, stream grpc.ServerStreamingServer[healthpb.HealthCheckResponse]) error {
	return s.watch(stream)
}

// tcp, unix and inProcess make a listener and the target by which it is dialed.
func tcp(t *testing.T) (net.Listener, string, []grpc.DialOption) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l, l.Addr().String(), nil
}

func unix(t *testing.T) (net.Listener, string, []grpc.DialOption) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	return l, "unix:" + path, nil
}

func inProcess(*testing.T) (net.Listener, string, []grpc.DialOption) {
	l := bufconn.Listen(1 << 16)
	return l, "passthrough:bufconn", []grpc.DialOption{
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }),
	}
}

type listen func(*testing.T) (net.Listener, string, []grpc.DialOption)

// serve starts a server and returns a client of it. Both are gone when the test ends.
func serve(t *testing.T, on listen, s *service, limits *grpclimit.Interceptor, opts ...grpc.DialOption) healthpb.HealthClient {
	t.Helper()
	l, target, dial := on(t)
	server := grpc.NewServer(limits.ServerOptions()...)
	healthpb.RegisterHealthServer(server, s)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	opts = append(append(opts, dial...), grpc.WithTransportCredentials(insecure.NewCredentials()))
	conn, err := grpc.NewClient(target, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		server.Stop()
		if err := <-ended; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Error(err)
		}
	})
	return healthpb.NewHealthClient(conn)
}
