package parser

import (
	"go/build/constraint"
	"go/types"
	"iter"
	"slices"
	"strings"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/parser/directive"
	"github.com/ratelimitgen/ratelimitgen/parser/keyexpr"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// Result is the model of everything that is to be generated.
type Result struct {
	// Packages holds the packages with wrappers, sorted by directory.
	Packages []*Package
	// Outputs lists the files of ours that are in the tree now, as absolute paths,
	// sorted. Those that the new output does not name are orphans.
	Outputs []string
	// Diags holds all problems, sorted. With an error among them nothing must be
	// written.
	Diags diag.List
	// Stage is that of the Config: who goes on with the model may go on with it.
	Stage func(stage, pkg string)

	stubs map[string][]byte // what to try again with, see stubsOf
}

// Package is one package that gets an output file.
type Package struct {
	Path string // import path
	Name string
	Dir  string // absolute
	// Standard is set if the package is one of the standard library.
	Standard bool
	// Types is the package as far as signatures go. It does not contain any output
	// of ours.
	Types *types.Package
	// Length returns the length of an array as the source writes it, with the names that
	// name gives to what it mentions; "" if the number will do, or has to.
	Length func(a *types.Array, name func(types.Object) (string, bool)) string
	// Declared holds every identifier that any file of the directory declares at
	// package scope or gets by a dot import, whatever its build constraints, test
	// files included. New names must differ from all of them.
	Declared map[string]bool
	// ImportNames are the names that the files with directives give to packages which
	// they import, by path; those of the first file where they differ.
	ImportNames map[string]string
	// Wrappers is sorted by name.
	Wrappers []*Wrapper
	// Check type-checks the package together with more files, by their names, and
	// returns the errors in those.
	Check func(files map[string][]byte) (*types.Package, []error)
}

// MayImport reports whether the package at path from, which may be of the standard
// library, may import the one at path to. As for the go command, what lies below an
// element "internal" can be imported in the tree around that only, and what the standard
// library vendors by its own packages, which write another path.
func MayImport(from string, standard bool, to string) bool {
	elems := strings.Split(to, "/")
	if elems[0] == "vendor" {
		return false
	}
	slices.Reverse(elems)
	i := slices.Index(elems, "internal") // the last one is the strictest
	if i < 0 {
		return true
	}
	slices.Reverse(elems)
	root := strings.Join(elems[:len(elems)-1-i], "/")
	if root == "" {
		return standard
	}
	return strings.HasPrefix(from+"/", root+"/")
}

// Wrapper is one generated type, or the generated constructor of a limited function.
type Wrapper struct {
	// Source is what is wrapped: a *types.TypeName, of a named type or an interface,
	// or a *types.Func.
	Source types.Object
	Pos    diag.Pos
	// Name and Constructor are what the wrapper and its constructor are called. The
	// wrapper of a function has no name: the constructor returns a function.
	Name        string
	Constructor string
	// Pointer is set if the wrapped value is a pointer to Source.
	Pointer bool
	// Implements are interfaces that the wrapper is asserted to implement.
	Implements []types.Type
	// Constraint is what a build must satisfy to have the wrapper; nil for every
	// build.
	Constraint constraint.Expr
	// Sealed is an interface with unexported methods of another package that the
	// wrapper can only have by embedding it; nil if there is none. It is the source,
	// or one of Implements.
	Sealed types.Type
	// Methods holds every exported method of the method set and the limited
	// unexported ones, sorted by name. For a function, that is the function alone.
	Methods []*Method
}

// Method is one method of a wrapper.
type Method struct {
	Name string
	// Sig is the signature in terms of the type parameters of Wrapper.Source.
	Sig *types.Signature
	// Qualified names the method for people: "pay.Service.PlaceOrder".
	Qualified string
	// File is the base name of the file that holds the directives.
	File string
	// Deprecated is the paragraph of the method's documentation that says so, in one
	// line, or "".
	Deprecated string
	// Policies is empty if the method only forwards.
	Policies []*Policy
	// OnLimit is what a refused caller gets, Fallback the method of OnLimitFallback.
	OnLimit  directive.OnLimit
	Fallback directive.Word
	// Context is the index of the parameter that carries the request, -1 if there is
	// none, and Carrier says what it is.
	Context int
	Carrier Carrier
	// Handler is set if the method is an HTTP handler: a refusal is a response.
	Handler bool
	// Identified is set if something that is computed for a call needs to know who is
	// calling or what for, Routed if that includes the route.
	Identified, Routed bool
}

// Policy is one limit of a method.
type Policy struct {
	// Policy is what the runtime is given.
	ratelimit.Policy
	// KeyExpr is how a call's key is computed; nil if Policy.Global is set.
	KeyExpr *keyexpr.Key
	// Cost is the constant cost of a call; CostExpr, if not nil, computes it.
	Cost     int64
	CostExpr *keyexpr.Expr
	// MaxExpr, if not nil, computes the limit of a call. MaxConst, if not nil, is the
	// constant that Policy.Limit is the value of.
	MaxExpr  *keyexpr.Expr
	MaxConst *keyexpr.Const
	// When and Unless, if not nil, say whether the policy applies to a call.
	When, Unless *keyexpr.Expr
	// CountExpr and CostAfterExpr, if not nil, are evaluated with the results.
	CountExpr, CostAfterExpr *keyexpr.Expr

	directive *directive.Directive
	group     bool // counters are shared on purpose

	constraints []constraint.Expr // of the files of what the expressions mention
}

// TypeParams yields the type parameters of the source type.
func (w *Wrapper) TypeParams() iter.Seq[*types.TypeParam] {
	switch t := w.Source.Type().(type) {
	case *types.Named:
		return t.TypeParams().TypeParams()
	case *types.Alias:
		return t.TypeParams().TypeParams()
	case *types.Signature:
		return t.TypeParams().TypeParams()
	}
	return func(func(*types.TypeParam) bool) {}
}

// OfFunction reports whether the source is a function.
func (w *Wrapper) OfFunction() bool {
	_, ok := w.Source.(*types.Func)
	return ok
}

// Generic reports whether the source type has type parameters.
func (w *Wrapper) Generic() bool {
	for range w.TypeParams() {
		return true
	}
	return false
}

// FromRequest reports whether something that is computed for a call needs to know who is
// calling, and the request tells that and not a context.
func (m *Method) FromRequest() bool {
	return m.Identified && m.Carrier != ContextCarrier && m.Carrier != StreamCarrier
}

// nodes lists everything that p evaluates.
func (p *Policy) nodes() []keyexpr.Node {
	var nodes []keyexpr.Node
	if p.KeyExpr != nil {
		nodes = p.KeyExpr.Nodes()
	}
	for _, e := range p.exprs() {
		nodes = append(nodes, e.Node)
	}
	return nodes
}

// exprs lists the expressions of p but for the key.
func (p *Policy) exprs() []*keyexpr.Expr {
	return slices.DeleteFunc([]*keyexpr.Expr{p.CostExpr, p.MaxExpr, p.When, p.Unless, p.CountExpr, p.CostAfterExpr},
		func(e *keyexpr.Expr) bool { return e == nil })
}

// After reports whether the method has something to do after the call: it gives
// back what was taken, or takes more.
func (p *Policy) After() bool {
	return p.CountExpr != nil || p.CostAfterExpr != nil || p.Algorithm == ratelimit.Concurrency || p.Algorithm == ratelimit.TimeQuota
}
