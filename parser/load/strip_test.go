package load

import (
	"bytes"
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

// signaturesOf prints the declarations of src with empty bodies.
func signaturesOf(t *testing.T, name string, src []byte) (string, bool) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		return "", false
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Body != nil {
				n.Body.List = nil
			}
		case *ast.FuncLit:
			n.Body.List = nil
		}
		return true
	})
	var b bytes.Buffer
	if err := printer.Fprint(&b, fset, file); err != nil {
		t.Fatal(err)
	}
	return b.String(), true
}

// The standard library writes Go in every way there is; one file in five is enough
// for every run.
func TestStrippingKeepsTheSignaturesOfTheStandardLibrary(t *testing.T) {
	t.Parallel()
	root := filepath.Join(build.Default.GOROOT, "src")
	seen, files, stripped, before := 0, 0, 0, 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		if seen++; seen%5 != 0 {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		want, ok := signaturesOf(t, path, src)
		if !ok {
			return nil // not Go, on purpose
		}
		got := stripBodies(src)
		if text, ok := signaturesOf(t, path, got); !ok || text != want {
			t.Errorf("%s: stripped text has other declarations", path)
		}
		if bytes.Count(got, []byte("\n")) != bytes.Count(src, []byte("\n")) || len(got) != len(src) {
			t.Errorf("%s: positions moved", path)
		}
		files++
		before += len(src)
		stripped += len(bytes.Join(bytes.Fields(got), nil))
		return nil
	})
	if err != nil || files < 100 {
		t.Fatalf("%d files, %v", files, err)
	}
	if stripped > before*2/3 {
		t.Errorf("of %d bytes %d are left: bodies are not stripped", before, stripped)
	}
}

func TestStrippingLeavesTypesInSignatures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"package p\nfunc f() struct{ a int } { return x }\n", "package p\nfunc f() struct{ a int } {          }\n"},
		{"package p\nfunc f(interface{ M() }) {\n}\nvar x = [1]func() T{ y }\n", "package p\nfunc f(interface{ M() }) {\n}\nvar x = [1]func() T{ y }\n"},
		{"package p\nfunc f() { \"}\"; '}'; `}` /* } */ // }\n}\n", "package p\nfunc f() {                           \n}\n"},
		{"package p\nfunc f()\nvar x = T{1}\n", "package p\nfunc f()\nvar x = T{1}\n"},
		{"package p\nfunc f() {", "package p\nfunc f() {"},
	} {
		if got := string(stripBodies([]byte(c.in))); got != c.want {
			t.Errorf("%q becomes %q, want %q", c.in, got, c.want)
		}
	}
}

func FuzzStripBodies(f *testing.F) {
	f.Add([]byte("package p\nfunc (t T) f(x func() struct{}) (int, error) { return \"{\", nil }\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		want, ok := signaturesOf(t, "p.go", src)
		if !ok {
			return
		}
		if got, ok := signaturesOf(t, "p.go", stripBodies(src)); !ok || got != want {
			t.Errorf("%q\nhas the declarations\n%s\nand stripped\n%s", src, want, got)
		}
	})
}
