// Generation measures what ratelimitgen costs on a large module, against a
// program that loads the same packages with syntax and types (see loadsyntax).
// Both run in turns with a warm build cache and up-to-date output; the figures
// are medians. CPU time is that of the program and all that it starts. It exits
// with status 1 if a target is missed.
//
// The module is written to a directory (see bigmodule) that is kept, so that the
// build cache serves the next measurement too.
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
	"strings"

	"github.com/ratelimitgen/ratelimitgen/bench/report"
)

// The most that ratelimitgen may use, in parts of what loadsyntax does.
const (
	cpuTarget    = 0.25
	memoryTarget = 0.15
)

func main() {
	root := flag.String("root", "..", "directory of the module github.com/ratelimitgen/ratelimitgen")
	dir := flag.String("dir", "../.tmp/bigmodule", "where the large module is written")
	rounds := flag.Int("rounds", 3, "how often each program is measured")
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

func run(ctx context.Context, root, dir string, rounds int) (met bool, err error) {
	bin, err := os.MkdirTemp("", "generation-")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(bin)) }()
	if dir, err = filepath.Abs(dir); err != nil {
		return false, err
	}
	err = command(ctx, root, "go", "build", "-o", bin+"/", "./cmd/ratelimitgen")
	if err == nil {
		err = command(ctx, filepath.Join(root, "bench"), "go", "build", "-o", bin+"/", "./bigmodule", "./loadsyntax")
	}
	if err == nil {
		err = remove(dir)
	}
	if err == nil {
		err = command(ctx, root, filepath.Join(bin, "bigmodule"), "-runtime", ".", dir)
	}
	if err != nil {
		return false, err
	}
	ratelimitgen := func() (usage, error) { return measure(ctx, dir, filepath.Join(bin, "ratelimitgen"), "./...") }
	loadsyntax := func() (usage, error) { return measure(ctx, dir, filepath.Join(bin, "loadsyntax")) }

	first, err := ratelimitgen()
	if err != nil {
		return false, err
	}
	written, err := outputs(dir)
	if err != nil {
		return false, err
	}
	fmt.Printf("Generation: 500 packages, 3000 files, %d outputs, medians of %d runs\n", written, rounds)
	fmt.Println("(compiling the packages once, so that the build cache is warm for both)")
	fmt.Println()
	if _, err := loadsyntax(); err != nil {
		return false, err
	}
	var ours, theirs []usage
	for range rounds {
		u, err := ratelimitgen()
		if err != nil {
			return false, err
		}
		ours = append(ours, u)
		if u, err = loadsyntax(); err != nil {
			return false, err
		}
		theirs = append(theirs, u)
	}
	return compare(first, median(ours), median(theirs))
}

// compare prints the table and reports whether the targets are met.
func compare(first, ours, theirs usage) (bool, error) {
	table := report.New("program", "CPU s", "wall s", "own peak MB", "children's peak MB")
	for _, row := range []struct {
		name string
		usage
	}{
		{"packages.Load, LoadSyntax", theirs},
		{"ratelimitgen, nothing to do", ours},
		{"ratelimitgen, first run", first},
	} {
		table.Add(row.name, fmt.Sprintf("%.2f", row.cpu), fmt.Sprintf("%.2f", row.wall), row.own.String(), row.children.String())
	}
	if err := table.Write(os.Stdout); err != nil {
		return false, err
	}
	fmt.Println()
	cpu := ours.cpu / theirs.cpu
	fmt.Println("CPU, ratio:       ", report.AtMost(cpu, cpuTarget))
	if ours.own == 0 || theirs.own == 0 {
		fmt.Println("own memory, ratio: not measured on this system")
		return cpu <= cpuTarget, nil
	}
	memory := float64(ours.own) / float64(theirs.own)
	fmt.Println("own memory, ratio:", report.AtMost(memory, memoryTarget))
	return cpu <= cpuTarget && memory <= memoryTarget, nil
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

// outputs counts the files that ratelimitgen wrote.
func outputs(dir string) (int, error) {
	names, err := filepath.Glob(filepath.Join(dir, "internal", "*", "*", "ratelimit_gen.go"))
	if err == nil && len(names) != 20 {
		err = fmt.Errorf("ratelimitgen wrote %d files, want 20", len(names))
	}
	return len(names), err
}

// command runs a program in dir; what it prints becomes part of the error if it
// fails.
func command(ctx context.Context, dir, name string, args ...string) error {
	var out bytes.Buffer
	cmd := newCommand(ctx, dir, name, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(name), err, out.String())
	}
	return nil
}

func newCommand(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	return cmd
}
