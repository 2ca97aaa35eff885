package httplimit_test

import (
	"net/netip"
	"testing"

	"github.com/ratelimitgen/ratelimitgen/runtime/httplimit"
)

func TestProxiesReadTheHeaderOfTrustedPeersOnly(t *testing.T) {
	t.Parallel()
	p, err := httplimit.NewProxies("x-forwarded-for", private)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		peer  string
		lines []string // nil: must not be asked for
		want  string
	}{
		{"203.0.113.9", nil, "203.0.113.9"},
		{"::ffff:203.0.113.9", nil, "203.0.113.9"},
		{"fe80::1%eth0", nil, "fe80::1"},
		{"10.0.0.1", []string{"6.6.6.6, 2.2.2.2", "10.0.0.2"}, "2.2.2.2"},
		{"::ffff:10.0.0.1", []string{"2.2.2.2"}, "2.2.2.2"},
		{"10.0.0.1", []string{}, "10.0.0.1"},
	} {
		got := p.Caller(netip.MustParseAddr(tt.peer), func(header string) []string {
			if tt.lines == nil || header != "X-Forwarded-For" {
				t.Errorf("peer %s: asked for %s", tt.peer, header)
			}
			return tt.lines
		})
		if got != netip.MustParseAddr(tt.want) {
			t.Errorf("peer %s, %q: %v, want %s", tt.peer, tt.lines, got, tt.want)
		}
	}
	if got := p.Caller(netip.Addr{}, nil); got.IsValid() {
		t.Errorf("no peer: %v", got)
	}
	if n := p.Fallbacks(); n != 1 {
		t.Errorf("%d fallbacks, want 1", n)
	}
}

func TestNilProxiesTrustNobody(t *testing.T) {
	t.Parallel()
	var p *httplimit.Proxies
	if got := p.Caller(netip.MustParseAddr("10.0.0.1"), nil); got.String() != "10.0.0.1" || p.Fallbacks() != 0 {
		t.Errorf("caller %v, %d fallbacks", got, p.Fallbacks())
	}
}

func TestPeerAddr(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"192.0.2.1:80":         "192.0.2.1",
		"[2001:db8::1%eth0]:1": "2001:db8::1",
		"[::ffff:192.0.2.1]:1": "192.0.2.1",
		"192.0.2.1":            "192.0.2.1",
		"":                     "invalid IP",
		"@":                    "invalid IP",
		"bufconn":              "invalid IP",
		"localhost:80":         "invalid IP",
	} {
		if got := httplimit.PeerAddr(s).String(); got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
}
