package load

import (
	"fmt"
	"maps"
	"slices"

	"golang.org/x/tools/go/packages"
)

// resolve parses what the signatures of roots need, transitively, and then finds the
// export data of everything outside of the main modules.
func (ld *loader) resolve(roots []*Package, also ...string) error {
	var outside []string
	queue := slices.Clone(roots)
	visit := func(paths []string, depth depth) error {
		for _, path := range paths {
			if ld.resolved[path] {
				continue
			}
			ld.resolved[path] = true
			node := ld.graph[path]
			switch {
			case ld.failed[path] != nil:
			case node == nil:
				ld.failed[path] = fmt.Errorf("package %s is not among the dependencies of the module", path)
			case ld.source[path] != nil:
			case ld.fromSource(node):
				p, err := ld.parse(node, depth)
				if err != nil {
					return err
				}
				queue = append(queue, p)
			default:
				outside = append(outside, path)
			}
		}
		return nil
	}
	for {
		// What is needed in full comes first, so that nothing is outlined that turns
		// out to be needed in full.
		if err := visit(also, bodiless); err != nil {
			return err
		}
		for i := 0; i < len(queue); i++ {
			if err := visit(sortedKeys(queue[i].embedded), bodiless); err != nil {
				return err
			}
		}
		for len(queue) > 0 {
			p := queue[0]
			queue = queue[1:]
			mentioned := ld.mentions(p)
			paths := sortedKeys(mentioned)
			if err := visit(paths, outlined); err != nil {
				return err
			}
			for _, path := range paths {
				q := ld.source[path]
				if q == nil {
					continue
				}
				q, more, err := ld.take(q, mentioned[path])
				if err != nil {
					return err
				}
				if more {
					queue = append(queue, q)
				}
			}
		}
		if len(outside) == 0 {
			return nil
		}
		slices.Sort(outside)
		if err := ld.findExports(outside); err != nil {
			return err
		}
		// What does not compile has no export data, but its signatures may be fine.
		for _, path := range outside {
			if ld.exported[path] != "" {
				continue
			}
			p, err := ld.parse(ld.graph[path], bodiless)
			if err != nil {
				return err
			}
			queue = append(queue, p)
		}
		outside = nil
	}
}

// findExports finds the export files of packages.
func (ld *loader) findExports(paths []string) error {
	var unknown []string
	for _, path := range paths {
		if file := ld.exports.recall(path); file != "" {
			ld.exported[path] = file
		} else {
			unknown = append(unknown, path)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return ld.askExports(unknown)
}

// askExports asks the go command for the export files of packages, which compiles
// what is not in the build cache.
func (ld *loader) askExports(paths []string) error {
	pkgs, err := ld.list(packages.NeedName|packages.NeedExportFile, paths)
	if err != nil {
		return err
	}
	found := map[string]string{}
	for _, p := range pkgs {
		if p.ExportFile != "" {
			found[p.PkgPath] = p.ExportFile
		}
	}
	maps.Copy(ld.exported, found)
	ld.exports.remember(found)
	return nil
}

// resolvePath returns the package path that an import in the package from means.
func (ld *loader) resolvePath(from, path string) string {
	if node := ld.graph[from]; node != nil {
		if dep := node.imported(path); dep != nil {
			return dep.path
		}
	}
	return path
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
