package scan

import (
	"context"
	"errors"
	"fmt"
	"go/build"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// module writes the files of a txtar archive and returns their directory.
func module(t testing.TB, archive string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range txtar.Parse([]byte(archive)).Files {
		write(t, filepath.Join(dir, filepath.FromSlash(f.Name)), f.Data)
	}
	return dir
}

func write(t testing.TB, name string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func find(t testing.TB, cfg Config) Result {
	t.Helper()
	res, err := Find(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// names lists the hits of res as slash paths relative to dir, "!" before those
// that the build excludes.
func names(t testing.TB, dir string, res Result) []string {
	t.Helper()
	list := []string{}
	for _, d := range res.Dirs {
		for _, f := range d.Files {
			name := relative(t, dir, filepath.Join(d.Path, f.Name))
			if f.Excluded {
				name = "!" + name
			}
			list = append(list, name)
		}
	}
	return list
}

func relative(t testing.TB, dir, name string) string {
	t.Helper()
	rel, err := filepath.Rel(dir, name)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.ToSlash(rel)
}

const example = `
-- go.mod --
module example.com/m

go 1.26

ignore (
	./skipped
	anywhere
)
-- root.go --
package m
//ratelimit:off
-- a/a.go --
package a
//ratelimit:off
-- a/b/b.go --
package b
//ratelimit:off
-- a/b/none.go --
package b
-- ab/ab.go --
package ab
//ratelimit:off
-- testdata/x/x.go --
package x
//ratelimit:off
-- _under/u.go --
package u
//ratelimit:off
-- .dot/d.go --
package d
//ratelimit:off
-- a/_file.go --
package a
//ratelimit:off
-- a/.file.go --
package a
//ratelimit:off
-- a/file.txt --
//ratelimit:off
-- vendor/v.go --
package vendor
//ratelimit:off
-- vendor/x/v.go --
package v
//ratelimit:off
-- a/vendor/x/v.go --
package v
//ratelimit:off
-- nested/go.mod --
module example.com/nested
-- nested/n.go --
package nested
//ratelimit:off
-- nested/sub/n.go --
package sub
//ratelimit:off
-- skipped/s.go --
package skipped
//ratelimit:off
-- a/skipped/s.go --
package skipped
//ratelimit:off
-- a/anywhere/deep/s.go --
package deep
//ratelimit:off
-- empty/sub/e.go --
package sub
//ratelimit:off
`

func TestPatterns(t *testing.T) {
	t.Parallel()
	dir := module(t, example)
	for _, tc := range []struct {
		patterns []string
		want     []string
	}{
		{nil, []string{"root.go"}},
		{[]string{"."}, []string{"root.go"}},
		{[]string{"./"}, []string{"root.go"}},
		{[]string{"./a"}, []string{"a/a.go"}},
		{[]string{"./a/"}, []string{"a/a.go"}},
		{[]string{"./a/../ab"}, []string{"ab/ab.go"}},
		{[]string{"./..."}, []string{"root.go", "a/a.go", "a/b/b.go", "a/skipped/s.go", "ab/ab.go", "empty/sub/e.go", "vendor/v.go"}},
		{[]string{"./a/..."}, []string{"a/a.go", "a/b/b.go", "a/skipped/s.go"}},
		{[]string{"./a..."}, []string{"a/a.go", "a/b/b.go", "a/skipped/s.go", "ab/ab.go"}},
		{[]string{"./.../b"}, []string{"a/b/b.go"}},
		{[]string{"./...b"}, []string{"a/b/b.go", "ab/ab.go", "empty/sub/e.go"}},
		{[]string{"./a/b", "./a/...", "."}, []string{"root.go", "a/a.go", "a/b/b.go", "a/skipped/s.go"}},
		{[]string{"./vendor/..."}, []string{"vendor/v.go", "vendor/x/v.go"}},
		{[]string{"./a/vendor/..."}, []string{"a/vendor/x/v.go"}},
		{[]string{"./nested"}, []string{"nested/n.go"}},
		{[]string{"./nested/..."}, []string{"nested/n.go", "nested/sub/n.go"}},
		{[]string{"./testdata/x", "./_under", "./.dot"}, []string{".dot/d.go", "_under/u.go", "testdata/x/x.go"}},
		{[]string{"./skipped"}, []string{"skipped/s.go"}},
		{[]string{dir + "/a/..."}, []string{"a/a.go", "a/b/b.go", "a/skipped/s.go"}},
		{[]string{dir}, []string{"root.go"}},
	} {
		t.Run(strings.ReplaceAll(fmt.Sprint(tc.patterns), "/", "|"), func(t *testing.T) {
			t.Parallel()
			res := find(t, Config{Dir: dir, Patterns: tc.patterns})
			got := names(t, dir, res)
			want := slices.Clone(tc.want)
			byDir := func(a, b string) int {
				return strings.Compare(filepath.Join(dir, filepath.Dir(a)), filepath.Join(dir, filepath.Dir(b)))
			}
			slices.SortFunc(want, byDir)
			if !reflect.DeepEqual(got, want) || len(res.Diags) > 0 {
				t.Errorf("got %q %v, want %q", got, res.Diags, want)
			}
		})
	}
}

func TestPatternsAboveTheDirectory(t *testing.T) {
	t.Parallel()
	dir := module(t, example)
	res := find(t, Config{Dir: filepath.Join(dir, "a", "b"), Patterns: []string{"..", "../../ab/..."}})
	if got, want := names(t, dir, res), []string{"a/a.go", "ab/ab.go"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestPatternsAgreeWithTheGoCommand asks go list which directories it matches.
func TestPatternsAgreeWithTheGoCommand(t *testing.T) {
	t.Parallel()
	dir := module(t, example)
	if err := os.RemoveAll(filepath.Join(dir, "vendor")); err != nil { // go list wants a consistent one
		t.Fatal(err)
	}
	for _, pattern := range []string{"./...", "./a/...", "./a...", "./.../b", "./...b", "./empty/...", "."} {
		cmd := exec.Command("go", "list", "-f", "{{.Dir}}", pattern)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "PWD="+dir)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list %s: %v", pattern, err)
		}
		want := strings.Fields(string(out))
		slices.Sort(want)
		var got []string
		for _, d := range find(t, Config{Dir: dir, Patterns: []string{pattern}}).Dirs {
			got = append(got, d.Path)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %q, want %q", pattern, got, want)
		}
	}
}

func TestPatternsThatAreNoDirectoriesAreReturned(t *testing.T) {
	t.Parallel()
	res := find(t, Config{Dir: module(t, example), Patterns: []string{"all", "example.com/m/...", ".", "std", "...", "example.com/m@latest"}})
	if want := []string{"all", "example.com/m/...", "std", "...", "example.com/m@latest"}; !reflect.DeepEqual(res.Other, want) || len(res.Diags) > 0 {
		t.Errorf("got %q %v, want %q", res.Other, res.Diags, want)
	}
}

func TestPatternsThatMatchNothingAreReported(t *testing.T) {
	t.Parallel()
	dir := module(t, example)
	for pattern, want := range map[string]string{
		"./nowhere":      "error: there is no directory ./nowhere [no-match]",
		"./nowhere/...":  "error: there is no directory nowhere [no-match]",
		"./empty":        "error: there are no Go files in ./empty: to include the directories below it write ./empty/... [no-match]",
		"./a/x...":       "warning: ./a/x... matches no directory with Go files [no-match]",
		"./a/a.go":       "error: ./a/a.go is a file: name its directory [no-match]",
		"a.go":           "error: a.go is a file: name its directory [no-match]",
		"./testdata/...": "warning: ./testdata/... matches no packages: directories named testdata, or beginning with . or _, are left out; name the directory itself [no-match]",
		"./skipped/...":  "warning: ./skipped/... matches no directory with Go files [no-match]",
	} {
		res := find(t, Config{Dir: dir, Patterns: []string{pattern, "./a"}})
		if len(res.Diags) != 1 || res.Diags[0].String() != want {
			t.Errorf("%s: got %v, want %s", pattern, res.Diags, want)
		}
		if got := names(t, dir, res); !reflect.DeepEqual(got, []string{"a/a.go"}) {
			t.Errorf("%s: other patterns gave %q", pattern, got)
		}
	}
}

func TestLinksToDirectoriesAreNotFollowed(t *testing.T) {
	t.Parallel()
	dir := module(t, example)
	for from, to := range map[string]string{"link": "a", "a/loop": "..", "file.go": "a/a.go", "dangling.go": "gone.go", "dir.go": "a"} {
		if err := os.Symlink(filepath.FromSlash(to), filepath.Join(dir, filepath.FromSlash(from))); err != nil {
			t.Fatal(err)
		}
	}
	got := names(t, dir, find(t, Config{Dir: dir, Patterns: []string{"./..."}}))
	if i := slices.IndexFunc(got, func(s string) bool { return strings.Contains(s, "link") || strings.Contains(s, "loop") }); i >= 0 {
		t.Errorf("followed: %q", got[i])
	}
	if !slices.Contains(got, "file.go") {
		t.Errorf("a link to a file belongs to its package: %q", got)
	}
	got = names(t, dir, find(t, Config{Dir: dir, Patterns: []string{"./link", "./link/..."}}))
	if want := []string{"link/a.go", "link/b/b.go", "link/skipped/s.go"}; !reflect.DeepEqual(got, want) {
		t.Errorf("a link that a pattern names: got %q, want %q", got, want)
	}
}

func TestOutputsAreNoHits(t *testing.T) {
	t.Parallel()
	const body = "\npackage p\n//ratelimit:off\n"
	dir := module(t, "-- go.mod --\nmodule m\n")
	for name, text := range map[string]string{
		"ours/" + OutputName:   Header + body,
		"crlf/" + OutputName:   Header + "\r" + body,
		"bare/" + OutputName:   Header,
		"theirs/" + OutputName: "// Code generated by protoc-gen-go. DO NOT EDIT." + body,
		"longer/" + OutputName: Header + " Really." + body,
		"second/" + OutputName: "\n" + Header + body,
		"other/name.go":        Header + body,
	} {
		write(t, filepath.Join(dir, name), []byte(text))
	}
	res := find(t, Config{Dir: dir, Patterns: []string{"./..."}})
	var outputs []string
	for _, o := range res.Outputs {
		outputs = append(outputs, path.Dir(relative(t, dir, o)))
	}
	if want := []string{"bare", "crlf", "ours"}; !reflect.DeepEqual(outputs, want) {
		t.Errorf("outputs in %q, want %q", outputs, want)
	}
	var hits []string
	for _, name := range names(t, dir, res) {
		hits = append(hits, path.Dir(name))
	}
	if want := []string{"longer", "other", "second", "theirs"}; !reflect.DeepEqual(hits, want) {
		t.Errorf("hits in %q, want %q", hits, want)
	}
}

func TestFilesThatTheBuildExcludesAreMarked(t *testing.T) {
	t.Parallel()
	dir := module(t, `
-- go.mod --
module m
-- in.go --
//go:build linux && !race

package p
//ratelimit:off
-- in_linux.go --
package p
//ratelimit:off
-- in_test.go --
package p
//ratelimit:off
-- out.go --
//go:build never

package p
//ratelimit:off
-- out_windows.go --
package p
//ratelimit:off
-- out_arm64_test.go --
package p
//ratelimit:off
-- ignore.go --
//go:build ignore

package main
//ratelimit:off
-- tagged.go --
//go:build mine

package p
//ratelimit:off
-- cgo.go --
package p

import "C"
//ratelimit:off
-- broken.go --
//go:build ((

package p
//ratelimit:off
`)
	bctx := build.Default
	bctx.GOOS, bctx.GOARCH, bctx.CgoEnabled, bctx.BuildTags = "linux", "amd64", true, []string{"mine"}
	got := names(t, dir, find(t, Config{Dir: dir, Build: &bctx}))
	want := []string{"broken.go", "cgo.go", "!ignore.go", "in.go", "in_linux.go", "in_test.go", "!out.go", "!out_arm64_test.go", "!out_windows.go", "tagged.go"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	bctx.CgoEnabled, bctx.BuildTags = false, nil
	got = names(t, dir, find(t, Config{Dir: dir, Build: &bctx}))
	for _, name := range []string{"!cgo.go", "!tagged.go"} {
		if !slices.Contains(got, name) {
			t.Errorf("%q is not in %q", name, got)
		}
	}
}

func TestContentIsKept(t *testing.T) {
	t.Parallel()
	dir := module(t, "-- go.mod --\nmodule m\n")
	want := map[string]string{}
	for i := range 20 {
		// Of growing and shrinking size, so that a buffer used again would show.
		body := "package p\n//ratelimit:off\n" + strings.Repeat(fmt.Sprintf("// %d\n", i), (i%7)*5000)
		name := fmt.Sprintf("f%02d.go", i)
		want[name] = body
		write(t, filepath.Join(dir, name), []byte(body))
	}
	res := find(t, Config{Dir: dir})
	if len(res.Dirs) != 1 || len(res.Dirs[0].Files) != len(want) {
		t.Fatalf("%d directories", len(res.Dirs))
	}
	for _, f := range res.Dirs[0].Files {
		if string(f.Src) != want[f.Name] {
			t.Errorf("%s has %d bytes, want %d", f.Name, len(f.Src), len(want[f.Name]))
		}
	}
}

func TestFindStopsWhenTheContextIsDone(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Find(ctx, Config{Dir: module(t, example), Patterns: []string{"./..."}}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestNamesThatCannotBeAreErrors(t *testing.T) {
	t.Parallel()
	if _, err := Find(context.Background(), Config{Dir: module(t, example), Patterns: []string{"./a\x00b"}}); err == nil {
		t.Error("no error")
	}
}

func TestMentions(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]bool{
		"//ratelimit:max=5":                    true,
		"package p\n\t// RateLimit \t: x\n":    true,
		"/*ratelimit:x*/":                      true,
		"/*\n\r\n ratelimit\n:x*/":             true,
		"a := 1 // b: c\n//ratelimit:off":      true,
		"//ratelimit:":                         true,
		"//RATELIMIT:":                         true,
		"":                                     false,
		":":                                    false,
		"ratelimit:":                           false,
		"/ratelimit:":                          false,
		"x//ratelimit":                         true,
		"//ratelimit max=5":                    true,
		"// rate-limt max=5":                   true,
		"///ratelimits:off":                    true,
		"// ratelimit\n":                       false,
		"// Ratelimit the callers = good":      false,
		`s := "ratelimit:max=5"`:               false,
		"// see ratelimit:max=5":               false,
		"//ratelimiter:x":                      true,
		"//xratelimit:":                        false,
		"//rate limit:":                        false,
		"// ratelimit is a word: it is prose.": false,
		"//ratelim\u0131t:":                    false,
	} {
		if got := mentions([]byte(src)); got != want {
			t.Errorf("%q: %v", src, got)
		}
	}
}

func FuzzMentions(f *testing.F) {
	f.Add([]byte("// : RateLimit \n : x"))
	f.Add([]byte("/*ratelimit:"))
	f.Fuzz(func(t *testing.T, src []byte) {
		if form.Match(src) && !mentions(src) {
			t.Errorf("%q is not a mention", src)
		}
	})
}
