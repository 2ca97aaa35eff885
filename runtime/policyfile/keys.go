package policyfile

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"path/filepath"
	"strings"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

const (
	optKey      = "key"
	optCIDR     = "cidr"
	optCIDRFile = "cidr-file"
)

// keyOptions are the options of an exception: one that says whose calls, and one that
// says how many.
var keyOptions = []option{
	{
		name: optKey, kind: mentioned,
		aliases: []string{"keys", "value", "user", "tenant"},
		doc:     "the key, or a list of its elements",
		example: "[acme, 12]",
	},
	{
		name: optCIDR, kind: mentioned,
		aliases: []string{"ip", "net", "network", "networks", "cidrs"},
		doc:     "a network or an address, or a list of them, for keys that are addresses",
		example: "10.0.0.0/8",
	},
	{
		name: optCIDRFile, kind: mentioned,
		aliases: []string{"file", "ip-file", "cidrs-file"},
		doc:     "a file of networks and addresses, one a line, with comments behind `#`; relative to the YAML file",
		example: "blocked.txt",
	},
	{
		name: optMax, kind: units, words: []string{wordUnlimited, wordBlocked}, min: 1, max: ratelimit.MaxLimit,
		aliases: []string{"limit", "maximum", "rate"},
		doc:     "what `max` of the limit is for these keys",
		example: "1000",
	},
	{
		name: optTimes, kind: integer, min: 1, max: ratelimit.MaxLimit,
		aliases: []string{"factor", "multiply", "multiplier"},
		doc:     "how many times `max` of the limit these keys have",
		example: "10",
	},
}

// rule is an exception: the limit of some keys.
type rule struct {
	place
	// exact is the key as it is counted; "" if the rule is about networks.
	exact    string
	plain    string   // exact, not escaped if it is of one element
	texts    []string // the elements of exact
	networks []writtenNetwork
	limit    value // if times is 0
	times    int64
	limitAt  place
}

type writtenNetwork struct {
	place
	prefix netip.Prefix
}

// maxCIDRFile bounds a file of networks, and maxWrong how many problems of one are
// reported.
const (
	maxCIDRFile = 64 << 20
	maxWrong    = 10
)

// rules reads the exceptions of a limit.
func (f *reading) rules(n *node) []rule {
	if n.kind != sequence || len(n.items) == 0 {
		if n.kind != refused {
			f.report(n.place, "keys is a list of exceptions, each with key, cidr or cidr-file and max or times, not %s", n.what())
		}
		return nil
	}
	var rules []rule
	for _, item := range n.items {
		if r, ok := f.rule(item); ok {
			rules = append(rules, r)
		}
	}
	m := newMatcher(rules)
	for i := range rules {
		if first := m.covering(&rules[i], i); first >= 0 {
			f.report(rules[i].place, "this exception is never reached: that in line %d has all of its keys, and the first that matches counts", rules[first].line)
		}
	}
	return rules
}

func (f *reading) rule(n *node) (r rule, ok bool) {
	if n.kind != mapping {
		if n.kind != refused {
			f.report(n.place, "an exception is a mapping like {key: acme, max: 1000}, not %s", n.what())
		}
		return r, false
	}
	before := len(f.problems)
	r.place = n.place
	var whose, howMany *pair
	for i := range n.pairs {
		p := &n.pairs[i]
		o := find(keyOptions, p.key.text)
		if o == nil {
			f.report(p.key.place, "%s", unknownOption(keyOptions, p.key.text))
			continue
		}
		of := &whose
		if o.kind != mentioned {
			of = &howMany
		}
		if *of != nil {
			f.report(p.key.place, "%s beside %s: an exception has one of them", o.name, (*of).key.text)
			continue
		}
		*of = p
		switch o.name {
		case optKey:
			r.exact, r.texts = f.exactKey(p.value)
			if r.plain = r.exact; len(r.texts) == 1 {
				r.plain = r.texts[0]
			}
		case optCIDR:
			r.networks = f.cidr(p.value)
		case optCIDRFile:
			r.networks = f.cidrFile(p.value)
		case optTimes:
			v, _ := f.value(o, p.value)
			r.times, r.limitAt = v.n, p.value.place
		default:
			r.limit, _ = f.value(o, p.value)
			r.limitAt = p.value.place
		}
	}
	if len(f.problems) > before {
		return r, false
	}
	switch {
	case whose == nil:
		f.report(n.place, "the exception does not say whose calls it is for: add key, cidr or cidr-file")
	case howMany == nil:
		f.report(n.place, "the exception does not say how many calls: add max or times")
	}
	return r, len(f.problems) == before
}

// exactKey returns a key as it is counted where text is escaped, and its elements.
func (f *reading) exactKey(n *node) (exact string, texts []string) {
	elements := []*node{n}
	if n.kind == sequence {
		elements = n.items
	}
	key := []byte{}
	for _, e := range elements {
		switch {
		case e.kind == refused:
			return "", nil
		case e.kind != scalar:
			f.report(e.place, "a key is a text or a number, or a list of them, not %s", e.what())
			return "", nil
		case e.text == "":
			f.report(e.place, "a key is not empty: on-empty says what becomes of calls without one")
			return "", nil
		}
		key = ratelimit.AppendText(key, e.text)
		texts = append(texts, e.text)
	}
	if len(key) == 0 {
		f.report(n.place, "the list of the key's elements is empty")
	}
	return string(key), texts
}

func (f *reading) cidr(n *node) (all []writtenNetwork) {
	items := []*node{n}
	if n.kind == sequence {
		items = n.items
	}
	if len(items) == 0 {
		f.report(n.place, "the list of networks is empty")
	}
	for _, item := range items {
		switch item.kind {
		case refused:
			continue
		case scalar:
			prefix, wrong := parsePrefix(item.text)
			if wrong == "" {
				all = append(all, writtenNetwork{item.place, prefix})
				continue
			}
			f.report(item.place, "cidr: %s: %s", show(item.text), wrong)
		default:
			f.report(item.place, "cidr is a network like 10.0.0.0/8 or a list of them, not %s", item.what())
		}
	}
	return all
}

// cidrFile reads a file of networks.
func (f *reading) cidrFile(n *node) (all []writtenNetwork) {
	if n.kind != scalar || n.text == "" {
		if n.kind != refused {
			f.report(n.place, "cidr-file is the name of a file, not %s", n.what())
		}
		return nil
	}
	path := filepath.FromSlash(n.text)
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(f.File.name), path)
	}
	data, err := f.open(path, maxCIDRFile)
	if err != nil {
		var reason *fs.PathError
		if errors.As(err, &reason) {
			err = reason.Err
		}
		f.report(n.place, "cidr-file %s: %v", show(path), err)
		return nil
	}
	wrong := 0
	for number, line := range bytes.Split(data, []byte("\n")) {
		text, _, _ := strings.Cut(string(line), "#")
		at := place{path, number + 1, 1 + len(text) - len(strings.TrimLeft(text, " \t"))}
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		prefix, problem := parsePrefix(text)
		if problem == "" {
			all = append(all, writtenNetwork{at, prefix})
			continue
		}
		if wrong++; wrong > maxWrong {
			f.report(at, "and more lines that are no networks")
			break
		}
		f.report(at, "%s: %s", show(text), problem)
	}
	return all
}

// parsePrefix reads a network or an address, or says what is wrong with it. One of
// IPv4 that is written in IPv6 is one of IPv4.
func parsePrefix(s string) (netip.Prefix, string) {
	const no = "not a network: write one like 10.0.0.0/8 or 2001:db8::/32, or an address"
	var p netip.Prefix
	if addr, err := netip.ParseAddr(s); err == nil {
		if addr.Zone() != "" {
			return p, "a network has no zone: remove what begins with %"
		}
		p = netip.PrefixFrom(addr, addr.BitLen())
	} else if p, err = netip.ParsePrefix(s); err != nil {
		return p, no
	}
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	if p != p.Masked() {
		return p, fmt.Sprintf("it has bits beyond its length: write %v for the network, or %v for the address", p.Masked(), p.Addr())
	}
	return p, ""
}

// digest tells whether two lists of rules are the same.
func digest(rules []rule) (sum [sha256.Size]byte) {
	if len(rules) == 0 {
		return sum
	}
	h := sha256.New()
	for i := range rules {
		r := &rules[i]
		fmt.Fprintf(h, "%q %v %d", r.exact, r.limit, r.times)
		for _, n := range r.networks {
			fmt.Fprintf(h, " %v", n.prefix)
		}
		fmt.Fprintln(h)
	}
	return [sha256.Size]byte(h.Sum(nil))
}
