package keyexpr

import (
	"go/constant"
	"go/types"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// dims are the dimensions that have a name of their own, which may stand behind
// "request." or alone.
var dims = []DimKind{IP, User, Role, Method, Path, Route}

// lookups are the dimensions that request is asked for by a name.
var lookups = []DimKind{Header, Query, Cookie}

func isDim(name string) bool { return slices.Contains(dims, DimKind(name)) }

func isLookup(name string) bool { return slices.Contains(lookups, DimKind(name)) }

func dimNames() []string {
	var names []string
	for _, d := range dims {
		names = append(names, string(d))
	}
	return names
}

// requestNames lists what can stand behind "request.".
func requestNames() []string {
	names := dimNames()
	for _, d := range lookups {
		names = append(names, string(d)+"()")
	}
	return names
}

// dimension returns the dimension that a bare name stands for in an element, nil if
// it stands for none, and false if a problem has been reported.
func (c *checker) dimension(n *ast.IdentifierNode) (dim Node, ok bool) {
	name := c.text.name(n)
	if name != "global" && !isDim(name) {
		return nil, true
	}
	declared := false
	switch c.packageObject(name).(type) {
	case *types.Var, *types.Const:
		declared = true
	}
	switch {
	case c.local(name) != nil && name == "global":
		c.at(n, ambiguousAll)
	case c.local(name) != nil:
		c.at(n, ambiguousName, name)
	case name == "global" && declared:
		return nil, true
	case name == "global":
		c.at(n, globalAlone)
	case declared:
		c.at(n, ambiguousGlobal, name, "string("+name+")")
	default:
		dim = c.told(n, DimKind(name))
		return dim, dim != nil
	}
	return nil, false
}

// told returns the dimension if the method can tell it.
func (c *checker) told(n ast.Node, kind DimKind) Node {
	c.named = true
	if !c.scope.Request {
		if c.scope.NoRequest != "" {
			c.at(n, noRequestFrom, c.quote(n), c.scope.NoRequest)
		} else {
			c.at(n, noRequest, c.quote(n))
		}
		return nil
	}
	if kind == IP {
		return &Dim{Kind: IP, Bits4: 32, Bits6: 64}
	}
	return &Dim{Kind: kind}
}

// prefix checks ip/24/56, which groups addresses; ok is false if n is something
// else.
func (c *checker) prefix(n *ast.BinaryNode) (dim Node, ok bool) {
	if n.Operator != "/" {
		return nil, false
	}
	base, lengths := n.Left, []ast.Node{n.Right}
	if left, ok := base.(*ast.BinaryNode); ok && left.Operator == "/" {
		base, lengths = left.Left, []ast.Node{left.Right, n.Right}
	}
	switch base := base.(type) {
	case *ast.IdentifierNode:
		name := c.text.name(base)
		if isDim(name) && name != string(IP) && !c.known(name) && isNumber(lengths[0]) {
			c.at(n, onlyAddresses, name)
			return nil, true
		}
		// A parameter may be divided; by two literals is what nobody does.
		if name != string(IP) || c.known(name) && (len(lengths) < 2 || !isNumber(lengths[0]) || !isNumber(lengths[1])) {
			return nil, false
		}
		if dim, ok = c.dimension(base); dim == nil || !ok {
			return nil, true
		}
	case *ast.MemberNode:
		name := memberName(base)
		id, ok := base.Node.(*ast.IdentifierNode)
		if !ok || c.text.name(id) != "request" || !isDim(name) {
			return nil, false
		}
		if name != string(IP) {
			if c.known("request") || !isNumber(lengths[0]) {
				return nil, false
			}
			c.at(n, onlyAddresses, c.quote(base))
			return nil, true
		}
		if dim, ok = c.special(base); dim == nil {
			return nil, ok
		}
	default:
		return nil, false
	}
	if !c.count(n) {
		return nil, true
	}
	if len(lengths) == 1 {
		c.at(n, onePrefix, c.quote(base), c.quote(lengths[0]))
		return nil, true
	}
	d := &Dim{Kind: IP}
	for i, l := range lengths {
		length, most := &d.Bits4, 32
		if i == 1 {
			length, most = &d.Bits6, 128
		}
		number, ok := l.(*ast.IntegerNode)
		if !ok || number.Value < 1 || number.Value > most {
			c.at(l, prefixLength, c.quote(l), most, map[int]string{32: "IPv4", 128: "IPv6"}[most])
			return nil, true
		}
		*length = number.Value
	}
	return d, true
}

func isNumber(n ast.Node) bool { _, ok := n.(*ast.IntegerNode); return ok }

// requestMember checks request.x, x being name; ok is false if base is not request
// or name is one of a parameter of that name.
func (c *checker) requestMember(n *ast.MemberNode, base ast.Node, name string) (x Node, ok bool) {
	if id, isName := base.(*ast.IdentifierNode); !isName || c.text.name(id) != "request" {
		return nil, false
	}
	if c.known("request") {
		// A parameter of that name, which has its own members.
		if !isDim(name) {
			return nil, false
		}
		if param := c.local("request"); param != nil {
			if obj, _, _ := types.LookupFieldOrMethod(param.Type(), true, c.scope.Pkg, name); obj != nil {
				c.at(n, ambiguousMethod, name)
				return nil, true
			}
		}
	}
	switch {
	case isLookup(name):
		c.at(n, bareLookup, name)
		return nil, true
	case c.requestHabit(n, nil) != "":
		c.problem(c.text.clamp(n.Property.Location()), javaName, name, c.requestHabit(n, nil))
		return nil, true
	case !isDim(name):
		c.unknown(c.problem(c.text.clamp(n.Property.Location()), unknownRequest, name), name, requestNames())
		return nil, true
	}
	return c.told(n, DimKind(name)), true
}

// requestHabits are what requests of other languages and libraries have, in lower case
// and without "get", with what to write: $x stands for the argument.
var requestHabits = map[string]string{
	"header": "request.header($x)", "headers": "request.header($x)", "useragent": `request.header("User-Agent")`,
	"param": "request.query($x)", "params": "request.query($x)", "parameter": "request.query($x)", "parameters": "request.query($x)", "queryparam": "request.query($x)",
	"cookie": "request.cookie($x)", "cookies": "request.cookie($x)",
	"remoteaddr": "request.ip", "remoteaddress": "request.ip", "remotehost": "request.ip", "remoteip": "request.ip", "clientip": "request.ip", "realip": "request.ip",
	"remoteuser": "request.user", "userprincipal": "request.user", "principal": "request.user", "isuserinrole": "role == $x",
	"uri": "request.path", "url": "request.path", "requesturi": "request.path", "requesturl": "request.path", "pathinfo": "request.path", "servletpath": "request.path",
}

// requestHabit returns what to write for request.x or a call of it with args, "" if x is
// nothing of the kind or request something else.
func (c *checker) requestHabit(n *ast.MemberNode, args []ast.Node) string {
	id, ok := n.Node.(*ast.IdentifierNode)
	if !ok || c.text.name(id) != "request" || c.known("request") || c.text.indexed(n) {
		return ""
	}
	name := strings.ToLower(memberName(n))
	if isDim(name) || isLookup(name) {
		if name == memberName(n) {
			return ""
		}
	} else {
		name = strings.TrimPrefix(name, "get")
	}
	write := requestHabits[name]
	if isDim(name) {
		write = "request." + name
	}
	return c.lookupText(write, args)
}

// lookupText is filled for what takes one name.
func (c *checker) lookupText(write string, args []ast.Node) string {
	name := `"name"`
	if len(args) == 1 {
		name = c.quote(args[0])
	}
	return strings.ReplaceAll(write, "$x", name)
}

// lookupCall checks request.header("X") and its like; ok is false if n is something
// else.
func (c *checker) lookupCall(n *ast.CallNode, callee *ast.MemberNode) (x Node, ok bool) {
	name := memberName(callee)
	base := callee.Node
	if chain, ok := base.(*ast.ChainNode); ok {
		base = chain.Node
	}
	if id, ok := base.(*ast.IdentifierNode); !ok || c.text.name(id) != "request" || !isLookup(name) {
		return nil, false
	}
	if param := c.local("request"); param != nil {
		if obj, _, _ := types.LookupFieldOrMethod(param.Type(), true, c.scope.Pkg, name); obj != nil {
			c.at(callee, ambiguousLookup, name)
			return nil, true
		}
	}
	what := "request." + name
	if !c.arguments(n, what, n.Arguments, 1, 1) {
		return nil, true
	}
	arg := c.textual(n.Arguments[0])
	if arg == nil {
		return nil, true
	}
	v := ConstValue(arg)
	if v == nil {
		c.at(n.Arguments[0], dynamicName, what)
		return nil, true
	}
	key := constant.StringVal(v)
	if key == "" || name != string(Query) && strings.ContainsFunc(key, notToken) {
		c.at(n.Arguments[0], badName, v.String(), name)
		return nil, true
	}
	if name == string(Header) {
		key = canonicalHeader(key)
	}
	dim := c.told(n, DimKind(name))
	if d, ok := dim.(*Dim); ok {
		d.Name = key
	}
	return dim, true
}

// notToken reports whether r cannot be part of a token of RFC 9110, which names of
// header fields and cookies are.
func notToken(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

// canonicalHeader spells a token as net/textproto spells names of header fields. That
// package brings the network with it, which the generator has no other use for.
func canonicalHeader(name string) string {
	b := []byte(name)
	upper := true
	for i, c := range b {
		switch {
		case upper && 'a' <= c && c <= 'z':
			b[i] -= 'a' - 'A'
		case !upper && 'A' <= c && c <= 'Z':
			b[i] += 'a' - 'A'
		}
		upper = c == '-'
	}
	return string(b)
}
