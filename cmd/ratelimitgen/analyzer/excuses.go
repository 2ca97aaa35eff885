package analyzer

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/parser/directive"
)

// markPrefix begins the comments that excuse findings of linters.
const markPrefix = "//nolint:"

// mark is a comment that excuses the findings on some lines.
type mark struct {
	comment  *ast.Comment
	from, to int           // lines
	fn       *ast.FuncDecl // these are its, or nil
	reason   bool
	used     bool
}

// parseMark reads a comment of s, and returns nil if it is no mark for this
// analyzer.
//
// A mark behind code excuses its line; one that stands alone, the next. In the doc
// comment of a function, or behind its first line, it excuses the function.
func (c *checker) parseMark(s *source, comment *ast.Comment) *mark {
	rest, ok := strings.CutPrefix(comment.Text, markPrefix)
	if !ok {
		return nil
	}
	names, reason, _ := strings.Cut(rest, "//")
	if !slices.ContainsFunc(strings.Split(names, ","), func(name string) bool { return strings.TrimSpace(name) == Name }) {
		return nil
	}
	line := c.line(comment.Slash)
	m := &mark{comment: comment, from: line, to: line + 1, reason: strings.TrimSpace(reason) != ""}
	for _, d := range s.syntax.Decls {
		first, last := c.line(d.Pos()), c.line(d.End())
		fn, ok := d.(*ast.FuncDecl)
		switch {
		case ok && (first == line || fn.Doc != nil && fn.Doc.Pos() <= comment.Pos() && comment.Pos() < fn.Doc.End()):
			m.from, m.to, m.fn = first, last, fn
		case first <= line && line <= last && c.behindCode(d, comment.Slash):
			m.to = line
		}
	}
	return m
}

// behindCode reports whether something of d ends or begins on the line of pos, before it.
func (c *checker) behindCode(d ast.Decl, pos token.Pos) bool {
	line, found := c.line(pos), false
	ast.Inspect(d, func(n ast.Node) bool {
		switch n.(type) {
		case nil, *ast.Comment, *ast.CommentGroup:
			return false
		}
		before := func(p token.Pos) bool { return p.IsValid() && p < pos && c.line(p) == line }
		found = found || before(n.Pos()) || before(n.End()-1)
		return !found && n.Pos() < pos
	})
	return found
}

func (c *checker) line(pos token.Pos) int { return c.Fset.PositionFor(pos, false).Line }

// excused reports whether a mark or the flag allow excuses what is found at pos,
// whose stack begins with its file, and counts it if so.
func (c *checker) excused(pos token.Pos, stack []ast.Node) bool {
	if name := c.allow.match(c.Pkg.Path(), enclosing(stack)); name != "" {
		c.report.Allowed[name] = true
		c.report.Excused++
		return true
	}
	file, line := stack[0].(*ast.File), c.line(pos)
	for _, s := range c.sources {
		if s.syntax != file {
			continue
		}
		for _, m := range s.marks {
			if m.from <= line && line <= m.to && m.reason {
				m.used = true
				c.report.Excused++
				return true
			}
		}
	}
	return false
}

// unusedMarks reports the marks without a reason, which excuse nothing, and those
// that nothing needs and the generator does not ask for.
func (c *checker) unusedMarks() {
	for _, s := range c.sources {
		if s.test && !c.tests {
			continue
		}
		for _, m := range s.marks {
			var d diag.Diagnostic
			switch {
			case !m.reason:
				d = errNoReason()
			case !m.used && !c.replaces(m.fn):
				d = warnUnusedMark()
			default:
				continue
			}
			c.add(m.comment.Pos(), m.comment.End(), d)
		}
	}
}

// replaces reports whether decl is a method without a limit that an outer type has in
// place of a limited one of what it embeds. The generator asks for such a method, and
// for an excuse on it, as the outer type has a limit itself. It need not call the
// embedded one.
func (c *checker) replaces(decl *ast.FuncDecl) bool {
	if decl == nil || decl.Recv == nil || c.decided(decl) {
		return false
	}
	fn, ok := c.TypesInfo.Defs[decl.Name].(*types.Func)
	if !ok {
		return false
	}
	outer := named(fn.Signature().Recv().Type())
	if outer == nil || !c.ImportObjectFact(outer, new(limitedType)) || c.limitedBy(outer, fn.Name()) != nil {
		return false
	}
	s, ok := outer.Type().Underlying().(*types.Struct)
	if !ok {
		return false
	}
	for v := range s.Fields() {
		if !v.Embedded() {
			continue
		}
		obj, index, _ := types.LookupFieldOrMethod(v.Type(), true, fn.Pkg(), fn.Name())
		if inner, ok := obj.(*types.Func); ok {
			if l := c.limitOf(v.Type(), index, inner); l != nil && !l.wrapper {
				return true
			}
		}
	}
	return false
}

// enclosing names the declaration of package scope that a node with this stack is
// part of: "Function", "Type.Method" or "Variable", or "".
func enclosing(stack []ast.Node) string {
	for _, n := range stack {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv == nil || len(n.Recv.List) == 0 {
				return n.Name.Name
			}
			return directive.BaseName(n.Recv.List[0].Type) + "." + n.Name.Name
		case *ast.ValueSpec:
			return n.Names[0].Name
		}
	}
	return ""
}

// allowList is the value of the flag allow.
type allowList []string

// String is the list as Set takes it.
func (l *allowList) String() string { return strings.Join(*l, ",") }

// Set adds the elements of a list with commas.
func (l *allowList) Set(text string) error {
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name != "" {
			*l = append(*l, name)
		}
	}
	return nil
}

// match returns the element that allows a declaration of a package, or "".
func (l allowList) match(pkg, decl string) string {
	for _, name := range l {
		if name == pkg || decl != "" && name == pkg+"."+decl {
			return name
		}
	}
	return ""
}
