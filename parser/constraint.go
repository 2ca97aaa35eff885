package parser

import (
	"go/ast"
	"go/build"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/ratelimitgen/ratelimitgen/parser/directive"
)

// constraintOf returns what a build must satisfy to have a file: what its name and its
// build lines say, and cgo if it imports "C"; nil for a file of every build.
func constraintOf(name string, src []byte) constraint.Expr {
	all := impliedBy(name)
	file, _ := parser.ParseFile(token.NewFileSet(), name, src, parser.ImportsOnly|parser.ParseComments)
	if file == nil {
		return and(all)
	}
	var plus []constraint.Expr
	var line constraint.Expr
	for _, group := range file.Comments {
		for _, c := range group.List {
			if c.Pos() >= file.Package {
				continue
			}
			switch x, err := constraint.Parse(c.Text); {
			case err != nil:
			case constraint.IsGoBuild(c.Text):
				line = x
			default:
				plus = append(plus, x)
			}
		}
	}
	if line != nil {
		all = append(all, line)
	} else {
		all = append(all, plus...)
	}
	for _, imp := range file.Imports {
		if imp.Path.Value == `"C"` {
			all = append(all, &constraint.TagExpr{Tag: "cgo"})
		}
	}
	return and(all)
}

// impliedBy returns the constraints that the name of a file holds, as the go command
// reads it: name_GOOS.go, name_GOARCH.go, name_GOOS_GOARCH.go.
func impliedBy(name string) []constraint.Expr {
	name, _, _ = strings.Cut(filepath.Base(name), ".")
	_, tail, ok := strings.Cut(name, "_")
	if !ok {
		return nil
	}
	words := strings.Split(strings.TrimSuffix(tail, "_test"), "_")
	n := len(words)
	tag := func(word string) constraint.Expr { return &constraint.TagExpr{Tag: word} }
	switch last := words[n-1]; {
	case n >= 2 && knownOS(words[n-2]) && knownArch(last):
		return []constraint.Expr{tag(words[n-2]), tag(last)}
	case knownOS(last), knownArch(last):
		return []constraint.Expr{tag(last)}
	}
	return nil
}

// knownOS and knownArch ask go/build, which has the lists: a word that is known keeps
// files whose name ends in it out of builds that do not have it, and an architecture
// lets the word before it count, too.
func knownOS(word string) bool {
	return known(word) && matches("x_linux_"+word+".go", "none", word)
}

func knownArch(word string) bool {
	return known(word) && !matches("x_linux_"+word+".go", "none", word)
}

func known(word string) bool { return !matches("x_"+word+".go", "none", "none") }

func matches(name, goos, goarch string) bool {
	ctx := build.Default
	ctx.GOOS, ctx.GOARCH = goos, goarch
	ctx.OpenFile = func(string) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("package p\n")), nil
	}
	match, err := ctx.MatchFile("", name)
	return err == nil && match
}

// and joins constraints, each once and in the order of their text, so that the
// order of files does not matter.
func and(all []constraint.Expr) constraint.Expr {
	var flat []constraint.Expr
	for _, x := range all {
		flat = append(flat, conjuncts(x)...)
	}
	slices.SortFunc(flat, func(a, b constraint.Expr) int { return strings.Compare(a.String(), b.String()) })
	flat = slices.CompactFunc(flat, func(a, b constraint.Expr) bool { return a.String() == b.String() })
	var whole constraint.Expr
	for _, x := range flat {
		if whole == nil {
			whole = x
		} else {
			whole = &constraint.AndExpr{X: whole, Y: x}
		}
	}
	return whole
}

func conjuncts(x constraint.Expr) []constraint.Expr {
	switch x := x.(type) {
	case nil:
		return nil
	case *constraint.AndExpr:
		return append(conjuncts(x.X), conjuncts(x.Y)...)
	}
	return []constraint.Expr{x}
}

// constraintAt returns the constraint of the file at pos, or nil.
func (b *builder) constraintAt(pos token.Pos) constraint.Expr {
	name := b.fset.PositionFor(pos, false).Filename
	x, known := b.constraints[name]
	if !known && name != "" {
		// A file that is gone meanwhile is reported by whoever reads it next.
		if src, err := os.ReadFile(name); err == nil {
			x = constraintOf(name, src)
		}
		b.constraints[name] = x
	}
	return x
}

// noteElsewhere notes the methods that a file of other builds declares.
func (b *builder) noteElsewhere(c constraint.Expr, file *ast.File) {
	if tag, ok := c.(*constraint.TagExpr); c == nil || ok && tag.Tag == "ignore" {
		return // it is part of no build, or of none that has the others
	}
	for _, d := range file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv == nil || len(fn.Recv.List) != 1 || !fn.Name.IsExported() {
			continue
		}
		name := directive.BaseName(fn.Recv.List[0].Type)
		b.elsewhere[name] = append(b.elsewhere[name], c)
	}
}

// constraintOfWrapper returns what a build must satisfy to have what is generated for
// a type or function: all files that declare it, its methods, and what its limits
// mention, and none of those that declare other methods.
func (b *builder) constraintOfWrapper(w *Wrapper, declared []types.Object) constraint.Expr {
	var all []constraint.Expr
	receivers := map[string]bool{}
	for _, obj := range append(declared, w.Source) {
		if obj.Pkg() != b.pkg.Types {
			continue
		}
		all = append(all, b.constraintAt(obj.Pos()))
		if fn, ok := obj.(*types.Func); ok {
			receivers[receiverName(fn)] = true
		}
	}
	for _, m := range w.Methods {
		for _, p := range m.Policies {
			all = append(all, p.constraints...)
			all = append(all, b.constraintsOfConstants(m, p)...)
		}
	}
	c := and(all)
	all = nil
	for _, name := range sortedKeys(receivers) {
		for _, other := range b.elsewhere[name] {
			if !excludes(c, other) {
				all = append(all, &constraint.NotExpr{X: other})
			}
		}
	}
	return and(append(all, c))
}

// constantName is what may be a constant in an expression. Literals match as well, so
// that nothing in them does, and what stands behind a dot with the dot.
var constantName = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|` + "`[^`]*`" + `|[.#]?[\pL_][\pL\pN_]*`)

// constraintsOfConstants returns what a build must satisfy to have the constants of the
// package that the expressions of p mention. They are looked for in the text, as
// arithmetic with constants leaves nothing but a value, which is that of this build.
// The name of a parameter means that.
func (b *builder) constraintsOfConstants(m *Method, p *Policy) []constraint.Expr {
	texts := []string{p.Key}
	for _, e := range p.exprs() {
		texts = append(texts, e.String())
	}
	var all []constraint.Expr
	for _, text := range texts {
		for _, name := range constantName.FindAllString(text, -1) {
			obj, ok := b.pkg.Types.Scope().Lookup(name).(*types.Const)
			if ok && !isParam(m.Sig, name) {
				all = append(all, b.constraintAt(obj.Pos()))
			}
		}
	}
	return all
}

// isParam reports whether sig has a parameter or result of a name.
func isParam(sig *types.Signature, name string) bool {
	for _, list := range []*types.Tuple{sig.Params(), sig.Results()} {
		for v := range list.Variables() {
			if v.Name() == name {
				return true
			}
		}
	}
	return false
}

// excludes reports whether no build satisfies both a and b. It errs on the other
// side where many tags are involved.
func excludes(a, b constraint.Expr) bool {
	tags := map[string]bool{}
	for _, x := range []constraint.Expr{a, b} {
		if x != nil {
			// The value does not matter, and both sides are evaluated.
			x.Eval(func(tag string) bool { tags[tag] = true; return true })
		}
	}
	var systems, archs, free []string
	for _, tag := range sortedKeys(tags) {
		switch {
		case knownOS(tag):
			systems = append(systems, tag)
		case knownArch(tag):
			archs = append(archs, tag)
		default:
			free = append(free, tag)
		}
	}
	if len(free) > 10 {
		return false
	}
	for _, goos := range append(systems, "another") {
		for _, goarch := range append(archs, "another") {
			for set := range 1 << len(free) {
				ok := func(tag string) bool {
					if i := slices.Index(free, tag); i >= 0 {
						return set>>i&1 == 1
					}
					return tag == goarch || slices.Contains(satisfiedBy(goos), tag)
				}
				if (a == nil || a.Eval(ok)) && (b == nil || b.Eval(ok)) {
					return false
				}
			}
		}
	}
	return true
}

// satisfiedBy lists the systems whose files a build for goos has.
func satisfiedBy(goos string) []string {
	switch goos {
	case "android":
		return []string{goos, "linux"}
	case "illumos":
		return []string{goos, "solaris"}
	case "ios":
		return []string{goos, "darwin"}
	}
	return []string{goos}
}

// mentionsC reports whether node names something of the pseudo-package C.
func mentionsC(node ast.Node) bool {
	found := false
	ast.Inspect(node, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok && id.Name == "C" {
				found = true
			}
		}
		_, body := n.(*ast.BlockStmt)
		return !body
	})
	return found
}
