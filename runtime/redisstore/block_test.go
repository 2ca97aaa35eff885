package redisstore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

func (f *fake) block(p *ratelimit.Policy, d time.Duration) {
	f.t.Helper()
	if err := f.store.Block(context.Background(), p, "k", d); err != nil {
		f.t.Fatal(err)
	}
}

// A block refuses for as long as it lasts, and leaves what was counted.
func TestABlockedKeyOfAnyFormIsRefusedUntilTheBlockIsOver(t *testing.T) {
	t.Parallel()
	all := append(recorded(), policies()...)
	all = append(all,
		&ratelimit.Policy{ID: "dynamic bucket", Algorithm: ratelimit.TokenBucket, Dynamic: true, Window: time.Minute, Burst: 5},
		&ratelimit.Policy{ID: "dynamic log", Dynamic: true, Window: time.Minute})
	for _, p := range all {
		for _, counted := range []bool{false, true} {
			f := newFake(t)
			op := ratelimit.Op{Policy: p, Key: "k", Cost: 1, Limit: 5, ID: 7}
			if counted {
				f.take(op)
			}
			before := f.dump(p)
			f.block(p, 10*time.Second)
			blocked := f.dump(p)
			f.at(sec)
			want := 9 * time.Second
			got := f.take(op)[0]
			if p.Warmup != 0 && counted {
				want = max(want, got.RetryAfter)
			}
			if got.Allowed || got.RetryAfter != want || got.Remaining != 0 || got.ResetAfter < want || f.dump(p) != blocked {
				t.Errorf("%s, counted %v, blocked: %+v", p.ID, counted, got)
			}
			f.at(want.Microseconds() + sec - 1)
			if got := f.take(op)[0]; got.Allowed || got.RetryAfter != time.Microsecond {
				t.Errorf("%s, counted %v, at the end of the block: %+v", p.ID, counted, got)
			}
			f.block(p, 0)
			if got := f.dump(p); got != before {
				t.Errorf("%s, counted %v, after the block was lifted: %q, was %q", p.ID, counted, got, before)
			}
			f.block(p, time.Microsecond)
			f.at(want.Microseconds() + sec)
			op.ID++
			if got := f.take(op)[0]; !got.Allowed {
				t.Errorf("%s, counted %v, after the block: %+v", p.ID, counted, got)
			}
			if got := f.dump(p); strings.HasPrefix(got, "X") {
				t.Errorf("%s, counted %v: the next charge leaves %q", p.ID, counted, got)
			}
		}
	}
}

func TestABlockOutlivesWhatWasCountedAndWhatEnds(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	p := &ratelimit.Policy{ID: "p", Limit: 5, Window: time.Minute, Count: true}
	op := ratelimit.Op{Policy: p, Key: "k", Cost: 2, ID: 7}
	f.take(op)
	f.block(p, time.Hour)
	if ttl := f.ttl(p); ttl < 59*time.Minute {
		t.Errorf("a block of an hour lives for %v", ttl)
	}
	if err := f.store.End(context.Background(), []ratelimit.End{{Policy: p, Key: "k", ID: 7, What: ratelimit.EndGiveBack}}); err != nil {
		t.Fatal(err)
	}
	if got := f.take(op)[0]; got.Allowed || got.RetryAfter != time.Hour {
		t.Errorf("after the call before was given back: %+v", got)
	}
	f.block(p, time.Minute/2) // takes the place of the longer one
	if got := f.take(op)[0]; got.Allowed || got.RetryAfter != time.Minute/2 {
		t.Errorf("after a shorter block: %+v", got)
	}
	f.block(p, 0)
	if got := f.take(op)[0]; !got.Allowed || got.Remaining != 3 {
		t.Errorf("after it was lifted: %+v", got)
	}
	f.block(p, time.Hour)
	if err := f.store.Reset(context.Background(), p, "k"); err != nil {
		t.Fatal(err)
	}
	if got := f.take(op)[0]; !got.Allowed {
		t.Errorf("after Reset: %+v", got)
	}
}

func TestABlockIsSeenAtOnceHereAndWithinASecondElsewhere(t *testing.T) {
	t.Parallel()
	now := int64(0)
	here, there, f := elsewhere(t, &now)
	p := &ratelimit.Policy{ID: "p", Limit: 5, Window: time.Hour}
	ops := []ratelimit.Op{{Policy: p, Key: "k", Cost: 1}}
	if err := here.Block(context.Background(), p, "k", time.Hour); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := there.Take(context.Background(), ops); err != nil || ops[0].Outcome.Allowed {
			t.Fatalf("blocked: %+v, %v", ops[0].Outcome, err)
		}
	}
	if err := here.Take(context.Background(), ops); err != nil || ops[0].Outcome.Allowed {
		t.Fatalf("blocked: %+v, %v", ops[0].Outcome, err)
	}
	if err := here.Block(context.Background(), p, "k", 0); err != nil {
		t.Fatal(err)
	}
	if err := here.Take(context.Background(), ops); err != nil || !ops[0].Outcome.Allowed {
		t.Errorf("lifted here: %+v, %v", ops[0].Outcome, err)
	}
	now = sec
	f.at(now)
	if err := there.Take(context.Background(), ops); err != nil || !ops[0].Outcome.Allowed || there.Stats().Remembered != 1 {
		t.Errorf("lifted elsewhere: %+v, %v", ops[0].Outcome, err)
	}
}

func TestABlockThatIsOutOfRangeIsAnError(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	p := policies()[0]
	for _, d := range []time.Duration{-1, ratelimit.MaxWindow + 1} {
		if err := f.store.Block(context.Background(), p, "k", d); err == nil || f.dump(p) != "" {
			t.Errorf("a block of %v: error %v", d, err)
		}
	}
	if err := f.client.RPush(context.Background(), place(f.store.KeyOf(p, "k")), "a").Err(); err != nil {
		t.Fatal(err)
	}
	if err := f.store.Block(context.Background(), p, "k", time.Hour); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("a block of a list: error %v", err)
	}
}
