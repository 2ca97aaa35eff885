package generator

import (
	"bytes"
	"go/build/constraint"
	"go/types"
	"iter"
	"slices"
	"strings"
	"unicode"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimitgen/ratelimitgen/parser"
	"github.com/ratelimitgen/ratelimitgen/parser/keyexpr"
)

const runtimePath = "github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"

// file is one output file while it is made: first every name, then the text.
type file struct {
	pkg        *parser.Package
	source     []*parser.Wrapper
	constraint constraint.Expr // nil for every build
	scope      *scope
	imports    *imports
	wrappers   []*wrapper
}

// newFile allots all names of the output of p for wrappers that have the same
// constraint. The names of taken are those of another file.
func newFile(p *parser.Package, wrappers []*parser.Wrapper, taken []string) *file {
	f := &file{pkg: p, source: wrappers, constraint: wrappers[0].Constraint, scope: newFileScope(p.Declared), imports: newImports(p.Types)}
	f.imports.source = p
	for _, name := range taken {
		f.scope.reserve(name)
	}
	for _, w := range wrappers {
		if !w.OfFunction() {
			f.scope.reserve(w.Name)
		}
		f.scope.reserve(w.Constructor)
	}
	f.imports.add(runtimePath, "ratelimit")
	for _, w := range wrappers {
		f.noteImports(w)
	}
	for _, w := range wrappers {
		f.nameTypeParams(w)
	}
	f.imports.allot(f.scope)
	for _, w := range wrappers {
		f.wrappers = append(f.wrappers, f.newWrapper(w))
	}
	return f
}

// writtenTypes yields every type that the code for w writes, or of which it writes
// parts.
func writtenTypes(w *parser.Wrapper) iter.Seq[types.Type] {
	return func(yield func(types.Type) bool) {
		if !yield(w.Source.Type()) {
			return
		}
		for tp := range w.TypeParams() {
			if !yield(tp.Constraint()) {
				return
			}
		}
		for _, t := range w.Implements {
			if !yield(t) {
				return
			}
		}
		for _, m := range w.Methods {
			if !yield(m.Sig) {
				return
			}
		}
	}
}

// nameTypeParams allots the names of the type parameters of w. They are called as in
// the declaration of the type, unless that hides what the code for w mentions.
// Methods may have called them otherwise, and so the types that these mention may
// have those very names.
func (f *file) nameTypeParams(w *parser.Wrapper) {
	if !w.Generic() {
		return
	}
	s := newFileScope(nil)
	if !w.OfFunction() {
		s.reserve(w.Name)
	}
	mention := typeWriter{typeName: func(tn *types.TypeName) string {
		if _, ok := tn.Type().(*types.TypeParam); !ok && tn.Pkg() == f.pkg.Types {
			s.reserve(tn.Name())
		}
		return ""
	}}
	mention.length = func(a *types.Array) string {
		return f.imports.length(a, func(obj types.Object) string {
			s.reserve(obj.Name())
			return obj.Name()
		})
	}
	for t := range writtenTypes(w) {
		mention.write(t)
	}
	for _, name := range f.imports.names {
		// Otherwise the import would get another name, in the whole file.
		s.reserve(name)
	}
	for name := range f.pkg.Declared {
		// Expressions may mention any function, variable and constant.
		if _, ok := f.pkg.Types.Scope().Lookup(name).(*types.TypeName); !ok {
			s.reserve(name)
		}
	}
	for tp := range w.TypeParams() {
		name := s.allot(tp.Obj().Name(), "T")
		f.imports.tparams[tp.Obj()] = name
		f.scope.reserve(name)
	}
}

// noteImports notes every package that the code for w names.
func (f *file) noteImports(w *parser.Wrapper) {
	for t := range writtenTypes(w) {
		f.imports.addType(t)
	}
	for _, m := range w.Methods {
		if len(m.Policies) > 0 && m.Context < 0 {
			f.imports.add("context", "context")
		}
		if m.FromRequest() {
			f.imports.add(httpPath, "httplimit")
		}
		for _, p := range m.Policies {
			if p.Window+p.Warmup+p.Lease+p.MaxWait > 0 || len(p.Lock) > 0 {
				f.imports.add("time", "time")
			}
			keyImports(f.imports, p)
		}
	}
}

// render returns the text of the file, not yet formatted.
func (f *file) render() ([]byte, error) {
	// Everything is formatted once, when the file is complete.
	out := jen.NewFile(f.pkg.Name)
	out.NoFormat = true
	out.HeaderComment(f.header())
	out.Id(f.imports.decl())
	decls := []jen.Code{
		comment("The constant is declared by the runtime of the same generation as this file."),
		jen.Const().Id("_").Op("=").Id(f.runtime("RunRatelimitgenAgainV1")),
	}
	for _, w := range f.wrappers {
		decls = append(decls, w.decls()...)
	}
	for _, d := range decls {
		out.Add(d)
		if _, ok := d.(commentLines); !ok {
			out.Line()
		}
	}
	var b bytes.Buffer
	if err := out.Render(&b); err != nil {
		return nil, err
	}
	if f.leavesParts() {
		return tidied(b.Bytes(), f.pkg.Declared), nil
	}
	return b.Bytes(), nil
}

// leavesParts reports whether there are expressions of which a part may be known already
// where it stands: see tidied.
func (f *file) leavesParts() bool {
	choice := func(n keyexpr.Node) bool {
		switch n := n.(type) {
		case *keyexpr.Let, *keyexpr.Cond, *keyexpr.Default, *keyexpr.In:
			return true
		case *keyexpr.Binary:
			return n.Op == "&&" || n.Op == "||" || n.Op == "==" || n.Op == "!="
		}
		return false
	}
	for _, w := range f.wrappers {
		for _, m := range w.methods {
			for _, p := range m.policy {
				for _, fn := range p.functions() {
					if slices.ContainsFunc(fn.nodes, func(n keyexpr.Node) bool { return keyexpr.Contains(n, choice) }) {
						return true
					}
				}
			}
		}
	}
	return false
}

// header returns the lines before the package clause.
func (f *file) header() string {
	if f.constraint == nil {
		return Header
	}
	return Header + "\n\n//go:build " + f.constraint.String()
}

// runtime returns the qualified name of an identifier of the runtime.
func (f *file) runtime(name string) string { return f.imports.alias[runtimePath] + "." + name }

// commentLines is a comment of whole lines, which belongs to what follows.
type commentLines struct{ *jen.Statement }

// comment returns a comment of whole lines. See printable for what is left out.
func comment(lines ...string) commentLines {
	c := jen.Null()
	for i, line := range lines {
		if i > 0 {
			c.Line()
		}
		c.Comment(strings.TrimRight("// "+printable(line), " "))
	}
	return commentLines{c}
}

// codeLine returns the line of a comment that shows text as code.
func codeLine(text string) commentLines {
	return commentLines{jen.Comment("//\t" + printable(text))}
}

// printable leaves out of text what is not printable, so that nothing a directive
// says can end a comment or reorder what follows.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsGraphic(r) || unicode.In(r, unicode.Zl, unicode.Zp) {
			return -1
		}
		return r
	}, text)
}

// wrap breaks text into lines that fit a comment of 80 columns.
func wrap(text string) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+len(word) > 76 {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
