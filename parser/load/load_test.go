package load

import (
	"context"
	"errors"
	"fmt"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// module lays out an archive as the module example.com/m.
func module(t *testing.T, archive string) string {
	t.Helper()
	dir := t.TempDir()
	files := txtar.Parse([]byte("-- go.mod --\nmodule example.com/m\n\ngo 1.26.0\n" + archive)).Files
	for _, f := range files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func load(t *testing.T, archive string, cfg Config, patterns ...string) *Result {
	t.Helper()
	cfg.Dir = module(t, archive)
	res, err := Load(context.Background(), cfg, patterns...)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func signature(t *testing.T, p *Package, name string) string {
	t.Helper()
	obj := p.Types.Scope().Lookup(name)
	if obj == nil {
		t.Fatalf("package %s does not declare %s: %v", p.Path, name, p.Errors)
	}
	return types.ObjectString(obj, types.RelativeTo(p.Types))
}

func TestSignaturesOfAPackageThatDoesNotCompile(t *testing.T) {
	t.Parallel()
	res := load(t, `
-- p/p.go --
package p

import (
	"context"
	"encoding/json"
	"example.com/m/dep"
	"example.com/nowhere"
	"os"
)

func Good(ctx context.Context, d *dep.T) error {
	undefined(json.Marshal, nowhere.X)
	return 1
}

func Bad(n Nowhere) error { return nil }

var V = missing()
-- p/syntax.go --
package p

func Fine(int) {}

func Broken( {
-- dep/dep.go --
package dep

import "net/http"

type T struct{ f func() string }

func use() { http.Get(1) }
`, Config{}, "./p")
	p := res.Packages[0]
	for name, want := range map[string]string{
		"Good": "func Good(ctx context.Context, d *example.com/m/dep.T) error",
		"Bad":  "func Bad(n invalid type) error",
		"Fine": "func Fine(int)",
	} {
		if got := signature(t, p, name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if len(p.Errors) == 0 {
		t.Error("no errors reported")
	}
}

func TestOnlyWhatSignaturesMentionIsImported(t *testing.T) {
	t.Parallel()
	res := load(t, `
-- p/p.go --
package p

import (
	"context"
	"example.com/m/body"
	"example.com/m/odd-name"
	"net/http"
)

func F(context.Context, odd.T) { http.Get(body.X) }
-- body/body.go --
package body

const X = 1
-- odd-name/x.go --
package odd

type T int
`, Config{}, "./p")
	p := res.Packages[0]
	if len(p.Errors) > 0 {
		t.Errorf("errors: %v", p.Errors)
	}
	var imported []string
	for _, imp := range p.Types.Imports() {
		imported = append(imported, imp.Path())
	}
	slices.Sort(imported)
	if want := []string{"context", "example.com/m/odd-name"}; !slices.Equal(imported, want) {
		t.Errorf("imported %v, want %v", imported, want)
	}
	if _, ok := res.ld.exported["net/http"]; ok {
		t.Error("export data was read for an import that only bodies use")
	}
}

func TestOwnOutputIsLeftOutAndCheckedAgain(t *testing.T) {
	t.Parallel()
	res := load(t, `
-- p/p.go --
package p

type T struct{}
-- p/out.go --
// ours
package p

type Old struct{}
`, Config{
		Also:   []string{"strconv"},
		Output: func(_ string, src []byte) bool { return strings.HasPrefix(string(src), "// ours") },
	}, "./p")
	p := res.Packages[0]
	if p.Types.Scope().Lookup("Old") != nil {
		t.Error("the output was loaded")
	}
	name := filepath.Join(p.Dir, "out.go")
	pkg, errs := p.Check(map[string][]byte{name: []byte("package p\n\nimport \"strconv\"\n\ntype New struct{ next *T; e *strconv.NumError }\n")})
	if len(errs) > 0 || pkg.Scope().Lookup("New") == nil {
		t.Errorf("good output: %v", errs)
	}
	if _, errs := p.Check(map[string][]byte{name: []byte("package p\n\ntype New struct{ next *Missing }\n")}); len(errs) != 1 || !strings.Contains(errs[0].Error(), "undefined: Missing") {
		t.Errorf("bad output: %v", errs)
	}
	if _, errs := p.Check(map[string][]byte{name: []byte("package p\n\nfunc f() int { return T{} }\n")}); len(errs) != 1 {
		t.Errorf("output with a wrong body: %v", errs)
	}
	if _, errs := p.Check(map[string][]byte{name: []byte("package p\n\ntype New struct\n")}); len(errs) == 0 {
		t.Error("output with a syntax error passes")
	}
}

func TestUnavailableImports(t *testing.T) {
	t.Parallel()
	res := load(t, "-- p/p.go --\npackage p\n", Config{Also: []string{"strconv", "example.com/none"}}, "./p")
	if err := res.Unavailable("strconv"); err != nil {
		t.Errorf("strconv: %v", err)
	}
	if err := res.Unavailable("example.com/none"); err == nil {
		t.Error("example.com/none is available")
	}
}

func TestADependencyThatDoesNotCompileIsTakenFromSource(t *testing.T) {
	t.Parallel()
	dir := module(t, `
require example.com/dep v0.0.0

replace example.com/dep => ./dep
-- p/p.go --
package p

import "example.com/dep"

func F(dep.T) {}
-- dep/go.mod --
module example.com/dep

go 1.26.0
-- dep/dep.go --
package dep

type T struct{}

func broken() int { return "" }
`)
	res, err := Load(context.Background(), Config{Dir: dir}, "./p")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := signature(t, res.Packages[0], "F"), "func F(example.com/dep.T)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if errs := res.Packages[0].Errors; len(errs) > 0 {
		t.Errorf("errors: %v", errs)
	}
}

func TestImportOfAFile(t *testing.T) {
	t.Parallel()
	res := load(t, `
-- p/p.go --
package p

import (
	alias "io"
	"net/http"
	. "errors"
)

var _ = http.Get
var _ alias.Reader
`, Config{}, "./p")
	p := res.Packages[0]
	for name, path := range map[string]string{"alias": "io", "http": "net/http"} {
		pkg, err := p.Import(p.Files[0], name)
		if err != nil || pkg.Path() != path {
			t.Errorf("%s: %v, %v", name, pkg, err)
		}
	}
	if _, err := p.Import(p.Files[0], "io"); err == nil {
		t.Error("io is not a name in this file")
	}
	if dots := p.DotImports(); len(dots) != 1 || dots[0].Path() != "errors" {
		t.Errorf("dot imports %v", dots)
	}
}

func TestPackagesThatAreNotThere(t *testing.T) {
	t.Parallel()
	res := load(t, "-- p/p.go --\npackage p\n", Config{}, "./nowhere")
	if len(res.Packages) != 0 || len(res.Errors) == 0 {
		t.Errorf("packages %v, errors %v", res.Packages, res.Errors)
	}
}

func TestACancelledLoadEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Load(ctx, Config{Dir: module(t, "-- p/p.go --\npackage p\n")}, "./p")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestBuildTags(t *testing.T) {
	t.Parallel()
	const archive = `
-- p/p.go --
package p
-- p/tagged.go --
//go:build special

package p

type T int
`
	if p := load(t, archive, Config{}, "./p").Packages[0]; p.Types.Scope().Lookup("T") != nil {
		t.Error("T is declared without the tag")
	}
	if p := load(t, archive, Config{Tags: "special"}, "./p").Packages[0]; p.Types.Scope().Lookup("T") == nil {
		t.Error("T is not declared with the tag")
	}
}

const outlineArchive = `
-- p/p.go --
package p

import (
	"example.com/m/dep"
	"example.com/m/far"
)

type T struct{ dep.Base }

func F(*far.Far) {}
-- dep/dep.go --
package dep

import "example.com/m/inner"

type Base struct{ inner.Inner }

func (Base) Close() error { return nil }
-- inner/inner.go --
package inner

type Inner struct{}

func (*Inner) Open() error { return nil }
-- far/far.go --
package far

import (
	"example.com/m/far/heavy"
	"net/http"
)

type Far struct {
	Name   string
	hidden *heavy.T
}

func (*Far) Serve(r *http.Request) {}
-- far/heavy/heavy.go --
package heavy

type T int
`

func TestImportedPackagesAreOutlined(t *testing.T) {
	t.Parallel()
	res := load(t, outlineArchive, Config{}, "./p")
	p := res.Packages[0]
	if len(p.Errors) > 0 {
		t.Errorf("errors: %v", p.Errors)
	}
	if res.ld.source["example.com/m/far/heavy"] != nil || res.ld.exported["net/http"] != "" {
		t.Error("packages were read that the outline has no use for")
	}
}

func TestEmbeddedTypesBringTheirMethods(t *testing.T) {
	t.Parallel()
	p := load(t, outlineArchive, Config{}, "./p").Packages[0]
	mset := types.NewMethodSet(types.NewPointer(p.Types.Scope().Lookup("T").Type()))
	for _, name := range []string{"Close", "Open"} {
		if mset.Lookup(nil, name) == nil {
			t.Errorf("T does not have the promoted method %s", name)
		}
	}
}

func TestOutputThatNeedsMoreThanTheOutlinePasses(t *testing.T) {
	t.Parallel()
	p := load(t, outlineArchive, Config{Also: []string{"net/http"}}, "./p").Packages[0]
	const src = `package p

import (
	"example.com/m/far"
	"net/http"
)

var _ interface{ Serve(*http.Request) } = (*far.Far)(nil)

func f(x *far.Far) { x.Serve(nil) }
`
	if _, errs := p.Check(map[string][]byte{filepath.Join(p.Dir, "out.go"): []byte(src)}); len(errs) > 0 {
		t.Errorf("errors: %v", errs)
	}
}

// The type checker takes anything for a type that it does not know. What only the
// outline does not know, the package in full tells.
func TestOutputMayNotUseWhatHasNoType(t *testing.T) {
	t.Parallel()
	p := load(t, `
-- p/p.go --
package p

import "example.com/m/dep"

var table = dep.Table

func Sum(a [len(table)]int) int { return 0 }

func Broken(Missing) int { return 0 }
-- dep/dep.go --
package dep

var Table = [3]int{}
`, Config{}, "./p").Packages[0]
	for src, want := range map[string]string{
		"Sum([3]int{})": "",
		"Sum([4]int{})": "cannot use [4]int{}",
		"Broken(1)":     "Broken has a type that does not resolve",
	} {
		_, errs := p.Check(map[string][]byte{filepath.Join(p.Dir, "out.go"): []byte("package p\n\nvar v = " + src + "\n")})
		if want == "" && len(errs) > 0 || want != "" && (len(errs) == 0 || !strings.Contains(errs[0].Error(), want)) {
			t.Errorf("%s: %v, want %q", src, errs, want)
		}
	}
}

func TestSyntaxErrorsHaveTheirPlaceInTheFileThatIsEdited(t *testing.T) {
	t.Parallel()
	const src = "package p\n\n//line generated.y:100\n//ratelimit:max=1 window=1s\nfunc F( {\n}\n"
	for _, commented := range []bool{true, false} {
		dir := module(t, "-- p/p.go --\n"+src)
		res, err := Load(context.Background(), Config{Dir: dir, Syntax: func(string) bool { return commented }}, "./p")
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, "p", "p.go")
		if got, want := fmt.Sprint(res.Packages[0].SyntaxError(name)), name+":5:9: "; !strings.HasPrefix(got, want) {
			t.Errorf("error %q, want %s…", got, want)
		}
	}
}

// Another run may remove what it finds orphaned at any time.
func TestAnOutputThatIsGoneSinceItWasListed(t *testing.T) {
	t.Parallel()
	dir := module(t, "-- p/a.go --\npackage p\n\ntype T struct{}\n-- p/gen.go --\npackage p\n")
	remove := func(name string, src []byte) bool {
		if filepath.Base(name) == "gen.go" {
			return src == nil
		}
		if err := os.Remove(filepath.Join(dir, "p", "gen.go")); err != nil {
			t.Error(err)
		}
		return false
	}
	res, err := Load(t.Context(), Config{Dir: dir, Output: remove}, "./p")
	if err != nil || len(res.Packages) != 1 || len(res.Packages[0].Names) != 1 {
		t.Fatalf("%v, %v", res, err)
	}
}
