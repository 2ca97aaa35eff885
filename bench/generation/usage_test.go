package main

import (
	"crypto/sha256"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary be the program that is measured: "eat 60 20"
// touches 60 MB, works a while and runs "eat 20".
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "eat" {
		if err := eat(os.Args[2:]); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

func eat(megabytes []string) error {
	n, err := strconv.Atoi(megabytes[0])
	if err != nil {
		return err
	}
	meal := make([]byte, n*1e6)
	for i := range meal {
		meal[i] = 1
	}
	if len(megabytes) > 1 {
		if err := exec.Command(os.Args[0], append([]string{"eat"}, megabytes[1:]...)...).Run(); err != nil {
			return err
		}
	}
	work := make([]byte, 1e6)
	for range 100 {
		sum := sha256.Sum256(work)
		work[0] = sum[0]
	}
	// Long enough to be seen by whoever watches.
	for start := time.Now(); time.Since(start) < 300*time.Millisecond; {
		runtime.KeepAlive(meal)
	}
	return nil
}

func TestMeasureAddsUpTheTimeOfChildren(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	alone, err := measure(exec.Command(self, "eat", "1"))
	if err != nil {
		t.Fatal(err)
	}
	// Each of the five does the same work, and takes the same time at least.
	five, err := measure(exec.Command(self, "eat", "1", "1", "1", "1", "1"))
	if err != nil {
		t.Fatal(err)
	}
	if five.cpu < 2*alone.cpu || five.wall < 1.5 {
		t.Errorf("one process: %.2f CPU s; five: %.2f CPU s, %.2f wall s; want more than twice as much, and 1.5", alone.cpu, five.cpu, five.wall)
	}
}

func TestMeasureReportsWhatAFailingProgramSays(t *testing.T) {
	t.Parallel()
	_, err := measure(exec.Command("go", "no-such-command"))
	if err == nil || !strings.Contains(err.Error(), "no-such-command") {
		t.Errorf("error %v, want one with the program's own words", err)
	}
}

func TestRemoveLeavesOtherModulesAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/go.mod", []byte("module example.com/precious\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := remove(dir); err == nil || !strings.Contains(err.Error(), "another module") {
		t.Errorf("error %v, want a refusal", err)
	}
	if err := os.WriteFile(dir+"/go.mod", []byte("module example.com/bigmodule\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := remove(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the module is still there: %v", err)
	}
	if err := remove(dir); err != nil {
		t.Errorf("nothing to remove: %v", err)
	}
}
