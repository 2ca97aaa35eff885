package directive

import (
	"reflect"
	"strings"
	"testing"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
)

func TestParseGivesTheSpanOfEveryWord(t *testing.T) {
	t.Parallel()
	const comment = "//ratelimit:limit  max=5\tkey=`[a, b]` name=\"x\\u0079\""
	d, diags := Parse(comment, at)
	if len(diags) > 0 {
		t.Fatal(render(diags))
	}
	text := func(s Span) string { return comment[s.Start:s.End] }
	if got := text(d.VerbSpan); got != "limit" || d.Verb != "limit" {
		t.Errorf("verb %q, span of %q", d.Verb, got)
	}
	if want := comment[len(Prefix):]; d.Text != want {
		t.Errorf("Text = %q, want %q", d.Text, want)
	}
	var got [][4]string
	for _, a := range d.Options {
		got = append(got, [4]string{a.Name, text(a.NameSpan), a.Value.Text, text(a.Value.Span)})
	}
	want := [][4]string{
		{"max", "max", "5", "5"},
		{"key", "key", "[a, b]", "`[a, b]`"},
		{"name", "name", "xy", `"x\u0079"`},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("options %q, want %q", got, want)
	}
}

func TestImpliedVerbHasAnEmptySpan(t *testing.T) {
	t.Parallel()
	d, _ := Parse("//ratelimit:max=5", at)
	if d.Verb != VerbLimit || d.VerbSpan != (Span{len(Prefix), len(Prefix)}) {
		t.Errorf("verb %q at %v", d.Verb, d.VerbSpan)
	}
}

func TestValuePosPointsAtTheSource(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		raw, find string // find is where the text of the value after the mark begins in raw
	}{
		{`req.ID`, `ID`},
		{"`req.ID`", `ID`},
		{`"req.ID"`, `ID`},
		{`"a\tb\\c\x41\u00e9é\U0001F600ID"`, `ID`},
		{"`éID`", `ID`},
		{`éID`, `ID`},
		{`"\"ID"`, `ID`},
		{`"\u0049D"`, `\u0049D`},
	} {
		comment := "//ratelimit:key=" + tc.raw + " max=7"
		d, diags := Parse(comment, at)
		if len(diags) > 0 {
			t.Fatal(render(diags))
		}
		v := &d.Option("key").Value
		got := v.Pos(strings.Index(v.Text, "ID"))
		want := diag.Pos{File: at.File, Line: at.Line, Col: at.Col + strings.Index(comment, tc.find)}
		if got != want {
			t.Errorf("%s: %v, want %v", tc.raw, got, want)
		}
		if end := v.Pos(1 << 20); end.Col > at.Col+v.Span.End {
			t.Errorf("%s: position after the end: %v", tc.raw, end)
		}
		if start := v.Pos(-1); start != v.Pos(0) {
			t.Errorf("%s: position before the start: %v", tc.raw, start)
		}
	}
}

func TestValuePosInsideAnEscapePointsAtTheEscape(t *testing.T) {
	t.Parallel()
	d, _ := Parse(`//ratelimit:key="\u00e9x"`, at)
	v := &d.Option("key").Value
	start := at.Col + len(`//ratelimit:key="`)
	for offset, want := range []int{start, start, start + 6, start + 7} {
		if got := v.Pos(offset).Col; got != want {
			t.Errorf("Pos(%d) in column %d, want %d", offset, got, want)
		}
	}
}

func TestTextMayHaveFourKibibytes(t *testing.T) {
	t.Parallel()
	fill := MaxLen - len("key=")
	if _, diags := Parse(Prefix+"key="+strings.Repeat("x", fill), at); len(diags) > 0 {
		t.Errorf("%d bytes: %s", MaxLen, render(diags))
	}
	d, diags := Parse(Prefix+"key="+strings.Repeat("x", fill+1), at)
	if d != nil || len(diags) != 1 || diags[0].Code != CodeTooLong {
		t.Errorf("%d bytes: %v, %s", MaxLen+1, d, render(diags))
	}
}

func TestLineEndsAreNoPartOfADirective(t *testing.T) {
	t.Parallel()
	want, _ := Parse("//ratelimit:max=5 key=a", at)
	for _, end := range []string{"\r", "\n", "\r\n", " \t\r\n", "\nfunc F() {}"} {
		got, diags := Parse("//ratelimit:max=5 key=a"+end, at)
		if len(diags) > 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v\n%s", end, got, render(diags))
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"//ratelimit:max=5 window=1m key=ip",
		"//ratelimit:limit key=`a b` name=\"x\\u0041\" cost=1",
		"//ratelimit:wrapper name=X constructor=\"Y\"",
		"//ratelimit:off",
		"//ratelimit:lock=\"1s,\\u0032s\" on-limit=fallback:é tz=UTC message=`é` max=10s algorithm=time-quota",
		"//ratelimit:define name=x max=1",
		"//ratelimit:key=\"\\xff\" max=\x00",
		"//ratelimit:max= = = \"",
		"//ratelimit:\t=\u00e9\u2028",
		"// ratelimit : MAX = 5",
		"/*ratelimit:x*/",
		"/*",
		"//",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, comment string) {
		d, diags := Parse(comment, at)
		checkDiags(t, comment, diags)
		if d == nil {
			return
		}
		inside := func(s Span) bool { return 0 <= s.Start && s.Start <= s.End && s.End <= len(comment) }
		if !inside(d.VerbSpan) {
			t.Fatalf("verb at %v of %q", d.VerbSpan, comment)
		}
		for i := range d.Options {
			a := &d.Options[i]
			if !inside(a.NameSpan) || !inside(a.Value.Span) {
				t.Fatalf("option %+v of %q", a, comment)
			}
			if comment[a.NameSpan.Start:a.NameSpan.End] != a.Name || comment[a.Value.Span.Start:a.Value.Span.End] != a.Value.Raw {
				t.Fatalf("option %+v does not stand in %q", a, comment)
			}
			last := 0
			for offset := range len(a.Value.Text) + 1 {
				col := a.Value.Pos(offset).Col
				if col < last || col < at.Col+a.Value.Span.Start || col > at.Col+a.Value.Span.End {
					t.Fatalf("Pos(%d) of %+v is column %d", offset, a, col)
				}
				last = col
			}
		}
		switch d.Verb {
		case VerbLimit:
			_, more := d.Limit()
			checkDiags(t, comment, more)
		case VerbWrapper:
			_, more := d.Wrapper()
			checkDiags(t, comment, more)
		}
		if len(diags) > 0 {
			return
		}
		again, diags := Parse(d.String(), at)
		if len(diags) > 0 || again.Verb != d.Verb || len(again.Options) != len(d.Options) {
			t.Fatalf("%q printed as %q reads as %+v\n%s", comment, d, again, render(diags))
		}
		for i, a := range again.Options {
			b := d.Options[i]
			if a.Name != b.Name || a.Value.Text != b.Value.Text || a.Value.Kind != b.Value.Kind {
				t.Fatalf("%q printed as %q: %+v became %+v", comment, d, b, a)
			}
		}
	})
}

func checkDiags(t *testing.T, comment string, diags diag.List) {
	t.Helper()
	for _, d := range diags {
		if d.Code == "" || d.Message == "" || d.Pos.File != at.File {
			t.Fatalf("%q: %+v", comment, d)
		}
		if d.Pos.Line != at.Line || d.Pos.Col < at.Col || d.Pos.Col > at.Col+len(comment) || d.EndCol < d.Pos.Col || d.EndCol > at.Col+len(comment) {
			t.Fatalf("%q has %d bytes: %+v", comment, len(comment), d)
		}
	}
}
