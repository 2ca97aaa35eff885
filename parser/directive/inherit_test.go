package directive

import (
	"strconv"
	"strings"
	"testing"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
)

// resolve reads one directive from each line of a file, resolves them, and renders
// the limits, one in a line, with all that is reported.
func resolve(t *testing.T, src string) string {
	t.Helper()
	var directives []*Directive
	var diags diag.List
	for i, line := range strings.Split(strings.TrimSpace(src), "\n") {
		d, more := Parse(Prefix+strings.TrimSpace(line), diag.Pos{File: "p.go", Line: i + 1, Col: 1})
		diags.Add(more...)
		if d != nil {
			directives = append(directives, d)
		}
	}
	diags.Add(Resolve(directives)...)
	var b strings.Builder
	for _, d := range directives {
		if d.Verb != VerbLimit {
			continue
		}
		_, more := d.Limit()
		diags.Add(more...)
		sep := ""
		for _, o := range findVerb(VerbLimit).Options {
			if a := d.Option(o.Name); a != nil {
				b.WriteString(sep + a.Name + "=" + a.Value.Raw)
				sep = " "
			}
		}
		if sep == "" {
			b.WriteString("(nothing)")
		}
		b.WriteString("\n")
	}
	diags.Sort()
	return b.String() + render(diags)
}

func TestResolveTakesOptionsFromTheNearest(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, src, want string }{
		{"itself, the define, the defaults", `
			define name=d max=10 window=2s
			defaults window=3s cost=4 key=user
			limit use=d cost=9
			limit max=7
			`, "max=10 window=2s key=user cost=9 use=d\nmax=7 window=3s key=user cost=4\n"},
		{"a define after its use", `
			limit use=d
			define name=d max=1
			`, "max=1 use=d\n"},
		{"defaults only where the algorithm takes them", `
			defaults segments=5 burst=9 lease=2m
			limit algorithm=sliding-window
			limit algorithm=token-bucket
			limit algorithm=concurrency
			limit
			`, "algorithm=sliding-window segments=5\nalgorithm=token-bucket burst=9\nalgorithm=concurrency lease=2m\n(nothing)\n"},
		{"the algorithm may itself be a default", `
			defaults burst=9 algorithm=leaky-bucket
			limit
			`, "algorithm=leaky-bucket burst=9\n"},
		{"defaults only with what they need", `
			defaults tz=Asia/Tokyo max-wait=1m status=503
			limit algorithm=fixed-window align=day
			limit algorithm=fixed-window on-limit=wait
			`, "algorithm=fixed-window align=day tz=Asia/Tokyo status=503\nalgorithm=fixed-window on-limit=wait max-wait=1m status=503\n"},
		{"align excludes a window from elsewhere", `
			define name=d window=1h max=3
			defaults algorithm=fixed-window
			limit use=d align=day
			limit use=d
			`, "max=3 algorithm=fixed-window align=day use=d\nmax=3 window=1h algorithm=fixed-window use=d\n"},
		{"a window excludes align from elsewhere", `
			defaults algorithm=fixed-window align=day
			limit window=1h
			limit
			`, "window=1h algorithm=fixed-window\nalgorithm=fixed-window align=day\n"},
		{"off and wrapper inherit nothing", `
			defaults key=user
			off
			wrapper name=X
			limit
			`, "key=user\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := resolve(t, tc.src); got != tc.want {
				t.Errorf("got\n%swant\n%s", got, tc.want)
			}
		})
	}
}

// TestResolveGolden reads testdata/resolve.txt: blocks of directives, one in a
// line, after which stands what resolve makes of them.
func TestResolveGolden(t *testing.T) {
	t.Parallel()
	golden(t, "testdata/resolve.txt", func(old string) string {
		var out []string
		for _, block := range strings.Split(strings.TrimSpace(old), "\n\n") {
			var kept, src []string
			for line := range strings.SplitSeq(block, "\n") {
				switch text, ok := strings.CutPrefix(line, "\t"); {
				case strings.HasPrefix(line, "# "):
					kept = append(kept, line)
				case ok:
					kept = append(kept, line)
					src = append(src, text)
				}
			}
			got := resolve(t, strings.Join(src, "\n"))
			out = append(out, strings.Join(kept, "\n")+"\n"+got)
		}
		return strings.Join(out, "\n")
	})
}

func TestProblemsOfADefineStandInTheDefine(t *testing.T) {
	t.Parallel()
	got := resolve(t, "limit use=d\ndefine name=d max=`é`   algorithm=token-bucket burst=\"\\x30\"\nlimit use=d")
	if want := "p.go:2:68: error: burst=\"\\x30\": the least that burst can be is 1 [out-of-range]\n"; !strings.HasSuffix(got, "\n"+want) || strings.Count(got, "error") != 1 {
		t.Errorf("got\n%s", got)
	}
}

func TestResolveIsLinear(t *testing.T) {
	t.Parallel()
	linear(t, 500, func(n int) func() {
		var src strings.Builder
		for i := range n {
			src.WriteString("define name=n" + strconv.Itoa(i) + " max=1\nlimit use=n" + strconv.Itoa(i) + "\n")
		}
		return func() { resolve(t, src.String()) }
	})
}
