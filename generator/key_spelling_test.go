package generator

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimitgen/ratelimitgen/parser/keyexpr"
)

// rendered writes the function for a parsed expression.
func rendered(f *file, m *method, e expression, key *keyexpr.Key, x *keyexpr.Expr) string {
	var decl *jen.Statement
	switch {
	case key != nil && key.Global:
		return "global"
	case key != nil:
		decl, _ = f.keyFunc(m, "compute", key)
	case e.condition():
		decl, _ = f.condFunc(m, "compute", x)
	default:
		decl, _ = f.amountFunc(m, "compute", x)
	}
	return fmt.Sprintf("%#v", decl)
}

// respell checks that the spelling of e can be read again, gives the same function,
// and is its own spelling. It returns that, "" if e is refused.
func respell(t *testing.T, f *file, m *method, scope *keyexpr.Scope, e expression) (spelling, function string) {
	t.Helper()
	key, x, _ := e.parse(scope)
	switch {
	case key != nil:
		spelling = key.String()
	case x != nil:
		spelling = x.String()
	default:
		return "", ""
	}
	again := expression{e.kind, spelling}
	key2, x2, problems := again.parse(scope)
	if key2 == nil && x2 == nil {
		t.Errorf("%s: %s is refused: %+v", e.text, spelling, problems)
		return "", ""
	}
	if key2 != nil && key2.String() != spelling || x2 != nil && x2.String() != spelling {
		t.Errorf("%s is spelled %s, and that differently: %v %v", e.text, spelling, key2, x2)
	}
	function = rendered(f, m, e, key, x)
	if got := rendered(f, m, again, key2, x2); got != function {
		t.Errorf("%s is spelled %s, which means something else:\n%s\n%s", e.text, spelling, function, got)
	}
	return spelling, function
}

func TestSpellingsMeanWhatTheExpressionsDo(t *testing.T) {
	t.Parallel()
	f, m, scope := keyTarget(t, keyPackage(t, keySource+"\nfunc main() {}\n"), "Service", "Do")
	f.imports.addType(m.Sig)
	for path, name := range map[string]string{
		"context": "context", "math": "math", "regexp": "regexp", "slices": "slices", "strconv": "strconv", "strings": "strings", "unicode/utf8": "utf8", runtimePath: "ratelimit",
	} {
		f.imports.add(path, name)
	}
	f.imports.allot(f.scope)
	var all []expression
	for line := range strings.Lines(strings.TrimSpace(commonExpressions)) {
		kind, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		all = append(all, expression{kind, text})
	}
	for _, c := range keyCases {
		all = append(all, expression{"key", c.expr})
	}
	for i := range 1500 {
		all = append(all, randomExpression.Example(*keySeed*1000+i))
	}
	r := expressions{rand.New(rand.NewPCG(uint64(*keySeed), 3))}
	for range 1500 {
		all = append(all, expression{"key", r.key()}, expression{"when", r.condition(3)}, expression{"cost", r.number(3)})
	}
	spelled := 0
	functions := map[string]string{}
	for _, e := range all {
		spelling, function := respell(t, f, m, scope, e)
		if spelling == "" {
			continue
		}
		spelled++
		as := e.kind + " " + spelling
		if other, ok := functions[as]; ok && other != function {
			t.Errorf("two expressions are spelled %s:\n%s\n%s", as, other, function)
		}
		functions[as] = function
	}
	if spelled < len(all)/3 {
		t.Errorf("only %d of %d expressions are accepted", spelled, len(all))
	}
}
