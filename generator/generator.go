// Package generator turns the model of limited methods into Go files.
//
// Generation is a pure function of the model: the same model gives the same
// bytes, on every machine. Names are allotted first, then everything is rendered,
// then the result is parsed and type-checked together with the package it belongs
// to. Nothing that does not type-check leaves this package, and nothing is written
// to disk before every package is done (see Plan).
package generator

import (
	"bytes"
	"errors"
	"fmt"
	"go/format"
	"go/scanner"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/parser"
	"github.com/ratelimitgen/ratelimitgen/parser/scan"
)

// Header is the first line of every file of ours, and of no other file.
const Header = scan.Header

// Imports lists the packages that generated code may import without need of the
// annotated package.
func Imports() []string {
	return []string{runtimePath, "context", "math", "regexp", "slices", "strconv", "strings", "time", "unicode/utf8"}
}

// RequestImports are Imports for packages with limited methods that take a request
// otherwise than in a context.
func RequestImports() []string { return []string{httpPath} }

// OutputName is the base name of the file that a package gets.
const OutputName = scan.OutputName

// File is a generated file.
type File struct {
	Path    string // absolute
	Content []byte
}

// Generate renders the files of all packages of the model, sorted by path. A
// diagnostic means that nothing may be written. The stages that it reports are
// "generate" and "verify".
func Generate(res *parser.Result) ([]File, diag.List) {
	var (
		files []File
		diags diag.List
	)
	for _, p := range res.Packages {
		if problems := checkTypes(p); len(problems) > 0 {
			diags.Add(problems...)
			continue
		}
		outputs, err := checkedPackage(p, res.Stage)
		if err != nil {
			diags.Add(invalid(p, err))
			continue
		}
		files = append(files, outputs...)
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files, diags
}

// CodeInvalid is the code of output that does not compile, which is a fault of the
// generator.
const CodeInvalid = "output-invalid"

// invalid is the diagnostic of output that does not compile.
func invalid(p *parser.Package, err error) diag.Diagnostic {
	return diag.Diagnostic{
		Pos:     p.Wrappers[0].Pos,
		Code:    CodeInvalid,
		Message: fmt.Sprintf("the code generated for package %s does not compile, so nothing was written: %s", p.Path, strings.ReplaceAll(err.Error(), p.Dir+string(filepath.Separator), "")),
	}
}

// checkTypes reports the methods that the wrappers of p cannot have, because their
// signatures mention types that p cannot name.
func checkTypes(p *parser.Package) diag.List {
	var problems diag.List
	for _, w := range p.Wrappers {
		problems.Add(checkWrapper(p, w)...)
	}
	return problems
}

// checkWrapper is checkTypes for one wrapper of p.
func checkWrapper(p *parser.Package, w *parser.Wrapper) diag.List {
	var problems diag.List
	for _, m := range w.Methods {
		why := unnameable(p, m.Sig)
		if why == "" {
			continue
		}
		if w.OfFunction() {
			problems.Add(diag.Diagnostic{
				Pos:     w.Pos,
				Code:    "unnameable-type",
				Message: fmt.Sprintf("%s cannot be made: the signature of %s mentions %s", w.Constructor, m.Name, why),
			})
			continue
		}
		remedy := fmt.Sprintf("put the directives on an interface of this package that has no method %s", m.Name)
		if !types.IsInterface(w.Source.Type()) {
			remedy = fmt.Sprintf("declare %s on %s itself, with types that this package can name, or %s", m.Name, w.Source.Name(), remedy)
		}
		problems.Add(diag.Diagnostic{
			Pos:     w.Pos,
			Code:    "unnameable-type",
			Message: fmt.Sprintf("%s cannot have the method %s: its signature mentions %s; %s", w.Name, m.Name, why, remedy),
		})
	}
	return problems
}

// checkedPackage returns the output for p, once it type-checks.
func checkedPackage(p *parser.Package, stage func(stage, pkg string)) ([]File, error) {
	if stage == nil {
		stage = func(stage, pkg string) {}
	}
	stage("generate", p.Path)
	files, err := renderPackage(p)
	if err == nil {
		stage("verify", p.Path)
		err = verify(p, files)
	}
	return files, err
}

// renderPackage returns the output for p: a file for each build constraint.
func renderPackage(p *parser.Package) ([]File, error) {
	var files []File
	var common []string // names that the file of every build declares
	for _, group := range byConstraint(p.Wrappers) {
		f := newFile(p, group, common)
		src, err := f.render()
		if err != nil {
			return nil, err
		}
		out, err := format.Source(src)
		if err != nil {
			return nil, fmt.Errorf("%w in %q", err, lineOf(src, err))
		}
		if err := f.comparePlan(out); err != nil {
			return nil, err
		}
		if f.constraint == nil {
			common = f.planned()
		}
		files = append(files, File{Path: filepath.Join(p.Dir, scan.OutputFor(f.constraint)), Content: out})
	}
	return files, nil
}

// lineOf returns the line of src that err, of the parser, is about.
func lineOf(src []byte, err error) string {
	var list scanner.ErrorList
	if !errors.As(err, &list) || len(list) == 0 {
		return ""
	}
	lines := bytes.Split(src, []byte("\n"))
	return string(lines[max(0, min(list[0].Pos.Line, len(lines))-1)])
}

// byConstraint groups wrappers by their build constraints, those without first.
func byConstraint(wrappers []*parser.Wrapper) [][]*parser.Wrapper {
	groups := map[string][]*parser.Wrapper{}
	for _, w := range wrappers {
		text := ""
		if w.Constraint != nil {
			text = w.Constraint.String()
		}
		groups[text] = append(groups[text], w)
	}
	var list [][]*parser.Wrapper
	for _, text := range slices.Sorted(maps.Keys(groups)) {
		list = append(list, groups[text])
	}
	return list
}

// verify type-checks the outputs together with its package and makes sure that the
// wrappers have the planned methods, and promote no others.
func verify(p *parser.Package, files []File) error {
	sources := map[string][]byte{}
	for _, f := range files {
		sources[f.Path] = f.Content
	}
	pkg, errs := p.Check(sources)
	if n := len(errs); n > 1 {
		return fmt.Errorf("%w (and %d more errors)", errs[0], n-1)
	} else if n == 1 {
		return errs[0]
	}
	for _, w := range p.Wrappers {
		if w.OfFunction() {
			if err := verifyFunction(pkg, w); err != nil {
				return err
			}
			continue
		}
		obj, ok := pkg.Scope().Lookup(w.Name).(*types.TypeName)
		if !ok {
			return fmt.Errorf("type %s is missing", w.Name)
		}
		got := types.NewMethodSet(types.NewPointer(obj.Type()))
		for sel := range got.Methods() {
			switch promoted := len(sel.Index()) > 1; {
			case !promoted: // the package may have methods of its own on the wrapper
			case w.Sealed == nil || sel.Obj().Exported() || sel.Obj().Pkg() == pkg:
				return fmt.Errorf("type %s promotes %s, past its limits", w.Name, sel.Obj().Name())
			}
		}
		for _, m := range w.Methods {
			if got.Lookup(pkg, m.Name) == nil {
				return fmt.Errorf("method %s.%s is missing", w.Name, m.Name)
			}
		}
	}
	return nil
}

// verifyFunction makes sure that the constructor for a function returns one like it.
func verifyFunction(pkg *types.Package, w *parser.Wrapper) error {
	fn, ok := pkg.Scope().Lookup(w.Constructor).(*types.Func)
	if !ok {
		return fmt.Errorf("function %s is missing", w.Constructor)
	}
	results := fn.Signature().Results()
	if results.Len() != 1 {
		return fmt.Errorf("function %s has %d results instead of 1", w.Constructor, results.Len())
	}
	if got, ok := results.At(0).Type().(*types.Signature); !ok || got.Params().Len() != w.Methods[0].Sig.Params().Len() {
		return fmt.Errorf("function %s does not return a function like %s", w.Constructor, w.Source.Name())
	}
	return nil
}
