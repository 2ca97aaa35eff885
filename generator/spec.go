package generator

import (
	"go/types"
	"strconv"
	"strings"
	"time"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimitgen/ratelimitgen/parser"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// specDecl renders the inventory entry of the method.
func (m *method) specDecl() *jen.Statement {
	f := m.wrapper.file
	var policies []jen.Code
	for _, p := range m.Policies {
		policies = append(policies, jen.Values(f.policyFields(p)...))
	}
	return jen.Var().Id(m.spec).Op("=").Id(f.runtime("Spec")).Values(
		field("Method", jen.Lit(m.Qualified)),
		field("File", jen.Lit(m.File)),
		field("Policies", jen.Index().Id(f.runtime("Policy")).Values(policies...)),
		jen.Line(),
	)
}

func (f *file) policyFields(p *parser.Policy) []jen.Code {
	fields := []jen.Code{
		field("ID", text(p.ID)),
		field("Directive", text(p.Directive)),
	}
	if p.Global {
		fields = append(fields, field("Global", jen.True()))
	} else {
		fields = append(fields, field("Key", text(p.Key)), field("KeyForm", jen.Lit(keyForm(p.KeyExpr))))
	}
	fields = append(fields, field("Algorithm", f.algorithm(p.Algorithm)))
	switch {
	case p.MaxConst != nil:
		fields = append(fields, field("Limit", constantLimit(p)))
	case p.Dynamic:
		fields = append(fields, field("Dynamic", jen.True()))
	case p.Limit == ratelimit.Unlimited:
		fields = append(fields, field("Limit", jen.Id(f.runtime("Unlimited"))))
	case p.Limit == ratelimit.Blocked:
		fields = append(fields, field("Limit", jen.Id(f.runtime("Blocked"))))
	default:
		fields = append(fields, field("Limit", jen.Lit(int(p.Limit))))
	}
	for _, o := range []struct {
		name  string
		set   bool
		value func() *jen.Statement
	}{
		{"Window", p.Window > 0, func() *jen.Statement { return f.duration(p.Window) }},
		{"Burst", p.Burst > 0, func() *jen.Statement { return jen.Lit(int(p.Burst)) }},
		{"Initial", p.Initial != 0, func() *jen.Statement {
			if p.Initial == ratelimit.Empty {
				return jen.Id(f.runtime("Empty"))
			}
			return jen.Lit(int(p.Initial))
		}},
		{"Refill", p.Refill == ratelimit.Interval, func() *jen.Statement { return jen.Id(f.runtime("Interval")) }},
		{"Warmup", p.Warmup > 0, func() *jen.Statement { return f.duration(p.Warmup) }},
		{"Segments", p.Segments > 0, func() *jen.Statement { return jen.Lit(p.Segments) }},
		{"Align", p.Align != "", func() *jen.Statement { return jen.Lit(string(p.Align)) }},
		{"TZ", p.TZ != "", func() *jen.Statement { return jen.Lit(p.TZ) }},
		{"Lock", len(p.Lock) > 0, func() *jen.Statement { return f.durations(p.Lock) }},
		{"Lease", p.Lease > 0, func() *jen.Statement { return f.duration(p.Lease) }},
		{"Count", p.Count, jen.True},
		{"CostAfter", p.CostAfter, jen.True},
		{"Waits", p.Waits, jen.True},
		{"MaxWait", p.MaxWait > 0, func() *jen.Statement { return f.duration(p.MaxWait) }},
		{"MaxQueue", p.MaxQueue > 0, func() *jen.Statement { return jen.Lit(p.MaxQueue) }},
		{"Mode", p.Mode != ratelimit.Enforce, func() *jen.Statement { return jen.Id(f.runtime(modeNames[p.Mode])) }},
		{"OnEmpty", p.OnEmpty != ratelimit.DenyEmpty, func() *jen.Statement { return jen.Id(f.runtime(onEmptyNames[p.OnEmpty])) }},
		{"OnError", p.OnError != ratelimit.LocalOnError, func() *jen.Statement { return jen.Id(f.runtime(onErrorNames[p.OnError])) }},
		{"Store", p.Store != "", func() *jen.Statement { return jen.Lit(p.Store) }},
		{"Message", p.Message != "", func() *jen.Statement { return text(p.Message) }},
		{"Status", p.Status != 0, func() *jen.Statement { return jen.Lit(p.Status) }},
	} {
		if o.set {
			fields = append(fields, field(o.name, o.value()))
		}
	}
	return append(fields, jen.Line())
}

// constantLimit renders the limit of p, which is a constant of the package, by its name.
func constantLimit(p *parser.Policy) *jen.Statement {
	name := jen.Id(p.MaxConst.Name)
	switch t, _ := types.Unalias(p.MaxConst.Type()).(*types.Basic); {
	case p.Algorithm == ratelimit.TimeQuota:
		return name.Dot("Microseconds").Call()
	case t == nil || t.Kind() != types.Int64 && !p.MaxConst.Untyped():
		return jen.Id("int64").Parens(name)
	}
	return name
}

// algorithm renders the name of an algorithm.
func (f *file) algorithm(a ratelimit.Algorithm) jen.Code {
	if name, builtIn := algorithmNames[a]; builtIn {
		return jen.Id(f.runtime(name))
	}
	return jen.Lit(string(a))
}

// text renders a string that people wrote: as they wrote it, between backquotes, if that
// saves escapes and can be done.
func text(s string) *jen.Statement {
	hidden := strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) })
	if strings.ContainsAny(s, `"\\`) && !hidden && strconv.CanBackquote(s) {
		return jen.Id("`" + s + "`")
	}
	return jen.Lit(s)
}

// field renders one line of a composite literal.
func field(name string, value jen.Code) *jen.Statement {
	return jen.Line().Id(name).Op(":").Add(value)
}

var modeNames = map[ratelimit.Mode]string{ratelimit.Shadow: "Shadow", ratelimit.Off: "Off"}

var algorithmNames = map[ratelimit.Algorithm]string{
	ratelimit.SlidingLog:    "SlidingLog",
	ratelimit.TokenBucket:   "TokenBucket",
	ratelimit.FixedWindow:   "FixedWindow",
	ratelimit.SlidingWindow: "SlidingWindow",
	ratelimit.LeakyBucket:   "LeakyBucket",
	ratelimit.Concurrency:   "Concurrency",
	ratelimit.TimeQuota:     "TimeQuota",
}

var onEmptyNames = map[ratelimit.OnEmpty]string{ratelimit.SkipEmpty: "SkipEmpty", ratelimit.SharedEmpty: "SharedEmpty"}

var onErrorNames = map[ratelimit.OnError]string{ratelimit.AllowOnError: "AllowOnError", ratelimit.DenyOnError: "DenyOnError"}

func (f *file) durations(ds []time.Duration) *jen.Statement {
	var list []jen.Code
	for _, d := range ds {
		list = append(list, f.duration(d))
	}
	return jen.Index().Id(f.imports.alias["time"]).Dot("Duration").Values(list...)
}

// duration renders d with the largest unit that divides it.
func (f *file) duration(d time.Duration) *jen.Statement {
	pkg := f.imports.alias["time"]
	for _, u := range []struct {
		d    time.Duration
		name string
	}{
		{time.Hour, "Hour"}, {time.Minute, "Minute"}, {time.Second, "Second"},
		{time.Millisecond, "Millisecond"}, {time.Microsecond, "Microsecond"},
	} {
		switch n := d / u.d; {
		case d%u.d != 0:
		case n == 1:
			return jen.Id(pkg).Dot(u.name)
		default:
			return jen.Lit(int(n)).Op("*").Id(pkg).Dot(u.name)
		}
	}
	return jen.Lit(int(d))
}
