package keyexpr

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestWorkIsBounded repeats every kind of token as often as an expression has room for.
// What is allocated stands for the work, which a busy machine does not change. It does
// not run beside other tests, whose memory would be counted too.
func TestWorkIsBounded(t *testing.T) {
	const (
		most      = 8 << 20 // bytes
		mostTimes = 30_000
	)
	for _, c := range []struct{ begin, again, end string }{
		{"", "@a ", ""}, {"", "@a.b ", ""}, {"", "@", ""}, {"", "@a.b() + ", "n"}, {"'", "@", "'"},
		{"", "T(a) ", ""}, {"", "T(a).b()+", "n"}, {"", "Math.f(n)+", "n"},
		{"", ".?[a] ", ""}, {"", "req.Tags.?[a]+", "n"}, {"", ".![a] ", ""}, {"", ".^[a] ", ""}, {"", ".$[a] ", ""},
		{"", "#a ", ""}, {"", "# ", ""}, {"", "#", ""}, {"", "#n+", "n"}, {"", "#this ", ""}, {"any(req.Tags, ", "# ", ")"},
		{"", "eq ", ""}, {"", "n eq ", "n"}, {"", "n mod ", "n"}, {"", "AND ", ""}, {"", "matches AND ", "matches"}, {"", "NOT ", "matches"},
		{"", "'it''s' ", ""}, {"", "''", ""}, {"", `'a'"b"`, ""}, {"", "`a`", ""}, {"", "b'a' ", ""}, {"", "'a'+", "'a'"}, {"'", "a", "'"},
		{"", "a?.", "a"}, {"req", "?.Acct", ".ID"}, {"req", ".a", ""}, {"req", "[0]", ""}, {"", "a[", ""}, {"", "id()", ""},
		{"", "not ", "matches"}, {"", "!", "matches"}, {"", "- ", "n"}, {"", "-", "n"}, {"", "+", "n"}, {"", "! ", "matches"},
		{"", "in ", ""}, {"", "n in ", "n"}, {"", "not in ", ""}, {"", "n not in ", "n"}, {"n in [", "n,", "n]"}, {"n in [", "1,", "1]"},
		{"", "matches ", ""}, {"", "id matches ", "'a'"}, {"", "contains ", ""}, {"", "id startsWith ", "id"},
		{"", "id|", "id"}, {"id", "|lower()", ""}, {"", "::", ""}, {"", ":", ""}, {"", ";", ""}, {"", "id;", "id"},
		{"", ",", ""}, {"", "id,", "id"}, {"[", "id,", "id]"}, {"tenantOf(", "id,", "id)"}, {"", "id,,", "id"},
		{"", "=", ""}, {"", "n=", "n"}, {"", "n==", "n"}, {"", "n<", "n"}, {"", "matches and ", "matches"}, {"", "matches||", "matches"},
		{"", "n==1 or ", "matches"}, {"", "n!=1 and n!=2 and ", "matches"}, {"", "1..", "1"}, {"", "n**", "n"}, {"", "n/", "n"}, {"", "n%", "n"},
		{"", "??", ""}, {"", "id??", "id"}, {"", "?:", ""}, {"", "id?:", "id"}, {"", "matches?id:", "id"}, {"", "matches?", "id"},
		{"", "let a=n;", "a"}, {"", "let ", "a"}, {"", "if ", ""}, {"", "else ", ""}, {"", "if matches {n} else ", "n"},
		{"", "#{", ""}, {"", "#{a} ", ""}, {"", "${", ""}, {"", "${a} ", ""}, {"", "{a} ", ""}, {"", "{n}.contains(n) ", ""}, {"any(req.Tags", ",{#}", ")"},
		{"", "n between {1} ", ""}, {"", "n instanceof ", "n"}, {"", "new a ", ""}, {"", "()", ""}, {"", "[]", ""}, {"", "{}", ""}, {"", ")", ""},
		{"", "9", ""}, {"", "9 ", ""}, {"", "9+", "9"}, {"", "99999999999999999999 ", ""}, {"", "1e9 ", ""}, {"", "0x1+", "0"},
		{"", "a ", ""}, {"", "a", ""}, {"", "nope+", "n"}, {"", "ï", ""}, {"", "~", ""}, {"", "&", ""}, {"", "/*a*/", "n"}, {"", "//a\n", "n"}, {"", " ", "n"},
		{"", "lower(id)+", "id"}, {"", "any(req.Tags,true) or ", "matches"}, {"", "count(req.Items,qty>1)+", "n"},
	} {
		src := c.begin + strings.Repeat(c.again, (maxText-len(c.begin+c.end))/len(c.again)) + c.end
		for _, kind := range []string{"key", "when", "count", "cost"} {
			scope := scopeOf(t, "Service", "Do")
			var problems []Problem
			least := time.Hour
			var before, after runtime.MemStats
			for i := 0; i < 3 && least > 100*time.Millisecond; i++ { // one of them is not disturbed
				runtime.ReadMemStats(&before)
				start := time.Now()
				_, problems = parseAs(kind, src, scope)
				least = min(least, time.Since(start))
				runtime.ReadMemStats(&after)
			}
			if bytes, times := after.TotalAlloc-before.TotalAlloc, after.Mallocs-before.Mallocs; bytes > most || times > mostTimes {
				t.Errorf("%q, again and again, as %s: %d bytes allocated, %d times", c.begin+c.again+c.end, kind, bytes, times)
			}
			if least > 100*time.Millisecond {
				t.Errorf("%q, again and again, as %s: took %v", c.begin+c.again+c.end, kind, least)
			}
			if len(problems) > maxProblems {
				t.Errorf("%q, again and again, as %s: %d problems", c.begin+c.again+c.end, kind, len(problems))
			}
			inside(t, src, problems)
		}
	}
}

// TestNamesThatDoubleAreBounded gives names to what uses the name before twice: written
// out, that is as large as there are ends of a tree.
func TestNamesThatDoubleAreBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ first, op, end, code string }{
		{"id", "+", "%s", tooLargeWritten.code},
		{"lower(id)", "+", "[id, %s]", tooLargeWritten.code},
		{"n", "+", "%s", tooLargeWritten.code},
		{"n * 3", "*", "%s", tooLargeWritten.code},
		{"req.UserID", "??", "%s", tooLargeWritten.code},
		{"'a'", "+", "[id, %s]", longText.code},
		{"1.5", "*", "[id, n > int(%s)]", overflow.code},
	} {
		src := "let x0 = " + c.first + "; "
		for i := 1; i < 45; i++ {
			src += fmt.Sprintf("let x%d = x%d %s x%d; ", i, i-1, c.op, i-1)
		}
		src += fmt.Sprintf(c.end, "x44")
		var problems []Problem
		least := time.Hour
		for i := 0; i < 3 && least > 100*time.Millisecond; i++ { // one of them is not disturbed
			start := time.Now()
			_, problems = ParseKey(src, scopeOf(t, "Service", "Do"))
			least = min(least, time.Since(start))
		}
		if least > 100*time.Millisecond {
			t.Errorf("%s: took %v", src, least)
		}
		if len(problems) != 1 || problems[0].Code != c.code {
			t.Errorf("%s: %v, want %s", src, problems, c.code)
		}
	}
	if _, problems := ParseKey("let a = lower(trim(id)); let b = a + '/' + req.UserID; let c = b + a; [b, c]", scopeOf(t, "Service", "Do")); problemsOf(problems) != "" {
		t.Errorf("few names: %v", problems)
	}
}

func problemsOf(problems []Problem) (codes string) {
	for _, p := range problems {
		if !p.Warning {
			codes += p.Code + " "
		}
	}
	return codes
}

func TestOneErrorIsReportedForAPlace(t *testing.T) {
	t.Parallel()
	for _, src := range []string{"id|id", "id | id", "::::", "####", "[ip, ip]", "id in [nope, nope]"} {
		_, problems := ParseKey(src, scopeOf(t, "Service", "Do"))
		for i, p := range problems {
			if slices.ContainsFunc(problems[:i], func(q Problem) bool { return p.From == q.From && p.To == q.To }) {
				t.Errorf("%s: two problems for one place: %v", src, problems)
			}
		}
	}
}

func TestAnErrorIsReportedThoughManyWarningsStandBeforeIt(t *testing.T) {
	t.Parallel()
	src := strings.Repeat("id + string(n), ", maxProblems) + "nope"
	_, problems := ParseKey(src, scopeOf(t, "Service", "Do"))
	if len(problems) != maxProblems || problems[maxProblems-1].Code != unknownName.code {
		t.Errorf("%v", problems)
	}
}
