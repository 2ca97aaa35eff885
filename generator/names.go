package generator

import (
	"go/token"
	"go/types"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// scope allots identifiers. What a scope or one of its parents has given out or
// reserved is never given out again, so a name means one thing wherever it can be
// seen. All names of a file are allotted before anything is rendered.
type scope struct {
	parent *scope
	used   map[string]bool
}

// newFileScope returns a scope in which keywords, the universe and the given
// identifiers are taken.
func newFileScope(reserved map[string]bool) *scope {
	s := &scope{used: map[string]bool{"_": true, "init": true, "main": true}}
	for _, name := range types.Universe.Names() {
		s.used[name] = true
	}
	for name := range reserved {
		s.used[name] = true
	}
	return s
}

// child returns a scope nested in s.
func (s *scope) child() *scope { return &scope{parent: s, used: map[string]bool{}} }

func (s *scope) taken(name string) bool {
	for ; s != nil; s = s.parent {
		if s.used[name] {
			return true
		}
	}
	return token.IsKeyword(name)
}

// reserve takes name without asking whether it is free.
func (s *scope) reserve(name string) { s.used[name] = true }

// allot returns want if it is free, else want with the first free number behind
// it, counting from 2. A want that is no identifier ("" or "_") becomes fallback.
func (s *scope) allot(want, fallback string) string {
	if want == "" || want == "_" || !token.IsIdentifier(want) && !token.IsKeyword(want) {
		want = fallback
	}
	name := want
	for n := 2; s.taken(name); n++ {
		name = want + strconv.Itoa(n)
	}
	s.used[name] = true
	return name
}

// lowerFirst turns the first word of an identifier to lower case: "PlaceOrder"
// becomes "placeOrder", "HTTPClient" becomes "httpClient", "ID" becomes "id".
func lowerFirst(s string) string {
	n := 0 // length of the leading run of upper case, in bytes
	last := 0
	for i, r := range s {
		if !unicode.IsUpper(r) {
			break
		}
		last = i
		n = i + utf8.RuneLen(r)
	}
	if n == 0 {
		return s
	}
	if n < len(s) && last > 0 {
		// The last capital of the run begins the next word.
		if r, _ := utf8.DecodeRuneInString(s[n:]); unicode.IsLower(r) {
			n = last
		}
	}
	return strings.ToLower(s[:n]) + s[n:]
}

// upperFirst turns the first letter to upper case.
func upperFirst(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}
