package load

import (
	"errors"
	"fmt"
	"go/types"
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
