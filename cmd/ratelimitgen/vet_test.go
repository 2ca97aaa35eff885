package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ratelimitgen/ratelimitgen/generator"
)

const (
	paySource = `package pay

type Service struct{}

//ratelimit:max=1
func (*Service) Charge() error { return nil }

func (s *Service) Twice() error { return s.Charge() }

type Store interface {
	//ratelimit:max=1
	Get() error
}

type Map struct{}

func (Map) Get() error { return nil }
`
	wireSource = `package wire

import (
	"example.com/m/pay"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

func Build(limiter *ratelimit.Limiter) error {
	raw := &pay.Service{}
	limited := pay.NewRateLimitedService(raw, limiter)
	var store pay.Store = pay.NewRateLimitedStore(pay.Map{}, limiter)
	_ = store.Get()
	_ = limited.Charge()
	return limited.Charge()
}
`
	bypassSource = `package bypass

import "example.com/m/pay"

func Charge(s *pay.Service) error { return s.Charge() }
`
	bypassMessage = "pay.Service.Charge is called on the Service itself, past its limit; call it on what NewRateLimitedService returns [bypass]"
	selfMessage   = "pay.Service.Charge is called from inside, where its limit does not apply; move what both need into one without a limit [self-call]"
	seen          = "; reflection and unsafe are not seen\n"
)

// vetted makes a module of the given files, with its wrappers.
func vetted(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := module(t, files)
	if code, _, stderr := ratelimitgen(t, dir, "./..."); code != exitDone {
		t.Fatalf("generation: exit status %d, printed %q", code, stderr)
	}
	return dir
}

// vet runs the verb in dir.
func vet(t *testing.T, dir string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(context.Background(), append([]string{"vet", "-C", dir}, args...), &out, &errs)
	return code, out.String(), errs.String()
}

func TestVetSaysWhatItProved(t *testing.T) {
	t.Parallel()
	dir := vetted(t, map[string]string{
		"pay/pay.go":       paySource,
		"wire/wire.go":     wireSource,
		"bypass/bypass.go": bypassSource,
		"raw/raw.go":       "package raw\n\nimport \"example.com/m/pay\"\n\nfunc New() pay.Store { return pay.Map{} }\n",
		"uses/uses.go":     "package uses\n\nimport (\n\t\"example.com/m/pay\"\n\t\"example.com/m/raw\"\n)\n\nfunc Use() error { return raw.New().Get() }\n\nfunc Limited(s *pay.RateLimitedStore) error { return s.Get() }\n",
		"other/other.go":   "package other\n",
		"wire/wire_test.go": `package wire

import "example.com/m/pay"

func charge(s *pay.Service) { _ = s.Charge() }
`,
		"wire/external_test.go": `package wire_test

import "example.com/m/pay"

func charge(s *pay.Service) { _ = s.Charge() }
`,
	})
	self := "pay/pay.go:8:44: warning: " + selfMessage + "\n"
	bypass := "bypass/bypass.go:5:46: error: " + bypassMessage + "\n"
	raw := "raw/raw.go:5:31: error: pay.Map becomes pay.Store without its limits; only NewRateLimitedStore makes one that has them [raw-interface]\n"
	for _, c := range []struct {
		name   string
		args   []string
		code   int
		stderr string
	}{
		{"of packages without findings", []string{"./wire"}, exitDone,
			"ratelimitgen: 3 call sites proved, for 2 of 2 limited methods and functions" + seen},
		{"of a package that nothing limited can be reached from", []string{"./other"}, exitDone,
			"ratelimitgen: nothing limited can be reached from these packages\n"},
		{"with warnings", []string{"./pay"}, exitDone,
			self + "ratelimitgen: 0 call sites proved, for 0 of 2 limited methods and functions" + seen},
		{"with errors, and no call of an interface that raw values get into", []string{"./..."}, exitProblem,
			bypass + self + raw + "ratelimitgen: 3 call sites proved, for 2 of 2 limited methods and functions" + seen},
		{"and of a wrapper where raw values get into its interface elsewhere", []string{"./uses"}, exitDone,
			"ratelimitgen: 1 call site proved, for 1 of 2 limited methods and functions" + seen},
		{"with excuses", []string{"-allow=example.com/m/bypass.Charge,example.com/m/nowhere", "example.com/m/bypass", "example.com/m/wire"}, exitDone,
			"warning: nothing needs -allow=example.com/m/nowhere; remove it [unused-allow]\nratelimitgen: 3 call sites proved, for 2 of 2 limited methods and functions, 1 excused" + seen},
		{"of tests, and each file once", []string{"-tests", "./wire", "./pay"}, exitProblem,
			self + "wire/external_test.go:5:37: error: " + bypassMessage + "\nwire/wire_test.go:5:37: error: " + bypassMessage +
				"\nratelimitgen: 3 call sites proved, for 2 of 2 limited methods and functions" + seen},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := vet(t, dir, c.args...)
			if code != c.code || stdout != "" || stderr != c.stderr {
				t.Errorf("exit status %d, printed %q and\n%s\nwant %d and\n%s", code, stdout, stderr, c.code, c.stderr)
			}
		})
	}
	t.Run("as JSON", func(t *testing.T) {
		t.Parallel()
		code, stdout, stderr := vet(t, dir, "-json", "./bypass")
		want := `{"file":"bypass/bypass.go","line":5,"column":46,"endColumn":52,"severity":"error","code":"bypass","message":"` + strings.TrimSuffix(bypassMessage, " [bypass]") + `"}` + "\n"
		if code != exitProblem || stdout != want || stderr != "ratelimitgen: 0 call sites proved, for 0 of 2 limited methods and functions"+seen {
			t.Errorf("exit status %d, printed %q and %q", code, stdout, stderr)
		}
	})
}

func TestVetReportsDirectivesAndOutputs(t *testing.T) {
	t.Parallel()
	stale := strings.Replace(limitedSource, "package p", "package stale", 1)
	dir := vetted(t, map[string]string{"stale/p.go": stale, "orphaned/p.go": strings.Replace(limitedSource, "package p", "package orphaned", 1)})
	writeFile(t, filepath.Join(dir, "stale/p.go"), []byte(strings.Replace(stale, "max=1", "max=2", 1)))
	writeFile(t, filepath.Join(dir, "orphaned/p.go"), []byte("package orphaned\n\ntype T struct{}\n\nfunc (T) M() error { return nil }\n"))
	writeFile(t, filepath.Join(dir, "missing/p.go"), []byte(strings.Replace(limitedSource, "package p", "package missing", 1)))
	writeFile(t, filepath.Join(dir, "foreign/p.go"), []byte(strings.Replace(limitedSource, "package p", "package foreign", 1)))
	writeFile(t, filepath.Join(dir, "foreign", generator.OutputName), []byte("package foreign\n"))
	const outputs = `foreign/ratelimit_gen.go:1:1: error: the file stands where output should go and was not generated by ratelimitgen (its first line is not "// Code generated by ratelimitgen. DO NOT EDIT."); move it away or rename it [foreign-output]
missing/p.go:5:1: error: ratelimit_gen.go is missing, so the limits of this package are not enforced; run ratelimitgen [missing-output]
orphaned/ratelimit_gen.go:1:1: error: no directive asks for this file any more; run ratelimitgen, which removes it [orphaned-output]
stale/ratelimit_gen.go:32:1: error: the file does not say what the directives do, from here on; run ratelimitgen [stale-output]
ratelimitgen: 0 call sites proved, for 0 of 3 limited methods and functions` + seen
	if code, stdout, stderr := vet(t, dir, "./..."); code != exitProblem || stdout != "" || stderr != outputs {
		t.Errorf("exit status %d, printed %q and\n%s\nwant\n%s", code, stdout, stderr, outputs)
	}
	writeFile(t, filepath.Join(dir, "stale/p.go"), []byte(strings.Replace(stale, "max=1", "maks=1", 1)))
	if code, _, stderr := vet(t, dir, "./stale"); code != exitProblem || !strings.HasPrefix(stderr, "stale/p.go:5:13: error: unknown option") {
		t.Errorf("exit status %d, printed %q", code, stderr)
	}
}

func TestVetSaysThatAPackageDoesNotCompile(t *testing.T) {
	t.Parallel()
	dir := vetted(t, map[string]string{"pay/pay.go": paySource, "bypass/bypass.go": bypassSource})
	writeFile(t, filepath.Join(dir, "bypass/broken.go"), []byte("package bypass\n\nvar x int = \"\"\n"))
	code, _, stderr := vet(t, dir, "./bypass")
	if code != exitProblem || !strings.Contains(stderr, "bypass/broken.go:3:13: error: package example.com/m/bypass does not compile, so not all of it could be vetted: ") || !strings.Contains(stderr, bypassMessage) {
		t.Errorf("exit status %d, printed %q", code, stderr)
	}
}

func TestVetSaysWhereAPackageDoesNotCompileInTheFileItself(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, code, want string }{
		{"types", "var x int = \"\"", "4:13"},
		{"syntax", "var x = f(\nvar y = g(", "5:1"},
		{"imports", "import \"example.com/none\"\n\nvar x = none.X", "4:8"},
		{"cycle", "import \"example.com/m/cycle\"\n\nvar x cycle.T", "4:8"},
	}
	files := map[string]string{"pay/pay.go": paySource}
	for _, tt := range tests {
		files[tt.name+"/p.go"] = strings.Replace(bypassSource, "bypass", tt.name, 1)
	}
	dir := vetted(t, files)
	for _, tt := range tests {
		writeFile(t, filepath.Join(dir, tt.name, "broken.go"), []byte("package "+tt.name+"\n\n//line other.y:70\n"+tt.code+"\n"))
	}
	_, _, stderr := vet(t, dir, "./...")
	for _, tt := range tests {
		if want := tt.name + "/broken.go:" + tt.want + ": error: package example.com/m/" + tt.name + " does not compile"; !strings.Contains(stderr, want) {
			t.Errorf("%q was not printed, but\n%s", want, stderr)
		}
	}
}

// Of a dependency that does not compile there is nothing to see in the packages asked
// for, since no error is where its missing types are used.
func TestVetSaysThatADependencyDoesNotCompile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ dep, use, want string }{
		"limited": {
			"package dep\n\nvar x int = \"\"\n\n//ratelimit:max=1\nfunc F() error { return nil }\n",
			"package use\n\nimport \"example.com/dep\"\n\nvar F = dep.NewRateLimitedF\n",
			"dep/dep.go:3:13: error: package example.com/dep does not compile, so not all of what imports it could be vetted: cannot use \"\" (",
		},
		"a type that is missing": {
			"package dep\n\nfunc Get() Missing { panic(0) }\n",
			"package use\n\nimport (\n\t\"example.com/dep\"\n\t\"example.com/m/pay\"\n)\n\nvar _ *pay.Service\n\nvar err = dep.Get().Charge()\n",
			"dep/dep.go:3:12: error: package example.com/dep does not compile, so not all of what imports it could be vetted: undefined: Missing [not-compiled]\n",
		},
		"the body of a function": {
			"package dep\n\nfunc Get() { missing() }\n",
			"package use\n\nimport (\n\t_ \"example.com/dep\"\n\t\"example.com/m/pay\"\n)\n\nvar _ *pay.Service\n",
			"dep/dep.go:3:14: error: package example.com/dep does not compile, so not all of what imports it could be vetted: undefined: missing [not-compiled]\n",
		},
		// The missing one might be all that leads to something limited.
		"a package that is missing": {
			"package dep\n\nimport \"example.com/m/missing\"\n\nfunc Get() missing.T { panic(0) }\n",
			"package use\n\nimport \"example.com/dep\"\n\nvar err = dep.Get().Charge()\n",
			"dep/dep.go:3:8: error: package example.com/dep does not compile, so not all of what imports it could be vetted: no required module provides package example.com/m/missing",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := vetted(t, map[string]string{"pay/pay.go": paySource})
			writeModule(t, filepath.Join(dir, "dep"))
			writeFile(t, filepath.Join(dir, "dep/dep.go"), []byte(c.dep))
			must(t, filepath.Join(dir, "dep"), nil, "go", "mod", "edit", "-module=example.com/dep")
			if strings.Contains(c.dep, "//ratelimit") {
				must(t, filepath.Join(dir, "dep"), nil, "")
			}
			must(t, dir, nil, "go", "mod", "edit", "-require=example.com/dep@v0.0.0", "-replace=example.com/dep=./dep")
			writeFile(t, filepath.Join(dir, "use/use.go"), []byte(c.use))
			for _, args := range [][]string{{"./..."}, {"-tests", "./use"}} {
				code, _, stderr := vet(t, dir, args...)
				if code != exitProblem || strings.Count(stderr, "[not-compiled]") != 1 || !strings.HasPrefix(stderr, c.want) {
					t.Errorf("%q: exit status %d, printed\n%s\nwant\n%s", args, code, stderr, c.want)
				}
			}
		})
	}
}

// The type checker names the other declaration, which is not to depend on the machine.
func TestVetNamesASecondPlaceRelatively(t *testing.T) {
	t.Parallel()
	dir := vetted(t, map[string]string{
		"p/a.go": "package p\n\ntype T struct{}\n\nfunc (T) Help() error { return nil }\n",
		"p/b.go": "package p\n\n//ratelimit:max=1\nfunc (T) Do() error { return nil }\n\nfunc (T) Help() error { return nil }\n",
	})
	want := "does not compile, so not all of it could be vetted: method T.Help already declared at p/a.go:5:10 [not-compiled]\n"
	if code, _, stderr := vet(t, dir, "./..."); code != exitProblem || !strings.Contains(stderr, want) {
		t.Errorf("exit status %d, printed\n%s\nwant\n%s", code, stderr, want)
	}
}

func TestVetCountsLimitedFunctionsByTheirConstructors(t *testing.T) {
	t.Parallel()
	dir := vetted(t, map[string]string{
		"p/p.go": "package p\n\n//ratelimit:max=1\nfunc F() error { return nil }\n\n//ratelimit:max=1\nfunc G() error { return nil }\n",
		"use/use.go": `package use

import (
	"example.com/m/p"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

func use(limiter *ratelimit.Limiter) error { return p.NewRateLimitedF(limiter)() }
`,
	})
	code, _, stderr := vet(t, dir, "./...")
	if want := "ratelimitgen: 1 call site proved, for 1 of 2 limited methods and functions" + seen; code != exitDone || stderr != want {
		t.Errorf("exit status %d, printed %q, want %q", code, stderr, want)
	}
}

func TestTroubleOfVetIsExitStatusTwo(t *testing.T) {
	t.Parallel()
	dir := module(t, map[string]string{"p/p.go": limitedSource})
	for _, args := range [][]string{{"-nonsense"}, {"-json", "-format=github"}, {"-C", filepath.Join(dir, "nowhere")}} {
		if code, _, stderr := vet(t, dir, args...); code != exitTrouble || stderr == "" {
			t.Errorf("%q: exit status %d, printed %q", args, code, stderr)
		}
	}
}

func TestGoVetRunsTheAnalyzer(t *testing.T) {
	t.Parallel()
	tool := filepath.Join(t.TempDir(), "ratelimitgen.exe")
	if out, err := exec.Command("go", "build", "-o", tool, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	dir := vetted(t, map[string]string{
		"pay/pay.go":       paySource,
		"pay/pay_test.go":  "package pay\n\nfunc charge(s *Service) { _ = s.Charge() }\n",
		"wire/wire.go":     wireSource,
		"bypass/bypass.go": bypassSource,
		"stale/p.go":       strings.Replace(limitedSource, "package p", "package stale", 1),
	})
	goVet := func(args ...string) (string, error) {
		cmd := exec.Command("go", append([]string{"vet", "-vettool=" + tool}, args...)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, name := range []string{"./wire", "./stale"} {
		if out, err := goVet(name); err != nil || out != "" {
			t.Errorf("go vet %s: %v\n%s", name, err, out)
		}
	}
	relative := exec.Command("go", "vet", "-vettool="+tool, "./wire")
	relative.Dir = dir
	relative.Env = append(os.Environ(), "GOWORK=off", "RATELIMITGEN_CACHE=here")
	if out, err := relative.CombinedOutput(); err == nil || strings.Count(string(out), "ratelimitgen: RATELIMITGEN_CACHE is not an absolute path: here; set it to one, or to \"off\"\n") != 1 {
		t.Errorf("go vet with a relative RATELIMITGEN_CACHE: %v\n%s", err, out)
	}
	writeFile(t, filepath.Join(dir, "stale/p.go"), []byte(strings.Replace(limitedSource, "package p", "package stale", 1)+"\n//ratelimit:max=1\nfunc F() error { return nil }\n"))
	writeFile(t, filepath.Join(dir, "typo/p.go"), []byte("package typo\n\n//ratelimit:max=1 windw=1m\nfunc F() error { return nil }\n"))
	writeFile(t, filepath.Join(dir, "typo/p_plan9.go"), []byte("package typo\n\n//ratelimit:maxx=1\nfunc G() error { return nil }\n"))
	writeFile(t, filepath.Join(dir, "typo/p_test.go"), []byte("package typo_test\n\n//ratelimit:max=1\nfunc g() error { return nil }\n"))
	out, err := goVet("./...")
	if err == nil {
		t.Error("go vet found nothing")
	}
	for _, want := range []string{
		"bypass/bypass.go:5:46: " + bypassMessage + "\n",
		"pay/pay.go:8:44: " + selfMessage + "\n",
		"stale/ratelimit_gen.go:15:1: the file does not say what the directives do, from here on; run ratelimitgen [stale-output]\n",
		"typo/p.go:3:19: unknown option \"windw\" of limit; did you mean \"window\"?",
		"typo/p_test.go:3:1: directives in test files have no effect",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("go vet does not print %q", want)
		}
	}
	if lines := strings.Count(out, ".go:"); lines != 5 { // what other builds have is a warning, which go vet does not know
		t.Errorf("%d problems instead of 5", lines)
	}
	if t.Failed() {
		t.Log(out)
	}
	if out, err := goVet("-ratelimit.tests", "-ratelimit.allow=example.com/m/pay.Service.Twice", "./pay"); err == nil || !strings.Contains(out, "pay/pay_test.go:3:33: "+bypassMessage) || strings.Contains(out, selfMessage) {
		t.Errorf("with flags: %v\n%s", err, out)
	}
}

func TestVetDoesNotWaitForAPipeInTheWay(t *testing.T) {
	t.Parallel()
	dir := module(t, map[string]string{"p/p.go": limitedSource})
	if err := syscall.Mkfifo(filepath.Join(dir, "p", generator.OutputName), 0o600); err != nil {
		t.Fatal(err)
	}
	const want = "p/ratelimit_gen.go:1:1: error: this is not a file but stands where the output should go; move it away [irregular-file]\n" +
		"ratelimitgen: no code was vetted; move away first what is not a file\n"
	if code, _, stderr := vet(t, dir, "./..."); code != exitProblem || stderr != want {
		t.Errorf("exit status %d, printed %q, want %q", code, stderr, want)
	}
}
