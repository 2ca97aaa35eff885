package keyexpr

import (
	"go/types"
	"strconv"

	"github.com/expr-lang/expr/ast"
)

// result returns the result that a name stands for; ok is false if there is none.
func (c *checker) result(n ast.Node, name string) (x Node, ok bool) {
	results := c.scope.Results
	for i := range results.Len() {
		if v := results.At(i); v.Name() == name && name != "_" {
			return c.valid(n, &Result{Index: i, Var: v}), true
		}
	}
	last := results.Len() - 1
	isErr := last >= 0 && isError(results.At(last).Type())
	switch {
	case name == "err" && isErr:
		return &Result{Index: last, Var: results.At(last)}, true
	case last < 0 && (name == "err" || name == "result"):
		c.at(n, noResult, name, "it returns nothing")
		return nil, true
	case name == "err":
		c.at(n, noResult, "err", "its last result is no error")
		return nil, true
	case name == "result" && (last > 0 || last == 0 && !isErr):
		return c.valid(n, &Result{Index: 0, Var: results.At(0)}), true
	case name == "result":
		c.at(n, noResult, "result", "it returns nothing but an error")
		return nil, true
	}
	return nil, false
}

// hidesResult reports whether a parameter or the receiver has the name "err" or
// "result" where that could mean a result. #err and #result do mean that.
func (c *checker) hidesResult(name string) bool {
	results := c.scope.Results
	if results.Len() == 0 || c.local(name) == nil {
		return false
	}
	switch isErr := isError(results.At(results.Len() - 1).Type()); name {
	case "err":
		return isErr
	case "result":
		return results.Len() > 1 || !isErr
	}
	return false
}

// hiding says how to write the parameter or the receiver of that name where the name
// would mean a result.
func (c *checker) hiding(name string) string {
	if p, ok := c.local(name).(*Param); ok {
		return "#p" + strconv.Itoa(p.Index)
	}
	return "#root.target"
}

func isError(t types.Type) bool {
	return types.Identical(t, types.Universe.Lookup("error").Type())
}

// results lists the names of results, if there are any here.
func (c *checker) results() []string {
	if c.scope.Results.Len() == 0 {
		return nil
	}
	names := []string{"err", "result"}
	for v := range c.scope.Results.Variables() {
		if v.Name() != "" && v.Name() != "_" {
			names = append(names, v.Name())
		}
	}
	return names
}

// isResult reports whether name would be a result's after the call.
func (c *checker) isResult(name string) bool {
	if c.scope.Results != nil || c.scope.Sig == nil || c.scope.Sig.Results().Len() == 0 {
		return false
	}
	if name == "err" || name == "result" {
		return true
	}
	for v := range c.scope.Sig.Results().Variables() {
		if v.Name() == name {
			return true
		}
	}
	return false
}
