package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ratelimitgen/ratelimitgen/generator"
)

// Tests leave nothing in the user's directories.
func init() {
	if os.Getenv(processEnv) != "" {
		return // it has that from the test, or something else
	}
	if err := os.Setenv("RATELIMITGEN_CACHE", "off"); err != nil {
		panic(err)
	}
}

func TestCacheIsWhereTheUserSays(t *testing.T) {
	t.Parallel()
	here := t.TempDir()
	user, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		"off": "",
		"":    filepath.Join(user, "ratelimitgen", "exports"),
		here:  filepath.Join(here, "exports"),
	} {
		if got, err := cacheDir(dir); got != want || err != nil {
			t.Errorf("%q: %q, %v, want %q", dir, got, err, want)
		}
	}
}

func TestARelativeCacheIsRefused(t *testing.T) {
	t.Parallel()
	dir := module(t, map[string]string{"p/p.go": limitedSource})
	for _, args := range [][]string{{"./..."}, {"check", "./..."}, {"vet", "./..."}} {
		code, stdout, stderr := finish(t, dir, []string{"RATELIMITGEN_CACHE=here"}, "", args...)
		const want = "ratelimitgen: RATELIMITGEN_CACHE is not an absolute path: here; set it to one, or to \"off\"\n"
		if code != exitTrouble || stdout != "" || stderr != want {
			t.Errorf("%q: exit status %d, printed %q and %q", args, code, stdout, stderr)
		}
	}
	if exists(t, filepath.Join(dir, "here")) || exists(t, filepath.Join(dir, "p", generator.OutputName)) {
		t.Error("something was written")
	}
}

func TestEveryRunRemembersExportData(t *testing.T) {
	t.Parallel()
	dir := module(t, map[string]string{"p/p.go": limitedSource})
	for _, args := range [][]string{{"./..."}, {"check", "./..."}, {"vet", "./..."}} {
		memory := t.TempDir()
		out, err := process(dir, []string{"RATELIMITGEN_CACHE=" + memory}, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		entries, err := os.ReadDir(filepath.Join(memory, "exports"))
		if err != nil || len(entries) == 0 {
			t.Errorf("%v remembers %d export files: %v", args, len(entries), err)
		}
	}
}
