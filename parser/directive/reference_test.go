package directive

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
)

func TestReferenceIsCurrent(t *testing.T) {
	t.Parallel()
	golden(t, "../../docs/reference.md", func(string) string {
		var b bytes.Buffer
		if err := WriteReference(&b); err != nil {
			t.Error(err)
		}
		return b.String()
	})
}

func TestReferenceReturnsTheErrorOfTheWriter(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	w.Close()
	if err := WriteReference(w); !errors.Is(err, os.ErrClosed) {
		t.Errorf("%v", err)
	}
}

func TestRowsOfTheReferenceHaveTheirCells(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := WriteReference(&b); err != nil {
		t.Fatal(err)
	}
	want := 0
	for line := range strings.Lines(b.String()) {
		if !strings.HasPrefix(line, "|") {
			want = 0
			continue
		}
		got := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|")
		if want == 0 {
			want = got
		}
		if got != want {
			t.Errorf("%d cells, not %d: %s", got, want, line)
		}
	}
}
