package keyexpr

import (
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
)

// identifier checks a bare name.
func (c *checker) identifier(n *ast.IdentifierNode) Node {
	name := c.text.name(n)
	if hashed, ok := strings.CutPrefix(name, "#"); ok {
		return c.hashed(n, hashed)
	}
	if c.hidesResult(name) {
		c.named = true
		c.at(n, ambiguousResult, name, c.hiding(name))
		return nil
	}
	if x, ok := c.nearest(n, name); ok {
		return x
	}
	if obj := c.packageObject(name); obj != nil {
		return c.declared(n, obj)
	}
	if isDim(name) {
		return c.told(n, DimKind(name))
	}
	switch name {
	case "global":
		c.at(n, globalAlone)
		return nil
	case "request":
		c.at(n, bareRequest)
		return nil
	}
	if c.imported(name) {
		c.at(n, isImport, name)
		return nil
	}
	if write := limitWords[name]; write != "" && c.limit {
		c.at(n, limitWord, name, write)
		return nil
	}
	if c.isResult(name) {
		c.at(n, noResults, name)
		return nil
	}
	if name == "principal" || name == "authentication" {
		c.at(n, javaName, name, springNames[name])
		return nil
	}
	if name == "null" {
		c.at(n, nullWord)
		return nil
	}
	if len(c.elems) > 0 {
		// SpEL has the element's members in scope.
		if member := getterOf(name, c.members(c.elems[len(c.elems)-1].typ)); member != "" {
			c.at(n, elementMember, name, member)
			return nil
		}
	}
	p := c.at(n, unknownName, name)
	c.unknown(p, name, c.names())
	if p.Suggestion == "" && c.scope.Pkg != nil {
		scope := c.scope.Pkg.Scope()
		p.Suggestion = diag.Suggest(name, slices.DeleteFunc(scope.Names(), func(name string) bool {
			_, isType := scope.Lookup(name).(*types.TypeName)
			return isType
		}))
	}
	return nil
}

// nearest returns what a name means before those of the package: a name of let's, a
// parameter, the receiver or a result. It is nil if that is not a value.
func (c *checker) nearest(n ast.Node, name string) (x Node, ok bool) {
	if b := c.binding(name); b != nil {
		b.used = true
		return b.node, true
	}
	c.named = true
	if x := c.local(name); x != nil && !c.hidesResult(name) {
		return c.valid(n, x), true
	}
	if c.scope.Results != nil {
		return c.result(n, name)
	}
	return nil, false
}

// valid reports a value whose type is not known.
func (c *checker) valid(n ast.Node, x Node) Node {
	if isInvalid(x.Type()) {
		c.at(n, invalidType, c.quote(n))
		return nil
	}
	return x
}

// names lists the names in scope, without those of the package.
func (c *checker) names() []string {
	valid := c.params("")
	if r := c.scope.Recv; r != nil && c.local(r.Name()) != nil {
		valid = append(valid, r.Name())
	}
	for _, b := range c.bound {
		valid = append(valid, b.name)
	}
	valid = append(valid, c.results()...)
	if c.scope.Request {
		valid = append(valid, dimNames()...)
	}
	if c.alone {
		valid = append(valid, "global")
	}
	return valid
}

func (c *checker) params(prefix string) []string {
	var names []string
	if c.scope.Sig != nil {
		for v := range c.scope.Sig.Params().Variables() {
			if v.Name() != "" && v.Name() != "_" {
				names = append(names, prefix+v.Name())
			}
		}
	}
	return names
}

// imported reports whether name is that of an imported package.
func (c *checker) imported(name string) bool {
	return slices.Contains(c.scope.Imports, name) || c.scope.Pkg != nil && slices.ContainsFunc(c.scope.Pkg.Imports(), func(p *types.Package) bool { return p.Name() == name })
}

// importedMember reports a constant or variable of another package; ok is false if n is
// something else.
func (c *checker) importedMember(n *ast.MemberNode) (ok bool) {
	id, ok := n.Node.(*ast.IdentifierNode)
	member := memberName(n)
	if !ok || c.text.indexed(n) || !token.IsExported(member) {
		return false
	}
	name := c.text.name(id)
	if c.known(name) || !c.imported(name) && !strings.Contains(goPackages, " "+name+" ") {
		return false
	}
	var variable *types.Var                                      // nil if it is a constant, or not known
	isErr := strings.HasPrefix(member, "Err") || member == "EOF" // as errors are called
	if c.scope.Pkg != nil {
		for _, p := range c.scope.Pkg.Imports() {
			if p.Name() != name {
				continue
			}
			isErr = false
			switch obj := p.Scope().Lookup(member).(type) {
			case *types.Var:
				variable, isErr = obj, isError(obj.Type())
			case *types.Func, *types.TypeName:
				return false
			}
		}
	}
	own := strings.ToLower(member[:1]) + member[1:]
	for c.known(own) || types.Universe.Lookup(own) != nil {
		own += "Value"
	}
	if isErr {
		c.at(n, importedName, c.quote(n), "a function", "func is"+strings.TrimPrefix(member, "Err")+"(err error) bool { return errors.Is(err, "+c.quote(n)+") }")
		return true
	}
	if variable != nil {
		// A copy would keep the value that the variable has at the start.
		c.at(n, importedName, c.quote(n), "a function", "func "+own+"() "+c.typeName(variable.Type())+" { return "+c.quote(n)+" }")
		return true
	}
	c.at(n, importedName, c.quote(n), "a constant", "const "+own+" = "+c.quote(n))
	return true
}

// hashed checks #name: a parameter, the receiver, or SpEL's names for them.
func (c *checker) hashed(n ast.Node, name string) Node {
	if x, ok := c.nearest(n, name); ok {
		return x
	}
	if name == "root" {
		c.at(n, bareRoot)
		return nil
	}
	if name[0] == 'p' || name[0] == 'a' {
		if i, err := strconv.Atoi(name[1:]); err == nil {
			return c.argument(n, i)
		}
	}
	if c.isResult(name) {
		c.at(n, noResults, name)
		return nil
	}
	here, ok := springNames[name]
	if isDim(name) {
		here, ok = name, true
	}
	if ok {
		c.at(n, springName, name, here)
		return nil
	}
	c.unknown(c.at(n, unknownParam, name), "#"+name, append(c.params("#"), "#root"))
	return nil
}

// argument returns parameter i.
func (c *checker) argument(n ast.Node, i int) Node {
	c.named = true
	count := 0
	if c.scope.Sig != nil {
		count = c.scope.Sig.Params().Len()
	}
	if count == 0 {
		c.at(n, noArguments)
		return nil
	}
	if i < 0 || i >= count {
		c.at(n, noArgument, count, i)
		return nil
	}
	return c.valid(n, &Param{Index: i, Var: c.scope.Sig.Params().At(i)})
}

// declared checks the name of something that the package declares.
func (c *checker) declared(n ast.Node, obj types.Object) Node {
	switch obj := obj.(type) {
	case *types.Var:
		return c.valid(n, &Global{Var: obj})
	case *types.Const:
		if isInvalid(obj.Type()) || obj.Val().Kind() == constant.Unknown {
			c.at(n, invalidType, obj.Name())
			return nil
		}
		v := obj.Val()
		if b, ok := obj.Type().Underlying().(*types.Basic); ok && b.Info()&types.IsInteger != 0 {
			v = constant.ToInt(v)
		}
		if IsFloat(obj.Type()) {
			v = constant.ToFloat(v)
		} else if keyKindOf(obj.Type()) == None {
			c.at(n, complexValue)
			return nil
		}
		return &Const{Value: v, Name: obj.Name(), untyped: isUntyped(obj.Type()), typ: obj.Type()}
	case *types.Func:
		c.at(n, isFunction, obj.Name())
	case *types.TypeName:
		c.at(n, isType, obj.Name())
	}
	return nil
}

// limitWords are what max can be by itself, with what to write within an expression.
var limitWords = map[string]string{
	"unlimited": "exempt calls by unless=, or name what is ratelimit.Unlimited: a field, or a function of the package",
	"blocked":   "write 0",
}

// special checks #root.x, #root.args[i] and request.x; ok is false if n is none
// of them.
func (c *checker) special(n *ast.MemberNode) (x Node, ok bool) {
	base := n.Node
	if chain, ok := base.(*ast.ChainNode); ok {
		base = chain.Node
	}
	if c.text.indexed(n) {
		if m, ok := base.(*ast.MemberNode); ok && c.isRoot(m.Node) && !c.text.indexed(m) && memberName(m) == "args" {
			if i, ok := n.Property.(*ast.IntegerNode); ok {
				return c.argument(n, i.Value), true
			}
			c.at(n, rootArgs)
			return nil, true
		}
		return nil, false
	}
	name := memberName(n)
	if m, ok := base.(*ast.MemberNode); ok && (name == "length" || name == "size") && c.isRoot(m.Node) && !c.text.indexed(m) && memberName(m) == "args" {
		c.named = true
		c.at(n, rootLength)
		return nil, true
	}
	if c.isRoot(base) {
		c.named = true
		switch name {
		case "methodName":
			return &Const{Value: constant.MakeString(c.scope.Method), spelled: spelled{"#root.methodName", bindPrimary}, typ: types.Typ[types.UntypedString]}, true
		case "args":
			c.at(n, rootArgs)
		case "target":
			if c.scope.Recv != nil {
				return c.valid(n, &Recv{Var: c.scope.Recv}), true
			}
			c.at(n, noTarget)
		default:
			at := c.text.clamp(n.Property.Location())
			if hint, ok := rootHints[name]; ok {
				c.problem(at, refusedRoot, name, hint)
				break
			}
			c.unknown(c.problem(at, unknownRoot, name), name, []string{"methodName", "args", "target"})
		}
		return nil, true
	}
	return c.requestMember(n, base, name)
}

// isRoot reports whether n is #root and no parameter has that name.
func (c *checker) isRoot(n ast.Node) bool {
	id, ok := n.(*ast.IdentifierNode)
	return ok && c.text.name(id) == "#root" && c.local("root") == nil
}

func memberName(n *ast.MemberNode) string {
	if s, ok := n.Property.(*ast.StringNode); ok {
		return s.Value
	}
	return ""
}

// member checks x.name and x[i].
func (c *checker) member(n *ast.MemberNode) Node {
	if x, ok := c.special(n); ok {
		return x
	}
	if c.importedMember(n) {
		return nil
	}
	x := c.expr(n.Node)
	if x == nil {
		if c.text.indexed(n) {
			c.expr(n.Property) // for its own problems
		}
		return nil
	}
	if c.text.indexed(n) {
		return c.index(n, x)
	}
	name := memberName(n)
	at := c.text.clamp(n.Property.Location())
	if isUntyped(x.Type()) {
		x = typed(x, types.Default(x.Type()))
	}
	obj, path, ok := c.lookup(n, x, name)
	if !ok {
		return nil
	}
	switch obj := obj.(type) {
	case *types.Var:
		if isTypeParam(x.Type()) {
			c.problem(at, typeParamField, c.typeName(x.Type()))
			return nil
		}
		return c.valid(n, &Field{X: x, Path: append(path, obj)})
	case *types.Func:
		c.problem(at, isMethod, name, c.quote(n.Node))
		return nil
	}
	if m, ok := x.Type().Underlying().(*types.Map); ok && !isTypeParam(x.Type()) && keyKindOf(m.Key()) == Text {
		return c.valid(n, &Index{X: x, I: typed(&Const{Value: constant.MakeString(name)}, m.Key()), typ: m.Elem()})
	}
	c.noMember(n, x, name, "", nil)
	return nil
}

// lookup finds the field or method of x of that name, nil if there is none, and
// the embedded fields on the way to it.
func (c *checker) lookup(n *ast.MemberNode, x Node, name string) (types.Object, []*types.Var, bool) {
	at := c.text.clamp(n.Property.Location())
	obj, index, _ := types.LookupFieldOrMethod(x.Type(), true, c.scope.Pkg, name)
	if obj == nil {
		if index != nil {
			c.problem(at, ambiguousMember, name, c.typeName(x.Type()))
			return nil, nil, false
		}
		if fn := c.generated(x.Type(), c.scope.Pkg, name); fn != nil {
			return fn, nil, true
		}
		return nil, nil, true
	}
	var path []*types.Var
	t := x.Type()
	for _, i := range index[:len(index)-1] {
		if p, ok := t.Underlying().(*types.Pointer); ok {
			t = p.Elem()
		}
		f := t.Underlying().(*types.Struct).Field(i)
		if !f.Exported() && f.Pkg() != c.scope.Pkg && nilable(f.Type()) {
			c.problem(at, hiddenEmbedded, name, f.Name())
			return nil, nil, false
		}
		path = append(path, f)
		t = f.Type()
	}
	return obj, path, true
}

// index checks x[i].
func (c *checker) index(n *ast.MemberNode, x Node) Node {
	i := c.expr(n.Property)
	if i == nil {
		return nil
	}
	var elem types.Type
	var length int64 = -1
	switch t := x.Type().Underlying().(type) {
	case *types.Map:
		if k := keyKindOf(t.Key()); k != None && k != Boolean {
			if i = c.assign(n.Property, i, t.Key(), "the map"); i == nil {
				return nil
			}
			return c.valid(n, &Index{X: x, I: i, typ: t.Elem()})
		}
	case *types.Slice:
		elem = t.Elem()
	case *types.Array:
		elem, length = t.Elem(), t.Len()
	}
	if elem == nil || isTypeParam(x.Type()) {
		if v := ConstValue(i); v != nil && v.Kind() == constant.String {
			if member := getterOf(constant.StringVal(v), c.members(x.Type())); member != "" {
				c.at(n, memberIndex, c.quote(n.Node), c.typeName(x.Type()), c.quote(n.Node)+"."+member)
				return nil
			}
		}
		c.at(n, notIndexable, c.quote(n.Node), c.typeName(x.Type()))
		return nil
	}
	if !isInteger(i.Type()) {
		c.at(n.Property, notInteger, c.quote(n.Property), c.typeName(i.Type()), "")
		return nil
	}
	if v := ConstValue(i); v != nil {
		switch {
		case constant.Sign(v) < 0:
			c.at(n.Property, negativeIndex)
			return nil
		case length >= 0 && !constant.Compare(v, lss, constant.MakeInt64(length)):
			c.at(n.Property, indexRange, v.ExactString(), length)
			return nil
		case !representable(v, typInt):
			c.at(n.Property, overflow, valueText(v), "int")
			return nil
		}
	}
	if i = c.settle(n.Property, i); i == nil {
		return nil
	}
	return c.valid(n, &Index{X: x, I: i, typ: elem})
}
