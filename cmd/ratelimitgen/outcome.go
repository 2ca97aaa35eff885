package main

import (
	"bytes"
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
	crlf := ""
	for _, ch := range changes {
		name := relative(dir, ch.Path)
		fmt.Fprintf(c.stdout, "%s: %s\n", name, ch.Kind)
		if withDiff {
			fmt.Fprintf(c.stdout, "%s", unified(filepath.ToSlash(name), &ch))
			if crlf == "" && ch.Kind == generator.Stale && bytes.Contains(ch.Old, []byte("\r\n")) {
				crlf = name
			}
		}
	}
	if crlf != "" {
		fmt.Fprintf(c.stderr, "ratelimitgen: lines of %s end in CRLF, which is no difference and not shown; a run writes LF, and the line \"*_gen.go text eol=lf\" in .gitattributes has Git do so\n", crlf)
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
	return diff.Diff(from, ch.Old, to, withEndsOf(ch.Old, ch.File.Content))
}

// withEndsOf returns text with lines that end as they do in old, as Git may have written
// that with CRLF: no line differs because of its end alone. New lines end as the first
// one of old.
func withEndsOf(old, text []byte) []byte {
	crlf := []byte("\r\n")
	if !bytes.Contains(old, crlf) {
		return text
	}
	ends := map[string]bool{} // in CRLF, by the text of the line
	first := true
	for line := range bytes.Lines(old) {
		content, cr := bytes.CutSuffix(line, crlf)
		if !cr {
			content = bytes.TrimSuffix(line, []byte("\n"))
		}
		if len(ends) == 0 {
			first = cr
		}
		ends[string(content)] = cr
	}
	var b bytes.Buffer
	for line := range bytes.Lines(text) {
		content, whole := bytes.CutSuffix(line, []byte("\n"))
		b.Write(content)
		cr, known := ends[string(content)]
		switch {
		case !whole:
		case cr || !known && first:
			b.Write(crlf)
		default:
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
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
