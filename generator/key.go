package generator

import (
	"go/types"
	"maps"
	"slices"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimitgen/ratelimitgen/parser"
	"github.com/ratelimitgen/ratelimitgen/parser/keyexpr"
)

// keyArg is what the wrapper passes to a key, cost or condition function in one
// position.
type keyArg struct {
	kind keyArgKind
	// param is the index of the method's parameter for argParam, of its result for
	// argResult.
	param int
}

type keyArgKind uint8

const (
	argContext  keyArgKind = iota // the context.Context that carries the request
	argBuffer                     // the buffer that the key is appended to, empty and not nil
	argReceiver                   // the wrapped value
	argParam                      // a parameter of the method
	argResult                     // a result of the method
)

// keyImports notes every package that the functions of p name. The types of the
// method's parameters and results must be noted too.
func keyImports(im *imports, p *parser.Policy) {
	// What the functions name is what rendering them asks for; the names in the
	// text that comes out do not count yet.
	if p.KeyExpr != nil && !p.KeyExpr.Global {
		importing(im, p.KeyExpr.Nodes()).key("key", nil, p.KeyExpr)
	}
	for _, e := range []*keyexpr.Expr{p.CostExpr, p.MaxExpr, p.CostAfterExpr} {
		if e != nil {
			amountImports(im, e)
		}
	}
	for _, e := range []*keyexpr.Expr{p.When, p.Unless, p.CountExpr} {
		if e != nil {
			condImports(im, e)
		}
	}
}

// amountImports is keyImports for a function of amountFunc's.
func amountImports(im *imports, e *keyexpr.Expr) {
	importing(im, []keyexpr.Node{e.Node}).amount("amount", nil, e)
}

// condImports is keyImports for a function of condFunc's. The types of the method's
// results must be noted too.
func condImports(im *imports, e *keyexpr.Expr) {
	importing(im, []keyexpr.Node{e.Node}).condition("holds", nil, e)
}

func importing(im *imports, nodes []keyexpr.Node) *keyCode {
	k := newKeyCode(im, newFileScope(nil), -1, nodes)
	k.patterns = map[string]string{}
	for _, n := range nodes {
		// What matches may turn out not to be reached, and is declared all the same.
		if keyexpr.Contains(n, func(n keyexpr.Node) bool { _, ok := n.(*keyexpr.Match); return ok }) {
			im.add("regexp", "regexp")
		}
	}
	return k
}

// keyFunc renders the function that computes the key of p,
//
//	func name(ctx context.Context, buf []byte, req *Request) []byte
//
// which appends the key to buf, or returns nil if the key is absent. It has only
// the parameters that it needs; args tells what to pass. A function of a generic
// type has those type parameters that its parameters mention, so that calls need
// not name them. Regular expressions are declared before the function.
func (f *file) keyFunc(m *method, name string, key *keyexpr.Key) (decl *jen.Statement, args []keyArg) {
	nodes := key.Nodes()
	k := f.keyCode(m, name, nodes)
	fn := k.key(name, slices.Collect(m.wrapper.TypeParams()), key)
	return f.withPatterns(k, name, nodes, fn), k.args
}

// amountFunc renders the function that computes an integer, such as a cost or a
// limit,
//
//	func name(req *Request) int64
//
// in the way of keyFunc. The amount is -1 if it is absent. Integers that are computed
// stop at the bounds of their types, and a limit at the greatest that is not
// ratelimit.Unlimited.
func (f *file) amountFunc(m *method, name string, e *keyexpr.Expr) (decl *jen.Statement, args []keyArg) {
	nodes := []keyexpr.Node{e.Node}
	k := f.keyCode(m, name, nodes)
	for _, p := range m.Policies {
		switch e {
		case p.CostExpr:
			k.remark = "not known: ErrCost"
		case p.MaxExpr:
			k.finite = true
			k.remark = "not known: refused"
		case p.CostAfterExpr:
			k.remark = "not known: nothing is charged"
		}
	}
	fn := k.amount(name, slices.Collect(m.wrapper.TypeParams()), e)
	return f.withPatterns(k, name, nodes, fn), k.args
}

// condFunc renders the function that tells whether a condition holds,
//
//	func name(req *Request, err error) bool
//
// in the way of keyFunc. An absent condition does not hold.
func (f *file) condFunc(m *method, name string, e *keyexpr.Expr) (decl *jen.Statement, args []keyArg) {
	nodes := []keyexpr.Node{e.Node}
	k := f.keyCode(m, name, nodes)
	fn := k.condition(name, slices.Collect(m.wrapper.TypeParams()), e)
	return f.withPatterns(k, name, nodes, fn), k.args
}

// keyCode prepares rendering the function of that name, which evaluates nodes.
func (f *file) keyCode(m *method, name string, nodes []keyexpr.Node) *keyCode {
	patterns := f.patternsOf(name, nodes)
	s := f.scope.child()
	for _, v := range patterns {
		s.reserve(v)
	}
	k := newKeyCode(f.imports, s, contextParam(m.Method), nodes)
	k.patterns = patterns
	return k
}

// contextParam returns the index of the parameter that is the context itself, -1
// if there is none or the request is carried otherwise.
func contextParam(m *parser.Method) int {
	if m.Context >= 0 && isContext(m.Sig.Params().At(m.Context).Type()) {
		return m.Context
	}
	return -1
}

// keyCode renders one key, cost or condition function.
type keyCode struct {
	imports *imports
	names   *scope
	args    []keyArg
	params  []jen.Code
	types   []types.Type // of the parameters that an expression names

	ctx, buf, next string
	param, res     map[int]string // names of the method's parameters and results
	locals         map[*keyexpr.Local]local
	patterns       map[string]string // regular expression -> variable that holds it
	caller         string            // variable with the request, "" if there is none
	result         string            // what an absent value makes the function return
	remark         string            // why, if that needs to be said
	saturate       bool              // integers stop at the bounds of their type
	finite         bool              // such an integer is not ratelimit.Unlimited
	asked          bool              // the variable of the request is used
	raw            bool              // the key is one element, which need not be told from others
	tagged         string            // "Tagged" if an address is to be told from text
	leaf           func(*block, keyexpr.Node, bool) string

	// known holds the conditions that hold at this place, so that they are not
	// checked again. The value tells whether a call can change that.
	known map[string]bool
}

// newKeyCode allots the names of the parameters that nodes need. The parameter
// with index context is the context that carries the request.
func newKeyCode(im *imports, names *scope, context int, nodes []keyexpr.Node) *keyCode {
	k := &keyCode{
		imports: im, names: names, param: map[int]string{}, res: map[int]string{},
		locals: map[*keyexpr.Local]local{}, known: map[string]bool{},
	}
	params, results := map[int]*types.Var{}, map[int]*types.Var{}
	var recv *types.Var
	request := false
	for _, n := range nodes {
		keyexpr.Contains(n, func(n keyexpr.Node) bool {
			switch n := n.(type) {
			case *keyexpr.Dim:
				request = true
			case *keyexpr.Param:
				params[n.Index] = n.Var
			case *keyexpr.Result:
				results[n.Index] = n.Var
			case *keyexpr.Recv:
				recv = n.Var
			}
			return false
		})
	}
	if v := params[context]; v != nil || request {
		want := "ctx"
		if v != nil {
			want = v.Name()
		}
		im.add("context", "context")
		k.ctx = names.allot(want, "ctx")
		k.param[context] = k.ctx
		delete(params, context)
		k.args = append(k.args, keyArg{kind: argContext})
		k.params = append(k.params, jen.Id(k.ctx).Id(im.alias["context"]+".Context"))
	}
	for _, i := range slices.Sorted(maps.Keys(params)) {
		k.param[i] = names.allot(params[i].Name(), argName(params[i].Type()))
	}
	for _, i := range slices.Sorted(maps.Keys(results)) {
		k.res[i] = names.allot(results[i].Name(), resultName(results[i].Type()))
	}
	k.buf = names.allot("buf", "buf")
	if recv != nil {
		k.next = names.allot("next", "next")
		k.pass(keyArg{kind: argReceiver}, k.next, recv.Type())
	}
	for _, i := range slices.Sorted(maps.Keys(params)) {
		k.pass(keyArg{kind: argParam, param: i}, k.param[i], params[i].Type())
	}
	for _, i := range slices.Sorted(maps.Keys(results)) {
		k.pass(keyArg{kind: argResult, param: i}, k.res[i], results[i].Type())
	}
	return k
}

// pass adds a parameter.
func (k *keyCode) pass(arg keyArg, name string, t types.Type) {
	k.args = append(k.args, arg)
	k.params = append(k.params, jen.Id(name).Add(k.typ(t)))
	k.types = append(k.types, t)
}

// resultName names a result that the source does not name.
func resultName(t types.Type) string {
	if types.Identical(t, types.Universe.Lookup("error").Type()) {
		return "err"
	}
	return "result"
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
	dims := countDims(key.Nodes())
	declared := dims > 1 || dims == 1 && !slices.ContainsFunc(key.Elems, isDim)
	if declared {
		k.declareCaller(b)
	}
	for _, l := range key.Lets {
		k.bind(b, l)
	}
	for i, n := range key.Elems {
		k.tagged = ""
		if choosesAddressOrText(n) {
			k.tagged = "Tagged"
		}
		k.element(b, n, i == len(key.Elems)-1)
	}
	body := b.done()
	if declared && !k.asked {
		body = body[1:] // what would ask it is never reached
	}
	return k.function(name, tparams, jen.Index().Byte(), body)
}

// amount renders the function for an integer.
func (k *keyCode) amount(name string, tparams []*types.TypeParam, e *keyexpr.Expr) *jen.Statement {
	k.result = "-1"
	k.leaf = k.int64
	k.saturate = true
	b := k.body(e)
	k.element(b, e.Node, true)
	return k.function(name, tparams, jen.Int64(), b.done())
}

// condition renders the function for a condition.
func (k *keyCode) condition(name string, tparams []*types.TypeParam, e *keyexpr.Expr) *jen.Statement {
	k.result = "false"
	b := k.body(e)
	n := e.Node
	for let, ok := n.(*keyexpr.Let); ok; let, ok = n.(*keyexpr.Let) {
		k.bind(b, let.Local)
		n = let.Body
	}
	var holds val
	if _, ok := n.(*keyexpr.Loop); ok {
		holds = k.value(b, n) // which leaves the function if the list is absent
	} else {
		holds = k.cond(b, n)
	}
	return k.function(name, tparams, jen.Bool(), b.done(jen.Return(jen.Id(holds.text))))
}

// body begins the body of a function that returns the value of e.
func (k *keyCode) body(e *keyexpr.Expr) *block {
	b := &block{code: k, leave: true}
	if countDims([]keyexpr.Node{e.Node}) > 0 {
		k.declareCaller(b)
	}
	return b
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
		k.asked = true
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

// isDim reports whether n is what the request tells and the runtime appends.
func isDim(n keyexpr.Node) bool {
	d, ok := n.(*keyexpr.Dim)
	return ok && (d.Kind == keyexpr.IP || d.Kind == keyexpr.User)
}

// chosenDim reports whether n is such a dimension, or may choose one.
func chosenDim(n keyexpr.Node) bool { return slices.ContainsFunc(leaves(n), isDim) }

// choosesAddressOrText reports whether n is the caller's address in some calls and a
// text in others.
func choosesAddressOrText(n keyexpr.Node) bool {
	address, text := false, false
	for _, leaf := range leaves(n) {
		d, ok := leaf.(*keyexpr.Dim)
		address = address || ok && d.Kind == keyexpr.IP
		text = text || !ok && keyexpr.KindOf(leaf.Type()) == keyexpr.Text || ok && d.Kind != keyexpr.IP
	}
	return address && text
}

// leaves lists what an element may be.
func leaves(n keyexpr.Node) []keyexpr.Node {
	switch n := n.(type) {
	case *keyexpr.Let:
		return leaves(n.Body)
	case *keyexpr.Cond:
		return append(leaves(n.Then), leaves(n.Else)...)
	case *keyexpr.Default:
		var all []keyexpr.Node
		for _, a := range n.Alts {
			all = append(all, leaves(a.Node)...)
		}
		return all
	}
	return []keyexpr.Node{n}
}

func countDims(nodes []keyexpr.Node) int {
	count := 0
	for _, n := range nodes {
		keyexpr.Contains(n, func(n keyexpr.Node) bool {
			if _, ok := n.(*keyexpr.Dim); ok {
				count++
			}
			return false
		})
	}
	return count
}
