package directive

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// Policies.

func errOtherAlgorithm(a *Assignment, o *Option, l *Limit) diag.Diagnostic {
	hint := fmt.Sprintf("remove %s, or choose another algorithm", a.Name)
	if names := slices.DeleteFunc(o.algorithmNames(), func(name string) bool { return name == string(Custom) }); len(names) <= 2 {
		hint = fmt.Sprintf("write %s=%s, or remove %s", optAlgorithm, strings.Join(names, " or "), a.Name)
	}
	return problem(a.Pos(), len(a.Name), o.unused, "%s has no effect on %s%s: %s", a.Name, l.Algorithm, l.elsewhere(a), hint)
}

func errNeeds(a *Assignment, o *Option, l *Limit) diag.Diagnostic {
	need := o.needs()
	if !strings.Contains(need, "=") {
		need += "=…"
	}
	return problem(a.Pos(), len(a.Name), o.unused, "%s has no effect without %s%s: write %s, or remove %s", a.Name, need, l.lacking(a), need, a.Name)
}

func errWithout(a *Assignment, o *Option) diag.Diagnostic {
	return problem(a.Pos(), len(a.Name), o.unused, "%s has no effect beside %s: remove one of them", a.Name, o.Without)
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

func errFree(a *Assignment) diag.Diagnostic {
	return badValue(a, CodeOptionUnused, "a call that takes nothing is never refused, so the policy has no effect: raise cost, or say with %s what is charged after the call", optCostAfter)
}

func errNeverApplies(a *Assignment) diag.Diagnostic {
	return problem(a.Pos(), len(a.Name), CodeOptionUnused, "%s is the same condition as %s, so the limit never applies: remove one of them", a.Name, optWhen)
}

func errSaysNothing(a *Assignment) diag.Diagnostic {
	return problem(a.Pos(), len(a.Name), CodeOptionUnused, "%s is the opposite of %s, and so says the same: remove it", a.Name, optWhen)
}

func errNeverEmpty(a *Assignment) diag.Diagnostic {
	return problem(a.Pos(), len(a.Name), CodeEmptyUnused, "%s has no effect on a key that always has a value: remove it", a.Name)
}

func errDynamic(a *Assignment, why string) diag.Diagnostic {
	return badValue(a, CodeDynamicLimit, "%s, so its limit cannot be an expression: write a number, or the name of a constant that is the same in every build", why)
}

func warnShortWait(a *Assignment, between time.Duration) diag.Diagnostic {
	d := badValue(a, CodeShortWait, "at the limit a call is admitted every %v on average, so most calls that would wait are refused at once: raise max-wait, or write %s=%s", between, optOnLimit, OnLimitError)
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
	return groupProblem(l, first, option, "the limits of a group share counters, and that %s has another %s: write the same on both, or the policy in a define that both use")
}

// errGroupLacks is errGroupDiffers for an option that one of the limits is without.
func errGroupLacks(l, first *Limit, option string) diag.Diagnostic {
	if l.Directive.Option(option) != nil {
		return groupProblem(l, first, option, "the limits of a group share counters, and that %s has no %s: write one on both, or on neither")
	}
	return groupProblem(l, first, option, "the limits of a group share counters, and that %s has %s, which this one has not: write one on both, or on neither")
}

func groupProblem(l, first *Limit, option, format string) diag.Diagnostic {
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
	remedy := "keep one of them, or give them names (name=…)"
	if l.OfType != first.OfType {
		remedy = "take the method out of the limits of its type with " + Prefix + VerbOff + ", or give this one a name (name=…)"
	}
	return problem(l.Directive.Pos, len(Prefix)+len(l.Directive.Text), CodeDuplicatePolicy,
		"the policy %s has the same algorithm, window and key, so both would share one counter: %s", first.whereFrom(l), remedy)
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
	return fmt.Sprintf("at %s:%d", filepath.Base(p.File), p.Line) // of the same directory
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

// errUnusedInDefine is about an option of the define name, instead of which every limit
// that uses the define has one of the others.
func errUnusedInDefine(a *Assignment, name string, others []string) diag.Diagnostic {
	place := ""
	if !slices.Contains(others, a.Name) {
		place = ", which takes the place of " + a.Name
	}
	return problem(a.Pos(), len(a.Name), CodeUnusedDefine, "every limit that uses %s sets %s itself%s: remove it here", name, strings.Join(others, " or "), place)
}

// errUnusedDefault is about an option of defaults that no limit takes, for reasons that
// say what each is or does.
func errUnusedDefault(a *Assignment, reasons []string) diag.Diagnostic {
	why := ""
	if n := len(reasons) - 1; n >= 0 {
		why = ": each " + strings.TrimPrefix(strings.Join(reasons[:n], ", ")+" or "+reasons[n], " or ")
	}
	return problem(a.Pos(), len(a.Name), CodeUnusedDefault, "no limit of the package takes this %s%s; remove it", a.Name, why)
}

// Places.

func errMisplaced(d *Directive, why reason) diag.Diagnostic {
	text := why.text
	if why.move {
		remedy := "move it to the doc comment of a method or type"
		if v := findVerb(d.Verb); v != nil {
			switch {
			case slices.Equal(v.Targets, []TargetKind{Package}):
				remedy = "move it to the doc comment of the package"
			case !slices.Contains(v.Targets, Method):
				remedy = "move it to the doc comment of a type or function"
			case !slices.Contains(v.Targets, TypeDecl):
				remedy = "move it to the doc comment of a method"
			case why.remedy != "":
				remedy = why.remedy
			}
		}
		text += ": " + remedy
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

func errDuplicateDirective(d *Directive, first diag.Pos) diag.Diagnostic {
	return problem(d.Pos, len(Prefix)+len(d.Text), CodeDuplicateDirective, "%s stands here twice, first in line %d: keep one of them", d.Verb, first.Line)
}
