package directive

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// WriteHelp writes to w what `ratelimitgen help directives [name]` shows: all
// verbs and options in brief if name is "", or everything about the verb and the
// options of that name. It returns an error if there is none of that name, with
// the nearest that there is, or the error of w.
func WriteHelp(w io.Writer, name string) error {
	var b bytes.Buffer
	if name == "" {
		writeOverview(&b)
	} else if !writeTopic(&b, name) {
		return unknownTopic(name)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func writeOverview(b *bytes.Buffer) {
	fmt.Fprintf(b, "A directive stands in the doc comment of what it applies to:\n\n\t%sverb name=value name=value\n\n", Prefix)
	b.WriteString("A value is a bare word, a \"Go string\" or a `raw string`; bare words end at a blank.\n")
	for _, v := range registry {
		fmt.Fprintf(b, "\n%s  %s (on: %s)\n", v.Name, v.Doc, targetList(v.Targets))
		tw := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
		for _, o := range v.Options {
			fmt.Fprintf(tw, "  %s\t%s\t%s\n", o.Name, o.accepts(), orDash(o.Default))
		}
		_ = tw.Flush() // writes to b, which does not fail
	}
}

func writeTopic(b *bytes.Buffer, name string) bool {
	sep := ""
	if v := findVerb(name); v != nil {
		fmt.Fprintf(b, "%s: %s\n  on:       %s\n  example:  %s\n", v.Name, v.Doc, targetList(v.Targets), v.Example)
		if len(v.Options) > 0 {
			fmt.Fprintf(b, "  options:  %s\n", strings.Join(v.optionNames(), ", "))
		}
		sep = "\n"
	}
	for _, v := range registry {
		o := v.option(name)
		if o == nil {
			continue
		}
		targets := o.Targets
		if targets == nil {
			targets = v.Targets
		}
		fmt.Fprintf(b, "%s%s (of %s): %s\n  value:    %s\n  default:  %s\n  on:       %s\n  example:  %s\n",
			sep, o.Name, v.Name, o.Doc, o.accepts(), orDash(o.Default), targetList(targets), o.Example)
		sep = "\n"
	}
	return sep != ""
}

func unknownTopic(name string) error {
	names := verbNames()
	for _, v := range registry {
		for _, o := range v.Options {
			if !slices.Contains(names, o.Name) {
				names = append(names, o.Name)
			}
		}
	}
	hint := ""
	if s := diag.Suggest(name, names); s != "" {
		hint = fmt.Sprintf("; did you mean %q?", s)
	}
	return fmt.Errorf("no verb or option %q%s (there are: %s)", name, hint, strings.Join(names, ", "))
}

// accepts says in words what values o takes.
func (o *Option) accepts() string {
	words := strings.Join(o.Values, ", ")
	switch {
	case o.Type == Choice || o.Type == Action:
		return words
	case o.Type == Integer && o.Max == ratelimit.MaxLimit:
		return fmt.Sprintf("integer >= %d", o.Min)
	case o.Type == Integer:
		return fmt.Sprintf("integer %d..%d", o.Min, o.Max)
	case words != "":
		return string(o.Type) + ", " + words
	}
	return string(o.Type)
}

func targetList(targets []TargetKind) string {
	names := make([]string, len(targets))
	for i, t := range targets {
		names[i] = string(t)
	}
	return strings.Join(names, ", ")
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
