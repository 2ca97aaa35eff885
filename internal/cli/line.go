package cli

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
)

const (
	// progressDelay is how long a run may take without a word.
	progressDelay = time.Second
	progressEvery = 200 * time.Millisecond
	progressWidth = 79 // of the line at most, so that no usual terminal breaks it
	eraseLine     = "\r\x1b[K"
)

// Line is a line at a terminal that tells a person who waits what a run is doing.
type Line struct {
	program string
	to      io.Writer

	mu    sync.Mutex
	text  string // what there is to say
	shown bool   // it stands in the terminal

	ask  chan struct{} // closed when nobody is to be told any more; nil if nobody is
	told chan struct{} // closed when the teller is gone
	once sync.Once
}

// NewLine returns a line of a program at the terminal to. Unless visible is set, nothing
// of it is ever shown. Otherwise Quiet must be called in the end.
func NewLine(program string, to io.Writer, visible bool) *Line {
	l := &Line{program: program, to: to}
	if visible {
		l.ask, l.told = make(chan struct{}), make(chan struct{})
		go l.tell()
	}
	return l
}

// Say sets what the line says next.
func (l *Line) Say(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = text
}

// Before returns a writer to w that takes the line away before it writes.
func (l *Line) Before(w io.Writer) io.Writer {
	if l.ask == nil {
		return w
	}
	return quieting{l, w}
}

// tell shows the line until it is asked to stop.
func (l *Line) tell() {
	defer close(l.told)
	timer := time.NewTimer(progressDelay)
	defer timer.Stop()
	for {
		select {
		case <-l.ask:
			return
		case <-timer.C:
			l.show()
			timer.Reset(progressEvery)
		}
	}
}

func (l *Line) show() {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := []rune(diag.Escape(l.program + ": " + l.text))
	if len(text) > progressWidth {
		text = append(text[:progressWidth-1], '…')
	}
	l.shown = true
	fmt.Fprint(l.to, eraseLine+string(text))
}

// Quiet takes the line off the terminal and shows it no more.
func (l *Line) Quiet() {
	if l.ask == nil {
		return
	}
	l.once.Do(func() {
		close(l.ask)
		<-l.told
		if l.shown {
			fmt.Fprint(l.to, eraseLine)
		}
	})
}

// quieting is a writer that takes the line away before it writes.
type quieting struct {
	l  *Line
	to io.Writer
}

func (q quieting) Write(p []byte) (int, error) {
	q.l.Quiet()
	return q.to.Write(p)
}

// IsTerminal reports whether w is a terminal that understands more than text.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
