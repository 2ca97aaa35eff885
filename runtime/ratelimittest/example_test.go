package ratelimittest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimittest"
)

func ExampleClock() {
	clock := ratelimittest.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	limiter := ratelimit.New(ratelimit.WithClock(clock))
	gate := limiter.MustGate(&ratelimit.Spec{
		Method:   "auth.Service.Login",
		Policies: []ratelimit.Policy{{ID: "login", Limit: 1, Window: time.Minute}},
	})
	ctx, eve := context.Background(), []byte("eve")
	fmt.Println(gate.Allow(ctx, eve))
	fmt.Println(gate.Allow(ctx, eve))
	clock.Advance(time.Minute)
	fmt.Println(gate.Allow(ctx, eve))
	// Output:
	// <nil>
	// denied by auth.Service.Login, retry in 1m0s
	// <nil>
}

func ExampleRecorder() {
	var seen ratelimittest.Recorder
	limiter := ratelimit.New(ratelimit.WithObserver(&seen))
	gate := limiter.MustGate(&ratelimit.Spec{
		Method:   "auth.Service.Login",
		Policies: []ratelimit.Policy{{ID: "login", Limit: 2, Window: time.Minute}},
	})
	for range 3 {
		_ = gate.Allow(context.Background(), []byte("eve"))
	}
	fmt.Printf("%+v\n", seen.Count("login"))
	last, _ := seen.Last()
	fmt.Println(last.Method, last.Decision.Allowed, last.Ops[0].Key)
	// Output:
	// {Admitted:2 Refused:1 Degraded:0 Failed:0}
	// auth.Service.Login false eve
}
