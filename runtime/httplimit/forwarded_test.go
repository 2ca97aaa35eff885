package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/ratelimitgen/ratelimitgen/runtime/httplimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

var (
	proxy   = netip.MustParsePrefix("1.1.1.1/32")
	private = netip.MustParsePrefix("10.0.0.0/8")
	ula     = netip.MustParsePrefix("fd00::/8")
)

// request makes a request from peer whose headers are the lines, "Name: value".
func request(peer string, lines ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = peer
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		r.Header.Add(name, strings.TrimSpace(value))
	}
	return r
}

// caller returns the address that a handler behind m sees.
func caller(t *testing.T, m *httplimit.Middleware, r *http.Request) string {
	t.Helper()
	var got *ratelimit.Request
	m.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = ratelimit.RequestFrom(r.Context())
	})).ServeHTTP(httptest.NewRecorder(), r)
	if got == nil {
		t.Fatal("the handler sees no caller")
	}
	if !got.Addr.IsValid() {
		return ""
	}
	return got.Addr.String()
}

func TestHI01TrustedPeerNextHopFromTheRight(t *testing.T) {
	t.Parallel()
	m := httplimit.New(httplimit.WithTrustedProxies(proxy))
	r := request("1.1.1.1:5000", "X-Forwarded-For: 6.6.6.6, 2.2.2.2")
	if got := caller(t, m, r); got != "2.2.2.2" {
		t.Errorf("caller %s, want 2.2.2.2: what stands left of it is the client's own word", got)
	}
	if r.RemoteAddr != "1.1.1.1:5000" || r.Header.Get("X-Forwarded-For") != "6.6.6.6, 2.2.2.2" {
		t.Errorf("the request was changed: %q %v", r.RemoteAddr, r.Header)
	}
}

func TestHI02WithoutConfigurationNoHeaderIsRead(t *testing.T) {
	t.Parallel()
	r := request("203.0.113.9:5000", "X-Forwarded-For: 6.6.6.6", "X-Real-IP: 6.6.6.6", "True-Client-IP: 6.6.6.6",
		"Forwarded: for=6.6.6.6", "CF-Connecting-IP: 6.6.6.6", "X-Client-IP: 6.6.6.6")
	if got := caller(t, httplimit.New(), r); got != "203.0.113.9" {
		t.Errorf("caller %s, want the peer 203.0.113.9", got)
	}
}

func TestHI03RealIPIsReadOnlyIfNamedAndFromATrustedPeer(t *testing.T) {
	t.Parallel()
	trusted := httplimit.WithTrustedProxies(proxy)
	for name, tt := range map[string]struct {
		m    *httplimit.Middleware
		peer string
		want string
	}{
		"not named, trusted peer":   {httplimit.New(trusted), "1.1.1.1:1", "1.1.1.1"},
		"named, trusted peer":       {httplimit.New(trusted, httplimit.WithHeader("x-real-ip")), "1.1.1.1:1", "7.7.7.7"},
		"named, untrusted peer":     {httplimit.New(trusted, httplimit.WithHeader("x-real-ip")), "2.2.2.2:1", "2.2.2.2"},
		"named, nobody is trusted":  {httplimit.New(httplimit.WithHeader("x-real-ip")), "1.1.1.1:1", "1.1.1.1"},
		"another header was named":  {httplimit.New(trusted, httplimit.WithHeader("True-Client-IP")), "1.1.1.1:1", "1.1.1.1"},
		"Forwarded named, not sent": {httplimit.New(trusted, httplimit.WithHeader("forwarded")), "1.1.1.1:1", "1.1.1.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := caller(t, tt.m, request(tt.peer, "X-Real-IP: 7.7.7.7")); got != tt.want {
				t.Errorf("caller %s, want %s", got, tt.want)
			}
		})
	}
}

func TestHI04DirectAttackerIsCountedByPeer(t *testing.T) {
	t.Parallel()
	m := httplimit.New(httplimit.WithTrustedProxies(proxy, private))
	for _, xff := range []string{"6.6.6.6", "6.6.6.6, 1.1.1.1", "10.0.0.1, 10.0.0.2", "garbage"} {
		if got := caller(t, m, request("203.0.113.66:5000", "X-Forwarded-For: "+xff)); got != "203.0.113.66" {
			t.Errorf("X-Forwarded-For %q: caller %s, want the attacker's peer address", xff, got)
		}
	}
	if n := m.Fallbacks(); n != 0 {
		t.Errorf("%d fallbacks counted; an untrusted peer is none", n)
	}
}

func TestHI09TrustedPeerWithoutHeaderIsThePeerAndCounted(t *testing.T) {
	t.Parallel()
	m := httplimit.New(httplimit.WithTrustedProxies(proxy))
	if got := caller(t, m, request("1.1.1.1:5000")); got != "1.1.1.1" {
		t.Errorf("caller %s, want the peer", got)
	}
	caller(t, m, request("1.1.1.1:5000", "X-Forwarded-For: unknown"))
	caller(t, m, request("1.1.1.1:5000", "X-Forwarded-For: 2.2.2.2"))
	if n := m.Fallbacks(); n != 2 {
		t.Errorf("%d fallbacks, want 2: one header absent, one not an address", n)
	}
}

func TestXForwardedFor(t *testing.T) {
	t.Parallel()
	m := httplimit.New(httplimit.WithTrustedProxies(proxy, private, ula))
	const peer = "1.1.1.1"
	for name, tt := range map[string]struct {
		lines []string
		want  string
	}{
		"several lines are one list":               {[]string{"6.6.6.6, 2.2.2.2", "10.0.0.7"}, "2.2.2.2"},
		"the last line counts first":               {[]string{"2.2.2.2", "3.3.3.3"}, "3.3.3.3"},
		"trusted hops are passed over":             {[]string{"2.2.2.2, 10.0.0.1, fd00::1, 10.0.0.2"}, "2.2.2.2"},
		"only trusted hops":                        {[]string{"10.0.0.1, 10.0.0.2"}, peer},
		"garbage at the right end":                 {[]string{"2.2.2.2, garbage"}, peer},
		"garbage between trusted hops":             {[]string{"2.2.2.2, unknown, 10.0.0.1"}, peer},
		"garbage left of the caller":               {[]string{"<script>, 2.2.2.2"}, "2.2.2.2"},
		"empty elements":                           {[]string{",2.2.2.2, ,", ""}, "2.2.2.2"},
		"blanks and tabs":                          {[]string{"\t2.2.2.2 \t"}, "2.2.2.2"},
		"a port":                                   {[]string{"2.2.2.2:8080"}, "2.2.2.2"},
		"a port of a trusted hop":                  {[]string{"2.2.2.2, 10.0.0.1:8080"}, "2.2.2.2"},
		"IPv6":                                     {[]string{"2001:db8::1"}, "2001:db8::1"},
		"IPv6 in brackets":                         {[]string{"[2001:db8::1]"}, "2001:db8::1"},
		"IPv6 with a port":                         {[]string{"[2001:db8::1]:443"}, "2001:db8::1"},
		"a zone is stripped before the trust test": {[]string{"2.2.2.2, fd00::1%eth0"}, "2.2.2.2"},
		"a zone is stripped":                       {[]string{"2001:db8::1%eth0"}, "2001:db8::1"},
		"a mapped address is unmapped":             {[]string{"::ffff:2.2.2.2"}, "2.2.2.2"},
		"a mapped trusted address":                 {[]string{"2.2.2.2, ::ffff:10.0.0.1"}, "2.2.2.2"},
		"mapped, in brackets, port and zone":       {[]string{"[::ffff:2.2.2.2%x]:1"}, "2.2.2.2"},
		"a port that is none":                      {[]string{"2.2.2.2:x"}, peer},
		"an empty port":                            {[]string{"2.2.2.2:"}, peer},
		"text after the bracket":                   {[]string{"[2001:db8::1]443"}, peer},
		"an open bracket":                          {[]string{"[2001:db8::1"}, peer},
		"IPv4 in brackets":                         {[]string{"[2.2.2.2]:80"}, peer},
		"IPv4 with a zone":                         {[]string{"2.2.2.2%eth0"}, peer},
		"leading zeros":                            {[]string{"002.2.2.2"}, peer},
		"quotes are not part of this header":       {[]string{`"2.2.2.2"`}, peer},
		"a port alone":                             {[]string{":80"}, peer},
		"the 64th hop is read":                     {[]string{"2.2.2.2" + strings.Repeat(",10.0.0.1", 63)}, "2.2.2.2"},
		"the 65th hop is not":                      {[]string{"2.2.2.2" + strings.Repeat(",10.0.0.1", 64)}, peer},
		"commas alone do not take long either":     {[]string{"2.2.2.2" + strings.Repeat(",", 1<<16)}, peer},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := request("1.1.1.1:5000")
			r.Header["X-Forwarded-For"] = tt.lines
			if got := caller(t, m, r); got != tt.want {
				t.Errorf("%q: caller %s, want %s", tt.lines, got, tt.want)
			}
		})
	}
}

func TestForwarded(t *testing.T) {
	t.Parallel()
	m := httplimit.New(httplimit.WithTrustedProxies(proxy, private, ula), httplimit.WithHeader("Forwarded"))
	const peer = "1.1.1.1"
	for name, tt := range map[string]struct {
		lines []string
		want  string
	}{
		"plain":                             {[]string{"for=2.2.2.2"}, "2.2.2.2"},
		"the rightmost that is not trusted": {[]string{"for=6.6.6.6, for=2.2.2.2;proto=https, for=10.0.0.1"}, "2.2.2.2"},
		"several lines":                     {[]string{"for=6.6.6.6, for=2.2.2.2", "for=10.0.0.1"}, "2.2.2.2"},
		"name in any case":                  {[]string{"FOR=2.2.2.2;Proto=http"}, "2.2.2.2"},
		"not the first parameter":           {[]string{"by=10.0.0.1;host=a.example;for=2.2.2.2"}, "2.2.2.2"},
		"quoted":                            {[]string{`for="2.2.2.2:47011"`}, "2.2.2.2"},
		"quoted IPv6":                       {[]string{`for="[2001:db8::1]:4711"`}, "2001:db8::1"},
		"obfuscated port":                   {[]string{`for="2.2.2.2:_port"`}, "2.2.2.2"},
		"addresses without their quotes":    {[]string{"for=2.2.2.2:80, for=[fd00::1]:80, for=fd00::2"}, "2.2.2.2"},
		"commas and semicolons in strings":  {[]string{`for=2.2.2.2;host="a,for=6.6.6.6;for=7.7.7.7"`}, "2.2.2.2"},
		"escaped quotes in strings":         {[]string{`for=2.2.2.2;host="a\",for=6.6.6.6,\\"`}, "2.2.2.2"},
		"a string a client left open":       {[]string{`for="6.6.6.6, for=2.2.2.2`}, "2.2.2.2"},
		"left open, and a quoted caller":    {[]string{`host="x, for="[2001:db8::2]"`}, "2001:db8::2"},
		"a client's trailing backslash":     {[]string{`for="6.6.6.6\, for="2.2.2.2"`}, "2.2.2.2"},
		"blanks around semicolons":          {[]string{"proto=http ; for=2.2.2.2 ;"}, "2.2.2.2"},
		"empty elements and parameters":     {[]string{", ;for=2.2.2.2;; ,,"}, "2.2.2.2"},
		"unknown":                           {[]string{"for=2.2.2.2, for=unknown"}, peer},
		"an obfuscated identifier":          {[]string{"for=2.2.2.2, for=_hidden"}, peer},
		"no for":                            {[]string{"for=2.2.2.2, proto=https"}, peer},
		"for twice":                         {[]string{"for=2.2.2.2;for=3.3.3.3"}, peer},
		"no value":                          {[]string{"for="}, peer},
		"no name":                           {[]string{"=2.2.2.2"}, peer},
		"no equals sign":                    {[]string{"2.2.2.2"}, peer},
		"text after a string":               {[]string{`for="2.2.2.2"x`}, peer},
		"an escape in the address":          {[]string{`for="\2.2.2.2"`}, peer},
		"a string that never ends":          {[]string{`for=2.2.2.2;host="`}, peer},
		"only trusted hops":                 {[]string{"for=10.0.0.1,for=10.0.0.2"}, peer},
		"no header":                         {nil, peer},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := request("1.1.1.1:5000", "X-Forwarded-For: 9.9.9.9")
			r.Header["Forwarded"] = tt.lines
			if got := caller(t, m, r); got != tt.want {
				t.Errorf("%q: caller %s, want %s", tt.lines, got, tt.want)
			}
		})
	}
}

func TestPeerAddress(t *testing.T) {
	t.Parallel()
	m := httplimit.New()
	for peer, want := range map[string]string{
		"192.0.2.1:80":            "192.0.2.1",
		"192.0.2.1":               "192.0.2.1",
		"[2001:db8::1]:80":        "2001:db8::1",
		"[fe80::1%eth0]:80":       "fe80::1",
		"[::ffff:192.0.2.1%x]:80": "192.0.2.1",
		"@":                       "",
		"":                        "",
		"example.com:80":          "",
	} {
		if got := caller(t, m, request(peer)); got != want {
			t.Errorf("RemoteAddr %q: caller %q, want %q", peer, got, want)
		}
	}
}

func TestTrustedPeerInMappedForm(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"10.0.0.0/8", "10.1.2.3/8", "::ffff:10.0.0.0/104"} {
		m := httplimit.New(httplimit.WithTrustedProxies(netip.MustParsePrefix(prefix)))
		if got := caller(t, m, request("[::ffff:10.0.0.1]:80", "X-Forwarded-For: 2.2.2.2")); got != "2.2.2.2" {
			t.Errorf("%s: caller %s, want 2.2.2.2", prefix, got)
		}
	}
}

func TestInvalidOptionsPanicWithWhatIsWrong(t *testing.T) {
	t.Parallel()
	for want, opt := range map[string]httplimit.Option{
		"trusted proxies: invalid Prefix":          httplimit.WithTrustedProxies(netip.Prefix{}),
		"trusted proxies: ::ffff:0.0.0.0/":         httplimit.WithTrustedProxies(netip.MustParsePrefix("::ffff:0.0.0.0/80")),
		"the name of the proxies' header is empty": httplimit.WithHeader(""),
	} {
		func() {
			defer func() {
				if msg, _ := recover().(string); !strings.Contains(msg, want) {
					t.Errorf("panic %q, want %q", msg, want)
				}
			}()
			httplimit.New(opt)
		}()
	}
}

func TestUserIsPartOfTheCaller(t *testing.T) {
	t.Parallel()
	m := httplimit.New(httplimit.WithUser(func(r *http.Request) string { return r.Header.Get("X-Test-User") }))
	var got *ratelimit.Request
	h := m.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = ratelimit.RequestFrom(r.Context()) }))
	h.ServeHTTP(httptest.NewRecorder(), request("192.0.2.1:80", "X-Test-User: ada"))
	if got == nil || got.User != "ada" || got.Addr != netip.MustParseAddr("192.0.2.1") {
		t.Errorf("caller %+v, want ada at 192.0.2.1", got)
	}
}

func TestAddrDoesNotAllocate(t *testing.T) {
	// Not parallel: AllocsPerRun counts the allocations of all goroutines.
	xff := httplimit.New(httplimit.WithTrustedProxies(proxy, private, ula))
	fwd := httplimit.New(httplimit.WithTrustedProxies(proxy, private, ula), httplimit.WithHeader("Forwarded"))
	for name, tt := range map[string]struct {
		m *httplimit.Middleware
		r *http.Request
	}{
		"peer":            {httplimit.New(), request("[fe80::1%eth0]:80")},
		"XForwardedFor":   {xff, request("1.1.1.1:80", "X-Forwarded-For: 2001:db8::1%eth0, fd00::1%eth1", "X-Forwarded-For: 10.0.0.1:80, ::ffff:10.0.0.2")},
		"Forwarded":       {fwd, request("1.1.1.1:80", `Forwarded: for="[2001:db8::1%eth0]:80";host="a,b"`, "Forwarded: for=10.0.0.1")},
		"only trusted":    {xff, request("1.1.1.1:80", "X-Forwarded-For: 10.0.0.1")},
		"header too long": {xff, request("1.1.1.1:80", "X-Forwarded-For: "+strings.Repeat("10.0.0.1,", 1000))},
	} {
		t.Run(name, func(t *testing.T) {
			if n := testing.AllocsPerRun(100, func() { tt.m.Addr(tt.r) }); n != 0 {
				t.Errorf("%v allocations, want 0", n)
			}
		})
	}
}

func BenchmarkAddr(b *testing.B) {
	m := httplimit.New(httplimit.WithTrustedProxies(proxy, private))
	r := request("1.1.1.1:80", "X-Forwarded-For: 6.6.6.6, 2.2.2.2, 10.0.0.1")
	b.ReportAllocs()
	for b.Loop() {
		m.Addr(r)
	}
}

// FuzzAddr holds the readers of both headers to what does not depend on syntax.
func FuzzAddr(f *testing.F) {
	for _, s := range []string{
		"", ",", "6.6.6.6, 2.2.2.2", "for=6.6.6.6", `for="[2001:db8::1]:80";by="a\"b"`, `for="6.6.6.6\`, `"`, `\"`,
		"[::1%x]:80", "::ffff:10.0.0.1", "10.0.0.1,10.0.0.1", "for=10.0.0.1;for", "for=10.0.0.1\nfor=2.2.2.2",
	} {
		f.Add("1.1.1.1:80", s)
	}
	f.Add("[::ffff:10.0.0.1%x]:80", "fd00::1")
	f.Add("@", "2.2.2.2")
	trusted := []netip.Prefix{proxy, private, ula}
	f.Fuzz(func(t *testing.T, peer, header string) {
		for _, name := range []string{"X-Forwarded-For", "Forwarded"} {
			m := httplimit.New(httplimit.WithTrustedProxies(trusted...), httplimit.WithHeader(name))
			lines := strings.Split(header, "\n")
			addr := m.Addr(&http.Request{RemoteAddr: peer, Header: http.Header{name: lines}})
			if addr.Zone() != "" || addr.Is4In6() {
				t.Errorf("%s %q: %v has a zone or is mapped", name, header, addr)
			}
			direct := m.Addr(&http.Request{RemoteAddr: peer})
			if isTrusted(trusted, addr) && addr != direct {
				t.Errorf("%s %q: the caller is the trusted proxy %v", name, header, addr)
			}
			if !isTrusted(trusted, direct) {
				if addr != direct {
					t.Errorf("%s %q: caller %v, want the untrusted peer %v", name, header, addr, direct)
				}
				continue
			}
			// Whatever a client sent, the proxy adds the client's address to the right
			// end, on the same line or on a new one, and that address decides.
			word := "2.2.2.2"
			if name == "Forwarded" {
				word = `for="2.2.2.2:80";proto=https`
			}
			last := len(lines) - 1
			for _, lines := range [][]string{
				append(lines[:last:last], lines[last]+", "+word),
				append(lines[:last+1:last+1], word),
			} {
				r := &http.Request{RemoteAddr: peer, Header: http.Header{name: lines}}
				if addr := m.Addr(r); addr != netip.MustParseAddr("2.2.2.2") {
					t.Errorf("%s %q: caller %v, want 2.2.2.2, which the proxy added", name, lines, addr)
				}
			}
		}
	})
}

func isTrusted(prefixes []netip.Prefix, addr netip.Addr) bool {
	for _, p := range prefixes {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
