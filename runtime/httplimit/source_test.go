package httplimit_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ratelimitgen/ratelimitgen/runtime/httplimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"pgregory.net/rapid"
)

// seen returns what a handler behind m sees of r.
func seen(m *httplimit.Middleware, r *http.Request) *ratelimit.Request {
	var got *ratelimit.Request
	m.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = ratelimit.RequestFrom(r.Context())
	})).ServeHTTP(httptest.NewRecorder(), r)
	return got
}

func TestTheRequestTellsWhatKeysName(t *testing.T) {
	t.Parallel()
	m := httplimit.New(
		httplimit.WithUser(func(r *http.Request) string { return r.Header.Get("X-User") }),
		httplimit.WithRole(func(*http.Request) string { return "admin" }),
	)
	r := request("203.0.113.9:1", "X-User: eve", "X-Tenant: acme", "X-Tenant: other", "Cookie: a=1; sid=s1; sid=s2")
	r.Method, r.Host = http.MethodPut, "shop.example"
	r.URL.Path, r.URL.RawQuery = "/orders/7", "q=1&team=a%20b"
	got := seen(m, r)
	for name, pair := range map[string][2]string{
		"user":           {got.User, "eve"},
		"role":           {got.Role, "admin"},
		"method":         {got.Method, "PUT"},
		"path":           {got.Path, "/orders/7"},
		"route":          {got.RoutePattern(), ""},
		"header":         {got.Header("X-Tenant"), "acme"},
		"missing header": {got.Header("X-Other"), ""},
		"host":           {got.Header("Host"), "shop.example"},
		"query":          {got.Query("team"), "a b"},
		"missing query":  {got.Query("teams"), ""},
		"cookie":         {got.Cookie("sid"), "s1"},
		"missing cookie": {got.Cookie("tid"), ""},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s %q, want %q", name, pair[0], pair[1])
		}
	}
}

func TestTheRouteIsKnownWhereverTheMuxStands(t *testing.T) {
	t.Parallel()
	route := ""
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		route = ratelimit.RequestFrom(r.Context()).RoutePattern()
	})
	m := httplimit.New()
	behind, before := http.NewServeMux(), http.NewServeMux()
	behind.Handle("GET /orders/{id}", handler)
	before.Handle("GET /orders/{id}", m.Handler(handler))
	for name, h := range map[string]http.Handler{"behind the middleware": m.Handler(behind), "before it": before} {
		route = ""
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/orders/7", nil))
		if route != "GET /orders/{id}" {
			t.Errorf("a mux %s: route %q", name, route)
		}
	}
}

func TestQueryIsReadAsNetURLReadsIt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{"a", "b", "=", "&", ";", "%", "%61", "+", "%3D", "%zz", "ä"})
		raw, name := "", ""
		for _, s := range rapid.SliceOfN(piece, 0, 12).Draw(t, "query") {
			raw += s
		}
		for _, s := range rapid.SliceOfN(piece, 1, 3).Draw(t, "name") {
			name += s
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL.RawQuery = raw
		if got, want := seen(httplimit.New(), r).Query(name), r.URL.Query().Get(name); got != want {
			t.Fatalf("query %q, name %q: %q, want %q", raw, name, got, want)
		}
	})
}

func TestTheMiddlewareAllocatesOneObjectOfItsOwn(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/orders?q=1", nil)
	w := httptest.NewRecorder()
	var got *http.Request
	keep := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r })
	type key struct{}
	without := testing.AllocsPerRun(100, func() {
		keep.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), key{}, w)))
	})
	h := httplimit.New().Handler(keep)
	if with := testing.AllocsPerRun(100, func() { h.ServeHTTP(w, r) }); with > without+1 {
		t.Errorf("%v allocations for %s, %v of which any middleware makes that passes a value on", with, got.URL, without)
	}
}
