package directive

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

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

// maxDuration is the most bytes that anybody needs for a duration.
const maxDuration = 64

const notADuration = "not a duration: write a number and a unit (ns, us, ms, s, m, h, d, w), like 90s or 1h30m"

var durationPart = regexp.MustCompile(`^(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h|d|w)`)

// duration decodes a Duration.
func (dec *decoder) duration(a *Assignment) time.Duration {
	d, hint := parseDuration(a.Value.Text)
	switch {
	case hint != "" && a.Name == optMax:
		dec.report(errDuration(a, string(ratelimit.TimeQuota)+" counts time: "+hint))
	case hint != "":
		dec.report(errDuration(a, hint))
	default:
		if hint = durationRange(d, a.Name); hint == "" {
			return d
		}
		dec.report(errDurationRange(a, hint))
	}
	return 0
}

// durationRange says what is wrong with the length of a duration, or "".
func durationRange(d time.Duration, option string) string {
	switch {
	case d < 0 || d > ratelimit.MaxWindow:
		return "the longest is " + days(ratelimit.MaxWindow)
	case d == 0 && (option == optWindow || option == optMax):
		return "a window has a length: to admit every call write max=" + wordUnlimited + ", to refuse every call max=" + wordBlocked
	case d == 0:
		return "no time at all has no effect: leave " + option + " out"
	case d%time.Microsecond != 0:
		return "it must be a whole number of microseconds"
	}
	return ""
}

// durations decodes Durations.
func (dec *decoder) durations(a *Assignment) []time.Duration {
	var list []time.Duration
	offset := 0
	for part := range strings.SplitSeq(a.Value.Text, ",") {
		text := strings.TrimSpace(part)
		w := a.Value.word(offset+strings.Index(part, text), text)
		offset += len(part) + 1
		d, hint := parseDuration(text)
		switch {
		case text == "":
			dec.report(errStepDuration(w, a, "a duration is missing"))
			return nil
		case hint != "":
			dec.report(errStepDuration(w, a, hint))
			return nil
		}
		if hint = durationRange(d, a.Name); hint != "" {
			dec.report(errStepRange(w, a, hint))
			return nil
		}
		if len(list) > 0 && d <= list[len(list)-1] {
			dec.report(errNotRising(w, a))
			return nil
		}
		if len(list) == MaxSteps {
			dec.report(errStepRange(w, a, "a list has at most "+strconv.Itoa(MaxSteps)+" steps"))
			return nil
		}
		list = append(list, d)
	}
	return list
}

// parseDuration parses Go's syntax without a sign and with the units d and w. It
// returns a negative duration if the value is too long, or what to write instead
// if it is no duration.
func parseDuration(text string) (d time.Duration, hint string) {
	if len(text) > maxDuration {
		return 0, notADuration
	}
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
		return "a duration has a length and a unit: write one like 1m"
	case strings.HasPrefix(text, "-"):
		return "a duration cannot be negative: write one like 1m"
	case strings.HasPrefix(text, "+"):
		return "a duration has no sign: remove the +"
	case slices.Contains([]string{"inf", "infinity", "infinite", "forever", "never", "none"}, lower):
		return "a duration ends: write one like 1m"
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
	return notADuration
}
