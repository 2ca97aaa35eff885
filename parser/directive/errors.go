package directive

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
)

// Codes of the diagnostics of this package. They are stable.
const (
	CodeNearMiss           = "near-miss"              // a comment that was meant to be a directive
	CodeEmpty              = "empty-directive"        // nothing follows the prefix, or a verb that needs options has none
	CodeTooLong            = "directive-too-long"     // more than MaxLen bytes
	CodeTooManyDirectives  = "too-many-directives"    // more than MaxDirectives on one declaration
	CodeCharacter          = "bad-character"          // a control, invisible or invalid character
	CodeUnknownVerb        = "unknown-verb"           //
	CodeUnknownOption      = "unknown-option"         //
	CodeDuplicateOption    = "duplicate-option"       // one option twice in a directive
	CodeDuplicateDirective = "duplicate-directive"    // a verb that may stand once stands twice
	CodeMissingValue       = "missing-value"          // an option without a value
	CodeBadQuoting         = "bad-quoting"            // quotes that do not end, or escapes that Go does not have
	CodeUnexpected         = "unexpected-text"        // words that are no option
	CodeBadInteger         = "bad-integer"            //
	CodeBadDuration        = "bad-duration"           //
	CodeBadChoice          = "bad-choice"             // not one of the option's words
	CodeBadName            = "bad-name"               // not a name, or not a Go identifier
	CodeOutOfRange         = "out-of-range"           // a number or duration beyond what a policy may say
	CodeBadText            = "bad-text"               // a text that is too long or holds what cannot be printed
	CodeBadZone            = "bad-time-zone"          //
	CodeLockNotRising      = "lock-not-rising"        // a list of locks of which one is no longer than that before it
	CodeOptionUnused       = "option-unused"          // an option that the algorithm does not take
	CodeBurstUnused        = "burst-unused"           // burst without a bucket
	CodeWindowUnused       = "window-unused"          // window with align, or where nothing is counted per window
	CodeAlignUnused        = "align-unused"           // align without fixed-window
	CodeTZUnused           = "tz-unused"              // tz without align
	CodeLeaseUnused        = "lease-unused"           // lease without concurrency
	CodeWaitUnused         = "wait-unused"            // max-wait or max-queue without on-limit=wait
	CodeRefusalUnused      = "refusal-unused"         // message or status of a refusal that nobody gets
	CodeNameUnused         = "name-unused"            // name beside group
	CodeDuplicateDefine    = "duplicate-define"       // two defines of one name in a package
	CodeUnknownDefine      = "unknown-define"         // use of a name that nothing defines
	CodeUnusedDefine       = "unused-define"          // a define, or an option of one, that no limit takes
	CodeUnusedDefault      = "unused-default"         // an option of defaults that no limit takes
	CodeShortWait          = "max-wait-too-short"     // a wait that hardly ever ends with an admission
	CodeTooManyPolicies    = "too-many-policies"      // more than ratelimit.MaxPolicies on one method
	CodeOnLimitDiffers     = "on-limit-differs"       // limits of one method that do not agree
	CodeGroupDiffers       = "group-differs"          // limits of one group that do not agree
	CodeEmptyUnused        = "on-empty-unused"        // on-empty without a key
	CodeDynamicLimit       = "dynamic-limit"          // an expression for max where one number is needed
	CodeMissingOption      = "missing-option"         // an option that is required
	CodeInitialTooLarge    = "initial-above-capacity" //
	CodeBurstBelowCost     = "burst-below-cost"       //
	CodeCostAboveCapacity  = "cost-above-capacity"    // no call could ever be admitted
	CodeLogTooLarge        = "sliding-log-too-large"  // the log keeps every unit
	CodeDuplicatePolicy    = "duplicate-policy"       // two policies of one method with one identity
	CodeUnreachable        = "unreachable-policy"     // a policy that can never refuse
	CodeMisplaced          = "misplaced"              // a directive that no declaration has in its doc comment
	CodeWrongTarget        = "wrong-target"           // a declaration that the verb or option cannot apply to
)

func problem(pos diag.Pos, width int, code, format string, args ...any) diag.Diagnostic {
	return diag.Diagnostic{Pos: pos, EndCol: pos.Col + width, Code: code, Message: fmt.Sprintf(format, args...)}
}

// show quotes user text for a message, shortened if it is long.
func show(text string) string {
	const most = 60
	if len(text) > most {
		cut := most
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	return strconv.Quote(text)
}

// Form.

func errNearMiss(pos diag.Pos, comment string, block bool, spelling string) diag.Diagnostic {
	why := "is prose to Go tools and limits nothing"
	if block {
		why = "is a block comment, and a directive is a line comment"
	}
	line, _, _ := strings.Cut(comment, "\n")
	line = strings.TrimRight(line, " \t\r")
	return problem(pos, len(line), CodeNearMiss, "this comment %s: write %s on a line of its own, or word it so that it does not read as a directive", why, spelling)
}

func errEmpty(pos diag.Pos) diag.Diagnostic {
	return problem(pos, len(Prefix), CodeEmpty, "the directive is empty: write for example %smax=5 window=1m", Prefix)
}

func errNoOptions(pos diag.Pos, v *Verb) diag.Diagnostic {
	return problem(pos, len(v.Name), CodeEmpty, "%s without options has no effect: give one of %s, or remove the directive", v.Name, strings.Join(v.optionNames(), ", "))
}

func errTooLong(pos diag.Pos, n int) diag.Diagnostic {
	return problem(pos, n, CodeTooLong, "the directive has %d bytes, and %d is the most: move the expression into a function and call it", n, MaxLen)
}

func errCharacter(pos diag.Pos, char string) diag.Diagnostic {
	esc := strings.Trim(strconv.QuoteToASCII(char), `"`)
	return problem(pos, len(char), CodeCharacter, "the character %s is invisible or not valid: remove it, or, if an expression needs it, write it as an escape in a \"quoted\" value", esc)
}

func errUnknownVerb(pos diag.Pos, word string) diag.Diagnostic {
	d := problem(pos, len(word), CodeUnknownVerb, "unknown verb %s", show(word))
	if option, value, ok := strings.Cut(word, ":"); ok && findVerb(VerbLimit).option(option) != nil {
		d.Message += "; an option is written with =, " + show(option+"="+value)
		return d
	}
	d.Suggestion = diag.Suggest(word, verbNames())
	d.Valid = verbNames()
	return d
}

func errUnknownOption(pos diag.Pos, v *Verb, name string) diag.Diagnostic {
	if slices.Contains(v.Except, name) {
		return problem(pos, len(name), CodeUnknownOption, "%s belongs to each limit itself and cannot be given in %s: %s", name, v.Name, whyExcept[name])
	}
	if len(v.Options) == 0 {
		return problem(pos, len(name), CodeUnknownOption, "%s takes no options: remove %s", v.Name, show(name))
	}
	d := problem(pos, len(name), CodeUnknownOption, "unknown option %s of %s", show(name), v.Name)
	d.Suggestion = v.suggest(name)
	d.Valid = v.optionNames()
	return d
}

// whyExcept says what to do about options of limit that define or defaults do not
// take.
var whyExcept = map[string]string{
	optName:  "write it on the limits",
	optGroup: "write it on the limits, or in a define that they use",
	optUse:   "a define cannot start from another; write the options out, or use=… on the limits",
}

func errDuplicateOption(pos diag.Pos, name string, firstCol int) diag.Diagnostic {
	return problem(pos, len(name), CodeDuplicateOption, "%s is given twice, first in column %d: keep one of them", name, firstCol)
}

func errMissingValue(pos diag.Pos, o *Option) diag.Diagnostic {
	if o.Example == "" {
		return problem(pos, 0, CodeMissingValue, "%s has no value: write %s=value without blanks, or remove it", show(o.Name), o.Name)
	}
	return problem(pos, 0, CodeMissingValue, "%s has no value: write for example %s", o.Name, o.Example)
}

func errBlankAtAssign(pos diag.Pos, name, value string) diag.Diagnostic {
	return problem(pos, 0, CodeMissingValue, "a value follows its name and = without blanks: write %s=%s", name, value)
}

func errUnterminated(pos diag.Pos, quote byte) diag.Diagnostic {
	return problem(pos, 1, CodeBadQuoting, "the value does not end: add the closing %c", quote)
}

func errEscape(pos diag.Pos, raw string) diag.Diagnostic {
	d := problem(pos, 1, CodeBadQuoting, "this is not an escape of a Go string: write \\\\ for a backslash")
	if !strings.ContainsRune(raw, '`') {
		d.Message += ", or put the value in `back quotes`, which have no escapes"
	}
	return d
}

func errAfterQuote(pos diag.Pos) diag.Diagnostic {
	return problem(pos, 1, CodeBadQuoting, "text follows the closing quote: add a blank, or quote the value as a whole")
}

func errTypographicQuote(pos diag.Pos, r rune) diag.Diagnostic {
	return problem(pos, utf8.RuneLen(r), CodeBadQuoting, "%c is not a quote of Go: write \" or `", r)
}

func errUnquoted(pos diag.Pos, junk, option, value string) diag.Diagnostic {
	quoted := "`" + value + "`"
	if strings.ContainsRune(value, '`') {
		quoted = strconv.Quote(value)
	}
	return problem(pos, len(junk), CodeUnexpected, "%s is no option, and a value ends at a blank: if it belongs to %s, write %s=%s", show(junk), option, option, quoted)
}

func errBlankInList(pos diag.Pos, junk, option, value string) diag.Diagnostic {
	return problem(pos, len(junk), CodeUnexpected, "%s is no option, and a list ends at a blank: if it belongs to %s, write %s=%s", show(junk), option, option, value)
}

func errSeparator(pos diag.Pos, char byte) diag.Diagnostic {
	what := "comma"
	if char == ';' {
		what = "semicolon"
	}
	return problem(pos, 1, CodeUnexpected, "options are separated by blanks: remove the %s, or write a blank instead of it", what)
}

func errUnexpected(pos diag.Pos, junk string) diag.Diagnostic {
	return problem(pos, len(junk), CodeUnexpected, "%s is no option: options are name=value, and nothing else follows the verb", show(junk))
}

// Values.

// badValue is a problem of a's value as a whole.
func badValue(a *Assignment, code, format string, args ...any) diag.Diagnostic {
	d := problem(a.Value.Pos(0), 0, code, "%s=%s: %s", a.Name, clip(a.Value.Raw), fmt.Sprintf(format, args...))
	d.EndCol = a.End().Col
	return d
}

// badOption is a problem of a as a whole, name and value.
func badOption(a *Assignment, code, format string, args ...any) diag.Diagnostic {
	return problem(a.Pos(), a.End().Col-a.Pos().Col, code, format, args...)
}

// badWord is a problem of a part of a value.
func badWord(w Word, code, format string, args ...any) diag.Diagnostic {
	return problem(w.Pos, w.End.Col-w.Pos.Col, code, format, args...)
}

// clip shortens a value that stands in a message as it was written.
func clip(raw string) string {
	if len(raw) <= 60 {
		return raw
	}
	return show(raw)
}

func errInteger(a *Assignment, o *Option, hint string) diag.Diagnostic {
	d := badValue(a, CodeBadInteger, "not an integer in decimal digits%s", hint)
	if hint != "" {
		return d
	}
	d.Suggestion = diag.Suggest(a.Value.Text, o.Values)
	d.Valid = o.Values
	return d
}

func errNotPositive(a *Assignment) diag.Diagnostic {
	return badValue(a, CodeBadInteger, "a limit is at least 1: write %s=%s to admit every call, or %s=%s to refuse every call", a.Name, wordUnlimited, a.Name, wordBlocked)
}

func errConstantNotPositive(a *Assignment, value int64) diag.Diagnostic {
	return badValue(a, CodeBadInteger, "this is %d, and a limit is at least 1: write %s=%s to refuse every call", value, a.Name, wordBlocked)
}

func errTooFew(a *Assignment, o *Option) diag.Diagnostic {
	return badValue(a, CodeOutOfRange, "the least that %s can be is %d", a.Name, o.Min)
}

// errWord is about a name that is nearly one of the option's words.
func errWord(a *Assignment, o *Option) diag.Diagnostic {
	d := badValue(a, CodeBadChoice, "not one of the option's words; if a parameter has this name, write #%s", a.Value.Text)
	d.Suggestion = diag.Suggest(a.Value.Text, o.Values)
	d.Valid = o.Values
	return d
}

func errNegativeCost(a *Assignment) diag.Diagnostic {
	return badValue(a, CodeBadInteger, "a call cannot give units back: write a cost of 0 or more")
}

func errConstantNegative(a *Assignment, value int64) diag.Diagnostic {
	return badValue(a, CodeBadInteger, "this is %d, and a call cannot give units back: write a cost of 0 or more", value)
}

func errTooMany(a *Assignment, most int64) diag.Diagnostic {
	return badValue(a, CodeOutOfRange, "the most is %d", most)
}

func errDuration(a *Assignment, hint string) diag.Diagnostic {
	return badValue(a, CodeBadDuration, "%s", hint)
}

func errDurationRange(a *Assignment, hint string) diag.Diagnostic {
	return badValue(a, CodeOutOfRange, "%s", hint)
}

func errChoice(a *Assignment, o *Option) diag.Diagnostic {
	d := badValue(a, CodeBadChoice, "unknown %s", a.Name)
	d.Suggestion = diag.Suggest(a.Value.Text, o.Values)
	d.Valid = o.Values
	return d
}

// errAlgorithm is about a name that can be no algorithm's, or is nearly the one that is
// meant.
func errAlgorithm(a *Assignment, o *Option, meant string) diag.Diagnostic {
	d := badValue(a, CodeBadChoice, "unknown %s", a.Name)
	if meant == "" {
		d = badValue(a, CodeBadChoice, "unknown %s: the name of one of your own is of lower-case letters, digits and dashes", a.Name)
	}
	d.Suggestion = meant
	d.Valid = o.Values
	return d
}

func errNoFallback(a *Assignment) diag.Diagnostic {
	return badValue(a, CodeBadChoice, "the method to call instead is missing: write %s=%s:Method, with a method of the same signature", a.Name, OnLimitFallback)
}

func errFallbackName(w Word) diag.Diagnostic {
	return badWord(w, CodeBadName, "%s is not the name of a method: write one of the same type, like fallback:Cached", show(w.Text))
}

func errZone(a *Assignment, what string) diag.Diagnostic {
	return badValue(a, CodeBadZone, "%s", what)
}

func errTextLength(a *Assignment) diag.Diagnostic {
	return badValue(a, CodeBadText, "the most is %d bytes", MaxText)
}

func errTextCharacter(w Word, a *Assignment) diag.Diagnostic {
	return badWord(w, CodeBadText, "%s is one line of text, and this character cannot be printed: remove it", a.Name)
}

func errStepDuration(w Word, a *Assignment, hint string) diag.Diagnostic {
	return badWord(w, CodeBadDuration, "%s=%s: %s", a.Name, clip(w.Text), hint)
}

func errStepRange(w Word, a *Assignment, hint string) diag.Diagnostic {
	return badWord(w, CodeOutOfRange, "%s=%s: %s", a.Name, clip(w.Text), hint)
}

func errNotRising(w Word, a *Assignment) diag.Diagnostic {
	return badWord(w, CodeLockNotRising, "%s=…,%s: each time is longer than the one before it: write for example 1m,10m,1h", a.Name, w.Text)
}

func errName(a *Assignment) diag.Diagnostic {
	return badValue(a, CodeBadName, "a name is a letter or _ and then letters, digits, _ . or -, at most %d in all", MaxName)
}

func errIdentifier(a *Assignment, what string) diag.Diagnostic {
	return badValue(a, CodeBadName, "%s", what)
}
