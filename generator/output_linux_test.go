package generator

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// asNobody calls f with the file permissions of a user who owns nothing, if the test
// is run by root, whom no mode stops.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		// The thread ends with the goroutine, and its user with it.
		runtime.LockOSThread()
		const nobody = 65534
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETFSUID, nobody, 0, 0); errno != 0 {
			t.Errorf("setfsuid: %v", errno)
			return
		}
		f()
	}()
	<-done
}

func TestADirectoryThatCannotBeWrittenIsAnErrorThatNamesTheFile(t *testing.T) {
	t.Parallel()
	root, changes := outputs(t, "a", "b", "z")
	for dir := root; strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"a", "b"} {
		if err := os.Chmod(filepath.Join(root, dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for i := range changes {
		write(t, changes[i].Path, Header+"\nold", 0o666)
	}
	sealed := filepath.Join(root, "z")
	if err := os.Chmod(sealed, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(sealed, 0o755) })
	before := snapshot(t, root)
	var err error
	asNobody(t, func() { err = Apply(changes) })
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), filepath.Join(sealed, OutputName)) {
		t.Errorf("error %v", err)
	}
	if after := snapshot(t, root); !slices.Equal(before, after) {
		t.Errorf("the tree was\n%s\nand is\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
}

// smallDiskEnv has the directory in which the process is to make changes that do not
// fit.
const smallDiskEnv = "RATELIMITGEN_TEST_SMALL_DISK"

func TestAWriteThatFailsHalfWayLeavesEveryFileAsItWas(t *testing.T) {
	t.Parallel()
	if root := os.Getenv(smallDiskEnv); root != "" {
		writeTooMuch(t, root)
		return
	}
	root, _ := outputs(t, "a", "b", "z")
	before := snapshot(t, root)
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), smallDiskEnv+"="+root)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Fatalf("%v\n%s", err, out)
	}
	if after := snapshot(t, root); !slices.Equal(before, after) {
		t.Errorf("the tree was\n%s\nand is\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
}

// writeTooMuch lets a limit of this process stand in for a disk that is full: the last
// of the files is cut off in its middle.
func writeTooMuch(t *testing.T, root string) {
	signal.Ignore(syscall.SIGXFSZ)
	const most = 1 << 16
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
		t.Fatal(err)
	}
	var changes []Change
	for _, name := range []string{"a", "b", "z"} {
		path := filepath.Join(root, name, OutputName)
		content := Header + "\nnew"
		if name == "z" {
			content += strings.Repeat("x", 2*most)
		}
		changes = append(changes, Change{Path: path, Kind: Stale, File: File{path, []byte(content)}})
	}
	err := Apply(changes)
	if !errors.Is(err, syscall.EFBIG) || !strings.Contains(err.Error(), filepath.Join("z", OutputName)) {
		t.Errorf("error %v", err)
	}
}
