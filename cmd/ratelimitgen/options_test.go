package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ratelimitgen/ratelimitgen/generator"
	"github.com/ratelimitgen/ratelimitgen/parser/directive"
)

// variants holds for each verb and option what a method may say with it, in pairs
// that differ in nothing else.
var variants = map[string][2]string{
	"limit max":        {"max=1", "max=2"},
	"limit window":     {"window=1h", "window=2h"},
	"limit key":        {"key=s", "key=n"},
	"limit algorithm":  {"algorithm=sliding-log", "algorithm=sliding-window"},
	"limit burst":      {"algorithm=token-bucket burst=1", "algorithm=token-bucket burst=2"},
	"limit initial":    {"algorithm=token-bucket initial=0", "algorithm=token-bucket initial=1"},
	"limit refill":     {"algorithm=token-bucket refill=smooth", "algorithm=token-bucket refill=interval"},
	"limit warmup":     {"algorithm=token-bucket warmup=1s", "algorithm=token-bucket warmup=2s"},
	"limit segments":   {"algorithm=sliding-window segments=2", "algorithm=sliding-window segments=3"},
	"limit align":      {"algorithm=fixed-window align=day", "algorithm=fixed-window align=hour"},
	"limit tz":         {"algorithm=fixed-window align=day tz=UTC", "algorithm=fixed-window align=day tz=Europe/Paris"},
	"limit cost":       {"cost=1", "cost=n"},
	"limit cost-after": {"cost-after=len(out)", "cost-after=n"},
	"limit count":      {"count=`err != nil`", "count=`err == nil`"},
	"limit when":       {"when=`n > 0`", "when=`n > 1`"},
	"limit unless":     {"unless=`n > 0`", "unless=`n > 1`"},
	"limit lock":       {"lock=1m", "lock=1m,2m"},
	"limit lease":      {"algorithm=concurrency lease=2s", "algorithm=concurrency lease=3s"},
	"limit on-limit":   {"on-limit=error", "on-limit=fallback:F"},
	"limit max-wait":   {"on-limit=wait max-wait=20s", "on-limit=wait max-wait=30s"},
	"limit max-queue":  {"on-limit=wait max-queue=1", "on-limit=wait max-queue=2"},
	"limit on-empty":   {"key=s on-empty=skip", "key=s on-empty=shared"},
	"limit on-error":   {"on-error=allow", "on-error=deny"},
	"limit mode":       {"mode=shadow", "mode=off"},
	"limit name":       {"name=a", "name=b"},
	"limit group":      {"group=a", "group=b"},
	"limit store":      {"store=a", "store=b"},
	"limit message":    {"message=a", "message=b"},
	"limit status":     {"status=420", "status=503"},
	"limit use":        {"use=one", "use=two"},
}

const optionSource = `%s
package p

import "context"

%s
type T struct{}

//ratelimit:%s
func (T) M(ctx context.Context, s string, n int) (out string, err error) { return "", nil }

%s
func (T) F(ctx context.Context, s string, n int) (out string, err error) { return "", nil }
`

// TestEveryOptionChangesWhatIsGenerated walks the registry, so that an option that
// is accepted and then ignored cannot be added.
func TestEveryOptionChangesWhatIsGenerated(t *testing.T) {
	t.Parallel()
	defines := "//ratelimit:define name=one max=1\n//ratelimit:define name=two max=2"
	files := map[string]string{}
	var cases []string
	add := func(name string, a, b string) {
		dir := regexp.MustCompile(`[^a-z]`).ReplaceAllString(name, "_")
		files["a/"+dir+"/p.go"], files["b/"+dir+"/p.go"] = a, b
		cases = append(cases, dir)
	}
	for _, v := range directive.Verbs() {
		for _, o := range v.Options {
			name := v.Name + " " + o.Name
			pair, ok := variants[name]
			switch v.Name {
			case directive.VerbLimit:
				if !ok {
					t.Errorf("the option %s has no variants here", name)
				}
				var sources [2]string
				for i, text := range pair {
					head := ""
					if strings.HasPrefix(text, "use=") {
						// Both defines must be used by somebody.
						head = defines
						text += fmt.Sprintf("\n//ratelimit:window=3h key=s use=%s", map[int]string{0: "two", 1: "one"}[i])
					}
					sources[i] = fmt.Sprintf(optionSource, head, "", text, "")
				}
				add(name, sources[0], sources[1])
			case directive.VerbWrapper:
				value := map[string]string{"name": "Limited", "constructor": "Limit", "implements": "I"}[o.Name]
				const declared = "type I interface{ F(ctx context.Context, s string, n int) (out string, err error) }\n\n"
				add(name, fmt.Sprintf(optionSource, "", declared, "max=1", ""),
					fmt.Sprintf(optionSource, "", declared+"//ratelimit:wrapper "+o.Name+"="+value, "max=1", ""))
			case directive.VerbDefine:
				if o.Name == "name" {
					continue // by which it is used
				}
				pair := variants["limit "+o.Name]
				add(name, fmt.Sprintf(optionSource, "//ratelimit:define name=d "+pair[0], "", "use=d", ""),
					fmt.Sprintf(optionSource, "//ratelimit:define name=d "+pair[1], "", "use=d", ""))
			case directive.VerbDefaults:
				pair := variants["limit "+o.Name]
				add(name, fmt.Sprintf(optionSource, "//ratelimit:defaults "+pair[0], "", "limit", ""),
					fmt.Sprintf(optionSource, "//ratelimit:defaults "+pair[1], "", "limit", ""))
			default:
				t.Errorf("the verb of %s is not tested here", name)
			}
		}
	}
	add("defaults", fmt.Sprintf(optionSource, "//ratelimit:defaults max=1", "", "window=1h", ""),
		fmt.Sprintf(optionSource, "//ratelimit:defaults max=2", "", "window=1h", ""))
	add("off", fmt.Sprintf(optionSource, "", "//ratelimit:max=7", "max=1 window=1s", ""),
		fmt.Sprintf(optionSource, "", "//ratelimit:max=7", "max=1 window=1s", "//ratelimit:off"))

	dir := module(t, files)
	if code, _, stderr := ratelimitgen(t, dir, "./..."); code != exitDone {
		t.Fatalf("exit status %d:\n%s", code, stderr)
	}
	for _, name := range cases {
		a, b := generated(t, dir, "a", name), generated(t, dir, "b", name)
		if a == b {
			t.Errorf("%s changes nothing:\n%s", name, a)
		}
	}
}

// generated reads the output of a package without what merely quotes directives.
func generated(t *testing.T, dir, side, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, side, name, generator.OutputName))
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "//") && !strings.Contains(line, "Directive:") {
			kept = append(kept, strings.ReplaceAll(line, "/"+side+"/", "/"))
		}
	}
	return strings.Join(kept, "")
}
