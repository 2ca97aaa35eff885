package directive

import (
	"slices"
	"strings"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
)

// nearMiss reports a comment that reads like a directive and is none:
//
//	(?i)^(//|/\*)\s*ratelimit\s*:
//
// and then a verb, or a name and "=". gofmt turns a directive with a blank or an
// upper-case letter in the wrong place into such a comment without a word. Other
// text is prose.
func nearMiss(comment string, pos diag.Pos) (diag.Diagnostic, bool) {
	const word = "ratelimit"
	var s string
	block := strings.HasPrefix(comment, "/*")
	switch {
	case block:
		s = strings.TrimSuffix(comment[2:], "*/")
	case strings.HasPrefix(comment, "//"):
		s = comment[2:]
	default:
		return diag.Diagnostic{}, false
	}
	s = trimSpace(s)
	if len(s) < len(word) || !strings.EqualFold(s[:len(word)], word) {
		return diag.Diagnostic{}, false
	}
	s = trimSpace(s[len(word):])
	if !strings.HasPrefix(s, ":") {
		return diag.Diagnostic{}, false
	}
	text := trimSpace(s[1:])
	spelling, ok := respell(text)
	if !ok && block && strings.HasPrefix(comment, "/*ratelimit:") && text != "" && text[0] == comment[len("/*ratelimit:")] {
		// Nobody writes prose in this form.
		spelling, ok = text, true
	}
	if !ok {
		return diag.Diagnostic{}, false
	}
	spelling, _, _ = strings.Cut(spelling, "\n")
	return errNearMiss(pos, comment, block, Prefix+strings.TrimRight(spelling, " \t\r")), true
}

// respell returns text as a directive would have it if it begins with a verb or
// with a name and "=".
func respell(text string) (string, bool) {
	head := leadingName(text)
	if head == "" {
		return "", false
	}
	rest := text[len(head):]
	lower := strings.ToLower(head)
	switch {
	case findVerb(lower) != nil && !isAssign(rest):
		return lower + rest, true
	case isAssign(rest):
		return lower + rest, true
	}
	// "max = 5": with blanks it may be prose, unless there is an option of that name.
	known := slices.ContainsFunc(registry, func(v Verb) bool { return v.option(lower) != nil })
	if rest = trimSpace(rest); known && isAssign(rest) {
		return lower + "=" + trimSpace(rest[1:]), true
	}
	return "", false
}

// trimSpace removes what regular expressions call \s from the left of s.
func trimSpace(s string) string { return strings.TrimLeft(s, " \t\n\f\r") }
