package load

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
)

// parse reads the files of node. Those of an outlined package are only looked
// through; take parses them.
func (ld *loader) parse(node *node, depth depth) (*Package, error) {
	if depth == outlined && ld.cfg.Full {
		depth = bodiless
	}
	p := &Package{
		Path:     node.path,
		Name:     node.name,
		depth:    depth,
		syntax:   map[string]error{},
		embedded: map[string]bool{},
		Standard: node.module == nil || node.module.Path == "std" || node.module.Path == "cmd",
		copied:   depth == whole && ld.cfg.Copies,
		ld:       ld,
	}
	// The copy of a package may use what the generated code may.
	if node.module != nil && node.module.GoVersion != "" && !p.copied {
		p.GoVersion = "go" + node.module.GoVersion
	}
	for _, name := range node.goFiles {
		if filepath.Ext(name) != ".go" {
			continue
		}
		name = node.file(name)
		p.Dir = filepath.Dir(name)
		src, err := ld.readFile(name)
		if errors.Is(err, fs.ErrNotExist) && depth == whole && ld.cfg.Output != nil && ld.cfg.Output(name, nil) {
			continue
		}
		if err != nil {
			return nil, err
		}
		// What is not loaded for itself has the output that it has.
		if depth == whole && ld.cfg.Output != nil && ld.cfg.Output(name, src) {
			continue
		}
		p.Names = append(p.Names, name)
		if depth == outlined {
			p.unread = append(p.unread, lookThrough(name, src))
		} else if _, err := ld.addFile(p, name, src); err != nil {
			return nil, err
		}
	}
	if src := ld.cfg.Stubs[p.Dir]; src != nil {
		stub, err := parser.ParseFile(ld.fset, stubName, src, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p.stub = stub
		p.signatures = append(p.signatures, stub)
	}
	if depth != outlined {
		p.arrays = lengthsIn(p.signatures)
	}
	ld.source[p.typesPath()] = p
	return p, nil
}

// typesPath is the path that the types of p are known by.
func (p *Package) typesPath() string {
	if p.copied {
		return "copy/" + p.Path
	}
	return p.Path
}

// addFile parses a file of p as far as the depth of p needs and returns what it
// adds to the signatures, or nil if nothing could be made of the file.
func (ld *loader) addFile(p *Package, name string, src []byte) (*ast.File, error) {
	full := p.depth == whole && (ld.cfg.Syntax == nil || ld.cfg.Syntax(name))
	file, err := parseFile(ld.fset, name, src, p.depth, full)
	if err != nil {
		p.syntax[name] = err
	}
	if file == nil {
		return nil, nil
	}
	if p.clause == token.NoPos {
		// What the go command says may be the name of a package that is left out.
		p.Name, p.clause = file.Name.Name, file.Name.Pos()
	} else if file.Name.Name != p.Name {
		err := ld.conflict(p, file)
		p.syntax[name] = err
		p.conflicts = append(p.conflicts, err)
		return nil, nil
	}
	if p.depth == outlined && measured(file) {
		return nil, errMeasured
	}
	nameOf := ld.graph[p.Path].nameOf
	sig := signatures(file, p.depth, nameOf)
	if !ld.cfg.Full && sized(sig) {
		return nil, errSized
	}
	p.signatures = append(p.signatures, sig)
	if full {
		p.Files = append(p.Files, file)
	}
	if p.depth != outlined {
		for path := range embeddedPaths(sig, nameOf) {
			p.embedded[ld.resolvePath(p.Path, path)] = true
		}
	}
	return sig, nil
}

// stubName is the name that positions in stubs have.
const stubName = "ratelimitgen stub"

// IsStub reports whether obj stands for output that is not there yet.
func (r *Result) IsStub(obj types.Object) bool { return r.ld.isStub(obj) }

func (ld *loader) isStub(obj types.Object) bool { return ld.position(obj.Pos()).Filename == stubName }

// readFile reads a source file, and returns what is valid until the next call.
func (ld *loader) readFile(name string) ([]byte, error) {
	ld.content.Reset()
	err := readInto(&ld.content, name)
	return ld.content.Bytes(), err
}

// readInto reads a source file. What is not a regular one holds no source, and might
// never end.
func readInto(b *bytes.Buffer, name string) error {
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = &os.PathError{Op: "read", Path: name, Err: errors.New("not a regular file")}
	}
	if err != nil {
		return err
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	b.Grow(int(info.Size()) + bytes.MinRead)
	_, err = b.ReadFrom(f)
	return errors.Join(err, f.Close())
}

// conflict is what the go command says of a file that does not belong to the same
// package as others of p.
func (ld *loader) conflict(p *Package, file *ast.File) *Error {
	of := func(name string, clause token.Pos) string {
		return fmt.Sprintf("%s (%s)", name, filepath.Base(ld.position(clause).Filename))
	}
	return &Error{
		Pos: ld.position(file.Name.Pos()).String(),
		Msg: fmt.Sprintf("found packages %s and %s in %s", of(p.Name, p.clause), of(file.Name.Name, file.Name.Pos()), ld.relative(p.Dir)),
	}
}
