package keyexpr

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// asked is a condition on one value, and whether it holds for each that the value may
// have; the last is none.
type asked struct {
	text  string
	holds []bool
}

// askRandomly writes a condition on x that has depth operators at most. values holds
// what x may be, as less compares it, and spell writes a literal.
func askRandomly(r *rand.Rand, x string, values, literals []string, less func(a, b string) bool, spell func(string) string, depth int) asked {
	sub := func() asked { return askRandomly(r, x, values, literals, less, spell, depth-1) }
	combine := func(text string, a, b asked, f func(a, b bool) bool) asked {
		c := asked{text: text, holds: make([]bool, len(a.holds))}
		for i := range c.holds {
			c.holds[i] = f(a.holds[i], b.holds[i])
		}
		return c
	}
	if depth > 0 {
		switch r.IntN(4) {
		case 0:
			a := sub()
			return combine("not ("+a.text+")", a, a, func(a, _ bool) bool { return !a })
		case 1:
			a, b := sub(), sub()
			return combine("("+a.text+") or ("+b.text+")", a, b, func(a, b bool) bool { return a || b })
		default:
			a, b := sub(), sub()
			return combine("("+a.text+") and ("+b.text+")", a, b, func(a, b bool) bool { return a && b })
		}
	}
	v, w := literals[r.IntN(len(literals))], literals[r.IntN(len(literals))]
	op := []string{"==", "!=", "<", "<=", ">", ">=", "in"}[r.IntN(7)]
	a := asked{text: x + " " + op + " " + spell(v)}
	if op == "in" {
		a.text = x + " in [" + spell(v) + ", " + spell(w) + "]"
	}
	for _, x := range values {
		a.holds = append(a.holds, map[string]bool{
			"==": x == v, "!=": x != v, "<": less(x, v), "<=": !less(v, x), ">": less(v, x), ">=": !less(x, v), "in": x == v || x == w,
		}[op])
	}
	a.holds = append(a.holds, op == "!=")
	return a
}

func TestConditionsThatTheirBoundsDecideAreRefused(t *testing.T) {
	t.Parallel()
	numbers := func(from, to int) (list []string) {
		for i := from; i <= to; i++ {
			list = append(list, fmt.Sprint(i))
		}
		return list
	}
	lessNumber := func(a, b string) bool {
		var x, y int
		fmt.Sscan(a, &x)
		fmt.Sscan(b, &y)
		return x < y
	}
	asIs := func(s string) string { return s }
	texts := []string{"", "\x00", "a", "a\x00", "aa", "b", "b\x00", "c"}
	lessText := func(a, b string) bool { return a < b }
	for _, v := range []struct {
		x                string
		absent           bool
		values, literals []string
		less             func(a, b string) bool
		spell            func(string) string
	}{
		{"n", false, numbers(-5, 9), numbers(-1, 5), lessNumber, asIs},
		{"len(id)", false, numbers(0, 9), numbers(-1, 4), lessNumber, asIs},
		{"req.Shard", true, numbers(0, 9), numbers(0, 4), lessNumber, asIs},
		{"req.Ints[0]", true, numbers(-128, 127), []string{"-128", "-127", "0", "1", "126", "127"}, lessNumber, asIs},
		{"id", false, texts, []string{"", "a", "b"}, lessText, strconv.Quote},
		{"req.UserID", true, texts, []string{"", "a", "b"}, lessText, strconv.Quote},
	} {
		t.Run(v.x, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(1, 2))
			refused := 0
			for range 1000 {
				a := askRandomly(r, v.x, v.values, v.literals, v.less, v.spell, r.IntN(4))
				holds := a.holds
				if !v.absent {
					holds = holds[:len(holds)-1]
				}
				_, problems := ParseCondition(a.text, scopeOf(t, "Service", "Do"))
				constant := !slices.Contains(holds, !holds[0])
				errors := slices.DeleteFunc(slices.Clone(problems), func(p Problem) bool { return p.Warning })
				switch {
				case constant && len(errors) == 0:
					t.Fatalf("%s: accepted, though it is always %v", a.text, holds[0])
				case len(errors) == 0:
				case errors[0].Code != "constant-expression":
					// A part stands there twice.
				default:
					refused++
					if part := a.text[errors[0].From:errors[0].To]; part == a.text && !constant && !strings.Contains(errors[0].Message, "wherever") {
						t.Fatalf("%s: %s, but it holds for some values alone: %v", a.text, errors[0].Message, holds)
					}
				}
			}
			if refused < 50 {
				t.Errorf("only %d are refused", refused)
			}
		})
	}
}
