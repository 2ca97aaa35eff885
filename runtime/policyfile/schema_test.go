package policyfile

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"slices"
	"testing"
)

var update = flag.Bool("update", false, "rewrite schema.json")

func TestSchemaIsThatOfTheTables(t *testing.T) {
	t.Parallel()
	want := schemaOf()
	if *update {
		if err := os.WriteFile("schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(Schema(), want) {
		t.Error("schema.json is stale: run go test -update")
	}
	var s struct {
		Properties struct {
			Limits struct {
				AdditionalProperties struct {
					Properties map[string]struct {
						Description string
						Items       struct{ Properties map[string]any }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(Schema(), &s); err != nil {
		t.Fatal(err)
	}
	known := s.Properties.Limits.AdditionalProperties.Properties
	for _, o := range withKeys {
		if known[o.name].Description != o.doc {
			t.Errorf("the schema does not describe %s", o.name)
		}
	}
	for _, o := range keyOptions {
		if known[optKeys].Items.Properties[o.name] == nil {
			t.Errorf("the schema lacks %s of keys", o.name)
		}
	}
}

// TestTheSchemaHasGroupedNumbers has the schema of each number take what is a text in YAML
// 1.2 and a number in a file, such as 1_000.
func TestTheSchemaHasGroupedNumbers(t *testing.T) {
	t.Parallel()
	for _, o := range slices.Concat(limitOptions, keyOptions) {
		if o.kind != units && o.kind != integer {
			continue
		}
		takes := func(s string) (yes bool) {
			choices, _ := o.schema()["anyOf"].([]any)
			for _, one := range choices {
				pattern, ok := one.(map[string]any)["pattern"].(string)
				yes = yes || ok && regexp.MustCompile(pattern).MatchString(s)
			}
			return yes
		}
		for _, s := range []string{"1_000", "1_0_0", "12_345_678"} {
			if _, ok := decimal(s); !ok || !takes(s) {
				t.Errorf("%s: %s is a number: %t, and the schema takes it: %t", o.name, s, ok, takes(s))
			}
		}
		for _, s := range []string{"_1", "1_", "1__0", "0_1", "-1_000", "1_000x"} {
			if _, ok := decimal(s); ok || takes(s) {
				t.Errorf("%s: %s is a number: %t, and the schema takes it: %t", o.name, s, ok, takes(s))
			}
		}
	}
}

func TestTheDocumentHasEveryOption(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/policyfile.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range withKeys {
		in := "no"
		if o.inDefaults {
			in = "yes"
		}
		if row := "| `" + o.name + "` | " + in + " | " + o.doc + " | `" + o.example + "` |\n"; !bytes.Contains(text, []byte(row)) {
			t.Errorf("docs/policyfile.md lacks the row\n%s", row)
		}
	}
	for _, o := range keyOptions {
		if row := "| `" + o.name + "` | " + o.doc + " | `" + o.example + "` |\n"; !bytes.Contains(text, []byte(row)) {
			t.Errorf("docs/policyfile.md lacks the row\n%s", row)
		}
	}
}
