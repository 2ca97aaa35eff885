package generator

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"testing"

	rlparser "github.com/ratelimitgen/ratelimitgen/parser"
	"github.com/ratelimitgen/ratelimitgen/parser/keyexpr"
)

// renderKey renders the function for a key or, with a "cost:" before it, for a
// cost, in a file of its own with a caller that has the method's parameters. The
// file is type-checked together with src.
func renderKey(t *testing.T, src, typeName, methodName, text string) string {
	t.Helper()
	pkg := keyPackage(t, src)
	f, m, scope := keyTarget(t, pkg, typeName, methodName)
	p := policy{Policy: &rlparser.Policy{}, keyFunc: "loginKey", costFunc: "loginCost"}
	if cost, ok := strings.CutPrefix(text, "cost:"); ok {
		e, problems := keyexpr.ParseCost(cost, scope)
		if e == nil {
			t.Fatalf("%s: %+v", text, problems)
		}
		p.CostExpr = e
	} else if p.KeyExpr = parseKey(t, text, scope); p.KeyExpr == nil {
		t.FailNow()
	}
	f.imports.addType(m.Sig)
	f.imports.addType(scope.Recv.Type())
	keyImports(f.imports, p.Policy)
	f.imports.add("context", "context")
	f.imports.allot(f.scope)

	render := f.keyFunc
	if p.CostExpr != nil {
		render = f.costFunc
	}
	decl, args := render(m, p)
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
	for _, a := range args {
		list = append(list, map[keyArgKind]string{argContext: "ctx", argBuffer: "nil", argReceiver: "wrapped", argParam: fmt.Sprintf("arg%d", a.param)}[a.kind])
	}
	typeParams := ""
	if len(tparams) > 0 {
		typeParams = "[" + strings.Join(tparams, ", ") + "]"
	}
	name := p.keyFunc
	if p.CostExpr != nil {
		name = p.costFunc
	}
	file := fmt.Sprintf("package %s\n\n%s\n%s\n\nfunc _%s(ctx %s.Context, %s) { _ = %s(%s) }\n", pkg.Name(), f.imports.decl(), fn.String(),
		typeParams, f.imports.alias["context"], strings.Join(params, ", "), name, strings.Join(list, ", "))

	fset := token.NewFileSet()
	var files []*ast.File
	for i, text := range []string{src, file} {
		parsed, err := parser.ParseFile(fset, fmt.Sprintf("%d.go", i), text, parser.ParseComments)
		if err != nil {
			t.Fatalf("%s: %v\n%s", p.keyFunc, err, file)
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

type Loader interface {
	Load(r *http.Request, append string, string string, ratelimit int) error
	Name() string
}

type Shadow struct{}

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
	return ratelimit.AppendIP(buf, caller)
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
		{"constant cost is inlined", pay, "Service", "Do", "cost:2 * 3", `func loginCost() int64 {
	return 6
}`},
		{"cost", pay, "Service", "Do", "cost:len(req.Tags) + 1", `func loginCost(req *Req) int64 {
	if req == nil {
		return -1
	}
	return int64(len(req.Tags) + 1)
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
