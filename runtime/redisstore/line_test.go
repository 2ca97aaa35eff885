package redisstore_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

// Processes that wait for places have them in turn, also if one of them calls again as
// soon as it has given one back.
func TestProcessesThatWaitForPlacesHaveThemInTurn(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 6*time.Second)
	defer cancel()
	s := startServer(t)
	const processes = 4
	k := []ratelimit.Charge{{Key: []byte("k"), Cost: 1}}
	var got [processes]int
	var longest [processes]time.Duration
	var all sync.WaitGroup
	for i := range processes {
		gate := ratelimit.New(ratelimit.WithStore("", redisstore.New(connect(t, s.addr)))).MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{
			{ID: "p", Algorithm: ratelimit.Concurrency, Limit: 2, Lease: time.Hour}}})
		all.Go(func() {
			for {
				start := time.Now()
				permit, err := gate.AcquireWait(ctx, k)
				if err != nil {
					return
				}
				longest[i] = max(longest[i], time.Since(start))
				time.Sleep(100 * time.Millisecond)
				permit.Release()
				got[i]++
			}
		})
	}
	all.Wait()
	t.Logf("places by process %v, the longest wait %v", got, longest)
	sum, least := 0, got[0]
	for i, n := range got {
		sum, least = sum+n, min(least, n)
		if longest[i] > 2*time.Second {
			t.Errorf("process %d waited %v", i, longest[i])
		}
	}
	if 2*processes*least < sum {
		t.Errorf("places by process %v: one has less than half of its share", got)
	}
	if sum < 60 { // of the 120 that there could be without a break
		t.Errorf("%d places in 6 s, since nobody takes those that are free", sum)
	}
}

// waits is a call that waits for places, by its ticket.
func waits(p *ratelimit.Policy, id, ticket uint64, cost int64) ratelimit.Op {
	return ratelimit.Op{Policy: p, Key: "k", Cost: cost, Limit: p.Limit, ID: id, Ticket: uint64(cost)<<32 | ticket, Waits: true}
}

func TestPlacesAreGivenInTheOrderOfTickets(t *testing.T) {
	t.Parallel()
	p := &ratelimit.Policy{ID: "places", Algorithm: ratelimit.Concurrency, Limit: 2, Lease: time.Minute}
	f := newFake(t)
	want := func(op ratelimit.Op, allowed bool, before int64) {
		t.Helper()
		o := f.take(op)[0]
		if o.Allowed != allowed || o.Before != before || allowed != (o.RetryAfter == 0) {
			t.Errorf("call %d: %+v, want allowed %t and %d before it", op.ID, o, allowed, before)
		}
	}
	end := func(id uint64) {
		t.Helper()
		if err := f.store.End(context.Background(), []ratelimit.End{{Policy: p, Key: "k", ID: id, What: ratelimit.EndGiveBack}}); err != nil {
			t.Fatal(err)
		}
	}
	f.at(0)
	want(waits(p, 1, 1, 1), true, 0)
	want(waits(p, 2, 2, 1), true, 0)
	want(waits(p, 3, 3, 2), false, 0) // two places
	want(waits(p, 4, 4, 1), false, 1)
	want(waits(p, 5, 5, 1), false, 2)
	f.at(1 * sec)
	want(waits(p, 3, 3, 2), false, 0)
	want(waits(p, 5, 5, 1), false, 2)
	end(1)
	want(waits(p, 4, 4, 1), false, 1) // as there is not room for both
	first := waits(p, 6, 0, 1)
	first.Ticket = 0
	want(first, false, 0)
	end(2)
	want(waits(p, 5, 5, 1), false, 2)
	want(waits(p, 3, 3, 2), true, 0)
	end(3)
	now := ratelimit.Op{Policy: p, Key: "k", Cost: 1, Limit: 2, ID: 7}
	want(now, true, 0) // it does not wait, and takes what is free
	end(7)
	want(waits(p, 5, 5, 1), true, 0) // beside the one that waits before it
	end(5)
	end(uint64(1)<<32 | 4) // which waits no more
	want(waits(p, 8, 8, 2), true, 0)
	end(8)
	if state := f.dump(p); state != "" {
		t.Errorf("%q is left", state)
	}
}

// A process that dies while it waits is forgotten, and so is one whose call other limits
// refuse.
func TestPlacesAreNotKeptForThoseWhoDoNotAsk(t *testing.T) {
	t.Parallel()
	p := &ratelimit.Policy{ID: "places", Algorithm: ratelimit.Concurrency, Limit: 1, Lease: time.Minute}
	other := &ratelimit.Policy{ID: "rate", Algorithm: ratelimit.FixedWindow, Limit: 1, Window: time.Minute}
	f := newFake(t)
	f.at(0)
	f.take(waits(p, 1, 1, 1))
	f.take(waits(p, 2, 2, 1))
	if err := f.store.End(context.Background(), []ratelimit.End{{Policy: p, Key: "k", ID: 1, What: ratelimit.EndGiveBack}}); err != nil {
		t.Fatal(err)
	}
	f.at(1 * sec)
	o := f.take(waits(p, 3, 3, 1))[0]
	if o.Allowed || o.RetryAfter <= 0 {
		t.Errorf("beside one that waits: %+v", o)
	}
	retry := 1*sec + o.RetryAfter.Microseconds()
	f.at(retry - 1)
	if o := f.take(waits(p, 3, 3, 1))[0]; o.Allowed {
		t.Errorf("earlier than told: %+v", o)
	}
	f.at(retry)
	if o := f.take(waits(p, 3, 3, 1))[0]; !o.Allowed {
		t.Errorf("when told: %+v", o)
	}

	// It is first in line, and refused by another limit when it could have the place.
	f.take(waits(p, 4, 4, 1))
	if err := f.store.End(context.Background(), []ratelimit.End{{Policy: p, Key: "k", ID: 3, What: ratelimit.EndGiveBack}}); err != nil {
		t.Fatal(err)
	}
	rate := ratelimit.Op{Policy: other, Key: "k", Cost: 1, Limit: 1}
	f.take(rate)
	both := f.take(waits(p, 4, 4, 1), rate)
	if !both[0].Allowed || both[1].Allowed {
		t.Fatalf("both: %+v", both)
	}
	if o := f.take(waits(p, 5, 5, 1))[0]; !o.Allowed {
		t.Errorf("a place is kept for one that cannot have it: %+v", o)
	}
}

// The first in line asks once a second, which is no reason to forget it where leases are as
// short.
func TestWhoIsInLineIsNotForgottenWhereLeasesAreShort(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	p := &ratelimit.Policy{ID: "places", Algorithm: ratelimit.Concurrency, Limit: 1, Lease: 500 * time.Millisecond}
	at := func(ms int64, op ratelimit.Op, before int64) {
		t.Helper()
		f.at(ms * 1000)
		if o := f.take(op)[0]; o.Allowed != (op.Ticket == 0) || o.Before != before {
			t.Errorf("at %d ms: %+v, want %d before it", ms, o, before)
		}
	}
	renew := func(ms int64) {
		f.at(ms * 1000)
		if err := f.store.End(context.Background(), []ratelimit.End{{Policy: p, Key: "k", ID: 1, What: ratelimit.EndRenew}}); err != nil {
			t.Fatal(err)
		}
	}
	at(0, ratelimit.Op{Policy: p, Key: "k", Cost: 1, Limit: 1, ID: 1}, 0)
	at(100, waits(p, 2, 2, 1), 0)
	at(200, waits(p, 3, 3, 1), 1)
	for ms := int64(250); ms < 1200; ms += 250 {
		renew(ms)
	}
	at(1050, waits(p, 3, 3, 1), 1)
	at(1100, waits(p, 2, 2, 1), 0)
	at(1150, waits(p, 3, 3, 1), 1)
}

// A process with the version before this one, which knows no line, sees which places have
// ended while there is one.
func TestTheVersionBeforeKnowsWhatEndsBesideALine(t *testing.T) {
	t.Parallel()
	client, _ := sharedClient(t)
	for _, lease := range []time.Duration{3 * time.Second, 10 * time.Second} {
		v := newVersions(t, client, previousSource(t))
		p := &ratelimit.Policy{ID: "places", Algorithm: ratelimit.Concurrency, Limit: 4, Lease: lease}
		take := func(store *redisstore.Store, op ratelimit.Op) ratelimit.Outcome {
			t.Helper()
			ops := []ratelimit.Op{op}
			if err := store.Take(context.Background(), ops); err != nil {
				t.Fatal(err)
			}
			return ops[0].Outcome
		}
		place := func(id uint64, cost int64) ratelimit.Op {
			return ratelimit.Op{Policy: p, Key: "k", Cost: cost, Limit: 4, ID: id}
		}
		µs := lease.Microseconds()
		v.at(0)
		if o := take(v.old, place(1, 3)); !o.Allowed {
			t.Fatalf("three of four: %+v", o)
		}
		v.at(µs / 2)
		if o := take(v.store, place(2, 1)); !o.Allowed {
			t.Fatalf("the fourth: %+v", o)
		}
		v.at(µs - 1)
		if o := take(v.store, waits(p, 3, 3, 2)); o.Allowed {
			t.Fatalf("the fifth: %+v", o)
		}
		v.at(µs)
		if o := take(v.old, place(4, 2)); !o.Allowed || o.Remaining != 1 {
			t.Errorf("two, when three have ended: %+v", o)
		}
		v.at(µs*3/2 - 1)
		if o := take(v.old, place(5, 2)); o.Allowed {
			t.Errorf("two, when one is left: %+v", o)
		}
		v.at(µs * 3 / 2)
		if o := take(v.old, place(6, 2)); !o.Allowed {
			t.Errorf("two, when two are left: %+v", o)
		}
	}
}

// Whatever tickets there are, there are never more places than the limit, for none of the
// versions, and none is lost for good.
func TestTicketsLeaveThePlacesAlone(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client, _ := sharedClient(t)
	source := previousSource(t)
	rapid.Check(t, func(rt *rapid.T) {
		v := newVersions(t, client, source)
		lease := rapid.SampledFrom([]int64{3, 10}).Draw(rt, "lease") * sec
		p := &ratelimit.Policy{ID: "places", Algorithm: ratelimit.Concurrency, Limit: rapid.Int64Range(1, 4).Draw(rt, "limit"),
			Lease: time.Duration(lease) * time.Microsecond}
		now := int64(0)
		ends := map[uint64]int64{} // of leases
		units := map[uint64]int64{}
		for i := range rapid.IntRange(1, 40).Draw(rt, "steps") {
			now += rapid.Int64Range(0, lease*2/5).Draw(rt, "passes")
			v.at(now)
			held := int64(0)
			for id, end := range ends {
				if end <= now {
					delete(ends, id)
				} else {
					held += units[id]
				}
			}
			id := uint64(i) + 1
			cost := rapid.Int64Range(1, p.Limit).Draw(rt, "cost")
			op := ratelimit.Op{Policy: p, Key: "k", Cost: cost, Limit: p.Limit, ID: id}
			store := v.store
			if rapid.IntRange(0, 3).Draw(rt, "version") == 0 {
				store = v.old
			}
			end := func(id uint64, what ratelimit.Ending) {
				if err := store.End(ctx, []ratelimit.End{{Policy: p, Key: "k", ID: id, What: what}}); err != nil {
					rt.Fatal(err)
				}
			}
			switch rapid.IntRange(0, 6).Draw(rt, "what") {
			case 1, 2, 3:
				store = v.store
				op = waits(p, id, rapid.Uint64Range(1, 5).Draw(rt, "ticket"), cost)
			case 4:
				store = v.store
				w := waits(p, id, rapid.Uint64Range(1, 5).Draw(rt, "quits"), cost)
				end(w.Ticket, ratelimit.EndGiveBack)
				continue
			case 5, 6:
				if len(ends) > 0 {
					var ids []uint64
					for id := uint64(1); id <= uint64(i); id++ {
						if _, ok := ends[id]; ok {
							ids = append(ids, id)
						}
					}
					one := rapid.SampledFrom(ids).Draw(rt, "which")
					if rapid.Bool().Draw(rt, "renews") {
						end(one, ratelimit.EndRenew)
						ends[one] = now + lease
					} else {
						end(one, ratelimit.EndGiveBack)
						delete(ends, one)
					}
					continue
				}
			}
			ops := []ratelimit.Op{op}
			if err := store.Take(ctx, ops); err != nil {
				rt.Fatal(err)
			}
			o := ops[0].Outcome
			if o.Allowed {
				if held+cost > p.Limit {
					rt.Fatalf("%d of %d places are taken, and %d more", held, p.Limit, cost)
				}
				ends[id], units[id] = now+lease, cost
			} else if op.Ticket == 0 && held+cost <= p.Limit {
				rt.Fatalf("%d of %d places are taken, and a call that does not wait is refused %d: %+v", held, p.Limit, cost, o)
			}
			if ttl := v.ttl(p); len(ends) > 0 {
				last := int64(0)
				for _, end := range ends {
					last = max(last, end)
				}
				if left := time.Duration(last-now) * time.Microsecond; ttl < left-5*time.Second {
					rt.Fatalf("a lease ends in %v, and the key lives %v", left, ttl)
				}
			}
		}
		// All are forgotten in the end.
		v.at(now + lease + sec)
		if o := v.take(ratelimit.Op{Policy: p, Key: "k", Cost: p.Limit, Limit: p.Limit, ID: 999})[0]; !o.Allowed {
			rt.Fatalf("when all leases have ended: %+v", o)
		}
	})
}

// A call that waits no more does not keep others from the place that it waited for.
func TestACallThatWaitsNoMoreIsNotInLine(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := startServer(t)
	gate := func() *ratelimit.Gate {
		return ratelimit.New(ratelimit.WithStore("", redisstore.New(connect(t, s.addr)))).MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{
			{ID: "p", Algorithm: ratelimit.Concurrency, Limit: 1, Lease: time.Hour}}})
	}
	holder, leaver, next := gate(), gate(), gate()
	k := []ratelimit.Charge{{Key: []byte("k"), Cost: 1}}
	held, err := holder.Acquire(ctx, k)
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if _, err := leaver.AcquireWait(short, k); err == nil {
		t.Fatal("a place was had that is taken")
	}
	time.Sleep(100 * time.Millisecond) // the store is told in the background
	held.Release()
	start := time.Now()
	permit, err := next.AcquireWait(ctx, k)
	if err != nil {
		t.Fatal(err)
	}
	permit.Release()
	if took := time.Since(start); took > time.Second {
		t.Errorf("the place was kept for %v", took)
	}
}

// A call that another limit refuses as well does not keep the next place from others.
func TestACallThatOtherLimitsRefuseIsNotInLine(t *testing.T) {
	t.Parallel()
	p := &ratelimit.Policy{ID: "places", Algorithm: ratelimit.Concurrency, Limit: 1, Lease: time.Minute}
	rate := ratelimit.Op{Policy: &ratelimit.Policy{ID: "rate", Algorithm: ratelimit.FixedWindow, Limit: 1, Window: time.Minute}, Key: "k", Cost: 1, Limit: 1}
	f := newFake(t)
	f.at(0)
	f.take(rate)
	f.take(waits(p, 1, 1, 1))
	f.take(waits(p, 2, 2, 1), rate)
	if o := f.take(waits(p, 3, 3, 1))[0]; o.Allowed || o.Before != 0 {
		t.Errorf("the first in line: %+v", o)
	}
	if err := f.store.End(context.Background(), []ratelimit.End{{Policy: p, Key: "k", ID: 1, What: ratelimit.EndGiveBack}}); err != nil {
		t.Fatal(err)
	}
	if o := f.take(waits(p, 3, 3, 1))[0]; !o.Allowed {
		t.Errorf("when the place is free: %+v", o)
	}
}

// The line outlives the places that it waits for.
func TestTheLineStaysWhenTheLastLeaseEnds(t *testing.T) {
	t.Parallel()
	p := &ratelimit.Policy{ID: "places", Algorithm: ratelimit.Concurrency, Limit: 1, Lease: 10 * time.Second}
	f := newFake(t)
	f.at(0)
	f.take(waits(p, 1, 1, 1))
	f.at(9 * sec)
	f.take(waits(p, 2, 2, 1))
	f.take(waits(p, 3, 3, 1))
	f.at(10 * sec)
	if o := f.take(waits(p, 3, 3, 1))[0]; o.Allowed || o.Before != 1 {
		t.Errorf("the second in line: %+v", o)
	}
	if o := f.take(waits(p, 2, 2, 1))[0]; !o.Allowed {
		t.Errorf("the first in line: %+v", o)
	}
}

// A place that was taken for a longer lease than the latest one is not forgotten with that.
func TestAPlaceIsKeptWhenTheLeaseBecomesShorter(t *testing.T) {
	t.Parallel()
	long := &ratelimit.Policy{ID: "places", Algorithm: ratelimit.Concurrency, Limit: 2, Lease: time.Hour}
	short := &ratelimit.Policy{ID: "places", Algorithm: ratelimit.Concurrency, Limit: 2, Lease: time.Minute}
	f := newFake(t)
	f.at(0)
	f.take(ratelimit.Op{Policy: long, Key: "k", Cost: 1, Limit: 2, ID: 1})
	f.at(sec)
	f.take(ratelimit.Op{Policy: short, Key: "k", Cost: 1, Limit: 2, ID: 2})
	if ttl := f.ttl(long); ttl < 59*time.Minute {
		t.Errorf("the key lives for %v", ttl)
	}
	f.at(62 * sec) // the short one has ended, and the long one has not
	if o := f.take(ratelimit.Op{Policy: short, Key: "k", Cost: 1, Limit: 2, ID: 3})[0]; !o.Allowed || o.Remaining != 0 {
		t.Errorf("the second place: %+v", o)
	}
	if o := f.take(ratelimit.Op{Policy: short, Key: "k", Cost: 1, Limit: 2, ID: 4})[0]; o.Allowed {
		t.Errorf("the third place of two: %+v", o)
	}
}
