package generator

import (
	"os"
	"strings"
	"testing"
)

// tableRows returns the cells of the rows of the table with that heading in
// docs/expressions.md.
func tableRows(t *testing.T, heading string) [][]string {
	t.Helper()
	doc, err := os.ReadFile("../docs/expressions.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(doc), heading+"\n")
	if !ok {
		t.Fatalf("no table %s", heading)
	}
	var rows [][]string
	for line := range strings.Lines(table) {
		line, ok := strings.CutPrefix(strings.TrimSpace(line), "| ")
		if !ok {
			break
		}
		if strings.HasPrefix(line, "---") {
			continue
		}
		var cells []string
		for cell := range strings.SplitSeq(strings.TrimSuffix(line, " |"), " | ") {
			cells = append(cells, strings.ReplaceAll(strings.Trim(cell, "`"), `\|`, "|"))
		}
		rows = append(rows, cells)
	}
	if len(rows) < 10 {
		t.Fatalf("%s: %d rows", heading, len(rows))
	}
	return rows
}

func TestTheTableForThoseWhoKnowSpELHolds(t *testing.T) {
	t.Parallel()
	_, _, scope := keyTarget(t, keyPackage(t, keySource+"\nfunc main() {}\n"), "Service", "Do")
	rows := tableRows(t, "| SpEL | here | gives |")
	var exprs []expression
	for _, row := range rows {
		spel, here := row[0], row[1]
		key, _, problems := expression{"key", spel}.parse(scope)
		warned := false
		for _, p := range problems {
			warned = warned || p.Warning && p.Code != "constant-key" && p.Code != "joined-key"
		}
		if same := here == "the same"; same {
			here = spel
			if key == nil || warned {
				t.Errorf("%s is not read as it is written: %+v", spel, problems)
				continue
			}
		} else if key != nil && !warned {
			t.Errorf("%s is read without a word, though it should be written %s", spel, here)
		}
		exprs = append(exprs, expression{"key", here})
	}
	values, _ := evaluate(t, exprs, []string{"full()"})
	for i, v := range values {
		if v[0].ours != rows[i][2] {
			t.Errorf("%s gives %q, not %q", exprs[i].text, v[0].ours, rows[i][2])
		}
	}
}

func TestTheTableForThoseWhoKnowExprHolds(t *testing.T) {
	t.Parallel()
	rows := tableRows(t, "| expression | here | expr |")
	var exprs []expression
	for _, row := range rows {
		exprs = append(exprs, expression{"key", row[0]})
	}
	values, _ := evaluate(t, exprs, []string{"full()"})
	words := strings.NewReplacer("absent", "-", "empty", "", "error", "!")
	for i, v := range values {
		ours, vm := words.Replace(rows[i][1]), words.Replace(rows[i][2])
		if v[0].ours != ours || v[0].vm != vm {
			t.Errorf("%s is %q here and %q in expr, not %q and %q", rows[i][0], v[0].ours, v[0].vm, ours, vm)
		}
		if ours == vm {
			t.Errorf("%s does not differ", rows[i][0])
		}
	}
}
