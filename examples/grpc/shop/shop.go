// Package shop is what the servers for gRPC and for Connect have in common. Its limit
// is on placing an order, whichever way it comes in.
package shop

//go:generate go tool ratelimitgen

import (
	"context"
	"strings"
	"sync"

	"github.com/ratelimitgen/ratelimitgen/examples/grpc/shoppb"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// Orders are the orders that were placed. The zero value has none.
type Orders struct {
	mu      sync.Mutex
	placed  []*shoppb.Order
	changed chan struct{} // closed when placed grows; nil if nobody waits
}

// Place places an order.
//
//ratelimit:max=2 window=1m key=user message="two orders a minute"
func (o *Orders) Place(ctx context.Context, req *shoppb.OrderRequest) (*shoppb.Order, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	order := &shoppb.Order{Number: int64(len(o.placed) + 1), Item: req.GetItem()}
	o.placed = append(o.placed, order)
	if o.changed != nil {
		close(o.changed)
		o.changed = nil
	}
	return order, nil
}

// Follow calls send with each order of the item, those before too, until ctx is done
// or send fails.
func (o *Orders) Follow(ctx context.Context, item string, send func(*shoppb.Order) error) error {
	for next := 0; ; {
		orders, more := o.since(next)
		next += len(orders)
		for _, order := range orders {
			if order.GetItem() != item {
				continue
			}
			if err := send(order); err != nil {
				return err
			}
		}
		select {
		case <-more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// since returns the orders from the one with that index on, and a channel that is
// closed when there are more.
func (o *Orders) since(index int) ([]*shoppb.Order, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.changed == nil {
		o.changed = make(chan struct{})
	}
	return o.placed[index:len(o.placed):len(o.placed)], o.changed
}

// Search returns the items whose name holds the text.
func Search(text string) []string {
	var found []string
	for _, item := range []string{"apple", "apricot", "banana", "cherry"} {
		if strings.Contains(item, text) {
			found = append(found, item)
		}
	}
	return found
}

// User returns who the call of ctx is by, "" if nobody knows.
func User(ctx context.Context) string {
	if r := ratelimit.RequestFrom(ctx); r != nil {
		return r.User
	}
	return ""
}

// Authenticate returns whose token a call has brought, "" if nobody's. It is what the
// interceptors ask.
func Authenticate(ctx context.Context) string {
	return tokens[ratelimit.RequestFrom(ctx).Header("Authorization")]
}

var tokens = map[string]string{"Bearer token-of-ann": "ann", "Bearer token-of-bob": "bob"}
