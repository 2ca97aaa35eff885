package generator

import (
	"bytes"
	"fmt"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ratelimitgen/ratelimitgen/parser"
)

// TestTypesOfTheStandardLibrarySurviveBeingWritten writes the type of every function,
// method, variable and constant of the standard library, and what every named type
// and alias of it stands for, as the output does. What the type checker makes of the
// text must be identical with the original, and mention the same aliases.
func TestTypesOfTheStandardLibrarySurviveBeingWritten(t *testing.T) {
	t.Parallel()
	all, err := parser.ParseAll(t.Context(), parser.Config{Patterns: []string{"std"}}, "max=1")
	if err != nil {
		t.Fatal(err)
	}
	written, unnamed := 0, 0
	for _, c := range all {
		r := newRoundTrip(c.Package)
		for _, name := range c.Types.Scope().Names() {
			r.object(c.Types.Scope().Lookup(name))
		}
		r.check(t)
		written += len(r.items)
		unnamed += r.unnamed
	}
	t.Logf("%d types of %d packages, and %d that cannot be named", written, len(all), unnamed)
	if written < 25000 || unnamed > written/100 {
		t.Errorf("%d types were written and %d cannot be named", written, unnamed)
	}
}

// roundTrip writes types of one package into one file.
type roundTrip struct {
	pkg     *parser.Package
	imports *imports
	scope   *scope
	items   []item
	unnamed int
}

// item is a type that is written as that of a parameter of a function.
type item struct {
	name    string // of the function
	tparams []*types.TypeParam
	typ     types.Type
	// again finds the type in the package with the file; the type arguments are those
	// of the function.
	again func(pkg *types.Package, args []types.Type) (types.Type, error)
}

func newRoundTrip(p *parser.Package) *roundTrip {
	im := newImports(p.Types)
	im.source = p
	return &roundTrip{pkg: p, imports: im, scope: newFileScope(p.Declared)}
}

func (r *roundTrip) add(t types.Type, tparams *types.TypeParamList, again func(pkg *types.Package, args []types.Type) (types.Type, error)) {
	it := item{typ: t, tparams: slices.Collect(tparams.TypeParams()), again: again}
	mentioned := []types.Type{t}
	for _, tp := range it.tparams {
		mentioned = append(mentioned, tp.Constraint())
	}
	for _, t := range mentioned {
		if strings.Contains(types.TypeString(t, nil), "invalid type") {
			return
		}
		if unnameable(r.pkg, t) != "" {
			r.unnamed++
			return
		}
	}
	for _, t := range mentioned {
		r.imports.addType(t)
	}
	it.name = r.scope.allot("written", "written")
	for _, tp := range it.tparams {
		if r.imports.tparams[tp.Obj()] == "" {
			r.imports.tparams[tp.Obj()] = r.scope.allot(tp.Obj().Name(), "T")
		}
	}
	r.items = append(r.items, it)
}

// object adds what obj says of types.
func (r *roundTrip) object(obj types.Object) {
	name := obj.Name()
	again := func(pkg *types.Package) types.Type { return pkg.Scope().Lookup(name).Type() }
	switch obj := obj.(type) {
	case *types.Func:
		sig := obj.Signature()
		plain := types.NewSignatureType(nil, nil, nil, sig.Params(), sig.Results(), sig.Variadic())
		r.add(plain, sig.TypeParams(), func(pkg *types.Package, args []types.Type) (types.Type, error) {
			if len(args) == 0 {
				return again(pkg), nil
			}
			return types.Instantiate(nil, again(pkg), args, true)
		})
	case *types.TypeName:
		switch t := obj.Type().(type) {
		case *types.Alias:
			if t.TypeParams().Len() == 0 {
				r.add(t.Rhs(), nil, func(pkg *types.Package, _ []types.Type) (types.Type, error) {
					return again(pkg).(*types.Alias).Rhs(), nil
				})
			}
		case *types.Named:
			r.named(t, func(pkg *types.Package) *types.Named { return again(pkg).(*types.Named) })
		}
	case *types.Var, *types.Const:
		if b, ok := obj.Type().(*types.Basic); ok && b.Info()&types.IsUntyped != 0 {
			return
		}
		r.add(obj.Type(), nil, func(pkg *types.Package, _ []types.Type) (types.Type, error) { return again(pkg), nil })
	}
}

// named adds what t stands for and its methods.
func (r *roundTrip) named(t *types.Named, again func(*types.Package) *types.Named) {
	instance := func(t *types.Named, args []types.Type) (*types.Named, error) {
		if len(args) == 0 {
			return t, nil
		}
		inst, err := types.Instantiate(nil, t, args, true)
		if err != nil {
			return nil, err
		}
		return inst.(*types.Named), nil
	}
	var own []types.Type
	for tp := range t.TypeParams().TypeParams() {
		own = append(own, tp)
	}
	self, err := instance(t, own)
	if err != nil {
		panic(err)
	}
	// A constraint can be written as a constraint only.
	if i, ok := t.Underlying().(*types.Interface); !ok || i.IsMethodSet() {
		r.add(t.Underlying(), t.TypeParams(), func(pkg *types.Package, args []types.Type) (types.Type, error) {
			inst, err := instance(again(pkg), args)
			if err != nil {
				return nil, err
			}
			return inst.Underlying(), nil
		})
	}
	for i := range self.NumMethods() {
		r.add(self.Method(i).Signature(), t.TypeParams(), func(pkg *types.Package, args []types.Type) (types.Type, error) {
			inst, err := instance(again(pkg), args)
			if err != nil {
				return nil, err
			}
			return inst.Method(i).Signature(), nil
		})
	}
}

// source is the file.
func (r *roundTrip) source() []byte {
	r.imports.allot(r.scope)
	var b bytes.Buffer
	fmt.Fprintf(&b, "package %s\n\n%s\n", r.pkg.Name, r.imports.decl())
	for _, it := range r.items {
		var list []string
		for _, tp := range it.tparams {
			list = append(list, r.imports.typeString(tp)+" "+r.imports.constraint(tp))
		}
		fmt.Fprintf(&b, "func %s", it.name)
		if len(list) > 0 {
			fmt.Fprintf(&b, "[%s]", strings.Join(list, ", "))
		}
		fmt.Fprintf(&b, "(_ %s) {}\n", r.imports.typeString(it.typ))
	}
	return b.Bytes()
}

// check type-checks the file and compares.
func (r *roundTrip) check(t *testing.T) {
	t.Helper()
	if len(r.items) == 0 {
		return
	}
	src := r.source()
	pkg, errs := r.pkg.Check(map[string][]byte{filepath.Join(r.pkg.Dir, OutputName): src})
	if len(errs) > 0 {
		t.Errorf("%s: %v", r.pkg.Path, errs[0])
		return
	}
	for _, it := range r.items {
		sig := pkg.Scope().Lookup(it.name).(*types.Func).Signature()
		var args []types.Type
		for tp := range sig.TypeParams().TypeParams() {
			args = append(args, tp)
		}
		want, err := it.again(pkg, args)
		if err != nil {
			t.Errorf("%s: %v: %v", r.pkg.Path, it.typ, err)
			continue
		}
		got := sig.Params().At(0).Type()
		// The type checker prints any as what it stands for, or does not, as it likes.
		same := func(s string) string { return strings.ReplaceAll(s, "interface{}", "any") }
		if !types.Identical(got, want) || same(got.String()) != same(want.String()) {
			t.Errorf("%s: %v is read back as %v", r.pkg.Path, want, got)
		}
	}
}
