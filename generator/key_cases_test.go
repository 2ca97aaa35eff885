package generator

// keySource is the annotated package. Its main is in keyMain.
const keySource = `package main

import (
	"context"
	"strings"
	"time"
)

type TenantID string

type Region int32

type Flag bool

const shards = 4
const prefix = "p:"
const maxRegion Region = 7
const noTenant TenantID = "NONE"

var defaultTenant = "fallback"
var noAccount *Account

type Base struct{ BaseID string }

func (b *Base) Origin() string { return b.BaseID }

type Account struct {
	ID     string
	Parent *Account
	Num    int64
	Notes  []string
	secret string
}

func (a *Account) Boss() *Account  { return a.Parent }
func (a Account) Label() string    { return "acct-" + a.ID }
func (a *Account) GetID() string   { if a == nil { return "nil" }; return a.ID }

type Named interface{ Label() string }

type Item struct{ SKU string; Qty uint8 }

func (i *Item) Code() string { return i.SKU }

type Req struct {
	*Base
	Tenant TenantID
	User   string
	Email  string
	Shard  uint64
	Small  int8
	Region Region
	Admin  bool
	Beta   Flag
	Acct   *Account
	Owner  Named
	Tags   []string
	Items  []Item
	Ptrs   []*Account
	Labels map[string]string
	Quota  map[Region]int
	ByUser map[TenantID]*Account
	Pair   [2]string
	Raw    []byte
	When   time.Time
	N, D   int
	Amount float64
	Rate   float32
	Scores []float64
}

func (r *Req) Account() *Account { ticks++; if r == nil { return nil }; return r.Acct }
func (r *Req) Wipe() bool        { ticks++; r.Acct = nil; return true }
func (r *Req) Value() Account    { if r.Acct == nil { return Account{} }; return *r.Acct }

var ticks int

func tick(s string) string { ticks++; return s }
func tenantOf(ctx context.Context, r *Req) string {
	if r == nil { return "none" }
	return strings.ToLower(string(r.Tenant))
}
func joinAll(sep string, parts ...string) string { return strings.Join(parts, sep) }
func last(xs []string) int { return len(xs) }
func box(v any) string { if v == nil { return "nil" }; return "boxed" }
func item(r *Req) Item { if r == nil || len(r.Items) == 0 { return Item{} }; return r.Items[0] }
func same(a *Account) *Account { return a }

type Service struct {
	region string
	owner  *Account
}

func (s *Service) zone(r *Req) string { return s.region + "/" + tenantOf(nil, r) }

func (s *Service) Do(ctx context.Context, req *Req, in *Req, id string, n int, u uint8, neg int64, tag TenantID, _ bool) error { return nil }
`

const keyMain = `
func reqs() []*Req {
	return []*Req{full(), nil, {}}
}

func full() *Req {
	return &Req{
		Base: &Base{BaseID: "base"}, Tenant: "ACME", User: "ann", Email: "Ann@Example.ORG", Shard: 35, Small: -7, Region: 3,
		Admin: true, Beta: true,
		Acct:  &Account{ID: "a1", Num: 9, secret: "s3", Parent: &Account{ID: "boss"}},
		Owner: &Account{ID: "own"},
		Tags: []string{"t0", "t1"}, Items: []Item{{SKU: "sku", Qty: 200}}, Ptrs: []*Account{nil, {ID: "p1"}},
		Labels: map[string]string{"tenant": "L", "empty": ""}, Quota: map[Region]int{3: 30},
		ByUser: map[TenantID]*Account{"ACME": {ID: "by"}, "NIL": nil},
		Pair: [2]string{"x", "y"}, Raw: []byte("raw"), N: 7, D: 2, Amount: 99.5, Rate: 0.5, Scores: []float64{1.5, 2.5},
	}
}

func report(n, input int, key func(req, in *Req, buf []byte) []byte) {
	ticks = 0
	b := key(reqs()[input], reqs()[input], make([]byte, 0, 64))
	if b == nil {
		b = []byte("-")
	}
	fmt.Printf("key %d %d %d %s\n", n, input, ticks, b)
}

func main() {
	s := &Service{region: "eu"}
	user := &ratelimit.Request{Addr: netip.MustParseAddr("192.0.2.1"), User: "caller"}
	anon := &ratelimit.Request{Addr: netip.MustParseAddr("2001:db8::1")}
	for i, ctx := range []context.Context{
		ratelimit.WithRequest(context.Background(), user),
		context.Background(),
		ratelimit.WithRequest(context.Background(), anon),
	} {
		call(i, ctx, s)
	}
}

func vm(i int, src string, params map[string]any) {
	program, err := expr.Compile(src, expr.Optimize(false))
	if err == nil {
		var v any
		if v, err = expr.Run(program, params); err == nil {
			if v == nil {
				fmt.Printf("vm %q %d -\n", src, i)
				return
			}
			fmt.Printf("vm %q %d %v\n", src, i, v)
			return
		}
	}
	fmt.Printf("vm %q %d !\n", src, i)
}
`

// keyCase is an expression with its value for the full request, for a nil one with
// no caller in the context, and for the zero request with an anonymous caller; "-"
// is absent.
type keyCase struct {
	expr string
	want [3]string
	// vm tells how expr's interpreter differs; "" if it gives the same wherever it
	// gives anything.
	vm string
	// ticks is the number of calls of counting functions, for the full request.
	ticks int
}

var keyCases = []keyCase{
	{expr: "req.User", want: [3]string{"ann", "-", ""}},
	{expr: "req?.User", want: [3]string{"ann", "-", ""}},
	{expr: "#req.User", want: [3]string{"ann", "-", ""}, vm: "SpEL"},
	{expr: "#p1.User", want: [3]string{"ann", "-", ""}, vm: "SpEL"},
	{expr: "#a1.User", want: [3]string{"ann", "-", ""}, vm: "SpEL"},
	{expr: "#root.args[1].Tenant", want: [3]string{"ACME", "-", ""}, vm: "SpEL"},
	{expr: "#root.target.region", want: [3]string{"eu", "eu", "eu"}, vm: "SpEL"},
	{expr: "#root.methodName + id", want: [3]string{"Doid", "Doid", "Doid"}, vm: "SpEL"},
	{expr: "#p8", want: [3]string{"true", "true", "true"}, vm: "unnamed"},
	{expr: "in.User", want: [3]string{"ann", "-", ""}, vm: "reserved word"},
	{expr: "not in.Admin", want: [3]string{"false", "true", "true"}, vm: "reserved word"},
	{expr: "id", want: [3]string{"id", "id", "id"}},
	{expr: "n", want: [3]string{"42", "42", "42"}},
	{expr: "u", want: [3]string{"200", "200", "200"}},
	{expr: "neg", want: [3]string{"-5", "-5", "-5"}},
	{expr: "neg == -9223372036854775808", want: [3]string{"false", "false", "false"}, vm: "the least int64"},
	{expr: "neg - -9223372036854775808", want: [3]string{"9223372036854775803", "9223372036854775803", "9223372036854775803"}, vm: "the least int64"},
	{expr: "n - -9_223_372_036_854_775_808 > 0 ? -0x8000000000000000 : n", want: [3]string{"42", "42", "42"}, vm: "the least int64"},
	{expr: "tag", want: [3]string{"tag", "tag", "tag"}},
	{expr: "s.region", want: [3]string{"eu", "eu", "eu"}, vm: "unexported"},
	{expr: "s.owner.ID", want: [3]string{"-", "-", "-"}, vm: "unexported"},
	{expr: "s.zone(req ?? in)", want: [3]string{"eu/acme", "eu/none", "eu/"}, vm: "unexported"},
	{expr: "req.Tenant", want: [3]string{"ACME", "-", ""}},
	{expr: "req.Shard", want: [3]string{"35", "-", "0"}},
	{expr: "req.Region", want: [3]string{"3", "-", "0"}},
	{expr: "req.Beta", want: [3]string{"true", "-", "false"}},
	{expr: "req.Acct.ID", want: [3]string{"a1", "-", "-"}},
	{expr: "req.Acct.secret", want: [3]string{"s3", "-", "-"}, vm: "unexported"},
	{expr: "req.Acct?.Parent?.ID", want: [3]string{"boss", "-", "-"}},
	{expr: "req.Acct.Parent.Parent.ID", want: [3]string{"-", "-", "-"}},
	{expr: "req.BaseID", want: [3]string{"base", "-", "-"}},
	{expr: "req.Base.BaseID", want: [3]string{"base", "-", "-"}},
	{expr: "req.Origin()", want: [3]string{"base", "-", "-"}},
	{expr: "req.Acct.Label()", want: [3]string{"acct-a1", "-", "-"}},
	{expr: "req.Acct.GetID()", want: [3]string{"a1", "-", "-"}, vm: "a method of a nil pointer"},
	{expr: "req.Account().Boss().ID", want: [3]string{"boss", "-", "-"}, ticks: 1},
	{expr: "req.Owner.Label()", want: [3]string{"acct-own", "-", "-"}},
	{expr: "req.Value().Label()", want: [3]string{"acct-a1", "-", "acct-"}},
	{expr: "req.Value().Boss().ID", want: [3]string{"boss", "-", "-"}, vm: "pointer method of a result"},
	{expr: "item(req).Code()", want: [3]string{"sku", "", ""}, vm: "pointer method of a result"},
	{expr: "item(req).SKU", want: [3]string{"sku", "", ""}},
	{expr: "req.Items[0].Code()", want: [3]string{"sku", "-", "-"}, vm: "pointer method of an element"},
	{expr: "req.Items[0].Qty", want: [3]string{"200", "-", "-"}},
	{expr: "req.Tags[1]", want: [3]string{"t1", "-", "-"}},
	{expr: "req.Tags[n]", want: [3]string{"-", "-", "-"}},
	{expr: "req.Tags[neg]", want: [3]string{"-", "-", "-"}},
	{expr: "req.Tags[n - 41]", want: [3]string{"t1", "-", "-"}},
	{expr: "req.Tags[u - 199]", want: [3]string{"t1", "-", "-"}},
	{expr: "req.Tags[len(req.Tags) - 1]", want: [3]string{"t1", "-", "-"}},
	{expr: "req.Tags?.[0]", want: [3]string{"t0", "-", "-"}},
	{expr: "req.Ptrs[0].ID", want: [3]string{"-", "-", "-"}},
	{expr: "req.Ptrs[1].ID", want: [3]string{"p1", "-", "-"}},
	{expr: "req.Pair[1]", want: [3]string{"y", "-", ""}},
	{expr: "req.Pair[n]", want: [3]string{"-", "-", "-"}},
	{expr: "req.Labels['tenant']", want: [3]string{"L", "-", "-"}, vm: "missing key"},
	{expr: "req.Labels.tenant", want: [3]string{"L", "-", "-"}, vm: "missing key"},
	{expr: "req.Labels[tick('tenant')]", want: [3]string{"L", "-", "-"}, vm: "missing key", ticks: 1},
	{expr: "req.Quota[req.Region]", want: [3]string{"30", "-", "-"}, vm: "missing key"},
	{expr: "req.ByUser[req.Tenant].ID", want: [3]string{"by", "-", "-"}},
	{expr: "req.ByUser.NIL.ID", want: [3]string{"-", "-", "-"}, vm: "key of a named type"},
	{expr: "tenantOf(ctx, req)", want: [3]string{"acme", "none", ""}},
	{expr: "tick(req.User)", want: [3]string{"ann", "-", ""}, ticks: 1},
	{expr: "tick(tick(id) + req.User)", want: [3]string{"idann", "-", "id"}, ticks: 2},
	{expr: "joinAll('-', id, req.User, 'z')", want: [3]string{"id-ann-z", "-", "id--z"}},
	{expr: "joinAll('-')", want: [3]string{"", "", ""}},
	{expr: "last(req.Tags)", want: [3]string{"2", "-", "0"}, vm: "a function that hides a built-in one"},
	{expr: "box(req.Acct)", want: [3]string{"boxed", "-", "boxed"}, vm: "a nil pointer in an interface"},
	{expr: "box(5)", want: [3]string{"boxed", "boxed", "boxed"}},
	{expr: "req.Wipe() and req.Acct.ID == 'a1' ? id : 'gone'", want: [3]string{"gone", "gone", "gone"}, ticks: 1},
	{expr: "req.Acct.ID == 'a1' and req.Wipe() and req.Acct.ID == 'a1' ? id : 'gone'", want: [3]string{"gone", "gone", "gone"}, ticks: 1},
	{expr: "req.Acct != nil and req.Wipe() and req.Acct.Num > 3 ? id : 'gone'", want: [3]string{"gone", "gone", "gone"}, ticks: 1},
	{expr: "noAccount.ID", want: [3]string{"-", "-", "-"}},
	{expr: "defaultTenant", want: [3]string{"fallback", "fallback", "fallback"}},
	{expr: "prefix + req.User", want: [3]string{"p:ann", "-", "p:"}},
	{expr: "req.Shard % shards", want: [3]string{"3", "-", "0"}},
	{expr: "req.Shard % (shards * 2)", want: [3]string{"3", "-", "0"}},
	{expr: "req.Shard % (4 * 4)", want: [3]string{"3", "-", "0"}},
	{expr: "req.N / req.D", want: [3]string{"3", "-", "-"}, vm: "integer division"},
	{expr: "req.N % req.D", want: [3]string{"1", "-", "-"}},
	{expr: "req.N / (req.D - 2)", want: [3]string{"-", "-", "0"}, vm: "integer division"},
	{expr: "-req.Small", want: [3]string{"7", "-", "0"}},
	{expr: "- -n", want: [3]string{"42", "42", "42"}},
	{expr: "n - (n - 1) - 1", want: [3]string{"0", "0", "0"}},
	{expr: "n * (n + 1)", want: [3]string{"1806", "1806", "1806"}},
	{expr: "u + 100", want: [3]string{"44", "44", "44"}, vm: "width of integers"},
	{expr: "int(u) + 100", want: [3]string{"300", "300", "300"}},
	{expr: "int8(n)", want: [3]string{"42", "42", "42"}, vm: "conversion"},
	{expr: "uint8(n + 256)", want: [3]string{"42", "42", "42"}, vm: "conversion"},
	{expr: "lower(req.Email)", want: [3]string{"ann@example.org", "-", ""}},
	{expr: "upper(req.Tenant)", want: [3]string{"ACME", "-", ""}, vm: "named text"},
	{expr: "trim('  x ' + id)", want: [3]string{"x id", "x id", "x id"}},
	{expr: "trim(req.Email, 'A')", want: [3]string{"nn@Example.ORG", "-", ""}},
	{expr: "len(req.Email)", want: [3]string{"15", "-", "0"}},
	{expr: "len('äö' + id)", want: [3]string{"4", "4", "4"}},
	{expr: "len(req.Labels)", want: [3]string{"2", "-", "0"}},
	{expr: "string(req.Small)", want: [3]string{"-7", "-", "0"}},
	{expr: "string(req.Admin)", want: [3]string{"true", "-", "false"}},
	{expr: "string(req.Tenant)", want: [3]string{"ACME", "-", ""}},
	{expr: "string(req.Raw)", want: [3]string{"raw", "-", ""}, vm: "text of bytes"},
	{expr: "lower(string(req.Raw))", want: [3]string{"raw", "-", ""}, vm: "text of bytes"},
	{expr: `lower(req.Email) + "|" + string(req.Shard % 16)`, want: [3]string{"ann@example.org|3", "-", "|0"}},
	{expr: "upper(req.User + '/' + string(n))", want: [3]string{"ANN/42", "-", "/42"}},
	{expr: "req.Tenant + ':' + req.User", want: [3]string{"ACME:ann", "-", ":"}, vm: "named text"},
	{expr: "req.When.Unix()", want: [3]string{"-62135596800", "-", "-62135596800"}},

	{expr: "req.Acct?.ID ?? 'none'", want: [3]string{"a1", "none", "none"}},
	{expr: "(req.Acct?.ID ?? 'none') + '!'", want: [3]string{"a1!", "none!", "none!"}},
	{expr: "req.Amount < 9007199254740992", want: [3]string{"true", "-", "true"}},
	{expr: "lower(req?.User ?? noTenant)", want: [3]string{"ann", "none", ""}, vm: "named text"},
	{expr: "let z = req?.User ?: noTenant; [z, z == 'NONE']", want: [3]string{"ann|false", "NONE|true", "NONE|true"}, vm: "named text"},
	{expr: "(req?.Acct?.ID ?? noTenant) + '!'", want: [3]string{"a1!", "NONE!", "NONE!"}, vm: "named text"},
	{expr: "lower(req?.User ?? defaultTenant)", want: [3]string{"ann", "fallback", ""}},
	{expr: "req?.User ?: 'anon'", want: [3]string{"ann", "anon", "anon"}, vm: "Elvis"},
	{expr: "req?.Tenant ?: req?.User ?: 'both'", want: [3]string{"ACME", "both", "both"}, vm: "Elvis"},
	{expr: "lower(req?.User ?: 'ANON')", want: [3]string{"ann", "anon", "anon"}, vm: "Elvis"},
	{expr: "lower(tick(req?.User ?? id) ?: 'ANON')", want: [3]string{"ann", "id", "anon"}, vm: "Elvis", ticks: 1},
	{expr: "req?.Labels['tenant'] ?? id", want: [3]string{"L", "id", "id"}, vm: "missing key"},
	{expr: "req?.Labels['empty'] ?: id", want: [3]string{"id", "id", "id"}, vm: "Elvis"},
	{expr: "req.Labels['nope'] ?? req.Labels['empty'] ?? id", want: [3]string{"", "id", "id"}, vm: "missing key"},
	{expr: "lower(req.Labels['nope'] ?? req.Labels['tenant'] ?? id)", want: [3]string{"l", "id", "id"}, vm: "missing key"},
	{expr: "(req?.Acct ?? noAccount).ID", want: [3]string{"a1", "-", "-"}},
	{expr: "req?.Small ?? 3", want: [3]string{"-7", "3", "0"}},
	{expr: "int(req?.Small ?? 3) + 1", want: [3]string{"-6", "4", "1"}},
	{expr: "lower(req?.Tenant ?? id)", want: [3]string{"acme", "id", ""}, vm: "named text"},
	{expr: "req.Account()?.ID ?? tick('z')", want: [3]string{"a1", "z", "z"}, ticks: 1},
	{expr: "(req?.Acct?.ID ?? req?.Labels['empty']) ?: id", want: [3]string{"a1", "id", "id"}, vm: "Elvis"},

	{expr: "req.Admin ? 'admin' : req.User", want: [3]string{"admin", "-", ""}},
	{expr: "lower(req.Admin ? 'ADMIN' : req.User)", want: [3]string{"admin", "-", ""}},
	{expr: "req == nil ? 'nobody' : req.User", want: [3]string{"ann", "nobody", ""}},
	{expr: "req != nil && req.Admin", want: [3]string{"true", "false", "false"}},
	{expr: "req == nil or req.User == ''", want: [3]string{"false", "true", "true"}},
	{expr: "not (req != nil)", want: [3]string{"false", "true", "false"}},
	{expr: "req?.Acct?.ID == nil ? 'no' : 'yes'", want: [3]string{"yes", "no", "no"}},
	{expr: "req?.Labels['tenant'] == nil ? 'no' : 'yes'", want: [3]string{"yes", "no", "no"}, vm: "missing key"},
	{expr: "req?.Labels['tenant'] != nil and n > 1", want: [3]string{"true", "false", "false"}, vm: "missing key"},
	{expr: "req?.ByUser['NIL'] == nil", want: [3]string{"true", "true", "true"}, vm: "key of a named type"},
	{expr: "(req?.Acct ?? noAccount) == nil", want: [3]string{"false", "true", "true"}},
	{expr: "(req?.Acct?.ID ?? req?.Labels['tenant']) == nil", want: [3]string{"false", "true", "true"}, vm: "missing key"},
	{expr: "(req?.N / n) == nil", want: [3]string{"false", "true", "false"}, vm: "integer division"},
	{expr: "req?.User == 'ann'", want: [3]string{"true", "false", "false"}},
	{expr: "req?.User != 'ann'", want: [3]string{"false", "true", "true"}},
	{expr: "req?.User == req?.Acct?.ID", want: [3]string{"false", "true", "false"}},
	{expr: "req?.User != req?.Acct?.ID", want: [3]string{"true", "false", "true"}},
	{expr: "req?.Labels['tenant'] == 'L'", want: [3]string{"true", "false", "false"}, vm: "missing key"},
	{expr: "req?.Labels['tenant'] != 'L'", want: [3]string{"false", "true", "true"}, vm: "missing key"},
	{expr: "n > 41 and req?.Labels['tenant'] == 'L'", want: [3]string{"true", "false", "false"}, vm: "missing key"},
	{expr: "n > 42 or req?.Labels['tenant'] == 'L'", want: [3]string{"true", "false", "false"}, vm: "missing key"},
	{expr: "req.Acct.Num > 3", want: [3]string{"true", "-", "-"}},
	{expr: "req.Acct.Num > 3 ? 'big' : 'small'", want: [3]string{"big", "small", "small"}},
	{expr: "not (req.Acct.Num > 3)", want: [3]string{"false", "true", "true"}},
	{expr: "not (n > 41 and id == 'id')", want: [3]string{"false", "false", "false"}},
	{expr: "n > 50 or n < 50 and id != 'x'", want: [3]string{"true", "true", "true"}},
	{expr: "(n > 50 or n < 50) and id == 'x'", want: [3]string{"false", "false", "false"}},
	{expr: "req.Beta and req.Admin ? 'a' : 'b'", want: [3]string{"a", "b", "b"}},
	{expr: "req.Region == maxRegion ? 'max' : 'less'", want: [3]string{"less", "less", "less"}},
	{expr: "req.Admin ? req.Labels['tenant'] : req.Tags[0]", want: [3]string{"L", "-", "-"}, vm: "missing key"},
	{expr: "n > 1 ? (req.Admin ? 'a' : 'b') : 'c'", want: [3]string{"a", "b", "b"}},
	{expr: "same(req.Acct).ID == same(req.Acct).ID", want: [3]string{"true", "true", "true"}},
	{expr: "same(req.Acct)?.ID ?? same(req?.Acct)?.ID", want: [3]string{"a1", "-", "-"}},

	{expr: "ip", want: [3]string{"192.0.2.1", "-", "2001:db8::/64"}, vm: "dimension"},
	{expr: "request.user", want: [3]string{"caller", "-", "-"}, vm: "dimension"},
	{expr: "ip, user", want: [3]string{"192.0.2.1|caller", "-", "-"}, vm: "dimension"},
	{expr: "user ?? ip", want: [3]string{"caller", "-", `\2001:db8::/64`}, vm: "dimension"},
	{expr: "user ?? ip ?: id", want: [3]string{"caller", "id", `\2001:db8::/64`}, vm: "dimension"},
	{expr: "user ?? req?.User ?: id", want: [3]string{"caller", "id", "id"}, vm: "dimension"},
	{expr: "(req?.Labels['tenant'] ?? ip) ?: id", want: [3]string{"L", "id", `\2001:db8::/64`}, vm: "dimension"},
	{expr: "(n > 50 ? ip : user) ?? id", want: [3]string{"caller", "id", "id"}, vm: "dimension"},
	{expr: "req.Admin ? user : ip", want: [3]string{"caller", "-", `\2001:db8::/64`}, vm: "dimension"},
	{expr: "lower(user) + '@' + id", want: [3]string{"caller@id", "-", "-"}, vm: "dimension"},
	{expr: "user == nil ? 'anonymous' : 'known'", want: [3]string{"known", "anonymous", "anonymous"}, vm: "dimension"},
	{expr: "ip != nil", want: [3]string{"true", "false", "true"}, vm: "dimension"},
	{expr: "user == 'caller'", want: [3]string{"true", "false", "false"}, vm: "dimension"},
	{expr: "[user ?? ip, req.Tenant ?: 'x']", want: [3]string{"caller|ACME", "-", `\2001:db8::/64|x`}, vm: "tuple"},
	{expr: "[req?.Labels['tenant'] ?? id, req?.Acct?.ID ?? 'y']", want: [3]string{"L|a1", "id|y", "id|y"}, vm: "tuple"},
	{expr: "[id, (let x = req?.Acct?.ID ?? 'y'; x + x)]", want: [3]string{"id|a1a1", "id|yy", "id|yy"}, vm: "tuple"},
	{expr: "[(n > 50 ? ip : user) ?? id, id]", want: [3]string{"caller|id", "id|id", "id|id"}, vm: "tuple"},
	{expr: "[req.Admin ? 'a' : req.User, id]", want: [3]string{"a|id", "-", "-"}, vm: "tuple"},
	{expr: "[req.User, req.Tenant]", want: [3]string{"ann|ACME", "-", "-"}, vm: "tuple"},
	{expr: "req.Tenant, req.Shard, req.Small, req.Beta", want: [3]string{"ACME|35|-7|true", "-", "-"}, vm: "tuple"},
	{expr: "['a|b', id + '|']", want: [3]string{`a\|b|id\|`, `a\|b|id\|`, `a\|b|id\|`}, vm: "tuple"},
	{expr: "string(n), string(req.Raw)", want: [3]string{"42|raw", "-", "-"}, vm: "tuple"},
	{expr: "tick(id), tick(req.User)", want: [3]string{"id|ann", "-", "-"}, vm: "tuple", ticks: 2},
	{expr: "\"quote \\\" and \\\\ and */ and `\" + id", want: [3]string{"quote \" and \\ and */ and `id", "quote \" and \\ and */ and `id", "quote \" and \\ and */ and `id"}},
}
