// Package grpcshop serves the shop by google.golang.org/grpc.
package grpcshop

//go:generate go tool ratelimitgen

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	"github.com/ratelimitgen/ratelimitgen/examples/grpc/shop"
	"github.com/ratelimitgen/ratelimitgen/examples/grpc/shoppb"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// Register makes server serve the shop, limited by limiter.
func Register(server grpc.ServiceRegistrar, limiter *ratelimit.Limiter) {
	orders := &shop.Orders{}
	shoppb.RegisterShopServer(server, NewRateLimitedServer(&Server{
		orders: orders,
		placer: shop.NewRateLimitedOrders(orders, limiter),
	}, limiter))
}

// Server is the shop.
//
//ratelimit:wrapper implements=shoppb.ShopServer
type Server struct {
	shoppb.UnimplementedShopServer
	orders *shop.Orders
	placer *shop.RateLimitedOrders
}

// Search looks for items. An address gets three searches a minute.
//
//ratelimit:max=3 window=1m key=ip
func (s *Server) Search(ctx context.Context, req *shoppb.SearchRequest) (*shoppb.SearchReply, error) {
	return &shoppb.SearchReply{Items: shop.Search(req.GetQuery())}, nil
}

// PlaceOrder places an order.
func (s *Server) PlaceOrder(ctx context.Context, req *shoppb.OrderRequest) (*shoppb.Order, error) {
	return s.placer.Place(ctx, req)
}

// PlaceOrders places one order after the other. Each of them is limited: the stream
// ends with the first one that is refused.
func (s *Server) PlaceOrders(stream grpc.BidiStreamingServer[shoppb.OrderRequest, shoppb.Order]) error {
	for {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		order, err := s.placer.Place(stream.Context(), req)
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
func (s *Server) Watch(req *shoppb.WatchRequest, stream grpc.ServerStreamingServer[shoppb.Order]) error {
	return s.orders.Follow(stream.Context(), req.GetItem(), stream.Send)
}
