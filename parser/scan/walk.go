package scan

import (
	"context"
	"errors"
	"go/build"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
)

// listing is a directory with the names of its Go files, sorted.
type listing struct {
	path  string
	files []string
}

// walker finds the directories that patterns match. Its rules are those of `go
// help packages`, and what cmd/go does where that says nothing.
type walker struct {
	ctx   context.Context
	root  string          // absolute
	found map[string]bool // paths in dirs
	dirs  []listing
	other []string
	diags diag.List
}

func (w *walker) patterns(patterns []string) error {
	if len(patterns) == 0 {
		patterns = []string{"."}
	}
	for _, pattern := range patterns {
		var err error
		switch {
		case !build.IsLocalImport(filepath.ToSlash(pattern)) && !filepath.IsAbs(pattern):
			if strings.HasSuffix(pattern, ".go") {
				w.diags.Add(noMatch("%s is a file: name its directory", pattern))
			} else {
				w.other = append(w.other, pattern)
			}
		case strings.Contains(pattern, "..."):
			err = w.wildcard(pattern)
		default:
			err = w.literal(pattern)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// literal adds the one directory that pattern names.
func (w *walker) literal(pattern string) error {
	dir := w.abs(pattern)
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		w.diags.Add(noMatch("there is no directory %s", pattern))
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		w.diags.Add(noMatch("%s is a file: name its directory", pattern))
		return nil
	}
	entries, err := w.readDir(dir)
	if err != nil {
		return err
	}
	if !w.add(dir, entries) {
		w.diags.Add(noMatch("there are no Go files in %s: to include the directories below it write %s", pattern, diag.Quote(strings.TrimSuffix(pattern, "/")+"/...")))
	}
	return nil
}

// wildcard adds the directories that pattern, which holds "...", matches.
func (w *walker) wildcard(pattern string) error {
	clean := filepath.ToSlash(filepath.Clean(pattern))
	start, _ := path.Split(clean[:strings.Index(clean, "...")])
	start = path.Clean(start)
	t := tree{walker: w, match: matcher(clean), vendors: vendorElems(clean), ignored: ignoredBy(w.abs(start))}
	if hidden(path.Base(start)) {
		// As the go command: a pattern does not lead into such a tree.
		w.diags.Add(emptyMatch("%s matches no packages: directories named testdata, or beginning with . or _, are left out; name the directory itself", pattern))
		return nil
	}
	err := t.walk(w.abs(start), start, true)
	if errors.Is(err, fs.ErrNotExist) {
		w.diags.Add(noMatch("there is no directory %s", start))
		return nil
	}
	if err == nil && !t.matched {
		w.diags.Add(emptyMatch("%s matches no directory with Go files", pattern))
	}
	return err
}

func (w *walker) abs(name string) string {
	if name = filepath.FromSlash(name); filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(w.root, name)
}

func (w *walker) readDir(dir string) ([]fs.DirEntry, error) {
	if err := w.ctx.Err(); err != nil {
		return nil, err
	}
	return os.ReadDir(dir)
}

// add records the Go files of dir and reports whether there are any.
func (w *walker) add(dir string, entries []fs.DirEntry) bool {
	if w.found[dir] {
		return true
	}
	var files []string
	for _, e := range entries {
		if name := e.Name(); strings.HasSuffix(name, ".go") && name[0] != '_' && name[0] != '.' && isFile(dir, e) {
			files = append(files, name)
		}
	}
	if len(files) == 0 {
		return false
	}
	w.found[dir] = true
	w.dirs = append(w.dirs, listing{path: dir, files: files})
	return true
}

// isFile reports whether e is a regular file or a link to one. Opening a named
// pipe would wait for a writer.
func isFile(dir string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.Type().IsRegular()
	}
	info, err := os.Stat(filepath.Join(dir, e.Name()))
	return err == nil && info.Mode().IsRegular()
}

// tree is one walk below a directory.
type tree struct {
	*walker
	match   func(name string) bool
	vendors int // elements "vendor" that the pattern spells out
	ignored func(dir string) bool
	matched bool
}

// walk visits dir, an absolute path that the pattern would spell as name, and the
// directories below it. Links to directories are not followed, except at the top,
// and neither are other modules.
func (t *tree) walk(dir, name string, top bool) error {
	if t.ignored(dir) {
		return nil
	}
	entries, err := t.readDir(dir)
	if err != nil {
		return err
	}
	if !top && slices.ContainsFunc(entries, isModFile) {
		return nil // another module
	}
	if t.match(name) && t.add(dir, entries) {
		t.matched = true
	}
	if vendorElems(name+"/x") > t.vendors {
		return nil
	}
	for _, e := range entries {
		if !e.IsDir() || hidden(e.Name()) {
			continue
		}
		err := t.walk(filepath.Join(dir, e.Name()), path.Join(name, e.Name()), false)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func isModFile(e fs.DirEntry) bool { return e.Name() == "go.mod" && !e.IsDir() }

// hidden reports whether patterns leave out directories of this name.
func hidden(elem string) bool {
	return elem == "testdata" || elem[0] == '_' || elem[0] == '.' && elem != "." && elem != ".."
}

// matcher returns a function that reports whether the name of a directory matches
// a pattern in which "..." stands for any text, and a final "/..." also for none.
// No "..." stands for a vendor directory's content.
func matcher(pattern string) func(name string) bool {
	re := regexp.QuoteMeta(pattern)
	if prefix, ok := strings.CutSuffix(re, `/\.\.\.`); ok {
		re = prefix + `(/\.\.\.)?`
	}
	re = strings.ReplaceAll(re, `\.\.\.`, `.*`)
	form := regexp.MustCompile(`^(?s:` + re + `)$`)
	vendors := vendorElems(pattern)
	return func(name string) bool {
		if vendorElems(name) != vendors && (path.Base(name) != "vendor" || vendorElems(name)+1 != vendors) {
			return false
		}
		return form.MatchString(name)
	}
}

// vendorElems counts the elements "vendor" of name, except the last.
func vendorElems(name string) int {
	elems := strings.Split(name, "/")
	n := 0
	for _, e := range elems[:len(elems)-1] {
		if e == "vendor" {
			n++
		}
	}
	return n
}

// ignoredBy returns a function that reports whether the go.mod of the module
// around dir tells patterns to ignore a directory at or below dir.
func ignoredBy(dir string) func(dir string) bool {
	none := func(string) bool { return false }
	modRoot, data := dir, []byte(nil)
	for {
		var err error
		if data, err = os.ReadFile(filepath.Join(modRoot, "go.mod")); err == nil {
			break
		}
		parent := filepath.Dir(modRoot)
		if parent == modRoot {
			return none
		}
		modRoot = parent
	}
	mod, err := modfile.ParseLax("go.mod", data, nil)
	if err != nil || len(mod.Ignore) == 0 {
		return none // what is wrong with go.mod, the go command says
	}
	slashed := func(p string) string { return "/" + strings.Trim(filepath.ToSlash(p), "/") + "/" }
	return func(dir string) bool {
		rel, err := filepath.Rel(modRoot, dir)
		if err != nil || rel == "." {
			return false
		}
		return slices.ContainsFunc(mod.Ignore, func(i *modfile.Ignore) bool {
			if fromRoot, ok := strings.CutPrefix(i.Path, "./"); ok {
				return strings.HasPrefix(slashed(rel), slashed(fromRoot))
			}
			return strings.Contains(slashed(rel), slashed(i.Path))
		})
	}
}
