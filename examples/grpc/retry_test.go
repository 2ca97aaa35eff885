package grpc

import (
	"context"
	"crypto/x509"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/ratelimitgen/ratelimitgen/examples/grpc/shop"
	"github.com/ratelimitgen/ratelimitgen/examples/grpc/shoppb"
	"github.com/ratelimitgen/ratelimitgen/runtime/connectlimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/grpclimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// impatient makes a client try up to five times, almost without a wait of its own.
var impatient = grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{"service": "shop.v1.Shop"}], "retryPolicy": {
	"maxAttempts": 5, "initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1,
	"retryableStatusCodes": ["RESOURCE_EXHAUSTED", "PERMISSION_DENIED"]}}]}`)

func TestARetryingClientDoesWhatItIsTold(t *testing.T) {
	t.Parallel()
	var refusals atomic.Int64
	limits := grpclimit.New(grpclimit.WithUser(shop.Authenticate), grpclimit.WithOnRefusal(func(context.Context, string, *ratelimit.Error) {
		refusals.Add(1)
	}))
	c := dial(t, listenGRPC(t, limits), impatient)
	req := &shoppb.OrderRequest{Item: "apple"}

	_, err := c.PlaceOrder(t.Context(), req)
	if code, _, _ := (grpcClient{}).explain(err); code != connect.CodePermissionDenied || refusals.Load() != 1 {
		t.Errorf("nobody: %v after %d attempts, want one", err, refusals.Load())
	}

	refusals.Store(0)
	ctx := call{user: "ann"}.outgoing(t.Context())
	for range 2 {
		if _, err := c.PlaceOrder(ctx, req); err != nil {
			t.Fatal(err)
		}
	}
	// The wait that it is told is a minute, which it does not have: it ends waiting.
	ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	_, err = c.PlaceOrder(ctx, req)
	if code, _, _ := (grpcClient{}).explain(err); code != connect.CodeDeadlineExceeded || refusals.Load() != 1 {
		t.Errorf("ann: %v after %d attempts, want one", err, refusals.Load())
	}
}

func TestAClientOfGRPCDoesNotRetryAtAConnectServer(t *testing.T) {
	t.Parallel()
	var refusals atomic.Int64
	server := listenConnect(t, connectlimit.New(connectlimit.WithUser(shop.Authenticate), connectlimit.WithOnRefusal(func(context.Context, string, *ratelimit.Error) {
		refusals.Add(1)
	})))
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	conn, err := grpc.NewClient(strings.TrimPrefix(server.URL, "https://"), impatient,
		grpc.WithTransportCredentials(credentials.NewClientTLSFromCert(pool, "example.com")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	c, ctx := shoppb.NewShopClient(conn), call{user: "ann"}.outgoing(t.Context())
	for range 2 {
		if _, err := c.PlaceOrder(ctx, &shoppb.OrderRequest{Item: "apple"}); err != nil {
			t.Fatal(err)
		}
	}
	_, err = c.PlaceOrder(ctx, &shoppb.OrderRequest{Item: "apple"})
	limited(t, grpcClient{}, err, "/shop.v1.Shop/PlaceOrder: two orders a minute")
	if refusals.Load() != 1 {
		t.Errorf("%d attempts, want one", refusals.Load())
	}
}
