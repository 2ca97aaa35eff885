//go:build !unix

package main

import (
	"errors"
	"os"
	"os/exec"
)

// become runs another program and returns its exit status. An interrupt from the console
// reaches both, and this one, which has asked to be notified, waits for the other.
func become(path string, args []string) (int, error) {
	cmd := exec.Command(path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		return exit.ExitCode(), nil
	}
	if err != nil {
		return exitTrouble, err
	}
	return exitDone, nil
}
