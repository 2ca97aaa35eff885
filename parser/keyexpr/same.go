package keyexpr

import (
	"go/constant"
	"go/token"
	"go/types"
	"slices"
)

// same reports whether x and y evaluate the same. How a constant is written does not
// matter, but constants of different names are different, as another build may have it.
func same(x, y Node) bool { return locals{}.same(x, y) }

// locals tells which names of let's and elements of one expression are those of another.
type locals map[*Local]*Local

func (l locals) same(x, y Node) bool {
	if !l.alike(x, y) {
		return false
	}
	return slices.EqualFunc(x.Operands(), y.Operands(), l.same)
}

// alike reports whether x and y are the same but for their operands.
func (l locals) alike(x, y Node) bool {
	switch x := x.(type) {
	case *Const:
		y, ok := y.(*Const)
		return ok && x.Name == y.Name && x.Value.Kind() == y.Value.Kind() && constant.Compare(x.Value, token.EQL, y.Value) &&
			types.Identical(x.typ, y.typ)
	case *Dim:
		y, ok := y.(*Dim)
		return ok && *x == *y
	case *Nil:
		_, ok := y.(*Nil)
		return ok
	case *Param:
		y, ok := y.(*Param)
		return ok && x.Index == y.Index
	case *Result:
		y, ok := y.(*Result)
		return ok && x.Index == y.Index
	case *Recv:
		_, ok := y.(*Recv)
		return ok
	case *Global:
		y, ok := y.(*Global)
		return ok && x.Var == y.Var
	case *Local:
		y, ok := y.(*Local)
		return ok && (x == y || l[x] == y)
	case *Let:
		y, ok := y.(*Let)
		if ok {
			l[x.Local] = y.Local
		}
		return ok
	case *Loop:
		y, ok := y.(*Loop)
		if ok {
			l[x.Elem] = y.Elem
		}
		return ok && x.Op == y.Op
	case *Field:
		y, ok := y.(*Field)
		return ok && slices.EqualFunc(x.Path, y.Path, sameField)
	case *Index:
		_, ok := y.(*Index)
		return ok
	case *Call:
		y, ok := y.(*Call)
		return ok && (x.X == nil) == (y.X == nil) && x.Fn.Origin() == y.Fn.Origin() && slices.EqualFunc(x.Path, y.Path, sameField)
	case *Convert:
		y, ok := y.(*Convert)
		return ok && types.Identical(x.typ, y.typ)
	case *Builtin:
		y, ok := y.(*Builtin)
		return ok && x.Name == y.Name
	case *Match:
		y, ok := y.(*Match)
		return ok && x.Pattern == y.Pattern
	case *In:
		y, ok := y.(*In)
		return ok && (x.In == nil) == (y.In == nil)
	case *Unary:
		y, ok := y.(*Unary)
		return ok && x.Op == y.Op
	case *Binary:
		y, ok := y.(*Binary)
		return ok && x.Op == y.Op
	case *Join:
		_, ok := y.(*Join)
		return ok
	case *Cond:
		_, ok := y.(*Cond)
		return ok
	case *Default:
		y, ok := y.(*Default)
		return ok && slices.EqualFunc(x.Alts, y.Alts, func(a, b Alt) bool { return a.NotEmpty == b.NotEmpty })
	}
	return false
}

func sameField(f, g *types.Var) bool { return f.Origin() == g.Origin() }
