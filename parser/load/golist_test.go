package load

import (
	"context"
	"fmt"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/diff"
	"golang.org/x/tools/go/packages"
)

// lines writes nodes one a line, sorted.
func lines(nodes []*node) string {
	var all []string
	for _, n := range nodes {
		files := func(names []string) (abs []string) {
			for _, name := range names {
				abs = append(abs, n.file(name))
			}
			return abs
		}
		var imports []string
		for _, dep := range n.imports {
			imports = append(imports, dep.path)
		}
		for _, path := range slices.Sorted(maps.Keys(n.renamed)) {
			imports = append(imports, path+"="+n.renamed[path].path)
		}
		var of string
		for m := n.module; m != nil; m = m.Replace {
			of += fmt.Sprintf(" %s@%s go%s %v", m.Path, m.Version, m.GoVersion, m.Main)
		}
		var left string
		if n.excluded {
			left = " excluded"
		}
		all = append(all, fmt.Sprintf("%s %s %s %v %v %v%s %v%s\n", n.path, n.name, n.dir, files(n.goFiles), files(n.others), imports, of, n.errors, left))
	}
	slices.Sort(all)
	return strings.Join(all, "")
}

// newLister returns a loader that can list the packages of dir.
func newLister(t *testing.T, dir, tags string) *loader {
	return &loader{
		ctx:     t.Context(),
		cfg:     Config{Dir: dir, Tags: tags},
		fset:    token.NewFileSet(),
		graph:   map[string]*node{},
		failed:  map[string]error{},
		foreign: map[string]bool{},
	}
}

func TestTheGoCommandListsWhatGoPackagesDoes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		archive, tags string
		patterns      []string
	}{
		"standard library, which vendors": {
			archive: "-- p/p.go --\npackage p\n\nimport _ \"net/http\"\n",
		},
		"build tags": {
			archive:  "-- p/p.go --\npackage p\n-- p/q.go --\n//go:build extra\n\npackage p\n\nimport _ \"errors\"\n",
			tags:     "extra",
			patterns: []string{"./p"},
		},
		"cgo and other languages": {
			archive: "-- p/p.go --\npackage p\n\nimport \"C\"\n-- p/p.c --\nint x;\n-- p/p.h --\n-- p/other.go --\npackage p\n-- p/x_test.go --\npackage p\n\nimport _ \"testing\"\n",
		},
		"packages of other builds": {
			archive:  "-- p/p.go --\npackage p\n-- w/w_plan9.go --\npackage w\n-- i/i.go --\n//go:build ignore\n\npackage main\n-- i/i.c --\nint x;\n",
			patterns: []string{"./p", "./w", "./i"},
		},
		"replaced module": {
			archive: "\nrequire example.com/local v0.0.0\n\nreplace example.com/local => ./local\n-- p/p.go --\npackage p\n\nimport _ \"example.com/local\"\n" +
				"-- local/go.mod --\nmodule example.com/local\n\ngo 1.25.0\n-- local/local.go --\npackage other\n",
		},
		"vendored module": {
			archive: "\nrequire example.com/dep v1.0.0\n-- p/p.go --\npackage p\n\nimport _ \"example.com/dep/sub\"\n" +
				"-- vendor/modules.txt --\n# example.com/dep v1.0.0\n## explicit; go 1.24\nexample.com/dep/sub\n-- vendor/example.com/dep/sub/sub.go --\npackage sub\n",
		},
		"workspace": {
			archive: "-- go.work --\ngo 1.26.0\n\nuse (\n\t.\n\t./other\n)\n-- p/p.go --\npackage p\n\nimport _ \"example.com/other\"\n" +
				"-- other/go.mod --\nmodule example.com/other\n\ngo 1.26.0\n-- other/other.go --\npackage other\n",
			patterns: []string{"./p", "./other", "example.com/other", "unsafe"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			patterns := []string{"./..."}
			if test.patterns != nil {
				patterns = test.patterns
			}
			ld := newLister(t, module(t, test.archive), test.tags)
			roots, all, ok := ld.goList(patterns)
			if !ok {
				t.Fatal("go/packages has to be asked")
			}
			const mode = packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps | packages.NeedModule
			listed, err := ld.list(mode, patterns)
			if err != nil {
				t.Fatal(err)
			}
			ns := nodes{}
			packages.Visit(listed, nil, func(p *packages.Package) { ns.of(p) })
			var wantRoots []*node
			for _, p := range listed {
				wantRoots = append(wantRoots, ns[p])
			}
			if d := diff.Diff("go/packages", []byte(lines(wantRoots)), "ours", []byte(lines(roots))); d != nil {
				t.Errorf("roots: %s", d)
			}
			// What cgo imports is there as well, which go/packages leaves out.
			imported := map[*node]bool{}
			var visit func([]*node)
			visit = func(ns []*node) {
				for _, n := range ns {
					if !imported[n] {
						imported[n] = true
						visit(n.imports)
					}
				}
			}
			visit(roots)
			if d := diff.Diff("go/packages", []byte(lines(slices.Collect(maps.Values(ns)))), "ours", []byte(lines(slices.Collect(maps.Keys(imported))))); d != nil {
				t.Errorf("graph: %s", d)
			}
			seen := map[*node]bool{}
			for _, n := range all {
				for _, dep := range n.imports {
					if !seen[dep] {
						t.Errorf("%s comes before %s, which it imports", n.path, dep.path)
					}
				}
				seen[n] = true
			}
		})
	}
}

func TestGoPackagesIsAskedWhereSomethingIsOdd(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ archive, pattern string }{
		"no such package":    {"-- p/p.go --\npackage p\n", "./nowhere"},
		"no such module":     {"-- p/p.go --\npackage p\n\nimport _ \"example.com/nowhere\"\n", "./p"},
		"syntax error":       {"-- p/p.go --\npackage p\n\nimport x\n", "./p"},
		"import cycle":       {"-- p/p.go --\npackage p\n\nimport _ \"example.com/m/q\"\n-- q/q.go --\npackage q\n\nimport _ \"example.com/m/p\"\n", "./p"},
		"imported command":   {"-- p/p.go --\npackage p\n\nimport _ \"example.com/m/q\"\n-- q/q.go --\npackage main\n", "./..."},
		"two packages":       {"-- p/p.go --\npackage p\n-- p/q.go --\npackage q\n", "./p"},
		"a go.mod to update": {"\nrequire example.com/dep v1.0.0\n-- p/p.go --\npackage p\n-- vendor/modules.txt --\n", "./p"},
		"a query":            {"-- p/p.go --\npackage p\n", "pattern=./p"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ld := newLister(t, module(t, test.archive), "")
			if roots, _, ok := ld.goList([]string{test.pattern}); ok {
				t.Errorf("listed %s", lines(roots))
			}
		})
	}
}

func TestOddAnswersOfTheGoCommand(t *testing.T) {
	t.Parallel()
	const fmtPackage = `{"ImportPath": "fmt", "Name": "fmt", "DepOnly": true}`
	for answer, right := range map[string]bool{
		"": true,
		fmtPackage + `{"ImportPath": "p", "Imports": ["C", "fmt"], "Module": {"Path": "m", "Main": true}}`: true,
		fmtPackage + fmtPackage: false,
		fmtPackage + `{"ImportPath": "p", "Imports": ["unknown"]}`:                                               false,
		fmtPackage + `{"ImportPath": "p", "ImportMap": {"fmt": "vendor/fmt"}}`:                                   false,
		`{"ImportPath": "p", "Dir": "relative"}`:                                                                 false,
		`{"ImportPath": "p", "Error": {"Err": "no"}}`:                                                            false,
		`{"ImportPath": "p", "Error": {"Err": "build constraints exclude all Go files in /p"}}`:                  true,
		`{"ImportPath": "p", "Error": {"Err": "build constraints exclude all Go files in /p"}, "DepOnly": true}`: false,
		`{"ImportPath": "p", "Error": {"Err": "build constraints exclude all Go files in /p", "Pos": "q:1:1"}}`:  false,
		`{"Name": "p"}`: false,
		`{"ImportPath": "p", "Module": {"Main": "perhaps"}}`: false,
		`{"ImportPath": "p"`: false,
		"go: warning":        false,
	} {
		var l lister
		if err := l.read(strings.NewReader(answer)); (err == nil) != right {
			t.Errorf("%s\n\tgives %v", answer, err)
		}
	}
}

// What one package has does not become that of the next.
func TestAnAnswerHoldsNothingOfTheOneBefore(t *testing.T) {
	t.Parallel()
	var l lister
	err := l.read(strings.NewReader(`
{"ImportPath": "a", "Name": "a", "GoFiles": ["1.go", "2.go"], "CFiles": ["1.c"], "Module": {"Path": "m", "Replace": {"Path": "r"}}, "DepOnly": true}
{"ImportPath": "b", "Name": "b", "GoFiles": ["3.go"], "Imports": ["a"], "ImportMap": {"x": "a"}}
{"ImportPath": "c", "Name": "c"}`))
	if err != nil {
		t.Fatal(err)
	}
	const want = `a a  [1.go 2.go] [1.c] [] m@ go false r@ go false []
b b  [3.go] [] [a x=a] []
c c  [] [] [] []
`
	if got := lines(l.all); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := lines(l.roots); got != want[strings.Index(want, "b b"):] {
		t.Errorf("roots\n%s", got)
	}
}

func TestACancelledListEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ld := newLister(t, module(t, "-- p/p.go --\npackage p\n"), "")
	ld.ctx = ctx
	if _, _, ok := ld.goList([]string{"./p"}); ok {
		t.Error("listed after the end")
	}
	if _, err := ld.listDeps([]string{"./p"}); err != context.Canceled {
		t.Errorf("error %v", err)
	}
}
