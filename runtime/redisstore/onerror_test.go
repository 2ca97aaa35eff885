package redisstore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

func TestRD13WithoutAServerThePolicySaysWhatBecomesOfCalls(t *testing.T) {
	t.Parallel()
	// Nobody listens on port 1.
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DialerRetries: 1, MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	for _, c := range []struct {
		onError       ratelimit.OnError
		first, second bool
	}{
		{ratelimit.LocalOnError, true, false}, // limited in this process
		{ratelimit.AllowOnError, true, true},
		{ratelimit.DenyOnError, false, false},
	} {
		limiter := ratelimit.New(ratelimit.WithStore("", redisstore.New(client)))
		gate := limiter.MustGate(&ratelimit.Spec{Method: "p.T.M", Policies: []ratelimit.Policy{{
			ID: "p", Global: true, Limit: 1, Window: time.Minute, OnError: c.onError,
		}}})
		for i, want := range []bool{c.first, c.second} {
			d, err := gate.Take(t.Context(), ratelimit.Charge{Cost: 1})
			if c.onError == ratelimit.DenyOnError {
				if !errors.Is(err, ratelimit.ErrStore) || !strings.Contains(err.Error(), "redis 127.0.0.1:1: ") {
					t.Errorf("deny: %v, want an ErrStore that names the server", err)
				}
				continue
			}
			if err != nil || d.Allowed != want || !d.Degraded {
				t.Errorf("on error %d, call %d: %+v, %v; want allowed %v and degraded", c.onError, i, d, err, want)
			}
		}
	}
}
