// Package rediskey knows what the counters of package redisstore are called and, as far
// as that can be told without the policy, what they hold. The store writes by it, and
// the command ratelimitgen-redis reads.
package rediskey

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// DefaultPrefix begins all names where nothing else is said.
const DefaultPrefix = "ratelimit:"

// Key is what the name of a counter says.
type Key struct {
	Prefix string
	// User is the caller's part; it is empty for the counter that all calls share.
	User string
	// Policy is the policy's ID.
	Policy string
	// Form is the way in which the policy counts, one of Forms.
	Form string
	// InHash is set if the counter is the field Field of the hash Hash, and else it is a
	// string of its own. String is the same for both.
	InHash bool
}

// forms are policies of each form.
var forms = []struct {
	name   string
	policy ratelimit.Policy
}{
	{"log", ratelimit.Policy{Algorithm: ratelimit.SlidingLog}},
	{"log+", ratelimit.Policy{Algorithm: ratelimit.SlidingLog, Count: true}},
	{"fixed", ratelimit.Policy{Algorithm: ratelimit.FixedWindow}},
	{"fixed+", ratelimit.Policy{Algorithm: ratelimit.FixedWindow, Count: true}},
	{"aligned", ratelimit.Policy{Algorithm: ratelimit.FixedWindow, Align: ratelimit.AlignDay}},
	{"bucket", ratelimit.Policy{Algorithm: ratelimit.TokenBucket}},
	{"bucket+", ratelimit.Policy{Algorithm: ratelimit.TokenBucket, Count: true}},
	{"interval", ratelimit.Policy{Algorithm: ratelimit.TokenBucket, Refill: ratelimit.Interval}},
	{"warm", ratelimit.Policy{Algorithm: ratelimit.TokenBucket, Warmup: time.Second}},
	{"sliding", ratelimit.Policy{Algorithm: ratelimit.SlidingWindow}},
	{"leaky", ratelimit.Policy{Algorithm: ratelimit.LeakyBucket}},
	{"concurrency", ratelimit.Policy{Algorithm: ratelimit.Concurrency}},
	{"quota", ratelimit.Policy{Algorithm: ratelimit.TimeQuota}},
}

// Forms returns the names of all forms.
func Forms() []string {
	names := make([]string, len(forms))
	for i, f := range forms {
		names[i] = f.name
	}
	return names
}

// PolicyOf returns a policy that a store counts by this form, or nil if there is no such
// form. It says enough to reset and block keys, and nothing about limits.
func PolicyOf(form, id string) *ratelimit.Policy {
	for _, f := range forms {
		if f.name == form {
			p := f.policy
			p.ID = id
			return &p
		}
	}
	return nil
}

// String returns the name, for a counter in a hash the one that it would have as a string,
// which is hash and field in one. Different keys have different names: the user's part ends at
// the first '}', and the form begins after the last ':'.
func (k Key) String() string {
	var space [192]byte // most names are shorter
	return string(k.Append(space[:0]))
}

// Append appends the name to b.
func (k Key) Append(b []byte) []byte {
	b = append(b, k.Prefix...)
	b = append(b, '{')
	if k.User == "" {
		// An empty tag would be no tag; a lone '%' stands for no other key.
		b = append(b, '%')
	}
	b = appendEscaped(b, k.User)
	b = append(b, '}')
	b = appendEscaped(b, k.Policy)
	b = append(b, ':')
	return append(b, k.Form...)
}

// SplitAt returns where the counter of a name is if counters are kept in hashes: the name
// of that of the user's key, which is at an index of the name, and the field.
func SplitAt(name string, user int) (hash, field string) {
	end := user + strings.IndexByte(name[user:], '}') + 1
	return name[:end], name[end:]
}

// Hash returns the name of the hash of the user's key.
func (k Key) Hash() string {
	hash, _ := SplitAt(k.String(), len(k.Prefix)+1)
	return hash
}

// Field returns what the counter is called in the hash.
func (k Key) Field() string {
	_, field := SplitAt(k.String(), len(k.Prefix)+1)
	return field
}

// Parse returns what a name under the prefix says, and whether it is one.
func Parse(prefix, name string) (Key, bool) {
	k, ok := parse(prefix, name)
	if !ok || PolicyOf(k.Form, "") == nil {
		return Key{}, false
	}
	return k, true
}

// ParseUnknown is Parse for names of a form that is not one of Forms, but may be one of
// another version of this package.
func ParseUnknown(prefix, name string) (Key, bool) {
	k, ok := parse(prefix, name)
	if !ok || PolicyOf(k.Form, "") != nil || k.Policy == "" || k.Form == "" {
		return Key{}, false
	}
	return k, true
}

// parse reads a name of any form.
func parse(prefix, name string) (Key, bool) {
	k, rest, ok := parseUser(prefix, name)
	colon := strings.LastIndexByte(rest, ':')
	if !ok || colon < 0 {
		return Key{}, false
	}
	k.Form = rest[colon+1:]
	k.Policy, ok = unescape(rest[:colon])
	if !ok || k.String() != name {
		return Key{}, false
	}
	return k, true
}

// parseUser reads the beginning of a name, up to the end of the user's key.
func parseUser(prefix, name string) (k Key, rest string, ok bool) {
	rest, ok = strings.CutPrefix(name, prefix+"{")
	if !ok {
		return Key{}, "", false
	}
	user, rest, ok := strings.Cut(rest, "}")
	if !ok {
		return Key{}, "", false
	}
	k = Key{Prefix: prefix}
	if user != "%" {
		k.User, ok = unescape(user)
	}
	return k, rest, ok
}

// ParseHash returns what the name of a hash under the prefix says, which is neither policy
// nor form, and whether it is one.
func ParseHash(prefix, name string) (Key, bool) {
	k, _, ok := parseUser(prefix, name)
	k.InHash = true
	if !ok || k.Hash() != name {
		return Key{}, false
	}
	return k, true
}

// ParseField is Parse for a field of k's hash.
func (k Key) ParseField(field string) (Key, bool) {
	return inHash(Parse(k.Prefix, k.Hash()+field))
}

// ParseUnknownField is ParseUnknown for a field of k's hash.
func (k Key) ParseUnknownField(field string) (Key, bool) {
	return inHash(ParseUnknown(k.Prefix, k.Hash()+field))
}

func inHash(k Key, ok bool) (Key, bool) {
	k.InHash = ok
	return k, ok
}

// Pattern returns the glob pattern, as SCAN takes it, of the names of a user's key, nil for
// all: those of its counters and that of its hash. There may be others that match it.
func Pattern(prefix string, user *string) string {
	b := []byte(globQuote(prefix) + "{")
	switch {
	case user == nil:
		b = append(b, '*')
	case *user == "":
		b = append(b, '%')
	default:
		b = append(b, globQuote(string(appendEscaped(nil, *user)))...)
	}
	return string(b) + "}*"
}

// FieldPattern is the Pattern of the fields of a policy, nil for all, as HSCAN takes it.
func FieldPattern(policy *string) string {
	if policy == nil {
		return "*"
	}
	return globQuote(string(appendEscaped(nil, *policy))) + ":*"
}

func globQuote(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}

// appendEscaped appends text in printable ASCII without braces, injectively.
func appendEscaped(b []byte, text string) []byte {
	const hex = "0123456789ABCDEF"
	for i := range len(text) {
		switch c := text[i]; {
		case c <= ' ', c > '~', c == '%', c == '{', c == '}':
			b = append(b, '%', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return b
}

// unescape is the inverse of appendEscaped. What that does not write, it may take for
// something else.
func unescape(text string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			b.WriteByte(text[i])
			continue
		}
		if i+2 >= len(text) {
			return "", false
		}
		var c byte
		if n, err := fmt.Sscanf(text[i+1:i+3], "%02X", &c); n != 1 || err != nil {
			return "", false
		}
		b.WriteByte(c)
		i += 2
	}
	return b.String(), true
}

// State is what a counter holds, as far as it says that by itself.
type State struct {
	// Blocked and Locked are until when the key is refused; zero if it is not.
	Blocked, Locked time.Time
	// Used is the number of units that are charged, of some forms as of the last call,
	// or -1 if that depends on the policy.
	Used int64
	// Last is when a call was last charged, or the window began; zero if it is not said.
	Last time.Time
	// Ahead is the number of calls that were reserved, as of the last charge.
	Ahead int64
	// Places are those of a concurrency limit that are taken.
	Places []Place
	// Known is set if all of this could be read.
	Known bool
}

// Place is for as many calls as it has units, or for one that waits in line if it has none.
type Place struct {
	Until time.Time // when it is given back, or the call forgotten, unless that is renewed
	Units int64
}

// records are the letters that states of some forms begin with, those with a lock, calls
// that have not ended, and the like.
var records = map[string]int64{
	"log+": 'l', "fixed+": 'f', "aligned": 'a', "bucket+": 'b', "interval": 'i', "warm": 'w',
	"sliding": 's', "leaky": 'q', "concurrency": 'c', "quota": 't',
}

// ParseState reads a state of a form.
func ParseState(form string, raw []byte) State {
	s := State{Used: -1}
	number := func(n int) (v int64, ok bool) {
		if len(raw) < n {
			return 0, false
		}
		var b [8]byte
		copy(b[8-n:], raw)
		raw = raw[n:]
		return int64(binary.BigEndian.Uint64(b[:])), true
	}
	at := func() (time.Time, bool) {
		µs, ok := number(7)
		return time.UnixMicro(µs), ok
	}
	var ok bool
	letter, _ := number(1)
	if letter == 'X' {
		if s.Blocked, ok = at(); !ok {
			return s
		}
		if len(raw) == 0 {
			s.Used, s.Known = 0, true
			return s
		}
		letter, _ = number(1)
	}
	if letter == 'R' {
		const size = 27 // of each call
		_, _ = at()
		s.Ahead, _ = number(2)
		if int64(len(raw)) < size*s.Ahead {
			return s
		}
		if raw = raw[size*s.Ahead:]; len(raw) == 0 {
			s.Used, s.Known = 0, s.Ahead > 0
			return s
		}
		letter, _ = number(1)
	}
	switch {
	case form == "fixed" && letter == 'F' && len(raw) == 11:
		s.Last, _ = at()
		s.Used, s.Known = number(4)
	case form == "log" && letter == 'L' && len(raw) >= 10:
		width, _ := number(1)
		s.Last, _ = at()
		before, _ := number(2)
		if n := len(raw) - 2; n > 0 && width >= 3 && width <= 7 && (n+2)%int(width+2) == 0 {
			s.Used, s.Known = int64(uint16(binary.BigEndian.Uint16(raw[n:]))-uint16(before)), true
		}
	case form == "bucket" && letter == 'B' && len(raw) == 29:
		s.Last, s.Known = at()
	case letter != 0 && letter == records[form]:
		if locks, _ := number(1); locks > 0 {
			_, _ = at()
			s.Locked, _ = at()
		}
		s.Last, s.Known = at()
		if form == "fixed+" || form == "aligned" || form == "quota" {
			_, _ = number(7)
			s.Used, ok = number(7)
			s.Known = s.Known && ok
		}
		if form == "concurrency" {
			_, _ = number(7)
			n, ok := number(4)
			if !ok || n != int64(len(raw)) || n%19 != 0 {
				s.Known = false
				return s
			}
			for len(raw) > 0 {
				var p Place
				_, _ = number(8)
				p.Until, _ = at()
				p.Units, _ = number(4)
				s.Places = append(s.Places, p)
			}
		}
	}
	return s
}
