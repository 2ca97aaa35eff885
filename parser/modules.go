package parser

import (
	"cmp"
	"context"
	"go/build"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/parser/load"
)

// mains are the main modules of a run: those that ratelimitgen writes to.
type mains struct {
	work  string   // the go.work file, or ""
	roots []string // directories of the modules
	// unknown: there are no modules, or what is wrong with them the go command will say.
	unknown bool
}

// outside takes those patterns out of cfg that lead out of the main modules, where the
// go command finds nothing, and reports them. It reports whether there is no main
// module at all.
func (cfg *Config) outside(ctx context.Context) (diags diag.List, none bool, err error) {
	var asked *mains // of the go command, once something is not clear without it
	work, sure := workspace(cfg.Dir)
	here := moduleRoot(cfg.Dir)
	var patterns []string
	for _, pattern := range cfg.Patterns {
		dir := cfg.top(pattern)
		root := ""
		if dir != "" {
			root = moduleRoot(dir)
		}
		switch {
		case dir == "",
			sure && work.work == "" && root != "" && root == here,
			sure && work.work != "" && slices.Contains(work.roots, root):
			patterns = append(patterns, pattern)
			continue
		}
		if asked == nil {
			if asked, err = askMains(ctx, cfg.Dir); err != nil {
				return nil, false, err
			}
		}
		switch {
		case asked.unknown || asked.has(root):
			patterns = append(patterns, pattern)
		case asked.work == "" && len(asked.roots) == 0:
			none = true
			patterns = append(patterns, pattern)
		default:
			diags.Add(cfg.errOutside(asked, pattern, root))
		}
	}
	cfg.Patterns = patterns
	return diags, none, nil
}

// top returns the directory in which the packages are that pattern names, or "" if only
// the go command knows it, or if there is none.
func (cfg *Config) top(pattern string) string {
	slashed := filepath.ToSlash(pattern)
	if !build.IsLocalImport(slashed) && !filepath.IsAbs(pattern) && !strings.HasSuffix(pattern, ".go") {
		return ""
	}
	if before, _, wild := strings.Cut(slashed, "..."); wild {
		slashed = before[:strings.LastIndexByte(before, '/')+1]
	}
	dir := filepath.FromSlash(slashed)
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(cfg.Dir, dir)
	}
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return ""
	case !info.IsDir():
		return filepath.Dir(dir)
	}
	return filepath.Clean(dir)
}

// has reports whether the module in root is a main one.
func (m *mains) has(root string) bool {
	info, err := os.Stat(root)
	return err == nil && slices.ContainsFunc(m.roots, func(dir string) bool {
		other, err := os.Stat(dir)
		return err == nil && os.SameFile(info, other)
	})
}

// moduleRoot is the directory of the module that dir is in, or "".
func moduleRoot(dir string) string {
	if mod := above(dir, "go.mod"); mod != "" {
		return filepath.Dir(mod)
	}
	return ""
}

// above returns the file of this name in dir or the nearest directory above it.
func above(dir, name string) string {
	for {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return path
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}

// workspace returns the modules of the workspace that a run in dir is in. It does not
// ask the go command, and reports false if that may know better.
func workspace(dir string) (m mains, ok bool) {
	work := goSetting("GOWORK")
	switch work {
	case "off":
		return m, true
	case "":
		if work = above(dir, "go.work"); work == "" {
			return m, true
		}
	}
	return m, m.use(work) == nil
}

// use adds the modules that a go.work file lists.
func (m *mains) use(work string) error {
	data, err := os.ReadFile(work)
	if err != nil {
		return err
	}
	file, err := modfile.ParseWork(work, data, nil)
	if err != nil {
		return err
	}
	m.work = work
	for _, use := range file.Use {
		root := filepath.FromSlash(use.Path)
		if !filepath.IsAbs(root) {
			root = filepath.Join(filepath.Dir(work), root)
		}
		m.roots = append(m.roots, filepath.Clean(root))
	}
	return nil
}

// askMains asks the go command for the main modules of a run in dir.
func askMains(ctx context.Context, dir string) (*mains, error) {
	env, err := load.Environment(ctx, dir, "GOMOD", "GOWORK")
	if err != nil {
		return nil, err
	}
	var m mains
	switch mod := env["GOMOD"]; {
	case mod == "":
		m.unknown = true
	case env["GOWORK"] != "":
		m.unknown = m.use(env["GOWORK"]) != nil
	case mod != os.DevNull:
		m.roots = []string{filepath.Dir(mod)}
	}
	return &m, nil
}

// errOutside is about a pattern that leads out of the main modules, into a module in
// root or, if that is "", none.
func (cfg *Config) errOutside(m *mains, pattern, root string) diag.Diagnostic {
	work := ""
	if m.work != "" {
		work = nearby(cfg.Dir, m.work)
	}
	if root != "" {
		data, _ := os.ReadFile(filepath.Join(root, "go.mod"))
		dir := nearby(cfg.Dir, root)
		return errOtherModule(pattern, cmp.Or(modfile.ModulePath(data), dir), dir, work)
	}
	var dirs []string
	for _, main := range m.roots {
		dirs = append(dirs, nearby(cfg.Dir, main))
	}
	return errNotInModule(pattern, dirs, work)
}

// nearby is a path as somebody in dir would write it.
func nearby(dir, path string) string {
	rel, err := filepath.Rel(dir, path)
	if err != nil {
		return path
	}
	return filepath.ToSlash(rel)
}
