package keyexpr

import "testing"

func TestKeyTellsWhetherItMayBeEmpty(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]bool{
		"global": false, "n": false, "matches": false, "n % 16": false, "string(n)": false, "string(matches)": false, "shards": false,
		"'id:' + id": false, "id + string(n)": false, "upper('x' + id)": false, "id ?: 'none'": false, "id == '' ? 'none' : n > 1 ? 'a' : 'b'": false,
		"req.Acct?.ID ?: 'none'": false, "user ?? 'none'": false, "user ?: n > 1 ? 'a' : 'b'": false, "[n, 'id:' + id]": false,
		"let x = 'a' + id; lower(x)": false, "any(req.Tags, # == '')": true, "#root.methodName + id": false,
		"id": true, "lower(id)": true, "trim('x' + id)": true, "id + #ip": true, "req.Region": true, "user": true, "request.ip": true, "string(req.Raw)": true,
		"req.Acct?.ID ?? 'none'": true, "id ?: #ip": true, "matches ? id : 'none'": true, "n / n": true, "'id:' + req.UserID": true,
		"[n, id]": true, "let x = id + id; [x, n]": true, "tenantOf(ctx, req)": true, "small(5)": true, "n > 1": false, "defaultTenant": true,
	} {
		k, problems := ParseKey(expr, scopeOf(t, "Service", "Do"))
		if k == nil {
			t.Errorf("%s: %v", expr, problems)
		} else if k.MayBeEmpty() != want {
			t.Errorf("%s: may be empty: %v", expr, !want)
		}
	}
}
