package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimittest"
)

func ExampleGate_Allow() {
	limiter := ratelimit.New(ratelimit.WithClock(ratelimittest.NewClock(time.Unix(0, 0))))
	gate := limiter.MustGate(&ratelimit.Spec{
		Method: "auth.Service.Login",
		File:   "auth.go",
		Policies: []ratelimit.Policy{{
			ID:        "login",
			Directive: "max=2 window=1m key=user",
			Limit:     2,
			Window:    time.Minute,
		}},
	})
	for range 3 {
		err := gate.Allow(context.Background(), []byte("eve"))
		if errors.Is(err, ratelimit.ErrLimited) {
			fmt.Println(err)
			continue
		}
		fmt.Println("admitted")
	}
	// Output:
	// admitted
	// admitted
	// denied by auth.Service.Login (auth.go) "max=2 window=1m key=user", retry in 1m0s
}

// A transfer counts once for all callers together, and by its amount for the
// account. It is admitted by both policies or charged by none.
func ExampleGate_Take() {
	limiter := ratelimit.New(ratelimit.WithClock(ratelimittest.NewClock(time.Unix(0, 0))))
	gate := limiter.MustGate(&ratelimit.Spec{
		Method: "pay.Service.Transfer",
		Policies: []ratelimit.Policy{
			{ID: "all", Global: true, Limit: 1000, Window: time.Second},
			{ID: "account", Algorithm: ratelimit.TokenBucket, Limit: 100, Window: time.Hour},
		},
	})
	for _, amount := range []int64{70, 40} {
		d, err := gate.Take(context.Background(),
			ratelimit.Charge{Cost: 1},
			ratelimit.Charge{Key: []byte("DE02"), Cost: amount},
		)
		fmt.Println(d.Allowed, d.Policy, d.Remaining, d.RetryAfter, err)
	}
	// Output:
	// true account 30 0s <nil>
	// false account 30 6m0s <nil>
}

func ExampleLimiter_Update() {
	limiter := ratelimit.New()
	gate := limiter.MustGate(&ratelimit.Spec{
		Method:   "pay.Service.PlaceOrder",
		Policies: []ratelimit.Policy{{ID: "orders", Limit: 2, Window: time.Minute}},
	})
	ctx, key := context.Background(), []byte("ann")
	fmt.Println(gate.Allow(ctx, key), gate.Allow(ctx, key), gate.Allow(ctx, key) == nil)

	limit := int64(3)
	if err := limiter.Update("orders", ratelimit.Patch{Limit: &limit}); err != nil {
		fmt.Println(err)
	}
	fmt.Println(gate.Allow(ctx, key), gate.Allow(ctx, key) == nil)
	for _, p := range limiter.Policies() {
		fmt.Println(p.ID, p.Bound())
	}
	// Output:
	// <nil> <nil> false
	// <nil> false
	// orders at most 3 in any 1m0s
}

// A partner accepts two messages a second. Those that must wait are sent at the time
// that was reserved for them.
func ExampleGate_Reserve() {
	limiter := ratelimit.New(ratelimit.WithClock(ratelimittest.NewClock(time.Unix(0, 0))))
	gate := limiter.MustGate(&ratelimit.Spec{
		Method:   "partner.Client.Send",
		Policies: []ratelimit.Policy{{ID: "send", Algorithm: ratelimit.TokenBucket, Limit: 2, Window: time.Second, Burst: 1}},
	})
	ctx := context.Background()
	message := ratelimit.Charge{Key: []byte("partner"), Cost: 1}
	var last ratelimit.Reservation
	for range 3 {
		r, err := gate.Reserve(ctx, message)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(r.OK(), r.Delay())
		last = r
	}
	last.Cancel() // there is nothing to send
	r, _ := gate.ReserveWithin(ctx, time.Second, message)
	fmt.Println(r.OK(), r.Delay())
	r, _ = gate.ReserveWithin(ctx, time.Second, message)
	fmt.Println(r.OK(), r.Decision().RetryAfter)
	// Output:
	// true 0s
	// true 500ms
	// true 1s
	// true 1s
	// false 500ms
}

func ExampleGate_Block() {
	limiter := ratelimit.New(ratelimit.WithClock(ratelimittest.NewClock(time.Unix(0, 0))))
	gate := limiter.MustGate(&ratelimit.Spec{
		Method:   "auth.Service.Login",
		Policies: []ratelimit.Policy{{ID: "login", Limit: 5, Window: time.Minute}},
	})
	ctx, key := context.Background(), []byte("198.51.100.7")
	if err := gate.Block(ctx, 24*time.Hour, key); err != nil {
		fmt.Println(err)
	}
	fmt.Println(gate.Allow(ctx, key))
	if err := gate.Block(ctx, 0, key); err != nil { // lifts it
		fmt.Println(err)
	}
	fmt.Println(gate.Allow(ctx, key))
	// Output:
	// denied by auth.Service.Login, retry in 24h0m0s
	// <nil>
}
