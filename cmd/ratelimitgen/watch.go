package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/ratelimitgen/ratelimitgen/generator"
	"github.com/ratelimitgen/ratelimitgen/internal/cli"
)

// watch follows the stages of a run: it adds up their times, and tells a person who
// waits at a terminal which of them the run is in.
type watch struct {
	*cli.Line

	mu       sync.Mutex
	now      string // stage, "" before the first
	since    time.Time
	stages   []string // in the order in which they began
	took     map[string]time.Duration
	begun    map[string]int
	packages map[string]bool
}

// watch begins to follow a run. With progress, and until anything else is printed, a
// line on standard error says what a long run is doing.
func (c *command) watch(progress bool) *watch {
	w := &watch{Line: cli.NewLine("ratelimitgen", c.stderr, progress), took: map[string]time.Duration{}, begun: map[string]int{}, packages: map[string]bool{}, since: time.Now()}
	c.stdout, c.stderr = w.Before(c.stdout), w.Before(c.stderr)
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
	line := name
	if pkg != "" {
		w.packages[pkg] = true
		line += " " + pkg
	}
	w.Say(line)
}

// end adds the time of the current stage to its sum.
func (w *watch) end() {
	now := time.Now()
	if w.now != "" {
		w.took[w.now] += now.Sub(w.since)
	}
	w.now, w.since = "", now
}

// report says where the time went: how long each stage took, how often it was begun
// if that is more than once, the number of packages that were looked into and the
// size of what was generated for them.
func (w *watch) report(to io.Writer, files []generator.File) {
	size := 0
	for _, f := range files {
		size += len(f.Content)
	}
	w.Quiet()
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
