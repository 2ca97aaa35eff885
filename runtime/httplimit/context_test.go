package httplimit

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

func TestContextTellsWhatTheRequestItselfSays(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodPost, "http://host/orders/7?q=x", nil)
	r.RemoteAddr = "[::ffff:192.0.2.7]:1234"
	r.Header.Set("X-Forwarded-For", "203.0.113.9")
	r.Header.Set("X-Tenant", "acme")
	r.Header.Set("Cookie", "sid=s1")
	r.Pattern = "/orders/{id}"
	req := ratelimit.RequestFrom(Context(r))
	if req == nil {
		t.Fatal("no request")
	}
	if want := netip.MustParseAddr("192.0.2.7"); req.Addr != want {
		t.Errorf("the caller is %v, want the peer %v", req.Addr, want)
	}
	if req.Method != "POST" || req.Path != "/orders/7" || req.RoutePattern() != "/orders/{id}" || req.Header("X-Tenant") != "acme" || req.Query("q") != "x" || req.Cookie("sid") != "s1" {
		t.Errorf("got %+v", req)
	}
	if req.User != "" || req.Role != "" {
		t.Errorf("somebody is known: %q, %q", req.User, req.Role)
	}
}

func TestContextIsThatOfTheMiddleware(t *testing.T) {
	t.Parallel()
	user := WithUser(func(*http.Request) string { return "ann" })
	New(user).Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if Context(r) != r.Context() {
			t.Error("the middleware's context is not used")
		}
		routed := ratelimit.RequestFrom(RouteContext(r, "/orders/:id"))
		if routed.Route != "/orders/:id" || routed.User != "ann" {
			t.Errorf("got %+v", routed)
		}
		if RouteContext(r, "") != r.Context() {
			t.Error("an unknown route makes a new context")
		}
		if got := ratelimit.RequestFrom(r.Context()).Route; got != "" {
			t.Errorf("the middleware's request was changed: route %q", got)
		}
	})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/orders/7", nil))
}

func TestRouteContextKeepsTheRouteOfTheMux(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodGet, "/orders/7", nil)
	r.Pattern = "/orders/{id}"
	if got := ratelimit.RequestFrom(RouteContext(r, "/x")).Route; got != "/orders/{id}" {
		t.Errorf("route %q", got)
	}
}

func TestContextOfNoRequest(t *testing.T) {
	t.Parallel()
	if ctx := Context(nil); ctx == nil || ratelimit.RequestFrom(ctx) != nil {
		t.Errorf("got %v", ctx)
	}
	if ctx := RouteContext(nil, "/x"); ctx == nil || ratelimit.RequestFrom(ctx) != nil {
		t.Errorf("got %v", ctx)
	}
}

// fiber stands for a *fiber.Ctx here; examples/handlers runs the real one.
type fiber struct{ ip string }

func (f fiber) IP() string                            { return f.ip }
func (fiber) Method(...string) string                 { return "GET" }
func (fiber) Path(...string) string                   { return "/a" }
func (fiber) Get(name string, _ ...string) string     { return "header " + name }
func (fiber) Query(name string, _ ...string) string   { return "query " + name }
func (fiber) Cookies(name string, _ ...string) string { return "cookie " + name }

func TestFiberContext(t *testing.T) {
	t.Parallel()
	for ip, want := range map[string]netip.Addr{
		"::ffff:192.0.2.1":       netip.MustParseAddr("192.0.2.1"),
		"fe80::1%eth0":           netip.MustParseAddr("fe80::1"),
		"192.0.2.1, 203.0.113.9": {}, // a header that was not taken apart
		"":                       {},
	} {
		r := ratelimit.RequestFrom(FiberContext(context.Background(), fiber{ip}, "/a/:b"))
		if r.Addr != want {
			t.Errorf("%q: got %v, want %v", ip, r.Addr, want)
		}
		if r.Method != "GET" || r.Path != "/a" || r.RoutePattern() != "/a/:b" || r.Header("X") != "header X" || r.Query("q") != "query q" || r.Cookie("c") != "cookie c" {
			t.Errorf("got %+v", r)
		}
	}
	ctx := ratelimit.WithRequest(context.Background(), &ratelimit.Request{User: "ann"})
	if FiberContext(ctx, fiber{}, "") != ctx {
		t.Error("what the context tells is lost")
	}
}
