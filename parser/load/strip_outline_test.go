package load

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// outlineOf prints the outline of src with the places of its declarations. It
// reports false if src is not Go, or no outline is taken of it.
func outlineOf(t *testing.T, src []byte) (string, bool) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "p.go", src, parser.SkipObjectResolution)
	if err != nil || measured(file) {
		return "", false
	}
	emptyBodies(file)
	var b bytes.Buffer
	for _, d := range signatures(file, outlined, nil).Decls {
		fmt.Fprintf(&b, "%v ", fset.Position(d.Pos()))
		if err := printer.Fprint(&b, fset, d); err != nil {
			t.Fatal(err)
		}
		b.WriteByte('\n')
	}
	return b.String(), true
}

// One file in fifteen is enough for every run.
func TestStrippingKeepsTheOutlinesOfTheStandardLibrary(t *testing.T) {
	t.Parallel()
	root := filepath.Join(build.Default.GOROOT, "src")
	seen, files, left := 0, 0, 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		if seen++; seen%15 != 1 {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		want, ok := outlineOf(t, src)
		if !ok {
			return nil
		}
		stripped := stripToOutline(src)
		if got, ok := outlineOf(t, stripped); !ok || got != want {
			t.Errorf("%s: stripped text has another outline", path)
		}
		files++
		file, err := parser.ParseFile(token.NewFileSet(), path, stripped, parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			return nil
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil || !d.Name.IsExported() {
					left++
				}
			case *ast.GenDecl:
				if d.Tok == token.VAR {
					left++
				}
			}
		}
		return nil
	})
	if err != nil || files < 100 {
		t.Fatalf("%d files, %v", files, err)
	}
	if left > 0 {
		t.Errorf("%d functions and variables are left", left)
	}
}

func TestStrippingToTheOutlineEndsDeclarationsWhereGoDoes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"package p\nfunc f() chan\nint { return x }\ntype T int", "package p\n             \n                \ntype T int"},
		{"package p\nvar c chan\nint\ntype T int", "package p\n          \n   \ntype T int"},
		{"package p\nvar a = 1 +\n2\ntype T int", "package p\n           \n \ntype T int"},
		{"package p\nvar a = 1 /*\n*/ type T int", "package p\n            \n   type T int"},
		{"package p\nvar a, b = 1, f(\n2)\ntype T int\n", "package p\n                \n  \ntype T int"},
		{"package p\nvar (\n\ta = `\n`\n)\ntype T int\n", "package p\n     \n      \n \n \ntype T int"},
		{"package p\nvar a int; type T int", "package p\n           type T int"},
		{"package p\nfunc (T) m() {}\nfunc (T) M() {}\nfunc F()\n", "package p\n               \nfunc (T) M() {}"},
		{"package p\nfunc f(interface{ M() }) struct{ a int } {\n}\ntype T int", "package p\n                                          \n \ntype T int"},
		{"package p\nfunc f() {", "package p\nfunc f() {"},
	} {
		if got := string(stripToOutline([]byte(c.in))); got != c.want {
			t.Errorf("%q becomes %q, want %q", c.in, got, c.want)
		}
	}
}

func FuzzStripToOutline(f *testing.F) {
	f.Add([]byte("package p\nvar x = func() int { return 1 }()\nfunc (t T) F(x func() struct{}) (int, error) { return \"{\", nil }\n"))
	f.Add([]byte("package p\nfunc f() chan\nint { return nil }; type T int\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		want, ok := outlineOf(t, src)
		if !ok {
			return
		}
		if got, ok := outlineOf(t, stripToOutline(src)); !ok || got != want {
			t.Errorf("%q\nhas the outline\n%s\nand stripped\n%s", src, want, got)
		}
	})
}
