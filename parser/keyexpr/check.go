package keyexpr

import (
	"go/constant"
	"slices"
)

type checker struct {
	src      string
	scope    *Scope
	problems []Problem
}

func newChecker(src string, s *Scope) *checker { return &checker{src: src, scope: s} }

func (c *checker) key() *Key  { return &Key{Global: true} }
func (c *checker) cost() Node { return &Const{Value: constant.MakeInt64(1), typ: typInt} }

func (c *checker) failed() bool {
	return slices.ContainsFunc(c.problems, func(p Problem) bool { return !p.Warning })
}
func (c *checker) sorted() []Problem { return c.problems }

func foldUnary(*Unary) constant.Value     { return nil }
func foldBinary(*Binary) constant.Value   { return nil }
func foldConvert(*Convert) constant.Value { return nil }
