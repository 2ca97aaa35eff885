package load

import (
	"bytes"
	"context"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// loadIn is load for a module that is laid out already.
func loadIn(t *testing.T, dir string, patterns ...string) *Result {
	t.Helper()
	res, err := Load(context.Background(), Config{Dir: dir}, patterns...)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// A package outside of the main modules may depend on one of those. Both must
// speak of the same types.
func TestWhatDependsOnAMainModuleSharesItsTypes(t *testing.T) {
	t.Parallel()
	for name, archive := range map[string]string{
		"replaced module": `
require (
	example.com/d v0.0.0
	example.com/e v0.0.0
)

replace (
	example.com/d => ./d
	example.com/e => ./e
)
-- b/b.go --
package b

type Item struct{ Owner string }
-- d/go.mod --
module example.com/d

go 1.26.0
-- d/d.go --
package d

import "example.com/m/b"

type Client struct{}

func (*Client) Put(*b.Item) error { return "" }
-- e/go.mod --
module example.com/e

go 1.26.0

require example.com/d v0.0.0
-- e/e.go --
package e

import "example.com/d"

type Client struct{ d.Client }
-- p/p.go --
package p

import (
	"bytes"
	"example.com/e"
	"example.com/m/b"
)

type S struct{ *e.Client }

func Item() *b.Item
`,
		"workspace": `
-- go.work --
go 1.26.0

use (
	.
	./w
)

replace (
	example.com/d => ./d
	example.com/e => ./e
	example.com/w v0.0.0 => ./w
)
-- w/go.mod --
module example.com/w

go 1.26.0
-- w/b/b.go --
package b

type Item struct{ Owner string }
-- d/go.mod --
module example.com/d

go 1.26.0

require example.com/w v0.0.0
-- d/d.go --
package d

import "example.com/w/b"

type Client struct{}

func (*Client) Put(*b.Item) error { return nil }
-- e/go.mod --
module example.com/e

go 1.26.0

require example.com/d v0.0.0
-- e/e.go --
package e

import "example.com/d"

type Client struct{ d.Client }
-- p/p.go --
package p

import (
	"bytes"
	"example.com/e"
	"example.com/w/b"
)

type S struct{ *e.Client }

func Item() *b.Item
`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "workspace" {
				archive = "\nrequire (\n\texample.com/e v0.0.0\n\texample.com/w v0.0.0\n)\n" + archive
			}
			p := loadIn(t, module(t, archive), "./p").Packages[0]
			if len(p.Errors) > 0 {
				t.Errorf("errors: %v", p.Errors)
			}
			item := p.Types.Scope().Lookup("Item").Type().(*types.Signature).Results().At(0).Type()
			put, _, _ := types.LookupFieldOrMethod(p.Types.Scope().Lookup("S").Type(), true, p.Types, "Put")
			if put == nil {
				t.Fatal("S has no method Put")
			}
			if got := put.Type().(*types.Signature).Params().At(0).Type(); !types.Identical(got, item) {
				t.Errorf("Put takes a %s that is not the %s of the main module", got, item)
			}
		})
	}
}

func TestOnlyPackagesOfMainModulesAreLoaded(t *testing.T) {
	t.Parallel()
	lib := module(t, `
-- go.mod --
module example.com/lib

go 1.26.0
-- lib.go --
package lib

type T struct{}
`)
	dir := module(t, "\nrequire example.com/lib v0.0.0\n\nreplace example.com/lib => "+strconv.Quote(lib)+`
-- p/p.go --
package p

import "example.com/lib"

type T struct{ lib.T }
`)
	wantRefused := func(pattern string) {
		t.Helper()
		res := loadIn(t, dir, "./p", pattern)
		if len(res.Packages) != 1 || res.Packages[0].Name != "p" {
			t.Errorf("%s: packages %v", pattern, res.Packages)
		}
		if len(res.Errors) != 1 || !strings.Contains(res.Errors[0].Error(), "lib.go:1:1: package example.com/lib is not in the main module") {
			t.Errorf("%s: errors %v", pattern, res.Errors)
		}
	}
	wantRefused(lib)
	vendor := exec.Command("go", "mod", "vendor")
	vendor.Dir = dir
	if out, err := vendor.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	wantRefused("./vendor/example.com/lib")
}

func TestFilesOfTwoPackagesAreAnError(t *testing.T) {
	t.Parallel()
	res := load(t, `
-- p/a.go --
package a

type T struct{}
-- p/b.go --
package b

func (T) M() {}
`, Config{}, "./p")
	if len(res.Errors) != 1 || !strings.Contains(filepath.ToSlash(res.Errors[0].Error()), "p/b.go:1:9: found packages a (a.go) and b (b.go) in ") {
		t.Errorf("errors %v", res.Errors)
	}
}

// A package may get another name while its output still has the old one.
func TestTheNameOfOutputDoesNotCount(t *testing.T) {
	t.Parallel()
	res := load(t, `
-- p/p.go --
package p

import "example.com/m/dep"

func F(fresh.T) {}
-- dep/a_output.go --
// ours
package stale
-- dep/fresh.go --
package fresh

import "io"

type T struct{ R io.Reader }
`, Config{Output: func(_ string, src []byte) bool { return strings.HasPrefix(string(src), "// ours") }}, "./p", "./dep")
	if len(res.Errors) > 0 {
		t.Errorf("errors: %v", res.Errors)
	}
	for i, name := range []string{"fresh", "p"} {
		p := res.Packages[i]
		if p.Name != name || p.Types.Name() != name || len(p.Errors) > 0 {
			t.Errorf("package %s, %v; want %s", p.Name, p.Errors, name)
		}
	}
}

func TestConstantsThatDependOnSizes(t *testing.T) {
	t.Parallel()
	const archive = `
-- p/p.go --
package p

import "example.com/m/dep"

func F([dep.Size]byte, [dep.Word]byte) {}
-- dep/dep.go --
package dep

import (
	"bytes"
	"net/http"
	"unsafe"
)

type T struct {
	a, b, c int64
	h       *http.Client
}

const (
	Size = unsafe.Sizeof(T{})
	Word = unsafe.Sizeof(uintptr(0))
)
`
	got := signature(t, load(t, archive, Config{}, "./p").Packages[0], "F")
	if got != "func F([32]byte, [8]byte)" && got != "func F([28]byte, [4]byte)" {
		t.Error(got)
	}
}

// What "go env -w" sets counts like the environment. The test sets a variable of the
// process, so it is not parallel.
func TestThePlatformIsThatOfTheGoCommand(t *testing.T) {
	const archive = `
-- p/p.go --
package p

import "unsafe"

func F([unsafe.Sizeof(uintptr(0))]byte) {}
`
	env := filepath.Join(t.TempDir(), "env")
	if err := os.WriteFile(env, []byte("GOARCH=386\nGOOS=linux\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOENV", env)
	t.Setenv("GOARCH", "")
	t.Setenv("GOOS", "")
	if got := signature(t, load(t, archive, Config{}, "./p").Packages[0], "F"); got != "func F([4]byte)" {
		t.Error(got)
	}
}

func TestWhatIsNotARegularFileIsNotRead(t *testing.T) {
	t.Parallel()
	if err := readInto(new(bytes.Buffer), t.TempDir()); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("error %v", err)
	}
}
