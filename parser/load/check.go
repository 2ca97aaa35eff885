package load

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
)

// Check type-checks p again with more files, by their names, and returns the errors
// that lie in those. That one uses something whose type does not resolve is one of
// them, unlike for the files of p. It is how output is verified before it is written.
func (p *Package) Check(files map[string][]byte) (*types.Package, []error) {
	pkg, errs := p.check(files)
	if len(errs) == 0 || p.ld.cfg.Full {
		return pkg, errs
	}
	full, err := p.inFull()
	if err != nil {
		return pkg, append(errs, err)
	}
	return full.check(files)
}

// inFull returns p as loaded with Config.Full.
func (p *Package) inFull() (*Package, error) {
	if p.ld.full == nil {
		cfg := p.ld.cfg
		cfg.Full = true
		var err error
		if p.ld.full, err = Load(p.ld.ctx, cfg, p.ld.patterns...); err != nil {
			return nil, err
		}
	}
	for _, q := range p.ld.full.Packages {
		if q.Path == p.Path {
			return q, nil
		}
	}
	return nil, fmt.Errorf("package %s is gone", p.Path)
}

func (p *Package) check(sources map[string][]byte) (*types.Package, []error) {
	var extra []*ast.File
	added := map[*token.File]bool{}
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		file, err := parser.ParseFile(p.ld.fset, name, sources[name], parser.SkipObjectResolution)
		if err != nil {
			return nil, []error{err}
		}
		extra = append(extra, file)
		added[p.ld.fset.File(file.FileStart)] = true
	}
	extraImports := &Package{Path: p.Path, signatures: extra}
	if err := p.ld.resolve([]*Package{extraImports}); err != nil {
		return nil, []error{err}
	}
	var errs []error
	conf := p.ld.config(p, func(err error) {
		var te types.Error
		// A file of p may have the name of one of these: see generator.Plan.
		if errors.As(err, &te) && added[te.Fset.File(te.Pos)] {
			errs = append(errs, err)
		}
	})
	// The other files have no bodies left, and their errors do not count.
	conf.IgnoreFuncBodies = false
	files := slices.DeleteFunc(append(slices.Clone(p.signatures), extra...), func(f *ast.File) bool { return f == p.stub })
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	pkg, _ := conf.Check(p.typesPath(), p.ld.fset, files, &info)
	for _, file := range extra {
		errs = append(errs, p.ld.unknownIn(file, info.Uses)...)
	}
	return pkg, errs
}

// unknownIn returns an error for each name in file of something whose type is not
// known: the type checker takes anything for it, so as not to repeat itself.
func (ld *loader) unknownIn(file *ast.File, uses map[*ast.Ident]types.Object) []error {
	var errs []error
	for n := range ast.Preorder(file) {
		id, ok := n.(*ast.Ident)
		if !ok {
			continue
		}
		switch obj := uses[id].(type) {
		case *types.Var, *types.Func, *types.Const, *types.TypeName:
			if strings.Contains(types.TypeString(obj.Type(), nil), "invalid type") {
				errs = append(errs, types.Error{Fset: ld.fset, Pos: id.Pos(), Msg: id.Name + " has a type that does not resolve"})
			}
		}
	}
	return errs
}

// Signatures returns the files of p as they were checked, without function bodies.
func (p *Package) Signatures() []*ast.File { return p.signatures }
