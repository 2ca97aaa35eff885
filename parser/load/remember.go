package load

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// rememberFor is how long an entry is kept.
const rememberFor = 30 * 24 * time.Hour

// exports remembers the names of export files in the build cache, so that the go
// command need not work out at every run that what it compiled is still current. An
// entry is found by a sum over all that decides what a package compiles to:
//
//   - the go command's variables, the build tags, and size and time of the compiler;
//   - of a package of the standard library its path, of one in the module cache its
//     path and the version of its module, neither of which changes otherwise, and of
//     any other the content of its files;
//   - the sums of what it imports, except in the standard library, where they follow.
//
// The go command does not look at the headers that C code in a package includes
// either. An entry is the name and size of a file whose name tells its content. It
// counts only while there is such a file; the go command is asked for the rest.
//
// Several processes may share a directory. Where it cannot be read or written,
// nothing is remembered.
type exports struct {
	dir   string // "" if nothing is remembered
	env   environment
	base  sum
	graph map[string]*node
	sums  map[string]*sum // nil for what has none
}

type sum [sha256.Size]byte

// release is the GOVERSION of toolchains whose standard library does not change.
var release = regexp.MustCompile(`^go1(\.\d+)*((rc|beta)\d+)?( X:\S+)?$`)

// newExports returns what dir remembers of the packages in graph.
func newExports(dir string, env environment, tags string, graph map[string]*node) *exports {
	x := &exports{env: env, graph: graph, sums: map[string]*sum{}}
	// An overlay changes the files of any package, and another driver of go/packages
	// may know another build than the go command.
	if !filepath.IsAbs(dir) || !filepath.IsAbs(env["GOCACHE"]) || !release.MatchString(env["GOVERSION"]) ||
		strings.Contains(env["GOFLAGS"], "-overlay") || otherDriver() {
		return x
	}
	name := "compile"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	compiler, err := os.Stat(filepath.Join(env["GOTOOLDIR"], name))
	if err != nil {
		return x
	}
	text, err := json.Marshal(env) // sorted by name
	if err != nil {
		return x
	}
	x.dir = dir
	x.base = sumOf("ratelimitgen 1", string(text), tags, strconv.FormatInt(compiler.Size(), 10), compiler.ModTime().UTC().String())
	return x
}

// sumOf returns the sum of parts, none of which runs into the next.
func sumOf(parts ...string) sum {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s\n", len(p), p)
	}
	return sum(h.Sum(nil))
}

// of returns the sum for a package of the graph, or nil.
func (x *exports) of(path string) *sum {
	if s, ok := x.sums[path]; ok {
		return s
	}
	x.sums[path] = nil // also what a cycle comes to
	node := x.graph[path]
	if node == nil || len(node.errors) > 0 || node.dir == "" {
		return nil
	}
	parts := []string{string(x.base[:]), path}
	if node.module == nil && within(filepath.Join(x.env["GOROOT"], "src"), node.dir) {
		s := sumOf(parts...)
		x.sums[path] = &s
		return &s
	}
	source, ok := x.source(node)
	if !ok {
		return nil
	}
	parts = append(parts, source...)
	for _, dep := range node.imports {
		s := x.of(dep.path)
		if s == nil {
			return nil
		}
		parts = append(parts, dep.path, string(s[:]))
	}
	for _, path := range sortedKeys(node.renamed) {
		parts = append(parts, path, node.renamed[path].path)
	}
	s := sumOf(parts...)
	x.sums[path] = &s
	return &s
}

// source returns what tells the files of node from all others. It reports false if
// nothing does.
func (x *exports) source(node *node) ([]string, bool) {
	parts := []string{""}
	if m := node.module; m != nil {
		parts[0] = m.GoVersion // the version of the language
		if m.Replace != nil {
			m = m.Replace
		}
		if m.Version != "" && within(x.env["GOMODCACHE"], node.dir) {
			return append(parts, m.Path, m.Version), true
		}
	}
	var src bytes.Buffer
	for _, name := range slices.Concat(node.goFiles, node.others) {
		name = node.file(name)
		src.Reset()
		if err := readInto(&src, name); err != nil {
			return nil, false
		}
		content := sha256.Sum256(src.Bytes())
		parts = append(parts, name, string(content[:]))
	}
	return parts, true
}

// within reports whether path lies below dir.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return dir != "" && err == nil && filepath.IsLocal(rel)
}

func (x *exports) entry(s *sum) string { return filepath.Join(x.dir, hex.EncodeToString(s[:])) }

// recall returns the export file of a package, or "".
func (x *exports) recall(path string) string {
	if x.dir == "" {
		return ""
	}
	s := x.of(path)
	if s == nil {
		return ""
	}
	text, err := os.ReadFile(x.entry(s))
	if err != nil {
		return ""
	}
	size, name, _ := strings.Cut(string(text), " ")
	if !filepath.IsLocal(name) {
		return ""
	}
	name = filepath.Join(x.env["GOCACHE"], name)
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || strconv.FormatInt(info.Size(), 10) != size {
		return ""
	}
	return name
}

// remember notes export files by the paths of their packages.
func (x *exports) remember(files map[string]string) {
	if x.dir == "" || len(files) == 0 || os.MkdirAll(x.dir, 0o755) != nil {
		return
	}
	for path, file := range files {
		s := x.of(path)
		if s == nil {
			continue
		}
		name, err := filepath.Rel(x.env["GOCACHE"], file)
		if err != nil || !filepath.IsLocal(name) {
			continue
		}
		if info, err := os.Stat(file); err == nil {
			// What is not written is asked for again.
			_ = writeEntry(x.entry(s), fmt.Sprintf("%d %s", info.Size(), name))
		}
	}
	x.trim()
}

// writeEntry writes a file in one step.
func writeEntry(name, text string) error {
	f, err := os.CreateTemp(filepath.Dir(name), "new-")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// trim removes what was written long ago.
func (x *exports) trim() {
	entries, err := os.ReadDir(x.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > rememberFor {
			_ = os.Remove(filepath.Join(x.dir, e.Name()))
		}
	}
}
