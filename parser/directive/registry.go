package directive

import (
	"slices"
	"strings"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
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
	// Except are the options of limit that the verb does not take, if it takes the
	// others; nil if it has only options of its own.
	Except []string `json:"except,omitempty"`
}

// Option is an option of a verb.
type Option struct {
	Name string `json:"name"`
	Type Type   `json:"type"`
	// Values are the words that are possible: all there are for a Choice or an
	// Action, those beside other values for the other types.
	Values []string `json:"values,omitempty"`
	// Min and Max are the bounds of an Integer.
	Min int64 `json:"min,omitempty"`
	Max int64 `json:"max,omitempty"`
	// Default is what the option is if it is not given, in the words of the
	// language; "" if there is none.
	Default string `json:"default,omitempty"`
	// Required is set if the verb makes no sense without the option.
	Required bool `json:"required,omitempty"`
	// Algorithms are those that take the option, Custom among them if those do that are
	// not built in; nil means all.
	Algorithms []ratelimit.Algorithm `json:"algorithms,omitempty"`
	// Needs is another option without which this one has no effect: its name, or
	// name=value if it must have that value, or name=value|value if one of those.
	Needs string `json:"needs,omitempty"`
	// Without is another option beside which this one has no effect.
	Without string `json:"without,omitempty"`
	// Doc is one line.
	Doc     string `json:"doc"`
	Example string `json:"example"`
	// Aliases are what other tools call the option. They are not accepted, only
	// understood well enough to suggest the name.
	Aliases []string `json:"aliases,omitempty"`
	// Targets are what the option is possible on; nil means all of its verb's.
	Targets []TargetKind `json:"targets,omitempty"`

	// unused is the code of a diagnostic about the option being without effect.
	unused string
}

// Type says what values an option takes.
type Type string

// The types of values.
const (
	// Units is a decimal integer >= 1, a duration if the algorithm counts time, one
	// of the option's words, or an expression.
	Units Type = "integer >= 1, expression"
	// Integer is a decimal integer from Min to Max.
	Integer Type = "integer"
	// Cost is a decimal integer >= 0, or an expression.
	Cost Type = "integer >= 0, expression"
	// Amount is an expression of integer type that may use the results.
	Amount Type = "expression"
	// Condition is an expression of boolean type; if the call is over, it may use
	// the results.
	Condition Type = "boolean expression"
	// Duration is Go's syntax with the units d (24 h) and w (7 d) besides.
	Duration Type = "duration"
	// Durations is one Duration, or several that rise, with commas between them.
	Durations Type = "duration or rising list"
	// Key is a dimension, a list of them, or an expression.
	Key Type = "key"
	// Choice is one of the option's words.
	Choice Type = "word"
	// Algorithm is one of the option's words, or the name of an algorithm that the
	// service has registered with its limiter.
	Algorithm Type = "word, or the name of an algorithm of your own"
	// Action is one of the option's words, one of which ends with a method's name.
	Action Type = "action"
	// Name is a letter or '_', then letters, digits, '_', '.' or '-'; at most
	// MaxName of them, ASCII only.
	Name Type = "name"
	// Identifier is a Go identifier.
	Identifier Type = "Go identifier"
	// TypeName is a Go identifier that a package may qualify.
	TypeName Type = "type name"
	// Zone is a time zone of the IANA database, like "Europe/Berlin", or "UTC".
	Zone Type = "time zone"
	// Text is one line of text, at most MaxText bytes.
	Text Type = "text"
)

// MaxText is the greatest length of a Text, in bytes.
const MaxText = 512

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
	// Package is the package clause of a file.
	Package TargetKind = "package"
)

// Verbs returns the language: every verb with its options, in the order in which
// the documentation shows them. The result is the caller's.
func Verbs() []Verb {
	verbs := slices.Clone(registry)
	for i := range verbs {
		v := &verbs[i]
		v.Targets = slices.Clone(v.Targets)
		v.Options = slices.Clone(v.Options)
		v.Except = slices.Clone(v.Except)
		for j := range v.Options {
			o := &v.Options[j]
			o.Values = slices.Clone(o.Values)
			o.Aliases = slices.Clone(o.Aliases)
			o.Targets = slices.Clone(o.Targets)
			o.Algorithms = slices.Clone(o.Algorithms)
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
func (o *Option) takesExpr() bool {
	return slices.Contains([]Type{Key, Units, Cost, Amount, Condition}, o.Type)
}

// Custom stands for all algorithms that are not built in.
const Custom ratelimit.Algorithm = "custom"

// fits reports whether alg takes o. The unknown algorithm "" takes everything.
func (o *Option) fits(alg ratelimit.Algorithm) bool {
	if alg.IsCustom() {
		alg = Custom
	}
	return o.Algorithms == nil || alg == "" || slices.Contains(o.Algorithms, alg)
}

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
