package generator

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	rlparser "github.com/ratelimitgen/ratelimitgen/parser"
)

func TestKeysReadTheRequest(t *testing.T) {
	t.Parallel()
	hash := func(s string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(s)))[:32] }
	// The request is known for the first input, and not for the second.
	cases := []struct{ kind, text, known, unknown string }{
		{"key", "role", "admin", "-"},
		{"key", "method", "GET", "-"},
		{"key", "path", "/orders/7", "-"},
		{"key", "route", "/orders/{id}", "-"},
		{"key", "[request.role, request.method, request.path, request.route]", "admin|GET|/orders/7|/orders/{id}", "-"},
		{"key", "[request.user, request.ip]", "caller|192.0.2.1", "-"},
		{"key", "ip/24/56", "192.0.2.0/24", "-"},
		{"key", "request.ip/32/56", "192.0.2.1", "-"},
		{"key", "ip/16/48, role", "192.0.0.0/16|admin", "-"},
		{"key", "request.header('x-tenant')", "acme", "-"},
		{"key", "request.header('X-None')", "-", "-"},
		{"key", "request.header('X-None') ?? 'none'", "none", "none"},
		{"key", "request.query('team') ?? id", "blue", "id"},
		{"key", "[upper(request.query('team')), user]", "BLUE|caller", "-"},
		{"key", "lower(role + '/' + method)", "admin/get", "-"},
		{"key", "user ?? role ?: id", "caller", "id"},
		{"key", "role ?: user ?: id", "admin", "id"},
		{"key", "role == nil ? 'nobody' : role", "admin", "nobody"},
		{"key", "route != nil and path startsWith '/orders/'", "true", "false"},
		{"key", "request.cookie('sid')", hash("s1"), "-"},
		{"key", "request.cookie('sid') ?? 'none'", hash("s1"), "none"},
		{"key", "request.cookie('sid') ?: user ?: 'none'", hash("s1"), "none"},
		{"key", "(request.cookie('none') ?? request.cookie('sid')) ?: 'none'", hash("s1"), "none"},
		{"key", "[user ?? 'x', upper(request.cookie('sid') + 'a')]", "caller|" + hash("S1A"), "-"},
		{"key", "tick(trimPrefix(request.header('Authorization'), 'Bearer '))", hash("x"), "-"},
		{"key", "let t = request.header('Authorization'); [t, id]", hash("Bearer x") + "|id", "-"},
		{"key", "let t = request.header('Authorization') + '!'; t", hash("Bearer x!"), "-"},
		{"key", "split(request.cookie('sid'), 's')[1]", hash("1"), "-"},
		{"key", "join(split(request.cookie('sid'), 's'), '-')", hash("-1"), "-"},
		{"key", "filter(split(request.cookie('sid'), 's'), # != '')[0]", hash("1"), "-"},
		{"key", "len(request.cookie('sid'))", "2", "-"},
		{"key", "request.cookie('sid') == 's1' ? user : id", "caller", "id"},
		{"when", "request.header('Authorization') startsWith 'Bearer '", "true", "false"},
		{"when", "request.header('Authorization') != nil and role in ['admin', 'root']", "true", "false"},
		{"when", "ip != nil", "true", "false"},
		{"cost", "role == 'admin' ? 1 : 10", "1", "10"},
		{"cost", "len(path)", "9", "-"},
	}
	var exprs []expression
	for _, c := range cases {
		exprs = append(exprs, expression{c.kind, c.text})
	}
	values, _ := evaluate(t, exprs, []string{"full()", "full()"})
	for i, c := range cases {
		if got := values[i]; got[0].ours != c.known || got[1].ours != c.unknown {
			t.Errorf("%s: %q, and %q without a request; want %q and %q", c.text, got[0].ours, got[1].ours, c.known, c.unknown)
		}
	}
}

func TestARegularExpressionIsCompiledOncePerFile(t *testing.T) {
	t.Parallel()
	src := keySource + "\nvar doKey2Pattern, doKey1Pattern int\n\nfunc main() {}\n"
	pkg := keyPackage(t, src)
	f, m, scope := keyTarget(t, pkg, "Service", "Do")
	f.wrappers, m.wrapper.methods = []*wrapper{m.wrapper}, []*method{m}
	for i, text := range []string{
		"id matches '^a$' ? id : req.User matches '^b$' ? req.User : ''",
		"id matches '^b$' ? 'b' : id matches '^c$' ? 'c' : 'none'",
	} {
		key := parseKey(t, text, scope)
		p := &policy{Policy: &rlparser.Policy{KeyExpr: key}, key: &computed{keyFunction: keyFunction{fmt.Sprint("doKey", i+1), key.Nodes()}}}
		keyImports(f.imports, p.Policy)
		m.policy = append(m.policy, p)
	}
	f.imports.allot(f.scope)
	var out strings.Builder
	for _, p := range m.policy {
		decl, _ := f.keyFunc(m, p.key.name, p.KeyExpr)
		out.WriteString(decl.GoString())
	}
	_, when, _ := expression{"when", "id matches '^c$' and id matches '^d$'"}.parse(scope)
	decl, _ := f.condFunc(m, "doWhen", when)
	out.WriteString(decl.GoString())
	for declaration, want := range map[string]int{
		`var doKey1Pattern2 = regexp.MustCompile("^a$")`: 1,
		`var doKey1Pattern3 = regexp.MustCompile("^b$")`: 1,
		`var doKey2Pattern2 = regexp.MustCompile("^c$")`: 1,
		`var doWhenPattern = regexp.MustCompile("^d$")`:  1,
		"MustCompile":                          4,
		"doKey1Pattern3.MatchString(id)":       1,
		"doKey1Pattern3.MatchString(req.User)": 1,
		"doKey2Pattern2.MatchString(id)":       2,
	} {
		if got := strings.Count(out.String(), declaration); got != want {
			t.Errorf("%s occurs %d times, want %d:\n%s", declaration, got, want, out.String())
		}
	}
}
