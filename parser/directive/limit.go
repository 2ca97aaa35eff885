package directive

import (
	"slices"
	"strings"
	"time"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// OnLimit says what the caller of a refused call gets.
type OnLimit string

// What a refusal may be.
const (
	// OnLimitError returns the refusal as the method's last result.
	OnLimitError OnLimit = "error"
	// OnLimitWait blocks until the call is admitted.
	OnLimitWait OnLimit = "wait"
	// OnLimitZero returns the zero values of the results.
	OnLimitZero OnLimit = "zero"
	// OnLimitFallback returns what the method Limit.Fallback returns.
	OnLimitFallback OnLimit = "fallback"
)

// Limit is a limit directive with its options typed, those filled in that it has
// from a define, the defaults of its package, or the language. Options that
// its algorithm does not take are zero.
type Limit struct {
	// Directive is where the limit was read from.
	Directive *Directive
	// Max is 1..ratelimit.MaxLimit, ratelimit.Unlimited or ratelimit.Blocked; of a
	// time quota, the microseconds. It is 0 if MaxExpr is not nil.
	Max     int64
	MaxExpr *Value
	// Window is 0 for concurrency, and where Align says how long a window is.
	Window time.Duration
	// Key is the key's text, not looked into; nil if all calls share one counter.
	Key       *Value
	Algorithm ratelimit.Algorithm
	// Burst is the capacity of a bucket; 0 if it is not given, which means Max.
	Burst int64
	// Initial is the tokens of a new bucket; nil if it is not given, which means
	// that it is full.
	Initial  *int64
	Refill   ratelimit.Refill
	Warmup   time.Duration
	Segments int
	Align    ratelimit.Align
	TZ       string // the name of a zone that exists, or "" without Align
	// Cost is the units of each call, if CostExpr is nil; 1 of a time quota, whose
	// calls cost what they take.
	Cost     int64
	CostExpr *Value
	// CostAfter, Count, When and Unless are nil if they are not given.
	CostAfter *Value
	Count     *Value
	When      *Value
	Unless    *Value
	// Lock rises; it is nil if it is not given.
	Lock     []time.Duration
	Lease    time.Duration
	OnLimit  OnLimit
	Fallback Word // of OnLimitFallback
	// MaxWait and MaxQueue are 0 if they are not given, which means unbounded.
	MaxWait  time.Duration
	MaxQueue int
	OnEmpty  ratelimit.OnEmpty
	OnError  ratelimit.OnError
	Mode     ratelimit.Mode
	// Name is the identity that the user chose, or "".
	Name string
	// Group is the name that limits of several methods share, or "".
	Group string
	// Store is the name of a store, or "" for the default one.
	Store string
	// Message and Status are "" and 0 if they are not given.
	Message string
	Status  int

	// OfType is set by the caller of CheckLimits if the limit stands on the type.
	OfType bool
	// Spelling is set by the caller of CheckLimits, who knows what expressions mean.
	Spelling Spelling
}

// Word is a part of a value, with its place.
type Word struct {
	Text     string
	Pos, End diag.Pos
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

// Spelling holds how expressions are spelled if all that mean the same are spelled
// the same. What is "" is spelled as it is written.
type Spelling struct {
	Key, Cost, When, Unless string
	// KeyKind is what the elements of the key are, such as "text, integer".
	KeyKind string
}

// Limit gives the options of a limit directive their types and reports all that
// is wrong with them, each for itself and, if there is no such fault and Parse
// had none to report, with each other. The result is to be used only if no error is
// reported. What a define or the defaults of the package say is known only after
// Resolve.
func (d *Directive) Limit() (Limit, diag.List) {
	l := Limit{Directive: d, Cost: 1}
	dec := decoder{verb: findVerb(VerbLimit)}
	// What other options may be depends on the algorithm.
	o := dec.verb.option(optAlgorithm)
	l.Algorithm = dec.algorithm(d.optionOrDefault(o), o)
	for i := range dec.verb.Options {
		o := &dec.verb.Options[i]
		a := d.Option(o.Name)
		if a == nil && o.Default != "" && d.takes(o, l.Algorithm) && (o.Name != optMax || l.Algorithm != ratelimit.TimeQuota) {
			a = d.optionOrDefault(o)
		}
		if a != nil {
			dec.limitOption(&l, a, o)
		}
	}
	switch {
	case d.broken || l.Algorithm == "":
	case len(dec.diags) == 0:
		dec.diags = l.check()
	default:
		dec.diags.Add(l.unused()...)
	}
	return l, dec.diags
}

// limitOption decodes one option into l.
func (dec *decoder) limitOption(l *Limit, a *Assignment, o *Option) {
	switch o.Name {
	case optMax:
		dec.units(l, a, o)
	case optWindow:
		l.Window = dec.duration(a)
	case optKey:
		if strings.TrimSpace(a.Value.Text) != wordGlobal {
			l.Key = &a.Value
		}
	case optBurst:
		l.Burst = dec.integer(a, o)
	case optInitial:
		n := dec.integer(a, o)
		l.Initial = &n
	case optRefill:
		l.Refill = ratelimit.Refill(max(0, dec.index(a, o)))
	case optWarmup:
		l.Warmup = dec.duration(a)
	case optSegments:
		l.Segments = int(dec.integer(a, o))
	case optAlign:
		l.Align = ratelimit.Align(dec.choice(a, o))
	case optTZ:
		l.TZ = dec.zone(a)
	case optCost:
		if isNumber(a.Value.Text) {
			l.Cost = dec.cost(a, o)
		} else {
			l.Cost = 0
			l.CostExpr = &a.Value
		}
	case optCostAfter:
		l.CostAfter = &a.Value
	case optCount:
		l.Count = &a.Value
	case optWhen:
		l.When = &a.Value
	case optUnless:
		l.Unless = &a.Value
	default:
		dec.refusalOption(l, a, o)
	}
}

// refusalOption decodes an option that says what becomes of refusals and of
// calls that cannot be decided, or where the counters are.
func (dec *decoder) refusalOption(l *Limit, a *Assignment, o *Option) {
	switch o.Name {
	case optLock:
		l.Lock = dec.durations(a)
	case optLease:
		l.Lease = dec.duration(a)
	case optOnLimit:
		l.OnLimit, l.Fallback = dec.action(a, o)
	case optMaxWait:
		l.MaxWait = dec.duration(a)
	case optMaxQueue:
		l.MaxQueue = int(dec.integer(a, o))
	case optOnEmpty:
		l.OnEmpty = ratelimit.OnEmpty(max(0, dec.index(a, o)))
	case optOnError:
		l.OnError = ratelimit.OnError(max(0, dec.index(a, o)))
	case optMode:
		l.Mode = ratelimit.Mode(max(0, dec.index(a, o)))
	case optName:
		l.Name = dec.name(a)
	case optGroup:
		l.Group = dec.name(a)
	case optStore:
		l.Store = dec.name(a)
	case optMessage:
		l.Message = dec.text(a)
	case optStatus:
		l.Status = int(dec.integer(a, o))
	case optUse:
		dec.name(a) // what it names is found by Resolve
	}
}

// optionOrDefault is Option, or the default of o as if it were written.
func (d *Directive) optionOrDefault(o *Option) *Assignment {
	if a := d.Option(o.Name); a != nil {
		return a
	}
	return &Assignment{Name: o.Name, Value: Value{Text: o.Default, Raw: o.Default}}
}

// takes reports whether o has an effect on a limit of the given algorithm, as far
// as other options decide that.
func (d *Directive) takes(o *Option, alg ratelimit.Algorithm) bool {
	return o.fits(alg) && d.hasNeeds(o) && (o.Without == "" || d.Option(o.Without) == nil)
}

// hasNeeds reports whether d has what o needs.
func (d *Directive) hasNeeds(o *Option) bool {
	if o.Needs == "" {
		return true
	}
	name, value, valued := strings.Cut(o.Needs, "=")
	a := d.optionOrDefault(findVerb(VerbLimit).option(name))
	switch {
	case valued:
		return slices.Contains(strings.Split(value, "|"), a.Value.Text)
	case name == optKey:
		return strings.TrimSpace(a.Value.Text) != wordGlobal
	}
	return a.Value.Text != ""
}

// needs spells o.Needs for people.
func (o *Option) needs() string {
	name, _, _ := strings.Cut(o.Needs, "=")
	return strings.ReplaceAll(o.Needs, "|", " or "+name+"=")
}

// Policy is what the runtime is told of l, but for the ID.
func (l *Limit) Policy() ratelimit.Policy {
	p := ratelimit.Policy{
		Directive: l.Directive.effective(),
		Key:       wordGlobal,
		Global:    l.Key == nil,
		Algorithm: l.Algorithm,
		Limit:     l.Max,
		Dynamic:   l.MaxExpr != nil,
		Window:    l.Window,
		Burst:     l.Burst,
		Refill:    l.Refill,
		Warmup:    l.Warmup,
		Segments:  l.Segments,
		Align:     l.Align,
		TZ:        l.TZ,
		Lock:      l.Lock,
		Lease:     l.Lease,
		Count:     l.Count != nil,
		CostAfter: l.CostAfter != nil,
		Waits:     l.OnLimit == OnLimitWait,
		MaxWait:   l.MaxWait,
		MaxQueue:  l.MaxQueue,
		Mode:      l.Mode,
		OnEmpty:   l.OnEmpty,
		OnError:   l.OnError,
		Store:     l.Store,
		Message:   l.Message,
		Status:    l.Status,
	}
	if l.Key != nil {
		p.Key = l.Key.Text
	}
	if l.Initial != nil {
		p.Initial = *l.Initial
		if p.Initial == 0 {
			p.Initial = ratelimit.Empty
		}
	}
	return p
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
