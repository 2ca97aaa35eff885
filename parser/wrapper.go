package parser

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/parser/directive"
)

// wrapper makes the model of one generated type, or nil if there is none to make.
func (b *builder) wrapper(d *draft) *Wrapper {
	first := d.first()
	if fn, ok := b.pkg.Types.Scope().Lookup(d.name).(*types.Func); ok {
		return b.function(d, fn)
	}
	obj, ok := b.pkg.Types.Scope().Lookup(d.name).(*types.TypeName)
	if !ok {
		b.res.Diags.Add(errNotNamed(first, d.name, "it is neither a type of this package nor a function that can be called by name"))
		return nil
	}
	spec := b.typeSpec(obj)
	if obj.IsAlias() && (spec == nil || spec.Assign.IsValid()) {
		b.res.Diags.Add(errNotNamed(first, d.name, "it is an alias; put the directives on the type it stands for"))
		return nil
	}
	named, ok := obj.Type().(*types.Named)
	if !ok || isInvalid(named.Underlying()) {
		cause := ""
		if spec != nil {
			cause = b.errorIn(spec)
		}
		b.res.Diags.Add(errBadType(first, d.name, cause))
		return nil
	}
	if iface, ok := named.Underlying().(*types.Interface); ok && !iface.IsMethodSet() {
		b.res.Diags.Add(errNotNamed(first, d.name, "it is a constraint, and no value has its type"))
		return nil
	}
	if name := blankMethod(spec); name != nil {
		pos := b.fset.PositionFor(name.Pos(), false)
		b.res.Diags.Add(errBlankMethod(diag.Pos{File: pos.Filename, Line: pos.Line, Col: pos.Column}, d.name))
		return nil
	}
	if _, ok := named.Underlying().(*types.Pointer); ok {
		b.res.Diags.Add(errNotNamed(first, d.name, "it is a pointer type, which has no methods"))
		return nil
	}
	if cause := b.pkg.Incomplete(obj); cause != "" {
		b.res.Diags.Add(errIncomplete(first, d.name, cause))
		return nil
	}
	w := &Wrapper{Source: obj, Pos: first.Pos}
	w.Name, w.Constructor = names(d.name)
	if d.wrapper != nil {
		b.wrapperOptions(w, d)
	}
	self := instantiate(named)
	mset := types.NewMethodSet(self)
	if !types.IsInterface(self) {
		all := types.NewMethodSet(types.NewPointer(self))
		w.Pointer = all.Len() > mset.Len()
		mset = all
	}
	before := len(b.res.Diags)
	limited := b.methods(w, d, mset, self)
	b.checkFallbacks(w.Methods)
	switch {
	case limited > 0:
		b.checkImplements(w, d)
		return w
	case len(d.limits) > 0:
		if !d.covers && !b.res.Diags[before:].HasErrors() {
			b.res.Diags.Add(errLimitWithoutMethod(d.limits[0], d.name))
		}
	case d.wrapper != nil && !d.covers:
		b.res.Diags.Add(errWrapperWithoutLimit(d.wrapper, d.name))
	}
	return nil
}

// typeSpec returns the declaration of obj, or nil.
func (b *builder) typeSpec(obj *types.TypeName) *ast.TypeSpec {
	for _, f := range b.pkg.Signatures() {
		for _, d := range f.Decls {
			if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.TYPE {
				for _, s := range d.Specs {
					if s := s.(*ast.TypeSpec); s.Name.Pos() == obj.Pos() {
						return s
					}
				}
			}
		}
	}
	return nil
}

// blankMethod returns the name of a method _ of the interface that spec declares, or nil.
// The type checker leaves such a method out, as a rule.
func blankMethod(spec *ast.TypeSpec) *ast.Ident {
	if spec == nil {
		return nil
	}
	iface, ok := ast.Unparen(spec.Type).(*ast.InterfaceType)
	if !ok {
		return nil
	}
	for _, m := range iface.Methods.List {
		for _, name := range m.Names {
			if name.Name == "_" {
				return name
			}
		}
	}
	return nil
}

// instantiate returns named with its own type parameters as arguments, so that
// its methods speak of those whatever their receivers call them.
func instantiate(named *types.Named) types.Type {
	if named.TypeParams().Len() == 0 {
		return named
	}
	var args []types.Type
	for tp := range named.TypeParams().TypeParams() {
		args = append(args, tp)
	}
	inst, err := types.Instantiate(nil, named, args, false)
	if err != nil {
		return named
	}
	return inst
}

// deprecated returns the paragraph in which the documentation of a declaration tells
// not to use it, in one line.
func deprecated(decl ast.Node) string {
	var doc *ast.CommentGroup
	switch d := decl.(type) {
	case *ast.FuncDecl:
		doc = d.Doc
	case *ast.Field:
		doc = d.Doc
	}
	for paragraph := range strings.SplitSeq(doc.Text(), "\n\n") {
		if strings.HasPrefix(paragraph, "Deprecated: ") {
			return strings.Join(strings.Fields(paragraph), " ")
		}
	}
	return ""
}

// implements reports whether an interface that w is to implement has fn.
func (w *Wrapper) implements(fn *types.Func) bool {
	return slices.ContainsFunc(w.Implements, func(t types.Type) bool {
		obj, _, _ := types.LookupFieldOrMethod(t, false, fn.Pkg(), fn.Name())
		return obj != nil
	})
}

// methods fills w.Methods and returns how many of them are limited.
func (b *builder) methods(w *Wrapper, d *draft, mset *types.MethodSet, self types.Type) int {
	limited := 0
	var own []types.Object
	defer func() { w.Constraint = b.constraintOfWrapper(w, own) }()
	dropped := maps.Clone(d.methods)
	defer func() {
		for _, name := range sortedKeys(dropped) {
			b.res.Diags.Add(errDropped(dropped[name].first(), d.name, name))
		}
	}()
	for sel := range mset.Methods() {
		fn := sel.Obj().(*types.Func)
		md := d.methods[fn.Name()]
		if fn.Pkg() != b.pkg.Types && !fn.Exported() {
			if types.IsInterface(self) {
				w.Sealed = self
			}
			continue
		}
		// Unexported methods are part of what an interface demands; those of a
		// concrete type can be called on it directly.
		if !fn.Exported() && md == nil && !types.IsInterface(self) && !w.implements(fn) {
			continue
		}
		delete(dropped, fn.Name())
		declared := len(sel.Index()) == 1 && (types.IsInterface(self) && md != nil || receiverName(fn) == d.name)
		m := &Method{
			Name:      fn.Name(),
			Sig:       sel.Type().(*types.Signature),
			Qualified: b.pkg.Name + "." + d.name + "." + fn.Name(),
			Handler:   isHandler(sel.Type().(*types.Signature)),
		}
		m.Context, m.Carrier = carrierOf(m.Sig)
		if md != nil {
			m.Deprecated = deprecated(md.decl)
		}
		w.Methods = append(w.Methods, m)
		own = append(own, fn)
		if b.limit(w, d, m, md, fn, declared, self) {
			limited++
		}
	}
	return limited
}

// limit gives m its policies and reports whether it has any.
func (b *builder) limit(w *Wrapper, d *draft, m *Method, md *methodDraft, fn *types.Func, declared bool, self types.Type) bool {
	first := d.first()
	if md != nil && len(md.limits) > 0 {
		first = md.limits[0]
	}
	if hasInvalid(m.Sig) || md != nil && b.errorIn(md.decl) != "" {
		b.res.Diags.Add(errBadSignature(first, m.Qualified, b.causeOf(fn, md)))
		return false
	}
	var limits []*directive.Directive
	if fn.Exported() {
		limits = append(limits, d.limits...)
	}
	if md != nil {
		switch {
		case md.off != nil && len(limits) == 0:
			b.res.Diags.Add(errOffWithoutLimit(md.off, d.name))
			return false
		case md.off != nil && len(md.limits) == 0:
			return false
		case md.off != nil:
			limits = nil
		}
		limits = append(limits, md.limits...)
		m.File = md.file
	}
	if len(limits) == 0 {
		if from := b.promotedLimit(d, fn, declared); from != "" {
			b.res.Diags.Add(errPromotedLimit(first, d.name, fn.Name(), from, types.IsInterface(self)))
		}
		return false
	}
	d.covers = true
	if m.File == "" {
		m.File = b.baseName(limits[0])
	}
	recv := types.NewParam(token.NoPos, b.pkg.Types, recvVarName(fn), self)
	if w.Pointer {
		recv = types.NewParam(token.NoPos, b.pkg.Types, recvVarName(fn), types.NewPointer(self))
	}
	var known bool
	m.Policies, known = b.policies(d, m, limits, recv)
	refusable := known && b.refusable(d, m, md, limits[0], self)
	m.identify()
	return len(m.Policies) > 0 && refusable
}

// refusable reports whether the caller of m can be told of a refusal, and says what
// stands in the way if not.
func (b *builder) refusable(d *draft, m *Method, md *methodDraft, first *directive.Directive, self types.Type) bool {
	switch m.OnLimit {
	case directive.OnLimitZero:
		if m.Handler {
			b.res.Diags.Add(errHandlerZero(first, m.Qualified))
		}
		return !m.Handler
	case directive.OnLimitFallback:
		return b.fallback(d, m, self)
	}
	if !m.Handler && !returnsError(m.Sig) {
		switch {
		case b.pkg.Types.Scope().Lookup("error") != nil:
			b.res.Diags.Add(errOwnError(first, m.Qualified))
		case md == nil:
			b.res.Diags.Add(errPromotedNoError(first, d.name, m.Name))
		default:
			b.res.Diags.Add(errNoErrorResult(first, m.Qualified))
		}
		return false
	}
	return true
}

// fallback reports whether the method that m falls back to is there and takes and
// returns the same, and is not m itself.
func (b *builder) fallback(d *draft, m *Method, self types.Type) bool {
	if self == nil {
		return b.functionFallback(m)
	}
	if !types.IsInterface(self) {
		self = types.NewPointer(self)
	}
	sel := types.NewMethodSet(self).Lookup(b.pkg.Types, m.Fallback.Text)
	if sel == nil {
		b.res.Diags.Add(errNoFallback(m.Fallback, d.name, methodNames(self)))
		return false
	}
	return b.fits(m, sel.Type())
}

// fits reports whether a method or function of type t can be called in place of m.
func (b *builder) fits(m *Method, t types.Type) bool {
	switch {
	case m.Fallback.Text == m.Name:
		b.res.Diags.Add(errFallbackItself(m.Fallback))
	case !types.Identical(t, m.Sig):
		b.res.Diags.Add(errFallbackSignature(m.Fallback, m.Name, types.TypeString(m.Sig, types.RelativeTo(b.pkg.Types))))
	default:
		return true
	}
	return false
}

// checkFallbacks reports those of methods that end up falling back to themselves: the
// limits of a fallback apply to the calls that fall back to it.
func (b *builder) checkFallbacks(methods []*Method) {
	next := map[string]*Method{}
	for _, m := range methods {
		if len(m.Policies) > 0 && m.OnLimit == directive.OnLimitFallback && m.Fallback.Text != m.Name {
			next[m.Name] = m
		}
	}
	for _, name := range sortedKeys(next) {
		chain := []string{name}
		for m := next[name]; m != nil && len(chain) <= len(next); m = next[m.Fallback.Text] {
			chain = append(chain, m.Fallback.Text)
			if m.Fallback.Text == name {
				b.res.Diags.Add(errFallbackCycle(next[name].Fallback, chain))
				break
			}
		}
	}
}

func methodNames(t types.Type) []string {
	var names []string
	for sel := range types.NewMethodSet(t).Methods() {
		names = append(names, sel.Obj().Name())
	}
	return names
}

// causeOf returns why the signature of fn does not type-check, as far as that is
// known.
func (b *builder) causeOf(fn *types.Func, md *methodDraft) string {
	if md != nil {
		return b.brokenBecause(md.decl)
	}
	for _, f := range b.pkg.Signatures() {
		for _, d := range f.Decls {
			if decl, ok := d.(*ast.FuncDecl); ok && decl.Name.Pos() == fn.Pos() {
				return b.brokenBecause(decl)
			}
		}
	}
	return ""
}

// promotedLimit returns the type from which fn is promoted if it is limited there,
// or "".
func (b *builder) promotedLimit(d *draft, fn *types.Func, declared bool) string {
	from := receiverName(fn)
	if declared || from == "" || fn.Pkg() == nil || fn.Pkg() == b.pkg.Types && from == d.name {
		return ""
	}
	other := b.all[fn.Pkg().Path()+"."+from]
	if other == nil {
		return ""
	}
	md := other.methods[fn.Name()]
	if md != nil && len(md.limits) > 0 || len(other.limits) > 0 && fn.Exported() && (md == nil || md.off == nil) {
		if fn.Pkg() != b.pkg.Types {
			from = fn.Pkg().Name() + "." + from
		}
		return from
	}
	return ""
}

// recvVarName is what the source calls the receiver of fn.
func recvVarName(fn *types.Func) string {
	if recv := fn.Signature().Recv(); recv != nil && !types.IsInterface(recv.Type()) {
		return recv.Name()
	}
	return ""
}

// receiverName is the name of the type that declares fn, or "".
func receiverName(fn *types.Func) string {
	recv := fn.Signature().Recv()
	if recv == nil {
		return ""
	}
	t := recv.Type()
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := types.Unalias(t).(*types.Named); ok {
		return n.Obj().Name()
	}
	return ""
}

// names are those of the wrapper and constructor of a type, unless chosen
// otherwise.
func names(typ string) (wrapper, constructor string) {
	r, n := utf8.DecodeRuneInString(typ)
	upper := string(unicode.ToUpper(r)) + typ[n:]
	if token.IsExported(typ) {
		return "RateLimited" + upper, "NewRateLimited" + upper
	}
	return "rateLimited" + upper, "newRateLimited" + upper
}

// wrapperOptions applies the wrapper directive of d.
func (b *builder) wrapperOptions(w *Wrapper, d *draft) {
	o, diags := d.wrapper.Wrapper()
	b.res.Diags.Add(diags...)
	if o.Name != "" {
		w.Name = o.Name
		if token.IsExported(o.Name) {
			w.Constructor = "New" + o.Name
		} else {
			r, n := utf8.DecodeRuneInString(o.Name)
			w.Constructor = "new" + string(unicode.ToUpper(r)) + o.Name[n:]
		}
	}
	if o.Constructor != "" {
		w.Constructor = o.Constructor
	}
	if o.Implements != nil && len(diags) == 0 && d.file != nil { // on a function it is reported
		b.implements(w, d, o.Implements)
	}
}

// returnsError reports whether the last result is the universe's error.
func returnsError(sig *types.Signature) bool {
	n := sig.Results().Len()
	return n > 0 && types.Identical(sig.Results().At(n-1).Type(), types.Universe.Lookup("error").Type())
}

func isNamed(t types.Type, path, name string) bool {
	n, ok := t.(*types.Named)
	return ok && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == path && n.Obj().Name() == name
}

func isInvalid(t types.Type) bool { return types.Identical(t, types.Typ[types.Invalid]) }

// hasInvalid reports whether sig mentions a type that could not be resolved.
func hasInvalid(sig *types.Signature) bool {
	return strings.Contains(types.TypeString(sig, nil), "invalid type")
}
