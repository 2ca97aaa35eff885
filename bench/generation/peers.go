package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// peer is another generator. It generates something for one type in each of the
// packages with directives: a mock of the interface Orders, or a conversion of a
// Response to a Summary.
type peer struct {
	name   string
	module string // what go install gets, with its version
	// prepare writes the configuration; nil if there is none.
	prepare func(dir string, packages []string) error
	// runs are the arguments of the runs that it takes for packages, which are written
	// like ./internal/a/a1.
	runs func(packages []string) [][]string
}

// out is the directory in the module for what peers write. Patterns leave it out.
const out = "_peers"

// peers are those that can be installed with go install. Each is used in the fastest
// way that it has: all packages in one run if that is possible, and mockgen reads one
// file instead of loading the package.
var peers = []peer{
	{
		name:    "mockery, one run",
		module:  "github.com/vektra/mockery/v3@v3.9.1",
		prepare: mockeryConfig,
		runs:    func([]string) [][]string { return [][]string{{"--config", out + "/mockery.yml"}} },
	},
	{
		name:   "moq, a run for each package",
		module: "github.com/matryer/moq@v0.8.1",
		runs: eachPackage(func(pkg, name string) []string {
			return []string{"-pkg", "mocks", "-out", out + "/moq/" + name + ".go", pkg, "Orders"}
		}),
	},
	{
		name:   "counterfeiter, a run for each package",
		module: "github.com/maxbrunsfeld/counterfeiter/v6@v6.14.0",
		runs: eachPackage(func(pkg, name string) []string {
			return []string{"-o", out + "/counterfeiter/" + name + ".go", pkg, "Orders"}
		}),
	},
	{
		name:   "mockgen -source, a run for each package",
		module: "go.uber.org/mock/mockgen@v0.6.0",
		runs: eachPackage(func(pkg, name string) []string {
			return []string{"-package", "mocks", "-source", pkg + "/service.go", "-destination", out + "/mockgen/" + name + ".go"}
		}),
	},
	{
		name:   "goverter, one run",
		module: "github.com/jmattheis/goverter/cmd/goverter@v1.11.1",
		// Without a build tag of its own, so that it finds the packages in the build cache.
		runs: func(packages []string) [][]string {
			return [][]string{append([]string{"gen", "-build-tags", "", "-output-constraint", ""}, packages...)}
		},
	},
}

func eachPackage(args func(pkg, name string) []string) func([]string) [][]string {
	return func(packages []string) [][]string {
		var runs [][]string
		for _, pkg := range packages {
			runs = append(runs, args(pkg, filepath.Base(pkg)))
		}
		return runs
	}
}

func mockeryConfig(dir string, packages []string) error {
	var b strings.Builder
	fmt.Fprintf(&b, `dir: %s/mockery/{{.SrcPackageName}}
filename: mocks.go
pkgname: mocks
template: testify
force-file-write: true
packages:
`, out)
	for _, pkg := range packages {
		fmt.Fprintf(&b, "  example.com/bigmodule/%s:\n    interfaces:\n      Orders: {}\n", strings.TrimPrefix(pkg, "./"))
	}
	return os.WriteFile(filepath.Join(dir, out, "mockery.yml"), []byte(b.String()), 0o600)
}

// peers measures other generators on the module, each once: most take several runs
// already. What cannot be installed is left out.
func (b *bench) peers(dir string, ours usage) error {
	packages := hits(dir)
	rows := []row{{"ratelimitgen, one run", ours}}
	for _, p := range peers {
		bin, err := b.install(p.module)
		if err != nil {
			fmt.Fprintf(os.Stderr, "generation: %s is left out: %v\n", p.module, err)
			continue
		}
		u, err := b.peer(p, bin, dir, packages)
		if err != nil {
			return err
		}
		rows = append(rows, row{p.name + ", " + p.module[strings.LastIndex(p.module, "@")+1:], u})
	}
	fmt.Printf("Other generators, for one type in each of %d packages, once, %s\n\n", len(packages), load())
	return printUsage(rows...)
}

// install installs a program of a module at a version, and returns its name.
func (b *bench) install(module string) (string, error) {
	path, version, _ := strings.Cut(module, "@")
	bin := filepath.Join(b.dir, "peers", strings.ReplaceAll(path, "/", "_")+"@"+version)
	cmd := b.newCommand(b.dir, "go", "install", module)
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOBIN="+bin, "GOFLAGS=")
	if err := quietly(cmd); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(bin)
	if err == nil && len(entries) != 1 {
		err = fmt.Errorf("%s holds %d programs", bin, len(entries))
	}
	if err != nil {
		return "", err
	}
	return filepath.Join(bin, entries[0].Name()), nil
}

// peer measures one generator.
func (b *bench) peer(p peer, bin, dir string, packages []string) (usage, error) {
	// Not all of them make directories.
	for _, name := range []string{"moq", "counterfeiter", "mockgen"} {
		if err := os.MkdirAll(filepath.Join(dir, out, name), 0o750); err != nil {
			return usage{}, err
		}
	}
	if p.prepare != nil {
		if err := p.prepare(dir, packages); err != nil {
			return usage{}, err
		}
	}
	var total usage
	for _, args := range p.runs(packages) {
		u, err := measure(b.newCommand(dir, bin, args...))
		if err != nil {
			return usage{}, err
		}
		total = total.and(u)
	}
	return total, nil
}
