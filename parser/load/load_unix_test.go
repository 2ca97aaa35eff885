//go:build unix

package load

import (
	"bytes"
	"os"
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
	if err := readInto(new(bytes.Buffer), pipe); err == nil {
		t.Error("a named pipe was read")
	}
}

// The test sets a variable of the process, so it is not parallel.
func TestAnotherDriverOfGoPackagesIsAsked(t *testing.T) {
	dir := t.TempDir()
	driver, asked := filepath.Join(dir, "gopackagesdriver"), filepath.Join(dir, "asked")
	if err := os.WriteFile(driver, []byte("#!/bin/sh\ntouch "+asked+"\necho '{\"NotHandled\": true}'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		variable, path string
		want           bool
	}{
		{variable: driver, want: true},
		{},
		{variable: "off", path: dir},
		{path: dir, want: true}, // PATH stays
	} {
		if err := os.RemoveAll(asked); err != nil {
			t.Fatal(err)
		}
		t.Setenv("GOPACKAGESDRIVER", test.variable)
		if test.path != "" {
			t.Setenv("PATH", test.path+string(os.PathListSeparator)+os.Getenv("PATH"))
		}
		memory := t.TempDir()
		loadAgain(t, module(t, remembering), memory, "")
		if _, err := os.Stat(asked); (err == nil) != test.want {
			t.Errorf("GOPACKAGESDRIVER=%s, directory %s: asked %v, want %v", test.variable, test.path, err == nil, test.want)
		}
		entries, err := os.ReadDir(memory)
		if err != nil {
			t.Fatal(err)
		}
		// It may know another build than the go command.
		if (len(entries) == 0) != test.want {
			t.Errorf("GOPACKAGESDRIVER=%s, directory %s: %d files remembered", test.variable, test.path, len(entries))
		}
	}
}
