package generator

import (
	"strings"
	"testing"
)

// commonExpressions are of the kind that people write. Each stands behind what it
// is for; see expression.
const commonExpressions = `
key id
key n
key u
key req.User
key req?.User
key req.Email
key lower(req.Email)
key upper(req.User)
key trim(req.User)
key trim(req.Email, 'G')
key req.Acct.ID
key req?.Acct?.ID
key req.Acct?.Parent?.ID
key req.Acct.Parent?.Parent?.ID
key req?.Acct?.ID ?? 'anonymous'
key req?.Acct?.ID ?? req?.User ?? 'anonymous'
key req.Acct?.Parent?.ID ?? req.Acct?.ID ?? id
key user ?? id
key user ?? req?.Acct?.Parent?.ID ?? 'nobody'
key (user ?? id) + '/' + req.User
key lower(user ?? 'Guest')
key req.Tags[0]
key req.Tags[len(req.Tags) - 1]
key req.Ptrs[1]?.ID
key req.Items[0].SKU
key split(req.Email, '@')[1]
key lower(split(req.Email, '@')[1])
key split(id, '-')[0]
key trimPrefix(id, 'i')
key trimSuffix(req.Email, '.ORG')
key replace(req.Email, '.', '')
key join(req.Tags, ',')
key join(req.Tags)
key join(filter(req.Tags, # != 't0'), '+')
key join(map(req.Items, .SKU), ',')
key join(map(req.Items, lower(#.SKU) + ':' + id), ',')
key join(filter(map(req.Items, .SKU), len(#) > 1), ',')
key 'user:' + req.User
key "order " + req.User + " of " + id
key req.User + '|' + string(n)
key string(n)
key string(n % 16)
key n % 16
key len(req.User)
key len(req.Tags)
key abs(n - 50)
key min(n, 5)
key max(n, 5, 100)
key req.Admin ? 'admin' : req.User
key req != nil and req.Admin ? 'admin' : id
key req == nil ? id : req.User
key n > 40 ? 'big' : n > 10 ? 'middle' : 'small'
key (n > 40 ? req?.User : id) ?? 'none'
key req.User == '' ? id : req.User
key count(req.Tags, # startsWith 't') > 1 ? 'many' : 'few'
key let name = req.User; lower(name)
key let name = req?.User ?? 'none'; name + ':' + name
key let a = req.Acct; a?.Parent?.ID ?? a?.ID ?? 'none'
key let parts = split(req.Email, '@'); parts[1]
key let parts = split(req.Email, '@'); let host = lower(parts[1]); host + '/' + parts[0]
key let long = filter(req.Tags, len(#) > 1); len(long) > 0 ? long[0] : 'none'
key tenantOf(ctx, req)
key joinAll('-', id, req.User)
key same(req.Acct)?.ID
key req.Account()?.ID
key req.Owner?.Label()
key prefix + id
key defaultTenant
key n % shards
key req.Pair[0]
when req.Admin
when !req.Admin
when not req.Admin
when req?.User == 'ann'
when req?.User != 'ann'
when req?.User != ''
when user == nil
when user != nil
when user in ['root', 'caller']
when user not in ['root', 'caller']
when req?.User in ['ann', 'bob']
when not (req?.User in ['ann', 'bob'])
when id in req.Tags
when 't0' in req.Tags
when 'x' not in req.Tags
when 'tenant' in req.Labels
when 'nope' in req.Labels
when n in [1, 2, 3, 42]
when n >= 1 and n <= 50
when n < 1 or n > 50
when n % 2 == 0
when n > 10 and id == 'id'
when n > 10 && (id == 'x' || req?.User == 'ann')
when req != nil and req.N > 3
when req?.Acct != nil
when req?.Acct == nil
when req?.Acct?.Parent != nil
when req?.Acct?.Num > 3
when req.Acct?.Num > 3 and req.Acct?.Num < 10
when req.Amount > 100.5
when req.Amount > 50
when req.Amount * 1.19 > 100.0
when req.Amount >= 99.5 and req.Amount < 99.6
when req.Rate == 0.5
when req.Amount / 2.0 + 1.0 > 50.0
when len(req.User) > 2
when len(req.Items) > 1
when req.Email contains '@'
when req.Email endsWith '.ORG'
when req.Email startsWith 'Ann'
when lower(req.Email) endsWith '@example.org'
when hasSuffix(lower(req.Email), 'example.org')
when hasPrefix(id, 'i')
when not (req.Email contains '@')
when req.Email not contains '@'
when req.Email matches '^[A-Za-z]+@.*$'
when id matches '^[a-z]+$'
when not (id matches '^[a-z]+$')
when any(req.Tags, # == 't1')
when any(req.Tags, {# == 't1'})
when any(req.Tags, # in ['t1', 't2'])
when any(req.Items, .Qty > 150)
when any(req.Items, #.Qty > 150 and #.SKU != '')
when all(req.Items, .Qty > 150)
when all(req.Tags, len(#) == 2)
when none(req.Items, .SKU == '')
when none(req.Ptrs, # == nil)
when one(req.Tags, # == 't0')
when any(req.Items, any(req.Tags, # == id))
when any(req.Tags, # matches '^t[0-9]$')
when count(req.Items, .Qty > 150) > 0
when count(req.Tags, # != '') == len(req.Tags)
when len(filter(req.Items, .Qty > 150)) == 1
when sum(req.Items, .Qty) > 250
when sum(req.Scores) > 3.5
when sum(req.Scores, # * 2.0) < 8.5
when req.Admin ? n > 3 : n > 50
when (req?.Acct?.ID ?? '') == ''
when (req?.Acct?.ID ?? 'a1') == 'a1'
when let limit = 40; n > limit
when let total = sum(req.Items, .Qty); total > 100 and total < 400
when tick(id) == 'id'
when req.Account() != nil
when req.User < 'b'
when 1 < n and n < 100
cost n
cost len(req.Items)
cost len(req.Items) + 1
cost max(1, len(req.Items))
cost max(1, n / 7 * 0 + len(req.Tags))
cost min(n, 10)
cost req.N
cost req?.N ?? 1
cost (req?.N ?? 1) * 2
cost req.Admin ? 1 : 10
cost req != nil and req.Admin ? 1 : 10
cost sum(req.Items, .Qty)
cost sum(req.Items, int(#.Qty) * 2)
cost count(req.Items, .Qty > 150)
cost int(req.Amount)
cost int(ceil(req.Amount / 10.0))
cost int(round(req.Amount))
cost max(1, int(floor(req.Amount / 10.0)))
cost abs(req.N - 10)
cost int(float(n) * 1.5)
cost let k = len(req.Tags); k * k + 1
cost user == nil ? 5 : 1
cost len(split(req.Email, '@'))
count err != nil
count err == nil
count err != nil and n > 3
count err?.Error() contains 'failure'
count not (err?.Error() startsWith 'failure 3')
after err == nil ? len(req.Tags) : 0
after err != nil ? 1 : req?.N ?? 2
after len(err?.Error() ?? '')
`

func TestCommonExpressionsAgreeWithExpr(t *testing.T) {
	t.Parallel()
	var exprs []expression
	for line := range strings.Lines(strings.TrimSpace(commonExpressions)) {
		kind, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		exprs = append(exprs, expression{kind, text})
	}
	inputs := []string{
		"full()", "nil", "{}", `{User: "ann", Tags: []string{"t1"}}`, `{Acct: &Account{ID: "a"}, Items: []Item{{}}}`,
		`{Email: "a@B", Labels: map[string]string{"nope": ""}, Ptrs: []*Account{nil}, Scores: []float64{2}}`,
		`{Email: "ab", N: -3, Amount: 0.1, Acct: &Account{Num: 5, Parent: &Account{ID: "p"}}, Tags: []string{}}`,
	}
	values, lenient := evaluate(t, exprs, inputs)
	compared := 0
	for i, e := range exprs {
		n := agree(t, e, lenient[i], inputs, values[i])
		if n == 0 {
			t.Errorf("%s %s: expr's interpreter has no value for any input", e.kind, e.text)
		}
		compared += n
	}
	t.Logf("%d expressions, %d of %d values compared", len(exprs), compared, len(exprs)*len(inputs))
}
