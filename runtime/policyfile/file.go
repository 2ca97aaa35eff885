package policyfile

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// File is what a YAML file overrides. It is not changed once it is read, and may be
// applied to several limiters. The zero File overrides nothing.
type File struct {
	name     string
	defaults []setting
	limits   map[string]*limit
	sources  []source // what was read
}

// limit is what is said of one limit.
type limit struct {
	place
	settings []setting
	rules    []rule
	keysAt   place
	digest   [sha256.Size]byte // of the rules
	matcher  *matcher          // nil without rules
}

// setting is an option that is set.
type setting struct {
	place  // of the value
	option *option
	value  value
}

func (s *setting) problem(text string) Problem {
	return s.place.problem("%s: %s", s.option.name, text)
}

// Load reads a file, and the files of networks that it names, which are relative to its
// directory. If the file is not valid, the error is an *Error that has everything that
// is wrong with it. That a limit of its name exists is seen when the file is applied.
func Load(path string) (*File, error) {
	f, err := load(path)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// load is Load. The File has its sources also if it is not valid.
func load(path string) (*File, error) {
	f := reading{File: &File{name: path}, document: document{name: path}}
	f.read = readFile
	data, err := f.open(path, maxFile)
	if err != nil {
		var reason *fs.PathError
		if errors.As(err, &reason) {
			err = reason.Err
		}
		return f.File, &Error{[]Problem{{File: path, Message: err.Error()}}}
	}
	return f.File, f.parse(data)
}

// Parse is Load for a file whose content is known already. The name is for messages,
// and files of networks are relative to its directory.
func Parse(name string, data []byte) (*File, error) {
	return parseWith(name, data, readFile)
}

func parseWith(name string, data []byte, read func(string, int64) ([]byte, error)) (*File, error) {
	f := reading{File: &File{name: name}, document: document{name: name}, read: read}
	if err := f.parse(data); err != nil {
		return nil, err
	}
	return f.File, nil
}

// Limits returns the names of the limits that the file overrides, sorted.
func (f *File) Limits() []string {
	names := make([]string, 0, len(f.limits))
	for name := range f.limits {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// readFile reads a regular file of at most so many bytes.
func readFile(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no regular file") // and reading might never end
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("it has more than %d bytes", most)
	}
	return data, nil
}

// reading is a file that is being read.
type reading struct {
	*File
	document
	read func(path string, most int64) ([]byte, error)
}

// open reads a file and remembers it as a source.
func (f *reading) open(path string, most int64) ([]byte, error) {
	seen := look(path)
	data, err := f.read(path, most)
	f.sources = append(f.sources, source{path: path, most: most, seen: seen, sum: sumOf(data, err)})
	return data, err
}

func (f *reading) parse(data []byte) error {
	root := f.document.read(data)
	if root == nil {
		return asError(f.problems)
	}
	if root.kind != mapping {
		f.report(root.place, "the file is a mapping with defaults and limits, not %s", root.what())
		return asError(f.problems)
	}
	sections := []string{"defaults", "limits"}
	for _, p := range root.pairs {
		switch p.key.text {
		case "defaults":
			f.File.defaults = f.readDefaults(p.value)
		case "limits":
			f.readLimits(p.value)
		default:
			f.report(p.key.place, "unknown section %s%s", show(p.key.text), suggest(p.key.text, sections))
		}
	}
	return asError(f.problems)
}

func (f *reading) readDefaults(n *node) (settings []setting) {
	if !f.isMapping(n, "defaults", "options, like mode: shadow") {
		return nil
	}
	var possible []option
	for _, o := range limitOptions {
		if o.inDefaults {
			possible = append(possible, o)
		}
	}
	for _, p := range n.pairs {
		o := find(limitOptions, p.key.text)
		switch {
		case o == nil:
			what := unknownOption(possible, p.key.text)
			if p.key.text == optKeys {
				what = "keys belongs to each limit itself: write it there"
			}
			f.report(p.key.place, "%s", what)
		case !o.inDefaults:
			f.report(p.key.place, "%s belongs to each limit itself: write it there (valid: %s)", o.name, strings.Join(names(possible), ", "))
		default:
			settings = f.setting(settings, o, p.value)
		}
	}
	return settings
}

func (f *reading) readLimits(n *node) {
	if !f.isMapping(n, "limits", "names of limits, each with its options") {
		return
	}
	f.limits = make(map[string]*limit, len(n.pairs))
	for _, p := range n.pairs {
		if p.key.text == "" {
			f.report(p.key.place, "the name of the limit is empty")
			continue
		}
		if !f.isMapping(p.value, show(p.key.text), "options, like max: 100") {
			continue
		}
		l := &limit{place: p.key.place}
		f.limits[p.key.text] = l
		for _, p := range p.value.pairs {
			if p.key.text == optKeys {
				l.keysAt = p.key.place
				if l.rules = f.rules(p.value); len(l.rules) > 0 {
					l.matcher, l.digest = newMatcher(l.rules), digest(l.rules)
				}
				continue
			}
			o := find(limitOptions, p.key.text)
			if o == nil {
				f.report(p.key.place, "%s", unknownOption(withKeys, p.key.text))
				continue
			}
			l.settings = f.setting(l.settings, o, p.value)
		}
	}
}

// isMapping reports a value that is none, or that says nothing.
func (f *reading) isMapping(n *node, name, of string) bool {
	switch {
	case n.kind == refused, n.lacks && len(n.pairs) == 0:
		return false
	case n.kind != mapping || len(n.pairs) == 0:
		what := n.what()
		if n.kind == mapping {
			what = "an empty one"
		}
		f.report(n.place, "%s is a mapping of %s, not %s", name, of, what)
		return false
	}
	return true
}

func (f *reading) setting(settings []setting, o *option, n *node) []setting {
	v, ok := f.value(o, n)
	if !ok {
		return settings
	}
	return append(settings, setting{n.place, o, v})
}

// value decodes the value of an option.
func (f *reading) value(o *option, n *node) (value, bool) {
	wrong := ""
	var v value
	switch n.kind {
	case refused:
		return v, false
	case scalar:
		if v, wrong = o.decode(n.text); wrong != "" && n.text != "" {
			wrong = show(n.text) + ": " + wrong
		}
	case null:
		wrong = "the value is missing: write for example " + o.name + ": " + o.example
	default:
		wrong = "one value is needed, not " + n.what()
	}
	if wrong != "" {
		f.report(n.place, "%s: %s", o.name, wrong)
		return v, false
	}
	return v, true
}
