package analyzer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"
	"golang.org/x/tools/txtar"

	"github.com/ratelimitgen/ratelimitgen/generator"
	"github.com/ratelimitgen/ratelimitgen/parser"
)

// module makes a module of cases in testdata, each in a directory of its name.
func module(t *testing.T, cases ...string) string {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), fmt.Sprintf("module example.com/m\n\ngo 1.26.0\n\nrequire github.com/ratelimitgen/ratelimitgen v0.0.0\n\nreplace github.com/ratelimitgen/ratelimitgen => %s\n", root))
	for _, name := range cases {
		unpack(t, filepath.Join(dir, name), name)
	}
	return dir
}

// unpack writes a case to a directory of a module.
func unpack(t *testing.T, dir, name string) {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		write(t, filepath.Join(dir, f.Name), strings.ReplaceAll(string(f.Data), "example.com/m/", "example.com/m/"+filepath.Base(dir)+"/"))
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// generate writes the wrappers of a module.
func generate(t *testing.T, dir string) {
	t.Helper()
	res, err := parser.Parse(context.Background(), parser.Config{
		Dir: dir, Patterns: []string{"./..."}, Needs: generator.Imports(), NeedsOfRequests: generator.RequestImports(),
	})
	if err != nil || res.Diags.HasErrors() {
		t.Fatal(err, res)
	}
	files, diags := generator.Generate(res)
	changes, err := generator.Plan(files, res.Outputs)
	if err != nil || len(diags) > 0 {
		t.Fatal(err, diags)
	}
	if err := generator.Apply(changes); err != nil {
		t.Fatal(err)
	}
}

// expectations passes on what analysistest reports, but for the facts of generated
// files, which have no comments to announce them.
type expectations struct{ *testing.T }

func (t expectations) Errorf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if strings.Contains(text, generator.OutputName) && strings.Contains(text, "unexpected fact: ") && strings.Contains(text, "wraps(") {
		return
	}
	t.T.Helper()
	t.T.Error(text)
}

func analyze(t *testing.T, dir string, flags ...string) []*Report {
	t.Helper()
	a := New()
	for _, f := range flags {
		name, value, _ := strings.Cut(f, "=")
		if err := a.Flags.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	var reports []*Report
	for _, r := range analysistest.Run(expectations{t}, dir, a, "./...") {
		if report, ok := r.Result.(*Report); ok {
			reports = append(reports, report)
		}
	}
	return reports
}

func TestUsesPastALimitAreReported(t *testing.T) {
	t.Parallel()
	dir := module(t, "methods", "conversions", "interface", "wrapped", "wiring", "builders", "ways", "legal", "decorators", "functions", "typelevel", "generic", "excuses", "tests")
	generate(t, dir)
	unpack(t, filepath.Join(dir, "wrapped"), "by-hand") // methods of types that are there now
	const wire = "example.com/m/excuses/wire."
	reports := analyze(t, dir, "output=false", "allow="+wire+"Build,"+wire+"T.Build, "+wire+"Default", "allow=example.com/m/excuses/trusted")
	allowed, excused := map[string]bool{}, 0
	for _, r := range reports {
		excused += r.Excused
		for name := range r.Allowed {
			allowed[name] = true
		}
	}
	if excused != 11 || len(allowed) != 4 {
		t.Errorf("%d uses were excused, %v by the flag; want 11, 4 of them by the flag", excused, allowed)
	}
}

func TestNothingElseIsReportedInAForeignOutput(t *testing.T) {
	t.Parallel()
	dir := module(t, "foreign")
	generate(t, dir)
	for pkg, above := range map[string]string{
		"pay":   "// All rights reserved. // want `foreign-output`\n\n",
		"other": "// All rights reserved. // want `foreign-output`\n",
	} {
		path := filepath.Join(dir, "foreign", pkg, generator.OutputName)
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		write(t, path, above+string(src))
	}
	analyze(t, dir)
	write(t, filepath.Join(dir, "foreign/other", generator.OutputName), "package other // want `foreign-output`\n\nfunc do(o *Other) { o.Do() } // want `bypass`\n")
	analyze(t, dir)
}

func TestTestFilesAreLookedAtIfAskedFor(t *testing.T) {
	t.Parallel()
	dir := module(t, "tests-too")
	generate(t, dir)
	analyze(t, dir, "output=false", "tests=true")
}

func TestNewIsAValidAnalyzer(t *testing.T) {
	t.Parallel()
	if err := analysis.Validate([]*analysis.Analyzer{New()}); err != nil {
		t.Error(err)
	}
}

func TestEveryCodeIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/vet.md")
	if err != nil {
		t.Fatal(err)
	}
	codes := 0
	for _, file := range []string{"findings.go", "../vet.go"} {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`Code: "([^"]+)"`).FindAllSubmatch(src, -1) {
			codes++
			if !strings.Contains(string(text), fmt.Sprintf("`%s`", m[1])) {
				t.Errorf("docs/vet.md says nothing of %s", m[1])
			}
		}
	}
	if codes < 10 {
		t.Errorf("only %d codes were found", codes)
	}
}
