package keyexpr

import (
	"strings"

	"github.com/expr-lang/expr/ast"
)

// goCalls are functions of Go's library with what to write instead: $x, $y and $z stand
// for the arguments.
var goCalls = map[string]string{
	"strings.ToLower":        "lower($x)",
	"strings.ToUpper":        "upper($x)",
	"strings.TrimSpace":      "trim($x)",
	"strings.Trim":           "trim($x, $y)",
	"strings.TrimPrefix":     "trimPrefix($x, $y)",
	"strings.TrimSuffix":     "trimSuffix($x, $y)",
	"strings.ReplaceAll":     "replace($x, $y, $z)",
	"strings.Split":          "split($x, $y)",
	"strings.Join":           "join($x, $y)",
	"strings.Contains":       "$x contains $y",
	"strings.HasPrefix":      "$x startsWith $y",
	"strings.HasSuffix":      "$x endsWith $y",
	"strings.EqualFold":      "lower($x) == lower($y)",
	"slices.Contains":        "$y in $x",
	"fmt.Sprint":             "string($x)",
	"strconv.Itoa":           "string($x)",
	"strconv.FormatInt":      "string($x)",
	"strconv.FormatBool":     "string($x)",
	"math.Abs":               "abs($x)",
	"math.Ceil":              "ceil($x)",
	"math.Floor":             "floor($x)",
	"math.Round":             "round($x)",
	"math.Max":               "max($x, $y)",
	"math.Min":               "min($x, $y)",
	"utf8.RuneCountInString": "len($x)",
}

// goPackages are packages of Go's library that a call may name without an import.
const goPackages = " bytes context errors fmt hex io maps math net netip os regexp rand slices sha256 sql strconv strings time unicode url utf8 "

// goCall reports the call of a function of another package; ok is false if nothing of
// that name is known.
func (c *checker) goCall(n *ast.CallNode, id *ast.IdentifierNode, name string) (ok bool) {
	pkg := c.text.name(id)
	write := goCalls[pkg+"."+name]
	switch {
	case write != "" && strings.Count(write, "$") <= len(n.Arguments):
		c.at(id, goFunction, pkg, "write "+c.filled(write, n.Arguments))
	case c.imported(pkg):
		c.at(id, isImport, pkg)
	case strings.Contains(goPackages, " "+pkg+" "):
		c.at(id, goFunction, pkg, "write one that calls it")
	default:
		return false
	}
	return true
}
