// Package report prints what benchmarks measured, as tables of plain text with
// the targets beside the figures.
package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Table is a table whose first row is its heading.
type Table struct {
	rows [][]string
}

// New returns a table with the given heading.
func New(heading ...string) *Table { return &Table{rows: [][]string{heading}} }

// Add adds a row.
func (t *Table) Add(cells ...string) { t.rows = append(t.rows, cells) }

// Write prints t to w: the first column flush left, the others flush right.
func (t *Table) Write(w io.Writer) error {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range t.rows {
		fmt.Fprintf(&b, "%-*s", widths[0], row[0])
		for i, cell := range row[1:] {
			fmt.Fprintf(&b, "  %*s", widths[i+1], cell)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// AtMost says whether value meets its target, "0.55 <= 0.80 PASS" or MISS.
func AtMost(value, target float64) string {
	digits := 2
	if value > target && value-target < 0.01 || target > 0 && target < 0.1 {
		digits = 3 // or else both could read the same
	}
	if value <= target {
		return fmt.Sprintf("%.*f <= %.*f PASS", digits, value, digits, target)
	}
	return fmt.Sprintf("%.*f >  %.*f MISS", digits, value, digits, target)
}

// Median returns the median of values, the upper one of two; 0 if there are none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}
