package load

import (
	"context"
	"fmt"
	"go/token"
	"slices"

	"golang.org/x/tools/go/packages"
)

// listGraph lists the packages asked for and those needed besides, and notes the
// graph of their imports.
func (ld *loader) listGraph() ([]*packages.Package, error) {
	const mode = packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps | packages.NeedModule
	add := func(p *packages.Package) { ld.addToGraph(p) }
	if !ld.cfg.Copies {
		listed, err := ld.list(mode, slices.Concat(ld.patterns, ld.cfg.Also))
		packages.Visit(listed, nil, add)
		return listed, err
	}
	// What is needed may be copied as well, so the two have to be told apart.
	also, err := ld.list(mode, ld.cfg.Also)
	if err != nil {
		return nil, err
	}
	for _, p := range also {
		if len(p.Errors) > 0 {
			ld.failed[p.PkgPath] = &Error{Msg: p.Errors[0].Msg}
		}
	}
	listed, err := ld.list(mode, ld.patterns)
	packages.Visit(slices.Concat(also, listed), nil, add)
	// The type checker knows what is in unsafe, and builtin only looks like Go.
	return slices.DeleteFunc(listed, func(p *packages.Package) bool {
		return p.PkgPath == "unsafe" || p.PkgPath == "builtin"
	}), err
}

// notOfMain is what is wrong with a root that no main module has.
func notOfMain(root *packages.Package) *Error {
	return &Error{
		Pos: root.GoFiles[0] + ":1:1",
		Msg: fmt.Sprintf("package %s is not in the main module; ratelimitgen only writes to packages of main modules", root.PkgPath),
	}
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
		if ofMain(p) && p.Dir != "" {
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
		Env:        goCommandEnv(),
	}, patterns...)
	if ctxErr := ld.ctx.Err(); ctxErr != nil {
		return nil, ctxErr // go/packages does not wrap it
	}
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	return pkgs, nil
}
