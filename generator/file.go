package generator

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimitgen/ratelimitgen/parser"
)

const runtimePath = "github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"

// file is one output file while it is made: first every name, then the text.
type file struct {
	pkg      *parser.Package
	scope    *scope
	imports  *imports
	wrappers []*wrapper
}

// newFile allots all names of the output of p.
func newFile(p *parser.Package) *file {
	f := &file{pkg: p, scope: newFileScope(p.Declared), imports: newImports(p.Types)}
	for _, w := range p.Wrappers {
		f.scope.reserve(w.Name)
		f.scope.reserve(w.Constructor)
		for tp := range w.TypeParams() {
			f.scope.reserve(tp.Obj().Name())
		}
	}
	f.imports.add(runtimePath, "ratelimit")
	for _, w := range p.Wrappers {
		f.noteImports(w)
	}
	f.imports.allot(f.scope)
	for _, w := range p.Wrappers {
		f.wrappers = append(f.wrappers, f.newWrapper(w))
	}
	return f
}

// noteImports notes every package that the code for w names.
func (f *file) noteImports(w *parser.Wrapper) {
	f.imports.addType(w.Source.Type())
	for tp := range w.TypeParams() {
		f.imports.addType(tp.Constraint())
	}
	for _, t := range w.Implements {
		f.imports.addType(t)
	}
	for _, m := range w.Methods {
		f.imports.addType(m.Sig)
		if len(m.Policies) > 0 && m.Context < 0 {
			f.imports.add("context", "context")
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
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n\npackage %s\n\n%s\n", Header, f.pkg.Name, f.imports.decl())
	decls := []jen.Code{
		comment("The constant is declared by the runtime of the same generation as this file."),
		jen.Const().Id("_").Op("=").Id(f.runtime("RunRatelimitgenAgainV1")),
	}
	for _, w := range f.wrappers {
		decls = append(decls, w.decls()...)
	}
	for _, d := range decls {
		s := jen.Add(d)
		if err := s.Render(&b); err != nil {
			return nil, err
		}
		b.WriteByte('\n')
		if !isComment(d) {
			b.WriteByte('\n')
		}
	}
	return b.Bytes(), nil
}

// runtime returns the qualified name of an identifier of the runtime.
func (f *file) runtime(name string) string { return f.imports.alias[runtimePath] + "." + name }

// comment returns a comment of whole lines. See printable for what is left out.
func comment(lines ...string) *jen.Statement {
	c := jen.Null()
	for i, line := range lines {
		if i > 0 {
			c.Line()
		}
		c.Comment(strings.TrimRight("// "+printable(line), " "))
	}
	return c
}

// codeLine returns the line of a comment that shows text as code.
func codeLine(text string) *jen.Statement { return jen.Comment("//\t" + printable(text)) }

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

func isComment(c jen.Code) bool {
	return strings.HasPrefix(fmt.Sprintf("%#v", c), "//")
}
