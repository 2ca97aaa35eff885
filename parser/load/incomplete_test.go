package load

import (
	"go/types"
	"path/filepath"
	"strings"
	"testing"
)

func incomplete(t *testing.T, p *Package, name string) string {
	t.Helper()
	obj, ok := p.Types.Scope().Lookup(name).(*types.TypeName)
	if !ok {
		t.Fatalf("package %s does not declare a type %s: %v", p.Path, name, p.Errors)
	}
	return p.Incomplete(obj)
}

func TestTypesWhoseMethodsAreNotAllKnown(t *testing.T) {
	t.Parallel()
	p := load(t, `
-- p/p.go --
package p

import (
	"example.com/m/dep"
	"example.com/m/nosuch"
	"io"
)

type Struct struct{ *nosuch.X }
type Interface interface {
	io.Closer
	nosuch.I
}
type Nested interface{ interface{ Missing } }
type Defined nosuch.I
type Alias = Missing
type ThroughAlias struct{ *Alias }
type ThroughFarAlias struct{ *dep.A }
type Deep struct{ Struct }
type Far struct{ dep.T }
type FarAlias struct{ dep.A }
type Generic[T any] struct{ nosuch.G[T] }
type Instance struct{ Generic[int] }
type Constraint[T nosuch.C] struct{}
type Inline[T interface{ M(nosuch.X) }] struct{}
type Union[T ~int | nosuch.X] struct{}
type Local interface{ nosuch.C }
type LocalConstraint[T Local] struct{}
-- dep/dep.go --
package dep

type T struct{ inner }
type inner struct{ Undefined }
type A = Undefined
`, Config{}, "./p").Packages[0]
	const unresolved = `p.go:5:2: could not import example.com/m/nosuch (`
	for name, want := range map[string]string{
		"Struct":          `Struct depends on *nosuch.X, which does not resolve: ` + unresolved,
		"Interface":       `Interface depends on nosuch.I, which does not resolve: ` + unresolved,
		"Nested":          `Nested depends on interface{Missing}, which does not resolve: p.go:14:35: undefined: Missing`,
		"Defined":         `Defined depends on nosuch.I, which does not resolve: ` + unresolved,
		"ThroughAlias":    `Alias depends on Missing, which does not resolve: p.go:16:14: undefined: Missing`,
		"ThroughFarAlias": `dep.A depends on Undefined, which does not resolve: dep.go:5:10: undefined: Undefined`,
		"Deep":            `Struct depends on *nosuch.X, which does not resolve: ` + unresolved,
		"Far":             `dep.inner depends on Undefined, which does not resolve: dep.go:4:20: undefined: Undefined`,
		"FarAlias":        `dep.A depends on Undefined, which does not resolve: dep.go:5:10: undefined: Undefined`,
		"Generic":         `Generic depends on nosuch.G[T], which does not resolve: ` + unresolved,
		"Instance":        `Generic depends on nosuch.G[T], which does not resolve: ` + unresolved,
		"Constraint":      `Constraint depends on nosuch.C, which does not resolve: ` + unresolved,
		"Inline":          `Inline depends on interface{M(nosuch.X)}, which does not resolve: ` + unresolved,
		"Union":           `Union depends on ~int | nosuch.X, which does not resolve: ` + unresolved,
		"LocalConstraint": `Local depends on nosuch.C, which does not resolve: ` + unresolved,
	} {
		got := strings.ReplaceAll(strings.ReplaceAll(incomplete(t, p, name), "dep/dep.go", "dep.go"), "p/p.go", "p.go")
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestTypesWhoseMethodsAreAllKnown(t *testing.T) {
	t.Parallel()
	p := load(t, `
-- p/p.go --
package p

import (
	"example.com/m/dep"
	"example.com/m/nosuch"
	"fmt"
	"net/http"
)

type Field struct {
	x nosuch.X
	Y Missing
	dep.T
	http.Handler
}
type Signature interface {
	fmt.Stringer
	M(nosuch.X)
}
type Recursive struct{ *Recursive }
type Generic[T fmt.Stringer] struct{ *Generic[T] }
type Union[T ~int | dep.T] struct{}
-- dep/dep.go --
package dep

type T struct{ x Undefined }

type Other struct{ Undefined }
`, Config{}, "./p").Packages[0]
	for _, name := range []string{"Field", "Signature", "Recursive", "Generic", "Union"} {
		if cause := incomplete(t, p, name); cause != "" {
			t.Errorf("%s: %s", name, cause)
		}
	}
}

func TestMethodsMayStandInAFileThatIsNotUnderstood(t *testing.T) {
	t.Parallel()
	p := load(t, `
-- p/p.go --
package p

import "example.com/m/dep"

type Local struct{}
type Interface interface{ M() }
type Far struct{ dep.T }
type Constraint[X dep.T] interface{ M(X) }
-- p/truncated.go --
package p

func (Local) A() {
	if true {
}

func (Local) B() {}
-- dep/dep.go --
package dep

type T struct{}
-- dep/other.go --
package other

func (T) M() {}
`, Config{}, "./p").Packages[0]
	for name, want := range map[string]string{
		"Local":      "methods of Local may be missing: p/truncated.go:7:18: ",
		"Far":        "methods of Far may be missing: p/truncated.go:7:18: ",
		"Interface":  "",
		"Constraint": "",
	} {
		got := filepath.ToSlash(incomplete(t, p, name))
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	p = load(t, `
-- p/p.go --
package p

import "example.com/m/dep"

type Far struct{ dep.T }
-- dep/dep.go --
package dep

type T struct{}
-- dep/other.go --
package other

func (T) M() {}
`, Config{}, "./p").Packages[0]
	got := filepath.ToSlash(incomplete(t, p, "Far"))
	if want := "methods of dep.T may be missing: dep/other.go:1:9: found packages dep (dep.go) and other (other.go) in "; !strings.HasPrefix(got, want) {
		t.Errorf("Far: %q, want %q", got, want)
	}
}
