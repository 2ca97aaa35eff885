package generator

import (
	"go/ast"
	"go/format"
	"go/importer"
	goparser "go/parser"
	"go/token"
	"go/types"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ratelimitgen/ratelimitgen/parser"
)

func TestLowerFirstLowersTheFirstWord(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"PlaceOrder": "placeOrder",
		"HTTPClient": "httpClient",
		"ID":         "id",
		"X":          "x",
		"XMLs":       "xmLs",
		"already":    "already",
		"Ärger":      "ärger",
		"":           "",
		"A1":         "a1",
	} {
		if got := lowerFirst(in); got != want {
			t.Errorf("lowerFirst(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestAllottedNamesAreIdentifiersThatNobodyElseHas(t *testing.T) {
	t.Parallel()
	words := rapid.SampledFrom([]string{"a", "a2", "len", "type", "error", "req", "_", "", "x y", "init", "any", "ä"})
	rapid.Check(t, func(t *rapid.T) {
		reserved := map[string]bool{}
		for _, w := range rapid.SliceOf(words).Draw(t, "reserved") {
			reserved[w] = true
		}
		outer := newFileScope(reserved)
		inner := outer.child()
		seen := map[string]bool{}
		for range rapid.IntRange(1, 40).Draw(t, "n") {
			s := rapid.SampledFrom([]*scope{outer, inner}).Draw(t, "scope")
			got := s.allot(words.Draw(t, "want"), "fallback")
			if !token.IsIdentifier(got) || got == "_" {
				t.Fatalf("%q is not an identifier", got)
			}
			if reserved[got] || seen[got] && s == inner {
				t.Fatalf("%q was taken", got)
			}
			seen[got] = true
			switch got {
			case "len", "error", "any", "init", "type":
				t.Fatalf("%q means something else", got)
			}
		}
	})
}

func TestACommentCannotBeEnded(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a\nfunc init() {}": "// afunc init() {}",
		"a\r*/ b":           "// a*/ b",
		"a\u2028b\u202ec":   "// abc",
		"\xff\x00a":         "// a",
		"":                  "//",
	} {
		if got := comment(in).GoString(); got != want {
			t.Errorf("comment(%q) = %q, want %q", in, got, want)
		}
	}
}

const typesSource = `package p

import "unsafe"

type (
	N           int
	G[A, B any] struct{}
	Al          = map[string]N
	GA[T any]   = G[T, []T]
	Num         interface{ ~int | ~float64 }
)

type Holder[T any, P interface { *T; comparable }, Q ~[]T | *T, R interface{ Num; M(x ...T) (n T) }] struct {
	a func(x, _ int, rest ...func(T) (G[T, P], error)) (n int, err error)
	b struct {
		A, B N ` + "`json:\"a b\"`" + `
		G[int, Al]
		*N
		error
		c unsafe.Pointer
	}
	c interface {
		M(T) Q
		N() (R, any)
		error
		interface{ String() string }
	}
	d [3]chan<- (<-chan T)
	e chan (<-chan *GA[T])
	f <-chan chan<- [][2]map[rune]byte
	g func()
	h func(func(any) interface{}) struct{}
	i G[G[Al, error], GA[P]]
	j chan (chan int)
	k *Holder[T, P, Q, R]
}
`

// checked is the package that text holds.
func checked(t *testing.T, path, text string) *types.Package {
	t.Helper()
	fset := token.NewFileSet()
	file, err := goparser.ParseFile(fset, "p.go", text, goparser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	conf := types.Config{Importer: importer.Default()} // for unsafe
	pkg, err := conf.Check(path, fset, []*ast.File{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return pkg
}

func TestTypesAreWrittenAsGoTypesWritesThem(t *testing.T) {
	t.Parallel()
	pkg := checked(t, "example.com/p", typesSource)
	im := newImports(nil)
	im.alias["example.com/p"] = "p"
	im.alias["unsafe"] = "unsafe"
	qualified := func(p *types.Package) string { return p.Name() }
	holder := pkg.Scope().Lookup("Holder").Type().(*types.Named)
	written := []types.Type{pkg.Scope().Lookup("Num").Type().Underlying()}
	for v := range holder.Underlying().(*types.Struct).Fields() {
		written = append(written, v.Type())
	}
	for tp := range holder.TypeParams().TypeParams() {
		im.tparams[tp.Obj()] = tp.Obj().Name()
		written = append(written, tp.Constraint())
	}
	for _, typ := range written {
		if got, want := ungrouped(t, im.typeString(typ)), ungrouped(t, types.TypeString(typ, qualified)); got != want {
			t.Errorf("written as %s, want %s", got, want)
		}
	}
}

// ungrouped writes a type with a type behind each name, and tags in double quotes.
func ungrouped(t *testing.T, text string) string {
	t.Helper()
	x, err := goparser.ParseExpr(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	ast.Inspect(x, func(n ast.Node) bool {
		list, ok := n.(*ast.FieldList)
		if !ok || list == nil {
			return true
		}
		var fields []*ast.Field
		for _, f := range list.List {
			if f.Tag != nil {
				tag, err := strconv.Unquote(f.Tag.Value)
				if err != nil {
					t.Fatal(err)
				}
				f.Tag.Value = strconv.Quote(tag)
			}
			if len(f.Names) == 0 {
				fields = append(fields, f)
			}
			for _, name := range f.Names {
				fields = append(fields, &ast.Field{Names: []*ast.Ident{name}, Type: f.Type, Tag: f.Tag})
			}
		}
		list.List = fields
		return true
	})
	var b strings.Builder
	if err := format.Node(&b, token.NewFileSet(), x); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestRenamedTypeParametersAreRenamedWhereverTheyOccur(t *testing.T) {
	t.Parallel()
	pkg := checked(t, "example.com/p", typesSource)
	im := newImports(pkg)
	holder := pkg.Scope().Lookup("Holder").Type().(*types.Named)
	for tp := range holder.TypeParams().TypeParams() {
		im.tparams[tp.Obj()] = tp.Obj().Name() + "9"
	}
	for i, want := range map[int]string{
		0:  "func(x, _ int, rest ...func(T9) (G[T9, P9], error)) (n int, err error)",
		2:  "interface{M(T9) Q9; N() (R9, any); error; interface{String() string}}",
		4:  "chan (<-chan *GA[T9])",
		10: "*Holder[T9, P9, Q9, R9]",
	} {
		if got := im.typeString(holder.Underlying().(*types.Struct).Field(i).Type()); got != want {
			t.Errorf("field %d is written %s, want %s", i, got, want)
		}
	}
	for i, want := range []string{"interface{*T9; comparable}", "~[]T9 | *T9", "interface{M(x ...T9) (n T9); Num}"} {
		if got := im.constraint(holder.TypeParams().At(i + 1)); got != want {
			t.Errorf("constraint %d is written %s, want %s", i+1, got, want)
		}
	}
}

func TestImportableFollowsTheGoCommand(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to string
		want     bool
	}{
		{"m/a", "m/b", true},
		{"m/a", "m/internal/b", true},
		{"m", "m/internal", true},
		{"m/a", "m/a/internal/b", true},
		{"m/ab", "m/a/internal/b", false},
		{"m/a", "n/internal", false},
		{"m/internal/a", "m/internal/b/internal/c", false},
		{"m/internal/b/d", "m/internal/b/internal/c", true},
		{"m/a", "internal/abi", false},
		{"m/a", "net/http/internal", false},
		{"m/a", "vendor/golang.org/x/net/http2", false},
		{"m/a", "m/internals/b", true},
		{"os", "internal/abi", true},
		{"os", "net/http/internal", false},
	} {
		p := &parser.Package{Path: c.from, Standard: !strings.HasPrefix(c.from, "m")}
		if got := importable(p, c.to); got != c.want {
			t.Errorf("%s may import %s: %v, want %v", c.from, c.to, got, c.want)
		}
	}
}
