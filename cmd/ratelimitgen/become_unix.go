//go:build unix

package main

import (
	"os"
	"syscall"
)

// become runs another program in place of this one, so that the terminal, signals and the
// exit status are all its own. It only returns if that fails.
func become(path string, args []string) (int, error) {
	return exitTrouble, syscall.Exec(path, append([]string{path}, args...), os.Environ())
}
