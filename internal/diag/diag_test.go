package diag

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestString(t *testing.T) {
	t.Parallel()
	pos := Pos{File: "a/b.go", Line: 3, Col: 14}
	for _, tc := range []struct {
		d    Diagnostic
		want string
	}{
		{
			Diagnostic{Pos: pos, Code: "unknown-option", Message: `unknown option "windw"`, Suggestion: "window", Valid: []string{"max", "window"}},
			`a/b.go:3:14: error: unknown option "windw"; did you mean "window"? (valid: max, window) [unknown-option]`,
		},
		{
			Diagnostic{Pos: pos, Severity: Warning, Code: "excluded-file", Message: "not built"},
			"a/b.go:3:14: warning: not built [excluded-file]",
		},
		{
			Diagnostic{Code: "no-match", Message: "there is no directory ./x"},
			"error: there is no directory ./x [no-match]",
		},
		{
			Diagnostic{Pos: Pos{File: "a\x1b[31m\n.go", Line: 1, Col: 1}, Code: "c", Message: "x\u202ey\x00", Valid: []string{"a\rb"}},
			`a\x1b[31m\x0a.go:1:1: error: x\u202ey\x00 (valid: a\x0db) [c]`,
		},
	} {
		if got := tc.d.String(); got != tc.want {
			t.Errorf("got  %s\nwant %s", got, tc.want)
		}
	}
}

func TestDiagnosticIsAnError(t *testing.T) {
	t.Parallel()
	var err error = Diagnostic{Code: "c", Message: "m"}
	var d Diagnostic
	if !errors.As(err, &d) || err.Error() != d.String() {
		t.Errorf("%v", err)
	}
}

func TestHasErrorsIgnoresWarnings(t *testing.T) {
	t.Parallel()
	var l List
	if l.HasErrors() {
		t.Error("an empty list has errors")
	}
	l.Add(Diagnostic{Severity: Warning})
	if l.HasErrors() {
		t.Error("a warning is an error")
	}
	l.Add(Diagnostic{})
	if !l.HasErrors() {
		t.Error("an error is none")
	}
}

func TestSortOrdersAndDropsRepetitions(t *testing.T) {
	t.Parallel()
	d := func(file string, line, col int, s Severity, code, msg string) Diagnostic {
		return Diagnostic{Pos: Pos{file, line, col}, Severity: s, Code: code, Message: msg}
	}
	want := List{
		d("", 0, 0, Error, "z", "no place"),
		d("a.go", 2, 1, Error, "b", "x"),
		d("a.go", 2, 9, Error, "b", "x"),
		d("a.go", 10, 1, Error, "a", "x"),
		d("a.go", 10, 1, Error, "a", "y"),
		d("a.go", 10, 1, Error, "b", "x"),
		d("a.go", 10, 1, Warning, "a", "x"),
		d("b.go", 1, 1, Error, "a", "x"),
	}
	got := List{want[5], want[7], want[2], want[0], want[3], want[7], want[6], want[1], want[4], want[2]}
	got.Sort()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestEscape(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                 "",
		"plain, é 世 😀 \\n": "plain, é 世 😀 \\n",
		"a\nb\tc\x7f":      `a\x0ab\x09c\x7f`,
		"\u0085\u200b":     `\u0085\u200b`,
		"\u2028\u2029":     `\u2028\u2029`,
		"\u202eevil":       `\u202eevil`,
		"\U000e0041":       `\U000e0041`,
		"a\xffb\xc3":       `a\xffb\xc3`,
		"\ufffd":           `\ufffd`,
		"\x1b]0;title\x07": `\x1b]0;title\x07`,
	} {
		if got := Escape(in); got != want {
			t.Errorf("Escape(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("a\x1b\u202e\xff\u2028")
	f.Fuzz(func(t *testing.T, s string) {
		got := Escape(s)
		if !utf8.ValidString(got) {
			t.Fatalf("Escape(%q) is not UTF-8", s)
		}
		if i := strings.IndexFunc(got, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }); i >= 0 {
			t.Fatalf("Escape(%q) = %q", s, got)
		}
		if again := Escape(got); again != got {
			t.Fatalf("Escape changes %q again", got)
		}
	})
}

func TestSuggest(t *testing.T) {
	t.Parallel()
	valid := []string{"max", "window", "key", "algorithm", "on-limit", "off"}
	for word, want := range map[string]string{
		"windw":                         "window",
		"widnow":                        "window",
		"windoww":                       "window",
		"winow":                         "window",
		"WINDOW":                        "window",
		"wndw":                          "", // two edits in a word of four bytes
		"wundpw":                        "window",
		"wxnxxw":                        "",
		"keys":                          "key",
		"kye":                           "key",
		"ke":                            "key",
		"on_limit":                      "on-limit",
		"onlimit":                       "on-limit",
		"of":                            "off",
		"algoritm":                      "algorithm",
		"foo":                           "",
		"":                              "",
		strings.Repeat("window", 1<<20): "",
	} {
		if got := Suggest(word, valid); got != want {
			t.Errorf("Suggest(%.20q) = %q, want %q", word, got, want)
		}
	}
	if got := Suggest("x", nil); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}

func TestSuggestPrefersTheNearestAndThenTheFirst(t *testing.T) {
	t.Parallel()
	if got := Suggest("modes", []string{"mods", "mode"}); got != "mods" {
		t.Errorf("of equals: %q", got)
	}
	if got := Suggest("counter", []string{"count", "counters"}); got != "counters" {
		t.Errorf("the nearest: %q", got)
	}
}

func TestDistanceIsSymmetric(t *testing.T) {
	t.Parallel()
	words := []string{"", "a", "ab", "ba", "abc", "acb", "limit", "limt", "timil", "é"}
	for _, a := range words {
		for _, b := range words {
			if d := distance(a, b); d != distance(b, a) || (d == 0) != (a == b) {
				t.Errorf("distance(%q, %q) = %d and %d", a, b, d, distance(b, a))
			}
		}
	}
	for _, tc := range []struct {
		a, b string
		want int
	}{{"", "abc", 3}, {"ab", "ba", 1}, {"limt", "limit", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3}} {
		if got := distance(tc.a, tc.b); got != tc.want {
			t.Errorf("distance(%q, %q) = %d, want %d", tc.a, tc.b, got, tc.want)
		}
	}
}
