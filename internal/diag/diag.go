// Package diag describes problems in the text of users: what is wrong, where,
// and what to write instead. Every stage of the pipeline reports through it, so
// that all problems of all packages come out in one form and one order.
package diag

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Severity tells whether a problem stops generation.
type Severity uint8

const (
	// Error stops generation: nothing is written.
	Error Severity = iota
	// Warning is reported; generation goes on.
	Warning
)

// String returns "error" or "warning".
func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// Pos is a place in a file: line and column count from 1, the column in bytes,
// as the go command and editors count them. The zero Pos is no place.
type Pos struct {
	File string
	Line int
	Col  int
}

// IsValid reports whether p names a place.
func (p Pos) IsValid() bool { return p.File != "" }

// Diagnostic is one problem.
type Diagnostic struct {
	Pos      Pos
	EndCol   int // column after the offending text, 0 if unknown
	Severity Severity
	// Code is stable and kebab-case ("unknown-option"): the docs list every code.
	Code string
	// Message says what is wrong and what to do, in lower case, without a full
	// stop. It may quote user text raw; String escapes what a terminal would obey.
	Message string
	// Suggestion is the name the user probably meant, or "".
	Suggestion string
	// Valid lists the names that are possible here, or nil.
	Valid []string
}

// String renders d in one line:
//
//	file:line:col: error: message; did you mean "x"? (valid: a, b) [code]
//
// Control and bidirectional-override characters are escaped.
func (d Diagnostic) String() string {
	var b strings.Builder
	if d.Pos.IsValid() {
		fmt.Fprintf(&b, "%s:%d:%d: ", Escape(d.Pos.File), d.Pos.Line, d.Pos.Col)
	}
	fmt.Fprintf(&b, "%s: %s [%s]", d.Severity, d.text(), d.Code)
	return b.String()
}

// text is the message with the suggestion and the names that are possible.
func (d Diagnostic) text() string {
	text := Escape(d.Message)
	if d.Suggestion != "" {
		text += fmt.Sprintf("; did you mean %q?", d.Suggestion)
	}
	if len(d.Valid) > 0 {
		text += fmt.Sprintf(" (valid: %s)", Escape(strings.Join(d.Valid, ", ")))
	}
	return text
}

// Error makes a Diagnostic usable as an error.
func (d Diagnostic) Error() string { return d.String() }

// List collects the diagnostics of a run.
type List []Diagnostic

// Add appends d.
func (l *List) Add(d ...Diagnostic) { *l = append(*l, d...) }

// HasErrors reports whether any diagnostic stops generation.
func (l List) HasErrors() bool {
	return slices.ContainsFunc(l, func(d Diagnostic) bool { return d.Severity == Error })
}

// Sort orders l by file, line, column, severity, code and message, and drops
// exact repetitions, so that a run prints the same lines whatever found them
// first.
func (l *List) Sort() {
	slices.SortStableFunc(*l, compare)
	*l = slices.CompactFunc(*l, func(a, b Diagnostic) bool { return compare(a, b) == 0 })
}

func compare(a, b Diagnostic) int {
	return cmp.Or(
		cmp.Compare(a.Pos.File, b.Pos.File),
		cmp.Compare(a.Pos.Line, b.Pos.Line),
		cmp.Compare(a.Pos.Col, b.Pos.Col),
		cmp.Compare(a.Severity, b.Severity),
		cmp.Compare(a.Code, b.Code),
		cmp.Compare(a.Message, b.Message),
	)
}

// Escape replaces what a terminal or a log reader would obey rather than show:
// control characters, line and paragraph separators, bidirectional controls and
// invalid UTF-8. Everything else is kept as it is.
func Escape(s string) string {
	clean := true
	for _, r := range s {
		if unsafeRune(r) {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unsafeRune(r) && r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case unsafeRune(r) && r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		case unsafeRune(r):
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

func unsafeRune(r rune) bool {
	return r == utf8.RuneError || unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}
