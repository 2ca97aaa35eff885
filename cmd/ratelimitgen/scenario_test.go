package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the expectations in testdata")

// goldenSuffix marks the expected text of a generated file in an archive.
const goldenSuffix = ".golden"

// TestScenarios runs every archive in testdata. An archive is a module: its files
// are written to a directory, ratelimitgen runs there over ./..., and then
//
//   - with a file "diagnostics", that is what it must print, nothing may be
//     written, and it must exit with 1;
//   - otherwise the output must equal the files named *.golden, go vet must be
//     content, a second run must change nothing, and "go run ." must print the file
//     "stdout".
//
// A file "warnings" holds what is printed without stopping generation.
func TestScenarios(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			runScenario(t, path)
		})
	}
}

func runScenario(t *testing.T, path string) {
	ar, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &scenario{t: t, ar: ar, dir: t.TempDir()}
	s.write()
	before := s.tree()
	if s.has("diagnostics") {
		s.expect("diagnostics", s.generate(exitProblem))
		s.same(before, "generation with errors")
	} else {
		warnings := s.generate(exitDone)
		if s.has("warnings") || warnings != "" {
			s.expect("warnings", warnings)
		}
		s.goldens(before)
		after := s.tree()
		s.generate(exitDone)
		s.same(after, "a second run")
		s.command("go", "vet", "./...")
		if s.has("stdout") {
			s.expect("stdout", s.command("go", "run", "."))
		}
	}
	if *update {
		if err := os.WriteFile(path, txtar.Format(ar), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

type scenario struct {
	t   *testing.T
	ar  *txtar.Archive
	dir string
}

func (s *scenario) index(name string) int {
	return slices.IndexFunc(s.ar.Files, func(f txtar.File) bool { return f.Name == name })
}

func (s *scenario) has(name string) bool { return s.index(name) >= 0 }

// write lays out the module.
func (s *scenario) write() {
	writeModule(s.t, s.dir)
	for _, f := range s.ar.Files {
		if !strings.Contains(f.Name, ".") || strings.HasSuffix(f.Name, goldenSuffix) {
			continue // an expectation
		}
		data := f.Data
		if strings.Contains(f.Name, "crlf") {
			data = bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))
		}
		writeFile(s.t, filepath.Join(s.dir, f.Name), data)
	}
}

// writeModule makes dir a module that can build generated code.
func writeModule(t *testing.T, dir string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "go.mod"), fmt.Appendf(nil, `module example.com/m

go 1.26.0

require github.com/ratelimitgen/ratelimitgen v0.0.0

replace github.com/ratelimitgen/ratelimitgen => %s
`, root))
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// generate runs ratelimitgen and returns what it printed to stderr.
func (s *scenario) generate(want int) string {
	s.t.Helper()
	var stdout, stderr bytes.Buffer
	if got := run(context.Background(), []string{"-C", s.dir, "./..."}, &stdout, &stderr); got != want {
		s.t.Fatalf("exit status %d, want %d\n%s%s", got, want, stdout.String(), stderr.String())
	}
	return stderr.String()
}

// command runs a command in the module and returns its stdout.
func (s *scenario) command(name string, args ...string) string {
	s.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, stderr.String())
	}
	return string(out)
}

// expect compares text with the expectation of that name, or makes it that with
// -update.
func (s *scenario) expect(name, got string) {
	s.t.Helper()
	i := s.index(name)
	if *update {
		if i < 0 {
			s.ar.Files = append(s.ar.Files, txtar.File{Name: name})
			i = len(s.ar.Files) - 1
		}
		s.ar.Files[i].Data = []byte(got)
		return
	}
	want := ""
	if i >= 0 {
		want = string(s.ar.Files[i].Data)
	}
	if got != want {
		s.t.Errorf("%s:\n%s\nwant:\n%s", name, got, want)
	}
}

// goldens compares the files that the run wrote with the expected ones.
func (s *scenario) goldens(before map[string]string) {
	s.t.Helper()
	after := s.tree()
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, ok := before[name]; !ok {
			s.expect(name+goldenSuffix, after[name])
		}
	}
	for _, f := range s.ar.Files {
		if name, ok := strings.CutSuffix(f.Name, goldenSuffix); ok {
			if _, ok := after[name]; !ok {
				s.t.Errorf("%s was not written", name)
			}
		}
	}
}

// same fails unless the tree equals want.
func (s *scenario) same(want map[string]string, after string) {
	s.t.Helper()
	got := s.tree()
	for name := range got {
		if _, ok := want[name]; !ok {
			s.t.Errorf("%s wrote %s", after, name)
		} else if got[name] != want[name] {
			s.t.Errorf("%s changed %s", after, name)
		}
	}
	for name := range want {
		if _, ok := got[name]; !ok {
			s.t.Errorf("%s removed %s", after, name)
		}
	}
}

// tree reads the module.
func (s *scenario) tree() map[string]string {
	s.t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(s.dir, path)
		files[filepath.ToSlash(name)] = string(data)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return files
}
