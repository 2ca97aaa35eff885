package load

import (
	"errors"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// unreadFile is a file of an outlined package that was only looked through.
type unreadFile struct {
	name string
	declared
	all bool // it may declare anything
}

// lookThrough finds out what a file declares.
func lookThrough(name string, src []byte) *unreadFile {
	s := stripper{src: src, outline: true}
	understood := s.file()
	return &unreadFile{name: name, declared: s.declared, all: !understood}
}

// has reports whether f declares one of the names, or methods of one.
func (f *unreadFile) has(names map[string]bool) bool {
	in := func(name string) bool { return names[name] }
	return slices.ContainsFunc(f.names, in) || slices.ContainsFunc(f.receivers, in)
}

// aliasedReceivers reports whether a method is declared on the alias of a type, so
// that it does not tell whose it is.
func aliasedReceivers(files []*unreadFile) bool {
	aliases := map[string]bool{}
	for _, f := range files {
		for _, name := range f.aliases {
			aliases[name] = true
		}
	}
	for _, f := range files {
		if slices.ContainsFunc(f.receivers, func(name string) bool { return aliases[name] }) {
			return true
		}
	}
	return false
}

// names are names that a package declares.
type names struct {
	set map[string]bool
	all bool // and any other
}

func (n *names) add(more ...string) {
	for _, name := range more {
		n.set[name] = true
	}
}

// addIdents adds all names in file that may be declared elsewhere in its package.
func (n *names) addIdents(file *ast.File) {
	for _, d := range file.Decls {
		ast.Inspect(d, func(node ast.Node) bool {
			if id, ok := node.(*ast.Ident); ok {
				n.set[id.Name] = true
			}
			return true
		})
	}
}

// selector is what names something of another package.
var selector = regexp.MustCompile(`([\pL_][\pL\pN_]*)\.([\pL_][\pL\pN_]*)`)

// inComments calls found for whatever looks like a qualified name in the directives
// of file, which keys and conditions are made of.
func inComments(file *ast.File, found func(qualifier, name string)) {
	for _, group := range file.Comments {
		for _, c := range group.List {
			if strings.Contains(c.Text, "ratelimit") {
				for _, m := range selector.FindAllStringSubmatch(c.Text, -1) {
					found(m[1], m[2])
				}
			}
		}
	}
}

// mentions returns what the signatures of p that it has not seen yet mention of other
// packages, by import paths as the graph resolves them (a vendored path differs from
// the one written).
func (ld *loader) mentions(p *Package) map[string]*names {
	mentioned := map[string]*names{}
	nameOf := ld.graph[p.Path].nameOf
	whole := map[token.Pos]*ast.File{}
	for _, file := range p.Files {
		whole[file.Package] = file
	}
	for _, file := range p.signatures[p.noted:] {
		qualified := map[string][]string{}
		if f := whole[file.Package]; f != nil {
			inComments(f, func(qualifier, name string) { qualified[qualifier] = append(qualified[qualifier], name) })
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if id, ok := sel.X.(*ast.Ident); ok {
					qualified[id.Name] = append(qualified[id.Name], sel.Sel.Name)
				}
			}
			return true
		})
		for _, spec := range file.Imports {
			path := importPath(spec)
			name := nameOf(path)
			if spec.Name != nil {
				name = spec.Name.Name
			}
			path = ld.resolvePath(p.Path, path)
			m := mentioned[path]
			if m == nil {
				m = &names{set: map[string]bool{}}
				mentioned[path] = m
			}
			m.add(qualified[name]...)
			if p.imports || name == "" || name == "." {
				m.all = true
			}
		}
	}
	p.noted = len(p.signatures)
	return mentioned
}

// take parses those files of an outlined package that declare what is needed, and
// what that needs of the package itself. It reports whether there were any. The
// package is another one if an outline does not do.
func (ld *loader) take(p *Package, needed *names) (taken *Package, more bool, err error) {
	if p.Types != nil {
		return p, false, nil // what is missing now is an error, and looked for in full
	}
	if len(ld.graph[p.Path].errors) > 0 || aliasedReceivers(p.unread) {
		needed.all = true
	}
	if p.stub != nil && p.noted == 0 {
		needed.addIdents(p.stub)
	}
	for again := true; again; {
		again = false
		for i := 0; i < len(p.unread); i++ {
			f := p.unread[i]
			if !needed.all && !f.all && !f.has(needed.set) {
				continue
			}
			p.unread = slices.Delete(p.unread, i, i+1)
			i--
			src, err := ld.readFile(f.name)
			if err != nil {
				return nil, false, err
			}
			sig, err := ld.addFile(p, f.name, src)
			if errors.Is(err, errMeasured) {
				p, err := ld.parse(ld.graph[p.Path], bodiless)
				return p, true, err
			}
			if err != nil {
				return nil, false, err
			}
			more = true
			if sig != nil {
				again = true
				needed.addIdents(sig)
			}
		}
	}
	return p, more, nil
}
