package redisstore_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

func TestKeysAreWhatTheDocumentationSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		prefix    string
		id, key   string
		algorithm ratelimit.Algorithm
		want      string
	}{
		{"ratelimit:", "pay.Service.PlaceOrder", "203.0.113.9", "", "ratelimit:{203.0.113.9}pay.Service.PlaceOrder:log"},
		{"", "a", "k", ratelimit.SlidingLog, "{k}a:log"},
		{"p:", "a b", "2001:db8::/64|x", ratelimit.TokenBucket, "p:{2001:db8::/64|x}a%20b:bucket"},
		{"p:", "a", "", ratelimit.FixedWindow, "p:{%}a:fixed"},
		{"p:", "a", "%", ratelimit.FixedWindow, "p:{%25}a:fixed"},
		{"p:", "a", "}{é\r\n\x00\x7f", ratelimit.FixedWindow, "p:{%7D%7B%C3%A9%0D%0A%00%7F}a:fixed"},
	} {
		s := redisstore.New(nil, redisstore.WithPrefix(c.prefix))
		if got := s.KeyOf(&ratelimit.Policy{ID: c.id, Algorithm: c.algorithm}, c.key); got != c.want {
			t.Errorf("key of %q in %q is %q, want %q", c.key, c.id, got, c.want)
		}
	}
}

func TestKeysAreInjectiveAndStayInTheirTag(t *testing.T) {
	t.Parallel()
	s := redisstore.New(nil)
	text := rapid.StringOfN(rapid.RuneFrom([]rune("a%{}:2 \x00é")), 0, 5, -1)
	algorithm := rapid.SampledFrom([]ratelimit.Algorithm{ratelimit.SlidingLog, ratelimit.TokenBucket, ratelimit.FixedWindow})
	rapid.Check(t, func(t *rapid.T) {
		type identity struct {
			id, key   string
			algorithm ratelimit.Algorithm
		}
		draw := func(name string) (identity, string) {
			x := identity{text.Draw(t, name+"ID"), text.Draw(t, name+"Key"), algorithm.Draw(t, name+"Algorithm")}
			return x, s.KeyOf(&ratelimit.Policy{ID: x.id, Algorithm: x.algorithm}, x.key)
		}
		a, ka := draw("a")
		b, kb := draw("b")
		if (a == b) != (ka == kb) {
			t.Fatalf("%q and %q have the keys %q and %q", a, b, ka, kb)
		}
		if same := redisstore.HashTag(ka) == redisstore.HashTag(kb); same != (a.key == b.key) {
			t.Fatalf("%q and %q share a tag: %v", ka, kb, same)
		}
		if strings.Count(ka, "{") != 1 || strings.Count(ka, "}") != 1 {
			t.Fatalf("key %q has more than one tag", ka)
		}
	})
}

func TestHashTagFollowsTheClusterSpecification(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"foo":                  "foo",
		"{user1000}.following": "user1000",
		"foo{}{bar}":           "foo{}{bar}",
		"foo{{bar}}zap":        "{bar",
		"foo{bar}{zap}":        "bar",
		"foo{bar":              "foo{bar",
		"foo}{bar}":            "bar",
	} {
		if got := redisstore.HashTag(key); got != want {
			t.Errorf("tag of %q is %q, want %q", key, got, want)
		}
	}
}
