package keyexpr

import "go/constant"

// mayBeEmpty reports whether an element of a key may be absent or empty text. What is
// not text is never empty.
func mayBeEmpty(n Node) bool { return n.MayBeAbsent() || mayBeEmptyText(n) }

// mayBeEmptyText reports whether n may be empty text where it has a value.
func mayBeEmptyText(n Node) bool {
	if keyKindOf(n.Type()) != Text {
		return false
	}
	if v := ConstValue(n); v != nil {
		return constant.StringVal(v) == ""
	}
	switch n := n.(type) {
	case *Dim:
		return false // absent then
	case *Join:
		for _, p := range n.Parts {
			if !mayBeEmptyText(p) {
				return false
			}
		}
	case *Convert:
		return mayBeEmptyText(n.X) || isBytes(n.X.Type())
	case *Builtin:
		if n.Name == "lower" || n.Name == "upper" {
			return mayBeEmptyText(n.Args[0])
		}
	case *Local:
		return n.Value == nil || mayBeEmptyText(n.Value)
	case *Let:
		return mayBeEmptyText(n.Body)
	case *Cond:
		return mayBeEmptyText(n.Then) || mayBeEmptyText(n.Else)
	case *Default:
		for _, a := range n.Alts {
			if !a.NotEmpty && mayBeEmptyText(a.Node) {
				return true
			}
		}
		return false
	}
	return true
}
