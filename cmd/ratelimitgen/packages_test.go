package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ratelimitgen/ratelimitgen/parser/scan"
)

// A package of another build is nothing to a pattern that happens to match it, and an
// error where it is named. It does not keep others from being generated.
func TestAPackageThatBuildConstraintsLeaveOut(t *testing.T) {
	t.Parallel()
	dir := module(t, map[string]string{
		"p/p.go":         limitedSource,
		"w/w_windows.go": limitedSource,
		"c/c.go":         strings.Replace(limitedSource, "type T", "import \"C\"\n\ntype T", 1),
		"i/i.go":         "//go:build ignore\n\npackage main\n",
	})
	env := []string{"GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0"}
	const warnings = "c/c.go:7:1: warning: c.go holds ratelimit directives, but the build constraints exclude it here [excluded-file]\n" +
		"w/w_windows.go:5:1: warning: w_windows.go holds ratelimit directives, but the build constraints exclude it here [excluded-file]\n"
	for _, c := range []struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		{[]string{"check", "./..."}, exitProblem, "p/ratelimit_gen.go: missing\n", warnings + "ratelimitgen: generated files differ from the directives; run ratelimitgen with the same packages\n"},
		{[]string{"./..."}, exitDone, "wrote p/ratelimit_gen.go\n", warnings},
		{[]string{"check", "./..."}, exitDone, "", warnings},
		{[]string{"vet", "./..."}, exitDone, "", warnings + "ratelimitgen: 0 call sites proved, for 0 of 1 limited methods and functions" + seen},
		{[]string{"example.com/m/..."}, exitDone, "", ""},
		{[]string{"./i"}, exitDone, "", ""},
		{[]string{"./p", "./c"}, exitProblem, "", "error: build constraints exclude all Go files in c; the build is that of GOOS, GOARCH, CGO_ENABLED and -tags [load]\n" + warnings[:strings.Index(warnings, "w/")]},
		{[]string{"example.com/m/w"}, exitTrouble, "", "ratelimitgen: build constraints exclude all Go files in w\n"},
		{[]string{"selftest", "./w"}, exitTrouble, "", "ratelimitgen: build constraints exclude all Go files in w; the build is that of GOOS, GOARCH, CGO_ENABLED and -tags\n"},
	} {
		if code, stdout, stderr := finish(t, dir, env, "", c.args...); code != c.code || stdout != c.stdout || stderr != c.stderr {
			t.Errorf("%q: exit status %d, printed %q and\n%s\nwant %d, %q and\n%s", c.args, code, stdout, stderr, c.code, c.stdout, c.stderr)
		}
	}
	must(t, dir, []string{"GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0"}, "", "./w")
	if !exists(t, filepath.Join(dir, "w", "ratelimit_gen_windows_only.go")) || exists(t, filepath.Join(dir, "w", scan.OutputName)) {
		t.Error("the package has not the output of its build")
	}
}

// What leads out of the main modules the go command does not find, so neither do we, and
// it is not to be taken for done.
func TestPatternsThatLeadOutOfTheModule(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	main := filepath.Join(base, "main")
	writeModule(t, main)
	for name, text := range map[string]string{
		"main/p/p.go":           limitedSource,
		"main/nested/go.mod":    "module example.com/nested\n\ngo 1.26.0\n",
		"main/nested/n/n.go":    limitedSource,
		"main/my dir/go.mod":    "module example.com/spaces\n\ngo 1.26.0\n",
		"main/my dir/n/n.go":    "package n\n",
		"main/replaced/go.mod":  "module example.com/replaced\n\ngo 1.26.0\n",
		"main/replaced/r/r.go":  "package r\n",
		"main/empty/readme.txt": "",
		"none/n.go":             "package n\n",
		"limited/l.go":          limitedSource,
		"work/go.work":          "go 1.26.0\n\nuse ../main\n",
		"work/loose/l.go":       limitedSource,
		"work/unused/go.mod":    "module example.com/unused\n\ngo 1.26.0\n",
		"work/unused/u/u.go":    limitedSource,
		"bare/go.mod":           "module example.com/bare\n\ngo 1.26.0\n",
		"nowhere/readme.txt":    "",
		"many/go.work":          "go 1.26.0\n",
	} {
		writeFile(t, filepath.Join(base, name), []byte(text))
	}
	must(t, main, nil, "", "./p")
	must(t, main, nil, "go", "mod", "edit", "-require=example.com/replaced@v0.0.0", "-replace=example.com/replaced=./replaced")
	const (
		nested   = "is in module example.com/nested, which is not the main module here; run ratelimitgen in that one (cd nested, or -C nested), or list both in a go.work [outside-module]\n"
		noModule = "error: there is no go.mod in this directory or above it; change to the directory of a module (cd, or -C dir), or make this one a module with go mod init [outside-module]\n"
		noMatch  = "warning: ./... matches no directory with Go files [no-match]\n"
	)
	for _, c := range []struct {
		dir, pattern string
		code         int
		stderr       string
	}{
		{"main", "./...", exitDone, ""}, // of which nested modules are no part
		{"main", "./nested/...", exitProblem, "error: ./nested/... " + nested},
		{"main", "./nested", exitProblem, "error: ./nested " + nested},
		{"main", "./nested/n", exitProblem, "error: ./nested/n " + nested},
		{"main", "./nested/n/n.go", exitProblem, "error: ./nested/n/n.go " + nested},
		{"main", "nested/n/n.go", exitProblem, "error: nested/n/n.go " + nested},
		{"main", filepath.Join(main, "nested", "n"), exitProblem, "error: " + filepath.Join(main, "nested", "n") + " " + nested},
		{"main", "./my dir/...", exitProblem, "error: ./my dir/... is in module example.com/spaces, which is not the main module here; run ratelimitgen in that one (cd \"my dir\", or -C \"my dir\"), or list both in a go.work [outside-module]\n"},
		{"main", "./replaced/...", exitProblem, "error: ./replaced/... is in module example.com/replaced, which is not the main module here; run ratelimitgen in that one (cd replaced, or -C replaced), or list both in a go.work [outside-module]\n"},
		{"main", "example.com/replaced/r", exitProblem, "error: package example.com/replaced/r is in module example.com/replaced, which is not a main module; ratelimitgen only writes to those [outside-module]\n"},
		{"main", "fmt", exitProblem, "error: package fmt is in the standard library; ratelimitgen only writes to main modules [outside-module]\n"},
		{"main", "example.com/replaced/...", exitDone, ""},
		{"main", "all", exitDone, ""},
		{"main", "./p/p.go", exitProblem, "error: ./p/p.go is a file: name its directory [no-match]\n"},
		{"main", "../none", exitProblem, "error: ../none is not in a module; name packages of the main module, like ./... [outside-module]\n"},
		{"main/p", "../../none/...", exitProblem, "error: ../../none/... is not in a module; name packages of the main module, like ../... [outside-module]\n"},
		{"main/empty", "./...", exitDone, noMatch},
		{"bare", "./...", exitDone, noMatch},
		{"nowhere", "./...", exitProblem, noModule},
		{"nowhere", "./missing/...", exitProblem, "error: there is no directory missing [no-match]\n"},
		{"none", "./...", exitProblem, noModule},
		{"none", ".", exitProblem, noModule},
		{"limited", "./...", exitTrouble, "ratelimitgen: go: go.mod file not found in current directory or any parent directory; see 'go help modules'\n"},
		{"work", "./...", exitProblem, "error: ./... is not in a module that go.work lists; name packages of those, like ../main/... [outside-module]\n"},
		{"work", "./loose", exitProblem, "error: ./loose is not in a module that go.work lists; name packages of those, like ../main/... [outside-module]\n"},
		{"work", "./unused/...", exitProblem, "error: ./unused/... is in module example.com/unused, which go.work does not list; run: go work use unused [outside-module]\n"},
		{"work/unused", "./u", exitProblem, "error: ./u is in module example.com/unused, which ../go.work does not list; run: go work use . [outside-module]\n"},
		{"work", "../main/...", exitDone, ""},
		{"many", "./...", exitProblem, "error: ./... is not in a module, and go.work lists none; run: go work use dir [outside-module]\n"},
	} {
		dir := filepath.Join(base, c.dir)
		for _, args := range [][]string{{"-n"}, {"vet"}} {
			code, _, stderr := finish(t, dir, []string{"GOWORK=", "GO111MODULE="}, "", append(args, c.pattern)...)
			if args[0] == "vet" && c.code != exitTrouble {
				stderr = stderr[:strings.LastIndex(strings.TrimSpace(stderr), "ratelimitgen: ")]
			}
			if code != c.code || stderr != c.stderr {
				t.Errorf("in %s, %v %s: exit status %d, printed\n%s\nwant %d and\n%s", c.dir, args, c.pattern, code, stderr, c.code, c.stderr)
			}
		}
	}
	code, _, stderr := finish(t, main, nil, "", "nested/n")
	if code != exitTrouble || !strings.HasSuffix(stderr, "; the directory is named ./nested/n\n") {
		t.Errorf("a directory named like an import path: exit status %d, printed %q", code, stderr)
	}
}

// Whether a pattern leads out of the modules of a workspace, its file tells.
func TestAWorkspaceWithoutDirectivesNeedsNoGoCommand(t *testing.T) {
	t.Parallel()
	dir := module(t, map[string]string{
		"go.work":      "go 1.26.0\n\nuse (\n\t.\n\t./other\n)\n",
		"other/go.mod": "module example.com/other\n\ngo 1.26.0\n",
		"other/o/o.go": "package o\n",
		"p/p.go":       "package p\n",
	})
	code, stdout, stderr := finish(t, dir, []string{"GOWORK=", "PATH="}, "", "./...", "./other/...", "./other/o")
	if code != exitDone || stdout+stderr != "" {
		t.Errorf("exit status %d, printed %q and %q", code, stdout, stderr)
	}
}

// Where there are no modules the go command has other rules.
func TestWithoutModulesNothingIsOutsideOfThem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	code, _, stderr := finish(t, dir, []string{"GO111MODULE=off"}, "", "./...")
	if code != exitDone || stderr != "warning: ./... matches no directory with Go files [no-match]\n" {
		t.Errorf("exit status %d, printed %q", code, stderr)
	}
}
