package generator

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ratelimitgen/ratelimitgen/parser/keyexpr"
)

// keyForm says how the function for a key writes it, in the words of
// ratelimit.Policy.KeyForm: the text of a key does not tell what types its parts have,
// and so not always what becomes of them.
func keyForm(key *keyexpr.Key) string {
	elems := make([]string, len(key.Elems))
	for i, n := range key.Elems {
		var words []string
		for _, leaf := range leaves(n) {
			if word := leafForm(leaf); !slices.Contains(words, word) {
				words = append(words, word)
			}
		}
		elems[i] = strings.Join(words, "|")
	}
	return strings.Join(elems, " ")
}

// leafForm is keyForm for what an element may be.
func leafForm(n keyexpr.Node) string {
	d, ok := n.(*keyexpr.Dim)
	switch {
	case ok && d.Kind == keyexpr.IP:
		return "ip/" + strconv.Itoa(d.Bits4) + "/" + strconv.Itoa(d.Bits6)
	case ok && d.Kind == keyexpr.User:
		return "user"
	case keyexpr.Credential(n):
		return "hash"
	}
	switch keyexpr.KindOf(n.Type()) {
	case keyexpr.Signed, keyexpr.Unsigned:
		return "int"
	case keyexpr.Boolean:
		return "bool"
	}
	if names(n) {
		return "name"
	}
	return "text"
}

// names reports whether n is text of a request that is no address whatever it looks like,
// or made of such text. What functions and maps make of it is something else.
func names(n keyexpr.Node) bool {
	switch n := n.(type) {
	case *keyexpr.Dim:
		return slices.Contains([]keyexpr.DimKind{keyexpr.User, keyexpr.Role, keyexpr.Method, keyexpr.Path, keyexpr.Route}, n.Kind)
	case *keyexpr.Local:
		return n.Value != nil && names(n.Value)
	case *keyexpr.Let:
		return names(n.Body)
	case *keyexpr.Cond:
		return names(n.Then) || names(n.Else)
	case *keyexpr.Default, *keyexpr.Builtin, *keyexpr.Convert, *keyexpr.Join:
		return slices.ContainsFunc(n.Operands(), names)
	}
	return false
}
