package load

import (
	"context"
	"go/constant"
	"go/types"
	"strings"
	"testing"
)

// oddities is a package dep that is only imported, with types in p to which some of
// it could be assigned.
const oddities = `
-- p/p.go --
package p

import "example.com/m/dep"

type (
	Exact   = struct{ Name string }
	Empty   = struct{}
	Quiet   = interface{ Quiet() string }
	Answers = interface{ Serve(struct{}) }
)

func Uses(dep.Base) {}

const N, M = dep.N, dep.M
-- heavy/heavy.go --
package heavy

type T struct{ s []int }

type C struct{ n int }

func (C) Promoted() string { return "" }
-- dep/dep.go --
package dep

import (
	"example.com/m/heavy"
	"fmt"
)

type Base struct{ Name string }

func (*Base) Key() string { return "" }

// A method before a promoted field, and one before a promoted method.
type Shadowing struct{ *Base }

func (Shadowing) Name() string { return "" }

type Shadowed struct{ fmt.Stringer }

func (Shadowed) String() string { return "" }

// Two of the same depth hide each other, whether fields or methods.
type ByField struct {
	*Base
	Opt
}
type Opt struct{ n int }

func (Opt) Name() string { return "" }

type Two struct {
	fmt.Stringer
	Own
}
type Own struct{}

func (Own) String() string { return "" }

// A method of an unexported type that is embedded.
type ByUnexported struct {
	*Base
	opt
}
type opt struct{ h *heavy.T }

func (opt) Name(h *heavy.T) string { return "" }

type Labels map[string]string

func (Labels) Team() string { return "" }

// With fewer fields, they would be identical to others.
type Hidden struct {
	Name string
	h    *heavy.T
}
type Short struct {
	h *heavy.T
}
type Converted Hidden

// Not comparable for what is not exported.
type Slices struct {
	Name string
	s    []*heavy.T
}
type Value struct{ h heavy.T }
type Pointers struct {
	Name string
	h    *heavy.T
	c    (chan heavy.T)
	i    interface{ M(heavy.T) }
}
type Arrays struct{ a [2]func() }
type Generic[T any] struct {
	t T
	h *heavy.T
}

// A method that only a package brings which nothing else needs.
type Heavy struct{ n int }

func (Heavy) Serve(heavy.T) {}
func (Heavy) Quiet() string { return "" }
func (Heavy) hidden()       {}

type HeavyMethod struct{ Heavy }
type Satisfied struct {
	Serves[Heavy]
	*Base
}

func (HeavyMethod) Quiet(heavy.T) string { return "" }

type Asserts interface {
	Serve(struct{})
	hidden()
}

const N = 1 << M
const M = iota + 3
-- dep/unnamed.go --
package dep

import "example.com/m/heavy"

type Unnamed = struct {
	Name string
	h    *heavy.T
}

type Serves[T interface{ Serve(heavy.T) }] struct{ Name string }

// No struct but Unnamed itself is identical to it.
type Similar struct {
	Name string
	h    *heavy.T
}
`

// measuring is the same with constants that depend on fields and variables.
const measuring = oddities + `
-- dep/measures.go --
package dep

import "example.com/m/heavy"

type table struct {
	row
	cells [3]*heavy.T
}

type row struct{ cells [5]int }

var names = [...]string{"a", "b"}

const (
	Len  = len(table{}.cells)
	Vars = len(names)
)

type Row struct{ Cells [cap(names)]int }
`

func TestAnOutlineClaimsNothingThatIsNotSo(t *testing.T) {
	t.Parallel()
	for name, archive := range map[string]string{"oddities": oddities, "measuring": measuring} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := module(t, archive)
			outline := loadPackage(t, Config{Dir: dir}, "./p")
			full := loadPackage(t, Config{Dir: dir, Full: true}, "./p")
			if len(full.Errors) > 0 {
				t.Fatalf("errors: %v", full.Errors)
			}
			const dep = "example.com/m/dep"
			compare(t,
				[]*types.Package{outline.Types, outline.ld.source[dep].Types},
				[]*types.Package{full.Types, full.ld.source[dep].Types})
		})
	}
}

// Packages of this module stand for what people write.
func TestOutlinesOfThisModuleClaimNothingThatIsNotSo(t *testing.T) {
	t.Parallel()
	outline := loadPackage(t, Config{Dir: "../.."}, "./cmd/ratelimitgen")
	full := loadPackage(t, Config{Dir: "../..", Full: true}, "./cmd/ratelimitgen")
	var outlines, fulls []*types.Package
	for path, p := range outline.ld.source {
		if q := full.ld.source[path]; p != outline && q != nil {
			outlines, fulls = append(outlines, p.Types), append(fulls, q.Types)
		}
	}
	if len(outlines) == 0 {
		t.Error("no package was outlined")
	}
	compare(t, outlines, fulls)
}

func loadPackage(t *testing.T, cfg Config, pattern string) *Package {
	t.Helper()
	res, err := Load(context.Background(), cfg, pattern)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Packages) != 1 {
		t.Fatalf("%d packages, errors %v", len(res.Packages), res.Errors)
	}
	return res.Packages[0]
}

// compare fails if outlines say something about their constants and types, other
// than that something is not there, that the same packages in full do not say.
func compare(t *testing.T, outlines, fulls []*types.Package) {
	t.Helper()
	var outlined, full []types.Type
	var names []string
	for i, pkg := range outlines {
		for _, name := range pkg.Scope().Names() {
			o, f := pkg.Scope().Lookup(name), fulls[i].Scope().Lookup(name)
			name = pkg.Name() + "." + name
			switch o := o.(type) {
			case *types.Const:
				if f, ok := f.(*types.Const); !ok || o.Val().Kind() != constant.Unknown && o.Val().ExactString() != f.Val().ExactString() {
					t.Errorf("%s: %s, want %s", name, o, f)
				}
			case *types.TypeName:
				if n, ok := types.Unalias(o.Type()).(*types.Named); ok && n.TypeParams().Len() != n.TypeArgs().Len() {
					continue
				}
				names = append(names, name)
				outlined = append(outlined, o.Type())
				full = append(full, f.Type())
			}
		}
	}
	for i := range names {
		compareMembers(t, names[i], outlined[i], full[i])
		if types.Comparable(outlined[i]) && !types.Comparable(full[i]) {
			t.Errorf("%s can be compared", names[i])
		}
		for j := range names {
			if types.AssignableTo(outlined[i], outlined[j]) && !types.AssignableTo(full[i], full[j]) {
				t.Errorf("a %s can be assigned to a %s", names[i], names[j])
			}
		}
	}
}

// compareMembers compares what selectors of values of the types mean.
func compareMembers(t *testing.T, name string, outlined, full types.Type) {
	t.Helper()
	for _, member := range members(full) {
		o, oPath, _ := types.LookupFieldOrMethod(outlined, true, nil, member)
		f, fPath, _ := types.LookupFieldOrMethod(full, true, nil, member)
		switch o := o.(type) {
		case nil:
		case *types.Func:
			if f, ok := f.(*types.Func); !ok || len(oPath) != len(fPath) || types.ObjectString(o, nil) != types.ObjectString(f, nil) && !isPlaceholder(o) {
				t.Errorf("%s.%s: %v, want %v", name, member, o, f)
			}
		case *types.Var:
			if f, ok := f.(*types.Var); !ok || len(oPath) != len(fPath) || o.Type().String() != f.Type().String() {
				t.Errorf("%s.%s: %v, want %v", name, member, o, f)
			}
		}
	}
}

// isPlaceholder reports whether f can be called by nobody.
func isPlaceholder(f *types.Func) bool {
	return strings.Contains(f.Type().String(), "struct{?")
}

// members returns the exported names that could be selected of a t, which need not
// mean anything.
func members(t types.Type) []string {
	var names []string
	seen := map[types.Type]bool{}
	var walk func(t types.Type)
	walk = func(t types.Type) {
		t = types.Unalias(t)
		if p, ok := t.(*types.Pointer); ok {
			t = types.Unalias(p.Elem())
		}
		if seen[t] {
			return
		}
		seen[t] = true
		if n, ok := t.(*types.Named); ok {
			for m := range n.Methods() {
				names = append(names, m.Name())
			}
		}
		switch u := t.Underlying().(type) {
		case *types.Interface:
			for m := range u.Methods() {
				names = append(names, m.Name())
			}
		case *types.Struct:
			for f := range u.Fields() {
				names = append(names, f.Name())
				if f.Embedded() {
					walk(f.Type())
				}
			}
		}
	}
	walk(t)
	exported := names[:0]
	for _, name := range names {
		if 'A' <= name[0] && name[0] <= 'Z' {
			exported = append(exported, name)
		}
	}
	return exported
}
