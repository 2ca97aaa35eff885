package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"

	"github.com/ratelimitgen/ratelimitgen/examples/quickstart/shop"
	"github.com/ratelimitgen/ratelimitgen/runtime/httplimit"
)

// handler serves the shop. Nothing in it speaks of limits but the middleware, which
// finds out who is calling, and the handlers' errors, which become responses.
func handler(service *shop.RateLimitedService, trusted netip.Prefix) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /login", httplimit.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		token, err := service.Login(r.Context(), &shop.Credentials{User: r.FormValue("user"), Password: r.FormValue("password")})
		if errors.Is(err, shop.ErrDenied) {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return nil
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(w, token)
		return err
	}))
	mux.Handle("POST /orders", httplimit.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		req := &shop.OrderRequest{Tenant: r.FormValue("tenant"), Item: r.FormValue("item")}
		if id := r.FormValue("user"); id != "" {
			req.User = &shop.User{ID: id}
		}
		order, err := service.PlaceOrder(r.Context(), req)
		if err != nil {
			return err
		}
		return json.NewEncoder(w).Encode(order)
	}))
	mux.Handle("GET /search", httplimit.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		items, err := service.Search(r.Context(), r.FormValue("q"))
		if err != nil {
			return err
		}
		return json.NewEncoder(w).Encode(items)
	}))
	return httplimit.New(httplimit.WithTrustedProxies(trusted)).Handler(mux)
}
