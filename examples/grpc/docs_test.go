package grpc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheDocumentationIsThisCode holds that what docs/grpc.md shows is compiled here.
func TestTheDocumentationIsThisCode(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/grpc.md")
	if err != nil {
		t.Fatal(err)
	}
	code := ""
	for _, pattern := range []string{"*.go", "*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			code += unindented(string(text))
		}
	}
	blocks := strings.Split(string(doc), "```go\n")[1:]
	if len(blocks) == 0 {
		t.Fatal("there is no code")
	}
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		// Pieces stand apart where the documentation has left something out.
		for piece := range strings.SplitSeq(unindented(block), "…\n") {
			if !strings.Contains(code, piece) {
				t.Errorf("no file has\n%s", piece)
			}
		}
	}
}

// unindented is text without the blanks that lines begin with.
func unindented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimLeft(line, " \t"))
	}
	return b.String()
}
