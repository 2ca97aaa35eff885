package redisstore_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

// decider is what stores of all versions do.
type decider interface {
	Take(ctx context.Context, ops []ratelimit.Op) error
	End(ctx context.Context, ends []ratelimit.End) error
}

// previousSource is the script as it was before common.lua. When the script is changed
// again, its present text is to replace it, and Previous to make its arguments.
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
	old *redisstore.Previous
}

func newVersions(t testing.TB, client *redis.Client, source string) *versions {
	prefix := fmt.Sprintf("t%d:", prefixes.Add(1))
	f := &fake{t: t, store: redisstore.NewFakeTime(client, prefix), client: client, prefix: prefix}
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
		pipe.Get(ctx, v.store.KeyOf(p, "k"))
		pipe.PTTL(ctx, v.store.KeyOf(p, "k"))
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

// While processes are updated, some ask the script of this version and some the one
// before. Whichever a call asks, the outcome is the same, and what is written.
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
				var now int64
				var running []uint64
				for i := range rapid.IntRange(1, steps).Draw(rt, "steps") {
					switch rapid.IntRange(0, 9).Draw(rt, "passes") {
					case 0:
						now -= rapid.Int64Range(0, 80*sec).Draw(rt, "back")
					case 1, 2, 3:
						now += rapid.Int64Range(0, 13*sec).Draw(rt, "a unit")
					case 4:
						now += rapid.Int64Range(0, 70*sec).Draw(rt, "a window")
					case 5:
						if !p.Dynamic && p.Burst == 0 && p.Initial == 0 && p.Algorithm != ratelimit.LeakyBucket {
							p.Limit = rapid.Int64Range(2, 8).Draw(rt, "limit")
						}
					}
					all := []*versions{mixed, next, old}
					if err := at(client, now, all); err != nil {
						rt.Fatal(err)
					}
					turn := decider(mixed.store)
					if rapid.Bool().Draw(rt, "old") {
						turn = mixed.old
					}
					deciders := []decider{turn, next.store, old.old}
					var said [3]string
					if len(running) > 0 && rapid.IntRange(0, 2).Draw(rt, "ends") == 0 {
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
					} else {
						most := int64(3)
						if p.Algorithm == ratelimit.Concurrency || p.Algorithm == ratelimit.TimeQuota || p.Algorithm == ratelimit.LeakyBucket {
							most = 1
						} else if !p.Dynamic {
							most = min(most, p.Limit)
						}
						op := ratelimit.Op{Policy: p, Key: "k", Cost: rapid.Int64Range(1, most).Draw(rt, "cost"), Limit: 5, ID: uint64(i) + 1}
						switch rapid.IntRange(0, 9).Draw(rt, "way") {
						case 0:
							op.Peek = true
						case 1:
							op.Waits = true
						case 2:
							op.Refused = true
						}
						if p.Dynamic {
							op.Limit = rapid.Int64Range(3, 8).Draw(rt, "brings")
						}
						ops := []ratelimit.Op{op}
						if rapid.IntRange(0, 3).Draw(rt, "two") == 0 {
							ops = append(ops, ratelimit.Op{Policy: other, Key: "k", Cost: 1, Limit: 9, Peek: op.Peek})
						}
						for j, d := range deciders {
							mine := append([]ratelimit.Op(nil), ops...)
							err := d.Take(ctx, mine)
							if err != nil {
								rt.Fatalf("%+v at %d µs: %v", *p, now, err)
							}
							for k := range mine {
								o := mine[k].Outcome
								if mine[k].Policy.Dynamic && p.Algorithm == ratelimit.TokenBucket {
									// The version before told to wait also for when the key is as new.
									o.RetryAfter = min(o.RetryAfter, o.ResetAfter)
								}
								said[j] += fmt.Sprintf("%+v ", o)
							}
							if j == 0 && mine[0].Outcome.Allowed && !op.Peek {
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

// The version before does not know blocks: to it, the key holds what is not its own.
func TestAKeyThatIsBlockedIsForeignToTheVersionBefore(t *testing.T) {
	t.Parallel()
	client, _ := sharedClient(t)
	for _, p := range everyForm() {
		v := newVersions(t, client, previousSource(t))
		v.at(0)
		v.block(p, time.Minute)
		before := v.dump(p)
		ops := []ratelimit.Op{{Policy: p, Key: "k", Cost: 1, Limit: 5, ID: 1}}
		err := v.old.Take(context.Background(), ops)
		if class := classOf(err); class != redisstore.Invalid || !strings.Contains(err.Error(), "RATELIMIT") || v.dump(p) != before {
			t.Errorf("%s: error %v", p.ID, err)
		}
	}
}
