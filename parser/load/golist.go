package load

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// goList lists packages and all that they depend on, what is imported before what
// imports it. It does what go/packages does where nothing is odd, with less memory: of
// the go command's answer it holds one package at a time. Otherwise, or if another
// program is to be asked, it reports false, and go/packages knows what to do.
func (ld *loader) goList(patterns []string) (roots, all []*node, ok bool) {
	if otherDriver() || slices.ContainsFunc(patterns, isQuery) {
		return nil, nil, false
	}
	args := append([]string{"list"}, ld.buildFlags()...)
	args = append(args, "-e", "-json="+strings.Join(listedFields, ","), "-compiled=false", "-test=false", "-export=false",
		"-deps=true", "-find=false", "-buildvcs=false", "-pgo=off", "--")
	cmd := exec.CommandContext(ld.ctx, "go", append(args, patterns...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Second
	cmd.Dir = ld.cfg.Dir
	cmd.Env = goCommandEnv()
	if cmd.Dir != "" {
		// So that the go command does not resolve links in it.
		cmd.Env = append(cmd.Env, "PWD="+cmd.Dir)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, false
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, false
	}
	var l lister
	err = l.read(out)
	if err != nil {
		_ = cmd.Process.Kill() // what else it has to say does not matter
	}
	if err := errors.Join(err, cmd.Wait()); err != nil {
		return nil, nil, false
	}
	return l.roots, l.all, true
}

// otherDriver reports whether go/packages asks another program than the go command.
func otherDriver() bool {
	switch os.Getenv("GOPACKAGESDRIVER") {
	case "":
		_, err := exec.LookPath("gopackagesdriver")
		return err == nil
	case "off":
		return false
	}
	return true
}

// isQuery reports whether pattern may be more than a pattern to go/packages.
func isQuery(pattern string) bool { return !filepath.IsAbs(pattern) && strings.Contains(pattern, "=") }

// listed is what the go command is asked for.
type listed struct {
	ImportPath, Name, Dir                                                                string
	GoFiles, CgoFiles                                                                    []string
	CFiles, CXXFiles, MFiles, HFiles, FFiles, SFiles, SwigFiles, SwigCXXFiles, SysoFiles []string
	Imports                                                                              []string
	ImportMap                                                                            map[string]string
	DepOnly                                                                              bool
	Module, Error                                                                        json.RawMessage
}

// listedFields are the fields of listed.
var listedFields = []string{
	"ImportPath", "Name", "Dir", "GoFiles", "CgoFiles",
	"CFiles", "CXXFiles", "MFiles", "HFiles", "FFiles", "SFiles", "SwigFiles", "SwigCXXFiles", "SysoFiles",
	"Imports", "ImportMap", "DepOnly", "Module", "Error",
}

// lister makes nodes of what the go command answers.
type lister struct {
	roots, all []*node
	byPath     map[string]*node
	modules    map[string]*goModule // by their JSON
	names      map[string]string    // of files: most are those of many packages
}

var errOdd = errors.New("go list says something unusual")

// read reads the answer to its end.
func (l *lister) read(r io.Reader) error {
	l.byPath, l.modules, l.names = map[string]*node{}, map[string]*goModule{}, map[string]string{}
	var p listed
	for dec := json.NewDecoder(r); ; {
		// The memory of lists is used again.
		p = listed{
			GoFiles: p.GoFiles[:0], CgoFiles: p.CgoFiles[:0], CFiles: p.CFiles[:0], CXXFiles: p.CXXFiles[:0], MFiles: p.MFiles[:0],
			HFiles: p.HFiles[:0], FFiles: p.FFiles[:0], SFiles: p.SFiles[:0], SwigFiles: p.SwigFiles[:0], SwigCXXFiles: p.SwigCXXFiles[:0],
			SysoFiles: p.SysoFiles[:0], Imports: p.Imports[:0], Module: p.Module[:0], Error: p.Error[:0],
		}
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = l.add(&p)
		}
		if err != nil {
			return err
		}
	}
}

// add makes a node of p, which does not keep p.
func (l *lister) add(p *listed) error {
	why, excluded := p.excluded()
	if p.ImportPath == "" || len(p.Error) > 0 && !excluded || l.byPath[p.ImportPath] != nil || p.Dir != "" && !filepath.IsAbs(p.Dir) {
		return errOdd
	}
	n := &node{
		path:    p.ImportPath,
		name:    l.name(p.Name),
		dir:     p.Dir,
		goFiles: l.files(p.GoFiles, p.CgoFiles),
		others:  l.files(p.CFiles, p.CXXFiles, p.MFiles, p.HFiles, p.FFiles, p.SFiles, p.SwigFiles, p.SwigCXXFiles, p.SysoFiles),
		imports: make([]*node, 0, len(p.Imports)),
	}
	if excluded {
		n.excluded, n.errors = true, []Error{{Msg: why}}
	}
	if len(p.Module) > 0 {
		m, ok := l.modules[string(p.Module)]
		if !ok {
			if err := json.Unmarshal(p.Module, &m); err != nil {
				return err
			}
			l.modules[string(p.Module)] = m
		}
		n.module = m
	}
	for _, path := range p.Imports {
		if path == "C" {
			continue
		}
		dep := l.byPath[path]
		if dep == nil {
			return errOdd
		}
		n.addImport(dep)
	}
	for path, meant := range p.ImportMap {
		dep := l.byPath[meant]
		if dep == nil {
			return errOdd
		}
		n.rename(path, dep)
	}
	l.byPath[n.path] = n
	l.all = append(l.all, n)
	if !p.DepOnly {
		l.roots = append(l.roots, n)
	}
	return nil
}

// excluded reports whether build constraints leave out all Go files of p, and what the
// go command says then. It is not an odd thing in a tree for several systems.
func (p *listed) excluded() (why string, ok bool) {
	if len(p.Error) == 0 || p.DepOnly || len(p.GoFiles)+len(p.CgoFiles) > 0 {
		return "", false
	}
	var e struct{ Pos, Err string }
	if err := json.Unmarshal(p.Error, &e); err != nil || e.Pos != "" {
		return "", false
	}
	return e.Err, strings.HasPrefix(e.Err, "build constraints exclude all Go files in ")
}

// files joins lists of names.
func (l *lister) files(lists ...[]string) []string {
	total := 0
	for _, list := range lists {
		total += len(list)
	}
	if total == 0 {
		return nil
	}
	all := make([]string, 0, total)
	for _, list := range lists {
		for _, name := range list {
			all = append(all, l.name(name))
		}
	}
	return all
}

// name returns name, the same memory for all that are equal.
func (l *lister) name(name string) string {
	if known, ok := l.names[name]; ok {
		return known
	}
	l.names[name] = name
	return name
}
