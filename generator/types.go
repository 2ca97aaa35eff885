package generator

import (
	"fmt"
	"go/types"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/dave/jennifer/jen"
)

// imports holds the packages that an output file names and what it calls them.
// Paths are collected first and names allotted at once, in the order of the
// paths, so that rendering never has to choose a name.
type imports struct {
	self  *types.Package
	names map[string]string // path -> package name as declared
	alias map[string]string // path -> identifier in the file
}

func newImports(self *types.Package) *imports {
	return &imports{self: self, names: map[string]string{}, alias: map[string]string{}}
}

// add notes that the file names the package at path.
func (im *imports) add(path, name string) { im.names[path] = name }

// addType notes every package that writing t names.
func (im *imports) addType(t types.Type) {
	// TypeString visits exactly what it writes, so what it qualifies is what the
	// file needs; no second walk over the kinds of types can get out of step.
	types.TypeString(t, func(p *types.Package) string {
		if p != im.self {
			im.add(p.Path(), p.Name())
		}
		return ""
	})
}

// allot gives every noted package its identifier in s.
func (im *imports) allot(s *scope) {
	for _, p := range im.paths() {
		im.alias[p] = s.allot(im.names[p], "pkg")
	}
}

func (im *imports) paths() []string {
	paths := make([]string, 0, len(im.names))
	for p := range im.names {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	return paths
}

// decl renders the import declaration: the standard library first, one blank
// line, then the rest.
func (im *imports) decl() string {
	var std, other []string
	for _, p := range im.paths() {
		line := fmt.Sprintf("\t%q\n", p)
		if im.alias[p] != defaultName(p) {
			line = fmt.Sprintf("\t%s %q\n", im.alias[p], p)
		}
		if first, _, _ := strings.Cut(p, "/"); strings.Contains(first, ".") {
			other = append(other, line)
		} else {
			std = append(std, line)
		}
	}
	var b strings.Builder
	b.WriteString("import (\n")
	b.WriteString(strings.Join(std, ""))
	if len(std) > 0 && len(other) > 0 {
		b.WriteString("\n")
	}
	b.WriteString(strings.Join(other, ""))
	b.WriteString(")\n")
	return b.String()
}

var majorSuffix = regexp.MustCompile(`^v[0-9]+$`)

// defaultName is the package name that a reader expects at an import path. Where
// the package is called otherwise, the import is written with its name.
func defaultName(p string) string {
	base := path.Base(p)
	if majorSuffix.MatchString(base) && path.Dir(p) != "." {
		base = path.Base(path.Dir(p))
	}
	return base
}

// typ renders t.
func (im *imports) typ(t types.Type) *jen.Statement { return jen.Id(im.typeString(t)) }

// typeString is t as the file writes it.
func (im *imports) typeString(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p == im.self {
			return ""
		}
		return im.alias[p.Path()]
	})
}
