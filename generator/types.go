package generator

import (
	"fmt"
	"go/types"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimitgen/ratelimitgen/parser"
)

// imports holds the packages that an output file names and what it calls them.
// Paths are collected first and names allotted at once, in the order of the
// paths, so that rendering never has to choose a name.
type imports struct {
	self    *types.Package
	source  *parser.Package            // nil: lengths of arrays are written as numbers
	names   map[string]string          // path -> package name as declared
	alias   map[string]string          // path -> identifier in the file
	tparams map[*types.TypeName]string // type parameters that are not called as declared
}

func newImports(self *types.Package) *imports {
	return &imports{self: self, names: map[string]string{}, alias: map[string]string{}, tparams: map[*types.TypeName]string{}}
}

// add notes that the file names the package at path.
func (im *imports) add(path, name string) { im.names[path] = name }

// addType notes every package that writing t names.
func (im *imports) addType(t types.Type) {
	// The writer visits exactly what it writes, so what it names is what the file
	// needs; no second walk over the kinds of types can get out of step.
	w := typeWriter{typeName: func(tn *types.TypeName) string {
		if p := tn.Pkg(); p != nil && p != im.self {
			im.add(p.Path(), p.Name())
		}
		return ""
	}}
	w.length = func(a *types.Array) string {
		var named []*types.Package
		text := im.length(a, func(obj types.Object) string {
			if p := obj.Pkg(); p != nil && p != im.self {
				named = append(named, p)
			}
			return obj.Name()
		})
		if text != "" {
			for _, p := range named {
				im.add(p.Path(), p.Name())
			}
		}
		return text
	}
	w.write(t)
}

// length is the length of an array as the source writes it, if code in this package
// can write that, too; else it is "". What it mentions is called what name returns.
func (im *imports) length(a *types.Array, name func(types.Object) string) string {
	if im.source == nil || im.source.Length == nil {
		return ""
	}
	return im.source.Length(a, func(obj types.Object) (string, bool) {
		if p := obj.Pkg(); p != nil && p != im.self && !(obj.Exported() && importable(im.source, p.Path())) {
			return "", false
		}
		return name(obj), true
	})
}

// allot gives every noted package its identifier in s.
// Packages of one name are called as the source calls them.
func (im *imports) allot(s *scope) {
	packages := map[string]int{}
	for _, name := range im.names {
		packages[name]++
	}
	for _, p := range im.paths() {
		name := im.names[p]
		if packages[name] > 1 && im.source != nil && im.source.ImportNames[p] != "" {
			name = im.source.ImportNames[p]
		}
		im.alias[p] = s.allot(name, "pkg")
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
	w := typeWriter{
		typeName: func(tn *types.TypeName) string {
			if name, ok := im.tparams[tn]; ok {
				return name
			}
			return im.qualified(tn)
		},
		length: func(a *types.Array) string { return im.length(a, im.qualified) },
	}
	w.write(t)
	return w.String()
}

// qualified is what the file calls something of package scope.
func (im *imports) qualified(obj types.Object) string {
	if p := obj.Pkg(); p != nil && p != im.self {
		return im.alias[p.Path()] + "." + obj.Name()
	}
	return obj.Name()
}

// constraint is the constraint of tp as a type parameter list writes it.
func (im *imports) constraint(tp *types.TypeParam) string {
	text := im.typeString(tp.Constraint())
	if strings.HasPrefix(text, "*") {
		// type T[P *C] would be an array whose length is a product.
		text = "interface{" + text + "}"
	}
	return text
}

// typeWriter writes types as types.TypeString does, but leaves to its user what the
// types that have names, type parameters among them, are called.
type typeWriter struct {
	strings.Builder
	typeName func(*types.TypeName) string
	member   func(types.Object) // is told of fields and methods of type literals, if not nil
	// length returns what to write as the length of an array; the number if that is ""
	// or length is nil.
	length func(*types.Array) string
}

func (w *typeWriter) write(t types.Type) {
	switch t := t.(type) {
	case *types.Basic:
		if t.Kind() == types.UnsafePointer {
			w.WriteString(w.typeName(types.Unsafe.Scope().Lookup("Pointer").(*types.TypeName)))
			return
		}
		w.WriteString(t.Name())
	case *types.TypeParam:
		w.WriteString(w.typeName(t.Obj()))
	case *types.Named:
		w.instance(t.Obj(), t.TypeArgs())
	case *types.Alias:
		// As written: what it stands for may be internal to another module.
		w.instance(t.Obj(), t.TypeArgs())
	case *types.Pointer:
		w.WriteByte('*')
		w.write(t.Elem())
	case *types.Slice:
		w.WriteString("[]")
		w.write(t.Elem())
	case *types.Array:
		w.array(t)
	case *types.Map:
		w.WriteString("map[")
		w.write(t.Key())
		w.WriteByte(']')
		w.write(t.Elem())
	case *types.Chan:
		w.channel(t)
	case *types.Signature:
		w.WriteString("func")
		w.signature(t)
	case *types.Struct:
		w.structure(t)
	case *types.Interface:
		w.iface(t)
	case *types.Union:
		for i := range t.Len() {
			if i > 0 {
				w.WriteString(" | ")
			}
			if t.Term(i).Tilde() {
				w.WriteByte('~')
			}
			w.write(t.Term(i).Type())
		}
	}
}

func (w *typeWriter) instance(tn *types.TypeName, args *types.TypeList) {
	w.WriteString(w.typeName(tn))
	if args.Len() == 0 {
		return
	}
	w.WriteByte('[')
	for i := range args.Len() {
		if i > 0 {
			w.WriteString(", ")
		}
		w.write(args.At(i))
	}
	w.WriteByte(']')
}

func (w *typeWriter) array(t *types.Array) {
	text := ""
	if w.length != nil {
		text = w.length(t)
	}
	if text == "" {
		text = strconv.FormatInt(t.Len(), 10)
	}
	w.WriteString("[" + text + "]")
	w.write(t.Elem())
}

func (w *typeWriter) channel(t *types.Chan) {
	switch t.Dir() {
	case types.SendOnly:
		w.WriteString("chan<- ")
	case types.RecvOnly:
		w.WriteString("<-chan ")
	default:
		w.WriteString("chan ")
		if elem, ok := t.Elem().(*types.Chan); ok && elem.Dir() == types.RecvOnly {
			// chan <-chan T would be a chan<- chan T.
			w.WriteByte('(')
			defer w.WriteByte(')')
		}
	}
	w.write(t.Elem())
}

func (w *typeWriter) signature(sig *types.Signature) {
	w.tuple(sig.Params(), sig.Variadic())
	results := sig.Results()
	if results.Len() == 0 {
		return
	}
	w.WriteByte(' ')
	if results.Len() == 1 && results.At(0).Name() == "" {
		w.write(results.At(0).Type())
		return
	}
	w.tuple(results, false)
}

func (w *typeWriter) tuple(t *types.Tuple, variadic bool) {
	w.WriteByte('(')
	for i := range t.Len() {
		if i > 0 {
			w.WriteString(", ")
		}
		v := t.At(i)
		last := i == t.Len()-1
		if v.Name() != "" {
			w.WriteString(v.Name())
			// Neighbours of one type share it.
			if !last && !(variadic && i == t.Len()-2) && types.Identical(v.Type(), t.At(i+1).Type()) && w.text(v.Type()) == w.text(t.At(i+1).Type()) {
				continue
			}
			w.WriteByte(' ')
		}
		if variadic && last {
			w.WriteString("...")
			w.write(v.Type().(*types.Slice).Elem())
		} else {
			w.write(v.Type())
		}
	}
	w.WriteByte(')')
}

// text returns what w would write.
func (w *typeWriter) text(t types.Type) string {
	other := typeWriter{typeName: w.typeName, length: w.length}
	other.write(t)
	return other.String()
}

func (w *typeWriter) structure(t *types.Struct) {
	w.WriteString("struct{")
	for i := range t.NumFields() {
		if i > 0 {
			w.WriteString("; ")
		}
		v := t.Field(i)
		w.noteMember(v)
		if !v.Embedded() {
			w.WriteString(v.Name() + " ")
		}
		w.write(v.Type())
		if tag := t.Tag(i); tag != "" {
			if strconv.CanBackquote(tag) {
				w.WriteString(" `" + tag + "`")
			} else {
				w.WriteString(" " + strconv.Quote(tag))
			}
		}
	}
	w.WriteByte('}')
}

func (w *typeWriter) iface(t *types.Interface) {
	if t.IsImplicit() && t.NumEmbeddeds() == 1 {
		w.write(t.EmbeddedType(0))
		return
	}
	w.WriteString("interface{")
	separator := ""
	for m := range t.ExplicitMethods() {
		w.WriteString(separator)
		w.noteMember(m)
		w.WriteString(m.Name())
		w.signature(m.Signature())
		separator = "; "
	}
	for e := range t.EmbeddedTypes() {
		w.WriteString(separator)
		w.write(e)
		separator = "; "
	}
	w.WriteByte('}')
}

func (w *typeWriter) noteMember(obj types.Object) {
	if w.member != nil {
		w.member(obj)
	}
}

// unnameable says which part of t code in the package p cannot write, and why. It is
// "" if there is none.
func unnameable(p *parser.Package, t types.Type) string {
	self := p.Types
	why := ""
	note := func(format string, args ...any) {
		if why == "" {
			why = fmt.Sprintf(format, args...)
		}
	}
	w := typeWriter{
		typeName: func(tn *types.TypeName) string {
			switch of := tn.Pkg(); {
			case of == nil || of == self:
			case !tn.Exported():
				note("type %s of package %s, which is not exported", tn.Name(), of.Path())
			case !importable(p, of.Path()):
				note("type %s of package %s, which this package may not import", tn.Name(), of.Path())
			}
			return ""
		},
		member: func(obj types.Object) {
			// A literal with such a member differs from one that says the same here.
			if !obj.Exported() && obj.Pkg() != self {
				note("a type with a member %s that package %s does not export", obj.Name(), obj.Pkg().Path())
			}
		},
	}
	w.write(t)
	return why
}

// importable reports whether p may import the package at path to.
func importable(p *parser.Package, to string) bool {
	return parser.MayImport(p.Path, p.Standard, to)
}
