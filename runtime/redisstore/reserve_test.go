package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimittest"
	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

// reservable are policies of all forms whose calls can be reserved, in windows in which a
// microsecond makes a difference, and in long ones.
func reservable() []*ratelimit.Policy {
	lock := []time.Duration{7 * time.Microsecond, 40 * time.Microsecond}
	all := []*ratelimit.Policy{
		{ID: "bucket", Algorithm: ratelimit.TokenBucket, Limit: 4, Burst: 5},
		{ID: "bucket of thirds", Algorithm: ratelimit.TokenBucket, Limit: 3, Burst: 7},
		{ID: "locked bucket", Algorithm: ratelimit.TokenBucket, Limit: 5, Lock: lock},
		{ID: "initial", Algorithm: ratelimit.TokenBucket, Limit: 5, Initial: 2},
		{ID: "empty", Algorithm: ratelimit.TokenBucket, Limit: 5, Initial: ratelimit.Empty},
		{ID: "interval", Algorithm: ratelimit.TokenBucket, Limit: 2, Burst: 5, Refill: ratelimit.Interval},
		{ID: "warmup", Algorithm: ratelimit.TokenBucket, Limit: 5, Warmup: 50 * time.Microsecond},
		{ID: "leaky", Algorithm: ratelimit.LeakyBucket, Limit: 3, Burst: 5},
		{ID: "fixed", Algorithm: ratelimit.FixedWindow, Limit: 5},
		{ID: "locked fixed", Algorithm: ratelimit.FixedWindow, Limit: 5, Lock: lock[:1]},
		{ID: "log", Algorithm: ratelimit.SlidingLog, Limit: 5},
		{ID: "locked log", Algorithm: ratelimit.SlidingLog, Limit: 5, Lock: lock},
		{ID: "sliding", Algorithm: ratelimit.SlidingWindow, Limit: 5, Segments: 3},
		{ID: "locked sliding", Algorithm: ratelimit.SlidingWindow, Limit: 5, Segments: 3, Lock: lock[:1]},
		{ID: "places", Algorithm: ratelimit.Concurrency, Limit: 5},
		{ID: "queued log", Algorithm: ratelimit.SlidingLog, Limit: 5, MaxQueue: 2},
		{ID: "dynamic log", Algorithm: ratelimit.SlidingLog, Dynamic: true},
		{ID: "dynamic bucket", Algorithm: ratelimit.TokenBucket, Dynamic: true},
		{ID: "dynamic burst", Algorithm: ratelimit.TokenBucket, Dynamic: true, Burst: 5},
		{ID: "locked dynamic", Algorithm: ratelimit.TokenBucket, Dynamic: true, Lock: lock},
		{ID: "dynamic fixed", Algorithm: ratelimit.FixedWindow, Dynamic: true},
		{ID: "shadow", Algorithm: ratelimit.FixedWindow, Limit: 5, Mode: ratelimit.Shadow},
	}
	for _, p := range all {
		p.Window = 101 * time.Microsecond
		if p.Algorithm == ratelimit.Concurrency {
			p.Window, p.Lease = 0, 101*time.Microsecond
		}
	}
	for _, p := range slices.Clone(all) {
		long := *p
		long.ID += ", long"
		if long.Window *= 600_000; p.Algorithm == ratelimit.Concurrency {
			long.Lease *= 600_000
		}
		long.Warmup *= 600_000
		all = append(all, &long)
	}
	return all
}

// pair is gates of the same policies in memory and in Redis.
type pair struct {
	*fake
	rt      *rapid.T
	memory  *ratelimit.Gate
	store   *ratelimit.Gate
	clock   *ratelimittest.Clock
	history []string
	made    [][2]ratelimit.Reservation
}

func newPair(t testing.TB, rt *rapid.T, f *fake, policies ...ratelimit.Policy) *pair {
	w := &pair{fake: f, rt: rt, clock: ratelimittest.NewClock(time.UnixMicro(epoch))}
	spec := &ratelimit.Spec{Method: "p.T.M", Policies: policies}
	w.memory = ratelimit.New(ratelimit.WithClock(w.clock)).MustGate(spec)
	w.store = ratelimit.New(ratelimit.WithClock(w.clock), ratelimit.WithStore("", unrenewed{f.store})).MustGate(spec)
	w.set(0)
	return w
}

func (w *pair) set(µs int64) {
	w.clock.Set(time.UnixMicro(epoch + µs))
	w.fake.at(µs)
}

// both does the same in memory and in Redis, and compares what is told.
func (w *pair) both(what string, f func(g *ratelimit.Gate) (ratelimit.Decision, error)) {
	a, errA := f(w.memory)
	b, errB := f(w.store)
	w.history = append(w.history, fmt.Sprintf("%s: %+v", what, a))
	if errA != nil || errB != nil || a != b {
		text := ""
		for _, h := range w.history {
			text += h + "\n"
		}
		w.rt.Fatalf("%smemory %+v, %v\nRedis  %+v, %v", text, a, errA, b, errB)
	}
}

func (w *pair) reserve(what string, within time.Duration, charges ...ratelimit.Charge) {
	var m [2]ratelimit.Reservation
	n := 0
	w.both(what, func(g *ratelimit.Gate) (ratelimit.Decision, error) {
		var err error
		m[n], err = g.ReserveWithin(context.Background(), within, charges...)
		n++
		return m[n-1].Decision(), err
	})
	w.made = append(w.made, m)
}

// Calls that are reserved, cancelled, made and blocked in any order are told the same in
// memory, which is told what the oracle of ratelimittest says.
func TestReservationsAreThoseOfMemory(t *testing.T) {
	t.Parallel()
	all := reservable()
	for _, p := range all {
		t.Run(p.ID, func(t *testing.T) {
			t.Parallel()
			client, _ := sharedClient(t)
			rapid.Check(t, func(rt *rapid.T) {
				prefix := fmt.Sprintf("t%d:", prefixes.Add(1))
				f := &fake{t: t, store: redisstore.NewFakeTime(client, prefix), client: client, prefix: prefix}
				policies := []ratelimit.Policy{*p}
				for i := range rapid.IntRange(0, 2).Draw(rt, "others") {
					other := *rapid.SampledFrom(all).Draw(rt, "other")
					other.ID = fmt.Sprint(other.ID, i)
					policies = append(policies, other)
				}
				compareReservations(t, rt, f, policies)
			})
		})
	}
}

func compareReservations(t testing.TB, rt *rapid.T, f *fake, policies []ratelimit.Policy) {
	w := newPair(t, rt, f, policies...)
	now, unit := int64(0), max(1, max(policies[0].Window, policies[0].Lease).Microseconds()/60)
	ctx := context.Background()
	for range rapid.IntRange(1, 25).Draw(rt, "steps") {
		now += rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, 30*unit), rapid.Int64Range(0, 150*unit)).Draw(rt, "passes")
		w.set(now)
		charges := make([]ratelimit.Charge, len(policies))
		keys := make([][]byte, len(policies))
		for i := range charges {
			keys[i] = []byte(rapid.SampledFrom([]string{"k", "k", "k", "l"}).Draw(rt, "key"))
			charges[i] = ratelimit.Charge{Key: keys[i], Cost: rapid.OneOf(rapid.Just(int64(1)), rapid.Int64Range(0, 3)).Draw(rt, "cost"),
				Limit: rapid.Int64Range(3, 7).Draw(rt, "limit")}
			if policies[i].Algorithm == ratelimit.LeakyBucket || policies[i].Algorithm == ratelimit.Concurrency {
				charges[i].Cost = min(charges[i].Cost, 1)
			}
		}
		places := slices.ContainsFunc(policies, func(p ratelimit.Policy) bool { return p.Algorithm == ratelimit.Concurrency })
		what := rapid.SampledFrom([]string{"take", "take", "peek", "reserve", "reserve", "reserve", "reserve", "cancel", "cancel", "block", "lift", "reset"}).Draw(rt, "what")
		text := fmt.Sprintf("%d µs %s %v", now, what, charges)
		switch what {
		case "take":
			if places {
				continue // Acquire is for them
			}
			w.both(text, func(g *ratelimit.Gate) (ratelimit.Decision, error) { return g.Take(ctx, charges...) })
		case "peek":
			w.both(text, func(g *ratelimit.Gate) (ratelimit.Decision, error) { return g.Peek(ctx, charges...) })
		case "reserve":
			within := rapid.OneOf(rapid.Just(int64(1000)*unit), rapid.Int64Range(0, 150*unit)).Draw(rt, "within")
			w.reserve(fmt.Sprint(text, " within ", within), time.Duration(within)*time.Microsecond, charges...)
		case "cancel":
			if len(w.made) == 0 {
				continue
			}
			i := rapid.IntRange(max(0, len(w.made)-5), len(w.made)-1).Draw(rt, "which")
			for _, r := range w.made[i] {
				r.Cancel()
				r.Cancel()
			}
			w.both(fmt.Sprint(text, " ", i), func(g *ratelimit.Gate) (ratelimit.Decision, error) { return g.Peek(ctx, charges...) })
		case "reset":
			w.both(text, func(g *ratelimit.Gate) (ratelimit.Decision, error) {
				return ratelimit.Decision{}, g.Reset(ctx, keys...)
			})
		default:
			d := time.Duration(0)
			if what == "block" {
				d = time.Duration(rapid.Int64Range(1, 60*unit).Draw(rt, "for")) * time.Microsecond
			}
			w.both(fmt.Sprint(text, " ", d), func(g *ratelimit.Gate) (ratelimit.Decision, error) {
				return ratelimit.Decision{}, g.Block(ctx, d, keys...)
			})
		}
	}
}

// Before a call that was reserved comes, a bucket refills by the limit that this brings.
func TestAKeyThatOpensAfterAReservationByALowerLimit(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client, _ := sharedClient(t)
	second := time.Second.Microseconds()
	at := func(cost, limit int64) ratelimit.Charge {
		return ratelimit.Charge{Key: []byte("k"), Cost: cost, Limit: limit}
	}
	for _, lock := range [][]time.Duration{nil, {3 * time.Second}} {
		prefix := fmt.Sprintf("t%d:", prefixes.Add(1))
		f := &fake{t: t, store: redisstore.NewFakeTime(client, prefix), client: client, prefix: prefix}
		w := newPair(t, nil, f, ratelimit.Policy{ID: "p", Algorithm: ratelimit.TokenBucket, Dynamic: true, Window: time.Minute, Lock: lock})
		expect := func(allowed bool, retry time.Duration, ask func(g *ratelimit.Gate) (ratelimit.Decision, error)) {
			t.Helper()
			for name, g := range map[string]*ratelimit.Gate{"memory": w.memory, "Redis": w.store} {
				if d, err := ask(g); err != nil || d.Allowed != allowed || d.RetryAfter != retry {
					t.Errorf("lock %v, %s: %+v, %v; want %t, retry after %v", lock, name, d, err, allowed, retry)
				}
			}
		}
		take := func(allowed bool, retry time.Duration, cost, limit int64) {
			t.Helper()
			expect(allowed, retry, func(g *ratelimit.Gate) (ratelimit.Decision, error) { return g.Take(ctx, at(cost, limit)) })
		}
		reserve := func(granted bool, retry, within time.Duration, cost, limit int64) {
			t.Helper()
			expect(granted, retry, func(g *ratelimit.Gate) (ratelimit.Decision, error) {
				r, err := g.ReserveWithin(ctx, within, at(cost, limit))
				return r.Decision(), err
			})
		}
		take(true, 0, 2, 2)
		reserve(true, 0, time.Minute, 1, 2) // it comes at 30 s
		w.set(28 * second)
		if lock == nil {
			expect(false, 0, func(g *ratelimit.Gate) (ratelimit.Decision, error) {
				return ratelimit.Decision{}, g.Block(ctx, 3*time.Second, []byte("k"))
			})
		} else {
			reserve(false, 21*time.Second, time.Second, 6, 6)
		}
		w.set(29 * second)
		// By the limit of 6 the bucket is full, but for the call that comes. With this it
		// misses two units, of which one is back ten seconds later.
		take(false, 11*time.Second, 5, 6)
		reserve(false, 10*time.Second, time.Second, 5, 6)
		take(false, 2*time.Second, 4, 6)
		w.set(40*second - 1)
		expect(false, time.Microsecond, func(g *ratelimit.Gate) (ratelimit.Decision, error) { return g.Peek(ctx, at(5, 6)) })
		w.set(40 * second)
		take(true, 0, 5, 6)
	}
}

// reserve reserves ops, and returns the name and after how long the call comes.
func (f *fake) reserve(within time.Duration, ops ...ratelimit.Op) (name string, delay time.Duration) {
	f.t.Helper()
	name, err := f.store.Reserve(context.Background(), ops, within)
	if err != nil {
		f.t.Fatal(err)
	}
	for i := range ops {
		if !ops[i].Outcome.Allowed {
			return "", -1
		}
		delay = max(delay, ops[i].Outcome.Delay)
	}
	return name, delay
}

func (f *fake) cancel(name string, ops ...ratelimit.Op) {
	f.t.Helper()
	if err := f.store.Cancel(context.Background(), ops, name); err != nil {
		f.t.Fatal(err)
	}
}

// plainForms are policies whose states have no room for calls ahead, with a call that
// takes all that there is.
func plainForms() []*ratelimit.Policy {
	return []*ratelimit.Policy{
		{ID: "log", Limit: 5, Window: time.Minute},
		{ID: "fixed", Algorithm: ratelimit.FixedWindow, Limit: 5, Window: time.Minute},
		{ID: "bucket", Algorithm: ratelimit.TokenBucket, Limit: 5, Window: time.Minute},
	}
}

// A call that is reserved, and one that is cancelled, is one command.
func TestAReservationIsOneCommand(t *testing.T) {
	t.Parallel()
	client := connect(t, startServer(t).addr)
	ctx := t.Context()
	store := redisstore.New(client)
	ops := []ratelimit.Op{{Policy: plainForms()[0], Key: "k", Cost: 5}, {Policy: plainForms()[2], Key: "k", Cost: 1}}
	if err := store.Take(ctx, ops); err != nil {
		t.Fatal(err)
	}
	before := calls(t, client)
	name, err := store.Reserve(ctx, ops, time.Hour)
	if err != nil || name == "" {
		t.Fatalf("%q, %v", name, err)
	}
	if err := store.Cancel(ctx, ops, name); err != nil {
		t.Fatal(err)
	}
	if after := calls(t, client); after["evalsha"] != before["evalsha"]+2 || after["eval"] != before["eval"] {
		t.Errorf("sent %v, before %v", after, before)
	}
}

// When what was reserved has come, the next charge leaves the state of a key that never
// had anything ahead.
func TestAKeyWithNothingAheadHasAPlainState(t *testing.T) {
	t.Parallel()
	for _, p := range plainForms() {
		f := newFake(t)
		one := ratelimit.Op{Policy: p, Key: "k", Cost: 1}
		all := ratelimit.Op{Policy: p, Key: "k", Cost: 5}
		f.take(one)
		name, delay := f.reserve(time.Hour, all)
		if delay <= 0 || !strings.HasPrefix(f.dump(p), "R") {
			t.Fatalf("%s: after %v, %q", p.ID, delay, f.dump(p))
		}
		f.cancel(name, all)
		plain := newFake(t)
		plain.take(one)
		if got, want := f.dump(p), plain.dump(p); got != want {
			t.Errorf("%s, cancelled: %q, want %q", p.ID, got, want)
		}
		_, delay = f.reserve(time.Hour, all)
		for _, w := range []*fake{f, plain} {
			w.at(delay.Microseconds())
			if w == plain {
				w.take(all)
			}
			w.at(delay.Microseconds() + 59*sec)
			w.take(ratelimit.Op{Policy: p, Key: "k", Cost: 1})
		}
		if p.Algorithm != ratelimit.TokenBucket { // which is charged once that time more, of which nothing is left
			f.at(delay.Microseconds() + 60*sec)
			plain.at(delay.Microseconds() + 60*sec)
			f.take(one)
			plain.take(one)
		}
		if got, want := f.dump(p), plain.dump(p); got != want {
			t.Errorf("%s, after it has come: %q, want %q", p.ID, got, want)
		}
	}
}

// A key lives for as long as it has calls ahead, and what they take is not gone.
func TestAKeyOutlivesWhatIsAhead(t *testing.T) {
	t.Parallel()
	for _, p := range reservable() {
		if p.Dynamic || p.Window < time.Second || p.Mode == ratelimit.Shadow || p.Algorithm == ratelimit.LeakyBucket {
			continue
		}
		f := newFake(t)
		op := ratelimit.Op{Policy: p, Key: "k", Cost: 3}
		var last time.Duration
		for range 3 {
			_, d := f.reserve(ratelimit.MaxWindow, op)
			last = max(last, d)
		}
		op.Peek = true
		reset := f.take(op)[0].ResetAfter
		if ttl := f.ttl(p); last == 0 || reset <= last || ttl < reset-5*time.Second || ttl > reset+time.Second {
			t.Errorf("%s: the last comes after %v, and the state is as new in %v and lives for %v", p.ID, last, reset, ttl)
		}
	}
}

func TestAReservationWhoseReplyIsLostIsChargedOnce(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(t)
	proxy := startProxy(t, l, s.addr)
	client := redis.NewClient(&redis.Options{Addr: proxy.addr})
	t.Cleanup(func() { client.Close() })
	direct := redisstore.New(connect(t, s.addr))
	for _, p := range plainForms() {
		p.Window = time.Hour
		op := ratelimit.Op{Policy: p, Key: "k", Cost: 3}
		for _, command := range []string{"eval", "evalsha"} {
			if err := connect(t, s.addr).FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			if command == "eval" {
				if err := connect(t, s.addr).ScriptFlush(t.Context()).Err(); err != nil {
					t.Fatal(err)
				}
			}
			if err := direct.Reset(t.Context(), p, "k"); err != nil {
				t.Fatal(err)
			}
			ops := []ratelimit.Op{op}
			if command == "evalsha" {
				if err := direct.Take(t.Context(), ops); err != nil {
					t.Fatal(err)
				}
			}
			store := redisstore.New(client)
			proxy.lose(command)
			if name, err := store.Reserve(t.Context(), []ratelimit.Op{op}, 10*time.Hour); err == nil || name != "" {
				t.Errorf("%s: the reply to %s is lost: %q, %v", p.ID, command, name, err)
			}
			want := 1
			if command == "evalsha" {
				want = 2
			}
			ops[0].Peek = true
			if err := direct.Take(t.Context(), ops); err != nil {
				t.Fatal(err)
			}
			if got := ops[0].Outcome; want == 1 && got.Remaining != 2 || want == 2 && (got.Remaining != 0 || got.Allowed) {
				t.Errorf("%s: the reply to %s is lost: %+v", p.ID, command, got)
			}
			raw, err := getState(t.Context(), connect(t, s.addr), direct.KeyOf(p, "k")).Result()
			if n := (len(raw) - 10) / 27; err != nil || strings.HasPrefix(raw, "R") != (want == 2) || want == 2 && raw[9] != 1 {
				t.Errorf("%s: %d calls ahead: %q, %v", p.ID, n, raw, err)
			}
		}
	}
	if n := proxy.losses(); n != 6 {
		t.Errorf("%d replies were lost", n)
	}
}

func TestWithoutAServerReservationsAreMadeByOnError(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DialerRetries: 1, MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	for _, c := range []struct {
		onError ratelimit.OnError
		delay   time.Duration
	}{{ratelimit.LocalOnError, 12 * time.Second}, {ratelimit.AllowOnError, 0}, {ratelimit.DenyOnError, 0}} {
		clock := ratelimittest.NewClock(time.UnixMicro(epoch))
		gate := ratelimit.New(ratelimit.WithStore("", redisstore.New(client, quiet)), ratelimit.WithClock(clock)).MustGate(&ratelimit.Spec{Method: "p.T.M",
			Policies: []ratelimit.Policy{{ID: "p", Global: true, Algorithm: ratelimit.TokenBucket, Limit: 5, Window: time.Minute, OnError: c.onError}}})
		for _, delay := range []time.Duration{0, c.delay, c.delay} {
			r, err := gate.Reserve(t.Context(), ratelimit.Charge{Cost: min(5, 1+4*int64(c.delay))})
			if c.onError == ratelimit.DenyOnError {
				if !errors.Is(err, ratelimit.ErrStore) {
					t.Errorf("deny: %v", err)
				}
				continue
			}
			if c.delay > 0 && delay > 0 {
				delay = time.Minute
			}
			if err != nil || !r.OK() || r.Delay() != delay || !r.Decision().Degraded {
				t.Errorf("on error %d: %+v, %v; want a delay of %v", c.onError, r.Decision(), err, delay)
			}
			if delay > 0 {
				r.Cancel() // in memory
			}
		}
	}
}

func TestWhatRedisCannotReserveIsAnError(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	log := ratelimit.Policy{ID: "log", Limit: 5, Window: time.Minute}
	other := ratelimit.Policy{ID: "other", Limit: 5, Window: time.Minute}
	for want, c := range map[string]struct {
		store    *redisstore.Store
		policies []ratelimit.Policy
	}{
		"policy \"aligned\" cannot be reserved ahead, since it has align": {f.store, []ratelimit.Policy{log,
			{ID: "aligned", Algorithm: ratelimit.FixedWindow, Limit: 5, Align: ratelimit.AlignDay}}},
		"name a hash tag in WithPrefix": {redisstore.NewFakeTime(f.client, f.prefix).Apart(), []ratelimit.Policy{log, other}},
	} {
		gate := ratelimit.New(ratelimit.WithStore("", c.store)).MustGate(&ratelimit.Spec{Method: "p.T.M", Policies: c.policies})
		r, err := gate.Reserve(t.Context(), ratelimit.Charge{Key: []byte("a"), Cost: 1}, ratelimit.Charge{Key: []byte("b"), Cost: 1})
		if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(fmt.Sprint(err), want) || !strings.HasPrefix(fmt.Sprint(err), "ratelimit: p.T.M: ") || r.OK() {
			t.Errorf("%+v, error %v, want %q", r.Decision(), err, want)
		}
		if n, err := f.client.Keys(t.Context(), f.prefix+"{*").Result(); err != nil || len(n) != 0 {
			t.Errorf("%s: wrote %q, %v", want, n, err)
		}
	}
	// With a hash tag they live together.
	tagged := redisstore.NewFakeTime(f.client, f.prefix+"{t}").Apart()
	gate := ratelimit.New(ratelimit.WithStore("", tagged)).MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{log, other}})
	if r, err := gate.Reserve(t.Context(), ratelimit.Charge{Key: []byte("a"), Cost: 1}, ratelimit.Charge{Key: []byte("b"), Cost: 1}); err != nil || !r.OK() {
		t.Errorf("%+v, %v", r.Decision(), err)
	}
	for _, p := range []*ratelimit.Policy{
		{ID: "quota", Algorithm: ratelimit.TimeQuota, Limit: 5, Window: time.Minute},
		{ID: "count", Limit: 5, Window: time.Minute, Count: true},
	} {
		if _, err := f.store.Reserve(t.Context(), []ratelimit.Op{{Policy: p, Key: "k", Cost: 1}}, 0); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: error %v", p.ID, err)
		}
	}
	if err := f.store.Cancel(t.Context(), []ratelimit.Op{{Policy: &log, Key: "k", Cost: 1}}, "r1"); err == nil {
		t.Error("a name of another store was cancelled")
	}
}

// What is refused beside calls that are reserved is not remembered: another process may
// cancel them.
func TestARefusalBesideReservationsIsNotRemembered(t *testing.T) {
	t.Parallel()
	for _, p := range append(plainForms(),
		&ratelimit.Policy{ID: "locked", Limit: 5, Window: time.Minute, Lock: []time.Duration{time.Microsecond}},
		&ratelimit.Policy{ID: "sliding", Algorithm: ratelimit.SlidingWindow, Limit: 5, Window: time.Minute}) {
		now := int64(0)
		here, there, f := elsewhere(t, &now)
		other := &ratelimit.Policy{ID: "other", Limit: 1, Window: time.Hour}
		both := []ratelimit.Op{{Policy: p, Key: "k", Cost: 3}, {Policy: other, Key: "k", Cost: 1}}
		takes := func(s *redisstore.Store, cost int64) ratelimit.Outcome {
			t.Helper()
			ops := []ratelimit.Op{{Policy: p, Key: "k", Cost: cost}}
			if err := s.Take(t.Context(), ops); err != nil {
				t.Fatal(err)
			}
			return ops[0].Outcome
		}
		f.take(ratelimit.Op{Policy: other, Key: "k", Cost: 1})
		name, delay := f.reserve(2*time.Hour, both...)
		if delay != time.Hour {
			t.Fatalf("%s: comes after %v", p.ID, delay)
		}
		for range 2 {
			if o := takes(there, 3); o.Allowed || o.Remaining != 2 && len(p.Lock) == 0 {
				t.Errorf("%s, beside 3 of 5: %+v", p.ID, o)
			}
			now += 2
			f.at(now)
		}
		if n := there.Stats().Remembered; n != 0 {
			t.Errorf("%s: %d refusals were remembered", p.ID, n)
		}
		if err := here.Cancel(t.Context(), both, name); err != nil {
			t.Fatal(err)
		}
		if o := takes(there, 3); !o.Allowed {
			t.Errorf("%s, cancelled elsewhere: %+v", p.ID, o)
		}
		takes(there, 3)
		if takes(there, 3); there.Stats().Remembered != 1 && len(p.Lock) == 0 {
			t.Errorf("%s: with nothing ahead, %d refusals were remembered", p.ID, there.Stats().Remembered)
		}
	}
}

// Units of a fixed window are used in that window, also if the key lives for longer
// because a call was reserved.
func TestALeaseEndsWithItsWindowBesideReservations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := &ratelimit.Policy{ID: "p", Algorithm: ratelimit.FixedWindow, Limit: 100, Window: time.Minute}
	other := &ratelimit.Policy{ID: "other", Limit: 1, Window: time.Minute + 40*time.Second}
	s := w.process(50, time.Minute, 0)
	for want := range 2 {
		ops := []ratelimit.Op{{Policy: p, Key: "k", Cost: 1}, {Policy: other, Key: "k", Cost: 1}}
		name, err := s.Reserve(t.Context(), ops, time.Hour)
		// With leases, a log counts in a longer window.
		if d := ops[0].Outcome.Delay; err != nil || (name != "") != (want == 1) || d != time.Duration(want)*(2*time.Minute+40*time.Second) {
			t.Fatalf("%q after %v, %v", name, d, err)
		}
	}
	take := func() int64 {
		t.Helper()
		before := s.Stats().Leased
		ops := []ratelimit.Op{{Policy: p, Key: "k", Cost: 1}}
		if err := s.Take(t.Context(), ops); err != nil || !ops[0].Outcome.Allowed {
			t.Fatalf("%+v, %v", ops[0].Outcome, err)
		}
		return s.Stats().Leased - before
	}
	w.pass(30 * sec)
	leased := int64(0)
	for range 20 {
		leased += take()
	}
	if leased < 5 {
		t.Errorf("%d calls were decided from a lease", leased)
	}
	for take() != 0 { // to where units have just been taken
	}
	w.pass(30*sec - 1)
	if take() != 1 {
		t.Error("the units were not used in their window")
	}
	w.pass(1)
	if take() != 0 {
		t.Error("a unit of the window before was used")
	}
}

func TestForeignContentInPlaceOfCallsAheadIsAnError(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	for _, p := range append(plainForms(), &ratelimit.Policy{ID: "locked", Limit: 5, Window: time.Minute, Lock: []time.Duration{time.Second}}) {
		op := ratelimit.Op{Policy: p, Key: "k", Cost: 4}
		f.reserve(time.Hour, op)
		name, _ := f.reserve(time.Hour, op)
		whole := f.dump(p)
		content := []string{"R", "R" + strings.Repeat("\xff", len(whole)-1), "R" + strings.Repeat("\x00", len(whole)-1), whole + "\x00",
			whole[:10] + strings.Repeat("\x00", 27) + whole[37:]}
		for i := 1; i < len(whole); i++ {
			if i != 37 { // where nothing but the call is left
				content = append(content, whole[:i])
			}
		}
		key := f.store.KeyOf(p, "k")
		for _, c := range content {
			_ = setState(t.Context(), f.client, key, c, time.Hour)
			err := f.store.Take(t.Context(), []ratelimit.Op{{Policy: p, Key: "k", Cost: 1}})
			_, err2 := f.store.Reserve(t.Context(), []ratelimit.Op{op}, time.Hour)
			err3 := f.store.Cancel(t.Context(), []ratelimit.Op{op}, name)
			for _, err := range []error{err, err2, err3} {
				if classOf(err) != redisstore.Invalid || !strings.Contains(err.Error(), strconv.Quote(key)) {
					t.Errorf("%s with %q: error %v", p.ID, c, err)
				}
			}
			if after := f.dump(p); after != c {
				t.Errorf("%s with %q was overwritten", p.ID, c)
			}
		}
	}
}

func TestAnyBadArgumentOfAReservationIsAnError(t *testing.T) {
	t.Parallel()
	client := connect(t, startServer(t).addr)
	store := redisstore.New(client)
	for _, p := range reservable() {
		ops := []ratelimit.Op{{Policy: p, Key: "k", Cost: 1, Limit: 5, ID: 77}}
		for _, what := range []string{"book", "cancel"} {
			whole := store.AheadCommand(what, ops)
			refused := func(cmd []any) {
				t.Helper()
				if err := client.Do(t.Context(), redisstore.Sent(cmd)...).Err(); err == nil || !strings.Contains(err.Error(), "RATELIMIT") {
					t.Errorf("%s, %s %q: error %v", p.ID, what, cmd[4:], err)
				}
				if n, err := client.DBSize(t.Context()).Result(); n != 0 || err != nil {
					t.Fatalf("%s, %s %q: %d keys were written, %v", p.ID, what, cmd[4:], n, err)
				}
			}
			for i := 4; i < len(whole); i++ {
				for _, bad := range []string{"1500.7", "-2", "nan", "inf", "five", "9223372036854775808"} {
					cmd := slices.Clone(whole)
					cmd[i] = bad
					refused(cmd)
				}
			}
			refused(whole[:len(whole)-1])
			refused(append(slices.Clone(whole), "1"))
			if err := client.Do(t.Context(), redisstore.Sent(whole)...).Err(); err != nil {
				t.Errorf("%s, %s: %v", p.ID, what, err)
			}
			if err := client.FlushDB(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A key has a thousand calls ahead at most, and a decision beside them is made in time.
func TestCallsAheadOfAKeyAreBounded(t *testing.T) {
	t.Parallel()
	for _, p := range []*ratelimit.Policy{
		{ID: "log", Limit: 4096, Window: time.Minute},
		{ID: "bucket", Algorithm: ratelimit.TokenBucket, Limit: 1, Window: time.Second},
		{ID: "fixed", Algorithm: ratelimit.FixedWindow, Limit: 1, Window: time.Second},
		{ID: "sliding", Algorithm: ratelimit.SlidingWindow, Limit: 1, Window: time.Second},
	} {
		if p.ID != "bucket" && !longFaults() {
			continue
		}
		f := newFake(t)
		op := ratelimit.Op{Policy: p, Key: "k", Cost: p.Limit}
		for i := range 1001 {
			if name, delay := f.reserve(ratelimit.MaxWindow, op); delay < 0 || (name == "") != (i == 0) {
				t.Fatalf("%s: the %d-th one comes after %v", p.ID, i, delay)
			}
		}
		if name, delay := f.reserve(ratelimit.MaxWindow, op); name != "" || delay >= 0 {
			t.Errorf("%s: one more comes after %v", p.ID, delay)
		}
		began := time.Now()
		op.Peek = true
		f.take(op)
		t.Logf("%s: %d bytes, %v", p.ID, len(f.dump(p)), time.Since(began))
	}
}

// Processes that reserve at a time get the times one after the other.
func TestProcessesReserveTimesOfTheirOwn(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	p := &ratelimit.Policy{ID: "p", Algorithm: ratelimit.TokenBucket, Limit: 10, Window: time.Second, Burst: 2}
	delays := make([]time.Duration, 40)
	var all sync.WaitGroup
	for i := range delays {
		all.Go(func() {
			s := redisstore.NewFakeTime(f.client, f.prefix)
			ops := []ratelimit.Op{{Policy: p, Key: "k", Cost: 1}}
			if _, err := s.Reserve(t.Context(), ops, time.Minute); err != nil {
				t.Error(err)
			}
			delays[i] = ops[0].Outcome.Delay
		})
	}
	all.Wait()
	slices.Sort(delays)
	for i, d := range delays {
		if want := time.Duration(max(0, i-1)) * 100 * time.Millisecond; d != want {
			t.Errorf("the %d-th one comes after %v, want %v", i, d, want)
		}
	}
}

// A key is as new by the limit of the call that was reserved, also before that has come,
// and a call of another limit is told to wait no longer.
func TestACallWaitsNoLongerThanForACallOfAnotherLimit(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	full := ratelimit.Op{Policy: &ratelimit.Policy{ID: "full", Algorithm: ratelimit.FixedWindow, Limit: 1, Window: time.Second}, Key: "k", Cost: 1}
	dynamic := ratelimit.Op{Policy: &ratelimit.Policy{ID: "p", Algorithm: ratelimit.TokenBucket, Dynamic: true, Window: time.Minute}, Key: "k", Cost: 1, Limit: 4}
	f.at(0)
	f.take(full)
	if _, delay := f.reserve(time.Hour, full, dynamic); delay != time.Second {
		t.Fatalf("comes after %v", delay)
	}
	dynamic.Limit, dynamic.Cost = 3, 3
	// One of 4 a minute comes back in 15 s, one of 3 in 20.
	if o := f.take(dynamic)[0]; o.Allowed || o.RetryAfter != 16*time.Second || o.ResetAfter != 16*time.Second {
		t.Errorf("before it has come: %+v", o)
	}
	f.at(16*sec - 1)
	if o := f.take(dynamic)[0]; o.Allowed || o.RetryAfter != time.Microsecond {
		t.Errorf("before RetryAfter: %+v", o)
	}
	f.at(16 * sec)
	if o := f.take(dynamic)[0]; !o.Allowed {
		t.Errorf("after RetryAfter: %+v", o)
	}
}

// Reservations move with a clock that is set back for good.
func TestReservationsMoveWithAClockThatIsSetBack(t *testing.T) {
	t.Parallel()
	for _, p := range plainForms() {
		f := newFake(t)
		all := ratelimit.Op{Policy: p, Key: "k", Cost: 5}
		f.take(all)
		if _, delay := f.reserve(time.Hour, all); delay != time.Minute {
			t.Fatalf("%s: comes after %v", p.ID, delay)
		}
		f.at(-3600 * sec)
		one := ratelimit.Op{Policy: p, Key: "k", Cost: 1}
		if o := f.take(one)[0]; o.Allowed || o.RetryAfter > 2*time.Minute {
			t.Errorf("%s, set back by an hour: %+v", p.ID, o)
		}
		f.at(-3540 * sec)
		if o := f.take(one)[0]; o.Allowed || o.RetryAfter > time.Minute {
			t.Errorf("%s, when it has come: %+v", p.ID, o)
		}
		f.at(-3480 * sec)
		if o := f.take(one)[0]; !o.Allowed {
			t.Errorf("%s, when that is over: %+v", p.ID, o)
		}
	}
}

// A charge that is given back leaves the time of a key that has calls ahead as it was,
// wherever the clock is set back to, as if it had not been made.
func TestAChargeGivenBackLeavesTheTimeOfCallsAhead(t *testing.T) {
	t.Parallel()
	for _, p := range []ratelimit.Policy{
		{ID: "log"},
		{ID: "fixed", Algorithm: ratelimit.FixedWindow},
		{ID: "sliding", Algorithm: ratelimit.SlidingWindow},
		{ID: "bucket", Algorithm: ratelimit.TokenBucket},
		{ID: "interval", Algorithm: ratelimit.TokenBucket, Refill: ratelimit.Interval},
	} {
		// A lock is remembered for longer than what was charged before it.
		p.Limit, p.Window, p.Lock = 2, time.Minute, []time.Duration{10 * time.Second, 20 * time.Second}
		for name, now := range map[string]time.Duration{
			"by 10 s":  60 * time.Second,
			"for good": -time.Hour,
		} {
			t.Run(p.ID+" "+name, func(t *testing.T) {
				t.Parallel()
				f := newFake(t)
				clock := ratelimittest.NewClock(time.UnixMicro(epoch))
				spec := &ratelimit.Spec{Policies: []ratelimit.Policy{p, {ID: "later", Limit: 1, Window: 100 * time.Second},
					{ID: "full", Limit: 1, Window: 10 * time.Hour}}}
				at := func(d time.Duration) {
					clock.Set(time.UnixMicro(epoch).Add(d))
					f.at(d.Microseconds())
				}
				// The keys live apart, so that the first is charged before the last refuses.
				charges := func(cost, later, full int64) []ratelimit.Charge {
					return []ratelimit.Charge{{Key: []byte("k"), Cost: cost, Skip: cost == 0}, {Key: []byte("k"), Cost: later, Skip: later == 0},
						{Key: []byte("l"), Cost: full, Skip: full == 0}}
				}
				memory := ratelimit.New(ratelimit.WithClock(clock)).MustGate(spec)
				store := ratelimit.New(ratelimit.WithClock(clock), ratelimit.WithStore("", f.store.Apart())).MustGate(spec)
				both := func(what string, call func(*ratelimit.Gate) (ratelimit.Decision, error)) ratelimit.Decision {
					t.Helper()
					near, errNear := call(memory)
					far, errFar := call(store)
					if errNear != nil || errFar != nil || near != far {
						t.Errorf("%s:\nin memory %+v, %v\nin Redis  %+v, %v", what, near, errNear, far, errFar)
					}
					return near
				}
				take := func(what string, allowed bool, cost, later, full int64) {
					t.Helper()
					d := both(what, func(g *ratelimit.Gate) (ratelimit.Decision, error) {
						return g.Take(t.Context(), charges(cost, later, full)...)
					})
					if d.Allowed != allowed {
						t.Fatalf("%s: %+v", what, d)
					}
				}
				take("full", true, 0, 0, 1)
				take("at first", true, 2, 0, 0)
				take("locked", false, 1, 0, 0)
				at(20 * time.Second)
				take("later", true, 0, 1, 0)
				at(70*time.Second - time.Microsecond)
				d := both("reserved", func(g *ratelimit.Gate) (ratelimit.Decision, error) {
					r, err := g.Reserve(t.Context(), charges(1, 1, 0)...)
					return r.Decision(), err
				})
				if !d.Allowed || d.Delay != 50*time.Second+time.Microsecond {
					t.Fatalf("reserved: %+v", d)
				}
				take("given back", false, 1, 0, 1)
				at(now)
				for _, cost := range []int64{1, 2} {
					both("set back", func(g *ratelimit.Gate) (ratelimit.Decision, error) {
						return g.Peek(t.Context(), charges(cost, 0, 0)...)
					})
				}
			})
		}
	}
}

// An update keeps what is reserved at its time, as in memory. Of a bucket, Redis takes the
// new pace to have held since the last call, and memory since the update.
func TestAnUpdateKeepsReservationsAsInMemory(t *testing.T) {
	t.Parallel()
	for _, p := range append(plainForms()[:2], &ratelimit.Policy{ID: "sliding", Algorithm: ratelimit.SlidingWindow, Limit: 5, Window: time.Minute}) {
		for _, limit := range []int64{2, 7, 10} {
			f := newFake(t)
			clock := ratelimittest.NewClock(time.UnixMicro(epoch))
			spec := &ratelimit.Spec{Policies: []ratelimit.Policy{*p}}
			limiters := []*ratelimit.Limiter{ratelimit.New(ratelimit.WithClock(clock)), ratelimit.New(ratelimit.WithClock(clock), ratelimit.WithStore("", f.store))}
			var said [2][]ratelimit.Decision
			for i, l := range limiters {
				gate := l.MustGate(spec)
				set := func(at int64) {
					clock.Set(time.UnixMicro(epoch + at))
					f.at(at)
				}
				tell := func(d ratelimit.Decision, err error) {
					t.Helper()
					if err != nil {
						t.Fatal(err)
					}
					said[i] = append(said[i], d)
				}
				charge := func(cost int64) ratelimit.Charge { return ratelimit.Charge{Key: []byte("k"), Cost: cost} }
				var made []ratelimit.Reservation
				for j, cost := range []int64{5, 2, 3, 1} {
					set(int64(j) * 1001)
					r, err := gate.Reserve(t.Context(), charge(cost))
					tell(r.Decision(), err)
					made = append(made, r)
				}
				if err := l.Update(p.ID, ratelimit.Patch{Limit: &limit}); err != nil {
					t.Fatal(err)
				}
				for j, at := range []int64{4004, 59 * sec, 60 * sec, 61 * sec, 75 * sec, 120 * sec, 140 * sec, 260 * sec} {
					set(at)
					if j == 1 {
						made[2].Cancel()
					}
					tell(gate.Peek(t.Context(), charge(2)))
					if j == 4 {
						r, err := gate.Reserve(t.Context(), charge(2))
						tell(r.Decision(), err)
					}
					tell(gate.Take(t.Context(), charge(1)))
				}
			}
			for j := range said[0] {
				if said[0][j] != said[1][j] {
					t.Errorf("%s, limit %d, decision %d:\nin memory %+v\nin Redis  %+v", p.ID, limit, j, said[0][j], said[1][j])
				}
			}
		}
	}
}

// A call that was cancelled stays charged if its window keeps a later one, which was told
// its time, from coming too early.
func TestCancelKeepsWhatLaterCallsStandBy(t *testing.T) {
	t.Parallel()
	for _, lock := range [][]time.Duration{nil, {time.Second}} { // a state of either kind
		f := newFake(t)
		window := &ratelimit.Policy{ID: "window", Algorithm: ratelimit.FixedWindow, Limit: 5, Window: time.Minute, Lock: lock}
		log := &ratelimit.Policy{ID: "log", Limit: 1, Window: 65 * time.Second}
		take := func(cost int64) ratelimit.Op { return ratelimit.Op{Policy: window, Key: "k", Cost: cost} }
		f.take(take(0), ratelimit.Op{Policy: log, Key: "k", Cost: 1})
		f.take(take(5))
		first, delay := f.reserve(time.Hour, take(4))
		if delay != time.Minute {
			t.Fatalf("the first comes after %v", delay)
		}
		if _, delay := f.reserve(time.Hour, take(1), ratelimit.Op{Policy: log, Key: "k", Cost: 1}); delay != 65*time.Second {
			t.Fatalf("the second comes after %v", delay)
		}
		third, delay := f.reserve(time.Hour, take(5))
		if delay != 2*time.Minute {
			t.Fatalf("the third comes after %v", delay)
		}
		// Without the first, the second would begin a window of which 5 s are left when
		// the third comes, and have taken a unit of it.
		f.cancel(first, take(4))
		f.at(59 * sec)
		state := f.dump(window)
		f.cancel(first, take(4))
		if f.dump(window) != state {
			t.Errorf("what others stand by was taken out: %q, was %q", f.dump(window), state)
		}
		f.at(125 * sec)
		if o := f.take(take(1))[0]; o.Allowed || o.RetryAfter != 55*time.Second {
			t.Errorf("%+v", o)
		}
		f.cancel(third, take(5)) // which has come
		if o := f.take(take(1))[0]; o.Allowed || o.RetryAfter != 55*time.Second {
			t.Errorf("after its time was cancelled: %+v", o)
		}
	}
}

// An op that is cancelled together with one that is not known any more, or holds what is
// not its own, is cancelled.
func TestCancelDoesWhatItCan(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	a, b, c := plainForms()[0], plainForms()[1], plainForms()[2]
	all := []ratelimit.Op{{Policy: a, Key: "k", Cost: 5}, {Policy: b, Key: "k", Cost: 5}, {Policy: c, Key: "k", Cost: 5}}
	f.take(all...)
	name, delay := f.reserve(time.Hour, all...)
	if delay != time.Minute {
		t.Fatal(delay)
	}
	if err := f.store.Reset(t.Context(), a, "k"); err != nil {
		t.Fatal(err)
	}
	_ = setState(t.Context(), f.client, f.store.KeyOf(b, "k"), "Rubbish", time.Hour)
	if err := f.store.Cancel(t.Context(), all, name); classOf(err) != redisstore.Invalid {
		t.Errorf("error %v", err)
	}
	if state := f.dump(c); strings.HasPrefix(state, "R") {
		t.Errorf("was not cancelled: %q", state)
	}
	if f.dump(a) != "" || f.dump(b) != "Rubbish" {
		t.Errorf("%q, %q", f.dump(a), f.dump(b))
	}
}
