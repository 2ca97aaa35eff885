package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestALongRunIsToldAboutAtATerminalAndTheLineIsTakenAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var stdout, stderr bytes.Buffer
		c := command{stdout: &stdout, stderr: &stderr}
		w := c.watch(true)
		w.stage("load", "")
		time.Sleep(progressDelay - time.Millisecond)
		synctest.Wait()
		if stderr.Len() > 0 {
			t.Errorf("a short run is told about: %q", &stderr)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if got, want := stderr.String(), eraseLine+"ratelimitgen: load"; got != want {
			t.Errorf("printed %q, want %q", got, want)
		}
		w.stage("parse", "example.com/"+strings.Repeat("long", 30))
		stderr.Reset()
		time.Sleep(progressEvery)
		synctest.Wait()
		if got := strings.TrimPrefix(stderr.String(), eraseLine); len([]rune(got)) != progressWidth || !strings.HasPrefix(got, "ratelimitgen: parse example.com/long") {
			t.Errorf("printed %q", got)
		}
		stderr.Reset()
		if _, err := c.stdout.Write([]byte("done\n")); err != nil {
			t.Fatal(err)
		}
		if stdout.String() != "done\n" || stderr.String() != eraseLine {
			t.Errorf("printed %q and %q: the line is to be gone before anything else is printed", &stdout, &stderr)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if stderr.String() != eraseLine {
			t.Errorf("printed %q after the end", &stderr)
		}
	})
}

func TestNobodyIsToldWhereThereIsNoTerminal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var stderr bytes.Buffer
		c := command{stdout: &stderr, stderr: &stderr}
		w := c.watch(false)
		w.stage("load", "")
		time.Sleep(time.Hour)
		synctest.Wait()
		w.quiet()
		if stderr.Len() > 0 {
			t.Errorf("printed %q", &stderr)
		}
	})
}

func TestTheTimesOfAStageAddUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		c := command{stdout: &out, stderr: &out}
		w := c.watch(false)
		for _, stage := range []string{"scan", "load", "parse", "load"} {
			w.stage(stage, "")
			time.Sleep(250 * time.Millisecond)
		}
		w.report(&out, nil)
		want := `scan          0.250 s
load          0.500 s  in 2 parts
parse         0.250 s
total         1.000 s  0 packages, 0 files, 0 bytes
`
		if out.String() != want {
			t.Errorf("printed\n%swant\n%s", &out, want)
		}
	})
}

func TestFilesAndBuffersAreNoTerminals(t *testing.T) {
	t.Parallel()
	f, err := os.Create(t.TempDir() + "/f")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if isTerminal(f) || isTerminal(&bytes.Buffer{}) {
		t.Error("a file or a buffer is taken for a terminal")
	}
}
