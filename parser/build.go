package parser

import (
	"cmp"
	"errors"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/parser/directive"
	"github.com/ratelimitgen/ratelimitgen/parser/load"
	"github.com/ratelimitgen/ratelimitgen/parser/scan"
)

// builder makes the model of one package.
type builder struct {
	res     *Result
	loaded  *load.Result
	fset    *token.FileSet
	pkg     *load.Package
	dir     *scan.Dir
	drafts  map[string]*draft // by name of the source type
	groups  map[string][]directive.Limit
	common  []common          // problems that several methods may have
	imports []string          // see importNames
	all     map[string]*draft // of all packages, by import path, dot and name

	constraints map[string]constraint.Expr // of files
	// elsewhere are the constraints of the files of other builds that declare methods,
	// by the name of the type.
	elsewhere map[string][]constraint.Expr
}

// newBuilder returns a builder of the model of pkg, without directives.
func newBuilder(loaded *load.Result, pkg *load.Package) *builder {
	return &builder{
		loaded:      loaded,
		fset:        loaded.Fset,
		pkg:         pkg,
		drafts:      map[string]*draft{},
		groups:      map[string][]directive.Limit{},
		all:         map[string]*draft{},
		constraints: map[string]constraint.Expr{},
		elsewhere:   map[string][]constraint.Expr{},
	}
}

// draft is what the directives say about one type.
type draft struct {
	name    string
	file    *ast.File // that holds the directives on the type
	limits  []*directive.Directive
	wrapper *directive.Directive
	methods map[string]*methodDraft
	firstOf *directive.Directive // see first
	covers  bool                 // a limit applies to some method
}

// methodDraft is what the directives say about one method.
type methodDraft struct {
	limits []*directive.Directive
	off    *directive.Directive
	file   string // that holds the directives
	decl   ast.Node
}

// first is the directive that problems of the whole type are reported at.
func (d *draft) first() *directive.Directive {
	if d.firstOf == nil {
		d.firstOf = d.findFirst()
	}
	return d.firstOf
}

func (d *draft) findFirst() *directive.Directive {
	if d.wrapper != nil {
		return d.wrapper
	}
	if len(d.limits) > 0 {
		return d.limits[0]
	}
	for _, name := range sortedKeys(d.methods) {
		if dir := d.methods[name].first(); dir != nil {
			return dir
		}
	}
	return nil
}

// first is the directive that problems of the method are reported at, or nil.
func (m *methodDraft) first() *directive.Directive {
	if len(m.limits) > 0 {
		return m.limits[0]
	}
	return m.off
}

// build returns the model of the package, or nil if there is nothing to generate
// or the package is not there at all.
func (b *builder) build() (*Package, error) {
	if b.pkg == nil || len(b.drafts) == 0 {
		return nil, nil
	}
	before := len(b.res.Diags)
	p, err := b.model()
	if err != nil {
		return nil, err
	}
	for _, name := range sortedKeys(b.drafts) {
		if w := b.wrapper(b.drafts[name]); w != nil {
			p.Wrappers = append(p.Wrappers, w)
		}
	}
	b.checkFunctionFallbacks(p)
	b.reportCommon()
	for _, name := range sortedKeys(b.groups) {
		b.res.Diags.Add(directive.CheckGroup(b.groups[name])...)
	}
	b.checkNames(p)
	if b.res.Diags[before:].HasErrors() {
		// Something may be missing because another file of the package is broken.
		for _, name := range b.pkg.Names {
			var list scanner.ErrorList // what else can be wrong, the go command has said
			if err := b.pkg.SyntaxError(name); errors.As(err, &list) {
				b.res.Diags.Add(errSyntax(name, err))
			}
		}
	}
	slices.SortFunc(p.Wrappers, func(a, b *Wrapper) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Constructor, b.Constructor))
	})
	if len(p.Wrappers) == 0 {
		return nil, nil
	}
	return p, nil
}

// model returns the model of the package without any wrapper.
func (b *builder) model() (*Package, error) {
	declared, err := b.declared()
	if err != nil {
		return nil, err
	}
	return &Package{
		Path:     b.pkg.Path,
		Name:     b.pkg.Name,
		Dir:      b.pkg.Dir,
		Standard: b.pkg.Standard,
		Types:    b.pkg.Types,
		Length:   b.loaded.Length,
		Declared: declared,

		ImportNames: b.importAliases(),
		Check:       b.pkg.Check,
	}, nil
}

// collect reads the directives of all files of the directory. Files that are not
// part of the package are read as well: what is written wrongly in them should
// come out here and not on another platform.
func (b *builder) collect() {
	var directives []*directive.Directive
	for _, f := range b.dir.Files {
		name := filepath.Join(b.dir.Path, f.Name)
		file := b.syntax(name)
		inPackage := file != nil
		fset := b.fset
		var err error
		if file == nil {
			fset = token.NewFileSet()
			file, err = parser.ParseFile(fset, name, f.Src, parser.ParseComments|parser.SkipObjectResolution)
			if file != nil {
				err = load.Unadjusted(fset.File(file.FileStart), err)
			}
		} else {
			err = b.pkg.SyntaxError(name)
		}
		if err != nil {
			// What the file says of directives may be anything.
			b.res.Diags.Add(ofBuild(!f.Excluded, errSyntax(name, err))...)
			continue
		}
		targets, diags := directive.Collect(fset, file, f.Src)
		b.res.Diags.Add(ofBuild(!f.Excluded, diags...)...)
		for _, t := range targets {
			first := t.Directives[0]
			switch {
			case strings.HasSuffix(f.Name, "_test.go"):
				b.res.Diags.Add(ofBuild(!f.Excluded, errTestFile(first))...)
			case !inPackage && b.leftOut(&f):
				b.res.Diags.Add(errExcludedFile(f.Name, file.Name.Name, first.Pos))
			case !inPackage:
				// Why the package is not there, or the file no part of it, is reported for
				// itself.
			default:
				directives = append(directives, t.Directives...)
				if t.Kind != directive.Package {
					b.add(t, f.Name, file)
				}
			}
		}
	}
	b.res.Diags.Add(directive.Resolve(directives)...)
}

// leftOut reports whether f is no part of the package because the go command
// passes over it, and not because something is wrong.
func (b *builder) leftOut(f *scan.File) bool {
	if f.Excluded || slices.Contains(b.loaded.Excluded, b.dir.Path) {
		return true
	}
	return b.pkg != nil && b.pkg.SyntaxError(filepath.Join(b.dir.Path, f.Name)) == nil
}

// ofBuild returns problems of a file of the build as they are, and those of another file
// as warnings.
func ofBuild(included bool, diags ...diag.Diagnostic) diag.List {
	if !included {
		for i := range diags {
			diags[i].Severity = diag.Warning
		}
	}
	return diags
}

// syntax returns the loaded syntax of a file, or nil.
func (b *builder) syntax(name string) *ast.File {
	if b.pkg == nil {
		return nil
	}
	for _, f := range b.pkg.Files {
		if b.fset.PositionFor(f.FileStart, false).Filename == name {
			return f
		}
	}
	return nil
}

// add notes what a target's directives say.
func (b *builder) add(t *directive.Target, fileName string, file *ast.File) {
	name := t.Type
	if name == "" {
		name = t.Name
	} else if alias, ok := b.pkg.Types.Scope().Lookup(name).(*types.TypeName); ok && alias.IsAlias() {
		// A method may be declared on an alias of its type.
		if n, ok := types.Unalias(alias.Type()).(*types.Named); ok && n.Obj().Pkg() == b.pkg.Types {
			name = n.Obj().Name()
		}
	}
	d := b.drafts[name]
	if d == nil {
		d = &draft{name: name, methods: map[string]*methodDraft{}}
		b.drafts[name] = d
		b.all[b.pkg.Path+"."+name] = d
	}
	var m *methodDraft
	if t.Kind == directive.TypeDecl {
		d.file = file
	} else {
		if d.methods[t.Name] != nil && t.Name != "_" {
			b.res.Diags.Add(errTwice(t.Directives[0], t.Name))
			return
		}
		m = &methodDraft{file: fileName, decl: t.Node}
		d.methods[t.Name] = m
	}
	for _, dir := range t.Directives {
		switch {
		case dir.Verb == directive.VerbWrapper:
			d.wrapper = dir
		case dir.Verb == directive.VerbOff:
			m.off = dir
		case m != nil:
			m.limits = append(m.limits, dir)
		default:
			d.limits = append(d.limits, dir)
		}
	}
}

// declared lists every identifier that a file of the directory declares or imports
// as a name: what is generated can have none of them at package scope.
func (b *builder) declared() (map[string]bool, error) {
	names := map[string]bool{}
	scope := b.pkg.Types.Scope()
	for _, name := range scope.Names() {
		if !b.loaded.IsStub(scope.Lookup(name)) {
			names[name] = true
		}
	}
	for _, imp := range b.pkg.DotImports() {
		for _, name := range imp.Scope().Names() {
			names[name] = true
		}
	}
	loaded := map[string]bool{}
	for _, name := range b.pkg.Names {
		loaded[filepath.Base(name)] = true
	}
	entries, err := os.ReadDir(b.pkg.Dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		path := filepath.Join(b.pkg.Dir, e.Name())
		info, err := os.Stat(path)
		if filepath.Ext(path) != ".go" || err != nil || !info.Mode().IsRegular() {
			continue
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		mode := parser.SkipObjectResolution
		if loaded[e.Name()] {
			mode |= parser.ImportsOnly // the scope has the rest
		}
		file, _ := parser.ParseFile(token.NewFileSet(), "", src, mode)
		if file == nil || scan.Ours(src) || file.Name.Name != b.pkg.Name {
			continue
		}
		for _, spec := range file.Imports {
			if spec.Name != nil {
				names[spec.Name.Name] = true
			}
		}
		for _, d := range file.Decls {
			for _, id := range declaredBy(d) {
				names[id.Name] = true
			}
		}
		if !loaded[e.Name()] && !strings.HasSuffix(e.Name(), "_test.go") {
			b.noteElsewhere(constraintOf(path, src), file)
		}
	}
	return names, nil
}

// declaredBy lists the identifiers that d declares at package scope.
func declaredBy(d ast.Decl) []*ast.Ident {
	var ids []*ast.Ident
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			ids = append(ids, d.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				ids = append(ids, s.Name)
			case *ast.ValueSpec:
				ids = append(ids, s.Names...)
			}
		}
	}
	return ids
}

// importAliases returns what files with directives call the packages that they import by
// another name than these have.
func (b *builder) importAliases() map[string]string {
	names := map[string]string{}
	for _, f := range b.pkg.Files {
		for _, spec := range f.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil || spec.Name == nil || spec.Name.Name == "_" || spec.Name.Name == "." {
				continue
			}
			if _, known := names[path]; !known {
				names[path] = spec.Name.Name
			}
		}
	}
	return names
}

// checkNames reports wrappers whose names are taken by the package or each other, and
// what the package declares as another thing than generated code means by it.
func (b *builder) checkNames(p *Package) {
	made := map[string]string{}
	for _, name := range []string{"nil", "panic", "true"} {
		if len(p.Wrappers) > 0 && p.Declared[name] {
			b.res.Diags.Add(errShadowed(b.drafts[p.Wrappers[0].Source.Name()].first(), name))
		}
	}
	for _, w := range p.Wrappers {
		first := b.drafts[w.Source.Name()].first()
		for _, n := range []struct{ name, option, example string }{
			{w.Name, "name", "Limited" + w.Source.Name()}, // "" for a function
			{w.Constructor, "constructor", "NewLimited" + w.Source.Name()},
		} {
			switch other, ok := made[n.name]; {
			case n.name == "":
			case b.foreignOutput(n.name) != "":
				b.res.Diags.Add(ForeignOutput(b.foreignOutput(n.name)))
			case p.Declared[n.name]:
				b.res.Diags.Add(errNameTaken(first, n.name, n.option, n.example))
			case ok:
				b.res.Diags.Add(errSameWrapper(first, n.name, n.option, other))
			}
			made[n.name] = w.Source.Name()
		}
		b.checkMethodNames(w)
	}
}

// checkMethodNames reports the methods of w that the package declares itself: it may have
// others on the wrapper.
func (b *builder) checkMethodNames(w *Wrapper) {
	if w.OfFunction() {
		return
	}
	for _, file := range b.pkg.Signatures() {
		for _, d := range file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || len(fn.Recv.List) != 1 || directive.BaseName(fn.Recv.List[0].Type) != w.Name {
				continue
			}
			if !slices.ContainsFunc(w.Methods, func(m *Method) bool { return m.Name == fn.Name.Name }) {
				continue
			}
			pos := b.fset.PositionFor(fn.Name.Pos(), false)
			if scan.IsOutputName(filepath.Base(pos.Filename)) {
				b.res.Diags.Add(ForeignOutput(pos.Filename))
				continue
			}
			b.res.Diags.Add(errMethodTaken(diag.Pos{File: pos.Filename, Line: pos.Line, Col: pos.Column}, w, fn.Name.Name))
		}
	}
}

// foreignOutput returns the file that declares name, if it stands where output should go,
// and otherwise "". It is not one of ours, or the name would not be taken.
func (b *builder) foreignOutput(name string) string {
	obj := b.pkg.Types.Scope().Lookup(name)
	if obj == nil || b.loaded.IsStub(obj) {
		return ""
	}
	if file := b.fset.PositionFor(obj.Pos(), false).Filename; scan.IsOutputName(filepath.Base(file)) {
		return file
	}
	return ""
}

// errorIn returns what the type checker said about the lines of node, a declaration
// whose body is not checked, or "".
func (b *builder) errorIn(node ast.Node) string {
	from := b.fset.PositionFor(node.Pos(), false)
	to := b.fset.PositionFor(node.End(), false)
	for _, err := range b.pkg.Errors {
		var te types.Error
		if !errors.As(err, &te) {
			continue
		}
		at := te.Fset.PositionFor(te.Pos, false)
		// A message that begins with a tab goes on with another.
		if at.Filename == from.Filename && at.Line >= from.Line && at.Line <= to.Line && !strings.HasPrefix(te.Msg, "\t") {
			return strings.ReplaceAll(te.Msg, b.pkg.Dir+string(filepath.Separator), "")
		}
	}
	return ""
}

// brokenBecause returns what the type checker said about the lines of node, or else
// about the imports of its file.
func (b *builder) brokenBecause(node ast.Node) string {
	if msg := b.errorIn(node); msg != "" {
		return msg
	}
	file := b.fset.PositionFor(node.Pos(), false).Filename
	for _, err := range b.pkg.Errors {
		var te types.Error
		if errors.As(err, &te) && te.Fset.PositionFor(te.Pos, false).Filename == file && strings.HasPrefix(te.Msg, "could not import") {
			return te.Msg
		}
	}
	if mentionsC(node) {
		return "a type of cgo has no name outside of the file that declares it"
	}
	return ""
}
