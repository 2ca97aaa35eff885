package keyexpr

import (
	"go/constant"
	"go/types"
	"slices"

	"github.com/expr-lang/expr/ast"
)

// builtins are the functions that are always there, unless the package has one of
// that name.
var builtins = []string{
	"lower", "upper", "trim", "trimPrefix", "trimSuffix", "replace", "hasPrefix", "hasSuffix", "split", "join",
	"len", "string", "int", "float", "abs", "min", "max", "ceil", "floor", "round",
	"any", "all", "none", "one", "count", "sum", "filter", "map",
}

// refusedBuiltins are functions of expr's that are refused, with what to write: $x and
// $y stand for the arguments.
var refusedBuiltins = map[string]string{
	"first":         "write $x[0]",
	"last":          "write $x[len($x) - 1]",
	"get":           "write $x[$y]",
	"find":          "write filter($x, $y)[0]",
	"findIndex":     "write any($x, $y), or use a function of the package",
	"findLast":      "use a function of the package",
	"findLastIndex": "use a function of the package",
	"indexOf":       "write contains, startsWith or split, or use a function of the package",
	"lastIndexOf":   "write contains, endsWith or split, or use a function of the package",
	"splitAfter":    "write split",
	"take":          "write $x[0], $x[1], or use a function of the package",
	"mean":          "write sum($x) / len($x)",
	"now":           "a limit has its own clock; use a function of the package",
}

// builtin checks the functions that expr has built in. Those of the package hide
// them; see rewrite.
func (c *checker) builtin(n *ast.BuiltinNode) Node {
	at := c.text.clamp(n.Location())
	if !slices.Contains(builtins, n.Name) {
		remedy, ok := refusedBuiltins[n.Name]
		if !ok {
			remedy = "use a function of the package"
		}
		c.problem(at, notSupported, n.Name, c.filled(remedy, n.Arguments))
		return nil
	}
	if c.packageObject(n.Name) != nil {
		c.problem(at, notCallable, n.Name)
		return nil
	}
	switch n.Name {
	case "lower", "upper":
		return c.textFunction(n, typString, 1, 1)
	case "trim":
		return c.textFunction(n, typString, 1, 2)
	case "trimPrefix", "trimSuffix":
		return c.textFunction(n, typString, 2, 2)
	case "replace":
		return c.textFunction(n, typString, 3, 3)
	case "hasPrefix", "hasSuffix":
		return c.textFunction(n, typBool, 2, 2)
	case "split":
		return c.textFunction(n, types.NewSlice(typString), 2, 2)
	case "join":
		return c.joinFunction(n)
	case "len":
		return c.length(n)
	case "string":
		return c.stringConversion(n)
	case "int":
		return c.integerConversion(n, n.Name, typInt, n.Arguments)
	case "float":
		return c.floatConversion(n, n.Name, n.Arguments)
	case "abs":
		return c.abs(n)
	case "min", "max":
		return c.extreme(n)
	case "ceil", "floor", "round":
		return c.rounded(n)
	}
	return c.loop(n)
}

// arguments checks the number of arguments.
func (c *checker) arguments(n ast.Node, name string, args []ast.Node, least, most int) bool {
	if len(args) >= least && len(args) <= most {
		return true
	}
	takes := map[[2]int]string{
		{1, 1}: "one argument", {1, 2}: "one or two arguments", {2, 2}: "two arguments", {3, 3}: "three arguments",
	}[[2]int{least, most}]
	if takes == "" {
		takes = "at least two arguments"
	}
	c.at(n, argumentCount, name, takes, len(args))
	return false
}

// textFunction checks a function all of whose arguments are text.
func (c *checker) textFunction(n *ast.BuiltinNode, result types.Type, least, most int) Node {
	if !c.arguments(n, n.Name, n.Arguments, least, most) {
		return nil
	}
	b := &Builtin{Name: n.Name, typ: result}
	for _, a := range n.Arguments {
		if x := c.textual(a); x != nil {
			b.Args = append(b.Args, c.settle(a, x))
		}
	}
	if len(b.Args) < len(n.Arguments) {
		return nil
	}
	switch b.Name {
	case "hasPrefix":
		b.Name = "startsWith"
	case "hasSuffix":
		b.Name = "endsWith"
	}
	return b
}

// joinFunction checks join(list) and join(list, separator).
func (c *checker) joinFunction(n *ast.BuiltinNode) Node {
	if !c.arguments(n, n.Name, n.Arguments, 1, 2) {
		return nil
	}
	list := n.Arguments[0]
	x := c.expr(list)
	var sep Node = &Const{Value: constant.MakeString(""), typ: typString}
	if len(n.Arguments) == 2 {
		if sep = c.textual(n.Arguments[1]); sep != nil {
			sep = c.settle(n.Arguments[1], sep)
		}
	}
	if x == nil || sep == nil {
		return nil
	}
	s, ok := x.Type().Underlying().(*types.Slice)
	switch {
	case isTypeParam(x.Type()) || !ok:
		c.at(list, notJoined, c.quote(list), c.typeName(x.Type()), "")
		return nil
	case !types.Identical(s.Elem(), typString):
		hint := ""
		if KindOf(s.Elem()) != None {
			hint = "; write join(map(" + c.quote(list) + ", string(#)))"
		}
		c.at(list, notJoined, c.quote(list), c.typeName(x.Type()), hint)
		return nil
	}
	return &Builtin{Name: "join", Args: []Node{x, sep}, typ: typString}
}

func (c *checker) length(n *ast.BuiltinNode) Node {
	if !c.arguments(n, n.Name, n.Arguments, 1, 1) {
		return nil
	}
	a := n.Arguments[0]
	x := c.expr(a)
	if x == nil {
		return nil
	}
	ok := keyKindOf(x.Type()) == Text
	if !isTypeParam(x.Type()) {
		switch x.Type().Underlying().(type) {
		case *types.Slice, *types.Array, *types.Map:
			ok = true
		}
	}
	if !ok {
		c.at(a, noLength, c.quote(a), c.typeName(x.Type()))
		return nil
	}
	return &Builtin{Name: "len", Args: []Node{c.settle(a, x)}, typ: typInt}
}

// abs checks abs(x).
func (c *checker) abs(n *ast.BuiltinNode) Node {
	if !c.arguments(n, n.Name, n.Arguments, 1, 1) {
		return nil
	}
	a := n.Arguments[0]
	x := c.settle(a, c.number(a))
	if x == nil {
		return nil
	}
	if IsFloat(x.Type()) {
		x = asFloat(x)
	} else if keyKindOf(x.Type()) == Unsigned {
		return x
	}
	return &Builtin{Name: "abs", Args: []Node{x}, typ: x.Type()}
}

// extreme checks min and max of several numbers of one type.
func (c *checker) extreme(n *ast.BuiltinNode) Node {
	if !c.arguments(n, n.Name, n.Arguments, 2, maxNodes) {
		return nil
	}
	b := &Builtin{Name: n.Name}
	for i, a := range n.Arguments {
		x := c.number(a)
		if x == nil {
			return nil
		}
		if IsFloat(x.Type()) {
			x = asFloat(x)
		}
		// What comes before has one type, or none where all of it is constant.
		for j := range b.Args {
			pair := &ast.BinaryNode{Operator: n.Name, Left: n.Arguments[j], Right: n.Arguments[i]}
			if b.Args[j], x, _ = c.match(pair, b.Args[j], x); x == nil {
				return nil
			}
		}
		b.Args = append(b.Args, x)
	}
	for i := range b.Args {
		if b.Args[i] = c.settle(n.Arguments[i], b.Args[i]); b.Args[i] == nil {
			return nil
		}
	}
	b.typ = b.Args[0].Type()
	if x := extremeConstant(b); x != nil {
		if k, ok := x.(*Const); ok && k.Name == "" {
			return &Const{Value: k.Value, spelled: c.spell(b), typ: k.typ}
		}
		return x
	}
	return b
}

// extremeConstant returns the argument of min or max that is chosen, if all are
// constants; Go would compute that when it compiles.
func extremeConstant(b *Builtin) Node {
	op := lss
	if b.Name == "max" {
		op = gtr
	}
	var chosen Node
	for _, a := range b.Args {
		v := ConstValue(a)
		switch {
		case v == nil:
			return nil
		case chosen == nil || constant.Compare(v, op, ConstValue(chosen)):
			chosen = a
		}
	}
	return chosen
}

// rounded checks ceil, floor and round, which make a whole number of a float that
// is still a float.
func (c *checker) rounded(n *ast.BuiltinNode) Node {
	if !c.arguments(n, n.Name, n.Arguments, 1, 1) {
		return nil
	}
	a := n.Arguments[0]
	x := c.number(a)
	if x == nil {
		return nil
	}
	if !IsFloat(x.Type()) {
		c.at(a, wholeNumber, c.quote(a), c.typeName(x.Type()), n.Name)
		return nil
	}
	return &Builtin{Name: n.Name, Args: []Node{c.settle(a, asFloat(x))}, typ: typFloat}
}

// stringConversion checks string(x).
func (c *checker) stringConversion(n *ast.BuiltinNode) Node {
	if !c.arguments(n, n.Name, n.Arguments, 1, 1) {
		return nil
	}
	a := n.Arguments[0]
	x := c.settle(a, c.expr(a))
	if x == nil {
		return nil
	}
	switch k := keyKindOf(x.Type()); {
	case k == mixed:
		c.at(a, mixedKey, c.typeName(x.Type()))
		return nil
	case k == None && !isBytes(x.Type()):
		c.at(a, notConvert, c.quote(a), c.typeName(x.Type()), "string", "; "+c.remedy(a, x.Type()))
		return nil
	}
	if types.Identical(x.Type(), typString) {
		return x
	}
	if k, ok := x.(*Const); ok && !isNamed(k) {
		return &Const{Value: foldConvert(&Convert{X: k, typ: typString}), typ: types.Typ[types.UntypedString]}
	}
	return &Convert{X: x, typ: typString}
}

// integerConversion checks int64(x) and its like. Only int and int64 take a float,
// of which they drop the fraction.
func (c *checker) integerConversion(n ast.Node, name string, t types.Type, args []ast.Node) Node {
	if !c.arguments(n, name, args, 1, 1) {
		return nil
	}
	a := args[0]
	x := c.expr(a)
	if x == nil {
		return nil
	}
	float := IsFloat(x.Type())
	if !isInteger(x.Type()) && !float || float && name != "int" && name != "int64" {
		hint := ""
		switch {
		case float:
			hint = "; write " + name + "(int(" + c.quote(a) + "))"
		case keyKindOf(x.Type()) == Text:
			hint = "; use a function of the package"
		}
		c.at(a, notConvert, c.quote(a), c.typeName(x.Type()), name, hint)
		return nil
	}
	if float {
		if hasFraction(x) {
			c.at(a, fraction, c.quote(a), c.quote(a))
			return nil
		}
		x = asFloat(x)
	}
	if v := ConstValue(x); v != nil {
		if float {
			v = foldConvert(&Convert{X: x, typ: t})
		}
		if v.Kind() == constant.Unknown || !representable(v, t) {
			c.at(a, overflow, valueText(ConstValue(x)), name)
			return nil
		}
		if k, ok := x.(*Const); float || ok && (k.Name == "" || isUntyped(k.typ)) {
			if float {
				return &Const{Value: constant.ToInt(v), spelled: c.spell(&Convert{X: x, typ: t}), typ: t}
			}
			return &Const{Value: constant.ToInt(v), Name: k.Name, untyped: k.untyped, spelled: k.spelled, typ: t}
		}
	}
	return &Convert{X: x, typ: t}
}

// floatConversion checks float(x).
func (c *checker) floatConversion(n ast.Node, name string, args []ast.Node) Node {
	if !c.arguments(n, name, args, 1, 1) {
		return nil
	}
	x := c.number(args[0])
	switch {
	case x == nil:
		return nil
	case x.Type() == typFloat:
		return x
	case ConstValue(x) != nil:
		v := constant.ToFloat(ConstValue(x))
		if !representable(v, typFloat) {
			c.at(args[0], overflow, valueText(v), name)
			return nil
		}
		return &Const{Value: v, spelled: c.spell(&Convert{X: x, typ: typFloat}), typ: typFloat}
	}
	return &Convert{X: x, typ: typFloat}
}
