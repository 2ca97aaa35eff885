package golangci

import (
	"testing"

	"github.com/golangci/plugin-module-register/register"
)

func TestThePluginIsRegisteredAndTakesItsSettings(t *testing.T) {
	t.Parallel()
	newPlugin, err := register.GetPlugin("ratelimit")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		conf  any
		flags map[string]string
	}{
		{nil, map[string]string{"tests": "false", "allow": "", "output": "true"}},
		{map[string]any{"tests": true, "allow": []any{"a/b.F", "a/c"}, "output": false},
			map[string]string{"tests": "true", "allow": "a/b.F,a/c", "output": "false"}},
	} {
		p, err := newPlugin(c.conf)
		if err != nil {
			t.Fatal(err)
		}
		analyzers, err := p.BuildAnalyzers()
		if err != nil || len(analyzers) != 1 || p.GetLoadMode() != register.LoadModeTypesInfo {
			t.Fatalf("%v: %d analyzers, load mode %q, %v", c.conf, len(analyzers), p.GetLoadMode(), err)
		}
		for name, want := range c.flags {
			if got := analyzers[0].Flags.Lookup(name).Value.String(); got != want {
				t.Errorf("%v: %s is %q instead of %q", c.conf, name, got, want)
			}
		}
	}
}

func TestUnknownSettingsAreAnError(t *testing.T) {
	t.Parallel()
	if _, err := New(map[string]any{"test": true}); err == nil {
		t.Error("a setting that there is not was accepted")
	}
}
