package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/ratelimitgen/ratelimitgen/internal/cli"
)

// A client of Redis would double the size of this binary and the time that it takes to
// start, and become a dependency of all modules that have it for a tool.
func TestNoClientOfRedisIsLinked(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(plain(err))
	}
	for pkg := range strings.Lines(string(out)) {
		if strings.Contains(pkg, "go-redis") || strings.Contains(pkg, "redisstore") {
			t.Errorf("the command depends on %s", pkg)
		}
	}
}

// The flags of the other program are known here, too, since they may stand before the
// verb. Its usage says which of them have a value.
func TestTheFlagsOfRedisAreKnownBeforeTheVerbIs(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../ratelimitgen-redis/main.go")
	if err != nil {
		t.Fatal(err)
	}
	flags := regexp.MustCompile(`(?m)^  -([a-z]+)( [a-z]+)?  `).FindAllStringSubmatch(string(source), -1)
	if len(flags) != 9 {
		t.Errorf("its usage has the flags %q", flags)
	}
	for _, m := range flags {
		args := []string{"-" + m[1], "redis"}
		if m[2] != "" {
			args = []string{"-" + m[1], "value", "redis"}
		}
		if word, _ := splitWord(args); word != "redis" {
			t.Errorf("%q: the verb is taken for %q", args, word)
		}
	}
}

// installed is a directory with this command in it, as go install makes one. Tests that
// run what they wrote are not parallel: a file cannot be executed as long as a process
// that another test is just starting has it open for writing.
func installed(t *testing.T) (dir, tool string) {
	t.Helper()
	dir = t.TempDir()
	tool = filepath.Join(dir, "ratelimitgen")
	if runtime.GOOS == "windows" {
		tool += ".exe"
	}
	binary, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(tool, binary, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir, tool
}

// runTool runs the command of installed in another directory than its own.
func runTool(t *testing.T, tool, path string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command(tool, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), processEnv+"=1", "PATH="+path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("input"), &out, &errs
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// standIn is a program that says what it was started with.
func standIn(t *testing.T, dir, name string) {
	t.Helper()
	script := fmt.Sprintf("#!/bin/sh\necho %s; for arg; do echo \"<$arg>\"; done\nread line; echo \"$line\" >&2\nexit 7\n", name)
	if err := os.WriteFile(filepath.Join(dir, redisProgram), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestRedisIsDoneByTheProgramBesideThisOneOrInPath(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the program that stands in is a shell script")
	}
	inPath := t.TempDir()
	standIn(t, inPath, "path")
	dir, tool := installed(t)
	link := filepath.Join(t.TempDir(), "rl")
	if err := os.Symlink(tool, link); err != nil {
		t.Fatal(err)
	}
	check := func(tool, path, want string, args ...string) {
		t.Helper()
		code, stdout, stderr := runTool(t, tool, path, args...)
		if code != 7 || stdout != want || stderr != "input\n" {
			t.Errorf("%q: exit status %d, %q and %q; want 7, %q", args, code, stdout, stderr, want)
		}
	}
	check(tool, inPath, "path\n<inspect>\n<a b>\n<>\n<-->\n", "redis", "inspect", "a b", "", "--")
	check(tool, inPath, "path\n<-addr>\n<redis>\n<inspect>\n<-n>\n", "-addr", "redis", "redis", "inspect", "-n")
	check(tool, inPath, "path\n<-h>\n", "help", "redis")
	check(tool, inPath, "path\n<-h>\n", "redis", "-h")
	check(tool, inPath, "path\n", "redis")
	standIn(t, dir, "beside")
	check(tool, inPath, "beside\n<reset>\n", "redis", "reset")
	check(link, inPath, "beside\n<reset>\n", "redis", "reset")
}

func TestWhereTheProgramOfRedisIsMissingItIsSaidHowToGetIt(t *testing.T) {
	dir, tool := installed(t)
	get := "github.com/ratelimitgen/ratelimitgen/cmd/ratelimitgen-redis@" + installable(cli.Version())
	for _, c := range []struct {
		code int
		args []string
		want []string
	}{
		{exitTrouble, []string{"redis", "inspect", "k"}, []string{"ratelimitgen: redis is done by the program ratelimitgen-redis, which is neither in " + dir + " nor in PATH;"}},
		{exitTrouble, []string{"redis"}, nil},
		{exitDone, []string{"redis", "-h"}, []string{"usage: ratelimitgen redis inspect|reset|block", dir}},
		{exitDone, []string{"redis", "help"}, nil},
		{exitDone, []string{"help", "redis"}, nil},
		{exitTrouble, []string{"help", "redis", "inspect"}, []string{`no help on "redis"`}},
	} {
		code, stdout, stderr := runTool(t, tool, "", c.args...)
		text, other := stderr, stdout
		if c.code == exitDone {
			text, other = other, text
		}
		if c.code != code || other != "" {
			t.Errorf("%q: exit status %d, printed %s%s", c.args, code, stdout, stderr)
		}
		want := c.want
		if len(c.args) < 3 || c.args[0] == "redis" {
			want = append(want, "\tgo install "+get+"\n", "\tgo run "+get+" inspect|reset|block")
		}
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("%q: printed %s\nwant %s", c.args, text, part)
			}
		}
	}
}

// A program in the current directory is somebody else's.
func TestTheProgramOfRedisInTheCurrentDirectoryIsNotRun(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the program that stands in is a shell script")
	}
	_, tool := installed(t)
	here := t.TempDir()
	standIn(t, here, "here")
	cmd := exec.Command(tool, "redis", "inspect", "k")
	cmd.Dir = here
	cmd.Env = append(os.Environ(), processEnv+"=1", "PATH=.")
	if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != exitTrouble || !strings.Contains(string(out), "relative path in PATH") {
		t.Errorf("%v: %s", cmd.ProcessState, out)
	}
}

func TestTheVersionToInstallIsOurs(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"v1.2.3":                             "v1.2.3",
		"v1.2.3-rc.1":                        "v1.2.3-rc.1",
		"(devel)":                            "latest",
		"":                                   "latest",
		"v0.0.0-20260101000000-0123456789ab": "v0.0.0-20260101000000-0123456789ab",
		"v0.0.0-20260101000000-0123456789ab+dirty": "latest",
	} {
		if got := installable(version); got != want {
			t.Errorf("%q: %q, want %q", version, got, want)
		}
	}
}
