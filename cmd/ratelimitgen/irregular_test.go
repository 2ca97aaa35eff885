package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ratelimitgen/ratelimitgen/generator"
)

// notStuck runs the command in dir. One that waits for a pipe is stopped some time, and
// then its exit status is not that of a problem.
func notStuck(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	code = run(ctx, args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestWhatTheGoCommandWouldWaitForIsRefusedBeforeItIsStarted(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"x.go", "x_test.go", "x_plan9.go", "x.c", "x.s", "link.go", generator.OutputName, "ratelimit_gen_linux_only.go"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := module(t, map[string]string{"p/p.go": limitedSource, "q/q.go": "package q\n"})
			path := filepath.Join(dir, "p", name)
			pipe := path
			if name == "link.go" {
				pipe = filepath.Join(dir, "pipe")
				if err := os.Symlink(pipe, path); err != nil {
					t.Fatal(err)
				}
			}
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{"-C", dir, "./..."}, {"check", "-C", dir, "./p"}, {"selftest", "-C", dir, "./..."}, {"selftest", "-C", dir, "./p"}, {"selftest", "-C", dir, dir + "/..."}} {
				code, stdout, stderr := notStuck(t, args...)
				if code != exitProblem || stdout != "" || !strings.HasPrefix(stderr, "p/"+name+":1:1: error: ") || !strings.Contains(stderr, "move it away") {
					t.Errorf("%q: exit status %d, printed %q and %q", args, code, stdout, stderr)
				}
			}
			// Where the go command does not look, there may be anything.
			if code, _, stderr := notStuck(t, "selftest", "-C", dir, "./q"); code != exitDone {
				t.Errorf("another package: exit status %d, printed %q", code, stderr)
			}
		})
	}
}

func TestPipesWhereNoPatternLeadsAreNoMatter(t *testing.T) {
	t.Parallel()
	dir := module(t, map[string]string{
		"p/p.go":      limitedSource,
		"p/d.go/d.go": "package d\n",
		"n/go.mod":    "module example.com/n\n",
		"testdata/t":  "",
		"p/_x/t":      "",
		"p/.x/t":      "",
	})
	for _, name := range []string{"p/_x.go", "p/.x.go", "p/x.txt", "n/x.go", "testdata/x.go", "p/_x/x.go", "p/.x/x.go"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("p.go", filepath.Join(dir, "p/.p.go")); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"selftest", "-C", dir, "./..."}, {"-C", dir, "./..."}} {
		if code, _, stderr := notStuck(t, args...); code != exitDone || stderr != "" {
			t.Errorf("%q: exit status %d, printed %q", args, code, stderr)
		}
	}
}

func TestALinkInThePlaceOfTheOutputIsNotFollowed(t *testing.T) {
	t.Parallel()
	precious := filepath.Join(t.TempDir(), "precious")
	for what, text := range map[string]string{
		"text":              "root:x:0:0\n",
		"Go":                "package p\n\nfunc New() {}\n",
		"output of ours":    generator.Header + "\n\npackage p\n",
		"nothing, dangling": "",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			target := precious + strings.Fields(what)[0]
			if text != "" {
				writeFile(t, target, []byte(text))
			}
			for _, name := range []string{generator.OutputName, "ratelimit_gen_linux_only.go"} {
				dir := module(t, map[string]string{"p/p.go": limitedSource})
				link := filepath.Join(dir, "p", name)
				if err := os.Symlink(target, link); err != nil {
					t.Fatal(err)
				}
				for _, args := range [][]string{{"./..."}, {"check", "./..."}} {
					code, stdout, stderr := ratelimitgen(t, dir, args...)
					if code != exitProblem || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "p/"+name+":1:1: error: ") || !strings.Contains(stderr, "stands where the output should go; move it away") {
						t.Errorf("%s, %q: exit status %d, printed %q and %q", name, args, code, stdout, stderr)
					}
				}
				if got, err := os.Readlink(link); err != nil || got != target {
					t.Errorf("%s: the link now points to %q, %v", name, got, err)
				}
			}
			if text != "" {
				if got, err := os.ReadFile(target); err != nil || string(got) != text {
					t.Errorf("the file now holds %q, %v", got, err)
				}
			}
		})
	}
}
