package parser

import (
	"fmt"
	"go/types"
	"path/filepath"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/parser/directive"
	"github.com/ratelimitgen/ratelimitgen/parser/keyexpr"
)

// policies turns the limits of one method into policies. It returns nil if any of
// them is wrong.
func (b *builder) policies(d *draft, m *Method, dirs []*directive.Directive, recv *types.Var) []*Policy {
	scope := &keyexpr.Scope{
		Pkg:     b.pkg.Types,
		Recv:    recv,
		Sig:     m.Sig,
		Method:  m.Name,
		Request: m.Context >= 0,
	}
	var (
		limits   []directive.Limit
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
		if diags.HasErrors() {
			continue
		}
		limits = append(limits, l)
		p, diags := b.policy(&l, scope)
		report(diags)
		policies = append(policies, p)
	}
	if failed {
		return nil
	}
	report(directive.CheckLimits(limits))
	if failed {
		return nil
	}
	for i, p := range policies {
		p.ID = b.identity(d, m, &limits[i], p, len(policies) > 1)
		if limits[i].Group != "" {
			b.groups[limits[i].Group] = append(b.groups[limits[i].Group], limits[i])
		}
	}
	m.OnLimit, m.Fallback = limits[0].OnLimit, limits[0].Fallback
	return policies
}

// policy makes one policy.
func (b *builder) policy(l *directive.Limit, scope *keyexpr.Scope) (*Policy, diag.List) {
	p := &Policy{Policy: l.Policy(), Cost: l.Cost, directive: l.Directive, group: l.Group != ""}
	var diags diag.List
	if l.Key != nil {
		key, problems := keyexpr.ParseKey(l.Key.Text, scope)
		diags.Add(locate(l.Key, problems)...)
		if key != nil {
			p.Key = l.Key.Text
			p.Global = key.Global
			p.KeyExpr = key
		}
	}
	after := *scope
	after.Results = scope.Sig.Results()
	for _, e := range []struct {
		value *directive.Value
		parse func(string, *keyexpr.Scope) (*keyexpr.Expr, []keyexpr.Problem)
		scope *keyexpr.Scope
		to    **keyexpr.Expr
	}{
		{l.CostExpr, keyexpr.ParseCost, scope, &p.CostExpr},
		{l.MaxExpr, keyexpr.ParseCost, scope, &p.MaxExpr},
		{l.When, keyexpr.ParseCondition, scope, &p.When},
		{l.Unless, keyexpr.ParseCondition, scope, &p.Unless},
		{l.Count, keyexpr.ParseCondition, &after, &p.CountExpr},
		{l.CostAfter, keyexpr.ParseCost, &after, &p.CostAfterExpr},
	} {
		if e.value == nil {
			continue
		}
		expr, problems := e.parse(e.value.Text, e.scope)
		diags.Add(locate(e.value, problems)...)
		*e.to = expr
	}
	b.checkBuilds(l.Directive, p, &diags)
	return p, diags
}

// checkBuilds reports what the expressions of p mention that is not part of every
// build.
func (b *builder) checkBuilds(dir *directive.Directive, p *Policy, diags *diag.List) {
	var nodes []keyexpr.Node
	if p.KeyExpr != nil {
		nodes = append(nodes, p.KeyExpr.Nodes()...)
	}
	for _, e := range []*keyexpr.Expr{p.CostExpr, p.MaxExpr, p.When, p.Unless, p.CountExpr, p.CostAfterExpr} {
		if e != nil {
			nodes = append(nodes, e.Node)
		}
	}
	for _, n := range nodes {
		keyexpr.Contains(n, func(n keyexpr.Node) bool {
			var obj types.Object
			switch n := n.(type) {
			case *keyexpr.Call:
				obj = n.Fn
			case *keyexpr.Global:
				obj = n.Var
			}
			if obj != nil && obj.Pkg() == b.pkg.Types {
				if file := b.constrainedAt(obj.Pos()); file != "" {
					diags.Add(errConstrained(dir, obj.Name(), file))
				}
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
	id := b.pkg.Path + "." + d.name + "." + m.Name
	if several {
		id += fmt.Sprintf(":%s:%s:%s", p.Algorithm, p.Window, p.Key)
	}
	return id
}

// isTypeLimit reports whether dir stands on the type and not on a method.
func isTypeLimit(d *draft, dir *directive.Directive) bool {
	for _, l := range d.limits {
		if l == dir {
			return true
		}
	}
	return false
}

// baseName is the name of the file that holds dir.
func (b *builder) baseName(dir *directive.Directive) string { return filepath.Base(dir.Pos.File) }
