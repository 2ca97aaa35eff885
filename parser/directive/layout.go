package directive

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"math"
	"slices"
	"strings"
)

// layout knows which declaration each comment of a file documents, and of a
// comment that documents none, why.
type layout struct {
	fset   *token.FileSet
	src    []byte
	owners map[*ast.CommentGroup]owner
	// places are the declarations and the lists they stand in, by their beginning,
	// outer before inner.
	places []place
	// borders are the beginnings and ends of places, in order.
	borders []border
}

// border is where another place begins to be the innermost.
type border struct {
	pos token.Pos
	in  int // its index, or -1 for none
}

// owner is the declaration that a comment group documents. Either directives may
// stand there, or why says why not.
type owner struct {
	target *Target
	why    reason
}

// reason says why a directive applies to nothing.
type reason struct {
	text string
	// move is set if what is to be done is to move the directive to a declaration
	// that its verb can stand on.
	move bool
	// remedy is what is to be done instead if the directive is a limit, or "".
	remedy string
}

// place is a range of the file that comments can stand before or in.
type place struct {
	pos, end token.Pos
	name     string
	// target is set if a directive can stand on it.
	target bool
	// list is set if other places stand in it, one after the other.
	list bool
	// body is set for what is inside a function.
	body bool
}

func newLayout(fset *token.FileSet, file *ast.File, src []byte) *layout {
	l := &layout{fset: fset, src: src, owners: map[*ast.CommentGroup]owner{}}
	l.addTarget(file.Package, file.Name.End(), "the package clause")
	l.own(file.Doc, Target{Kind: Package, Node: file, Name: file.Name.Name})
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			l.function(decl)
		case *ast.GenDecl:
			l.general(decl)
		case *ast.BadDecl:
			l.add(decl.Pos(), decl.End(), "a declaration that cannot be parsed")
		}
	}
	l.sort()
	return l
}

// sort orders the places and finds their borders, so that a comment between them
// is placed without looking at each.
func (l *layout) sort() {
	slices.SortStableFunc(l.places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.pos, b.pos), cmp.Compare(b.end, a.end))
	})
	var open []int
	enter := func(pos token.Pos) {
		in := -1
		if n := len(open); n > 0 {
			in = open[n-1]
		}
		l.borders = append(l.borders, border{pos, in})
	}
	leave := func(until token.Pos) {
		for n := len(open); n > 0 && l.places[open[n-1]].end <= until; n = len(open) {
			end := l.places[open[n-1]].end
			open = open[:n-1]
			enter(end)
		}
	}
	for i, p := range l.places {
		leave(p.pos)
		open = append(open, i)
		enter(p.pos)
	}
	leave(math.MaxInt)
}

// target returns what directives in the comment apply to, without directives, or
// why they apply to nothing.
func (l *layout) target(group *ast.CommentGroup, comment *ast.Comment) (*Target, reason) {
	if o, ok := l.owners[group]; ok {
		return o.target, o.why
	}
	return nil, l.floating(group, comment)
}

func (l *layout) add(pos, end token.Pos, name string) {
	l.places = append(l.places, place{pos: pos, end: end, name: name})
}

func (l *layout) addTarget(pos, end token.Pos, name string) {
	l.places = append(l.places, place{pos: pos, end: end, name: name, target: true})
}

func (l *layout) addList(pos, end token.Pos, name string) {
	l.places = append(l.places, place{pos: pos, end: end, name: name, list: true})
}

func (l *layout) addBody(pos, end token.Pos, name string) {
	l.places = append(l.places, place{pos: pos, end: end, name: name, body: true})
}

func (l *layout) own(doc *ast.CommentGroup, t Target) {
	if doc != nil {
		l.owners[doc] = owner{target: &t}
	}
}

func (l *layout) refuse(doc *ast.CommentGroup, why reason) {
	if doc != nil {
		l.owners[doc] = owner{why: why}
	}
}

func (l *layout) function(decl *ast.FuncDecl) {
	t := Target{Kind: Func, Node: decl, Name: decl.Name.Name}
	if decl.Recv != nil {
		t.Kind = Method
		if len(decl.Recv.List) > 0 {
			t.Type = BaseName(decl.Recv.List[0].Type)
		}
	}
	name := fmt.Sprintf("%s %s", t.Kind, t.String())
	l.own(decl.Doc, t)
	if t.Kind == Method {
		l.addTarget(decl.Pos(), decl.End(), name)
	} else {
		l.add(decl.Pos(), decl.End(), name)
	}
	if decl.Body != nil {
		l.addBody(decl.Body.Pos(), decl.Body.End(), name)
	} else if pos, end, ok := l.droppedBody(decl.End()); ok {
		l.addBody(pos, end, name)
	}
}

func (l *layout) general(decl *ast.GenDecl) {
	kind := decl.Tok.String()
	if decl.Lparen.IsValid() {
		l.addList(decl.Lparen, decl.End(), "a group of "+kind+" declarations")
	}
	if decl.Tok == token.TYPE {
		if len(decl.Specs) == 1 {
			if spec, ok := decl.Specs[0].(*ast.TypeSpec); ok {
				l.own(decl.Doc, typeTarget(spec))
			}
		} else {
			l.refuse(decl.Doc, reason{text: "a directive cannot stand on a group of types: move it to the doc comment of one of them"})
		}
	} else {
		l.refuse(decl.Doc, cannotStand(kind))
	}
	for i, spec := range decl.Specs {
		pos := spec.Pos()
		if i == 0 && !decl.Lparen.IsValid() {
			pos = decl.Pos()
		}
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			l.own(spec.Doc, typeTarget(spec))
			l.addTarget(pos, spec.End(), "type "+spec.Name.Name)
			l.inside(spec, spec)
		case *ast.ValueSpec:
			l.refuse(spec.Doc, cannotStand(kind))
			l.add(pos, spec.End(), kind+" "+spec.Names[0].Name)
			l.inside(spec, nil)
		case *ast.ImportSpec:
			l.refuse(spec.Doc, cannotStand(kind))
			l.add(pos, spec.End(), "import "+spec.Path.Value)
		}
	}
}

// inside adds the fields, methods and function literals within node. named is the
// type that node declares, if it is one.
func (l *layout) inside(node ast.Node, named *ast.TypeSpec) {
	var iface *ast.InterfaceType
	if named != nil {
		iface, _ = ast.Unparen(named.Type).(*ast.InterfaceType)
	}
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StructType:
			l.addList(n.Fields.Pos(), n.Fields.End(), "a struct")
			for _, f := range n.Fields.List {
				why := cannotStand("struct field")
				why.remedy = fieldRemedy(f)
				l.refuse(f.Doc, why)
				l.refuse(f.Comment, why)
				l.add(f.Pos(), f.End(), "struct field "+fieldName(f))
			}
		case *ast.InterfaceType:
			l.addList(n.Methods.Pos(), n.Methods.End(), "an interface")
			for _, f := range n.Methods.List {
				switch {
				case len(f.Names) == 0:
					l.refuse(f.Doc, cannotStand("embedded type"))
					l.add(f.Pos(), f.End(), "an embedded type")
				case n != iface:
					l.refuse(f.Doc, reason{text: "the interface has no name, so its methods cannot be limited: declare it as a type"})
					l.add(f.Pos(), f.End(), "a method of an interface without a name")
				default:
					t := Target{Kind: InterfaceMethod, Node: f, Type: named.Name.Name, Spec: named, Name: f.Names[0].Name}
					l.own(f.Doc, t)
					l.addTarget(f.Pos(), f.End(), "method "+t.String())
				}
			}
		case *ast.FuncLit:
			l.addBody(n.Body.Pos(), n.Body.End(), "a function literal")
			return false
		}
		return true
	})
}

// floating says why the comment, which documents nothing, stands where it does not
// apply to anything.
func (l *layout) floating(group *ast.CommentGroup, comment *ast.Comment) reason {
	if l.trailing(comment.Slash) {
		return reason{text: "a directive stands on a line of its own above what it applies to: move it there"}
	}
	in, next := l.around(comment)
	switch {
	case in != nil && in.body:
		return reason{text: "a directive has no effect inside the body of " + in.name, move: true}
	case in != nil && !in.list:
		return reason{text: "a directive has no effect inside " + in.name, move: true}
	case next == nil || in != nil && next.pos >= in.end:
		return reason{text: "nothing follows that the directive could apply to", move: true}
	case !next.target:
		return reason{text: "a directive cannot stand on " + next.name, move: true}
	case l.line(next.pos) > l.line(group.End())+1:
		return reason{text: "a blank line separates the directive from " + next.name + ": remove it"}
	}
	return reason{text: "the directive is not in the doc comment of " + next.name, move: true}
}

// around returns the innermost place that the comment stands in and the next that
// begins after it; nil if there is none.
func (l *layout) around(comment *ast.Comment) (in, next *place) {
	i, _ := slices.BinarySearchFunc(l.borders, comment.Pos()+1, func(b border, pos token.Pos) int { return cmp.Compare(b.pos, pos) })
	if i > 0 && l.borders[i-1].in >= 0 {
		in = &l.places[l.borders[i-1].in]
	}
	i, _ = slices.BinarySearchFunc(l.places, comment.End(), func(p place, pos token.Pos) int { return cmp.Compare(p.pos, pos) })
	if i < len(l.places) {
		next = &l.places[i]
	}
	return in, next
}

// trailing reports whether something stands before pos in its line.
func (l *layout) trailing(pos token.Pos) bool {
	offset := l.fset.PositionFor(pos, false).Offset
	if offset > len(l.src) {
		return false
	}
	before := l.src[:offset]
	before = before[bytes.LastIndexByte(before, '\n')+1:]
	return len(bytes.TrimLeft(before, " \t\r\ufeff")) > 0
}

func (l *layout) line(pos token.Pos) int { return l.fset.PositionFor(pos, false).Line }

// droppedBody finds in the source the body of a function whose declaration ends,
// without it, at end.
func (l *layout) droppedBody(end token.Pos) (from, to token.Pos, ok bool) {
	offset := l.fset.PositionFor(end, false).Offset
	if offset >= len(l.src) || !bytes.HasPrefix(bytes.TrimLeft(l.src[offset:], " \t\r"), []byte("{")) {
		return 0, 0, false
	}
	rest := l.src[offset:]
	var s scanner.Scanner
	f := token.NewFileSet().AddFile("", 1, len(rest))
	s.Init(f, rest, func(token.Position, string) {}, 0)
	for depth := 0; ; {
		pos, tok, _ := s.Scan()
		switch tok {
		case token.LBRACE:
			depth++
		case token.RBRACE:
			depth--
		case token.EOF:
			depth = 0
		}
		if depth == 0 {
			return end, end + (pos - 1) + 1, true
		}
	}
}

func cannotStand(on string) reason {
	article := "a "
	if strings.ContainsRune("aeiou", rune(on[0])) {
		article = "an "
	}
	return reason{text: "a directive cannot stand on " + article + on, move: true}
}

// fieldRemedy says how to limit what is called by way of a struct field: not with a
// directive on the struct, of which the field is no method.
func fieldRemedy(f *ast.Field) string {
	switch _, isFunc := ast.Unparen(f.Type).(*ast.FuncType); {
	case isFunc:
		return "declare a method that calls the function in the field, and put the directive on that"
	case len(f.Names) == 0:
		return "declare the method to be limited on the struct itself, and put the directive on that"
	}
	return "put it on the method to be limited, where that is declared"
}

func typeTarget(spec *ast.TypeSpec) Target {
	return Target{Kind: TypeDecl, Node: spec, Name: spec.Name.Name}
}

func fieldName(f *ast.Field) string {
	if len(f.Names) > 0 {
		return f.Names[0].Name
	}
	return BaseName(f.Type)
}

// BaseName is the name of the type that expr, such as a receiver's type, points to or
// instantiates, or "_" if it has none.
func BaseName(expr ast.Expr) string {
	for {
		switch e := expr.(type) {
		case *ast.Ident:
			return e.Name
		case *ast.StarExpr:
			expr = e.X
		case *ast.ParenExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.IndexListExpr:
			expr = e.X
		case *ast.SelectorExpr:
			return e.Sel.Name
		default:
			return "_"
		}
	}
}
