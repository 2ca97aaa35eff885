package scan

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
)

func TestUnreadableFilesAreErrors(t *testing.T) {
	t.Parallel()
	dir := module(t, example)
	// A regular file that not even root can read from its beginning.
	if err := os.Symlink("/proc/self/mem", filepath.Join(dir, "a", "mem.go")); err != nil {
		t.Fatal(err)
	}
	_, err := Find(context.Background(), Config{Dir: dir, Patterns: []string{"./..."}})
	if err == nil || !strings.Contains(err.Error(), filepath.Join("a", "mem.go")) {
		t.Errorf("%v", err)
	}
}

func TestNamedPipesAreNotOpened(t *testing.T) {
	t.Parallel()
	dir := module(t, example)
	if err := syscall.Mkfifo(filepath.Join(dir, "ab", "pipe.go"), 0o644); err != nil {
		t.Fatal(err)
	}
	got := names(t, dir, find(t, Config{Dir: dir, Patterns: []string{"./ab"}}))
	if want := []string{"ab/ab.go"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
