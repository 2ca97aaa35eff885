package main

import (
	"flag"
	"fmt"
	"path/filepath"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/ratelimitgen/ratelimitgen/generator"
)

// outcomeFlags are the flags that say what is made of the difference between the
// tree and the directives.
type outcomeFlags struct {
	diff    bool // of check
	dryRun  bool // of generation
	verbose bool
}

func (f *outcomeFlags) register(flags *flag.FlagSet, check bool) {
	flags.BoolVar(&f.verbose, "v", false, "")
	if check {
		flags.BoolVar(&f.diff, "diff", false, "")
	} else {
		flags.BoolVar(&f.dryRun, "n", false, "")
	}
}

// report lists what check found.
func (c *command) report(dir string, changes []generator.Change, withDiff bool) int {
	for _, ch := range changes {
		name := relative(dir, ch.Path)
		fmt.Fprintf(c.stdout, "%s: %s\n", name, ch.Kind)
		if withDiff {
			fmt.Fprintf(c.stdout, "%s", unified(filepath.ToSlash(name), &ch))
		}
	}
	if len(changes) > 0 {
		fmt.Fprintln(c.stderr, "ratelimitgen: generated files differ from the directives; run ratelimitgen with the same packages")
		return exitProblem
	}
	return exitDone
}

// unified is the change as a diff that patch -p1 and git apply understand.
func unified(name string, ch *generator.Change) []byte {
	from, to := "a/"+name, "b/"+name
	switch ch.Kind {
	case generator.Missing:
		from = "/dev/null"
	case generator.Orphaned:
		to = "/dev/null"
	}
	return diff.Diff(from, ch.Old, to, ch.File.Content)
}

// apply makes the changes, removes what killed runs left behind, and lists both, or
// only lists them.
func (c *command) apply(dir string, changes []generator.Change, leftovers []string, dryRun bool) int {
	wrote, removed := "wrote", "removed"
	if dryRun {
		wrote, removed = "would write", "would remove"
	} else if err := generator.Apply(changes); err != nil {
		return c.trouble(err)
	}
	for _, ch := range changes {
		verb := wrote
		if ch.Kind == generator.Orphaned {
			verb = removed
		}
		fmt.Fprintf(c.stdout, "%s %s\n", verb, relative(dir, ch.Path))
	}
	if !dryRun {
		if err := generator.RemoveLeftovers(leftovers); err != nil {
			return c.trouble(err)
		}
	}
	for _, path := range leftovers {
		fmt.Fprintf(c.stdout, "%s %s\n", removed, relative(dir, path))
	}
	return exitDone
}
