package load

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

const remembering = `
-- go.mod --
module example.com/m

go 1.26.0

require example.com/local v0.0.0

replace example.com/local => ./local
-- p/p.go --
package p

import (
	"context"
	"errors"

	"example.com/local"
)

type F func(context.Context, local.T) error

var E = errors.ErrUnsupported
-- local/go.mod --
module example.com/local

go 1.26.0
-- local/local.go --
package local

type T int
`

// loadAgain loads package p of dir with a memory.
func loadAgain(t *testing.T, dir, memory, tags string) *Result {
	t.Helper()
	res, err := Load(context.Background(), Config{Dir: dir, Remember: memory, Tags: tags}, "./p")
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Packages) != 1 {
		t.Fatalf("%d packages, errors %v", len(res.Packages), res.Errors)
	}
	return res
}

func TestExportFilesAreRemembered(t *testing.T) {
	t.Parallel()
	dir, memory := module(t, remembering), filepath.Join(t.TempDir(), "new", "memory")
	first := loadAgain(t, dir, memory, "")
	if errs := first.TypeErrors(); len(errs) > 0 {
		t.Fatal(errs)
	}
	x := first.ld.exports
	for _, path := range []string{"context", "errors", "example.com/local"} {
		if got, want := x.recall(path), first.ld.exported[path]; got != want || got == "" {
			t.Errorf("%s: remembered %q, exported %q", path, got, want)
		}
	}
	// What an entry says is believed, so that this one does harm.
	text, err := os.ReadFile(x.entry(x.of("errors")))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(x.entry(x.of("context")), text, 0o600); err != nil {
		t.Fatal(err)
	}
	second := loadAgain(t, dir, memory, "")
	if second.ld.exported["context"] != first.ld.exported["errors"] {
		t.Error("the go command was asked for what was remembered")
	}
}

func TestWhatIsRememberedDependsOnAllThatDecides(t *testing.T) {
	t.Parallel()
	dir, memory := module(t, remembering), t.TempDir()
	sums := func(tags string) (context, local sum) {
		x := loadAgain(t, dir, memory, tags).ld.exports
		return *x.of("context"), *x.of("example.com/local")
	}
	context1, local1 := sums("")
	if context2, local2 := sums(""); context1 != context2 || local1 != local2 {
		t.Error("two runs differ")
	}
	if context2, _ := sums("other"); context1 == context2 {
		t.Error("build tags make no difference")
	}
	source := filepath.Join(dir, "local", "local.go")
	if err := os.WriteFile(source, []byte("package local\n\ntype T string\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	res := loadAgain(t, dir, memory, "")
	if s := res.ld.exports.of("context"); *s != context1 {
		t.Error("a package depends on one that it does not import")
	}
	if got := res.ld.imported["example.com/local"].Scope().Lookup("T").Type().Underlying().String(); got != "string" {
		t.Errorf("local.T is %s, want string", got)
	}
	if res.ld.exports.of("example.com/m/p") == nil {
		t.Error("a package has no sum although all that it imports has")
	}
	if err := os.WriteFile(source, []byte("package local\n\nimport _ \"example.com/nowhere\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if res := loadAgain(t, dir, memory, ""); res.ld.exports.of("example.com/m/p") != nil {
		t.Error("a package has a sum although something that it imports is not there")
	}
}

// What the go command compiles depends on these, too, and it is not asked for some of them.
func TestWhatIsRememberedDependsOnTheEnvironment(t *testing.T) {
	settings := filepath.Join(t.TempDir(), "env")
	t.Setenv("GOENV", settings)
	t.Setenv("CGO_CFLAGS", "")
	dir, memory := module(t, remembering), t.TempDir()
	context := func() sum { return *loadAgain(t, dir, memory, "").ld.exports.of("context") }
	before := context()
	if err := os.WriteFile(settings, []byte("CGO_CFLAGS=-O1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	inFile := context()
	if inFile == before {
		t.Error("what go env -w sets makes no difference")
	}
	t.Setenv("CGO_CFLAGS", "-O3")
	if context() == inFile {
		t.Error("the environment makes no difference")
	}
	if again := context(); again != context() {
		t.Error("two runs differ")
	}
}

// The go command runs the C compiler to answer for some variables.
func TestTheGoCommandIsNotAskedForWhatIsCostly(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the compiler of the test is a shell script")
	}
	bin := t.TempDir()
	ran := filepath.Join(bin, "ran")
	cc := filepath.Join(bin, "cc")
	if err := os.WriteFile(cc, []byte("#!/bin/sh\necho ran >> "+ran+"\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CC", cc)
	t.Setenv("CGO_ENABLED", "1")
	if _, err := goEnv(t.Context(), bin); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the C compiler was run")
	}
}

func TestExportFilesThatAreGoneAreAskedForAgain(t *testing.T) {
	t.Parallel()
	dir, memory := module(t, remembering), t.TempDir()
	x := loadAgain(t, dir, memory, "").ld.exports
	entry := x.entry(x.of("context"))
	good, err := os.ReadFile(entry)
	if err != nil {
		t.Fatal(err)
	}
	size, name, _ := strings.Cut(string(good), " ")
	for _, text := range []string{size + " no/file", "1 " + name, size + " ../" + name, size, ""} {
		if err := os.WriteFile(entry, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if errs := loadAgain(t, dir, memory, "").TypeErrors(); len(errs) > 0 {
			t.Errorf("entry %q: %v", text, errs)
		}
		if again, err := os.ReadFile(entry); err != nil || string(again) != string(good) {
			t.Errorf("entry %q became %q, %v; want %q", text, again, err, good)
		}
	}
	// It may go between the look and the use.
	res := loadAgain(t, dir, memory, "")
	res.ld.exported["io"] = filepath.Join(dir, "gone")
	if pkg, err := res.ld.readExport("io"); err != nil || pkg.Scope().Lookup("Reader") == nil {
		t.Errorf("io: %v", err)
	}
}

func TestNothingIsRememberedWhereNothingCanBeWritten(t *testing.T) {
	t.Parallel()
	dir := module(t, remembering)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, memory := range []string{"", "relative", filepath.Join(file, "memory")} {
		res := loadAgain(t, dir, memory, "")
		if errs := res.TypeErrors(); len(errs) > 0 {
			t.Errorf("%q: %v", memory, errs)
		}
		if name := res.ld.exports.recall("context"); name != "" {
			t.Errorf("%q: remembered %s", memory, name)
		}
	}
}

func TestOldEntriesAreRemoved(t *testing.T) {
	t.Parallel()
	dir, memory := module(t, remembering), t.TempDir()
	old, young := filepath.Join(memory, "old"), filepath.Join(memory, "young")
	for name, age := range map[string]time.Duration{old: rememberFor + time.Hour, young: rememberFor - time.Hour} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
	}
	loadAgain(t, dir, memory, "")
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Errorf("an old entry is still there: %v", err)
	}
	if _, err := os.Stat(young); err != nil {
		t.Error(err)
	}
}

func TestOnlyReleasesHaveAStandardLibraryThatDoesNotChange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "compile"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "compile.exe"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]bool{
		"go1.26.8": true, "go1.27rc1": true, "go1.26.0 X:jsonv2": true,
		"devel go1.27-abcdef": false, "go1.26.8-custom": false, "": false,
	} {
		env := environment{"GOVERSION": version, "GOCACHE": dir, "GOTOOLDIR": dir}
		if got := newExports(dir, env, "", nil).dir != ""; got != want {
			t.Errorf("%q: %v, want %v", version, got, want)
		}
		env["GOFLAGS"] = "-overlay=x.json"
		if newExports(dir, env, "", nil).dir != "" {
			t.Errorf("%q: something is remembered despite an overlay", version)
		}
	}
}
