package parser

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/parser/directive"
	"github.com/ratelimitgen/ratelimitgen/parser/load"
	"github.com/ratelimitgen/ratelimitgen/parser/scan"
)

// Candidates are the declarations of a package that could have limits.
type Candidates struct {
	// Package is the model in which all of them that can be limited are.
	*Package
	// All holds every type that has methods, every interface and every function, in
	// the order of their names.
	All []*Candidate
}

// Candidate is a type or function as if it, and every method of it, had a limit.
type Candidate struct {
	Name    string
	Pos     diag.Pos
	Methods int // that would be limited; 1 for a function
	// Wrapper is nil if Refusals hold an error.
	Wrapper  *Wrapper
	Refusals diag.List
}

// ParseAll returns what Parse would return if every declaration of the packages that
// cfg names carried the directive with the given options, like "max=5 window=1m". A
// method that cannot tell its caller of a refusal gets on-limit=zero besides. What the
// files say themselves is not looked at.
//
// The packages need not be in a main module. Each is taken for a copy of itself at
// another path, so that what the generated code imports may be among them.
func ParseAll(ctx context.Context, cfg Config, options string) ([]*Candidates, error) {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, err
	}
	if len(cfg.Patterns) == 0 {
		cfg.Patterns = []string{"."}
	}
	cfg.stage("load", "")
	loaded, err := load.Load(ctx, load.Config{
		Dir:    dir,
		Tags:   cfg.Tags,
		Also:   append(cfg.Needs[:len(cfg.Needs):len(cfg.Needs)], cfg.NeedsOfRequests...),
		Output: scan.IsOutput,
		Syntax: func(string) bool { return false },
		Full:   true,
		Copies: true,
	}, cfg.Patterns...)
	if err != nil {
		return nil, err
	}
	for _, path := range cfg.Needs {
		if err := loaded.Unavailable(path); err != nil {
			return nil, errNoRuntime(path, err)
		}
	}
	if len(loaded.Errors) > 0 {
		return nil, loaded.Errors[0]
	}
	if len(loaded.Excluded) > 0 {
		return nil, errors.New(excluded(relative(dir, loaded.Excluded[0])))
	}
	var all []*Candidates
	for _, p := range loaded.Packages {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		cfg.stage("parse", p.Path)
		c, err := newBuilder(loaded, p).candidates(options)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// candidates makes the model of everything in the package that could have a limit.
func (b *builder) candidates(options string) (*Candidates, error) {
	model, err := b.model()
	if err != nil {
		return nil, err
	}
	all := &Candidates{Package: model}
	scope := b.pkg.Types.Scope()
	for _, name := range scope.Names() {
		d, err := b.assume(scope.Lookup(name), options)
		if err != nil {
			return nil, err
		}
		if d == nil {
			continue
		}
		b.drafts[name] = d
		c := &Candidate{Name: name, Pos: b.place(scope.Lookup(name).Pos()), Methods: len(d.methods)}
		c.Wrapper, c.Refusals = b.try(d, model.Declared)
		if c.Wrapper == nil && !c.Refusals.HasErrors() {
			return nil, fmt.Errorf("%s: %s is not wrapped, and no reason is given", c.Pos.File, name)
		}
		if c.Wrapper != nil {
			model.Wrappers = append(model.Wrappers, c.Wrapper)
		}
		all.All = append(all.All, c)
	}
	return all, nil
}

// try makes the model of what d asks for, or says why there is none.
func (b *builder) try(d *draft, declared map[string]bool) (*Wrapper, diag.List) {
	b.res = &Result{}
	w := b.wrapper(d)
	b.reportCommon()
	if w != nil {
		b.checkNames(&Package{Declared: declared, Wrappers: []*Wrapper{w}})
	}
	if b.res.Diags.HasErrors() {
		w = nil
	}
	return w, b.res.Diags
}

// assume makes the draft of obj as if it and its methods had a limit. It is nil if
// there is nothing to limit.
func (b *builder) assume(obj types.Object, options string) (*draft, error) {
	d := &draft{name: obj.Name(), methods: map[string]*methodDraft{}}
	switch obj := obj.(type) {
	case *types.Func:
		return d, b.assumeLimit(d, obj, obj, options)
	case *types.TypeName:
		if obj.IsAlias() {
			return nil, nil
		}
		t := obj.Type()
		if !types.IsInterface(t) {
			t = types.NewPointer(t)
		}
		for sel := range types.NewMethodSet(t).Methods() {
			fn := sel.Obj().(*types.Func)
			if !fn.Exported() && fn.Pkg() != obj.Pkg() {
				continue
			}
			if err := b.assumeLimit(d, obj, fn, options); err != nil {
				return nil, err
			}
		}
		if len(d.methods) > 0 {
			return d, nil
		}
	}
	return nil, nil
}

// assumeLimit gives fn, a method of owner or owner itself, a limit.
func (b *builder) assumeLimit(d *draft, owner types.Object, fn *types.Func, options string) error {
	at := owner.Pos()
	if fn.Pkg() == owner.Pkg() {
		at = fn.Pos()
	}
	pos := b.place(at)
	dir, diags := directive.Parse(directive.Prefix+options, pos)
	if dir != nil && dir.Option("on-limit") == nil && !returnsError(fn.Signature()) && !isHandler(fn.Signature()) {
		dir, diags = directive.Parse(directive.Prefix+options+" on-limit=zero", pos)
	}
	if diags.HasErrors() {
		return diags[0]
	}
	if dir == nil || dir.Verb != directive.VerbLimit {
		return errors.New("these are not the options of a limit: " + strings.TrimSpace(options))
	}
	d.methods[fn.Name()] = &methodDraft{
		limits: []*directive.Directive{dir},
		file:   filepath.Base(pos.File),
		decl:   &ast.Ident{NamePos: at, Name: fn.Name()},
	}
	return nil
}

func (b *builder) place(pos token.Pos) diag.Pos {
	p := b.fset.PositionFor(pos, false)
	return diag.Pos{File: p.Filename, Line: p.Line, Col: p.Column}
}
