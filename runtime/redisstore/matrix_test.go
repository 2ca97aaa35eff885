package redisstore_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimittest"
	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

// faultsEnv asks for the long form of the tests in this file, and for their table.
const faultsEnv = "RATELIMITGEN_FAULTS"

func longFaults() bool { return os.Getenv(faultsEnv) != "" }

// traffic is callers of one gate, on-error=local, and what became of their calls.
type traffic struct {
	key     string
	gate    *ratelimit.Gate
	store   *redisstore.Store
	events  ratelimittest.Recorder
	decided sync.WaitGroup
	stop    chan struct{}

	mu      sync.Mutex
	took    []time.Duration
	wrong   []string
	answers int           // by the store
	healed  time.Time     // when the fault ended, or zero
	back    time.Duration // from then to the first answer of the store
	most    int           // commands in flight
}

const trafficLimit = ratelimit.MaxLimit

func trafficPolicy() ratelimit.Policy {
	return ratelimit.Policy{ID: "p", Algorithm: ratelimit.FixedWindow, Limit: trafficLimit, Window: time.Hour}
}

// startTraffic starts callers, each of which calls every few milliseconds.
func startTraffic(client redis.UniversalClient, key string, callers int) *traffic {
	return startTrafficOn(redisstore.New(client, redisstore.WithTimeout(redisstore.DefaultTimeout), quiet), key, callers)
}

// startTrafficOn is startTraffic for a store that is in use.
func startTrafficOn(store *redisstore.Store, key string, callers int) *traffic {
	f := &traffic{key: key, store: store, stop: make(chan struct{}), back: -1}
	f.gate = ratelimit.New(ratelimit.WithStore("", f.store), ratelimit.WithReplicas(2), ratelimit.WithObserver(&f.events)).
		MustGate(&ratelimit.Spec{Method: "p.T.M", Policies: []ratelimit.Policy{trafficPolicy()}})
	for range callers {
		f.decided.Go(func() {
			tick := time.NewTicker(4 * time.Millisecond)
			defer tick.Stop()
			for {
				f.call()
				select {
				case <-f.stop:
					return
				case <-tick.C:
				}
			}
		})
	}
	return f
}

func (f *traffic) call() {
	start := time.Now()
	d, err := f.gate.Take(context.Background(), ratelimit.Charge{Key: []byte(f.key), Cost: 1})
	end := time.Now()
	inFlight := f.store.Stats().InFlight
	f.mu.Lock()
	defer f.mu.Unlock()
	f.took = append(f.took, end.Sub(start))
	f.most = max(f.most, inFlight)
	if err != nil || !d.Allowed {
		f.wrong = append(f.wrong, fmt.Sprintf("%+v, %v", d, err))
		return
	}
	if d.Degraded {
		return
	}
	f.answers++
	if !f.healed.IsZero() && f.back < 0 && start.After(f.healed) {
		f.back = end.Sub(f.healed)
	}
}

// heal tells that the fault has ended at a time.
func (f *traffic) heal(at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.healed = at
}

func (f *traffic) answered() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.answers
}

func (f *traffic) isBack() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.back >= 0
}

// end ends the traffic.
func (f *traffic) end() {
	close(f.stop)
	f.decided.Wait()
	slices.Sort(f.took)
}

// percentile returns what a part of the calls did not exceed.
func (f *traffic) percentile(p float64) time.Duration {
	return f.took[min(int(p*float64(len(f.took))), len(f.took)-1)]
}

// spent returns what the server has charged.
func spent(t testing.TB, store *redisstore.Store, key string) int64 {
	t.Helper()
	p := trafficPolicy()
	ops := []ratelimit.Op{{Policy: &p, Key: key}}
	if err := store.Take(context.Background(), ops); err != nil {
		t.Fatal(err)
	}
	return p.Limit - ops[0].Outcome.Remaining
}

// faults is the table of the long form, which TestMain prints.
var faults report

type report struct {
	mu   sync.Mutex
	rows []string
}

func (r *report) add(fault string, f *traffic, note string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	failures := 0
	for class, n := range f.store.Stats().Failures {
		if class != redisstore.Open {
			failures += int(n)
		}
	}
	recovery := "-" // of what was never gone
	if f.back >= 0 {
		recovery = fmt.Sprint(f.back.Milliseconds(), " ms")
	}
	r.rows = append(r.rows, fmt.Sprintf("%s\t%d\t%d\t%d\t%d\t%.1f ms\t%.1f ms\t%s\t%d\t%s", fault, len(f.took), len(f.wrong), len(f.took)-f.answers, failures,
		f.percentile(0.99).Seconds()*1000, f.percentile(1).Seconds()*1000, recovery, f.most, note))
}

// addDecisions adds a row of calls that the store decided all, at no speed to speak of.
func (r *report) addDecisions(fault string, decisions, wrong int, note string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rows = append(r.rows, fmt.Sprintf("%s\t%d\t%d\t0\t0\t-\t-\t-\t-\t%s", fault, decisions, wrong, note))
}

// addTest adds a row of a test that has made decisions, and has failed if one was wrong.
func (r *report) addTest(t *testing.T, fault string, decisions int, note string) {
	wrong := 0
	if t.Failed() {
		wrong = decisions
	}
	r.addDecisions(fault, decisions, wrong, note)
}

func (r *report) print() {
	if !longFaults() {
		return
	}
	slices.Sort(r.rows)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "fault\tdecisions\twrong\tdegraded\tfailed\t99 %\tlongest\trecovery\tin flight\t")
	for _, row := range r.rows {
		fmt.Fprintln(w, row)
	}
	_ = w.Flush()
}

// plain and tuned are clients with the defaults of go-redis, and with ours.
func plain(addrs ...string) redis.UniversalClient {
	return redis.NewUniversalClient(&redis.UniversalOptions{Addrs: addrs})
}

func tuned(addrs ...string) redis.UniversalClient {
	return redisstore.NewClient(&redis.UniversalOptions{Addrs: addrs})
}

// TestFaultsRD14 has a server fail under traffic. Every decision is made by its deadline,
// nothing is charged twice, and the server is asked again soon after it is back.
func TestFaultsRD14(t *testing.T) {
	t.Parallel()
	frozen, gone := 3*time.Second, time.Second
	if longFaults() {
		frozen, gone = 10*time.Second, 5*time.Second
	}
	sigstop := func(t *testing.T, s *server) time.Time {
		s.signal(t, syscall.SIGSTOP)
		<-time.After(frozen) // the length of the fault
		s.signal(t, syscall.SIGCONT)
		return time.Now()
	}
	pause := func(t *testing.T, s *server) time.Time {
		// Not by the client of the store, whose connections come and go.
		if err := connect(t, s.addr).ClientPause(context.Background(), frozen).Err(); err != nil {
			t.Error(err)
		}
		<-time.After(frozen)
		return time.Now()
	}
	restart := func(t *testing.T, s *server) time.Time {
		s.kill()
		<-time.After(gone)
		if err := s.run(); err != nil {
			t.Error(err)
		}
		return time.Now()
	}
	r := &faults
	for _, c := range []struct {
		name   string
		client func(addrs ...string) redis.UniversalClient
		fault  func(t *testing.T, s *server) (healed time.Time)
		empty  bool // afterwards
	}{
		{"frozen, go-redis's defaults", plain, sigstop, false},
		{"frozen, NewClient", tuned, sigstop, false},
		{"paused, go-redis's defaults", plain, pause, false},
		{"killed and restarted empty, go-redis's defaults", plain, restart, true},
		{"killed and restarted empty, NewClient", tuned, restart, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			client := c.client(s.addr)
			t.Cleanup(func() { client.Close() })
			f := startTraffic(client, "k", 8)
			until(t, 10*time.Second, func() bool { return f.answered() > 100 })
			f.heal(c.fault(t, s))
			until(t, 10*time.Second, f.isBack)
			f.end()
			r.add(c.name, f, "")
			check(t, f, 2*time.Second)

			// What was sent and not answered may have been charged, and only once.
			charged := spent(t, redisstore.New(connect(t, s.addr)), "k")
			stats := f.store.Stats()
			most := int64(f.answers) + stats.Failures[redisstore.Timeout] + stats.Failures[redisstore.Unreachable]
			if charged > most || !c.empty && charged < int64(f.answers) {
				t.Errorf("%d answers and %d calls at most were charged as %d", f.answers, most, charged)
			}
		})
	}
}

// check fails unless all calls were decided in time, and by the store soon after it
// was back.
func check(t *testing.T, f *traffic, recovery time.Duration) {
	t.Helper()
	for _, w := range f.wrong {
		t.Errorf("a wrong decision: %s", w)
	}
	const deadline = redisstore.DefaultTimeout + 20*time.Millisecond
	// The machine may be busy with other tests, which is not the store's doing.
	if p, longest := f.percentile(0.98), f.percentile(1); p > deadline || longest > time.Second {
		t.Errorf("of %d decisions 98 %% were made within %v, the others within %v", len(f.took), p, longest)
	}
	// Most are made at once, as the breaker is open. Of the others, some were held up by
	// other tests, and not half of them.
	var waited []time.Duration
	for _, d := range f.took {
		if d > redisstore.DefaultTimeout/2 {
			waited = append(waited, d)
		}
	}
	slices.Sort(waited)
	if n := len(waited); n > 0 && waited[n/2] > deadline {
		t.Errorf("half of the %d decisions that waited for the server took more than %v", n, waited[n/2])
	}
	if f.back > recovery {
		t.Errorf("asked again after %v", f.back)
	}
	if f.most > 64 {
		t.Errorf("%d commands were in flight", f.most)
	}
	// Whatever was not decided by the store says so, and why.
	degraded := 0
	for _, e := range f.events.Events() {
		var cause *redisstore.Error
		if e.Decision.Degraded {
			degraded++
			if !errors.Is(e.Err, ratelimit.ErrStore) || !errors.As(e.Err, &cause) || cause.Class == "" {
				t.Errorf("the observer was told of %v", e.Err)
			}
		}
	}
	if want := len(f.took) - f.answers; degraded != want {
		t.Errorf("the observer was told of %d degraded decisions of %d", degraded, want)
	}
}

func TestServerThatIsBusyOrFullIsAnErrorOfItsClass(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	do := func(t *testing.T, client *redis.Client, args ...any) {
		t.Helper()
		if err := client.Do(ctx, args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		code  string
		class redisstore.Class
		on    func(t *testing.T, admin *redis.Client, key string)
		off   func(t *testing.T, admin *redis.Client, key string)
	}{
		{"READONLY", redisstore.Refused,
			func(t *testing.T, admin *redis.Client, _ string) { do(t, admin, "replicaof", "127.0.0.1", "1") },
			func(t *testing.T, admin *redis.Client, _ string) { do(t, admin, "replicaof", "no", "one") }},
		{"OOM", redisstore.Refused,
			func(t *testing.T, admin *redis.Client, _ string) { do(t, admin, "config", "set", "maxmemory", "1") },
			func(t *testing.T, admin *redis.Client, _ string) { do(t, admin, "config", "set", "maxmemory", "0") }},
		{"NOPERM", redisstore.Refused,
			func(t *testing.T, admin *redis.Client, _ string) {
				do(t, admin, "acl", "setuser", "default", "-evalsha", "-eval")
			},
			func(t *testing.T, admin *redis.Client, _ string) { do(t, admin, "acl", "setuser", "default", "+@all") }},
		{"BUSY", redisstore.Refused,
			func(t *testing.T, admin *redis.Client, _ string) {
				do(t, admin, "config", "set", "busy-reply-threshold", "1")
				go admin.Eval(ctx, "while true do end", nil)
				until(t, 10*time.Second, func() bool {
					err := admin.Get(ctx, "x").Err()
					return err != nil && strings.HasPrefix(err.Error(), "BUSY")
				})
			},
			func(t *testing.T, admin *redis.Client, _ string) { do(t, admin, "script", "kill") }},
		{"", redisstore.Invalid, // WRONGTYPE, in the words of the script
			func(t *testing.T, admin *redis.Client, key string) { do(t, admin, "rpush", key, "x") },
			func(t *testing.T, admin *redis.Client, key string) { do(t, admin, "del", key) }},
	} {
		t.Run(string(c.class)+c.code, func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			admin := connect(t, s.addr)
			store := redisstore.New(connect(t, s.addr), quiet)
			key := place(store.KeyOf(oneOp("k")[0].Policy, "k"))
			if err := store.Take(ctx, oneOp("other")); err != nil {
				t.Fatal(err)
			}
			c.on(t, admin, key)
			var e *redisstore.Error
			for range redisstore.DefaultBreaker {
				err := store.Take(ctx, oneOp("k"))
				if !errors.As(err, &e) || e.Class != c.class || c.code != "" && e.Code() != c.code {
					t.Errorf("error %v of class %q", err, classOf(err))
				}
			}
			c.off(t, admin, key)
			until(t, 5*time.Second, func() bool { return store.Take(ctx, oneOp("k")) == nil })
			keys, err := admin.Keys(ctx, "*").Result()
			if err != nil || len(keys) != 2 {
				t.Errorf("keys %q, %v", keys, err)
			}
			for _, k := range keys {
				if ttl, err := admin.PTTL(ctx, k).Result(); err != nil || ttl <= 0 || ttl > time.Hour+slack(time.Hour) {
					t.Errorf("%s lives for %v, %v", k, ttl, err)
				}
			}
			ops := oneOp("k")
			ops[0].Cost = 0
			if err := store.Take(ctx, ops); err != nil || ops[0].Outcome.Remaining != ratelimit.MaxLimit-1 {
				t.Errorf("one call was admitted, and %+v, %v", ops[0].Outcome, err)
			}
			faults.addTest(t, cmp.Or(c.code, "WRONGTYPE"), redisstore.DefaultBreaker+2, "errors of class "+string(c.class)+", and one call admitted")
		})
	}
}

func TestScriptsThatAreFlushedAreNoError(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	client := plain(s.addr)
	t.Cleanup(func() { client.Close() })
	admin := connect(t, s.addr)
	f := startTraffic(client, "k", 4)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 50 {
		<-tick.C
		if err := admin.ScriptFlush(context.Background()).Err(); err != nil {
			t.Error(err)
		}
	}
	f.end()
	for class, n := range f.store.Stats().Failures {
		// A decision may come late on a machine that is busy.
		if n > 0 && class != redisstore.Timeout && class != redisstore.Open {
			t.Errorf("%d failures of class %s", n, class)
		}
	}
	if len(f.wrong) > 0 || f.answers < 50 {
		t.Errorf("%d wrong decisions and %d answers", len(f.wrong), f.answers)
	}
	faults.add("SCRIPT FLUSH every 10 ms", f, "")
}

// dropper passes connections on to a server, until it drops all that is sent.
type dropper struct{ drops atomic.Bool }

func (d *dropper) start(t testing.TB, server string) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	pass := func(to, from net.Conn) {
		defer to.Close()
		defer from.Close()
		buf := make([]byte, 1<<16)
		for {
			n, err := from.Read(buf)
			if err != nil {
				return
			}
			if d.drops.Load() {
				continue
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
	}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			conn, err := net.Dial("tcp", server)
			if err != nil {
				client.Close()
				continue
			}
			go pass(conn, client)
			go pass(client, conn)
		}
	}()
	return l.Addr().String()
}

// A network that loses all packets for a while leaves connections that never answer.
func TestConnectionsThatAreDeadAreLeft(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	var d dropper
	client := plain(d.start(t, s.addr))
	t.Cleanup(func() { client.Close() })
	f := startTraffic(client, "k", 8)
	until(t, 10*time.Second, func() bool { return f.answered() > 100 })
	d.drops.Store(true)
	<-time.After(2 * time.Second) // the length of the fault
	d.drops.Store(false)
	f.heal(time.Now())
	until(t, 10*time.Second, f.isBack)
	f.end()
	check(t, f, 2*time.Second)
}
