package generator

import (
	"go/ast"
	"go/token"
	"maps"
	"slices"
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
