package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// cache is the build cache of all measurements. They begin with one that holds what
// the module depends on, and nothing of its own packages.
func (b *bench) cache() string { return filepath.Join(b.dir, "cache") }

// cold compares with go list where ratelimitgen remembers nothing, and the build
// cache has the dependencies only. It leaves all of the module in the build cache.
func (b *bench) cold(dir string) error {
	dependencies, err := b.dependencies(dir)
	if err != nil {
		return err
	}
	base := filepath.Join(b.dir, "dependencies")
	build := b.newCommand(dir, "go", append([]string{"build"}, dependencies...)...)
	build.Env = append(build.Env, "GOCACHE="+base)
	if err := quietly(build); err != nil {
		return err
	}
	forget := func() error {
		for _, name := range []string{b.cache(), b.memory()} {
			if err := os.RemoveAll(name); err != nil {
				return err
			}
		}
		return os.CopyFS(b.cache(), os.DirFS(base))
	}
	medians, err := b.inTurns(func() (usage, error) {
		if err := forget(); err != nil {
			return usage{}, err
		}
		return b.ratelimitgen(dir)
	})
	if err != nil {
		return err
	}
	if err := forget(); err != nil {
		return err
	}
	// It compiles the module each time, so that once must do.
	list, err := measure(b.listExport(dir))
	if err != nil {
		return err
	}
	ours := medians[0]
	fmt.Printf("Generation: 500 packages, 3000 files, 20 outputs, %s\n", load())
	fmt.Printf("Cold, only the dependencies are in the build cache: go list once, ratelimitgen the median of %d runs\n\n", b.rounds)
	if err := printUsage(row{"go list -export -deps", list}, row{"ratelimitgen", ours}); err != nil {
		return err
	}
	b.target("wall, of go list", ours.wall/list.wall, coldTarget)
	return nil
}

// dependencies returns the import paths of all that the module imports from
// elsewhere.
func (b *bench) dependencies(dir string) ([]string, error) {
	cmd := b.newCommand(dir, "go", "list", "-deps", "-f", "{{if not (and .Module .Module.Main)}}{{.ImportPath}}{{end}}", "./...")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	return strings.Fields(string(out)), nil
}
