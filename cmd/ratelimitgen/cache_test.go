package main

import (
	"os"
	"path/filepath"
	"testing"
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
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	user, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		"off":  "",
		"":     filepath.Join(user, "ratelimitgen", "exports"),
		"here": filepath.Join(here, "here", "exports"),
	} {
		if got := cacheDir(dir); got != want {
			t.Errorf("%q: %q, want %q", dir, got, want)
		}
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
