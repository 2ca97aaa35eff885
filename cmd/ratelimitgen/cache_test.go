package main

import (
	"os"
	"path/filepath"
	"testing"
)

// Tests leave nothing in the user's directories.
func init() {
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
