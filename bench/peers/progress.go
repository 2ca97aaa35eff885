package main

import (
	"fmt"
	"io"
	"os"
)

// progress tells a terminal what is being done, on one line. It tells nobody else.
type progress struct{ w io.Writer }

func newProgress(f *os.File) progress {
	if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		return progress{f}
	}
	return progress{io.Discard}
}

const clearLine = "\r\x1b[K"

func (p progress) at(format string, args ...any) { fmt.Fprintf(p.w, clearLine+format, args...) }

func (p progress) done() { fmt.Fprint(p.w, clearLine) }
