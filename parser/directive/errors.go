package directive

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
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
	CodeConflict           = "conflicting-directives" // off and limit on one method
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
	CodeNotAMethod         = "not-a-method"           // a limit on a function
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
	return problem(pos, len(char), CodeCharacter, "the character %s is invisible or not valid: remove it, or write it as an escape in a \"quoted\" value", esc)
}

func errUnknownVerb(pos diag.Pos, word string) diag.Diagnostic {
	d := problem(pos, len(word), CodeUnknownVerb, "unknown verb %s", show(word))
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

func errUnexpected(pos diag.Pos, junk string) diag.Diagnostic {
	return problem(pos, len(junk), CodeUnexpected, "%s is no option: options are name=value, and nothing else follows the verb", show(junk))
}

// Values.

// badValue is a problem of a's value as a whole.
func badValue(a *Assignment, code, format string, args ...any) diag.Diagnostic {
	d := problem(a.Value.Pos(0), 0, code, "%s=%s: %s", a.Name, clip(a.Value.Raw), fmt.Sprintf(format, args...))
	d.EndCol = shift(a.Value.comment, a.Value.Span.End).Col
	return d
}

// badOption is a problem of a as a whole, name and value.
func badOption(a *Assignment, code, format string, args ...any) diag.Diagnostic {
	return problem(a.pos(), a.Value.Span.End-a.NameSpan.Start, code, format, args...)
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

// Policies.

func errOtherAlgorithm(a *Assignment, o *Option, l *Limit) diag.Diagnostic {
	hint := fmt.Sprintf("remove %s, or choose another algorithm", a.Name)
	if len(o.Algorithms) <= 2 {
		names := make([]string, len(o.Algorithms))
		for i, alg := range o.Algorithms {
			names[i] = string(alg)
		}
		hint = fmt.Sprintf("write %s=%s, or remove %s", optAlgorithm, strings.Join(names, " or "), a.Name)
	}
	return problem(a.pos(), len(a.Name), o.unused, "%s has no effect on %s%s: %s", a.Name, l.Algorithm, l.elsewhere(a), hint)
}

func errNeeds(a *Assignment, o *Option, l *Limit) diag.Diagnostic {
	need := o.Needs
	if !strings.Contains(need, "=") {
		need += "=…"
	}
	return problem(a.pos(), len(a.Name), o.unused, "%s has no effect without %s%s: write %s, or remove %s", a.Name, need, l.lacking(a), need, a.Name)
}

func errWithout(a *Assignment, o *Option) diag.Diagnostic {
	return problem(a.pos(), len(a.Name), o.unused, "%s has no effect beside %s: remove one of them", a.Name, o.Without)
}

// elsewhere names the limit that a, which stands in another directive, is of.
func (l *Limit) elsewhere(a *Assignment) string {
	p := l.Directive.Pos
	if a.Value.comment == p {
		return ""
	}
	return ", which the limit " + whereFrom(p, a.Value.comment) + " has"
}

// lacking names the limit that a, which stands in another directive, is of, and
// which lacks something.
func (l *Limit) lacking(a *Assignment) string {
	if a.Value.comment == l.Directive.Pos {
		return ""
	}
	return ", which the limit " + whereFrom(l.Directive.Pos, a.Value.comment) + " lacks"
}

func errNoQuota(l *Limit) diag.Diagnostic {
	a := l.Directive.Option(optAlgorithm)
	return badValue(a, CodeMissingOption, "it counts time, so it needs max: write for example max=10s")
}

func errInitialAboveCapacity(a *Assignment, capacity int64) diag.Diagnostic {
	return badValue(a, CodeInitialTooLarge, "the bucket holds %d: lower initial, or leave it out for a full bucket", capacity)
}

func errBurstBelowCost(a *Assignment, cost int64) diag.Diagnostic {
	return badValue(a, CodeBurstBelowCost, "a call costs %d, so none would ever be admitted: raise burst to at least %d, or lower cost", cost, cost)
}

func errCostAboveCapacity(a *Assignment, capacity int64) diag.Diagnostic {
	return badValue(a, CodeCostAboveCapacity, "the policy holds %d, so no call would ever be admitted: lower cost or raise the limit", capacity)
}

func errLogTooLarge(a *Assignment) diag.Diagnostic {
	return badValue(a, CodeLogTooLarge, "a sliding log keeps every call, so %d is its most: write %s=%s for more",
		ratelimit.MaxLogLimit, optAlgorithm, ratelimit.SlidingWindow)
}

func errDynamic(a *Assignment, why string) diag.Diagnostic {
	return badValue(a, CodeDynamicLimit, "%s, so its limit cannot be an expression: write a number", why)
}

func warnShortWait(a *Assignment, between time.Duration) diag.Diagnostic {
	d := badValue(a, CodeShortWait, "at the limit a call is admitted every %v, so most calls that would wait are refused at once: raise max-wait, or write %s=%s", between, optOnLimit, OnLimitError)
	d.Severity = diag.Warning
	return d
}

func errManyPolicies(l *Limit) diag.Diagnostic {
	return problem(l.Directive.Pos, len(Prefix)+len(l.Directive.Text), CodeTooManyPolicies, "more than %d policies, those of the type included, apply to one method: remove some", ratelimit.MaxPolicies)
}

func errOnLimitDiffers(a *Assignment, l, other *Limit) diag.Diagnostic {
	return badValue(a, CodeOnLimitDiffers, "the policy %s has %s, and a method can do one thing only: write the same on both", other.whereFrom(l), other.onLimit())
}

// onLimit spells l's on-limit.
func (l *Limit) onLimit() string {
	if l.OnLimit == OnLimitFallback {
		return optOnLimit + "=" + string(l.OnLimit) + ":" + l.Fallback.Text
	}
	return optOnLimit + "=" + string(l.OnLimit)
}

func errGroupDiffers(l, first *Limit, option string) diag.Diagnostic {
	const format = "the limits of a group share counters, and that %s has another %s: write the same on both, or the policy in a define that both use"
	if a := l.Directive.Option(option); a != nil {
		return badOption(a, CodeGroupDiffers, format, first.whereFrom(l), option)
	}
	if a := l.Directive.Option(optGroup); a != nil {
		return badOption(a, CodeGroupDiffers, format, first.whereFrom(l), option)
	}
	return problem(l.Directive.Pos, len(Prefix)+len(l.Directive.Text), CodeGroupDiffers, format, first.whereFrom(l), option)
}

func errDuplicate(l, first *Limit) diag.Diagnostic {
	if a := l.Directive.Option(optGroup); a != nil {
		return badValue(a, CodeDuplicatePolicy, "the policy %s is in this group too, so both would share one counter: give each a group of its own", first.whereFrom(l))
	}
	if a := l.Directive.Option(optName); a != nil {
		return badValue(a, CodeDuplicatePolicy, "the policy %s has this name too: give each a name of its own", first.whereFrom(l))
	}
	return problem(l.Directive.Pos, len(Prefix)+len(l.Directive.Text), CodeDuplicatePolicy,
		"the policy %s has the same algorithm, window and key, so both would share one counter: keep one of them, or give them names (name=…)", first.whereFrom(l))
}

func errUnreachable(l, by *Limit) diag.Diagnostic {
	return problem(l.Directive.Pos, len(Prefix)+len(l.Directive.Text), CodeUnreachable,
		"this policy can never refuse, because the policy %s (%s) never admits enough: remove one of them, or correct max or window",
		by.whereFrom(l), show(by.Directive.Text))
}

// whereFrom says where l stands to a reader of the place of other. A type's limits
// and its method's may be in different files.
func (l *Limit) whereFrom(other *Limit) string {
	return whereFrom(l.Directive.Pos, other.Directive.Pos)
}

// whereFrom says where p is to a reader of the place other.
func whereFrom(p, other diag.Pos) string {
	if p.File == other.File {
		return fmt.Sprintf("of line %d", p.Line)
	}
	return fmt.Sprintf("at %s:%d", p.File, p.Line)
}

// days spells a duration of whole days without hours.
func days(d time.Duration) string { return strconv.FormatInt(int64(d/(24*time.Hour)), 10) + "d" }

// Defines and defaults.

func errNoName(d *Directive) diag.Diagnostic {
	return problem(d.At(d.VerbSpan), len(d.Verb), CodeMissingOption, "a define has a name, which use= refers to: write for example %s=standard", optName)
}

func errEmptyDefine(d *Directive, name *Assignment) diag.Diagnostic {
	return problem(d.At(d.VerbSpan), len(d.Verb), CodeEmpty, "the define %s has no options, and so no effect: write for example max=100 window=1m, or remove it", name.Value.Text)
}

func errNoDefaults(d *Directive) diag.Diagnostic {
	return problem(d.At(d.VerbSpan), len(d.Verb), CodeEmpty, "defaults without options has no effect: write for example key=user, or remove the directive")
}

func errDuplicateDefine(a *Assignment, first *Directive) diag.Diagnostic {
	return badValue(a, CodeDuplicateDefine, "the define %s has this name too: give each a name of its own", whereFrom(first.Pos, a.Value.comment))
}

func errDuplicateDefaults(d, first *Directive) diag.Diagnostic {
	return problem(d.Pos, len(Prefix)+len(d.Text), CodeDuplicateDirective, "the package has defaults already, those %s: join them", whereFrom(first.Pos, d.Pos))
}

func errUnknownDefine(a *Assignment, names []string) diag.Diagnostic {
	hint := ""
	if len(names) == 0 {
		hint = fmt.Sprintf(": write %s%s name=%s … in the doc comment of the package", Prefix, VerbDefine, a.Value.Text)
	}
	d := badValue(a, CodeUnknownDefine, "the package defines no policy of this name%s", hint)
	d.Suggestion = diag.Suggest(a.Value.Text, names)
	d.Valid = names
	return d
}

func errUnusedDefine(a *Assignment) diag.Diagnostic {
	return badValue(a, CodeUnusedDefine, "no limit uses this policy: write use=%s on one, or remove the define", a.Value.Text)
}

func errUnusedInDefine(a *Assignment, name string) diag.Diagnostic {
	return problem(a.pos(), len(a.Name), CodeUnusedDefine, "every limit that uses %s has a %s of its own: remove it here", name, a.Name)
}

func errUnusedDefault(a *Assignment) diag.Diagnostic {
	return problem(a.pos(), len(a.Name), CodeUnusedDefault, "no limit of the package takes this %s: each has one of its own or an algorithm without it; remove it", a.Name)
}

// Places.

func errMisplaced(d *Directive, why reason) diag.Diagnostic {
	text := why.text
	if v := findVerb(d.Verb); why.move && v != nil && slices.Equal(v.Targets, []TargetKind{Package}) {
		text += ": move it to the doc comment of the package"
	} else if why.move {
		text += ": move it to the doc comment of a method or type"
	}
	return problem(d.Pos, len(Prefix)+len(d.Text), CodeMisplaced, "%s", text)
}

func errTooManyDirectives(pos diag.Pos) diag.Diagnostic {
	return problem(pos, len(Prefix), CodeTooManyDirectives, "more than %d directives stand on one declaration: this one and those after it are not read", MaxDirectives)
}

func errWrongTarget(d *Directive, v *Verb, on TargetKind, name string) diag.Diagnostic {
	return problem(d.Pos, len(Prefix)+len(d.Text), CodeWrongTarget, "%s cannot stand on %s %s, only on: %s", v.Name, on, name, targetList(v.Targets))
}

func errOptionTarget(d *Directive, a *Assignment, o *Option, on TargetKind, name string) diag.Diagnostic {
	return problem(d.At(a.NameSpan), len(a.Name), CodeWrongTarget, "%s cannot be given on %s %s, only on: %s", o.Name, on, name, targetList(o.Targets))
}

func errNotAMethod(d *Directive, name string) diag.Diagnostic {
	return problem(d.Pos, len(Prefix)+len(d.Text), CodeNotAMethod, "%s is a function, and only methods can be limited: make it a method of a type", name)
}

func errDuplicateDirective(d *Directive, first diag.Pos) diag.Diagnostic {
	return problem(d.Pos, len(Prefix)+len(d.Text), CodeDuplicateDirective, "%s stands here twice, first in line %d: keep one of them", d.Verb, first.Line)
}

func errConflict(d *Directive, limit diag.Pos) diag.Diagnostic {
	return problem(d.Pos, len(Prefix)+len(d.Text), CodeConflict, "off contradicts the limit in line %d: remove one of them", limit.Line)
}
