// Package directive is the language of ratelimit comments: which verbs and
// options there are, how a comment is read, and what it may stand on.
//
//	//ratelimit:max=5 window=1m key=ip
//	//ratelimit:limit max=100 window=1h key=`[req.TenantID, req.UserID]`
//
// The registry (Verbs) is the one source of truth: parsing, validation, "did you
// mean", help and the reference all read it. Parse turns one comment into a
// Directive that knows the place of each of its words, and Collect finds every
// directive of a file and what it applies to. Resolve gives the limits of a package
// what they have from its defines and defaults. Limit and Wrapper then give options
// their types and check what can be checked without knowing Go types; CheckLimits
// and CheckGroup do so for the limits of one method and of one group.
//
// The world is closed: a directive, or something that was meant to be one, that
// would have no effect is an error. Nothing here panics on any input, and there is
// no state but that of directives: all functions may be called concurrently.
package directive

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
)

// Prefix is what every directive begins with.
const Prefix = "//ratelimit:"

// MaxLen is the longest text of a directive, in bytes, without the prefix.
const MaxLen = 4 << 10

// MaxDirectives is the most directives that can stand on one declaration.
const MaxDirectives = 64

// Span is a range of bytes of a comment, counted from its "//".
type Span struct{ Start, End int }

// Directive is one comment as it was read.
type Directive struct {
	// Verb is the verb; "limit" if it was left out.
	Verb string
	// VerbSpan is where the verb stands, and empty if it was left out.
	VerbSpan Span
	// Text is what follows the prefix, as written, without blanks at its ends.
	Text string
	// Options are the options in the order written. Those that were reported as
	// unknown, duplicate or malformed are not among them.
	Options []Assignment
	// Pos is the place of the comment's first byte.
	Pos diag.Pos

	// broken is set if Parse reported something: checks of options against each
	// other would then find faults that are only consequences.
	broken bool
	// inherited is what Resolve added to the options of a limit.
	inherited []Assignment
	defaults  int // how many of them, the last ones, are of the package's defaults
}

// Broken reports whether Parse reported something: what d says is not known as a whole.
func (d *Directive) Broken() bool { return d.broken }

// Assignment is one name=value.
type Assignment struct {
	Name     string
	NameSpan Span
	Value    Value
}

// Kind is the way a value was written.
type Kind uint8

const (
	// Bare is a word that ends at a blank.
	Bare Kind = iota
	// Quoted is a Go string in double quotes.
	Quoted
	// RawQuoted is a Go raw string, in back quotes.
	RawQuoted
)

// Value is the value of an option.
type Value struct {
	// Text is what the value says, decoded.
	Text string
	// Raw is the value as written, with its quotes.
	Raw  string
	Kind Kind
	// Span is where Raw stands.
	Span Span

	comment diag.Pos // of the comment's first byte
}

// Pos is the place in the source of the byte at offset of v.Text: the column of
// the character itself, or of the escape that stands for it. Offsets outside the
// text mean its nearest end.
func (v *Value) Pos(offset int) diag.Pos {
	offset = min(max(offset, 0), len(v.Text))
	col := offset
	switch v.Kind {
	case RawQuoted:
		col = 1 + offset
	case Quoted:
		col = 1 + v.escaped(offset)
	}
	return shift(v.comment, v.Span.Start+col)
}

// escaped is the offset between the quotes of what decodes to the byte at offset.
func (v *Value) escaped(offset int) int {
	inner := v.Raw[1 : len(v.Raw)-1]
	rest, decoded := inner, 0
	for rest != "" {
		r, multibyte, tail, err := strconv.UnquoteChar(rest, '"')
		if err != nil {
			break
		}
		n := 1
		if multibyte {
			n = utf8.RuneLen(r)
		}
		if offset < decoded+n {
			break
		}
		decoded += n
		rest = tail
	}
	return len(inner) - len(rest)
}

// word is the part of v.Text at offset, with its place.
func (v *Value) word(offset int, text string) Word {
	return Word{Text: text, Pos: v.Pos(offset), End: v.Pos(offset + len(text))}
}

// Option returns the option of that name, or nil if it is not set. After Resolve,
// that includes what a limit has from a define or the defaults of its package.
func (d *Directive) Option(name string) *Assignment {
	if a := d.own(name); a != nil {
		return a
	}
	for i := range d.inherited {
		if d.inherited[i].Name == name {
			return &d.inherited[i]
		}
	}
	return nil
}

// defaulted reports whether a, an option of d, is of the package's defaults.
func (d *Directive) defaulted(a *Assignment) bool {
	for i := range d.inherited[len(d.inherited)-d.defaults:] {
		if a == &d.inherited[len(d.inherited)-d.defaults+i] {
			return true
		}
	}
	return false
}

// own is the option of that name that d itself sets, or nil.
func (d *Directive) own(name string) *Assignment {
	for i := range d.Options {
		if d.Options[i].Name == name {
			return &d.Options[i]
		}
	}
	return nil
}

// Pos is the place of the option's name.
func (a *Assignment) Pos() diag.Pos { return shift(a.Value.comment, a.NameSpan.Start) }

// End is the place behind the option's value.
func (a *Assignment) End() diag.Pos { return shift(a.Value.comment, a.Value.Span.End) }

// From says where a, an option of d, stands if that is in another directive: in the
// defaults or in a define. It is "" if d itself has it.
func (d *Directive) From(a *Assignment) string {
	if a.Value.comment == d.Pos {
		return ""
	}
	verb := VerbDefine
	if d.defaulted(a) {
		verb = VerbDefaults
	}
	return "the " + verb + " " + whereFrom(a.Value.comment, d.Pos)
}

// At is the place in the source where s begins.
func (d *Directive) At(s Span) diag.Pos { return shift(d.Pos, s.Start) }

// String prints d as the comment of one line that reads back as d.
func (d *Directive) String() string {
	var b strings.Builder
	b.WriteString(Prefix)
	sep := ""
	if d.VerbSpan.End > d.VerbSpan.Start {
		b.WriteString(d.Verb)
		sep = " "
	}
	for _, a := range d.Options {
		b.WriteString(sep + a.Name + "=" + a.Value.Raw)
		sep = " "
	}
	return b.String()
}

// effective is the text of d and, in parentheses, what it has from a define or the
// defaults.
func (d *Directive) effective() string {
	if len(d.inherited) == 0 {
		return d.Text
	}
	var list []string
	for _, a := range d.inherited {
		list = append(list, a.Name+"="+a.Value.Raw)
	}
	return d.Text + " (" + strings.Join(list, " ") + ")"
}

func shift(p diag.Pos, bytes int) diag.Pos {
	p.Col += bytes
	return p
}
