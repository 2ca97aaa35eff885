package main

import (
	"bytes"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ratelimitgen/ratelimitgen/generator"
)

// differing makes a module in which one output is missing, one stale and one
// orphaned.
func differing(t *testing.T) string {
	t.Helper()
	source := func(pkg, limit string) string {
		return strings.NewReplacer("package p", "package "+pkg, "max=1", limit).Replace(limitedSource)
	}
	dir := module(t, map[string]string{
		"orphan/p.go": source("orphan", "max=1"),
		"same/p.go":   source("same", "max=1"),
		"stale/p.go":  source("stale", "max=1"),
	})
	if code, _, stderr := ratelimitgen(t, dir, "./..."); code != exitDone {
		t.Fatal(stderr)
	}
	writeFile(t, filepath.Join(dir, "missing/p.go"), []byte(source("missing", "max=1")))
	writeFile(t, filepath.Join(dir, "orphan/p.go"), []byte("package orphan\n"))
	writeFile(t, filepath.Join(dir, "stale/p.go"), []byte(source("stale", "max=2")))
	return dir
}

func TestTheDiffOfCheckIsWhatGenerationDoes(t *testing.T) {
	t.Parallel()
	dir := differing(t)
	code, stdout, _ := ratelimitgen(t, dir, "check", "-diff", "./...")
	if code != exitProblem {
		t.Fatalf("exit status %d", code)
	}
	for _, want := range []string{
		"missing/ratelimit_gen.go: missing\ndiff /dev/null b/missing/ratelimit_gen.go\n--- /dev/null\n",
		"orphan/ratelimit_gen.go: orphaned\ndiff a/orphan/ratelimit_gen.go /dev/null\n",
		"stale/ratelimit_gen.go: stale\ndiff a/stale/ratelimit_gen.go b/stale/ratelimit_gen.go\n",
		"\n-\t\tDirective: \"max=1\",\n",
		"\n+\t\tDirective: \"max=2\",\n",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the diff lacks %q:\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout, "same/") {
		t.Errorf("the diff is about a file that does not differ:\n%s", stdout)
	}
	cmd := exec.Command("git", "apply", "-")
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(stdout)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git apply: %v\n%s", err, out)
	}
	if code, stdout, stderr := ratelimitgen(t, dir, "check", "./..."); code != exitDone || stdout+stderr != "" {
		t.Errorf("with the diff applied: exit status %d, printed %q and %q", code, stdout, stderr)
	}
}

// Of a file that Git has written with CRLF only what differs is shown, and the diff fits.
func TestTheDiffLeavesTheEndsOfLinesAlone(t *testing.T) {
	t.Parallel()
	for _, mixed := range []bool{false, true} {
		dir := differing(t)
		path := filepath.Join(dir, "stale", generator.OutputName)
		old, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		old = bytes.ReplaceAll(old, []byte("\n"), []byte("\r\n"))
		if mixed {
			old = bytes.Replace(old, []byte("\r\n)\r\n"), []byte("\n)\n"), 1)
		}
		writeFile(t, path, old)
		code, stdout, stderr := ratelimitgen(t, dir, "check", "-diff", "./stale")
		changed := 0
		for line := range strings.Lines(stdout) {
			if strings.HasPrefix(line, "-") || strings.HasPrefix(line, "+") {
				changed++
			}
		}
		// Three lines mention max=1, and two the files.
		if code != exitProblem || changed != 2*3+2 || strings.Count(stderr, "end in CRLF") != 1 {
			t.Errorf("exit status %d, %d lines of the diff and %q:\n%s", code, changed, stderr, stdout)
		}
		cmd := exec.Command("git", "apply", "-")
		cmd.Dir = dir
		cmd.Stdin = strings.NewReader(stdout)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git apply: %v\n%s", err, out)
		}
		if code, stdout, stderr := ratelimitgen(t, dir, "check", "-diff", "./stale"); code != exitDone || stdout+stderr != "" {
			t.Errorf("with the diff applied: exit status %d, printed %q and %q", code, stdout, stderr)
		}
	}
}

func TestDryRunPrintsWhatARunDoes(t *testing.T) {
	t.Parallel()
	dir := differing(t)
	s := &scenario{t: t, dir: dir}
	before := s.tree()
	code, would, stderr := ratelimitgen(t, dir, "-n", "./...")
	if code != exitDone || stderr != "" {
		t.Errorf("exit status %d, printed %q", code, stderr)
	}
	s.same(before, "-n")
	_, did, _ := ratelimitgen(t, dir, "./...")
	if want := strings.NewReplacer("wrote", "would write", "removed", "would remove").Replace(did); would != want || strings.Count(did, "\n") != 3 {
		t.Errorf("-n printed\n%sand a run\n%s", would, did)
	}
}

func TestVerboseSaysWhereTheTimeWent(t *testing.T) {
	t.Parallel()
	dir := differing(t)
	code, stdout, stderr := ratelimitgen(t, dir, "check", "-v", "-json", "./...")
	if code != exitProblem || stdout != "" {
		t.Errorf("exit status %d, printed %q", code, stdout)
	}
	at := 0
	for _, stage := range []string{"scan ", "load ", "parse ", "generate ", "verify ", "write ", "total "} {
		i := strings.Index(stderr[at:], "\n"+stage)
		if strings.HasPrefix(stderr, stage) {
			i = 0
		}
		if i < 0 {
			t.Errorf("%q is not, or not in its place, in\n%s", stage, stderr)
			continue
		}
		at += i
	}
	if !strings.Contains(stderr, "in 3 parts\n") || !strings.Contains(stderr, "3 packages, 3 files, ") {
		t.Errorf("the packages are not counted:\n%s", stderr)
	}
}

func TestFlagsOfAnotherVerbAreTrouble(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-diff"}, {"check", "-n"}} {
		if code, _, stderr := ratelimitgen(t, t.TempDir(), args...); code != exitTrouble || !strings.Contains(stderr, "flag provided but not defined") {
			t.Errorf("%q: exit status %d, printed %q", args, code, stderr)
		}
	}
}

func TestFilesThatDoNotChangeAreNotTouched(t *testing.T) {
	t.Parallel()
	dir := differing(t)
	path := filepath.Join(dir, "same", generator.OutputName)
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if code, stdout, _ := ratelimitgen(t, dir, "./..."); code != exitDone || strings.Contains(stdout, "same") {
		t.Errorf("exit status %d, printed %q", code, stdout)
	}
	after, err := os.Stat(path)
	if err != nil || !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
		t.Errorf("the file was written at %v and is of %v now, %v", before.ModTime(), after.ModTime(), err)
	}
}

func TestAPackageMayBeNamedByALink(t *testing.T) {
	t.Parallel()
	dir := module(t, map[string]string{"p/p.go": limitedSource})
	if err := os.Symlink("p", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	outer := filepath.Join(t.TempDir(), "outer")
	if err := os.Symlink(dir, outer); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ dir, pattern string }{{outer, "./p"}, {outer, "./..."}, {dir, "./link"}} {
		if code, stdout, stderr := ratelimitgen(t, c.dir, c.pattern); code != exitDone || !strings.HasPrefix(stdout, "wrote ") {
			t.Errorf("%s in %s: exit status %d, printed %q and %q", c.pattern, c.dir, code, stdout, stderr)
			continue
		}
		// It is where the go command looks for it.
		if err := os.Remove(filepath.Join(dir, "p", generator.OutputName)); err != nil {
			t.Errorf("%s in %s: %v", c.pattern, c.dir, err)
		}
	}
}

func TestLineEndsOfTheSourceDoNotMatter(t *testing.T) {
	t.Parallel()
	var outputs [][]byte
	for _, source := range []string{limitedSource, strings.ReplaceAll(limitedSource, "\n", "\r\n")} {
		dir := module(t, map[string]string{"p/p.go": source})
		if code, _, stderr := ratelimitgen(t, dir, "./p"); code != exitDone {
			t.Fatal(stderr)
		}
		text, err := os.ReadFile(filepath.Join(dir, "p", generator.OutputName))
		if err != nil {
			t.Fatal(err)
		}
		outputs = append(outputs, text)
	}
	if !bytes.Equal(outputs[0], outputs[1]) {
		t.Errorf("outputs differ:\n%s\n%s", outputs[0], outputs[1])
	}
}

func TestWhatAKilledRunLeftBehindIsRemoved(t *testing.T) {
	t.Parallel()
	dir := module(t, map[string]string{"p/p.go": limitedSource})
	if code, _, stderr := ratelimitgen(t, dir, "./..."); code != exitDone {
		t.Fatal(stderr)
	}
	random := "." + rand.Text() + ".tmp"
	old := "p/." + generator.OutputName + ".20260102T030405Z" + random
	fresh := "p/." + generator.OutputName + "." + time.Now().UTC().Format("20060102T150405Z") + random
	for _, name := range []string{old, fresh} {
		writeFile(t, filepath.Join(dir, name), []byte(generator.Header+"\n\npackage p\n"))
	}
	s := &scenario{t: t, dir: dir}
	before := s.tree()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"check", "./..."}, ""},
		{[]string{"-n", "./..."}, "would remove " + old + "\n"},
	} {
		if code, stdout, stderr := ratelimitgen(t, dir, c.args...); code != exitDone || stdout != c.want || stderr != "" {
			t.Errorf("%q: exit status %d, printed %q and %q", c.args, code, stdout, stderr)
		}
		s.same(before, c.args[0])
	}
	if code, stdout, stderr := ratelimitgen(t, dir, "./..."); code != exitDone || stdout != "removed "+old+"\n" || stderr != "" {
		t.Errorf("exit status %d, printed %q and %q", code, stdout, stderr)
	}
	delete(before, old)
	s.same(before, "the run")
}
