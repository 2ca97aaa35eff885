package generator

import (
	"go/types"
	"maps"
	"slices"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimitgen/ratelimitgen/parser"
	"github.com/ratelimitgen/ratelimitgen/parser/keyexpr"
)

// keyArg is what the wrapper passes to a key or cost function in one position.
type keyArg struct {
	kind  keyArgKind
	param int // index of the method's parameter, for argParam
}

type keyArgKind uint8

const (
	argContext  keyArgKind = iota // the context.Context that carries the request
	argBuffer                     // the buffer that the key is appended to, empty and not nil
	argReceiver                   // the wrapped value
	argParam                      // a parameter of the method
)

// keyImports notes every package that the key and cost functions of p name. The
// types of the method's parameters must be noted too.
func keyImports(im *imports, p *parser.Policy) {
	// What the functions name is what rendering them asks for; the names in the
	// text that comes out do not count yet.
	if p.KeyExpr != nil && !p.KeyExpr.Global {
		newKeyCode(im, newFileScope(nil), -1, p.KeyExpr.Elems).key("key", nil, p.KeyExpr)
	}
	if p.CostExpr != nil {
		newKeyCode(im, newFileScope(nil), -1, []keyexpr.Node{p.CostExpr.Node}).cost("cost", nil, p.CostExpr)
	}
}

// keyFunc renders the function that computes the key of p,
//
//	func name(ctx context.Context, buf []byte, req *Request) []byte
//
// which appends the key to buf, or returns nil if the key is absent. It has only
// the parameters that it needs; args tells what to pass. A function of a generic
// type has those type parameters that its parameters mention, so that calls need
// not name them.
func (f *file) keyFunc(m *method, p policy) (decl *jen.Statement, args []keyArg) {
	k := newKeyCode(f.imports, f.scope.child(), contextParam(m.Method), p.KeyExpr.Elems)
	return k.key(p.keyFunc, slices.Collect(m.wrapper.TypeParams()), p.KeyExpr), k.args
}

// costFunc renders the function that computes the cost of p,
//
//	func name(req *Request) int64
//
// in the way of keyFunc. The cost is -1, which the runtime refuses, if it is
// absent.
func (f *file) costFunc(m *method, p policy) (decl *jen.Statement, args []keyArg) {
	k := newKeyCode(f.imports, f.scope.child(), contextParam(m.Method), []keyexpr.Node{p.CostExpr.Node})
	return k.cost(p.costFunc, slices.Collect(m.wrapper.TypeParams()), p.CostExpr), k.args
}

// contextParam returns the index of the parameter that is the context itself, -1
// if there is none or the request is carried otherwise.
func contextParam(m *parser.Method) int {
	if m.Context >= 0 && isContext(m.Sig.Params().At(m.Context).Type()) {
		return m.Context
	}
	return -1
}

// keyCode renders one key or cost function.
type keyCode struct {
	imports *imports
	names   *scope
	args    []keyArg
	params  []jen.Code
	types   []types.Type // of the parameters that an expression names

	ctx, buf, next string
	param          map[int]string // names of the method's parameters
	caller         string         // variable with the request, "" if there is none
	result         string         // what an absent value makes the function return
	raw            bool           // the key is one element, which need not be told from others
	leaf           func(*block, keyexpr.Node, bool) string

	// known holds the conditions that hold at this place, so that they are not
	// checked again. The value tells whether a call can change that.
	known map[string]bool
}

// newKeyCode allots the names of the parameters that nodes need. The parameter
// with index context is the context that carries the request.
func newKeyCode(im *imports, names *scope, context int, nodes []keyexpr.Node) *keyCode {
	k := &keyCode{imports: im, names: names, param: map[int]string{}, known: map[string]bool{}}
	used := map[int]*types.Var{}
	var recv *types.Var
	request := false
	for _, n := range nodes {
		keyexpr.Contains(n, func(n keyexpr.Node) bool {
			switch n := n.(type) {
			case *keyexpr.Dim:
				request = true
			case *keyexpr.Param:
				used[n.Index] = n.Var
			case *keyexpr.Recv:
				recv = n.Var
			}
			return false
		})
	}
	if v := used[context]; v != nil || request {
		want := "ctx"
		if v != nil {
			want = v.Name()
		}
		im.add("context", "context")
		k.ctx = names.allot(want, "ctx")
		k.param[context] = k.ctx
		delete(used, context)
		k.args = append(k.args, keyArg{kind: argContext})
		k.params = append(k.params, jen.Id(k.ctx).Id(im.alias["context"]+".Context"))
	}
	order := slices.Sorted(maps.Keys(used))
	for _, i := range order {
		k.param[i] = names.allot(used[i].Name(), argName(used[i].Type()))
	}
	k.buf = names.allot("buf", "buf")
	if recv != nil {
		k.next = names.allot("next", "next")
		k.args = append(k.args, keyArg{kind: argReceiver})
		k.params = append(k.params, jen.Id(k.next).Add(k.typ(recv.Type())))
		k.types = append(k.types, recv.Type())
	}
	for _, i := range order {
		k.args = append(k.args, keyArg{kind: argParam, param: i})
		k.params = append(k.params, jen.Id(k.param[i]).Add(k.typ(used[i].Type())))
		k.types = append(k.types, used[i].Type())
	}
	return k
}

// key renders the function for a key.
func (k *keyCode) key(name string, tparams []*types.TypeParam, key *keyexpr.Key) *jen.Statement {
	at := 0
	if k.ctx != "" {
		at = 1
	}
	k.args = slices.Insert(k.args, at, keyArg{kind: argBuffer})
	k.params = slices.Insert(k.params, at, jen.Code(jen.Id(k.buf).Index().Byte()))
	k.result = "nil"
	k.leaf = k.appended
	k.raw = len(key.Elems) == 1 && !chosenDim(key.Elems[0])

	b := &block{code: k, leave: true}
	if dims := countDims(key.Elems); dims > 1 || dims == 1 && !slices.ContainsFunc(key.Elems, isDim) {
		k.declareCaller(b)
	}
	for i, n := range key.Elems {
		k.element(b, n, i == len(key.Elems)-1)
	}
	return k.function(name, tparams, jen.Index().Byte(), b.done())
}

// cost renders the function for a cost.
func (k *keyCode) cost(name string, tparams []*types.TypeParam, e *keyexpr.Expr) *jen.Statement {
	k.result = "-1"
	k.leaf = k.amount
	b := &block{code: k, leave: true}
	if countDims([]keyexpr.Node{e.Node}) > 0 {
		k.declareCaller(b)
	}
	k.element(b, e.Node, true)
	return k.function(name, tparams, jen.Int64(), b.done())
}

func (k *keyCode) function(name string, tparams []*types.TypeParam, result jen.Code, body []jen.Code) *jen.Statement {
	fn := jen.Func().Id(name)
	var list []jen.Code
	for _, tp := range mentioned(tparams, k.types) {
		list = append(list, k.typ(tp).Add(k.typ(tp.Constraint())))
	}
	if len(list) > 0 {
		fn.Types(list...)
	}
	return fn.Params(k.params...).Add(result).Block(body...)
}

// mentioned returns those type parameters that occur in ts, or in the constraint
// of one that does.
func mentioned(tparams []*types.TypeParam, ts []types.Type) []*types.TypeParam {
	seen := map[types.Type]bool{}
	for _, t := range ts {
		findTypeParams(t, seen)
	}
	return slices.DeleteFunc(slices.Clone(tparams), func(tp *types.TypeParam) bool { return !seen[tp] })
}

// declareCaller makes the request a variable.
func (k *keyCode) declareCaller(b *block) {
	request := k.request()
	k.caller = k.names.allot("caller", "caller")
	b.add(jen.Id(k.caller).Op(":=").Id(request))
}

// request is the request that the context carries.
func (k *keyCode) request() string {
	if k.caller != "" {
		return k.caller
	}
	return k.runtime("RequestFrom") + "(" + k.ctx + ")"
}

func (k *keyCode) runtime(name string) string { return k.pkg(runtimePath, "ratelimit") + name }

// pkg returns the qualifier of a package.
func (k *keyCode) pkg(path, name string) string {
	k.imports.add(path, name)
	return k.imports.alias[path] + "."
}

func (k *keyCode) typ(t types.Type) *jen.Statement {
	k.imports.addType(t)
	return k.imports.typ(t)
}

func isDim(n keyexpr.Node) bool { _, ok := n.(*keyexpr.Dim); return ok }

// chosenDim reports whether n is what the request tells, or may choose that.
func chosenDim(n keyexpr.Node) bool {
	switch n := n.(type) {
	case *keyexpr.Dim:
		return true
	case *keyexpr.Cond:
		return chosenDim(n.Then) || chosenDim(n.Else)
	case *keyexpr.Default:
		return slices.ContainsFunc(n.Alts, func(a keyexpr.Alt) bool { return chosenDim(a.Node) })
	}
	return false
}

func countDims(nodes []keyexpr.Node) int {
	count := 0
	for _, n := range nodes {
		keyexpr.Contains(n, func(n keyexpr.Node) bool {
			if isDim(n) {
				count++
			}
			return false
		})
	}
	return count
}
