package main

import (
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/ratelimitgen/ratelimitgen/internal/cli"
	"github.com/ratelimitgen/ratelimitgen/parser/directive"
)

// verbs are the first words that are not packages.
var verbs = []string{"check", "help", "redis", "selftest", "version", "vet"}

// splitWord takes the first word out of args, be it a verb or a package. Flags may stand
// before it; what is wrong with one, generation says.
func splitWord(args []string) (word string, rest []string) {
	return cli.SplitWord(args, anyFlags())
}

// anyFlags accepts the flags of all verbs. Which of them have a value has to be known
// before the verb is.
func anyFlags() *flag.FlagSet {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	for _, name := range []string{"C", "addr", "allow", "for", "form", "format", "limit", "policy", "prefix", "tags", "url"} {
		flags.String(name, "", "")
	}
	for _, name := range []string{"cluster", "diff", "hashes", "json", "n", "tests", "v"} {
		flags.Bool(name, false, "")
	}
	return flags
}

// help prints the usage, or what the language offers.
func (c *command) help(args []string) int {
	args, code, ok := c.words("help", args)
	switch {
	case !ok:
		return code
	case len(args) == 0:
		fmt.Fprint(c.stdout, usage)
	case args[0] == "redis" && len(args) == 1:
		return c.redis([]string{"-h"})
	case args[0] == "directives":
		if err := directive.WriteHelp(c.stdout, args[1:]...); err != nil {
			return c.trouble(err)
		}
	default:
		return c.trouble(fmt.Errorf("no help on %q; there is \"help\", \"help redis\" and \"help directives [verb] [option]\"", args[0]))
	}
	return exitDone
}

// version prints the version of the running binary.
func (c *command) version(args []string) int {
	args, code, ok := c.words("version", args)
	if !ok {
		return code
	}
	if len(args) > 0 {
		return c.trouble(fmt.Errorf("version takes no argument %q", args[0]))
	}
	fmt.Fprintf(c.stdout, "ratelimitgen %s\n", cli.Version())
	return exitDone
}

// words returns the arguments of a verb that reads no files. The only flag is -C, which
// all verbs have, and the directory must be there as for them. If the verb is to do
// nothing, ok is false and code the exit status.
func (c *command) words(verb string, args []string) (words []string, code int, ok bool) {
	flags := flag.NewFlagSet("ratelimitgen "+verb, flag.ContinueOnError)
	flags.SetOutput(c.stderr)
	flags.Usage = func() { fmt.Fprint(c.stderr, usage) }
	dir := flags.String("C", ".", "")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil, exitDone, false
	} else if err != nil {
		return nil, exitTrouble, false
	}
	if _, err := cli.Directory(*dir); err != nil {
		return nil, c.trouble(err), false
	}
	return flags.Args(), exitDone, true
}
