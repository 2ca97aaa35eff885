package redisstore_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

// drawCommon draws a policy that common.lua decides.
func drawCommon(t *rapid.T, i int) *ratelimit.Policy {
	windows := []time.Duration{time.Microsecond, 3 * time.Microsecond, time.Second, time.Minute, 71*time.Minute + 35*time.Second, 24 * time.Hour, ratelimit.MaxWindow}
	limits := []int64{1, 2, 3, 5, 7, 100, 4096, 4097, 1_000_003, ratelimit.MaxLimit}
	for {
		p := &ratelimit.Policy{
			ID:        fmt.Sprint("p", i),
			Algorithm: rapid.SampledFrom([]ratelimit.Algorithm{ratelimit.TokenBucket, ratelimit.FixedWindow, ratelimit.SlidingLog}).Draw(t, "algorithm"),
			Limit:     rapid.SampledFrom(limits).Draw(t, "limit"),
			Window:    rapid.SampledFrom(windows).Draw(t, "window"),
		}
		if p.Algorithm == ratelimit.TokenBucket && rapid.Bool().Draw(t, "has burst") {
			p.Burst = rapid.SampledFrom(limits).Draw(t, "burst")
		}
		if p.Validate() == nil {
			return p
		}
	}
}

// What common.lua decides and writes is what the other parts of the script do.
func TestCommonCallsAreDecidedAsAllOthers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client, _ := sharedClient(t)
	another := func() *fake {
		prefix := fmt.Sprintf("t%d:", prefixes.Add(1))
		return &fake{t: t, store: redisstore.NewFakeTime(client, prefix), client: client, prefix: prefix}
	}
	common := 0
	rapid.Check(t, func(t *rapid.T) {
		a, b := another(), another()
		var all []*ratelimit.Policy
		for i := range rapid.IntRange(1, 3).Draw(t, "policies") {
			all = append(all, drawCommon(t, i))
		}
		var now int64
		for range rapid.IntRange(1, 40).Draw(t, "calls") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				i := rapid.IntRange(0, len(all)-1).Draw(t, "which")
				p := drawCommon(t, i)
				p.Algorithm = all[i].Algorithm
				if p.Algorithm != ratelimit.TokenBucket {
					p.Burst = 0
				}
				if p.Validate() == nil {
					all[i] = p
				}
			case 1:
				now -= rapid.Int64Range(0, 5_000_000).Draw(t, "back")
			case 2, 3:
				w := all[0].Window.Microseconds()
				now += rapid.Int64Range(0, 2*w/max(all[0].Limit, 1)+2).Draw(t, "a unit")
			case 4:
				now += rapid.Int64Range(0, all[0].Window.Microseconds()+1).Draw(t, "a window")
			}
			a.at(now)
			b.at(now)
			var ops, others []ratelimit.Op
			for _, p := range all {
				most := max(1, p.Capacity()/rapid.SampledFrom([]int64{1, 3, 1 << 40}).Draw(t, "part"))
				op := ratelimit.Op{Policy: p, Key: "k", Cost: rapid.Int64Range(1, most).Draw(t, "cost")}
				if redisstore.IsCommon(&op) {
					common++
				}
				ops, others = append(ops, op), append(others, op)
			}
			if err := a.store.Take(ctx, ops); err != nil {
				t.Fatal(err)
			}
			if err := b.store.TakePlain(ctx, others); err != nil {
				t.Fatal(err)
			}
			for i := range ops {
				if ops[i].Outcome != others[i].Outcome {
					t.Fatalf("%+v, cost %d at %d µs: %+v, want %+v", *ops[i].Policy, ops[i].Cost, now, ops[i].Outcome, others[i].Outcome)
				}
				x, y := a.dump(all[i]), b.dump(all[i])
				if x != y {
					t.Fatalf("%+v, cost %d at %d µs: state %q, want %q", *ops[i].Policy, ops[i].Cost, now, x, y)
				}
				// A key that lives for longer than it has to, as others that are called do.
				need := b.ttl(all[i])
				most := need + 30*time.Minute + 5*time.Second
				if ttl := a.ttl(all[i]); x != "" && (ttl < need-5*time.Second || ttl > most) {
					t.Fatalf("%+v: lives %v, want %v", *ops[i].Policy, ttl, need)
				}
			}
		}
	})
	if common == 0 {
		t.Error("no call was one of the common ones")
	}
}

func TestRD03ABadArgumentOfACommonCallIsAnError(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := connect(t, startServer(t).addr)
	store := redisstore.New(client)
	var ops []ratelimit.Op
	for _, p := range policies() {
		ops = append(ops, ratelimit.Op{Policy: p, Key: "k", Cost: 1})
	}
	expectRefused := func(what string, cmd []any) {
		t.Helper()
		if err := client.Do(ctx, redisstore.Sent(cmd)...).Err(); err == nil || !strings.Contains(err.Error(), "RATELIMIT") {
			t.Errorf("%s: error %v", what, err)
		}
		if n, err := client.DBSize(ctx).Result(); n != 0 || err != nil {
			t.Fatalf("%s: %d keys were written, %v", what, n, err)
		}
	}
	first := 3 + len(ops)
	for i := first; i < first+len(ops); i++ {
		argument := func(change func([]byte) []byte) []any {
			cmd := store.CommonCommand(ops)
			cmd[i] = change(slices.Clone(cmd[i].([]byte)))
			return cmd
		}
		cases := map[string][]any{
			"empty":        argument(func(b []byte) []byte { return nil }),
			"one byte":     argument(func(b []byte) []byte { return b[:1] }),
			"a byte less":  argument(func(b []byte) []byte { return b[:len(b)-1] }),
			"a byte more":  argument(func(b []byte) []byte { return append(b, 0) }),
			"another kind": argument(func(b []byte) []byte { b[0] = 'X'; return b }),
		}
		if ops[i-first].Policy.Algorithm == ratelimit.TokenBucket {
			// What its argument ends with is for rare calls.
			cases["no pace"] = argument(func(b []byte) []byte { copy(b[8:], make([]byte, 4)); return b })
			cases["no cost"] = argument(func(b []byte) []byte { copy(b[23:], make([]byte, 11)); return b })
			cases["a cost"] = argument(func(b []byte) []byte { copy(b[23:], "\x7f\xff\xff\xff\xff\xff\xff"); return b })
			cases["a rest"] = argument(func(b []byte) []byte { copy(b[30:], "\xff\xff\xff\xff"); return b })
			for _, cmd := range cases {
				// And these calls are rare where it is wrong as well.
				if b := cmd[i].([]byte); len(b) == 53 {
					copy(b[len(b)-15:], make([]byte, 7))
				}
			}
		} else {
			cases["no limit"] = argument(func(b []byte) []byte { copy(b[len(b)-19:], make([]byte, 4)); return b })
			cases["no window"] = argument(func(b []byte) []byte { copy(b[len(b)-15:], make([]byte, 7)); return b })
			cases["a window"] = argument(func(b []byte) []byte { copy(b[len(b)-15:], "\xff\xff\xff\xff\xff\xff\xff"); return b })
			cases["a cost"] = argument(func(b []byte) []byte { copy(b[len(b)-4:], "\x7f\xff\xff\xff"); return b })
		}
		for what, cmd := range cases {
			expectRefused(fmt.Sprintf("ARGV[%d], %s", i-first+1, what), cmd)
		}
	}
	cmd := store.CommonCommand(ops)
	expectRefused("an argument less", cmd[:len(cmd)-1])
	expectRefused("an argument more", append(cmd, cmd[len(cmd)-1]))
	cmd[2] = "0"
	expectRefused("no keys", cmd)
	joined := func(change func([]byte) []byte) []any {
		cmd := store.JoinedCommand(ops)
		cmd[first] = change(cmd[first].([]byte))
		return cmd
	}
	expectRefused("a byte for more calls than there are", joined(func(b []byte) []byte { return append(b, 1) }))
	expectRefused("a byte for fewer", joined(func(b []byte) []byte { return b[:len(b)-1] }))
	expectRefused("no byte", joined(func(b []byte) []byte { return b[:1] }))
	for _, which := range []byte{0, byte(len(ops) + 1), 255} {
		// Nothing is done for calls whose argument is none.
		cmd := joined(func(b []byte) []byte { return append([]byte{'M'}, slices.Repeat([]byte{which}, len(ops))...) })
		reply, err := client.Do(ctx, cmd...).Slice()
		if err != nil || !slices.Equal(reply, make([]any, len(ops))) {
			t.Errorf("calls by argument %d: %v, error %v, want a reply of nils", which, reply, err)
		}
		if n, err := client.DBSize(ctx).Result(); n != 0 || err != nil {
			t.Fatalf("calls by argument %d: %d keys were written, %v", which, n, err)
		}
	}
	if err := client.Do(ctx, redisstore.Sent(store.CommonCommand(ops))...).Err(); err != nil {
		t.Errorf("the arguments as they are: %v", err)
	}
	if reply, err := client.Do(ctx, store.JoinedCommand(ops)...).Slice(); err != nil || slices.Contains(reply, nil) {
		t.Errorf("the arguments as they are, of calls: %v, error %v", reply, err)
	}
}

func TestRD19AReplyToACommonCallThatMakesNoSenseIsAnError(t *testing.T) {
	t.Parallel()
	bulk := func(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }
	be := func(n uint64, width int) string { return string(binary.BigEndian.AppendUint64(nil, n)[8-width:]) }
	pack := func(tag string, fields ...uint64) string { // of 4 and 7 bytes in turn
		for i, f := range fields {
			tag += be(f, []int{4, 7, 7}[i])
		}
		return bulk(tag)
	}
	debt := func(tag string, q, r uint64) string { return bulk(tag + be(q, 7) + be(r, 4)) }
	window := uint64(time.Minute.Microseconds())
	good := map[string][]string{
		"log":    {":3\r\n", pack("v", 3, window), pack("w", 5, window, 7)},
		"fixed":  {pack("W", 3, window), pack("v", 0, 0), pack("w", 5, 7, 7)},
		"bucket": {fmt.Sprintf(":%d\r\n", window), debt("a", 5, 0), debt("b", window+5, 0), bulk("B" + be(9, 7) + be(5, 7) + be(0, 4) + be(5, 7) + be(1, 4))},
	}
	bad := map[string][]string{
		"log":    {pack("w", 5, window, 0), pack("v", 6, window), pack("w", 1<<31, window, 7), pack("v", 3, 1<<55), pack("w", 5, 7, 1<<55), pack("x", 3, 7), debt("a", 5, 0), bulk("w")},
		"fixed":  {":3\r\n", pack("W", 6, window), pack("w", 5, window, 0), pack("V", 3, 7), debt("B", 5, 0), bulk("W")},
		"bucket": {fmt.Sprintf(":%d\r\n", window+1), debt("a", window+1, 0), debt("a", 5, 1<<20), debt("b", window, 0), debt("b", 5, 0), debt("b", 1<<54, 0), debt("c", 5, 0), pack("W", 3, window), bulk("B")},
	}
	for _, p := range policies() {
		for _, reply := range slices.Concat(good[p.ID], bad[p.ID]) {
			isGood := slices.Contains(good[p.ID], reply)
			client := connect(t, babble(t, reply))
			ops := []ratelimit.Op{{Policy: p, Key: "k", Cost: 1}}
			err := redisstore.New(client, quiet).Take(context.Background(), ops)
			o := ops[0].Outcome
			if isGood && (err != nil || o.Remaining > p.Limit || o.Allowed != (o.RetryAfter == 0)) {
				t.Errorf("%s, %q: %+v, error %v", p.ID, reply, o, err)
			}
			if !isGood && (err == nil || o != (ratelimit.Outcome{})) {
				t.Errorf("%s, %q: %+v, error %v, want one", p.ID, reply, o, err)
			}
		}
	}
}
