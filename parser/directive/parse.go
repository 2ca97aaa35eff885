package directive

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
)

// Parse reads one comment, whose first byte stands at pos. The comment is a line
// comment as it stands in the file (a line end, "\n" or "\r\n", may follow), or a
// block comment.
//
// It returns nil and nothing for a comment that is neither a directive nor a near
// miss. Of a directive it reports every problem that can be seen without knowing
// what the values mean, until there are ten, and returns what could be read of it besides; of one that
// cannot be read at all, and of a near miss, only the problem.
func Parse(comment string, pos diag.Pos) (*Directive, diag.List) {
	if strings.HasPrefix(comment, Prefix) {
		comment, _, _ = strings.Cut(comment, "\n")
		comment = strings.TrimRight(comment, " \t\r")
		switch {
		case len(comment) == len(Prefix):
			return nil, diag.List{errEmpty(pos)}
		case !isBlank(comment[len(Prefix)]):
			return parse(comment, pos)
		}
	}
	if d, ok := nearMiss(comment, pos); ok {
		return nil, diag.List{d}
	}
	if d, ok := misspelt(comment, pos); ok {
		return nil, diag.List{d}
	}
	return nil, nil
}

// maxProblems is how many problems of one directive are reported before the rest of
// it is left unread.
const maxProblems = 10

// reader reads the text of one directive. All offsets are those of the comment.
type reader struct {
	comment string
	off     int
	d       *Directive
	verb    *Verb // nil if it is unknown
	bad     []int // offsets of characters that were reported
	seen    map[string]Span
	diags   diag.List
}

func parse(comment string, pos diag.Pos) (*Directive, diag.List) {
	text := comment[len(Prefix):]
	if len(text) > MaxLen {
		return nil, diag.List{errTooLong(shift(pos, len(Prefix)), len(text))}
	}
	p := &reader{
		comment: comment,
		off:     len(Prefix),
		d:       &Directive{Text: text, Pos: pos},
		seen:    map[string]Span{},
	}
	p.characters()
	p.readVerb()
	for p.skipBlanks(); p.off < len(p.comment) && len(p.diags) < maxProblems; p.skipBlanks() {
		p.readOption()
	}
	p.d.broken = len(p.diags) > 0
	return p.d, p.diags
}

// characters reports what a reader of the source could not see or would see in
// another place. In a quoted value an escape can stand for any of it.
func (p *reader) characters() {
	inRun := false
	for i := len(Prefix); i < len(p.comment); {
		r, n := utf8.DecodeRuneInString(p.comment[i:])
		bad := (r == utf8.RuneError && n == 1) || !unicode.IsPrint(r) && r != '\t'
		if len(p.bad) == maxProblems {
			return
		}
		if bad && !inRun {
			p.report(errCharacter(p.at(i), p.comment[i:i+n]))
			p.bad = append(p.bad, i)
		}
		inRun = bad
		i += n
	}
}

func (p *reader) readVerb() {
	start := p.off
	word := p.word()
	// A first word without "=" is a verb, but one that is the name of an option only
	// lacks its value.
	if strings.ContainsRune(word, '=') || findVerb(VerbLimit).option(word) != nil {
		p.off = start
		p.d.Verb = VerbLimit
		p.d.VerbSpan = Span{start, start}
	} else {
		p.d.Verb = word
		p.d.VerbSpan = Span{start, p.off}
		if findVerb(word) == nil {
			p.report(errUnknownVerb(p.at(start), word))
		}
	}
	p.verb = findVerb(p.d.Verb)
}

// readOption reads from a non-blank to the blank after the option.
func (p *reader) readOption() {
	start := p.off
	name, ok := p.optionName()
	if !ok {
		p.readJunk(start)
		return
	}
	a := Assignment{Name: name, NameSpan: Span{start, start + len(name)}}
	valueStart := p.off
	value, ok := p.readValue(name)
	if !ok {
		return
	}
	a.Value = value
	switch first, dup := p.seen[name]; {
	case p.verb == nil:
		// The verb was reported; which options it has, nobody knows.
	case p.verb.option(name) == nil:
		p.report(errUnknownOption(p.d.At(a.NameSpan), p.verb, name))
	case dup:
		p.report(errDuplicateOption(p.d.At(a.NameSpan), name, p.d.At(first).Col))
	case strings.TrimSpace(value.Text) == "":
		p.seen[name] = a.NameSpan
		p.report(errMissingValue(p.at(valueStart), p.verb.option(name)))
	case slices.ContainsFunc(p.bad, func(i int) bool { return valueStart <= i && i < p.off }):
		// Its characters were reported, and what it says with them nobody meant.
		p.seen[name] = a.NameSpan
	default:
		p.seen[name] = a.NameSpan
		p.d.Options = append(p.d.Options, a)
	}
}

// optionName consumes "name=" and returns the name. Whether there is an option of
// that name does not matter here.
func (p *reader) optionName() (string, bool) {
	name := leadingName(p.comment[p.off:])
	rest := p.comment[p.off+len(name):]
	if name == "" || !isAssign(rest) {
		return "", false
	}
	p.off += len(name) + 1
	return name, true
}

// readValue reads the value after "name=". It reports and returns false if there
// is none that could be told from what follows.
func (p *reader) readValue(name string) (Value, bool) {
	start := p.off
	v := Value{comment: p.d.Pos}
	if start == len(p.comment) || isBlank(p.comment[start]) {
		p.missing(name)
		return v, false
	}
	quote := p.comment[start]
	if quote != '"' && quote != '`' {
		v.Text = p.word()
		if i := p.separator(start, name); i > start {
			p.report(errSeparator(p.at(i), p.comment[i]))
			v.Text = p.comment[start:i]
			p.off = i + 1
		}
		v.Raw = v.Text
		v.Span = Span{start, start + len(v.Text)}
		if r, _ := utf8.DecodeRuneInString(v.Text); strings.ContainsRune("“”„«»‘’", r) {
			p.report(errTypographicQuote(p.at(start), r))
			return v, false
		}
		return v, true
	}
	end := closingQuote(p.comment[start:])
	if end < 0 {
		p.report(errUnterminated(p.at(start), quote))
		p.off = len(p.comment)
		return v, false
	}
	p.off = start + end
	v.Raw = p.comment[start:p.off]
	v.Span = Span{start, p.off}
	v.Kind = RawQuoted
	v.Text = v.Raw[1 : len(v.Raw)-1]
	if quote == '"' {
		v.Kind = Quoted
		text, err := strconv.Unquote(v.Raw)
		if err != nil {
			p.report(errEscape(p.at(start+badEscape(v.Raw)), v.Raw))
			return v, false
		}
		v.Text = text
	}
	if p.off < len(p.comment) && !isBlank(p.comment[p.off]) {
		p.report(errAfterQuote(p.at(p.off)))
		p.word()
		return v, false
	}
	return v, true
}

// separator returns the offset of a comma or semicolon that is meant to separate the
// bare value from start up to p.off from the next option, or -1. A text may end with
// one.
func (p *reader) separator(start int, name string) int {
	if p.verb == nil || p.verb.option(name) == nil {
		return -1
	}
	text := p.verb.option(name).Type == Text
	quote := byte(0) // that a literal of an expression has begun with
	for i := start; i < p.off; i++ {
		switch c := p.comment[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
			continue
		case c == '"' || c == '\'' || c == '`':
			quote = c
			continue
		case c != ',' && c != ';':
			continue
		}
		rest := strings.TrimLeft(p.comment[i+1:], " \t")
		if text && (rest == "" || i == p.off-1) {
			continue
		}
		next := leadingName(rest)
		if rest == "" || p.verb.option(next) != nil && isAssign(rest[len(next):]) {
			return i
		}
	}
	return -1
}

// missing reports "name=" before a blank or the end. A word that can only be the
// value that was meant is consumed with it, so that it is not reported again.
func (p *reader) missing(name string) {
	at := p.at(p.off)
	p.seen[name] = Span{p.off - len(name) - 1, p.off - 1}
	p.skipBlanks()
	mark := p.off
	if _, isOption := p.optionName(); !isOption && p.off < len(p.comment) {
		p.report(errBlankAtAssign(at, name, p.word()))
		return
	}
	p.off = mark
	var o *Option
	if p.verb != nil {
		o = p.verb.option(name)
		if o == nil {
			p.report(errUnknownOption(shift(at, -len(name)-1), p.verb, name))
			return
		}
	}
	if o == nil {
		o = &Option{Name: name}
	}
	p.report(errMissingValue(at, o))
}

// readJunk reports the words from start up to the next option in one diagnostic.
func (p *reader) readJunk(start int) {
	first := p.word()
	if p.verb == nil {
		return
	}
	if p.verb.option(first) != nil {
		p.bareOption(start, first)
		return
	}
	end := p.off
	for {
		p.skipBlanks()
		mark := p.off
		if p.off == len(p.comment) {
			break
		}
		if _, isOption := p.optionName(); isOption {
			p.off = mark
			break
		}
		p.word()
		end = p.off
	}
	if slices.ContainsFunc(p.bad, func(i int) bool { return start <= i && i < end }) {
		return // its characters were reported
	}
	junk := p.comment[start:end]
	if n := len(p.d.Options); n > 0 {
		a := p.d.Options[n-1]
		o := p.verb.option(a.Name)
		follows := a.Value.Kind == Bare && !strings.HasPrefix(junk, "//") && onlyBlanks(p.comment[a.Value.Span.End:start])
		whole := p.comment[a.Value.Span.Start:end]
		switch {
		case follows && o.takesExpr() && !isNumber(a.Value.Text):
			p.report(errUnquoted(p.at(start), junk, a.Name, whole))
			return
		case follows && o.Type == Durations && (strings.HasSuffix(a.Value.Text, ",") || strings.HasPrefix(junk, ",")):
			p.report(errBlankInList(p.at(start), junk, a.Name, strings.Join(strings.Fields(whole), "")))
			return
		}
	}
	p.report(errUnexpected(p.at(start), junk))
}

// bareOption reports the name of an option without "=" right after it.
func (p *reader) bareOption(start int, name string) {
	o := p.verb.option(name)
	at := p.at(start)
	p.seen[name] = Span{start, start + len(name)}
	p.skipBlanks()
	if strings.HasPrefix(p.comment[p.off:], "=") {
		p.off++
		p.skipBlanks()
	}
	mark := p.off
	if _, isOption := p.optionName(); !isOption && p.off < len(p.comment) {
		p.report(errBlankAtAssign(at, name, p.word()))
		return
	}
	p.off = mark
	p.report(errMissingValue(at, o))
}

// word consumes up to the next blank.
func (p *reader) word() string {
	start := p.off
	for p.off < len(p.comment) && !isBlank(p.comment[p.off]) {
		p.off++
	}
	return p.comment[start:p.off]
}

func (p *reader) skipBlanks() {
	for p.off < len(p.comment) && isBlank(p.comment[p.off]) {
		p.off++
	}
}

func (p *reader) at(offset int) diag.Pos { return shift(p.d.Pos, offset) }

func (p *reader) report(d diag.Diagnostic) { p.diags.Add(d) }

// closingQuote is the length of the quoted text that s begins with, or -1 if it
// does not end.
func closingQuote(s string) int {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == s[0]:
			return i + 1
		case s[i] == '\\' && s[0] == '"':
			i++
		}
	}
	return -1
}

// badEscape is the offset in quoted of the escape that is not one of Go's.
func badEscape(quoted string) int {
	inner := quoted[1 : len(quoted)-1]
	rest := inner
	for rest != "" {
		_, _, tail, err := strconv.UnquoteChar(rest, '"')
		if err != nil {
			break
		}
		rest = tail
	}
	return 1 + len(inner) - len(rest)
}

// leadingName is the longest prefix of s that has the form of a name, in any
// case.
func leadingName(s string) string {
	i := 0
	for i < len(s) && (isLetter(s[i]) || s[i] == '_' || i > 0 && (isDigit(s[i]) || s[i] == '-')) {
		i++
	}
	return s[:i]
}

// isAssign reports whether s begins with "=" and not "==".
func isAssign(s string) bool {
	return strings.HasPrefix(s, "=") && !strings.HasPrefix(s, "==")
}

func isBlank(c byte) bool  { return c == ' ' || c == '\t' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func onlyBlanks(s string) bool { return strings.Trim(s, " \t") == "" }
