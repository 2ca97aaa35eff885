package parser

import (
	"go/types"

	"github.com/ratelimitgen/ratelimitgen/parser/keyexpr"
)

// HoldsLock reports whether go vet would say of a copy of a t that it passes on a lock:
// t has pointer methods Lock and Unlock, like a sync.Mutex, or holds something that
// has. Of a struct whose fields are not all known it is true as well.
func HoldsLock(t types.Type) bool { return holdsLock(t, map[types.Type]bool{}) }

func holdsLock(t types.Type, seen map[types.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	if a, ok := t.Underlying().(*types.Array); ok {
		return holdsLock(a.Elem(), seen)
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok {
		return false
	}
	if locker(types.NewPointer(t)) && !locker(t) {
		return true
	}
	for f := range s.Fields() {
		// In an outline, a function of this name stands for what may be anything.
		if _, isFunc := f.Type().(*types.Signature); isFunc && f.Name() == "?" || holdsLock(f.Type(), seen) {
			return true
		}
	}
	return false
}

// locker reports whether t has the methods of a sync.Locker.
func locker(t types.Type) bool {
	mset := types.NewMethodSet(t)
	for _, name := range []string{"Lock", "Unlock"} {
		sel := mset.Lookup(nil, name)
		if sel == nil {
			return false
		}
		if sig := sel.Type().(*types.Signature); sig.Params().Len()+sig.Results().Len() > 0 {
			return false
		}
	}
	return true
}

// ResultsHoldLock reports whether a copy of the results of m would be one of a lock.
func (m *Method) ResultsHoldLock() bool {
	for v := range m.Sig.Results().Variables() {
		if HoldsLock(v.Type()) {
			return true
		}
	}
	return false
}

// lockIn returns a result that holds a lock and that expr, which may be nil, reads: the
// function that computes it gets a copy.
func lockIn(expr *keyexpr.Expr) *types.Var {
	if expr == nil {
		return nil
	}
	var found *types.Var
	keyexpr.Contains(expr.Node, func(n keyexpr.Node) bool {
		if r, ok := n.(*keyexpr.Result); ok && HoldsLock(r.Var.Type()) {
			found = r.Var
		}
		return found != nil
	})
	return found
}
