package directive

import (
	"bytes"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

func TestRegistryDescribesEverything(t *testing.T) {
	t.Parallel()
	name := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	seen := map[string]bool{}
	for _, v := range Verbs() {
		if !name.MatchString(v.Name) || seen[v.Name] || v.Doc == "" || strings.Contains(v.Doc, "\n") || len(v.Targets) == 0 {
			t.Errorf("verb %+v", v)
		}
		seen[v.Name] = true
		if got := report(v.Example); got != "" {
			t.Errorf("example of %s: %s", v.Name, got)
		}
		options := map[string]bool{}
		for _, o := range v.Options {
			if !name.MatchString(o.Name) || options[o.Name] || o.Doc == "" || strings.Contains(o.Doc, "\n") || o.Type == "" {
				t.Errorf("option %+v of %s", o, v.Name)
			}
			options[o.Name] = true
			if got := report(Prefix + v.Name + " " + v.required() + o.Example); got != "" && !o.Required {
				t.Errorf("example of %s of %s: %s", o.Name, v.Name, got)
			}
			if o.Default == "" {
				continue
			}
			if got := report(Prefix + v.Name + " " + v.required() + context(&o) + o.Name + "=" + o.Default); got != "" {
				t.Errorf("default of %s of %s: %s", o.Name, v.Name, got)
			}
		}
		for _, o := range v.Options {
			for _, alias := range o.Aliases {
				if options[alias] {
					t.Errorf("alias %s of %s of %s is an option", alias, o.Name, v.Name)
				}
			}
		}
	}
}

// required is what v cannot do without, as it stands before other options.
func (v *Verb) required() string {
	text := ""
	for _, o := range v.Options {
		if o.Required {
			text += o.Example + " "
		}
	}
	return text
}

// context is what o needs to have an effect, as it stands before o.
func context(o *Option) string {
	text := ""
	switch {
	case o.Needs == optKey:
		text = "key=user "
	case o.Needs == optAlign:
		text = "algorithm=fixed-window align=day "
	case o.Needs != "":
		text = o.Needs + " "
	}
	if o.Algorithms != nil && !o.fits(ratelimit.SlidingLog) {
		text += "algorithm=" + string(o.Algorithms[0]) + " "
	}
	return text
}

func TestRegistryCannotBeChangedFromOutside(t *testing.T) {
	t.Parallel()
	verbs := Verbs()
	verbs[0].Name = "x"
	verbs[0].Targets[0] = "x"
	verbs[0].Options[0].Values[0] = "x"
	verbs[0].Options[0].Name = "x"
	if v := Verbs()[0]; v.Name == "x" || v.Targets[0] == "x" || v.Options[0].Name == "x" || v.Options[0].Values[0] == "x" {
		t.Errorf("%+v", v)
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	golden(t, "testdata/help.txt", func(string) string {
		var b bytes.Buffer
		for _, name := range []string{"", "limit", "off", "define", "name", "burst", "tz", "max-wait", "limit max", "define name", "define max"} {
			b.WriteString("$ help directives " + name + "\n")
			if err := WriteHelp(&b, strings.Fields(name)...); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			b.WriteString("\n")
		}
		return b.String()
	})
}

func TestHelpSuggestsANameForAnUnknownOne(t *testing.T) {
	t.Parallel()
	for names, want := range map[string]string{
		"windows":         `did you mean "window"?`,
		"limit windows":   `limit has no option "windows"; did you mean "window"?`,
		"defaults group":  `defaults has no option "group"`,
		"off max":         `off has no option "max" (there are: none)`,
		"max limit":       `no verb "max" (there are: `,
		"limit max burst": `no help on "limit max burst"; name a verb, an option, or a verb and one of its options`,
	} {
		var b bytes.Buffer
		err := WriteHelp(&b, strings.Fields(names)...)
		if err == nil || !strings.Contains(err.Error(), want) || b.Len() > 0 {
			t.Errorf("%s: %v, %q", names, err, b.String())
		}
	}
}

func TestHelpReturnsTheErrorOfTheWriter(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	w.Close()
	if err := WriteHelp(w); !errors.Is(err, os.ErrClosed) {
		t.Errorf("%v", err)
	}
}
