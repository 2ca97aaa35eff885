package directive

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// WriteReference writes to w the reference of the language in Markdown: every verb
// and option, and what goes with what. It returns the error of w.
func WriteReference(w io.Writer) error {
	var b bytes.Buffer
	b.WriteString(referenceHead)
	writeVerbs(&b)
	limit := findVerb(VerbLimit)
	b.WriteString("\n## Options of limit\n\n")
	writeOptionTable(&b, limit.Options)
	b.WriteString("\n" + referenceValues)
	writeMatrix(&b, limit.Options)
	for i := range registry {
		v := &registry[i]
		if v.Name == VerbLimit || len(v.Options) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## Options of %s\n\n", v.Name)
		if own := v.ownOptions(); len(own) > 0 {
			writeOptionTable(&b, own)
		}
		if v.Except != nil {
			names := make([]string, len(v.Except))
			for i, name := range v.Except {
				names[i] = code(name)
			}
			also := ""
			if len(v.ownOptions()) > 0 {
				b.WriteString("\n")
				also = "also "
			}
			fmt.Fprintf(&b, "%s %stakes the options of %s, all but %s.\n", code(v.Name), also, code(VerbLimit), strings.Join(names, ", "))
		}
	}
	b.WriteString("\n" + referenceTail)
	_, err := w.Write(b.Bytes())
	return err
}

const referenceHead = `<!-- Written by: go test ./parser/directive -run Reference -update. Edit parser/directive/verbs.go and reference.go instead. -->

# Reference of directives

` + "`ratelimitgen help directives [verb] [option]`" + ` prints the same in the terminal; [diagnostics.md](diagnostics.md) lists what can be wrong, [expressions.md](expressions.md) what can stand in a key, a cost or a condition.

## Form

` + "```go" + `
//ratelimit:max=5 window=1m key=ip
//ratelimit:limit max=100 window=1h key=` + "`[req.TenantID, req.UserID]`" + `
` + "```" + `

- ` + "`//ratelimit:`" + `, a verb, and options ` + "`name=value`" + ` with blanks between them. The verb ` + "`limit`" + ` may be left out.
- A value is a bare word, which ends at a blank, a ` + "`\"Go string\"`" + `, or a raw string in back quotes.
- A directive is a line of its own in the doc comment of what it applies to; several limits on one method must all admit a call.
- What would have no effect is an error: an unknown word, an option that does not go with the others, a comment that only looks like a directive.
- A directive has at most 4096 bytes, a declaration at most 64 directives.

## Verbs

`

const referenceValues = `Durations are written as in Go, with ` + "`d`" + ` (24 hours) and ` + "`w`" + ` (7 days) besides: ` + "`500ms`" + `, ` + "`1h30m`" + `, ` + "`7d`" + `.
They are whole microseconds and at most 3660d. Integers are decimal and may have ` + "`_`" + ` between digits: ` + "`1_000`" + `.
Names are letters, digits, ` + "`_`, `.` and `-`" + `, begin with a letter or ` + "`_`" + `, and have at most 128 bytes.
A text is one printable line of at most 512 bytes.

## Which options go with which algorithm

All other options go with every algorithm. The last column is that of algorithms of your own, which
` + "[`ratelimit.WithAlgorithm`](runtime.md#an-algorithm-of-your-own)" + ` gives to a limiter.

`

const referenceTail = `## Where a limit has its options from

A limit takes each option from the first of these that has it:

1. itself;
2. the define that it names with ` + "`use=`" + `;
3. the defaults of the package;
4. the defaults in the table above.

What is nearer excludes what has no effect beside it: a limit with ` + "`align=day`" + ` does not take ` + "`window=1h`" + ` from its define.
An option of the define that has no effect on a limit that uses it is an error; one of the defaults is left out there.
Defines that no limit uses, and options of defines and defaults that no limit takes, are errors too.
` + "`define` and `defaults`" + ` stand in the doc comment of the package, in any of its files.
`

func writeVerbs(b *bytes.Buffer) {
	b.WriteString("| verb | on | meaning | example |\n| --- | --- | --- | --- |\n")
	for _, v := range registry {
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", code(v.Name), targetList(v.Targets), cell(v.Doc), code(v.Example))
	}
}

func writeOptionTable(b *bytes.Buffer, options []Option) {
	b.WriteString("| option | value | default | meaning | example |\n| --- | --- | --- | --- | --- |\n")
	for _, o := range options {
		def := ""
		switch {
		case o.Required:
			def = "required"
		case o.Default != "":
			def = code(o.Default)
		}
		doc := o.Doc
		if o.Needs != "" {
			doc += "; only with " + o.needs()
		}
		if o.Without != "" {
			doc += "; not with " + o.Without
		}
		if o.Targets != nil {
			doc += "; only on: " + targetList(o.Targets)
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", code(o.Name), cell(o.accepts()), def, cell(doc), code(o.Example))
	}
}

// writeMatrix writes which algorithms take which options.
func writeMatrix(b *bytes.Buffer, options []Option) {
	algorithms := append(slices.Clone(findVerb(VerbLimit).option(optAlgorithm).Values), string(Custom))
	fmt.Fprintf(b, "| option | %s |\n|%s\n", strings.Join(algorithms, " | "), strings.Repeat(" --- |", len(algorithms)+1))
	for _, o := range options {
		if o.Algorithms == nil {
			continue
		}
		fmt.Fprintf(b, "| %s |", code(o.Name))
		for _, a := range algorithms {
			mark := ""
			if slices.Contains(o.Algorithms, ratelimit.Algorithm(a)) {
				mark = "yes"
			}
			fmt.Fprintf(b, " %s |", cmp.Or(mark, "-"))
		}
		b.WriteString("\n")
	}
}

// code is text as code in a cell of a table.
func code(text string) string {
	if strings.Contains(text, "`") {
		return "`` " + cell(text) + " ``"
	}
	return "`" + cell(text) + "`"
}

// cell is text in a cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
