package ratelimittest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"pgregory.net/rapid"
)

// queueStep is what happens next to calls that wait.
type queueStep struct {
	what  string // "wait", "take", "reset", "update", "leave" or "sleep"
	key   string
	cost  int64
	limit int64         // of an update
	span  time.Duration // that a call waits at most, 0 for no bound, or that time goes on
	which int           // of the calls that wait leaves
}

// queues runs steps beside the oracle. Those that wait are in the order in which they
// came.
type queues struct {
	policy  ratelimit.Policy
	limiter *ratelimit.Limiter
	gate    *ratelimit.Gate
	begin   time.Time
	calls   sync.WaitGroup

	mu      sync.Mutex
	pasts   map[string]past
	waiting map[string][]*waitingCall
	wrong   []string
}

type waitingCall struct {
	key   string
	cost  int64
	leave context.CancelFunc
}

type waitingKey struct{}

// Decided compares a decision with what the oracle says, and notes it. It is told of
// the calls of one key in the order in which they are decided: one of them at a time
// is first in line, and nobody else calls meanwhile.
func (q *queues) Decided(ctx context.Context, e *ratelimit.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	call, _ := ctx.Value(waitingKey{}).(*waitingCall)
	if e.Err != nil || len(e.Ops) != 1 {
		q.fail("event %+v", e)
		return
	}
	key, a := e.Ops[0].Key, ask(&q.policy, e.Ops[0].Cost)
	h, t := q.pasts[key].settle(&q.policy, time.Since(q.begin).Microseconds())
	admits := h.admits(&q.policy, t, a)
	line := q.waiting[key]
	switch {
	case call == nil && e.Decision.Allowed != admits:
		q.fail("%s of %d at %v: %+v, and the oracle says %t", key, a.cost, time.Since(q.begin), e.Decision, admits)
	case e.Decision.Allowed && !admits:
		q.fail("%s of %d was admitted at %v too early", key, a.cost, time.Since(q.begin))
	case e.Decision.Allowed && call != nil && line[0] != call:
		q.fail("%s of %d was admitted at %v out of turn", key, a.cost, time.Since(q.begin))
	case !e.Decision.Allowed && admits && len(line) < 2:
		q.fail("%s of %d was refused at %v without need", key, a.cost, time.Since(q.begin))
	}
	if e.Decision.Allowed {
		h = h.charged(&q.policy, t, a, 0)
	}
	q.pasts[key] = h
	q.remove(call)
}

func (q *queues) fail(format string, args ...any) {
	q.wrong = append(q.wrong, fmt.Sprintf(format, args...))
}

// remove takes a call out of its line, which may have been done.
func (q *queues) remove(call *waitingCall) {
	if call != nil {
		q.waiting[call.key] = slices.DeleteFunc(q.waiting[call.key], func(w *waitingCall) bool { return w == call })
	}
}

func (q *queues) do(ctx context.Context, s *queueStep) {
	charges := []ratelimit.Charge{{Key: []byte(s.key), Cost: s.cost}}
	switch s.what {
	case "wait":
		q.wait(ctx, s, charges)
	case "take":
		if _, err := q.gate.Take(ctx, charges...); err != nil {
			q.fail("%v", err)
		}
	case "reset":
		q.mu.Lock()
		q.pasts[s.key] = past{}
		q.mu.Unlock()
		if err := q.gate.Reset(ctx, []byte(s.key)); err != nil {
			q.fail("%v", err)
		}
	case "update":
		q.update(s.limit)
	case "leave":
		q.mu.Lock()
		if line := q.waiting[s.key]; len(line) > 0 {
			line[s.which%len(line)].leave()
		}
		q.mu.Unlock()
	case "sleep":
		time.Sleep(s.span)
	}
}

func (q *queues) wait(ctx context.Context, s *queueStep, charges []ratelimit.Charge) {
	call := &waitingCall{key: s.key, cost: s.cost}
	ctx = context.WithValue(ctx, waitingKey{}, call)
	if s.span > 0 {
		ctx, call.leave = context.WithTimeout(ctx, s.span)
	} else {
		ctx, call.leave = context.WithCancel(ctx)
	}
	q.mu.Lock()
	q.waiting[s.key] = append(q.waiting[s.key], call)
	q.mu.Unlock()
	q.calls.Go(func() {
		defer call.leave()
		err := q.gate.Wait(ctx, charges)
		q.mu.Lock()
		defer q.mu.Unlock()
		q.remove(call)
		if err != nil && !errors.Is(err, ratelimit.ErrLimited) && err != ctx.Err() {
			q.fail("%v", err)
		}
	})
}

func (q *queues) update(limit int64) {
	q.mu.Lock()
	old := q.policy
	q.policy.Limit = limit
	for key, h := range q.pasts {
		q.pasts[key] = h.retuned(&old, &q.policy, time.Since(q.begin).Microseconds())
	}
	q.mu.Unlock()
	if err := q.limiter.Update(q.policy.ID, ratelimit.Patch{Limit: &limit}); err != nil {
		q.fail("%v", err)
	}
}

// check fails if somebody waits who could be admitted.
func (q *queues) check() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for key, line := range q.waiting {
		if len(line) == 0 {
			continue
		}
		h, t := q.pasts[key].settle(&q.policy, time.Since(q.begin).Microseconds())
		if h.admits(&q.policy, t, ask(&q.policy, line[0].cost)) {
			q.fail("%s of %d waits at %v and could be admitted", key, line[0].cost, time.Since(q.begin))
		}
	}
}

// runQueues returns what was wrong.
func runQueues(t *testing.T, p ratelimit.Policy, steps []queueStep) (wrong []string) {
	synctest.Test(t, func(t *testing.T) {
		q := &queues{policy: p, begin: time.Now(), pasts: map[string]past{}, waiting: map[string][]*waitingCall{}}
		q.limiter = ratelimit.New(ratelimit.WithObserver(q))
		q.gate = q.limiter.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{p}})
		for i := range steps {
			q.do(t.Context(), &steps[i])
			synctest.Wait()
			q.check()
		}
		q.mu.Lock()
		for _, line := range q.waiting {
			for _, call := range line {
				call.leave()
			}
		}
		q.mu.Unlock()
		q.calls.Wait()
		wrong = q.wrong
	})
	return wrong
}

// TestSimulationOfQueues has calls wait, give up and run out of time while limits are
// updated and keys reset: nobody is admitted early or out of turn, nobody who gives up
// is charged, and nobody waits who could be admitted. One seed is one history, as of
// TestSimulation.
func TestSimulationOfQueues(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := ratelimit.Policy{
			ID: "p",
			Algorithm: rapid.SampledFrom([]ratelimit.Algorithm{
				ratelimit.SlidingLog, ratelimit.FixedWindow, ratelimit.SlidingWindow, ratelimit.TokenBucket,
			}).Draw(rt, "algorithm"),
			Limit:    rapid.Int64Range(1, 4).Draw(rt, "limit"),
			Window:   time.Duration(rapid.Int64Range(1, 20).Draw(rt, "window")) * time.Second,
			MaxQueue: rapid.IntRange(0, 4).Draw(rt, "queue"),
		}
		p.MaxWait = time.Duration(rapid.Int64Range(0, 3).Draw(rt, "patience")) * p.Window
		if p.Algorithm == ratelimit.TokenBucket {
			p.Burst = 4
			p.Refill = rapid.SampledFrom([]ratelimit.Refill{ratelimit.Smooth, ratelimit.Interval}).Draw(rt, "refill")
		}
		most := p.Limit
		duration := rapid.Custom(func(rt *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(0, 4*p.Window.Microseconds()).Draw(rt, "µs")) * time.Microsecond
		})
		steps := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) queueStep {
			return queueStep{
				what:  rapid.SampledFrom([]string{"wait", "wait", "wait", "take", "sleep", "sleep", "leave", "reset", "update"}).Draw(rt, "what"),
				key:   rapid.SampledFrom([]string{"a", "a", "b"}).Draw(rt, "key"),
				cost:  rapid.Int64Range(1, most).Draw(rt, "cost"),
				limit: rapid.Int64Range(most, most+4).Draw(rt, "limit"), // all costs go on fitting
				span:  duration.Draw(rt, "for"),
				which: rapid.IntRange(0, 3).Draw(rt, "which"),
			}
		}), 1, 40).Draw(rt, "steps")
		if wrong := runQueues(t, p, steps); len(wrong) > 0 {
			rt.Fatalf("%+v: %q", p, wrong)
		}
	})
}
