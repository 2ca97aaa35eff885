package redisstore_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

// workerEnv has the test binary be a worker: a process that calls one key as each line of
// its standard input says, and prints the history of that as a line.
const workerEnv = "REDISSTORE_TEST_WORKER"

// job is what a worker does.
type job struct {
	Addr, Prefix string
	Policy       *ratelimit.Policy
	Pipelines    int
	Callers      int           // at a time
	Calls        int           // of each caller
	For          time.Duration // in place of Calls; of the history, the calls that were admitted
	Seed         uint64
	Fake         bool // time, and no memory of refusals
	Resets       bool // now and then, and looks
}

// step is an operation of a history, and what came of it.
type step struct {
	What         string // "take", "peek", "reset" or "clock"
	Cost         int64
	Now          int64 // of the clock, in µs
	Outcome      ratelimit.Outcome
	Call, Return int64
}

// work is what TestMain does in a worker.
func work() {
	in, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	fmt.Println("ready")
	for in.Scan() {
		var j job
		err := json.Unmarshal(in.Bytes(), &j)
		if err == nil {
			var history []step
			if history, err = j.do(); err == nil {
				err = out.Encode(history)
			}
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(0)
}

// do makes the calls of j. The times of the history are those of the machine's clock,
// which all processes see.
func (j *job) do() ([]step, error) {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: j.Addr})
	defer client.Close()
	store := redisstore.New(client, redisstore.WithPrefix(j.Prefix), redisstore.WithTimeout(20*time.Second), redisstore.WithPipelines(j.Pipelines))
	if j.Fake {
		store = redisstore.NewFakeTime(client, j.Prefix, redisstore.WithPipelines(j.Pipelines))
	}
	started := time.Now()
	var mu sync.Mutex
	var history []step
	var failed error
	var callers sync.WaitGroup
	for number := range j.Callers {
		rnd := rand.New(rand.NewPCG(j.Seed, uint64(number)))
		callers.Go(func() {
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for i := 0; i < j.Calls || time.Since(started) < j.For; i++ {
				if j.Calls == 0 {
					<-tick.C // what is refused takes no time
				}
				s := step{What: "take", Cost: 1 + rnd.Int64N(2)}
				if j.Resets {
					switch rnd.IntN(40) {
					case 0:
						s.What = "reset"
					case 1, 2:
						s.What = "peek"
					}
				}
				var err error
				s.Call = time.Now().UnixNano()
				ops := []ratelimit.Op{{Policy: j.Policy, Key: "k", Cost: s.Cost, Peek: s.What == "peek"}}
				if s.What == "reset" {
					err = store.Reset(ctx, j.Policy, "k")
				} else {
					err = store.Take(ctx, ops)
				}
				s.Outcome = ops[0].Outcome
				s.Return = time.Now().UnixNano()
				mu.Lock()
				if j.Calls > 0 || s.Outcome.Allowed {
					history = append(history, s)
				}
				if failed == nil {
					failed = err
				}
				stop := failed != nil
				mu.Unlock()
				if stop {
					return
				}
			}
		})
	}
	callers.Wait()
	return history, failed
}

// worker is a process that does jobs.
type worker struct {
	in  io.WriteCloser
	out *bufio.Reader
}

// startWorkers starts n processes, which end with the test.
func startWorkers(t *testing.T, n int) []*worker {
	t.Helper()
	workers := make([]*worker, n)
	for i := range workers {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), workerEnv+"=1")
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			in.Close()
			if err := cmd.Wait(); err != nil {
				t.Errorf("a worker ended with %v", err)
			}
		})
		workers[i] = &worker{in, bufio.NewReader(out)}
	}
	for _, w := range workers {
		if line, err := w.out.ReadString('\n'); err != nil || line != "ready\n" {
			t.Fatalf("a worker begins with %q, %v", line, err)
		}
	}
	return workers
}

// workTogether has all workers do j, and returns the history of all. Meanwhile is called
// until they are done.
func workTogether(t *testing.T, workers []*worker, j job, meanwhile func() step) []step {
	t.Helper()
	var mu sync.Mutex
	var history []step
	var all sync.WaitGroup
	for i, w := range workers {
		j.Seed += uint64(i) + 1
		line, err := json.Marshal(j)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			var mine []step
			_, err := w.in.Write(append(line, '\n'))
			if err == nil {
				var line []byte
				if line, err = w.out.ReadBytes('\n'); err == nil {
					err = json.Unmarshal(line, &mine)
				}
			}
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			history = append(history, mine...)
		})
	}
	done := make(chan struct{})
	go func() {
		all.Wait()
		close(done)
	}()
	for meanwhile != nil {
		select {
		case <-done:
			return history
		default:
		}
		s := meanwhile()
		mu.Lock()
		history = append(history, s)
		mu.Unlock()
	}
	<-done
	return history
}

// limitState is what a limit holds by the plainest reading of its definition. The units
// of a bucket take whole microseconds.
type limitState struct {
	now    int64
	at     []int64 // of each unit that a log counts
	begins int64   // of a fixed window
	used   int64   // of a fixed window
	full   int64   // when a bucket is full
}

// limitModel decides by p: sliding log, fixed window and token bucket.
func limitModel(p *ratelimit.Policy) porcupine.Model {
	window := p.Window.Microseconds()
	µs := func(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
	return porcupine.Model{
		Init: func() any { return limitState{} },
		Step: func(state, input, output any) (bool, any) {
			s, in := state.(limitState), input.(step)
			switch in.What {
			case "clock":
				s.now = in.Now
				return true, s
			case "reset":
				return true, limitState{now: s.now}
			}
			charge := func() {}
			var want ratelimit.Outcome
			switch p.Algorithm {
			case ratelimit.SlidingLog:
				at := slices.DeleteFunc(slices.Clone(s.at), func(t int64) bool { return t+window <= s.now })
				n := int64(len(at))
				if want.Allowed = n+in.Cost <= p.Limit; want.Allowed && in.What == "take" {
					for range in.Cost {
						at = append(at, s.now)
					}
					charge = func() { s.at = at }
				}
				want.Remaining = p.Limit - int64(len(at))
				if len(at) > 0 {
					want.ResetAfter = µs(at[len(at)-1] + window - s.now)
				}
				if !want.Allowed {
					want.RetryAfter = µs(at[n+in.Cost-p.Limit-1] + window - s.now)
				}
			case ratelimit.FixedWindow:
				begins, used := s.begins, s.used
				if used > 0 && begins+window <= s.now {
					used = 0
				}
				if used == 0 {
					begins = s.now
				}
				left := begins + window - s.now
				if want.Allowed = used+in.Cost <= p.Limit; want.Allowed && in.What == "take" {
					used += in.Cost
					charge = func() { s.begins, s.used = begins, used }
				}
				want.Remaining = p.Limit - used
				if used > 0 {
					want.ResetAfter = µs(left)
				}
				if !want.Allowed {
					want.RetryAfter = µs(left)
				}
			case ratelimit.TokenBucket:
				unit := window / p.Limit
				debt := max(0, s.full-s.now)
				if want.Allowed = debt+in.Cost*unit <= p.Limit*unit; want.Allowed && in.What == "take" {
					debt += in.Cost * unit
					full := s.now + debt
					charge = func() { s.full = full }
				}
				want.Remaining = (p.Limit*unit - debt) / unit
				want.ResetAfter = µs(debt)
				if !want.Allowed {
					want.RetryAfter = µs(debt + in.Cost*unit - p.Limit*unit)
				}
			}
			charge()
			return output.(step).Outcome == want, s
		},
		Equal: reflect.DeepEqual,
	}
}

// linear returns whether history can be explained as one call after the other.
func linear(p *ratelimit.Policy, history []step) porcupine.CheckResult {
	ops := make([]porcupine.Operation, len(history))
	for i, s := range history {
		ops[i] = porcupine.Operation{ClientId: i, Input: s, Call: s.Call, Output: s, Return: s.Return}
	}
	return porcupine.CheckOperationsTimeout(limitModel(p), ops, 20*time.Second)
}

// listed lists history by the time at which calls began.
func listed(history []step) string {
	slices.SortFunc(history, func(a, b step) int { return int(a.Call - b.Call) })
	var b strings.Builder
	for _, s := range history[:min(len(history), 1000)] {
		fmt.Fprintf(&b, "%d..%d %s %d now %d: %+v\n", s.Call, s.Return, s.What, s.Cost, s.Now, s.Outcome)
	}
	return b.String()
}

// Whatever eight processes are told of one key, while time passes and the key is reset,
// the limit said it to one call after the other.
func TestEightProcessesAreDecidedOneAfterTheOther(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rounds, calls := 1, 30
	if longFaults() {
		rounds = 12
	}
	client, _ := sharedClient(t)
	workers := startWorkers(t, 8)
	ops, histories, unknown := 0, 0, 0
	for round := range rounds {
		for _, p := range policies() {
			for _, pipelines := range []int{0, 1} {
				prefix := fmt.Sprintf("t%d:", prefixes.Add(1))
				rnd := rand.New(rand.NewPCG(uint64(round), 0))
				now := epoch
				clock := func() step {
					s := step{What: "clock", Now: now}
					now += rnd.Int64N(5 * sec)
					s.Call = time.Now().UnixNano()
					if err := client.Set(ctx, prefix+"now", s.Now, 0).Err(); err != nil {
						t.Error(err)
					}
					s.Return = time.Now().UnixNano()
					return s
				}
				first := clock()
				history := append(workTogether(t, workers, job{
					Addr: client.Options().Addr, Prefix: prefix, Policy: p, Pipelines: pipelines,
					Callers: 1 + pipelines, Calls: calls, Seed: uint64(round) << 32, Fake: true, Resets: true,
				}, clock), first)
				switch linear(p, history) {
				case porcupine.Illegal:
					t.Fatalf("%s, pipelines %d, round %d: no order explains\n%s", p.ID, pipelines, round, listed(history))
				case porcupine.Unknown: // there are too many orders, which is seldom
					unknown++
				}
				histories++
				ops += len(history)
			}
		}
	}
	t.Logf("%d calls of 8 processes in %d histories, of which %d were too large to check", ops, histories, unknown)
	if unknown > histories/3 {
		t.Errorf("%d of %d histories were too large to check", unknown, histories)
	}
}

// A history in which one of the calls was admitted that was not, or the other way round,
// has no such order.
func TestOneAdmissionTooManyIsSeen(t *testing.T) {
	t.Parallel()
	for _, p := range policies() {
		f := newFake(t)
		history := []step{{What: "clock", Now: epoch, Call: 0, Return: 1}}
		for i := range int64(8) {
			s := step{What: "take", Cost: 1, Call: 2 + i, Return: 20 + i} // all at once
			s.Outcome = f.take(ratelimit.Op{Policy: p, Key: "k", Cost: 1})[0]
			history = append(history, s)
		}
		if r := linear(p, history); r != porcupine.Ok {
			t.Fatalf("%s: %s\n%s", p.ID, r, listed(history))
		}
		for i := range history[1:] {
			was := history[1+i]
			history[1+i].Outcome = history[1+(i+5)%8].Outcome
			if history[1+i].Outcome != was.Outcome && linear(p, history) == porcupine.Ok {
				t.Errorf("%s: call %d might as well have been told %+v", p.ID, i, history[1+i].Outcome)
			}
			history[1+i] = was
		}
	}
}

// In real time, with all that a process remembers, eight processes get no more than the
// limit in any window.
func TestEightProcessesTogetherGetNoMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	client, _ := sharedClient(t)
	workers := startWorkers(t, 8)
	length := 700 * time.Millisecond
	if longFaults() {
		length = 10 * time.Second
	}
	for _, p := range policies() {
		p.Limit, p.Window = 20, 100*time.Millisecond
		most := p.Limit
		if p.Algorithm != ratelimit.SlidingLog {
			most *= 2 // about the edge of a window, and of what has refilled
		}
		for _, pipelines := range []int{0, 1} {
			history := workTogether(t, workers, job{
				Addr: client.Options().Addr, Prefix: fmt.Sprintf("t%d:", prefixes.Add(1)), Policy: p, Pipelines: pipelines,
				Callers: 4, For: length,
			}, nil)
			slices.SortFunc(history, func(a, b step) int { return int(a.Return - b.Return) })
			// The units of calls that began and ended within a window before each ended.
			var admitted int64
			for i, last := range history {
				admitted += last.Cost
				units := int64(0)
				for j := i; j >= 0 && history[j].Return > last.Return-p.Window.Nanoseconds(); j-- {
					if history[j].Call > last.Return-p.Window.Nanoseconds() {
						units += history[j].Cost
					}
				}
				if units > most {
					t.Fatalf("%s, pipelines %d: %d units of %d in a window\n%s", p.ID, pipelines, units, most, listed(history))
				}
			}
			windows := int64((length + p.Window - 1) / p.Window)
			if len(history) == 0 {
				t.Fatalf("%s, pipelines %d: nothing was admitted", p.ID, pipelines)
			}
			if all := (history[len(history)-1].Return - history[0].Call) / p.Window.Nanoseconds(); all > windows {
				windows = all // the workers were slow to begin
			}
			if admitted > (windows+2)*p.Limit || admitted < p.Limit {
				t.Errorf("%s, pipelines %d: %d of %d units were admitted in %d windows", p.ID, pipelines, admitted, p.Limit, windows)
			}
			t.Logf("%s, pipelines %d: %d units admitted in %d windows", p.ID, pipelines, admitted, windows)
		}
	}
}
