package policyfile

import (
	"slices"
	"sync"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// Binding applies files to a Limiter, one after the other, and remembers what the
// policies were without them. It is safe for concurrent use.
//
// What a Binding overrides it has from then on: an Update by others of an option that
// the file sets lasts until another file is applied, and one of an option that the file
// does not set is left alone. A Limiter has one Binding at a time.
type Binding struct {
	limiter   *ratelimit.Limiter
	later     bool
	prefix    string
	variables []variable

	mu      sync.Mutex
	file    *File
	applied map[string]*override // by Policy.ID, of all policies that were looked at
	late    []Problem            // of gates that were made after the file was applied
}

// Option changes what Bind makes, and Watch.
type Option func(*Binding)

// WithLaterGates lets a file name limits that no gate has yet. They are overridden by
// the next Check, or by the Watcher when it looks at the file the next time after the
// gate was made; until then the gate has what its directive says. Without the option
// such a name is an error, as a typing error would be.
func WithLaterGates() Option {
	return func(b *Binding) { b.later = true }
}

// WithEnviron takes single values from the environment, which take precedence over the
// file: environ is that of os.Environ, and variables are those whose name begins with
// prefix, like "RATELIMIT_". The option max-wait of the limit pay.Login is
// RATELIMIT_PAY_LOGIN_MAX_WAIT: names are in upper case, with a '_' for each run of what
// is neither a letter of ASCII nor a digit. RATELIMIT_DEFAULTS_MODE is mode in defaults. A variable
// that no limit has is an error, and so is one that may be for two.
//
// Kubernetes sets variables for each service: choose a prefix that is not the name of
// one.
func WithEnviron(prefix string, environ []string) Option {
	return func(b *Binding) { b.prefix, b.variables = prefix, variablesOf(prefix, environ) }
}

// Bind returns a Binding of a limiter, which changes nothing by itself.
func Bind(limiter *ratelimit.Limiter, opts ...Option) *Binding {
	b := &Binding{limiter: limiter, file: new(File), applied: map[string]*override{}}
	for _, o := range opts {
		if o != nil {
			o(b)
		}
	}
	return b
}

// Apply applies the file to a limiter whose gates have been made, once: it is
// Bind(limiter).Apply(f). Files that are applied one after the other need one Binding.
func (f *File) Apply(limiter *ratelimit.Limiter) error { return Bind(limiter).Apply(f) }

// Apply makes the limiter's policies what f says, in force at the next decision, with
// their counters kept. What an earlier file set and f does not goes back to what it was.
// An empty File takes everything back, but for the environment.
//
// If f names a limit that the limiter does not have, or makes a policy of one that is
// not valid or that its store does not support, the error is an *Error with everything
// that is wrong, and the policies are what they were. While Apply works, a call may be
// decided by a policy of f and another by one that f is still to change.
func (b *Binding) Apply(f *File) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f == nil {
		f = new(File)
	}
	policies := b.limiter.Policies()
	env := b.environment(policies)
	problems := slices.Concat(env.wrong, b.missing(f, env, policies))
	if b.later {
		problems = env.wrong
	}
	var changes []change
	for i := range policies {
		c, wrong := b.plan(f, env, &policies[i])
		problems = append(problems, wrong...)
		changes = append(changes, c)
	}
	if len(problems) > 0 {
		return asError(problems)
	}
	if err := b.execute(changes); err != nil {
		return err
	}
	b.file, b.late = f, nil
	return nil
}

// Check overrides limits of gates that were made after the file was applied, and
// returns an *Error if the file, or the environment, names a limit that no gate has, or
// is wrong for one of those gates. Call it when all gates have been made.
func (b *Binding) Check() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.catchUp()
	policies := b.limiter.Policies()
	return asError(slices.Concat(b.late, b.missing(b.file, b.environment(policies), policies)))
}

// welcome is catchUp for a Watcher.
func (b *Binding) welcome() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.catchUp()
}

// lateErr returns what is wrong with gates that were made after the file was applied.
func (b *Binding) lateErr() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return asError(slices.Clone(b.late))
}

// catchUp overrides the limits of gates that were made after the file was applied. What
// the file says of a gate and is wrong leaves that gate as it is, and is remembered. It
// reports whether there was a new gate.
func (b *Binding) catchUp() bool {
	policies := b.limiter.Policies()
	known := func(p *ratelimit.Policy) bool {
		before := b.applied[p.ID]
		return before != nil && before.form == p.KeyForm // which a gate may have added to
	}
	if !slices.ContainsFunc(policies, func(p ratelimit.Policy) bool { return !known(&p) }) {
		return false
	}
	env := b.environment(policies)
	for i := range policies {
		p := &policies[i]
		if known(p) {
			continue
		}
		c, wrong := b.plan(b.file, env, p)
		if len(wrong) == 0 {
			if err := b.execute([]change{c}); err != nil {
				wrong = err.(*Error).Problems
			}
		}
		if len(wrong) > 0 {
			b.late = append(b.late, wrong...)
			after := &override{form: p.KeyForm}
			if before := b.applied[p.ID]; before != nil {
				after.base, after.keys, after.exceptions = before.base, before.keys, before.exceptions
			}
			b.applied[p.ID] = after
		}
	}
	b.late = append(b.late, env.wrong...)
	return true
}

// missing returns the names that no policy has, and defaults that change none.
func (b *Binding) missing(f *File, env environment, policies []ratelimit.Policy) []Problem {
	problems := slices.Clone(env.unknown)
	known := map[string]bool{}
	var ids []string
	keyed := false
	for i := range policies {
		known[policies[i].ID] = true
		ids = append(ids, policies[i].ID)
		keyed = keyed || !policies[i].Global
	}
	for name, l := range f.limits {
		if !known[name] {
			problems = append(problems, l.problem("no limit has the name %s%s", show(name), nearest(name, ids)))
		}
	}
	for _, s := range slices.Concat(f.defaults, env.defaults) {
		switch {
		case len(policies) == 0:
			problems = append(problems, s.problem("the limiter has no limits, so that this changes nothing"))
		case s.option.name == optOnEmpty && !keyed:
			problems = append(problems, s.problem("no limit has a key, so that this changes nothing"))
		}
	}
	return problems
}

// execute makes changes, all of them or, on an error, none.
func (b *Binding) execute(changes []change) error {
	for i := range changes {
		c := &changes[i]
		if !c.needed {
			continue
		}
		if err := b.limiter.Update(c.id, c.patch); err != nil {
			for _, done := range slices.Backward(changes[:i]) {
				if done.needed {
					// It goes back to what was in force, and so is possible.
					_ = b.limiter.Update(done.id, done.undo)
				}
			}
			return asError([]Problem{c.at.problem("%s", reason(c.id, err))})
		}
	}
	for i := range changes {
		b.applied[changes[i].id] = changes[i].override
	}
	return nil
}
