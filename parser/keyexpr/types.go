package keyexpr

import (
	"go/constant"
	"go/types"
	"math"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// Kind is how a value is written as an element of a key.
type Kind uint8

// The kinds of elements.
const (
	None     Kind = iota // not at all
	Text                 // as it is
	Signed               // in decimal
	Unsigned             // in decimal
	Boolean              // as true or false
	mixed                // a type parameter that can be several of them
)

// KindOf returns the kind of an element of type t. It is None for a type parameter
// whose types are of different kinds.
func KindOf(t types.Type) Kind {
	if k := keyKindOf(t); k != mixed {
		return k
	}
	return None
}

func keyKindOf(t types.Type) Kind {
	if tp, ok := types.Unalias(t).(*types.TypeParam); ok {
		kind := None
		for i, term := range typeSet(tp) {
			k := keyKindOf(term)
			switch {
			case k == None || k == mixed:
				return None
			case i > 0 && k != kind:
				return mixed
			}
			kind = k
		}
		return kind
	}
	b, ok := t.Underlying().(*types.Basic)
	if !ok {
		return None
	}
	switch info := b.Info(); {
	case info&types.IsString != 0:
		return Text
	case info&types.IsUnsigned != 0:
		return Unsigned
	case info&types.IsInteger != 0:
		return Signed
	case info&types.IsBoolean != 0:
		return Boolean
	}
	return None
}

// typeSet returns the types of a type parameter's constraint, nil if it does not
// list any. Where a constraint has several lists, the first is taken, which holds
// all types that the constraint admits.
func typeSet(tp *types.TypeParam) []types.Type {
	return interfaceTypes(tp.Constraint().Underlying(), 0)
}

func interfaceTypes(t types.Type, depth int) []types.Type {
	iface, ok := t.(*types.Interface)
	if !ok || depth > maxDepth {
		return nil
	}
	for i := range iface.NumEmbeddeds() {
		switch e := types.Unalias(iface.EmbeddedType(i)).(type) {
		case *types.Union:
			var set []types.Type
			for j := range e.Len() {
				term := e.Term(j).Type()
				if inner, ok := term.Underlying().(*types.Interface); ok {
					nested := interfaceTypes(inner, depth+1)
					if nested == nil {
						return nil
					}
					set = append(set, nested...)
					continue
				}
				set = append(set, term)
			}
			return set
		default:
			if _, ok := e.Underlying().(*types.Interface); !ok {
				return []types.Type{e}
			}
			if set := interfaceTypes(e.Underlying(), depth+1); set != nil {
				return set
			}
		}
	}
	return nil
}

func isTypeParam(t types.Type) bool {
	_, ok := types.Unalias(t).(*types.TypeParam)
	return ok
}

func isInteger(t types.Type) bool {
	if tp, ok := types.Unalias(t).(*types.TypeParam); ok {
		set := typeSet(tp)
		return set != nil && !slices.ContainsFunc(set, func(t types.Type) bool { return isTypeParam(t) || !isInteger(t) })
	}
	k := keyKindOf(t)
	return k == Signed || k == Unsigned
}

// IsFloat reports whether t is a type of numbers with a fraction, or a type
// parameter that can be nothing else.
func IsFloat(t types.Type) bool {
	if tp, ok := types.Unalias(t).(*types.TypeParam); ok {
		set := typeSet(tp)
		return set != nil && !slices.ContainsFunc(set, func(t types.Type) bool { return isTypeParam(t) || !IsFloat(t) })
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsFloat != 0
}

func isUntyped(t types.Type) bool {
	b, ok := t.(*types.Basic)
	return ok && b.Info()&types.IsUntyped != 0
}

// isBytes reports whether t is a slice of bytes.
func isBytes(t types.Type) bool {
	s, ok := t.Underlying().(*types.Slice)
	if !ok || isTypeParam(t) {
		return false
	}
	b, ok := types.Unalias(s.Elem()).(*types.Basic)
	return ok && b.Kind() == types.Byte
}

// isInvalid reports whether t could not be determined.
func isInvalid(t types.Type) bool {
	b, ok := types.Unalias(t).(*types.Basic)
	return ok && b.Kind() == types.Invalid
}

// typeName writes t as the package itself would.
func (c *checker) typeName(t types.Type) string {
	if b, ok := t.(*types.Basic); ok && b.Kind() == types.UntypedString {
		return "text"
	}
	return types.TypeString(types.Default(t), func(p *types.Package) string {
		if p == c.scope.Pkg {
			return ""
		}
		return p.Name()
	})
}

// keyable checks that x can be an element of a key.
func (c *checker) keyable(n ast.Node, x Node) Node {
	if x == nil {
		return nil
	}
	switch keyKindOf(x.Type()) {
	case None:
		p := c.at(n, notKey, c.quote(n), c.typeName(x.Type()), c.remedy(n, x.Type()))
		p.Valid = c.fields(x.Type(), func(t types.Type) bool { return KindOf(t) != None })
		return nil
	case mixed:
		c.at(n, mixedKey, c.typeName(x.Type()))
		return nil
	}
	return x
}

// remedy says how a value of type t becomes part of a key.
func (c *checker) remedy(n ast.Node, t types.Type) string {
	what := c.quote(n)
	if strings.ContainsAny(what, " +-*/%?:") && !strings.HasSuffix(what, ")") {
		what = "(" + what + ")"
	}
	function := "call a function of the package that returns text: name(" + c.quote(n) + ")"
	if named, ok := types.Unalias(t).(*types.Named); ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "time" && named.Obj().Name() == "Time" {
		return "write " + what + ".Unix()"
	}
	if isBytes(t) {
		return "write string(" + c.quote(n) + ")"
	}
	obj, _, _ := types.LookupFieldOrMethod(t, true, c.scope.Pkg, "String")
	if f, ok := obj.(*types.Func); ok {
		sig := f.Type().(*types.Signature)
		if sig.Params().Len() == 0 && sig.Results().Len() == 1 && keyKindOf(sig.Results().At(0).Type()) == Text {
			return "write " + what + ".String()"
		}
	}
	if names := c.fields(t, func(t types.Type) bool { return KindOf(t) != None }); len(names) > 0 {
		return "select a field: " + what + "." + names[0]
	}
	if s, ok := t.Underlying().(*types.Slice); ok && types.Identical(s.Elem(), typString) {
		return "write join(" + c.quote(n) + ", \",\")"
	}
	if IsFloat(t) {
		return "write int(" + c.quote(n) + ")"
	}
	return function
}

// fields lists the fields of t, or of what it points to, that can be selected and
// whose type is one that want accepts.
func (c *checker) fields(t types.Type, want func(types.Type) bool) []string {
	var names []string
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok || isTypeParam(t) {
		return nil
	}
	for f := range s.Fields() {
		if f.Name() == "_" || !f.Exported() && f.Pkg() != c.scope.Pkg {
			continue
		}
		if want(f.Type()) {
			names = append(names, f.Name())
		}
		if f.Embedded() {
			names = append(names, c.promoted(f.Type(), want, 0)...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// promoted lists the fields that an embedded field of type t gives.
func (c *checker) promoted(t types.Type, want func(types.Type) bool, depth int) []string {
	if depth > 4 {
		return nil
	}
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok {
		return nil
	}
	var names []string
	for f := range s.Fields() {
		if f.Name() == "_" || !f.Exported() && f.Pkg() != c.scope.Pkg {
			continue
		}
		if want(f.Type()) {
			names = append(names, f.Name())
		}
		if f.Embedded() {
			names = append(names, c.promoted(f.Type(), want, depth+1)...)
		}
	}
	return names
}

// members lists what can stand behind a dot after a value of type t.
func (c *checker) members(t types.Type) []string {
	names := c.fields(t, func(types.Type) bool { return true })
	set := types.NewMethodSet(t)
	if _, ok := t.Underlying().(*types.Pointer); !ok && !types.IsInterface(t) {
		set = types.NewMethodSet(types.NewPointer(t))
	}
	for i := range set.Len() {
		f := set.At(i).Obj()
		if f.Exported() || f.Pkg() == c.scope.Pkg {
			names = append(names, f.Name()+"()")
		}
	}
	return names
}

// settle gives an untyped constant the type that Go would give it.
func (c *checker) settle(n ast.Node, x Node) Node {
	if x == nil || !isUntyped(x.Type()) {
		return x
	}
	return c.convertConst(n, x, types.Default(x.Type()))
}

// convertConst gives the untyped constant x type t.
func (c *checker) convertConst(n ast.Node, x Node, t types.Type) Node {
	v := ConstValue(x)
	if !representable(v, t) {
		if sameSort(v, t) {
			c.at(n, overflow, valueText(v), c.typeName(t))
		} else {
			c.at(n, incompatible, c.quote(n), c.typeName(x.Type()), "what it is used as", c.typeName(t))
		}
		return nil
	}
	return typed(x, t)
}

// typed returns the untyped constant x with type t.
func typed(x Node, t types.Type) Node {
	switch x := x.(type) {
	case *Const:
		v := x.Value
		if IsFloat(t) {
			v = constant.ToFloat(v)
		}
		return &Const{Value: v, Name: x.Name, untyped: x.untyped, spelled: x.spelled, typ: t}
	case *Unary:
		return &Unary{Op: x.Op, X: typed(x.X, t)}
	case *Binary:
		return &Binary{Op: x.Op, X: x.X, Y: x.Y, typ: t}
	}
	return x
}

// sameSort reports whether v and t are both numbers, both text or both boolean.
func sameSort(v constant.Value, t types.Type) bool {
	switch k := keyKindOf(t); v.Kind() {
	case constant.Int:
		return k == Signed || k == Unsigned || isInteger(t) || IsFloat(t)
	case constant.Float:
		return IsFloat(t)
	case constant.String:
		return k == Text
	case constant.Bool:
		return k == Boolean
	}
	return false
}

// representable reports whether the constant v is a value of type t. The sizes are
// those of 64-bit platforms; on others the compiler has the last word.
func representable(v constant.Value, t types.Type) bool {
	if tp, ok := types.Unalias(t).(*types.TypeParam); ok {
		set := typeSet(tp)
		return set != nil && !slices.ContainsFunc(set, func(t types.Type) bool { return isTypeParam(t) || !representable(v, t) })
	}
	b, ok := t.Underlying().(*types.Basic)
	if !ok {
		return false
	}
	switch v.Kind() {
	case constant.String:
		return b.Info()&types.IsString != 0
	case constant.Bool:
		return b.Info()&types.IsBoolean != 0
	case constant.Float:
		f, _ := constant.Float64Val(v)
		if b.Kind() == types.Float32 {
			f32, _ := constant.Float32Val(v)
			f = float64(f32)
		}
		return b.Info()&types.IsFloat != 0 && !math.IsInf(f, 0)
	case constant.Int:
		switch {
		case b.Info()&types.IsUntyped != 0:
			return b.Info()&types.IsNumeric != 0
		case b.Info()&types.IsUnsigned != 0:
			return constant.Sign(v) >= 0 && constant.BitLen(v) <= bits(b)
		case b.Info()&types.IsInteger != 0:
			// The least value has one more bit than the greatest.
			least := constant.UnaryOp(minus, constant.Shift(constant.MakeInt64(1), shl, uint(bits(b)-1)), 0)
			return constant.BitLen(v) < bits(b) || constant.Compare(v, eql, least)
		case b.Info()&types.IsFloat != 0:
			// Beyond 24 and 53 bits, not every integer is a float.
			_, exact := constant.Float64Val(v)
			if b.Kind() == types.Float32 {
				_, exact = constant.Float32Val(v)
			}
			return exact
		}
	}
	return false
}

func bits(b *types.Basic) int {
	switch b.Kind() {
	case types.Int8, types.Uint8:
		return 8
	case types.Int16, types.Uint16:
		return 16
	case types.Int32, types.Uint32:
		return 32
	}
	return 64
}
