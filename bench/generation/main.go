// Generation measures what ratelimitgen costs on large modules, and prints it
// beside its targets and beside what other programs cost on the same module:
//
//   - one that loads the packages with syntax and types (see loadsyntax), and go
//     list, with a warm build cache;
//   - go list with a build cache that has the dependencies of the module, but none of
//     its own packages, as in continuous integration;
//   - generators of mocks and of conversions, each for one type in every package in
//     which ratelimitgen has something to do (see peers.go).
//
// It also shows how the cost grows with the module, and what there is to pay where
// nobody uses directives. Programs that are compared run in turns; the figures are
// medians. CPU time is that of the program and all that it starts. It exits with
// status 1 if a target is missed.
//
// The modules are written to a directory (see bigmodule) that is kept, and so is a
// build cache, for the next measurement.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ratelimitgen/ratelimitgen/bench/report"
)

// The targets.
const (
	cpuTarget    = 0.12 // of what loadsyntax uses
	memoryTarget = 0.08 // of what loadsyntax uses
	listTarget   = 1.5  // of the CPU time of go list -export -deps
	coldTarget   = 0.1  // of the wall time of go list -export -deps, with a cold cache
	plainTarget  = 0.1  // CPU seconds, where there are no directives
	growthTarget = 1.2  // CPU time for each package, of that in a module of a quarter of the size
)

func main() {
	root := flag.String("root", "..", "directory of the module github.com/ratelimitgen/ratelimitgen")
	dir := flag.String("dir", "../.tmp/generation", "where modules, programs and a build cache are kept")
	rounds := flag.Int("rounds", 5, "how often each program is measured")
	flag.Parse()
	if *rounds < 1 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	met, err := run(ctx, *root, *dir, *rounds)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "generation:", err)
		os.Exit(2)
	}
	if !met {
		os.Exit(1)
	}
}

// bench is what all measurements share.
type bench struct {
	ctx    context.Context
	root   string // of the module github.com/ratelimitgen/ratelimitgen
	dir    string
	rounds int
	met    bool // all targets so far
}

func run(ctx context.Context, root, dir string, rounds int) (met bool, err error) {
	b := &bench{ctx: ctx, rounds: rounds, met: true}
	if b.root, err = filepath.Abs(root); err != nil {
		return false, err
	}
	if b.dir, err = filepath.Abs(dir); err != nil {
		return false, err
	}
	for dir, packages := range map[string][]string{
		b.root:                         {"./cmd/ratelimitgen"},
		filepath.Join(b.root, "bench"): {"./bigmodule", "./loadsyntax"},
	} {
		cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-o", b.bin() + "/"}, packages...)...)
		cmd.Dir = dir
		if err := quietly(cmd); err != nil {
			return false, err
		}
	}
	if err := os.RemoveAll(b.memory()); err != nil {
		return false, err
	}
	module, err := b.module("bigmodule", 500, 20)
	if err != nil {
		return false, err
	}
	var ours usage
	for i, measurement := range []func() error{
		func() error { return b.cold(module) },
		func() (err error) { ours, err = b.warm(module); return err },
		b.plain,
		func() error { return b.growth(ours) },
		func() error { return b.peers(module, ours) },
	} {
		if i > 0 {
			fmt.Println()
		}
		if err := measurement(); err != nil {
			return false, err
		}
	}
	return b.met, nil
}

// bin is where the programs are.
func (b *bench) bin() string { return filepath.Join(b.dir, "bin") }

// memory is what ratelimitgen gets for its RATELIMITGEN_CACHE.
func (b *bench) memory() string { return filepath.Join(b.dir, "memory") }

// target prints a figure beside its target.
func (b *bench) target(what string, value, target float64) {
	fmt.Printf("%s: %s\n", what, report.AtMost(value, target))
	b.met = b.met && value <= target
}

// module writes a module with so many packages, limited of them with directives, and
// lets ratelimitgen generate its output. It returns the directory.
func (b *bench) module(name string, packages, limited int) (dir string, err error) {
	dir = filepath.Join(b.dir, name)
	if err := remove(dir); err != nil {
		return "", err
	}
	err = b.command(b.root, filepath.Join(b.bin(), "bigmodule"), "-runtime", ".",
		"-packages", strconv.Itoa(packages), "-limited", strconv.Itoa(limited), dir)
	if err != nil {
		return "", err
	}
	if _, err := b.ratelimitgen(dir); err != nil {
		return "", err
	}
	return dir, outputs(dir, limited)
}

func (b *bench) ratelimitgen(dir string) (usage, error) {
	return measure(b.newCommand(dir, filepath.Join(b.bin(), "ratelimitgen"), "./..."))
}

// warm compares with programs that load the same packages, in a build cache that has
// all of them. It returns the figures of ratelimitgen.
func (b *bench) warm(dir string) (ours usage, err error) {
	fmt.Printf("Warm, all is in the build cache: medians of %d runs, %s\n\n", b.rounds, load())
	loadsyntax := func() (usage, error) { return measure(b.newCommand(dir, filepath.Join(b.bin(), "loadsyntax"))) }
	// So that nobody's first run in this state counts.
	if _, err := loadsyntax(); err != nil {
		return usage{}, err
	}
	if _, err := b.ratelimitgen(dir); err != nil {
		return usage{}, err
	}
	medians, err := b.inTurns(
		loadsyntax,
		func() (usage, error) { return b.ratelimitgen(dir) },
		func() (usage, error) { return measure(b.listExport(dir)) },
	)
	if err != nil {
		return usage{}, err
	}
	theirs, ours, list := medians[0], medians[1], medians[2]
	err = printUsage(
		row{"packages.Load, LoadSyntax", theirs},
		row{"go list -export -deps", list},
		row{"ratelimitgen", ours},
	)
	if err != nil {
		return usage{}, err
	}
	b.target("CPU, of LoadSyntax", ours.cpu/theirs.cpu, cpuTarget)
	b.target("CPU, of go list   ", ours.cpu/list.cpu, listTarget)
	if ours.own == 0 || theirs.own == 0 {
		fmt.Println("own memory: not measured on this system")
		return ours, nil
	}
	b.target("own memory, of LoadSyntax", float64(ours.own)/float64(theirs.own), memoryTarget)
	return ours, nil
}

// hits are the patterns of the packages with directives.
func hits(dir string) []string {
	var patterns []string
	for _, name := range generated(dir) {
		rel, err := filepath.Rel(dir, filepath.Dir(name))
		if err != nil {
			panic(err) // generated returns names below dir
		}
		patterns = append(patterns, "./"+filepath.ToSlash(rel))
	}
	return patterns
}

// listExport is what loads the packages with directives by themselves: go list for
// their export data and that of all they import.
func (b *bench) listExport(dir string) *exec.Cmd {
	return b.newCommand(dir, "go", append([]string{"list", "-export", "-deps", "-f", "{{.Export}}"}, hits(dir)...)...)
}

// inTurns runs each program once a round and returns the medians.
func (b *bench) inTurns(programs ...func() (usage, error)) ([]usage, error) {
	runs := make([][]usage, len(programs))
	for range b.rounds {
		for i, program := range programs {
			u, err := program()
			if err != nil {
				return nil, err
			}
			runs[i] = append(runs[i], u)
		}
	}
	medians := make([]usage, len(programs))
	for i := range runs {
		medians[i] = median(runs[i])
	}
	return medians, nil
}

// remove removes the module that an earlier run wrote to dir, and nothing else.
func remove(dir string) error {
	gomod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !strings.HasPrefix(string(gomod), "module example.com/bigmodule\n"):
		return fmt.Errorf("%s holds another module", dir)
	}
	return os.RemoveAll(dir)
}

// generated returns the names of the files that ratelimitgen wrote.
func generated(dir string) []string {
	names, err := filepath.Glob(filepath.Join(dir, "internal", "*", "*", "ratelimit_gen.go"))
	if err != nil {
		panic(err) // the pattern is right
	}
	return names
}

// outputs makes sure that ratelimitgen wrote so many files.
func outputs(dir string, want int) error {
	if got := len(generated(dir)); got != want {
		return fmt.Errorf("ratelimitgen wrote %d files, want %d", got, want)
	}
	return nil
}

// command runs a program in dir; what it prints becomes part of the error if it
// fails.
func (b *bench) command(dir, name string, args ...string) error {
	return quietly(b.newCommand(dir, name, args...))
}

func quietly(cmd *exec.Cmd) error {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, out.String())
	}
	return nil
}

func (b *bench) newCommand(dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(b.ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOCACHE="+b.cache(), "RATELIMITGEN_CACHE="+b.memory())
	return cmd
}
