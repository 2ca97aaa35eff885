package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree reads all files below dir.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestWritesTheSameModuleEachTime(t *testing.T) {
	t.Parallel()
	m := module{packages: 60, files: 4, limited: 7, runtime: "../.."}
	a, b := t.TempDir(), t.TempDir()
	for _, dir := range []string{a, b} {
		if err := m.write(dir); err != nil {
			t.Fatal(err)
		}
	}
	files := tree(t, a)
	if !maps.Equal(files, tree(t, b)) {
		t.Error("two runs differ")
	}
	sources, limited := 0, 0
	imports := map[string][]string{}
	for name, text := range files {
		if !strings.HasSuffix(name, ".go") {
			continue
		}
		sources++
		if strings.Contains(text, "//ratelimit:") {
			limited++
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range f.Imports {
			if path, ok := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), modulePath+"/"); ok {
				imports[filepath.Dir(name)] = append(imports[filepath.Dir(name)], path)
			}
		}
	}
	if sources != 60*4 || limited != 7 {
		t.Errorf("%d files, %d with directives; want 240 and 7", sources, limited)
	}
	if len(imports) < 50 {
		t.Errorf("only %d packages import others of the module", len(imports))
	}
	for from, paths := range imports {
		for _, to := range paths {
			if _, ok := files[to+"/service.go"]; !ok {
				t.Errorf("%s imports %s, which was not written", from, to)
			}
			if slices.Contains(imports[to], from) {
				t.Errorf("%s and %s import each other", from, to)
			}
		}
	}
}

func TestRefusesToWriteOverOtherFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "precious"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m := module{packages: 1, files: 2, runtime: "../.."}
	if err := m.write(dir); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("error %v, want one that says that the directory is not empty", err)
	}
	m.runtime = dir
	if err := m.write(filepath.Join(dir, "new")); err == nil {
		t.Error("no error for a runtime that is none")
	}
}
