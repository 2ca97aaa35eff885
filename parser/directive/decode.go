package directive

import (
	"go/token"
	"go/types"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

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

// units decodes Units into l.Max or l.MaxExpr.
func (dec *decoder) units(l *Limit, a *Assignment, o *Option) {
	text := a.Value.Text
	switch {
	case text == wordUnlimited:
		l.Max = ratelimit.Unlimited
	case text == wordBlocked:
		l.Max = ratelimit.Blocked
	case !strings.HasPrefix(text, "#") && diag.Suggest(text, o.Values) != "":
		dec.report(errWord(a, o))
	case l.Algorithm == ratelimit.TimeQuota && !startsName(text):
		l.Max = int64(dec.duration(a) / time.Microsecond)
	case l.Algorithm != ratelimit.TimeQuota && (isNumber(text) || integerHint(a, o) != ""):
		l.Max = dec.limit(a, o)
	default:
		l.MaxExpr = &a.Value
	}
}

// startsName reports whether text begins as an expression does that begins with a
// name, and not as a duration.
func startsName(text string) bool {
	r, _ := utf8.DecodeRuneInString(strings.TrimLeft(text, " \t(#"))
	return r == '_' || unicode.IsLetter(r)
}

// limit decodes Units that are a number.
func (dec *decoder) limit(a *Assignment, o *Option) int64 {
	text := a.Value.Text
	n, ok := decimal(strings.TrimPrefix(text, "-"))
	switch {
	case !ok:
		dec.report(errInteger(a, o, integerHint(a, o)))
	case n == 0 || text[0] == '-':
		dec.report(errNotPositive(a))
	case n > ratelimit.MaxLimit:
		dec.report(errTooMany(a, ratelimit.MaxLimit))
	default:
		return n
	}
	return 0
}

// integer decodes an Integer.
func (dec *decoder) integer(a *Assignment, o *Option) int64 {
	text := a.Value.Text
	n, ok := decimal(strings.TrimPrefix(text, "-"))
	switch {
	case !ok:
		dec.report(errInteger(a, o, integerHint(a, o)))
	case n < o.Min || text[0] == '-':
		dec.report(errTooFew(a, o))
	case n > o.Max:
		dec.report(errTooMany(a, o.Max))
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
	case o.Type == Integer && token.IsIdentifier(text):
		return ": write the number, as only max, cost and cost-after take the name of a constant"
	}
	return ""
}

// choice decodes a Choice.
func (dec *decoder) choice(a *Assignment, o *Option) string {
	if i := dec.index(a, o); i >= 0 {
		return o.Values[i]
	}
	return ""
}

// index decodes a Choice as the index of its word, or -1 if it is none.
func (dec *decoder) index(a *Assignment, o *Option) int {
	i := slices.Index(o.Values, a.Value.Text)
	if i < 0 {
		dec.report(errChoice(a, o))
	}
	return i
}

// algorithm decodes an Algorithm, "" if it is none.
func (dec *decoder) algorithm(a *Assignment, o *Option) ratelimit.Algorithm {
	alg, meant := algorithmOf(a.Value.Text, o)
	if alg == "" {
		dec.report(errAlgorithm(a, o, meant))
	}
	return alg
}

// algorithmOf returns the algorithm of that name, or "" if there is and can be none;
// then meant is the one that was probably meant, if it is clear. A name that is near to a
// built-in algorithm's, or that other libraries call one by, is taken for a mistake: as a
// name of the service's own it would be found to be wrong only when the service starts.
func algorithmOf(name string, o *Option) (alg ratelimit.Algorithm, meant string) {
	if slices.Contains(o.Values, name) {
		return ratelimit.Algorithm(name), ""
	}
	if meant = diag.Suggest(name, o.Values); meant == "" {
		meant = string(otherNames[strings.ReplaceAll(strings.ToLower(name), "_", "-")])
	}
	if meant != "" || !ratelimit.Algorithm(name).IsCustom() {
		return "", meant
	}
	return ratelimit.Algorithm(name), ""
}

// otherNames are what the built-in algorithms are called elsewhere.
var otherNames = map[string]ratelimit.Algorithm{
	"log":                  ratelimit.SlidingLog,
	"sliding":              ratelimit.SlidingWindow,
	"sliding-window-log":   ratelimit.SlidingLog,
	"rolling-window":       ratelimit.SlidingWindow,
	"fixed":                ratelimit.FixedWindow,
	"window":               ratelimit.FixedWindow,
	"fixed-window-counter": ratelimit.FixedWindow,
	"bucket":               ratelimit.TokenBucket,
	"token":                ratelimit.TokenBucket,
	"tokens":               ratelimit.TokenBucket,
	"gcra":                 ratelimit.TokenBucket,
	"leaky":                ratelimit.LeakyBucket,
	"queue":                ratelimit.LeakyBucket,
	"concurrent":           ratelimit.Concurrency,
	"semaphore":            ratelimit.Concurrency,
	"bulkhead":             ratelimit.Concurrency,
	"quota":                ratelimit.TimeQuota,
}

// action decodes an Action.
func (dec *decoder) action(a *Assignment, o *Option) (OnLimit, Word) {
	text := a.Value.Text
	method, ok := strings.CutPrefix(text, string(OnLimitFallback)+":")
	switch {
	case text == string(OnLimitFallback), ok && method == "":
		dec.report(errNoFallback(a))
	case ok:
		w := a.Value.word(len(text)-len(method), method)
		if !token.IsIdentifier(method) || method == "_" {
			dec.report(errFallbackName(w))
			return "", Word{}
		}
		return OnLimitFallback, w
	default:
		return OnLimit(dec.choice(a, o)), Word{}
	}
	return "", Word{}
}

// zone decodes a Zone.
func (dec *decoder) zone(a *Assignment) string {
	name := a.Value.Text
	switch dir, _, _ := strings.Cut(name, "/"); {
	case name == "Local" || name == "localtime":
		dec.report(errZone(a, "the zone of the machine differs from machine to machine: name one, like Europe/Berlin"))
		return ""
	case dir == "posix" || dir == "right" || name == "posixrules":
		dec.report(errZone(a, "not every machine has this form of a time zone: write its name alone, like Europe/Berlin"))
		return ""
	}
	if _, err := time.LoadLocation(name); err != nil {
		dec.report(errZone(a, "there is no time zone of this name: write one of the IANA database, like Europe/Berlin"))
		return ""
	}
	return name
}

// text decodes a Text.
func (dec *decoder) text(a *Assignment) string {
	text := a.Value.Text
	unprintable := func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }
	switch i := strings.IndexFunc(text, unprintable); {
	case len(text) > MaxText:
		dec.report(errTextLength(a))
	case i >= 0:
		_, n := utf8.DecodeRuneInString(text[i:])
		dec.report(errTextCharacter(a.Value.word(i, text[i:i+n]), a))
	default:
		return text
	}
	return ""
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

// isNumber reports whether text is meant to be a number and not an expression.
func isNumber(text string) bool {
	text = strings.TrimLeft(text, "+-")
	if text == "" || !isDigit(text[0]) {
		return false
	}
	for i := range len(text) {
		if c := text[i]; !isDigit(c) && !isLetter(c) && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// decimal parses digits, with '_' between them as Go allows it. It saturates, so
// that a range check finds what does not fit.
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
		if !isDigit(c) {
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
