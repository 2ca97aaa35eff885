package diag

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode/utf16"
)

// Format is a way to write diagnostics, one in a line.
type Format string

const (
	// Text is what Diagnostic.String returns. It is the default.
	Text Format = "text"
	// JSON is one object per line, with the members file, line, column, endColumn,
	// severity, code, message, suggestion and valid; those that say nothing are left
	// out. All but ASCII and printable characters are escaped.
	JSON Format = "json"
	// GitHub is a workflow command of GitHub Actions, which annotates the line.
	GitHub Format = "github"
)

// Formats lists all formats.
func Formats() []Format { return []Format{Text, JSON, GitHub} }

// Write writes l to w in format f, which is one of Formats.
func (l List) Write(w io.Writer, f Format) error {
	var b bytes.Buffer
	for _, d := range l {
		switch f {
		case JSON:
			b.WriteString(d.json())
		case GitHub:
			b.WriteString(d.github())
		default:
			b.WriteString(d.String())
		}
		b.WriteByte('\n')
	}
	_, err := w.Write(b.Bytes())
	return err
}

// record is a Diagnostic in JSON.
type record struct {
	File       string   `json:"file,omitempty"`
	Line       int      `json:"line,omitempty"`
	Column     int      `json:"column,omitempty"`
	EndColumn  int      `json:"endColumn,omitempty"`
	Severity   string   `json:"severity"`
	Code       string   `json:"code"`
	Message    string   `json:"message"`
	Suggestion string   `json:"suggestion,omitempty"`
	Valid      []string `json:"valid,omitempty"`
}

func (d Diagnostic) json() string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	r := record{
		File: filepath.ToSlash(d.Pos.File), Line: d.Pos.Line, Column: d.Pos.Col, EndColumn: d.EndCol,
		Severity: d.Severity.String(), Code: d.Code, Message: d.Message, Suggestion: d.Suggestion, Valid: d.Valid,
	}
	_ = enc.Encode(r) // strings and integers can always be encoded
	// What a terminal would obey can only stand in a string, where an escape means
	// the same.
	var out strings.Builder
	for _, c := range strings.TrimSuffix(b.String(), "\n") {
		switch {
		case !unsafeRune(c):
			out.WriteRune(c)
		case c <= 0xffff:
			fmt.Fprintf(&out, `\u%04x`, c)
		default:
			r1, r2 := utf16.EncodeRune(c)
			fmt.Fprintf(&out, `\u%04x\u%04x`, r1, r2)
		}
	}
	return out.String()
}

// Escapes of workflow commands: in the message, and in a property before it.
var (
	commandData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	commandProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// github renders d as a workflow command:
//
//	::error file=a.go,line=3,col=14,endColumn=19,title=unknown-option::message
func (d Diagnostic) github() string {
	var b strings.Builder
	fmt.Fprintf(&b, "::%s ", d.Severity)
	if d.Pos.IsValid() {
		fmt.Fprintf(&b, "file=%s,line=%d,col=%d,", commandProperty.Replace(Escape(filepath.ToSlash(d.Pos.File))), d.Pos.Line, d.Pos.Col)
		if d.EndCol > 0 {
			fmt.Fprintf(&b, "endColumn=%d,", d.EndCol)
		}
	}
	fmt.Fprintf(&b, "title=%s::%s", commandProperty.Replace(Escape(d.Code)), commandData.Replace(d.text()))
	return b.String()
}
