package generator

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/dave/jennifer/jen"

	rlparser "github.com/ratelimitgen/ratelimitgen/parser"
)

const amountSource = `package main

const scale = 4
const wide int64 = 1 << 40

type Units uint64

type Service struct{}

func limitOf(n int64) int64 { return n }

func (s *Service) Do(n, m int64, u uint64, small int8, k uint32, i int, units Units, f float64, sizes []uint64) error { return nil }
`

// amountMain calls the functions with the least and with the greatest numbers.
const amountMain = `
func main() {
	least, greatest := int64(math.MinInt64), int64(math.MaxInt64)
	call(0, least, -1, 0, math.MinInt8, 0, math.MinInt, 0, math.Inf(-1), nil)
	call(1, greatest, 2, math.MaxUint64, math.MaxInt8, math.MaxUint32, math.MaxInt, math.MaxUint64, 1e19, []uint64{math.MaxUint64, 1})
	call(2, 7, 0, 8, 9, 10, 11, 12, math.NaN(), []uint64{1, 2})
}
`

// TestAmountsDoNotWrapAround tests costs and limits at the bounds of their types: an
// amount that wrapped around would charge nothing, or admit nothing.
func TestAmountsDoNotWrapAround(t *testing.T) {
	t.Parallel()
	const least, greatest, finite = "-9223372036854775808", "9223372036854775807", "9223372036854775806"
	cases := []struct {
		expr string
		// The cost, and the limit where it is another, for each call in amountMain.
		cost, limit [3]string
	}{
		{expr: "n", cost: [3]string{least, greatest, "7"}},
		{expr: "limitOf(n)", cost: [3]string{least, greatest, "7"}},
		{expr: "u > 8 ? n : 1", cost: [3]string{"1", greatest, "1"}},
		{expr: "max(n, 1)", cost: [3]string{"1", greatest, "7"}},
		{expr: "-n", cost: [3]string{greatest, "-9223372036854775807", "-7"}, limit: [3]string{finite, "-9223372036854775807", "-7"}},
		{expr: "abs(n)", cost: [3]string{greatest, greatest, "7"}, limit: [3]string{finite, finite, "7"}},
		{expr: "n / m", cost: [3]string{greatest, "4611686018427387903", "-1"}, limit: [3]string{finite, "4611686018427387903", "-1"}},
		{expr: "n / -1", cost: [3]string{greatest, "-9223372036854775807", "-7"}, limit: [3]string{finite, "-9223372036854775807", "-7"}},
		{expr: "n / 2", cost: [3]string{"-4611686018427387904", "4611686018427387903", "3"}},
		{expr: "n + 1", cost: [3]string{"-9223372036854775807", greatest, "8"}, limit: [3]string{"-9223372036854775807", finite, "8"}},
		{expr: "max(n + 1, 1)", cost: [3]string{"1", greatest, "8"}, limit: [3]string{"1", finite, "8"}},
		{expr: "let x = n * 2; x", cost: [3]string{least, greatest, "14"}, limit: [3]string{least, finite, "14"}},
		{expr: "u", cost: [3]string{"0", greatest, "8"}, limit: [3]string{"0", finite, "8"}},
		{expr: "units", cost: [3]string{"0", greatest, "12"}, limit: [3]string{"0", finite, "12"}},
		{expr: "-u", cost: [3]string{"0", "0", "0"}},
		{expr: "k", cost: [3]string{"0", "4294967295", "10"}},
		{expr: "i", cost: [3]string{least, greatest, "11"}},
		{expr: "-small", cost: [3]string{"127", "-127", "-9"}},
		{expr: "abs(small)", cost: [3]string{"127", "127", "9"}},
		{expr: "int8(n)", cost: [3]string{"-128", "127", "7"}},
		{expr: "int32(u)", cost: [3]string{"0", "2147483647", "8"}},
		{expr: "int64(u)", cost: [3]string{"0", greatest, "8"}, limit: [3]string{"0", finite, "8"}},
		{expr: "uint64(n)", cost: [3]string{"0", greatest, "7"}, limit: [3]string{"0", finite, "7"}},
		{expr: "uint8(small)", cost: [3]string{"0", "127", "9"}},
		{expr: "int64(small) + 1", cost: [3]string{"-127", "128", "10"}},
		{expr: "int(f)", cost: [3]string{least, greatest, "-1"}, limit: [3]string{least, finite, "-1"}},
		{expr: "int64(f * 2.0) / 2", cost: [3]string{"-4611686018427387904", "4611686018427387903", "-1"}},
		{expr: "int(f) ?? 5", cost: [3]string{least, greatest, "5"}, limit: [3]string{least, finite, "5"}},
		{expr: "sum(sizes)", cost: [3]string{"0", greatest, "3"}, limit: [3]string{"0", finite, "3"}},
		{expr: "sum(sizes, int(#) * 2)", cost: [3]string{"0", greatest, "6"}, limit: [3]string{"0", finite, "6"}},
		{expr: "m + scale * 2 - wide * scale", cost: [3]string{"-4398046511097", "-4398046511094", "-4398046511096"}},
		{expr: "n % 16", cost: [3]string{"0", "15", "7"}},
		{expr: "len(sizes)", cost: [3]string{"0", "2", "2"}},
	}
	pkg := keyPackage(t, amountSource+"\nfunc main() {}\n")
	f, m, scope := keyTarget(t, pkg, "Service", "Do")
	type function struct {
		name   string
		render func() (*jen.Statement, []keyArg)
	}
	var functions []function
	for i, c := range cases {
		_, x, problems := expression{"cost", c.expr}.parse(scope)
		_, limit, _ := expression{"cost", c.expr}.parse(scope)
		if x == nil {
			t.Fatalf("%s: %+v", c.expr, problems)
		}
		m.Policies = append(m.Policies, &rlparser.Policy{CostExpr: x, MaxExpr: limit})
		keyImports(f.imports, m.Policies[len(m.Policies)-1])
		functions = append(functions,
			function{fmt.Sprintf("cost%d", i), func() (*jen.Statement, []keyArg) { return f.amountFunc(m, fmt.Sprintf("cost%d", i), x) }},
			function{fmt.Sprintf("limit%d", i), func() (*jen.Statement, []keyArg) { return f.amountFunc(m, fmt.Sprintf("limit%d", i), limit) }})
	}
	f.imports.add("fmt", "fmt")
	f.imports.add("math", "math")
	f.imports.allot(f.scope)
	var out bytes.Buffer
	out.WriteString("package main\n\n" + f.imports.decl() + amountMain)
	calls := "func call(input int, n, m int64, u uint64, small int8, k uint32, i int, units Units, f float64, sizes []uint64) {\n"
	params := []string{"n", "m", "u", "small", "k", "i", "units", "f", "sizes"}
	for _, fn := range functions {
		decl, args := fn.render()
		if err := decl.Render(&out); err != nil {
			t.Fatal(err)
		}
		list := ""
		for _, a := range args {
			list += params[a.param] + ", "
		}
		out.WriteString("\n\n")
		calls += fmt.Sprintf("\tfmt.Println(\"amount %s\", input, %s(%s))\n", fn.name, fn.name, list)
	}
	out.WriteString(calls + "}\n")
	values := runKeys(t, map[string]string{"a.go": amountSource, "keys.go": out.String()})
	for i, c := range cases {
		if c.limit[0] == "" {
			c.limit = c.cost
		}
		for j := range c.cost {
			if got := values[fmt.Sprintf("amount cost%d %d", i, j)]; got != c.cost[j] {
				t.Errorf("call %d: the cost %s is %s, not %s", j, c.expr, got, c.cost[j])
			}
			if got := values[fmt.Sprintf("amount limit%d %d", i, j)]; got != c.limit[j] {
				t.Errorf("call %d: the limit %s is %s, not %s", j, c.expr, got, c.limit[j])
			}
		}
	}
}
