package redisstore_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

// Deadlines of about the same time are done together, none before its time, and none much
// later.
func TestDeadlinesThatAreSharedAreDoneInTime(t *testing.T) {
	t.Parallel()
	var alarms redisstore.Alarms
	var all []context.Context
	for range 20 {
		all = append(all, alarms.Deadline(30*time.Millisecond))
		time.Sleep(time.Millisecond)
	}
	channels := map[<-chan struct{}]bool{}
	for _, ctx := range all {
		channels[ctx.Done()] = true
	}
	if len(channels) > 10 { // 20 ms take 5 of them, on a machine that has nothing else to do
		t.Errorf("20 deadlines have %d channels", len(channels))
	}
	soon, late := alarms.Deadline(time.Millisecond), alarms.Deadline(time.Hour)
	all = append(all, soon)
	for i, ctx := range all {
		at, _ := ctx.Deadline()
		<-ctx.Done()
		if d := time.Since(at); d < 0 || ctx.Err() != context.DeadlineExceeded {
			t.Errorf("deadline %d was done %v early, %v", i, -d, ctx.Err())
		}
	}
	at, _ := soon.Deadline()
	if d := time.Since(at); d > time.Second {
		t.Errorf("a short deadline was done %v late", d)
	}
	if late.Err() != nil {
		t.Error("a deadline was done an hour before its time")
	}
}

// In bubbles of testing/synctest nothing is shared: who waits there must not be woken from
// another one.
func TestDeadlinesAreNotSharedWithABubble(t *testing.T) {
	t.Parallel()
	var alarms redisstore.Alarms
	outside := alarms.Deadline(time.Millisecond)
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			ctx := alarms.Deadline(time.Hour)
			at, _ := ctx.Deadline()
			if <-ctx.Done(); !time.Now().Equal(at) {
				t.Errorf("done %v late", time.Since(at))
			}
		})
	}
	<-outside.Done()
	<-alarms.Deadline(time.Millisecond).Done()
}
