package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

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

var _ = errors.Is
