package main

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/ratelimitgen/ratelimitgen/parser/directive"
)

const brokenSource = `package p

type T struct{}

//ratelimit:max=1 name="a%\n"
func (T) M() error { return nil }
`

const excludedSource = `//go:build ignore

package p

type T struct{}

//ratelimit:max=1
func (T) M() error { return nil }
`

func TestProblemsInEveryFormat(t *testing.T) {
	t.Parallel()
	dir := module(t, map[string]string{"p/p.go": brokenSource})
	const message = `name=\"a%\\n\": a name is a letter or _ and then letters, digits, _ . or -, at most 128 in all`
	plain := strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(message)
	for _, c := range []struct {
		args           []string
		stdout, stderr string
	}{
		{[]string{"-C", dir, "./..."}, "", "p/p.go:5:25: error: " + plain + " [bad-name]\n"},
		{[]string{"-C", dir, "-format=text", "./..."}, "", "p/p.go:5:25: error: " + plain + " [bad-name]\n"},
		{[]string{"-C", dir, "-format=github", "./..."}, "", "::error file=p/p.go,line=5,col=25,endColumn=30,title=bad-name::" + strings.ReplaceAll(plain, "%", "%25") + "\n"},
		{[]string{"-C", dir, "-json", "./..."}, `{"file":"p/p.go","line":5,"column":25,"endColumn":30,"severity":"error","code":"bad-name","message":"` + message + `"}` + "\n", ""},
		{[]string{"check", "-C", dir, "-format=json", "./..."}, `{"file":"p/p.go","line":5,"column":25,"endColumn":30,"severity":"error","code":"bad-name","message":"` + message + `"}` + "\n", ""},
	} {
		var stdout, stderr bytes.Buffer
		code := run(context.Background(), c.args, &stdout, &stderr)
		if code != exitProblem || stdout.String() != c.stdout || stderr.String() != c.stderr {
			t.Errorf("%q: exit status %d, printed\n%sand\n%swant\n%sand\n%s", c.args, code, &stdout, &stderr, c.stdout, c.stderr)
		}
	}
}

func TestWithJSONOnlyProblemsAreOnStandardOutput(t *testing.T) {
	t.Parallel()
	dir := module(t, map[string]string{"p/p.go": limitedSource, "p/q.go": excludedSource})
	code, stdout, stderr := ratelimitgen(t, dir, "-json", "./...")
	if code != exitDone || stderr != "wrote p/ratelimit_gen.go\n" || strings.Count(stdout, "\n") != 1 || !strings.HasPrefix(stdout, `{"file":"p/q.go","line":7,`) || !strings.Contains(stdout, `"severity":"warning"`) {
		t.Errorf("exit status %d, printed %q and %q", code, stdout, stderr)
	}
}

func TestRecordsHoldTheSuggestionAndTheValidNames(t *testing.T) {
	t.Parallel()
	dir := module(t, map[string]string{"p/p.go": strings.Replace(limitedSource, "//ratelimit:", "//ratelimit:mod=shadow ", 1)})
	code, stdout, _ := ratelimitgen(t, dir, "-json", "./...")
	var record struct {
		Suggestion string
		Valid      []string
	}
	if err := json.Unmarshal([]byte(stdout), &record); code != exitProblem || err != nil {
		t.Fatalf("exit status %d, %v: %s", code, err, stdout)
	}
	var options []string
	for _, v := range directive.Verbs() {
		if v.Name == directive.VerbLimit {
			for _, o := range v.Options {
				options = append(options, o.Name)
			}
		}
	}
	if record.Suggestion != "mode" || !slices.Equal(record.Valid, options) {
		t.Errorf("suggestion %q, valid %q, want mode and %q", record.Suggestion, record.Valid, options)
	}
}

func TestFormatsThatContradictOrDoNotExistAreTrouble(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-json", "-format=github"}, {"-format=xml"}} {
		if code, stdout, stderr := ratelimitgen(t, t.TempDir(), args...); code != exitTrouble || stdout != "" || !strings.Contains(stderr, "-format=") {
			t.Errorf("%q: exit status %d, printed %q and %q", args, code, stdout, stderr)
		}
	}
}

// An editor opens the file in which a directive is, whatever it was made from.
func TestPlacesAreThoseOfTheFileItselfWhateverLineCommentsSay(t *testing.T) {
	t.Parallel()
	dir := module(t, map[string]string{"p/p.go": `package p

//line grammar.y:100
type T struct{}

//line grammar.y:200:7
//ratelimit:max=0
func (T) A() error { return nil }

/*line other/grammar.y:300:1*/ //ratelimit:max=1 key=nothing
func (T) B(id string) error { return nil }

//line :400
//ratelimit:max=1
func (T) C(x Unknown) error { return nil }
`})
	code, _, stderr := ratelimitgen(t, dir, "./...")
	var places []string
	for line := range strings.Lines(stderr) {
		place, _, _ := strings.Cut(line, ": error: ")
		places = append(places, place)
	}
	want := []string{"p/p.go:7:17", "p/p.go:10:54", "p/p.go:14:1"}
	if code != exitProblem || !slices.Equal(places, want) {
		t.Errorf("exit status %d, places %q, want %q\n%s", code, places, want, stderr)
	}
}
