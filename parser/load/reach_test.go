package load

import (
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// taken returns the base names of the files of an imported package that were parsed.
func taken(res *Result, path string) []string {
	p := res.ld.source[path]
	var names []string
	for _, name := range p.Names {
		if !slices.ContainsFunc(p.unread, func(f *unreadFile) bool { return f.name == name }) {
			names = append(names, filepath.Base(name))
		}
	}
	return names
}

func TestOfAnImportedPackageOnlyFilesThatAreNeededAreParsed(t *testing.T) {
	t.Parallel()
	const p = `
-- p/p.go --
package p

import "example.com/m/dep"

type S struct{}

func (S) M(x *dep.T) {}
-- dep/t.go --
package dep

type T struct {
	Embedded
	Level Level
}
-- dep/embedded.go --
package dep

type Embedded struct{ Next []Element }
-- dep/methods.go --
package dep

func (e *Element[K]) Do(Argument) {}

func Function(Unused) {}
`
	for _, c := range []struct {
		name, files string
		want        []string
	}{
		{"reached", `
-- dep/level.go --
package dep

type Other int

const (
	_, Low = iota, iota
	High, Level = 1, 2
)
-- dep/element.go --
package dep

type (
	Alias = int
	Element[K any] struct{}
)
-- dep/argument.go --
package dep

type Argument struct{}
`, []string{"argument.go", "element.go", "embedded.go", "level.go", "methods.go", "t.go"}},
		{"not reached", `
-- dep/level.go --
package dep

type Level int

type Element[K any] int

type Argument int
-- dep/unused.go --
package dep

// Level, T
type Unused struct{ T *T }

var Level2 Level

func (u Unused) m(Level) {}
`, []string{"embedded.go", "level.go", "methods.go", "t.go"}},
		{"method on an alias", `
-- dep/level.go --
package dep

type Level int

type Element[K any] int

type Argument int

type A = Level
-- dep/a.go --
package dep

func (A) Method() {}
`, []string{"a.go", "embedded.go", "level.go", "methods.go", "t.go"}},
		{"not understood", `
-- dep/level.go --
package dep

type Level int

type Element[K any] int

type Argument int
-- dep/broken.go --
package dep

func s Level) Method() {}
`, []string{"broken.go", "embedded.go", "level.go", "methods.go", "t.go"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			res := load(t, p+c.files[1:], Config{}, "./p")
			if got := taken(res, "example.com/m/dep"); !slices.Equal(got, c.want) {
				t.Errorf("parsed %v, want %v", got, c.want)
			}
		})
	}
}

func TestMethodsInOtherFilesArePromoted(t *testing.T) {
	t.Parallel()
	res := load(t, `
-- p/p.go --
package p

import "example.com/m/dep"

type F func(dep.T)
-- dep/t.go --
package dep

type T struct{ *Base }
-- dep/base.go --
package dep

type Base struct{}

type Same = Base
-- dep/methods.go --
package dep

func (b (Base)) One() {}
-- dep/more.go --
package dep

func (*Same) Two() {}
`, Config{}, "./p")
	param := res.Packages[0].Types.Scope().Lookup("F").Type().Underlying().(*types.Signature).Params().At(0)
	set := types.NewMethodSet(param.Type())
	for _, name := range []string{"One", "Two"} {
		if set.Lookup(nil, name) == nil {
			t.Errorf("dep.T has no method %s: %v", name, set)
		}
	}
}

func TestWhatDirectivesMentionIsThere(t *testing.T) {
	t.Parallel()
	res := load(t, `
-- p/p.go --
package p

import (
	"example.com/m/dep"
	"example.com/m/kinds"
)

type S struct{}

//ratelimit:max=1 window=1m when="x.Kind == dep.Gold"
func (S) M(x *dep.T) { _ = kinds.Any }
-- dep/t.go --
package dep

type T struct{ Kind int }
-- dep/gold.go --
package dep

const Gold = 1
-- dep/silver.go --
package dep

const Silver = 1
-- kinds/any.go --
package kinds

const Any = 1
`, Config{}, "./p")
	if got, want := taken(res, "example.com/m/dep"), []string{"gold.go", "t.go"}; !slices.Equal(got, want) {
		t.Errorf("parsed %v, want %v", got, want)
	}
	p := res.Packages[0]
	kinds, err := p.Import(p.Files[0], "kinds")
	if err != nil {
		t.Fatal(err)
	}
	if kinds.Scope().Lookup("Any") == nil {
		t.Error("kinds.Any is not there")
	}
}

func TestPackagesThatMeasureAreNotOutlined(t *testing.T) {
	t.Parallel()
	res := load(t, `
-- p/p.go --
package p

import "example.com/m/dep"

type F func(dep.T)
-- dep/t.go --
package dep

type T [N]int
-- dep/n.go --
package dep

const N = len(names)
-- dep/names.go --
package dep

var names [3]string
`, Config{}, "./p")
	if f := signature(t, res.Packages[0], "F"); !strings.Contains(f, "dep.T") || len(res.TypeErrors()) > 0 {
		t.Errorf("%s, errors %v", f, res.TypeErrors())
	}
	if got := res.ld.source["example.com/m/dep"].Types.Scope().Lookup("T").Type().Underlying().String(); got != "[3]int" {
		t.Errorf("dep.T is %s, want [3]int", got)
	}
}
