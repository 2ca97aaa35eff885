package generator

import (
	"errors"
	"fmt"
	"go/build"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
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
	write(t, path(OutputName), "", 0o644)
	files := []File{
		{path(OutputName), []byte(Header + "\n")},
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
	want := map[string]Kind{OutputName: Stale, "missing": Missing, "stale": Stale, "orphan": Orphaned}
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

func TestALinkInTheWayIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "precious")
	write(t, outside, Header+"\nprecious", 0o644)
	for name, target := range map[string]string{"live": outside, "dangling": filepath.Join(dir, "nowhere")} {
		path := filepath.Join(dir, name)
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
		file := File{path, []byte(Header + "\nnew")}
		_, planErr := Plan([]File{file}, nil)
		_, orphanErr := Plan(nil, []string{path})
		// As if the link had been put there after the plan was made.
		applyErr := Apply([]Change{{Path: path, Kind: Stale, File: file}})
		removeErr := Apply([]Change{{Path: path, Kind: Orphaned}})
		for what, err := range map[string]error{"plan": planErr, "plan to remove": orphanErr, "apply": applyErr, "remove": removeErr} {
			var foreign *ForeignFileError
			if !errors.As(err, &foreign) || !foreign.Irregular {
				t.Errorf("%s, %s: error %v, want an irregular ForeignFileError", name, what, err)
			}
		}
		if got, err := os.Readlink(path); err != nil || got != target {
			t.Errorf("%s: the link now points to %q, %v", name, got, err)
		}
	}
	if got := read(t, outside); got != Header+"\nprecious" {
		t.Errorf("the file outside now holds %q", got)
	}
}

// outputs makes a directory for each name with an output that says "old", except where
// the name begins with new, and returns a change to "new" for each, and the removal of
// those that begin with orphan.
func outputs(t *testing.T, names ...string) (string, []Change) {
	t.Helper()
	root := t.TempDir()
	var changes []Change
	for _, name := range names {
		dir := filepath.Join(root, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, OutputName)
		c := Change{Path: path, Kind: Stale, File: File{path, []byte(Header + "\nnew")}}
		switch {
		case strings.HasPrefix(name, "new"):
			c.Kind = Missing
		case strings.HasPrefix(name, "orphan"):
			c = Change{Path: path, Kind: Orphaned}
			fallthrough
		default:
			write(t, path, Header+"\nold", 0o640)
		}
		changes = append(changes, c)
	}
	return root, changes
}

// snapshot describes every file below root: path, mode, time and content.
func snapshot(t *testing.T, root string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := ""
		if info.Mode().IsRegular() {
			text = read(t, path)
		}
		all = append(all, fmt.Sprintf("%s %v %v %q", strings.TrimPrefix(path, root), info.Mode(), info.ModTime(), text))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestAFailureInTheMiddleLeavesEveryFileAsItWas(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(t *testing.T, c *Change){
		"a directory is gone": func(t *testing.T, c *Change) {
			if err := os.RemoveAll(filepath.Dir(c.Path)); err != nil {
				t.Fatal(err)
			}
		},
		"a directory took the place of the file": func(t *testing.T, c *Change) {
			if err := errors.Join(os.Remove(c.Path), os.Mkdir(c.Path, 0o755)); err != nil {
				t.Fatal(err)
			}
		},
		"somebody wrote the file": func(t *testing.T, c *Change) {
			write(t, c.Path, "package mine\n", 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root, changes := outputs(t, "a", "b", "new", "orphan", "z")
			harm(t, &changes[len(changes)-1])
			before := snapshot(t, root)
			err := Apply(changes)
			if err == nil || !strings.Contains(err.Error(), changes[len(changes)-1].Path) {
				t.Errorf("error %v, want one that names the file", err)
			}
			if after := snapshot(t, root); !slices.Equal(before, after) {
				t.Errorf("the tree was\n%s\nand is\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
			}
		})
	}
}

func TestApplyMakesAllChangesAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	root, changes := outputs(t, "a", "new", "orphan")
	if err := Apply(changes); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, line := range snapshot(t, root) {
		got = append(got, strings.Fields(line)[0])
	}
	if want := []string{"/a/" + OutputName, "/new/" + OutputName}; !slices.Equal(got, want) {
		t.Errorf("the tree holds %q, want %q", got, want)
	}
}

func TestAReadOnlyFileIsReplacedAndStaysReadOnly(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), OutputName)
	write(t, path, Header+"\nold", 0o444)
	if err := Apply([]Change{{Path: path, Kind: Stale, File: File{path, []byte(Header + "\nnew")}}}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o444 || read(t, path) != Header+"\nnew" {
		t.Errorf("mode %v, %v, content %q", info.Mode(), err, read(t, path))
	}
}

func TestTheDirectoryMayBeReachedThroughALink(t *testing.T) {
	t.Parallel()
	root, changes := outputs(t, "a")
	link := filepath.Join(root, "link")
	if err := os.Symlink("a", link); err != nil {
		t.Fatal(err)
	}
	changes[0].Path = filepath.Join(link, OutputName)
	if err := Apply(changes); err != nil {
		t.Fatal(err)
	}
	if got := read(t, filepath.Join(root, "a", OutputName)); got != Header+"\nnew" {
		t.Errorf("the file holds %q", got)
	}
}

func TestNoPlatformLeavesTheOutputOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, OutputName), Header+"\n\npackage p\n", 0o644)
	for _, platform := range []string{"linux/amd64", "windows/arm64", "darwin/arm64", "js/wasm", "plan9/386", "none/none"} {
		ctx := build.Default
		ctx.GOOS, ctx.GOARCH, _ = strings.Cut(platform, "/")
		ctx.CgoEnabled = false
		if match, err := ctx.MatchFile(dir, OutputName); err != nil || !match {
			t.Errorf("on %s the output is not built: %v", platform, err)
		}
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

func TestWhatAKilledApplyLeavesIsFoundOnceItIsOld(t *testing.T) {
	t.Parallel()
	root, changes := outputs(t, "a", "b", "new", "orphan")
	changes[1].Path = filepath.Join(root, "b", "ratelimit_gen_linux_only.go")
	changes[1].File.Path = changes[1].Path
	made := time.Now()
	var names []string
	for i := range changes {
		s, err := changes[i].stage()
		if err != nil {
			t.Fatal(err)
		}
		if i != 1 { // the run is killed before it comes to this one
			if err := s.commit(); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{s.temp, s.kept} {
			if name != "" {
				names = append(names, filepath.Join(filepath.Dir(changes[i].Path), name))
			}
		}
		if err := s.root.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(names) != 3 {
		t.Fatalf("there should be a new file, and two that were replaced or removed: %q", names)
	}
	// A partial one is left if the process is killed while it writes.
	write(t, names[1], Header[:20], 0o644)
	find := func(age time.Duration) []string {
		t.Helper()
		files := []File{changes[0].File, changes[1].File, changes[2].File, {filepath.Join(root, "nowhere", OutputName), nil}}
		found, err := Leftovers(files, []string{changes[3].Path, changes[0].Path}, made.Add(age))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	for _, age := range []time.Duration{-24 * time.Hour, 0, leftoverAge - time.Second} {
		if found := find(age); len(found) > 0 {
			t.Errorf("after %v they may be in use, but found are %q", age, found)
		}
	}
	found := find(leftoverAge + 2*time.Second)
	if !slices.Equal(found, names) {
		t.Fatalf("found are %q, want %q", found, names)
	}
	for range 2 { // another process may have done it
		if err := RemoveLeftovers(found); err != nil {
			t.Error(err)
		}
	}
	if again := find(leftoverAge + 2*time.Second); len(again) > 0 {
		t.Errorf("still there: %q", again)
	}
	for _, dir := range []string{"a", "new"} {
		if got := read(t, filepath.Join(root, dir, OutputName)); got != Header+"\nnew" {
			t.Errorf("the output in %s is %q", dir, got)
		}
	}
}

func TestWhatIsNotOursIsNoLeftover(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const (
		stamp  = ".20260102T030405Z"
		random = ".ABCDEFGHIJKLMNOPQRSTUVWXYZ.tmp"
		ours   = "." + OutputName + stamp + random
	)
	for name, text := range map[string]string{
		"." + OutputName + ".20260102T030406Z" + random:              "package mine\n",
		"." + OutputName + ".20269902T030405Z" + random:              Header + "\n",
		"." + OutputName + ".29990102T030405Z" + random:              Header + "\n",
		"." + OutputName + stamp + ".tmp":                            Header + "\n",
		"." + OutputName + stamp + random + ".tmp":                   Header + "\n",
		"." + OutputName + ".tmp":                                    Header + "\n",
		"." + OutputName + ".swp":                                    Header + "\n",
		OutputName + stamp + random:                                  Header + "\n",
		".other.go" + stamp + random:                                 Header + "\n",
		".ratelimit_gen_x.go" + stamp + random:                       Header + "\n",
		"." + OutputName + stamp + ".abcdefghijklmnopqrstuvwxyz.tmp": Header + "\n",
		ours: "",
	} {
		write(t, filepath.Join(dir, name), text, 0o644)
	}
	link := "." + OutputName + ".20260102T030407Z" + random
	if err := os.Symlink(ours, filepath.Join(dir, link)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "."+OutputName+".20260102T030408Z"+random), 0o755); err != nil {
		t.Fatal(err)
	}
	found, err := Leftovers([]File{{filepath.Join(dir, OutputName), nil}}, nil, time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC))
	if want := []string{filepath.Join(dir, ours)}; err != nil || !slices.Equal(found, want) {
		t.Errorf("found %q, %v; want %q", found, err, want)
	}
}
