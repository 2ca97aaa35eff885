package directive

import (
	"flag"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// at is where the comments of these tests stand: column 3, as in an indented line.
var at = diag.Pos{File: "f.go", Line: 7, Col: 3}

func render(diags diag.List) string {
	var b strings.Builder
	for _, d := range diags {
		b.WriteString(d.String() + "\n")
	}
	return b.String()
}

// report renders all that is found wrong with one comment.
func report(comment string) string {
	d, diags := Parse(comment, at)
	if d != nil {
		switch d.Verb {
		case VerbLimit:
			_, more := d.Limit()
			diags.Add(more...)
		case VerbWrapper:
			_, more := d.Wrapper()
			diags.Add(more...)
		}
	}
	diags.Sort()
	return render(diags)
}

// TestDiagnostics reads testdata/directives.txt: blocks of a comment, quoted if it
// holds what an editor would spoil, and the diagnostics it gets.
func TestDiagnostics(t *testing.T) {
	t.Parallel()
	golden(t, "testdata/directives.txt", func(old string) string {
		var b strings.Builder
		for i, block := range strings.Split(strings.TrimSpace(old), "\n\n") {
			if i > 0 {
				b.WriteString("\n")
			}
			for line := range strings.Lines(block + "\n") {
				switch {
				case strings.HasPrefix(line, "# "):
					b.WriteString(line)
				case strings.HasPrefix(line, "/"):
					b.WriteString(line + report(strings.TrimSuffix(line, "\n")))
				case strings.HasPrefix(line, `"`):
					comment, err := strconv.Unquote(strings.TrimSuffix(line, "\n"))
					if err != nil {
						t.Fatalf("%s: %v", line, err)
					}
					b.WriteString(line + report(comment))
				}
			}
		}
		return b.String()
	})
}

// TestCollectGolden runs testdata/collect/*.txtar: a source file, the targets in
// it and the diagnostics.
func TestCollectGolden(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/collect/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			golden(t, name, func(old string) string {
				ar := txtar.Parse([]byte(old))
				src := ar.Files[0].Data
				if strings.Contains(ar.Files[0].Name, "crlf") {
					src = []byte(strings.ReplaceAll(string(src), "\n", "\r\n"))
				}
				targets, diags := collect(ar.Files[0].Name, src)
				var b strings.Builder
				for _, target := range targets {
					b.WriteString(string(target.Kind) + " " + target.String() + "\n")
					for _, d := range target.Directives {
						b.WriteString("\t" + d.String() + "\n")
					}
				}
				ar.Files = append(ar.Files[:1],
					txtar.File{Name: "targets", Data: []byte(b.String())},
					txtar.File{Name: "diagnostics", Data: []byte(render(diags))})
				return string(txtar.Format(ar))
			})
		})
	}
}

// collect runs Collect on a file that may have syntax errors.
func collect(name string, src []byte) ([]*Target, diag.List) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if file == nil {
		return nil, diag.List{{Message: err.Error()}}
	}
	return Collect(fset, file, src)
}

// golden compares a file with what run makes of it; with -update it writes that.
func golden(t *testing.T, name string, run func(old string) string) {
	t.Helper()
	old, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	got := run(string(old))
	if got == string(old) {
		return
	}
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(string(old), "\n")
	for i := range max(len(gotLines), len(wantLines)) {
		g, w := line(gotLines, i), line(wantLines, i)
		if g != w {
			t.Fatalf("%s:%d:\n got %s\nwant %s\n(-update rewrites the file)", name, i+1, g, w)
		}
	}
}

func line(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(end)"
}
