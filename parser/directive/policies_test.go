package directive

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ratelimitgen/ratelimitgen/internal/diag"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

func TestCheckLimits(t *testing.T) {
	t.Parallel()
	const bucket, fixed, sliding = "algorithm=token-bucket ", "algorithm=fixed-window ", "algorithm=sliding-window "
	const leaky, flight = "algorithm=leaky-bucket ", "algorithm=concurrency "
	for _, tc := range []struct {
		name   string
		limits []string
		want   string // "index code" of the diagnostic, "" for none
	}{
		{"burst and sustained", []string{"max=5 window=1m", "max=100 window=1h"}, ""},
		{"the first makes the second unreachable", []string{"max=1 window=1m", "max=100 window=1h"}, "1 unreachable-policy"},
		{"the second makes the first unreachable", []string{"max=100 window=1h", "max=1 window=1m"}, "0 unreachable-policy"},
		{"exactly as much as fits", []string{"max=1 window=1m", "max=60 window=1h"}, "1 unreachable-policy"},
		{"one less than fits", []string{"max=1 window=1m", "max=59 window=1h"}, ""},
		{"a part of a window counts whole", []string{"max=2 window=1m", "max=3 window=90s"}, ""},
		{"a part of a window counts whole, and fits", []string{"max=2 window=1m", "max=4 window=90s"}, "1 unreachable-policy"},
		{"looser in a shorter window", []string{"max=5 window=1h", "max=5 window=1m key=global"}, "1 unreachable-policy"},
		{"fixed windows may meet", []string{fixed + "max=1 window=1m", "max=60 window=1h"}, ""},
		{"fixed windows may meet, and fit", []string{fixed + "max=1 window=1m", "max=61 window=1h"}, "1 unreachable-policy"},
		{"equal fixed windows never part", []string{fixed + "max=5 name=a", fixed + "max=5 name=b"}, "1 unreachable-policy"},
		{"equal fixed windows, smaller second", []string{fixed + "max=5 name=a", fixed + "max=4 name=b"}, "0 unreachable-policy"},
		{"bucket under a log", []string{bucket + "max=1 window=1s burst=5", "max=65 window=1m"}, "1 unreachable-policy"},
		{"bucket under a log, too much", []string{bucket + "max=1 window=1s burst=5", "max=64 window=1m"}, ""},
		{"bucket under a log, burst alone too much", []string{bucket + "max=1 window=1d burst=5", "max=4 window=1m"}, ""},
		{"log under a bucket", []string{"max=5 window=1m", bucket + "max=5 window=1m"}, "1 unreachable-policy"},
		{"log under a bucket that holds less", []string{"max=5 window=1m", bucket + "max=50 window=1m burst=4"}, ""},
		{"log under a bucket that is slower", []string{"max=5 window=1m", bucket + "max=4 window=1m burst=50"}, ""},
		{"fixed window under a bucket that holds one window", []string{fixed + "max=5 window=1m", bucket + "max=5 window=1m burst=9"}, ""},
		{"fixed window under a bucket that holds two", []string{fixed + "max=5 window=1m", bucket + "max=5 window=1m burst=10"}, "1 unreachable-policy"},
		{"bucket under a bucket", []string{bucket + "max=5 window=1m burst=5", bucket + "max=10 window=2m burst=5"}, "1 unreachable-policy"},
		{"bucket under a slower bucket", []string{bucket + "max=5 window=1m burst=5", bucket + "max=9 window=2m burst=50"}, ""},
		{"other key", []string{"max=1 window=1m key=ip", "max=100 window=1h key=user"}, ""},
		{"same key in other quotes", []string{"max=1 window=1m key=ip", "max=100 window=1h key=`ip`"}, "1 unreachable-policy"},
		{"global bounds each key, but a key may be absent", []string{"max=1 window=1m", "max=100 window=1h key=ip"}, ""},
		{"other cost", []string{"max=1 window=1m", "max=100 window=1h cost=2"}, ""},
		{"same cost", []string{"max=2 window=1m cost=2", "max=120 window=1h cost=2"}, "1 unreachable-policy"},
		{"same expression of cost", []string{"max=2 window=1m cost=n", "max=120 window=1h cost=`n`"}, "1 unreachable-policy"},
		{"other expression of cost", []string{"max=2 window=1m cost=n", "max=120 window=1h cost=m"}, ""},
		{"shadow refuses nothing", []string{"max=1 window=1m mode=shadow", "max=100 window=1h"}, ""},
		{"off refuses nothing", []string{"max=1 window=1m mode=off", "max=100 window=1h"}, ""},
		{"off is off on purpose", []string{"max=1 window=1m", "max=100 window=1h mode=off"}, ""},
		{"a shadow policy may be unreachable", []string{"max=1 window=1m", "max=100 window=1h mode=shadow"}, "1 unreachable-policy"},
		{"unlimited is unlimited on purpose", []string{"max=1 window=1m", "max=unlimited window=1h"}, ""},
		{"unlimited bounds nothing", []string{"max=unlimited window=1m", "max=100 window=1h"}, ""},
		{"blocked is blocked on purpose", []string{"max=blocked window=1m", "max=100 window=1h"}, ""},
		{"blocked is blocked on purpose, below", []string{"max=1 window=1m", "max=blocked window=1h"}, ""},
		{"huge numbers", []string{bucket + "max=1 window=3660d burst=1", fixed + "max=1073741824 window=3660d"}, "1 unreachable-policy"},
		{"huge windows", []string{"max=1 window=1us", fixed + "max=1073741824 window=3660d"}, ""},

		{"sliding window under a log", []string{sliding + "max=1 window=1m", "max=60 window=1h"}, "1 unreachable-policy"},
		{"log under a sliding window that counts for longer", []string{"max=10 window=1m", sliding + "max=11 window=1m"}, ""},
		{"log under a sliding window that counts for longer, and fits", []string{"max=10 window=1m", sliding + "max=20 window=1m"}, "1 unreachable-policy"},
		{"equal sliding windows", []string{sliding + "max=9 name=a", sliding + "max=10 name=b"}, "1 unreachable-policy"},
		{"sliding windows of other parts", []string{sliding + "max=10 name=a", sliding + "max=10 segments=20 name=b"}, ""},
		{"equal calendars", []string{fixed + "max=5 align=day name=a", fixed + "max=6 align=day name=b"}, "1 unreachable-policy"},
		{"calendars of other zones", []string{fixed + "max=5 align=day name=a", fixed + "max=6 align=day tz=Asia/Tokyo name=b"}, ""},
		{"calendars of other units", []string{fixed + "max=5 align=day", fixed + "max=500 align=month name=b"}, ""},
		{"a log on a calendar", []string{"max=1 window=1m", fixed + "max=100 align=minute"}, ""},
		{"a calendar under a log", []string{fixed + "max=1 align=minute", "max=100 window=1m"}, ""},
		{"calls in flight", []string{"max=1 window=1s", flight + "max=100"}, ""},
		{"calls in flight bound no rate", []string{flight + "max=1", "max=100 window=1h"}, ""},
		{"calls in flight bound no bucket", []string{flight + "max=1", bucket + "max=100 window=1h"}, ""},
		{"two of calls in flight", []string{flight + "max=1 name=a", flight + "max=2 name=b"}, "1 unreachable-policy"},
		{"two of calls in flight, other leases", []string{flight + "max=1 lease=1s name=a", flight + "max=2 name=b"}, ""},
		{"leaky buckets are not judged", []string{leaky + "max=1 window=1h", "max=100 window=1m"}, ""},
		{"nothing is known of an expression", []string{"max=n window=1m", "max=100 window=1h"}, ""},
		{"nothing is known below an expression", []string{"max=1 window=1m", "max=n window=1h"}, ""},
		{"counted calls only", []string{"max=1 window=1m count=`err != nil`", "max=100 window=1h"}, ""},
		{"charged after", []string{"max=1 window=1m", "max=100 window=1h cost-after=n"}, ""},
		{"some calls only", []string{"max=1 window=1m when=a", "max=100 window=1h"}, ""},
		{"the same calls only", []string{"max=1 window=1m when=a unless=b", "max=100 window=1h when=a unless=b"}, "1 unreachable-policy"},
		{"a group counts other calls", []string{"max=1 window=1m", "max=100 window=1h group=g"}, ""},
		{"calls without a key", []string{"max=1 window=1m key=user on-empty=skip", "max=100 window=1h key=user"}, ""},
		{"another store", []string{"max=1 window=1m", "max=100 window=1h store=redis"}, ""},
		{"another way to fail", []string{"max=1 window=1m on-error=allow", "max=100 window=1h"}, ""},
		{"a bucket that begins empty", []string{"max=1 window=1m", bucket + "max=100 window=1m initial=0"}, ""},
		{"a bucket that is refilled at once", []string{bucket + "max=1 window=1m refill=interval", "max=100 window=1m"}, ""},
		{"a bucket that starts slowly", []string{"max=1 window=1m", bucket + "max=100 window=1m warmup=1m"}, ""},
		{"a lock is no reason", []string{"max=1 window=1m lock=1h", "max=100 window=1h lock=1h"}, "1 unreachable-policy"},

		{"one group", []string{"max=5 group=g", "max=100 window=1h group=g"}, "1 duplicate-policy"},
		{"other groups", []string{"max=5 key=ip group=g", "max=100 key=user group=h"}, ""},
		{"one waits, one refuses", []string{"max=5 window=1m on-limit=wait", "max=100 window=1h"}, "0 on-limit-differs"},
		{"one refuses, one waits", []string{"max=5 window=1m", "max=100 window=1h on-limit=wait"}, "1 on-limit-differs"},
		{"other fallbacks", []string{"max=5 window=1m on-limit=fallback:A", "max=100 window=1h on-limit=fallback:B"}, "1 on-limit-differs"},
		{"one fallback", []string{"max=5 window=1m on-limit=fallback:A", "max=100 window=1h on-limit=fallback:A"}, ""},
		{"one identity", []string{"max=5 window=1m", "max=3 window=1m"}, "1 duplicate-policy"},
		{"one identity with a key", []string{"max=5 window=1m key=ip", "max=3 window=60s key=`ip`"}, "1 duplicate-policy"},
		{"one name", []string{"max=5 window=1m name=a", "max=100 window=1h name=a"}, "1 duplicate-policy"},
		{"other algorithm", []string{"max=5 window=1m", bucket + "max=4 window=1m burst=9"}, ""},
		{"other key, same window", []string{"max=5 window=1m key=ip", "max=5 window=1m key=user"}, ""},
		{"other names", []string{"max=5 window=1m key=ip name=a", "max=5 window=1m key=user name=b"}, ""},
		{"three", []string{"max=5 window=1m", "max=100 window=1h", "max=5 window=1m"}, "2 duplicate-policy"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			diags := CheckLimits(parseLimits(t, tc.limits))
			got := ""
			if len(diags) > 0 {
				got = fmt.Sprintf("%d %s", diags[0].Pos.Line-1, diags[0].Code)
			}
			if got != tc.want || len(diags) > 1 {
				t.Errorf("got %q, want %q\n%s", got, tc.want, render(diags))
			}
		})
	}
}

func TestMoreThanSixtyFourPoliciesOfOneMethodAreAnError(t *testing.T) {
	t.Parallel()
	var options []string
	for i := range ratelimit.MaxPolicies + 1 {
		options = append(options, fmt.Sprintf("max=5 key=user name=n%d mode=shadow", i))
	}
	limits := parseLimits(t, options)
	if diags := CheckLimits(limits[:ratelimit.MaxPolicies]); slices.ContainsFunc(diags, func(d diag.Diagnostic) bool { return d.Code == CodeTooManyPolicies }) {
		t.Errorf("%d: %s", ratelimit.MaxPolicies, render(diags))
	}
	if diags := CheckLimits(limits); len(diags) != 1 || diags[0].Code != CodeTooManyPolicies || diags[0].Pos.Line != ratelimit.MaxPolicies+1 {
		t.Errorf("%d: %s", len(limits), render(diags))
	}
}

// What may differ within a group is what a call costs and gets, and which calls
// count; any other option that one limit of a group has and another has not is
// reported. Every option of limit is one or the other.
func TestLimitsOfAGroupAgree(t *testing.T) {
	t.Parallel()
	free := map[string][2]string{
		optCost:    {"cost=2", "cost=len(x)"},
		optWhen:    {"when=a", "unless=b"},
		optUnless:  {"unless=a", ""},
		optOnLimit: {"on-limit=zero", "on-limit=fallback:A"},
		optKey:     {"key=req.User", "key=in.User"},
		optCount:   {"count=`err != nil`", "count=`err == nil`"},
		optUse:     {"use=a", "use=b"},
		optGroup:   {"", ""},
		optName:    {"", ""}, // cannot stand beside group
	}
	bound := map[string][2]string{
		optMax:       {"max=5", "max=n"},
		optWindow:    {"window=1h", ""},
		optKey:       {"key=user", ""},
		optAlgorithm: {"algorithm=sliding-log", "algorithm=token-bucket"},
		optBurst:     {"algorithm=token-bucket burst=9", "algorithm=token-bucket"},
		optInitial:   {"algorithm=token-bucket initial=0", "algorithm=token-bucket"},
		optRefill:    {"algorithm=token-bucket refill=interval", "algorithm=token-bucket"},
		optWarmup:    {"algorithm=token-bucket warmup=1s", "algorithm=token-bucket"},
		optSegments:  {"algorithm=sliding-window segments=9", "algorithm=sliding-window"},
		optAlign:     {"algorithm=fixed-window align=day", "algorithm=fixed-window align=week"},
		optTZ:        {"algorithm=fixed-window align=day tz=Asia/Tokyo", "algorithm=fixed-window align=day"},
		optCostAfter: {"cost-after=n", ""},
		optCount:     {"count=`err != nil`", ""},
		optLock:      {"lock=1m", ""},
		optLease:     {"algorithm=concurrency lease=1s", "algorithm=concurrency"},
		optMaxWait:   {"on-limit=wait max-wait=1h", "on-limit=wait"},
		optMaxQueue:  {"on-limit=wait max-queue=1", "on-limit=wait"},
		optOnEmpty:   {"key=user on-empty=skip", "key=user"},
		optOnError:   {"on-error=deny", ""},
		optMode:      {"mode=shadow", ""},
		optStore:     {"store=redis", ""},
		optMessage:   {"message=no", ""},
		optStatus:    {"status=503", ""},
	}
	for _, o := range limitOptions {
		pair, isFree := free[o.Name]
		differ, isBound := bound[o.Name]
		if !isFree && !isBound {
			t.Errorf("no test for %s", o.Name)
		}
		if isFree {
			if diags := CheckGroup(parseLimits(t, []string{"group=g " + pair[0], "group=g " + pair[1]})); len(diags) > 0 {
				t.Errorf("%s: %s", pair, render(diags))
			}
		}
		if isBound {
			diags := CheckGroup(parseLimits(t, []string{"group=g " + differ[0], "group=g " + differ[1]}))
			if len(diags) != 1 || diags[0].Code != CodeGroupDiffers || !strings.Contains(diags[0].Message, " "+o.Name) {
				t.Errorf("%s: %s", differ, render(diags))
			}
		}
	}
}

func TestCheckLimitsNamesTheOtherPolicy(t *testing.T) {
	t.Parallel()
	got := render(CheckLimits(parseLimits(t, []string{"max=1 window=1m name=a", "max=100 window=1h", "max=2 name=a", "max=9 window=1h"})))
	const want = `f.go:2:1: error: this policy can never refuse, because the policy of line 1 ("limit max=1 window=1m name=a") never admits enough: remove one of them, or correct max or window [unreachable-policy]
f.go:3:30: error: name=a: the policy of line 1 has this name too: give each a name of its own [duplicate-policy]
f.go:4:1: error: the policy of line 2 has the same algorithm, window and key, so both would share one counter: keep one of them, or give them names (name=…) [duplicate-policy]
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestCheckLimitsNamesTheFileOfTheOtherPolicyIfItIsAnother(t *testing.T) {
	t.Parallel()
	limits := parseLimits(t, []string{"max=1 window=1m", "max=100 window=1h"})
	limits[0].Directive.Pos.File = "a.go"
	got := render(CheckLimits(limits))
	if want := "because the policy at a.go:1 ("; !strings.Contains(got, want) {
		t.Errorf("%q is not in %q", want, got)
	}
}

// parseLimits reads one limit from each line of a file.
func parseLimits(t *testing.T, options []string) []Limit {
	t.Helper()
	var limits []Limit
	for i, o := range options {
		d, diags := Parse(Prefix+"limit "+o, diag.Pos{File: "f.go", Line: i + 1, Col: 1})
		if len(diags) > 0 {
			t.Fatal(render(diags))
		}
		l, diags := d.Limit()
		if len(diags) > 0 {
			t.Fatal(render(diags))
		}
		limits = append(limits, l)
	}
	return limits
}

// TestUnreachablePoliciesNeverRefuse plays calls against pairs of small policies:
// of a pair that implies reports, the unreachable policy must never refuse what
// the other admits. Of logs and equal fixed windows implies is exact, so that
// there some play must make the policy refuse if it is not reported.
func TestUnreachablePoliciesNeverRefuse(t *testing.T) {
	t.Parallel()
	algorithms := []ratelimit.Algorithm{ratelimit.SlidingLog, ratelimit.FixedWindow, ratelimit.TokenBucket, ratelimit.SlidingWindow}
	rng := rand.New(rand.NewPCG(1, 2))
	small := func() Limit {
		l := Limit{
			Algorithm: algorithms[rng.IntN(len(algorithms))],
			Max:       1 + rng.Int64N(5),
			Window:    time.Duration(1+rng.IntN(6)) * time.Microsecond,
			Cost:      1,
		}
		if l.Algorithm == ratelimit.SlidingWindow {
			l.Segments = 2 + rng.IntN(3)
		}
		if l.Algorithm == ratelimit.TokenBucket {
			l.Burst = 1 + rng.Int64N(5)
		}
		return l
	}
	reported := 0
	for range 4000 {
		a, b := small(), small()
		refused := greedyRefuses(&b, &a)
		for range 20 {
			refused = refused || randomRefuses(rng, &b, &a)
		}
		switch got := implies(&b, &a); {
		case got && refused:
			t.Fatalf("%s refuses what %s admits", brief(&a), brief(&b))
		case !got && !refused && a.Algorithm == ratelimit.SlidingLog && b.Algorithm == ratelimit.SlidingLog:
			t.Fatalf("%s never refuses what %s admits, and is not reported", brief(&a), brief(&b))
		case got:
			reported++
		}
	}
	if reported < 100 {
		t.Errorf("only %d pairs reported: the test tests nothing", reported)
	}
}

func brief(l *Limit) string {
	return fmt.Sprintf("%s %d per %v burst %d segments %d", l.Algorithm, l.Max, l.Window, l.Burst, l.Segments)
}

// greedyRefuses calls as often as b admits, at every instant.
func greedyRefuses(b, a *Limit) bool {
	cb, ca := counter{limit: b}, counter{limit: a}
	for now := range int64(60) {
		for cb.admits(now) {
			if !ca.admits(now) {
				return true
			}
			cb.charge(now)
			ca.charge(now)
		}
	}
	return false
}

func randomRefuses(rng *rand.Rand, b, a *Limit) bool {
	cb, ca := counter{limit: b}, counter{limit: a}
	for now := int64(0); now < 60; now += rng.Int64N(4) {
		if !cb.admits(now) {
			continue
		}
		if !ca.admits(now) {
			return true
		}
		cb.charge(now)
		ca.charge(now)
	}
	return false
}

// counter counts as the algorithm's definition says, in whole microseconds.
type counter struct {
	limit *Limit
	calls []int64 // of a log
	start int64   // of a fixed window
	used  int64
	level int64 // of a bucket: units taken, times the window
	last  int64
}

func (c *counter) admits(now int64) bool {
	w := c.limit.Window.Microseconds()
	switch c.limit.Algorithm {
	case ratelimit.SlidingLog:
		n := int64(0)
		for _, t := range c.calls {
			if now-t < w {
				n++
			}
		}
		return n < c.limit.Max
	case ratelimit.SlidingWindow:
		segments := int64(c.limit.Segments)
		part := (w + segments - 1) / segments
		n := int64(0)
		for _, t := range c.calls {
			if now/part-t/part <= segments {
				n++
			}
		}
		return n < c.limit.Max
	case ratelimit.FixedWindow:
		return c.used == 0 || now-c.start >= w || c.used < c.limit.Max
	default:
		return c.leaked(now)+w <= c.limit.Burst*w
	}
}

func (c *counter) charge(now int64) {
	w := c.limit.Window.Microseconds()
	c.calls = append(c.calls, now)
	if c.used == 0 || now-c.start >= w {
		c.start, c.used = now, 0
	}
	c.used++
	c.level = c.leaked(now) + w
	c.last = now
}

func (c *counter) leaked(now int64) int64 {
	return max(0, c.level-(now-c.last)*c.limit.Max)
}
