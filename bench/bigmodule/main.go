// Bigmodule writes a Go module of the size that a company's main repository has:
// 500 packages in 3,000 files that import one another and the standard library.
// Methods of 20 packages have ratelimit directives. The same options give the
// same bytes.
//
//	bigmodule -runtime ../ratelimitgen dir
//
// The directory must be empty or absent. The module compiles and passes go vet.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	var m module
	flag.IntVar(&m.packages, "packages", 500, "how many packages")
	flag.IntVar(&m.files, "files", 6, "how many files in each package, at least 2")
	flag.IntVar(&m.limited, "limited", 20, "how many packages have directives")
	flag.StringVar(&m.runtime, "runtime", ".", "directory of the module github.com/ratelimitgen/ratelimitgen")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: bigmodule [flags] dir")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 || m.packages < 1 || m.files < 2 || m.limited < 0 || m.limited > m.packages {
		flag.Usage()
		os.Exit(2)
	}
	if err := m.write(flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "bigmodule:", err)
		os.Exit(1)
	}
}

// module says what is written.
type module struct {
	packages, files, limited int
	runtime                  string
}

// modulePath is the path of the module that is written.
const modulePath = "example.com/bigmodule"

func (m *module) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if old, err := os.ReadDir(dir); err != nil {
		return err
	} else if len(old) > 0 {
		return fmt.Errorf("%s is not empty", dir)
	}
	runtime, err := filepath.Abs(m.runtime)
	if err != nil {
		return err
	}
	gomod, err := os.ReadFile(filepath.Join(runtime, "go.mod"))
	if err != nil {
		return err
	}
	if !strings.HasPrefix(string(gomod), "module github.com/ratelimitgen/ratelimitgen\n") {
		return fmt.Errorf("%s does not hold the module github.com/ratelimitgen/ratelimitgen", runtime)
	}
	err = writeFile(dir, "go.mod", fmt.Sprintf(`module %s

go 1.26.0

require github.com/ratelimitgen/ratelimitgen v0.0.0

replace github.com/ratelimitgen/ratelimitgen => %q
`, modulePath, runtime))
	if err != nil {
		return err
	}
	for i := range m.packages {
		p := m.newPackage(i)
		for name, src := range p.sources() {
			if err := writeFile(dir, filepath.Join(p.dir(), name), src); err != nil {
				return err
			}
		}
	}
	return nil
}

func writeFile(dir, name, text string) error {
	name = filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o644)
}
