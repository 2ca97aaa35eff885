// Package load type-checks packages as far as their signatures go, and no
// further. It asks the go command for the graph of imports without building
// anything, takes packages outside of the main modules from their export data
// (unless they depend on the main modules themselves, or have none), and checks the
// others from source with their function bodies dropped. Of the graph only what the
// signatures mention is read, so the cost depends on the packages asked for and not
// on the tree that they live in.
//
// # Outlines
//
// Of a package that is only imported, the outline is taken: its types, constants
// and the exported methods, but no functions, variables and unexported methods, and
// of those only what is in the same file as something that is mentioned by those who
// import it, or by what was taken of it already. Of the imports it keeps those that
// exported and embedded fields, interfaces, type parameters and constants mention.
// An unexported field or an exported method that mentions another package gives way
// to a placeholder. What fails to check is checked once more with Config.Full before
// anybody hears of it, so it does no harm that an outline knows less. It must never
// answer a question in another way than the package in full does:
//
//   - What a selector means depends on the names of fields and methods at each
//     depth. Of the exported ones all are there, and every embedded field is. Those
//     that are not exported have no meaning outside of their package.
//   - All files that declare methods of a type that is there are taken, and all of the
//     package where that cannot be told: a method may be declared on an alias, and a
//     file may not be understood.
//   - A method with a placeholder for its signature takes a parameter of a type of
//     which there are no values, so no call of it is right, and no interface has it.
//   - Methods that are promoted to a type of a package that was asked for must have
//     their signatures: a package is not outlined if it has a type that is embedded
//     there, or is what a type there is defined as, and so on through what that
//     embeds.
//   - A struct type with a placeholder has a field whose name no source has, so it
//     is not identical to a struct type without a name, to or from which it could be
//     assigned. Those are never changed themselves.
//   - A struct type with a placeholder can only be compared if the package in full
//     says so: the placeholder cannot, unless it stands for pointers, channels and
//     interfaces alone.
//   - Constants and the lengths of arrays are computed from constants, from lengths
//     and from sizes. Constants that are mentioned are there. A package that calls len
//     or cap for them, which may be about a variable or an unexported field, is not outlined.
//     Where anything calls unsafe.Sizeof or the like, nothing is.
//   - Names that dot imports bring are those of the file. A package that a package
//     in full imports so is not outlined.
//   - A name that is not in the outline could stand for something outer instead,
//     which can only be a predeclared type or constant; that the package in full has
//     a function or variable of its name makes it an error there.
//   - What depends on something that is not in the outline has a type that does not
//     resolve, and the type checker takes anything for that. Package.Check refuses
//     output that uses such a thing.
//
// Sizes are those of the platform that the go command builds for. A type that
// depends on the platform is taken as it is there.
//
// Packages that do not compile are loaded all the same: what is wrong in them is
// for the caller to judge, by the types it needs.
package load

import (
	"bytes"
	"context"
	"errors"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// depth says how much of a package's source is kept.
type depth uint8

const (
	// outlined: what the package comment says.
	outlined depth = iota
	// bodiless: everything but the bodies of functions.
	bodiless
	// whole: bodiless, with the comments kept beside it.
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
	// Syntax reports whether the syntax of a file of a loaded package is needed with its
	// comments; nil means that of all.
	Syntax func(filename string) bool
	// Full takes imported packages in full where they are checked from source, without
	// outlines.
	Full bool
	// Stubs are the sources, by directory, that stand for output which signatures
	// mention: types without methods.
	Stubs map[string][]byte
	// Copies takes the packages that are loaded from wherever they are, each as if a
	// copy of it, at another path, were in the main module: what is generated for a
	// package can then be checked although the generated code imports it.
	Copies bool
	// Remember is the absolute path of a directory in which the names of export files
	// are kept from one run to the next; nothing is kept if it is empty. It is made if
	// it is not there, holds some hundred bytes for each package that was taken from
	// export data in the last 30 days, and may be removed at any time.
	Remember string
	// Output reports whether a file of a loaded package is left out: what a former run
	// wrote must not influence this one. It is asked with nil for what is gone since the
	// go command listed it, as another run may have removed it.
	Output func(name string, src []byte) bool
}

// Package is a loaded package.
type Package struct {
	Path      string
	Name      string
	Dir       string
	GoVersion string // of its module, like "go1.26", or ""
	Standard  bool   // it is of the standard library
	// Types is never nil, but may be incomplete.
	Types *types.Package
	// Names are the files that the build constraints select, without files of ours.
	Names []string
	// Files is the syntax, with comments, of those that Config.Syntax asks for. Function
	// bodies are empty.
	Files []*ast.File
	// Errors are what the type checker found.
	Errors []error

	depth      depth
	clause     token.Pos     // of the name in the first file, if one was parsed
	unread     []*unreadFile // of an outline, what nothing was needed of so far
	noted      int           // how many of signatures mentions has seen
	imports    bool          // stands for imports of which any name may be needed
	signatures []*ast.File
	stub       *ast.File        // the last of the signatures, or nil
	syntax     map[string]error // by file, why it is not known in full
	conflicts  []*Error         // files of other packages
	embedded   map[string]bool  // import paths of types that this package embeds
	arrays     []*ast.ArrayType // whose lengths are expressions
	copied     bool             // see Config.Copies
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
	// Excluded are the directories of packages that were asked for and of which build
	// constraints leave out every Go file.
	Excluded []string

	ld *loader
}

// Unavailable returns why an import path cannot be imported, or nil.
func (r *Result) Unavailable(path string) error { return r.ld.failed[path] }

type loader struct {
	ctx      context.Context
	cfg      Config
	patterns []string
	fset     *token.FileSet
	graph    map[string]*node    // by import path
	source   map[string]*Package // checked or to be checked from source
	// imported holds the types of every package that was asked for.
	imported map[string]*types.Package
	exported map[string]string // export data files by import path
	exports  *exports
	failed   map[string]error
	checking map[string]bool // being checked from source, to find cycles
	resolved map[string]bool // seen by resolve
	foreign  map[string]bool // outside of the main modules, but depending on them
	sizes    types.Sizes
	lengths  map[*types.Array]length // that are written as expressions
	troubled bool                    // a package that was checked has errors
	content  bytes.Buffer            // of the file that is being read
	// full is the same with Config.Full, once something needed it.
	full *Result
}

// errSized is that an outline does not do: something depends on sizes.
var errSized = errors.New("a type or constant depends on unsafe.Sizeof or the like, which an outline cannot tell")

// errMeasured is that an outline does not do for one package: something depends on a
// length.
var errMeasured = errors.New("a type or constant depends on a length, which an outline cannot tell")

// Load loads the packages that patterns name. It returns an error if the go
// command cannot be run at all.
func Load(ctx context.Context, cfg Config, patterns ...string) (*Result, error) {
	res, err := cfg.load(ctx, patterns)
	if errors.Is(err, errSized) {
		cfg.Full = true
		return cfg.load(ctx, patterns)
	}
	return res, err
}

func (cfg Config) load(ctx context.Context, patterns []string) (*Result, error) {
	ld := &loader{
		ctx:      ctx,
		cfg:      cfg,
		patterns: patterns,
		fset:     token.NewFileSet(),
		graph:    map[string]*node{},
		source:   map[string]*Package{},
		imported: map[string]*types.Package{"unsafe": types.Unsafe},
		exported: map[string]string{},
		failed:   map[string]error{},
		foreign:  map[string]bool{},
		checking: map[string]bool{},
		resolved: map[string]bool{"unsafe": true, "C": true},
		lengths:  map[*types.Array]length{},
	}
	env, err := goEnv(ctx, cfg.Dir)
	if err != nil {
		return nil, err
	}
	if ld.sizes, err = env.sizes(); err != nil {
		return nil, err
	}
	ld.exports = newExports(cfg.Remember, env, cfg.Tags, ld.graph)
	listed, err := ld.listGraph()
	if err != nil {
		return nil, err
	}
	res := &Result{Fset: ld.fset, ld: ld}
	for _, root := range listed {
		if !cfg.Copies && slices.Contains(cfg.Also, root.path) {
			if len(root.errors) > 0 {
				ld.failed[root.path] = &Error{Msg: root.errors[0].Msg}
			}
			continue
		}
		// A package without files is nothing but its errors; others are judged by
		// their types.
		if root.excluded {
			res.Excluded = append(res.Excluded, root.dir)
			continue
		}
		if len(root.goFiles) == 0 {
			for i := range root.errors {
				e := &root.errors[i]
				e.Msg = ld.shortened(e.Msg)
				res.Errors = append(res.Errors, e)
			}
			continue
		}
		if !cfg.Copies && !root.ofMain() {
			res.Errors = append(res.Errors, notOfMain(root))
			continue
		}
		p, err := ld.parse(root, whole)
		if err != nil {
			return nil, err
		}
		res.Errors = append(res.Errors, p.conflicts...)
		res.Packages = append(res.Packages, p)
	}
	if err := ld.resolve(res.Packages, cfg.Also...); err != nil {
		return nil, err
	}
	for _, p := range res.Packages {
		ld.types(p)
	}
	ld.content = bytes.Buffer{}
	slices.SortFunc(res.Packages, func(a, b *Package) int { return strings.Compare(a.Dir, b.Dir) })
	return res, nil
}

// TypeErrors returns what the type checker found in all packages that were checked
// from source, in no order.
func (r *Result) TypeErrors() []error {
	var errs []error
	for _, p := range r.ld.source {
		errs = append(errs, p.Errors...)
	}
	return errs
}

func (ld *loader) position(pos token.Pos) token.Position { return ld.fset.PositionFor(pos, false) }

// SyntaxError returns what is wrong with the syntax of a file of p, or nil.
func (p *Package) SyntaxError(name string) error { return p.syntax[name] }

func (ld *loader) config(p *Package, report func(error)) *types.Config {
	return &types.Config{
		IgnoreFuncBodies: true,
		FakeImportC:      true,
		Importer:         importer{ld, p},
		Sizes:            ld.sizes,
		GoVersion:        p.GoVersion,
		Error:            report,
	}
}

// types computes the types of p.
func (ld *loader) types(p *Package) *types.Package {
	if p.Types != nil {
		return p.Types
	}
	path := p.typesPath()
	ld.checking[path] = true
	conf := ld.config(p, func(err error) {
		p.Errors = append(p.Errors, err)
		ld.troubled = true
	})
	var info *types.Info
	if len(p.arrays) > 0 {
		info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	}
	pkg, _ := conf.Check(path, ld.fset, p.signatures, info)
	if info != nil {
		ld.noteLengths(p.arrays, info)
	}
	if p.depth != whole && !ld.troubled {
		// Only what does not resolve is looked for in there, and all that p depends on
		// has been checked.
		p.signatures, p.stub = nil, nil
	}
	if pkg == nil {
		pkg = types.NewPackage(path, p.Name)
	}
	p.Types = pkg
	ld.imported[path] = pkg
	return pkg
}
