// Package handlers tests limited handlers of several frameworks, each with its real
// code and a real client.
package handlers

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	gingonic "github.com/gin-gonic/gin"
	fiberv3 "github.com/gofiber/fiber/v3"

	"github.com/ratelimitgen/ratelimitgen/examples/handlers/echo4"
	"github.com/ratelimitgen/ratelimitgen/examples/handlers/echo5"
	"github.com/ratelimitgen/ratelimitgen/examples/handlers/fiber2"
	"github.com/ratelimitgen/ratelimitgen/examples/handlers/fiber3"
	"github.com/ratelimitgen/ratelimitgen/examples/handlers/gin"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// servers start a service of each framework and return its URL.
var servers = map[string]func(t *testing.T, limiter *ratelimit.Limiter) string{
	"gin":   func(t *testing.T, l *ratelimit.Limiter) string { return serve(t, gin.New(l)) },
	"echo4": func(t *testing.T, l *ratelimit.Limiter) string { return serve(t, echo4.New(l)) },
	"echo5": func(t *testing.T, l *ratelimit.Limiter) string { return serve(t, echo5.New(l)) },
	"fiber2": func(t *testing.T, l *ratelimit.Limiter) string {
		app := fiber2.New(l)
		return listen(t, app.Listener, app.Shutdown)
	},
	"fiber3": func(t *testing.T, l *ratelimit.Limiter) string {
		app := fiber3.New(l)
		return listen(t, func(ln net.Listener) error {
			return app.Listener(ln, fiberv3.ListenConfig{DisableStartupMessage: true})
		}, app.Shutdown)
	},
}

func serve(t *testing.T, h http.Handler) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func listen(t *testing.T, run func(net.Listener) error, stop func() error) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- run(ln) }()
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "http://" + ln.Addr().String()
}

// TestHandlersTellTheirRequestsApart has the caller's method, path and cookie from
// the context of each framework.
func TestHandlersTellTheirRequestsApart(t *testing.T) {
	t.Parallel()
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := start(t, ratelimit.New())
			for _, step := range []struct {
				method, path, seat string
				status             int
			}{
				{"GET", "/visits/1", "", 200},
				{"GET", "/visits/1", "", 429},
				{"GET", "/visits/1?x=1", "", 429}, // the path is the same
				{"GET", "/visits/2", "", 200},
				{"POST", "/visits/1", "", 200},
				{"POST", "/visits/1", "", 429},
				{"GET", "/visits/1", "a", 200},
				{"GET", "/visits/1", "a", 429},
				{"GET", "/visits/1", "b", 200},
			} {
				req, err := http.NewRequest(step.method, url+step.path, nil)
				if err != nil {
					t.Fatal(err)
				}
				if step.seat != "" {
					req.AddCookie(&http.Cookie{Name: "seat", Value: step.seat})
				}
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				if err := res.Body.Close(); err != nil {
					t.Fatal(err)
				}
				if res.StatusCode != step.status {
					t.Errorf("%s %s in seat %q: got %d, want %d", step.method, step.path, step.seat, res.StatusCode, step.status)
				}
			}
		})
	}
}

func TestHandlersAnswerRefusals(t *testing.T) {
	t.Parallel()
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := start(t, ratelimit.New())
			for _, step := range []struct {
				path, tenant string
				status       int
				retryAfter   string
				body         string // a part of it
			}{
				{"/orders/1", "", 200, "", "order 1"},
				{"/orders/2", "", 200, "", "order 2"},
				{"/orders/3", "", 429, "60", `"status":429`},
				{"/reports/1", "a", 200, "", "report 1"},
				{"/reports/2", "a", 503, "60", `"detail":"busy"`}, // the route is the same
				{"/reports/2", "b", 200, "", "report 2"},
				{"/reports/2", "", 403, "", `"status":403`},
				{"/login?user=ann&password=secret", "", 200, "", "hello"},
				{"/login?user=ann&password=secret", "", 200, "", "hello"},
				{"/login?user=ann&password=no", "", 401, "", "wrong password"},
				{"/login?user=ann&password=secret", "", 429, "60", `"status":429`},
				{"/login?user=bob&password=secret", "", 200, "", "hello"},
				{"/status", "", 200, "", "up"},
				{"/status", "", 429, "60", `"status":429`},
			} {
				req, err := http.NewRequest(http.MethodGet, url+step.path, nil)
				if err != nil {
					t.Fatal(err)
				}
				if step.tenant != "" {
					req.Header.Set("X-Tenant", step.tenant)
				}
				// Nobody believes it: the caller is the socket's peer.
				req.Header.Set("X-Forwarded-For", step.path)
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(res.Body)
				if err != nil {
					t.Fatal(err)
				}
				if err := res.Body.Close(); err != nil {
					t.Fatal(err)
				}
				if res.StatusCode != step.status || res.Header.Get("Retry-After") != step.retryAfter || !strings.Contains(string(body), step.body) {
					t.Errorf("%s of tenant %q: got %d, Retry-After %q, %q; want %d, %q, %q", step.path, step.tenant,
						res.StatusCode, res.Header.Get("Retry-After"), body, step.status, step.retryAfter, step.body)
				}
				refused := strings.Contains(step.body, "{") || strings.Contains(step.body, `":`)
				if got := res.Header.Get("Content-Type") == "application/problem+json"; got != refused {
					t.Errorf("%s: Content-Type is %q", step.path, res.Header.Get("Content-Type"))
				}
			}
		})
	}
}

// gin calls the handlers of a route one after the other, unless one aborts.
func TestARefusalOfGinEndsTheChain(t *testing.T) {
	t.Parallel()
	gin.New(ratelimit.New()) // sets the mode
	api := gin.NewRateLimitedAPI(gin.API{}, ratelimit.New())
	engine := gingonic.New()
	var went []string
	engine.GET("/orders/:id", api.Order, func(c *gingonic.Context) { went = append(went, c.Param("id")) })
	for _, id := range []string{"1", "2", "3"} {
		engine.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/orders/"+id, nil))
	}
	if got := strings.Join(went, " "); got != "1 2" {
		t.Errorf("%s went on, want 1 2", got)
	}
}
