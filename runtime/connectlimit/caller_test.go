package connectlimit_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/ratelimitgen/ratelimitgen/runtime/connectlimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// seen returns what a procedure sees of a call that comes from remote with headers as
// pairs.
func seen(t *testing.T, limits *connectlimit.Interceptor, remote string, pairs ...string) *ratelimit.Request {
	t.Helper()
	var got *ratelimit.Request
	s := service{check: func(ctx context.Context) error { got = ratelimit.RequestFrom(ctx); return nil }}
	r := httptest.NewRequest(http.MethodPost, checkProcedure, strings.NewReader("{}"))
	r.RemoteAddr = remote
	r.Header = http.Header{"Content-Type": {"application/json"}}
	for i := 0; i < len(pairs); i += 2 {
		r.Header[pairs[i]] = append(r.Header[pairs[i]], pairs[i+1])
	}
	w := httptest.NewRecorder()
	s.handler(connect.WithInterceptors(limits)).ServeHTTP(w, r)
	if got == nil {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return got
}

func TestTheCallerIsThePeerOrWhomATrustedProxyNames(t *testing.T) {
	t.Parallel()
	trusted := connectlimit.WithTrustedProxies(netip.MustParsePrefix("10.0.0.0/8"))
	direct, behind := connectlimit.New(), connectlimit.New(trusted)
	forwarded := connectlimit.New(trusted, connectlimit.WithHeader("forwarded"))
	const xff = "X-Forwarded-For"
	for name, tt := range map[string]struct {
		limits *connectlimit.Interceptor
		remote string
		pairs  []string
		want   string // "" for none
	}{
		"TCP":                          {direct, "203.0.113.9:1", nil, "203.0.113.9"},
		"mapped, with a zone":          {direct, "[::ffff:203.0.113.9%eth0]:1", nil, "203.0.113.9"},
		"Unix socket":                  {direct, "@", nil, ""},
		"no peer":                      {direct, "", nil, ""},
		"HI02 nobody is trusted":       {direct, "203.0.113.9:1", []string{xff, "6.6.6.6", "X-Real-Ip", "6.6.6.6"}, "203.0.113.9"},
		"HI04 an attacker, directly":   {behind, "203.0.113.9:1", []string{xff, "10.0.0.1"}, "203.0.113.9"},
		"HI01 next hop from the right": {behind, "10.0.0.1:1", []string{xff, "6.6.6.6, 2.2.2.2"}, "2.2.2.2"},
		"several lines are one list":   {behind, "10.0.0.1:1", []string{xff, "6.6.6.6, 2.2.2.2", xff, "10.0.0.2"}, "2.2.2.2"},
		"garbage":                      {behind, "10.0.0.1:1", []string{xff, "2.2.2.2, \x00\xff"}, "10.0.0.1"},
		"1000 trusted hops":            {behind, "10.0.0.1:1", []string{xff, "2.2.2.2" + strings.Repeat(",10.0.0.2", 1000)}, "10.0.0.1"},
		"non-ASCII":                    {behind, "10.0.0.1:1", []string{xff, "２.2.2.2"}, "10.0.0.1"},
		"another name":                 {behind, "10.0.0.1:1", []string{"X-Forwarded-For-Bin", "2.2.2.2"}, "10.0.0.1"},
		"forwarded":                    {forwarded, "10.0.0.1:1", []string{"Forwarded", `for=6.6.6.6, for="[2001:db8::1]:80"`}, "2001:db8::1"},
	} {
		got := seen(t, tt.limits, tt.remote, tt.pairs...).Addr
		if tt.want == "" && got.IsValid() || tt.want != "" && got != netip.MustParseAddr(tt.want) {
			t.Errorf("%s: %v, want %q", name, got, tt.want)
		}
	}
	if n := behind.Fallbacks(); n != 4 {
		t.Errorf("%d fallbacks, want 4", n)
	}
}

func TestInvalidOptionsPanicWithWhatIsWrong(t *testing.T) {
	t.Parallel()
	for want, opt := range map[string]connectlimit.Option{
		"connectlimit: trusted proxies: invalid Prefix":          connectlimit.WithTrustedProxies(netip.Prefix{}),
		"connectlimit: the name of the proxies' header is empty": connectlimit.WithHeader(""),
	} {
		func() {
			defer func() {
				if msg, _ := recover().(string); !strings.Contains(msg, want) {
					t.Errorf("panic %q, want %q", msg, want)
				}
			}()
			connectlimit.New(opt)
		}()
	}
}

func told(ctx context.Context) string {
	r := ratelimit.RequestFrom(ctx)
	return fmt.Sprintf("addr=%v user=%s role=%s method=%s path=%s route=%s tenant=%s sid=%s encoding=%s none=%s", r.Addr, r.User, r.Role, r.Method, r.Path,
		r.RoutePattern(), r.Header("X-Tenant"), r.Cookie("sid"), r.Query("encoding"), r.Header("X-None")+r.Cookie("none")+r.Query("none"))
}

func TestTheRequestTellsWhatKeysName(t *testing.T) {
	t.Parallel()
	user := connectlimit.WithUser(func(ctx context.Context) string { return ratelimit.RequestFrom(ctx).Header("X-User") })
	role := connectlimit.WithRole(func(ctx context.Context) string { return "role of " + ratelimit.RequestFrom(ctx).User })
	for protocol, opts := range protocols {
		calls := make(chan string, 2)
		check, watch := serve(t, &service{
			check: func(ctx context.Context) error { calls <- told(ctx); return nil },
			watch: func(ctx context.Context, _ *sender) error { calls <- told(ctx); return nil },
		}, connectlimit.New(user, role), append(opts, connect.WithHTTPGet(), connect.WithIdempotency(connect.IdempotencyNoSideEffects))...)
		for procedure, call := range map[string]func(*request) error{
			checkProcedure: func(r *request) error { _, err := check.CallUnary(t.Context(), r); return err },
			watchProcedure: func(r *request) error {
				stream, err := watch.CallServerStream(t.Context(), r)
				if err != nil {
					return err
				}
				for stream.Receive() {
					t.Error("a message from nowhere")
				}
				return stream.Close()
			},
		} {
			r := empty()
			r.Header().Set("X-User", "ann")
			r.Header()["X-Tenant"] = []string{"acme", "other"}
			r.Header().Set("Cookie", "a=1; sid=s1; sid=s2")
			if err := call(r); err != nil {
				t.Fatal(err)
			}
			method, encoding := http.MethodPost, ""
			if procedure == checkProcedure && protocol == connect.ProtocolConnect {
				method, encoding = http.MethodGet, "proto"
			}
			want := fmt.Sprintf("addr=127.0.0.1 user=ann role=role of ann method=%s path=%s route=%[2]s tenant=acme sid=s1 encoding=%s none=", method, procedure, encoding)
			if got := <-calls; got != want {
				t.Errorf("%s: %s, want %s", protocol, got, want)
			}
		}
	}
}

func TestAClientIsNotChanged(t *testing.T) {
	t.Parallel()
	cause := refusal(ratelimit.ErrLimited, 0)
	server := httptest.NewServer((&service{check: func(ctx context.Context) error {
		if ratelimit.RequestFrom(ctx) != nil {
			t.Error("the server knows what only an interceptor of its own finds out")
		}
		return nil
	}}).handler())
	t.Cleanup(server.Close)
	var inner connect.UnaryInterceptorFunc = func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			if ratelimit.RequestFrom(ctx) != nil {
				t.Error("a client's context says who is calling")
			}
			if _, err := next(ctx, req); err != nil {
				return nil, err
			}
			return nil, cause
		}
	}
	check := connect.NewClient[struct{}, struct{}](server.Client(), server.URL+checkProcedure,
		connect.WithCodec(noCodec{}), connect.WithInterceptors(connectlimit.New(), inner))
	if _, err := check.CallUnary(t.Context(), connect.NewRequest(&struct{}{})); err != cause {
		t.Errorf("%v became %v", cause, err)
	}
}

// noCodec encodes nothing, as JSON.
type noCodec struct{}

func (noCodec) Name() string                { return "json" }
func (noCodec) Marshal(any) ([]byte, error) { return []byte("{}"), nil }
func (noCodec) Unmarshal([]byte, any) error { return nil }

// FuzzHeaders holds that no header moves a caller away from its own address, and that
// a trusted proxy is never made to name anything but an address.
func FuzzHeaders(f *testing.F) {
	for _, value := range []string{"", "2.2.2.2", "\x00", "a\r\nb", "for=\"", "\xff\xfe", strings.Repeat("10.0.0.1,", 1000), "sid=\"", "=;=,"} {
		f.Add("X-Forwarded-For", value)
		f.Add("Forwarded", value)
		f.Add("Cookie", value)
	}
	trusted := connectlimit.WithTrustedProxies(netip.MustParsePrefix("10.0.0.0/8"))
	all := []*connectlimit.Interceptor{connectlimit.New(), connectlimit.New(trusted), connectlimit.New(trusted, connectlimit.WithHeader("forwarded"))}
	f.Fuzz(func(t *testing.T, name, value string) {
		if strings.HasPrefix(name, "Con") {
			t.Skip("Connect has its own ideas of Content-Type and the like")
		}
		for i, limits := range all {
			if got := seen(t, limits, "203.0.113.9:1", name, value); got.Addr.String() != "203.0.113.9" {
				t.Errorf("%d: the peer became %v", i, got.Addr)
			}
			r := seen(t, limits, "10.0.0.1:1", name, value)
			if !r.Addr.IsValid() || r.Addr.Zone() != "" || r.Addr.Is4In6() || i == 0 && r.Addr.String() != "10.0.0.1" {
				t.Errorf("%d: the caller is %v", i, r.Addr)
			}
			if got := r.Header(name); got != value {
				t.Errorf("header %q: %q, want %q", name, got, value)
			}
			_, _, _ = r.Cookie("sid"), r.Cookie(name), r.Query(name)
		}
	})
}

func BenchmarkUnary(b *testing.B) {
	handler := func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) { return nil, nil }
	req := empty()
	for name, call := range map[string]connect.UnaryFunc{"none": handler, "limits": connectlimit.New().WrapUnary(handler)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := call(b.Context(), req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
