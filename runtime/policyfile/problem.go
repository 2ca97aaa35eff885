package policyfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
)

// Problem is one thing that is wrong with a file or with a variable of the environment.
type Problem struct {
	// File is the name of the file, or of the variable.
	File string
	// Line and Col count from 1, Col in bytes. They are 0 for a variable, and for a
	// file that cannot be read.
	Line, Col int
	// Message says what is wrong and what to do.
	Message string
}

// Error returns "file:line:col: message". Control characters are escaped.
func (p Problem) Error() string {
	place := p.File
	if p.Line > 0 {
		place = fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
	}
	return diag.Escape(place + ": " + p.Message)
}

// Error is all that is wrong with a file: at least one Problem, in the order of the
// lines.
type Error struct{ Problems []Problem }

// Error returns the problems, each in a line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the problems.
func (e *Error) Unwrap() []error {
	errs := make([]error, len(e.Problems))
	for i, p := range e.Problems {
		errs[i] = p
	}
	return errs
}

// place is where something was written.
type place struct {
	file      string
	line, col int
}

func (p place) problem(format string, args ...any) Problem {
	return Problem{p.file, p.line, p.col, fmt.Sprintf(format, args...)}
}

// asError returns an *Error of problems, or nil if there are none.
func asError(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	return &Error{slices.Compact(problems)}
}

// suggest tells which of the valid names was meant, and what there is.
func suggest(word string, valid []string) string {
	text := ""
	if s := diag.Suggest(word, valid); s != "" {
		text = fmt.Sprintf("; did you mean %q?", s)
	}
	return text + fmt.Sprintf(" (valid: %s)", strings.Join(valid, ", "))
}

// show quotes text for a message, shortened if it is long.
func show(text string) string {
	const most = 60
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return fmt.Sprintf("%q", text)
}
