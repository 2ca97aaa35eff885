package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// TestEveryBuildHasItsOutput generates for several systems in one tree. Each finds what
// belongs to its builds and leaves the rest alone, and all compile.
func TestEveryBuildHasItsOutput(t *testing.T) {
	t.Parallel()
	ar, err := txtar.ParseFile("../../testdata/builds.txtar")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range ar.Files {
		if strings.HasPrefix(f.Name, "p/") && !strings.HasSuffix(f.Name, goldenSuffix) {
			files[f.Name] = string(f.Data)
		}
	}
	dir := module(t, files)
	env := func(goos string) []string { return []string{"GOOS=" + goos, "GOARCH=amd64", "CGO_ENABLED=0"} }
	systems := []string{"linux", "windows"}
	for _, goos := range systems {
		must(t, dir, env(goos), "", "./...")
	}
	for _, goos := range systems {
		if out := must(t, dir, env(goos), "", "check", "./..."); strings.Contains(out, "ratelimit_gen") {
			t.Errorf("%s: %s", goos, out)
		}
		must(t, dir, env(goos), "go", "vet", "./...")
	}
	outputs, err := filepath.Glob(filepath.Join(dir, "p", "ratelimit_gen*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, path := range outputs {
		names = append(names, filepath.Base(path))
	}
	want := []string{
		"ratelimit_gen.go",
		"ratelimit_gen_linux_only.go",
		"ratelimit_gen_not_linux_only.go",
		"ratelimit_gen_not_plan9_or_not_custom_and_not_windows_d1129127_only.go",
		"ratelimit_gen_not_windows_only.go",
		"ratelimit_gen_windows_only.go",
	}
	if got := strings.Join(names, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("got %s", got)
	}
}

func TestOutputHasTheConstraintsOfTheConstantsInItsExpressions(t *testing.T) {
	t.Parallel()
	dir := module(t, map[string]string{
		"p/p.go": `package p

const everywhere = "c"

type Key struct{}

//ratelimit:max=5 window=1m key=[prefix,s]
func (Key) M(s string) error { return nil }

type Cost struct{}

//ratelimit:max=5 window=1m key=s cost=units*2
func (Cost) M(s string) error { return nil }

type When struct{}

//ratelimit:max=5 window=1m key=s when="s != prefix"
func (When) M(s string) error { return nil }

type Other struct{}

//ratelimit:max=5 window=1m key=[s.prefix,units,'prefix',everywhere]
func (Other) M(s struct{ prefix string }, units int) error { return nil }
`,
		"p/p_linux.go": "package p\n\nconst (\n\tprefix = \"linux\"\n\tunits  = 2\n)\n",
	})
	env := []string{"GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0"}
	must(t, dir, env, "", "./...")
	for name, types := range map[string][]string{
		"ratelimit_gen.go":            {"RateLimitedOther"},
		"ratelimit_gen_linux_only.go": {"RateLimitedKey", "RateLimitedCost", "RateLimitedWhen"},
	} {
		text, err := os.ReadFile(filepath.Join(dir, "p", name))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(string(text), "\ntype RateLimited"); got != len(types) {
			t.Errorf("%s has %d wrappers, want %d", name, got, len(types))
		}
		for _, typ := range types {
			if !strings.Contains(string(text), "\ntype "+typ+" struct") {
				t.Errorf("%s has no %s", name, typ)
			}
		}
	}
	must(t, dir, []string{"GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0"}, "go", "vet", "./...")
}
