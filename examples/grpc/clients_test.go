package grpc

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/ratelimitgen/ratelimitgen/examples/grpc/shoppb"
	"github.com/ratelimitgen/ratelimitgen/examples/grpc/shoppb/shoppbconnect"
)

// grpcClient is one of grpc-go.
type grpcClient struct{ shoppb.ShopClient }

func (c call) outgoing(ctx context.Context) context.Context {
	for name, value := range c.headers() {
		ctx = metadata.AppendToOutgoingContext(ctx, name, value)
	}
	return ctx
}

func (g grpcClient) search(ctx context.Context, c call) error {
	_, err := g.Search(c.outgoing(ctx), &shoppb.SearchRequest{Query: "ap"})
	return err
}

func (g grpcClient) placeOrder(ctx context.Context, c call) error {
	_, err := g.PlaceOrder(c.outgoing(ctx), &shoppb.OrderRequest{Item: "apple"})
	return err
}

func (g grpcClient) placeOrders(ctx context.Context, c call, n int) (int, error) {
	stream, err := g.PlaceOrders(c.outgoing(ctx))
	if err != nil {
		return 0, err
	}
	for i := range n {
		// An error of Send says that Recv tells more.
		_ = stream.Send(&shoppb.OrderRequest{Item: "apple"})
		if _, err := stream.Recv(); err != nil {
			return i, err
		}
	}
	return n, stream.CloseSend()
}

func (g grpcClient) watch(ctx context.Context, c call) (func() error, error) {
	ctx, cancel := context.WithCancel(c.outgoing(ctx))
	stream, err := g.Watch(ctx, &shoppb.WatchRequest{Item: "apple"})
	if err == nil {
		_, err = stream.Recv()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return func() error {
		cancel()
		_, err := stream.Recv()
		return err
	}, nil
}

func (grpcClient) explain(err error) (code connect.Code, retryAfter time.Duration, quota string) {
	st := status.Convert(err)
	for _, detail := range st.Details() {
		retryAfter, quota = explain(detail, retryAfter, quota)
	}
	return connect.Code(st.Code()), retryAfter, quota
}

func explain(detail any, retryAfter time.Duration, quota string) (time.Duration, string) {
	switch detail := detail.(type) {
	case *errdetails.RetryInfo:
		retryAfter = detail.GetRetryDelay().AsDuration()
	case *errdetails.QuotaFailure:
		for _, v := range detail.GetViolations() {
			quota += v.GetSubject() + ": " + v.GetDescription()
		}
	}
	return retryAfter, quota
}

// connectClient is one of Connect.
type connectClient struct{ shoppbconnect.ShopClient }

func asked[T any](c call, msg *T) *connect.Request[T] {
	req := connect.NewRequest(msg)
	for name, value := range c.headers() {
		req.Header().Set(name, value)
	}
	return req
}

func (k connectClient) search(ctx context.Context, c call) error {
	_, err := k.Search(ctx, asked(c, &shoppb.SearchRequest{Query: "ap"}))
	return err
}

func (k connectClient) placeOrder(ctx context.Context, c call) error {
	_, err := k.PlaceOrder(ctx, asked(c, &shoppb.OrderRequest{Item: "apple"}))
	return err
}

func (k connectClient) placeOrders(ctx context.Context, c call, n int) (int, error) {
	stream := k.PlaceOrders(ctx)
	for name, value := range c.headers() {
		stream.RequestHeader().Set(name, value)
	}
	// What the other side has closed needs no closing.
	defer func() { _ = stream.CloseResponse() }()
	for i := range n {
		// An error of Send says that Receive tells more.
		_ = stream.Send(&shoppb.OrderRequest{Item: "apple"})
		if _, err := stream.Receive(); err != nil {
			return i, err
		}
	}
	return n, stream.CloseRequest()
}

func (k connectClient) watch(ctx context.Context, c call) (func() error, error) {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := k.Watch(ctx, asked(c, &shoppb.WatchRequest{Item: "apple"}))
	if err == nil && !stream.Receive() {
		err = stream.Err()
		_ = stream.Close() // ended already
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return func() error {
		cancel()
		stream.Receive()
		_ = stream.Close() // ended already
		return stream.Err()
	}, nil
}

func (connectClient) explain(err error) (code connect.Code, retryAfter time.Duration, quota string) {
	var e *connect.Error
	if !errors.As(err, &e) {
		return 0, 0, ""
	}
	for _, detail := range e.Details() {
		value, err := detail.Value()
		if err != nil {
			return 0, 0, err.Error()
		}
		retryAfter, quota = explain(value, retryAfter, quota)
	}
	return e.Code(), retryAfter, quota
}
