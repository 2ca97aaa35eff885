package analyzer

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/ratelimitgen/ratelimitgen/generator"
	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/parser"
)

// Check does in memory what ratelimitgen does with the packages that cfg names, and
// reports what is wrong with their directives or, if nothing is, which generated
// files are missing, stale, orphaned or not ours. Config.Needs and NeedsOfRequests are set
// by it. Places are relative to cfg.Dir if they lie under it. An error is trouble
// with the tree or the go command.
func Check(ctx context.Context, cfg parser.Config) (*parser.Result, diag.List, error) {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, nil, err
	}
	cfg.Dir = dir
	cfg.Needs, cfg.NeedsOfRequests = generator.Imports(), generator.RequestImports()
	res, err := parser.Parse(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	diags := res.Diags
	if diags.HasErrors() {
		return res, diags, nil
	}
	files, more := generator.Generate(res)
	if diags.Add(more...); !diags.HasErrors() {
		changes, err := generator.Plan(files, res.Outputs)
		for _, err := range flatten(err) {
			var foreign *generator.ForeignFileError
			if !errors.As(err, &foreign) {
				return nil, nil, err
			}
			diags.Add(parser.ForeignOutput(relative(dir, foreign.Path)))
		}
		for i := range changes {
			diags.Add(outputProblem(dir, res, &changes[i]))
		}
	}
	diags.Sort()
	return res, diags, nil
}

// flatten lists what errors.Join joined.
func flatten(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// outputProblem describes a change that generation would make: at the first
// directive of the package if there is no file, else at the first line that differs.
func outputProblem(dir string, res *parser.Result, change *generator.Change) diag.Diagnostic {
	pos := diag.Pos{File: relative(dir, change.Path), Line: 1, Col: 1}
	switch change.Kind {
	case generator.Missing:
		for _, p := range res.Packages {
			if p.Dir == filepath.Dir(change.Path) {
				pos = p.Wrappers[0].Pos
				for _, w := range p.Wrappers {
					if w.Pos.File < pos.File || w.Pos.File == pos.File && w.Pos.Line < pos.Line {
						pos = w.Pos
					}
				}
			}
		}
		return errMissing(pos)
	case generator.Orphaned:
		return errOrphaned(pos)
	}
	if now, err := os.ReadFile(change.Path); err == nil {
		pos.Line = firstDifference(bytes.ReplaceAll(now, []byte("\r\n"), []byte("\n")), change.File.Content)
	}
	return errStale(pos)
}

// firstDifference is the first line of a in which it differs from b.
func firstDifference(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	if n == len(a) && n > 0 {
		n-- // the last line that there is
	}
	return 1 + bytes.Count(a[:n], []byte("\n"))
}

// relative shortens path if it lies under dir.
func relative(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}
