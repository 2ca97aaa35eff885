// Package parser turns a source tree into the model of what is to be generated:
// packages, wrappers, methods and policies, together with everything that is wrong
// with the directives that ask for them.
//
// The work is done by its subpackages, in this order: scan finds the files that
// mention a directive, load type-checks the signatures of their packages,
// directive reads the comments, and keyexpr the expressions in them. What does not
// concern a directive is not looked at.
package parser

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/parser/directive"
	"github.com/ratelimitgen/ratelimitgen/parser/load"
	"github.com/ratelimitgen/ratelimitgen/parser/scan"
)

// Config says what to parse.
type Config struct {
	// Dir is the directory in which Patterns are resolved; the current one if empty.
	Dir string
	// Patterns name packages as for the go command; "." if empty.
	Patterns []string
	// Tags are build tags, as for go build -tags.
	Tags string
	// Remember is the absolute path of a directory that makes the next run faster (see
	// load.Config); nothing is kept if it is empty.
	Remember string
	// Needs are the import paths that generated code may name, whether the annotated
	// packages import them or not.
	Needs []string
	// NeedsOfRequests are like Needs, for packages with limited methods that take a
	// request otherwise than in a context.
	NeedsOfRequests []string
	// Stage, if not nil, is called when a stage of the work begins: "scan", "load" and
	// "parse", some of them more than once. With "parse" it is told the import path of
	// the package. It is called by one goroutine at a time.
	Stage func(stage, pkg string)
}

func (cfg *Config) stage(stage, pkg string) {
	if cfg.Stage != nil {
		cfg.Stage(stage, pkg)
	}
}

// Parse returns the model of the packages that cfg names. Problems in the user's
// code are in Result.Diags; an error is trouble with the tree or the go command.
func Parse(ctx context.Context, cfg Config) (*Result, error) {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, err
	}
	cfg.Dir = dir
	if len(cfg.Patterns) == 0 {
		cfg.Patterns = []string{"."}
	}
	cfg.stage("scan", "")
	found, err := cfg.scan(ctx)
	if err != nil {
		return nil, err
	}
	// Packages that are only imported are outlined first. That may hide something
	// from a key or a signature, so a problem counts only if it is still there with
	// everything loaded.
	var res *Result
	requests := mentionsRequests(&found)
	var stubs map[string][]byte
	for full := false; ; {
		needs := cfg.Needs
		if requests {
			needs = slices.Concat(needs, cfg.NeedsOfRequests)
		}
		res = &Result{Outputs: found.Outputs, Diags: slices.Clone(found.Diags), Stage: cfg.Stage}
		if len(found.Dirs)+len(found.Outputs) > 0 {
			if err := res.parse(ctx, &cfg, &found, needs, stubs, full); err != nil {
				return nil, err
			}
		}
		switch {
		case res.takesRequests() && !requests:
			requests = true
		case res.stubs != nil && stubs == nil:
			stubs = res.stubs
		case res.Diags.HasErrors() && !full:
			full = true
		default:
			return res.relativeTo(cfg.Dir), nil
		}
	}
}

// relativeTo shortens the paths of places for people, and sorts the problems.
func (res *Result) relativeTo(dir string) *Result {
	for i := range res.Diags {
		res.Diags[i].Pos.File = relative(dir, res.Diags[i].Pos.File)
	}
	for _, p := range res.Packages {
		for _, w := range p.Wrappers {
			w.Pos.File = relative(dir, w.Pos.File)
		}
	}
	res.Diags.Sort()
	return res
}

// scan finds the files with directives. Patterns that only the go command can
// resolve are resolved by it first.
func (cfg *Config) scan(ctx context.Context) (scan.Result, error) {
	diags, noModule, err := cfg.outside(ctx)
	if err != nil || len(cfg.Patterns) == 0 {
		return scan.Result{Diags: diags}, err
	}
	found, err := cfg.find(ctx)
	if noModule && err == nil && len(found.Dirs)+len(found.Outputs) == 0 {
		// Otherwise the go command says it.
		found.Diags = slices.DeleteFunc(found.Diags, func(d diag.Diagnostic) bool { return d.Severity == diag.Warning })
		diags.Add(errNoModule())
	}
	found.Diags.Add(diags...)
	return found, err
}

func (cfg *Config) find(ctx context.Context) (scan.Result, error) {
	sc := scan.Config{Dir: cfg.Dir, Patterns: cfg.Patterns, Build: buildContext(cfg.Tags)}
	found, err := scan.Find(ctx, sc)
	if err != nil || len(found.Other) == 0 {
		return found, err
	}
	dirs, others, err := load.Dirs(ctx, load.Config{Dir: cfg.Dir, Tags: cfg.Tags}, found.Other...)
	if err != nil {
		for _, name := range found.Other {
			local := "./" + filepath.ToSlash(name)
			if !strings.Contains(name, "...") && cfg.top(local) != "" && strings.Contains(err.Error(), name) {
				return found, fmt.Errorf("%w; the directory is named %s", err, diag.Quote(local))
			}
		}
		return found, err
	}
	var diags diag.List
	for _, path := range sortedKeys(others) {
		diags.Add(errOtherPackage(path, others[path]))
	}
	sc.Patterns = slices.DeleteFunc(slices.Clone(cfg.Patterns), func(p string) bool { return slices.Contains(found.Other, p) })
	sc.Patterns = append(sc.Patterns, dirs...)
	if len(sc.Patterns) == 0 {
		found = scan.Result{Diags: found.Diags}
	} else if found, err = scan.Find(ctx, sc); err != nil {
		return found, err
	}
	found.Diags.Add(diags...)
	return found, nil
}

// relative shortens path for people if it lies under dir.
func relative(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// names reports whether one of the patterns is the name of dir itself.
func (cfg *Config) names(dir string) bool {
	return slices.ContainsFunc(cfg.Patterns, func(pattern string) bool {
		return !strings.Contains(pattern, "...") && cfg.top(pattern) == dir
	})
}

// parse loads the directories with directives and builds the model of each.
func (res *Result) parse(ctx context.Context, cfg *Config, found *scan.Result, needs []string, stubs map[string][]byte, full bool) error {
	var patterns []string
	hits := map[string]bool{}
	for _, path := range found.Outputs {
		// Whether an output may be removed is for the package to say, too.
		patterns = append(patterns, filepath.Dir(path))
	}
	for _, d := range found.Dirs {
		patterns = append(patterns, d.Path)
		for _, f := range d.Files {
			hits[filepath.Join(d.Path, f.Name)] = true
		}
	}
	patterns = slices.Compact(slices.Sorted(slices.Values(patterns)))
	var irregular diag.List
	for _, dir := range patterns {
		irregular.Add(Irregular(dir)...)
	}
	if len(irregular) > 0 {
		res.Diags.Add(irregular...)
		return nil
	}
	cfg.stage("load", "")
	loaded, err := load.Load(ctx, load.Config{
		Dir:      cfg.Dir,
		Tags:     cfg.Tags,
		Also:     needs,
		Remember: cfg.Remember,
		Output:   scan.IsOutput,
		Syntax:   func(name string) bool { return hits[name] },
		Full:     full,
		Stubs:    stubs,
	}, patterns...)
	if err != nil {
		return err
	}
	for _, e := range loaded.Errors {
		res.Diags.Add(errLoad(position(e.Pos), e.Msg))
	}
	for _, dir := range loaded.Excluded {
		// As for the go command, such a package is nothing unless it is asked for itself.
		if cfg.names(dir) {
			res.Diags.Add(errLoad(diag.Pos{}, excluded(relative(cfg.Dir, dir))))
		}
	}
	packages := map[string]*load.Package{}
	for _, p := range loaded.Packages {
		packages[p.Dir] = p
	}
	// All directives are known before anything is built on one of them: a type may
	// embed one of another package.
	limited := map[string]*draft{}
	var builders []*builder
	for i := range found.Dirs {
		d := &found.Dirs[i]
		b := newBuilder(loaded, packages[d.Path])
		b.res, b.dir, b.all = res, d, limited
		b.collect()
		builders = append(builders, b)
	}
	for _, b := range builders {
		if b.pkg != nil {
			cfg.stage("parse", b.pkg.Path)
		}
		p, err := b.build()
		if err != nil {
			return err
		}
		if p != nil {
			res.Packages = append(res.Packages, p)
		}
	}
	if res.Diags.HasErrors() && stubs == nil {
		res.stubs = stubsOf(builders)
	}
	res.checkIdentities()
	if len(res.Packages) > 0 && !res.Diags.HasErrors() {
		for _, path := range needs {
			if err := loaded.Unavailable(path); err != nil {
				res.Diags.Add(errNoRuntime(path, err))
			}
		}
	}
	return nil
}

// position parses "file:line:col" as the go command writes it.
func position(s string) diag.Pos {
	var p diag.Pos
	parts := strings.Split(s, ":")
	for len(parts) > 1 {
		var n int
		if _, err := fmt.Sscanf(parts[len(parts)-1], "%d", &n); err != nil {
			break
		}
		p.Line, p.Col = n, p.Line
		parts = parts[:len(parts)-1]
	}
	if p.Line == 0 {
		return diag.Pos{}
	}
	p.Col = max(p.Col, 1)
	p.File = strings.Join(parts, ":")
	return p
}

// checkIdentities reports limits that would share counters by accident.
func (res *Result) checkIdentities() {
	type user struct {
		method    string
		directive *directive.Directive
	}
	first := map[string]user{}
	for _, p := range res.Packages {
		for _, w := range p.Wrappers {
			for _, m := range w.Methods {
				for _, pol := range m.Policies {
					if other, ok := first[pol.ID]; ok && !pol.group {
						res.Diags.Add(errSameID(pol.directive, pol.ID, other.directive, other.method))
						continue
					}
					first[pol.ID] = user{m.Qualified, pol.directive}
				}
			}
		}
	}
}

func sortedKeys[M ~map[string]V, V any](m M) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
