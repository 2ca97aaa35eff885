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
func (ld *loader) listGraph() ([]*node, error) {
	if !ld.cfg.Copies {
		return ld.listDeps(slices.Concat(ld.patterns, ld.cfg.Also))
	}
	// What is needed may be copied as well, so the two have to be told apart.
	also, err := ld.listDeps(ld.cfg.Also)
	if err != nil {
		return nil, err
	}
	for _, n := range also {
		if len(n.errors) > 0 {
			ld.failed[n.path] = &Error{Msg: n.errors[0].Msg}
		}
	}
	listed, err := ld.listDeps(ld.patterns)
	// The type checker knows what is in unsafe, and builtin only looks like Go.
	return slices.DeleteFunc(listed, func(n *node) bool {
		return n.path == "unsafe" || n.path == "builtin"
	}), err
}

// listDeps lists packages and adds them and all that they import to the graph.
func (ld *loader) listDeps(patterns []string) ([]*node, error) {
	if roots, all, ok := ld.goList(patterns); ok {
		for _, n := range all {
			ld.addToGraph(n)
		}
		return roots, nil
	}
	const mode = packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps | packages.NeedModule
	listed, err := ld.list(mode, patterns)
	ns := nodes{}
	packages.Visit(listed, nil, func(p *packages.Package) { ld.addToGraph(ns.of(p)) })
	roots := make([]*node, len(listed))
	for i, p := range listed {
		roots[i] = ns[p]
	}
	return roots, err
}

// notOfMain is what is wrong with a root that no main module has.
func notOfMain(root *node) *Error {
	return &Error{
		Pos: root.file(root.goFiles[0]) + ":1:1",
		Msg: fmt.Sprintf("package %s is not in the main module; ratelimitgen only writes to packages of main modules", root.path),
	}
}

// Dirs returns the directories of those packages among patterns that belong to the
// main modules, sorted. Of the others it returns those that a pattern names by their
// import path: the path of the module, or "" for the standard library.
func Dirs(ctx context.Context, cfg Config, patterns ...string) (dirs []string, others map[string]string, err error) {
	ld := &loader{ctx: ctx, cfg: cfg, fset: token.NewFileSet()}
	pkgs, err := ld.list(packages.NeedName|packages.NeedFiles|packages.NeedModule, patterns)
	if err != nil {
		return nil, nil, err
	}
	others = map[string]string{}
	for _, p := range pkgs {
		if len(p.Errors) > 0 {
			return nil, nil, &Error{Pos: p.Errors[0].Pos, Msg: ld.shortened(p.Errors[0].Msg)}
		}
		switch m := p.Module; {
		case m != nil && m.Main:
			if p.Dir != "" {
				dirs = append(dirs, p.Dir)
			}
		case !slices.Contains(patterns, p.PkgPath):
		case m != nil:
			others[p.PkgPath] = m.Path
		default:
			others[p.PkgPath] = ""
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs), others, nil
}

// list runs the go command. Its own failure is an error; that of a package is in
// the package.
func (ld *loader) list(mode packages.LoadMode, patterns []string) ([]*packages.Package, error) {
	pkgs, err := packages.Load(&packages.Config{
		Context:    ld.ctx,
		Mode:       mode,
		Dir:        ld.cfg.Dir,
		BuildFlags: ld.buildFlags(),
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

func (ld *loader) buildFlags() []string {
	if ld.cfg.Tags == "" {
		return nil
	}
	return []string{"-tags=" + ld.cfg.Tags}
}
