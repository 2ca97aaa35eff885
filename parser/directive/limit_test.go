package directive

import (
	"reflect"
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
	key := func(l Limit) string {
		if l.Key == nil {
			return ""
		}
		return l.Key.Text
	}
	costExpr := func(l Limit) string {
		if l.CostExpr == nil {
			return ""
		}
		return l.CostExpr.Text
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
		{"key", "key=req.ID", func(l Limit) any { return key(l) }, "req.ID"},
		{"key", "key=`[a, b]`", func(l Limit) any { return key(l) }, "[a, b]"},
		{"key", "key=global", func(l Limit) any { return l.Key == nil }, true},
		{"algorithm", "algorithm=token-bucket", func(l Limit) any { return l.Algorithm }, ratelimit.TokenBucket},
		{"algorithm", "algorithm=fixed-window", func(l Limit) any { return l.Algorithm }, ratelimit.FixedWindow},
		{"burst", "algorithm=token-bucket burst=9", func(l Limit) any { return l.Burst }, int64(9)},
		{"cost", "cost=0", func(l Limit) any { return l.Cost }, int64(0)},
		{"cost", "cost=len(x)", func(l Limit) any { return costExpr(l) }, "len(x)"},
		{"cost", "cost=`2*n`", func(l Limit) any { return costExpr(l) }, "2*n"},
		{"name", "name=login-1.x_y", func(l Limit) any { return l.Name }, "login-1.x_y"},
		{"mode", "mode=shadow", func(l Limit) any { return l.Mode }, ratelimit.Shadow},
		{"mode", "mode=off", func(l Limit) any { return l.Mode }, ratelimit.Off},
		{"mode", "mode=enforce", func(l Limit) any { return l.Mode }, ratelimit.Enforce},
		{"on-limit", "on-limit=error", func(l Limit) any { return l.OnLimit }, OnLimitError},
		{"on-empty", "on-empty=deny", func(l Limit) any { return l.OnEmpty }, ratelimit.DenyEmpty},
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

// Whatever Limit lets pass, the runtime takes.
func TestLimitsPassTheRuntimesValidation(t *testing.T) {
	t.Parallel()
	for _, options := range []string{
		"", "max=4096", "max=1073741824 algorithm=fixed-window window=3660d", "max=unlimited", "max=blocked",
		"max=unlimited algorithm=token-bucket burst=5", "window=1us", "max=1 burst=3660 window=1d algorithm=token-bucket",
		"max=94906265 algorithm=token-bucket window=1s",
	} {
		l := limit(t, options)
		p := ratelimit.Policy{
			ID: "x", Algorithm: l.Algorithm, Limit: l.Max, Window: l.Window, Burst: l.Burst, Mode: l.Mode, OnEmpty: l.OnEmpty,
		}
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", options, err)
		}
	}
}
