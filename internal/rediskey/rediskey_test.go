package rediskey

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// anyKey has texts which a caller may choose to look like parts of a name.
var anyKey = rapid.Custom(func(t *rapid.T) Key {
	text := rapid.OneOf(rapid.StringOfN(rapid.RuneFrom([]rune("a%{}:*?[]\\2 \x00é\x1b")), 0, 6, -1), rapid.String())
	return Key{Prefix: text.Draw(t, "prefix"), User: text.Draw(t, "user"), Policy: text.Draw(t, "policy"), Form: rapid.SampledFrom(Forms()).Draw(t, "form")}
})

func TestParseIsTheInverseOfString(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		k := anyKey.Draw(t, "key")
		if got, ok := Parse(k.Prefix, k.String()); !ok || got != k {
			t.Fatalf("%q is parsed as %+v, %v; want %+v", k.String(), got, ok, k)
		}
		// The name of a hash is none of a string's, and the other way round.
		if got, ok := ParseHash(k.Prefix, k.String()); ok {
			t.Fatalf("%q is taken for the hash of %+v", k.String(), got)
		}
	})
}

func TestParsingHashAndFieldIsTheInverse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		k := anyKey.Draw(t, "key")
		k.InHash = true
		hash, ok := ParseHash(k.Prefix, k.Hash())
		if want := (Key{Prefix: k.Prefix, User: k.User, InHash: true}); !ok || hash != want {
			t.Fatalf("%q is parsed as %+v, %v; want %+v", k.Hash(), hash, ok, want)
		}
		if got, ok := hash.ParseField(k.Field()); !ok || got != k {
			t.Fatalf("%q of %q is parsed as %+v, %v; want %+v", k.Field(), k.Hash(), got, ok, k)
		}
		if got := k.Hash() + k.Field(); got != k.String() {
			t.Fatalf("hash and field are %q, and the name %q", got, k.String())
		}
		if got, ok := Parse(k.Prefix, k.Hash()); ok {
			t.Fatalf("%q is taken for %+v", k.Hash(), got)
		}
		if got, ok := ParseUnknown(k.Prefix, k.Hash()); ok {
			t.Fatalf("%q is taken for %+v", k.Hash(), got)
		}
	})
}

// What somebody else wrote is taken for a counter only if a store would have written just
// that.
func TestTextsOfOthersAreNotTakenForOthers(t *testing.T) {
	t.Parallel()
	text := rapid.OneOf(rapid.StringOfN(rapid.RuneFrom([]rune("ak%{}:+07dD \x00é")), 0, 8, -1), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		name := text.Draw(t, "prefix") + "{" + text.Draw(t, "rest")
		if rapid.Bool().Draw(t, "ends") {
			name += "}"
		}
		prefix := name[:rapid.IntRange(0, len(name)).Draw(t, "of prefix")]
		hash, ok := ParseHash(prefix, name)
		if ok && hash.Hash() != name {
			t.Fatalf("%q under %q is taken for %+v", name, prefix, hash)
		}
		if !ok {
			hash = Key{Prefix: prefix, User: "k", InHash: true}
		}
		field := text.Draw(t, "field")
		if rapid.Bool().Draw(t, "of a form") {
			field += rapid.SampledFrom(Forms()).Draw(t, "form")
		}
		for _, parse := range []func(string) (Key, bool){hash.ParseField, hash.ParseUnknownField} {
			if k, ok := parse(field); ok && (k.Hash() != hash.Hash() || k.Field() != field || !k.InHash) {
				t.Fatalf("%q of %q is taken for %+v", field, hash.Hash(), k)
			}
		}
	})
}

func TestNamesOfOthersAreNotHashes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"", "p:", "p:{", "p:{k", "p:}", "p:{}", "p:k}", "q:{k}", "{k}", "p:{k}a", "p:{k}a:log", "p:{k}}", "p:{{k}", "p:{k}{l}", "p:{k} ", "p:{a b}",
		"p:{%4}", "p:{%41}", "p:{%7d}", "p:{%+1}", "p:{k%}", "p:{%%}", "p:p:{k}", "p:{k}:check",
	} {
		if k, ok := ParseHash("p:", name); ok || k != (Key{}) {
			t.Errorf("%q is taken for %+v, %v", name, k, ok)
		}
	}
	for name, want := range map[string]string{"p:{%}": "", "p:{%25}": "%", "p:{%7D}": "}", "p:{a:b}": "a:b"} {
		if k, ok := ParseHash("p:", name); !ok || k.User != want {
			t.Errorf("%q: %+v, %v; want %q", name, k, ok, want)
		}
	}
}

func TestFields(t *testing.T) {
	t.Parallel()
	hash := Key{Prefix: "p:", User: "k", InHash: true}
	for field, want := range map[string]struct {
		policy, form string
		unknown      bool
	}{
		"a:log":        {"a", "log", false},
		"a:b:bucket+":  {"a:b", "bucket+", false},
		"a%7D:log":     {"a}", "log", false},
		":log":         {"", "log", false},
		"a:later":      {"a", "later", true},
		"a:b:l+":       {"a:b", "l+", true},
		"a:a\x1bb":     {"a", "a\x1bb", true},
		":check":       {},
		":later":       {},
		"a:":           {},
		":":            {},
		"":             {},
		"a":            {},
		"log":          {},
		"a b:log":      {},
		"a%41:log":     {},
		"a%7d:log":     {},
		"{k}a:log":     {},
		"}a:log":       {},
		"p:{k}a:log":   {},
		"a\x00:log":    {},
		"a%:log":       {},
		"\xff\xfe:log": {},
	} {
		k, known := hash.ParseField(field)
		u, unknown := hash.ParseUnknownField(field)
		if unknown {
			k = u
		}
		found := want.form != ""
		if known != (found && !want.unknown) || unknown != want.unknown || k.Policy != want.policy || k.Form != want.form || k.InHash != found || (k.User == "k") != found {
			t.Errorf("%q: %+v, known %v, unknown %v; want %+v", field, k, known, unknown, want)
		}
	}
}

func TestNamesOfOtherFormsAreTold(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]Key{
		"p:{k}a:later": {Prefix: "p:", User: "k", Policy: "a", Form: "later"},
		"p:{%}a:b:l+":  {Prefix: "p:", Policy: "a:b", Form: "l+"},
		"p:{k}a:log":   {}, // is known
		"p:{%}:check":  {}, // is of no policy
		"p:{k}a:":      {},
		"p:{k}a":       {},
		"q:{k}a:later": {},
	} {
		if k, ok := ParseUnknown("p:", name); k != want || ok != (want != Key{}) {
			t.Errorf("%q: %+v, %v; want %+v", name, k, ok, want)
		}
	}
}

func TestNamesOfOthersAreNotKeys(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"", "p:", "p:{", "p:{}a:log", "p:{k}a", "p:{k}a:", "p:{k}a:now", "p:{k}:check", "p:k}a:log", "q:{k}a:log", "p:{k}a b:log", "p:{%}}a:log",
		"p:{%4}a:log", "p:{%41}a:log", "p:{%7d}a:log", "p:{%+1}a:log", "p:{k}a%:log", "{k}a:log",
	} {
		if k, ok := Parse("p:", name); ok {
			t.Errorf("%q is taken for %+v", name, k)
		}
	}
}

// matches is how Redis compares a name with a pattern that has '*', '\\' and text only.
func matches(pattern, name string) bool {
	switch {
	case pattern == "":
		return name == ""
	case pattern[0] == '*':
		return matches(pattern[1:], name) || name != "" && matches(pattern, name[1:])
	case pattern[0] == '\\' && len(pattern) > 1:
		pattern = pattern[1:]
	case pattern[0] == '?' || pattern[0] == '[':
		panic("not escaped: " + pattern)
	}
	return name != "" && name[0] == pattern[0] && matches(pattern[1:], name[1:])
}

func TestPatternsFindTheirKeys(t *testing.T) {
	t.Parallel()
	text := rapid.StringOfN(rapid.RuneFrom([]rune("ab*?[]\\:%{")), 0, 3, -1)
	rapid.Check(t, func(t *rapid.T) {
		k := Key{Prefix: "p*:", User: text.Draw(t, "user"), Policy: text.Draw(t, "policy"), Form: "log"}
		other := Key{Prefix: "p*:", User: text.Draw(t, "other user"), Policy: text.Draw(t, "other policy"), Form: "fixed"}
		for _, c := range []struct {
			pattern, name, other string
			same                 bool
		}{
			{Pattern("p*:", nil), k.String(), other.String(), true},
			{Pattern("p*:", nil), k.Hash(), other.Hash(), true},
			{Pattern("p*:", &k.User), k.String(), other.String(), other.User == k.User},
			{Pattern("p*:", &k.User), k.Hash(), other.Hash(), other.User == k.User},
			{FieldPattern(nil), k.Field(), other.Field(), true},
			// A policy's ID may begin like another one with a colon; ParseField tells them apart.
			{FieldPattern(&k.Policy), k.Field(), other.Field(), strings.HasPrefix(other.Policy+":", k.Policy+":")},
		} {
			if !matches(c.pattern, c.name) {
				t.Fatalf("%s does not match %s", c.pattern, c.name)
			}
			if matches(c.pattern, c.other) != c.same {
				t.Fatalf("%s and %s: want a match %v", c.pattern, c.other, c.same)
			}
		}
	})
}

func TestStatesThatCannotBeReadAreNotKnown(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "raw")
		s := ParseState(rapid.SampledFrom(append(Forms(), "other")).Draw(t, "form"), raw)
		if s.Used < -1 {
			t.Fatalf("%q: %+v", raw, s)
		}
	})
	if s := ParseState("log", []byte("hello")); s.Known {
		t.Errorf("%+v", s)
	}
}
