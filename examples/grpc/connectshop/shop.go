// Package connectshop serves the shop by connectrpc.com/connect.
package connectshop

//go:generate go tool ratelimitgen

import (
	"context"
	"errors"
	"io"
	"net/http"

	"connectrpc.com/connect"

	"github.com/ratelimitgen/ratelimitgen/examples/grpc/shop"
	"github.com/ratelimitgen/ratelimitgen/examples/grpc/shoppb"
	"github.com/ratelimitgen/ratelimitgen/examples/grpc/shoppb/shoppbconnect"
	"github.com/ratelimitgen/ratelimitgen/runtime/connectlimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// New returns a handler that serves the shop, limited by limiter.
func New(limiter *ratelimit.Limiter, limits *connectlimit.Interceptor) http.Handler {
	orders := &shop.Orders{}
	mux := http.NewServeMux()
	server := NewServer(orders, shop.NewRateLimitedOrders(orders, limiter))
	mux.Handle(shoppbconnect.NewShopHandler(NewRateLimitedServer(server, limiter), connect.WithInterceptors(limits)))
	return mux
}

// NewServer returns the shop that keeps orders, which placer places.
func NewServer(orders *shop.Orders, placer *shop.RateLimitedOrders) *Server {
	return &Server{orders: orders, placer: placer}
}

// Server is the shop.
//
//ratelimit:wrapper implements=shoppbconnect.ShopHandler
type Server struct {
	orders *shop.Orders
	placer *shop.RateLimitedOrders
}

// Search looks for items. An address gets three searches a minute.
//
//ratelimit:max=3 window=1m key=ip
func (s *Server) Search(ctx context.Context, req *connect.Request[shoppb.SearchRequest]) (*connect.Response[shoppb.SearchReply], error) {
	return connect.NewResponse(&shoppb.SearchReply{Items: shop.Search(req.Msg.GetQuery())}), nil
}

// PlaceOrder places an order.
func (s *Server) PlaceOrder(ctx context.Context, req *connect.Request[shoppb.OrderRequest]) (*connect.Response[shoppb.Order], error) {
	order, err := s.placer.Place(ctx, req.Msg)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(order), nil
}

// PlaceOrders places one order after the other. Each of them is limited: the stream
// ends with the first one that is refused.
func (s *Server) PlaceOrders(ctx context.Context, stream *connect.BidiStream[shoppb.OrderRequest, shoppb.Order]) error {
	for {
		req, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		order, err := s.placer.Place(ctx, req)
		if err != nil {
			return err
		}
		if err := stream.Send(order); err != nil {
			return err
		}
	}
}

// Watch tells the orders of an item. A user watches one item at a time.
//
//ratelimit:max=1 algorithm=concurrency lease=1h key=user
func (s *Server) Watch(ctx context.Context, req *connect.Request[shoppb.WatchRequest], stream *connect.ServerStream[shoppb.Order]) error {
	return s.orders.Follow(ctx, req.Msg.GetItem(), stream.Send)
}
