package directive

import (
	"slices"
	"strings"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// check reports options of one limit that have no effect beside others, or
// contradict them.
func (l *Limit) check() diag.List {
	if diags := l.unused(); len(diags) > 0 {
		return diags
	}
	diags := l.missing()
	if l.switched() || len(diags) > 0 {
		return diags
	}
	maxOpt := l.Directive.Option(optMax)
	burst, cost := l.Directive.Option(optBurst), l.Directive.Option(optCost)
	fixedCost := l.CostExpr == nil
	if l.Algorithm == ratelimit.SlidingLog && l.Max > ratelimit.MaxLogLimit {
		diags.Add(errLogTooLarge(maxOpt))
	}
	switch {
	case len(diags) > 0:
	case l.Burst > 0 && fixedCost && l.Cost > l.Burst:
		diags.Add(errBurstBelowCost(burst, l.Cost))
	case l.Burst == 0 && l.MaxExpr == nil && fixedCost && l.Cost > l.Max:
		diags.Add(errCostAboveCapacity(cost, l.Max))
	}
	if l.Initial != nil && (l.Burst > 0 || l.MaxExpr == nil) && *l.Initial > l.capacity() {
		diags.Add(errInitialAboveCapacity(l.Directive.Option(optInitial), l.capacity()))
	}
	if len(diags) > 0 {
		return diags
	}
	return l.validate()
}

// unused reports options that have no effect.
func (l *Limit) unused() diag.List {
	var diags diag.List
	v := findVerb(VerbLimit)
	for i := range v.Options {
		o := &v.Options[i]
		a := l.Directive.Option(o.Name)
		if a == nil {
			continue
		}
		switch {
		case !o.fits(l.Algorithm):
			diags.Add(errOtherAlgorithm(a, o, l))
		case !l.Directive.hasNeeds(o):
			diags.Add(errNeeds(a, o, l))
		case o.Without != "" && l.Directive.Option(o.Without) != nil:
			diags.Add(errWithout(a, o))
		}
	}
	return diags
}

// missing reports options that the algorithm cannot do without.
func (l *Limit) missing() diag.List {
	if l.Algorithm == timeQuota && l.Directive.Option(optMax) == nil {
		return diag.List{errNoQuota(l)}
	}
	return nil
}

// validate reports what is left for the runtime to find: the arithmetic of the
// algorithms.
func (l *Limit) validate() diag.List {
	known := []ratelimit.Algorithm{ratelimit.SlidingLog, ratelimit.FixedWindow, ratelimit.TokenBucket}
	if l.MaxExpr != nil || l.Align != "" || !slices.Contains(known, l.Algorithm) {
		return nil
	}
	policy := ratelimit.Policy{
		ID: "p", Algorithm: l.Algorithm, Limit: l.Max, Window: l.Window, Burst: l.Burst, Mode: l.Mode,
	}
	err := policy.Validate()
	if err == nil {
		return nil
	}
	at := Span{len(Prefix), len(Prefix) + len(l.Directive.Text)}
	for _, name := range []string{optBurst, optWindow, optMax} {
		if a := l.Directive.Option(name); a != nil {
			at = Span{a.NameSpan.Start, a.Value.Span.End}
			break
		}
	}
	text := strings.TrimPrefix(err.Error(), `ratelimit: policy "p": `)
	return diag.List{errPolicy(l.Directive.At(at), at.End-at.Start, text)}
}

// switched reports whether l admits every call or none.
func (l *Limit) switched() bool {
	return l.Max == ratelimit.Unlimited || l.Max == ratelimit.Blocked
}

// capacity is the most that l admits at once, if its Max is not an expression.
func (l *Limit) capacity() int64 {
	if l.Burst > 0 {
		return l.Burst
	}
	return l.Max
}
