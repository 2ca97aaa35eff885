package keyexpr

import (
	"go/constant"
	"go/types"
	"slices"
	"strings"
)

// credentialWords are parts of the names of header fields, parameters and cookies
// that carry what nobody else may know.
var credentialWords = []string{"auth", "cookie", "credential", "key", "pass", "secret", "session", "signature", "token"}

// Credential reports whether n is text that is computed from a credential: from a
// cookie, or from a header field or parameter of a request whose name holds one of
// credentialWords, whether "request" is asked for it, an *http.Request, what is got out
// of one, or the context of a framework. Such text must not be stored or logged.
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
			return secretName(n.Name)
		}
		return false
	case *Call:
		if written(n.Fn) && (strings.HasPrefix(n.Fn.Name(), "Cookie") || slices.ContainsFunc(n.Args, isSecretName)) {
			return true
		}
	case *Field:
		if isTypeNamed(n.X.Type(), "net/http", "Cookie") {
			return true
		}
	case *Index:
		if isSecretName(n.I) && ofRequest(n.X) {
			return true
		}
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

// ofRequest reports whether n is, or is selected from, what holds names and values that
// the client has written: http.Header or url.Values, an *http.Request, a form with
// files, or the context of a framework.
func ofRequest(n Node) bool {
	if t, ok := types.Unalias(n.Type()).(*types.Named); ok && isHTTP(t.Obj().Pkg()) || isRequest(n.Type()) || isContext(n.Type()) {
		return true
	}
	switch n := n.(type) {
	case *Local:
		return n.Value != nil && ofRequest(n.Value)
	case *Let:
		return ofRequest(n.Body)
	case *Field:
		of := n.Path[len(n.Path)-1].Pkg()
		return of != nil && of.Path() == "mime/multipart" || ofRequest(n.X)
	case *Index:
		return ofRequest(n.X)
	case *Call:
		return n.X != nil && ofRequest(n.X)
	}
	return false
}

func isSecretName(n Node) bool {
	v := ConstValue(n)
	return v != nil && v.Kind() == constant.String && secretName(constant.StringVal(v))
}

func secretName(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(credentialWords, func(word string) bool { return strings.Contains(name, word) })
}

// hasText reports whether text can be got out of a value of type t.
func hasText(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return !ok || b.Info()&types.IsString != 0
}

// distrust warns of a key that only the caller chooses: each part that is not
// constant is something that the client writes into its request, so that a fresh one
// gives a fresh counter. Parameters of other types than requests do not count, as the
// code that passes them may know them from a login.
func (c *checker) distrust(k *Key) {
	var whole trust
	for _, n := range k.Elems {
		whole = whole.and(trustOf(n))
	}
	if whole == chosen {
		what := strings.TrimSpace(c.src)
		if strings.HasPrefix(what, "let ") {
			what = "key"
		}
		c.problem(span{0, len(c.text.runes)}, untrusted, what).Warning = true
	}
}

// trust says who chooses a value.
type trust uint8

const (
	few     trust = iota // nobody: it has few values, whoever writes them
	chosen               // the client, by what it writes into its request
	vouched              // the client cannot, or code has looked at it
)

// and is the trust of a value that consists of two others.
func (t trust) and(o trust) trust { return max(t, o) }

// or is the trust of a value that is one of two others, as the client pleases.
func (t trust) or(o trust) trust {
	if t == chosen || o == chosen {
		return chosen
	}
	return max(t, o)
}

func trustOf(n Node) trust {
	if keyKindOf(n.Type()) == Boolean || ConstValue(n) != nil {
		return few
	}
	switch n := n.(type) {
	case *Dim:
		switch n.Kind {
		case Header, Query, Cookie, Path:
			return chosen
		case IP, User, Role:
			return vouched
		}
		return few
	case *Param:
		if isRequest(n.Type()) || isContext(n.Type()) {
			return chosen
		}
		return vouched
	case *Recv, *Global, *Result:
		return vouched
	case *Local:
		if n.Value == nil {
			return few // an element, which its list vouches for
		}
		return trustOf(n.Value)
	case *Let:
		return trustOf(n.Body)
	case *Cond:
		return trustOf(n.Then).or(trustOf(n.Else))
	case *Default:
		t := trustOf(n.Alts[0].Node)
		for _, a := range n.Alts[1:] {
			t = t.or(trustOf(a.Node))
		}
		return t
	case *Field:
		if isRequest(n.Type()) {
			return chosen
		}
		if isRequest(n.X.Type()) {
			switch n.Path[len(n.Path)-1].Name() {
			case "RemoteAddr":
				return chosen // with the port, which is another for each connection
			case "TLS", "Response":
				return vouched
			case "Method", "Pattern", "Proto":
				return few
			}
		}
		if f := n.Path[len(n.Path)-1]; f.Name() == "ServerName" && f.Pkg() != nil && f.Pkg().Path() == "crypto/tls" {
			return chosen // as the Host of a request
		}
	case *Call:
		switch {
		case isRequest(n.typ) || written(n.Fn):
			return chosen
		case !isHTTP(n.Fn.Pkg()):
			return vouched
		}
	}
	t := few
	for _, o := range n.Operands() {
		t = t.and(trustOf(o))
	}
	return t
}

// written reports whether fn is a method that returns what the client has written
// into its request.
func written(fn *types.Func) bool {
	recv := fn.Signature().Recv()
	if recv == nil {
		return false
	}
	if isHTTP(fn.Pkg()) {
		return slices.Contains([]string{"Get", "Values", "FormValue", "PostFormValue", "PathValue", "Cookie", "Cookies", "CookiesNamed", "UserAgent", "Referer"}, fn.Name())
	}
	return isContext(recv.Type()) && slices.Contains(frameworkText[framework(fn.Pkg())], fn.Name())
}

// frameworkText lists methods of the contexts of frameworks that return what the
// client has written. What others return, such as a value that a middleware has set,
// code has looked at.
var frameworkText = map[string][]string{
	"github.com/gin-gonic/gin": {"ClientIP", "Cookie", "DefaultPostForm", "DefaultQuery", "GetHeader", "Param", "PostForm", "Query"},
	"github.com/labstack/echo": {"Cookie", "Cookies", "FormValue", "FormValueOr", "Param", "ParamOr", "QueryParam", "QueryParamOr", "QueryParams", "QueryString"},
	"github.com/gofiber/fiber": {"Body", "BodyRaw", "Cookies", "FormValue", "Get", "GetHeaders", "GetReqHeaders", "Host", "Hostname", "OriginalURL", "Params", "Path", "Queries", "Query"},
}

// framework returns the path of the module of pkg without its major version.
func framework(pkg *types.Package) string {
	if pkg == nil {
		return ""
	}
	path := pkg.Path()
	if i := strings.LastIndex(path, "/v"); i > 0 && !strings.Contains(path[i+1:], "/") && i+2 < len(path) && '0' <= path[i+2] && path[i+2] <= '9' {
		path = path[:i]
	}
	return path
}

// isContext reports whether t is the context of a framework in frameworkText.
func isContext(t types.Type) bool {
	t = types.Unalias(t)
	if p, ok := t.(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	named, ok := t.(*types.Named)
	return ok && frameworkText[framework(named.Obj().Pkg())] != nil
}

// isHTTP reports whether pkg is one of those that requests of net/http are made of.
func isHTTP(pkg *types.Package) bool {
	return pkg != nil && (pkg.Path() == "net/http" || pkg.Path() == "net/url")
}

// isRequest reports whether t is *http.Request.
func isRequest(t types.Type) bool {
	_, ok := types.Unalias(t).(*types.Pointer)
	return ok && isTypeNamed(t, "net/http", "Request")
}

// isTypeNamed reports whether t is the type of that name in the package path, or a pointer
// to it.
func isTypeNamed(t types.Type, path, name string) bool {
	t = types.Unalias(t)
	if p, ok := t.(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	named, ok := t.(*types.Named)
	return ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == path && named.Obj().Name() == name
}
