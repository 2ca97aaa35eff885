package keyexpr

import (
	"go/types"
	"testing"
)

// parseText parses src as kind and returns its spelling, "" if it is refused.
func parseText(kind, src string, s *Scope) (string, []Problem) {
	if kind == "count" || kind == "after" {
		after := *s
		after.Results = s.Sig.Results()
		s = &after
	}
	var e *Expr
	var problems []Problem
	switch kind {
	case "when", "count":
		e, problems = ParseCondition(src, s)
	case "cost", "after":
		e, problems = ParseCost(src, s)
	default:
		k, problems := ParseKey(src, s)
		if k == nil {
			return "", problems
		}
		return k.String(), problems
	}
	if e == nil {
		return "", problems
	}
	return e.String(), problems
}

func TestSpellingsThatMeanTheSameAreOne(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, kind, want string
		spellings          []string
	}{
		{"Do", "key", "id", []string{"id", "#id", "#p3", "#a3", "#root.args[3]", " id ", "(id)", "[id]"}},
		{"Do", "key", "req.UserID", []string{"req.UserID", "#req.UserID", "req?.UserID", "#p1?.UserID", "( req ).UserID"}},
		{"Do", "key", "[req.TenantID, req.Acct.ID]", []string{"[req.TenantID, req.Acct.ID]", "req.TenantID,req.Acct.ID", "[ #req.TenantID,req?.Acct?.ID ]"}},
		{"Make", "key", "ip,user", []string{"ip,user", "ip, user", "[ip, user]", "request.ip, request.user", "ip/32/64,user"}},
		{"Make", "key", "user", []string{"user", "request.user", "[user]"}},
		{"Make", "key", "ip", []string{"ip", "request.ip", "ip/32/64", "request.ip / 32 / 64"}},
		{"Make", "key", "ip/24/56", []string{"ip/24/56", "request.ip / 24 / 56"}},
		{"Make", "key", "user ?? (ip/24/56)", []string{"user ?? (ip/24/56)", "request.user ?? (request.ip/24/56)"}},
		{"Make", "key", "[ip, req.UserID]", []string{"ip, req.UserID", "[request.ip, req.UserID]"}},
		{"Do", "key", "request.ip", []string{"request.ip", "request.ip/32/64"}},
		{"Do", "key", "#ip", []string{"#ip", "#p4"}},
		{"Do", "key", "lower(ip)", []string{"lower(ip)", "lower(#ip)"}},
		{"Do", "key", "[#ip, request.ip]", []string{"#ip, request.ip"}},
		{"Do", "key", "#p7", []string{"#p7", "#root.args[7]"}},
		{"Do", "key", "s.region", []string{"s.region", "#root.target.region", "#s.region"}},
		{"Do", "key", `"Do"` + ` + id`, []string{"'Do' + id", `"D" + 'o' + id`}},
		{"Do", "key", `#root.methodName + ":" + id`, []string{"#root.methodName + ':' + #id"}},
		{"Do", "key", "[id, (let x = lower(id); x + x)]", []string{"id, (let x = lower(id); x + x)", "[id, ((let x = lower(id); x + x))]"}},
		{"Do", "key", "let x = lower(id); x + x", []string{"[(let x = lower(id); x + x)]", "(let x = lower(id); x + x)", "let x = lower(id); [x + x]"}},
		{"Do", "key", "global", []string{"global", " global "}},
		{"Do", "key", "in.UserID", []string{"in.UserID", "#in.UserID", "#p2.UserID"}},
		{"Do", "key", "matches", []string{"matches", "#matches"}},
		{"Do", "key", `req.Labels["x"]`, []string{"req.Labels.x", "req.Labels['x']", `req?.Labels?.["x"]`}},
		{"Do", "key", `let x = lower(id); [x, n, upper(x)]`, []string{"let x = lower(#id); [x,n,upper(x)]", "let x=lower(id);[x, n, upper(x)]"}},
		{"Do", "key", "lower(id)", []string{"let y = id; lower(y)", "lower(id)"}},
		{"Do", "key", `id ?: "none"`, []string{"id ?: 'none'", "#id?:'none'"}},
		{"Do", "key", `req.Acct.ID ?: req.Labels["a"] ?: "none"`, []string{"req.Acct.ID ?: (req.Labels.a ?: 'none')", "req.Acct?.ID ?: req.Labels.a ?: 'none'"}},
		{"Do", "key", `req.Acct.ID ?? req.Labels["a"] ?? "none"`, []string{"req.Acct.ID ?? (req.Labels.a ?? 'none')", "(req.Acct?.ID ?? req.Labels.a) ?? 'none'"}},
		{"Do", "key", "req.Shard % shards", []string{"req.Shard % shards", "req.Shard%shards"}},
		{"Do", "key", "any1(uint8(5))", []string{"any1(uint8(5))", "any1(byte(5))"}},
		{"Do", "key", "any1(5)", []string{"any1(5)", "any1(int(5))", "any1(2 + 3)"}},
		{"Do", "key", "any1(5.0)", []string{"any1(5.0)", "any1(float(5))"}},
		{"Do", "key", "small(5)", []string{"small(5)", "small(int8(5))"}},
		{"Do", "key", "n > 1 ? id : n < 0 ? #ip : user", []string{"n > 1 ? id : (n < 0 ? #p4 : request.user)"}},
		{"Do", "when", `!req.Admin && (id == "x" || n != 1)`, []string{"not req.Admin and (id == 'x' or n != 1)", `!req.Admin&&(id=="x"||#n!=1)`}},
		{"Do", "when", "id not in req.Tags", []string{"id not in req.Tags", "not (id in req.Tags)", "!(id in req.Tags)"}},
		{"Do", "when", `id startsWith "a"`, []string{"id startsWith 'a'", "hasPrefix(id, 'a')"}},
		{"Do", "when", "req != nil", []string{"req != nil", "nil != req"}},
		{"Do", "when", "req.F > 50", []string{"req.F > 50", "req.F > 50.0"}},
		{"Do", "when", "user2 == user", []string{"user2 == request.user"}},
		{"Do", "when", "req.Shard == 9223372036854775807 * 2 + 1", []string{"req.Shard == 9223372036854775807 * 2 + 1", "req.Shard == 1 + 2 * 9223372036854775807"}},
		{"Do", "when", "n == -(9223372036854775807 * 1 + 1)", []string{"n == -9223372036854775807 - 1"}},
		{"Do", "when", "any(req.Items, .Qty > 3)", []string{"any(req.Items, .Qty > 3)", "any(req.Items, #.Qty > 3)", "any(req.Items, {#this.Qty > 3})"}},
		{"Do", "when", "any(req.Tags, let elem = #; any(req.Tags, # == elem))", []string{"any(req.Tags, let other = #; any(req.Tags, # == other))"}},
		{"Do", "cost", "sum(req.Items, .Qty)", []string{"sum(req.Items, .Qty)", "sum(req.Items, int(#.Qty))"}},
		{"Do", "cost", "sum(req.Ints)", []string{"sum(req.Ints)", "sum(req.Ints, #)"}},
		{"Do", "cost", "-(n - (n - 1) * 2)", []string{"-(n-(n-1)*2)"}},
		{"Do", "cost", "int(ratio * 2.0)", []string{"int(ratio * 2.0)", "int(ratio*2)"}},
		{"Do", "count", "err != nil", []string{"err != nil", "#err != nil"}},
		{"Make", "count", "made != nil", []string{"made != nil", "result != nil", "#result != nil"}},
		{"Find", "count", "result == nil", []string{"result == nil", "#result == nil"}},
		{"Hide", "count", "#err == nil && #result > 1 && #p0 == #p1", []string{"#err == nil and #result > 1 and #p0 == #root.args[1]"}},
		{"Hide", "when", "err == result", []string{"#p0 == result", "err == #result"}},
	} {
		for _, src := range append(c.spellings, c.want) {
			got, problems := parseText(c.kind, src, scopeOf(t, "Service", c.method))
			if got != c.want {
				t.Errorf("%s %s is spelled %q, want %q: %v", c.kind, src, got, c.want, problems)
			}
		}
	}
}

func TestSpellingsOfWhatParametersHide(t *testing.T) {
	t.Parallel()
	pkg := types.NewPackage("example.com/p", "p")
	text := types.Typ[types.String]
	param := func(name string) *types.Var { return types.NewVar(0, pkg, name, text) }
	sig := types.NewSignatureType(nil, nil, nil, types.NewTuple(
		param("p1"), param("_"), param("not"), param("true"), param("global"), param("request"), param("user"), param("elem"), param("a"),
		types.NewVar(0, pkg, "list", types.NewSlice(text)),
	), nil, false)
	recv := types.NewVar(0, pkg, "role", types.NewPointer(types.NewNamed(types.NewTypeName(0, pkg, "T", nil), types.NewStruct([]*types.Var{types.NewField(0, pkg, "id", text, false)}, nil), nil)))
	s := &Scope{Pkg: pkg, Recv: recv, Sig: sig, Request: true}
	for src, want := range map[string]string{
		"#a1":                 "#a1",
		"#p0":                 "p1",
		"#not":                "#not",
		"not":                 "#not",
		"#true":               "#true",
		"#global":             "#global",
		"lower(global)":       "lower(global)",
		"#p5":                 "request",
		"request.user, #user": "[request.user, #user]",
		"lower(user)":         "lower(user)",
		"role.id":             "role.id",
		"#root.target.id":     "role.id",
		"request.role":        "request.role",
		"[path, route]":       "path,route",
		"count(list, let x = #; count(list, # == x) > 1)":                                "count(list, let elem2 = #; count(list, # == elem2) > 1)",
		"let elem2 = lower(a); count(list, let x = #; any(list, # == x and # == elem2))": "let elem2 = lower(a); count(list, let elem3 = #; any(list, # == elem3 && # == elem2))",
	} {
		for _, src := range []string{src, want} {
			if got, problems := parseText("key", src, s); got != want {
				t.Errorf("%s is spelled %q, want %q: %v", src, got, want, problems)
			}
		}
	}
}

func TestOtherExpressionsAreSpelledOtherwise(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, src := range []string{
		"request.ip, id", "#ip, id", "[request.ip, '#ip']", "id + ip", "id, #ip", "'id' + id", "lower(id)", "'lower(id)' + id", "n - (n - 1)", "n - n - 1", "-n", "- -n",
		"any1(5)", "any1(int8(5))", "any1(5.0)", "any1('5')", "id ?: 'a'", "req.Acct.ID ?? 'a'", "req.Acct.ID ?: 'a'",
		"(req.Acct.ID ?? req.Labels.a) ?: 'x'", "req.Acct.ID ?? req.Labels.a ?? 'x'", "req.Acct.ID ?? (req.Labels.a ?: 'x')",
		"matches ? id : (n > 1 ? user : id)", "(matches ? n > 1 : matches) ? user : id",
	} {
		got, problems := parseText("key", src, scopeOf(t, "Service", "Do"))
		if got == "" {
			t.Errorf("%s: %v", src, problems)
		}
		if other, ok := seen[got]; ok {
			t.Errorf("%s and %s are both spelled %s: %v", src, other, got, problems)
		}
		seen[got] = src
	}
}
