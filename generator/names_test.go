package generator

import (
	"go/token"
	"testing"

	"pgregory.net/rapid"
)

func TestLowerFirstLowersTheFirstWord(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"PlaceOrder": "placeOrder",
		"HTTPClient": "httpClient",
		"ID":         "id",
		"X":          "x",
		"XMLs":       "xmLs",
		"already":    "already",
		"Ärger":      "ärger",
		"":           "",
		"A1":         "a1",
	} {
		if got := lowerFirst(in); got != want {
			t.Errorf("lowerFirst(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestAllottedNamesAreIdentifiersThatNobodyElseHas(t *testing.T) {
	t.Parallel()
	words := rapid.SampledFrom([]string{"a", "a2", "len", "type", "error", "req", "_", "", "x y", "init", "any", "ä"})
	rapid.Check(t, func(t *rapid.T) {
		reserved := map[string]bool{}
		for _, w := range rapid.SliceOf(words).Draw(t, "reserved") {
			reserved[w] = true
		}
		outer := newFileScope(reserved)
		inner := outer.child()
		seen := map[string]bool{}
		for range rapid.IntRange(1, 40).Draw(t, "n") {
			s := rapid.SampledFrom([]*scope{outer, inner}).Draw(t, "scope")
			got := s.allot(words.Draw(t, "want"), "fallback")
			if !token.IsIdentifier(got) || got == "_" {
				t.Fatalf("%q is not an identifier", got)
			}
			if reserved[got] || seen[got] && s == inner {
				t.Fatalf("%q was taken", got)
			}
			seen[got] = true
			switch got {
			case "len", "error", "any", "init", "type":
				t.Fatalf("%q means something else", got)
			}
		}
	})
}

func TestACommentCannotBeEnded(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a\nfunc init() {}": "// afunc init() {}",
		"a\r*/ b":           "// a*/ b",
		"a\u2028b\u202ec":   "// abc",
		"\xff\x00a":         "// a",
		"":                  "//",
	} {
		if got := comment(in).GoString(); got != want {
			t.Errorf("comment(%q) = %q, want %q", in, got, want)
		}
	}
}
