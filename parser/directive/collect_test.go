package directive

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"testing"
)

const placesSource = `package p

type S struct{}

//ratelimit:max=5
func (s *S) A() error {
	if true {
		//ratelimit:max=6
		return nil
	}
	return nil
}

//ratelimit:max=7

func (s *S) B() error { return nil /* } */ }

func (s *S) C()

var f = func() {
	//ratelimit:max=8
}
`

func TestCollectWithoutFunctionBodies(t *testing.T) {
	t.Parallel()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "f.go", placesSource, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	_, want := Collect(fset, file, []byte(placesSource))
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok {
			f.Body = nil
		}
	}
	targets, got := Collect(fset, file, []byte(placesSource))
	if len(targets) != 1 || targets[0].String() != "S.A" {
		t.Errorf("targets %v", targets)
	}
	if len(want) != 3 || !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%swant\n%s", render(got), render(want))
	}
}

func TestCollectTellsTheNodes(t *testing.T) {
	t.Parallel()
	targets, diags := collect("f.go", []byte(`package p

//ratelimit:max=1
type I interface {
	//ratelimit:max=2
	M() error
}

//ratelimit:max=3
func (T) M() error
`))
	if len(diags) > 0 || len(targets) != 3 {
		t.Fatalf("%v %s", targets, render(diags))
	}
	spec, ok := targets[0].Node.(*ast.TypeSpec)
	if !ok || targets[0].Kind != TypeDecl || targets[0].Spec != nil {
		t.Errorf("type: %+v", targets[0])
	}
	if _, ok := targets[1].Node.(*ast.Field); !ok || targets[1].Kind != InterfaceMethod || targets[1].Spec != spec || targets[1].Type != "I" {
		t.Errorf("interface method: %+v", targets[1])
	}
	if _, ok := targets[2].Node.(*ast.FuncDecl); !ok || targets[2].Kind != Method || targets[2].Type != "T" || targets[2].Name != "M" {
		t.Errorf("method: %+v", targets[2])
	}
}

func TestCollectWithAByteOrderMark(t *testing.T) {
	t.Parallel()
	targets, diags := collect("f.go", []byte("\ufeffpackage p\n\n//ratelimit:max=1\nfunc (T) M() error\n"))
	if len(diags) > 0 || len(targets) != 1 {
		t.Errorf("%v %s", targets, render(diags))
	}
}

func TestCollectWithoutAFinalNewline(t *testing.T) {
	t.Parallel()
	_, diags := collect("f.go", []byte("package p\n\n//ratelimit:max=1"))
	if len(diags) != 1 || diags[0].Code != CodeMisplaced {
		t.Errorf("%s", render(diags))
	}
}

func FuzzCollect(f *testing.F) {
	f.Add(placesSource)
	f.Add("package p\n\n//ratelimit:limt x=\"\nfunc (T) M() error\n")
	f.Add("package p\ntype (\n//ratelimit:max=1\nT[P any] interface{ M(); ~int|E }) //ratelimit:off\n")
	f.Add("//ratelimit:max=1\r\npackage p; func F(/*ratelimit:max=1*/ a int) {")
	f.Add("package p\n//line x.go:1\n//ratelimit:max=1\nvar x = struct{ /*ratelimit:*/ f func() }{}")
	f.Add("//ratelimit:define name=a max=n\n//ratelimit:defaults tz=UTC window=1h\npackage p\n\n//ratelimit:use=a lock=1s,2s on-limit=fallback:F group=g\nfunc (T) M() error")
	f.Fuzz(func(t *testing.T, src string) {
		targets, diags := collect("f.go", []byte(src))
		for _, target := range targets {
			if target.Node == nil || len(target.Directives) == 0 {
				t.Fatalf("%+v", target)
			}
		}
		for _, d := range append(diags, checkSource(src)...) {
			if d.Message == "" || d.Code == "" {
				t.Fatalf("%+v", d)
			}
		}
	})
}
