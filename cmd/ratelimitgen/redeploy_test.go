package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// release is a method with limits, as one release of a program has it, and what
// becomes of some calls of it.
type release struct {
	method string // Do if empty
	limits string // lines of directives
	calls  string // "+" for each that is admitted, "-" for each that is refused
}

// TestCountersOutliveAReleaseWithOtherLimits runs a release of a program, the next
// one, and the first again, with one Redis server: what one counted counts in the
// others.
func TestCountersOutliveAReleaseWithOtherLimits(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name         string
		first, later release
		back         string // what becomes of calls of the first, when it runs again
	}{
		{"raised", release{"", "max=3 window=1h key=id", "+++-"}, release{"", "max=5 window=1h key=id", "++-"}, "-"},
		{"lowered", release{"", "max=5 window=1h key=id", "+++"}, release{"", "max=2 window=1h key=id", "-"}, "++-"},
		{"raisedwindow", release{"", "max=3 window=1h algorithm=fixed-window key=id", "+++-"},
			release{"", "max=5 window=1h algorithm=fixed-window key=id", "++-"}, "-"},
		{"raisedbucket", release{"", "max=3 window=100h algorithm=token-bucket key=id", "+++-"},
			release{"", "max=3 window=100h burst=5 algorithm=token-bucket key=id", "++-"}, "-"},
		{"unchanged", release{"", "max=4 window=1h key=id", "++"}, release{"", "max=4 window=1h key=id", "+"}, "+-"},
		{"fromdefine", release{"", "max=3 window=1h key=id", "++"}, release{"", "use=standard", "+-"}, "-"},
		{"longer", release{"", "max=3 window=1h key=id", "++"}, release{"", "max=3 window=2h key=id", "+-"}, "-"},
		{"words", release{"", "max=3 window=1h key=id", "++"},
			release{"", "max=3 window=1h key=id message=no status=503 on-error=deny", "+-"}, "-"},
		{"watched", release{"", "max=2 window=1h key=id mode=shadow", "+++"}, release{"", "max=2 window=1h key=id", "-"}, "+"},
		{"moved", release{"", "max=3 window=1h key=id\nmax=9 window=24h key=id", "++"},
			release{"", "max=9 window=24h key=id\nmax=3 window=1h key=id", "+-"}, "-"},
		{"inserted", release{"", "max=9 window=24h key=id\nmax=3 window=1h key=id", "++"},
			release{"", "max=9 window=24h key=id\nmax=5 window=2h key=id\nmax=3 window=1h key=id", "+-"}, "-"},
		{"retuned", release{"", "max=9 window=24h key=id\nmax=3 window=1h key=id", "+++-"},
			release{"", "max=8 window=24h key=id\nmax=5 window=1h key=id", "+"}, "-"},
		{"renamed", release{"Do", "max=4 window=1h key=id name=renamed", "++"},
			release{"Make", "max=4 window=1h key=id name=renamed", "+"}, "+-"},
		{"grouped", release{"Do", "max=4 window=1h key=id group=both", "++"},
			release{"Make", "max=4 window=1h key=id group=both", "+"}, "+-"},
		// These count something else, and so begin anew.
		{"othermethod", release{"Do", "max=3 window=1h key=id", "++"}, release{"Make", "max=3 window=1h key=id", "+++-"}, "+-"},
		{"othername", release{"", "max=3 window=1h key=id name=a-name", "++"},
			release{"", "max=3 window=1h key=id name=b-name", "+++-"}, "+-"},
		{"otheralgorithm", release{"", "max=3 window=1h key=id", "++"},
			release{"", "max=3 window=1h key=id algorithm=fixed-window", "+++-"}, "+-"},
	}
	dir := t.TempDir()
	writeModule(t, dir)
	addSums(t, dir)
	env := []string{redisEnv + "=" + startRedis(t)}
	for run := range 3 {
		var imports, calls, want strings.Builder
		for _, c := range cases {
			r := []release{c.first, c.later, {c.first.method, c.first.limits, c.back}}[run]
			method := cmp.Or(r.method, "Do")
			writeFile(t, filepath.Join(dir, c.name, c.name+".go"), releaseSource(c.name, method, r.limits))
			fmt.Fprintf(&imports, "\t\"example.com/m/%s\"\n", c.name)
			fmt.Fprintf(&calls, "\tshow(%q, %s.NewRateLimitedService(%s.Service{}, limiter).%s, %d)\n",
				c.name, c.name, c.name, method, len(r.calls))
			fmt.Fprintf(&want, "%s %s\n", c.name, r.calls)
		}
		writeFile(t, filepath.Join(dir, "main.go"), fmt.Appendf(nil, releaseMain, imports.String(), redisEnv, calls.String()))
		if code, _, stderr := ratelimitgen(t, dir, "./..."); code != exitDone {
			t.Fatalf("run %d: exit status %d:\n%s", run+1, code, stderr)
		}
		out, err := goCommand(dir, env, "run", ".").CombinedOutput()
		if err != nil {
			t.Fatalf("run %d: %v\n%s", run+1, err, out)
		}
		if string(out) != want.String() {
			t.Errorf("run %d:\n%swant:\n%s", run+1, out, want.String())
		}
	}
}

func releaseSource(pkg, method, limits string) []byte {
	var define, directives strings.Builder
	for limit := range strings.SplitSeq(limits, "\n") {
		fmt.Fprintf(&directives, "//ratelimit:%s\n", limit)
		if strings.Contains(limit, "use=standard") {
			define.WriteString("//ratelimit:define name=standard max=3 window=1h key=id\n")
		}
	}
	return fmt.Appendf(nil, `%spackage %s

import "context"

type Service struct{}

%sfunc (Service) %s(ctx context.Context, id string) error { return nil }
`, define.String(), pkg, directives.String(), method)
}

const releaseMain = `package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

%s	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
	"github.com/redis/go-redis/v9"
)

func main() {
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: os.Getenv(%q)})
	defer client.Close()
	limiter := ratelimit.New(ratelimit.WithStore("", redisstore.New(client, redisstore.WithTimeout(10*time.Second))))
%s}

func show(name string, method func(context.Context, string) error, calls int) {
	fmt.Print(name, " ")
	for range calls {
		switch err := method(context.Background(), "k"); {
		case err == nil:
			fmt.Print("+")
		case errors.Is(err, ratelimit.ErrLimited):
			fmt.Print("-")
		default:
			log.Fatal(err)
		}
	}
	fmt.Println()
}
`
