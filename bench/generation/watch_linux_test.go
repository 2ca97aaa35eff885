package main

import (
	"os"
	"os/exec"
	"testing"
)

func TestMeasureTellsTheMemoryOfAProcessFromThatOfItsChildren(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	u, err := measure(exec.Command(self, "eat", "120"))
	if err != nil {
		t.Fatal(err)
	}
	if u.own < 120e6 || u.children != 0 {
		t.Errorf("own peak %v MB, children's %v MB; want at least 120 and none", u.own, u.children)
	}
	// The shell is small, and its child is another program.
	u, err = measure(exec.Command("/bin/sh", "-c", self+" eat 120; true"))
	if err != nil {
		t.Fatal(err)
	}
	if u.children < 120e6 || u.own > 60e6 {
		t.Errorf("own peak %v MB, children's %v MB; want little and at least 120", u.own, u.children)
	}
}
