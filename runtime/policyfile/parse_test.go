package policyfile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ratelimitgen/ratelimitgen/runtime/policyfile"
)

func TestParseReportsEveryProblemWithItsPlace(t *testing.T) {
	t.Parallel()
	_, err := policyfile.Parse("limits.yaml", []byte(`defaults:
  mode: shadwo
  max: 5
  keys: []
  on-eror: allow
limit: 3
limits:
  login:
    max: 0
    windw: 1m
    window: 100
    window: 2m
  "é": {max: 1M, mode: off, limit: 3}
  empty:
  none: {}
  list: [a]
  "": {max: 1}
`))
	wantProblems(t, err,
		`limits.yaml:2:9: mode: "shadwo": unknown word "shadwo"; did you mean "shadow"? (valid: enforce, shadow, off)`,
		`limits.yaml:3:3: max belongs to each limit itself: write it there (valid: mode, on-empty, on-error, message, status)`,
		`limits.yaml:4:3: keys belongs to each limit itself`,
		`limits.yaml:5:3: unknown option "on-eror"; did you mean "on-error"? (valid: mode, `,
		`limits.yaml:6:1: unknown section "limit"; did you mean "limits"? (valid: defaults, limits)`,
		`limits.yaml:9:10: max: "0": a limit is at least 1: write unlimited to admit every call, or blocked`,
		`limits.yaml:10:5: unknown option "windw"; did you mean "window"? (valid: max, window, burst`,
		`limits.yaml:11:13: window: "100": the unit is missing: write 100s, 100m, 100h or 100d`,
		`limits.yaml:12:5: "window" is given twice, first in line 11: keep one of them`,
		`limits.yaml:13:15: max: "1M": not an integer`,
		`limits.yaml:13:30: unknown option "limit"; did you mean "max"?`,
		`limits.yaml:14:3: "empty" is a mapping of options, like max: 100, not nothing`,
		`limits.yaml:15:9: "none" is a mapping of options, like max: 100, not an empty one`,
		`limits.yaml:16:9: "list" is a mapping of options, like max: 100, not a list`,
		`limits.yaml:17:3: the name of the limit is empty`,
	)
}

func TestValuesThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ option, want string }{
		{"max: -1", "a limit is at least 1"},
		{"max: 012", "write 12"},
		{"max: 0x10", "not an integer in decimal digits"},
		{"max: 1e3", "write 1000"},
		{"max: 1,000", "write 1_000"},
		{"max: +5", "remove the +"},
		{"max: 1.5", "not an integer"},
		{"max: .inf", "not an integer"},
		{"max: 100/m", "write max: 100 and window: 1m"},
		{"max: unlimted", `did you mean "unlimited"?`},
		{"max: 1073741825", "the most is 1073741824"},
		{"max: 5min", "write 5m"},
		{"max: [1]", "one value is needed, not a list"},
		{"max: ", "the value is missing"},
		{"max: ~", "the value is missing"},
		{"max: ''", "the value is missing"},
		{"window: 0s", "has a length"},
		{"window: -1h", "cannot be negative"},
		{"window: 1M", "M may be minutes or months"},
		{"window: 1mo", "months differ in length"},
		{"window: 1e3s", "no exponent"},
		{"window: Inf", "a duration ends"},
		{"window: 90", "the unit is missing"},
		{"window: 1ns", "whole number of microseconds"},
		{"window: 4000d", "the longest is 3660d"},
		{"burst: 0", "the least that burst can be is 1"},
		{"burst: unlimited", "not an integer"},
		{"lease: 1", "the unit is missing"},
		{"max-wait: 0s", "has a length"},
		{"max-queue: -1", "the least that max-queue can be is 0"},
		{"mode: Off", `did you mean "off"?`},
		{"mode: true", `unknown word "true"`},
		{"on-empty: allow", "(valid: deny, skip, shared)"},
		{"on-error: skip", "(valid: local, allow, deny)"},
		{"message: |\n      a\n      b", "cannot be printed"},
		{"message: " + strings.Repeat("x", 513), "the most is 512 bytes"},
		{"status: 200", "the least that status can be is 400"},
		{"status: 600", "the most is 599"},
		{"max: &x 5", "anchors, aliases and merge keys are not read"},
		{"<<: {max: 5}", "anchors, aliases and merge keys are not read"},
		{"max: !!int 5", "tags are not read"},
		{"[a]: 5", ""},
	} {
		t.Run(tc.option, func(t *testing.T) {
			t.Parallel()
			_, err := policyfile.Parse("f", []byte("limits:\n  login:\n    "+tc.option+"\n"))
			wantProblems(t, err, tc.want)
		})
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ text, want string }{
		{"", "f:1:1: the file is empty: write {} to override nothing"},
		{"# nothing\n", "f:1:1: the file is empty"},
		{"---\n", "f:1:1: the file is empty"},
		{"null\n", "f:1:1: the file is empty"},
		{"limits: {a: {max: 1}}\n---\nlimits: {}\n", "f:3:1: a file holds one document"},
		{"- a\n", "f:1:1: the file is a mapping with defaults and limits, not a list"},
		{"limits: [\n", "f:1:9: not YAML: "},
		{"limits:\n\tlogin: {}\n", "f:2:1: not YAML: "},
		{"limits: a: b\n", "f:1:9: not YAML: "},
		{"é: \"x\n", "f:1:5: not YAML: "},
		{"a: \xff\n", "f:1:4: not valid UTF-8"},
		{strings.Repeat("[", 501), "f:1:1: too deeply nested"},
		{strings.Repeat("a", 20000), "f:1:1: the line has 20000 bytes"},
		{strings.Repeat("#\n", 600_000), "f:1:1: the file has 1200000 bytes"},
	} {
		_, err := policyfile.Parse("f", []byte(tc.text))
		wantProblems(t, err, tc.want)
	}
}

func TestAFileThatIsNotThereIsAProblem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := policyfile.Load(dir + "/none.yaml")
	wantProblems(t, err, "none.yaml: no such file or directory")
	_, err = policyfile.Load(dir)
	wantProblems(t, err, "it is no regular file")
}

func TestParseReadsWhatIsInOrder(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"{}",
		"\ufefflimits:\r\n  login:\r\n    max: 5\r\n",
		"limits: {login: {max: 1_000}}",
		"limits: {login: {max: \"100\"}}",
		"# c\n---\nlimits:\n  a/b.C-d: {message: \"\"}\n",
	} {
		if _, err := policyfile.Parse("f", []byte(text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	f := parse(t, "limits: {b: {max: 1}, a: {max: 2}}")
	if got := fmt.Sprint(f.Limits()); got != "[a b]" {
		t.Errorf("Limits() = %s", got)
	}
}
