package directive

import (
	"bytes"
	"cmp"
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
)

// Target is a declaration with the directives in its doc comment.
type Target struct {
	Kind TargetKind
	// Node is the *ast.FuncDecl of a Method, the *ast.Field of an
	// InterfaceMethod, the *ast.TypeSpec of a TypeDecl, or the *ast.File of a
	// Package.
	Node ast.Node
	// Type is the type that declares a method, or "" for other kinds.
	Type string
	// Spec is the interface of an InterfaceMethod, or nil for other kinds.
	Spec *ast.TypeSpec
	// Name is the name of the method, type or package.
	Name string
	// Directives are those that may stand here, in the order written.
	Directives []*Directive
}

// String returns the target's name as messages spell it, like "Service.Login".
func (t *Target) String() string {
	if t.Type == "" {
		return t.Name
	}
	return t.Type + "." + t.Name
}

// Collect finds every directive of a file, with what it applies to, and reports
// each that applies to nothing, each near miss, and what Parse reports. Targets
// are in the order of the file. The values of options are not checked yet: that
// is what Limit and Wrapper do.
//
// The file was parsed from src with parser.ParseComments; function bodies may have
// been dropped since. If it has syntax errors, what is said of places is only as good
// as what the parser made of it, so they are to be reported first. Positions are those
// of the file itself, not those that "//line" comments give, in which columns are
// unknown.
func Collect(fset *token.FileSet, file *ast.File, src []byte) ([]*Target, diag.List) {
	c := &collector{fset: fset, file: file, src: src, targets: map[ast.Node]*Target{}, counts: map[ast.Node]int{}}
	for _, group := range file.Comments {
		for _, comment := range group.List {
			c.comment(group, comment)
		}
	}
	var targets []*Target
	for _, t := range c.targets {
		if t.Directives = c.permitted(t); len(t.Directives) > 0 {
			targets = append(targets, t)
		}
	}
	slices.SortFunc(targets, func(a, b *Target) int { return cmp.Compare(a.Node.Pos(), b.Node.Pos()) })
	c.diags.Sort()
	return targets, c.diags
}

type collector struct {
	fset    *token.FileSet
	file    *ast.File
	src     []byte
	layout  *layout // nil until a directive is found
	targets map[ast.Node]*Target
	counts  map[ast.Node]int // of the directives on a declaration or in a comment
	diags   diag.List
}

func (c *collector) comment(group *ast.CommentGroup, comment *ast.Comment) {
	p := c.fset.PositionFor(comment.Slash, false)
	pos := diag.Pos{File: p.Filename, Line: p.Line, Col: p.Column}
	if !isDirective(comment.Text) {
		_, diags := Parse(c.source(comment, p.Offset), pos)
		c.diags.Add(diags...)
		return
	}
	if c.layout == nil {
		c.layout = newLayout(c.fset, c.file, c.src)
	}
	t, why := c.layout.target(group, comment)
	// Reading stops at the bound, whatever the directives say.
	switch n := c.count(group, t); {
	case n == MaxDirectives+1:
		c.diags.Add(errTooManyDirectives(pos))
		return
	case n > MaxDirectives:
		return
	}
	d, diags := Parse(c.source(comment, p.Offset), pos)
	c.diags.Add(diags...)
	switch {
	case d == nil:
	case t == nil:
		c.diags.Add(errMisplaced(d, why))
	case findVerb(d.Verb) == nil: // reported by Parse
	default:
		if known := c.targets[t.Node]; known != nil {
			t = known
		}
		t.Directives = append(t.Directives, d)
		c.targets[t.Node] = t
	}
}

// isDirective reports whether comment is a directive, and not an empty one.
func isDirective(comment string) bool {
	rest, ok := strings.CutPrefix(comment, Prefix)
	return ok && rest != "" && !isBlank(rest[0])
}

// count counts a directive of t, or of the group if it applies to nothing.
func (c *collector) count(group *ast.CommentGroup, t *Target) int {
	var on ast.Node = group
	if t != nil {
		on = t.Node
	}
	c.counts[on]++
	return c.counts[on]
}

// source is the comment as the file has it. The parser drops carriage returns,
// and with them the columns of what follows.
func (c *collector) source(comment *ast.Comment, offset int) string {
	if !strings.HasPrefix(comment.Text, "//") || offset > len(c.src) {
		return comment.Text
	}
	line := c.src[offset:]
	if !bytes.HasPrefix(line, []byte("//")) {
		return comment.Text
	}
	if i := bytes.IndexByte(line, '\n'); i >= 0 {
		line = line[:i]
	}
	return string(line)
}

// permitted returns the directives of t that may stand on it and reports the
// others.
func (c *collector) permitted(t *Target) []*Directive {
	first := map[string]*Directive{}
	for _, d := range t.Directives {
		if first[d.Verb] == nil {
			first[d.Verb] = d
		}
	}
	return slices.DeleteFunc(t.Directives, func(d *Directive) bool {
		v := findVerb(d.Verb)
		switch {
		case !slices.Contains(v.Targets, t.Kind):
			c.diags.Add(errWrongTarget(d, v, t.Kind, t.String()))
			return true
		case !v.Repeatable && first[d.Verb] != d:
			c.diags.Add(errDuplicateDirective(d, first[d.Verb].Pos))
			return true
		}
		for i := range d.Options {
			a := &d.Options[i]
			if o := v.option(a.Name); o.Targets != nil && !slices.Contains(o.Targets, t.Kind) {
				c.diags.Add(errOptionTarget(d, a, o, t.Kind, t.String()))
			}
		}
		return false
	})
}
