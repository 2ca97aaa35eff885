// Package load type-checks packages as far as their signatures go, and no
// further. It asks the go command for the graph of imports without building
// anything, takes packages outside of the main modules from their export data,
// and checks the others from source with their function bodies dropped. Of the
// graph only what the signatures mention is read, so the cost depends on the
// packages asked for and not on the tree that they live in.
//
// Packages that are only imported are outlined: their types, the exported fields of
// those, and constants are all that a signature and a key can depend on.
// Where that could be wrong (an embedded type promotes its methods, a key calls
// one), packages are taken in full; and whatever fails to check is checked once
// more with Config.Full before anybody hears of it.
//
// Packages that do not compile are loaded all the same: what is wrong in them is
// for the caller to judge, by the types it needs.
package load

import (
	"context"
	"fmt"
	"go/ast"
	"go/build"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// depth says how much of a package's source is kept.
type depth uint8

const (
	// outlined: exported types with their exported fields, and constants.
	outlined depth = iota
	// bodiless: everything but the bodies of functions.
	bodiless
	// whole: bodiless, with the full syntax kept beside it.
	whole
)

// Config says how to load.
type Config struct {
	// Dir is the directory in which patterns are resolved.
	Dir string
	// Tags are build tags, as for go build -tags.
	Tags string
	// Also are import paths that must be resolvable although nothing may import
	// them yet: what a later Package.Check needs.
	Also []string
	// Syntax reports whether the full syntax of a file of a loaded package is needed;
	// nil means that of all.
	Syntax func(filename string) bool
	// Full takes imported packages of the main modules in full, with functions,
	// methods and unexported fields.
	Full bool
	// Output reports whether a file is left out: what a former run wrote must not
	// influence this one.
	Output func(src []byte) bool
}

// Package is a loaded package.
type Package struct {
	Path      string
	Name      string
	Dir       string
	GoVersion string // of its module, like "go1.26", or ""
	// Types is never nil, but may be incomplete.
	Types *types.Package
	// Names are the files that the build constraints select, without files of ours.
	Names []string
	// Files is the full syntax, with comments, of those that Config.Syntax asks for.
	Files []*ast.File
	// Errors are what the type checker found.
	Errors []error

	signatures []*ast.File
	syntax     map[string]error // by file, what its parser says
	embedded   map[string]bool  // import paths of types that this package embeds
	ld         *loader
}

// Error is trouble with a package as a whole: it does not exist, or the go
// command cannot make sense of it.
type Error struct {
	Pos string // as the go command gives it: file:line:col, or ""
	Msg string
}

func (e *Error) Error() string {
	if e.Pos == "" || e.Pos == "-" {
		return e.Msg
	}
	return e.Pos + ": " + e.Msg
}

// Result is what Load found.
type Result struct {
	Fset     *token.FileSet
	Packages []*Package // sorted by directory
	Errors   []*Error

	ld *loader
}

// Unavailable returns why an import path cannot be imported, or nil.
func (r *Result) Unavailable(path string) error { return r.ld.failed[path] }

type loader struct {
	ctx      context.Context
	cfg      Config
	patterns []string
	fset     *token.FileSet
	graph    map[string]*packages.Package // by import path
	source   map[string]*Package          // checked or to be checked from source
	// imported holds the types of every package that was asked for.
	imported map[string]*types.Package
	exported map[string]string // export data files by import path
	failed   map[string]error
	checking map[string]bool // being checked from source, to find cycles
	resolved map[string]bool // seen by resolve
	// full is the same with Config.Full, once something needed it.
	full *Result
}

// Load loads the packages that patterns name. It returns an error if the go
// command cannot be run at all.
func Load(ctx context.Context, cfg Config, patterns ...string) (*Result, error) {
	ld := &loader{
		ctx:      ctx,
		cfg:      cfg,
		patterns: patterns,
		fset:     token.NewFileSet(),
		graph:    map[string]*packages.Package{},
		source:   map[string]*Package{},
		imported: map[string]*types.Package{"unsafe": types.Unsafe},
		exported: map[string]string{},
		failed:   map[string]error{},
		checking: map[string]bool{},
		resolved: map[string]bool{"unsafe": true, "C": true},
	}
	listed, err := ld.list(packages.NeedName|packages.NeedFiles|packages.NeedImports|packages.NeedDeps|packages.NeedModule,
		slices.Concat(patterns, cfg.Also))
	if err != nil {
		return nil, err
	}
	res := &Result{Fset: ld.fset, ld: ld}
	packages.Visit(listed, nil, func(p *packages.Package) { ld.graph[p.PkgPath] = p })
	for _, root := range listed {
		if slices.Contains(cfg.Also, root.PkgPath) {
			if len(root.Errors) > 0 {
				ld.failed[root.PkgPath] = &Error{Msg: root.Errors[0].Msg}
			}
			continue
		}
		// A package without files is nothing but its errors; others are judged by
		// their types.
		if len(root.GoFiles) == 0 {
			for _, e := range root.Errors {
				res.Errors = append(res.Errors, &Error{Pos: e.Pos, Msg: e.Msg})
			}
			continue
		}
		p, err := ld.parse(root, whole)
		if err != nil {
			return nil, err
		}
		res.Packages = append(res.Packages, p)
	}
	if err := ld.resolve(res.Packages, cfg.Also...); err != nil {
		return nil, err
	}
	for _, p := range res.Packages {
		ld.types(p)
	}
	slices.SortFunc(res.Packages, func(a, b *Package) int { return strings.Compare(a.Dir, b.Dir) })
	return res, nil
}

// Dirs returns the directories of those packages among patterns that belong to the
// main modules, sorted.
func Dirs(ctx context.Context, cfg Config, patterns ...string) ([]string, error) {
	ld := &loader{ctx: ctx, cfg: cfg, fset: token.NewFileSet()}
	pkgs, err := ld.list(packages.NeedName|packages.NeedFiles|packages.NeedModule, patterns)
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, p := range pkgs {
		if len(p.Errors) > 0 {
			return nil, &Error{Pos: p.Errors[0].Pos, Msg: p.Errors[0].Msg}
		}
		if fromSource(p) && p.Dir != "" {
			dirs = append(dirs, p.Dir)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs), nil
}

// list runs the go command. Its own failure is an error; that of a package is in
// the package.
func (ld *loader) list(mode packages.LoadMode, patterns []string) ([]*packages.Package, error) {
	var flags []string
	if ld.cfg.Tags != "" {
		flags = append(flags, "-tags="+ld.cfg.Tags)
	}
	pkgs, err := packages.Load(&packages.Config{
		Context:    ld.ctx,
		Mode:       mode,
		Dir:        ld.cfg.Dir,
		BuildFlags: flags,
		Fset:       ld.fset,
	}, patterns...)
	if ctxErr := ld.ctx.Err(); ctxErr != nil {
		return nil, ctxErr // go/packages does not wrap it
	}
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	return pkgs, nil
}

// parse reads the files of node.
func (ld *loader) parse(node *packages.Package, depth depth) (*Package, error) {
	if depth == outlined && ld.cfg.Full {
		depth = bodiless
	}
	p := &Package{
		Path:     node.PkgPath,
		Name:     node.Name,
		syntax:   map[string]error{},
		embedded: map[string]bool{},
		ld:       ld,
	}
	ld.source[node.PkgPath] = p
	if node.Module != nil && node.Module.GoVersion != "" {
		p.GoVersion = "go" + node.Module.GoVersion
	}
	for _, name := range node.GoFiles {
		if filepath.Ext(name) != ".go" {
			continue
		}
		p.Dir = filepath.Dir(name)
		src, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if ld.cfg.Output != nil && ld.cfg.Output(src) {
			continue
		}
		p.Names = append(p.Names, name)
		depth := depth
		if depth == whole && ld.cfg.Syntax != nil && !ld.cfg.Syntax(name) {
			depth = bodiless
		}
		full, sig, err := parseFile(ld.fset, name, src, depth, packageNames(node))
		if err != nil {
			p.syntax[name] = err
		}
		if sig == nil {
			continue
		}
		p.signatures = append(p.signatures, sig)
		if depth == whole {
			p.Files = append(p.Files, full)
		}
		if depth != outlined {
			for path := range embeddedPaths(sig, packageNames(node)) {
				p.embedded[ld.resolvePath(p.Path, path)] = true
			}
		}
	}
	if p.Name == "" && len(p.signatures) > 0 {
		p.Name = p.signatures[0].Name.Name
	}
	return p, nil
}

// packageNames returns a function that tells the name of the package at an import
// path of node, or "" if it is unknown.
func packageNames(node *packages.Package) func(path string) string {
	return func(path string) string {
		if dep := node.Imports[path]; dep != nil {
			return dep.Name
		}
		return ""
	}
}

// SyntaxError returns what is wrong with the syntax of a file of p, or nil.
func (p *Package) SyntaxError(name string) error { return p.syntax[name] }

func (ld *loader) config(p *Package, report func(error)) *types.Config {
	return &types.Config{
		IgnoreFuncBodies: true,
		FakeImportC:      true,
		Importer:         importer{ld, p},
		Sizes:            types.SizesFor("gc", build.Default.GOARCH),
		GoVersion:        p.GoVersion,
		Error:            report,
	}
}

// types computes the types of p.
func (ld *loader) types(p *Package) *types.Package {
	if p.Types != nil {
		return p.Types
	}
	ld.checking[p.Path] = true
	conf := ld.config(p, func(err error) { p.Errors = append(p.Errors, err) })
	pkg, _ := conf.Check(p.Path, ld.fset, p.signatures, nil)
	if pkg == nil {
		pkg = types.NewPackage(p.Path, p.Name)
	}
	p.Types = pkg
	ld.imported[p.Path] = pkg
	return pkg
}
