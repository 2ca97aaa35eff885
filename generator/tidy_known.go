package generator

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
)

// facts is what is known where a statement stands.
type facts struct {
	// known holds conditions, as knower.atom writes them, with their values.
	known map[string]bool
	// equal holds boolean variables that say what other conditions say.
	equal map[string]equivalent
}

// equivalent stands for all of some conditions, or for the opposite.
type equivalent struct {
	not bool
	all []literal
}

type literal struct {
	atom string
	is   bool
}

func (s facts) clone() facts { return facts{maps.Clone(s.known), maps.Clone(s.equal)} }

// value is that of a condition, as far as it is known.
type value uint8

const (
	unknown value = iota
	isTrue
	isFalse
)

func (v value) not() value {
	switch v {
	case isTrue:
		return isFalse
	case isFalse:
		return isTrue
	}
	return unknown
}

func valueOf(b bool) value {
	if b {
		return isTrue
	}
	return isFalse
}

func (v value) String() string { return map[value]string{isTrue: "true", isFalse: "false"}[v] }

// knower replaces conditions of which the value is known where they stand, and what
// depends on them. A call can change whatever is not a variable of the function.
type knower struct {
	*function
	atoms map[string]effects // what the conditions depend on
}

// effects is what evaluating something can change, or what a condition depends on.
type effects struct {
	names  map[string]bool // variables of the function
	memory bool            // everything else
}

func (e effects) touch(x effects) bool {
	if e.memory && x.memory {
		return true
	}
	for name := range x.names {
		if e.names[name] {
			return true
		}
	}
	return false
}

// known replaces what is known where it stands.
func (f *function) known() {
	k := knower{f, map[string]effects{}}
	k.list(f.body.List, &facts{map[string]bool{}, map[string]equivalent{}})
}

// list visits statements, and reports whether what follows them is reached.
func (k *knower) list(list []ast.Stmt, s *facts) bool {
	for i, n := range list {
		if k.stmt(n, s) {
			continue
		}
		for _, rest := range list[i+1:] {
			k.cutLines(rest)
		}
		return false
	}
	return true
}

func (k *knower) stmt(n ast.Stmt, s *facts) bool {
	switch n := n.(type) {
	case *ast.AssignStmt:
		for _, x := range n.Rhs {
			k.expr(x, s)
		}
		id, ok := n.Lhs[0].(*ast.Ident)
		simple := ok && len(n.Lhs) == 1 && (n.Tok == token.ASSIGN || n.Tok == token.DEFINE)
		if simple && n.Tok == token.ASSIGN {
			if v := literalBool(n.Rhs[0]); v != unknown && k.value(id, *s) == v {
				k.cutLines(n) // it has the value already
				return true
			}
		}
		k.forget(s, k.effects(n))
		if simple && id.Name != "_" {
			k.set(id.Name, n.Rhs[0], s)
		}
	case *ast.DeclStmt:
		spec := n.Decl.(*ast.GenDecl).Specs[0].(*ast.ValueSpec)
		for _, x := range spec.Values {
			k.expr(x, s)
		}
		k.forget(s, k.effects(n))
		if id, ok := spec.Type.(*ast.Ident); ok && id.Name == "bool" && len(spec.Values) == 0 {
			s.known[spec.Names[0].Name] = false
		}
	case *ast.IncDecStmt:
		k.forget(s, k.effects(n))
	case *ast.ExprStmt:
		k.expr(n.X, s)
		k.forget(s, k.effects(n))
	case *ast.IfStmt:
		return k.branch(n, s)
	case *ast.RangeStmt:
		k.expr(n.X, s)
		k.forget(s, k.effects(n)) // before the second round, too
		body := s.clone()
		k.list(n.Body.List, &body)
	case *ast.ReturnStmt:
		for _, x := range n.Results {
			k.expr(x, s)
		}
		return false
	case *ast.BranchStmt:
		return false
	}
	return true
}

// set notes what is known of a boolean variable, given its value.
func (k *knower) set(name string, x ast.Expr, s *facts) {
	if v := literalBool(x); v != unknown {
		s.known[name] = v == isTrue
		return
	}
	all, ok := k.conjunction(x)
	if !ok || slices.ContainsFunc(all, func(l literal) bool { return k.atoms[l.atom].names[name] }) {
		return
	}
	s.equal[name] = equivalent{all: all}
}

// conjunction lists the conditions that e joins by &&, none of which calls anything.
func (k *knower) conjunction(e ast.Expr) (all []literal, ok bool) {
	e = ast.Unparen(e)
	if b, isBinary := e.(*ast.BinaryExpr); isBinary && b.Op == token.LAND {
		x, xok := k.conjunction(b.X)
		y, yok := k.conjunction(b.Y)
		return append(x, y...), xok && yok
	}
	if b, isBinary := e.(*ast.BinaryExpr); isBinary && b.Op == token.LOR || k.calls(e) {
		return nil, false
	}
	atom, is := k.atom(e)
	return []literal{{atom, is}}, true
}

// branch visits an if, and what of it is reached where that is known.
func (k *knower) branch(n *ast.IfStmt, s *facts) bool {
	if n.Init != nil {
		k.stmt(n.Init, s)
	}
	start := s.clone()
	v := k.expr(n.Cond, s)
	otherwise := func(s *facts) bool {
		switch e := n.Else.(type) {
		case *ast.BlockStmt:
			return k.list(e.List, s)
		case *ast.IfStmt:
			return k.stmt(e, s)
		}
		return true
	}
	if v != unknown && n.Init == nil && k.splice(n, v) {
		// The edits inside are for the next time.
		edits := k.edits
		defer func() { k.edits = edits }()
		if v == isTrue {
			return k.list(n.Body.List, s)
		}
		return otherwise(s)
	}
	then, other := start.clone(), start
	k.assert(n.Cond, true, &then)
	k.assert(n.Cond, false, &other)
	thenEnds, otherEnds := k.list(n.Body.List, &then), otherwise(&other)
	switch {
	case !thenEnds && !otherEnds:
		return false
	case !thenEnds:
		*s = other
	case !otherEnds:
		*s = then
	default:
		*s = k.merged(n, then, other)
	}
	return true
}

// merged is what is known behind an if, given what is at the end of its branches.
func (k *knower) merged(n *ast.IfStmt, then, other facts) facts {
	s := facts{map[string]bool{}, map[string]equivalent{}}
	for atom, is := range then.known {
		if v, ok := other.known[atom]; ok && v == is {
			s.known[atom] = is
		}
	}
	for name, e := range then.equal {
		if x, ok := other.equal[name]; ok && x.not == e.not && slices.Equal(x.all, e.all) {
			s.equal[name] = e
		}
	}
	all, ok := k.conjunction(n.Cond)
	changed := k.effects(n.Body)
	if n.Else != nil {
		changed = changed.and(k.effects(n.Else))
	}
	if !ok || slices.ContainsFunc(all, func(l literal) bool { return changed.touch(k.atoms[l.atom]) }) {
		return s
	}
	for name := range changed.names {
		is, known := then.known[name]
		e := then.equal[name]
		switch was, ok := other.known[name]; {
		case !ok:
		case known && is && !was:
			s.equal[name] = equivalent{all: all}
		case known && !is && was:
			s.equal[name] = equivalent{not: true, all: all}
		case !known && e.all != nil && !e.not && !was:
			s.equal[name] = equivalent{all: append(slices.Clip(all), e.all...)}
		}
	}
	return s
}

// assert notes that e has the value is.
func (k *knower) assert(e ast.Expr, is bool, s *facts) {
	e = ast.Unparen(e)
	if n, ok := e.(*ast.UnaryExpr); ok && n.Op == token.NOT {
		k.assert(n.X, !is, s)
		return
	}
	b, ok := e.(*ast.BinaryExpr)
	if !ok || b.Op != token.LAND && b.Op != token.LOR {
		k.forget(s, k.effects(e))
		if !k.calls(e) {
			atom, positive := k.atom(e)
			k.learn(atom, is == positive, s)
		}
		return
	}
	if is == (b.Op == token.LAND) {
		k.assert(b.X, is, s)
		k.assert(b.Y, is, s)
		return
	}
	k.forget(s, k.effects(e))
	if k.calls(e) {
		return
	}
	atom, positive := k.atom(e)
	k.learn(atom, is == positive, s)
	switch x, y := k.value(b.X, *s), k.value(b.Y, *s); {
	case x == valueOf(!is):
		k.assert(b.Y, is, s)
	case y == valueOf(!is):
		k.assert(b.X, is, s)
	}
}

func (k *knower) learn(atom string, is bool, s *facts) {
	if v, ok := s.known[atom]; ok && v == is {
		return
	}
	s.known[atom] = is
	e, ok := s.equal[atom]
	if !ok {
		return
	}
	if is != e.not || len(e.all) == 1 {
		for _, l := range e.all {
			k.learn(l.atom, l.is == (is != e.not), s)
		}
	}
}

// forget drops what no longer need be so.
func (k *knower) forget(s *facts, e effects) {
	maps.DeleteFunc(s.known, func(atom string, _ bool) bool { return e.touch(k.atoms[atom]) || e.names[atom] })
	maps.DeleteFunc(s.equal, func(name string, x equivalent) bool {
		return e.names[name] || slices.ContainsFunc(x.all, func(l literal) bool { return e.touch(k.atoms[l.atom]) })
	})
}

// effects returns what n can change.
func (k *knower) effects(n ast.Node) effects {
	e := effects{names: map[string]bool{}}
	name := func(x ast.Expr) {
		if id, ok := x.(*ast.Ident); ok {
			e.names[id.Name] = true
		} else if x != nil {
			e.memory = true
		}
	}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, x := range n.Lhs {
				name(x)
			}
		case *ast.ValueSpec:
			for _, id := range n.Names {
				name(id)
			}
		case *ast.IncDecStmt:
			name(n.X)
		case *ast.RangeStmt:
			name(n.Key)
			name(n.Value)
		case *ast.CallExpr:
			if k.pure(n) {
				break
			}
			e.memory = true
			// A method can change the variable that it is called on.
			x := n.Fun
			for {
				switch n := x.(type) {
				case *ast.SelectorExpr:
					x = n.X
					continue
				case *ast.ParenExpr:
					x = n.X
					continue
				case *ast.IndexExpr:
					x = n.X
					continue
				case *ast.Ident:
					if !k.pointers[n.Name] {
						e.names[n.Name] = true
					}
				}
				break
			}
		}
		return true
	})
	return e
}

func (e effects) and(x effects) effects {
	maps.Copy(e.names, x.names)
	e.memory = e.memory || x.memory
	return e
}

// atom returns the text of a condition, the same for all that say the same or the
// opposite, and the value of the condition where the text holds.
func (k *knower) atom(e ast.Expr) (text string, is bool) {
	e = ast.Unparen(e)
	is = true
	switch n := e.(type) {
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			text, is = k.atom(n.X)
			return text, !is
		}
	case *ast.BinaryExpr:
		if n.Op == token.LAND || n.Op == token.LOR {
			parts := slices.Sorted(slices.Values(k.parts(n, n.Op)))
			text, is = "("+strings.Join(slices.Compact(parts), " && ")+")", n.Op == token.LAND
			break
		}
		x, y, op := types.ExprString(ast.Unparen(n.X)), types.ExprString(ast.Unparen(n.Y)), n.Op
		length := isLength(n.X)
		if isLength(n.Y) && !length {
			x, y, op, length = y, x, mirrored(op), true
		}
		if length { // an integer, and none is negative
			switch {
			case op == token.GTR && y == "0", op == token.GEQ && y == "1":
				y, op = "0", token.NEQ
			case op == token.LEQ && y == "0", op == token.LSS && y == "1":
				y, op = "0", token.EQL
			}
			switch op {
			case token.LEQ:
				op, is = token.GTR, false
			case token.LSS:
				op, is = token.GEQ, false
			}
			if op == token.GEQ && y == "0" {
				return "true", is
			}
		}
		switch op {
		case token.NEQ, token.EQL:
			is = op == token.EQL
			if y < x {
				x, y = y, x
			}
			op = token.EQL
		}
		text = x + " " + op.String() + " " + y
	}
	if text == "" {
		text = types.ExprString(e)
	}
	if _, ok := k.atoms[text]; !ok {
		k.atoms[text] = k.dependsOn(e)
	}
	return text, is
}

// parts lists what a condition joins by &&, or the opposites of what it joins by ||.
func (k *knower) parts(e ast.Expr, op token.Token) []string {
	e = ast.Unparen(e)
	if b, ok := e.(*ast.BinaryExpr); ok && b.Op == op {
		return append(k.parts(b.X, op), k.parts(b.Y, op)...)
	}
	text, is := k.atom(e)
	if is != (op == token.LAND) {
		text = "!" + text
	}
	return []string{text}
}

// isLength reports whether e is a call of len.
func isLength(e ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	id, ok := call.Fun.(*ast.Ident)
	return ok && id.Name == "len"
}

// mirrored is the operator for operands that change places.
func mirrored(op token.Token) token.Token {
	switch op {
	case token.LSS:
		return token.GTR
	case token.LEQ:
		return token.GEQ
	case token.GTR:
		return token.LSS
	case token.GEQ:
		return token.LEQ
	}
	return op
}

func (k *knower) dependsOn(e ast.Expr) effects {
	d := effects{names: map[string]bool{}}
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			d.memory = true
			ast.Inspect(n.X, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					d.names[id.Name] = true
				}
				return true
			})
			return false
		case *ast.Ident:
			if k.local[n.Name] > 0 {
				d.names[n.Name] = true
			} else if types.Universe.Lookup(n.Name) == nil || k.declared[n.Name] {
				d.memory = true
			}
		case *ast.IndexExpr, *ast.StarExpr, *ast.SliceExpr, *ast.CallExpr:
			d.memory = true
		}
		return true
	})
	return d
}

// literalBool returns the value of true and false.
func literalBool(e ast.Expr) value {
	if id, ok := ast.Unparen(e).(*ast.Ident); ok {
		switch id.Name {
		case "true":
			return isTrue
		case "false":
			return isFalse
		}
	}
	return unknown
}

// value returns what is known of a condition.
func (k *knower) value(e ast.Expr, s facts) value {
	if v := literalBool(e); v != unknown {
		return v
	}
	if k.calls(e) {
		return unknown
	}
	atom, is := k.atom(e)
	v := s.value(atom)
	if atom == "true" {
		v = isTrue
	}
	if !is {
		return v.not()
	}
	return v
}

func (s facts) value(atom string) value {
	if is, ok := s.known[atom]; ok {
		return valueOf(is)
	}
	e, ok := s.equal[atom]
	if !ok {
		return unknown
	}
	v := isTrue
	for _, l := range e.all {
		is, ok := s.known[l.atom]
		if ok && is != l.is {
			v = isFalse
			break
		}
		if !ok {
			v = unknown
		}
	}
	if e.not {
		return v.not()
	}
	return v
}

// expr replaces what is known in e, and returns the value of a condition.
func (k *knower) expr(e ast.Expr, s *facts) value { return k.operand(e, s, precOr) }

// operand is expr where what stands there must bind at least as tight as prec.
func (k *knower) operand(e ast.Expr, s *facts, prec int) value {
	switch n := e.(type) {
	case *ast.Ident, *ast.ParenExpr, *ast.BinaryExpr:
		return k.condition(e, s, prec)
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			return k.condition(e, s, prec)
		}
		k.operand(n.X, s, precUnary)
	case *ast.SelectorExpr:
		k.operand(n.X, s, precPrimary)
	case *ast.StarExpr:
		k.operand(n.X, s, precUnary)
	case *ast.SliceExpr:
		k.operand(n.X, s, precPrimary)
	case *ast.IndexExpr:
		k.operand(n.X, s, precPrimary)
		k.expr(n.Index, s)
	case *ast.CallExpr:
		// When operands are evaluated that are no calls, Go leaves open.
		k.forget(s, k.effects(n))
		if _, ok := n.Fun.(*ast.Ident); !ok {
			k.expr(n.Fun, s)
		}
		for _, arg := range n.Args {
			k.expr(arg, s)
		}
	}
	return unknown
}

func (k *knower) condition(e ast.Expr, s *facts, prec int) value {
	c := k.fold(e, s)
	if c.changed {
		k.replace(e.Pos(), e.End(), c.in(prec))
	}
	return c.is
}

// folded is a condition without what is known of it.
type folded struct {
	text    string
	prec    int
	is      value
	changed bool
}

func (c folded) in(prec int) string { return val{text: c.text, prec: c.prec}.in(prec) }

func decided(v value) folded {
	return folded{text: v.String(), prec: precPrimary, is: v, changed: true}
}

func (k *knower) fold(e ast.Expr, s *facts) folded {
	c := folded{text: k.text(e), prec: precPrimary}
	switch n := e.(type) {
	case *ast.ParenExpr:
		if x := k.fold(n.X, s); x.changed {
			return x
		} else {
			c.is = x.is
		}
		return c
	case *ast.UnaryExpr:
		if n.Op != token.NOT {
			break
		}
		c.prec = precUnary
		if again, ok := ast.Unparen(n.X).(*ast.UnaryExpr); ok && again.Op == token.NOT {
			x := k.fold(ast.Unparen(again.X), s)
			x.changed = true
			return x
		}
		x := k.fold(n.X, s)
		switch {
		case x.is != unknown:
			return decided(x.is.not())
		case x.changed:
			c.text, c.changed = "!"+x.in(precUnary), true
		}
		return c
	case *ast.BinaryExpr:
		c.prec = n.Op.Precedence()
		if n.Op == token.LAND || n.Op == token.LOR {
			return k.foldLogical(n, c, s)
		}
		for _, side := range [][2]ast.Expr{{n.X, n.Y}, {n.Y, n.X}} {
			v := literalBool(side[0])
			id, ok := side[1].(*ast.Ident)
			if v == unknown || !ok || n.Op != token.EQL && n.Op != token.NEQ {
				continue
			}
			if other := literalBool(id); other != unknown {
				return decided(valueOf((v == other) == (n.Op == token.EQL)))
			}
			if !k.booleans[id.Name] {
				continue // its type may be another than that of the comparison
			}
			if (v == isTrue) == (n.Op == token.EQL) {
				return folded{text: id.Name, prec: precPrimary, changed: true}
			}
			return folded{text: "!" + id.Name, prec: precUnary, changed: true}
		}
	}
	if v := literalBool(e); v != unknown {
		c.is = v
		return c
	}
	k.forget(s, k.effects(e))
	if v := k.value(e, *s); v != unknown {
		return decided(v)
	}
	switch n := e.(type) {
	case *ast.BinaryExpr:
		k.operand(n.X, s, precUnary)
		k.operand(n.Y, s, precUnary)
	case *ast.Ident:
	default:
		k.expr(e, s)
	}
	return c
}

func (k *knower) foldLogical(n *ast.BinaryExpr, c folded, s *facts) folded {
	if v := k.value(n, *s); v != unknown {
		return decided(v)
	}
	before := s.clone()
	x := k.fold(n.X, s)
	after := before
	k.assert(n.X, n.Op == token.LAND, &after)
	y := k.fold(n.Y, &after)
	k.forget(s, k.effects(n.Y))
	decides := valueOf(n.Op == token.LOR)
	part := func(p folded) folded {
		p.changed = true
		return p
	}
	switch {
	case x.is == decides:
		return decided(decides)
	case x.is != unknown:
		return part(y)
	case y.is == decides && !k.calls(n.X):
		return decided(decides)
	case y.is == decides.not():
		return part(x)
	case x.changed || y.changed:
		c.text, c.changed = x.in(c.prec)+" "+n.Op.String()+" "+y.in(c.prec), true
	}
	return c
}

// splice puts what of n is reached in its place.
func (k *knower) splice(n *ast.IfStmt, v value) bool {
	outer := k.elseIf[n]
	var rest ast.Stmt = n.Body
	if v == isFalse {
		rest = n.Else
	}
	switch block, _ := rest.(*ast.BlockStmt); {
	case outer != nil && (rest == nil || block != nil && len(block.List) == 0):
		k.cut(outer.Body.End(), n.End())
	case outer != nil || rest != nil && block == nil:
		k.replace(n.Pos(), n.End(), k.text(rest))
	case rest == nil || len(block.List) == 0:
		k.cutLines(n)
	case k.hides(block):
		return false
	default:
		k.replace(n.Pos(), n.End(), k.inner(block))
	}
	return true
}
