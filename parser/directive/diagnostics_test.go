package directive

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
)

var codeForm = regexp.MustCompile(`^[a-z]+(-[a-z]+)+$|^[a-z]+$`)

// declaredCodes finds the codes that the stages declare: constants named Code…, the
// first field of a rule, a field Code, and the second argument of the functions of
// a file errors.go.
func declaredCodes(t *testing.T) map[string]string {
	t.Helper()
	codes := map[string]string{}
	add := func(path string, e ast.Expr) {
		lit, ok := e.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return
		}
		if code, err := strconv.Unquote(lit.Value); err == nil && codeForm.MatchString(code) {
			codes[code] = path
		}
	}
	for _, root := range []string{"..", "../../generator"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.ValueSpec:
					for i, name := range n.Names {
						if strings.HasPrefix(name.Name, "Code") && i < len(n.Values) {
							add(path, n.Values[i])
						}
					}
				case *ast.CompositeLit:
					if id, ok := n.Type.(*ast.Ident); ok && id.Name == "rule" && len(n.Elts) > 0 {
						add(path, n.Elts[0])
					}
				case *ast.KeyValueExpr:
					if id, ok := n.Key.(*ast.Ident); ok && id.Name == "Code" {
						add(path, n.Value)
					}
				case *ast.CallExpr:
					if filepath.Base(path) == "errors.go" && len(n.Args) > 2 {
						add(path, n.Args[1])
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return codes
}

// documentedCodes reads docs/diagnostics.md: what is said of each code, and its
// example.
func documentedCodes(t *testing.T) map[string]documented {
	t.Helper()
	text, err := os.ReadFile("../../docs/diagnostics.md")
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]documented{}
	code := ""
	var entry documented
	for line := range strings.Lines(string(text) + "# end\n") {
		heading, isCode := strings.CutPrefix(line, "### `")
		example, isExample := strings.CutPrefix(line, "    ")
		switch {
		case strings.HasPrefix(line, "#"):
			if code != "" {
				if _, dup := codes[code]; dup {
					t.Errorf("%s is documented twice", code)
				}
				codes[code] = entry
			}
			code, entry = "", documented{}
			if isCode {
				code = strings.TrimSuffix(heading, "`\n")
			}
		case isExample:
			entry.example += example
		case strings.TrimSpace(line) == "":
			if entry.example != "" {
				entry.example += "\n"
			}
		default:
			entry.text += line
		}
	}
	return codes
}

type documented struct{ text, example string }

func TestEveryCodeIsDocumented(t *testing.T) {
	t.Parallel()
	declared, documented := declaredCodes(t), documentedCodes(t)
	for _, code := range slices.Sorted(maps.Keys(declared)) {
		switch entry, ok := documented[code]; {
		case !ok:
			t.Errorf("docs/diagnostics.md does not list %s (%s)", code, declared[code])
		case entry.text == "" || strings.TrimSpace(entry.example) == "":
			t.Errorf("docs/diagnostics.md says nothing of %s, or has no example", code)
		}
	}
	for _, code := range slices.Sorted(maps.Keys(documented)) {
		if declared[code] == "" {
			t.Errorf("docs/diagnostics.md lists %s, which nothing reports", code)
		}
	}
	if len(declared) < 80 {
		t.Errorf("only %d codes found", len(declared))
	}
}

// An example of a code of this package gives it.
func TestExamplesOfTheDiagnostics(t *testing.T) {
	t.Parallel()
	documented := documentedCodes(t)
	tested := 0
	for code, path := range declaredCodes(t) {
		example := documented[code].example
		// What stands in brackets says what cannot be shown.
		if filepath.Base(filepath.Dir(path)) != "directive" && path != filepath.Join("..", "directive", filepath.Base(path)) || strings.HasSuffix(strings.TrimSpace(example), ")") && !strings.Contains(example, "func") {
			continue
		}
		tested++
		if got := render(checkSource(example)); !strings.Contains(got, "["+code+"]\n") {
			t.Errorf("the example of %s gives\n%s", code, got)
		}
	}
	if tested < 44 {
		t.Errorf("only %d examples tested", tested)
	}
}

// checkSource reports what is wrong with the directives of a file, which is
// completed if it is only a part of one.
func checkSource(src string) diag.List {
	if !strings.Contains(src, "func ") {
		src = strings.TrimRight(src, "\n") + "\nfunc (T) M() error { return nil }\n"
	}
	if !strings.Contains(src, "package p") {
		src = "package p\n\n" + src
	}
	targets, diags := collect("f.go", []byte(src))
	var all []*Directive
	for _, target := range targets {
		all = append(all, target.Directives...)
	}
	diags.Add(Resolve(all)...)
	groups := map[string][]Limit{}
	for _, target := range targets {
		var limits []Limit
		for _, d := range target.Directives {
			if d.Verb != VerbLimit {
				continue
			}
			l, more := d.Limit()
			diags.Add(more...)
			if !more.HasErrors() {
				limits = append(limits, l)
				groups[l.Group] = append(groups[l.Group], l)
			}
		}
		diags.Add(CheckLimits(limits)...)
	}
	for name, limits := range groups {
		if name != "" {
			diags.Add(CheckGroup(limits)...)
		}
	}
	diags.Sort()
	return diags
}
