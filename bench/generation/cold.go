package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// cold compares with go list where the build cache has what the module depends on,
// but none of its own packages, and ratelimitgen remembers nothing.
func (b *bench) cold(dir string) (err error) {
	base := filepath.Join(b.dir, "dependencies")
	dependencies, err := b.dependencies(dir)
	if err != nil {
		return err
	}
	in := func(cache string, args ...string) *exec.Cmd {
		cmd := b.newCommand(dir, args[0], args[1:]...)
		cmd.Env = append(cmd.Env, "GOCACHE="+cache, "RATELIMITGEN_CACHE="+filepath.Join(cache, "memory"))
		return cmd
	}
	if err := quietly(in(base, append([]string{"go", "build"}, dependencies...)...)); err != nil {
		return err
	}
	work, err := os.MkdirTemp(b.dir, "cold-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	number := 0
	measureIn := func(args ...string) (usage, error) {
		number++
		cache := filepath.Join(work, fmt.Sprint(number))
		if err := os.CopyFS(cache, os.DirFS(base)); err != nil {
			return usage{}, err
		}
		return measure(in(cache, args...))
	}
	// It compiles the module each time, so that once must do.
	list, err := measureIn(b.listExport(dir).Args...)
	if err != nil {
		return err
	}
	var runs []usage
	for range b.rounds {
		u, err := measureIn(filepath.Join(b.bin(), "ratelimitgen"), "./...")
		if err != nil {
			return err
		}
		runs = append(runs, u)
	}
	ours := median(runs)
	fmt.Printf("Cold: only the dependencies are in the build cache; go list once, ratelimitgen the median of %d runs, %s\n\n", b.rounds, load())
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
