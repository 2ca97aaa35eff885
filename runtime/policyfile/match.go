package policyfile

import "github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"

// matcher finds the first of some rules that has a key. It is not changed once it is
// made.
type matcher struct {
	exact  map[string]int32 // by the key as AppendText writes it
	plain  map[string]int32 // by the text of a key of one element
	v4, v6 networks
	limits []exception
}

// exception is what a rule makes of a limit.
type exception struct {
	limit int64
	times int64 // if not 0, of the limit
}

func newMatcher(rules []rule) *matcher {
	m := &matcher{exact: map[string]int32{}, plain: map[string]int32{}}
	var v4, v6 []enclosed
	for i := range rules {
		r := &rules[i]
		m.limits = append(m.limits, exception{limit: r.limit.n, times: r.times})
		if _, known := m.exact[r.exact]; r.exact != "" && !known {
			m.exact[r.exact] = int32(i)
			m.plain[r.plain] = int32(i)
		}
		for _, n := range r.networks {
			e := enclosed{network: networkOf(n.prefix), rule: int32(i)}
			if e.v4 {
				v4 = append(v4, e)
			} else {
				v6 = append(v6, e)
			}
		}
	}
	m.v4, m.v6 = newNetworks(v4), newNetworks(v6)
	return m
}

// match returns the first rule that has the key, which is written in a form, or -1. A key
// that is a network is that of rules that have all of it.
func (m *matcher) match(key []byte, form *keyForm) int32 {
	exact := m.exact
	if form.plain {
		exact = m.plain
	}
	first, ok := exact[string(key)]
	if !ok {
		first = -1
	}
	if len(m.v4)+len(m.v6) == 0 {
		return first
	}
	if form.chosen {
		if len(key) == 0 || key[0] != '\\' {
			return first // a text, even if it looks like an address
		}
		key = key[1:]
	}
	if n, ok := parseKey(key); ok {
		if i := m.around(n); i >= 0 && (first < 0 || i < first) {
			return i
		}
	}
	return first
}

func (m *matcher) around(n network) int32 {
	if n.v4 {
		return m.v4.find(n)
	}
	return m.v6.find(n)
}

// covering returns a rule before i that leaves rule i no key, or -1.
func (m *matcher) covering(r *rule, i int) int32 {
	before := int32(-1)
	if r.exact != "" {
		before = m.match([]byte(r.exact), new(keyForm))
	}
	for _, n := range r.networks {
		if before = m.around(networkOf(n.prefix)); before == int32(i) {
			return -1
		}
	}
	if before == int32(i) {
		return -1
	}
	return before
}

// limitOf returns a function that tells the limit of a key, which is written in a form. It
// is safe for concurrent use and does not allocate. No product is above greatest.
func (m *matcher) limitOf(form keyForm, greatest int64) func(key []byte, limit int64) int64 {
	return func(key []byte, limit int64) int64 {
		i := m.match(key, &form)
		if i < 0 {
			return limit
		}
		e := &m.limits[i]
		switch {
		case e.times == 0:
			return e.limit
		case limit <= 0 || limit == ratelimit.Unlimited:
			return limit
		case limit > greatest/e.times:
			return greatest
		}
		return limit * e.times
	}
}
