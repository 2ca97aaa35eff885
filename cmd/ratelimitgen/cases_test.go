package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ratelimitgen/ratelimitgen/parser/scan"
)

// TestReportedCases holds what others' generators got wrong, as their trackers tell,
// restated for this one. A case with "diag" is refused with such a message; the others
// generate, vet, and declare nothing but what was asked for.
func TestReportedCases(t *testing.T) {
	t.Parallel()
	method := func(directive string) string {
		return "package p\n\ntype T struct{}\n\n" + directive + "\nfunc (T) M(key string) error { return nil }\n"
	}
	for _, tc := range []struct {
		id    string
		files map[string]string
		diag  string
		decls []string // of the package's output, besides the usual of T.M
	}{
		{id: "GE01 GHSA-rjwr-m7qx-3fjr", files: map[string]string{"p/p.go": method("// Doc with */ and\u2028func init() {}.\n//\n//ratelimit:max=1 message=\"a */ }; func init() {}\"")}},
		{id: "GE01 in a message", files: map[string]string{"p/p.go": method("//ratelimit:max=1 message=\"a\\nfunc init() {}\\r\\u2028\"")}, diag: `\[bad-text\]`},
		{id: "GE02 GHSA-xrqw-w576-xgj2", files: map[string]string{"p/p.go": method("//ratelimit:max=1 name=\"x)\\nfunc init(){}\"")}, diag: `^p/p.go:5:25: error: name=`},
		{id: "GE03 GHSA-jwgf-6xff-4hvp", files: map[string]string{"p/p.go": method("//ratelimit:max=1 key=\"[key, '`\\\"\\\\\\\\']\"")}},
		{id: "GE04 GHSA-9c2f-gr95-7wqw", files: map[string]string{"p/p.go": "package p\n\n//ratelimit:wrapper implements=\"io.Closer\\nimport _ \\\"os\\\"\"\ntype T struct{}\n\n//ratelimit:max=1\nfunc (T) Close() error { return nil }\n"}, diag: `^p/p.go:3:33: error: implements=`},
		{id: "GE05 uber-go/mock#222", files: map[string]string{"p/p.go": "package p\n\nimport (\n\t\"context\"\n\t\"time\"\n)\n\ntype T struct{}\n\n//ratelimit:max=1 window=1s key=l\nfunc (err T) M(context context.Context, time time.Time, _ int, ctx, l string) error { return nil }\n"}},
		{id: "GE07 mockery#1170", files: map[string]string{"dep/dep.go": "package dep\n\ntype X struct{}\n", "p/p.go": "package p\n\nimport d \"example.com/m/dep\"\n\ntype dep struct{}\n\ntype T struct{ d dep }\n\n//ratelimit:max=1\nfunc (T) M(x d.X) (dep d.X, err error) { return x, nil }\n"}},
		{id: "GE08 counterfeiter#378", files: map[string]string{"p/p.go": "package p\n\ntype T[K comparable, V ~int | ~string] struct{ m map[K]V }\n\n//ratelimit:max=1\nfunc (t *T[K, V]) M(k K, k2 V) (V, error) { return t.m[k], nil }\n"}},
		{id: "GE10 counterfeiter#259", files: map[string]string{"p/p.go": "package p\n\ntype (\n\t// T is in a group.\r\n\tT struct{}\n\n\tI interface {\n\t\t//ratelimit:max=1\r\n\t\tM() error\n\t}\n)\n\n//ratelimit:max=1 \t window=1h\r\nfunc (T) M() error { return nil }\n"}, decls: []string{"RateLimitedI", "NewRateLimitedI", "RateLimitedI.M", "iMSpec", "_"}},
		{id: "GE10 with a blank line", files: map[string]string{"p/p.go": "package p\n\ntype (\n\t//ratelimit:max=1\n\n\tI interface{ M() error }\n)\n"}, diag: `^p/p.go:4:2: error: a blank line separates the directive from type I: remove it \[misplaced\]`},
		{id: "GE11 counterfeiter#48", files: map[string]string{"p/p.go": "package p\n\ntype T struct{}\n\n//ratelimit:max=1\nfunc (T) M(c chan<- func(...int), f func() <-chan int, args ...any) (a, b int, err error) { return }\n"}},
		{id: "GE12 gen#77", files: map[string]string{"p/p.go": method("//ratelimit:max=1") + "\nvar Limited = NewRateLimitedT(T{}, nil)\n"}},
		{id: "GE12 with an error of the user's", files: map[string]string{"p/p.go": "package p\n\ntype T struct{}\n\n//ratelimit:max=1\nfunc (T) M(x Missing) error { return nil }\n"}, diag: `undefined: Missing \[broken-signature\]`},
		{id: "GE18", files: map[string]string{"p/p.go": "//go:build linux && !race\n\n" + method("//ratelimit:max=1")}},
		{id: "GE19 a misspelt verb", files: map[string]string{"p/p.go": method("//ratelimit:limt")}, diag: `^p/p.go:5:13: error: unknown verb "limt"; did you mean "limit"\?`},
		{id: "GE19 with a blank", files: map[string]string{"p/p.go": method("// ratelimit:limit max=1")}, diag: `^p/p.go:5:1: error: .*\[near-miss\]`},
		{id: "GE19 an unknown option", files: map[string]string{"p/p.go": method("//ratelimit:mx=1")}, diag: `^p/p.go:5:13: error: unknown option "mx" of limit; did you mean "max"\?`},
		{id: "GE19 a duplicate option", files: map[string]string{"p/p.go": method("//ratelimit:max=1 max=2")}, diag: `^p/p.go:5:19: error: max is given twice`},
		{id: "CF01 a limit of 0", files: map[string]string{"p/p.go": method("//ratelimit:max=0")}, diag: `\[bad-integer\]`},
		{id: "CF01 a negative limit", files: map[string]string{"p/p.go": method("//ratelimit:max=-1")}, diag: `\[bad-integer\]`},
		{id: "CF01 no window", files: map[string]string{"p/p.go": method("//ratelimit:window=0s")}, diag: `window=0s`},
		{id: "CF01 a negative window", files: map[string]string{"p/p.go": method("//ratelimit:window=-1s")}, diag: `window=-1s`},
		{id: "CF01 a burst of 0", files: map[string]string{"p/p.go": method("//ratelimit:algorithm=token-bucket burst=0")}, diag: `burst=0`},
		{id: "CF01 a negative burst", files: map[string]string{"p/p.go": method("//ratelimit:algorithm=token-bucket burst=-3")}, diag: `burst=-3`},
		{id: "CF04 unlimited", files: map[string]string{"p/p.go": method("//ratelimit:max=unlimited")}},
		{id: "CF04 blocked", files: map[string]string{"p/p.go": method("//ratelimit:max=blocked")}},
		{id: "CF06 codex2api#498", files: map[string]string{"p/p.go": method("//ratelimit:algorithm=fixed-window align=day tz=Mars/Base")}, diag: `tz=Mars/Base`},
		{id: "CF09 no unit", files: map[string]string{"p/p.go": method("//ratelimit:window=90")}, diag: `the unit is missing`},
		{id: "CF09 1M", files: map[string]string{"p/p.go": method("//ratelimit:window=1M")}, diag: `M may be minutes or months`},
		{id: "CF09 1mo", files: map[string]string{"p/p.go": method("//ratelimit:window=1mo")}, diag: `window=1mo`},
		{id: "CF09 1e3s", files: map[string]string{"p/p.go": method("//ratelimit:window=1e3s")}, diag: `window=1e3s`},
		{id: "CF09 Inf", files: map[string]string{"p/p.go": method("//ratelimit:window=Inf")}, diag: `window=Inf`},
		{id: "CF09 days and weeks", files: map[string]string{"p/p.go": method("//ratelimit:window=1w1d1h30m")}},
		{id: "CF12 cost above burst", files: map[string]string{"p/p.go": method("//ratelimit:algorithm=token-bucket max=10 burst=3 cost=4")}, diag: `burst=3: a call costs 4`},
	} {
		t.Run(tc.id, func(t *testing.T) {
			t.Parallel()
			dir := module(t, tc.files)
			code, stdout, stderr := ratelimitgen(t, dir, "./...")
			if tc.diag != "" {
				if code != exitProblem || stdout != "" || !regexp.MustCompile("(?m)"+tc.diag).MatchString(stderr) {
					t.Fatalf("exit status %d, %s%s", code, stdout, stderr)
				}
				return
			}
			if code != exitDone {
				t.Fatalf("exit status %d, %s%s", code, stdout, stderr)
			}
			must(t, dir, nil, "go", "vet", "./...")
			outputs, err := filepath.Glob(filepath.Join(dir, "p", "ratelimit_gen*.go"))
			if err != nil || len(outputs) != 1 {
				t.Fatal(outputs, err)
			}
			expectDeclarations(t, outputs[0], append(tc.decls, "_", "RateLimitedT", "NewRateLimitedT"))
		})
	}
}

// expectDeclarations fails if the file declares something that is neither wanted nor
// begins as the functions and variables of T's methods do.
func expectDeclarations(t *testing.T, path string, want []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	allowed := func(name string) bool {
		for _, w := range want {
			if name == w {
				return true
			}
		}
		return regexp.MustCompile(`^(tM|tClose)[A-Z]`).MatchString(name)
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && !allowed(d.Name.Name) || d.Name.Name == "init" {
				t.Errorf("the output declares %s", d.Name.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if !allowed(s.Name.Name) {
						t.Errorf("the output declares %s", s.Name.Name)
					}
				case *ast.ValueSpec:
					for _, n := range s.Names {
						if !allowed(n.Name) {
							t.Errorf("the output declares %s", n.Name)
						}
					}
				}
			}
		}
	}
}

// TestGE14TheSameBytesEverywhere runs many times, in two directories, with one and with
// two processors, and with the patterns in another order.
func TestGE14TheSameBytesEverywhere(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range 6 {
		name := fmt.Sprintf("p%d", i)
		files[name+"/p.go"] = strings.Replace(limitedSource, "package p", "package "+name, 1)
	}
	var first map[string][]byte
	for i := range 4 {
		dir := module(t, files)
		patterns := []string{"./..."}
		if i%2 == 1 {
			patterns = []string{"./p5", "./p3", "./p0", "./p1", "./p4", "./p2"}
		}
		for range 5 {
			must(t, dir, []string{fmt.Sprintf("GOMAXPROCS=%d", 1+i/2)}, "", patterns...)
		}
		got := map[string][]byte{}
		for j := range 6 {
			name := fmt.Sprintf("p%d", j)
			text, err := os.ReadFile(filepath.Join(dir, name, scan.OutputName))
			if err != nil {
				t.Fatal(err)
			}
			got[name] = text
		}
		if first == nil {
			first = got
		}
		for name, text := range got {
			if !bytes.Equal(text, first[name]) {
				t.Errorf("run %d: the output of %s differs", i, name)
			}
		}
	}
}
