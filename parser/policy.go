package parser

import (
	"fmt"
	"go/build/constraint"
	"go/constant"
	"go/types"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/module"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/parser/directive"
	"github.com/ratelimitgen/ratelimitgen/parser/keyexpr"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// policies turns the limits of one method into policies, nil if any of them is
// wrong, and tells whether it is known what a refused caller gets.
func (b *builder) policies(d *draft, m *Method, dirs []*directive.Directive, recv *types.Var) (_ []*Policy, known bool) {
	scope := &keyexpr.Scope{
		Pkg:     b.pkg.Types,
		Recv:    recv,
		Sig:     m.Sig,
		Method:  m.Name,
		Request: m.Context >= 0,
		Imports: b.importNames(),

		Importable: func(to string) bool { return MayImport(b.pkg.Path, b.pkg.Standard, to) },
		WillHave:   b.willHave,
	}
	if !scope.Request {
		scope.NoRequest = whyNoCarrier(m.Sig, b.pkg.Types)
	}
	var (
		limits   []directive.Limit
		fixed    []directive.Limit // limits, with constants as if they were written
		policies []*Policy
		failed   bool
	)
	report := func(diags diag.List) {
		b.res.Diags.Add(diags...)
		failed = failed || diags.HasErrors()
	}
	for _, dir := range dirs {
		l, diags := dir.Limit()
		report(diags)
		wrong := diags.HasErrors()
		failed = failed || dir.Broken()
		l.OfType = isTypeLimit(d, dir)
		p, diags := b.policy(&l, scope)
		f := l
		if !wrong && !diags.HasErrors() {
			var more diag.List
			f, more = l.Fixed(b.constants(m, p))
			diags.Add(more...)
			p.nameLimit(&l, &f)
		}
		failed = failed || diags.HasErrors()
		b.reportFor(&l, strings.TrimPrefix(m.Qualified, b.pkg.Name+"."), diags)
		if wrong {
			continue
		}
		limits = append(limits, l)
		fixed = append(fixed, f)
		policies = append(policies, p)
	}
	if len(limits) == 0 {
		return nil, false
	}
	m.OnLimit, m.Fallback = limits[0].OnLimit, limits[0].Fallback
	report(directive.CheckLimits(fixed))
	if failed {
		return nil, true
	}
	for i, p := range policies {
		p.ID = b.identity(d, m, &limits[i], p, len(policies) > 1)
		if limits[i].Group != "" {
			b.groups[limits[i].Group] = append(b.groups[limits[i].Group], limits[i])
		}
	}
	return policies, true
}

// importNames returns the names of the packages that files with directives import. A
// package that none of the declarations needs has not been loaded; its name is what its
// path ends with.
func (b *builder) importNames() []string {
	if b.imports != nil {
		return b.imports
	}
	b.imports = []string{}
	for _, f := range b.pkg.Files {
		for _, spec := range f.Imports {
			switch p, err := strconv.Unquote(spec.Path.Value); {
			case err != nil:
			case spec.Name != nil:
				b.imports = append(b.imports, spec.Name.Name)
			default:
				if prefix, _, ok := module.SplitPathVersion(p); ok {
					p = prefix
				}
				b.imports = append(b.imports, path.Base(p))
			}
		}
	}
	return b.imports
}

// reportFor reports problems that a limit has on a method. Those that stand in another
// directive than one of the method itself may concern several methods.
func (b *builder) reportFor(l *directive.Limit, method string, diags diag.List) {
	for _, p := range diags {
		at := l.Directive.Pos
		if !l.OfType && p.Pos.File == at.File && p.Pos.Line == at.Line {
			b.res.Diags.Add(p)
			continue
		}
		i := slices.IndexFunc(b.common, func(c common) bool {
			return c.diag.Pos == p.Pos && c.diag.Code == p.Code && c.diag.Message == p.Message
		})
		if i < 0 {
			i = len(b.common)
			b.common = append(b.common, common{diag: p})
		}
		b.common[i].methods = append(b.common[i].methods, method)
	}
}

// common is a problem of a directive that applies to several methods.
type common struct {
	diag    diag.Diagnostic
	methods []string // that have it
}

// reportCommon reports what reportFor has kept back.
func (b *builder) reportCommon() {
	for _, c := range b.common {
		c.diag.Message += " (on " + enumerate(c.methods) + ")"
		b.res.Diags.Add(c.diag)
	}
	b.common = nil
}

// enumerate names the first few of the methods.
func enumerate(methods []string) string {
	const most = 3
	if n := len(methods) - most; n > 1 {
		return strings.Join(methods[:most], ", ") + fmt.Sprintf(" and %d other methods", n)
	}
	return strings.Join(methods, ", ")
}

// policy makes one policy.
func (b *builder) policy(l *directive.Limit, scope *keyexpr.Scope) (*Policy, diag.List) {
	p := &Policy{Policy: l.Policy(), Cost: l.Cost, directive: l.Directive, group: l.Group != ""}
	var diags diag.List
	if a := l.Directive.Option("key"); l.Key == nil && a != nil {
		_, problems := keyexpr.ParseKey(a.Value.Text, scope) // global, which may be a parameter's name
		diags.Add(locate(&a.Value, problems)...)
	}
	if a := l.Directive.Option("max"); a != nil && l.MaxExpr == nil && isParam(scope.Sig, a.Value.Text) {
		diags.Add(errAmbiguousWord(a))
	}
	if l.Key != nil {
		key, problems := keyexpr.ParseKey(l.Key.Text, scope)
		diags.Add(locate(l.Key, problems)...)
		if key != nil {
			p.Key = l.Key.Text
			p.Global = key.Global
			p.KeyExpr = key
			l.Spelling.Key, l.Spelling.KeyKind = key.String(), key.Kind()
			for _, n := range key.Nodes() {
				if t := lockCopied(n); t != nil {
					diags.Add(errLockCopied(l.Key, types.TypeString(t, types.RelativeTo(b.pkg.Types))))
					break
				}
			}
			if !key.Global && !key.MayBeEmpty() {
				diags.Add(l.NeverEmpty()...)
			}
		}
	}
	after := *scope
	if after.Results = scope.Sig.Results(); after.Results == nil {
		after.Results = new(types.Tuple) // which tells that it is after the call
	}
	for _, e := range []struct {
		value *directive.Value
		parse func(string, *keyexpr.Scope) (*keyexpr.Expr, []keyexpr.Problem)
		scope *keyexpr.Scope
		to    **keyexpr.Expr
	}{
		{l.CostExpr, keyexpr.ParseCost, scope, &p.CostExpr},
		{l.MaxExpr, keyexpr.ParseLimit, scope, &p.MaxExpr},
		{l.When, keyexpr.ParseCondition, scope, &p.When},
		{l.Unless, keyexpr.ParseCondition, scope, &p.Unless},
		{l.Count, keyexpr.ParseCondition, &after, &p.CountExpr},
		{l.CostAfter, keyexpr.ParseCostAfter, &after, &p.CostAfterExpr},
	} {
		if e.value == nil {
			continue
		}
		expr, problems := e.parse(e.value.Text, e.scope)
		diags.Add(locate(e.value, problems)...)
		*e.to = expr
		if t := lockIn(expr); t != nil {
			diags.Add(errLockCopied(e.value, types.TypeString(t, types.RelativeTo(b.pkg.Types))))
		}
	}
	if l.Key != nil && p.KeyExpr != nil {
		b.checkShadows(l, l.Key, scope, p.KeyExpr.Nodes(), &diags)
	}
	for _, e := range []struct {
		value *directive.Value
		expr  *keyexpr.Expr
	}{{l.CostExpr, p.CostExpr}, {l.MaxExpr, p.MaxExpr}, {l.When, p.When}, {l.Unless, p.Unless}, {l.Count, p.CountExpr}, {l.CostAfter, p.CostAfterExpr}} {
		if e.expr != nil {
			b.checkShadows(l, e.value, scope, []keyexpr.Node{e.expr.Node}, &diags)
		}
	}
	if p.MaxExpr != nil && l.Algorithm == ratelimit.TimeQuota && !isNamed(types.Unalias(p.MaxExpr.Node.Type()), "time", "Duration") {
		diags.Add(errQuotaType(l.MaxExpr, types.TypeString(p.MaxExpr.Node.Type(), types.RelativeTo(b.pkg.Types))))
	}
	for _, s := range []struct {
		expr *keyexpr.Expr
		to   *string
	}{{p.CostExpr, &l.Spelling.Cost}, {p.When, &l.Spelling.When}, {p.Unless, &l.Spelling.Unless}} {
		if s.expr != nil {
			*s.to = s.expr.String()
		}
	}
	if l.Spelling.When != "" && l.Spelling.When == l.Spelling.Unless {
		diags.Add(l.NeverApplies())
	}
	if p.When != nil && p.Unless != nil && p.When.Opposite(p.Unless) {
		diags.Add(l.SaysNothing())
	}
	b.noteBuilds(p)
	return p, diags
}

// checkShadows reports names in an expression for several methods that are those of
// parameters of this one, and of something that the package declares. Who wrote max=limit
// in the defaults means one limit, and not what callers of one method say.
func (b *builder) checkShadows(l *directive.Limit, v *directive.Value, scope *keyexpr.Scope, nodes []keyexpr.Node, diags *diag.List) {
	if at := v.Pos(0); !l.OfType && at.File == l.Directive.Pos.File && at.Line == l.Directive.Pos.Line {
		return // it stands on the method, whose parameters are in sight
	}
	seen := map[string]bool{}
	for _, n := range nodes {
		keyexpr.Contains(n, func(n keyexpr.Node) bool {
			param, ok := n.(*keyexpr.Param)
			if !ok || seen[param.Var.Name()] || strings.Contains(v.Text, "#"+param.Var.Name()) {
				return false
			}
			name := param.Var.Name()
			seen[name] = true
			kind := ""
			switch b.pkg.Types.Scope().Lookup(name).(type) {
			case *types.Const:
				kind = "constant"
			case *types.Var:
				kind = "variable"
			case *types.Func:
				kind = "function"
			default:
				return false
			}
			diags.Add(errShadows(v, name, scope.Method, kind))
			return false
		})
	}
}

// constants returns the values of the expressions of p that are the same in every call.
// Those that another build may have others of are left out.
func (b *builder) constants(m *Method, p *Policy) directive.Constants {
	var c directive.Constants
	if slices.ContainsFunc(b.constraintsOfConstants(m, p), func(x constraint.Expr) bool { return x != nil }) {
		return c
	}
	for _, e := range []struct {
		expr *keyexpr.Expr
		to   **int64
	}{{p.MaxExpr, &c.Max}, {p.CostExpr, &c.Cost}} {
		if e.expr == nil {
			continue
		}
		if v := keyexpr.ConstValue(e.expr.Node); v != nil && v.Kind() == constant.Int {
			if n, exact := constant.Int64Val(v); exact {
				*e.to = &n
			}
		}
	}
	return c
}

// nameLimit makes the limit of p, which is that of l, one limit for all calls if it is
// written as the name of a constant. With its value instead, l is fixed.
func (p *Policy) nameLimit(l, fixed *directive.Limit) {
	if p.MaxExpr == nil || fixed.MaxExpr != nil {
		return
	}
	k, ok := p.MaxExpr.Node.(*keyexpr.Const)
	if !ok || k.Name == "" {
		return
	}
	p.MaxExpr, p.MaxConst = nil, k
	l.MaxExpr, l.Max = nil, fixed.Max
	p.Policy = l.Policy()
}

// noteBuilds notes the constraints of what the expressions of p mention.
func (b *builder) noteBuilds(p *Policy) {
	for _, n := range p.nodes() {
		keyexpr.Contains(n, func(n keyexpr.Node) bool {
			var obj types.Object
			switch n := n.(type) {
			case *keyexpr.Call:
				obj = n.Fn
			case *keyexpr.Global:
				obj = n.Var
			}
			if obj != nil && obj.Pkg() == b.pkg.Types {
				p.constraints = append(p.constraints, b.constraintAt(obj.Pos()))
			}
			return false
		})
	}
}

// locate gives problems of an expression their places in the source.
func locate(v *directive.Value, problems []keyexpr.Problem) diag.List {
	var diags diag.List
	for _, p := range problems {
		d := diag.Diagnostic{
			Pos:        v.Pos(p.From),
			EndCol:     v.Pos(p.To).Col,
			Code:       p.Code,
			Message:    p.Message,
			Suggestion: p.Suggestion,
			Valid:      p.Valid,
		}
		if p.Warning {
			d.Severity = diag.Warning
		}
		diags.Add(d)
	}
	return diags
}

// identity is what the counters of a policy are known by. It does not depend on
// where the directive stands or, as far as the name or the key tell policies
// apart, on its other options.
func (b *builder) identity(d *draft, m *Method, l *directive.Limit, p *Policy, several bool) string {
	switch {
	case l.Name != "" && len(d.limits) > 0 && isTypeLimit(d, l.Directive):
		return l.Name + "." + m.Name
	case l.Name != "":
		return l.Name
	case l.Group != "":
		return b.pkg.Path + "." + l.Group
	}
	id := b.pkg.Path + "." + d.name
	if !b.isFunction(d) {
		id += "." + m.Name
	}
	if several {
		key := p.Key
		if l.Spelling.Key != "" {
			key = l.Spelling.Key
		}
		id += fmt.Sprintf(":%s:%s:%s", p.Algorithm, p.Window, key)
	}
	return id
}

// isTypeLimit reports whether dir stands on the type and not on a method.
func isTypeLimit(d *draft, dir *directive.Directive) bool {
	return slices.Contains(d.limits, dir)
}

// baseName is the name of the file that holds dir.
func (b *builder) baseName(dir *directive.Directive) string { return filepath.Base(dir.Pos.File) }
