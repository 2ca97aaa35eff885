package directive

import (
	"slices"
	"strings"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
)

// Verb is a verb of the language.
type Verb struct {
	Name string `json:"name"`
	// Doc is one line.
	Doc     string       `json:"doc"`
	Example string       `json:"example"`
	Targets []TargetKind `json:"targets"`
	// Repeatable verbs may stand on one declaration several times.
	Repeatable bool     `json:"repeatable,omitempty"`
	Options    []Option `json:"options,omitempty"`
}

// Option is an option of a verb.
type Option struct {
	Name string `json:"name"`
	Type Type   `json:"type"`
	// Values are the words that are possible: all there are for a Choice, those
	// beside numbers for a Count.
	Values []string `json:"values,omitempty"`
	// Default is what the option is if it is not given, in the words of the
	// language; "" if there is none.
	Default string `json:"default,omitempty"`
	// Doc is one line.
	Doc     string `json:"doc"`
	Example string `json:"example"`
	// Aliases are what other tools call the option. They are not accepted, only
	// understood well enough to suggest the name.
	Aliases []string `json:"aliases,omitempty"`
	// Targets are what the option is possible on; nil means all of its verb's.
	Targets []TargetKind `json:"targets,omitempty"`
}

// Type says what values an option takes.
type Type string

// The types of values.
const (
	// Count is a decimal integer >= 1, or one of the option's words.
	Count Type = "integer >= 1"
	// Cost is a decimal integer >= 0, or an expression.
	Cost Type = "integer >= 0 or expression"
	// Duration is Go's syntax with the units d (24 h) and w (7 d) besides.
	Duration Type = "duration"
	// Key is a dimension, a list of them, or an expression.
	Key Type = "key"
	// Choice is one of the option's words.
	Choice Type = "word"
	// Name is a letter or '_', then letters, digits, '_', '.' or '-'; at most
	// MaxName of them, ASCII only.
	Name Type = "name"
	// Identifier is a Go identifier.
	Identifier Type = "Go identifier"
	// TypeName is a Go identifier that a package may qualify.
	TypeName Type = "type name"
)

// MaxName is the greatest length of a Name.
const MaxName = 128

// TargetKind is a kind of declaration that a directive can stand on.
type TargetKind string

// The kinds of declarations.
const (
	// Method is a method of a named type.
	Method TargetKind = "method"
	// InterfaceMethod is a method that a named interface lists.
	InterfaceMethod TargetKind = "interface method"
	// TypeDecl is a named type.
	TypeDecl TargetKind = "type"
	// Func is a function without a receiver.
	Func TargetKind = "function"
)

// The verbs.
const (
	VerbLimit   = "limit"
	VerbOff     = "off"
	VerbWrapper = "wrapper"
)

// The options.
const (
	optMax         = "max"
	optWindow      = "window"
	optKey         = "key"
	optAlgorithm   = "algorithm"
	optBurst       = "burst"
	optCost        = "cost"
	optName        = "name"
	optMode        = "mode"
	optOnLimit     = "on-limit"
	optOnEmpty     = "on-empty"
	optConstructor = "constructor"
	optImplements  = "implements"
)

// Words of options that are no numbers.
const (
	wordUnlimited = "unlimited"
	wordBlocked   = "blocked"
	wordGlobal    = "global"
)

var registry = []Verb{
	{
		Name:       VerbLimit,
		Doc:        "one policy of a method, or of each exported method of a type; the verb may be left out",
		Example:    "//ratelimit:max=5 window=1m key=ip",
		Targets:    []TargetKind{Method, InterfaceMethod, TypeDecl},
		Repeatable: true,
		Options: []Option{
			{
				Name: optMax, Type: Count, Values: []string{wordUnlimited, wordBlocked}, Default: "5",
				Aliases: []string{"limit", "maximum", "rate", "count", "requests", "calls"},
				Doc:     "units admitted per window; unlimited admits every call, blocked refuses every call",
				Example: "max=100",
			},
			{
				Name: optWindow, Type: Duration, Default: "1m",
				Aliases: []string{"per", "period", "interval", "duration", "every"},
				Doc:     "length of the window; d is 24 hours and w 7 days",
				Example: "window=1h30m",
			},
			{
				Name: optKey, Type: Key, Default: wordGlobal,
				Aliases: []string{"by", "scope"},
				Doc:     "whose calls share a counter: a dimension, a list of them, or an expression over the method's parameters",
				Example: "key=`[req.TenantID, req.UserID]`",
			},
			{
				Name: optAlgorithm, Type: Choice, Values: []string{"sliding-log", "token-bucket", "fixed-window"}, Default: "sliding-log",
				Aliases: []string{"algo", "strategy", "type"},
				Doc:     "how calls are counted: exactly, with bursts, or per window",
				Example: "algorithm=token-bucket",
			},
			{
				Name: optBurst, Type: Count,
				Aliases: []string{"capacity"},
				Doc:     "capacity of a token bucket; max if not given",
				Example: "algorithm=token-bucket max=10 window=1s burst=20",
			},
			{
				Name: optCost, Type: Cost, Default: "1",
				Aliases: []string{"weight", "tokens", "units"},
				Doc:     "units that one call takes",
				Example: "cost=`len(req.Items)`",
			},
			{
				Name: optName, Type: Name, Targets: []TargetKind{Method, InterfaceMethod},
				Doc:     "identity of the policy's counters, metrics and overrides, kept when policies are moved or changed; by default import path, type and method, and for several policies also algorithm, window and key",
				Example: "name=login-per-ip",
			},
			{
				Name: optMode, Type: Choice, Values: []string{"enforce", "shadow", "off"}, Default: "enforce",
				Doc:     "enforce refuses; shadow decides, counts and reports but admits; off does nothing",
				Example: "mode=shadow",
			},
			{
				Name: optOnLimit, Type: Choice, Values: []string{string(OnLimitError)}, Default: string(OnLimitError),
				Doc:     "what the caller gets when a call is refused: error returns it as the last result",
				Example: "on-limit=error",
			},
			{
				Name: optOnEmpty, Type: Choice, Values: []string{"deny"}, Default: "deny",
				Doc:     "what becomes of a call whose key is absent or empty: deny refuses it with ErrNoKey",
				Example: "on-empty=deny",
			},
		},
	},
	{
		Name:    VerbOff,
		Doc:     "opts a method out of the limits of its type",
		Example: "//ratelimit:off",
		Targets: []TargetKind{Method, InterfaceMethod},
	},
	{
		Name:    VerbWrapper,
		Doc:     "names what is generated for a type",
		Example: "//ratelimit:wrapper name=LimitedService constructor=Limit",
		Targets: []TargetKind{TypeDecl},
		Options: []Option{
			{
				Name: optName, Type: Identifier,
				Doc:     "name of the generated type; RateLimitedX for X if not given",
				Example: "name=LimitedService",
			},
			{
				Name: optConstructor, Type: Identifier,
				Doc:     "name of the generated constructor; NewRateLimitedX for X if not given",
				Example: "constructor=Limit",
			},
			{
				Name: optImplements, Type: TypeName,
				Doc:     "interface that the generated type is asserted to implement",
				Example: "implements=pb.GreeterServer",
			},
		},
	},
}

// Verbs returns the language: every verb with its options, in the order in which
// the documentation shows them. The result is the caller's.
func Verbs() []Verb {
	verbs := slices.Clone(registry)
	for i := range verbs {
		v := &verbs[i]
		v.Targets = slices.Clone(v.Targets)
		v.Options = slices.Clone(v.Options)
		for j := range v.Options {
			o := &v.Options[j]
			o.Values = slices.Clone(o.Values)
			o.Aliases = slices.Clone(o.Aliases)
			o.Targets = slices.Clone(o.Targets)
		}
	}
	return verbs
}

func findVerb(name string) *Verb {
	for i := range registry {
		if registry[i].Name == name {
			return &registry[i]
		}
	}
	return nil
}

func (v *Verb) option(name string) *Option {
	for i := range v.Options {
		if v.Options[i].Name == name {
			return &v.Options[i]
		}
	}
	return nil
}

// suggest is the option that was probably meant by name, or "".
func (v *Verb) suggest(name string) string {
	for i := range v.Options {
		if slices.Contains(v.Options[i].Aliases, strings.ToLower(name)) {
			return v.Options[i].Name
		}
	}
	return diag.Suggest(name, v.optionNames())
}

// takesExpr reports whether values of o may be expressions, which hold blanks.
func (o *Option) takesExpr() bool { return o.Type == Key || o.Type == Cost }

func (v *Verb) optionNames() []string {
	names := make([]string, len(v.Options))
	for i, o := range v.Options {
		names[i] = o.Name
	}
	return names
}

func verbNames() []string {
	names := make([]string, len(registry))
	for i, v := range registry {
		names[i] = v.Name
	}
	return names
}
