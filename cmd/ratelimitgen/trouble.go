package main

import (
	"errors"
	"os/exec"
	"strings"
)

// plain is the text of an error. Of one of the go command it is what that command
// printed, without the words that are put around it.
func plain(err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return ofGo(string(exit.Stderr))
	}
	// The error of go/packages has no type, only this form.
	text := err.Error()
	status, said, ok := strings.Cut(text, ": stderr: ")
	status, list := strings.CutPrefix(status, "go list: err: ")
	switch {
	case !ok || !list:
		return text
	case strings.TrimSpace(said) == "":
		return "go list: " + status
	}
	return ofGo(said)
}

// ofGo is what the go command printed, which mostly says itself that it did.
func ofGo(said string) string {
	said = strings.TrimSpace(said)
	if strings.HasPrefix(said, "go: ") {
		return said
	}
	return "go: " + said
}
