package keyexpr

import (
	"net/textproto"
	"testing"

	"pgregory.net/rapid"
)

func TestHeadersAreSpelledAsTextprotoDoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.StringMatching("[a-zA-Z0-9!#$%&'*+.^_`|~-]{1,12}").Draw(rt, "name")
		if got, want := canonicalHeader(name), textproto.CanonicalMIMEHeaderKey(name); got != want {
			rt.Fatalf("canonicalHeader(%q) = %q, want %q", name, got, want)
		}
	})
}
