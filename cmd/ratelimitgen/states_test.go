package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ratelimitgen/ratelimitgen/parser/scan"
)

// finish runs a command in dir, ratelimitgen if name is "", and returns its exit
// status and what it printed.
func finish(t *testing.T, dir string, env []string, name string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	env = append([]string{"GOWORK=off", "GOFLAGS="}, env...)
	cmd := process(dir, env, args...)
	if name != "" {
		cmd = exec.Command(name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), env...)
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// must runs a command that has to succeed.
func must(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	code, stdout, stderr := finish(t, dir, env, name, args...)
	if code != 0 {
		t.Fatalf("%s %v: exit status %d\n%s%s", name, args, code, stdout, stderr)
	}
	return stdout + stderr
}

// usesOutput is code that does not compile without the output.
const usesOutput = `package p

import "github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"

var Limited = NewRateLimitedT(T{}, ratelimit.New())

type Outer struct{ *RateLimitedT }

func (o Outer) Both(a *RateLimitedT) RateLimitedT { return *a }
`

// Whatever a former run left behind, or somebody made of it, the next one writes the
// same bytes.
func TestOutputInAnyState(t *testing.T) {
	t.Parallel()
	dir := module(t, map[string]string{"p/p.go": limitedSource, "p/use.go": usesOutput})
	output := filepath.Join(dir, "p", scan.OutputName)
	must(t, dir, nil, "", "./...")
	want, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	states := [][]byte{nil, {}, []byte(scan.Header[:10]), []byte(scan.Header), bytes.ReplaceAll(want, []byte("\n"), []byte("\n\r")),
		bytes.ReplaceAll(want, []byte("max=1"), []byte("max=2")), append(bytes.Clone(want), "}}} not Go"...),
		bytes.Replace(want, []byte("package p"), []byte("package other"), 1),
		append([]byte(scan.Header+"\n\npackage p\n\nimport \"example.com/nowhere\"\n"), "type T int\n"...)}
	for i := range 8 {
		states = append(states, want[:len(scan.Header)+1+(len(want)-len(scan.Header)-1)*i/8])
	}
	for i, state := range states {
		if state == nil {
			if err := os.Remove(output); err != nil {
				t.Fatal(err)
			}
		} else {
			writeFile(t, output, state)
		}
		if code, stdout, stderr := finish(t, dir, nil, "", "check", "./..."); code != exitProblem {
			t.Errorf("state %d: check exits with %d\n%s%s", i, code, stdout, stderr)
		}
		must(t, dir, nil, "", "./...")
		if got, err := os.ReadFile(output); err != nil || !bytes.Equal(got, want) {
			t.Errorf("state %d: %v, got %s", i, err, got)
		}
	}
	must(t, dir, nil, "go", "vet", "./...")
}

// Git may write files with CRLF. That is no reason to write them again, or to find
// fault with lines that are the same.
func TestOutputWithCRLF(t *testing.T) {
	t.Parallel()
	dir := module(t, map[string]string{"p/p.go": limitedSource, "p/use.go": usesOutput})
	output := filepath.Join(dir, "p", scan.OutputName)
	must(t, dir, nil, "", "./...")
	want, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	crlf := bytes.ReplaceAll(want, []byte("\n"), []byte("\r\n"))
	writeFile(t, output, crlf)
	before, err := os.Stat(output)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check", "./..."}, {"./..."}, {"vet", "./..."}} {
		must(t, dir, nil, "", args...)
	}
	after, err := os.Stat(output)
	if got, readErr := os.ReadFile(output); err != nil || readErr != nil || !bytes.Equal(got, crlf) || !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
		t.Errorf("%v, %v, the file was changed: %s", err, readErr, got)
	}

	stale := bytes.Replace(crlf, []byte("max=1"), []byte("max=2"), 1)
	writeFile(t, output, stale)
	line := 1 + bytes.Count(stale[:bytes.Index(stale, []byte("max=2"))], []byte("\n"))
	place := fmt.Sprintf("ratelimit_gen.go:%d:1: error: the file does not say what the directives do", line)
	if code, _, stderr := finish(t, dir, nil, "", "vet", "./..."); code != exitProblem || !strings.Contains(stderr, place) {
		t.Errorf("vet exits with %d and does not say %q:\n%s", code, place, stderr)
	}
	must(t, dir, nil, "", "./...")
	if got, err := os.ReadFile(output); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v, got %s", err, got)
	}
}

func TestVendoredAndReplacedModules(t *testing.T) {
	t.Parallel()
	dir := module(t, map[string]string{
		"dep/go.mod":     "module example.com/dep\n\ngo 1.26.0\n",
		"dep/v/dep.go":   "package v\n\ntype Doer interface{ Do(x *X) (X, error) }\n\ntype X struct{ Name string }\n",
		"p/p.go":         "package p\n\nimport \"example.com/dep/v\"\n\ntype D interface {\n\tv.Doer\n\t//ratelimit:max=1\n\tMore(x v.X) error\n}\n\n//ratelimit:max=1 key=x.Name\nfunc F(x *v.X) error { return nil }\n",
		"nested/go.mod":  "module example.com/nested\n\ngo 1.26.0\n",
		"nested/n/n.go":  strings.Replace(limitedSource, "package p", "package n", 1),
		"testdata/t.go":  limitedSource,
		"_hidden/h.go":   limitedSource,
		"vendored/v.go":  "package vendored\n",
		"internal/i.go":  strings.Replace(limitedSource, "package p", "package internal", 1),
		"cmd/tool/t.go":  "package main\n\nimport _ \"example.com/m/internal\"\n\nfunc main() {}\n",
		"cmd/tool/l.go":  "package main\n\n//ratelimit:max=1\nfunc limited() error { return nil }\n",
		"p/p_x_test.go":  "package p_test\n\nimport \"example.com/m/p\"\n\nvar _ = p.NewRateLimitedD\n",
		"p/p_in_test.go": "package p\n\nvar _ = NewRateLimitedF\n",
	})
	must(t, dir, nil, "go", "mod", "edit", "-require=example.com/dep@v0.0.0", "-replace=example.com/dep=./dep")
	must(t, dir, []string{"GOFLAGS=-mod=mod"}, "", "./...")
	want := "cmd/tool internal p"
	outputs := func() string {
		var dirs []string
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Name() == scan.OutputName {
				rel, _ := filepath.Rel(dir, filepath.Dir(path))
				dirs = append(dirs, filepath.ToSlash(rel))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(dirs, " ")
	}
	if got := outputs(); got != want {
		t.Errorf("replaced: outputs in %s, want %s", got, want)
	}
	must(t, dir, []string{"GOFLAGS=-mod=mod"}, "go", "mod", "tidy")
	must(t, dir, nil, "go", "vet", "./...")
	must(t, dir, nil, "go", "mod", "vendor")
	// Directives in what is vendored are somebody else's.
	if err := os.WriteFile(filepath.Join(dir, "vendor/example.com/dep/v/limited.go"), []byte(strings.Replace(limitedSource, "package p", "package v", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, flags := range []string{"GOFLAGS=-mod=vendor", "GOFLAGS=-mod=readonly"} {
		must(t, dir, []string{flags}, "", "check", "./...")
		if got := outputs(); got != want {
			t.Errorf("%s: outputs in %s, want %s", flags, got, want)
		}
	}
	must(t, dir, []string{"GOFLAGS=-mod=vendor"}, "go", "vet", "./...")
}

func TestWorkspace(t *testing.T) {
	t.Parallel()
	dir := module(t, map[string]string{
		"go.work":      "go 1.26.0\n\nuse (\n\t.\n\t./other\n)\n",
		"other/go.mod": "module example.com/other\n\ngo 1.26.0\n",
		"other/o/o.go": strings.Replace(limitedSource, "package p", "package o", 1) + "\nfunc (T) N(u *RateLimitedT) (T, error) { return T{}, nil }\n",
		"p/p.go":       "package p\n\nimport \"example.com/other/o\"\n\ntype T struct{ o o.T }\n\n//ratelimit:max=1\nfunc (t T) M(x *o.RateLimitedT) (o.T, error) { return t.o, nil }\n",
	})
	env := []string{"GOWORK=" + filepath.Join(dir, "go.work")}
	must(t, dir, env, "", "./...", "./other/...")
	for _, path := range []string{"p", "other/o"} {
		if !exists(t, filepath.Join(dir, path, scan.OutputName)) {
			t.Errorf("%s has no output", path)
		}
	}
	must(t, dir, env, "go", "vet", "./...")
}

// A package whose signatures mention the wrapper of another one can be generated by
// itself, once that is there.
func TestAWrapperOfAPackageThatIsNotNamed(t *testing.T) {
	t.Parallel()
	dir := module(t, map[string]string{
		"p/p.go": limitedSource,
		"q/q.go": "package q\n\nimport \"example.com/m/p\"\n\ntype D struct{ *p.RateLimitedT }\n\n//ratelimit:max=1\nfunc (D) F(s *p.RateLimitedT) error { return nil }\n",
	})
	if code, _, stderr := finish(t, dir, nil, "", "./q"); code != exitProblem || !strings.Contains(stderr, "p.RateLimitedT") {
		t.Errorf("without it: exit status %d, %s", code, stderr)
	}
	must(t, dir, nil, "", "./p")
	must(t, dir, nil, "", "./q")
	must(t, dir, nil, "", "check", "./q")
	must(t, dir, nil, "go", "vet", "./...")
}

// The flags and the toolchain of the environment are those of the go command, and
// nothing of the tree is executed.
func TestEnvironmentOfTheGoCommand(t *testing.T) {
	t.Parallel()
	tagged := "//go:build special\n\n" + limitedSource
	dir := module(t, map[string]string{
		"p/p.go":         tagged,
		"p/doc.go":       "//go:generate touch executed\n\npackage p\n\nimport \"os\"\n\nfunc init() { os.WriteFile(\"executed\", nil, 0o644) }\n",
		"p/main_test.go": "package p\n\nimport \"os\"\n\nfunc TestMain() { os.WriteFile(\"executed\", nil, 0o644) }\n",
	})
	name := "ratelimit_gen_special_only.go"
	if code, stdout, stderr := finish(t, dir, nil, "", "./..."); code != exitDone || stdout != "" || !strings.Contains(stderr, "[excluded-file]") {
		t.Errorf("without the tag: %d, %s%s", code, stdout, stderr)
	}
	must(t, dir, []string{"GOFLAGS=-tags=special"}, "", "./...")
	if !exists(t, filepath.Join(dir, "p", name)) {
		t.Fatal("the tag of GOFLAGS has no effect")
	}
	must(t, dir, nil, "", "check", "-tags=special", "./...")
	must(t, dir, []string{"GOFLAGS=-tags=special"}, "", "check", "./...")
	// As go env -w sets it, which the environment goes before.
	settings := filepath.Join(t.TempDir(), "env")
	writeFile(t, settings, []byte("# set by hand\nGOFLAGS=-tags=special\n"))
	writeFile(t, filepath.Join(dir, "p/p.go"), []byte(strings.Replace(tagged, "max=1", "mux=1", 1)))
	if code, _, stderr := finish(t, dir, []string{"GOENV=" + settings}, "", "check", "./..."); code != exitProblem || !strings.Contains(stderr, "[unknown-option]") || strings.Contains(stderr, "warning") {
		t.Errorf("with a wrong option in a file of the build: %d, %s", code, stderr)
	}
	for _, env := range [][]string{{"GOENV=off"}, {"GOENV=" + settings, "GOFLAGS=-tags=other"}} {
		if code, _, stderr := finish(t, dir, env, "", "check", "./..."); code != exitDone || !strings.Contains(stderr, "warning") {
			t.Errorf("%v: %d, %s", env, code, stderr)
		}
	}
	elsewhere := map[string]string{"linux": "windows"}[runtime.GOOS]
	writeFile(t, settings, []byte("GOOS="+cmp.Or(elsewhere, "linux")+"\n"))
	writeFile(t, filepath.Join(dir, "p/p.go"), []byte(strings.Replace(tagged, "special", cmp.Or(elsewhere, "linux"), 1)))
	if code, _, stderr := finish(t, dir, []string{"GOENV=" + settings}, "", "-n", "./..."); code != exitDone || strings.Contains(stderr, "warning") {
		t.Errorf("for another system: %d, %s", code, stderr)
	}
	writeFile(t, filepath.Join(dir, "p/p.go"), []byte(tagged))
	// An orphan of a build is one only there.
	writeFile(t, filepath.Join(dir, "p/p.go"), []byte("package p\n"))
	must(t, dir, nil, "", "./...")
	if !exists(t, filepath.Join(dir, "p", name)) {
		t.Error("a run of another build removed the output")
	}
	must(t, dir, []string{"GOFLAGS=-tags=special"}, "", "./...")
	if exists(t, filepath.Join(dir, "p", name)) {
		t.Error("the orphan is still there")
	}
	if exists(t, filepath.Join(dir, "p/executed")) {
		t.Error("code of the tree was executed")
	}
	writeFile(t, filepath.Join(dir, "p/p.go"), []byte(limitedSource))
	gomod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "go.mod"), bytes.Replace(gomod, []byte("go 1.26.0"), []byte("go 1.99.0"), 1))
	code, _, stderr := finish(t, dir, []string{"GOTOOLCHAIN=local"}, "", "./...")
	if code == exitDone || !strings.Contains(stderr, "1.99") {
		t.Errorf("a newer language: exit status %d, %s", code, stderr)
	}
}
