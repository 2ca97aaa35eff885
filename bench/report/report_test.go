package report_test

import (
	"strings"
	"testing"

	"github.com/ratelimitgen/ratelimitgen/bench/report"
)

func TestTableAlignsItsColumns(t *testing.T) {
	t.Parallel()
	table := report.New("case", "ns/op", "ratio")
	table.Add("long name", "1", report.AtMost(0.8, 0.8))
	table.Add("x", "1000", report.AtMost(0.81, 0.8))
	var b strings.Builder
	if err := table.Write(&b); err != nil {
		t.Fatal(err)
	}
	const want = "" +
		"case       ns/op              ratio\n" +
		"long name      1  0.80 <= 0.80 PASS\n" +
		"x           1000  0.81 >  0.80 MISS\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	values := []float64{5, 1, 3}
	if got := report.Median(values); got != 3 || values[0] != 5 {
		t.Errorf("median %v of %v, want 3, and the values as they were", got, values)
	}
	if got := report.Median(nil); got != 0 {
		t.Errorf("median %v of nothing, want 0", got)
	}
}
