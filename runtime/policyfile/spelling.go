package policyfile

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// Numbers and durations are spelt as in directives; a test holds both to it.

// decimal parses digits, with '_' between them as Go allows it. It saturates, so that
// a range check finds what does not fit.
func decimal(s string) (int64, bool) {
	if s == "" || len(s) > 1 && s[0] == '0' {
		return 0, false
	}
	n := int64(0)
	for i := range len(s) {
		c := s[i]
		if c == '_' && i > 0 && i < len(s)-1 && s[i-1] != '_' {
			continue
		}
		if c < '0' || c > '9' {
			return 0, false
		}
		if digit := int64(c - '0'); n > (math.MaxInt64-digit)/10 {
			n = math.MaxInt64
		} else {
			n = n*10 + digit
		}
	}
	return n, true
}

var (
	thousands = regexp.MustCompile(`^\d{1,3}(?:[,']\d{3})+$`)
	exponent  = regexp.MustCompile(`^(\d+)[eE]\+?(\d)$`)
	rate      = regexp.MustCompile(`^(\d+)(?:/|per)(\d*)([a-z]+)$`)
)

// integerHint says what to write instead of text, which is no integer.
func integerHint(text string) string {
	const no = "not an integer in decimal digits"
	switch {
	case rate.MatchString(text):
		m := rate.FindStringSubmatch(text)
		if unit := unitNames[m[3]]; unit != "" {
			if m[2] == "" {
				m[2] = "1"
			}
			return no + ": write max: " + m[1] + " and window: " + m[2] + unit
		}
	case thousands.MatchString(text):
		return no + ": write " + strings.NewReplacer(",", "_", "'", "_").Replace(text)
	case exponent.MatchString(text):
		m := exponent.FindStringSubmatch(text)
		return no + ": write " + m[1] + strings.Repeat("0", int(m[2][0]-'0'))
	case strings.HasPrefix(text, "+"):
		return no + ": remove the +"
	case strings.HasPrefix(text, "0") && strings.Trim(text, "0123456789") == "":
		if digits := strings.TrimLeft(text, "0"); digits != "" {
			return no + ": write " + digits
		}
	}
	return no
}

// unitNames maps what people write for the units of a duration to the unit.
var unitNames = func() map[string]string {
	m := map[string]string{}
	for unit, names := range map[string]string{
		"ns": "ns nanosecond nanoseconds",
		"us": "us µs μs usec microsecond microseconds",
		"ms": "ms msec msecs millisecond milliseconds",
		"s":  "s sec secs second seconds",
		"m":  "m min mins minute minutes",
		"h":  "h hr hrs hour hours",
		"d":  "d day days",
		"w":  "w wk week weeks",
	} {
		for name := range strings.FieldsSeq(names) {
			m[name] = unit
		}
	}
	return m
}()

const (
	// maxDuration is the most bytes that anybody needs for a duration.
	maxDuration  = 64
	notADuration = "not a duration: write a number and a unit (ns, us, ms, s, m, h, d, w), like 90s or 1h30m"
)

var (
	durationPart = regexp.MustCompile(`^(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h|d|w)`)
	durationWord = regexp.MustCompile(`^([\d.]+)\s*(\pL+)$`)
	exponentForm = regexp.MustCompile(`^[\d.]+[eE][+-]?\d+(?:ns|us|µs|μs|ms|s|m|h|d|w)?$`)
)

// duration parses Go's syntax without a sign and with the units d and w. It returns
// what to write instead if that is no duration that a limit can have.
func duration(text string) (d time.Duration, hint string) {
	if len(text) > maxDuration || text == "" {
		return 0, notADuration
	}
	for rest := text; rest != ""; {
		m := durationPart.FindStringSubmatch(rest)
		if m == nil {
			return 0, durationHint(text)
		}
		rest = rest[len(m[0]):]
		if rest != "" && rest[0] != '.' && (rest[0] < '0' || rest[0] > '9') {
			return 0, durationHint(text)
		}
		unit, times := m[2], time.Duration(1)
		switch unit {
		case "d":
			unit, times = "h", 24
		case "w":
			unit, times = "h", 7*24
		}
		part, err := time.ParseDuration(m[1] + unit)
		if err != nil || part > ratelimit.MaxWindow/times {
			d = -1
		} else if d >= 0 {
			if d += part * times; d > ratelimit.MaxWindow {
				d = -1
			}
		}
	}
	switch {
	case d < 0:
		return 0, "the longest is 3660d"
	case d == 0:
		return 0, "a duration has a length: write one like 1m"
	case d%time.Microsecond != 0:
		return 0, "it must be a whole number of microseconds"
	}
	return d, ""
}

// durationHint says what to write instead of text, which cannot be read.
func durationHint(text string) string {
	lower := strings.ToLower(text)
	switch {
	case text == "0":
		return "a duration has a length and a unit: write one like 1m"
	case strings.HasPrefix(text, "-"):
		return "a duration cannot be negative: write one like 1m"
	case strings.HasPrefix(text, "+"):
		return "a duration has no sign: remove the +"
	case slices.Contains([]string{"inf", ".inf", "infinity", "infinite", "forever", "never", "none"}, lower):
		return "a duration ends: write one like 1m"
	case strings.Trim(text, "0123456789.") == "":
		return "the unit is missing: write " + text + "s, " + text + "m, " + text + "h or " + text + "d"
	case exponentForm.MatchString(text):
		return "a duration has no exponent: write its digits out, like 1000s"
	}
	m := durationWord.FindStringSubmatch(text)
	if m == nil {
		return notADuration
	}
	word := strings.ToLower(m[2])
	switch unit := unitNames[word]; {
	case m[2] == "M":
		return "M may be minutes or months: write " + m[1] + "m for minutes, or 30d for a month"
	case word == "mo" || strings.HasPrefix(word, "mon"):
		return "months differ in length: write 30d"
	case slices.Contains([]string{"y", "yr", "year", "years"}, word):
		return "years differ in length: write 365d"
	case unit != "":
		return "write " + m[1] + unit
	}
	return notADuration
}

// maxText is the greatest length of a text, in bytes.
const maxText = 512

// wrongText says what is wrong with one line of text, or "".
func wrongText(text string) string {
	if len(text) > maxText {
		return "the most is 512 bytes"
	}
	for _, r := range text {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return "it is one line of text, and it holds a character that cannot be printed: remove it"
		}
	}
	return ""
}
