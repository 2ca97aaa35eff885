package ratelimittest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// linearPolicies has every algorithm, and every way in which a decision is made: plain
// entries and records, calls that end, locks, and shadows. Windows are a minute.
var linearPolicies = []ratelimit.Policy{
	{Algorithm: ratelimit.SlidingLog},
	{Algorithm: ratelimit.FixedWindow},
	{Algorithm: ratelimit.FixedWindow, Align: ratelimit.AlignMinute},
	{Algorithm: ratelimit.SlidingWindow, Segments: 3},
	{Algorithm: ratelimit.TokenBucket},
	{Algorithm: ratelimit.TokenBucket, Refill: ratelimit.Interval},
	{Algorithm: ratelimit.TokenBucket, Initial: ratelimit.Empty},
	{Algorithm: ratelimit.TokenBucket, Warmup: time.Minute},
	{Algorithm: ratelimit.TokenBucket, Count: true},
	{Algorithm: ratelimit.LeakyBucket},
	{Algorithm: ratelimit.Concurrency, Lease: time.Minute},
	{Algorithm: ratelimit.TimeQuota},
	{Algorithm: ratelimit.SlidingLog, Count: true},
	{Algorithm: ratelimit.SlidingLog, Lock: []time.Duration{time.Minute, time.Hour}},
	{Algorithm: ratelimit.TokenBucket, Mode: ratelimit.Shadow},
}

// linearInput is an operation of a history.
type linearInput struct {
	what  linearWhat
	ops   []ratelimit.Op // of a call
	call  int            // that may end
	limit int64          // of an update
	now   int64          // that the clock is set to
	loose bool           // of an admission, only that it is one is known
}

type linearWhat string

const (
	linearTake    linearWhat = "take"
	linearPeek    linearWhat = "peek"
	linearReset   linearWhat = "reset"
	linearRelease linearWhat = "release"
	linearUpdate  linearWhat = "update"
	linearClock   linearWhat = "clock"
)

// linearState is all that a limiter holds.
type linearState struct {
	now    int64
	limit  int64 // of the policy that is updated
	states map[string]past
}

// linearModel is a limiter with the policies p, which is updated, and second.
func linearModel(p ratelimit.Policy) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return linearState{limit: p.Limit, states: map[string]past{}} },
		Step: func(state, input, output any) (bool, any) {
			s, in := state.(linearState), input.(linearInput)
			s.states = maps.Clone(s.states)
			updated := p
			updated.Limit = s.limit
			ok := true
			switch in.what {
			case linearClock:
				s.now = in.now
			case linearTake, linearPeek:
				ops := slices.Clone(in.ops)
				for i := range ops {
					if ops[i].Policy.ID == p.ID {
						ops[i].Policy, ops[i].Limit = &updated, s.limit
					}
					ops[i].Peek = in.what == linearPeek
				}
				admitted := decideOps(s.states, s.now, ops, in.call)
				ok = agrees(output.(ratelimit.Decision), decisionOf(ops, admitted, s.now), in.loose)
			case linearReset:
				for i := range in.ops {
					delete(s.states, id(in.ops[i].Policy, in.ops[i].Key))
				}
			case linearRelease:
				name := id(&updated, in.ops[0].Key)
				h := s.states[name]
				if updated.Algorithm == ratelimit.TimeQuota {
					h = h.finished(in.call, in.now)
				} else {
					h = h.gaveBack(&updated, in.call)
				}
				if s.states[name] = h; !h.known() {
					delete(s.states, name)
				}
			case linearUpdate:
				to := p
				to.Limit, s.limit = in.limit, in.limit
				for name, h := range s.states {
					if strings.HasPrefix(name, p.ID+"\x00") {
						s.states[name] = h.retuned(&updated, &to, s.now)
					}
				}
			}
			return ok, s
		},
		Equal: reflect.DeepEqual,
	}
}

// agrees tells whether a decision is the one that is wanted.
func agrees(got, want ratelimit.Decision, loose bool) bool {
	if loose && got.Allowed {
		return want.Allowed
	}
	return got == want
}

// decisionOf returns what is decided where ops say what they say.
func decisionOf(ops []ratelimit.Op, admitted bool, now int64) ratelimit.Decision {
	d := ratelimit.Decision{Allowed: admitted}
	found := false
	for i := range ops {
		op, o := &ops[i], &ops[i].Outcome
		shadow := op.Policy.Mode == ratelimit.Shadow
		d.Shadow = d.Shadow || shadow && !o.Allowed
		if admitted && !shadow {
			d.Delay = max(d.Delay, o.Delay)
		}
		if shadow && len(ops) > 1 || !admitted && o.Allowed {
			continue
		}
		if found && (admitted && o.Remaining >= d.Remaining || !admitted && o.RetryAfter <= d.RetryAfter) {
			continue
		}
		found = true
		d.Policy, d.Limit, d.Remaining = op.Policy.ID, modelAsk(op).capacity, o.Remaining
		if !admitted {
			d.RetryAfter = o.RetryAfter
		}
		d.ResetAt = time.UnixMicro(now).Add(o.ResetAfter)
	}
	return d
}

// recording makes a history of what concurrent callers see.
type recording struct {
	limiter *ratelimit.Limiter
	clock   *Clock
	policy  ratelimit.Policy
	second  ratelimit.Policy
	one     *ratelimit.Gate
	two     *ratelimit.Gate
	ticks   atomic.Int64 // of the history's own time
	calls   atomic.Int64

	mu      sync.Mutex
	history []porcupine.Operation
}

func newRecording(p ratelimit.Policy, limit int64) *recording {
	clock := NewClock(time.UnixMicro(epoch))
	r := newRecordingOf(ratelimit.New(ratelimit.WithClock(clock)), p, limit, "")
	r.clock = clock
	return r
}

// newRecordingOf returns a recording of what l does, with a second policy of the given
// algorithm. Without a clock, it is in a bubble.
func newRecordingOf(l *ratelimit.Limiter, p ratelimit.Policy, limit int64, second ratelimit.Algorithm) *recording {
	p.ID, p.Limit = "p", limit
	if p.Align == "" && p.Algorithm != ratelimit.Concurrency {
		p.Window = time.Minute
	}
	if p.Algorithm == ratelimit.TimeQuota {
		p.Limit = limit * time.Second.Microseconds()
	}
	r := &recording{limiter: l, policy: p}
	r.second = ratelimit.Policy{ID: "q", Algorithm: second, Limit: 2 * limit, Window: time.Minute, Global: true}
	r.one = r.limiter.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{p}})
	r.two = r.limiter.MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{p, r.second}})
	return r
}

// do records an operation. What f returns is its output.
func (r *recording) do(client int, in *linearInput, f func() ratelimit.Decision) {
	op := porcupine.Operation{ClientId: client, Call: r.ticks.Add(1)}
	runtime.Gosched() // so that others come between, also on few processors
	op.Output = f()
	runtime.Gosched()
	op.Return = r.ticks.Add(1)
	op.Input = *in
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history = append(r.history, op)
}

// setClock moves the clock while nobody calls.
func (r *recording) setClock(now int64) {
	r.do(0, &linearInput{what: linearClock, now: now}, func() ratelimit.Decision {
		if r.clock != nil {
			r.clock.Set(time.UnixMicro(now))
		} else {
			time.Sleep(time.Until(time.UnixMicro(now)))
		}
		return ratelimit.Decision{}
	})
}

// client makes n operations.
func (r *recording) client(t *testing.T, number, n int, rnd *rand.Rand, keys []string) {
	var running []func()
	for range n {
		key := keys[rnd.IntN(len(keys))]
		ops := []ratelimit.Op{{Policy: &r.policy, Key: key, Cost: 1, Limit: r.policy.Limit}}
		if !ends(&r.policy) && r.policy.Algorithm != ratelimit.LeakyBucket {
			ops[0].Cost = rnd.Int64N(3)
		}
		gate := r.one
		if rnd.IntN(3) == 0 && !ends(&r.policy) {
			gate = r.two
			ops = append(ops, ratelimit.Op{Policy: &r.second, Cost: 1, Limit: r.second.Limit})
		}
		in := &linearInput{ops: ops}
		switch action := rnd.IntN(10); {
		case action == 0:
			in.what = linearReset
			r.do(number, in, func() ratelimit.Decision { return r.reset(t, gate, ops) })
		case action == 1 && r.policy.Warmup == 0:
			in.what, in.limit = linearUpdate, max(2, r.policy.Limit*(1+rnd.Int64N(4))/2)
			r.do(number, in, func() ratelimit.Decision { return r.update(t, in.limit) })
		case action == 2:
			in.what = linearPeek
			r.do(number, in, func() ratelimit.Decision { return decided(gate.Peek(t.Context(), chargesOf(ops)...)) })
		case ends(&r.policy) && action < 6 && len(running) > 0:
			running[0]()
			running = running[1:]
		case ends(&r.policy):
			in.what, in.call, in.loose = linearTake, int(r.calls.Add(1)), true
			var permit ratelimit.Permit
			var err error
			r.do(number, in, func() ratelimit.Decision {
				permit, err = gate.Acquire(t.Context(), chargesOf(ops))
				return decided(ratelimit.Decision{Allowed: true}, err)
			})
			if err == nil {
				began := r.clock.Now()
				running = append(running, func() {
					// By when it ends, so much time has passed: the clock stands still meanwhile.
					end := &linearInput{what: linearRelease, ops: ops, call: in.call, now: r.clock.Now().Sub(began).Microseconds()}
					r.do(number, end, func() ratelimit.Decision {
						permit.Release()
						return ratelimit.Decision{}
					})
				})
			}
		case action < 6 && r.policy.Algorithm != ratelimit.LeakyBucket:
			in.what, in.loose = linearTake, true
			r.do(number, in, func() ratelimit.Decision {
				var err error
				if len(ops) == 1 {
					err = gate.AllowN(t.Context(), []byte(key), ops[0].Cost)
				} else {
					err = gate.AllowAll(t.Context(), chargesOf(ops))
				}
				return decided(ratelimit.Decision{Allowed: true}, err)
			})
		default:
			in.what = linearTake
			r.do(number, in, func() ratelimit.Decision { return decided(gate.Take(t.Context(), chargesOf(ops)...)) })
		}
	}
}

func (r *recording) reset(t *testing.T, gate *ratelimit.Gate, ops []ratelimit.Op) ratelimit.Decision {
	keys := make([][]byte, len(ops))
	for i := range ops {
		keys[i] = []byte(ops[i].Key)
	}
	if err := gate.Reset(t.Context(), keys...); err != nil {
		t.Error(err)
	}
	return ratelimit.Decision{}
}

func (r *recording) update(t *testing.T, limit int64) ratelimit.Decision {
	if err := r.limiter.Update(r.policy.ID, ratelimit.Patch{Limit: &limit}); err != nil {
		t.Error(err)
	}
	return ratelimit.Decision{}
}

func chargesOf(ops []ratelimit.Op) []ratelimit.Charge {
	charges := make([]ratelimit.Charge, len(ops))
	for i := range ops {
		charges[i] = ratelimit.Charge{Key: []byte(ops[i].Key), Cost: ops[i].Cost}
	}
	return charges
}

// decided returns what was decided, also if it is told as an error.
func decided(d ratelimit.Decision, err error) ratelimit.Decision {
	if err == nil {
		return d
	}
	var e *ratelimit.Error
	if errors.As(err, &e) && e.Kind == ratelimit.ErrLimited {
		return e.Decision
	}
	return ratelimit.Decision{Policy: err.Error()}
}

// recordHistory has clients call at once, in rounds between which the clock moves.
func recordHistory(t *testing.T, p ratelimit.Policy, seed uint64) *recording {
	rnd := rand.New(rand.NewPCG(seed, 0))
	r := newRecording(p, 2+rnd.Int64N(3))
	r.record(t, seed, rnd, epoch)
	return r
}

// record is recordHistory from now on.
func (r *recording) record(t *testing.T, seed uint64, rnd *rand.Rand, now int64) {
	keys := [][]string{{"a"}, {"a", "b"}, {"a", "b", "c"}}[rnd.IntN(3)]
	for range 3 {
		r.setClock(now)
		var clients sync.WaitGroup
		start := make(chan struct{})
		for number := range 4 {
			mine := rand.New(rand.NewPCG(seed, rnd.Uint64()))
			clients.Go(func() {
				<-start
				r.client(t, number+1, 3, mine, keys)
			})
		}
		close(start)
		clients.Wait()
		now += []int64{1, 20e6, 30e6, 60e6, 60e6 + 1}[rnd.IntN(5)]
	}
}

// For whatever callers do at once, there is an order in which the oracle, asked one
// after the other, says just what they were told.
func TestConcurrentCallsAreLinearizable(t *testing.T) {
	t.Parallel()
	for i, p := range linearPolicies {
		t.Run(fmt.Sprintf("%d %s", i, p.Algorithm), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(60) {
				recordHistory(t, p, seed).check(t, seed)
			}
		})
	}
}

func (r *recording) check(t *testing.T, seed uint64) {
	t.Helper()
	switch porcupine.CheckOperationsTimeout(linearModel(r.policy), r.history, time.Minute) {
	case porcupine.Illegal:
		t.Fatalf("policy %+v, seed %d: no order explains\n%s", r.policy, seed, r)
	case porcupine.Unknown:
		t.Fatalf("policy %+v, seed %d: the check takes too long", r.policy, seed)
	}
}

// Nor does it make a difference that there were so many calls for a key that they are
// decided without a lock, which is so only by the time of the system or of a bubble.
func TestConcurrentCallsOfOneKeyAreLinearizable(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		var r *recording
		synctest.Test(t, func(t *testing.T) {
			r = newRecordingOf(ratelimit.New(), ratelimit.Policy{Algorithm: ratelimit.TokenBucket}, 2+rnd.Int64N(3), ratelimit.TokenBucket)
			charges := []ratelimit.Charge{{Key: []byte("a"), Cost: 1}, {Cost: 1}}
			for range 2000 {
				time.Sleep(time.Minute)
				if err := r.two.AllowAll(t.Context(), charges); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Hour)
			r.record(t, seed, rnd, time.Now().UnixMicro())
		})
		r.check(t, seed)
	}
}

// String lists the history by the time at which operations began.
func (r *recording) String() string {
	var b strings.Builder
	history := slices.Clone(r.history)
	slices.SortFunc(history, func(p, q porcupine.Operation) int { return int(p.Call - q.Call) })
	for _, op := range history {
		in := op.Input.(linearInput)
		fmt.Fprintf(&b, "%d..%d client %d: %s", op.Call, op.Return, op.ClientId, in.what)
		for _, o := range in.ops {
			fmt.Fprintf(&b, " %s/%s cost %d", o.Policy.ID, o.Key, o.Cost)
		}
		fmt.Fprintf(&b, " call %d limit %d now %d: %+v\n", in.call, in.limit, in.now, op.Output)
	}
	return b.String()
}

// A history in which one call was admitted too many, or one too few, has no such order.
func TestOneAdmissionTooManyIsNotLinearizable(t *testing.T) {
	t.Parallel()
	for i, p := range linearPolicies {
		if p.Mode == ratelimit.Shadow {
			continue
		}
		r := newRecording(p, 2)
		r.setClock(epoch)
		var calls sync.WaitGroup
		for n := range 4 {
			calls.Go(func() {
				ops := []ratelimit.Op{{Policy: &r.policy, Key: "k", Cost: 1, Limit: r.policy.Limit}}
				in := &linearInput{what: linearTake, ops: ops, call: n + 1, loose: true}
				r.do(n+1, in, func() ratelimit.Decision {
					if r.policy.Algorithm == ratelimit.LeakyBucket {
						return decided(r.one.Take(context.Background(), chargesOf(ops)...))
					}
					_, err := r.one.Acquire(context.Background(), chargesOf(ops))
					return decided(ratelimit.Decision{Allowed: true}, err)
				})
			})
		}
		calls.Wait()
		if !porcupine.CheckOperations(linearModel(r.policy), r.history) {
			t.Errorf("policy %d: what happened is not linearizable\n%s", i, r)
		}
		for n := range r.history {
			op := &r.history[n]
			was := op.Output.(ratelimit.Decision)
			if op.Input.(linearInput).what != linearTake {
				continue
			}
			op.Output = ratelimit.Decision{Allowed: !was.Allowed}
			if porcupine.CheckOperations(linearModel(r.policy), r.history) && r.policy.Algorithm != ratelimit.TimeQuota {
				t.Errorf("policy %d: it is linearizable too if call %d was told %+v", i, n, op.Output)
			}
			op.Output = was
		}
	}
}
