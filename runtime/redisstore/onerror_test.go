package redisstore_test

import (
	"errors"
	"net"
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

func TestOfAServerThatIsTooSlowThePolicySaysToo(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections, and answers none
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	client := redis.NewClient(&redis.Options{Addr: silent.Addr().String(), MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	for _, c := range []struct {
		onError       ratelimit.OnError
		first, second error
	}{
		{ratelimit.LocalOnError, nil, ratelimit.ErrLimited}, // limited in this process
		{ratelimit.AllowOnError, nil, nil},
		{ratelimit.DenyOnError, ratelimit.ErrStore, ratelimit.ErrStore},
	} {
		limiter := ratelimit.New(ratelimit.WithStore("", redisstore.New(client, redisstore.WithTimeout(20*time.Millisecond), quiet)))
		gate := limiter.MustGate(&ratelimit.Spec{Method: "p.T.M", Policies: []ratelimit.Policy{{
			ID: "p", Global: true, Limit: 1, Window: time.Minute, OnError: c.onError,
		}}})
		for i, want := range []error{c.first, c.second} {
			err := gate.Allow(t.Context(), nil)
			if !errors.Is(err, want) || want == ratelimit.ErrStore && classOf(err) != redisstore.Timeout {
				t.Errorf("on error %d, call %d: %v, want %v", c.onError, i, err, want)
			}
		}
	}
}
