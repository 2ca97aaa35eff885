package rediskey

import (
	"testing"

	"pgregory.net/rapid"
)

func TestParseIsTheInverseOfString(t *testing.T) {
	t.Parallel()
	text := rapid.OneOf(rapid.StringOfN(rapid.RuneFrom([]rune("a%{}:*?[]\\2 \x00é\x1b")), 0, 6, -1), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		k := Key{text.Draw(t, "prefix"), text.Draw(t, "user"), text.Draw(t, "policy"), rapid.SampledFrom(Forms()).Draw(t, "form")}
		if got, ok := Parse(k.Prefix, k.String()); !ok || got != k {
			t.Fatalf("%q is parsed as %+v, %v; want %+v", k.String(), got, ok, k)
		}
	})
}

func TestNamesOfOtherFormsAreTold(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]Key{
		"p:{k}a:later": {"p:", "k", "a", "later"},
		"p:{%}a:b:l+":  {"p:", "", "a:b", "l+"},
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
		k := Key{"p*:", text.Draw(t, "user"), text.Draw(t, "policy"), "log"}
		other := Key{"p*:", text.Draw(t, "other user"), text.Draw(t, "other policy"), "fixed"}
		for _, c := range []struct {
			policy, user *string
			other        bool
		}{
			{nil, nil, true},
			{&k.Policy, nil, other.Policy == k.Policy},
			{nil, &k.User, other.User == k.User},
			{&k.Policy, &k.User, other.User == k.User && other.Policy == k.Policy},
		} {
			pattern := Pattern("p*:", c.policy, c.user)
			if !matches(pattern, k.String()) {
				t.Fatalf("%s does not match %s", pattern, k)
			}
			if matches(pattern, other.String()) && !c.other {
				// A policy's ID may end like another one with a form; Parse tells them apart.
				if got, _ := Parse("p*:", other.String()); got != other {
					t.Fatalf("%s matches %s", pattern, other)
				}
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
