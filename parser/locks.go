package parser

import (
	"go/types"

	"github.com/ratelimitgen/ratelimitgen/parser/keyexpr"
)

// HoldsLock reports whether go vet would say of a copy of a t that it passes on a lock:
// t has pointer methods Lock and Unlock, like a sync.Mutex, or holds something that
// has. Of a struct whose fields are not all known it is true as well.
func HoldsLock(t types.Type) bool { return holdsLock(t, true, map[types.Type]bool{}) }

// holdsLock is HoldsLock, where unknown is what is said of fields that are not known.
func holdsLock(t types.Type, unknown bool, seen map[types.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	if a, ok := t.Underlying().(*types.Array); ok {
		return holdsLock(a.Elem(), unknown, seen)
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
		if _, isFunc := f.Type().(*types.Signature); isFunc && f.Name() == "?" && unknown || holdsLock(f.Type(), unknown, seen) {
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

// lockIn returns the type of a value in expr, which may be nil, that holds a lock and
// that the function for expr would have a copy of; nil if there is none.
func lockIn(expr *keyexpr.Expr) types.Type {
	if expr == nil {
		return nil
	}
	return lockCopied(expr.Node)
}

// lockCopied is lockIn for one node. A struct of which not all is known may pass: go vet
// then says of the output what is not said here.
func lockCopied(n keyexpr.Node) (found types.Type) {
	keyexpr.Contains(n, func(n keyexpr.Node) bool {
		var t types.Type
		switch n := n.(type) {
		case *keyexpr.Result:
			t = n.Type()
		case *keyexpr.Let:
			t = n.Local.Type()
		case *keyexpr.Local: // of a key, in which let is no node
			t = n.Type()
		case *keyexpr.Call:
			for _, a := range n.Args {
				if holdsLock(a.Type(), false, map[types.Type]bool{}) {
					t = a.Type()
				}
			}
		case *keyexpr.Loop:
			t = n.Elem.Type()
		case *keyexpr.Default, *keyexpr.Cond:
			t = n.Type()
		case *keyexpr.Index:
			if m, ok := n.X.Type().Underlying().(*types.Map); ok {
				t = m.Elem()
			}
		case *keyexpr.In:
			if n.In != nil {
				if m, ok := n.In.Type().Underlying().(*types.Map); ok {
					t = m.Elem()
				}
			}
		}
		if t != nil && holdsLock(t, false, map[types.Type]bool{}) {
			found = t
		}
		return found != nil
	})
	return found
}
