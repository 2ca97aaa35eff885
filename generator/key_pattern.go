package generator

import (
	"fmt"
	"strconv"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimitgen/ratelimitgen/parser/keyexpr"
)

// keyFunction is a function that evaluates expressions of a policy.
type keyFunction struct {
	name  string
	nodes []keyexpr.Node
}

// pattern is a variable that holds a regular expression.
type pattern struct {
	text  string
	name  string
	owner string // the function before which it is declared
}

// patterns lists the regular expressions of the file. It follows from the policies
// alone, so that it is the same whichever function asks. A function that the
// policies do not list comes last.
func (f *file) patterns(asking keyFunction) []pattern {
	var (
		list  []pattern
		known = map[string]bool{}
		taken = map[string]bool{}
	)
	add := func(fn keyFunction) {
		for _, n := range fn.nodes {
			keyexpr.Contains(n, func(n keyexpr.Node) bool {
				m, ok := n.(*keyexpr.Match)
				if !ok || known[m.Pattern] {
					return false
				}
				want := fn.name + "Pattern"
				name := want
				for i := 2; taken[name] || f.scope.taken(name); i++ {
					name = fmt.Sprint(want, i)
				}
				known[m.Pattern], taken[name] = true, true
				list = append(list, pattern{m.Pattern, name, fn.name})
				return false
			})
		}
	}
	for _, w := range f.wrappers {
		for _, m := range w.methods {
			for _, p := range m.policy {
				for _, fn := range p.functions() {
					add(fn.keyFunction)
				}
			}
		}
	}
	add(asking)
	return list
}

// patternsOf returns the variables of the regular expressions that a function uses.
func (f *file) patternsOf(name string, nodes []keyexpr.Node) map[string]string {
	used := map[string]string{}
	for _, n := range nodes {
		keyexpr.Contains(n, func(n keyexpr.Node) bool {
			if m, ok := n.(*keyexpr.Match); ok {
				used[m.Pattern] = ""
			}
			return false
		})
	}
	if len(used) == 0 {
		return nil
	}
	for _, p := range f.patterns(keyFunction{name, nodes}) {
		if _, ok := used[p.text]; ok {
			used[p.text] = p.name
		}
	}
	return used
}

// withPatterns puts the declarations of the regular expressions that belong to a
// function before it.
func (f *file) withPatterns(k *keyCode, name string, nodes []keyexpr.Node, fn *jen.Statement) *jen.Statement {
	if len(k.patterns) == 0 {
		return fn
	}
	s := jen.Null()
	for _, p := range f.patterns(keyFunction{name, nodes}) {
		if p.owner == name {
			s.Var().Id(p.name).Op("=").Id(k.pkg("regexp", "regexp") + "MustCompile(" + strconv.Quote(p.text) + ")").Line().Line()
		}
	}
	return s.Add(fn)
}

// pattern returns the variable of a regular expression.
func (k *keyCode) pattern(text string) string {
	k.imports.add("regexp", "regexp")
	return k.patterns[text]
}
