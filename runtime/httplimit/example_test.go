package httplimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/httplimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// The proxies of 10.0.0.0/8 say in X-Forwarded-For whom they serve.
func ExampleMiddleware_Handler() {
	m := httplimit.New(httplimit.WithTrustedProxies(netip.MustParsePrefix("10.0.0.0/8")))
	h := m.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println(ratelimit.RequestFrom(r.Context()).Addr)
	}))

	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "10.0.0.1:4711"
	r.Header.Set("X-Forwarded-For", "6.6.6.6, 203.0.113.7, 10.0.0.2")
	h.ServeHTTP(httptest.NewRecorder(), r)
	// Output: 203.0.113.7
}

// A handler returns the error of a limited method, and the client gets the
// response that belongs to it.
func ExampleHandlerFunc() {
	limiter := ratelimit.New()
	gate := limiter.MustGate(&ratelimit.Spec{Method: "pay.Service.PlaceOrder", Policies: []ratelimit.Policy{
		{ID: "orders", Global: true, Limit: 1, Window: time.Minute},
	}})
	placeOrder := func(w http.ResponseWriter, r *http.Request) error {
		// Generated wrappers ask the gate before they call the method.
		if err := gate.Allow(r.Context(), nil); err != nil {
			return err
		}
		w.WriteHeader(http.StatusCreated)
		return nil
	}

	h := httplimit.New().Handler(httplimit.HandlerFunc(placeOrder))
	for range 2 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/orders", nil))
		fmt.Println(w.Code, "told to wait:", w.Header().Get("Retry-After") != "")
	}
	// Output:
	// 201 told to wait: false
	// 429 told to wait: true
}
