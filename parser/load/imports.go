package load

import (
	"errors"
	"fmt"
	"go/ast"
	"go/types"
	"io/fs"
	"os"

	"golang.org/x/tools/go/gcexportdata"
)

// importer resolves the imports of one package.
type importer struct {
	ld   *loader
	from *Package
}

// Import implements types.Importer.
func (im importer) Import(path string) (*types.Package, error) {
	ld := im.ld
	path = ld.resolvePath(im.from.Path, path)
	if p := ld.source[path]; p != nil {
		if p.Types == nil && ld.checking[path] {
			return nil, fmt.Errorf("import cycle through %s", path)
		}
		return ld.types(p), nil
	}
	if pkg := ld.imported[path]; pkg != nil && pkg.Complete() {
		return pkg, nil
	}
	if err := ld.failed[path]; err != nil {
		return nil, err
	}
	pkg, err := ld.readExport(path)
	if err != nil {
		ld.failed[path] = err
	}
	return pkg, err
}

// readExport reads the types of a package from what the compiler left in the
// build cache.
func (ld *loader) readExport(path string) (pkg *types.Package, err error) {
	file := ld.exported[path]
	if file == "" {
		return nil, fmt.Errorf("no export data for %s", path)
	}
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		// What was remembered went away just now.
		if err := ld.askExports([]string{path}); err != nil {
			return nil, err
		}
		f, err = os.Open(ld.exported[path])
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	//lint:ignore SA1019 go list -export names the compiler's archives up to Go 1.26
	r, err := gcexportdata.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("export data of %s: %w", path, err)
	}
	pkg, err = gcexportdata.Read(r, ld.fset, ld.imported, path)
	if err != nil {
		return nil, fmt.Errorf("export data of %s does not fit this ratelimitgen (%w); build ratelimitgen with the Go toolchain that builds the module", path, err)
	}
	return pkg, nil
}

// DotImports returns the packages whose names the files of p have without a
// qualifier.
func (p *Package) DotImports() []*types.Package {
	var pkgs []*types.Package
	for _, f := range p.signatures {
		for _, spec := range f.Imports {
			if spec.Name == nil || spec.Name.Name != "." {
				continue
			}
			if pkg, err := (importer{p.ld, p}).Import(importPath(spec)); err == nil {
				pkgs = append(pkgs, pkg)
			}
		}
	}
	return pkgs
}

// Import returns the package that file, a file of p, calls name.
func (p *Package) Import(file *ast.File, name string) (*types.Package, error) {
	nameOf := p.ld.graph[p.Path].nameOf
	for _, spec := range file.Imports {
		path := importPath(spec)
		if spec.Name != nil && spec.Name.Name != name || spec.Name == nil && nameOf(path) != name {
			continue
		}
		// The signatures may have had no need for it.
		needs := &Package{Path: p.Path, imports: true, signatures: []*ast.File{{Imports: []*ast.ImportSpec{spec}}}}
		if err := p.ld.resolve([]*Package{needs}); err != nil {
			return nil, err
		}
		return importer{p.ld, p}.Import(path)
	}
	return nil, fmt.Errorf("this file does not import a package %s", name)
}
