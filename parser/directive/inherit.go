package directive

import (
	"slices"
	"strings"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// Resolve gives the limits among the directives of one package the options that
// they have from its define and defaults directives. A limit takes an option from,
// in this order, itself, the define that it uses, the defaults; what it takes excludes
// what has no effect beside it, such as window beside align. Of the defaults it
// takes only what has an effect on it; what the define says must have one.
//
// It reports what is wrong with defines and defaults themselves: unknown,
// duplicate and unused ones, and options of theirs that no limit takes. Whether
// their values make sense is reported by Limit, for each limit that takes them.
//
// Resolve changes the directives, so it is to be called once for them, before
// Limit. Calls for different packages may run concurrently.
func Resolve(directives []*Directive) diag.List {
	r := resolver{defines: map[string]*Directive{}, used: map[string]bool{}, taken: map[*Assignment]bool{}, left: map[*Assignment][]string{}}
	for _, d := range directives {
		switch d.Verb {
		case VerbDefine:
			r.define(d)
		case VerbDefaults:
			r.setDefaults(d)
		}
	}
	for _, d := range directives {
		if d.Verb == VerbLimit {
			r.limit(d)
		}
	}
	r.unused()
	r.diags.Sort()
	return r.diags
}

type resolver struct {
	defines  map[string]*Directive
	names    []string // of defines, in the order written
	defaults *Directive
	used     map[string]bool
	taken    map[*Assignment]bool
	left     map[*Assignment][]string // what kept limits from taking an option
	unsure   bool                     // a directive could not be read, so that what it takes is unknown
	mayUse   bool                     // and it may name a define
	diags    diag.List
}

// define notes a define by its name.
func (r *resolver) define(d *Directive) {
	r.unsure = r.unsure || d.broken
	a := d.own(optName)
	if a == nil {
		if !d.broken {
			r.diags.Add(errNoName(d))
		}
		return
	}
	dec := decoder{}
	name := dec.name(a)
	r.diags.Add(dec.diags...)
	if name == "" {
		r.unsure = true
		return
	}
	if first := r.defines[name]; first != nil {
		r.diags.Add(errDuplicateDefine(a, first))
		return
	}
	if len(d.Options) == 1 && !d.broken {
		r.diags.Add(errEmptyDefine(d, a))
	}
	r.defines[name] = d
	r.names = append(r.names, name)
}

func (r *resolver) setDefaults(d *Directive) {
	r.unsure = r.unsure || d.broken
	switch {
	case r.defaults != nil:
		r.diags.Add(errDuplicateDefaults(d, r.defaults))
	case len(d.Options) == 0 && !d.broken:
		r.diags.Add(errNoDefaults(d))
	default:
		r.defaults = d
	}
}

// limit gives a limit what it inherits.
func (r *resolver) limit(d *Directive) {
	r.unsure = r.unsure || d.broken
	if use := d.own(optUse); use != nil {
		r.use(d, use)
	} else if d.broken && strings.Contains(strings.ToLower(d.Text), optUse) {
		r.mayUse = true
	}
	if r.defaults == nil {
		return
	}
	v := findVerb(VerbLimit)
	for _, o := range deciding(v) {
		a := r.defaults.own(o.Name)
		if a == nil {
			continue
		}
		if why := r.whyNot(d, v, o); why != "" {
			r.leave(a, why)
			continue
		}
		d.inherited = append(d.inherited, *a)
		d.defaults++
		r.taken[a] = true
	}
}

// whyNot says why d does not take o of the defaults, "" if it does.
func (r *resolver) whyNot(d *Directive, v *Verb, o *Option) string {
	switch by := overriding(v, o, d.Option); {
	case by == o.Name:
		return "sets it itself"
	case by != "":
		return "sets " + by + ", which takes its place"
	case !o.fits(r.algorithm(d, v)):
		return "has an algorithm without it"
	case !d.hasNeeds(o):
		return "is without " + o.needs()
	}
	return ""
}

// leave notes why a limit does not take a.
func (r *resolver) leave(a *Assignment, why string) {
	if !slices.Contains(r.left[a], why) {
		r.left[a] = append(r.left[a], why)
	}
}

// deciding returns the options of v, those first that decide whether others have
// an effect.
func deciding(v *Verb) []*Option {
	var first, rest []*Option
	for i := range v.Options {
		o := &v.Options[i]
		if slices.Contains([]string{optAlgorithm, optAlign, optOnLimit}, o.Name) {
			first = append(first, o)
		} else {
			rest = append(rest, o)
		}
	}
	return append(first, rest...)
}

// overriding returns the name of one of the options set that is o, or excludes it; "" if
// there is none.
func overriding(v *Verb, o *Option, set func(name string) *Assignment) string {
	switch {
	case set(o.Name) != nil:
		return o.Name
	case o.Without != "" && set(o.Without) != nil:
		return o.Without
	}
	for _, p := range v.Options {
		if p.Without == o.Name && set(p.Name) != nil {
			return p.Name
		}
	}
	return ""
}

// algorithm is that of d, or "" if it is none that there is.
func (r *resolver) algorithm(d *Directive, v *Verb) ratelimit.Algorithm {
	o := v.option(optAlgorithm)
	name := d.optionOrDefault(o).Value.Text
	if a, _ := algorithmOf(name, o); a != "" {
		return a
	}
	r.unsure = true
	return ""
}

// use gives a limit the options of the define that it names.
func (r *resolver) use(d *Directive, use *Assignment) {
	def := r.defines[use.Value.Text]
	if def == nil {
		if !nameForm.MatchString(use.Value.Text) {
			return // reported by Limit
		}
		r.unsure, r.mayUse = true, true
		r.diags.Add(errUnknownDefine(use, r.names))
		return
	}
	r.used[use.Value.Text] = true
	v := findVerb(VerbLimit)
	for i := range def.Options {
		a := &def.Options[i]
		if a.Name == optName {
			continue
		}
		if by := overriding(v, v.option(a.Name), d.own); by != "" {
			r.leave(a, by)
			continue
		}
		d.inherited = append(d.inherited, *a)
		r.taken[a] = true
	}
}

// unused reports what no limit takes.
func (r *resolver) unused() {
	for _, name := range r.names {
		def := r.defines[name]
		if !r.used[name] {
			if !r.mayUse {
				r.diags.Add(errUnusedDefine(def.own(optName)))
			}
			continue
		}
		if r.unsure {
			continue
		}
		for i := range def.Options {
			if a := &def.Options[i]; a.Name != optName && !r.taken[a] {
				r.diags.Add(errUnusedInDefine(a, name, r.left[a]))
			}
		}
	}
	if r.defaults == nil || r.unsure {
		return
	}
	for i := range r.defaults.Options {
		if a := &r.defaults.Options[i]; !r.taken[a] {
			r.diags.Add(errUnusedDefault(a, r.left[a]))
		}
	}
}
