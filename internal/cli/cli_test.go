package cli

import (
	"flag"
	"strings"
	"testing"
)

func TestTheWordIsFoundBehindFlagsWithWrongValues(t *testing.T) {
	t.Parallel()
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.Bool("n", false, "")
	flags.Duration("for", 0, "")
	for _, c := range []struct{ args, word, rest string }{
		{"", "", ""},
		{"block k", "block", "k"},
		{"-for 1h -n block k", "block", "-for 1h -n k"},
		{"-for ever block -n k", "block", "-for ever -n k"},
		{"-n=x block", "", "-n=x block"}, // whether x is a value cannot be told
		{"-- block", "", "-- block"},
		{"-other block", "", "-other block"},
		{"--help block", "help", "block"},
	} {
		word, rest := SplitWord(strings.Fields(c.args), flags)
		if got := strings.Join(rest, " "); word != c.word || got != c.rest {
			t.Errorf("%q: %q and %q, want %q and %q", c.args, word, got, c.word, c.rest)
		}
	}
}
