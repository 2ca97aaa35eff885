// Ratelimitgen generates typed wrappers that enforce the limits written in
// comments on Go methods.
//
// Usage:
//
//	ratelimitgen [flags] [packages]
//	ratelimitgen check [flags] [packages]
//	ratelimitgen vet [flags] [packages]
//	ratelimitgen selftest [flags] [packages]
//	ratelimitgen redis inspect|reset|block [flags] [keys]
//	ratelimitgen help [redis|directives [verb] [option]]
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
// Selftest writes nothing either. It limits everything in the packages, in memory,
// and prints what cannot be limited and why.
//
// Vet writes nothing either. It reports what check does, and code that gets past a
// limit, such as a call of a limited method on the wrapped value itself. The same is
// reported by go vet -vettool=$(which ratelimitgen).
//
// Redis is for operators: it prints what services have counted in Redis for some keys,
// and resets or blocks them. That is done by a program of its own, ratelimitgen-redis,
// which is run from the directory of ratelimitgen or from PATH. See ratelimitgen redis -h.
//
// Flags stand before the packages, and may stand before the verb as well. They are (vet,
// selftest and redis have others, see ratelimitgen vet -h and so on):
//
//	-C dir
//		change to dir before doing anything
//	-tags list
//		build tags, as for go build
//	-json
//		print problems as JSON on standard output, one object per line
//	-format text|json|github
//		print problems as text, as JSON, or as commands that annotate lines on GitHub
//	-n
//		only print what would be written and removed (not with check)
//	-diff
//		print what differs as well (only with check)
//	-v
//		print on standard error where the time went
//
// What is slow to ask the go command for, the names of files in its build cache, is
// kept from one run to the next in the directory ratelimitgen of the user's cache
// directory (os.UserCacheDir), or in the directory that the environment variable
// RATELIMITGEN_CACHE names by its absolute path; its value "off" keeps nothing. It takes little room, holds
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
	"sync"
	"time"

	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/ratelimitgen/ratelimitgen/cmd/ratelimitgen/analyzer"
	"github.com/ratelimitgen/ratelimitgen/generator"
	"github.com/ratelimitgen/ratelimitgen/internal/cli"
	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/parser"
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
       ratelimitgen selftest [-C dir] [-tags list] [-limit options] [-v] [packages]
       ratelimitgen redis inspect|reset|block [flags] [keys]
       ratelimitgen help [redis|directives [verb] [option]]
       ratelimitgen version

Generates typed wrappers that enforce the limits written in //ratelimit:
comments on Go methods. Packages are named as for the go command; the default
is the package in the current directory. check writes nothing and lists the
files that are missing, stale or orphaned; vet also reports code that gets past a
limit. selftest writes nothing and shows which declarations of any packages could
not be limited. redis prints, resets and blocks what services count in Redis; see
ratelimitgen redis -h.

flags:
  -C dir      change to dir before doing anything
  -tags list  build tags, as for go build
  -json       print problems as JSON on standard output, one object per line
  -format f   print problems as text, json or github (annotations)
  -n          only print what would be written and removed (not with check)
  -diff       print what differs as well (only with check)
  -v          print on standard error where the time went

environment:
  RATELIMITGEN_CACHE  absolute path of a directory that makes the next run faster,
                      or "off"; the default is ratelimitgen in the user's cache
                      directory

exit status: 0 done, 1 problems in the directives or (check) files that differ,
2 ratelimitgen could not do its work
`

func main() {
	setGarbage(garbageWhileLoading)
	if isVetTool(os.Args[1:]) {
		checkVetEnvironment(os.Args[1], os.Stderr)
		unitchecker.Main(analyzer.New()) // does not return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// How much garbage there may be, in percent of what is in use. Most of what a run has
// in use at its peak it has from the time that all packages are loaded, so there
// garbage counts; before, it is not worth collecting often.
const (
	garbageWhileLoading = 150
	garbageOnceLoaded   = 75
)

// setGarbage sets how much garbage there may be, if the user does not say it.
func setGarbage(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// run is the whole command but for the exit.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c := command{ctx: ctx, stdout: stdout, stderr: stderr, terminal: cli.IsTerminal(stderr)}
	word, rest := splitWord(args)
	switch word {
	case "help":
		return c.help(rest)
	case "version":
		return c.version(rest)
	case "check":
		return c.generate(rest, true)
	case "redis":
		return c.redis(rest)
	case "selftest":
		return c.selftest(rest)
	case "vet":
		return c.vet(rest)
	case "gen", "generate":
		return c.trouble(fmt.Errorf("there is no verb %q: to generate, name packages alone, as in \"ratelimitgen ./...\"; a package is named like ./%[1]s", word))
	default:
		if s := diag.Suggest(word, verbs); s != "" && !strings.ContainsAny(word, "./") {
			return c.trouble(fmt.Errorf("unknown verb %q; did you mean %q? A package is named like ./%[1]s", word, s))
		}
		return c.generate(args, false)
	}
}

type command struct {
	ctx            context.Context
	stdout, stderr io.Writer
	terminal       bool // stderr is one
}

func (c *command) trouble(err error) int {
	if errors.Is(err, context.Canceled) && c.ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	fmt.Fprintf(c.stderr, "ratelimitgen: %s\n", plain(err))
	return exitTrouble
}

// inTheWay reports what generator.Plan found in the place of output: files of others are
// problems, and anything else is trouble.
func (c *command) inTheWay(dir string, err error, format diag.Format) int {
	errs := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		errs = joined.Unwrap()
	}
	var diags diag.List
	for _, err := range errs {
		var foreign *generator.ForeignFileError
		switch {
		case !errors.As(err, &foreign):
			return c.trouble(err)
		case foreign.Irregular:
			diags.Add(parser.IrregularFile(relative(dir, foreign.Path)))
		default:
			diags.Add(parser.ForeignOutput(relative(dir, foreign.Path)))
		}
	}
	if err := c.print(diags, format); err != nil {
		return c.trouble(err)
	}
	return exitProblem
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
	var show outcomeFlags
	show.register(flags, check)
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
	dir, err := cli.Directory(cfg.Dir)
	if err != nil {
		return c.trouble(err)
	}
	cfg.Dir = dir
	if cfg.Remember, err = cacheDir(os.Getenv(cacheEnv)); err != nil {
		return c.trouble(err)
	}
	cfg.Needs, cfg.NeedsOfRequests = generator.Imports(), generator.RequestImports()
	loaded := sync.OnceFunc(func() { setGarbage(garbageOnceLoaded) })
	w := c.watch(c.terminal && format != diag.JSON)
	defer w.Quiet()
	cfg.Stage = func(stage, pkg string) {
		w.stage(stage, pkg)
		if stage == "parse" {
			loaded()
		}
	}

	res, err := parser.Parse(c.ctx, cfg)
	if err != nil {
		return c.trouble(err)
	}
	diags := res.Diags
	var files []generator.File
	if show.verbose {
		defer func() { w.report(c.stderr, files) }()
	}
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
	w.stage("write", "")
	changes, err := generator.Plan(files, res.Outputs)
	if err != nil {
		return c.inTheWay(dir, err, format)
	}
	if check {
		return c.report(dir, changes, show.diff)
	}
	leftovers, err := generator.Leftovers(files, res.Outputs, time.Now())
	if err != nil {
		return c.trouble(err)
	}
	return c.apply(dir, changes, leftovers, show.dryRun)
}

// cacheEnv is the environment variable that names the directory of cacheDir.
const cacheEnv = "RATELIMITGEN_CACHE"

// cacheDir returns where one run leaves for the next what is slow to find out, or ""
// for nowhere, if dir is what the user says. Like that of the go command it does not
// depend on where the run is: it would soon be in the middle of somebody's tree.
func cacheDir(dir string) (string, error) {
	switch {
	case dir == "off":
		return "", nil
	case dir == "":
		user, err := os.UserCacheDir()
		if err != nil || !filepath.IsAbs(user) {
			return "", nil
		}
		dir = filepath.Join(user, "ratelimitgen")
	case !filepath.IsAbs(dir):
		return "", fmt.Errorf("%s is not an absolute path: %s; set it to one, or to \"off\"", cacheEnv, dir)
	}
	return filepath.Join(dir, "exports"), nil
}

// relative shortens a path for people if it lies under dir.
func relative(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}
