package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ratelimitgen/ratelimitgen/generator"
)

// processEnv makes the test binary the command itself.
const processEnv = "RATELIMITGEN_TEST_PROCESS"

func TestMain(m *testing.M) {
	if os.Getenv(processEnv) != "" {
		main()
	}
	os.Exit(m.Run())
}

// process prepares a run of the command in a process of its own.
func process(dir string, env []string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), processEnv+"=1"), env...)
	return cmd
}

func TestProcessesMayRunAtOnceOnOneTree(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range 8 {
		name := fmt.Sprintf("p%d", i)
		files[name+"/p.go"] = strings.Replace(limitedSource, "package p", "package "+name, 1)
	}
	files["orphan/p.go"] = "package orphan\n"
	files["orphan/"+generator.OutputName] = generator.Header + "\n\npackage orphan\n"
	dir := module(t, files)

	stop := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			for i := range 8 {
				text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("p%d", i), generator.OutputName))
				if errors.Is(err, fs.ErrNotExist) {
					continue
				}
				if err != nil || !bytes.HasPrefix(text, []byte(generator.Header+"\n")) || !bytes.HasSuffix(text, []byte("}\n")) {
					t.Errorf("a reader found %q, %v", text, err)
					return
				}
			}
		}
	})
	var writers sync.WaitGroup
	for range 6 {
		writers.Go(func() {
			if out, err := process(dir, nil, "./...").CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	writers.Wait()
	close(stop)
	reader.Wait()

	if code, stdout, stderr := ratelimitgen(t, dir, "check", "./..."); code != exitDone {
		t.Errorf("afterwards: exit status %d, %s%s", code, stdout, stderr)
	}
	for name := range (&scenario{t: t, dir: dir}).tree() {
		if strings.HasSuffix(name, ".tmp") {
			t.Errorf("%s was left behind", name)
		}
	}
}

// TestOutputDependsOnTheSourceAlone generates for one module in several places, with
// packages named in several ways and orders, by one thread and by two.
func TestOutputDependsOnTheSourceAlone(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for _, name := range []string{"a", "b", "c"} {
		files[name+"/p.go"] = strings.Replace(limitedSource, "package p", "package "+name, 1) + `
//ratelimit:max=3 window=1h key=id
func (*T) N(id string) error { return nil }

type U[K comparable] struct{}

//ratelimit:max=4 algorithm=token-bucket
func (U[string]) O(k string, t *T) (v T, _ error) { return }
`
		files[name+"/q.go"] = "package " + name + "\n\n//ratelimit:max=7\nfunc F() error { return nil }\n"
	}
	var want map[string]string
	for i, c := range []struct {
		sub, threads string
		args         []string
	}{
		{"", "1", []string{"./..."}},
		{"", "2", []string{"./..."}},
		{"", "2", []string{"./c", "./a", "./b", "./a/..."}},
		{"a", "1", []string{"../b", ".", "../c"}},
		{"b", "2", []string{"-C", "..", "example.com/m/..."}},
	} {
		dir := module(t, files)
		out, err := process(filepath.Join(dir, c.sub), []string{"GOMAXPROCS=" + c.threads}, c.args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", c, err, out)
		}
		got := (&scenario{t: t, dir: dir}).tree()
		if i == 0 {
			want = got
		}
		if !maps.Equal(got, want) || len(got) != len(files)+4 {
			t.Errorf("%v: wrote another tree:\n%v\nwant\n%v", c, got, want)
		}
	}
}
