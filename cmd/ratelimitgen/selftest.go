package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"go/types"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/ratelimitgen/ratelimitgen/generator"
	"github.com/ratelimitgen/ratelimitgen/internal/cli"
	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/parser"
)

const selftestUsage = `usage: ratelimitgen selftest [-C dir] [-tags list] [-limit options] [-v] [packages]

Generates code for the packages as if every type with methods, every interface
and every function had a limit, type-checks it in memory, and prints what cannot
have one and why. Nothing is written, and directives in the files do not count.
The packages may be of any module that the current one depends on, and of the
standard library.

flags:
  -C dir         change to dir before doing anything
  -tags list     build tags, as for go build
  -limit options what stands in the directive, "max=5" by default
  -v             print each type and function that is refused, with its place

exit status: 0 everything that was not refused compiles, 1 something does not, or
the module lacks the package that generated code imports, or a pipe or the like has
the name of a Go file, 2 ratelimitgen could not do its work
`

// codeNoRuntime is the code of the one problem that is not about the declarations but
// about the user's module.
const codeNoRuntime = "no-runtime"

// selftest tries the generator on everything in some packages.
func (c *command) selftest(args []string) int {
	var cfg parser.Config
	flags := flag.NewFlagSet("ratelimitgen selftest", flag.ContinueOnError)
	flags.SetOutput(c.stderr)
	flags.Usage = func() { fmt.Fprint(c.stderr, selftestUsage) }
	flags.StringVar(&cfg.Dir, "C", ".", "")
	flags.StringVar(&cfg.Tags, "tags", "", "")
	limit := flags.String("limit", "max=5", "")
	verbose := flags.Bool("v", false, "")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return exitDone
		}
		return exitTrouble
	}
	dir, err := cli.Directory(cfg.Dir)
	if err != nil {
		return c.trouble(err)
	}
	cfg.Dir = dir
	cfg.Patterns = flags.Args()
	if irregular := irregularIn(dir, cfg.Patterns); len(irregular) > 0 {
		if err := c.print(irregular, diag.Text); err != nil {
			return c.trouble(err)
		}
		return exitProblem
	}
	cfg.Needs, cfg.NeedsOfRequests = generator.Imports(), generator.RequestImports()
	w := c.watch(c.terminal)
	defer w.Quiet()
	cfg.Stage = w.stage
	all, err := parser.ParseAll(c.ctx, cfg, *limit)
	if err != nil {
		var d diag.Diagnostic
		if errors.As(err, &d) && d.Code == codeNoRuntime {
			fmt.Fprintln(c.stderr, d)
			return exitProblem
		}
		return c.trouble(err)
	}
	report := newTrialReport()
	for _, p := range all {
		if err := c.ctx.Err(); err != nil {
			return c.trouble(err)
		}
		_, problems := generator.Try(p, w.stage)
		report.add(p, problems)
	}
	if *verbose {
		report.list(c.stdout)
	}
	if err := report.table(c.stdout); err != nil {
		return c.trouble(err)
	}
	if len(report.invalid) > 0 {
		for _, d := range report.invalid {
			fmt.Fprintln(c.stderr, d)
		}
		return exitProblem
	}
	return exitDone
}

// trial counts what became of the candidates of a package, or of all packages.
type trial struct {
	name                      string
	types, methods, functions [2]int // wrapped, of all
	refused                   map[string]int
}

type trialReport struct {
	packages []*trial
	total    *trial
	refusals diag.List
	invalid  diag.List
}

func newTrialReport() *trialReport {
	return &trialReport{total: &trial{name: "total", refused: map[string]int{}}}
}

func (r *trialReport) add(p *parser.Candidates, problems diag.List) {
	t := &trial{name: p.Path, refused: map[string]int{}}
	r.packages = append(r.packages, t)
	r.invalid.Add(problems...)
	for _, c := range p.All {
		_, function := p.Types.Scope().Lookup(c.Name).(*types.Func)
		for _, t := range []*trial{t, r.total} {
			t.count(c, function)
		}
		for _, d := range c.Refusals {
			if d.Severity != diag.Error {
				continue
			}
			if d.Code == generator.CodeInvalid {
				r.invalid.Add(d)
			} else {
				r.refusals.Add(d)
			}
		}
	}
}

// count adds a candidate. One that has several problems is counted under the first.
func (t *trial) count(c *parser.Candidate, function bool) {
	wrapped := 0
	if !c.Refusals.HasErrors() {
		wrapped = 1
	}
	if function {
		t.functions[0] += wrapped
		t.functions[1]++
	} else {
		t.types[0] += wrapped
		t.types[1]++
		t.methods[0] += wrapped * c.Methods
		t.methods[1] += c.Methods
	}
	for _, d := range c.Refusals {
		if d.Severity == diag.Error {
			t.refused[d.Code]++
			return
		}
	}
}

// table prints one line per package and the totals.
func (r *trialReport) table(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "package\ttypes\tmethods\tfunctions\trefused")
	for _, t := range append(r.packages[:len(r.packages):len(r.packages)], r.total) {
		of := func(n [2]int) string { return fmt.Sprintf("%d/%d", n[0], n[1]) }
		var codes []string
		byCount := func(a, b string) int { return cmp.Or(t.refused[b]-t.refused[a], strings.Compare(a, b)) }
		for _, code := range slices.SortedFunc(maps.Keys(t.refused), byCount) {
			codes = append(codes, fmt.Sprintf("%d %s", t.refused[code], code))
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", t.name, of(t.types), of(t.methods), of(t.functions), cmp.Or(strings.Join(codes, ", "), "-"))
	}
	return tw.Flush()
}

// list prints what was refused.
func (r *trialReport) list(w io.Writer) {
	r.refusals.Sort()
	for _, d := range r.refusals {
		fmt.Fprintln(w, d)
	}
}
