// Loadsyntax loads the packages of the current directory with their syntax and
// types, as generators commonly do, and nothing more. It is what the generation
// benchmark compares ratelimitgen with.
package main

import (
	"fmt"
	"os"

	"golang.org/x/tools/go/packages"
)

func main() {
	pkgs, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax}, "./...")
	if err != nil {
		fmt.Fprintln(os.Stderr, "loadsyntax:", err)
		os.Exit(1)
	}
	if packages.PrintErrors(pkgs) > 0 {
		os.Exit(1)
	}
	fmt.Println(len(pkgs), "packages")
}
