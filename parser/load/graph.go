package load

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// node is a package in the graph of imports. There are many that nothing is read of,
// so it holds only what may be asked of one.
type node struct {
	path    string // as the go command knows it
	name    string
	dir     string
	goFiles []string         // names in dir, or absolute
	others  []string         // files in other languages, in the same way
	imports []*node          // sorted by path
	renamed map[string]*node // imports by what the source calls them, if it is not the path
	module  *goModule        // nil in the standard library
	errors  []Error
	// excluded: there are Go files, and build constraints leave all of them out. That is
	// among the errors.
	excluded bool
}

// goModule is what the go command says of a module.
type goModule struct {
	Path      string
	Version   string
	GoVersion string
	Main      bool
	Replace   *goModule
}

// imported returns what an import of a path in the source of n means, or nil.
func (n *node) imported(path string) *node {
	if dep := n.renamed[path]; dep != nil {
		return dep
	}
	i, ok := slices.BinarySearchFunc(n.imports, path, func(dep *node, path string) int { return strings.Compare(dep.path, path) })
	if !ok {
		return nil
	}
	return n.imports[i]
}

// addImport notes that n imports dep.
func (n *node) addImport(dep *node) {
	i, ok := slices.BinarySearchFunc(n.imports, dep.path, func(d *node, path string) int { return strings.Compare(d.path, path) })
	if !ok {
		n.imports = slices.Insert(n.imports, i, dep)
	}
}

// rename notes that path, in the source of n, means dep.
func (n *node) rename(path string, dep *node) {
	if n.renamed == nil {
		n.renamed = map[string]*node{}
	}
	n.renamed[path] = dep
}

// file returns the absolute name of a file of n.
func (n *node) file(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(n.dir, name)
}

// ofMain reports whether n belongs to a main module.
func (n *node) ofMain() bool { return n.module != nil && n.module.Main }

// nameOf tells the name of the package at an import path, or "" if it is unknown.
func (n *node) nameOf(path string) string {
	// A name that the go command has doubts about may be that of a left-out file.
	if dep := n.imported(path); dep != nil && len(dep.errors) == 0 {
		return dep.name
	}
	return ""
}

// addToGraph adds n, whose imports have been added before.
func (ld *loader) addToGraph(n *node) {
	ld.graph[n.path] = n
	if !n.ofMain() {
		// What is renamed is among the imports.
		for _, dep := range n.imports {
			if dep.ofMain() || ld.foreign[dep.path] {
				ld.foreign[n.path] = true
			}
		}
	}
	if n.name == "" && len(n.errors) > 0 {
		// Such as that no module provides it, and how to get one.
		ld.failed[n.path] = errors.New(strings.Join(strings.Fields(n.errors[0].Msg), " "))
	}
}

// fromSource reports whether n is checked from source: packages of the main
// modules are, since nothing of them need be compiled for that, and so is what
// depends on one of those, since its export data would speak of another package of
// the same path.
func (ld *loader) fromSource(n *node) bool { return n.ofMain() || ld.foreign[n.path] }

// nodes turns what go/packages has listed into nodes.
type nodes map[*packages.Package]*node

// of returns the node for p. Those of its imports are there.
func (ns nodes) of(p *packages.Package) *node {
	n := &node{
		path:    p.PkgPath,
		name:    p.Name,
		dir:     p.Dir,
		goFiles: p.GoFiles,
		others:  p.OtherFiles,
		module:  moduleOf(p.Module),
	}
	for _, e := range p.Errors {
		n.errors = append(n.errors, Error{Pos: e.Pos, Msg: e.Msg})
	}
	n.excluded = len(p.GoFiles) == 0 && len(p.Errors) == 1 && slices.ContainsFunc(p.IgnoredFiles, func(name string) bool { return filepath.Ext(name) == ".go" })
	for path, dep := range p.Imports {
		d := ns[dep]
		if d == nil {
			continue // it imports p itself in the end, which is among the errors
		}
		n.addImport(d)
		if path != d.path {
			n.rename(path, d)
		}
	}
	ns[p] = n
	return n
}

func moduleOf(m *packages.Module) *goModule {
	if m == nil {
		return nil
	}
	return &goModule{Path: m.Path, Version: m.Version, GoVersion: m.GoVersion, Main: m.Main, Replace: moduleOf(m.Replace)}
}
