package policyfile

import (
	"fmt"
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

// elementForm says what an element of a key may be.
type elementForm struct {
	// address is set if it may be the caller's address; grouping is then the finest by
	// which addresses are counted.
	address bool
	grouping
	user  bool // the caller's name
	named bool // the caller's name, or other text that is no address
	text  bool // text of any kind
	hash  bool // a credential
	whole bool // an integer
	truth bool // a boolean
}

// chosen reports whether the element is the caller's address in some calls and a text in
// others. Then the address stands behind a '\\', so that nobody is called like it.
func (e *elementForm) chosen() bool { return e.address && (e.text || e.hash) }

// keyForm says how the keys of a policy are written.
type keyForm struct {
	// elements is nil if it is not known how many there are.
	elements []elementForm
	// plain is set for a text that is the whole key as it is. Where the key may be the
	// caller's user name or address, text is escaped.
	plain bool
	// chosen is that of the element that is the whole key.
	chosen bool
	// mixed is set where some methods have plain keys and others have not: only text
	// that is not changed by that is told then.
	mixed bool
	// wrong says why nothing can be told of the keys; "" if something can.
	wrong string
}

// keyFormOf returns how the keys of p are written: as Policy.KeyForm says or, for a policy
// that is not generated, as can be seen from Policy.Key. If there is neither, a key is
// elements that are escaped, and an address may be one that is the whole key.
func keyFormOf(p *ratelimit.Policy) keyForm {
	if p.KeyForm == "" {
		return formOfKey(p.Key)
	}
	var all keyForm
	for i, text := range strings.Split(p.KeyForm, ";") {
		elements, ok := readForm(text)
		switch {
		case text == "":
			return keyForm{wrong: "some methods that share this limit do not say how their keys are written: give their policies a KeyForm"}
		case !ok:
			return keyForm{wrong: "it is not known here how the keys of this limit are written, " + show(text) + ": update the module that reads this file"}
		}
		form := formOf(elements)
		if i == 0 {
			all = form
			continue
		}
		if len(elements) != len(all.elements) {
			return keyForm{wrong: "methods that share this limit have keys of different numbers of elements, so that there are no exceptions"}
		}
		for j := range elements {
			if all.elements[j].chosen() != elements[j].chosen() || all.elements[j].address != elements[j].address {
				return keyForm{wrong: "methods that share this limit write the caller's address in different ways, so that there are no exceptions"}
			}
			all.elements[j].add(elements[j])
		}
		all.mixed = all.mixed || all.plain != form.plain
	}
	return all
}

// formOf returns the form of a key of elements, of which there is at least one.
func formOf(elements []elementForm) keyForm {
	f := keyForm{elements: elements}
	if e := &elements[0]; len(elements) == 1 {
		f.plain = !e.address && !e.user
		f.chosen = e.chosen()
	}
	return f
}

// add makes e what it or o is.
func (e *elementForm) add(o elementForm) {
	e.address, e.user, e.named = e.address || o.address, e.user || o.user, e.named || o.named
	e.text, e.hash = e.text || o.text, e.hash || o.hash
	e.whole, e.truth = e.whole || o.whole, e.truth || o.truth
	e.bits4, e.bits6 = max(e.bits4, o.bits4), max(e.bits6, o.bits6)
}

// readForm reads a part of Policy.KeyForm.
func readForm(form string) (elements []elementForm, ok bool) {
	for _, words := range strings.Split(form, " ") {
		var e elementForm
		for _, word := range strings.Split(words, "|") {
			g, isAddress := groupingOf(word)
			switch {
			case isAddress:
				e.add(elementForm{address: true, grouping: g})
			case word == "user":
				e.user, e.named, e.text = true, true, true
			case word == "name":
				e.named, e.text = true, true
			case word == "text":
				e.text = true
			case word == "hash":
				e.hash = true
			case word == "int":
				e.whole = true
			case word == "bool":
				e.truth = true
			default:
				return nil, false
			}
		}
		elements = append(elements, e)
	}
	return elements, true
}

// groupingOf reads a part of Policy.Key or Policy.KeyForm; ok is false if that is something
// else than the caller's address. #ip is a parameter, which holds what it holds.
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

// formOfKey is keyFormOf for Policy.Key.
func formOfKey(key string) keyForm {
	if key == "" {
		return keyForm{}
	}
	parts, ok := elementsOf(key)
	if !ok {
		return keyForm{wrong: "it cannot be told how the keys of this limit, " + show(key) + ", are written: generate the code again, or give the policy a KeyForm"}
	}
	elements := make([]elementForm, len(parts))
	for i, part := range parts {
		for _, leaf := range leavesOf(part) {
			elements[i].add(formOfLeaf(leaf))
		}
	}
	return formOf(elements)
}

func formOfLeaf(leaf string) elementForm {
	if g, ok := groupingOf(leaf); ok {
		return elementForm{address: true, grouping: g}
	}
	word := strings.TrimPrefix(strings.ReplaceAll(leaf, " ", ""), "request.")
	e := elementForm{text: true, user: word == "user"}
	e.named = slices.Contains([]string{"user", "role", "path", "route", "method"}, word)
	return e
}

// elementsOf returns the elements of a key that is written as in a directive; ok is false
// if that cannot be seen.
func elementsOf(key string) (elements []string, ok bool) {
	key = strings.TrimSpace(key)
	from := 0
	for i := 0; i < len(key); i++ {
		switch {
		case strings.ContainsRune("([{\"'`", rune(key[i])):
			i = closing(key[i:]) + i
		case key[i] == ';': // the end of a let
			elements, from = nil, i+1
		case key[i] == ',':
			elements, from = append(elements, key[from:i]), i+1
		}
	}
	if elements = append(elements, key[from:]); commented(key) {
		return nil, false
	}
	if last := strings.TrimSpace(elements[0]); len(elements) == 1 && len(last) > 1 && strings.ContainsRune("([", rune(last[0])) && closing(last) == len(last)-1 {
		return elementsOf(last[1 : len(last)-1])
	}
	return elements, !slices.ContainsFunc(elements, func(s string) bool { return strings.TrimSpace(s) == "" })
}

// commented reports whether a key has a comment, of which everything can be in the way.
func commented(key string) bool {
	for i := 0; i < len(key); i++ {
		switch {
		case strings.ContainsRune("\"'`", rune(key[i])):
			i = closing(key[i:]) + i
		case strings.HasPrefix(key[i:], "//"), strings.HasPrefix(key[i:], "/*"):
			return true
		}
	}
	return false
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

// wrongRules returns what is wrong with the exceptions of l for a policy.
func (l *limit) wrongRules(p *ratelimit.Policy) (problems []Problem) {
	if p.Global {
		return []Problem{l.keysAt.problem("keys: all calls of this limit share one counter, so that there are no exceptions")}
	}
	form := keyFormOf(p)
	if form.wrong != "" {
		return []Problem{l.keysAt.problem("keys: %s", form.wrong)}
	}
	for i := range l.rules {
		r := &l.rules[i]
		if len(r.networks) == 0 {
			if wrong := form.wrongExact(p, r.texts); wrong != "" {
				problems = append(problems, r.problem("key: %s", wrong))
			}
		} else {
			problems = append(problems, form.wrongNetworks(p, r)...)
		}
		if wrong := r.wrongLimit(p); wrong != "" {
			problems = append(problems, r.limitAt.problem("%s", wrong))
		}
	}
	return problems
}

// wrongExact says why no key, or more than one, has these elements, or "".
func (f *keyForm) wrongExact(p *ratelimit.Policy, texts []string) string {
	if f.elements == nil {
		return ""
	}
	if len(texts) != len(f.elements) {
		return fmt.Sprintf("the key of this limit is %s, of %d elements, and this one has %d", show(p.Key), len(f.elements), len(texts))
	}
	for i, text := range texts {
		if wrong := f.elements[i].wrongText(text, len(texts) > 1); wrong != "" {
			return show(text) + ": " + wrong
		}
		if f.mixed && strings.ContainsAny(text, `|\`) {
			return show(text) + ": methods that share this limit write a | and a \\ in different ways"
		}
	}
	return ""
}

// wrongText says why no element is written so, or "".
func (e *elementForm) wrongText(text string, listed bool) string {
	_, isAddress := parseKey([]byte(text))
	switch {
	case e.chosen() && isAddress && listed:
		return "this element is the caller's address in some calls, and no exception of a list is for those"
	case e.chosen() && isAddress:
		return "this would be somebody who is called like an address: write cidr for the calls from there"
	case e.text, e.hash && isHash(text), e.whole && isWhole(text), e.truth && isTruth(text):
		return ""
	case e.hash:
		return "this is a credential, which is counted by its hash: write the 32 digits that ratelimit.AppendHash makes of it"
	case e.address:
		return e.wrongAddress(text, listed)
	case e.whole && e.truth:
		return "this is an integer or a boolean in the key of this limit: write 12, or true or false"
	case e.whole:
		return "this is an integer in the key of this limit: write it in decimal, like 12"
	case e.truth:
		return "this is true or false in the key of this limit"
	}
	return ""
}

// isHash reports whether text is as ratelimit.AppendHash writes a credential.
func isHash(text string) bool {
	return len(text) == 32 && strings.Trim(text, "0123456789abcdef") == ""
}

// isWhole reports whether text is as ratelimit.AppendInt or AppendUint writes an integer.
func isWhole(text string) bool {
	_, signed := strconv.ParseInt(text, 10, 64)
	_, unsigned := strconv.ParseUint(text, 10, 64)
	if signed != nil && unsigned != nil {
		return false
	}
	return text[0] != '+' && (text == "0" || strings.TrimPrefix(text, "-")[0] != '0')
}

// isTruth reports whether text is as ratelimit.AppendBool writes a boolean.
func isTruth(text string) bool { return text == "true" || text == "false" }

// wrongAddress says why no address is written so, or "". In a list there is no cidr.
func (g grouping) wrongAddress(key string, listed bool) string {
	n, ok := parseKey([]byte(key))
	switch {
	case !ok:
		return "the key of this limit is an address, and this is none"
	case n.masked() != n || int(n.bits) > g.of(n.v4):
		wrong := "addresses are counted by their network of " + strconv.Itoa(g.of(n.v4)) + " bits: write that"
		if !listed {
			wrong += " as cidr"
		}
		return wrong
	case int(n.bits) < g.of(n.v4) && listed:
		return "this is no single key"
	case int(n.bits) < g.of(n.v4):
		return "this is no single key: write cidr: " + key
	}
	addr, err := netip.ParseAddr(key)
	if prefix, wrong := netip.ParsePrefix(key); wrong == nil {
		addr, err = prefix.Addr(), nil
	}
	if addr = addr.Unmap().WithZone(""); err != nil {
		return "the key of this limit is an address, and this is none"
	}
	counted := addr.String()
	if int(n.bits) < addr.BitLen() {
		counted += "/" + strconv.Itoa(int(n.bits))
	}
	if key != counted {
		return "addresses are counted as netip writes them: write " + counted
	}
	return ""
}

// wrongNetworks reports what is wrong with the networks of a rule.
func (f *keyForm) wrongNetworks(p *ratelimit.Policy, r *rule) []Problem {
	switch {
	case f.elements == nil:
		return nil
	case len(f.elements) == 1:
		switch e := &f.elements[0]; {
		case e.address:
			return e.tooLong(r.networks)
		case e.text && !e.named:
			return nil
		}
	}
	return []Problem{r.problem("networks are for keys that are addresses, and the key of this limit is %s", show(p.Key))}
}

// tooLong reports networks that no key can lie in.
func (g grouping) tooLong(networks []writtenNetwork) (problems []Problem) {
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
