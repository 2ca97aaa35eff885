package generator

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

func write(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestPlanTellsMissingStaleAndOrphaned(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write(t, path("same"), Header+"\nsame", 0o644)
	write(t, path("stale"), Header+"\nold", 0o644)
	write(t, path("orphan"), Header+"\n", 0o644)
	write(t, path("empty"), "", 0o644)
	files := []File{
		{path("empty"), []byte(Header + "\n")},
		{path("missing"), []byte(Header + "\n")},
		{path("same"), []byte(Header + "\nsame")},
		{path("stale"), []byte(Header + "\nnew")},
	}
	changes, err := Plan(files, []string{path("orphan"), path("same"), path("stale")})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]Kind{}
	for _, c := range changes {
		got[filepath.Base(c.Path)] = c.Kind
	}
	want := map[string]Kind{"empty": Stale, "missing": Missing, "stale": Stale, "orphan": Orphaned}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("plan %v, want %v", got, want)
	}
	if err := Apply(changes); err != nil {
		t.Fatal(err)
	}
	again, err := Plan(files, []string{path("same"), path("stale")})
	if err != nil || len(again) != 0 {
		t.Errorf("after applying: %v, %v", again, err)
	}
	if _, err := os.Stat(path("orphan")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the orphan is still there: %v", err)
	}
}

func TestForeignFilesAreAllReportedAndKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.go"), filepath.Join(dir, "b.go")
	write(t, a, "package mine\n", 0o644)
	write(t, b, "\n"+Header+"\n", 0o644) // not in the first line
	_, err := Plan([]File{{a, nil}, {b, nil}}, nil)
	var foreign *ForeignFileError
	if !errors.As(err, &foreign) {
		t.Fatalf("error %v, want a ForeignFileError", err)
	}
	if joined, ok := err.(interface{ Unwrap() []error }); !ok || len(joined.Unwrap()) != 2 {
		t.Errorf("error %v, want both files", err)
	}
}

func TestAnOrphanThatBecameSomebodysFileIsKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), OutputName)
	write(t, path, "package mine\n", 0o644)
	err := Apply([]Change{{Path: path, Kind: Orphaned}})
	var foreign *ForeignFileError
	if !errors.As(err, &foreign) || foreign.Path != path {
		t.Errorf("error %v, want a ForeignFileError about %s", err, path)
	}
	if got := read(t, path); got != "package mine\n" {
		t.Errorf("the file now holds %q", got)
	}
}

func TestApplyKeepsTheModeAndLeavesNothingElse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, OutputName)
	write(t, path, Header+"\nold", 0o640)
	if err := Apply([]Change{{Path: path, Kind: Stale, File: File{path, []byte(Header + "\nnew")}}}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v; want 0640", info.Mode(), err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("directory holds %v, %v", entries, err)
	}
}

func TestApplyDoesNotWriteThroughALink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "precious")
	write(t, outside, Header+"\nprecious", 0o644)
	path := filepath.Join(dir, OutputName)
	if err := os.Symlink(outside, path); err != nil {
		t.Fatal(err)
	}
	if err := Apply([]Change{{Path: path, Kind: Stale, File: File{path, []byte(Header + "\nnew")}}}); err != nil {
		t.Logf("refused: %v", err)
	}
	if got := read(t, outside); got != Header+"\nprecious" {
		t.Errorf("the file outside now holds %q", got)
	}
}

func TestDurationsAreWrittenInTheLargestUnit(t *testing.T) {
	t.Parallel()
	f := &file{imports: newImports(nil)}
	f.imports.alias["time"] = "time"
	for d, want := range map[time.Duration]string{
		time.Minute:             "time.Minute",
		90 * time.Second:        "90 * time.Second",
		48 * time.Hour:          "48 * time.Hour",
		1500 * time.Microsecond: "1500 * time.Microsecond",
	} {
		if got := f.duration(d).GoString(); got != want {
			t.Errorf("%v is written %q, want %q", d, got, want)
		}
	}
}
