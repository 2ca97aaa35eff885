package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/ratelimitgen/ratelimitgen/generator"
	"github.com/ratelimitgen/ratelimitgen/internal/diag"
)

const (
	// progressDelay is how long a run may take without a word.
	progressDelay = time.Second
	progressEvery = 200 * time.Millisecond
	progressWidth = 79 // of the line at most, so that no usual terminal breaks it
	eraseLine     = "\r\x1b[K"
)

// watch follows the stages of a run: it adds up their times, and tells a person who
// waits at a terminal which of them the run is in.
type watch struct {
	stderr io.Writer

	mu       sync.Mutex
	now      string // stage, "" before the first
	since    time.Time
	stages   []string // in the order in which they began
	took     map[string]time.Duration
	begun    map[string]int
	packages map[string]bool
	line     string // what there is to say
	shown    bool   // a line stands in the terminal

	ask  chan struct{} // closed when nobody is to be told any more; nil if nobody is
	told chan struct{} // closed when the teller is gone
	once sync.Once
}

// watch begins to follow a run. With progress, and until anything else is printed, a
// line on standard error says what a long run is doing.
func (c *command) watch(progress bool) *watch {
	w := &watch{stderr: c.stderr, took: map[string]time.Duration{}, begun: map[string]int{}, packages: map[string]bool{}, since: time.Now()}
	if progress {
		w.ask, w.told = make(chan struct{}), make(chan struct{})
		go w.tell()
		c.stdout, c.stderr = quieting{w, c.stdout}, quieting{w, c.stderr}
	}
	return w
}

// stage notes that a stage begins, for a package or for all of them.
func (w *watch) stage(name, pkg string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end()
	if w.begun[name] == 0 {
		w.stages = append(w.stages, name)
	}
	w.begun[name]++
	w.now = name
	w.line = name
	if pkg != "" {
		w.packages[pkg] = true
		w.line += " " + pkg
	}
}

// say is what the line says next.
func (w *watch) say(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line = text
}

// end adds the time of the current stage to its sum.
func (w *watch) end() {
	now := time.Now()
	if w.now != "" {
		w.took[w.now] += now.Sub(w.since)
	}
	w.now, w.since = "", now
}

// tell shows the current stage until it is asked to stop.
func (w *watch) tell() {
	defer close(w.told)
	timer := time.NewTimer(progressDelay)
	defer timer.Stop()
	for {
		select {
		case <-w.ask:
			return
		case <-timer.C:
			w.show()
			timer.Reset(progressEvery)
		}
	}
}

func (w *watch) show() {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := []rune(diag.Escape("ratelimitgen: " + w.line))
	if len(text) > progressWidth {
		text = append(text[:progressWidth-1], '…')
	}
	w.shown = true
	fmt.Fprint(w.stderr, eraseLine+string(text))
}

// quiet takes the line off the terminal and shows none any more.
func (w *watch) quiet() {
	if w.ask == nil {
		return
	}
	w.once.Do(func() {
		close(w.ask)
		<-w.told
		if w.shown {
			fmt.Fprint(w.stderr, eraseLine)
		}
	})
}

// report says where the time went: how long each stage took, how often it was begun
// if that is more than once, the number of packages that were looked into and the
// size of what was generated for them.
func (w *watch) report(to io.Writer, files []generator.File) {
	size := 0
	for _, f := range files {
		size += len(f.Content)
	}
	w.quiet()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end()
	var total time.Duration
	for _, name := range w.stages {
		total += w.took[name]
		times := ""
		if n := w.begun[name]; n > 1 {
			times = fmt.Sprintf("  in %d parts", n)
		}
		fmt.Fprintf(to, "%-10s %8.3f s%s\n", name, w.took[name].Seconds(), times)
	}
	fmt.Fprintf(to, "%-10s %8.3f s  %d packages, %d files, %d bytes\n", "total", total.Seconds(), len(w.packages), len(files), size)
}

// quieting is a writer that takes the progress line away before it writes.
type quieting struct {
	w  *watch
	to io.Writer
}

func (q quieting) Write(p []byte) (int, error) {
	q.w.quiet()
	return q.to.Write(p)
}

// isTerminal reports whether w is a terminal that understands more than text.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
