package main

import (
	"bytes"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// screen is what a terminal was told; it may be read while somebody writes.
type screen struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

// take returns what was written since it was last called.
func (s *screen) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.buf.Reset()
	return s.buf.String()
}

func TestALongRunIsToldAboutAtATerminalAndTheLineIsTakenAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const eraseLine = "\r\x1b[K"
		var stdout, stderr screen
		c := command{stdout: &stdout, stderr: &stderr}
		w := c.watch(true)
		w.stage("load", "")
		time.Sleep(time.Second)
		synctest.Wait()
		if got, want := stderr.take(), eraseLine+"ratelimitgen: load"; got != want {
			t.Errorf("printed %q, want %q", got, want)
		}
		w.stage("parse", "example.com/p")
		time.Sleep(time.Second / 5)
		synctest.Wait()
		if got, want := stderr.take(), eraseLine+"ratelimitgen: parse example.com/p"; got != want {
			t.Errorf("printed %q, want %q", got, want)
		}
		if _, err := c.stdout.Write([]byte("done\n")); err != nil {
			t.Fatal(err)
		}
		if out, line := stdout.take(), stderr.take(); out != "done\n" || line != eraseLine {
			t.Errorf("printed %q and %q: the line is to be gone before anything else is printed", out, line)
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
		w.Quiet()
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
