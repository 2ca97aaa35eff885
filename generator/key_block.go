package generator

import (
	"fmt"
	"maps"
	"strings"

	"github.com/dave/jennifer/jen"
)

// block collects statements that compute a value, with the checks on which the
// value depends. Where a check does not hold, control leaves the function (leave)
// or the loop (leave with exit), or goes on behind the block; then every check opens
// a nested statement.
type block struct {
	code    *keyCode
	leave   bool
	exit    []jen.Code
	levels  []level // the last is the innermost
	init    string  // statement before the pending checks, in the same if
	pending []check // not yet rendered
}

type level struct {
	cond       string // on which it depends, "" for the outermost
	statements []jen.Code
}

// check is a condition in both forms. Each joins with others by && or by ||.
type check struct{ holds, fails string }

// nested returns a block without statements.
func (k *keyCode) nested() *block { return &block{code: k} }

// add appends statements behind the checks required so far.
func (b *block) add(statements ...jen.Code) {
	b.flush()
	last := &b.levels[len(b.levels)-1]
	last.statements = append(last.statements, statements...)
}

func (b *block) flush() {
	if len(b.levels) == 0 {
		b.levels = append(b.levels, level{})
	}
	if len(b.pending) == 0 {
		return
	}
	checks := b.pending
	b.pending = nil
	if !b.leave {
		b.levels = append(b.levels, level{cond: b.init + allHold(checks)})
		b.init = ""
		return
	}
	exit := b.exit
	if exit == nil {
		leave := jen.Return(jen.Id(b.code.result))
		if b.code.remark != "" {
			leave.Comment(b.code.remark)
		}
		exit = []jen.Code{leave}
	}
	last := &b.levels[len(b.levels)-1]
	last.statements = append(last.statements, jen.If(jen.Id(oneFails(checks))).Block(exit...))
}

// require makes what follows depend on c, unless that is known to hold. A call can
// change what is not stable.
func (b *block) require(c check, stable bool) {
	if _, ok := b.code.known[c.holds]; ok {
		return
	}
	b.code.known[c.holds] = !stable
	b.pending = append(b.pending, c)
}

// lookup declares names by a statement, given its text, whose success ok tells.
func (b *block) lookup(statement, ok string) {
	b.flush()
	if b.leave {
		b.add(jen.Id(statement))
	} else {
		b.init = statement + "; "
	}
	b.require(check{ok, "!" + ok}, true)
}

// done returns the statements, with last behind all others.
func (b *block) done(last ...jen.Code) []jen.Code {
	b.add(last...)
	for len(b.levels) > 1 {
		n := len(b.levels) - 1
		inner := b.levels[n]
		b.levels = b.levels[:n]
		outer := &b.levels[n-1]
		outer.statements = append(outer.statements, jen.If(jen.Id(inner.cond)).Block(inner.statements...))
	}
	return b.levels[0].statements
}

// unconditional reports whether what is added next is always reached.
func (b *block) unconditional() bool { return len(b.levels) <= 1 && len(b.pending) == 0 }

// plain reports whether the block consists of checks alone, which are pending.
func (b *block) plain() bool {
	return b.init == "" && (len(b.levels) == 0 || len(b.levels) == 1 && len(b.levels[0].statements) == 0)
}

// ifElse renders an if with an else, which is left out where it has no statements.
func ifElse(cond string, then, otherwise []jen.Code) *jen.Statement {
	s := jen.If(jen.Id(cond)).Block(then...)
	switch {
	case len(otherwise) == 0:
		return s
	case len(otherwise) == 1 && strings.HasPrefix(fmt.Sprintf("%#v", otherwise[0]), "if "):
		return s.Else().Add(otherwise[0])
	}
	return s.Else().Block(otherwise...)
}

func allHold(checks []check) string {
	parts := make([]string, len(checks))
	for i, c := range checks {
		parts[i] = c.holds
	}
	return strings.Join(parts, " && ")
}

func oneFails(checks []check) string {
	parts := make([]string, len(checks))
	for i, c := range checks {
		parts[i] = c.fails
	}
	return strings.Join(parts, " || ")
}

// scoped runs f, and forgets what f found to hold. It returns that.
func (k *keyCode) scoped(f func()) map[string]bool {
	before := k.known
	k.known = maps.Clone(before)
	f()
	inside := k.known
	// A call inside may have changed what was known outside.
	k.known = before
	for c := range before {
		if _, ok := inside[c]; !ok {
			delete(k.known, c)
		}
	}
	return inside
}

// forget drops what a call can change.
func (k *keyCode) forget() {
	maps.DeleteFunc(k.known, func(_ string, changes bool) bool { return changes })
}

// learn adds conditions that hold from here on.
func (k *keyCode) learn(conds map[string]bool) { maps.Copy(k.known, conds) }
