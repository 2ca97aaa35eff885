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
	const word = prefixWord
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

// misspelt reports a comment whose first word was meant to be ratelimit, or that
// lacks the colon: //ratelimt:max=5, ///rate-limit:max=5, //ratelimit max=5. What may
// be prose is reported only if it goes on with an option and "=".
func misspelt(comment string, pos diag.Pos) (diag.Diagnostic, bool) {
	rest, ok := strings.CutPrefix(comment, "//")
	if !ok {
		return diag.Diagnostic{}, false
	}
	text := trimSpace(strings.TrimLeft(rest, "/"))
	tight := len(text) == len(strings.TrimLeft(rest, "/")) // no blank before the word
	word := text[:len(text)-len(strings.TrimLeftFunc(text, isPrefixRune))]
	if word == "" || diag.Suggest(word, []string{prefixWord}) == "" {
		return diag.Diagnostic{}, false
	}
	exact := word == prefixWord
	// Prose is about rate limits and rate limiters, and other tools are called so.
	if !strings.EqualFold(word, prefixWord) && (!tight || strings.HasPrefix(strings.ToLower(word), prefixWord+"er")) {
		return diag.Diagnostic{}, false
	}
	text = strings.TrimRight(text[len(word):], " \t\r")
	var spelling string
	switch body := trimSpace(text); {
	case body == "":
		spelling, ok = "max=5 window=1m", exact && tight
	case text[0] == '=':
		spelling, ok = "max"+text, tight
	case body[0] == ':':
		spelling, ok = respell(trimSpace(body[1:]))
		ok = ok && (tight || setsOption(spelling))
	case len(body) < len(text):
		spelling, ok = respell(body)
		ok = ok && setsOptions(spelling)
	default:
		ok = false
	}
	if !ok {
		return diag.Diagnostic{}, false
	}
	return errNearMiss(pos, comment, false, Prefix+spelling), true
}

// setsOptions reports whether each word of text sets an option.
func setsOptions(text string) bool {
	for word := range strings.FieldsSeq(text) {
		if !setsOption(word) {
			return false
		}
	}
	return true
}

// setsOption reports whether text begins with an option and "=".
func setsOption(text string) bool {
	name := leadingName(text)
	return isAssign(text[len(name):]) && slices.ContainsFunc(registry, func(v Verb) bool { return v.option(name) != nil })
}

// prefixWord is Prefix without its punctuation.
const prefixWord = "ratelimit"

func isPrefixRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || r == '-' || r == '_'
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
