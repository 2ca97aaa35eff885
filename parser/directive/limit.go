package directive

import (
	"math"
	"strings"
	"time"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// OnLimit says what the caller of a refused call gets.
type OnLimit string

// OnLimitError returns the refusal as the method's last result.
const OnLimitError OnLimit = "error"

// Limit is a limit directive with its options typed, defaults filled in.
type Limit struct {
	// Directive is where the limit was read from.
	Directive *Directive
	// Max is 1..ratelimit.MaxLimit, ratelimit.Unlimited or ratelimit.Blocked.
	Max    int64
	Window time.Duration
	// Key is the key's text, not looked into; nil if all calls share one counter.
	Key       *Value
	Algorithm ratelimit.Algorithm
	// Burst is the capacity of a token bucket; 0 if it is not given, which means Max.
	Burst int64
	// Cost is the units of each call, if CostExpr is nil.
	Cost     int64
	CostExpr *Value
	// Name is the identity that the user chose, or "".
	Name    string
	Mode    ratelimit.Mode
	OnLimit OnLimit
	OnEmpty ratelimit.OnEmpty
}

// Wrapper is a wrapper directive with its options typed.
type Wrapper struct {
	Directive *Directive
	// Name and Constructor are Go identifiers, or "" if they are not given.
	Name        string
	Constructor string
	// Implements is an identifier or package.identifier; nil if it is not given.
	Implements *Value
}

// Limit gives the options of a limit directive their types and reports all that
// is wrong with them, each for itself and, if there is no such fault and Parse
// had none to report, with each other. The result is to be used only if nothing is
// reported.
func (d *Directive) Limit() (Limit, diag.List) {
	l := Limit{Directive: d}
	dec := decoder{verb: findVerb(VerbLimit)}
	for _, o := range dec.verb.Options {
		a := d.Option(o.Name)
		if a == nil {
			if o.Default == "" {
				continue
			}
			a = &Assignment{Name: o.Name, Value: Value{Text: o.Default, Raw: o.Default}}
		}
		switch o.Name {
		case optMax:
			l.Max = dec.count(a, &o)
		case optWindow:
			l.Window = dec.duration(a)
		case optKey:
			if strings.TrimSpace(a.Value.Text) != wordGlobal {
				l.Key = &a.Value
			}
		case optAlgorithm:
			l.Algorithm = ratelimit.Algorithm(dec.choice(a, &o))
		case optBurst:
			l.Burst = dec.count(a, &o)
		case optCost:
			if isNumber(a.Value.Text) {
				l.Cost = dec.cost(a, &o)
			} else {
				l.CostExpr = &a.Value
			}
		case optName:
			l.Name = dec.name(a)
		case optMode:
			switch dec.choice(a, &o) {
			case "shadow":
				l.Mode = ratelimit.Shadow
			case "off":
				l.Mode = ratelimit.Off
			}
		case optOnLimit:
			l.OnLimit = OnLimit(dec.choice(a, &o))
		case optOnEmpty:
			dec.choice(a, &o)
			l.OnEmpty = ratelimit.DenyEmpty
		}
	}
	if len(dec.diags) == 0 && !d.broken {
		dec.diags = l.check()
	}
	return l, dec.diags
}

// check reports options that contradict each other.
func (l *Limit) check() diag.List {
	var diags diag.List
	burst, cost := l.Directive.Option(optBurst), l.Directive.Option(optCost)
	if burst != nil && l.Algorithm != ratelimit.TokenBucket {
		diags.Add(errBurstUnused(burst, l.Algorithm))
	}
	if l.switched() {
		return diags
	}
	maxOpt := l.Directive.Option(optMax)
	if l.Algorithm == ratelimit.SlidingLog && l.Max > ratelimit.MaxLogLimit {
		diags.Add(errLogTooLarge(maxOpt))
	}
	switch {
	case len(diags) > 0:
	case l.Burst > 0 && l.CostExpr == nil && l.Cost > l.Burst:
		diags.Add(errBurstBelowCost(burst, l.Cost))
	case l.Burst == 0 && l.CostExpr == nil && l.Cost > l.Max:
		diags.Add(errCostAboveCapacity(cost, l.Max))
	}
	if len(diags) > 0 {
		return diags
	}
	// What is left is about the arithmetic of the algorithm, which the runtime knows.
	policy := ratelimit.Policy{
		ID: "p", Algorithm: l.Algorithm, Limit: l.Max, Window: l.Window, Burst: l.Burst, Mode: l.Mode, OnEmpty: l.OnEmpty,
	}
	if err := policy.Validate(); err != nil {
		at := Span{len(Prefix), len(Prefix) + len(l.Directive.Text)}
		for _, name := range []string{optBurst, optWindow, optMax} {
			if a := l.Directive.Option(name); a != nil {
				at = Span{a.NameSpan.Start, a.Value.Span.End}
				break
			}
		}
		text := strings.TrimPrefix(err.Error(), `ratelimit: policy "p": `)
		diags.Add(errPolicy(l.Directive.At(at), at.End-at.Start, text))
	}
	return diags
}

// Wrapper gives the options of a wrapper directive their types and reports all
// that is wrong with them. The result is to be used only if nothing is reported.
func (d *Directive) Wrapper() (Wrapper, diag.List) {
	w := Wrapper{Directive: d}
	dec := decoder{verb: findVerb(VerbWrapper)}
	for i := range d.Options {
		a := &d.Options[i]
		switch a.Name {
		case optName:
			w.Name = dec.identifier(a)
		case optConstructor:
			w.Constructor = dec.identifier(a)
		case optImplements:
			dec.typeName(a)
			w.Implements = &a.Value
		}
	}
	switch {
	case len(d.Options) == 0 && !d.broken:
		dec.report(errNoOptions(d.At(d.VerbSpan), dec.verb))
	case w.Name != "" && w.Name == w.Constructor:
		dec.report(errIdentifier(d.Option(optConstructor), "the type has this name: give the constructor another"))
	}
	return w, dec.diags
}

// isNumber reports whether text is meant to be a number and not an expression.
func isNumber(text string) bool {
	text = strings.TrimLeft(text, "+-")
	if text == "" || !isDigit(text[0]) {
		return false
	}
	for i := range len(text) {
		if c := text[i]; !isDigit(c) && !isLetter(c) && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// decimal parses digits, with '_' between them as Go allows it. It saturates, so
// that a range check finds what does not fit.
func decimal(s string) (int64, bool) {
	if s == "" || len(s) > 1 && s[0] == '0' {
		return 0, false
	}
	n := int64(0)
	for i := range len(s) {
		c := s[i]
		if c == '_' && i > 0 && i < len(s)-1 && s[i-1] != '_' {
			continue
		}
		if !isDigit(c) {
			return 0, false
		}
		if digit := int64(c - '0'); n > (math.MaxInt64-digit)/10 {
			n = math.MaxInt64
		} else {
			n = n*10 + digit
		}
	}
	return n, true
}
