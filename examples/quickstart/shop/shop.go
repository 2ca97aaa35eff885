// Package shop is a small service. Its limits are the comments on its methods;
// ratelimit_gen.go beside this file holds the wrapper that enforces them.
package shop

//go:generate go tool ratelimitgen

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
)

// ErrDenied is the error of a login with a wrong password.
var ErrDenied = errors.New("unknown user or wrong password")

// Service is the shop.
type Service struct {
	orders atomic.Int64
}

// Credentials are what a user logs in with.
type Credentials struct{ User, Password string }

// User is who places an order.
type User struct{ ID string }

// OrderRequest asks for an item.
type OrderRequest struct {
	Tenant string
	User   *User
	Item   string
}

// Order is an order that was placed.
type Order struct {
	Number int64
	Item   string
}

// Login checks a password. Whoever guesses gets five tries a minute.
//
//ratelimit:max=5 window=1m key=ip
func (s *Service) Login(ctx context.Context, c *Credentials) (token string, err error) {
	if c.Password != "correct horse" {
		return "", ErrDenied
	}
	return "token-of-" + c.User, nil
}

// PlaceOrder places an order. Each user of each tenant has a bucket of three, which
// fills by one every twenty seconds.
//
//ratelimit:max=3 window=1m algorithm=token-bucket key=`[req.Tenant, req.User.ID]`
func (s *Service) PlaceOrder(ctx context.Context, req *OrderRequest) (*Order, error) {
	return &Order{Number: s.orders.Add(1), Item: req.Item}, nil
}

// Search looks for items. All callers together get ten searches a minute.
//
//ratelimit:max=10 window=1m algorithm=fixed-window
func (s *Service) Search(ctx context.Context, query string) ([]string, error) {
	var found []string
	for _, item := range []string{"apple", "apricot", "banana", "cherry"} {
		if strings.Contains(item, query) {
			found = append(found, item)
		}
	}
	return found, nil
}

// Orders is the number of orders so far; it has no limit.
func (s *Service) Orders() int64 { return s.orders.Load() }

// String makes a Service printable.
func (s *Service) String() string { return fmt.Sprintf("shop with %d orders", s.Orders()) }
