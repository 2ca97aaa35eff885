package generator

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"math/rand/v2"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/bools"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"

	rlparser "github.com/ratelimitgen/ratelimitgen/parser"
	"github.com/ratelimitgen/ratelimitgen/parser/keyexpr"
)

// conditions writes random conditions with few names and constants, so that many say
// something twice.
type conditions struct{ *rand.Rand }

func (r conditions) of(words ...string) string { return words[r.IntN(len(words))] }

func (r conditions) write(depth int) string {
	if depth > 0 && r.IntN(4) > 0 {
		op := r.of(" and ", " or ")
		x := r.write(depth-1) + op + r.write(depth-1)
		switch r.IntN(4) {
		case 0:
			return "not (" + x + ")"
		case 1:
			return x
		}
		return "(" + x + ")"
	}
	n := r.of("n", "req.N", "len(req.Tags)", "req.Acct.Parent.Notes[n]", "last(req.Tags)", "req.Quota[req.Region]")
	c, d := r.of("1", "2", "4", "shards", "max(1, 2)", "req.D"), r.of("1", "2", "4", "shards")
	if n == "req.Acct.Parent.Notes[n]" {
		c, d = "'a'", r.of("'b'", "id", "req.User", "'a'")
	}
	return r.of(
		n+" == "+c, c+" == "+n, n+" != "+c, c+" != "+n, n+" < "+c, c+" > "+n, "not ("+n+" == "+c+")",
		n+" in ["+c+"]", n+" in ["+c+", "+d+"]", n+" not in ["+c+"]", n+" not in ["+c+", "+d+"]",
		"req.Admin", "req == nil", "req.Acct != nil", "req.Acct == nil", "any(req.Tags, # == 'a' or # == 'b')", "id in req.Tags", "req.Wipe()",
		"req.Acct.ID == req.Acct.Parent.ID", "user == 'a'", "user != nil", "user == nil", "user != ''", "req.Acct?.ID != nil", "req.Acct?.Parent == nil", "req.Acct?.Parent?.ID != nil", "req.Tags[0] != nil", "request.header('X') == 'a'", "request.header('X') != nil", "ip != nil",
	)
}

func TestConditionsAreSilentForVet(t *testing.T) {
	t.Parallel()
	src := keySource + "\nfunc main() {}\n"
	pkg := keyPackage(t, src)
	f, m, scope := keyTarget(t, pkg, "Service", "Do")
	r := conditions{rand.New(rand.NewPCG(3, 4))}
	var sources []string
	var exprs []*keyexpr.Expr
	texts := []string{
		"n in [req.D] and req.N < 1",
		"req.Acct != nil and not ((req == nil and req.Acct == nil) or (request.header('X') != nil and ip != nil))",
		"((not ('a' > req.Acct.Parent.Notes[n] and 4 != n) or (req.Acct != nil and 4 != len(req.Tags))) or len(req.Tags) != 4)",
		"id in ['a', 'a']", "n in [1, 2] or n == 1", "n in [1, 2] or n in [2, 3]", "n == 1 and 1 == n", "n == shards and n == 4",
		"user != nil and user != ''", "user == nil or request.user == ''", "req.Acct != nil or req.Acct?.ID != nil", "req.Acct == nil and req.Acct?.ID == nil",
		"req.Acct?.ID != nil or req.Acct?.Parent != nil", "req.Acct?.Parent != nil or req.Acct?.Parent?.ID != nil", "req.Acct?.Parent?.ID == nil and req.Acct?.Parent == nil",
		"req.Tags[0] != nil and len(req.Tags) > 0", "req.Tags[0] != nil or len(req.Tags) > 0", "user != nil and (user != '' and user != nil)",
	}
	for range 4000 {
		texts = append(texts, r.write(1+r.IntN(3)))
	}
	for _, text := range texts {
		if e, _ := keyexpr.ParseCondition(text, scope); e != nil {
			sources, exprs = append(sources, text), append(exprs, e)
			keyImports(f.imports, &rlparser.Policy{When: e})
		}
	}
	if len(exprs) < 500 {
		t.Fatalf("only %d conditions were accepted", len(exprs))
	}
	f.imports.addType(m.Sig)
	f.imports.allot(f.scope)
	var out bytes.Buffer
	out.WriteString("package main\n\n" + f.imports.decl())
	for i, e := range exprs {
		decl, _ := f.condFunc(m, fmt.Sprintf("when%d", i), e)
		var fn bytes.Buffer
		if err := decl.Render(&fn); err != nil {
			t.Fatalf("%s: %v", sources[i], err)
		}
		fmt.Fprintf(&out, "// %s\n%s\n\n", sources[i], fn.String())
	}
	reports := vetBools(t, pkg.Path(), src, string(tidied(out.Bytes(), declaredIn(pkg))))
	for i, report := range reports {
		if i > 10 {
			break
		}
		t.Error(report)
	}
}

// vetBools runs the analyzer of go vet, and of go test, that finds operands which say
// something twice, and returns what it reports.
func vetBools(t *testing.T, path string, sources ...string) []string {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, src := range sources {
		file, err := parser.ParseFile(fset, "key.go", src, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	info := &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{},
		Defs: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{},
	}
	conf := types.Config{Importer: exportData(t)}
	pkg, err := conf.Check(path, fset, files, info)
	if err != nil {
		t.Fatal(err)
	}
	var reports []string
	pass := &analysis.Pass{
		Analyzer: bools.Analyzer, Fset: fset, Files: files, Pkg: pkg, TypesInfo: info,
		ResultOf: map[*analysis.Analyzer]any{inspect.Analyzer: inspector.New(files)},
		Report: func(d analysis.Diagnostic) {
			var fn bytes.Buffer
			for _, file := range files {
				for _, decl := range file.Decls {
					if f, ok := decl.(*ast.FuncDecl); ok && f.Pos() <= d.Pos && d.Pos < f.End() && f.Doc != nil {
						fn.WriteString(f.Doc.Text())
					}
				}
			}
			reports = append(reports, fmt.Sprintf("%s: %s", bytes.TrimSpace(fn.Bytes()), d.Message))
		},
	}
	if _, err := bools.Analyzer.Run(pass); err != nil {
		t.Fatal(err)
	}
	return reports
}
