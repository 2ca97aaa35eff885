package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

// world is a server in fake time, and processes that call it with delays on the way.
type world struct {
	*fake
	now  int64    // true time, in µs; the server's
	way  [2]int64 // how long the next commands are on their way there and back
	exec int64    // when the server did the last one
	late bool     // the server's time is yet to be set

	mu        sync.Mutex
	count     *int   // of commands
	meanwhile func() // is done once, when the server has done a command
}

func newWorld(t testing.TB) *world {
	t.Helper()
	client, _ := sharedClient(t)
	// The store uses this client itself, and no copy, which would have no hooks.
	client = redis.NewClient(&redis.Options{Addr: client.Options().Addr, ContextTimeoutEnabled: true})
	t.Cleanup(func() { client.Close() })
	w := &world{fake: &fake{t: t, client: client}}
	client.AddHook(w)
	w.again()
	return w
}

// again is a world in which nothing has happened yet.
func (w *world) again() {
	w.prefix = fmt.Sprintf("t%d:", prefixes.Add(1))
	w.store = redisstore.NewFakeTime(w.client, w.prefix)
	w.now, w.exec, w.way = 0, 0, [2]int64{}
	w.at(0)
}

func (w *world) DialHook(next redis.DialHook) redis.DialHook { return next }

func (w *world) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (w *world) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !strings.HasPrefix(cmd.Name(), "eval") {
			return next(ctx, cmd)
		}
		w.mu.Lock() // Close sends several commands at a time
		defer w.mu.Unlock()
		if w.late {
			w.late = false
			w.at(w.now)
		}
		w.pass(w.way[0])
		w.exec = w.now
		if w.count != nil {
			*w.count++
		}
		err := next(ctx, cmd)
		if err == nil || !strings.HasPrefix(err.Error(), "NOSCRIPT") {
			w.pass(w.way[1])
		}
		if do := w.meanwhile; do != nil {
			w.meanwhile = nil
			do()
		}
		return err
	}
}

func (w *world) pass(µs int64) {
	if µs > 0 {
		w.now += µs
		w.at(w.now)
	}
}

// process returns a process with a clock of its own, in ns.
func (w *world) process(n int, τ time.Duration, off int64) *redisstore.Store {
	return redisstore.NewFakeTime(w.client, w.prefix).Leasing(n, τ, func() int64 { return w.now*1000 + off })
}

// booking is a call that was reserved for a time.
type booking struct {
	at        int64
	ops       []ratelimit.Op
	name      string
	cancelled bool
}

func micros(µs int64) time.Duration { return time.Duration(µs) * time.Microsecond }

// use is what was admitted at a time.
type use struct{ at, units int64 }

// checkUses fails unless uses are what p admits at most. Windows are the starts of all
// that the server counted in.
func checkUses(t interface{ Fatalf(string, ...any) }, p *ratelimit.Policy, uses []use, windows map[int64]bool) {
	w := p.Window.Microseconds()
	sum := func(from, upto int64) (units int64) {
		for _, u := range uses {
			if u.at >= from && u.at < upto {
				units += u.units
			}
		}
		return units
	}
	for _, u := range uses {
		switch p.Algorithm {
		case ratelimit.FixedWindow:
			if n := sum(u.at, u.at+w); n > 2*p.Limit {
				t.Fatalf("%+v: %d units were admitted in the window from %d µs: %v", *p, n, u.at, uses)
			}
		case ratelimit.TokenBucket:
			for _, v := range uses {
				if n := sum(u.at, v.at+1); v.at >= u.at && (n-p.Capacity())*w > p.Limit*(v.at-u.at) {
					t.Fatalf("%+v: %d units were admitted from %d to %d µs: %v", *p, n, u.at, v.at, uses)
				}
			}
		default:
			if n := sum(u.at, u.at+w); n > p.Limit {
				t.Fatalf("%+v: %d units were admitted in the window from %d µs: %v", *p, n, u.at, uses)
			}
		}
	}
	for start := range windows {
		if n := sum(start, start+w); p.Algorithm == ratelimit.FixedWindow && n > p.Limit {
			t.Fatalf("%+v: %d units were admitted in the server's window from %d µs: %v", *p, n, start, uses)
		}
	}
}

// leasable draws policies that are leased, most of them.
func leasable(rt *rapid.T) []*ratelimit.Policy {
	var all []*ratelimit.Policy
	for i, a := range []ratelimit.Algorithm{ratelimit.SlidingLog, ratelimit.FixedWindow, ratelimit.TokenBucket} {
		p := &ratelimit.Policy{
			ID: fmt.Sprint("p", i), Algorithm: a,
			Limit:  rapid.SampledFrom([]int64{24, 100, 40, 11, 6, 3, 1}).Draw(rt, "limit"),
			Window: time.Duration(rapid.OneOf(rapid.Int64Range(100, 300), rapid.Int64Range(60_000, 200_000)).Draw(rt, "window")) * time.Microsecond,
		}
		if a == ratelimit.TokenBucket && rapid.Bool().Draw(rt, "has burst") {
			p.Burst = rapid.Int64Range(1, 30).Draw(rt, "burst")
		}
		all = append(all, p)
	}
	return rapid.Permutation(all).Draw(rt, "order")[:2]
}

// Whatever processes do with their leases, and whenever they crash, together they admit
// no more than the policies say, in any interval of true time.
func TestProcessesWithLeasesTogetherAdmitNoMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var calls, leased, admitted, booked atomic.Int64
	w := newWorld(t)
	rapid.Check(t, func(rt *rapid.T) {
		w.again()
		policies := leasable(rt)
		n := rapid.IntRange(2, 12).Draw(rt, "n")
		τ := policies[0].Window / time.Duration(rapid.Int64Range(1, 12).Draw(rt, "part")) // the other may be shorter
		process := func() *redisstore.Store {
			return w.process(n, τ, rapid.Int64Range(0, 1_000_000_000_999).Draw(rt, "clock"))
		}
		var stores []*redisstore.Store
		for range rapid.IntRange(1, 4).Draw(rt, "processes") {
			stores = append(stores, process())
		}
		actions := slices.Concat(slices.Repeat([]string{"calls", "pass"}, 8), slices.Repeat([]string{"drain"}, 4), []string{"peek", "both", "close", "crash", "reserve", "reserve", "reserve", "cancel"})
		var made []booking
		uses := map[string][]use{}
		windows := map[string]map[int64]bool{}
		small, part, long := τ.Microseconds()/8+1, τ.Microseconds(), policies[0].Window.Microseconds()
		edges := []int64{1, part - 1, part, part / 2, part/2 + 1, long - 1, long, long - part, long - part/2}
		step := rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, small), rapid.SampledFrom(edges), rapid.SampledFrom(edges), rapid.Int64Range(0, long))
		way := rapid.OneOf(rapid.Just(int64(0)), rapid.Just(int64(0)), rapid.Int64Range(0, 3), rapid.Int64Range(0, small), rapid.Int64Range(0, 8*small))
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			w.way = [2]int64{way.Draw(rt, "there"), way.Draw(rt, "back")}
			i := rapid.IntRange(0, len(stores)-1).Draw(rt, "process")
			s := stores[i]
			ops := make([]ratelimit.Op, 1)
			peek, times, reserve := false, 1, false
			switch rapid.SampledFrom(actions).Draw(rt, "action") {
			case "crash":
				stores[i], ops = process(), nil
			case "close":
				if err := s.Close(ctx); err != nil {
					rt.Fatal(err)
				}
				if rapid.Bool().Draw(rt, "again") {
					stores[i] = process()
				}
				ops = nil
			case "pass":
				w.pass(step.Draw(rt, "time"))
				ops = nil
			case "both":
				ops = make([]ratelimit.Op, 2)
			case "reserve":
				ops, reserve, times = make([]ratelimit.Op, rapid.IntRange(1, 2).Draw(rt, "policies")), true, rapid.SampledFrom([]int{1, 8, 60}).Draw(rt, "times")
			case "cancel":
				if len(made) > 0 {
					b := &made[rapid.IntRange(max(0, len(made)-4), len(made)-1).Draw(rt, "which")]
					if err := s.Cancel(ctx, b.ops, b.name); err != nil {
						rt.Fatal(err)
					}
					b.cancelled = b.cancelled || w.exec < b.at
				}
				ops = nil
			case "peek":
				peek = true
			case "calls":
				times = rapid.SampledFrom([]int{4, 1, 2, 8}).Draw(rt, "times")
			case "drain":
				times = 60
			}
			if ops == nil {
				continue
			}
			for j := range ops {
				p := policies[j]
				if len(ops) == 1 {
					p = policies[rapid.IntRange(0, 9).Draw(rt, "policy")/9]
				}
				cost := rapid.SampledFrom([]int64{1, 1, 1, 1, 2, 5}).Draw(rt, "cost")
				ops[j] = ratelimit.Op{Policy: p, Key: "k", Cost: min(cost, p.Capacity()), Peek: peek}
			}
			for range times {
				before := s.Stats().Leased
				var err error
				if b := (booking{ops: ops}); reserve {
					b.name, err = s.Reserve(ctx, ops, micros(rapid.Int64Range(0, 3*long).Draw(rt, "within")))
					if err == nil && b.name != "" {
						b.at = w.exec + ops[0].Outcome.Delay.Microseconds()
						made = append(made, b)
						continue
					}
				} else {
					err = s.Take(ctx, ops)
				}
				calls.Add(1)
				var failed *redisstore.Error
				switch {
				case errors.As(err, &failed) && failed.Class == redisstore.Invalid && strings.Contains(err.Error(), "leases"):
					continue // it costs more than a bucket that is leased has
				case err != nil:
					rt.Fatal(err)
				}
				at := w.exec
				if s.Stats().Leased > before {
					leased.Add(1)
					at = w.now
				}
				for j := range ops {
					p := ops[j].Policy
					raw := w.dump(p)
					if strings.HasPrefix(raw, "R") {
						booked.Add(1)
						raw = raw[10+27*(int(raw[8])<<8|int(raw[9])):]
					}
					if p.Algorithm == ratelimit.FixedWindow && raw != "" {
						var start int64
						for _, b := range []byte(raw[1:8]) {
							start = start<<8 | int64(b)
						}
						if windows[p.ID] == nil {
							windows[p.ID] = map[int64]bool{}
						}
						windows[p.ID][start-epoch] = true
					}
					if isAdmitted(ops) && !peek {
						admitted.Add(1)
						uses[p.ID] = append(uses[p.ID], use{at, ops[j].Cost})
					}
				}
				if !isAdmitted(ops) {
					break
				}
				w.way = [2]int64{}
			}
		}
		for _, b := range made {
			for i := range b.ops {
				if !b.cancelled {
					uses[b.ops[i].Policy.ID] = append(uses[b.ops[i].Policy.ID], use{b.at, b.ops[i].Cost})
				}
			}
		}
		for _, p := range policies {
			checkUses(rt, p, uses[p.ID], windows[p.ID])
		}
	})
	t.Logf("%d calls, %d admitted, %d of them from leases, %d of keys with calls ahead", calls.Load(), admitted.Load(), leased.Load(), booked.Load())
	if leased.Load()*10 < admitted.Load() {
		t.Error("too few calls were decided from leases to say anything")
	}
}

// What is given back leaves the state as if it had not been charged, or a bucket less.
func TestWhatIsGivenBackIsAsIfItHadNotBeenCharged(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client, _ := sharedClient(t)
	another := func() *fake {
		f := &fake{t: t, client: client, prefix: fmt.Sprintf("t%d:", prefixes.Add(1))}
		f.store = redisstore.NewFakeTime(client, f.prefix)
		f.at(0)
		return f
	}
	rapid.Check(t, func(rt *rapid.T) {
		a, b := another(), another()
		p := leasable(rt)[0]
		now := int64(0)
		step := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 3), rapid.Int64Range(0, p.Window.Microseconds()/2))
		pass := func() {
			now += step.Draw(rt, "time")
			a.at(now)
			b.at(now)
		}
		take := func(f *fake, cost int64, peek bool) ratelimit.Outcome {
			return f.take(ratelimit.Op{Policy: p, Key: "k", Cost: min(cost, p.Capacity()), Peek: peek})[0]
		}
		both := func(what string, n int) {
			for range n {
				pass()
				cost := rapid.Int64Range(1, 3).Draw(rt, what)
				if take(a, cost, true).Allowed { // and so does the other, which was charged less
					take(a, cost, false)
					if o := take(b, cost, false); !o.Allowed {
						rt.Fatalf("%+v admits less of what was charged less: %+v", *p, o)
					}
				}
			}
		}
		both("before", rapid.IntRange(0, 3).Draw(rt, "calls before"))
		pass()
		units := rapid.Int64Range(1, p.Capacity()).Draw(rt, "units")
		unused := rapid.Int64Range(1, units).Draw(rt, "unused")
		o := take(a, units, false)
		if !o.Allowed {
			return
		}
		charged := epoch + now
		if units > unused {
			take(b, units-unused, false)
		} else if p.Algorithm == ratelimit.FixedWindow {
			return // b's window has not begun
		}
		both("after", rapid.IntRange(0, 4).Draw(rt, "calls after"))
		start := now
		pass()
		if err := a.store.Undo(ctx, p, "k", unused, charged, o.ResetAfter); err != nil {
			rt.Fatal(err)
		}
		same := p.Algorithm != ratelimit.TokenBucket || charged == epoch+start && now == start
		for range 4 {
			for _, cost := range []int64{1, 2, 3, (p.Capacity() + 1) / 2, p.Capacity()} {
				x, y := take(a, cost, true), take(b, cost, true)
				if same && x != y || x.Remaining > y.Remaining || x.RetryAfter < y.RetryAfter {
					rt.Fatalf("%+v: %d of %d units given back, cost %d at %d µs: %+v, want %+v", *p, unused, units, cost, now, x, y)
				}
			}
			pass()
		}
	})
}

// hundred is a policy of 100 units, of which none come back while a test runs.
func hundred(a ratelimit.Algorithm) *ratelimit.Policy {
	return &ratelimit.Policy{ID: "p", Algorithm: a, Limit: 100, Window: time.Hour}
}

// calls makes n calls of one unit each, and returns how many are admitted.
func (w *world) calls(s *redisstore.Store, p *ratelimit.Policy, n int) (admitted int) {
	w.t.Helper()
	for range n {
		ops := []ratelimit.Op{{Policy: p, Key: "k", Cost: 1}}
		if err := s.Take(context.Background(), ops); err != nil {
			w.t.Fatal(err)
		}
		if ops[0].Outcome.Allowed {
			admitted++
		}
		if ops[0].Policy != p {
			w.t.Fatal("the policy of a call has become another")
		}
	}
	return admitted
}

func TestUnitsThatAreNotUsedComeBackOnClose(t *testing.T) {
	t.Parallel()
	for _, a := range []ratelimit.Algorithm{ratelimit.SlidingLog, ratelimit.FixedWindow, ratelimit.TokenBucket} {
		w := newWorld(t)
		p := hundred(a)
		one, other := w.process(40, time.Second, 0), w.process(1, time.Second, 0)
		used := w.calls(one, p, 40) // 1, 2, 4, 8, 16 and 32 are taken, 23 of the last are left
		capacity := 100
		if a == ratelimit.TokenBucket {
			capacity = 99 // a part of a unit comes back within τ
		}
		if got := w.calls(other, p, 100); got != capacity-63 {
			t.Errorf("%s: %d of 100 calls were admitted beside %d and a lease", a, got, used)
		}
		if err := one.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if got := w.calls(other, p, 100); got != 23 {
			t.Errorf("%s: %d calls were admitted after 23 units were given back", a, got)
		}
		if got, n := w.calls(one, p, 10), one.Stats().Leased; got != 0 || n != 34 {
			t.Errorf("%s: %d calls were admitted from what was given back, %d were leased", a, got, n)
		}
		if err := one.Close(context.Background()); err != nil || w.calls(other, p, 10) != 0 {
			t.Errorf("%s: closed twice: %v", a, err)
		}
	}
}

// So do those of many keys, together or apart.
func TestUnitsOfAllKeysComeBackOnClose(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, apart := range []bool{false, true} {
		w := newWorld(t)
		p := hundred(ratelimit.SlidingLog)
		s := w.process(10, time.Second, 0)
		if apart {
			s.Apart()
		}
		const keys = 150
		for i := range 4 * keys { // 1, 2 and 4 of each are taken, and 3 are left
			ops := []ratelimit.Op{{Policy: p, Key: fmt.Sprint(i % keys), Cost: 1}}
			if err := s.Take(ctx, ops); err != nil || !ops[0].Outcome.Allowed {
				t.Fatalf("%+v, %v", ops[0].Outcome, err)
			}
		}
		commands := 0
		w.count = &commands
		if err := s.Close(ctx); err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{false: 3, true: keys}[apart]; commands != want {
			t.Errorf("apart %v: %d commands, want %d", apart, commands, want)
		}
		for i := range keys {
			if o := w.take(ratelimit.Op{Policy: p, Key: fmt.Sprint(i), Peek: true})[0]; o.Remaining != 96 {
				t.Errorf("apart %v, key %d: %d of 100 remain after 4 calls", apart, i, o.Remaining)
			}
		}
	}
	w := newWorld(t)
	s := w.process(10, time.Second, 0)
	w.calls(s, hundred(ratelimit.SlidingLog), 4)
	done, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.Close(done); !errors.Is(err, context.Canceled) {
		t.Errorf("closed when there was no time for it: %v", err)
	}

	s = w.process(10, time.Second, 0)
	w.calls(s, hundred(ratelimit.FixedWindow), 3) // nothing is left
	var closed error
	w.meanwhile = func() { // the command has taken four units, and its reply is yet to come
		soon, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		closed = s.Close(soon)
	}
	if got := w.calls(s, hundred(ratelimit.FixedWindow), 1); got != 1 || !errors.Is(closed, context.DeadlineExceeded) {
		t.Errorf("%d calls were admitted; closed before the units came: %v", got, closed)
	}
}

// The first call of a key takes what it costs.
func TestKeysThatAreCalledOnceStrandNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := hundred(ratelimit.FixedWindow)
	s := w.process(100, time.Second, 0)
	remains := func(want int64) {
		t.Helper()
		op := w.take(ratelimit.Op{Policy: p, Key: "k", Cost: 1, Peek: true})[0]
		if op.Remaining != want {
			t.Errorf("%d units remain at the server, want %d", op.Remaining, want)
		}
	}
	for range 3 {
		before, _ := getState(context.Background(), w.client, w.store.KeyOf(p, "k")).Result()
		w.calls(s, p, 1)
		w.pass(sec)
		if after := w.dump(p); before != "" && before[11]+1 != after[11] {
			t.Errorf("a call that comes alone took units: %q, %q", before, after)
		}
	}
	remains(97)
	w.calls(s, p, 1) // 1
	w.calls(s, p, 2) // 2
	remains(94)
	w.calls(s, p, 1) // 4
	remains(90)
	w.calls(s, p, 3+8+16) // 8 and 16
	remains(66)
	w.calls(s, p, 1) // 32
	remains(34)
	w.calls(s, p, 32) // half of what remains
	remains(17)
}

// A reset, a block and an update end what the process has at once.
func TestALeaseEndsWithAResetABlockAndAnUpdate(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	p := hundred(ratelimit.SlidingLog)
	s := w.process(40, time.Second, 0)
	w.calls(s, p, 4)
	if err := s.Reset(ctx, p, "k"); err != nil {
		t.Fatal(err)
	}
	w.calls(s, p, 1)
	if o := w.take(ratelimit.Op{Policy: p, Key: "k", Cost: 1, Peek: true})[0]; o.Remaining != 99 {
		t.Errorf("after a reset and a call %d of 100 remain", o.Remaining)
	}
	w.meanwhile = func() {
		if err := s.Reset(ctx, p, "k"); err != nil {
			t.Error(err)
		}
	}
	w.calls(s, p, 1) // takes one more, which comes after the reset
	before := s.Stats().Leased
	if w.calls(s, p, 1); s.Stats().Leased != before {
		t.Error("a unit was used that was charged before a reset")
	}
	w.calls(s, p, 2) // one is left
	if err := s.Block(ctx, p, "k", time.Hour); err != nil {
		t.Fatal(err)
	}
	if got := w.calls(s, p, 1); got != 0 {
		t.Error("a call of a blocked key was admitted")
	}
	if err := s.Block(ctx, p, "k", 0); err != nil {
		t.Fatal(err)
	}
	w.calls(s, p, 4)
	changed := *p
	changed.Limit = 5
	if got := w.calls(s, &changed, 1); got != 0 {
		t.Error("a call was admitted by what was taken before an update")
	}
}

// All calls about a policy that is leased count it in the same way.
func TestALeasedPolicyIsCountedAlikeByAllCalls(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	s := w.process(1, 100*time.Millisecond, 0)
	log := &ratelimit.Policy{ID: "log", Limit: 2, Window: time.Second}
	bucket := &ratelimit.Policy{ID: "bucket", Algorithm: ratelimit.TokenBucket, Limit: 20, Window: time.Second}
	short := &ratelimit.Policy{ID: "short", Limit: 2, Window: 50 * time.Millisecond}
	part := &ratelimit.Policy{ID: "part", Algorithm: ratelimit.TokenBucket, Limit: 11, Window: time.Second}
	small := &ratelimit.Policy{ID: "small", Algorithm: ratelimit.TokenBucket, Limit: 20, Window: time.Second, Burst: 2}
	shadow := *log
	shadow.Mode = ratelimit.Shadow
	ask := func(ops ...ratelimit.Op) []ratelimit.Op {
		t.Helper()
		for i := range ops {
			ops[i].Key = "k"
		}
		if err := s.Take(ctx, ops); err != nil {
			t.Fatal(err)
		}
		return ops
	}
	ask(ratelimit.Op{Policy: log, Cost: 2})
	w.pass(sec)
	for _, ops := range [][]ratelimit.Op{
		ask(ratelimit.Op{Policy: log, Cost: 1}),
		ask(ratelimit.Op{Policy: log, Cost: 1, Peek: true}),
		ask(ratelimit.Op{Policy: &shadow, Cost: 1}),
		ask(ratelimit.Op{Policy: log, Cost: 1}, ratelimit.Op{Policy: short, Cost: 1}),
	} {
		if o := ops[0].Outcome; o.Allowed || o.RetryAfter != 100*time.Millisecond {
			t.Errorf("a log after its window: %+v", o)
		}
	}
	s.Apart()
	ask(ratelimit.Op{Policy: bucket, Cost: 1}, ratelimit.Op{Policy: log, Cost: 1}) // refused, and given back
	if o := ask(ratelimit.Op{Policy: bucket, Peek: true})[0].Outcome; o.Remaining != 18 || o.ResetAfter != 0 {
		t.Errorf("of 20 units, of which 2 come back in τ: %+v", o)
	}
	if o := ask(ratelimit.Op{Policy: part, Peek: true})[0].Outcome; o.Remaining != 9 {
		t.Errorf("of 11 units, of which 1.1 come back in τ: %+v", o)
	}
	for _, ops := range [][]ratelimit.Op{{{Policy: bucket, Cost: 19}}, {{Policy: bucket, Cost: 19, Peek: true}}, {{Policy: log, Cost: 1}, {Policy: bucket, Cost: 19}}} {
		var failed *redisstore.Error
		if err := s.Take(ctx, ops); !errors.As(err, &failed) || failed.Class != redisstore.Invalid || !strings.Contains(err.Error(), "leases of 100ms") {
			t.Errorf("more than a bucket has: %v", err)
		}
	}
	for _, p := range []*ratelimit.Policy{short, small} {
		if o := ask(ratelimit.Op{Policy: p, Cost: 2})[0].Outcome; !o.Allowed || o.ResetAfter > 100*time.Millisecond {
			t.Errorf("%+v, which is not leased: %+v", *p, o)
		}
	}
}

// Many callers of few processes get the limit and no more, with few commands.
func TestManyCallersOfALeasedKeyGetTheLimit(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := startServer(t)
	for _, a := range []ratelimit.Algorithm{ratelimit.SlidingLog, ratelimit.FixedWindow, ratelimit.TokenBucket} {
		p := &ratelimit.Policy{ID: "p", Algorithm: a, Limit: 4000, Window: 1000 * time.Hour}
		capacity := p.Limit
		if a == ratelimit.TokenBucket {
			capacity -= 4 // what refills in τ
		}
		var admitted atomic.Int64
		var callers sync.WaitGroup
		for range 4 {
			s := redisstore.New(connect(t, server.addr), redisstore.WithLease(50, time.Hour))
			closing := sync.OnceFunc(func() {
				if err := s.Close(ctx); err != nil {
					t.Error(err)
				}
			})
			for caller := range 16 {
				callers.Go(func() {
					for i := range 200 {
						ops := []ratelimit.Op{{Policy: p, Key: fmt.Sprint("k", i%20/19), Cost: int64(1 + caller%2)}}
						if err := s.Take(ctx, ops); err != nil {
							t.Error(err)
							return
						}
						if ops[0].Outcome.Allowed && ops[0].Key == "k0" {
							admitted.Add(ops[0].Cost)
						}
						if caller == 3 && i == 150 {
							closing() // while others call
						}
					}
					closing()
				})
			}
		}
		callers.Wait()
		rest := []ratelimit.Op{{Policy: p, Key: "k0", Peek: true}}
		if err := redisstore.New(connect(t, server.addr), redisstore.WithLease(1, time.Hour)).Take(ctx, rest); err != nil {
			t.Fatal(err)
		}
		// All that was given back may have come too late for those who had called before.
		if n := admitted.Load(); n+rest[0].Outcome.Remaining != capacity || n < capacity-100 {
			t.Errorf("%s: %d units were admitted of %d, %d remain", a, n, capacity, rest[0].Outcome.Remaining)
		}
	}
}

func TestALeaseOf100NeedsFewCommands(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, callers := range []int{1, 32} {
		client := connect(t, startServer(t).addr)
		s := redisstore.New(client, redisstore.WithLease(100, time.Minute))
		p := &ratelimit.Policy{ID: "p", Algorithm: ratelimit.FixedWindow, Limit: 1_000_000, Window: time.Hour}
		const decisions = 9600
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				for range decisions / callers {
					ops := []ratelimit.Op{{Policy: p, Key: "k", Cost: 1}}
					if err := s.Take(ctx, ops); err != nil || !ops[0].Outcome.Allowed {
						t.Errorf("%+v, %v", ops[0].Outcome, err)
						return
					}
				}
			})
		}
		all.Wait()
		n := calls(t, client)
		sent := n["evalsha"] + n["eval"]
		t.Logf("%d callers: %d commands for %d decisions", callers, sent, decisions)
		if float64(sent) >= 0.02*decisions {
			t.Errorf("%d callers: %d commands for %d decisions", callers, sent, decisions)
		}
		if stats := s.Stats(); int(stats.Leased+stats.Answers) != decisions {
			t.Errorf("%d decisions were leased and %d answered", stats.Leased, stats.Answers)
		}
	}
}

func TestALeaseOutlivesItsServerByItsTime(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := startServer(t)
	var now atomic.Int64
	s := redisstore.New(connect(t, server.addr), redisstore.WithTimeout(500*time.Millisecond), redisstore.WithBreaker(1)).
		Leasing(100, time.Second, now.Load)
	p := hundred(ratelimit.FixedWindow)
	take := func() error {
		ops := []ratelimit.Op{{Policy: p, Key: "k", Cost: 1}}
		err := s.Take(ctx, ops)
		if err == nil && !ops[0].Outcome.Allowed {
			t.Errorf("refused: %+v", ops[0].Outcome)
		}
		return err
	}
	for range 16 {
		if err := take(); err != nil {
			t.Fatal(err)
		}
	}
	server.signal(t, syscall.SIGSTOP)
	now.Store(int64(time.Second) - 1)
	for range 10 {
		if err := take(); err != nil {
			t.Fatalf("from a lease: %v", err)
		}
	}
	now.Store(int64(time.Second))
	var failed *redisstore.Error
	if err := take(); !errors.As(err, &failed) || failed.Class != redisstore.Timeout {
		t.Errorf("after the lease: %v", err)
	}
	if err := take(); !errors.As(err, &failed) || failed.Class != redisstore.Open {
		t.Errorf("and then: %v", err)
	}
}

// Those who wait for units wait no longer than their own deadlines, and end with those who
// ask for them.
func TestCallsThatWaitForUnitsHaveDeadlines(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // which answers nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s := redisstore.New(connect(t, l.Addr().String()), redisstore.WithTimeout(100*time.Millisecond), redisstore.WithBreaker(1000), redisstore.WithLease(10, time.Second))
	p := hundred(ratelimit.FixedWindow)
	var callers sync.WaitGroup
	for i := range 50 {
		callers.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
			want := error(nil)
			if i%3 == 0 {
				ctx, cancel = context.WithTimeout(context.Background(), 30*time.Millisecond)
				want = context.DeadlineExceeded
			}
			defer cancel()
			began := time.Now()
			err := s.Take(ctx, []ratelimit.Op{{Policy: p, Key: "k", Cost: 1}})
			var failed *redisstore.Error
			if took := time.Since(began); took > 300*time.Millisecond {
				t.Errorf("it took %v", took)
			}
			if want != nil && !errors.Is(err, want) || want == nil && (!errors.As(err, &failed) || failed.Class != redisstore.Timeout) {
				t.Errorf("error %v", err)
			}
		})
	}
	callers.Wait()
}

func TestADecisionFromALeaseAllocatesNothing(t *testing.T) {
	w := newWorld(t)
	s := w.process(1000, time.Second, 0)
	p := &ratelimit.Policy{ID: "p", Algorithm: ratelimit.FixedWindow, Limit: 100_000, Window: time.Hour}
	w.calls(s, p, 1500)
	ops := []ratelimit.Op{{Policy: p, Key: "k", Cost: 1}}
	before := s.Stats().Leased
	if n := testing.AllocsPerRun(100, func() { _ = s.Take(context.Background(), ops) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if n := s.Stats().Leased - before; n != 101 {
		t.Errorf("%d calls were leased", n)
	}
}

// Keys in memory are bounded, and those that have units are kept.
func TestLeasesAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.process(40, time.Second, 0)
	p := hundred(ratelimit.FixedWindow)
	w.calls(s, p, 4) // one is left
	for i := range 20_000 {
		ops := []ratelimit.Op{{Policy: p, Key: fmt.Sprint(i), Cost: 1}}
		if err := s.Take(context.Background(), ops); err != nil || !ops[0].Outcome.Allowed || ops[0].Outcome.Remaining != 99 {
			t.Fatalf("%+v, %v", ops[0].Outcome, err)
		}
	}
	before := s.Stats().Leased
	if w.calls(s, p, 1); s.Stats().Leased != before+1 {
		t.Error("keys that were called once took the place of one that has units")
	}
}

// The time of a lease is counted from before its command was sent, and ends with the
// window that it was charged in.
func TestWhenALeaseEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		algorithm ratelimit.Algorithm
		sent      int64    // of units
		way       [2]int64 // of the command
		ends      int64
	}{
		{ratelimit.SlidingLog, 5 * ms, [2]int64{0, 0}, 25 * ms},
		{ratelimit.SlidingLog, 5 * ms, [2]int64{3 * ms, 15 * ms}, 25 * ms},
		{ratelimit.TokenBucket, 5 * ms, [2]int64{0, 19 * ms}, 25 * ms},
		{ratelimit.FixedWindow, 5 * ms, [2]int64{3 * ms, 15 * ms}, 25 * ms},
		{ratelimit.FixedWindow, 90 * ms, [2]int64{0, 0}, 100 * ms},
		{ratelimit.FixedWindow, 90 * ms, [2]int64{2 * ms, 1 * ms}, 98 * ms}, // 2 ms early, since it is not known when the server did it
	} {
		for _, after := range []int64{-1, 0} {
			w := newWorld(t)
			p := &ratelimit.Policy{ID: "p", Algorithm: c.algorithm, Limit: 20, Window: 100 * time.Millisecond}
			w.calls(w.store, p, 1) // the window begins
			s := w.process(10, 20*time.Millisecond, 123)
			w.pass(c.sent - ms)
			w.calls(s, p, 1)
			w.pass(ms)
			w.way = c.way
			w.calls(s, p, 1) // takes one more
			w.pass(c.ends + after - w.now)
			if w.calls(s, p, 1); (s.Stats().Leased == 1) != (after < 0) {
				t.Errorf("%+v: %d µs after its end %d calls were decided from the lease", c, after, s.Stats().Leased)
			}
		}
	}
}

// What is not used of the limit where several processes lease a key that is called twice
// as often as it may be; docs/redis.md has the table.
func TestWhatLeasesCost(t *testing.T) {
	t.Parallel()
	const τ = 100 * time.Millisecond
	for _, c := range []struct {
		algorithm ratelimit.Algorithm
		window    time.Duration
		least     float64 // of the limit
	}{
		{ratelimit.SlidingLog, time.Second, 0.85},
		{ratelimit.SlidingLog, 10 * time.Second, 0.9},
		{ratelimit.FixedWindow, time.Second, 0.9},
		{ratelimit.FixedWindow, 10 * time.Second, 0.9},
		{ratelimit.TokenBucket, time.Second, 0.95},
	} {
		p := &ratelimit.Policy{ID: "p", Algorithm: c.algorithm, Limit: 1000, Window: c.window}
		for _, processes := range []int{1, 4, 8} {
			for _, n := range []int{10, 100} {
				if !longFaults() && (processes != 8 || n != 100 || c.algorithm == ratelimit.TokenBucket) {
					continue
				}
				w := newWorld(t)
				commands := 0
				w.count = &commands
				var stores []*redisstore.Store
				for range processes {
					s := redisstore.NewFakeTime(w.client, w.prefix).Remembering(64, nil)
					stores = append(stores, s.Leasing(n, τ, func() int64 { return w.now * 1000 }))
				}
				random := rand.New(rand.NewPCG(1, 2))
				const calls = 2000 // in a window
				windows := 11      // in a second each, 10 of a log
				if c.algorithm != ratelimit.SlidingLog || c.window > time.Second {
					windows = 3
				}
				admitted := 0
				for range windows * calls {
					w.now += c.window.Microseconds() / calls
					w.late = true
					ops := []ratelimit.Op{{Policy: p, Key: "k", Cost: 1}}
					if err := stores[random.IntN(processes)].Take(context.Background(), ops); err != nil {
						t.Fatal(err)
					}
					if ops[0].Outcome.Allowed {
						admitted++
					}
				}
				most := windows * int(p.Limit)
				if c.algorithm == ratelimit.TokenBucket {
					most += int(p.Limit)
				}
				share := float64(admitted) / float64(most)
				t.Logf("%s %v, %d processes, n = %d: %.1f%% of the limit, %.3f commands a call", c.algorithm, c.window, processes, n, 100*share, float64(commands)/float64(windows*calls))
				if share < c.least {
					t.Errorf("%s %v, %d processes, n = %d: %.1f%% of the limit was admitted", c.algorithm, c.window, processes, n, 100*share)
				}
			}
		}
	}
}
