package generator

import (
	"flag"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var keySeed = flag.Int("keyseed", 1, "seed of the random expressions that are compared with expr's interpreter")

// drawn draws expressions that mean the same here and in expr, as far as the
// interpreter does not stop: without what the table of differences in
// docs/expressions.md lists.
type drawn struct{ *rapid.T }

func (d drawn) one(list ...string) string { return rapid.SampledFrom(list).Draw(d.T, "choice") }

func (d drawn) pick(list ...func() string) string {
	return rapid.SampledFrom(list).Draw(d.T, "rule")()
}

// dot is a hop over what may be nil.
func (d drawn) dot() string { return d.one(".", "?.") }

func (d drawn) text(depth int) string {
	if depth == 0 {
		return d.pick(
			func() string { return d.one("id", "'x'", "'Ann'", "''", "defaultTenant", "prefix") },
			func() string { return "req" + d.dot() + d.one("User", "Email") },
			func() string { return d.account(0) + d.dot() + "ID" },
			func() string { return "req" + d.dot() + "Tags[" + d.one("0", "1", "2") + "]" },
			func() string { return "req" + d.dot() + "Items[0].SKU" },
		)
	}
	e := depth - 1
	return d.pick(
		func() string { return d.text(e) },
		func() string { return d.one("lower", "upper", "trim") + "(" + d.text(e) + ")" },
		func() string { return "trimPrefix(" + d.text(e) + ", " + d.text(0) + ")" },
		func() string { return "replace(" + d.text(e) + ", " + d.one("'n'", "'@'") + ", " + d.text(0) + ")" },
		func() string { return "split(" + d.text(e) + ", '@')[" + d.one("0", "1") + "]" },
		func() string { return "join(" + d.texts(e) + ", ',')" },
		func() string { return "(" + d.text(e) + " + " + d.text(e) + ")" },
		func() string { return "(" + d.absent(e) + " ?? " + d.text(e) + ")" },
		func() string { return "(" + d.condition(e) + " ? " + d.text(e) + " : " + d.text(e) + ")" },
		func() string { return "string(" + d.present() + ")" },
		func() string { return "joinAll('-', (" + d.absent(e) + " ?? 'none'), id)" },
		func() string { return "(let t = lower(" + d.text(e) + "); t + t)" },
	)
}

// absent is text that may be absent, which "??" asks for.
func (d drawn) absent(int) string {
	return d.one("req?.User", "req?.Acct?.ID", "req?.Acct?.Parent?.ID", "req?.Ptrs[0]?.ID")
}

// present is a number that is never absent, since expr makes text of nil.
func (d drawn) present() string { return d.one("n", "n % 5", "len(id)", "7") }

func (d drawn) texts(depth int) string {
	return d.pick(
		func() string { return "req.Tags" },
		func() string { return "filter(req.Tags, " + d.tag(depth) + ")" },
		func() string {
			return "map(req.Items, " + d.one(".SKU", "lower(#.SKU)", "#.SKU + id") + ")"
		},
		func() string { return "map(req.Ptrs, " + d.one("#?.ID ?? 'none'", "#.ID") + ")" },
		func() string { return "split(" + d.text(0) + ", '-')" },
	)
}

// tag is a condition on an element that is text.
func (d drawn) tag(depth int) string {
	return d.pick(
		func() string { return "# == " + d.one("'t0'", "id", "req.User") },
		func() string {
			return "# " + d.one("contains", "startsWith", "endsWith") + " " + d.one("'t'", "'1'", "id")
		},
		func() string { return "# matches '" + d.one("^t[01]$", "0", ".*1") + "'" },
		func() string { return "len(#) " + d.order() + " " + d.number(0) },
		func() string { return "not (# in ['t0', id])" },
		func() string {
			if depth == 0 {
				return "true"
			}
			return "(# == id or " + d.condition(depth-1) + ")"
		},
	)
}

func (d drawn) account(depth int) string {
	if depth == 0 {
		return d.one("req.Acct", "req?.Acct", "noAccount", "req?.Ptrs[1]")
	}
	return d.pick(
		func() string { return d.account(0) },
		func() string { return d.account(depth-1) + "?.Parent" },
		func() string { return "same(" + d.account(depth-1) + ")" },
		func() string { return "(" + d.account(depth-1) + " ?? " + d.account(depth-1) + ")" },
	)
}

func (d drawn) order() string { return d.one("<", "<=", ">", ">=") }

func (d drawn) number(depth int) string {
	if depth == 0 {
		return d.pick(
			func() string { return d.one("n", "3", "0", "7", "shards", "int(u)") },
			func() string { return "req" + d.dot() + d.one("N", "D") },
			func() string { return d.one("len(req?.User)", "len(req.Tags)", "len(req.Items)") },
		)
	}
	e := depth - 1
	return d.pick(
		func() string { return d.number(e) },
		func() string { return "(" + d.number(e) + " " + d.one("+", "-", "*", "%") + " " + d.number(e) + ")" },
		func() string { return d.one("-", "+") + d.number(e) },
		func() string { return "abs(" + d.number(e) + ")" },
		func() string { return d.one("min", "max") + "(" + d.number(e) + ", " + d.number(e) + ")" },
		func() string { return "(" + d.condition(e) + " ? " + d.number(e) + " : " + d.number(e) + ")" },
		func() string { return "count(req.Tags, " + d.tag(e) + ")" },
		func() string { return "len(filter(req.Items, .Qty > 150))" },
		func() string {
			return "sum(req.Items, " + d.one(".Qty", "int(#.Qty) * "+d.number(0)) + ")"
		},
		func() string { return "int(" + d.float(e) + ")" },
		func() string { return "(let k = " + d.number(e) + " + 1; k * k)" },
	)
}

func (d drawn) float(depth int) string {
	if depth == 0 {
		return d.pick(
			func() string { return d.one("1.5", "0.1", "100.25") },
			func() string { return "req" + d.dot() + d.one("Amount", "Rate") },
			func() string { return "req" + d.dot() + "Scores[" + d.one("0", "1") + "]" },
		)
	}
	e := depth - 1
	return d.pick(
		func() string { return d.float(e) },
		func() string { return "(" + d.float(e) + " " + d.one("+", "-", "*") + " " + d.float(e) + ")" },
		func() string { return "(" + d.float(e) + " / " + d.one("1.5", "0.1") + ")" },
		func() string { return "(" + d.float(e) + " * " + d.float(e) + " + " + d.float(e) + ")" },
		func() string { return d.one("ceil", "floor", "round", "abs", "-") + "(" + d.float(e) + ")" },
		func() string { return "float(" + d.number(e) + ")" },
		func() string { return d.one("min", "max") + "(" + d.float(e) + ", " + d.float(e) + ")" },
		func() string { return "sum(req.Scores" + d.one("", ", # * 1.5") + ")" },
	)
}

func (d drawn) condition(depth int) string {
	if depth == 0 {
		return d.pick(
			func() string {
				return d.one("true", "req != nil", "req == nil", "req?.Acct != nil", "req?.Acct?.Parent == nil")
			},
			func() string {
				return d.one("n > 3", "id == 'id'", "'tenant' in req?.Labels", "id in req?.Tags", "n in [1, 42]")
			},
			func() string { return "(req != nil and req.Admin)" },
		)
	}
	e := depth - 1
	return d.pick(
		func() string { return d.condition(e) },
		func() string {
			return "(" + d.condition(e) + " " + d.one("and", "or", "&&", "||") + " " + d.condition(e) + ")"
		},
		func() string { return d.one("not ", "!") + d.condition(e) },
		func() string { return "(" + d.text(e) + " " + d.one("==", "!=") + " " + d.text(e) + ")" },
		func() string {
			return "(" + d.number(e) + " " + d.one("==", "!=", "<", "<=", ">", ">=") + " " + d.number(e) + ")"
		},
		func() string {
			return "(" + d.float(e) + " " + d.one("==", "!=", "<", "<=", ">", ">=") + " " + d.float(e) + ")"
		},
		func() string { return "(" + d.text(e) + " " + d.order() + " " + d.text(e) + ")" },
		func() string {
			return "(" + d.text(e) + " " + d.one("contains", "startsWith", "endsWith", "not contains") + " " + d.text(0) + ")"
		},
		func() string { return "(" + d.text(e) + " matches '" + d.one("^[a-z]+$", "n", ".*@.*") + "')" },
		func() string { return "(" + d.text(e) + " in ['x', id, 'ann'])" },
		func() string { return "(" + d.text(e) + " not in req" + d.dot() + d.one("Tags", "Labels") + ")" },
		func() string {
			return d.one("any", "all", "none", "one") + "(req.Tags, " + d.tag(e) + ")"
		},
		func() string {
			return d.one("any", "all", "none") + "(req.Items, " + d.one(".Qty > 3", "{.SKU == id or any(req.Tags, # == 't1')}", "int(.Qty) < n") + ")"
		},
		func() string {
			return "any(req.Ptrs, " + d.one("# == nil", "#?.ID == 'p1'", "#.ID != nil") + ")"
		},
		func() string { return "(" + d.account(e) + " " + d.one("==", "!=") + " nil)" },
		func() string { return "(" + d.condition(e) + " ? " + d.condition(e) + " : " + d.condition(e) + ")" },
	)
}

var randomExpression = rapid.Custom(func(t *rapid.T) expression {
	d := drawn{t}
	depth := rapid.IntRange(1, 3).Draw(t, "depth")
	switch kind := d.one("key", "when", "cost"); kind {
	case "key":
		return expression{kind, d.text(depth)}
	case "when":
		return expression{kind, d.condition(depth)}
	default:
		return expression{kind, d.number(depth)}
	}
})

// randomRequest is a *Req, much of which is nil.
var randomRequest = rapid.Custom(func(t *rapid.T) string {
	d := drawn{t}
	if rapid.IntRange(0, 5).Draw(t, "nil") == 0 {
		return "nil"
	}
	account := func() string {
		return d.one("nil", "{}", "{ID: \"p1\"}", "{ID: \"ann\", Num: 3, Parent: &Account{ID: \"boss\"}}")
	}
	fields := []string{
		"User: " + d.one(`""`, `"ann"`, `"id"`, `"x"`), "Email: " + d.one(`""`, `"Ann@Example.ORG"`, `"a@b@c"`, `"ÄÖ"`),
		"Admin: " + d.one("true", "false"), "N: " + d.one("0", "7", "-3", "1 << 20"), "D: " + d.one("0", "2"),
		"Amount: " + d.one("0", "99.5", "0.1", "-1e4", "1e4"), "Rate: " + d.one("0", "0.1", "0.5"),
	}
	if account := account(); account != "nil" {
		fields = append(fields, "Acct: &Account"+account)
	}
	for _, f := range []struct{ name, typ, elems string }{
		{"Tags", "[]string", d.one("", `"t0"`, `"t1", "id"`, `"t0", "", "Ann"`)},
		{"Items", "[]Item", d.one("", `{SKU: "x"}`, `{SKU: "id", Qty: 200}, {Qty: 255}`)},
		{"Ptrs", "[]*Account", account() + ", " + account()},
		{"Labels", "map[string]string", d.one("", `"tenant": ""`, `"x": "y"`)},
		{"Scores", "[]float64", d.one("", "0.1, 0.2", "1.5, -2.5, 1e4")},
	} {
		if d.one("nil", "", "") == "" {
			fields = append(fields, f.name+": "+f.typ+"{"+f.elems+"}")
		}
	}
	return "{" + strings.Join(fields, ", ") + "}"
})

// agree reports an expression whose value is not that of expr's interpreter, for
// all inputs for which that has one. Where it stops, an expression that is not
// forgiving must have no value.
func agree(t *testing.T, e expression, lenient bool, inputs []string, values []evaluation) (compared int) {
	t.Helper()
	for i, v := range values {
		want := v.vm
		if e.kind == "cost" && (v.ours == "9223372036854775807" || v.ours == "-9223372036854775808") {
			continue // a cost stops there, and the interpreter wraps around
		}
		if want == "!" {
			if want = "-"; e.condition() {
				want = "false"
			}
			if lenient {
				want = v.ours
				if strings.HasPrefix(want, "panic") {
					want = "no panic"
				}
			}
		} else {
			compared++
		}
		if v.ours != want {
			t.Errorf("%s %s\nfor %s: %q, expr's interpreter says %q", e.kind, e.text, inputs[i], v.ours, v.vm)
		}
	}
	return compared
}

func TestRandomExpressionsAgreeWithExpr(t *testing.T) {
	t.Parallel()
	_, _, scope := keyTarget(t, keyPackage(t, keySource+"\nfunc main() {}\n"), "Service", "Do")
	var exprs []expression
	for i := 0; len(exprs) < 400; i++ {
		e := randomExpression.Example(*keySeed*1000 + i)
		if key, x, _ := e.parse(scope); key != nil || x != nil {
			exprs = append(exprs, e)
		}
		if i > 800 {
			t.Fatalf("only %d of %d expressions are accepted", len(exprs), i)
		}
	}
	inputs := []string{"full()", "nil", "{}"}
	for i := range 12 {
		inputs = append(inputs, randomRequest.Example(*keySeed*1000+i))
	}
	values, lenient := evaluate(t, exprs, inputs)
	compared := 0
	for i, e := range exprs {
		compared += agree(t, e, lenient[i], inputs, values[i])
	}
	if least := len(exprs) * len(inputs) / 3; compared < least {
		t.Errorf("expr's interpreter gives %d values; less than %d compare little", compared, least)
	}
	t.Logf("%d of %d values compared, seed %d", compared, len(exprs)*len(inputs), *keySeed)
}
