package directive

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// limit decodes the options of a directive that is in order.
func limit(t *testing.T, options string) Limit {
	t.Helper()
	d, diags := Parse(Prefix+"limit "+options, at)
	if len(diags) > 0 {
		t.Fatalf("%s: %s", options, render(diags))
	}
	l, diags := d.Limit()
	if len(diags) > 0 {
		t.Fatalf("%s: %s", options, render(diags))
	}
	return l
}

func TestLimitDefaults(t *testing.T) {
	t.Parallel()
	got := limit(t, "")
	want := Limit{
		Directive: got.Directive,
		Max:       5,
		Window:    time.Minute,
		Algorithm: ratelimit.SlidingLog,
		Cost:      1,
		OnLimit:   OnLimitError,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// CF10: an option that changes nothing is a dead option.
func TestEveryOptionOfLimitIsDecoded(t *testing.T) {
	t.Parallel()
	text := func(v *Value) string {
		if v == nil {
			return ""
		}
		return v.Text
	}
	tests := []struct {
		option, options string
		get             func(l Limit) any
		want            any
	}{
		{"max", "max=7", func(l Limit) any { return l.Max }, int64(7)},
		{"max", "max=1_000", func(l Limit) any { return l.Max }, int64(1000)},
		{"max", "max=unlimited", func(l Limit) any { return l.Max }, ratelimit.Unlimited},
		{"max", "max=blocked", func(l Limit) any { return l.Max }, ratelimit.Blocked},
		{"window", "window=1h30m", func(l Limit) any { return l.Window }, 90 * time.Minute},
		{"window", "window=1d12h", func(l Limit) any { return l.Window }, 36 * time.Hour},
		{"window", "window=2w", func(l Limit) any { return l.Window }, 14 * 24 * time.Hour},
		{"window", "window=1.5d", func(l Limit) any { return l.Window }, 36 * time.Hour},
		{"window", "window=.5s250ms1us", func(l Limit) any { return l.Window }, 750*time.Millisecond + time.Microsecond},
		{"window", "window=3660d", func(l Limit) any { return l.Window }, time.Duration(ratelimit.MaxWindow)},
		{"key", "key=req.ID", func(l Limit) any { return text(l.Key) }, "req.ID"},
		{"key", "key=`[a, b]`", func(l Limit) any { return text(l.Key) }, "[a, b]"},
		{"key", "key=global", func(l Limit) any { return l.Key == nil }, true},
		{"algorithm", "algorithm=token-bucket", func(l Limit) any { return l.Algorithm }, ratelimit.TokenBucket},
		{"algorithm", "algorithm=fixed-window", func(l Limit) any { return l.Algorithm }, ratelimit.FixedWindow},
		{"burst", "algorithm=token-bucket burst=9", func(l Limit) any { return l.Burst }, int64(9)},
		{"cost", "cost=0 lock=1m", func(l Limit) any { return l.Cost }, int64(0)},
		{"cost", "algorithm=time-quota max=1s", func(l Limit) any { return l.Cost }, int64(1)},
		{"cost", "cost=len(x)", func(l Limit) any { return text(l.CostExpr) }, "len(x)"},
		{"cost", "cost=`2*n`", func(l Limit) any { return text(l.CostExpr) }, "2*n"},
		{"name", "name=login-1.x_y", func(l Limit) any { return l.Name }, "login-1.x_y"},
		{"mode", "mode=shadow", func(l Limit) any { return l.Mode }, ratelimit.Shadow},
		{"mode", "mode=off", func(l Limit) any { return l.Mode }, ratelimit.Off},
		{"mode", "mode=enforce", func(l Limit) any { return l.Mode }, ratelimit.Enforce},
		{"on-limit", "on-limit=error", func(l Limit) any { return l.OnLimit }, OnLimitError},
		{"on-empty", "key=x on-empty=deny", func(l Limit) any { return l.OnEmpty }, ratelimit.DenyEmpty},
		{"on-empty", "key=x on-empty=skip", func(l Limit) any { return l.OnEmpty }, ratelimit.SkipEmpty},
		{"on-empty", "key=x on-empty=shared", func(l Limit) any { return l.OnEmpty }, ratelimit.SharedEmpty},
		{"max", "max=plan.Limit", func(l Limit) any { return text(l.MaxExpr) }, "plan.Limit"},
		{"max", "max=plan.Limit", func(l Limit) any { return l.Max }, int64(0)},
		{"max", "max=10s algorithm=time-quota", func(l Limit) any { return l.Max }, int64(10_000_000)},
		{"max", "max=unlimited algorithm=time-quota", func(l Limit) any { return l.Max }, ratelimit.Unlimited},
		{"window", "algorithm=concurrency", func(l Limit) any { return l.Window }, time.Duration(0)},
		{"window", "algorithm=fixed-window align=day", func(l Limit) any { return l.Window }, time.Duration(0)},
		{"algorithm", "algorithm=sliding-window", func(l Limit) any { return l.Algorithm }, ratelimit.SlidingWindow},
		{"algorithm", "algorithm=leaky-bucket", func(l Limit) any { return l.Algorithm }, ratelimit.LeakyBucket},
		{"algorithm", "algorithm=concurrency", func(l Limit) any { return l.Algorithm }, ratelimit.Concurrency},
		{"algorithm", "algorithm=time-quota max=1s", func(l Limit) any { return l.Algorithm }, ratelimit.TimeQuota},
		{"burst", "algorithm=leaky-bucket burst=9", func(l Limit) any { return l.Burst }, int64(9)},
		{"initial", "algorithm=token-bucket initial=0", func(l Limit) any { return *l.Initial }, int64(0)},
		{"initial", "algorithm=token-bucket", func(l Limit) any { return l.Initial == nil }, true},
		{"refill", "algorithm=token-bucket", func(l Limit) any { return l.Refill }, ratelimit.Smooth},
		{"refill", "algorithm=token-bucket refill=interval", func(l Limit) any { return l.Refill }, ratelimit.Interval},
		{"warmup", "algorithm=token-bucket warmup=10s", func(l Limit) any { return l.Warmup }, 10 * time.Second},
		{"segments", "algorithm=sliding-window", func(l Limit) any { return l.Segments }, 10},
		{"segments", "algorithm=sliding-window segments=60", func(l Limit) any { return l.Segments }, 60},
		{"align", "algorithm=fixed-window align=week", func(l Limit) any { return l.Align }, ratelimit.AlignWeek},
		{"tz", "algorithm=fixed-window align=week", func(l Limit) any { return l.TZ }, "UTC"},
		{"tz", "algorithm=fixed-window align=week tz=Asia/Tokyo", func(l Limit) any { return l.TZ }, "Asia/Tokyo"},
		{"cost-after", "cost-after=len(result)", func(l Limit) any { return text(l.CostAfter) }, "len(result)"},
		{"count", "count=`err != nil`", func(l Limit) any { return text(l.Count) }, "err != nil"},
		{"when", "when=`a > 1` unless=b", func(l Limit) any { return text(l.When) }, "a > 1"},
		{"unless", "when=`a > 1` unless=b", func(l Limit) any { return text(l.Unless) }, "b"},
		{"lock", "lock=90s", func(l Limit) any { return l.Lock }, []time.Duration{90 * time.Second}},
		{"lock", "lock=1m,10m,1h", func(l Limit) any { return l.Lock }, []time.Duration{time.Minute, 10 * time.Minute, time.Hour}},
		{"lock", "lock=`1m, 1d`", func(l Limit) any { return l.Lock }, []time.Duration{time.Minute, 24 * time.Hour}},
		{"lease", "algorithm=concurrency", func(l Limit) any { return l.Lease }, time.Minute},
		{"lease", "algorithm=concurrency lease=5s", func(l Limit) any { return l.Lease }, 5 * time.Second},
		{"lease", "", func(l Limit) any { return l.Lease }, time.Duration(0)},
		{"on-limit", "on-limit=wait", func(l Limit) any { return l.OnLimit }, OnLimitWait},
		{"on-limit", "on-limit=zero", func(l Limit) any { return l.OnLimit }, OnLimitZero},
		{"on-limit", "on-limit=fallback:Cached", func(l Limit) any { return l.OnLimit }, OnLimitFallback},
		{"on-limit", "on-limit=fallback:Cached", func(l Limit) any { return l.Fallback.Text }, "Cached"},
		{"max-wait", "window=1s on-limit=wait max-wait=2s", func(l Limit) any { return l.MaxWait }, 2 * time.Second},
		{"max-queue", "on-limit=wait max-queue=7", func(l Limit) any { return l.MaxQueue }, 7},
		{"max-queue", "on-limit=wait max-queue=0", func(l Limit) any { return l.MaxQueue }, 0},
		{"on-error", "on-error=allow", func(l Limit) any { return l.OnError }, ratelimit.AllowOnError},
		{"on-error", "on-error=deny", func(l Limit) any { return l.OnError }, ratelimit.DenyOnError},
		{"group", "group=uploads", func(l Limit) any { return l.Group }, "uploads"},
		{"store", "store=redis", func(l Limit) any { return l.Store }, "redis"},
		{"message", "message=`Größe, \"please\"`", func(l Limit) any { return l.Message }, "Größe, \"please\""},
		{"status", "status=503", func(l Limit) any { return l.Status }, 503},
		{"use", "use=standard", func(l Limit) any { return l.Directive.Option("use").Value.Text }, "standard"},
	}
	tested := map[string]bool{}
	for _, tc := range tests {
		tested[tc.option] = true
		if got := tc.get(limit(t, tc.options)); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: got %v, want %v", tc.options, got, tc.want)
		}
	}
	for _, o := range findVerb(VerbLimit).Options {
		if !tested[o.Name] {
			t.Errorf("no test that %s is decoded", o.Name)
		}
	}
}

func TestEveryOptionOfWrapperIsDecoded(t *testing.T) {
	t.Parallel()
	d, diags := Parse("//ratelimit:wrapper name=Größe constructor=NewGröße implements=pb.Server", at)
	w, more := d.Wrapper()
	if diags.Add(more...); len(diags) > 0 {
		t.Fatal(render(diags))
	}
	if w.Name != "Größe" || w.Constructor != "NewGröße" || w.Implements == nil || w.Implements.Text != "pb.Server" || w.Directive != d {
		t.Errorf("%+v", w)
	}
	d, _ = Parse("//ratelimit:wrapper name=X", at)
	if w, _ = d.Wrapper(); w.Name != "X" || w.Constructor != "" || w.Implements != nil {
		t.Errorf("%+v", w)
	}
}

// Whatever Limit lets pass, the runtime takes, and what it does not let pass is
// reported where an option stands.
func TestLimitsPassTheRuntimesValidation(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	values := map[string][]string{
		optMax:       {"1", "100", "4096", "4097", "94906266", "1073741824", "unlimited", "blocked", "n", "10s", "3660d"},
		optWindow:    {"1us", "5us", "1s", "1h", "52w", "3660d"},
		optBurst:     {"1", "20", "5000", "1073741824"},
		optInitial:   {"0", "1", "20"},
		optWarmup:    {"1us", "1m", "3660d"},
		optSegments:  {"2", "60"},
		optTZ:        {"UTC", "Asia/Tokyo"},
		optCost:      {"0", "1", "7", "1073741824", "n"},
		optCostAfter: {"n"}, optCount: {"b"}, optWhen: {"b"}, optUnless: {"b"},
		optLock:     {"1us", "1m,1h", "3660d"},
		optLease:    {"1us", "3660d"},
		optOnLimit:  {"wait", "zero", "fallback:F", "error"},
		optMaxWait:  {"1us", "3660d"},
		optMaxQueue: {"0", "1073741824"},
		optKey:      {"global", "ip", "a"},
		optName:     {"n"}, optGroup: {"g"}, optStore: {"s"}, optMessage: {"m"}, optStatus: {"400", "599"}, optUse: {"u"},
	}
	// Few options together are accepted, so those are preferred that may be.
	passed, refused := 0, 0
	for range 10_000 {
		algorithm := ratelimit.Algorithm(pick(rng, findVerb(VerbLimit).option(optAlgorithm).Values))
		text := Prefix + "limit algorithm=" + string(algorithm)
		for _, o := range limitOptions {
			odds := 3
			if !o.fits(algorithm) || o.Needs != "" || o.Without != "" && o.Name != optWindow {
				odds = 12
			}
			if o.Name == optAlgorithm || rng.IntN(odds) > 0 {
				continue
			}
			text += " " + o.Name + "=" + pick(rng, append(slices.Clone(o.Values), values[o.Name]...))
		}
		text = strings.ReplaceAll(text, "fallback:Method", "fallback:F")
		d, diags := Parse(text, at)
		l, more := d.Limit()
		diags.Add(more...)
		if !diags.HasErrors() {
			l, more = l.Fixed(Constants{}) // no name is a constant's
			diags.Add(more...)
		}
		if !diags.HasErrors() {
			passed++
			p := l.Policy()
			p.ID = "x"
			if err := p.Validate(); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			continue
		}
		refused++
		for _, problem := range diags {
			if !slices.ContainsFunc(d.Options, func(a Assignment) bool {
				from, to := d.At(a.NameSpan).Col, at.Col+a.Value.Span.End
				return problem.Pos.Line == at.Line && from <= problem.Pos.Col && problem.EndCol <= to
			}) {
				t.Fatalf("%s: not at an option: %s", text, problem)
			}
		}
	}
	if passed < 500 || refused < 500 {
		t.Errorf("%d passed and %d refused: the test tests little", passed, refused)
	}
}

func pick(rng *rand.Rand, from []string) string { return from[rng.IntN(len(from))] }
