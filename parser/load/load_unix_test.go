//go:build unix

package load

import (
	"path/filepath"
	"syscall"
	"testing"
)

// Opening a named pipe waits for somebody to write to it.
func TestANamedPipeIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe.go")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readFile(pipe); err == nil {
		t.Error("a named pipe was read")
	}
}
