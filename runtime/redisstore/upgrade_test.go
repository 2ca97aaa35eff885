package redisstore_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

// previousSource is the script as it was when it waited for a clock that was set back by
// up to a window. When the script is changed again, its present text is to replace it, and
// Previous to make its arguments.
func previousSource(t testing.TB) string {
	t.Helper()
	source, err := os.ReadFile("testdata/previous.lua")
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}

// versions are stores with one prefix: of this version and the one before.
type versions struct {
	*fake
	old *redisstore.Store
}

func newVersions(t testing.TB, client *redis.Client, source string) *versions {
	prefix := fmt.Sprintf("t%d:", prefixes.Add(1))
	f := &fake{t: t, store: redisstore.NewFakeTime(client, prefix), client: client, prefix: prefix}
	if redisstore.InHashes() {
		return &versions{f, f.store} // the one before does not know them
	}
	return &versions{f, redisstore.NewFakeTime(client, prefix).Previous(source)}
}

// at sets the time of all to µs after the epoch.
func at(client *redis.Client, µs int64, all []*versions) error {
	var pairs []any
	for _, v := range all {
		pairs = append(pairs, v.prefix+"now", epoch+µs)
	}
	return client.MSet(context.Background(), pairs...).Err()
}

// read returns what all of them hold for p and key k, and for how long.
func read(client *redis.Client, p *ratelimit.Policy, all []*versions) (states []string, lives []time.Duration, err error) {
	ctx := context.Background()
	pipe := client.Pipeline()
	for _, v := range all {
		getState(ctx, pipe, v.store.KeyOf(p, "k"))
		pipe.PTTL(ctx, place(v.store.KeyOf(p, "k")))
	}
	cmds, err := pipe.Exec(ctx)
	if err != nil && err != redis.Nil {
		return nil, nil, err
	}
	for i := 0; i < len(cmds); i += 2 {
		states = append(states, cmds[i].(*redis.StringCmd).Val())
		lives = append(lives, cmds[i+1].(*redis.DurationCmd).Val())
	}
	return states, lives, nil
}

// everyForm returns policies of all forms, and of what is written otherwise in them.
func everyForm() []*ratelimit.Policy {
	all := policies()
	for _, p := range recorded() {
		p.ID += "+"
		all = append(all, p)
	}
	return append(all,
		&ratelimit.Policy{ID: "shadow", Algorithm: ratelimit.TokenBucket, Limit: 5, Window: time.Minute, Mode: ratelimit.Shadow},
		&ratelimit.Policy{ID: "dynamic log", Dynamic: true, Window: time.Minute},
		&ratelimit.Policy{ID: "dynamic fixed", Algorithm: ratelimit.FixedWindow, Dynamic: true, Window: time.Minute},
		&ratelimit.Policy{ID: "dynamic bucket", Algorithm: ratelimit.TokenBucket, Dynamic: true, Window: time.Minute, Burst: 5},
		&ratelimit.Policy{ID: "locked fixed", Algorithm: ratelimit.FixedWindow, Limit: 5, Window: time.Minute, Lock: []time.Duration{time.Minute}},
		&ratelimit.Policy{ID: "locked sliding", Algorithm: ratelimit.SlidingWindow, Limit: 5, Window: time.Minute, Lock: []time.Duration{time.Minute}},
		&ratelimit.Policy{ID: "cost after", Algorithm: ratelimit.TokenBucket, Limit: 5, Window: time.Minute, CostAfter: true},
		&ratelimit.Policy{ID: "leaky", Algorithm: ratelimit.LeakyBucket, Limit: 5, Window: time.Minute},
	)
}

// passes returns the time after now, latest being the latest so far that a key may have
// recorded. It is not set back to where the versions differ: the one before waited for a
// clock that was set back by up to a window, and this one does for MaxStandstill at most.
// For places it is not set back at all: the one before did not keep them in the order in
// which they end then.
func passes(rt *rapid.T, p *ratelimit.Policy, now, latest int64) (later, latestThen int64) {
	switch step := rapid.IntRange(0, 19).Draw(rt, "passes"); {
	case step <= 2 && p.Algorithm == ratelimit.Concurrency:
	case step <= 1:
		return min(now, latest-rapid.Int64Range(0, ratelimit.MaxStandstill.Microseconds()).Draw(rt, "back")), latest
	case step == 2:
		// By far more than passes in a history, so that it is more than a window also where
		// what is recorded does not move at once.
		back := 3 * 3600 * sec
		if p.Align != "" {
			back = 3 * p.Align.Length().Microseconds()
		}
		return now - back, now - back
	case step <= 7:
		now += rapid.Int64Range(0, 13*sec).Draw(rt, "a unit")
	case step <= 9:
		now += rapid.Int64Range(0, 70*sec).Draw(rt, "a window")
	}
	return now, max(now, latest)
}

// While processes are updated, some ask the script of this version and some the one
// before. Whichever a call asks, the outcome is the same, and what is written, wherever the
// clock is not set back by between MaxStandstill and a window.
func TestVersionsOfTheScriptShareAStore(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client, _ := sharedClient(t)
	source := previousSource(t)
	steps := 12
	if longFaults() {
		steps = 40
	}
	for _, policy := range everyForm() {
		t.Run(policy.ID, func(t *testing.T) {
			t.Parallel()
			if err := policy.Validate(); err != nil {
				t.Fatal(err)
			}
			rapid.Check(t, func(rt *rapid.T) {
				mixed, next, old := newVersions(t, client, source), newVersions(t, client, source), newVersions(t, client, source)
				changed := *policy
				p := &changed
				// Beside a policy that may refuse, so that the call is decided as one.
				other := &ratelimit.Policy{ID: "other", Limit: 9, Window: time.Minute}
				var now, latest int64
				var running []uint64
				var ahead []string
				for i := range rapid.IntRange(1, steps).Draw(rt, "steps") {
					now, latest = passes(rt, p, now, latest)
					if rapid.IntRange(0, 9).Draw(rt, "changes") == 0 && !p.Dynamic && p.Burst == 0 && p.Initial == 0 && p.Algorithm != ratelimit.LeakyBucket {
						p.Limit = rapid.Int64Range(2, 8).Draw(rt, "limit")
					}
					all := []*versions{mixed, next, old}
					if err := at(client, now, all); err != nil {
						rt.Fatal(err)
					}
					turn := mixed.store
					if rapid.Bool().Draw(rt, "old") {
						turn = mixed.old
					}
					deciders := []*redisstore.Store{turn, next.store, old.old}
					var said [3]string
					way := rapid.IntRange(0, 19).Draw(rt, "way")
					switch {
					case way == 0:
						d := time.Duration(rapid.Int64Range(0, 20*sec).Draw(rt, "block")) * time.Microsecond
						for j, s := range deciders {
							said[j] = fmt.Sprint(s.Block(ctx, p, "k", d))
						}
					case way == 1 && len(ahead) > 0:
						n := rapid.IntRange(0, len(ahead)-1).Draw(rt, "which")
						for j, s := range deciders {
							said[j] = fmt.Sprint(s.Cancel(ctx, []ratelimit.Op{{Policy: p, Key: "k", Limit: 5}}, ahead[n]))
						}
						ahead = append(ahead[:n], ahead[n+1:]...)
					case len(running) > 0 && rapid.IntRange(0, 2).Draw(rt, "ends") == 0:
						n := rapid.IntRange(0, len(running)-1).Draw(rt, "which")
						what := []ratelimit.Ending{ratelimit.EndGiveBack, ratelimit.EndKeep, ratelimit.EndCharge}
						switch p.Algorithm {
						case ratelimit.Concurrency:
							what = []ratelimit.Ending{ratelimit.EndGiveBack, ratelimit.EndRenew}
						case ratelimit.TimeQuota:
							what = []ratelimit.Ending{ratelimit.EndFinish}
						case ratelimit.LeakyBucket:
							what = []ratelimit.Ending{ratelimit.EndLeave}
						}
						end := ratelimit.End{Policy: p, Key: "k", ID: running[n], Limit: 5,
							What: rapid.SampledFrom(what).Draw(rt, "what"), Units: rapid.Int64Range(1, 3).Draw(rt, "units")}
						if end.What != ratelimit.EndRenew {
							running = append(running[:n], running[n+1:]...)
						}
						for j, d := range deciders {
							said[j] = fmt.Sprint(d.End(ctx, []ratelimit.End{end}))
						}
					default:
						most := int64(3)
						if p.Algorithm == ratelimit.Concurrency || p.Algorithm == ratelimit.TimeQuota || p.Algorithm == ratelimit.LeakyBucket {
							most = 1
						} else if !p.Dynamic {
							most = min(most, p.Limit)
						}
						op := ratelimit.Op{Policy: p, Key: "k", Cost: rapid.Int64Range(1, most).Draw(rt, "cost"), Limit: 5, ID: uint64(i) + 1}
						books := false
						switch way {
						case 2, 3:
							op.Peek = true
						case 4, 5:
							op.Waits = true
						case 6, 7:
							op.Refused = true
						case 8, 9, 10, 11:
							books = reserves(p) && !p.Count && p.Algorithm != ratelimit.TimeQuota
						}
						within := time.Duration(rapid.Int64Range(0, 100*sec).Draw(rt, "within")) * time.Microsecond
						if p.Dynamic {
							op.Limit = rapid.Int64Range(3, 8).Draw(rt, "brings")
						}
						ops := []ratelimit.Op{op}
						if rapid.IntRange(0, 3).Draw(rt, "two") == 0 {
							ops = append(ops, ratelimit.Op{Policy: other, Key: "k", Cost: 1, Limit: 9, Peek: op.Peek})
						}
						for j, d := range deciders {
							mine := append([]ratelimit.Op(nil), ops...)
							var name string
							var err error
							if books {
								name, err = d.Reserve(ctx, mine, within)
							} else {
								err = d.Take(ctx, mine)
							}
							if err != nil {
								rt.Fatalf("%+v at %d µs: %v", *p, now, err)
							}
							said[j] = name
							for k := range mine {
								said[j] += fmt.Sprintf(" %+v", mine[k].Outcome)
							}
							switch {
							case j > 0:
							case name != "":
								ahead = append(ahead, name)
							case mine[0].Outcome.Allowed && !op.Peek:
								running = append(running, op.ID)
							}
						}
					}
					if said[0] != said[1] || said[0] != said[2] {
						rt.Fatalf("%+v at %d µs:\nmixed %s\nnew   %s\nold   %s", *p, now, said[0], said[1], said[2])
					}
					states, lives, err := read(client, p, all)
					if err != nil {
						rt.Fatal(err)
					}
					if states[0] != states[1] || states[0] != states[2] {
						rt.Fatalf("%+v at %d µs, after %s:\nmixed %q\nnew   %q\nold   %q", *p, now, said[0], states[0], states[1], states[2])
					}
					// The server's time, which is real, has passed between them. This version has
					// keys live for longer than the one before, so that it need not set that anew.
					if d := lives[0] - lives[2]; d < -30*time.Second || d > 31*time.Minute {
						rt.Fatalf("%+v at %d µs lives for %v, and %v by the version before", *p, now, lives[0], lives[2])
					}
				}
			})
		})
	}
}
