// Package cli has what the programs of this module have in common.
package cli

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
)

// Version is the module version of the running binary.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// Directory is what -C names, as an absolute path.
func Directory(name string) (string, error) {
	dir, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s is not a directory", dir)
	}
	return dir, nil
}

// SplitWord takes the first word out of args. As with the go command, flags may stand
// before it: it is the first argument that is neither one of the flags nor the value of
// one. It is "help" if help is all that is asked for, and "" if there is none, or if "--"
// says that no verb follows.
func SplitWord(args []string, flags *flag.FlagSet) (word string, rest []string) {
	if len(args) > 0 && slices.Contains([]string{"-h", "-help", "--help"}, args[0]) {
		return "help", args[1:]
	}
	// A flag may be in the wrong place or its value wrong. That is for the verb to say.
	lenient := flag.NewFlagSet("", flag.ContinueOnError)
	lenient.SetOutput(io.Discard)
	flags.VisitAll(func(f *flag.Flag) {
		if b, ok := f.Value.(interface{ IsBoolFlag() bool }); ok && b.IsBoolFlag() {
			lenient.Bool(f.Name, false, "")
		} else {
			lenient.String(f.Name, "", "")
		}
	})
	if lenient.Parse(args) != nil || lenient.NArg() == 0 {
		return "", args
	}
	n := len(args) - lenient.NArg()
	if n > 0 && args[n-1] == "--" {
		return "", args
	}
	return args[n], slices.Concat(args[:n], args[n+1:])
}
