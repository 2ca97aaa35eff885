// Ratelimitgen generates typed wrappers that enforce the limits written in
// comments on Go methods.
//
// Usage:
//
//	ratelimitgen [flags] [packages]
//	ratelimitgen check [flags] [packages]
//	ratelimitgen vet [flags] [packages]
//	ratelimitgen help [directives [name]]
//	ratelimitgen version
//
// Without a verb it writes the file ratelimit_gen.go into every package that has
// ratelimit directives, and removes those that have no directives any more.
// Packages are named as for the go command; the default is the package in the
// current directory. It fits a directive of its own:
//
//	//go:generate go tool ratelimitgen ./...
//
// Check writes nothing. It lists the files that are missing, stale or orphaned.
//
// Vet writes nothing either. It reports what check does, and code that gets past a
// limit, such as a call of a limited method on the wrapped value itself. The same is
// reported by go vet -vettool=$(which ratelimitgen).
//
// The flags are (vet has more, see ratelimitgen vet -h):
//
//	-C dir
//		change to dir before doing anything
//	-tags list
//		build tags, as for go build
//	-json
//		print problems as JSON on standard output, one object per line
//	-format text|json|github
//		print problems as text, as JSON, or as commands that annotate lines on GitHub
//
// What is slow to ask the go command for, the names of files in its build cache, is
// kept from one run to the next in the directory ratelimitgen of the user's cache
// directory (os.UserCacheDir), or in the directory that the environment variable
// RATELIMITGEN_CACHE names; its value "off" keeps nothing. It takes little room, holds
// nothing of the code, and may be removed at any time.
//
// The exit status is 0 if everything is done (check: nothing to do), 1 if there
// are problems in the directives or the code they stand in (check: or files that
// differ), and 2 if ratelimitgen could not do its work. With status 1 or 2 nothing
// was written, unless a message says that writing itself failed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"

	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/ratelimitgen/ratelimitgen/cmd/ratelimitgen/analyzer"
	"github.com/ratelimitgen/ratelimitgen/generator"
	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/parser"
	"github.com/ratelimitgen/ratelimitgen/parser/directive"
)

// Exit codes.
const (
	exitDone    = 0 // nothing left to do
	exitProblem = 1 // problems in the user's code, or stale output
	exitTrouble = 2 // trouble of ours: flags, files, the go command
)

const usage = `usage: ratelimitgen [flags] [packages]
       ratelimitgen check [flags] [packages]
       ratelimitgen vet [flags] [packages]
       ratelimitgen help [directives [name]]
       ratelimitgen version

Generates typed wrappers that enforce the limits written in //ratelimit:
comments on Go methods. Packages are named as for the go command; the default
is the package in the current directory. check writes nothing and lists the
files that are missing, stale or orphaned; vet also reports code that gets past a
limit.

flags:
  -C dir      change to dir before doing anything
  -tags list  build tags, as for go build
  -json       print problems as JSON on standard output, one object per line
  -format f   print problems as text, json or github (annotations)

environment:
  RATELIMITGEN_CACHE  directory that makes the next run faster, or "off"; the
                      default is ratelimitgen in the user's cache directory

exit status: 0 done, 1 problems in the directives or (check) files that differ,
2 ratelimitgen could not do its work
`

func main() {
	if isVetTool(os.Args[1:]) {
		unitchecker.Main(analyzer.New()) // does not return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole command but for the exit.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c := command{ctx: ctx, stdout: stdout, stderr: stderr}
	verb := ""
	if len(args) > 0 {
		verb = args[0]
	}
	switch verb {
	case "help", "-h", "-help", "--help":
		return c.help(args[1:])
	case "version":
		fmt.Fprintf(stdout, "ratelimitgen %s\n", version())
		return exitDone
	case "check":
		return c.generate(args[1:], true)
	case "vet":
		return c.vet(args[1:])
	default:
		if s := diag.Suggest(verb, []string{"check", "help", "version", "vet"}); s != "" && !strings.ContainsAny(verb, "./") {
			return c.trouble(fmt.Errorf("unknown verb %q; did you mean %q? A package is named like ./%[1]s", verb, s))
		}
		return c.generate(args, false)
	}
}

type command struct {
	ctx            context.Context
	stdout, stderr io.Writer
}

func (c *command) trouble(err error) int {
	fmt.Fprintf(c.stderr, "ratelimitgen: %v\n", err)
	return exitTrouble
}

// help prints the usage, or what the language offers.
func (c *command) help(args []string) int {
	switch {
	case len(args) == 0:
		fmt.Fprint(c.stdout, usage)
	case args[0] == "directives" && len(args) <= 2:
		name := ""
		if len(args) == 2 {
			name = args[1]
		}
		if err := directive.WriteHelp(c.stdout, name); err != nil {
			return c.trouble(err)
		}
	default:
		return c.trouble(fmt.Errorf("no help on %q; there is \"help\" and \"help directives [name]\"", args[0]))
	}
	return exitDone
}

// generate brings the tree up to date, or with check says how it is not.
func (c *command) generate(args []string, check bool) int {
	var cfg parser.Config
	flags := flag.NewFlagSet("ratelimitgen", flag.ContinueOnError)
	flags.SetOutput(c.stderr)
	flags.Usage = func() { fmt.Fprint(c.stderr, usage) }
	flags.StringVar(&cfg.Dir, "C", ".", "")
	flags.StringVar(&cfg.Tags, "tags", "", "")
	var printing diagnosticFlags
	printing.register(flags)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return exitDone
		}
		return exitTrouble
	}
	format, err := printing.chosen()
	if err != nil {
		return c.trouble(err)
	}
	cfg.Patterns = flags.Args()
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return c.trouble(err)
	}
	if info, err := os.Stat(dir); err != nil {
		return c.trouble(err)
	} else if !info.IsDir() {
		return c.trouble(fmt.Errorf("%s is not a directory", dir))
	}
	cfg.Dir = dir
	cfg.Remember = cacheDir(os.Getenv("RATELIMITGEN_CACHE"))
	cfg.Needs, cfg.NeedsOfRequests = generator.Imports(), generator.RequestImports()

	res, err := parser.Parse(c.ctx, cfg)
	if err != nil {
		return c.trouble(err)
	}
	diags := res.Diags
	var files []generator.File
	if !diags.HasErrors() {
		generated, more := generator.Generate(res)
		files = generated
		diags.Add(more...)
		diags.Sort()
	}
	if err := c.print(diags, format); err != nil {
		return c.trouble(err)
	}
	if diags.HasErrors() {
		return exitProblem
	}
	changes, err := generator.Plan(files, res.Outputs)
	if err != nil {
		fmt.Fprintf(c.stderr, "ratelimitgen: %v\n", err)
		var foreign *generator.ForeignFileError
		if errors.As(err, &foreign) {
			return exitProblem
		}
		return exitTrouble
	}
	if check {
		return c.report(dir, changes)
	}
	if err := generator.Apply(changes); err != nil {
		return c.trouble(err)
	}
	for _, ch := range changes {
		verb := "wrote"
		if ch.Kind == generator.Orphaned {
			verb = "removed"
		}
		fmt.Fprintf(c.stdout, "%s %s\n", verb, relative(dir, ch.Path))
	}
	return exitDone
}

// cacheDir returns where one run leaves for the next what is slow to find out, or ""
// for nowhere, if dir is what the user says.
func cacheDir(dir string) string {
	if dir == "off" {
		return ""
	}
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(user, "ratelimitgen")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "exports")
}

// report lists what check found.
func (c *command) report(dir string, changes []generator.Change) int {
	for _, ch := range changes {
		fmt.Fprintf(c.stdout, "%s: %s\n", relative(dir, ch.Path), ch.Kind)
	}
	if len(changes) > 0 {
		fmt.Fprintln(c.stderr, "ratelimitgen: generated files differ from the directives; run ratelimitgen with the same packages")
		return exitProblem
	}
	return exitDone
}

// relative shortens a path for people if it lies under dir.
func relative(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// version is the module version of the running binary.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
