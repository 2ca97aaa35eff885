package diag

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode"
)

func written(t *testing.T, f Format, l ...Diagnostic) string {
	t.Helper()
	var b strings.Builder
	if err := List(l).Write(&b, f); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var typo = Diagnostic{
	Pos: Pos{File: "a/b.go", Line: 3, Col: 14}, EndCol: 19, Code: "unknown-option",
	Message: `unknown option "windw"`, Suggestion: "window", Valid: []string{"max", "window"},
}

var nowhere = Diagnostic{Severity: Warning, Code: "no-match", Message: "there is no directory ./x"}

func TestTextIsOneLineEach(t *testing.T) {
	t.Parallel()
	if got, want := written(t, Text, typo, nowhere), typo.String()+"\n"+nowhere.String()+"\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestJSONIsOneObjectEach(t *testing.T) {
	t.Parallel()
	const want = `{"file":"a/b.go","line":3,"column":14,"endColumn":19,"severity":"error","code":"unknown-option","message":"unknown option \"windw\"","suggestion":"window","valid":["max","window"]}
{"severity":"warning","code":"no-match","message":"there is no directory ./x"}
`
	if got := written(t, JSON, typo, nowhere); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestGitHubCommands(t *testing.T) {
	t.Parallel()
	hostile := Diagnostic{
		Pos: Pos{File: "a,b:c%\n.go", Line: 1, Col: 2}, Code: "c",
		Message: "100% of\r\n::error::it, \"a:b\"\x1b[31m\u202e",
	}
	const want = `::error file=a/b.go,line=3,col=14,endColumn=19,title=unknown-option::unknown option "windw"; did you mean "window"? (valid: max, window)
::warning title=no-match::there is no directory ./x
::error file=a%2Cb%3Ac%25\x0a.go,line=1,col=2,title=c::100%25 of\x0d\x0a::error::it, "a:b"\x1b[31m\u202e
`
	if got := written(t, GitHub, typo, nowhere, hostile); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestJSONEscapesWhatATerminalObeysAndLosesNothing(t *testing.T) {
	t.Parallel()
	const message = "a\x00\x1b\x7f\u0085\u200b\u202e\u2028\U000e0041é<&>\\u202e"
	got := written(t, JSON, Diagnostic{Pos: Pos{File: "\u202e.go", Line: 1, Col: 1}, Code: "c", Message: message, Valid: []string{"\x9b"}})
	if i := strings.IndexFunc(strings.TrimSuffix(got, "\n"), func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }); i >= 0 {
		t.Errorf("%q", got)
	}
	var r record
	if err := json.Unmarshal([]byte(got), &r); err != nil || r.Message != message || r.File != "\u202e.go" {
		t.Errorf("%v, %+v", err, r)
	}
}

func TestWriteReturnsTheErrorOfTheWriter(t *testing.T) {
	t.Parallel()
	want := errors.New("full")
	for _, f := range Formats() {
		if err := (List{typo}).Write(failing{want}, f); !errors.Is(err, want) {
			t.Errorf("%s: %v", f, err)
		}
	}
}

type failing struct{ err error }

func (w failing) Write([]byte) (int, error) { return 0, w.err }

func FuzzFormats(f *testing.F) {
	f.Add("a\x1b\u202e\xff\u2028%\r\n", "f,:.go")
	f.Fuzz(func(t *testing.T, message, file string) {
		d := Diagnostic{Pos: Pos{File: file, Line: 1, Col: 1}, Code: "c", Message: message, Valid: []string{message}}
		for _, format := range Formats() {
			got := written(t, format, d)
			if strings.Count(got, "\n") != 1 || !strings.HasSuffix(got, "\n") {
				t.Fatalf("%s: %q is not one line", format, got)
			}
			if i := strings.IndexFunc(got[:len(got)-1], func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }); i >= 0 {
				t.Fatalf("%s: %q", format, got)
			}
		}
		var r record
		if err := json.Unmarshal([]byte(written(t, JSON, d)), &r); err != nil || !reflect.DeepEqual([]rune(r.Message), []rune(message)) {
			t.Fatalf("%q became %q: %v", message, r.Message, err)
		}
	})
}
