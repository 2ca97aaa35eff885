package directive

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// WriteHelp writes to w what `ratelimitgen help directives [verb] [option]` shows: all
// verbs and options in brief without names, everything about the verb and the options of
// one name, or about the option of a verb. It returns an error if there is none of that
// name, with the nearest that there is, or the error of w.
func WriteHelp(w io.Writer, names ...string) error {
	var b bytes.Buffer
	switch len(names) {
	case 0:
		writeOverview(&b)
	case 1:
		if !writeTopic(&b, names[0]) {
			return unknownTopic(names[0])
		}
	case 2:
		if err := writeOptionOf(&b, names[0], names[1]); err != nil {
			return err
		}
	default:
		return fmt.Errorf("no help on %q; name a verb, an option, or a verb and one of its options", strings.Join(names, " "))
	}
	_, err := w.Write(b.Bytes())
	return err
}

// writeOptionOf writes about an option of a verb.
func writeOptionOf(b *bytes.Buffer, verb, option string) error {
	v := findVerb(verb)
	if v == nil {
		return fmt.Errorf("no verb %q (there are: %s)", verb, strings.Join(verbNames(), ", "))
	}
	o := v.option(option)
	if o == nil {
		there := strings.Join(v.optionNames(), ", ")
		if there == "" {
			there = "none"
		}
		hint := ""
		if s := v.suggest(option); s != "" {
			hint = fmt.Sprintf("; did you mean %q?", s)
		}
		return fmt.Errorf("%s has no option %q%s (there are: %s)", verb, option, hint, there)
	}
	if !slices.ContainsFunc(v.ownOptions(), func(own Option) bool { return own.Name == option }) {
		v = findVerb(VerbLimit) // which it is from
	}
	writeOption(b, v, o)
	return nil
}

func writeOverview(b *bytes.Buffer) {
	fmt.Fprintf(b, "A directive stands in the doc comment of what it applies to:\n\n\t%sverb name=value name=value\n\n", Prefix)
	b.WriteString("A value is a bare word, a \"Go string\" or a `raw string`; bare words end at a blank.\n")
	for i := range registry {
		v := &registry[i]
		fmt.Fprintf(b, "\n%s  %s (on: %s)\n", v.Name, v.Doc, targetList(v.Targets))
		tw := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
		for _, o := range v.ownOptions() {
			fmt.Fprintf(tw, "  %s\t%s\t%s\n", o.Name, o.accepts(), cmp.Or(o.Default, "-"))
		}
		_ = tw.Flush() // writes to b, which does not fail
		if v.Except != nil {
			fmt.Fprintf(b, "  and the options of %s but %s\n", VerbLimit, strings.Join(v.Except, ", "))
		}
	}
}

// ownOptions are the options of v that it has not from limit.
func (v *Verb) ownOptions() []Option {
	if v.Except == nil {
		return v.Options
	}
	return slices.DeleteFunc(slices.Clone(v.Options), func(o Option) bool {
		return findVerb(VerbLimit).option(o.Name) != nil && !slices.Contains(v.Except, o.Name)
	})
}

func writeTopic(b *bytes.Buffer, name string) bool {
	sep := ""
	if v := findVerb(name); v != nil {
		fmt.Fprintf(b, "%s: %s\n", v.Name, v.Doc)
		writeField(b, "on", targetList(v.Targets))
		writeField(b, "example", v.Example)
		writeField(b, "options", strings.Join(v.optionNames(), ", "))
		sep = "\n"
	}
	for i := range registry {
		v := &registry[i]
		options := v.ownOptions()
		j := slices.IndexFunc(options, func(o Option) bool { return o.Name == name })
		if j < 0 {
			continue
		}
		b.WriteString(sep)
		writeOption(b, v, &options[j])
		sep = "\n"
	}
	return sep != ""
}

func writeOption(b *bytes.Buffer, v *Verb, o *Option) {
	verbs, targets := []string{v.Name}, o.targets(v)
	if v.Name == VerbLimit {
		for _, other := range registry {
			if other.Except != nil && !slices.Contains(other.Except, o.Name) {
				verbs = append(verbs, other.Name)
			}
		}
	}
	fmt.Fprintf(b, "%s (of %s): %s\n", o.Name, strings.Join(verbs, ", "), o.Doc)
	writeField(b, "value", o.accepts())
	writeField(b, "default", cmp.Or(o.Default, "-"))
	if o.Required {
		writeField(b, "required", "yes")
	}
	writeField(b, "algorithm", strings.Join(o.algorithmNames(), ", "))
	writeField(b, "only with", o.needs())
	writeField(b, "not with", o.Without)
	writeField(b, "on", targetList(targets))
	writeField(b, "example", o.Example)
}

// writeField writes a line about a topic, or nothing if there is nothing to say.
func writeField(b *bytes.Buffer, name, value string) {
	if value != "" {
		fmt.Fprintf(b, "  %-11s%s\n", name+":", value)
	}
}

// targets are what o can stand on as an option of v.
func (o *Option) targets(v *Verb) []TargetKind {
	if o.Targets != nil {
		return o.Targets
	}
	return v.Targets
}

// algorithmNames are those that take o, or nil if all do.
func (o *Option) algorithmNames() []string {
	var names []string
	for _, a := range o.Algorithms {
		names = append(names, string(a))
	}
	return names
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
	case o.Type == Algorithm:
		return words + ", your own"
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
