package main

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestOfTheGoCommandOnlyItsOwnWordsArePrinted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string
		env   []string
		want  string
	}{
		"no go.mod":      {map[string]string{"go.mod": ""}, nil, "go: go.mod file not found in current directory or any parent directory; see 'go help modules'\n"},
		"GOFLAGS":        {nil, []string{"GOFLAGS=-nonsense"}, "go: parsing $GOFLAGS: unknown flag -nonsense\n"},
		"a flag's value": {nil, []string{"GOFLAGS=-mod=nonsense"}, "go: -mod=nonsense not supported (can be '', 'mod', 'readonly', or 'vendor')\n"},
		"go.work":        {map[string]string{"go.work": "nonsense\n"}, []string{"GOWORK="}, "go: errors parsing go.work:\ngo.work:1: unknown directive: nonsense\n"},
		"an old toolchain": {map[string]string{"go.mod": "module example.com/m\n\ngo 1.99.0\n"}, []string{"GOTOOLCHAIN=local"},
			"go: go.mod requires go >= 1.99.0 (running go "},
		"no toolchain": {nil, []string{"GOTOOLCHAIN=nonsense"}, "go: invalid GOTOOLCHAIN \"nonsense\"\n"},
		"vendoring":    {map[string]string{"vendor/modules.txt": "# nothing\n"}, nil, "go: inconsistent vendoring in "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := module(t, map[string]string{"p.go": strings.Replace(limitedSource, "max=1", "max=1 window=1s", 1)})
			for file, text := range c.files {
				if text == "" {
					must(t, dir, nil, "rm", file)
					continue
				}
				writeFile(t, filepath.Join(dir, file), []byte(text))
			}
			for _, args := range [][]string{{"./..."}, {"check"}, {"selftest"}, {"vet"}} {
				code, stdout, stderr := finish(t, dir, c.env, "", args...)
				if code != exitTrouble || stdout != "" || !strings.HasPrefix(stderr, "ratelimitgen: "+c.want) || strings.HasSuffix(stderr, "\n\n") {
					t.Errorf("%q: exit status %d, printed %q and %q", args, code, stdout, stderr)
				}
			}
		})
	}
}

func TestPlainTextOfErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"disk: full":                            "disk: full",
		"a: stderr: b":                          "a: stderr: b",
		"go env: no `go`":                       "go env: no `go`",
		"go list: err: exit status 1: stderr: ": "go list: exit status 1",
		"go list: err: exit status 1: stderr: go: what: stderr: it\n\tsaid\n":   "go: what: stderr: it\n\tsaid",
		"go list: err: exit status 1: stderr: main.go:1:1: it said so\n\nand\n": "go: main.go:1:1: it said so\n\nand",
	} {
		if got := plain(errors.New(text)); got != want {
			t.Errorf("%q is printed as %q, want %q", text, got, want)
		}
	}
	exit := fmt.Errorf("go env: %w", &exec.ExitError{Stderr: []byte("go: no\n")})
	if got := plain(exit); got != "go: no" {
		t.Errorf("what the go command printed itself is %q", got)
	}
}
