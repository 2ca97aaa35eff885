package redisstore_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

// ordinary returns policies of which nothing is given back, in all their forms, and some
// whose refusals are not remembered, with windows and limits that rt draws.
func ordinary(rt *rapid.T) []*ratelimit.Policy {
	window := func() time.Duration {
		return time.Duration(rapid.OneOf(rapid.Int64Range(50, 200), rapid.Int64Range(50_000, 200_000), rapid.Int64Range(sec, 5*sec)).Draw(rt, "window")) * time.Microsecond
	}
	limit := func() int64 { return rapid.Int64Range(1, 6).Draw(rt, "limit") }
	lock := []time.Duration{20 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second}
	return []*ratelimit.Policy{
		{ID: "log", Limit: limit(), Window: window()},
		{ID: "fixed", Algorithm: ratelimit.FixedWindow, Limit: limit(), Window: window()},
		{ID: "bucket", Algorithm: ratelimit.TokenBucket, Limit: limit(), Window: window()},
		{ID: "burst", Algorithm: ratelimit.TokenBucket, Limit: limit(), Burst: limit(), Window: window()},
		{ID: "empty", Algorithm: ratelimit.TokenBucket, Limit: limit(), Window: window(), Initial: ratelimit.Empty},
		{ID: "interval", Algorithm: ratelimit.TokenBucket, Limit: limit(), Window: window(), Refill: ratelimit.Interval},
		{ID: "warmup", Algorithm: ratelimit.TokenBucket, Limit: limit(), Window: window(), Warmup: time.Second},
		{ID: "sliding", Algorithm: ratelimit.SlidingWindow, Limit: limit(), Window: window()},
		{ID: "align", Algorithm: ratelimit.FixedWindow, Limit: limit(), Align: ratelimit.AlignSecond},
		{ID: "lock", Limit: limit(), Window: window(), Lock: lock},
		{ID: "lock fixed", Algorithm: ratelimit.FixedWindow, Limit: limit(), Window: window(), Lock: lock[:1]},
		{ID: "lock bucket", Algorithm: ratelimit.TokenBucket, Limit: limit(), Window: window(), Lock: lock},
		{ID: "shadow", Limit: limit(), Window: window(), Mode: ratelimit.Shadow},
		{ID: "shadow lock", Limit: limit(), Window: window(), Mode: ratelimit.Shadow, Lock: lock},
		{ID: "dynamic", Dynamic: true, Window: window()},
		{ID: "dynamic bucket", Algorithm: ratelimit.TokenBucket, Dynamic: true, Window: window()},
		{ID: "leaky", Algorithm: ratelimit.LeakyBucket, Limit: limit(), Window: window()},
		{ID: "count", Limit: limit(), Window: window(), Count: true},
	}
}

// draw returns a call of some of the policies.
func draw(rt *rapid.T, policies []*ratelimit.Policy) []ratelimit.Op {
	first := rapid.IntRange(0, len(policies)-1).Draw(rt, "first")
	waits := rapid.IntRange(0, 3).Draw(rt, "waits") == 0
	var ops []ratelimit.Op
	for _, p := range policies[first : first+rapid.IntRange(1, min(3, len(policies)-first)).Draw(rt, "policies")] {
		op := ratelimit.Op{Policy: p, Key: rapid.SampledFrom([]string{"a", "a", "b"}).Draw(rt, "key"), Waits: waits}
		most := p.Capacity()
		if op.Limit = p.Limit; p.Dynamic {
			op.Limit = rapid.Int64Range(3, 4).Draw(rt, "brings")
			most = op.Limit
		}
		op.Cost = rapid.Int64Range(0, min(2, most)).Draw(rt, "cost")
		ops = append(ops, op)
	}
	return ops
}

func isAdmitted(ops []ratelimit.Op) bool {
	for _, op := range ops {
		if !op.Outcome.Allowed && op.Policy.Mode != ratelimit.Shadow {
			return false
		}
	}
	return true
}

// A bucket that an update has made slow may be as new before it would admit a call.
func TestARefusalIsForgottenWhenItsSlowerBucketIsAsNew(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	now := int64(0)
	f.store.Remembering(4, func() int64 { return now })
	p := ratelimit.Policy{ID: "interval", Algorithm: ratelimit.TokenBucket, Limit: 2, Window: 200 * time.Millisecond, Refill: ratelimit.Interval}
	slow := p
	slow.Limit, slow.Window = 1, 400*time.Millisecond
	f.at(0)
	f.take(ratelimit.Op{Policy: &p, Key: "k", Cost: 2})
	for _, ms := range []int64{10, 399, 400} {
		now = ms * 1000
		f.at(now)
		if o := f.take(ratelimit.Op{Policy: &slow, Key: "k", Cost: 1})[0]; o.Allowed != (ms == 400) {
			t.Errorf("at %d ms: %+v", ms, o)
		}
	}
	if n := f.store.Stats().Remembered; n != 1 {
		t.Errorf("%d refusals were remembered, want one", n)
	}
}

// A bucket that begins without tokens, and that an update has made slow, may be as new
// before it would admit a call. From then on it fills by being called.
func TestARefusalIsForgottenWhenItsBucketIsAsNew(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	now := int64(0)
	f.store.Remembering(4, func() int64 { return now })
	p := ratelimit.Policy{ID: "empty", Algorithm: ratelimit.TokenBucket, Limit: 4, Window: 50 * time.Millisecond, Initial: ratelimit.Empty}
	slow := p
	slow.Limit = 1
	for _, step := range []struct {
		ms     int64
		p      *ratelimit.Policy
		refuse time.Duration // 0: it is admitted
	}{{0, &p, 12500 * time.Microsecond}, {90, &slow, 110 * time.Millisecond}, {99, &slow, 101 * time.Millisecond}, {100, &slow, 50 * time.Millisecond}, {150, &slow, 0}} {
		now = step.ms * 1000
		f.at(now)
		if o := f.take(ratelimit.Op{Policy: step.p, Key: "k", Cost: 1})[0]; o.RetryAfter != step.refuse || o.Allowed != (step.refuse == 0) {
			t.Errorf("at %d ms: %+v, want a refusal of %v", step.ms, o, step.refuse)
		}
	}
	// So it does for a call that costs nothing, which is refused while more is missing than
	// the bucket holds.
	f.take(ratelimit.Op{Policy: &p, Key: "l", Cost: 1})
	now += 10_000
	f.at(now)
	free := ratelimit.Op{Policy: &slow, Key: "l"}
	if o := f.take(free)[0]; o.Allowed {
		t.Fatalf("when more is missing: %+v", o)
	}
	now += 90_000
	f.at(now)
	if o := f.take(free)[0]; !o.Allowed {
		t.Errorf("when it is as new: %+v", o)
	}
	if n := f.store.Stats().Remembered; n != 1 {
		t.Errorf("%d refusals were remembered, want one", n)
	}
}

// With a memory of refusals and without it, the same calls at the same times are
// admitted and refused, and the states in Redis are the same after each where the keys
// live together: so no lock is longer or shorter, either.
func TestARememberedRefusalIsWhatTheServerSays(t *testing.T) {
	t.Parallel()
	for _, together := range []bool{true, false} {
		t.Run(fmt.Sprint("together=", together), func(t *testing.T) {
			t.Parallel()
			var calls, recalled atomic.Int64
			rapid.Check(t, func(rt *rapid.T) {
				plain, memory := newFake(t), newFake(t)
				now := int64(0)
				memory.store.Remembering(rapid.SampledFrom([]int{4, 1000}).Draw(rt, "entries"), func() int64 { return now })
				if !together {
					plain.store.Apart()
					memory.store.Apart()
				}
				policies := rapid.Permutation(ordinary(rt)).Draw(rt, "policies")[:3]
				var last []ratelimit.Op
				for range rapid.IntRange(1, 60).Draw(rt, "steps") {
					now += rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 50), rapid.Int64Range(0, 60_000), rapid.Int64Range(0, 2*sec)).Draw(rt, "time")
					plain.at(now)
					memory.at(now)
					switch rapid.IntRange(0, 19).Draw(rt, "action") {
					case 0:
						p := rapid.SampledFrom(policies).Draw(rt, "reset")
						for _, f := range []*fake{plain, memory} {
							if err := f.store.Reset(context.Background(), p, "a"); err != nil {
								rt.Fatal(err)
							}
						}
					case 1: // as Limiter.Update does
						if !together {
							break // a bucket's time, which what was given back leaves, matters then
						}
						i := rapid.IntRange(0, len(policies)-1).Draw(rt, "update")
						changed := *policies[i]
						if !changed.Dynamic {
							changed.Limit = rapid.Int64Range(1, 6).Draw(rt, "limit")
						}
						if changed.Window > 0 && rapid.Bool().Draw(rt, "longer") {
							changed.Window *= 2
						}
						policies[i], last = &changed, nil
					default:
						if last == nil || rapid.IntRange(0, 2).Draw(rt, "again") == 0 {
							last = draw(rt, policies)
						}
						want := append([]ratelimit.Op(nil), last...)
						got := append([]ratelimit.Op(nil), last...)
						before := memory.store.Stats().Remembered
						if err := plain.store.Take(context.Background(), want); err != nil {
							rt.Fatal(err)
						}
						if err := memory.store.Take(context.Background(), got); err != nil {
							rt.Fatal(err)
						}
						calls.Add(1)
						remembered := memory.store.Stats().Remembered > before
						if remembered {
							recalled.Add(1)
						}
						if isAdmitted(got) != isAdmitted(want) {
							rt.Fatalf("%v after %d µs: with memory (%v) %+v\nwithout %+v", *last[0].Policy, now, remembered, got, want)
						}
						for i := range got {
							g, w := got[i].Outcome, want[i].Outcome
							if !remembered && g != w || !g.Allowed && (w.Allowed || g.RetryAfter > w.RetryAfter) {
								rt.Fatalf("policy %+v after %d µs: with memory (%v) %+v\nwithout %+v", *got[i].Policy, now, remembered, g, w)
							}
						}
					}
					for _, p := range policies {
						if !together {
							break // what was given back leaves its time
						}
						for _, key := range []string{"a", "b"} {
							if m, w := memory.state(p, key), plain.state(p, key); m != w {
								rt.Fatalf("state of %+v, key %s, after %d µs: with memory %q\nwithout %q", *p, key, now, m, w)
							}
						}
					}
				}
			})
			t.Logf("%d of %d calls were refused from memory", recalled.Load(), calls.Load())
			if recalled.Load()*50 < calls.Load() {
				t.Error("too few calls were refused from memory to say anything")
			}
		})
	}
}

// state is what p has for a key.
func (f *fake) state(p *ratelimit.Policy, key string) string {
	raw, _ := getState(context.Background(), f.client, f.store.KeyOf(p, key)).Result()
	return raw
}

// What a remembered refusal says falls with time as what the server says.
func TestARememberedRefusalTellsTheTimeThatIsLeft(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		f := newFake(t)
		now := int64(0)
		f.store.Remembering(16, func() int64 { return now })
		reference := redisstore.NewFakeTime(f.client, f.prefix)
		p := rapid.SampledFrom(ordinary(rt)[:12]).Draw(rt, "policy")
		ops := []ratelimit.Op{{Policy: p, Key: "k", Cost: rapid.Int64Range(1, p.Limit).Draw(rt, "cost"), Limit: p.Limit}}
		if p.Burst > 0 {
			ops[0].Cost = min(ops[0].Cost, p.Burst)
		}
		for range 30 {
			now += rapid.OneOf(rapid.Int64Range(0, 50), rapid.Int64Range(0, 20_000)).Draw(rt, "time")
			f.at(now)
			before := f.store.Stats().Remembered
			got := f.take(ops...)[0]
			if f.store.Stats().Remembered == before {
				continue
			}
			peek := []ratelimit.Op{ops[0]}
			peek[0].Peek = true
			if err := reference.Take(context.Background(), peek); err != nil {
				rt.Fatal(err)
			}
			if want := peek[0].Outcome; got.Allowed || got.RetryAfter != want.RetryAfter || got.ResetAfter != want.ResetAfter || got.Remaining > want.Remaining {
				rt.Fatalf("%+v after %d µs: remembered %+v, the server says %+v", *p, now, got, want)
			}
		}
	})
}

// Others may reset keys, raise limits and give back. What one process remembers is then
// wrong for a second at most, and not at all after what is given back.
func TestARefusalIsForgottenASecondAfterOthersChangeIt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		f := newFake(t)
		now := int64(0)
		f.store.Remembering(64, func() int64 { return now })
		other := redisstore.NewFakeTime(f.client, f.prefix) // of another process
		policies := rapid.Permutation(ordinary(rt)).Draw(rt, "policies")[:2]
		changed := map[string]int64{} // when others last changed what the policy has
		var charged []ratelimit.End
		for range rapid.IntRange(1, 80).Draw(rt, "steps") {
			now += rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 60_000), rapid.Int64Range(0, sec)).Draw(rt, "time")
			f.at(now)
			p := rapid.SampledFrom(policies).Draw(rt, "policy")
			switch rapid.IntRange(0, 9).Draw(rt, "action") {
			case 0:
				if err := other.Reset(context.Background(), p, "a"); err != nil {
					rt.Fatal(err)
				}
				changed[p.ID] = now
			case 1: // another process has a higher limit, and calls
				raised := *p
				if !raised.Dynamic {
					raised.Limit = 50
				}
				if err := other.Take(context.Background(), []ratelimit.Op{{Policy: &raised, Key: "a", Cost: 1, Limit: 50}}); err != nil {
					rt.Fatal(err)
				}
				changed[p.ID] = now
			case 2:
				if len(charged) > 0 {
					if err := other.End(context.Background(), charged[:1]); err != nil {
						rt.Fatal(err)
					}
					charged = charged[1:]
				}
			default:
				ops := draw(rt, policies)
				for i := range ops {
					ops[i].ID = uint64(now)*1000 + uint64(len(charged)) + 1
				}
				before := f.store.Stats().Remembered
				outcomes := f.take(ops...)
				if f.store.Stats().Remembered == before {
					for _, op := range ops {
						if isAdmitted(ops) && op.Outcome.Allowed && op.Policy.Count && op.Cost > 0 {
							charged = append(charged, ratelimit.End{Policy: op.Policy, Key: op.Key, ID: op.ID, What: ratelimit.EndGiveBack, Limit: op.Limit})
						}
					}
					continue
				}
				for i := range ops {
					ops[i].Peek = true
				}
				if err := other.Take(context.Background(), ops); err != nil {
					rt.Fatal(err)
				}
				if !isAdmitted(ops) {
					continue
				}
				for _, op := range ops {
					if at, ok := changed[op.Policy.ID]; ok && now-at < sec {
						return
					}
				}
				rt.Fatalf("%+v is remembered as %+v after %d µs, and the server admits it; others made changes at %v", ops, outcomes, now, changed)
			}
		}
	})
}

// elsewhere returns two stores of two processes that share a prefix.
func elsewhere(t *testing.T, now *int64) (here, there *redisstore.Store, f *fake) {
	f = newFake(t)
	here = f.store.Remembering(64, func() int64 { return *now })
	there = redisstore.NewFakeTime(f.client, f.prefix).Remembering(64, func() int64 { return *now })
	return here, there, f
}

func TestAResetIsSeenAtOnceHereAndWithinASecondElsewhere(t *testing.T) {
	t.Parallel()
	now := int64(0)
	here, there, f := elsewhere(t, &now)
	p := &ratelimit.Policy{ID: "p", Limit: 1, Window: time.Hour}
	admits := func(s *redisstore.Store) bool {
		t.Helper()
		ops := []ratelimit.Op{{Policy: p, Key: "k", Cost: 1}}
		if err := s.Take(context.Background(), ops); err != nil {
			t.Fatal(err)
		}
		return ops[0].Outcome.Allowed
	}
	if !admits(here) || admits(here) || admits(there) {
		t.Fatal("the limit is 1")
	}
	if err := here.Reset(context.Background(), p, "other"); err != nil {
		t.Fatal(err)
	}
	if admits(here) || here.Stats().Remembered != 1 {
		t.Errorf("after the Reset of another key: %+v", here.Stats())
	}
	if err := here.Reset(context.Background(), p, "k"); err != nil {
		t.Fatal(err)
	}
	if !admits(here) {
		t.Error("refused after its own Reset")
	}
	if err := here.Reset(context.Background(), p, "k"); err != nil {
		t.Fatal(err)
	}
	now = sec - 1
	f.at(now)
	if admits(there) {
		t.Error("not remembered for a second")
	}
	now = sec
	f.at(now)
	if !admits(there) {
		t.Error("refused a second after a Reset elsewhere")
	}
}

func TestAnUpdateIsSeenAtOnceHereAndWithinASecondElsewhere(t *testing.T) {
	t.Parallel()
	now := int64(0)
	here, there, f := elsewhere(t, &now)
	spec := &ratelimit.Spec{Policies: []ratelimit.Policy{{ID: "p", Algorithm: ratelimit.TokenBucket, Limit: 1, Window: time.Hour}}}
	limiters := []*ratelimit.Limiter{ratelimit.New(ratelimit.WithStore("", here)), ratelimit.New(ratelimit.WithStore("", there))}
	gates := []*ratelimit.Gate{limiters[0].MustGate(spec), limiters[1].MustGate(spec)}
	admits := func(i int) bool {
		t.Helper()
		d, err := gates[i].Take(context.Background(), ratelimit.Charge{Key: []byte("k"), Cost: 1})
		if err != nil {
			t.Fatal(err)
		}
		return d.Allowed
	}
	if !admits(0) || admits(0) || admits(1) || admits(1) || there.Stats().Remembered != 1 {
		t.Fatal("the limit is 1")
	}
	update := func(limit int64, window time.Duration) {
		t.Helper()
		if err := limiters[0].Update("p", ratelimit.Patch{Limit: &limit, Window: &window}); err != nil {
			t.Fatal(err)
		}
	}
	update(3, time.Second)
	now = sec / 2
	f.at(now)
	if !admits(0) {
		t.Error("refused after an update of its own")
	}
	update(1, time.Hour) // back again: it is another version all the same
	if admits(0); here.Stats().Remembered != 0 {
		t.Error("remembered across updates")
	}
	update(100, time.Second)
	now = sec - 1
	f.at(now)
	if admits(1) {
		t.Error("not remembered for a second")
	}
	now = sec + sec/2
	f.at(now)
	if !admits(0) {
		t.Error("refused under a limit of 100 a second")
	}
	before := there.Stats().Remembered
	if admits(1); there.Stats().Remembered != before {
		t.Error("remembered for longer than a second")
	}
}

// A reply that is under way when the key is reset is not remembered.
func TestARefusalThatIsOlderThanAResetIsNotRemembered(t *testing.T) {
	t.Parallel()
	client, prefix := sharedClient(t)
	store := redisstore.New(client, redisstore.WithPrefix(prefix))
	p := &ratelimit.Policy{ID: "p", Limit: 1, Window: time.Hour}
	var callers sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		callers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := store.Take(context.Background(), []ratelimit.Op{{Policy: p, Key: "k", Cost: 1}}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	// Nobody but these callers has the key; once they are gone the last Reset holds.
	for range 300 {
		if err := store.Reset(context.Background(), p, "k"); err != nil {
			t.Error(err)
		}
	}
	close(done)
	callers.Wait()
	if err := store.Reset(context.Background(), p, "k"); err != nil {
		t.Fatal(err)
	}
	ops := []ratelimit.Op{{Policy: p, Key: "k", Cost: 1}}
	if err := store.Take(context.Background(), ops); err != nil || !ops[0].Outcome.Allowed {
		t.Errorf("after Reset: %+v, %v", ops[0].Outcome, err)
	}
}

func TestAClientThatHammersCostsNoCommands(t *testing.T) {
	t.Parallel()
	client := connect(t, startServer(t).addr)
	for _, policies := range [][]*ratelimit.Policy{
		{{ID: "log", Limit: 5, Window: time.Hour}},
		{{ID: "lock", Limit: 5, Window: time.Minute, Lock: []time.Duration{time.Hour}}},
		{{ID: "user", Algorithm: ratelimit.TokenBucket, Limit: 5, Window: time.Hour}, {ID: "all", Algorithm: ratelimit.FixedWindow, Limit: 1000, Window: time.Hour, Global: true}},
	} {
		store := redisstore.New(client, redisstore.WithTimeout(10*time.Second))
		var ops []ratelimit.Op
		for _, p := range policies {
			ops = append(ops, ratelimit.Op{Policy: p, Key: "k", Cost: 1})
		}
		take := func() bool {
			if err := store.Take(context.Background(), ops); err != nil {
				t.Fatal(err)
			}
			return isAdmitted(ops)
		}
		for range 5 {
			if !take() {
				t.Fatal("refused below the limit")
			}
		}
		before := calls(t, client)
		const n = 2000
		for range n {
			if take() {
				t.Fatal("admitted above the limit")
			}
		}
		after := calls(t, client)
		sent := after["evalsha"] - before["evalsha"] + after["eval"] - before["eval"]
		if sent < 1 || sent*20 >= n {
			t.Errorf("%s: %d commands for %d refusals", policies[0].ID, sent, n)
		}
		if s := store.Stats(); s.Remembered+int64(sent) != n || s.Answers != int64(sent)+5 {
			t.Errorf("%s: %d commands, %+v", policies[0].ID, sent, s)
		}
	}
}

func TestWhatIsNotRemembered(t *testing.T) {
	t.Parallel()
	full := func(p ratelimit.Policy) *ratelimit.Policy {
		p.Limit, p.Window = 1, time.Hour
		return &p
	}
	roomy := func(p ratelimit.Policy) *ratelimit.Policy {
		p.Limit, p.Window = 50, time.Hour
		return &p
	}
	lock := []time.Duration{time.Minute}
	long := strings.Repeat("k", 1025)
	one := full(ratelimit.Policy{ID: "one"})
	for name, c := range map[string]struct {
		ops  []ratelimit.Op
		want bool
	}{
		"a log":                    {[]ratelimit.Op{{Policy: one, Cost: 1}}, true},
		"a lock":                   {[]ratelimit.Op{{Policy: full(ratelimit.Policy{ID: "lock", Lock: lock}), Cost: 1}}, true},
		"count":                    {[]ratelimit.Op{{Policy: full(ratelimit.Policy{ID: "count", Count: true}), Cost: 1}}, false},
		"cost after":               {[]ratelimit.Op{{Policy: full(ratelimit.Policy{ID: "after", CostAfter: true}), Cost: 1}}, false},
		"places":                   {[]ratelimit.Op{{Policy: full(ratelimit.Policy{ID: "places", Algorithm: ratelimit.Concurrency}), Cost: 1, ID: 7}}, false},
		"a queue":                  {[]ratelimit.Op{{Policy: full(ratelimit.Policy{ID: "queue", Algorithm: ratelimit.LeakyBucket}), Cost: 1}}, false},
		"a limit of the call":      {[]ratelimit.Op{{Policy: &ratelimit.Policy{ID: "log", Dynamic: true, Window: time.Hour}, Cost: 1, Limit: 1}}, true},
		"a pace of the call":       {[]ratelimit.Op{{Policy: &ratelimit.Policy{ID: "bucket", Algorithm: ratelimit.TokenBucket, Dynamic: true, Window: time.Hour}, Cost: 1, Limit: 1}}, false},
		"a long key":               {[]ratelimit.Op{{Policy: one, Key: long, Cost: 1}}, false},
		"count that admits":        {[]ratelimit.Op{{Policy: one, Key: "1", Cost: 1}, {Policy: roomy(ratelimit.Policy{ID: "count", Count: true}), Cost: 1}}, true},
		"a lock that admits":       {[]ratelimit.Op{{Policy: one, Key: "2", Cost: 1}, {Policy: roomy(ratelimit.Policy{ID: "lock", Lock: lock}), Cost: 1}}, false},
		"a lock that looks only":   {[]ratelimit.Op{{Policy: one, Key: "3", Cost: 1}, {Policy: roomy(ratelimit.Policy{ID: "lock", Lock: lock})}}, true},
		"a shadow's refusal":       {[]ratelimit.Op{{Policy: full(ratelimit.Policy{ID: "shadow", Mode: ratelimit.Shadow}), Cost: 1}}, false},
		"a call that waits":        {[]ratelimit.Op{{Policy: one, Key: "4", Cost: 1, Waits: true}}, true},
		"a call that waits, lock":  {[]ratelimit.Op{{Policy: full(ratelimit.Policy{ID: "lock", Lock: lock}), Key: "4", Cost: 1, Waits: true}}, false},
		"a lock that is over soon": {[]ratelimit.Op{{Policy: full(ratelimit.Policy{ID: "lock", Lock: []time.Duration{time.Microsecond}}), Key: "5", Cost: 1}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			now := int64(0)
			store := f.store.Remembering(64, func() int64 { return now })
			f.take(c.ops...)
			f.take(c.ops...)
			if got := store.Recalls(append([]ratelimit.Op(nil), c.ops...)); got != c.want {
				t.Errorf("remembered: %v", got)
			}
			if !c.want {
				return
			}
			now = sec
			if store.Recalls(append([]ratelimit.Op(nil), c.ops...)) {
				t.Error("remembered for longer than a second")
			}
		})
	}
}

func TestAReplyThatIsUnderWayDuringAResetIsNotRemembered(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	store := f.store.Remembering(64, func() int64 { return 0 })
	p := &ratelimit.Policy{ID: "p", Limit: 1, Window: time.Hour}
	ops := []ratelimit.Op{{Policy: p, Key: "k", Cost: 1, Outcome: ratelimit.Outcome{RetryAfter: time.Hour}}}
	for what, change := range map[string]func() error{
		"Reset": func() error { return store.Reset(context.Background(), p, "k") },
		"Block": func() error { return store.Block(context.Background(), p, "k", 0) },
	} {
		store.Remember(ops, func() {
			if err := change(); err != nil {
				t.Error(err)
			}
		})
		if store.Recalls(ops) {
			t.Errorf("remembered after %s", what)
		}
	}
	if store.Remember(ops, func() {}); !store.Recalls(ops) {
		t.Error("not remembered")
	}
}

// The first policies of a call whose keys live apart are charged, and that is given back
// if a later one refuses.
func TestAPolicyThatIsChargedAheadOfOthersIsNotRemembered(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	store := f.store.Apart().Remembering(64, func() int64 { return 0 })
	first := ratelimit.Op{Policy: &ratelimit.Policy{ID: "first", Limit: 1, Window: time.Hour}, Key: "1", Cost: 1}
	second := ratelimit.Op{Policy: &ratelimit.Policy{ID: "second", Limit: 1, Window: time.Hour}, Key: "2", Cost: 1}
	f.take(first)
	f.take(first)
	if !store.Recalls([]ratelimit.Op{first}) {
		t.Error("a refusal by the only policy is not remembered")
	}
	f.take(second, first) // which charges and gives back the second
	if store.Recalls([]ratelimit.Op{second}) || !store.Recalls([]ratelimit.Op{first}) {
		t.Error("it matters who is charged ahead")
	}
	f.take(second)
	f.take(second)
	if store.Recalls([]ratelimit.Op{second}) {
		t.Error("a refusal by a policy that is charged ahead of others is remembered")
	}
	f.take(second, first)
	f.take(first, second)
	if store.Recalls([]ratelimit.Op{first}) {
		t.Error("a refusal by a policy that is charged ahead of others since is remembered")
	}
}

// A bucket with Initial that is new again begins to fill with the next call, also if that
// is refused by another policy.
func TestARefusalIsRememberedUntilABucketIsNew(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	now := int64(0)
	store := f.store.Remembering(64, func() int64 { return now })
	full := ratelimit.Op{Policy: &ratelimit.Policy{ID: "full", Limit: 1, Window: time.Hour}, Key: "k", Cost: 1}
	empty := ratelimit.Op{Policy: &ratelimit.Policy{ID: "empty", Algorithm: ratelimit.TokenBucket, Limit: 1, Window: 100 * time.Millisecond, Initial: ratelimit.Empty}, Key: "k", Cost: 1}
	f.take(full)
	f.take(empty)
	now = 150 * ms
	f.at(now)
	if got := f.take(full, empty); got[0].Allowed || !got[1].Allowed || got[1].ResetAfter != 50*time.Millisecond {
		t.Fatalf("%+v", got)
	}
	now = 200*ms - 1
	if !store.Recalls([]ratelimit.Op{full, empty}) {
		t.Error("not remembered")
	}
	now = 200 * ms
	if store.Recalls([]ratelimit.Op{full, empty}) {
		t.Error("remembered when the bucket is new")
	}
}

// A lock that ends while the limit is still used up is set again by the next call, so
// that is sent.
func TestALockIsSetAgainWhenItIsOver(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	now := int64(0)
	store := f.store.Remembering(64, func() int64 { return now })
	p := &ratelimit.Policy{ID: "p", Limit: 1, Window: time.Hour, Lock: []time.Duration{100 * time.Millisecond, 500 * time.Millisecond}}
	ops := []ratelimit.Op{{Policy: p, Key: "k", Cost: 1}}
	f.take(ops...)
	f.take(ops...)
	locked := f.dump(p)
	now = 100*ms - 1
	f.at(now)
	if f.take(ops...); store.Stats().Remembered != 1 || f.dump(p) != locked {
		t.Errorf("while it is locked: %+v", store.Stats())
	}
	now = 100 * ms
	f.at(now)
	if f.take(ops...); store.Stats().Remembered != 1 || f.dump(p) == locked {
		t.Errorf("after the lock: %+v", store.Stats())
	}
	now += 500*ms - 1
	f.at(now)
	if f.take(ops...); store.Stats().Remembered != 2 {
		t.Errorf("while it is locked again: %+v", store.Stats())
	}
}

func TestAPeekIsAskedEvenIfTheCallIsRemembered(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	store := f.store.Remembering(64, func() int64 { return 0 })
	p := &ratelimit.Policy{ID: "p", Limit: 1, Window: time.Hour}
	call, peek := ratelimit.Op{Policy: p, Key: "k", Cost: 1}, ratelimit.Op{Policy: p, Key: "k", Cost: 1, Peek: true}
	f.take(call)
	f.take(peek)
	if store.Recalls([]ratelimit.Op{call}) {
		t.Error("a peek was remembered")
	}
	f.take(call)
	f.take(peek)
	if n := store.Stats().Remembered; n != 0 {
		t.Errorf("%d peeks were answered from memory", n)
	}
}

func TestMoreRefusalsThanTheMemoryHolds(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	store := f.store.Remembering(64, func() int64 { return 0 })
	p := &ratelimit.Policy{ID: "p", Limit: 1, Window: time.Hour}
	op := func(i int) ratelimit.Op { return ratelimit.Op{Policy: p, Key: fmt.Sprint(i), Cost: 1} }
	for i := range 1000 {
		f.take(op(i))
		f.take(op(i))
	}
	known := 0
	for i := range 1000 {
		if store.Recalls([]ratelimit.Op{op(i)}) {
			known++
		}
	}
	if known < 48 || known > 64 {
		t.Errorf("%d of 1000 refusals are remembered in 64 places", known)
	}
}

func TestARememberedRefusalAllocatesNothing(t *testing.T) {
	client, prefix := sharedClient(t)
	store := redisstore.New(client, redisstore.WithPrefix(prefix), redisstore.WithTimeout(10*time.Second))
	ops := []ratelimit.Op{
		{Policy: &ratelimit.Policy{ID: "p", Limit: 1, Window: time.Hour}, Key: "k", Cost: 1},
		{Policy: &ratelimit.Policy{ID: "all", Limit: 100, Window: time.Hour}, Key: "k", Cost: 1},
	}
	take := func() {
		if err := store.Take(context.Background(), ops); err != nil {
			t.Fatal(err)
		}
	}
	take()
	// It is forgotten after a second, so a batch may have a round trip.
	least := 1.0
	for range 5 {
		take()
		least = min(least, testing.AllocsPerRun(100, take))
	}
	if least > 0 {
		t.Errorf("%v allocations", least)
	}
}

func TestRefusalsAreRememberedInABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := redisstore.New(nil)
		ops := []ratelimit.Op{{Policy: &ratelimit.Policy{ID: "p", Limit: 1, Window: time.Hour}, Key: "k", Cost: 1,
			Outcome: ratelimit.Outcome{RetryAfter: time.Hour, ResetAfter: time.Hour}}}
		store.Remember(ops, func() {})
		time.Sleep(time.Second - 1)
		if !store.Recalls(ops) || ops[0].Outcome.RetryAfter != time.Hour-time.Second+time.Microsecond {
			t.Errorf("not remembered for a second: %+v", ops[0].Outcome)
		}
		time.Sleep(time.Nanosecond)
		if store.Recalls(ops) {
			t.Error("remembered for longer than a second")
		}
	})
}
