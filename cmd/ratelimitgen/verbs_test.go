package main

import (
	"bytes"
	"context"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ratelimitgen/ratelimitgen/generator"
)

func TestTheFirstWordMayStandBehindFlags(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, word, rest string }{
		{"", "", ""},
		{"check ./...", "check", "./..."},
		{"-C dir check .", "check", "-C dir ."},
		{"-C=dir --json check -tags x .", "check", "-C=dir --json -tags x ."},
		{"-tags check ./f", "./f", "-tags check"},
		{"-tags check check check", "check", "-tags check check"},
		{"-limit max=1 -v selftest", "selftest", "-limit max=1 -v"},
		{"-n ./p check", "./p", "-n check"},
		{"-- check", "", "-- check"},
		{"-n -- check", "", "-n -- check"},
		{"-nonsense check", "", "-nonsense check"},
		{"-C", "", "-C"},
		{"-n -v", "", "-n -v"},
		{"-h directives", "help", "directives"},
	} {
		word, rest := splitWord(strings.Fields(c.args))
		if got := strings.Join(rest, " "); word != c.word || got != c.rest {
			t.Errorf("%q: %q and %q, want %q and %q", c.args, word, got, c.word, c.rest)
		}
	}
}

func TestFlagsMeanTheSameOnBothSidesOfTheVerb(t *testing.T) {
	t.Parallel()
	dir := module(t, map[string]string{"p/p.go": limitedSource, "p/q.go": excludedSource})
	for _, c := range []struct {
		verb        string
		flags, rest []string
		code        int
	}{
		{"check", []string{"-C", filepath.Join(dir, "p")}, []string{"."}, exitProblem},
		{"check", []string{"-json", "-C=" + dir}, []string{"./..."}, exitProblem},
		{"check", []string{"-C", dir, "-tags", "x", "-diff"}, []string{"./p"}, exitProblem},
		{"check", []string{"-n"}, []string{"./..."}, exitTrouble}, // it has no such flag
		{"selftest", []string{"-limit", "max=2", "-v", "-C", dir}, []string{"./p"}, exitDone},
		{"vet", []string{"-tests", "-C", dir, "-allow", "example.com/m/p"}, []string{"./..."}, exitProblem},
		{"version", []string{"-C", dir}, nil, exitDone},
		{"version", []string{"-C", filepath.Join(dir, "nowhere")}, nil, exitTrouble},
		{"version", []string{"-v"}, nil, exitTrouble},
		{"help", []string{"-C", dir}, []string{"directives", "window"}, exitDone},
	} {
		t.Run(c.verb+" "+strings.Join(c.flags, " "), func(t *testing.T) {
			t.Parallel()
			var want string
			for i, args := range [][]string{
				slices.Concat([]string{c.verb}, c.flags, c.rest),
				slices.Concat(c.flags, []string{c.verb}, c.rest),
			} {
				var stdout, stderr bytes.Buffer
				code := run(context.Background(), args, &stdout, &stderr)
				got := stdout.String() + "\n--\n" + stderr.String()
				if i == 0 {
					want = got
				}
				if code != c.code || got != want {
					t.Errorf("%q: exit status %d, printed %s\nwant %d, %s", args, code, got, c.code, want)
				}
			}
			if exists(t, filepath.Join(dir, "p", generator.OutputName)) {
				t.Error("a file was written")
			}
		})
	}
}

// TestTheFlagsOfEveryVerbAreKnownBeforeTheVerbIs asks the verbs themselves which of the
// flags in their usage need a value.
func TestTheFlagsOfEveryVerbAreKnownBeforeTheVerbIs(t *testing.T) {
	t.Parallel()
	const noValue = "flag needs an argument"
	for verb, text := range map[string]string{"": usage, "check": usage, "selftest": selftestUsage, "vet": vetUsage} {
		flags := regexp.MustCompile(`(?m)^  -([a-zA-Z]+)`).FindAllStringSubmatch(text, -1)
		if len(flags) < 4 {
			t.Errorf("the usage of %q names only the flags %q", verb, flags)
		}
		for _, m := range flags {
			var stdout, stderr bytes.Buffer
			args := []string{"-C", t.TempDir(), "-" + m[1]}
			if verb != "" {
				args = slices.Insert(args, 0, verb)
			}
			run(context.Background(), args, &stdout, &stderr)
			err := anyFlags().Parse([]string{"-" + m[1]})
			if want := strings.Contains(stderr.String(), noValue); want != (err != nil) || want && !strings.Contains(err.Error(), noValue) {
				t.Errorf("%q -%s: before the verb %v, behind it %s", verb, m[1], err, &stderr)
			}
		}
	}
}

func TestAMisspeltVerbBehindFlagsIsFound(t *testing.T) {
	t.Parallel()
	if code, stdout, stderr := ratelimitgen(t, t.TempDir(), "-v", "chekc", "./..."); code != exitTrouble || stdout != "" || !strings.Contains(stderr, `did you mean "check"?`) {
		t.Errorf("exit status %d, printed %q and %q", code, stdout, stderr)
	}
}

func TestAWordThatIsNoVerbSaysWhatToWrite(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"generate ./...": "ratelimitgen: there is no verb \"generate\": to generate, name packages alone, as in \"ratelimitgen ./...\"; a package is named like ./generate\n",
		"-n gen":         "ratelimitgen: there is no verb \"gen\": to generate, name packages alone, as in \"ratelimitgen ./...\"; a package is named like ./gen\n",
		"chekc ./...":    "ratelimitgen: unknown verb \"chekc\"; did you mean \"check\"? A package is named like ./chekc\n",
	} {
		var stdout, stderr bytes.Buffer
		if code := run(context.Background(), strings.Fields(args), &stdout, &stderr); code != exitTrouble || stderr.String() != want || stdout.Len() > 0 {
			t.Errorf("%s: status %d, %q, want %q", args, code, stderr.String(), want)
		}
	}
}
