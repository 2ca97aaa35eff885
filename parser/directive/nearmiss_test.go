package directive

import (
	"testing"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
)

func TestMisspeltPrefixesAreNearMisses(t *testing.T) {
	t.Parallel()
	for comment, want := range map[string]string{
		"//ratelimt:max=5 key=ip":   "//ratelimit:max=5 key=ip",
		"//ratelimits:limit max=5":  "//ratelimit:limit max=5",
		"//rate-limit:off":          "//ratelimit:off",
		"//RateLimit max=5":         "//ratelimit:max=5",
		"//ratelimit max=5":         "//ratelimit:max=5",
		"// ratelimit max=5":        "//ratelimit:max=5",
		"//ratelimit=5":             "//ratelimit:max=5",
		"///ratelimit:max=5":        "//ratelimit:max=5",
		"//ratelimit":               "//ratelimit:max=5 window=1m",
		"//rate_limit: window=1m":   "//ratelimit:window=1m",
		"// RateLimit max=5":        "//ratelimit:max=5",
		"// RateLimits: max=5 each": "",
		"// rate_limit: window=1m":  "",
		"//ratelimiter:name=x":      "",
		"//ratelimitr :max=5\r":     "//ratelimit:max=5",
		"//ratelimit\f":             "//ratelimit:max=5 window=1m",
		"//rAtelim\f":               "",
		"// ratelimit":              "",
		"// ratelimiter":            "",
		"// RateLimiter: limit it":  "",
		"// Ratelimit the callers.": "",
		"//ratelimit this":          "",
		"// ratelimit x=5 is bad":   "",
		"//go:generate x":           "",
		"//nolint:max=5":            "",
		"// rate limit: max=5":      "",
		"/////////////////////////": "",
		"//":                        "",
	} {
		d, diags := Parse(comment, diag.Pos{File: "p.go", Line: 1, Col: 1})
		switch {
		case want == "" && (d != nil || len(diags) > 0):
			t.Errorf("%q: %v", comment, diags)
		case want != "":
			text := "p.go:1:1: error: this comment is prose to Go tools and limits nothing: write " + want +
				" on a line of its own, or word it so that it does not read as a directive [near-miss]"
			if len(diags) != 1 || diags[0].String() != text {
				t.Errorf("%q: %v, want %s", comment, diags, text)
			}
		}
	}
}
