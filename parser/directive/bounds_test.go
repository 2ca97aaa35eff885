package directive

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
	"time"
)

// within runs f and fails if it takes longer than any input may take.
func within(t *testing.T, f func()) {
	t.Helper()
	const most = slowdown * 100 * time.Millisecond
	best := time.Duration(1 << 62)
	// The fastest of some runs, since tests run beside each other.
	for range 10 {
		start := time.Now()
		f()
		if best = min(best, time.Since(start)); best < most {
			return
		}
	}
	t.Errorf("took %v at best, more than %v", best, most)
}

func TestADeclarationTakesSixtyFourDirectives(t *testing.T) {
	t.Parallel()
	src := func(n int) []byte {
		return []byte("package p\n\n" + strings.Repeat("//ratelimit:max=1\n", n) + "func (T) M() error\n")
	}
	targets, diags := collect("f.go", src(MaxDirectives))
	if len(diags) > 0 || len(targets) != 1 || len(targets[0].Directives) != MaxDirectives {
		t.Errorf("%d: %d targets, %s", MaxDirectives, len(targets), render(diags))
	}
	_, diags = collect("f.go", src(MaxDirectives+3))
	if len(diags) != 1 || diags[0].Code != CodeTooManyDirectives || diags[0].Pos.Line != 3+MaxDirectives {
		t.Errorf("%d: %s", MaxDirectives+3, render(diags))
	}
}

func TestDirectivesOfOneTypeInTwoCommentsAreCountedTogether(t *testing.T) {
	t.Parallel()
	half := strings.Repeat("//ratelimit:max=1\n", MaxDirectives/2)
	_, diags := collect("f.go", []byte("package p\n\n"+half+"type (\n"+half+"//ratelimit:max=2\nT int\n)\n"))
	if len(diags) != 1 || diags[0].Code != CodeTooManyDirectives {
		t.Errorf("%s", render(diags))
	}
}

func TestProseIsNotCounted(t *testing.T) {
	t.Parallel()
	_, diags := collect("f.go", []byte("package p\n\n"+strings.Repeat("//ratelimit: see the docs\n", 100)+"func (T) M() error\n"))
	if len(diags) > 0 {
		t.Errorf("%s", render(diags))
	}
}

func TestManyDirectivesOnOneMethodEndInAnErrorInTime(t *testing.T) {
	t.Parallel()
	fill := func(text string) string { return strings.Repeat(text, MaxLen/len(text)-10) }
	for name, tc := range map[string]struct {
		directive string
		n         int
	}{
		"ten thousand":    {"max=1 window=1m key=ip", 10_000},
		"unknown options": {"limit " + fill("a=1 "), MaxDirectives},
		"near options":    {"limit " + fill("windwo=1 "), MaxDirectives},
		"duplicates":      {fill("max=1 "), MaxDirectives},
		"words":           {fill("x "), MaxDirectives},
		"characters":      {"key=`" + fill("a\u202e") + "`", MaxDirectives},
		"escapes":         {`burst="` + fill(`\x41`) + `"`, MaxDirectives},
		"locks":           {"lock=" + fill("1s,"), MaxDirectives},
		"durations":       {"window=" + fill("99w"), MaxDirectives},
		"digits":          {"max=" + fill("9"), MaxDirectives},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src := []byte("package p\n\n" + strings.Repeat(Prefix+tc.directive+"\n", tc.n) + "func (T) M() error\n")
			fset, file := parseFile(t, src)
			within(t, func() {
				targets, diags := Collect(fset, file, src)
				for _, target := range targets {
					var limits []Limit
					for _, d := range target.Directives {
						l, more := d.Limit()
						diags.Add(more...)
						limits = append(limits, l)
					}
					if len(diags) == 0 {
						diags.Add(CheckLimits(limits)...)
					}
				}
				if !diags.HasErrors() {
					t.Fatal("no error")
				}
			})
		})
	}
}

func parseFile(t *testing.T, src []byte) (*token.FileSet, *ast.File) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "f.go", src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return fset, file
}

// Whatever the comments of a file stand on or between.
func TestCollectIsLinear(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]func(n int) string{
		"methods": func(n int) string {
			return strings.Repeat("//ratelimit:max=1\nfunc (T) M() error { return nil }\n\n", n)
		},
		"separated": func(n int) string {
			return strings.Repeat("//ratelimit:max=1\n\nfunc (T) M() error { return nil }\n\n", n)
		},
		"bodies": func(n int) string {
			return strings.Repeat("func (T) M() error {\n//ratelimit:max=1\n\nreturn nil }\n\n", n)
		},
		"fields": func(n int) string {
			return "type T struct {\n" + strings.Repeat("//ratelimit:max=1\n\na int\n", n) + "}\n"
		},
		"alone": func(n int) string {
			return "var x int\n" + strings.Repeat("//ratelimit:max=1\n\n", n)
		},
		"nested": func(n int) string {
			return "type T " + strings.Repeat("struct { a int; b ", 500) + "int" + strings.Repeat("}\n\n//ratelimit:max=1\n\n", 500) +
				strings.Repeat("\n//ratelimit:max=1\n\n", n)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			linear(t, 2000, func(n int) func() {
				src := []byte("package p\n\n" + source(n))
				fset, file := parseFile(t, src)
				return func() { Collect(fset, file, src) }
			})
		})
	}
}

// linear fails if four times the input takes much more than four times the time.
func linear(t *testing.T, n int, work func(n int) func()) {
	t.Helper()
	took := func(f func()) time.Duration {
		best := time.Duration(1 << 62)
		for range 3 {
			start := time.Now()
			f()
			best = min(best, time.Since(start))
		}
		return best
	}
	n /= slowdown
	one, four := work(n), work(4*n)
	// Tests run beside each other, so one bad measurement says little.
	for range 10 {
		if took(four) < 10*took(one) {
			return
		}
	}
	t.Errorf("four times %d takes more than ten times the time", n)
}

func TestANestedPlaceIsNamedByTheInnermost(t *testing.T) {
	t.Parallel()
	src := `package p

type T struct {
	a struct {
		b int
		//ratelimit:max=1
	}
	//ratelimit:max=2

	c func(
		//ratelimit:max=3
		x int,
	)
}
`
	_, diags := collect("f.go", []byte(src))
	got := render(diags)
	want := fmt.Sprintf(`f.go:6:3: error: nothing follows that the directive could apply to%[1]s
f.go:8:2: error: a directive cannot stand on struct field c%[1]s
f.go:11:3: error: a directive has no effect inside struct field c%[1]s
`, ": move it to the doc comment of a method or type [misplaced]")
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
