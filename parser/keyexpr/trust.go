package keyexpr

import (
	"go/types"
	"strings"
)

// credentialWords are parts of the names of header fields and query parameters
// that carry what nobody else may know.
var credentialWords = []string{"auth", "cookie", "credential", "key", "pass", "secret", "session", "signature", "token"}

// Credential reports whether n is text that is computed from a credential: from a
// cookie, or from a header field or query parameter whose name holds one of
// credentialWords. Such text must not be stored or logged.
func Credential(n Node) bool {
	if keyKindOf(n.Type()) != Text && !hasText(n.Type()) {
		return false // a number or a boolean gives nothing away
	}
	switch n := n.(type) {
	case *Dim:
		switch n.Kind {
		case Cookie:
			return true
		case Header, Query:
			name := strings.ToLower(n.Name)
			for _, word := range credentialWords {
				if strings.Contains(name, word) {
					return true
				}
			}
		}
		return false
	case *Local:
		return n.Value != nil && Credential(n.Value)
	case *Let:
		return Credential(n.Body)
	case *Loop:
		return Credential(n.X) || Credential(n.Body)
	case *Cond:
		return Credential(n.Then) || Credential(n.Else)
	}
	for _, o := range n.Operands() {
		if Credential(o) {
			return true
		}
	}
	return false
}

// hasText reports whether text can be got out of a value of type t.
func hasText(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return !ok || b.Info()&types.IsString != 0
}

// distrust warns of a key that only the caller chooses: each part that is not
// constant is a header field, a query parameter, a cookie, or text of an
// *http.Request that the client writes, so that a fresh one gives a fresh counter.
// Parameters of other types do not count, as the code that passes them may know
// them from a login.
func (c *checker) distrust(k *Key) {
	t := trust{}
	for _, n := range k.Nodes() {
		t.visit(n)
	}
	if t.chosen && !t.vouched {
		c.problem(span{0, len(c.text.runes)}, untrusted, strings.TrimSpace(c.src)).Warning = true
	}
}

// trust says what a key is made of.
type trust struct {
	chosen  bool // there is something that the client writes into its request
	vouched bool // there is something that it does not, or that code has looked at
}

func (t *trust) visit(n Node) {
	switch n := n.(type) {
	case *Dim:
		switch n.Kind {
		case Header, Query, Cookie:
			t.chosen = true
		case IP, User, Role:
			t.vouched = true
		}
		return
	case *Param:
		if isRequest(n.Type()) {
			t.chosen = true
		} else {
			t.vouched = true
		}
		return
	case *Recv, *Global, *Result:
		t.vouched = true
		return
	case *Field:
		if isRequest(n.X.Type()) {
			switch n.Path[len(n.Path)-1].Name() {
			case "RemoteAddr", "TLS", "Response":
				t.vouched = true
				return
			case "Method", "Pattern", "Proto":
				return // few values, whoever writes them
			}
		}
	case *Call:
		if pkg := n.Fn.Pkg(); pkg == nil || pkg.Path() != "net/http" && pkg.Path() != "net/url" {
			t.vouched = true
			return
		}
	}
	for _, o := range n.Operands() {
		t.visit(o)
	}
}

// isRequest reports whether t is *http.Request.
func isRequest(t types.Type) bool {
	p, ok := types.Unalias(t).(*types.Pointer)
	if !ok {
		return false
	}
	named, ok := types.Unalias(p.Elem()).(*types.Named)
	return ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "net/http" && named.Obj().Name() == "Request"
}
