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
