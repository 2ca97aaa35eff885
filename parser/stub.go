package parser

import (
	"errors"
	"fmt"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// stubsOf returns sources that declare the wrappers to be generated, by directory, for
// the packages in which, or in an importer of which, signatures mention one: nil if
// none does. The wrappers are not there when their own packages are loaded, and what
// they are is not needed, only that they are types.
func stubsOf(builders []*builder) map[string][]byte {
	missing := map[string]bool{} // undefined names, and those behind a dot
	for _, b := range builders {
		if b.pkg == nil {
			continue
		}
		for _, err := range b.loaded.TypeErrors() {
			var te types.Error
			if errors.As(err, &te) {
				if name, ok := strings.CutPrefix(te.Msg, "undefined: "); ok {
					missing[name[strings.LastIndexByte(name, '.')+1:]] = true
				}
			}
		}
	}
	stubs := map[string][]byte{}
	for _, b := range builders {
		if b.pkg == nil {
			continue
		}
		if src := b.stub(missing); src != "" {
			stubs[b.pkg.Dir] = []byte(src)
		}
	}
	if len(stubs) == 0 {
		return nil
	}
	return stubs
}

// stub declares those wrappers of the package whose names are missing somewhere.
func (b *builder) stub(missing map[string]bool) string {
	var imports, decls strings.Builder
	aliases := map[*types.Package]string{}
	qualify := func(p *types.Package) string {
		if p == b.pkg.Types {
			return ""
		}
		if aliases[p] == "" {
			aliases[p] = fmt.Sprintf("p%d", len(aliases))
			fmt.Fprintf(&imports, "import %s %q\n", aliases[p], p.Path())
		}
		return aliases[p]
	}
	for _, name := range sortedKeys(b.drafts) {
		d := b.drafts[name]
		obj, ok := b.pkg.Types.Scope().Lookup(name).(*types.TypeName)
		if !ok {
			continue
		}
		w := Wrapper{Source: obj, Name: d.wrapperName()}
		if !missing[w.Name] {
			continue
		}
		var params []string
		for tp := range w.TypeParams() {
			params = append(params, tp.Obj().Name()+" "+types.TypeString(tp.Constraint(), qualify))
		}
		list := ""
		if len(params) > 0 {
			list = "[" + strings.Join(params, ", ") + "]"
		}
		fmt.Fprintf(&decls, "type %s%s struct{}\n", w.Name, list)
	}
	if decls.Len() == 0 {
		return ""
	}
	return "package " + b.pkg.Name + "\n" + imports.String() + decls.String()
}

// wrapperName is what the wrapper of the type is called, if it gets one.
func (d *draft) wrapperName() string {
	if d.wrapper != nil {
		if o, diags := d.wrapper.Wrapper(); len(diags) == 0 && o.Name != "" {
			return o.Name
		}
	}
	name, _ := names(d.name)
	return name
}

// willHave returns a method that a pointer to t, a stub, or t, a pointer to one, has once
// the wrapper is there: one of what it wraps, if that is exported or limited itself. It is
// nil if there is none.
func (b *builder) willHave(t types.Type, pkg *types.Package, name string) *types.Func {
	t = types.Unalias(t)
	if ptr, ok := t.(*types.Pointer); ok {
		t = types.Unalias(ptr.Elem())
	}
	wrapper, ok := t.(*types.Named)
	if !ok || !b.loaded.IsStub(wrapper.Obj()) {
		return nil
	}
	d, source := b.wrappedBy(wrapper)
	if source == nil || !token.IsExported(name) && d.methods[name] == nil {
		return nil
	}
	obj, _, _ := types.LookupFieldOrMethod(source, true, pkg, name)
	fn, _ := obj.(*types.Func)
	return fn
}

// wrappedBy returns the type that a stub wraps, with its type arguments, and what the
// directives say about it; nil if it is not known.
func (b *builder) wrappedBy(wrapper *types.Named) (*draft, types.Type) {
	pkg := wrapper.Obj().Pkg()
	for _, d := range b.all {
		obj, ok := pkg.Scope().Lookup(d.name).(*types.TypeName)
		if !ok || b.all[pkg.Path()+"."+d.name] != d || d.wrapperName() != wrapper.Obj().Name() {
			continue
		}
		named, ok := types.Unalias(obj.Type()).(*types.Named)
		if !ok || named.TypeParams().Len() == 0 {
			return d, obj.Type()
		}
		args := slices.Collect(wrapper.TypeArgs().Types())
		if len(args) != named.TypeParams().Len() {
			return nil, nil
		}
		if t, err := types.Instantiate(nil, named, args, false); err == nil {
			return d, t
		}
	}
	return nil, nil
}
