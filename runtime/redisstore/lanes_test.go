package redisstore_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
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

// Calls that are sent together are decided as if they came one after the other, unless
// the clock was set back, whereby some are rare and come last.
func TestCallsThatAreSentTogetherAreDecidedInOrder(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client, _ := sharedClient(t)
	another := func() *fake {
		prefix := fmt.Sprintf("t%d:", prefixes.Add(1))
		return &fake{t: t, store: redisstore.NewFakeTime(client, prefix), client: client, prefix: prefix}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := another(), another()
		var policies []*ratelimit.Policy
		for i := range rapid.IntRange(1, 4).Draw(t, "policies") {
			policies = append(policies, drawCommon(t, i))
		}
		// One that is never sent with others in one command.
		policies = append(policies, &ratelimit.Policy{ID: "sliding", Algorithm: ratelimit.SlidingWindow, Limit: 5, Window: time.Minute})
		var now int64
		for range rapid.IntRange(1, 8).Draw(t, "batches") {
			now += rapid.Int64Range(0, 70_000_000).Draw(t, "passes")
			a.at(now)
			b.at(now)
			var ops, others []ratelimit.Op
			for range rapid.IntRange(1, 12).Draw(t, "calls") {
				p := rapid.SampledFrom(policies).Draw(t, "policy")
				most := max(1, p.Capacity()/rapid.SampledFrom([]int64{1, 3, 1 << 40}).Draw(t, "part"))
				op := ratelimit.Op{Policy: p, Key: rapid.SampledFrom([]string{"k", "{}%"}).Draw(t, "key"), Cost: rapid.Int64Range(1, most).Draw(t, "cost")}
				ops, others = append(ops, op), append(others, op)
			}
			if err := errors.Join(a.store.TakeTogether(ctx, ops)...); err != nil {
				t.Fatal(err)
			}
			for i := range others {
				if err := b.store.TakePlain(ctx, others[i:i+1]); err != nil {
					t.Fatal(err)
				}
				if ops[i].Outcome != others[i].Outcome {
					t.Fatalf("call %d of %d, %+v, cost %d at %d µs: %+v, want %+v", i, len(ops), *ops[i].Policy, ops[i].Cost, now, ops[i].Outcome, others[i].Outcome)
				}
			}
		}
	})
}

// together has n callers call store while its server stands still, and lets them go when
// all are under way.
func together(t *testing.T, s *server, store *redisstore.Store, n int, op func(i int) ratelimit.Op) (outcomes []ratelimit.Outcome, errs []error) {
	t.Helper()
	s.signal(t, syscall.SIGSTOP)
	outcomes, errs = make([]ratelimit.Outcome, n), make([]error, n)
	var callers sync.WaitGroup
	for i := range n {
		callers.Go(func() {
			ops := []ratelimit.Op{op(i)}
			errs[i] = store.Take(context.Background(), ops)
			outcomes[i] = ops[0].Outcome
		})
	}
	until(t, 5*time.Second, func() bool { return store.OnLanes() == n })
	s.signal(t, syscall.SIGCONT)
	callers.Wait()
	return outcomes, errs
}

func TestCallsThatWaitForALaneAreSentTogether(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	client := connect(t, s.addr)
	store := redisstore.New(client, redisstore.WithTimeout(10*time.Second), redisstore.WithPipelines(1))
	p := &ratelimit.Policy{ID: "p", Limit: 50, Window: time.Hour}
	if err := store.Take(context.Background(), []ratelimit.Op{{Policy: p, Key: "k", Cost: 1}}); err != nil {
		t.Fatal(err)
	}
	before := calls(t, client)["evalsha"]
	outcomes, errs := together(t, s, store, 200, func(int) ratelimit.Op { return ratelimit.Op{Policy: p, Key: "k", Cost: 1} })
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	admitted := 0
	for _, o := range outcomes {
		if o.Allowed {
			admitted++
		}
	}
	if admitted != 49 {
		t.Errorf("%d of 200 calls were admitted, want 49", admitted)
	}
	// One by itself, 128 and 71.
	if n := calls(t, client)["evalsha"] - before; n != 3 {
		t.Errorf("%d commands, want 3", n)
	}
	if n := store.Stats().InFlight; n != 0 {
		t.Errorf("%d commands are in flight at the end", n)
	}
}

// Commands of calls that were sent together are used again. Each caller has the answers of
// its own calls all the same, also beside callers who leave theirs behind.
func TestCallsThatAreSentTogetherHaveTheirOwnAnswers(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.addr)
	store := redisstore.New(connect(t, s.addr), redisstore.WithTimeout(20*time.Second), redisstore.WithPipelines(2),
		redisstore.WithBreaker(1_000_000), quiet)
	const n, limit = 300, 4000
	var callers sync.WaitGroup
	for i := range 48 {
		callers.Go(func() {
			a := []ratelimit.Algorithm{ratelimit.SlidingLog, ratelimit.FixedWindow, ratelimit.TokenBucket}[i%3]
			p := &ratelimit.Policy{ID: string(a), Algorithm: a, Limit: limit, Window: 100 * 24 * time.Hour}
			cost := int64(1 + i/3%4)
			ops := []ratelimit.Op{{Policy: p, Key: fmt.Sprint("k", i), Cost: cost}}
			for j := range int64(n) {
				if i%4 == 3 {
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(j)*time.Microsecond)
					if err := store.Take(ctx, ops); err != nil && !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
					cancel()
					continue
				}
				if err := store.Take(context.Background(), ops); err != nil {
					t.Errorf("call %d of caller %d: %v", j, i, err)
				} else if got, want := ops[0].Outcome.Remaining, limit-cost*(j+1); got != want {
					t.Errorf("call %d of caller %d: %d remain, want %d", j, i, got, want)
					return
				}
			}
		})
	}
	for range 20 { // some of them are then by themselves
		if err := direct.ScriptFlush(context.Background()).Err(); err != nil {
			t.Error(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	callers.Wait()
	if n := store.Stats().InFlight; n != 0 {
		t.Errorf("%d commands are in flight at the end", n)
	}
}

// gatekeeper is a hook that holds commands until they are let go.
type gatekeeper struct {
	mu   sync.Mutex
	held []held
}

type held struct {
	keys int
	open chan struct{}
}

func (*gatekeeper) DialHook(next redis.DialHook) redis.DialHook { return next }
func (g *gatekeeper) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			h := held{cmd.Args()[2].(int), make(chan struct{})}
			g.mu.Lock()
			g.held = append(g.held, h)
			g.mu.Unlock()
			<-h.open
		}
		return next(ctx, cmd)
	}
}
func (*gatekeeper) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// keys returns of how many keys the commands are that are held.
func (g *gatekeeper) keys() (all []int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, h := range g.held {
		all = append(all, h.keys)
	}
	return all
}

// let lets the i-th command go.
func (g *gatekeeper) let(i int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.held[i].open)
	g.held = slices.Delete(g.held, i, i+1)
}

func TestLanesHaveAboutAsManyCallsEach(t *testing.T) {
	t.Parallel()
	for _, linger := range []time.Duration{time.Hour, time.Millisecond, 0} {
		s := startServer(t)
		if err := redisstore.New(connect(t, s.addr)).Take(context.Background(), oneOp("first")); err != nil { // which has the script loaded
			t.Fatal(err)
		}
		client := redis.NewClient(&redis.Options{Addr: s.addr, ContextTimeoutEnabled: true, ReadTimeout: 10 * time.Second})
		t.Cleanup(func() { client.Close() })
		keeper := new(gatekeeper)
		client.AddHook(keeper)
		store := redisstore.New(client, redisstore.WithTimeout(10*time.Second), redisstore.WithPipelines(2), redisstore.WithLinger(linger))
		var callers sync.WaitGroup
		under := 0
		come := func(n int) {
			t.Helper()
			for range n {
				callers.Go(func() {
					if err := store.Take(context.Background(), oneOp(fmt.Sprint("k", prefixes.Add(1)))); err != nil {
						t.Error(err)
					}
				})
			}
			under += n
			until(t, 5*time.Second, func() bool {
				all := store.Waiting()
				for _, n := range keeper.keys() {
					all += n
				}
				return all == under
			})
		}
		let := func(i int) {
			under -= keeper.keys()[i]
			keeper.let(i)
		}
		expect := func(what string, want ...int) {
			t.Helper()
			got := keeper.keys()
			for end := time.Now().Add(5 * time.Second); !slices.Equal(got, want) && time.Now().Before(end); got = keeper.keys() {
				time.Sleep(time.Millisecond)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: commands of %d calls are under way, want %d", what, got, want)
			}
		}
		come(1)
		come(1)
		expect("two calls", 1, 1)
		come(8)
		expect("eight more, with all lanes taken", 1, 1)
		let(0)
		expect("and one free", 1, 8)
		let(0)
		expect("one lane is free", 8)
		if linger < time.Hour {
			come(1)
			expect("a call beside eight, at once or after a while", 8, 1)
			let(1)
			let(0)
			callers.Wait()
			continue
		}
		come(4)
		expect("four beside eight wait", 8)
		come(3)
		expect("seven beside eight do not", 8, 7)
		come(5)
		expect("both lanes are taken", 8, 7)
		let(0)
		expect("five beside seven wait", 7)
		let(0)
		until(t, 5*time.Second, func() bool { return len(keeper.keys()) == 2 })
		if got := keeper.keys(); !slices.Equal(got, []int{3, 2}) && !slices.Equal(got, []int{2, 3}) {
			t.Fatalf("with all lanes free, commands of %d calls are under way, want 3 and 2", got)
		}
		let(0)
		let(0)
		callers.Wait()
	}
}

// Calls that wait share a deadline, but none leaves before its own.
func TestCallsThatWaitForALaneLeaveAtTheirDeadlines(t *testing.T) {
	t.Parallel()
	const timeout = 400 * time.Millisecond
	s := startServer(t)
	store := redisstore.New(connect(t, s.addr), redisstore.WithTimeout(timeout), redisstore.WithPipelines(1), redisstore.WithBreaker(1000), quiet)
	until(t, 10*time.Second, func() bool { return store.Take(context.Background(), oneOp("first")) == nil })
	s.signal(t, syscall.SIGSTOP)
	defer s.signal(t, syscall.SIGCONT)
	var callers sync.WaitGroup
	for range 4 {
		for range 5 {
			callers.Go(func() {
				start := time.Now()
				err := store.Take(context.Background(), oneOp("k"))
				if took := time.Since(start); classOf(err) != redisstore.Timeout || took < timeout || took > timeout+time.Second {
					t.Errorf("error %v after %v", err, took)
				}
			})
		}
		time.Sleep(timeout / 8)
	}
	callers.Wait()
}

func TestACallThatLeftALaneIsNotSent(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := startServer(t)
	store := redisstore.New(connect(t, s.addr), redisstore.WithTimeout(500*time.Millisecond), redisstore.WithPipelines(1), redisstore.WithBreaker(1000), quiet)
	p := &ratelimit.Policy{ID: "p", Limit: 50, Window: time.Hour}
	op := ratelimit.Op{Policy: p, Key: "k", Cost: 1}
	until(t, 10*time.Second, func() bool { return store.Take(ctx, []ratelimit.Op{op}) == nil })
	charged := func() int64 {
		ops := []ratelimit.Op{op}
		ops[0].Peek = true
		until(t, 10*time.Second, func() bool { return store.Take(ctx, ops) == nil })
		return p.Limit - ops[0].Outcome.Remaining
	}
	before := charged()
	s.signal(t, syscall.SIGSTOP)
	var callers sync.WaitGroup
	callers.Go(func() {
		if err := store.Take(ctx, []ratelimit.Op{op}); classOf(err) != redisstore.Timeout {
			t.Errorf("error %v", err)
		}
	})
	until(t, 5*time.Second, func() bool { return store.Stats().InFlight == 1 })
	for range 30 {
		callers.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
			defer cancel()
			start := time.Now()
			if err := store.Take(ctx, []ratelimit.Op{op}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v", err)
			}
			if took := time.Since(start); took > time.Second {
				t.Errorf("a call that had 20 ms took %v", took)
			}
		})
	}
	callers.Wait()
	s.signal(t, syscall.SIGCONT)
	until(t, 10*time.Second, func() bool { return store.Stats().InFlight == 0 })
	if n := charged() - before; n > 1 {
		t.Errorf("%d calls were charged that had ended in an error, want the one that was sent at most", n)
	}
}

// Calls that have left a lane before they were sent are not under way any more.
func TestCallsThatLeftALaneKeepNoRoom(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := startServer(t)
	store := redisstore.New(connect(t, s.addr), redisstore.WithTimeout(10*time.Second), redisstore.WithPipelines(1), redisstore.WithMaxInFlight(3), quiet)
	if err := store.Take(ctx, oneOp("k")); err != nil {
		t.Fatal(err)
	}
	s.signal(t, syscall.SIGSTOP)
	var callers sync.WaitGroup
	call := func() {
		callers.Go(func() {
			if err := store.Take(ctx, oneOp("k")); err != nil {
				t.Error(err)
			}
		})
	}
	call()
	until(t, 5*time.Second, func() bool { return store.Stats().InFlight == 1 })
	for range 10 {
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		if err := store.Take(short, oneOp("k")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		cancel()
	}
	if n := store.Stats().InFlight; n != 1 || store.Waiting() != 0 {
		t.Errorf("%d commands are in flight, of which %d wait, want the one that was sent", n, store.Waiting())
	}
	call() // which waits
	until(t, 5*time.Second, func() bool { return store.Stats().InFlight == 2 })
	s.signal(t, syscall.SIGCONT)
	callers.Wait()
	if n := store.Stats().InFlight; n != 0 {
		t.Errorf("%d commands are in flight at the end", n)
	}
}

func TestCallsTogetherGiveTheServerTheScript(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	client := connect(t, s.addr)
	store := redisstore.New(client, redisstore.WithTimeout(10*time.Second), redisstore.WithPipelines(1))
	all := append(policies(), &ratelimit.Policy{ID: "sliding", Algorithm: ratelimit.SlidingWindow, Limit: 5, Window: time.Minute})
	for range 3 {
		if err := client.ScriptFlush(context.Background()).Err(); err != nil {
			t.Fatal(err)
		}
		outcomes, errs := together(t, s, store, 40, func(i int) ratelimit.Op {
			return ratelimit.Op{Policy: all[i%len(all)], Key: fmt.Sprint("k", i, prefixes.Add(1)), Cost: 1}
		})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		for i, o := range outcomes {
			if !o.Allowed || o.Remaining != 4 {
				t.Errorf("call %d: %+v", i, o)
			}
		}
	}
}

// What is at a key is the trouble of the calls for that key only.
func TestForeignContentConcernsOneOfTheCallsThatAreSentTogether(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	client := connect(t, s.addr)
	store := redisstore.New(client, redisstore.WithTimeout(10*time.Second), redisstore.WithPipelines(1), quiet)
	p := policies()[0]
	if err := client.RPush(context.Background(), place(store.KeyOf(p, "k7")), "x").Err(); err != nil {
		t.Fatal(err)
	}
	_, errs := together(t, s, store, 20, func(i int) ratelimit.Op {
		return ratelimit.Op{Policy: p, Key: fmt.Sprint("k", i), Cost: 1}
	})
	for i, err := range errs {
		if (err != nil) != (i == 7) {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

func TestCallsAreSentTogetherToANodeOfACluster(t *testing.T) {
	t.Parallel()
	s := startServer(t, "--cluster-enabled", "yes")
	ownSlots(t, connect(t, s.addr), 0, 16383)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{s.addr}, ContextTimeoutEnabled: true, ReadTimeout: 10 * time.Second})
	t.Cleanup(func() { client.Close() })
	store := redisstore.New(client, redisstore.WithTimeout(10*time.Second), redisstore.WithPipelines(2))
	p := &ratelimit.Policy{ID: "p", Limit: 3, Window: time.Hour}
	until(t, 10*time.Second, func() bool {
		return store.Take(context.Background(), []ratelimit.Op{{Policy: p, Key: "first", Cost: 1}}) == nil
	})
	outcomes, errs := together(t, s, store, 100, func(i int) ratelimit.Op { return ratelimit.Op{Policy: p, Key: fmt.Sprint("k", i%20), Cost: 1} })
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	admitted := 0
	for _, o := range outcomes {
		if o.Allowed {
			admitted++
		}
	}
	if admitted != 60 {
		t.Errorf("%d of 100 calls were admitted, want 3 for each of 20 keys", admitted)
	}
}

// panics is a hook that panics in pipelines once it is set.
type panics struct{ set atomic.Bool }

func (*panics) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (*panics) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (p *panics) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if p.set.Load() {
			panic("a hook")
		}
		return next(ctx, cmds)
	}
}

func TestAPanicConcernsAllCallsThatAreSentTogether(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	client := redis.NewClient(&redis.Options{Addr: s.addr, ContextTimeoutEnabled: true, ReadTimeout: 10 * time.Second})
	t.Cleanup(func() { client.Close() })
	hook := new(panics)
	client.AddHook(hook)
	store := redisstore.New(client, redisstore.WithTimeout(10*time.Second), redisstore.WithPipelines(1), quiet)
	if err := store.Take(context.Background(), []ratelimit.Op{oneOp("first")[0]}); err != nil {
		t.Fatal(err)
	}
	hook.set.Store(true)
	// Two kinds in turn, so that there are several commands.
	sliding := &ratelimit.Policy{ID: "sliding", Algorithm: ratelimit.SlidingWindow, Limit: 5, Window: time.Minute}
	_, errs := together(t, s, store, 10, func(i int) ratelimit.Op {
		if i%2 == 0 {
			return ratelimit.Op{Policy: sliding, Key: fmt.Sprint("k", i), Cost: 1}
		}
		return oneOp(fmt.Sprint("k", i))[0]
	})
	panicked := 0
	for _, err := range errs {
		if err != nil && strings.Contains(err.Error(), "panic: a hook") {
			panicked++
		}
	}
	if panicked != 9 {
		t.Errorf("%d calls ended in an error of the panic, want all but the first", panicked)
	}
	if n := store.Stats().InFlight; n != 0 {
		t.Errorf("%d commands are in flight at the end", n)
	}
}

// trips is a hook that counts how often the server is asked, and what.
type trips struct {
	n     int
	sent  map[string]int // commands by their names
	after func()         // a round trip
	amid  func()         // after the first command of a pipeline; may be nil
}

func (*trips) DialHook(next redis.DialHook) redis.DialHook { return next }
func (h *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		defer h.count(cmd)
		return next(ctx, cmd)
	}
}
func (h *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		defer h.count(cmds...)
		if h.amid == nil || !strings.HasPrefix(cmds[0].Name(), "eval") {
			return next(ctx, cmds)
		}
		first := next(ctx, cmds[:1])
		h.amid()
		return errors.Join(first, next(ctx, cmds[1:]))
	}
}

func (h *trips) count(cmds ...redis.Cmder) {
	if !strings.HasPrefix(cmds[0].Name(), "eval") { // of a new connection
		return
	}
	h.n++
	for _, cmd := range cmds {
		h.sent[cmd.Name()]++
	}
	h.after()
}

// counting returns a store whose round trips are counted.
func counting(t *testing.T, addr string) (*redisstore.Store, *trips) {
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, ReadTimeout: 10 * time.Second})
	t.Cleanup(func() { client.Close() })
	hook := &trips{sent: make(map[string]int), after: func() {}}
	client.AddHook(hook)
	return redisstore.New(client, redisstore.WithPipelines(1), quiet), hook
}

// However many keys are not decided by the usual way, they do not keep the lane from
// others, and nothing is charged to those whose callers have left meanwhile.
func TestRareOnesOfCallsThatAreSentTogetherTakeOneRoundTripMore(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := startServer(t)
	direct := connect(t, s.addr)
	other := redisstore.New(direct)
	store, hook := counting(t, s.addr)
	p := &ratelimit.Policy{ID: "p", Algorithm: ratelimit.TokenBucket, Limit: 50, Window: 24 * time.Hour}
	updated := *p
	updated.Limit = 40
	const usual, blocked, reserved, foreign, changed, left, kinds = 0, 1, 2, 3, 4, 5, 6
	const n = 20 * kinds
	ops := make([]ratelimit.Op, n)
	ctxs := make([]context.Context, n)
	leave := func() {}
	for i := range ops {
		ops[i] = ratelimit.Op{Policy: p, Key: fmt.Sprint("k", i), Cost: 1}
		one := ops[i : i+1 : i+1]
		ctxs[i] = ctx
		var err error
		switch i % kinds {
		case blocked:
			err = other.Block(ctx, p, one[0].Key, time.Hour)
		case reserved:
			one[0].Cost = 50
			for range 2 {
				if err == nil {
					_, err = other.Reserve(ctx, one, 24*time.Hour)
				}
			}
			one[0].Cost = 1
		case foreign:
			err = direct.RPush(ctx, place(store.KeyOf(p, one[0].Key)), "x").Err()
		case left:
			var cancel context.CancelFunc
			ctxs[i], cancel = context.WithCancel(ctx)
			before := leave
			leave = func() { cancel(); before() }
			fallthrough
		case changed:
			err = other.Take(ctx, one)
			one[0].Policy = &updated
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	hook.after = leave
	errs := store.TakeEach(ctxs, ops)
	if hook.n != 2 {
		t.Errorf("%d round trips, want 2", hook.n)
	}
	if got := hook.sent["evalsha"]; got != 1+3*20+20 {
		t.Errorf("%d commands, want one of all and one for each that is rare and has a caller", got)
	}
	for i, op := range ops {
		o, err := op.Outcome, errs[i]
		switch i % kinds {
		case usual:
			if err != nil || !o.Allowed || o.Remaining != 49 {
				t.Errorf("usual: %+v, %v", o, err)
			}
		case blocked, reserved:
			if err != nil || o.Allowed || o.RetryAfter < time.Minute {
				t.Errorf("blocked or reserved: %+v, %v", o, err)
			}
		case foreign:
			if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
				t.Errorf("foreign: %v", err)
			}
		case changed:
			if err != nil || !o.Allowed || o.Remaining >= 40-1 {
				t.Errorf("changed: %+v, %v", o, err)
			}
		case left:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("left: %v", err)
			}
			// The next one is the second, as it is of those whose callers stayed.
			again := ops[i : i+1]
			if err := other.Take(ctx, again); err != nil || again[0].Outcome.Remaining != ops[i-left+changed].Outcome.Remaining {
				t.Errorf("after one that left: %+v, %v, want %+v", again[0].Outcome, err, ops[i-left+changed].Outcome)
			}
		}
	}
	if n := store.Stats().InFlight; n != 0 {
		t.Errorf("%d commands are in flight at the end", n)
	}
}

func TestRareOnesOfCallsThatAreSentTogetherAreChargedOnceThoughTheirRepliesAreLost(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := startServer(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	proxy := startProxy(t, l, s.addr)
	store, hook := counting(t, proxy.addr)
	other := redisstore.New(connect(t, s.addr))
	p := &ratelimit.Policy{ID: "p", Algorithm: ratelimit.TokenBucket, Limit: 50, Window: 24 * time.Hour}
	updated := *p
	updated.Limit = 40
	ops := make([]ratelimit.Op, 20)
	for i := range ops {
		ops[i] = ratelimit.Op{Policy: p, Key: fmt.Sprint("k", i), Cost: 1}
		if err := other.Take(ctx, ops[i:i+1]); err != nil {
			t.Fatal(err)
		}
		ops[i].Policy = &updated
	}
	hook.after = func() {
		if hook.n == 1 {
			proxy.lose("evalsha")
		}
	}
	for i, err := range store.TakeTogether(ctx, ops) {
		if err == nil {
			t.Errorf("call %d: no error", i)
		}
	}
	if hook.n != 2 || proxy.losses() != 1 {
		t.Errorf("%d round trips, of which %d were lost, want 2 and 1", hook.n, proxy.losses())
	}
	for i := range ops {
		if err := other.Take(ctx, ops[i:i+1]); err != nil {
			t.Fatal(err)
		}
		if spent := 40 - ops[i].Outcome.Remaining; spent > 3 {
			t.Errorf("call %d: %d units are spent, want one before, one after, and one at most", i, spent)
		}
	}
}

func TestAServerThatLostTheScriptGetsItByOneOfTheCallsThatAreSentTogether(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	sliding := &ratelimit.Policy{ID: "sliding", Algorithm: ratelimit.SlidingWindow, Limit: 5, Window: time.Hour}
	fixed := &ratelimit.Policy{ID: "fixed", Algorithm: ratelimit.FixedWindow, Limit: 5, Window: time.Hour}
	for _, test := range []struct {
		name   string
		joined int // of 4 calls in a row
		always bool
		trips  int
	}{
		{"none joins", 0, false, 2},
		{"some join", 3, false, 2},
		{"all join", 4, false, 2},
		// By and by, each command with the script.
		{"none joins, flushed again and again", 0, true, 41},
		{"some join, flushed again and again", 3, true, 21},
	} {
		s := startServer(t)
		direct := connect(t, s.addr)
		store, hook := counting(t, s.addr)
		flush := func() {
			if err := direct.ScriptFlush(ctx).Err(); err != nil {
				t.Error(err)
			}
		}
		if test.always {
			hook.amid = flush
		}
		ops := make([]ratelimit.Op, 40)
		for i := range ops {
			ops[i] = ratelimit.Op{Policy: sliding, Key: fmt.Sprint("k", i), Cost: 1}
			if i%4 < test.joined {
				ops[i].Policy = fixed
			}
		}
		flush()
		for i, err := range store.TakeTogether(ctx, ops) {
			if o := ops[i].Outcome; err != nil || !o.Allowed || o.Remaining != 4 {
				t.Errorf("%s: call %d: %+v, %v", test.name, i, o, err)
			}
		}
		if hook.n != test.trips || hook.sent["eval"] != test.trips-1 {
			t.Errorf("%s: %d round trips, of which %d with the script, want %d and %d", test.name, hook.n, hook.sent["eval"], test.trips, test.trips-1)
		}
	}
}

// Each server of a ring gets the script by a call of its own.
func TestServersOfARingGetTheScriptByCallsThatAreSentTogether(t *testing.T) {
	t.Parallel()
	a, b := startServer(t), startServer(t)
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": a.addr, "b": b.addr}, ContextTimeoutEnabled: true, ReadTimeout: 10 * time.Second})
	t.Cleanup(func() { ring.Close() })
	hook := &trips{sent: make(map[string]int), after: func() {}}
	ring.AddHook(hook)
	store := redisstore.New(ring, redisstore.WithPipelines(1), quiet)
	var ops []ratelimit.Op
	for i := range 40 {
		ops = append(ops, ratelimit.Op{Policy: policies()[i%3], Key: fmt.Sprint("k", i), Cost: 1})
	}
	for i, err := range store.TakeTogether(context.Background(), ops) {
		if o := ops[i].Outcome; err != nil || !o.Allowed || o.Remaining != 4 {
			t.Errorf("call %d: %+v, %v", i, o, err)
		}
	}
	if hook.n != 3 || hook.sent["eval"] != 2 {
		t.Errorf("%d round trips, %d commands with the script, want 3 and 2", hook.n, hook.sent["eval"])
	}
}

// keeps is a hook that keeps commands, and what they said when they were sent.
type keeps struct {
	mu    sync.Mutex
	cmds  []redis.Cmder
	said  []string
	after func() // a round trip of scripts
}

func saying(cmd redis.Cmder) string {
	text := ""
	for _, arg := range cmd.Args() {
		if s, ok := arg.(*string); ok {
			arg = *s
		}
		if text += fmt.Sprint(arg); len(text) > 200 { // the script
			text = text[:200]
		}
		text += " "
	}
	return text
}

func (k *keeps) keep(cmds ...redis.Cmder) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, cmd := range cmds {
		k.cmds, k.said = append(k.cmds, cmd), append(k.said, saying(cmd))
	}
}

func (*keeps) DialHook(next redis.DialHook) redis.DialHook { return next }
func (k *keeps) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		k.keep(cmd)
		return next(ctx, cmd)
	}
}
func (k *keeps) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		k.keep(cmds...)
		err := next(ctx, cmds)
		if strings.HasPrefix(cmds[0].Name(), "eval") {
			k.after()
		}
		return err
	}
}

// A hook of the client's may look at commands when their calls are over, as one that
// writes a trace does. They are what they were when they were sent.
func TestCommandsThatAHookKeepsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.addr)
	client := redis.NewClient(&redis.Options{Addr: s.addr, ContextTimeoutEnabled: true, ReadTimeout: 10 * time.Second})
	t.Cleanup(func() { client.Close() })
	hook := &keeps{after: func() {}}
	client.AddHook(hook)
	flush := func() {
		if err := direct.ScriptFlush(context.Background()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	check := func(what string) {
		t.Helper()
		hook.mu.Lock()
		defer hook.mu.Unlock()
		for i, cmd := range hook.cmds {
			if got := saying(cmd); got != hook.said[i] {
				t.Errorf("%s: command %d of %d is now\n%swas\n%s", what, i, len(hook.cmds), got, hook.said[i])
			}
		}
	}
	flush()
	if err := redisstore.New(client).Take(context.Background(), oneOp("k")); err != nil {
		t.Fatal(err)
	}
	check("sent again with the script")

	// Two calls that are sent apart are sent as one when that between them has left. What
	// they were in is used again then.
	store := redisstore.New(client, redisstore.WithPipelines(1), quiet)
	sliding := &ratelimit.Policy{ID: "sliding", Algorithm: ratelimit.SlidingWindow, Limit: 5, Window: time.Hour}
	for range 5 {
		flush()
		ctx := context.Background()
		left, leave := context.WithCancel(ctx)
		hook.after = leave
		k := fmt.Sprint("k", prefixes.Add(1))
		ops := []ratelimit.Op{oneOp(k + "a")[0], {Policy: sliding, Key: k, Cost: 1}, oneOp(k + "b")[0]}
		errs := store.TakeEach([]context.Context{ctx, left, ctx}, ops)
		if errs[0] != nil || !errors.Is(errs[1], context.Canceled) || errs[2] != nil {
			t.Fatal(errs)
		}
		for range 10 {
			if err := errors.Join(store.TakeTogether(ctx, []ratelimit.Op{oneOp("x")[0], oneOp("y")[0]})...); err != nil {
				t.Fatal(err)
			}
		}
	}
	check("sent together with another call")
}

// refuses is a hook that does not let pipelines through.
type refuses struct{ panics }

func (r *refuses) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if r.set.Load() {
			return errors.New("a hook refuses")
		}
		return next(ctx, cmds)
	}
}

func TestWhatAHookSaysOfAPipelineIsToldToItsCallers(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	client := redis.NewClient(&redis.Options{Addr: s.addr, ContextTimeoutEnabled: true, ReadTimeout: 10 * time.Second})
	t.Cleanup(func() { client.Close() })
	hook := new(refuses)
	client.AddHook(hook)
	store := redisstore.New(client, redisstore.WithPipelines(1), quiet)
	hook.set.Store(true)
	sliding := &ratelimit.Policy{ID: "sliding", Algorithm: ratelimit.SlidingWindow, Limit: 5, Window: time.Minute}
	ops := []ratelimit.Op{oneOp("a")[0], oneOp("b")[0], {Policy: sliding, Key: "k", Cost: 1}}
	for i, err := range store.TakeTogether(context.Background(), ops) {
		if err == nil || err.Error() != "a hook refuses" {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

// A key that the user may not access is the trouble of the calls for that key only.
func TestAKeyWithoutPermissionConcernsOneOfTheCallsThatAreSentTogether(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := startServer(t)
	store := redisstore.New(connect(t, s.addr))
	if err := connect(t, s.addr).Do(ctx, "ACL", "SETUSER", "u", "on", "nopass", "+@all", "~"+place(store.KeyOf(oneOp("a")[0].Policy, "a*"))).Err(); err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: s.addr, Username: "u", Password: "x", ContextTimeoutEnabled: true})
	t.Cleanup(func() { client.Close() })
	store = redisstore.New(client, redisstore.WithPipelines(1), quiet)
	var ops []ratelimit.Op
	for _, key := range []string{"a1", "a2", "b", "a3"} {
		ops = append(ops, oneOp(key)[0])
	}
	for i, err := range store.TakeTogether(ctx, ops) {
		if o := ops[i].Outcome; i == 2 {
			if err == nil || !strings.HasPrefix(err.Error(), "NOPERM") {
				t.Errorf("call %d: %+v, %v", i, o, err)
			}
		} else if err != nil || !o.Allowed || o.Remaining != oneOp("")[0].Policy.Limit-1 {
			t.Errorf("call %d: %+v, %v", i, o, err)
		}
	}
}

// Calls that are sent together read their keys by one MGET. A user who may not is served all
// the same.
func TestCallsOfAUserWithoutMGETAreDecidedTogether(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := startServer(t)
	if err := connect(t, s.addr).Do(ctx, "ACL", "SETUSER", "u", "on", "nopass", "+@all", "-mget", "~*").Err(); err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: s.addr, Username: "u", Password: "x", ContextTimeoutEnabled: true})
	t.Cleanup(func() { client.Close() })
	store := redisstore.New(client, redisstore.WithPipelines(1), quiet)
	ops := []ratelimit.Op{oneOp("a")[0], oneOp("b")[0], oneOp("c")[0]}
	for i, err := range store.TakeTogether(ctx, ops) {
		if o := ops[i].Outcome; err != nil || !o.Allowed || o.Remaining != ops[i].Policy.Limit-1 {
			t.Errorf("call %d: %+v, %v", i, o, err)
		}
	}
}

// A reply of another length than there are calls says nothing about any of them.
func TestRD19AReplyToCallsSentTogetherHasOnePartForEach(t *testing.T) {
	t.Parallel()
	one := oneOp("")[0].Policy.Window.Microseconds()
	part := "$12\r\nW\x00\x00\x00\x01" + string(binary.BigEndian.AppendUint64(nil, uint64(one))[1:]) + "\r\n"
	for n := range 4 {
		client := connect(t, babble(t, fmt.Sprintf("*%d\r\n%s", n, strings.Repeat(part, n))))
		store := redisstore.New(client, redisstore.WithPipelines(1), quiet)
		ops := []ratelimit.Op{oneOp("a")[0], oneOp("b")[0]}
		for i, err := range store.TakeTogether(context.Background(), ops) {
			if n == 2 && (err != nil || !ops[i].Outcome.Allowed) || n != 2 && (err == nil || ops[i].Outcome.Allowed) {
				t.Errorf("%d parts, call %d: %+v, %v", n, i, ops[i].Outcome, err)
			}
		}
	}
}

func TestDistinctTellsWhetherKeysDiffer(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.StringMatching("[a-z]{2}"), 0, redisstore.MaxPipeline).Draw(t, "keys")
		seen := map[string]bool{}
		for _, key := range keys {
			seen[key] = true
		}
		if got := redisstore.Distinct(keys); got != (len(seen) == len(keys)) {
			t.Errorf("%q: %t", keys, got)
		}
	})
	all := make([]string, redisstore.MaxPipeline)
	for i := range all {
		all[i] = fmt.Sprint(i)
	}
	if !redisstore.Distinct(all) {
		t.Error("as many as can be are not distinct")
	}
}

// A client of one server that is a node of a cluster is an error to Check, and works as
// far as each call has one key.
func TestCallsForKeysOfDifferentSlotsAreSentApart(t *testing.T) {
	t.Parallel()
	s := startServer(t, "--cluster-enabled", "yes")
	client := connect(t, s.addr)
	ownSlots(t, client, 0, 16383)
	store := redisstore.New(client, redisstore.WithPipelines(1), quiet)
	until(t, 10*time.Second, func() bool { return store.Take(context.Background(), oneOp("first")) == nil })
	ops := []ratelimit.Op{oneOp("a")[0], oneOp("b")[0], oneOp("c")[0]}
	for i, err := range store.TakeTogether(context.Background(), ops) {
		if o := ops[i].Outcome; err != nil || !o.Allowed || o.Remaining != ops[i].Policy.Limit-1 {
			t.Errorf("call %d: %+v, %v", i, o, err)
		}
	}
}
