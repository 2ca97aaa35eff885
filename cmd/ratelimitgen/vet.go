package main

import (
	"errors"
	"flag"
	"fmt"
	"go/ast"
	goparser "go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/ratelimitgen/ratelimitgen/cmd/ratelimitgen/analyzer"
	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/parser"
	"github.com/ratelimitgen/ratelimitgen/parser/load"
	"github.com/ratelimitgen/ratelimitgen/parser/scan"
)

const vetUsage = `usage: ratelimitgen vet [flags] [packages]

Reports problems of directives, generated files that are missing, stale or
orphaned, and code that gets past a limit.

flags:
  -C dir      change to dir before doing anything
  -tags list  build tags, as for go build
  -tests      look at test files, too
  -allow list functions and packages that may use raw values, with commas:
              example.com/m/wire.Build,example.com/m/pay.Service.Retry
  -json       print problems as JSON on standard output, one object per line
  -format f   print problems as text, json or github (annotations)

exit status: 0 no errors, 1 errors, 2 ratelimitgen could not do its work
`

// isVetTool reports whether args are those that go vet -vettool gives: it asks for
// the version and the flags first, and then names a file for each package.
func isVetTool(args []string) bool {
	return len(args) > 0 && (args[0] == "-V=full" || args[0] == "-flags" || strings.HasSuffix(args[len(args)-1], ".cfg"))
}

// checkVetEnvironment ends the program if the environment is one that no command takes.
// It does so when go vet asks for the version, arg, which it does once: what is printed
// then is shown, and results that go vet has from former runs do not hide it.
func checkVetEnvironment(arg string, stderr io.Writer) {
	if arg != "-V=full" {
		return
	}
	if _, err := cacheDir(os.Getenv(cacheEnv)); err != nil {
		fmt.Fprintf(stderr, "ratelimitgen: %s\n", plain(err))
		os.Exit(exitTrouble)
	}
}

// vetting is one run of the verb vet.
type vetting struct {
	*command
	parser.Config
	tests bool
	allow string
	diags diag.List
}

// vet reports what is wrong with directives, generated files and callers.
func (c *command) vet(args []string) int {
	v := vetting{command: c}
	flags := flag.NewFlagSet("ratelimitgen vet", flag.ContinueOnError)
	flags.SetOutput(c.stderr)
	flags.Usage = func() { fmt.Fprint(c.stderr, vetUsage) }
	flags.StringVar(&v.Dir, "C", ".", "")
	flags.StringVar(&v.Tags, "tags", "", "")
	flags.BoolVar(&v.tests, "tests", false, "")
	flags.StringVar(&v.allow, "allow", "", "")
	var printing diagnosticFlags
	printing.register(flags)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return exitDone
		}
		return exitTrouble
	}
	format, err := printing.chosen()
	if err != nil {
		return c.trouble(err)
	}
	v.Patterns = flags.Args()
	if v.Dir, err = filepath.Abs(v.Dir); err != nil {
		return c.trouble(err)
	}
	if _, err := os.ReadDir(v.Dir); err != nil {
		return c.trouble(err)
	}
	if v.Remember, err = cacheDir(os.Getenv(cacheEnv)); err != nil {
		return c.trouble(err)
	}
	res, diags, err := analyzer.Check(c.ctx, v.Config)
	if err != nil {
		return c.trouble(err)
	}
	v.diags = diags
	has := func(code string) bool {
		return slices.ContainsFunc(diags, func(d diag.Diagnostic) bool { return d.Code == code })
	}
	var summary string
	switch {
	case has("irregular-file"):
		summary = "no code was vetted; move away first what is not a file"
	case has(parser.CodeOutsideModule):
		summary = "no code was vetted, as not all of these packages are in a main module"
	default:
		if summary, err = v.analyze(res); err != nil {
			return c.trouble(err)
		}
	}
	v.diags.Sort()
	if err := c.print(v.diags, format); err != nil {
		return c.trouble(err)
	}
	fmt.Fprintf(c.stderr, "ratelimitgen: %s\n", summary)
	if v.diags.HasErrors() {
		return exitProblem
	}
	return exitDone
}

// analyze looks for code that gets past a limit, in the packages asked for that
// have or import something limited, and says how much of it there is.
func (v *vetting) analyze(res *parser.Result) (summary string, err error) {
	asked, err := v.load(packages.NeedName|packages.NeedFiles|packages.NeedImports|packages.NeedDeps|packages.NeedForTest, v.patterns())
	if err != nil {
		return "", err
	}
	limited := map[string]bool{}
	for _, p := range res.Packages {
		limited[p.Path] = true
	}
	paths, want := concerned(asked, limited)
	var reports []*analyzer.Report
	if len(paths) > 0 {
		mode := packages.LoadSyntax | packages.NeedModule | packages.NeedForTest
		if v.tests {
			// A package that imports a tested one is another package in its tests.
			mode |= packages.NeedDeps
		}
		pkgs, err := v.load(mode, paths)
		if err != nil {
			return "", err
		}
		if reports, err = v.run(pkgs, want); err != nil {
			return "", err
		}
	}
	return v.tally(reports), nil
}

// patterns are those that were asked for.
func (v *vetting) patterns() []string {
	if len(v.Patterns) == 0 {
		return []string{"."}
	}
	return v.Patterns
}

func (v *vetting) load(mode packages.LoadMode, patterns []string) ([]*packages.Package, error) {
	cfg := &packages.Config{Context: v.ctx, Mode: mode, Dir: v.Dir, Tests: v.tests, ParseFile: parseFile}
	if v.Tags != "" {
		cfg.BuildFlags = []string{"-tags=" + v.Tags}
	}
	pkgs, err := packages.Load(cfg, patterns...)
	if err := v.ctx.Err(); err != nil {
		return nil, err // go/packages does not wrap it
	}
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	return pkgs, nil
}

// concerned returns the import paths of the packages that have something limited or
// from which an import leads to it, and those among them that were asked for. Of
// the others nothing needs to be known.
func concerned(asked []*packages.Package, limited map[string]bool) (paths []string, want map[string]bool) {
	reaches := map[string]bool{}
	want = map[string]bool{}
	packages.Visit(asked, nil, func(p *packages.Package) {
		is := limited[p.PkgPath] || slices.ContainsFunc(p.GoFiles, func(name string) bool { return scan.IsOutputName(filepath.Base(name)) })
		for _, dep := range p.Imports {
			is = is || reaches[dep.ID]
		}
		if unknown(p) {
			reaches[p.ID] = true // for all that is known
			return
		}
		if is {
			reaches[p.ID] = true
			paths = append(paths, tested(p))
		}
	})
	for _, p := range asked {
		if reaches[p.ID] {
			want[tested(p)] = true
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths), want
}

// unknown reports whether p is imported but was not found.
func unknown(p *packages.Package) bool { return p.Name == "" && len(p.Errors) > 0 }

// tested is the path of the package that p is or whose tests it holds.
func tested(p *packages.Package) string {
	switch {
	case p.ForTest != "":
		return p.ForTest
	case isTestMain(p):
		return strings.TrimSuffix(p.ID, ".test")
	}
	return p.PkgPath
}

// isTestMain reports whether p is the program that go test makes.
func isTestMain(p *packages.Package) bool {
	path, ok := strings.CutSuffix(p.ID, ".test")
	if !ok || p.Name != "main" {
		return false
	}
	for _, dep := range p.Imports {
		if dep.ForTest == path {
			return true
		}
	}
	return false
}

// run analyzes pkgs and returns the reports on the wanted ones.
func (v *vetting) run(pkgs []*packages.Package, want map[string]bool) ([]*analyzer.Report, error) {
	loaded, augmented := map[*packages.Package]bool{}, map[string]bool{}
	for _, p := range pkgs {
		loaded[p] = true
		if p.ForTest == p.PkgPath {
			augmented[p.PkgPath] = true // the same with test files is there, too
		}
	}
	wanted := func(p *packages.Package) bool {
		return want[tested(p)] && !isTestMain(p) && (p.ForTest != "" || !augmented[p.PkgPath])
	}
	v.reportBroken(pkgs, wanted)
	for _, p := range pkgs {
		if !v.tests {
			// Nothing limited can be reached from packages that are not loaded, and they
			// have no syntax.
			maps.DeleteFunc(p.Imports, func(_ string, dep *packages.Package) bool { return !loaded[dep] })
		}
	}
	a := analyzer.New()
	for name, value := range map[string]string{"output": "false", "tests": fmt.Sprint(v.tests), "allow": v.allow} {
		if err := a.Flags.Set(name, value); err != nil {
			return nil, err
		}
	}
	graph, err := checker.Analyze([]*analysis.Analyzer{a}, pkgs, nil)
	if err != nil {
		return nil, err
	}
	var reports []*analyzer.Report
	for _, act := range graph.Roots {
		report, ok := act.Result.(*analyzer.Report)
		switch {
		case wanted(act.Package) && act.Err != nil:
			return nil, fmt.Errorf("%s: %w", act.Package.PkgPath, act.Err)
		case wanted(act.Package):
			reports = append(reports, report)
		case ok:
			// What is limited there, and gets into a limited interface, is called here.
			reports = append(reports, &analyzer.Report{Raw: report.Raw, Limited: report.Limited})
		}
	}
	return reports, nil
}

// reportBroken reports the packages that do not compile: those wanted, and what they
// depend on. Where something that a call goes through has no type, nothing is seen of
// the call, and no error is where it stands.
func (v *vetting) reportBroken(pkgs []*packages.Package, wanted func(*packages.Package) bool) {
	var roots []*packages.Package
	for _, p := range pkgs {
		if wanted(p) {
			roots = append(roots, p)
		}
	}
	reported := map[string]bool{}
	packages.Visit(roots, nil, func(p *packages.Package) {
		if len(p.Errors) > 0 && !unknown(p) && !reported[p.PkgPath] {
			reported[p.PkgPath] = true
			v.diags.Add(v.errNotVetted(p, wanted(p)))
		}
	})
}

// tally takes over the findings of all packages and says what was proved.
func (v *vetting) tally(reports []*analyzer.Report) string {
	var (
		limited = map[analyzer.Method]bool{}
		used    = map[analyzer.Method]bool{} // in call sites that are proved
		proved  int
		raw     = map[string]bool{}
		allowed = map[string]bool{}
		excused int
	)
	for _, r := range reports {
		for _, d := range r.Findings {
			d.Pos.File = relative(v.Dir, d.Pos.File)
			v.diags.Add(d)
		}
		for _, m := range r.Limited {
			limited[m] = true
		}
		maps.Copy(raw, r.Raw)
		maps.Copy(allowed, r.Allowed)
		excused += r.Excused
	}
	for _, r := range reports {
		for m, n := range r.Sites {
			used[m] = true
			proved += n
		}
		for m, n := range r.InterfaceSites {
			if !raw[m.Type] {
				used[m] = true
				proved += n
			}
		}
	}
	for name := range strings.SplitSeq(v.allow, ",") {
		if name = strings.TrimSpace(name); name != "" && !allowed[name] {
			v.diags.Add(diag.Diagnostic{Severity: diag.Warning, Code: "unused-allow", Message: fmt.Sprintf("nothing needs -allow=%s; remove it", name)})
		}
	}
	if len(limited) == 0 {
		return "nothing limited can be reached from these packages"
	}
	text := fmt.Sprintf("%s proved, for %d of %d limited methods and functions", count(proved, "call site"), len(used), len(limited))
	if excused > 0 {
		text += fmt.Sprintf(", %d excused", excused)
	}
	return text + "; reflection and unsafe are not seen"
}

// parseFile parses a file for go/packages, and says of syntax errors where they are.
func parseFile(fset *token.FileSet, name string, src []byte) (*ast.File, error) {
	file, err := goparser.ParseFile(fset, name, src, goparser.AllErrors|goparser.ParseComments)
	if file != nil {
		err = load.Unadjusted(fset.File(file.FileStart), err)
	}
	return file, err
}

// errNotVetted says why little can be said of p or, if it was not asked for, of what
// uses it: by the first error that has a place.
func (v *vetting) errNotVetted(p *packages.Package, asked bool) diag.Diagnostic {
	msg, pos := firstError(p)
	if name, ok := strings.CutPrefix(msg, "could not import "); ok {
		name, _, _ = strings.Cut(name, " ")
		if dep := p.Imports[name]; dep != nil && unknown(dep) {
			msg = strings.Join(strings.Fields(dep.Errors[0].Msg), " ") // with what to do
		}
	}
	if compiler, ok := strings.CutPrefix(msg, "# "); ok {
		// The compiler's own words, in lines below the name of the package.
		for line := range strings.Lines(compiler) {
			if m := compilerForm.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
				pos, msg = placeOf(m[1]), m[2]
				break
			}
		}
	}
	// The type checker may name a second place, with its whole path.
	msg = strings.ReplaceAll(msg, v.Dir+string(filepath.Separator), "")
	what := "it"
	if !asked {
		what = "what imports it"
	}
	d := diag.Diagnostic{Code: "not-compiled", Message: fmt.Sprintf("package %s does not compile, so not all of %s could be vetted: %s", p.PkgPath, what, msg)}
	if pos.IsValid() {
		d.Pos = diag.Pos{File: relative(v.Dir, pos.Filename), Line: pos.Line, Col: max(pos.Column, 1)}
	}
	return d
}

// firstError is the first error of p of which the place in its file is known, not the
// one that "//line" comments say, as it is in what the go command prints. Without one
// it is any, at its place if it has one.
func firstError(p *packages.Package) (msg string, pos token.Position) {
	typeErrors := 0
	for _, e := range p.Errors {
		switch e.Kind {
		case packages.ParseError:
			if pos = placeOf(e.Pos); pos.IsValid() { // from parseFile
				return e.Msg, pos
			}
		case packages.TypeError:
			if typeErrors == len(p.TypeErrors) {
				continue
			}
			t := p.TypeErrors[typeErrors]
			typeErrors++
			if pos = t.Fset.PositionFor(t.Pos, false); pos.IsValid() {
				return t.Msg, pos
			}
		}
	}
	for _, e := range p.Errors {
		if pos = placeOf(e.Pos); pos.IsValid() {
			return e.Msg, pos
		}
	}
	return p.Errors[0].Msg, token.Position{}
}

// placeOf reads a place as go/packages gives it.
func placeOf(text string) token.Position {
	m := placeForm.FindStringSubmatch(text)
	if m == nil {
		return token.Position{}
	}
	pos := token.Position{Filename: m[1]}
	pos.Line, _ = strconv.Atoi(m[2]) // digits
	pos.Column, _ = strconv.Atoi(m[3])
	return pos
}

// placeForm is how go/packages gives a place: file:line or file:line:column.
var placeForm = regexp.MustCompile(`^(.*?):(\d+)(?::(\d+))?$`)

// compilerForm is how the compiler reports an error.
var compilerForm = regexp.MustCompile(`^(.+?:\d+:\d+): (.+)$`)

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
