package directive

import (
	"go/token"
	"strings"
	"time"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// check reports options of one limit that have no effect beside others, or
// contradict them.
func (l *Limit) check() diag.List {
	if diags := l.unused(); len(diags) > 0 {
		return diags
	}
	if diags := l.impossible(); len(diags) > 0 || l.switched() || l.onePace() != "" && l.MaxExpr != nil {
		return diags
	}
	var diags diag.List
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
	if cost != nil && fixedCost && l.Cost == 0 && l.CostAfter == nil && len(l.Lock) == 0 {
		diags.Add(errFree(cost))
	}
	if len(diags) == 0 {
		diags = l.validate()
	}
	if len(diags) == 0 {
		diags = l.shortWait()
	}
	return diags
}

// Constants are the values of expressions that are made of constants, nil of others.
type Constants struct {
	// Max is nanoseconds if the algorithm counts time.
	Max, Cost *int64
}

// Fixed returns l as if the values of c were written instead of the expressions, and
// reports what is then wrong with it. It is for checks: a constant is compiled by its
// name, so that it may change without the directive. What other checks have reported is
// not reported again.
func (l *Limit) Fixed(c Constants) (Limit, diag.List) {
	fixed := *l
	var diags diag.List
	if l.MaxExpr != nil && c.Max != nil {
		fixed.MaxExpr, fixed.Max = nil, *c.Max
		if l.Algorithm == ratelimit.TimeQuota {
			fixed.Max = int64(time.Duration(*c.Max) / time.Microsecond)
		}
		switch a := l.Directive.Option(optMax); {
		case fixed.Max < 1:
			diags.Add(errConstantNotPositive(a, *c.Max))
		case fixed.Max > ratelimit.MaxLimit:
			diags.Add(errTooMany(a, ratelimit.MaxLimit))
		}
	}
	if why := l.onePace(); why != "" && fixed.MaxExpr != nil {
		diags.Add(errDynamic(l.Directive.Option(optMax), why))
	}
	if l.CostExpr != nil && c.Cost != nil {
		fixed.CostExpr, fixed.Cost = nil, *c.Cost
		switch a := l.Directive.Option(optCost); {
		case fixed.Cost < 0:
			diags.Add(errConstantNegative(a, *c.Cost))
		case fixed.Cost > ratelimit.MaxLimit:
			diags.Add(errTooMany(a, ratelimit.MaxLimit))
		}
	}
	changed := fixed.MaxExpr != l.MaxExpr || fixed.CostExpr != l.CostExpr
	if changed && len(diags) == 0 && !l.Directive.broken {
		diags = fixed.check()
	}
	return fixed, diags
}

// shortWait warns of a wait that hardly any call would survive: at the limit, a
// call is admitted every Window/Max on average, and a call that costs more less
// often. It is no error, since calls that come in step may want just that.
func (l *Limit) shortWait() diag.List {
	if l.MaxWait == 0 || l.MaxExpr != nil || l.CostExpr != nil || l.Algorithm == ratelimit.TimeQuota || l.Algorithm.IsCustom() {
		return nil
	}
	cost := min(max(l.Cost, 1), l.Max) // so that the product is at most Window
	between := l.Window / time.Duration(l.Max) * time.Duration(cost)
	if l.MaxWait >= between {
		return nil
	}
	return diag.List{warnShortWait(l.Directive.Option(optMaxWait), between)}
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

// NeverEmpty reports an on-empty that has no effect because the key of l always has
// a value. The defaults of the package may say what does not concern every limit.
func (l *Limit) NeverEmpty() diag.List {
	a := l.Directive.Option(optOnEmpty)
	if a == nil || l.Directive.defaulted(a) {
		return nil
	}
	return diag.List{errNeverEmpty(a)}
}

// NeverApplies reports a limit whose when and unless are the same condition.
func (l *Limit) NeverApplies() diag.Diagnostic {
	return errNeverApplies(l.Directive.Option(optUnless))
}

// SaysNothing reports a limit whose unless is the opposite of when.
func (l *Limit) SaysNothing() diag.Diagnostic {
	return errSaysNothing(l.Directive.Option(optUnless))
}

// impossible reports a limit that the algorithm cannot have.
func (l *Limit) impossible() diag.List {
	m, why := l.Directive.Option(optMax), l.onePace()
	switch {
	case l.Algorithm == ratelimit.TimeQuota && m == nil:
		return diag.List{errNoQuota(l)}
	case why != "" && l.MaxExpr != nil && !token.IsIdentifier(l.MaxExpr.Text): // see Fixed
		return diag.List{errDynamic(m, why)}
	}
	return nil
}

// onePace says why l needs one limit for all calls, if it does.
func (l *Limit) onePace() string {
	switch {
	case l.Algorithm == ratelimit.LeakyBucket:
		return "the calls in a leaky-bucket leave it at one pace"
	case l.Warmup > 0:
		return "a warmup leads to one pace"
	}
	return ""
}

// validate reports what is left for the runtime to find: the arithmetic of the
// algorithms.
func (l *Limit) validate() diag.List {
	policy := l.Policy()
	policy.ID = "p"
	err := policy.Validate()
	if err == nil {
		return nil
	}
	text := strings.TrimPrefix(err.Error(), `ratelimit: policy "p": `)
	for _, name := range []string{optBurst, optSegments, optWindow, optMax} {
		if a := l.Directive.Option(name); a != nil {
			return diag.List{badOption(a, CodeOutOfRange, "%s", text)}
		}
	}
	return diag.List{problem(l.Directive.Pos, len(Prefix)+len(l.Directive.Text), CodeOutOfRange, "%s", text)}
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
