package ratelimit_test

import (
	"testing"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

type source map[string]string

func (s source) Header(name string) string { return s["header "+name] }
func (s source) Query(name string) string  { return s["query "+name] }
func (s source) Cookie(name string) string { return s["cookie "+name] }
func (s source) Route() string             { return s["route"] }

func TestARequestWithoutASourceHoldsNothing(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*ratelimit.Request{"nil": nil, "zero": {}} {
		for what, got := range map[string]string{
			"header": r.Header("A"), "query": r.Query("a"), "cookie": r.Cookie("a"), "route": r.RoutePattern(),
		} {
			if got != "" {
				t.Errorf("%s request: %s %q", name, what, got)
			}
		}
	}
}

func TestARequestAsksItsSource(t *testing.T) {
	t.Parallel()
	r := &ratelimit.Request{Source: source{"header A": "h", "query a": "q", "cookie a": "c", "route": "r"}}
	if got := r.Header("A") + r.Query("a") + r.Cookie("a") + r.RoutePattern(); got != "hqcr" {
		t.Errorf("got %q", got)
	}
	r.Route = "known"
	if got := r.RoutePattern(); got != "known" {
		t.Errorf("route %q, want the one that is known already", got)
	}
}
