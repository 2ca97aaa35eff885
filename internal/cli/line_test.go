package cli

import (
	"bytes"
	"os"
	"strings"
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

func TestALineIsShownAfterAWhileAndTakenAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var stdout, stderr screen
		l := NewLine("program", &stderr, true)
		out := l.Before(&stdout)
		l.Say("load")
		time.Sleep(progressDelay - time.Millisecond)
		synctest.Wait()
		if got := stderr.take(); got != "" {
			t.Errorf("a short run is told about: %q", got)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if got, want := stderr.take(), eraseLine+"program: load"; got != want {
			t.Errorf("printed %q, want %q", got, want)
		}
		l.Say("parse example.com/" + strings.Repeat("long", 30))
		time.Sleep(progressEvery)
		synctest.Wait()
		if got := strings.TrimPrefix(stderr.take(), eraseLine); len([]rune(got)) != progressWidth || !strings.HasPrefix(got, "program: parse example.com/long") {
			t.Errorf("printed %q", got)
		}
		if _, err := out.Write([]byte("done\n")); err != nil {
			t.Fatal(err)
		}
		if out, line := stdout.take(), stderr.take(); out != "done\n" || line != eraseLine {
			t.Errorf("printed %q and %q: the line is to be gone before anything else is printed", out, line)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := stderr.take(); got != "" {
			t.Errorf("printed %q after the end", got)
		}
	})
}

func TestAnInvisibleLineIsNeverShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var stderr screen
		l := NewLine("program", &stderr, false)
		l.Say("load")
		time.Sleep(time.Hour)
		synctest.Wait()
		l.Quiet()
		if got := stderr.take(); got != "" {
			t.Errorf("printed %q", got)
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
	if IsTerminal(f) || IsTerminal(&bytes.Buffer{}) {
		t.Error("a file or a buffer is taken for a terminal")
	}
}
