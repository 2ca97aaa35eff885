package keyexpr

import (
	"slices"
	"strings"
	"testing"
)

func TestHabitsFromElsewhereAreToldWhatToWrite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, habit, here string }{
		{"key", "{#id, #n}", "[#id, #n]"},
		{"key", "{'a', 'id'}.contains(#id)", "#id in ['a', 'id']"},
		{"when", "#id in {'a', 'b'}", "['a', 'b']"},
		{"key", "#{ #id + 'a' }", "#id + 'a'"},
		{"key", "#{#req.UserID}", "#req.UserID"},
		{"key", "${limits.key}", "the name of a constant or variable of the package"},
		{"key", "#id + ${limits.key}", "the name of a constant or variable of the package"},
		{"when", "#id.isEmpty()", `#id == ""`},
		{"when", "user.isEmpty()", `user == nil`},
		{"when", "!#id.isEmpty()", `#id == ""`},
		{"when", "#id.isBlank()", `trim(#id) == ""`},
		{"when", "#req.Tags.isEmpty()", "len(#req.Tags) == 0"},
		{"cost", "#id.length()", "len(#id)"},
		{"cost", "#req.Tags.size()", "len(#req.Tags)"},
		{"cost", "#req.Tags.length", "len(#req.Tags)"},
		{"cost", "#req?.Labels?.size()", "len(#req?.Labels)"},
		{"key", "#id.toLowerCase()", "lower(#id)"},
		{"key", "(#id + 'A').toLowerCase()", "lower((#id + 'A'))"},
		{"key", "#id.toUpperCase().trim()", "upper(#id)"},
		{"key", "#id.trim()", "trim(#id)"},
		{"when", "#id.equals('a')", "#id == 'a'"},
		{"when", "#n.equals(3)", "#n == 3"},
		{"when", "#id.equalsIgnoreCase(#ip)", "lower(#id) == lower(#ip)"},
		{"when", "#id.startsWith('a')", "#id startsWith 'a'"},
		{"when", "#id.endsWith('a')", "#id endsWith 'a'"},
		{"when", "#id.contains('a')", "#id contains 'a'"},
		{"when", "#id.matches('^a$')", "#id matches '^a$'"},
		{"when", "#req.Tags.contains(#id)", "#id in #req.Tags"},
		{"when", "#req.Labels.containsKey('a')", "'a' in #req.Labels"},
		{"key", "#req.Labels.get('a')", "#req.Labels['a']"},
		{"key", "#req.Labels.getOrDefault('a', id)", "#req.Labels['a'] ?? id"},
		{"key", "#req.Tags.get(0)", "#req.Tags[0]"},
		{"key", "#id.split(':')[0]", "split(#id, ':')"},
		{"key", "#id.replace('a', 'b')", "replace(#id, 'a', 'b')"},
		{"key", "#id.concat('a')", "#id + 'a'"},
		{"key", "#id.substring(0, 3)", "name(#id), a function of the package"},
		{"key", "#n.toString()", "string(#n)"},
		{"key", "#req.UserID()", "#req.UserID"},
		{"key", "T(java.lang.Math).abs(#n)", "abs(#n)"},
		{"key", "Math.max(n, 1)", "max(n, 1)"},
		{"key", "T(Tenants).tenantOf(ctx, req)", "tenantOf(ctx, req)"},
		{"key", "T(Tenants).of(req)", "call a function of the package"},
		{"key", "@tenants.of(req)", "call a function of the package"},
		{"key", "new Tenant(req)", "call a function of the package"},
		{"when", "#req instanceof Req", "call a function of the package"},
		{"when", "NOT matches", "write not"},
		{"when", "NOT (n > 1)", "write not"},
		{"when", "n > 1 AND NOT #matches", "write and"},
		{"when", "n > 1 OR matches", "write or"},
		{"when", "id NOT IN req.Tags", "write in"},
		{"when", "#n between {1, 50}", "x >= least and x <= greatest"},
		{"key", "#root.targetClass.simpleName", "leave it out"},
		{"key", "#root.method.name", "#root.methodName"},
		{"when", "#result == nil", "only count and cost-after know results"},
		{"when", "#err != nil", "only count and cost-after know results"},
		{"key", "#authentication.name", "user"},
		{"key", "#request.remoteAddr", "request, without #"},
		{"key", "#this", "the name of a parameter"},
		{"key", "request.remoteAddr", "write request.ip"},
		{"key", "request.getHeader('X')", "write request.header('X')"},
	} {
		got, problems := parseText(c.kind, c.habit, scopeOf(t, "Service", "Do"))
		told := slices.ContainsFunc(problems, func(p Problem) bool { return strings.Contains(p.Message, c.here) })
		if got != "" || !told {
			t.Errorf("%s: %+v, want one that says %q", c.habit, problems, c.here)
		}
		inside(t, c.habit, problems)
		for _, p := range problems {
			if p.Code == syntaxError.code {
				t.Errorf("%s: %s besides", c.habit, p.Message)
			}
		}
	}
}

func TestGettersAreToldTheirField(t *testing.T) {
	t.Parallel()
	for habit, want := range map[string]string{
		"#req.getUserId()": "UserID", "req.getUserId()": "UserID", "#req.userId": "UserID", "req.getUserId": "UserID", "#req.isAdmin()": "Admin",
		"#req.acct.name": "Acct", "#req.getAcct().getName()": "Acct", "#req.Acct.getName()": "Name()", "#req.Acct.getId()": "ID",
		"#root.target.getRegion()": "region", "#req.UsrID": "UserID",
	} {
		_, problems := parseText("key", habit, scopeOf(t, "Service", "Do"))
		if len(problems) != 1 || problems[0].Suggestion != want {
			t.Errorf("%s: %+v, want the suggestion %s", habit, problems, want)
		}
	}
}

func TestResultsAreNamedThoughParametersHideThem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ method, kind, expr, want string }{
		{"Hide", "count", "#err != nil", ""},
		{"Hide", "after", "#result", ""},
		{"Hide", "count", "#p0 == 'x' and #p1 == 'y'", ""},
		{"Hide", "count", "err == 'x'", "0-3 ambiguous-name: err is both the method's result and a parameter or the receiver; write #err for the result or #p0 for the other"},
		{"Hide", "after", "len(result)", "4-10 ambiguous-name: result is both the method's result and a parameter or the receiver; write #result for the result or #p1 for the other"},
		{"Hide", "when", "err == result and #result <= #err", ""},
		{"Hide", "key", "[err, #result]", ""},
		{"Find", "count", "err == 'x'", ""}, // the method returns no error
		{"Do", "count", "#err != nil", ""},
		{"Make", "count", "#result?.ID == 'x' and #made != nil", ""},
	} {
		_, problems := parseText(c.kind, c.expr, scopeOf(t, "Service", c.method))
		var got []string
		for _, p := range problems {
			got = append(got, render(p))
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%s of %s: %q, want %q", c.expr, c.method, got, c.want)
		}
	}
}

func TestConstantExpressionsAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, expr, want string }{
		{"when", "true", constantWhen.code}, {"when", "false", constantWhen.code}, {"count", "1 > 2", constantWhen.code}, {"when", "'a' == 'b'", constantWhen.code},
		{"when", "let x = 1; x > 2", constantWhen.code}, {"when", "len('abc') > 2", constantWhen.code}, {"when", "any(split('a,b', ','), # == 'a')", constantWhen.code},
		{"cost", "5", constantCost.code}, {"cost", "2 * 3", constantCost.code}, {"after", "0", constantCost.code}, {"cost", "1 - 1", constantCost.code},
		{"cost", "-5", constantCost.code}, {"cost", "max(1, 2)", constantCost.code}, {"cost", "len('abc')", constantCost.code},
		{"when", "ratio > 1.0", ""}, {"when", "shards > 4", ""}, {"when", "id == 'a'", ""}, {"when", "user == 'x'", ""}, {"count", "err != nil", ""},
		{"when", "#root.methodName == 'Do'", ""}, {"when", "defaultTenant == 'x'", ""}, {"when", "small(5) == ''", ""},
		{"cost", "shards", ""}, {"cost", "shards * 2", ""}, {"cost", "int(floor(ratio))", ""}, {"cost", "max(shards, 100)", ""},
		{"key", "'x'", constantKey.code}, {"key", "lower('X')", constantKey.code}, {"key", "[1, 2]", constantKey.code}, {"key", "1 + 1", constantKey.code},
		{"key", "shards", "warning"}, {"key", "#root.methodName", "warning"}, {"key", "['x', shards]", "warning"}, {"key", "['x', id]", ""}, {"key", "defaultTenant", ""},
	} {
		spelling, problems := parseText(c.kind, c.expr, scopeOf(t, "Service", "Do"))
		got := ""
		for _, p := range problems {
			if got = p.Code; p.Warning {
				got = "warning"
			}
		}
		if got != c.want || len(problems) > 1 || (spelling == "") != (c.want != "" && c.want != "warning") {
			t.Errorf("%s %s: %+v, want %q", c.kind, c.expr, problems, c.want)
		}
	}
	for _, c := range []struct {
		parse      func(string, *Scope) (*Expr, []Problem)
		expr, want string
	}{
		{ParseCost, "2 * 3", "every call costs 6; write cost=6"},
		{ParseCost, "1 - 1", "write cost=0"},
		{ParseCost, "-5", "every call costs -5, and none can give units back"},
		{ParseCost, "len('abc')", "write the number"},
		{ParseLimit, "5 + 5", "the limit is 10 for every call; write max=10"},
		{ParseLimit, "1 - 1", "write max=blocked"},
		{ParseCostAfter, "5", "every call is charged 5 afterwards; add that to cost instead"},
		{ParseCostAfter, "0", "leave the option out"},
	} {
		if _, problems := c.parse(c.expr, scopeOf(t, "Service", "Do")); len(problems) != 1 || !strings.Contains(problems[0].Message, c.want) {
			t.Errorf("%s: %+v, want %q", c.expr, problems, c.want)
		}
	}
}
