package ratelimit_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimittest"
)

// story tells all that a caller and an observer can see of a policy: of calls that are
// made with several keys and costs, that wait, that are charged afterwards, and over
// time. It ends with the error, if there is no such gate.
func story(t *testing.T, p ratelimit.Policy) string {
	var b strings.Builder
	synctest.Test(t, func(t *testing.T) {
		var seen ratelimittest.Recorder
		far := &able{recorder{err: errors.New("far away")}}
		l := ratelimit.New(ratelimit.WithStore("far", far), ratelimit.WithObserver(&seen))
		gate, err := l.Gate(&ratelimit.Spec{Method: "pay.Service.Pay", Policies: []ratelimit.Policy{p}})
		if err != nil {
			fmt.Fprintln(&b, err)
			return
		}
		// Those that configure policies see these.
		fmt.Fprintln(&b, "waits:", l.Policies()[0].Waits, "keys:", l.Policies()[0].KeyForm)
		begin := time.Now()
		charge := func(key string, cost int64) []ratelimit.Charge {
			return []ratelimit.Charge{{Key: []byte(key), Cost: cost, Limit: 2}}
		}
		tell := func(what string, err error) {
			var e *ratelimit.Error
			if errors.As(err, &e) {
				fmt.Fprintf(&b, "%s after %v: %v %+v %d %q\n", what, time.Since(begin), err, e.Decision, e.Status, e.Message)
				return
			}
			fmt.Fprintf(&b, "%s after %v: %v\n", what, time.Since(begin), err)
		}
		call := func(what string, charges []ratelimit.Charge) ratelimit.Permit {
			permit, err := gate.Acquire(t.Context(), charges)
			tell(what, err)
			return permit
		}
		for i := range 3 {
			permit := call("call", charge("a", 1))
			if i == 1 {
				permit.Charge(0, 1)
				time.Sleep(time.Second)
				permit.Release()
			}
		}
		call("other key", charge("b", 1))
		call("no key", charge("", 1))
		call("no key", charge("", 1))
		call("dear", charge("c", 3))
		tell("no permit", gate.Allow(t.Context(), []byte("d")))
		first := make(chan error, 1)
		go func() {
			_, err := gate.AcquireWait(t.Context(), charge("a", 1))
			first <- err
		}()
		synctest.Wait()
		_, err = gate.AcquireWait(t.Context(), charge("a", 1))
		tell("waits, too", err)
		tell("waits", <-first)
		for range 30 { // one late in the window of an hour, and two after it
			time.Sleep(70 * time.Minute)
			call("first", charge("a", 1))
			time.Sleep(50 * time.Minute)
			call("late", charge("a", 1))
			time.Sleep(11 * time.Minute)
			call("next", charge("a", 1))
			call("next", charge("a", 1))
		}
		for _, e := range seen.Events() {
			fmt.Fprintf(&b, "%s %+v\n", e.Method, e.Decision)
			for _, op := range e.Ops {
				fmt.Fprintf(&b, "\t%s %q\n", op.Policy.Key, op.Key)
			}
		}
	})
	return b.String()
}

// CF10: a field that changes nothing is a dead one. Each is changed in a policy that
// has a use for it, and then something that can be seen is different.
func TestCF10EveryFieldOfAPolicyChangesSomething(t *testing.T) {
	t.Parallel()
	base := ratelimit.Policy{ID: "p", Limit: 2, Window: time.Hour, MaxWait: 2 * time.Hour}
	bucket := base
	bucket.Algorithm = ratelimit.TokenBucket
	calendar := ratelimit.Policy{ID: "p", Algorithm: ratelimit.FixedWindow, Limit: 1, Align: ratelimit.AlignDay, MaxWait: time.Hour}
	remote := base
	remote.Store = "far"
	changes := map[string]struct {
		of     ratelimit.Policy
		change func(p *ratelimit.Policy)
	}{
		"ID":        {base, func(p *ratelimit.Policy) { p.ID = "other" }},
		"Directive": {base, func(p *ratelimit.Policy) { p.Directive = "max=2" }},
		"Key":       {base, func(p *ratelimit.Policy) { p.Key = "user" }},
		"KeyForm":   {base, func(p *ratelimit.Policy) { p.KeyForm = "user" }},
		"Global":    {base, func(p *ratelimit.Policy) { p.Global = true }},
		"Algorithm": {base, func(p *ratelimit.Policy) { p.Algorithm = ratelimit.FixedWindow }},
		"Limit":     {base, func(p *ratelimit.Policy) { p.Limit = 3 }},
		"Dynamic":   {base, func(p *ratelimit.Policy) { p.Dynamic, p.Limit = true, 0 }},
		"Window":    {base, func(p *ratelimit.Policy) { p.Window = time.Minute }},
		"Burst":     {bucket, func(p *ratelimit.Policy) { p.Burst = 3 }},
		"Initial":   {bucket, func(p *ratelimit.Policy) { p.Initial = ratelimit.Empty }},
		"Refill":    {bucket, func(p *ratelimit.Policy) { p.Refill = ratelimit.Interval }},
		"Warmup":    {bucket, func(p *ratelimit.Policy) { p.Warmup = time.Hour }},
		"Segments": {ratelimit.Policy{ID: "p", Algorithm: ratelimit.SlidingWindow, Limit: 2, Window: time.Hour, MaxWait: 2 * time.Hour},
			func(p *ratelimit.Policy) { p.Segments = 2 }},
		"Align": {calendar, func(p *ratelimit.Policy) { p.Align = ratelimit.AlignHour }},
		"TZ":    {calendar, func(p *ratelimit.Policy) { p.TZ = "Asia/Tokyo" }},
		"Lock":  {base, func(p *ratelimit.Policy) { p.Lock = []time.Duration{3 * time.Hour} }},
		"Lease": {ratelimit.Policy{ID: "p", Algorithm: ratelimit.Concurrency, Limit: 1, MaxWait: time.Hour},
			func(p *ratelimit.Policy) { p.Lease = time.Hour }},
		"Count":     {base, func(p *ratelimit.Policy) { p.Count = true }},
		"CostAfter": {remote, func(p *ratelimit.Policy) { p.CostAfter = true }},
		"Waits":     {base, func(p *ratelimit.Policy) { p.Waits = true }},
		"MaxWait":   {base, func(p *ratelimit.Policy) { p.MaxWait = time.Second }},
		"MaxQueue":  {base, func(p *ratelimit.Policy) { p.MaxQueue = 1 }},
		"Mode":      {base, func(p *ratelimit.Policy) { p.Mode = ratelimit.Shadow }},
		"OnEmpty":   {base, func(p *ratelimit.Policy) { p.OnEmpty = ratelimit.SkipEmpty }},
		"OnError":   {remote, func(p *ratelimit.Policy) { p.OnError = ratelimit.AllowOnError }},
		"Store":     {base, func(p *ratelimit.Policy) { p.Store = "far" }},
		"Message":   {base, func(p *ratelimit.Policy) { p.Message = "later" }},
		"Status":    {base, func(p *ratelimit.Policy) { p.Status = 420 }},
	}
	for field, c := range changes {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			changed := c.of
			c.change(&changed)
			was, is := reflect.ValueOf(c.of).FieldByName(field), reflect.ValueOf(changed).FieldByName(field)
			if reflect.DeepEqual(was.Interface(), is.Interface()) {
				t.Fatal("the field is not changed")
			}
			if before := story(t, c.of); before != story(t, c.of) {
				t.Error("the story is not always the same")
			} else if before == story(t, changed) {
				t.Error("nobody can see the change")
			}
		})
	}
	for i := range reflect.TypeFor[ratelimit.Policy]().NumField() {
		if name := reflect.TypeFor[ratelimit.Policy]().Field(i).Name; changes[name].change == nil {
			t.Errorf("%s is not tried", name)
		}
	}
}
