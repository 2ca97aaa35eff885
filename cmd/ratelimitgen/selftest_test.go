package main

import (
	"bytes"
	"context"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// selftest runs the verb of that name in dir.
func selftest(t *testing.T, dir string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(context.Background(), append([]string{"selftest", "-C", dir}, args...), &out, &errs)
	return code, out.String(), errs.String()
}

func TestSelftestCountsWhatCanBeLimitedAndWhy(t *testing.T) {
	t.Parallel()
	dir := module(t, map[string]string{
		"p/p.go": `package p

import "go/build/constraint"

// Whatever directives there are does not matter.
//
//ratelimit:nonsense
type Service struct{}

func (*Service) Error() error { return nil }
func (Service) Silent(x, y int) (z [3]string) { return }
func (Service) private() {}

type Getter interface {
	Get(key string) (value any, err error)
	sealed()
}

type (
	Number interface{ ~int | ~float64; String() string }
	Plain  struct{}
	Alias  = Service
	Builds struct{ constraint.AndExpr }
)

func Map[K comparable, V any](m map[K]V) []K { return nil }
func NewRateLimitedTaken() {}
func Taken()               {}
`,
		"p/p_linux.go": "package p\n\nfunc Here() {}\n",
		"q/q.go":       "package q\n\nimport \"example.com/m/p\"\n\ntype S struct{ p.Service }\n",
	})
	code, stdout, stderr := selftest(t, dir, "-v", "./...")
	if code != exitDone || stderr != "" {
		t.Errorf("exit status %d, printed %q", code, stderr)
	}
	for _, want := range []string{
		`(?m)^\S*p/p\.go:20:\d+: error: Number cannot be wrapped: it is a constraint, and no value has its type \[cannot-wrap\]$`,
		`(?m)^\S*p/p\.go:28:\d+: error: the name NewRateLimitedTaken is taken in this package; .* \[name-taken\]$`,
		`(?m)^example\.com/m/p +\d/\d +\d/\d +3/4 +1 cannot-wrap, 1 name-taken$`,
		`(?m)^example\.com/m/q +1/1 +2/2 +0/0 +-$`,
		`(?m)^total +`,
	} {
		if !regexp.MustCompile(want).MatchString(stdout) {
			t.Errorf("what was printed does not match %s:\n%s", want, stdout)
		}
	}
	if got := (&scenario{t: t, dir: dir}).tree(); len(got) != 4 {
		t.Errorf("selftest wrote something: %v", got)
	}
}

func TestSelftestTakesTheLimitItIsGiven(t *testing.T) {
	t.Parallel()
	dir := module(t, map[string]string{"p.go": limitedSource})
	for limit, want := range map[string]string{
		"max=1 algorithm=concurrency on-limit=wait": "total 1/1 1/1 0/0 -",
		"max=1 key=nothing":                         "total 0/1 0/1 0/0 1 unknown-name",
	} {
		if code, stdout, stderr := selftest(t, dir, "-limit", limit); code != exitDone || !strings.HasSuffix(strings.Join(strings.Fields(stdout), " "), want) {
			t.Errorf("%s: exit status %d, printed %q and %q", limit, code, stdout, stderr)
		}
	}
	for limit, want := range map[string]string{"max=1 mx=2": "mx", "off": "options of a limit"} {
		if code, _, stderr := selftest(t, dir, "-limit", limit); code != exitTrouble || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit status %d, printed %q", limit, code, stderr)
		}
	}
}

func TestSelftestOfWhatIsNotThereIsTrouble(t *testing.T) {
	t.Parallel()
	dir := module(t, map[string]string{"p.go": limitedSource})
	for _, args := range [][]string{{"./nowhere"}, {"-nonsense"}, {"example.com/other"}} {
		if code, _, stderr := selftest(t, dir, args...); code != exitTrouble || stderr == "" {
			t.Errorf("%q: exit status %d, printed %q", args, code, stderr)
		}
	}
}

// TestTheStandardLibraryCanBeLimited limits everything in the packages with the most
// unusual declarations, among them some that generated code imports itself; make
// test-std does so with all of them.
func TestTheStandardLibraryCanBeLimited(t *testing.T) {
	t.Parallel()
	packages := []string{"context", "errors", "go/types", "io/fs", "iter", "maps", "net/http", "reflect", "regexp", "slices", "strings", "sync", "syscall", "time", "testing/quick", "unicode/utf8"}
	for _, limit := range []string{"max=5", "max=5 algorithm=concurrency on-limit=zero", "max=5 window=1h30m algorithm=token-bucket burst=2"} {
		code, stdout, stderr := selftest(t, "../..", append([]string{"-limit", limit}, packages...)...)
		if code != exitDone {
			t.Errorf("%s: exit status %d, printed\n%s", limit, code, stderr)
		}
		total := regexp.MustCompile(`(?m)^total +\d+/\d+ +(\d+)/\d+ +(\d+)/`).FindStringSubmatch(stdout)
		if total == nil || len(total[1]) < 4 || len(total[2]) < 3 || strings.Count(stdout, "\n") != len(packages)+2 {
			t.Errorf("%s: too little was limited:\n%s", limit, stdout)
		}
	}
}

func TestSelftestOfAModuleWithoutTheRuntimeIsAProblemOfTheModule(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "go.mod"), []byte("module example.com/m\n\ngo 1.26.0\n"))
	writeFile(t, filepath.Join(dir, "p.go"), []byte(limitedSource))
	code, stdout, stderr := selftest(t, dir)
	if code != exitProblem || stdout != "" || !strings.HasPrefix(stderr, "error: ") || !strings.HasSuffix(stderr, "[no-runtime]\n") || !strings.Contains(stderr, "go get github.com/ratelimitgen/ratelimitgen") {
		t.Errorf("exit status %d, printed %q and %q", code, stdout, stderr)
	}
}
