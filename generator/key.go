package generator

import (
	"github.com/dave/jennifer/jen"

	"github.com/ratelimitgen/ratelimitgen/parser"
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

// keyImports notes every package that the key and cost functions of p name.
func keyImports(im *imports, p *parser.Policy) {}

// keyFunc renders the function that computes the key of p,
//
//	func name(ctx context.Context, buf []byte, req *Request) []byte
//
// which appends the key to buf, or returns nil if the key is absent. It has only
// the parameters that it needs; args tells what to pass. A function of a generic
// type has those type parameters that its parameters mention, so that calls need
// not name them.
func (f *file) keyFunc(m *method, p policy) (decl *jen.Statement, args []keyArg) {
	return jen.Func().Id(p.keyFunc).Params(jen.Id("buf").Index().Byte()).Index().Byte().Block(jen.Return(jen.Id("buf"))), []keyArg{{kind: argBuffer}}
}

// costFunc renders the function that computes the cost of p,
//
//	func name(req *Request) int64
//
// in the way of keyFunc. The cost is -1, which the runtime refuses, if it is
// absent.
func (f *file) costFunc(m *method, p policy) (decl *jen.Statement, args []keyArg) {
	return jen.Func().Id(p.costFunc).Params().Int64().Block(jen.Return(jen.Lit(-1))), nil
}
