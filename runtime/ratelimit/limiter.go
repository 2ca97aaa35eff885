package ratelimit

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"weak"
)

// DefaultMaxKeys is the number of counters that a Limiter keeps in memory at
// most, unless WithMaxKeys says otherwise.
const DefaultMaxKeys = 1_000_000

// Limiter holds the counters of policies. It is safe for concurrent use. The zero
// Limiter makes no gates; use New or Disabled.
type Limiter struct {
	ready    bool
	disabled bool
	err      error // of an option; returned by Gate
	clock    Clock // nil: the process's own
	maxKeys  int
	replicas int64 // that share the limits when a store fails
	stores   map[string]Store
	enders   map[string]*enders // of the stores that are Enders
	// algorithms are those that are not built in, by name.
	algorithms map[Algorithm]CustomAlgorithm
	mem        *memory

	mu       sync.Mutex
	counters map[string]*counter  // by Policy.ID
	gates    []weak.Pointer[Gate] // that may be in use
	living   int                  // of them after the last count
	// observers are told of decisions. Who is told is fixed by a gate's state.
	observers []*subscription

	watchers *watchers
	renewals *renewals
}

// Option changes what New makes. A wrong option is reported by Gate.
type Option func(*Limiter)

// New returns a limiter. Without options it is complete: it counts in memory, by
// the monotonic clock, and there is nothing to close.
func New(opts ...Option) *Limiter {
	l := &Limiter{
		ready:      true,
		maxKeys:    DefaultMaxKeys,
		replicas:   1,
		stores:     make(map[string]Store),
		enders:     make(map[string]*enders),
		algorithms: make(map[Algorithm]CustomAlgorithm),
		counters:   make(map[string]*counter),
		watchers:   new(watchers),
		renewals:   new(renewals),
	}
	for _, o := range opts {
		if o != nil {
			o(l)
		}
	}
	for name, s := range l.stores {
		if s, ok := s.(Ender); ok {
			l.enders[name] = &enders{store: s, watchers: l.watchers}
		}
	}
	if l.err == nil {
		l.mem = newMemory(l.clock, l.maxKeys)
	}
	return l
}

// Disabled returns a limiter whose gates admit every call at once, whatever their
// policies say: for tests, and as an off switch. Its gates check their policies
// when they are made, as others do.
func Disabled() *Limiter {
	l := New()
	l.disabled = true
	return l
}

// WithStore gives the limiter a store by a name that Policy.Store refers to. The
// store named "" is the default one; without it, policies that name no store are
// counted in memory.
func WithStore(name string, s Store) Option {
	return func(l *Limiter) {
		if s == nil {
			l.fail(fmt.Errorf("ratelimit: store %q is nil", name))
			return
		}
		l.stores[name] = s
	}
}

// MaxReplicas is the largest number that WithReplicas takes.
const MaxReplicas = 1_000_000

// WithReplicas tells how many processes share the limits in a store, so that they go on
// sharing them when the store fails: under LocalOnError each process then admits, by
// itself, one part in n of a policy's limit and burst, rounded down, but a call in any
// case. Together they admit no more than the policy does or, if that is more, the cost
// of n calls at a time.
//
// The local counters begin with the whole part, and the store, when it is back, with
// what it kept. So in a window in which the store fails or comes back, a key gets at
// most what the store has admitted and that in addition. A Degraded decision's
// Remaining is that of the part, and its Limit that of the policy.
//
// The default is 1: each process admits as much as the policy does. n must be in
// 1..MaxReplicas; a number that is too large refuses more than it needs to.
func WithReplicas(n int) Option {
	return func(l *Limiter) {
		if n < 1 || n > MaxReplicas {
			l.fail(fmt.Errorf("ratelimit: %d replicas is not in 1..%d", n, MaxReplicas))
			return
		}
		l.replicas = int64(n)
	}
}

// WithClock makes the in-memory counters and Decision.ResetAt take their time from
// c. A nil Clock means the default, the monotonic clock of the process.
func WithClock(c Clock) Option {
	return func(l *Limiter) { l.clock = c }
}

// WithMaxKeys bounds the counters in memory, of all policies together. The default
// is DefaultMaxKeys; n must be at least 1.
//
// A counter is dropped only when it would decide as a new one, so that no flood of
// keys frees a key that was refused or has used a part of its limit. When there is
// no room for a new key's counter, the key shares one overflow counter per policy
// with all others that found no room. Then no key is admitted more than Policy.Bound
// says of one, and mostly less, and the decision is marked Degraded.
func WithMaxKeys(n int) Option {
	return func(l *Limiter) {
		if n < 1 {
			l.fail(fmt.Errorf("ratelimit: at most %d keys is less than 1", n))
			return
		}
		l.maxKeys = n
	}
}

// WithObserver makes the limiter tell o of each decision, besides those that other
// uses of the option name. A nil Observer is ignored. See also Limiter.Subscribe.
func WithObserver(o Observer) Option {
	return func(l *Limiter) {
		if o != nil {
			l.observers = append(l.observers, &subscription{o})
		}
	}
}

func (l *Limiter) fail(err error) { l.err = errors.Join(l.err, err) }

// Spec describes a limited method and its policies. Generated code holds one for
// each method.
type Spec struct {
	// Method is the method's name for messages, like "pay.Service.PlaceOrder".
	Method string
	// File is the base name of the file that holds the directives, for messages.
	File string
	// Policies are the method's limits, 1..MaxPolicies, with distinct IDs.
	Policies []Policy
}

// Gate returns the gate of a method. It copies what it needs of spec.
//
// Gates of one limiter whose policies have the same ID share that policy's
// counters, and the policies must be equal. Otherwise, if a policy is not valid,
// names a store that the limiter does not have, or that does not support the policy,
// or another store than its neighbours, if there is no zone Policy.TZ, or if an
// option of New was wrong, Gate returns an error and registers nothing.
func (l *Limiter) Gate(spec *Spec) (*Gate, error) {
	switch {
	case l == nil:
		return nil, errors.New("ratelimit: nil Limiter; use New or Disabled")
	case !l.ready:
		return nil, errors.New("ratelimit: zero Limiter; use New or Disabled")
	case l.err != nil:
		return nil, l.err
	case spec == nil:
		return nil, errors.New("ratelimit: nil Spec")
	case len(spec.Policies) == 0:
		return nil, errors.New("ratelimit: spec without policies")
	}
	if len(spec.Policies) > MaxPolicies {
		return nil, fmt.Errorf("ratelimit: %d policies are more than %d", len(spec.Policies), MaxPolicies)
	}
	rules := make([]rules, len(spec.Policies))
	for i := range spec.Policies {
		p := &spec.Policies[i]
		var err error
		if rules[i], err = l.check(p); err != nil {
			return nil, err
		}
		if first := spec.Policies[0].Store; p.Store != first {
			return nil, fmt.Errorf("ratelimit: policies %q and %q of one method are on different stores, %q and %q, and cannot be charged as one",
				spec.Policies[0].ID, p.ID, first, p.Store)
		}
		for j := range i {
			if spec.Policies[j].ID == p.ID {
				return nil, fmt.Errorf("ratelimit: policy %q appears twice on one method", p.ID)
			}
		}
	}
	counters, err := l.register(spec.Policies, rules)
	if err != nil {
		return nil, err
	}
	state := &gate{
		limiter:  l,
		method:   strings.Clone(spec.Method),
		file:     strings.Clone(spec.File),
		counters: counters,
		store:    l.stores[spec.Policies[0].Store],
		enders:   l.enders[spec.Policies[0].Store],
		waiters:  new(waiters),
	}
	for i := range spec.Policies {
		state.directives = append(state.directives, strings.Clone(spec.Policies[i].Directive))
	}
	return l.publish(state), nil
}

// GateOf returns a gate of the policy with an ID alone, as Policies has it. It is for
// what is done beside the calls of the limited method, whose own gate generated code
// keeps for itself: Peek, Reset, Block, Reserve. It shares the counters, and follows
// updates like any other. A policy that no gate has yet is an *UnknownPolicyError.
func (l *Limiter) GateOf(id string) (*Gate, error) {
	switch {
	case l == nil:
		return nil, errors.New("ratelimit: nil Limiter; use New or Disabled")
	case l.err != nil:
		return nil, l.err
	}
	l.mu.Lock()
	c := l.counters[id]
	l.mu.Unlock()
	if c == nil {
		return nil, &UnknownPolicyError{ID: id}
	}
	return l.publish(&gate{
		limiter:    l,
		method:     "policy " + strconv.Quote(id),
		counters:   []*counter{c},
		directives: []string{c.policy.Directive},
		store:      l.stores[c.policy.Store],
		waiters:    new(waiters),
	}), nil
}

// publish makes a new Gate of a state.
func (l *Limiter) publish(state *gate) *Gate {
	g := new(Gate)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refresh(g, state)
	if len(l.gates) > 2*l.living+16 {
		l.gates = slices.DeleteFunc(l.gates, func(p weak.Pointer[Gate]) bool { return p.Value() == nil })
		l.living = len(l.gates)
	}
	l.gates = append(l.gates, weak.Make(g))
	return g
}

// refresh gives g the state with the policies that are in force now. The caller
// holds l.mu.
func (l *Limiter) refresh(g *Gate, state *gate) { g.cur.Store(l.inForce(state)) }

// inForce returns the state with the policies that are in force now. The caller holds
// l.mu.
func (l *Limiter) inForce(state *gate) *gate {
	s := *state
	s.counters = slices.Clone(state.counters)
	s.observers = slices.Clone(l.observers)
	s.open, s.ends, s.queued, s.fast, s.quick = true, nil, false, nil, false
	for i, c := range s.counters {
		c = l.counters[c.policy.ID]
		s.counters[i] = c
		if c.kind == off {
			continue
		}
		s.open = false
		if c.ends {
			s.ends = c
		}
		s.queued = s.queued || c.queue != nil
	}
	s.open = s.open || l.disabled
	quick := s.store == nil && len(s.observers) == 0 && !s.open
	for _, c := range s.counters {
		quick = quick && c.kind == counted && c.rule != recorded && !c.shadow
	}
	s.quick = quick && len(s.counters) <= maxQuick
	if quick && len(s.counters) == 1 {
		s.fast = s.counters[0]
	}
	return &s
}

// refreshAll gives all gates what is in force now. The caller holds l.mu.
func (l *Limiter) refreshAll() {
	for _, p := range l.gates {
		if g := p.Value(); g != nil {
			l.refresh(g, g.cur.Load())
		}
	}
}

// MustGate is Gate for wiring: it panics where Gate returns an error, naming the
// method.
func (l *Limiter) MustGate(spec *Spec) *Gate {
	g, err := l.Gate(spec)
	if err != nil {
		method := ""
		if spec != nil {
			method = spec.Method
		}
		panic(fmt.Sprintf("gate of %s: %v", method, err))
	}
	return g
}

// rules are what a policy refers to by name; nil for what it does not refer to.
type rules struct {
	calendar *calendar
	custom   CustomAlgorithm
}

// check returns the rules of p, or what is wrong with p on this limiter.
func (l *Limiter) check(p *Policy) (r rules, err error) {
	if err := p.Validate(); err != nil {
		return r, err
	}
	if a := p.algorithm(); !a.isBuiltIn() {
		if r.custom = l.algorithms[a]; r.custom == nil && !l.disabled {
			return r, fmt.Errorf("ratelimit: policy %q: the limiter has no algorithm %q; give it one with WithAlgorithm", p.ID, a)
		}
		if r.custom != nil {
			if err := r.custom.Check(p); err != nil {
				return r, fmt.Errorf("ratelimit: policy %q: algorithm %q: %w", p.ID, a, err)
			}
		}
	}
	store := l.stores[p.Store]
	switch {
	case store == nil && p.Store != "" && !l.disabled:
		return r, fmt.Errorf("ratelimit: policy %q: the limiter has no store %q", p.ID, p.Store)
	case store != nil:
		if what := needsEnder(p); what != "" && l.enders[p.Store] == nil {
			return r, fmt.Errorf("ratelimit: policy %q is counted in store %q, and %s is supported in memory and by stores that are Enders only (%T is not)", p.ID, p.Store, what, store)
		}
		if err := supports(store, p); err != nil {
			return r, fmt.Errorf("ratelimit: policy %q: store %q (%T) does not support it: %w", p.ID, p.Store, store, err)
		}
	}
	r.calendar, err = newCalendar(p)
	return r, err
}

// register returns the counters of policies, which are valid, and adds those that
// are new: all of them or, on an error, none.
func (l *Limiter) register(policies []Policy, rules []rules) ([]*counter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	counters := make([]*counter, len(policies))
	next := len(l.counters)
	for i := range policies {
		c := newCounter(policies[i], next, rules[i], nil, nil)
		known := l.counters[c.policy.ID]
		switch {
		case known == nil:
			next++
		case !known.declared.counts(c.policy):
			return nil, fmt.Errorf("ratelimit: policy %q is registered already and differs: %+v, now %+v",
				c.policy.ID, known.declared, c.policy)
		default:
			c = known
		}
		counters[i] = c
	}
	if next > maxPolicies {
		return nil, fmt.Errorf("ratelimit: more than %d policies", maxPolicies)
	}
	for _, c := range counters {
		if l.counters[c.policy.ID] == nil {
			l.counters[c.policy.ID] = c
			l.mem.add(c)
		}
	}
	for i := range policies {
		counters[i].addForm(policies[i].KeyForm)
	}
	return counters, nil
}

// counts reports whether q, which has the ID of p, counts as p does. How their
// directives and keys are written does not matter: methods of one group may name
// their parameters differently.
func (p Policy) counts(q Policy) bool {
	q.Directive, q.Key, q.KeyForm = p.Directive, p.Key, p.KeyForm
	return reflect.DeepEqual(p, q)
}

// wall is the time that Decision.ResetAt is counted from.
func (l *Limiter) wall() time.Time {
	if l.clock != nil {
		return l.clock.Now()
	}
	return time.Now()
}
