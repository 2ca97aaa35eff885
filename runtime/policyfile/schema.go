package policyfile

import (
	"bytes"
	_ "embed" // of schema.json
	"encoding/json"
	"fmt"
)

//go:embed schema.json
var schema []byte

// Schema returns the JSON Schema (2020-12) of the files, for editors. What depends on
// the limits that a service has, such as their names, is known to Binding.Apply only.
func Schema() []byte { return bytes.Clone(schema) }

// schemaOf returns the schema that the tables of options make.
func schemaOf() []byte {
	object := func(properties map[string]any, required ...any) map[string]any {
		o := map[string]any{"type": "object", "properties": properties, "additionalProperties": false, "minProperties": 1}
		if len(required) > 0 {
			o["oneOf"] = required
		}
		return o
	}
	limit, defaults := map[string]any{}, map[string]any{}
	for i := range limitOptions {
		o := &limitOptions[i]
		limit[o.name] = o.schema()
		if o.inDefaults {
			defaults[o.name] = o.schema()
		}
	}
	rule := map[string]any{}
	var whose, howMany []any
	for i := range keyOptions {
		o := &keyOptions[i]
		rule[o.name] = o.schema()
		need := map[string]any{"required": []string{o.name}}
		if o.kind == mentioned {
			whose = append(whose, need)
		} else {
			howMany = append(howMany, need)
		}
	}
	exception := object(rule)
	exception["allOf"] = []any{map[string]any{"oneOf": whose}, map[string]any{"oneOf": howMany}}
	limit[keysOption.name] = map[string]any{"description": keysOption.doc, "type": "array", "minItems": 1, "items": exception}
	text, err := json.MarshalIndent(map[string]any{
		"$schema":              "https://json-schema.org/draft/2020-12/schema",
		"title":                "Overrides of limits",
		"type":                 "object",
		"additionalProperties": false,
		"properties": map[string]any{
			"defaults": object(defaults),
			"limits": map[string]any{
				"description":          "by the name of the limit",
				"type":                 "object",
				"minProperties":        1,
				"additionalProperties": object(limit),
			},
		},
	}, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("policyfile: %v", err)) // maps and texts always marshal
	}
	return append(text, '\n')
}

// groupedNumber matches numbers that are written with a '_', and above 0.
const groupedNumber = `^[1-9][0-9]*(_[0-9]+)+$`

// schema is what an editor is told of the option.
func (o *option) schema() map[string]any {
	s := map[string]any{"description": o.doc, "examples": []string{o.example}}
	number := map[string]any{"type": "integer", "minimum": o.min, "maximum": o.max}
	// YAML 1.2 takes 1_000 for a text.
	grouped := map[string]any{"type": "string", "pattern": groupedNumber}
	duration := map[string]any{"type": "string", "pattern": `^([0-9.]+(ns|us|µs|μs|ms|s|m|h|d|w))+$`}
	switch o.kind {
	case units:
		s["anyOf"] = []any{number, grouped, duration, map[string]any{"enum": o.words}}
	case integer:
		s["anyOf"] = []any{number, grouped}
	case length:
		for k, v := range duration {
			s[k] = v
		}
	case choice:
		s["enum"] = o.words
	case text:
		s["type"] = "string"
	case mentioned:
		texts := map[string]any{"type": []string{"string", "number", "boolean"}}
		switch o.name {
		case optCIDRFile:
			s["type"] = "string"
		default:
			s["anyOf"] = []any{texts, map[string]any{"type": "array", "minItems": 1, "items": texts}}
		}
	}
	return s
}
