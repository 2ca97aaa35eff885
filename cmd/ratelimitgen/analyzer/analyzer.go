// Package analyzer is a go/analysis pass that finds what the generator cannot see:
// code that gets past a limit. It also reports what ratelimitgen check does, so
// that go vet -vettool, golangci-lint and ratelimitgen vet say the same.
//
// A limit is enforced by the wrapper that is generated for it, so a call passes it
// if it reaches the limited method or function in another way: by a call, a method
// value or a method expression of the raw type, by an interface that a raw value
// was converted to, or by a type argument. Each of these is an operation that the
// type checker knows, in some package, so that a limited method all of whose uses
// are proved can only be reached through reflection, unsafe, a type assertion from
// an interface that shows no limited method, or a package that was not looked at.
//
// What is limited is a fact of each type and function with directives, and what a
// wrapper limits is a fact of the wrapper: packages that import them are told.
package analyzer

import (
	"context"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/parser"
	"github.com/ratelimitgen/ratelimitgen/parser/directive"
	"github.com/ratelimitgen/ratelimitgen/parser/scan"
)

const doc = `report calls that get past a rate limit, and directives without effect

A limit that is written as a //ratelimit: comment is enforced by a generated
wrapper. This analyzer reports what reaches a limited method or function in
another way, malformed and inert directives, and generated files that are
missing, stale or orphaned.

A comment //nolint:ratelimit // reason excuses a line or, in the doc comment of
a function, the function.`

// Name is the name of the analyzer, in flags and in nolint comments.
const Name = "ratelimit"

// New returns the analyzer. Its result is a *Report. Its flags are
//
//	tests   look at test files, too (default false)
//	allow   functions, methods and packages that may use raw values: a list with
//	        commas of import paths, each with or without .Function, .Type.Method
//	        or .Variable (default none)
//	output  check directives against their types and the generated files against
//	        the directives, which runs the go command in packages that have any
//	        (default true); otherwise directives are checked for themselves
//
// The flags are those of the returned value; set, they must not change while it is
// in use. Any number of its passes may run concurrently.
func New() *analysis.Analyzer {
	o := &options{}
	a := &analysis.Analyzer{
		Name:             Name,
		Doc:              doc,
		URL:              "https://github.com/ratelimitgen/ratelimitgen/blob/main/docs/vet.md",
		RunDespiteErrors: true,
		ResultType:       reflect.TypeFor[*Report](),
		FactTypes:        []analysis.Fact{new(limitedType), new(limitedFunc), new(wrapperType), new(wrapperFunc), new(wrapsParams)},
		Run:              func(p *analysis.Pass) (any, error) { return run(p, o) },
	}
	a.Flags.BoolVar(&o.tests, "tests", false, "look at test files, too")
	a.Flags.Var(&o.allow, "allow", "functions and packages that may use raw values, by import path: a/b.Build,a/c")
	a.Flags.BoolVar(&o.output, "output", true, "check the generated files; runs the go command in packages with directives")
	return a
}

// options are what the flags say.
type options struct {
	tests, output bool
	allow         allowList
}

// Report is what the analyzer found in one package.
type Report struct {
	// Findings are the uses that get past a limit, and the excuses that excuse
	// nothing, sorted. A self-call and such an excuse are warnings. Problems of
	// directives and outputs are not among them: they are reported to the pass.
	Findings diag.List
	// Limited are the methods and functions of the package that have a limit, in no
	// order.
	Limited []Method
	// Sites counts the uses of each limited method of a wrapper, and of the
	// constructor of each limited function.
	Sites map[Method]int
	// InterfaceSites counts the uses of each method of a limited interface. They go
	// through its wrapper unless a raw value was converted to it, which some package
	// may do: see Raw.
	InterfaceSites map[Method]int
	// Raw holds the limited interfaces, as Method.Type has them, to which a raw
	// value is converted without an excuse.
	Raw map[string]bool
	// Excused is how many uses a comment or the flag allow excuses.
	Excused int
	// Allowed holds the elements of the flag allow that excuse something.
	Allowed map[string]bool
}

// Method identifies a limited method or function.
type Method struct {
	Type string // with the import path: "example.com/m/pay.Service"; of a function the path
	Name string
}

// run is the analyzer.
func run(p *analysis.Pass, o *options) (any, error) {
	c := &checker{
		Pass:    p,
		options: o,
		report:  &Report{Sites: map[Method]int{}, InterfaceSites: map[Method]int{}, Raw: map[string]bool{}, Allowed: map[string]bool{}},
		files:   map[string]*token.File{},
		raw:     map[*types.Var]*wrapped{},
		becomes: map[ast.Expr]types.Type{},
		ways:    map[*types.Var]*way{},
		bound:   map[*types.Var]callee{},
		gotos:   map[ast.Node]bool{},

		wrapsTypes: map[*types.TypeParam]bool{},
		visits:     map[visit]bool{},
	}
	if len(p.Files) == 0 {
		return c.report, nil
	}
	c.read()
	if err := c.directives(); err != nil {
		return nil, err
	}
	c.exportFacts()
	if p.Pkg != nil && p.TypesInfo != nil && len(p.AllObjectFacts()) > 0 {
		var looked []*source
		for _, f := range c.sources {
			if !f.ours && (o.tests || !f.test) {
				looked = append(looked, f)
			}
		}
		functions := c.declared(looked)
		for _, f := range looked {
			c.uses(f.syntax)
		}
		c.settle(functions)
		c.onlyWraps(functions)
	}
	c.unusedMarks()
	c.report.Findings.Sort()
	return c.report, nil
}

// checker is one pass.
type checker struct {
	*analysis.Pass
	*options
	report  *Report
	sources []*source
	files   map[string]*token.File // by name, those of sources and those added since

	raw     map[*types.Var]*wrapped // that hold a raw value as an interface
	becomes map[ast.Expr]types.Type // what interfaces are converted to
	ways    map[*types.Var]*way
	bound   map[*types.Var]callee // what variables hold that are assigned to once
	gotos   map[ast.Node]bool     // whether a declaration has one

	instances  []instance
	visits     map[visit]bool
	wrapsTypes map[*types.TypeParam]bool // whose values are only given to a constructor
}

// source is a file of the package.
type source struct {
	syntax    *ast.File
	name      string // as it was opened
	test      bool
	ours      bool // written by the generator, maybe with a licence put above
	mentioned bool // a comment is a directive or was meant to be one
	marks     []*mark

	collected bool // whether the following are known, see checker.targets
	targets   []*directive.Target
	diags     diag.List
}

// read looks through the comments of the package.
func (c *checker) read() {
	var below []*source // that may be ours although they begin with something else
	for _, file := range c.Files {
		tf := c.Fset.File(file.FileStart)
		s := &source{syntax: file, name: tf.Name()}
		c.files[s.name] = tf
		s.test = strings.HasSuffix(s.name, "_test.go")
		c.sources = append(c.sources, s)
		if scan.IsOutputName(filepath.Base(s.name)) {
			if s.ours = isOurs(file); !s.ours && hasHeader(file) {
				below = append(below, s)
			}
		}
		if s.ours {
			continue
		}
		for _, group := range file.Comments {
			for _, comment := range group.List {
				if m := c.parseMark(s, comment); m != nil {
					s.marks = append(s.marks, m)
				} else if d, diags := directive.Parse(comment.Text, diag.Pos{}); d != nil || len(diags) > 0 {
					s.mentioned = true
				}
			}
		}
	}
	// Where there are directives, the file is reported as foreign. That is all there is
	// to say: it does what the generated one would.
	if slices.ContainsFunc(c.sources, func(s *source) bool { return s.mentioned && !s.test }) {
		for _, s := range below {
			s.ours, s.marks = true, nil
		}
	}
}

// isOurs reports whether the generator wrote file: by its first line.
func isOurs(file *ast.File) bool {
	return len(file.Comments) > 0 && file.Comments[0].Pos() == file.FileStart && file.Comments[0].List[0].Text == scan.Header
}

// hasHeader reports whether a comment above the package clause of file has the line
// that generated files begin with.
func hasHeader(file *ast.File) bool {
	for _, group := range file.Comments {
		if group.Pos() > file.Package {
			break
		}
		if slices.ContainsFunc(group.List, func(comment *ast.Comment) bool { return comment.Text == scan.Header }) {
			return true
		}
	}
	return false
}

// directives reports what is wrong with the directives of the package and what is
// generated for them.
func (c *checker) directives() error {
	mentioned, outputs, tests := false, false, 0
	for _, s := range c.sources {
		mentioned = mentioned || s.mentioned
		outputs = outputs || s.ours
		if s.test {
			tests++
		}
	}
	// Other modules are not ours to judge, and the generator would not write there.
	if !mentioned && !outputs || c.Module != nil && c.Module.Version != "" {
		return nil
	}
	dir, diags := c.dir(), diag.List(nil)
	if c.output {
		var err error
		if _, diags, err = Check(context.Background(), parser.Config{Dir: dir}); err != nil {
			return err
		}
	} else {
		diags = c.checkText()
	}
	external := tests == len(c.sources) // the tests in a package of their own
	for _, d := range diags {
		if !filepath.IsAbs(d.Pos.File) && d.Pos.IsValid() {
			d.Pos.File = filepath.Join(dir, d.Pos.File)
		}
		here := c.files[d.Pos.File] != nil
		// A warning must not break a build, and drivers of analyzers know no other
		// problems. What is in test files is for the pass that has them.
		if d.Severity == diag.Warning || !here && (external || strings.HasSuffix(d.Pos.File, "_test.go")) {
			continue
		}
		pos, end := c.place(d)
		c.Report(analysis.Diagnostic{Pos: pos, End: end, Category: d.Code, Message: message(d)})
	}
	return nil
}

// dir is the directory of the package. What cgo made of a file lies elsewhere.
func (c *checker) dir() string {
	for _, s := range c.sources {
		if base := filepath.Base(s.name); !strings.HasSuffix(base, ".cgo1.go") && base != "_cgo_gotypes.go" {
			return filepath.Dir(s.name)
		}
	}
	return filepath.Dir(c.Fset.Position(c.Files[0].Package).Filename)
}

// checkText reports what is wrong with the directives that can be seen without the
// types of what they stand on.
func (c *checker) checkText() diag.List {
	var (
		diags diag.List
		all   []*directive.Directive
	)
	for _, s := range c.sources {
		targets, problems := c.targets(s)
		diags.Add(problems...)
		for _, t := range targets {
			all = append(all, t.Directives...)
		}
	}
	diags.Add(directive.Resolve(all)...)
	for _, d := range all {
		switch d.Verb {
		case directive.VerbLimit:
			_, problems := d.Limit()
			diags.Add(problems...)
		case directive.VerbWrapper:
			_, problems := d.Wrapper()
			diags.Add(problems...)
		}
	}
	diags.Sort()
	return diags
}

// targets are the declarations of a file with directives.
func (c *checker) targets(s *source) ([]*directive.Target, diag.List) {
	if s.mentioned && !s.collected {
		s.collected = true
		if src, err := c.ReadFile(s.name); err != nil {
			s.diags.Add(errRead(s.name, err))
		} else {
			s.targets, s.diags = directive.Collect(c.Fset, s.syntax, src)
		}
	}
	return s.targets, s.diags
}

// add reports a finding at a place.
func (c *checker) add(pos, end token.Pos, d diag.Diagnostic) {
	p := c.Fset.PositionFor(pos, false)
	d.Pos = diag.Pos{File: p.Filename, Line: p.Line, Col: p.Column}
	if e := c.Fset.PositionFor(end, false); e.Line == p.Line {
		d.EndCol = e.Column
	}
	c.report.Findings.Add(d)
	c.Report(analysis.Diagnostic{Pos: pos, End: end, Category: d.Code, Message: message(d)})
}

// message is what a driver prints behind the place.
func message(d diag.Diagnostic) string {
	d.Pos = diag.Pos{}
	text := d.String()
	return strings.TrimPrefix(strings.TrimPrefix(text, "error: "), "warning: ")
}

// place is where d is, in a file that may not be one of the pass's.
func (c *checker) place(d diag.Diagnostic) (pos, end token.Pos) {
	f := c.files[d.Pos.File]
	if f == nil && d.Pos.IsValid() {
		if src, err := c.ReadFile(d.Pos.File); err == nil {
			f = c.Fset.AddFile(d.Pos.File, -1, len(src))
			f.SetLinesForContent(src)
			c.files[d.Pos.File] = f
		}
	}
	if f == nil || d.Pos.Line < 1 || d.Pos.Line > f.LineCount() {
		return c.Files[0].Package, token.NoPos
	}
	at := func(col int) token.Pos {
		offset := f.Offset(f.LineStart(d.Pos.Line)) + max(col, 1) - 1
		return f.Pos(min(offset, f.Size()))
	}
	if d.EndCol > d.Pos.Col {
		end = at(d.EndCol)
	}
	return at(d.Pos.Col), end
}

// nameOf is a type's name with its import path.
func nameOf(tn *types.TypeName) string {
	if tn.Pkg() == nil {
		return tn.Name()
	}
	return tn.Pkg().Path() + "." + tn.Name()
}
