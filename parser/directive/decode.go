package directive

import (
	"cmp"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// decoder turns values into what their type says. A method that reports returns
// a zero value.
type decoder struct {
	verb  *Verb
	diags diag.List
}

func (dec *decoder) report(d diag.Diagnostic) { dec.diags.Add(d) }

// count decodes a Count.
func (dec *decoder) count(a *Assignment, o *Option) int64 {
	text := a.Value.Text
	if slices.Contains(o.Values, text) {
		if text == wordBlocked {
			return ratelimit.Blocked
		}
		return ratelimit.Unlimited
	}
	n, ok := decimal(strings.TrimPrefix(text, "-"))
	switch {
	case !ok:
		dec.report(errInteger(a, o, integerHint(a, o)))
	case n == 0 || text[0] == '-':
		dec.report(errNotPositive(a, o))
	case n > ratelimit.MaxLimit:
		dec.report(errTooMany(a, ratelimit.MaxLimit))
	default:
		return n
	}
	return 0
}

// cost decodes a Cost that is a number.
func (dec *decoder) cost(a *Assignment, o *Option) int64 {
	text := a.Value.Text
	n, ok := decimal(strings.TrimPrefix(text, "-"))
	switch {
	case !ok:
		dec.report(errInteger(a, o, integerHint(a, o)))
	case text[0] == '-':
		dec.report(errNegativeCost(a))
	case n > ratelimit.MaxLimit:
		dec.report(errTooMany(a, ratelimit.MaxLimit))
	default:
		return n
	}
	return 0
}

var (
	rateForm    = regexp.MustCompile(`^(\d+)(?:/|per)(\d*)(ns|us|ms|s|m|h|d|w|[a-z]+)$`)
	thousands   = regexp.MustCompile(`^\d{1,3}(?:[,']\d{3})+$`)
	leadingZero = regexp.MustCompile(`^0\d+$`)
	exponent    = regexp.MustCompile(`^(\d+)[eE]\+?([0-9])$`)
)

// integerHint says what to write instead of a's value, which is no integer.
func integerHint(a *Assignment, o *Option) string {
	text := a.Value.Text
	switch {
	case rateForm.MatchString(text) && o.Name == optMax:
		m := rateForm.FindStringSubmatch(text)
		unit, ok := unitNames[m[3]]
		if !ok {
			return ""
		}
		if m[2] == "" {
			m[2] = "1"
		}
		return ": write max=" + m[1] + " window=" + m[2] + unit
	case thousands.MatchString(text):
		return ": write " + strings.NewReplacer(",", "_", "'", "_").Replace(text)
	case leadingZero.MatchString(text):
		if digits := strings.TrimLeft(text, "0"); digits != "" {
			return ": write " + digits
		}
	case exponent.MatchString(text):
		m := exponent.FindStringSubmatch(text)
		return ": write " + m[1] + strings.Repeat("0", int(m[2][0]-'0'))
	case strings.HasPrefix(text, "+"):
		return ": remove the +"
	}
	return ""
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

var durationPart = regexp.MustCompile(`^(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h|d|w)`)

// duration decodes a Duration.
func (dec *decoder) duration(a *Assignment) time.Duration {
	d, hint := parseDuration(a.Value.Text)
	switch {
	case hint != "":
		dec.report(errDuration(a, hint))
	case d < 0 || d > ratelimit.MaxWindow:
		dec.report(errDurationRange(a, "the longest is "+days(ratelimit.MaxWindow)))
	case d == 0:
		dec.report(errDurationRange(a, "a window has a length: to admit every call write max="+wordUnlimited+", to refuse every call max="+wordBlocked))
	case d%time.Microsecond != 0:
		dec.report(errDurationRange(a, "a window is a whole number of microseconds"))
	default:
		return d
	}
	return 0
}

// parseDuration parses Go's syntax without a sign and with the units d and w. It
// returns a negative duration if the value is too long, or what to write instead
// if it is no duration.
func parseDuration(text string) (d time.Duration, hint string) {
	rest := text
	for rest != "" {
		m := durationPart.FindStringSubmatch(rest)
		if m == nil {
			return 0, durationHint(text, rest)
		}
		tail := rest[len(m[0]):]
		if tail != "" && !isDigit(tail[0]) && tail[0] != '.' {
			return 0, durationHint(text, rest)
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
		rest = tail
	}
	return d, ""
}

var durationWord = regexp.MustCompile(`^(\d+\.?\d*|\.\d+)?\s*(\pL*)`)

// durationHint says what to write instead of text, of which rest cannot be read.
func durationHint(text, rest string) string {
	lower := strings.ToLower(text)
	switch {
	case text == "0":
		return "a window has a length and a unit: to admit every call write max=" + wordUnlimited
	case strings.HasPrefix(text, "-"):
		return "a window cannot be negative: write a duration like 1m"
	case strings.HasPrefix(text, "+"):
		return "a duration has no sign: remove the +"
	case slices.Contains([]string{"inf", "infinity", "infinite", "forever", "never", "none"}, lower):
		return "a window ends: write a duration like 1m, or max=" + wordUnlimited + " to admit every call"
	}
	if _, err := time.ParseDuration(text + "s"); err == nil && strings.Trim(text, "0123456789.") == "" {
		return "the unit is missing: write " + text + "s, " + text + "m, " + text + "h or " + text + "d"
	}
	m := durationWord.FindStringSubmatch(rest)
	whole := m[0] == rest
	number, word := m[1], m[2]
	if number == "" && rest == text {
		number = "1"
	}
	before := text[:len(text)-len(rest)]
	switch unit, known := unitNames[strings.ToLower(word)]; {
	case word == "M":
		return "M may be minutes or months: write " + before + number + "m for minutes, or 30d for a month"
	case word == "mo" || strings.HasPrefix(strings.ToLower(word), "mon"):
		return "months differ in length: write 30d"
	case slices.Contains([]string{"y", "yr", "year", "years"}, strings.ToLower(word)):
		return "years differ in length: write 365d"
	case exponent.MatchString(number + strings.TrimRight(rest[len(m[1]):], "nsumhdw")):
		e := exponent.FindStringSubmatch(number + strings.TrimRight(rest[len(m[1]):], "nsumhdw"))
		unit := cmp.Or(rest[len(strings.TrimRight(rest, "nsumhdw")):], "s")
		return "a duration has no exponent: write " + e[1] + strings.Repeat("0", int(e[2][0]-'0')) + unit
	case known && number != "" && whole:
		return "write " + before + number + unit
	}
	return "not a duration: write a number and a unit (ns, us, ms, s, m, h, d, w), like 90s or 1h30m"
}

// choice decodes a Choice.
func (dec *decoder) choice(a *Assignment, o *Option) string {
	if !slices.Contains(o.Values, a.Value.Text) {
		dec.report(errChoice(a, o))
		return ""
	}
	return a.Value.Text
}

var nameForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

// name decodes a Name.
func (dec *decoder) name(a *Assignment) string {
	if len(a.Value.Text) > MaxName || !nameForm.MatchString(a.Value.Text) {
		dec.report(errName(a))
		return ""
	}
	return a.Value.Text
}

// identifier decodes an Identifier that is to be declared.
func (dec *decoder) identifier(a *Assignment) string {
	switch name := a.Value.Text; {
	case token.IsKeyword(name):
		dec.report(errIdentifier(a, "a keyword of Go cannot be a name"))
	case name == "_" || name == "init" || name == "main":
		dec.report(errIdentifier(a, "Go gives this name a meaning of its own: choose another"))
	case types.Universe.Lookup(name) != nil:
		dec.report(errIdentifier(a, "this would hide the "+name+" of Go in the whole package: choose another name"))
	case !token.IsIdentifier(name):
		dec.report(errIdentifier(a, "not a Go identifier: write letters, digits and _, beginning with a letter"))
	default:
		return name
	}
	return ""
}

// typeName checks a TypeName; what it names is found where types are known.
func (dec *decoder) typeName(a *Assignment) {
	pkg, name, qualified := strings.Cut(a.Value.Text, ".")
	if !token.IsIdentifier(pkg) || qualified && !token.IsIdentifier(name) {
		dec.report(errIdentifier(a, "not the name of a type: write Name or package.Name, as the file spells it"))
	}
}
