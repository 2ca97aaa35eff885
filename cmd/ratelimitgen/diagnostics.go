package main

import (
	"flag"
	"fmt"
	"slices"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
)

// diagnosticFlags are the flags that say how problems are printed.
type diagnosticFlags struct {
	format string
	json   bool
}

func (f *diagnosticFlags) register(flags *flag.FlagSet) {
	flags.StringVar(&f.format, "format", "", "")
	flags.BoolVar(&f.json, "json", false, "")
}

// chosen is the format that the flags ask for.
func (f *diagnosticFlags) chosen() (diag.Format, error) {
	format := diag.Format(f.format)
	switch {
	case f.json && f.format != "" && format != diag.JSON:
		return "", fmt.Errorf("-json and -format=%s contradict each other", f.format)
	case f.json:
		return diag.JSON, nil
	case f.format == "":
		return diag.Text, nil
	case !slices.Contains(diag.Formats(), format):
		return "", fmt.Errorf("unknown -format=%s; there is %v", f.format, diag.Formats())
	}
	return format, nil
}

// print prints problems to standard error or, if a program is to read them, to
// standard output; whatever else the command prints goes to standard error then.
func (c *command) print(diags diag.List, format diag.Format) error {
	w := c.stderr
	if format == diag.JSON {
		w = c.stdout
		c.stdout = c.stderr
	}
	return diags.Write(w, format)
}
