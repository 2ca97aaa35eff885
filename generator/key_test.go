package generator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	rlparser "github.com/ratelimitgen/ratelimitgen/parser"
	"github.com/ratelimitgen/ratelimitgen/parser/keyexpr"
)

// exportData returns an importer of the packages that the tests' sources and what is
// generated for them import. It reads what the go command has compiled.
func exportData(t *testing.T) types.Importer {
	t.Helper()
	files, err := exportFiles()
	if err != nil {
		t.Fatal(err)
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(files[path])
	})
}

var exportFiles = sync.OnceValues(func() (map[string]string, error) {
	out, err := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}",
		"context", "math", "net/http", "regexp", "slices", "strconv", "strings", "time", "unicode/utf8", runtimePath).Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[path] = file
	}
	return files, nil
})

// keyPackage type-checks src as a package.
func keyPackage(t *testing.T, src string) *types.Package {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "a.go", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	conf := types.Config{Importer: exportData(t)}
	pkg, err := conf.Check("example.com/pay", fset, []*ast.File{f}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return pkg
}

// keyTarget is a method of the package, as a wrapper's method.
func keyTarget(t *testing.T, pkg *types.Package, typeName, name string) (*file, *method, *keyexpr.Scope) {
	t.Helper()
	source := pkg.Scope().Lookup(typeName).(*types.TypeName)
	var recv types.Type = source.Type()
	if !types.IsInterface(recv) {
		recv = types.NewPointer(recv)
	}
	obj, _, _ := types.LookupFieldOrMethod(recv, true, pkg, name)
	if obj == nil {
		t.Fatalf("no method %s.%s", typeName, name)
	}
	sig := obj.Type().(*types.Signature)
	if n, ok := source.Type().(*types.Named); ok && n.TypeParams().Len() > 0 && sig.RecvTypeParams().Len() > 0 {
		// In terms of the type parameters of the declaration.
		var args []types.Type
		for tp := range n.TypeParams().TypeParams() {
			args = append(args, tp)
		}
		inst, err := types.Instantiate(nil, n, args, false)
		if err != nil {
			t.Fatal(err)
		}
		recv = types.NewPointer(inst)
		obj, _, _ = types.LookupFieldOrMethod(recv, true, pkg, name)
		sig = obj.Type().(*types.Signature)
	}
	context := -1
	for i := range sig.Params().Len() {
		if isContext(sig.Params().At(i).Type()) || sig.Params().At(i).Type().String() == "*net/http.Request" {
			context = i
			break
		}
	}
	f := &file{scope: newFileScope(declaredIn(pkg)), imports: newImports(pkg)}
	w := &wrapper{Wrapper: &rlparser.Wrapper{Source: source}, file: f}
	m := &method{Method: &rlparser.Method{Name: name, Sig: sig, Context: context}, wrapper: w}
	return f, m, &keyexpr.Scope{
		Pkg:  pkg,
		Recv: types.NewVar(token.NoPos, pkg, "s", recv),
		Sig:  sig, Method: name, Request: context >= 0,
	}
}

// declaredIn is the set of the names that pkg declares.
func declaredIn(pkg *types.Package) map[string]bool {
	declared := map[string]bool{}
	for _, name := range pkg.Scope().Names() {
		declared[name] = true
	}
	return declared
}

// parseKey parses an expression that must have no problem but warnings.
func parseKey(t *testing.T, src string, s *keyexpr.Scope) *keyexpr.Key {
	t.Helper()
	k, problems := keyexpr.ParseKey(src, s)
	if k == nil {
		t.Errorf("%s: %+v", src, problems)
	}
	return k
}

func TestKeyFunctionsGiveTheValueOfTheExpression(t *testing.T) {
	t.Parallel()
	pkg := keyPackage(t, keySource+"\nfunc main() {}\n")
	f, m, scope := keyTarget(t, pkg, "Service", "Do")
	policies := make([]*policy, len(keyCases))
	for i, c := range keyCases {
		k := parseKey(t, c.expr, scope)
		if k == nil {
			continue
		}
		policies[i] = &policy{Policy: &rlparser.Policy{KeyExpr: k}, key: &computed{keyFunction: keyFunction{name: fmt.Sprintf("key%d", i)}}}
		keyImports(f.imports, policies[i].Policy)
	}
	if t.Failed() {
		t.FailNow()
	}
	f.imports.addType(m.Sig)
	for path, name := range map[string]string{"context": "context", "fmt": "fmt", "net/netip": "netip", runtimePath: "ratelimit", "github.com/expr-lang/expr": "expr", "strings": "strings", "strconv": "strconv", "unicode/utf8": "utf8"} {
		f.imports.add(path, name)
	}
	f.imports.allot(f.scope)

	var out, calls bytes.Buffer
	out.WriteString("package main\n\n" + f.imports.decl())
	for i, c := range keyCases {
		decl, args := f.keyFunc(m, policies[i].key.name, policies[i].KeyExpr)
		if err := decl.Render(&out); err != nil {
			t.Fatalf("%s: %v", c.expr, err)
		}
		out.WriteString("\n\n")
		fmt.Fprintf(&calls, "\treport(%d, i, func(req, in *Req, buf []byte) []byte { return key%d(%s) })\n", i, i, keyArgs(args))
		if c.vm == "" {
			fmt.Fprintf(&calls, "\tvm(i, %q, params(i, s, ctx))\n", c.expr)
		}
	}
	out.WriteString(keyMain)
	out.WriteString("\nfunc call(i int, ctx context.Context, s *Service) {\n" + calls.String() + "}\n")
	out.WriteString(`
func params(i int, s *Service, ctx context.Context) map[string]any {
	return map[string]any{
		"ctx": ctx, "req": reqs()[i], "id": "id", "n": 42, "u": uint8(200), "neg": int64(-5), "tag": TenantID("tag"), "s": s,
		"tenantOf": tenantOf, "tick": tick, "joinAll": joinAll, "box": box, "item": item, "same": same,
		"noAccount": noAccount, "defaultTenant": defaultTenant, "prefix": prefix, "shards": shards, "maxRegion": maxRegion,
	}
}

// Used by some expressions only.
var (
	_ = strings.ToLower
	_ = strconv.Itoa
	_ = utf8.RuneLen
)
`)
	values := runKeys(t, map[string]string{"a.go": keySource, "keys.go": out.String()})
	for i, c := range keyCases {
		for j, want := range c.want {
			var ticks int
			var got string
			line, ok := values[fmt.Sprintf("key %d %d", i, j)]
			if n, _ := fmt.Sscanf(line, "%d", &ticks); !ok || n != 1 {
				t.Errorf("%s, input %d: no value", c.expr, j)
				continue
			}
			_, got, _ = strings.Cut(line, " ")
			if got != want {
				t.Errorf("%s, input %d: %q, want %q", c.expr, j, got, want)
			}
			if j == 0 && ticks != c.ticks {
				t.Errorf("%s: %d calls, want %d", c.expr, ticks, c.ticks)
			}
			vm, ok := values[fmt.Sprintf("vm %q %d", c.expr, j)]
			if c.vm == "" && !ok {
				t.Errorf("%s: expr's interpreter was not asked", c.expr)
			}
			if ok && vm != "!" && vm != got {
				t.Errorf("%s, input %d: %q, expr's interpreter says %q", c.expr, j, got, vm)
			}
		}
	}
}

// keyArgs writes the arguments of a key function of Service.Do.
func keyArgs(args []keyArg) string {
	params := []string{"ctx", "req", "in", `"id"`, "42", "200", "-5", `"tag"`, "true"}
	list := make([]string, len(args))
	for i, a := range args {
		switch a.kind {
		case argParam:
			list[i] = params[a.param]
		default:
			list[i] = map[keyArgKind]string{argContext: "ctx", argBuffer: "buf", argReceiver: "s", argResult: "err"}[a.kind]
		}
	}
	return strings.Join(list, ", ")
}

// runKeys builds and runs a program of this module that is in memory only, and
// returns what its lines say behind the first three words.
func runKeys(t *testing.T, files map[string]string) map[string]string {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir, overlay := t.TempDir(), map[string]string{}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay[filepath.Join(root, "internal", "keyprogram", name)] = path
	}
	b, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, b, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "run", "-overlay", list, "./internal/keyprogram")
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	if err != nil {
		lines := strings.Split(stderr.String(), "\n")
		t.Fatalf("%v\n%s", err, strings.Join(lines[:min(len(lines), 40)], "\n"))
	}
	values := map[string]string{}
	for line := range strings.Lines(string(stdout)) {
		line = strings.TrimSuffix(line, "\n")
		var key, value string
		if rest, ok := strings.CutPrefix(line, "vm "); ok {
			end := 1
			for rest[end] != '"' || rest[end-1] == '\\' {
				end++
			}
			end += strings.Index(rest[end+2:], " ") + 2
			key, value = "vm "+rest[:end], rest[end+1:]
		} else {
			words := strings.SplitN(line, " ", 4)
			key, value = strings.Join(words[:3], " "), words[3]
		}
		values[key] = value
	}
	return values
}
