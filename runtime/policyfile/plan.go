package policyfile

import (
	"crypto/sha256"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// override is what a Binding has made of a policy.
type override struct {
	// base is what the options that are overridden were before.
	base map[*option]value
	// form is the KeyForm that the policy had.
	form string
	// keys tells which exceptions the policy has, and exceptions holds them.
	keys       [sha256.Size]byte
	exceptions ratelimit.Exceptions
}

// change is what is to be done to a policy.
type change struct {
	id     string
	at     place
	needed bool
	patch  ratelimit.Patch
	undo   ratelimit.Patch
	*override
}

// plan returns what f makes of a policy, which is in force as p, or what is wrong with
// that.
func (b *Binding) plan(f *File, env environment, p *ratelimit.Policy) (change, []Problem) {
	before := b.applied[p.ID]
	if before == nil {
		before = new(override)
	}
	without := *p
	for o, v := range before.base {
		o.field.set(&without, v)
		if o.name == optMax {
			without.Dynamic = v.n == 0
		}
	}
	l := f.limits[p.ID]
	settings := merge(f, l, env, &without)
	target, problems := apply(without, settings)
	c := change{id: p.ID, override: &override{base: map[*option]value{}, form: p.KeyForm}}
	switch {
	case l != nil:
		c.at = l.place
	case len(settings) > 0:
		c.at = settings[0].place
	default:
		c.at = place{file: f.name}
	}
	for _, s := range settings {
		if s.option.waits && !p.Waits {
			problems = append(problems, s.problem("calls of this limit do not wait, so that it changes nothing; it is for limits whose directive says on-limit=wait"))
		}
	}
	if len(problems) == 0 {
		if wrong := problemOf(&target); wrong != "" {
			problems = append(problems, blame(without, settings, c.at).problem("%s", wrong))
		}
	}
	if l != nil && l.matcher != nil {
		problems = append(problems, l.wrongRules(&target)...)
		c.keys, c.exceptions = l.digest, l.exceptions(&target)
	}
	if c.keys != before.keys || l != nil && l.matcher != nil && c.form != before.form {
		c.patch.Exceptions, c.undo.Exceptions = &c.exceptions, &before.exceptions
		c.needed = true
	} else {
		c.exceptions = before.exceptions
	}
	for _, s := range settings {
		c.base[s.option] = s.option.field.get(&without)
	}
	for i := range limitOptions {
		field := &limitOptions[i].field
		if from, to := field.get(p), field.get(&target); from != to {
			field.patch(&c.patch, to)
			field.patch(&c.undo, from)
			c.needed = true
		}
	}
	return c, problems
}

// exceptions returns the exceptions of l for a policy.
func (l *limit) exceptions(p *ratelimit.Policy) ratelimit.Exceptions {
	x := ratelimit.Exceptions{LimitOf: l.matcher.limitOf(keyFormOf(p), greatestLimit(p)), Switches: true}
	for i := range l.rules {
		r := &l.rules[i]
		x.Switches = x.Switches && r.times == 0 && (r.limit.n == ratelimit.Unlimited || r.limit.n == ratelimit.Blocked)
	}
	return x
}

// merge returns what is set of a policy, the environment over the file and what is said
// of a limit over the defaults.
func merge(f *File, l *limit, env environment, p *ratelimit.Policy) (settings []setting) {
	layers := [][]setting{env.limits[p.ID], nil, env.defaults, f.defaults}
	if l != nil {
		layers[1] = l.settings
	}
	set := map[*option]bool{}
	for i, layer := range layers {
		for _, s := range layer {
			if set[s.option] || i >= 2 && s.option.name == optOnEmpty && p.Global {
				continue
			}
			set[s.option] = true
			settings = append(settings, s)
		}
	}
	return settings
}

// apply returns p with settings, or what is wrong with them by themselves.
func apply(p ratelimit.Policy, settings []setting) (ratelimit.Policy, []Problem) {
	var problems []Problem
	for i := range settings {
		s := &settings[i]
		if s.option.name == optMax {
			if wrong := s.value.fits(&p); wrong != "" {
				problems = append(problems, s.problem(wrong))
			}
			if p.Dynamic && s.value.n != ratelimit.Unlimited && s.value.n != ratelimit.Blocked {
				problems = append(problems, s.problem("each call of this limit brings its own, by an expression: write unlimited or blocked"))
			}
			p.Dynamic = false
		}
		s.option.field.set(&p, s.value)
	}
	return p, problems
}

// blame finds the setting that makes a policy not valid: without it the others do.
func blame(p ratelimit.Policy, settings []setting, otherwise place) place {
	for i := range settings {
		rest := append(append([]setting{}, settings[:i]...), settings[i+1:]...)
		if q, _ := apply(p, rest); q.Validate() == nil {
			return settings[i].place
		}
	}
	return otherwise
}
