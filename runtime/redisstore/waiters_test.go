package redisstore_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

// Twenty calls that wait for a place that another process has cost a command or two a
// second, and all get it once that is given back.
func TestCallsThatWaitCostFewCommands(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := startServer(t)
	admin := connect(t, s.addr)
	gate := func() *ratelimit.Gate {
		return ratelimit.New(ratelimit.WithStore("", redisstore.New(connect(t, s.addr)))).MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{
			{ID: "p", Algorithm: ratelimit.Concurrency, Limit: 1, Lease: time.Hour}}})
	}
	here, there := gate(), gate()
	k := []ratelimit.Charge{{Key: []byte("k"), Cost: 1}}
	held, err := there.Acquire(ctx, k)
	if err != nil {
		t.Fatal(err)
	}
	const waiting = 20
	took := func(length time.Duration) int {
		before := calls(t, admin)["evalsha"]
		<-time.After(length) // for which they wait
		return calls(t, admin)["evalsha"] - before
	}
	var callers sync.WaitGroup
	for range waiting {
		callers.Go(func() {
			permit, err := here.AcquireWait(ctx, k)
			if err != nil {
				t.Error(err)
				return
			}
			permit.Release()
		})
	}
	// Each that finds nobody in line asks once, and the first more often in the beginning.
	first, then := took(2*time.Second), took(3*time.Second)
	t.Logf("%d calls that wait: %d commands in 2 s, and %d in the next 3 s", waiting, first, then)
	if first > waiting+8 || then > 4 {
		t.Errorf("%d calls that wait took %d commands in 2 s, and %d in the next 3 s", waiting, first, then)
	}
	freed := time.Now()
	held.Release()
	callers.Wait()
	if took := time.Since(freed); took > 5*time.Second {
		t.Errorf("the last was admitted %v after the place was given back", took)
	}
	t.Logf("the last was admitted %v after the place was given back", time.Since(freed))
}
