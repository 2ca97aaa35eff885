package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// redisEnv tells the tests of an archive the socket of a Redis server.
const redisEnv = "RATELIMITGEN_TEST_SOCKET"

// TestBehaviour runs the tests in testdata/behaviour. An archive is a module whose
// tests call what ratelimitgen generates for it, with the race detector if this test
// has it. What the generated code looks like is none of their business: that is what
// TestScenarios is for.
func TestBehaviour(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../testdata/behaviour/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			runBehaviour(t, path)
		})
	}
}

func runBehaviour(t *testing.T, path string) {
	ar, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	needsRedis := false
	for _, f := range ar.Files {
		files[f.Name] = string(f.Data)
		needsRedis = needsRedis || bytes.Contains(f.Data, []byte(redisEnv))
	}
	dir := module(t, files)
	addSums(t, dir)
	if code, stdout, stderr := ratelimitgen(t, dir, "./..."); code != exitDone {
		t.Fatalf("exit status %d:\n%s%s", code, stdout, stderr)
	}
	var env []string
	if needsRedis {
		env = append(env, redisEnv+"="+startRedis(t))
	}
	args := []string{"test", "-count=1", "-timeout=2m"}
	if raceDetector() {
		args = append(args, "-race")
	}
	out, err := goCommand(dir, env, append(args, "./...")...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !bytes.Contains(out, []byte("ok  \t")) {
		t.Fatalf("there are no tests:\n%s", out)
	}
}

// addSums gives the module in dir the sums of this one, whose dependencies its
// tests may use.
func addSums(t *testing.T, dir string) {
	t.Helper()
	sums, err := os.ReadFile("../../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "go.sum"), sums)
}

// goCommand makes a go command that runs in the module in dir.
func goCommand(dir string, env []string, args ...string) *exec.Cmd {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off"), env...)
	return cmd
}

// raceDetector reports whether this test was built with the race detector.
func raceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// startRedis runs a Redis server for one test and returns its socket.
func startRedis(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatalf("this test needs redis-server, which `make test` provides: %v", err)
	}
	dir, err := os.MkdirTemp("", "redis") // that of the test may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "socket")
	cmd := exec.Command(path, "--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "", "--appendonly", "no")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	var log strings.Builder
	for lines := bufio.NewScanner(stdout); lines.Scan(); log.WriteString(lines.Text() + "\n") {
		if strings.Contains(strings.ToLower(lines.Text()), "ready to accept connections") {
			return socket
		}
	}
	t.Fatalf("redis-server did not start:\n%s", log.String())
	return ""
}
