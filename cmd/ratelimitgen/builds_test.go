package main

import (
	"os"
	"os/exec"
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
	tool := filepath.Join(t.TempDir(), "ratelimitgen")
	command := func(goos, name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH=amd64", "CGO_ENABLED=0")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %s %v: %v\n%s", goos, name, args, err, out)
		}
		return string(out)
	}
	build := exec.Command("go", "build", "-o", tool, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	systems := []string{"linux", "windows"}
	for _, goos := range systems {
		command(goos, tool, "./...")
	}
	for _, goos := range systems {
		if out := command(goos, tool, "check", "./..."); strings.Contains(out, "ratelimit_gen") {
			t.Errorf("%s: %s", goos, out)
		}
		command(goos, "go", "vet", "./...")
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
