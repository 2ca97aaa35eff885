package parser

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/parser/scan"
)

// Irregular reports what has the name of a source file in a directory but is none, so
// that the go command need not be started: it would read a pipe for ever. What has the
// name of an output must be a file itself, because a link would make another file the
// source of the package. Other links may lead to files, to directories, which the go
// command passes over, or nowhere, which it reports. A directory that cannot be read has
// no problem here.
func Irregular(dir string) diag.List {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var diags diag.List
	for _, e := range entries {
		name := e.Name()
		if !slices.Contains(sourceExts, filepath.Ext(name)) || name[0] == '_' || name[0] == '.' || e.Type().IsRegular() {
			continue
		}
		path := filepath.Join(dir, name)
		if scan.IsOutputName(name) {
			diags.Add(IrregularFile(path))
		} else if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
			diags.Add(errNotSource(path))
		}
	}
	return diags
}

// sourceExts are the ends of the names of files that the go command reads to find out
// whether they belong to a package: those that go/build knows.
var sourceExts = []string{".go", ".c", ".cc", ".cpp", ".cxx", ".m", ".h", ".hh", ".hpp", ".hxx", ".f", ".F", ".for", ".f90", ".s", ".S", ".sx", ".swig", ".swigcxx"}

// errNotSource is errIrregular for what stands beside the output.
func errNotSource(path string) diag.Diagnostic {
	d := IrregularFile(path)
	d.Message = "this is neither a file nor a directory but has the name of a source file, which the go command would try to read; move it away or rename it"
	return d
}
