package grpclimit_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/ratelimitgen/ratelimitgen/runtime/grpclimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// seen returns what a handler behind limits sees of a call in ctx.
func seen(ctx context.Context, limits *grpclimit.Interceptor) *ratelimit.Request {
	var got *ratelimit.Request
	_, _ = limits.UnaryServerInterceptor()(ctx, nil, &grpc.UnaryServerInfo{FullMethod: checkMethod}, func(ctx context.Context, _ any) (any, error) {
		got = ratelimit.RequestFrom(ctx)
		return nil, nil
	})
	return got
}

// from returns the context of a call from addr, with metadata as pairs.
func from(addr net.Addr, pairs ...string) context.Context {
	ctx := metadata.NewIncomingContext(context.Background(), metadata.Pairs(pairs...))
	return peer.NewContext(ctx, &peer.Peer{Addr: addr})
}

// named is an address of any kind of connection.
type named struct{ network, name string }

func (n named) Network() string { return n.network }
func (n named) String() string  { return n.name }

func host(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 4711} }

func TestTheCallerIsThePeerOrWhomATrustedProxyNames(t *testing.T) {
	t.Parallel()
	trusted := grpclimit.WithTrustedProxies(netip.MustParsePrefix("10.0.0.0/8"))
	direct, behind := grpclimit.New(), grpclimit.New(trusted)
	forwarded := grpclimit.New(trusted, grpclimit.WithHeader("Forwarded"))
	for name, tt := range map[string]struct {
		limits *grpclimit.Interceptor
		ctx    context.Context
		want   string // "" for none
	}{
		"TCP":                             {direct, from(host("203.0.113.9")), "203.0.113.9"},
		"TCP, mapped":                     {direct, from(host("::ffff:203.0.113.9")), "203.0.113.9"},
		"TCP, IPv6 with a zone":           {direct, from(&net.TCPAddr{IP: net.ParseIP("fe80::1"), Zone: "eth0"}), "fe80::1"},
		"TCP without an address":          {direct, from(&net.TCPAddr{}), ""},
		"another connection":              {direct, from(named{"tcp", "[2001:db8::1]:443"}), "2001:db8::1"},
		"in this process":                 {direct, from(named{"bufconn", "bufconn"}), ""},
		"Unix socket":                     {direct, from(&net.UnixAddr{Name: "@", Net: "unix"}), ""},
		"Unix socket named as an address": {direct, from(&net.UnixAddr{Name: "203.0.113.9:1", Net: "unix"}), ""},
		"Unix socket of another kind":     {direct, from(named{"unixpacket", "203.0.113.9:1"}), ""},
		"no address":                      {direct, from(nil), ""},
		"no peer":                         {direct, context.Background(), ""},
		"HI02 nobody is trusted":          {direct, from(host("203.0.113.9"), "x-forwarded-for", "6.6.6.6", "x-real-ip", "6.6.6.6"), "203.0.113.9"},
		"HI04 an attacker, directly":      {behind, from(host("203.0.113.9"), "x-forwarded-for", "10.0.0.1"), "203.0.113.9"},
		"HI01 next hop from the right":    {behind, from(host("10.0.0.1"), "x-forwarded-for", "6.6.6.6, 2.2.2.2"), "2.2.2.2"},
		"several lines are one list":      {behind, from(host("10.0.0.1"), "x-forwarded-for", "6.6.6.6, 2.2.2.2", "x-forwarded-for", "10.0.0.2"), "2.2.2.2"},
		"garbage":                         {behind, from(host("10.0.0.1"), "x-forwarded-for", "2.2.2.2, \x00\xff"), "10.0.0.1"},
		"1000 trusted hops":               {behind, from(host("10.0.0.1"), "x-forwarded-for", "2.2.2.2"+strings.Repeat(",10.0.0.2", 1000)), "10.0.0.1"},
		"1000 lines":                      {behind, from(host("10.0.0.1"), append([]string{"x-forwarded-for", "2.2.2.2"}, lines(1000)...)...), "10.0.0.1"},
		"non-ASCII":                       {behind, from(host("10.0.0.1"), "x-forwarded-for", "２.2.2.2"), "10.0.0.1"},
		"another key":                     {behind, from(host("10.0.0.1"), "x-forwarded-for-bin", "2.2.2.2"), "10.0.0.1"},
		"forwarded":                       {forwarded, from(host("10.0.0.1"), "forwarded", `for=6.6.6.6, for="[2001:db8::1]:80";proto=http`), "2001:db8::1"},
		"the other one":                   {forwarded, from(host("10.0.0.1"), "x-forwarded-for", "2.2.2.2"), "10.0.0.1"},
	} {
		got := seen(tt.ctx, tt.limits).Addr
		if tt.want == "" && got.IsValid() || tt.want != "" && got != netip.MustParseAddr(tt.want) {
			t.Errorf("%s: %v, want %q", name, got, tt.want)
		}
	}
	if n := behind.Fallbacks(); n != 5 {
		t.Errorf("%d fallbacks, want 5", n)
	}
}

func lines(n int) (pairs []string) {
	for range n {
		pairs = append(pairs, "x-forwarded-for", "10.0.0.2")
	}
	return pairs
}

func TestInvalidOptionsPanicWithWhatIsWrong(t *testing.T) {
	t.Parallel()
	for want, opt := range map[string]grpclimit.Option{
		"grpclimit: trusted proxies: invalid Prefix":          grpclimit.WithTrustedProxies(netip.Prefix{}),
		"grpclimit: the name of the proxies' header is empty": grpclimit.WithHeader(""),
	} {
		func() {
			defer func() {
				if msg, _ := recover().(string); !strings.Contains(msg, want) {
					t.Errorf("panic %q, want %q", msg, want)
				}
			}()
			grpclimit.New(opt)
		}()
	}
}

// told is what a handler sees of a call, as text: it must not be looked at later.
func told(ctx context.Context) string {
	r := ratelimit.RequestFrom(ctx)
	return fmt.Sprintf("addr=%v user=%s role=%s method=%s path=%s route=%s tenant=%s bin=%x sid=%s host=%s q=%s none=%s", r.Addr, r.User, r.Role, r.Method, r.Path,
		r.RoutePattern(), r.Header("X-Tenant"), r.Header("X-Trace-Bin"), r.Cookie("sid"), r.Header("Host"), r.Query("q"), r.Header("X-None")+r.Cookie("none"))
}

func TestTheRequestTellsWhatKeysName(t *testing.T) {
	t.Parallel()
	calls := make(chan string, 2)
	user := grpclimit.WithUser(func(ctx context.Context) string { return ratelimit.RequestFrom(ctx).Header("X-User") })
	role := grpclimit.WithRole(func(ctx context.Context) string { return "role of " + ratelimit.RequestFrom(ctx).User })
	client := serve(t, tcp, &service{
		check: func(ctx context.Context) error { calls <- told(ctx); return nil },
		watch: func(stream grpc.ServerStreamingServer[healthpb.HealthCheckResponse]) error {
			calls <- told(stream.Context())
			return nil
		},
	}, grpclimit.New(user, role), grpc.WithAuthority("shop.example"))
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-user", "ann", "X-Tenant", "acme", "x-tenant", "other",
		"x-trace-bin", "\x00\xff", "cookie", "a=1; sid=s1; sid=s2")
	const want = "addr=127.0.0.1 user=ann role=role of ann method= path=%s route=%[1]s tenant=acme bin=00ff sid=s1 host=shop.example q= none="

	if _, err := client.Check(ctx, &healthpb.HealthCheckRequest{}); err != nil {
		t.Fatal(err)
	}
	if got := <-calls; got != fmt.Sprintf(want, checkMethod) {
		t.Errorf("unary: %s", got)
	}
	stream, err := client.Watch(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err == nil {
		t.Fatal("a message from nowhere")
	}
	if got := <-calls; got != fmt.Sprintf(want, watchMethod) {
		t.Errorf("stream: %s", got)
	}
}

func TestAPeerWithoutAnAddressHasNoKey(t *testing.T) {
	t.Parallel()
	for name, on := range map[string]listen{"Unix socket": unix, "in this process": inProcess} {
		gate := ratelimit.New().MustGate(&ratelimit.Spec{Method: "x", Policies: []ratelimit.Policy{{ID: "x", Limit: 9, Window: time.Minute}}})
		client := serve(t, on, &service{check: func(ctx context.Context) error {
			return gate.Allow(ctx, ratelimit.AppendIP([]byte{}, ratelimit.RequestFrom(ctx)))
		}}, grpclimit.New())
		var trailer metadata.MD
		_, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{}, grpc.Trailer(&trailer))
		if status.Code(err) != codes.PermissionDenied || fmt.Sprint(trailer.Get("grpc-retry-pushback-ms")) != "[-1]" {
			t.Errorf("%s: %v, trailer %v", name, err, trailer)
		}
	}
}

// FuzzMetadata holds that no metadata moves a caller away from its own address, and
// that a trusted proxy is never made to name anything but an address.
func FuzzMetadata(f *testing.F) {
	for _, value := range []string{"", "2.2.2.2", "\x00", "a\r\nb", "for=\"", "\xff\xfe", strings.Repeat("10.0.0.1,", 1000), "sid=\"", "=;=,"} {
		f.Add("x-forwarded-for", value, "forwarded", value)
		f.Add("cookie", value, "x-trace-bin", value)
		f.Add(value, value, ":authority", value)
	}
	trusted := grpclimit.WithTrustedProxies(netip.MustParsePrefix("10.0.0.0/8"))
	all := []*grpclimit.Interceptor{grpclimit.New(), grpclimit.New(trusted), grpclimit.New(trusted, grpclimit.WithHeader("forwarded"))}
	f.Fuzz(func(t *testing.T, name1, value1, name2, value2 string) {
		for i, limits := range all {
			pairs := []string{name1, value1, name2, value2, name1, value2}
			if got := seen(from(host("203.0.113.9"), pairs...), limits); got.Addr.String() != "203.0.113.9" {
				t.Errorf("%d: the peer became %v", i, got.Addr)
			}
			r := seen(from(host("10.0.0.1"), pairs...), limits)
			if !r.Addr.IsValid() || r.Addr.Zone() != "" || r.Addr.Is4In6() || i == 0 && r.Addr.String() != "10.0.0.1" {
				t.Errorf("%d: the caller is %v", i, r.Addr)
			}
			if got := r.Header(name1); strings.ToLower(name1) == name1 && !strings.EqualFold(name1, name2) && got != value1 {
				t.Errorf("header %q: %q, want %q", name1, got, value1)
			}
			_, _, _ = r.Cookie("sid"), r.Cookie(name1), r.Query(name1)
		}
	})
}

func BenchmarkUnary(b *testing.B) {
	ctx := from(host("10.0.0.1"), "x-forwarded-for", "2.2.2.2", "user-agent", "x", ":authority", "y")
	handler := func(context.Context, any) (any, error) { return nil, nil }
	info := &grpc.UnaryServerInfo{FullMethod: checkMethod}
	none := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		return handler(ctx, req)
	}
	for _, bb := range []struct {
		name      string
		intercept grpc.UnaryServerInterceptor
	}{
		{"none", none},
		{"direct", grpclimit.New().UnaryServerInterceptor()},
		{"proxied", grpclimit.New(grpclimit.WithTrustedProxies(netip.MustParsePrefix("10.0.0.0/8"))).UnaryServerInterceptor()},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := bb.intercept(ctx, nil, info, handler); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestTheUnaryInterceptorAllocatesARequestAndAContext(t *testing.T) {
	// Not parallel: AllocsPerRun counts the allocations of all goroutines.
	ctx := from(host("10.0.0.1"), "x-forwarded-for", "2.2.2.2")
	handler := func(context.Context, any) (any, error) { return nil, nil }
	info := &grpc.UnaryServerInfo{FullMethod: checkMethod}
	trusted := grpclimit.WithTrustedProxies(netip.MustParsePrefix("10.0.0.0/8"))
	for want, limits := range map[float64]*grpclimit.Interceptor{2: grpclimit.New(), 4: grpclimit.New(trusted)} {
		intercept := limits.UnaryServerInterceptor()
		if n := testing.AllocsPerRun(100, func() { _, _ = intercept(ctx, nil, info, handler) }); n > want {
			t.Errorf("%v allocations, want %v", n, want)
		}
	}
}
