package analyzer

import (
	"go/types"

	"golang.org/x/tools/go/types/typeutil"
)

// decorators tells types that forward to a limited interface from those that stand
// for it without a limit.
//
// A decorator has the limited methods itself, like a raw type; what it is made of
// tells them apart. One part of it is limited: the interface, a wrapper or another
// decorator. None is raw. What gets into the limited part is judged where it gets
// there.
type decorators struct {
	*checker
	source *types.TypeName // the limited interface
	wanted []*types.Func   // its limited methods
	pkg    *types.Package  // whose types are looked into
	judged typeutil.Map    // of verdict
}

// decorates reports whether t is a decorator of the limited interface source, which
// dst is or embeds.
func (c *checker) decorates(t, dst types.Type, source *types.TypeName) bool {
	d := decorators{checker: c, source: source}
	iface := dst.Underlying().(*types.Interface)
	for i := range iface.NumMethods() {
		if l := c.limitOf(dst, []int{i}, iface.Method(i)); l != nil && l.source == source {
			d.wanted = append(d.wanted, iface.Method(i))
		}
	}
	if tn := named(t); tn != nil {
		d.pkg = tn.Pkg()
	}
	v := d.judge(t)
	return v.limited && !v.raw
}

// verdict says whether there is something limited in a type, and something raw.
type verdict struct{ limited, raw bool }

// judge judges t, or what it is made of.
func (d *decorators) judge(t types.Type) verdict {
	t = types.Unalias(t)
	for {
		p, ok := t.(*types.Pointer)
		if !ok {
			break
		}
		t = types.Unalias(p.Elem())
	}
	if v, ok := d.judged.At(t).(verdict); ok {
		return v
	}
	d.judged.Set(t, verdict{}) // for a type that is part of itself
	v := verdict{limited: true}
	if stands, limited := d.methods(t); !limited {
		if v = d.parts(t); stands {
			v.limited = v.limited && !v.raw
			v.raw = !v.limited
		}
	}
	d.judged.Set(t, v)
	return v
}

// methods reports whether t has the wanted methods, and whether with their limits.
func (d *decorators) methods(t types.Type) (stands, limited bool) {
	limited = true
	for _, m := range d.wanted {
		obj, index, _ := types.LookupFieldOrMethod(t, true, m.Pkg(), m.Name())
		fn, ok := obj.(*types.Func)
		if !ok || !types.Identical(fn.Type(), m.Type()) {
			return false, false
		}
		l := d.limitOf(t, index, fn)
		limited = limited && l != nil && l.source == d.source
	}
	return true, limited
}

// parts judges what t is made of: all of it in the package of the decorator, and
// elsewhere the type arguments.
func (d *decorators) parts(t types.Type) verdict {
	var list []types.Type
	if n, ok := t.(*types.Named); ok {
		for arg := range n.TypeArgs().Types() {
			list = append(list, arg)
		}
		if n.Obj().Pkg() != d.pkg {
			t = nil
		} else {
			t = n.Underlying()
		}
	}
	switch t := t.(type) {
	case *types.Struct:
		for v := range t.Fields() {
			list = append(list, v.Type())
		}
	case *types.Map:
		list = append(list, t.Key(), t.Elem())
	case interface{ Elem() types.Type }: // a slice, array, channel or pointer
		list = append(list, t.Elem())
	}
	var all verdict
	for _, part := range list {
		v := d.judge(part)
		all.limited, all.raw = all.limited || v.limited, all.raw || v.raw
	}
	return all
}
