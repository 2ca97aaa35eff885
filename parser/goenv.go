package parser

import (
	"cmp"
	"go/build"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// goSetting returns a variable of the go command: what the environment says or, if that
// says nothing, what go env -w has set. To ask the go command itself would cost a run
// without directives half of its time.
func goSetting(name string) string {
	return cmp.Or(os.Getenv(name), settingsFile()[name])
}

// settingsFile reads the file of go env -w, as the go command does: lines of NAME=value,
// and anything else is nothing.
func settingsFile() map[string]string {
	path := os.Getenv("GOENV")
	if path == "" {
		dir, err := os.UserConfigDir()
		if err != nil {
			return nil
		}
		path = filepath.Join(dir, "go", "env")
	}
	if info, err := os.Stat(path); path == "off" || err != nil || !info.Mode().IsRegular() {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	set := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && name != "" && 'A' <= name[0] && name[0] <= 'Z' {
			set[name] = value
		}
	}
	return set
}

// buildContext returns what decides which files belong to the build, under the tags of a
// flag.
func buildContext(tags string) *build.Context {
	bctx := build.Default
	bctx.GOOS = cmp.Or(goSetting("GOOS"), bctx.GOOS)
	bctx.GOARCH = cmp.Or(goSetting("GOARCH"), bctx.GOARCH)
	switch goSetting("CGO_ENABLED") {
	case "0":
		bctx.CgoEnabled = false
	case "1":
		bctx.CgoEnabled = true
	default:
		here := bctx.GOOS == runtime.GOOS && bctx.GOARCH == runtime.GOARCH
		bctx.CgoEnabled = bctx.CgoEnabled && here
	}
	tags = cmp.Or(tags, flagTags(goSetting("GOFLAGS")))
	bctx.BuildTags = strings.FieldsFunc(tags, func(r rune) bool { return r == ',' || r == ' ' })
	return &bctx
}

// flagTags returns the build tags in GOFLAGS, which count where there are no others.
func flagTags(goflags string) (tags string) {
	for f := range strings.FieldsSeq(goflags) {
		if list, ok := strings.CutPrefix(strings.TrimLeft(f, "-"), "tags="); ok {
			tags = list
		}
	}
	return tags
}
