package grpc

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/ratelimitgen/ratelimitgen/examples/grpc/shop"
	"github.com/ratelimitgen/ratelimitgen/examples/grpc/shoppb"
	"github.com/ratelimitgen/ratelimitgen/runtime/grpclimit"
)

func TestEachAddressHasASearchLimitOfItsOwn(t *testing.T) {
	t.Parallel()
	each(t, true, func(t *testing.T, c client) {
		for _, addr := range []string{"203.0.113.7", "203.0.113.8"} {
			// What the client writes in front of the proxy's word changes nothing.
			for i, forged := range []string{"", "6.6.6.1, ", "6.6.6.2, "} {
				if err := c.search(t.Context(), call{forwarded: forged + addr}); err != nil {
					t.Fatalf("search %d of %s: %v", i, addr, err)
				}
			}
			err := c.search(t.Context(), call{forwarded: "6.6.6.3, " + addr})
			limited(t, c, err, "/shop.v1.Shop/Search: the rate limit is used up")
		}
	})
}

func TestWithoutATrustedProxyTheAddressIsThePeers(t *testing.T) {
	t.Parallel()
	each(t, false, func(t *testing.T, c client) {
		for i := range 3 {
			if err := c.search(t.Context(), call{forwarded: "203.0.113." + strconv.Itoa(i)}); err != nil {
				t.Fatal(err)
			}
		}
		limited(t, c, c.search(t.Context(), call{forwarded: "203.0.113.9"}), "/shop.v1.Shop/Search: the rate limit is used up")
	})
}

func TestUsersHaveCountersOfTheirOwnInCallsAndStreams(t *testing.T) {
	t.Parallel()
	each(t, false, func(t *testing.T, c client) {
		ann, bob := call{user: "ann"}, call{user: "bob"}
		if err := c.placeOrder(t.Context(), ann); err != nil {
			t.Fatal(err)
		}
		// The limited method is called in the middle of the stream, for each message.
		confirmed, err := c.placeOrders(t.Context(), ann, 3)
		if confirmed != 1 {
			t.Errorf("%d of ann's orders were confirmed in the stream, want 1", confirmed)
		}
		limited(t, c, err, "/shop.v1.Shop/PlaceOrders: two orders a minute")
		limited(t, c, c.placeOrder(t.Context(), ann), "/shop.v1.Shop/PlaceOrder: two orders a minute")
		if confirmed, err := c.placeOrders(t.Context(), bob, 2); confirmed != 2 || err != nil {
			t.Errorf("%d of bob's orders were confirmed: %v", confirmed, err)
		}
	})
}

func TestWhoIsNobodyIsRefusedForGood(t *testing.T) {
	t.Parallel()
	each(t, false, func(t *testing.T, c client) {
		for _, user := range []string{"", "mallory"} {
			err := c.placeOrder(t.Context(), call{user: user})
			if code, retry, quota := c.explain(err); code != connect.CodePermissionDenied || retry != 0 || quota != "" {
				t.Errorf("user %q: %v, wait %v, quota %q", user, err, retry, quota)
			}
		}
	})
}

func TestAUserWatchesOnceAtATime(t *testing.T) {
	t.Parallel()
	each(t, false, func(t *testing.T, c client) {
		ann, bob := call{user: "ann"}, call{user: "bob"}
		if err := c.placeOrder(t.Context(), ann); err != nil {
			t.Fatal(err)
		}
		end, err := c.watch(t.Context(), ann)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.watch(t.Context(), ann)
		if code, _, _ := c.explain(err); code != connect.CodeResourceExhausted {
			t.Errorf("a second stream of ann: %v", err)
		}
		endOfBob, err := c.watch(t.Context(), bob)
		if err != nil {
			t.Fatal(err)
		}
		for _, end := range []func() error{end, endOfBob} {
			if code, _, _ := c.explain(end()); code != connect.CodeCanceled {
				t.Errorf("the end of a stream: %v", code)
			}
		}
		// The place is free as soon as the server has seen that the client is gone.
		for deadline := time.Now().Add(10 * time.Second); ; {
			if end, err = c.watch(t.Context(), ann); err == nil {
				break
			}
			if code, _, _ := c.explain(err); code != connect.CodeResourceExhausted || time.Now().After(deadline) {
				t.Fatalf("ann has ended her stream: %v", err)
			}
		}
		if code, _, _ := c.explain(end()); code != connect.CodeCanceled {
			t.Errorf("the end of a stream: %v", code)
		}
	})
}

// each runs the test with each kind of client, in parallel.
func each(t *testing.T, trusted bool, test func(*testing.T, client)) {
	for name, start := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t, trusted))
		})
	}
}

// limited holds that err is that of a limit of a minute.
func limited(t *testing.T, c client, err error, want string) {
	t.Helper()
	code, retry, quota := c.explain(err)
	if code != connect.CodeResourceExhausted || retry <= 0 || retry > time.Minute || quota != want {
		t.Errorf("%v, wait %v, quota %q; want a wait of up to a minute, and %q", err, retry, quota, want)
	}
	var e *connect.Error
	if errors.As(err, &e) {
		if s, err := strconv.Atoi(e.Meta().Get("Retry-After")); err != nil || s != int((retry+time.Second-1)/time.Second) {
			t.Errorf("Retry-After %q, with a wait of %v", e.Meta().Get("Retry-After"), retry)
		}
	}
}

func TestTheTrailerTellsTheWaitInMilliseconds(t *testing.T) {
	t.Parallel()
	c := dial(t, listenGRPC(t, grpclimit.New(grpclimit.WithUser(shop.Authenticate))))
	ctx := call{user: "ann"}.outgoing(t.Context())
	for i := range 3 {
		var trailer metadata.MD
		_, err := c.PlaceOrder(ctx, &shoppb.OrderRequest{Item: "apple"}, grpc.Trailer(&trailer))
		values := trailer.Get("grpc-retry-pushback-ms")
		if i < 2 {
			if err != nil || len(values) != 0 {
				t.Fatalf("order %d: %v, pushback %q", i, err, values)
			}
			continue
		}
		_, retry, _ := grpcClient{}.explain(err)
		if len(values) != 1 || values[0] != strconv.FormatInt(int64((retry+time.Millisecond-1)/time.Millisecond), 10) {
			t.Errorf("pushback %q, with a wait of %v", values, retry)
		}
	}
}
