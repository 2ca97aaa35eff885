package generator

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"

	"github.com/ratelimitgen/ratelimitgen/parser/directive"
)

// planned lists what the output declares: names of package scope, and methods as
// Type.Method.
func (f *file) planned() []string {
	names := []string{"_"} // that output and runtime are of one generation
	for _, w := range f.wrappers {
		names = append(names, w.Constructor)
		if !w.OfFunction() {
			names = append(names, w.Name)
		}
		if w.sealed != "" {
			names = append(names, w.sealed)
		}
		for range w.assertions() {
			names = append(names, "_")
		}
		for _, m := range w.methods {
			if !w.OfFunction() {
				names = append(names, w.Name+"."+m.Name)
			}
			if m.limited() {
				names = append(names, m.spec)
			}
			for _, p := range m.policy {
				for _, fn := range p.functions() {
					names = append(names, fn.name)
				}
			}
		}
	}
	for _, p := range f.patterns(keyFunction{}) {
		names = append(names, p.name)
	}
	slices.Sort(names)
	return names
}

// comparePlan makes sure that content declares what was planned and nothing else, and
// imports nothing else, so that no text that came from a directive has become code. What
// was planned for an expression may turn out not to be needed: see withoutImports.
func (f *file) comparePlan(content []byte) error {
	file, err := parser.ParseFile(token.NewFileSet(), "", content, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	planned := f.imports.paths()
	for _, spec := range file.Imports {
		if !slices.Contains(planned, strings.Trim(spec.Path.Value, `"`)) {
			return fmt.Errorf("the output imports %s, and only %q were planned", spec.Path.Value, planned)
		}
	}
	got := declarations(file)
	if want := f.planned(); !slices.Equal(got, want) {
		return fmt.Errorf("the output declares %q instead of %q", got, want)
	}
	return nil
}

// declarations lists what file declares, in the way of planned.
func declarations(file *ast.File) []string {
	var names []string
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = directive.BaseName(d.Recv.List[0].Type) + "." + name
			}
			names = append(names, name)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name.Name)
				case *ast.ValueSpec:
					for _, id := range s.Names {
						names = append(names, id.Name)
					}
				}
			}
		}
	}
	slices.Sort(names)
	return names
}
