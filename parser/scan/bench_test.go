package scan

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// form is what mentions looks for.
var form = regexp.MustCompile(`(?i)(//|/\*)\s*ratelimit\s*:`)

// BenchmarkFind walks and searches 3,000 files in 500 directories, 20 MB in all,
// of which two mention a directive.
func BenchmarkFind(b *testing.B) {
	dir := b.TempDir()
	write(b, filepath.Join(dir, "go.mod"), []byte("module m\n"))
	line := "\tif err := s.store.Put(ctx, key, value); err != nil { // case: none\n"
	body := "package p\n\nfunc f() error {\n" + strings.Repeat(line, 100) + "}\n"
	size := 0
	for i := range 3000 {
		src := body
		if i%1500 == 7 {
			src += "//ratelimit:max=5\n"
		}
		size += len(src)
		write(b, filepath.Join(dir, fmt.Sprintf("p%d/d%03d/f%d.go", i/6%7, i/6, i%6)), []byte(src))
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		if res := find(b, Config{Dir: dir, Patterns: []string{"./..."}}); len(res.Dirs) != 2 {
			b.Fatalf("%d directories", len(res.Dirs))
		}
	}
}

func BenchmarkMentions(b *testing.B) {
	src := []byte(strings.Repeat("\tif err := s.store.Put(ctx, key, value); err != nil { // case: none\n", 1000))
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		if mentions(src) {
			b.Fatal("a hit")
		}
	}
}
