package main

import (
	"go/build"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/parser"
)

// irregularIn reports what has the name of a source file in a directory that patterns
// may name, and is none: see parser.Irregular. Of import paths only the go command knows
// the directories.
func irregularIn(dir string, patterns []string) diag.List {
	if len(patterns) == 0 {
		patterns = []string{"."}
	}
	var found diag.List
	for _, pattern := range patterns {
		if !build.IsLocalImport(filepath.ToSlash(pattern)) && !filepath.IsAbs(pattern) {
			continue
		}
		top, _, wild := strings.Cut(filepath.ToSlash(pattern), "...")
		if wild {
			top, _ = path.Split(top)
		}
		if top = filepath.FromSlash(top); !filepath.IsAbs(top) {
			top = filepath.Join(dir, top)
		}
		if !wild {
			found.Add(parser.Irregular(top)...)
			continue
		}
		_ = filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil // the go command reports it
			case !d.IsDir():
				return nil
			case name != top && elsewhere(name, d.Name()):
				return fs.SkipDir
			}
			found.Add(parser.Irregular(name)...)
			return nil
		})
	}
	for i := range found {
		found[i].Pos.File = relative(dir, found[i].Pos.File)
	}
	found.Sort()
	return found
}

// elsewhere reports whether no pattern leads into a directory from the one above: it is
// another module, or has one of the names that the go command passes over.
func elsewhere(dir, name string) bool {
	if name == "testdata" || name[0] == '_' || name[0] == '.' {
		return true
	}
	info, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil && !info.IsDir()
}
