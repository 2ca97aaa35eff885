package grpc

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/ratelimitgen/ratelimitgen/examples/grpc/connectshop"
	"github.com/ratelimitgen/ratelimitgen/examples/grpc/grpcshop"
	"github.com/ratelimitgen/ratelimitgen/examples/grpc/shop"
	"github.com/ratelimitgen/ratelimitgen/examples/grpc/shoppb"
	"github.com/ratelimitgen/ratelimitgen/examples/grpc/shoppb/shoppbconnect"
	"github.com/ratelimitgen/ratelimitgen/runtime/connectlimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/grpclimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// userOf returns whose token a call has brought, "" if nobody's.
func userOf(ctx context.Context) string {
	return tokens[ratelimit.RequestFrom(ctx).Header("Authorization")]
}

var tokens = map[string]string{"Bearer token-of-ann": "ann"}

func Example_grpc() {
	limits := grpclimit.New(grpclimit.WithUser(userOf))
	server := grpc.NewServer(limits.ServerOptions()...)
	grpcshop.Register(server, ratelimit.New())

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		if err := server.Serve(l); err != nil {
			log.Fatal(err)
		}
	}()
	defer server.Stop()

	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	client := shoppb.NewShopClient(conn)
	for range 4 {
		_, err = client.Search(context.Background(), &shoppb.SearchRequest{Query: "ap"})
		fmt.Println(status.Code(err), waitOf(err) > 0)
	}
	if err := conn.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// OK false
	// OK false
	// OK false
	// ResourceExhausted true
}

// waitOf returns how long the server asks the client to wait, 0 if it does not.
func waitOf(err error) time.Duration {
	for _, detail := range status.Convert(err).Details() {
		if retry, ok := detail.(*errdetails.RetryInfo); ok {
			return retry.GetRetryDelay().AsDuration()
		}
	}
	return 0
}

func Example_connect() {
	limiter := ratelimit.New()
	orders := &shop.Orders{}
	server := connectshop.NewServer(orders, shop.NewRateLimitedOrders(orders, limiter))

	limits := connectlimit.New(connectlimit.WithUser(userOf))
	mux := http.NewServeMux()
	mux.Handle(shoppbconnect.NewShopHandler(
		connectshop.NewRateLimitedServer(server, limiter), connect.WithInterceptors(limits)))

	s := httptest.NewServer(mux)
	defer s.Close()
	client := shoppbconnect.NewShopClient(s.Client(), s.URL)
	for range 4 {
		_, err := client.Search(context.Background(), connect.NewRequest(&shoppb.SearchRequest{Query: "ap"}))
		if err != nil {
			fmt.Println(connect.CodeOf(err))
		}
	}
	// Output: resource_exhausted
}

func Example_options() {
	limits := grpclimit.New(
		grpclimit.WithTrustedProxies(netip.MustParsePrefix("10.0.0.0/8")),
		grpclimit.WithUser(userOf),
		grpclimit.WithOnRefusal(func(ctx context.Context, method string, err *ratelimit.Error) {
			log.Printf("%s: %v", method, err)
		}),
	)
	fmt.Println(limits.Fallbacks())
	// Output: 0
}
