package parser

import (
	"fmt"
	"go/types"
	"slices"
	"strings"

	"github.com/ratelimitgen/ratelimitgen/parser/directive"
)

// implements resolves the interface that the wrapper is to be asserted to
// implement, in the scope of the file that holds the directive.
func (b *builder) implements(w *Wrapper, d *draft, v *directive.Value) {
	fail := func(why string) { b.res.Diags.Add(errUnresolvedInterface(v.Pos(0), v.Text, why)) }
	var obj types.Object
	qualifier, name, qualified := strings.Cut(v.Text, ".")
	if qualified {
		pkg, err := b.pkg.Import(d.file, qualifier)
		if err != nil {
			fail(err.Error())
			return
		}
		obj = pkg.Scope().Lookup(name)
		if obj != nil && !obj.Exported() {
			obj = nil
		}
	} else {
		obj = b.pkg.Types.Scope().Lookup(v.Text)
		if obj == nil {
			obj = types.Universe.Lookup(v.Text)
		}
	}
	tn, ok := obj.(*types.TypeName)
	switch {
	case !ok:
		fail("there is no type of this name")
	case !types.IsInterface(tn.Type()):
		fail("the type is not an interface")
	case !tn.Type().Underlying().(*types.Interface).IsMethodSet():
		fail("the interface is a constraint, which no value has as its type")
	default:
		if n, ok := tn.Type().(*types.Named); ok && n.TypeParams().Len() > 0 {
			fail("generic interfaces cannot be asserted; write the assertion in your own code")
			return
		}
		w.Implements = append(w.Implements, tn.Type())
	}
}

// checkImplements reports the methods that w lacks of the interface that it is to
// implement.
func (b *builder) checkImplements(w *Wrapper, d *draft) {
	for _, t := range w.Implements {
		iface := t.Underlying().(*types.Interface)
		for i := range iface.NumMethods() {
			want := iface.Method(i)
			if b.sealedBy(want, w) {
				w.Sealed = t
				continue
			}
			has := slices.ContainsFunc(w.Methods, func(m *Method) bool {
				return m.Name == want.Name() && types.Identical(m.Sig, want.Type()) &&
					(want.Exported() || want.Pkg() == b.pkg.Types)
			})
			if !has {
				v := &d.wrapper.Option("implements").Value
				sig := strings.TrimPrefix(types.TypeString(want.Type(), types.RelativeTo(b.pkg.Types)), "func")
				b.res.Diags.Add(errUnresolvedInterface(v.Pos(0), v.Text, fmt.Sprintf("%s has no method %s%s", d.name, want.Name(), sig)))
			}
		}
	}
}

// sealedBy reports whether the source of w has want, a method that only another
// package can declare.
func (b *builder) sealedBy(want *types.Func, w *Wrapper) bool {
	if want.Exported() || want.Pkg() == b.pkg.Types {
		return false
	}
	self := w.Source.Type()
	if w.Pointer {
		self = types.NewPointer(self)
	}
	sel := types.NewMethodSet(self).Lookup(want.Pkg(), want.Name())
	return sel != nil && types.Identical(sel.Type(), want.Type())
}
