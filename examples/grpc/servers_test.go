// Package grpc tests the limited shop of each server with real clients.
package grpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/ratelimitgen/ratelimitgen/examples/grpc/connectshop"
	"github.com/ratelimitgen/ratelimitgen/examples/grpc/grpcshop"
	"github.com/ratelimitgen/ratelimitgen/examples/grpc/shop"
	"github.com/ratelimitgen/ratelimitgen/examples/grpc/shoppb"
	"github.com/ratelimitgen/ratelimitgen/examples/grpc/shoppb/shoppbconnect"
	"github.com/ratelimitgen/ratelimitgen/runtime/connectlimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/grpclimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// TestMain holds that nothing runs on when all servers have stopped.
func TestMain(m *testing.M) {
	code := m.Run()
	stacks := make([]byte, 1<<20)
	for deadline := time.Now().Add(10 * time.Second); ; runtime.Gosched() {
		left := string(stacks[:runtime.Stack(stacks, true)])
		if !strings.Contains(left, "google.golang.org/grpc") && !strings.Contains(left, "connectrpc.com/connect") && !strings.Contains(left, "ratelimitgen/runtime") {
			break
		}
		if time.Now().After(deadline) {
			fmt.Fprintf(os.Stderr, "goroutines left behind:\n%s", left)
			code = 1
			break
		}
	}
	os.Exit(code)
}

// loopback is what the tests trust as a proxy; it is where they call from.
var loopback = netip.MustParsePrefix("127.0.0.0/8")

// listenGRPC starts a server with grpc-go and returns its address.
func listenGRPC(t *testing.T, limits *grpclimit.Interceptor) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(limits.ServerOptions()...)
	grpcshop.Register(server, ratelimit.New())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-ended; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// dial returns a client of grpc-go.
func dial(t *testing.T, target string, opts ...grpc.DialOption) shoppb.ShopClient {
	t.Helper()
	conn, err := grpc.NewClient(target, append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return shoppb.NewShopClient(conn)
}

// listenConnect starts a server with Connect.
func listenConnect(t *testing.T, limits *connectlimit.Interceptor) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(connectshop.New(ratelimit.New(), limits))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// A call is what a client tells of itself.
type call struct{ user, forwarded string }

func (c call) headers() map[string]string {
	headers := map[string]string{}
	if c.user != "" {
		headers["authorization"] = "Bearer token-of-" + c.user
	}
	if c.forwarded != "" {
		headers["x-forwarded-for"] = c.forwarded
	}
	return headers
}

// client is what both kinds of client can do, with the error as text.
type client interface {
	search(ctx context.Context, c call) error
	placeOrder(ctx context.Context, c call) error
	// placeOrders places n orders in a stream and returns how many were confirmed.
	placeOrders(ctx context.Context, c call, n int) (int, error)
	// watch returns the end of a stream that has told its first order.
	watch(ctx context.Context, c call) (end func() error, err error)
	// retryAfter is the wait that an error tells, 0 if none, and quota whether it
	// says that a quota is used up, in which words.
	explain(err error) (code connect.Code, retryAfter time.Duration, quota string)
}

// clients make a client, each of a server of its own that trusts the loopback or not.
var clients = map[string]func(t *testing.T, trusted bool) client{
	"grpc": func(t *testing.T, trusted bool) client {
		opts := []grpclimit.Option{grpclimit.WithUser(shop.Authenticate)}
		if trusted {
			opts = append(opts, grpclimit.WithTrustedProxies(loopback))
		}
		return grpcClient{dial(t, listenGRPC(t, grpclimit.New(opts...)))}
	},
	"connect":         connectClients(),
	"connect grpc":    connectClients(connect.WithGRPC()),
	"connect grpcweb": connectClients(connect.WithGRPCWeb()),
}

func connectClients(opts ...connect.ClientOption) func(*testing.T, bool) client {
	return func(t *testing.T, trusted bool) client {
		limits := []connectlimit.Option{connectlimit.WithUser(shop.Authenticate)}
		if trusted {
			limits = append(limits, connectlimit.WithTrustedProxies(loopback))
		}
		server := listenConnect(t, connectlimit.New(limits...))
		return connectClient{shoppbconnect.NewShopClient(server.Client(), server.URL, opts...)}
	}
}
