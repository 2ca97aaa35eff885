package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimittest"
	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

// recorded returns one policy of each form that is not plain, 5 a minute.
func recorded() []*ratelimit.Policy {
	const window = time.Minute
	lock := []time.Duration{time.Second, time.Minute}
	return []*ratelimit.Policy{
		{ID: "log", Algorithm: ratelimit.SlidingLog, Limit: 5, Window: window, Count: true, Lock: lock},
		{ID: "fixed", Algorithm: ratelimit.FixedWindow, Limit: 5, Window: window, Count: true},
		{ID: "bucket", Algorithm: ratelimit.TokenBucket, Limit: 5, Window: window, Count: true, Lock: lock},
		{ID: "initial", Algorithm: ratelimit.TokenBucket, Limit: 5, Window: window, Initial: 3},
		{ID: "interval", Algorithm: ratelimit.TokenBucket, Limit: 5, Window: window, Refill: ratelimit.Interval},
		{ID: "warmup", Algorithm: ratelimit.TokenBucket, Limit: 5, Window: window, Warmup: time.Hour},
		{ID: "align", Algorithm: ratelimit.FixedWindow, Limit: 5, Align: ratelimit.AlignDay, TZ: "Europe/Paris"},
		{ID: "sliding", Algorithm: ratelimit.SlidingWindow, Limit: 5, Window: window, Count: true},
		{ID: "leaky", Algorithm: ratelimit.LeakyBucket, Limit: 5, Window: window, Count: true},
		{ID: "places", Algorithm: ratelimit.Concurrency, Limit: 5},
		{ID: "quota", Algorithm: ratelimit.TimeQuota, Limit: 5, Window: window},
	}
}

func TestEachFormHasKeysOfItsOwn(t *testing.T) {
	t.Parallel()
	store := redisstore.New(nil)
	want := map[string]string{"log": "log+", "fixed": "fixed+", "bucket": "bucket+", "initial": "bucket+", "interval": "interval", "warmup": "warm",
		"align": "aligned", "sliding": "sliding", "leaky": "leaky", "places": "concurrency", "quota": "quota"}
	for _, p := range recorded() {
		if got := store.KeyOf(p, "k"); got != "ratelimit:{k}"+p.ID+":"+want[p.ID] {
			t.Errorf("%s is at %s", p.ID, got)
		}
		// What Limiter.Update changes does not move a key.
		changed := *p
		changed.Dynamic = true
		changed.Limit, changed.Window, changed.Burst, changed.Lease = 7, time.Hour, 9, time.Hour
		if got, was := store.KeyOf(&changed, "k"), store.KeyOf(p, "k"); got != was {
			t.Errorf("%s moves from %s to %s", p.ID, was, got)
		}
	}
}

// cost is 2, or the greatest that p takes.
func cost(p *ratelimit.Policy) int64 { return min(2, p.Capacity()) }

func TestRD03AnyBadArgumentOfAnyFormIsAnError(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := connect(t, startServer(t).addr)
	store := redisstore.New(client)
	bad := []string{"1500.7", "-2", "nan", "-nan", "inf", "1e400", "five", "9223372036854775808", "9007199254740993000"}
	refused := func(what string, cmd []any) {
		t.Helper()
		if err := client.Do(ctx, redisstore.Sent(cmd)...).Err(); err == nil || !strings.Contains(err.Error(), "RATELIMIT") {
			t.Errorf("%s: error %v", what, err)
		}
		if n, err := client.DBSize(ctx).Result(); n != 0 || err != nil {
			t.Fatalf("%s: %d keys were written, %v", what, n, err)
		}
	}
	for _, p := range append(recorded(), &ratelimit.Policy{ID: "dynamic", Algorithm: ratelimit.TokenBucket, Dynamic: true, Window: time.Minute}) {
		ops := []ratelimit.Op{{Policy: p, Key: "k", Cost: cost(p), Limit: 5, ID: 77}}
		if p.Dynamic {
			ops[0].Cost = 2
		}
		ends := []ratelimit.End{{Policy: p, Key: "k", ID: 77, What: ratelimit.EndCharge, Units: 1, Limit: 5}}
		for name, command := range map[string]func() []any{
			"take": func() []any { return store.Command("eval", ops) },
			"end":  func() []any { return store.EndCommand(ends) },
		} {
			if name == "end" && p.Dynamic {
				continue
			}
			for i := 4; i < len(command()); i++ {
				for _, value := range bad {
					cmd := command()
					cmd[i] = value
					refused(fmt.Sprintf("%s %s, ARGV[%d] = %q", p.ID, name, i-3, value), cmd)
				}
			}
			cmd := command()
			refused("an argument less", cmd[:len(cmd)-1])
			refused("an argument more", append(cmd, "1"))
		}
		if err := store.Take(ctx, ops); err != nil || !ops[0].Outcome.Allowed {
			t.Errorf("%s: %+v, %v", p.ID, ops[0].Outcome, err)
		}
		if err := client.FlushDB(ctx).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestForeignContentAtAKeyOfAnyFormIsAnError(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := newFake(t)
	states := map[string]string{}
	for _, p := range recorded() {
		f.take(ratelimit.Op{Policy: p, Key: "k", Cost: cost(p), ID: 7})
		if states[p.ID] = f.dump(p); states[p.ID] == "" {
			t.Fatalf("%s has no state", p.ID)
		}
	}
	for _, p := range recorded() {
		key := f.store.KeyOf(p, "k")
		whole := states[p.ID]
		content := []string{"hello", "5", strings.Repeat("\xff", len(whole)), whole[:1] + strings.Repeat("\xff", len(whole)-1),
			whole[:1] + strings.Repeat("\x00", len(whole)-1), whole + "\x00"}
		for i := range whole {
			content = append(content, whole[:i])
		}
		for other, state := range states {
			if f.store.KeyOf(p, "k") != key && other != p.ID {
				content = append(content, state)
			}
		}
		for _, c := range content {
			_ = setState(ctx, f.client, key, c, time.Hour)
			err := f.store.Take(ctx, []ratelimit.Op{{Policy: p, Key: "k", Cost: 1, ID: 8}})
			if err == nil || !strings.Contains(err.Error(), strconv.Quote(key)) {
				t.Errorf("%s with %q: error %v", p.ID, c, err)
			}
			err = f.store.End(ctx, []ratelimit.End{{Policy: p, Key: "k", ID: 7}})
			if err == nil || !strings.Contains(err.Error(), strconv.Quote(key)) {
				t.Errorf("%s with %q: error %v of an end", p.ID, c, err)
			}
			if after, _ := getState(ctx, f.client, key).Result(); after != c {
				t.Errorf("%s with %q was overwritten", p.ID, c)
			}
		}
		f.client.Del(ctx, place(key))
	}
}

func TestAStateOfAnyFormLivesUntilItIsAsNew(t *testing.T) {
	t.Parallel()
	for _, p := range recorded() {
		t.Run(p.ID, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			var most time.Duration
			for i, µs := range []int64{0, 500, 20 * sec, 30 * sec} {
				f.at(µs)
				got := f.take(ratelimit.Op{Policy: p, Key: "k", Cost: 1, ID: uint64(i + 1)})[0]
				if !got.Allowed {
					continue // what is stored stays as it is
				}
				most = longest(got.ResetAfter, most)
				if ttl := f.ttl(p); ttl > most+time.Millisecond || ttl < got.ResetAfter-5*time.Second {
					t.Errorf("at %d µs the state is as new in %v and lives %v", µs, got.ResetAfter, ttl)
				}
			}
		})
	}
}

// twins are the same limiter in memory and in Redis.
type twins struct {
	rt      *rapid.T
	near    *ratelimit.Gate
	far     *ratelimit.Gate
	policy  ratelimit.Policy
	running [][2]ratelimit.Permit
}

// both takes or peeks, and compares.
func (w *twins) both(what string, key string, cost, limit int64) {
	charge := ratelimit.Charge{Key: []byte(key), Cost: cost, Limit: limit}
	ask := func(g *ratelimit.Gate) (ratelimit.Decision, ratelimit.Permit, error) {
		ctx := context.Background()
		switch what {
		case "peek":
			d, err := g.Peek(ctx, charge)
			return d, ratelimit.Permit{}, err
		case "acquire":
			permit, err := g.Acquire(ctx, []ratelimit.Charge{charge})
			var e *ratelimit.Error
			if errors.As(err, &e) && e.Kind == ratelimit.ErrLimited {
				return e.Decision, permit, nil
			}
			return ratelimit.Decision{Allowed: err == nil}, permit, err
		}
		d, err := g.Take(ctx, charge)
		return d, ratelimit.Permit{}, err
	}
	n, np, nerr := ask(w.near)
	f, fp, ferr := ask(w.far)
	if (nerr == nil) != (ferr == nil) || n != f {
		w.rt.Fatalf("%s of %d for %s with limit %d by %+v:\nin memory %+v, %v\nin Redis  %+v, %v", what, cost, key, limit, w.policy, n, nerr, f, ferr)
	}
	if n.Allowed && what == "acquire" {
		w.running = append(w.running, [2]ratelimit.Permit{np, fp})
	}
}

// On the same trace of calls, Redis decides as memory does.
func TestRedisDecidesAsMemory(t *testing.T) {
	t.Parallel()
	const window = 100 * time.Millisecond
	ends := func(p *ratelimit.Policy) bool {
		return p.Count || p.CostAfter || p.Algorithm == ratelimit.Concurrency || p.Algorithm == ratelimit.TimeQuota
	}
	for _, p := range append(append(recorded(), policies()...),
		&ratelimit.Policy{ID: "cost after", Algorithm: ratelimit.TokenBucket, Limit: 5, Window: window, Count: true, CostAfter: true},
		&ratelimit.Policy{ID: "log cost after", Limit: 5, Window: window, CostAfter: true},
		&ratelimit.Policy{ID: "dynamic log", Dynamic: true, Window: window},
		&ratelimit.Policy{ID: "dynamic bucket", Algorithm: ratelimit.TokenBucket, Dynamic: true, Window: window, Burst: 7},
		&ratelimit.Policy{ID: "dynamic sliding", Algorithm: ratelimit.SlidingWindow, Dynamic: true, Window: window},
		&ratelimit.Policy{ID: "shadow", Algorithm: ratelimit.LeakyBucket, Limit: 3, Window: window, Mode: ratelimit.Shadow, Lock: []time.Duration{time.Second}},
	) {
		if p.Algorithm == ratelimit.LeakyBucket {
			p.Count = false // or Acquire would wait for its turn, by the time of the process
		}
		t.Run(p.ID, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				f := newFake(t)
				clock := ratelimittest.NewClock(time.UnixMicro(epoch))
				p := *p
				if p.Window != 0 {
					p.Window = time.Duration(rapid.Int64Range(50, 200_000).Draw(rt, "window")) * time.Microsecond
				}
				if p.Limit != 0 {
					p.Limit = max(p.Initial, rapid.Int64Range(1, 9).Draw(rt, "limit"))
				}
				spec := &ratelimit.Spec{Policies: []ratelimit.Policy{p}}
				w := twins{rt: rt, policy: p,
					near: ratelimit.New(ratelimit.WithClock(clock)).MustGate(spec),
					far:  ratelimit.New(ratelimit.WithClock(clock), ratelimit.WithStore("", unrenewed{f.store})).MustGate(spec),
				}
				now := int64(0)
				for range rapid.IntRange(1, 60).Draw(rt, "steps") {
					now += rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 50), rapid.Int64Range(0, 60_000), rapid.Int64Range(0, 3*sec)).Draw(rt, "time")
					clock.Set(time.UnixMicro(epoch + now))
					f.at(now)
					key := rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "key")
					limit := rapid.Int64Range(1, 9).Draw(rt, "limit")
					most := p.Capacity()
					if p.Dynamic && p.Burst == 0 {
						most = limit
					}
					switch action := rapid.IntRange(0, 9).Draw(rt, "action"); {
					case action == 0:
						w.both("peek", key, rapid.Int64Range(0, most).Draw(rt, "cost"), limit)
					case action == 1:
						for _, g := range []*ratelimit.Gate{w.near, w.far} {
							if err := g.Reset(context.Background(), []byte(key)); err != nil {
								rt.Fatal(err)
							}
						}
					case action == 9 && p.Initial == 0 && !(p.Dynamic && p.Algorithm == ratelimit.TokenBucket):
						d := time.Duration(rapid.Int64Range(0, 300_000).Draw(rt, "block")) * time.Microsecond
						for _, g := range []*ratelimit.Gate{w.near, w.far} {
							if err := g.Block(context.Background(), d, []byte(key)); err != nil {
								rt.Fatal(err)
							}
						}
					case action < 5 && len(w.running) > 0:
						w.end(rapid.IntRange(0, len(w.running)-1).Draw(rt, "which"), rapid.IntRange(0, 2).Draw(rt, "how"))
					case ends(&p):
						w.both("acquire", key, rapid.Int64Range(0, most).Draw(rt, "cost"), limit)
					default:
						w.both("take", key, rapid.Int64Range(0, most).Draw(rt, "cost"), limit)
					}
					for _, key := range []string{"a", "b"} {
						w.both("peek", key, 1, limit)
					}
				}
			})
		})
	}
}

// end ends a call, or charges it more.
func (w *twins) end(i, how int) {
	for j := range w.running[i] {
		permit := &w.running[i][j]
		switch {
		case how == 0 && w.policy.CostAfter:
			permit.Charge(0, 3)
		case how == 1:
			permit.Keep(0)
			permit.Release()
		default:
			permit.Release()
		}
	}
}

func TestADeadHolderLosesItsPlace(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := newFake(t)
	p := &ratelimit.Policy{ID: "p", Algorithm: ratelimit.Concurrency, Limit: 2, Lease: 10 * time.Second}
	take := func(µs int64, id uint64) ratelimit.Outcome {
		t.Helper()
		f.at(µs)
		return f.take(ratelimit.Op{Policy: p, Key: "k", Cost: 1, ID: id})[0]
	}
	end := func(µs int64, id uint64, what ratelimit.Ending) {
		t.Helper()
		f.at(µs)
		if err := f.store.End(ctx, []ratelimit.End{{Policy: p, Key: "k", ID: id, What: what, Limit: p.Limit}}); err != nil {
			t.Error(err)
		}
	}
	if got := take(0, 1); got != admitted(1, 10*time.Second) {
		t.Errorf("the first: %+v", got)
	}
	if got := take(4*sec, 2); got != admitted(0, 10*time.Second) {
		t.Errorf("the second: %+v", got)
	}
	if got := take(5*sec, 3); got != refused(0, 5*time.Second, 9*time.Second) {
		t.Errorf("the third: %+v", got)
	}
	end(5*sec, 1, ratelimit.EndRenew) // until 15 s
	if got := take(13*sec, 3); got != refused(0, time.Second, 2*time.Second) {
		t.Errorf("after a renewal: %+v", got)
	}
	if got := take(14*sec, 3); got != admitted(0, 10*time.Second) { // 2 is dead
		t.Errorf("in the place of the dead: %+v", got)
	}
	// RT23: the dead neither comes back nor gives back what is another's now.
	end(14*sec, 2, ratelimit.EndRenew)
	end(14*sec, 2, ratelimit.EndGiveBack)
	end(14*sec, 2, ratelimit.EndGiveBack)
	if got := take(14*sec, 4); got.Allowed || got.RetryAfter != time.Second {
		t.Errorf("while both places are taken: %+v", got)
	}
	end(14*sec, 3, ratelimit.EndGiveBack)
	end(14*sec, 3, ratelimit.EndGiveBack)
	if got := take(14*sec, 4); !got.Allowed || got.Remaining != 0 {
		t.Errorf("after a release: %+v", got)
	}
	if got := take(14*sec, 5); got.Allowed {
		t.Errorf("a release was counted twice: %+v", got)
	}
	// A lease that has ended is renewed as long as nobody took the place.
	end(24*sec, 4, ratelimit.EndRenew)
	end(34*sec-1, 4, ratelimit.EndRenew)
	if got := take(40*sec, 6); !got.Allowed || got.Remaining != 0 {
		t.Errorf("beside a place that is renewed: %+v", got)
	}
}

// asking is a store that tells when it was asked.
type asking struct {
	*redisstore.Store
	asked chan<- struct{}
}

func (a asking) Take(ctx context.Context, ops []ratelimit.Op) error {
	err := a.Store.Take(ctx, ops)
	a.asked <- struct{}{}
	return err
}

func TestAWaitingCallGetsWhatAnotherProcessGivesBack(t *testing.T) {
	t.Parallel()
	client, prefix := sharedClient(t)
	asked := make(chan struct{}, 1000)
	gate := func() *ratelimit.Gate {
		store := asking{redisstore.New(client, redisstore.WithPrefix(prefix)), asked}
		return ratelimit.New(ratelimit.WithStore("", store)).MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{
			{ID: "p", Algorithm: ratelimit.Concurrency, Limit: 1, Lease: time.Hour},
		}})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	charges := []ratelimit.Charge{{Key: []byte("k"), Cost: 1}}
	first, err := gate().Acquire(ctx, charges)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error)
	go func() {
		permit, err := gate().AcquireWait(ctx, charges)
		permit.Release()
		got <- err
	}()
	for range 3 { // the first call, and the second one twice
		select {
		case err := <-got:
			t.Fatalf("a second place: %v", err)
		case <-asked:
		}
	}
	first.Release()
	if err := <-got; err != nil {
		t.Errorf("after the release: %v", err)
	}
}

func TestWindowsOfTheCalendarAreThoseOfTheServersTime(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.at(0) // far from this process's time
	p := &ratelimit.Policy{ID: "p", Algorithm: ratelimit.FixedWindow, Limit: 5, Align: ratelimit.AlignSecond}
	f.want(-1, p, 5, admitted(0, time.Microsecond))
	f.want(0, p, 2, admitted(3, time.Second))
	f.want(sec-10, p, 4, refused(3, 10*time.Microsecond, 10*time.Microsecond))
	f.want(sec, p, 4, admitted(1, time.Second))
	f.want(20*sec, p, 5, admitted(0, time.Second)) // by a second try
}

// A changed pace or window is in force at the next call, and what counted still counts.
func TestAChangedPolicyOfAnyFormKeepsWhatWasCounted(t *testing.T) {
	t.Parallel()
	for _, p := range recorded() {
		if p.Algorithm == ratelimit.TimeQuota || p.Warmup != 0 {
			continue
		}
		t.Run(p.ID, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.at(0)
			f.take(ratelimit.Op{Policy: p, Key: "k", Cost: 3, ID: 1})
			for _, limit := range []int64{50, 4, 7} {
				changed := *p
				changed.Limit = limit
				if changed.Window != 0 {
					changed.Window = 2 * time.Minute
				}
				want := limit - 3
				if p.Initial != 0 {
					want = limit - 5
				}
				if got := f.take(ratelimit.Op{Policy: &changed, Key: "k"})[0]; got.Remaining != max(want, 0) {
					t.Errorf("3 of %d: %+v, want %d left", limit, got, want)
				}
			}
			changed := *p
			changed.Limit = 4
			if changed.Window != 0 {
				changed.Window = 2 * time.Minute
			}
			f.at(1)
			if got := f.take(ratelimit.Op{Policy: &changed, Key: "k", Cost: 3, ID: 2})[0]; got.Allowed || got.RetryAfter <= 0 {
				t.Errorf("3 more of 4: %+v", got)
			}
		})
	}
}

func TestAnEndThatTheServerRefusesIsAnErrorAndLeavesTheCharge(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := connect(t, startServer(t).addr)
	store := redisstore.New(client)
	p := &ratelimit.Policy{ID: "p", Limit: 5, Window: time.Hour, Count: true}
	take := func(key string, id uint64) ratelimit.Outcome {
		t.Helper()
		ops := []ratelimit.Op{{Policy: p, Key: key, Cost: 1, ID: id}}
		if err := store.Take(ctx, ops); err != nil {
			t.Fatal(err)
		}
		return ops[0].Outcome
	}
	take("k", 1)
	take("k", 2)
	memory := func(bytes string) {
		t.Helper()
		if err := client.ConfigSet(ctx, "maxmemory", bytes).Err(); err != nil {
			t.Fatal(err)
		}
	}
	end := []ratelimit.End{{Policy: p, Key: "k", ID: 1}}
	memory("1")
	if err := store.End(ctx, end); err == nil || !strings.Contains(err.Error(), "OOM") {
		t.Errorf("out of memory: error %v", err)
	}
	memory("0")
	if got := take("k", 0); got.Remaining != 2 {
		t.Errorf("after an end that was not done: %+v", got)
	}
	// What is wrong with one key does not keep the others from being given back.
	if err := setState(ctx, client, store.KeyOf(p, "foreign"), "hello", time.Hour); err != nil {
		t.Fatal(err)
	}
	err := store.End(ctx, []ratelimit.End{{Policy: p, Key: "foreign", ID: 1}, end[0], {Policy: p, Key: "nobody", ID: 1}})
	if err == nil || !strings.Contains(err.Error(), "foreign") {
		t.Errorf("a foreign key: error %v", err)
	}
	if got := take("k", 0); got.Remaining != 2 {
		t.Errorf("after one was given back: %+v", got)
	}
}

// The shortest windows of a calendar are no longer than a clock may be ahead of a key.
func TestEndsOfTheShortestWindowsOfACalendarAreDone(t *testing.T) {
	t.Parallel()
	p := &ratelimit.Policy{ID: "second", Algorithm: ratelimit.FixedWindow, Limit: 100, Align: ratelimit.AlignSecond, Count: true}
	f := newFake(t)
	for _, at := range []int64{0, sec - 1, -sec, 0} {
		f.at(at)
		f.take(ratelimit.Op{Policy: p, Key: "k", Cost: 1, ID: 1})
		if err := f.store.End(context.Background(), []ratelimit.End{{Policy: p, Key: "k", ID: 1, What: ratelimit.EndGiveBack}}); err != nil {
			t.Errorf("at %d µs: %v", at, err)
		}
	}
}

// Where the windows of the calendar that the ends came with are not those of the server's
// time, all are told once more, and so none was done.
func TestEndsAreDoneOnceWhereTheClockWasSet(t *testing.T) {
	t.Parallel()
	bucket := &ratelimit.Policy{ID: "bucket", Algorithm: ratelimit.TokenBucket, Limit: 100, Window: time.Hour, CostAfter: true}
	minute := &ratelimit.Policy{ID: "minute", Algorithm: ratelimit.FixedWindow, Limit: 100, Align: ratelimit.AlignMinute, CostAfter: true}
	f := newFake(t)
	left := func(p *ratelimit.Policy) int64 { return f.take(ratelimit.Op{Policy: p, Key: "k"})[0].Remaining }
	for _, at := range []int64{0, 10 * 60 * sec, 110*sec + 600*sec, -30 * 60 * sec} {
		f.at(at)
		before := left(bucket)
		err := f.store.End(context.Background(), []ratelimit.End{
			{Policy: bucket, Key: "k", ID: 1, What: ratelimit.EndCharge, Units: 10},
			{Policy: minute, Key: "k", ID: 1, What: ratelimit.EndCharge, Units: 10},
		})
		if err != nil {
			t.Fatal(err)
		}
		if charged := before - left(bucket); charged != 10 {
			t.Errorf("at %d µs: %d units are charged, want 10", at, charged)
		}
		if n := left(minute); n != 90 {
			t.Errorf("at %d µs: %d units are left in the minute, want 90", at, n)
		}
		if err := f.store.Reset(context.Background(), minute, "k"); err != nil {
			t.Fatal(err)
		}
	}
}
