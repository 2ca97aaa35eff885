package httplimit_test

import (
	"bytes"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/httplimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// login has the shape of generated code.
type login struct{ gate *ratelimit.Gate }

func newLogin(l *ratelimit.Limiter, key string) *login {
	return &login{l.MustGate(&ratelimit.Spec{
		Method: "auth.Service.Login", File: "service.go",
		Policies: []ratelimit.Policy{{
			ID: "example.com/auth.Service.Login", Directive: "max=2 window=1h key=" + key, Key: key,
			Limit: 2, Window: time.Hour,
		}},
	})}
}

func (l *login) byIP(ctx context.Context) error {
	var buf [64]byte
	return l.gate.Allow(ctx, ratelimit.AppendIP(buf[:0], ratelimit.RequestFrom(ctx)))
}

func (l *login) byUser(ctx context.Context) error {
	var buf [64]byte
	return l.gate.Allow(ctx, ratelimit.AppendUser(buf[:0], ratelimit.RequestFrom(ctx)))
}

func (l *login) serveByIP(w http.ResponseWriter, r *http.Request) error {
	if err := l.byIP(r.Context()); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func TestHI06AddressesOfOneNetworkShareOneKey(t *testing.T) {
	t.Parallel()
	m := httplimit.New(httplimit.WithTrustedProxies(proxy))
	h := m.Handler(httplimit.HandlerFunc(newLogin(ratelimit.New(), "ip").serveByIP))
	admitted := 0
	addr := netip.MustParseAddr("2001:db8:0:1::").As16()
	r := request("1.1.1.1:80")
	for i := range 1 << 16 {
		addr[8], addr[15] = byte(i>>8), byte(i)
		r.Header.Set("X-Forwarded-For", netip.AddrFrom16(addr).String())
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusTooManyRequests {
			admitted++
		}
	}
	if admitted != 2 {
		t.Errorf("%d of 2^16 addresses of one /64 admitted, want 2 as for one key", admitted)
	}
	r.Header.Set("X-Forwarded-For", "2001:db8:0:2::1")
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Code != http.StatusNoContent {
		t.Errorf("another /64: status %d, want %d", w.Code, http.StatusNoContent)
	}
}

func TestHI07EachTCPConnectionIsTheSameCaller(t *testing.T) {
	t.Parallel()
	h := httplimit.New().Handler(httplimit.HandlerFunc(newLogin(ratelimit.New(), "ip").serveByIP))
	var connections atomic.Int64
	server := httptest.NewUnstartedServer(h)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	codes := map[int]int{}
	for range 10 {
		transport := &http.Transport{DisableKeepAlives: true}
		res, err := (&http.Client{Transport: transport}).Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		codes[res.StatusCode]++
		if res.StatusCode != http.StatusTooManyRequests {
			continue
		}
		if s, err := strconv.Atoi(res.Header.Get("Retry-After")); err != nil || s < 1 || s > 3600 {
			t.Errorf("refusal with Retry-After %q, want 1..3600", res.Header.Get("Retry-After"))
		}
		if !strings.Contains(string(text), `"status":429`) {
			t.Errorf("refusal with body %q", text)
		}
	}
	if n := connections.Load(); n != 10 {
		t.Errorf("%d connections, want 10", n)
	}
	if codes[http.StatusNoContent] != 2 || codes[http.StatusTooManyRequests] != 8 {
		t.Errorf("status codes %v, want 2 times 204 and 8 times 429", codes)
	}
}

func TestHI15LineBreaksInAKeyMakeNoSecondLogLine(t *testing.T) {
	t.Parallel()
	const evil = "ada\r\nX-Admin: 1\n2026/01/01 00:00:00 admitted root\x1b[2J"
	var logged bytes.Buffer
	logger := log.New(&logged, "", 0)
	service := newLogin(ratelimit.New(), "user")
	m := httplimit.New(httplimit.WithUser(func(*http.Request) string { return evil }))
	h := m.Handler(httplimit.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) error {
		err := service.byUser(r.Context())
		if err != nil {
			logger.Printf("%v", err)
		}
		return err
	}))
	var last *httptest.ResponseRecorder
	for range 3 {
		last = httptest.NewRecorder()
		h.ServeHTTP(last, request("192.0.2.1:80"))
	}
	if last.Code != http.StatusTooManyRequests {
		t.Fatalf("status %d, want 429", last.Code)
	}
	if n := strings.Count(logged.String(), "\n"); n != 1 || strings.ContainsAny(logged.String(), "\r\x1b") {
		t.Errorf("%d log lines, want 1 without control characters: %q", n, logged.String())
	}
	var dump bytes.Buffer
	if err := last.Result().Write(&dump); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(dump.String(), "ada") || strings.Contains(dump.String(), "X-Admin") {
		t.Errorf("the response holds the key: %q", dump.String())
	}
}

func TestUnknownAddressIsForbiddenWhereItIsTheKey(t *testing.T) {
	t.Parallel()
	h := httplimit.New().Handler(httplimit.HandlerFunc(newLogin(ratelimit.New(), "ip").serveByIP))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request("@"))
	if w.Code != http.StatusForbidden {
		t.Errorf("status %d, want 403", w.Code)
	}
}
