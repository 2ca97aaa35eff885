package policyfile

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// grouping is how a key of addresses puts them into networks: the lengths of those.
type grouping struct{ bits4, bits6 int }

func (g grouping) of(v4 bool) int {
	if v4 {
		return g.bits4
	}
	return g.bits6
}

// groupingOf reads a part of Policy.Key; ok is false if that is something else than the
// caller's address. #ip is a parameter, which holds what it holds.
func groupingOf(key string) (g grouping, ok bool) {
	words := strings.Split(strings.ReplaceAll(key, " ", ""), "/")
	if !slices.Contains([]string{"ip", "request.ip"}, words[0]) {
		return g, false
	}
	g = grouping{32, 64}
	for i, bits := range []*int{&g.bits4, &g.bits6} {
		if len(words) > i+1 {
			n, err := strconv.Atoi(words[i+1])
			if err != nil {
				return g, false
			}
			*bits = n
		}
	}
	return g, len(words) <= 3
}

// keyForm says how keys are written that consist of one element, as the generator has it.
type keyForm struct {
	// plain is set for a text that is the whole key as it is. Where the key may be the
	// caller's user name or address, text is escaped.
	plain bool
	// chosen is set where the key is the caller's address in some calls and a text in
	// others. Then the address stands behind a '\\', so that nobody is called like it.
	chosen bool
	// addresses is set if all keys are the caller's address.
	addresses bool
	// grouping is the finest by which addresses are counted, if they are.
	grouping
}

// keyFormOf reads Policy.Key, which is "" if it is not known. The form of a key of
// several elements is the zero one.
func keyFormOf(key string) keyForm {
	var f keyForm
	leaves := leavesOf(key)
	texts := 0
	for _, leaf := range leaves {
		if g, ok := groupingOf(leaf); ok {
			f.bits4, f.bits6 = max(f.bits4, g.bits4), max(f.bits6, g.bits6)
			continue
		}
		texts++
		f.plain = f.plain || leaf != "user" && leaf != "request.user" && leaf != ""
	}
	addresses := len(leaves) - texts
	f.addresses = texts == 0 && addresses > 0
	f.chosen = texts > 0 && addresses > 0
	named := slices.Contains(leaves, "user") || slices.Contains(leaves, "request.user")
	f.plain = f.plain && addresses == 0 && !named
	return f
}

// leavesOf returns what a key of one element may be: what the operators ?:, ?? and
// c ? a : b choose from. It is nothing for a key of several elements.
func leavesOf(key string) []string {
	key = strings.TrimSpace(key)
	for _, around := range []string{"()", "[]"} {
		if len(key) > 1 && key[0] == around[0] && closing(key) == len(key)-1 {
			return leavesOf(key[1 : len(key)-1])
		}
	}
	var leaves []string
	from, last := 0, 0 // of the part, and of leaves those that may be a condition
	add := func(to int) { leaves = append(leaves, key[from:to]) }
	for i := 0; i < len(key); i++ {
		switch key[i] {
		case '(', '[', '{', '"', '\'', '`':
			i = closing(key[i:]) + i
		case ',':
			return nil
		case ';': // the end of a let
			return leavesOf(key[i+1:])
		case ':':
			add(i)
			from, last = i+1, len(leaves)
		case '?':
			if strings.HasPrefix(key[i:], "?.") {
				continue
			}
			add(i)
			switch {
			case strings.HasPrefix(key[i:], "??"):
				i++
			case strings.HasPrefix(key[i:], "?:"):
				i++
				last = len(leaves)
			default:
				leaves = leaves[:last]
			}
			from = i + 1
		}
	}
	add(len(key))
	if len(leaves) == 1 {
		return []string{strings.TrimSpace(leaves[0])}
	}
	var all []string
	for _, leaf := range leaves {
		all = append(all, leavesOf(leaf)...)
	}
	return all
}

// closing returns the index of what closes the bracket or the quote that s begins with,
// or of the last byte.
func closing(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		case '"', '\'', '`':
			for i++; i < len(s) && s[i] != c; i++ {
				if s[i] == '\\' && c != '`' {
					i++
				}
			}
		}
		if depth <= 0 {
			return min(i, len(s)-1)
		}
	}
	return len(s) - 1
}

// elementsOf returns of how many elements a key consists that is written as in a
// directive, or 0 if that cannot be seen.
func elementsOf(key string) int {
	key = strings.TrimSpace(key)
	inner, listed := strings.CutPrefix(key, "[")
	if listed {
		inner, listed = strings.CutSuffix(inner, "]")
	}
	if key == "" || strings.ContainsAny(key, "`\"'") || listed && strings.ContainsAny(inner, "[]") {
		return 0
	}
	depth, commas := 0, 0
	for _, c := range key {
		switch c {
		case '(', '{', '[':
			depth++
		case ')', '}', ']':
			depth--
		case ',':
			if depth == 0 || listed && depth == 1 {
				commas++
			}
		}
	}
	if commas == 0 && strings.ContainsAny(key, "?[") && !listed {
		return 0
	}
	return commas + 1
}

// wrongRules returns what is wrong with the exceptions of l for a policy.
func (l *limit) wrongRules(p *ratelimit.Policy) (problems []Problem) {
	if p.Global {
		return []Problem{l.keysAt.problem("keys: all calls of this limit share one counter, so that there are no exceptions")}
	}
	elements := elementsOf(p.Key)
	form := keyFormOf(p.Key)
	never := slices.Contains([]string{"user", "role", "path", "route", "method"}, p.Key) || elements > 1
	for i := range l.rules {
		r := &l.rules[i]
		switch {
		case r.exact != "" && elements > 0 && r.elements != elements:
			problems = append(problems, r.problem("key: the key of this limit is %s, of %d elements, and this one has %d", show(p.Key), elements, r.elements))
		case r.exact != "" && form.addresses:
			if wrong := form.wrongExact(r.exact); wrong != "" {
				problems = append(problems, r.problem("key: %s: %s", show(r.exact), wrong))
			}
		case len(r.networks) > 0 && never:
			problems = append(problems, r.problem("networks are for keys that are addresses, and the key of this limit is %s", show(p.Key)))
		case form.addresses || form.chosen:
			problems = append(problems, form.wrongNetworks(r.networks)...)
		}
		if wrong := r.wrongLimit(p); wrong != "" {
			problems = append(problems, r.limitAt.problem("%s", wrong))
		}
	}
	return problems
}

// wrongExact says why no address has this key, or "".
func (g grouping) wrongExact(key string) string {
	n, ok := parseKey([]byte(key))
	switch {
	case !ok:
		return "the key of this limit is an address, and this is none"
	case n.masked() != n || int(n.bits) > g.of(n.v4):
		return "addresses are counted by their network of " + strconv.Itoa(g.of(n.v4)) + " bits: write that as cidr"
	case int(n.bits) < g.of(n.v4):
		return "this is no single key: write cidr: " + key
	}
	addr, err := netip.ParseAddr(key)
	if prefix, err := netip.ParsePrefix(key); err == nil && prefix.Masked().String() == key {
		return ""
	}
	if err != nil || addr.String() != key {
		return "addresses are counted as netip writes them: write cidr: " + key
	}
	return ""
}

// wrongNetworks reports networks that no key can lie in.
func (g grouping) wrongNetworks(networks []writtenNetwork) (problems []Problem) {
	for _, n := range networks {
		bits := g.of(n.prefix.Addr().Is4())
		if n.prefix.Bits() <= bits {
			continue
		}
		if len(problems) == maxWrong {
			return append(problems, n.problem("and more networks that are longer"))
		}
		group, _ := n.prefix.Addr().Prefix(bits)
		problems = append(problems, n.problem("%v is a part of %v, which is counted as one key: write that, or let the directive's key be longer networks, like ip/32/128", n.prefix, group))
	}
	return problems
}

// wrongLimit says why a policy cannot have the limit of r, or "".
func (r *rule) wrongLimit(p *ratelimit.Policy) string {
	q := *p
	if r.times == 0 {
		if wrong := r.limit.fits(p); wrong != "" {
			return "max: " + wrong
		}
		q.Limit, q.Dynamic = r.limit.n, false
		if q.Limit == ratelimit.Unlimited || q.Limit == ratelimit.Blocked {
			return ""
		}
	} else if q.Limit > 0 && q.Limit != ratelimit.Unlimited {
		if q.Limit > greatestLimit(p)/r.times {
			return "times: " + strconv.FormatInt(r.times, 10) + " × the limit of " + strconv.FormatInt(q.Limit, 10) + " is above the greatest, " + strconv.FormatInt(greatestLimit(p), 10)
		}
		q.Limit *= r.times
	}
	if p.Algorithm == ratelimit.LeakyBucket || p.Warmup != 0 {
		return "a leaky-bucket, or a bucket with a warmup, has one pace for all: write unlimited or blocked"
	}
	return problemOf(&q)
}

// greatestLimit is the largest limit of a policy's algorithm.
func greatestLimit(p *ratelimit.Policy) int64 {
	switch p.Algorithm {
	case ratelimit.SlidingLog, "":
		return ratelimit.MaxLogLimit
	case ratelimit.TimeQuota:
		return int64(ratelimit.MaxWindow / 1000)
	}
	return ratelimit.MaxLimit
}

// problemOf says what is wrong with a policy by itself, or "".
func problemOf(p *ratelimit.Policy) string {
	err := p.Validate()
	if err == nil {
		return ""
	}
	return reason(p.ID, err)
}

// reason is what an error says of a policy that is known already.
func reason(id string, err error) string {
	text := strings.TrimPrefix(err.Error(), "ratelimit: ")
	return strings.TrimPrefix(text, "policy "+strconv.Quote(id)+": ")
}
