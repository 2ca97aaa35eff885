package generator

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"

	"github.com/dave/jennifer/jen"

	rlparser "github.com/ratelimitgen/ratelimitgen/parser"
)

// renderKey renders the function for a key or, with a "cost:", "when:" or "count:"
// before it, for a cost or a condition, in a file of its own with a caller that has
// the method's parameters and results. The file is type-checked together with src.
func renderKey(t *testing.T, src, typeName, methodName, text string) string {
	t.Helper()
	pkg := keyPackage(t, src)
	f, m, scope := keyTarget(t, pkg, typeName, methodName)
	kind, expr, ok := strings.Cut(text, ":")
	if !ok || !slices.Contains([]string{"cost", "when", "count"}, kind) {
		kind, expr = "key", text
	}
	key, x, problems := expression{kind, expr}.parse(scope)
	if key == nil && x == nil {
		t.Fatalf("%s: %+v", text, problems)
	}
	f.imports.addType(m.Sig)
	f.imports.addType(scope.Recv.Type())
	p := &policy{Policy: &rlparser.Policy{KeyExpr: key}, key: &computed{keyFunction: keyFunction{name: "loginKey"}}}
	name := map[string]string{"key": "loginKey", "cost": "loginCost", "when": "loginWhen", "count": "loginCount"}[kind]
	render := func() (*jen.Statement, []keyArg) { return f.keyFunc(m, p.key.name, p.KeyExpr) }
	switch kind {
	case "key":
		keyImports(f.imports, p.Policy)
	case "cost":
		amountImports(f.imports, x)
		render = func() (*jen.Statement, []keyArg) { return f.amountFunc(m, name, x) }
	default:
		condImports(f.imports, x)
		render = func() (*jen.Statement, []keyArg) { return f.condFunc(m, name, x) }
	}
	f.imports.add("context", "context")
	f.imports.allot(f.scope)

	decl, args := render()
	var fn bytes.Buffer
	if err := decl.Render(&fn); err != nil {
		t.Fatal(err)
	}

	write := func(t types.Type) string {
		return types.TypeString(t, func(p *types.Package) string {
			if p == pkg {
				return ""
			}
			return f.imports.alias[p.Path()]
		})
	}
	var tparams, params, list []string
	for tp := range m.wrapper.TypeParams() {
		tparams = append(tparams, tp.Obj().Name()+" "+write(tp.Constraint()))
	}
	params = append(params, "wrapped "+write(scope.Recv.Type()))
	for i := range m.Sig.Params().Len() {
		params = append(params, fmt.Sprintf("arg%d %s", i, write(m.Sig.Params().At(i).Type())))
	}
	for i := range m.Sig.Results().Len() {
		params = append(params, fmt.Sprintf("result%d %s", i, write(m.Sig.Results().At(i).Type())))
	}
	for _, a := range args {
		list = append(list, map[keyArgKind]string{argContext: "ctx", argBuffer: "nil", argReceiver: "wrapped", argParam: fmt.Sprintf("arg%d", a.param), argResult: fmt.Sprintf("result%d", a.param)}[a.kind])
	}
	typeParams := ""
	if len(tparams) > 0 {
		typeParams = "[" + strings.Join(tparams, ", ") + "]"
	}
	file := fmt.Sprintf("package %s\n\n%s\n%s\n\nfunc _%s(ctx %s.Context, %s) { _ = %s(%s) }\n", pkg.Name(), f.imports.decl(), fn.String(),
		typeParams, f.imports.alias["context"], strings.Join(params, ", "), name, strings.Join(list, ", "))

	fset := token.NewFileSet()
	var files []*ast.File
	for i, text := range []string{src, file} {
		parsed, err := parser.ParseFile(fset, fmt.Sprintf("%d.go", i), text, parser.ParseComments)
		if err != nil {
			t.Fatalf("%s: %v\n%s", p.key.name, err, file)
		}
		files = append(files, parsed)
	}
	conf := types.Config{Importer: exportData(t)}
	if _, err := conf.Check(pkg.Path(), fset, files, nil); err != nil {
		t.Errorf("%s: %v\n%s", text, err, file)
	}
	if formatted, err := format.Source(fn.Bytes()); err != nil || !bytes.Equal(bytes.TrimSpace(formatted), bytes.TrimSpace(fn.Bytes())) {
		t.Errorf("%s: gofmt changes the function (%v)", text, err)
	}
	return strings.TrimSpace(fn.String())
}

func TestKeyFunctionsImportWhatTheyName(t *testing.T) {
	t.Parallel()
	for _, c := range keyCases {
		renderKey(t, keySource+"\nfunc main() {}\n", "Service", "Do", c.expr)
	}
}

const genericSource = `package store

import (
	"context"
	"net/http"
)

type Kind interface{ ~string }

type ID interface{ ~int | ~int64 }

type Page[K any] struct{ Key K; Next *Page[K]; Owner string }

func (p *Page[K]) First() K { return p.Key }

type Store[K ~string, V any, I ID, P interface{ *V }] struct{ prefix K }

func (s *Store[X, V, I, P]) Get(ctx context.Context, key X, page *Page[X], id I, value P, vs map[X]V, n uint) error { return nil }

type Meter[N ~int | ~uint8, F ~float32 | ~float64] struct{}

func (m *Meter[N, F]) Add(n, d N, f F) error { return nil }

type Loader interface {
	Load(r *http.Request, append string, string string, ratelimit int) error
	Name() string
}

type Shadow struct{}

func (s *Shadow) Find(key string, _ error) (found *Page[string], n int, err error) { return nil, 0, nil }
func (s *Shadow) Serve(w http.ResponseWriter, request *http.Request) {}
func (s *Shadow) Do(strconv int, context context.Context, buf, next, caller []string) error { return nil }
`

func TestKeyFunctions(t *testing.T) {
	t.Parallel()
	pay := keySource + "\nfunc main() {}\n"
	for _, c := range []struct {
		name, src, typeName, method, expr, want string
	}{
		{"one field", pay, "Service", "Do", "req.User", `func loginKey(buf []byte, req *Req) []byte {
	if req == nil {
		return nil
	}
	return append(buf, req.User...)
}`},
		{"joined text makes no strings", pay, "Service", "Do", `lower(req.Email) + "|" + string(req.Shard % 16)`, `func loginKey(buf []byte, req *Req) []byte {
	if req == nil {
		return nil
	}
	buf = ratelimit.AppendLowerPiece(buf, req.Email)
	buf = append(buf, "|"...)
	return strconv.AppendUint(buf, req.Shard%16, 10)
}`},
		{"tuple", pay, "Service", "Do", "ip, req.Tenant, req.Shard", `func loginKey(ctx context.Context, buf []byte, req *Req) []byte {
	buf = ratelimit.AppendIP(buf, ratelimit.RequestFrom(ctx))
	if req == nil {
		return nil
	}
	buf = ratelimit.AppendText(buf, string(req.Tenant))
	return ratelimit.AppendUint(buf, req.Shard)
}`},
		{"default", pay, "Service", "Do", "user ?? ip", `func loginKey(ctx context.Context, buf []byte) []byte {
	caller := ratelimit.RequestFrom(ctx)
	if caller != nil && caller.User != "" {
		return ratelimit.AppendUser(buf, caller)
	}
	return ratelimit.AppendTaggedIP(buf, caller)
}`},
		{"choice", pay, "Service", "Do", "req.Admin ? 'admin' : req.User", `func loginKey(buf []byte, req *Req) []byte {
	if req != nil && req.Admin {
		return append(buf, "admin"...)
	}
	if req == nil {
		return nil
	}
	return append(buf, req.User...)
}`},
		{"map", pay, "Service", "Do", "req?.Labels.tenant ?? id", `func loginKey(buf []byte, req *Req, id string) []byte {
	if req != nil {
		if tenant, ok := req.Labels["tenant"]; ok {
			return append(buf, tenant...)
		}
	}
	return append(buf, id...)
}`},
		{"one context for both uses", pay, "Service", "Do", "[ip, tenantOf(ctx, req)]", `func loginKey(ctx context.Context, buf []byte, req *Req) []byte {
	buf = ratelimit.AppendIP(buf, ratelimit.RequestFrom(ctx))
	return ratelimit.AppendText(buf, tenantOf(ctx, req))
}`},
		{"a constant of the package", pay, "Service", "Do", "cost:shards * 2", `func loginCost() int64 {
	return int64(shards * 2)
}`},
		{"cost", pay, "Service", "Do", "cost:len(req.Tags) + 1", `func loginCost(req *Req) int64 {
	if req == nil {
		return -1
	}
	return int64(ratelimit.AddUnits(len(req.Tags), 1))
}`},
		{"cost with a choice", pay, "Service", "Do", "cost:req?.Admin ? 1 : req?.N ?? 5", `func loginCost(req *Req) int64 {
	if req != nil && req.Admin {
		return 1
	}
	if req != nil {
		return int64(req.N)
	}
	return 5
}`},
		{"cost by user", pay, "Service", "Do", "cost:user == 'batch' ? 10 : 1", `func loginCost(ctx context.Context) int64 {
	caller := ratelimit.RequestFrom(ctx)
	if caller != nil && caller.User != "" && caller.User == "batch" {
		return 10
	}
	return 1
}`},
		{"condition", pay, "Service", "Do", "when:req?.Acct?.Num > 3 and not req.Beta", `func loginWhen(req *Req) bool {
	return req != nil && req.Acct != nil && req.Acct.Num > 3 && !bool(req.Beta)
}`},
		{"condition over results", pay, "Service", "Do", "count:err != nil and id == 'id'", `func loginCount(id string, err error) bool {
	return err != nil && id == "id"
}`},
		{"results by name", genericSource, "Shadow", "Find", "count:found.Owner != key and result.Key != '' or n > 3 or err == nil", `func loginCount(key string, found *Page[string], n int, err error) bool {
	return (found == nil || found.Owner != key) && (found == nil || found.Key != "") || n > 3 || err == nil
}`},
		{"generic result", genericSource, "Store", "Get", "count:err == nil", `func loginCount(err error) bool {
	return err == nil
}`},
		{"closure", pay, "Service", "Do", "when:any(req.Items, .Qty > 3 and .SKU != id)", `func loginWhen(req *Req, id string) bool {
	if req == nil {
		return false
	}
	found := false
	for _, item2 := range req.Items {
		if item2.Qty > 3 && item2.SKU != id {
			found = true
			break
		}
	}
	return found
}`},
		{"sum as a cost", pay, "Service", "Do", "cost:sum(req.Items, .Qty)", `func loginCost(req *Req) int64 {
	if req == nil {
		return -1
	}
	total := 0
	for _, item2 := range req.Items {
		total = ratelimit.AddUnits(total, int(item2.Qty))
	}
	return int64(total)
}`},
		{"absent elements", pay, "Service", "Do", "join(map(req.Ptrs, .ID), ',')", `func loginKey(buf []byte, req *Req) []byte {
	if req == nil {
		return nil
	}
	var mapped []string
	ok := true
	for _, ptr := range req.Ptrs {
		if ptr == nil {
			ok = false
			break
		}
		mapped = append(mapped, ptr.ID)
	}
	if !ok {
		return nil
	}
	return append(buf, strings.Join(mapped, ",")...)
}`},
		{"names that a tuple shares", pay, "Service", "Do", "let parts = split(req.Email, '@'); [parts[1], parts[0]]", `func loginKey(buf []byte, req *Req) []byte {
	var parts []string
	var ok bool
	if req != nil {
		parts = strings.Split(req.Email, "@")
		ok = true
	}
	if !ok || len(parts) <= 1 {
		return nil
	}
	buf = ratelimit.AppendText(buf, parts[1])
	if len(parts) == 0 {
		return nil
	}
	return ratelimit.AppendText(buf, parts[0])
}`},
		{"membership", pay, "Service", "Do", "when:id in ['a', 'b'] or id in req.Tags or n not in [1]", `func loginWhen(req *Req, id string, n int) bool {
	return id == "a" || id == "b" || req != nil && slices.Contains(req.Tags, id) || !(n == 1)
}`},
		{"regular expression", pay, "Service", "Do", "when:id matches '^[0-9]+$' or req.User matches '^[0-9]+$'", `var loginWhenPattern = regexp.MustCompile("^[0-9]+$")

func loginWhen(req *Req, id string) bool {
	return loginWhenPattern.MatchString(id) || req != nil && loginWhenPattern.MatchString(req.User)
}`},
		{"floats are not fused", pay, "Service", "Do", "when:req.Amount * 1.5 + float(n) > 100 and req.Rate > 0.5", `func loginWhen(req *Req, n int) bool {
	return req != nil && float64(req.Amount*1.5)+float64(n) > 100.0 && float64(req.Rate) > 0.5
}`},
		{"a float that fits", pay, "Service", "Do", "int(ceil(req.Amount / 10.0))", `func loginKey(buf []byte, req *Req) []byte {
	if req == nil || !(math.Ceil(req.Amount/10.0) >= -1<<63) || !(math.Ceil(req.Amount/10.0) < 1<<63) {
		return nil
	}
	return strconv.AppendInt(buf, int64(int(math.Ceil(req.Amount/10.0))), 10)
}`},
		{"a cost that was a float", pay, "Service", "Do", "cost:int(ceil(req.Amount / 10.0))", `func loginCost(req *Req) int64 {
	if req == nil || math.IsNaN(math.Ceil(req.Amount/10.0)) {
		return -1
	}
	return int64(ratelimit.FloatUnits[int](math.Ceil(req.Amount / 10.0)))
}`},
		{"network", pay, "Service", "Do", "ip/24/56, role, route", `func loginKey(ctx context.Context, buf []byte) []byte {
	caller := ratelimit.RequestFrom(ctx)
	buf = ratelimit.AppendPrefix(buf, caller, 24, 56)
	if caller == nil || caller.Role == "" {
		return nil
	}
	buf = ratelimit.AppendText(buf, caller.Role)
	route := caller.RoutePattern()
	if route == "" {
		return nil
	}
	return ratelimit.AppendText(buf, route)
}`},
		{"header", pay, "Service", "Do", "request.header('x-tenant')", `func loginKey(ctx context.Context, buf []byte) []byte {
	caller := ratelimit.RequestFrom(ctx)
	header := caller.Header("X-Tenant")
	if header == "" {
		return nil
	}
	return append(buf, header...)
}`},
		{"credentials are hashed", pay, "Service", "Do", "[user ?? request.cookie('sid'), lower(request.header('Authorization'))]", `func loginKey(ctx context.Context, buf []byte) []byte {
	caller := ratelimit.RequestFrom(ctx)
	if caller != nil && caller.User != "" {
		buf = ratelimit.AppendUser(buf, caller)
	} else {
		cookie := caller.Cookie("sid")
		if cookie == "" {
			return nil
		}
		buf = ratelimit.AppendHash(buf, cookie)
	}
	header := caller.Header("Authorization")
	if header == "" {
		return nil
	}
	return ratelimit.AppendHash(buf, strings.ToLower(header))
}`},
		{"a credential in a condition is none in a key", pay, "Service", "Do", "request.header('Authorization') == nil ? ip : req.User", `func loginKey(ctx context.Context, buf []byte, req *Req) []byte {
	caller := ratelimit.RequestFrom(ctx)
	if caller.Header("Authorization") == "" {
		return ratelimit.AppendTaggedIP(buf, caller)
	}
	if req == nil {
		return nil
	}
	return ratelimit.AppendText(buf, req.User)
}`},
		{"lower case in a tuple", pay, "Service", "Do", "lower(req.Email), n", `func loginKey(buf []byte, req *Req, n int) []byte {
	if req == nil {
		return nil
	}
	buf = ratelimit.AppendLower(buf, req.Email)
	return ratelimit.AppendInt(buf, int64(n))
}`},
		{"type parameter", genericSource, "Store", "Get", "key", `func loginKey[K ~string](buf []byte, key K) []byte {
	return append(buf, string(key)...)
}`},
		{"type parameter of integers", genericSource, "Store", "Get", "[id, id % 16, string(id)]", `func loginKey[I ID](buf []byte, id I) []byte {
	buf = ratelimit.AppendInt(buf, int64(id))
	buf = ratelimit.AppendInt(buf, int64(id%16))
	return ratelimit.AppendInt(buf, int64(id))
}`},
		{"field of a generic type", genericSource, "Store", "Get", "page.Next.First()", `func loginKey[K ~string](buf []byte, page *Page[K]) []byte {
	if page == nil || page.Next == nil {
		return nil
	}
	return append(buf, string(page.Next.First())...)
}`},
		{"generic receiver", genericSource, "Store", "Get", "s.prefix + key", `func loginKey[K ~string, V any, I ID, P interface{ *V }](buf []byte, next *Store[K, V, I, P], key K) []byte {
	buf = append(buf, string(next.prefix)...)
	return append(buf, string(key)...)
}`},
		{"numbers of several kinds", genericSource, "Meter", "Add", "cost:int64(n * n / d) + int64(f * 2.5)", `func loginCost[N ~int | ~uint8, F ~float32 | ~float64](n N, d N, f F) int64 {
	if d == 0 || math.IsNaN(float64(float64(f)*2.5)) {
		return -1
	}
	return ratelimit.AddUnits(ratelimit.ConvertUnits[int64](ratelimit.DivUnits(ratelimit.MulUnits(n, n), d)), ratelimit.FloatUnits[int64](float64(float64(f)*2.5)))
}`},
		{"interface", genericSource, "Loader", "Load", "s.Name(), request.ip, append, string, ratelimit", `func loginKey(ctx context.Context, buf []byte, next Loader, append2 string, string2 string, ratelimit2 int) []byte {
	buf = ratelimit.AppendText(buf, next.Name())
	buf = ratelimit.AppendIP(buf, ratelimit.RequestFrom(ctx))
	buf = ratelimit.AppendText(buf, append2)
	buf = ratelimit.AppendText(buf, string2)
	return ratelimit.AppendInt(buf, int64(ratelimit2))
}`},
		{"request as a parameter", genericSource, "Shadow", "Serve", "ip, request.Method, request.URL.Path", `func loginKey(ctx context.Context, buf []byte, request *http.Request) []byte {
	buf = ratelimit.AppendIP(buf, ratelimit.RequestFrom(ctx))
	if request == nil {
		return nil
	}
	buf = ratelimit.AppendText(buf, request.Method)
	if request.URL == nil {
		return nil
	}
	return ratelimit.AppendText(buf, request.URL.Path)
}`},
		{"parameters named like what the code uses", genericSource, "Shadow", "Do", "user == nil ? string(strconv) : buf[0] + next[1] + caller[strconv]", `func loginKey(ctx context.Context, buf2 []byte, strconv2 int, buf []string, next []string, caller []string) []byte {
	caller2 := ratelimit.RequestFrom(ctx)
	if caller2 == nil || caller2.User == "" {
		return strconv.AppendInt(buf2, int64(strconv2), 10)
	}
	if len(buf) == 0 || len(next) <= 1 || strconv2 < 0 || strconv2 >= len(caller) {
		return nil
	}
	buf2 = append(buf2, buf[0]...)
	buf2 = append(buf2, next[1]...)
	return append(buf2, caller[strconv2]...)
}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := renderKey(t, c.src, c.typeName, c.method, c.expr); got != c.want {
				t.Errorf("%s:\n%s\nwant\n%s", c.expr, got, c.want)
			}
		})
	}
}
