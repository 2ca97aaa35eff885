package ratelimittest

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"pgregory.net/rapid"
)

// Calls that are reserved, cancelled, made and blocked in any order are decided as the
// oracle decides them, to the microsecond.
func TestReservationsAreThoseOfTheOracle(t *testing.T) {
	t.Parallel()
	h := Harness{
		Reserves: func(*ratelimit.Policy) bool { return true },
		New: func(testing.TB) Subject {
			clock := new(Clock)
			return Subject{
				Limiter: ratelimit.New(ratelimit.WithClock(clock)),
				SetTime: func(us int64) { clock.Set(time.UnixMicro(us)) },
			}
		},
	}
	for _, n := range []int{1, 2, 3} {
		t.Run(fmt.Sprint(n, " policies"), func(t *testing.T) {
			t.Parallel()
			checkReservations(t, h, n)
		})
	}
}

// The calls that come are a history that the algorithm admits, call by call, and so one
// within Policy.Bound, whatever was cancelled.
func TestReservedCallsStayWithinTheBound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := reservable(rt, "p")
		p.Lock, p.Initial = nil, 0
		clock := NewClock(time.UnixMicro(epoch))
		gate := ratelimit.New(ratelimit.WithClock(clock)).MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{p}})
		type call struct {
			at, cost int64
			ratelimit.Reservation
		}
		var calls []call
		cancelled := false
		now := int64(epoch)
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			if rapid.Bool().Draw(rt, "forward") {
				now += rapid.Int64Range(0, 40).Draw(rt, "by")
				clock.Set(time.UnixMicro(now))
			}
			if n := len(calls); n > 0 && rapid.IntRange(0, 2).Draw(rt, "cancel") == 0 {
				i := rapid.IntRange(0, n-1).Draw(rt, "which")
				calls[i].Cancel()
				if calls[i].at > now {
					cancelled = true
					calls = slices.Delete(calls, i, i+1)
				}
				continue
			}
			cost := rapid.Int64Range(1, p.Capacity()).Draw(rt, "cost")
			if rapid.Bool().Draw(rt, "take") {
				d, err := gate.Take(t.Context(), ratelimit.Charge{Key: []byte("k"), Cost: cost})
				if err != nil {
					rt.Fatal(err)
				}
				if d.Allowed {
					calls = append(calls, call{at: now, cost: cost})
				}
				continue
			}
			r, err := gate.Reserve(t.Context(), ratelimit.Charge{Key: []byte("k"), Cost: cost})
			if err != nil || !r.OK() {
				rt.Fatalf("%+v, %v: every call can come at some time", r, err)
			}
			calls = append(calls, call{now + r.Delay().Microseconds(), cost, r})
		}
		slices.SortStableFunc(calls, func(a, b call) int { return int(a.at - b.at) })
		for i := range calls {
			var units int64
			for j := i; j < len(calls); j++ {
				units += calls[j].cost
				if most := p.Bound().Most(micros(calls[j].at - calls[i].at + 1)); units > most {
					rt.Fatalf("%+v: %d units from %d to %d, and %d is the most", p, units, calls[i].at, calls[j].at, most)
				}
			}
		}
		if smooth := p.Algorithm == ratelimit.TokenBucket && p.Refill == ratelimit.Smooth && p.Warmup == 0; cancelled && !smooth && p.Algorithm != ratelimit.SlidingLog {
			return // what was cancelled may have stayed, and those after it stand by that
		}
		var h past
		for _, c := range calls {
			if h = h.settleAt(&p, c.at); !h.admits(&p, c.at, ask(&p, c.cost)) {
				rt.Fatalf("%+v: of %+v, the one at %d is not admitted", p, calls, c.at)
			}
			h = h.charged(&p, c.at, ask(&p, c.cost), 0)
		}
	})
}

func (h past) settleAt(p *ratelimit.Policy, t int64) past {
	h, _ = h.settle(p, t)
	return h
}

func TestReserveOfATimeQuotaIsAnError(t *testing.T) {
	t.Parallel()
	for _, p := range []ratelimit.Policy{
		{Algorithm: ratelimit.TimeQuota, Limit: 10, Window: time.Second},
		{Limit: 10, Window: time.Second, Count: true},
	} {
		p.ID = "p"
		gate := ratelimit.New().MustGate(&ratelimit.Spec{Method: "m", Policies: []ratelimit.Policy{p}})
		r, err := gate.Reserve(t.Context(), ratelimit.Charge{Key: []byte("k"), Cost: 1})
		if !errors.Is(err, errors.ErrUnsupported) || r.OK() {
			t.Errorf("%+v: %+v, %v", p, r, err)
		}
	}
}

// decided returns the agenda after a call of one policy that can wait for so long, and
// what it is told. A negative wait is that of a Take.
func (g agenda) decided(p *ratelimit.Policy, t, cost, within int64, call int) (agenda, ratelimit.Decision) {
	a := ask(p, cost)
	g = g.settled(p, t)
	wait := g.earliest(p, t, a)
	allowed := wait <= max(within, 0) && t >= g.block && !g.past.locked(t)
	switch {
	case allowed && wait == 0:
		g.past = g.past.charged(p, t, a, 0)
	case allowed:
		g = g.begun(p, t, a).booked(charge{at: t + wait, cost: cost, units: cost, asked: a, call: call})
	case t >= g.block:
		g.past = g.past.refused(p, t, a)
	}
	d := ratelimit.Decision{Allowed: allowed}
	if allowed && within >= 0 {
		d.Delay = micros(wait)
	}
	return g, d
}

// ordersInput is an operation on one key. An Output is the decision, of which only
// whether the call may proceed, and when, is compared.
type ordersInput struct {
	what   string // "clock", "take", "reserve", "cancel", "block" or "reset"
	key    string
	cost   int64
	within int64
	call   int
	now    int64
}

type ordersState struct {
	now  int64
	keys map[string]agenda
}

func ordersModel(p *ratelimit.Policy) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return ordersState{keys: map[string]agenda{}} },
		Step: func(state, input, output any) (bool, any) {
			s, in := state.(ordersState), input.(ordersInput)
			s.keys = maps.Clone(s.keys)
			g := s.keys[in.key].settled(p, s.now)
			ok := true
			switch in.what {
			case "clock":
				s.now = in.now
				return true, s
			case "take", "reserve":
				var d ratelimit.Decision
				g, d = g.decided(p, s.now, in.cost, in.within, in.call)
				ok = d == output.(ratelimit.Decision)
			case "cancel":
				g = g.cancelled(p, in.call)
			case "block":
				if g.block = 0; in.within > 0 {
					g.block = s.now + in.within
				}
			case "reset":
				g = agenda{}
			}
			s.keys[in.key] = g
			return ok, s
		},
		Equal: reflect.DeepEqual,
	}
}

// What callers who reserve, cancel, block and take at once are told is what they would be
// told one after the other.
func TestConcurrentOrdersAreLinearizable(t *testing.T) {
	t.Parallel()
	for i, p := range []ratelimit.Policy{
		{Algorithm: ratelimit.SlidingLog},
		{Algorithm: ratelimit.FixedWindow},
		{Algorithm: ratelimit.SlidingWindow},
		{Algorithm: ratelimit.TokenBucket},
		{Algorithm: ratelimit.TokenBucket, Refill: ratelimit.Interval},
		{Algorithm: ratelimit.TokenBucket, Warmup: time.Minute},
		{Algorithm: ratelimit.SlidingLog, Lock: []time.Duration{time.Minute}},
	} {
		t.Run(fmt.Sprintf("%d %s", i, p.Algorithm), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(40) {
				r, history := recordOrders(t, p, seed)
				switch porcupine.CheckOperationsTimeout(ordersModel(&r.policy), history, time.Minute) {
				case porcupine.Illegal:
					t.Fatalf("policy %+v, seed %d: no order explains\n%+v", r.policy, seed, history)
				case porcupine.Unknown:
					t.Fatalf("policy %+v, seed %d: the check takes too long", r.policy, seed)
				}
			}
		})
	}
}

// recordOrders has clients call at once, in rounds between which the clock moves.
func recordOrders(t *testing.T, p ratelimit.Policy, seed uint64) (*recording, []porcupine.Operation) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	r := newRecording(p, 1+rnd.Int64N(3))
	var history []porcupine.Operation
	do := func(client int, in ordersInput, f func() ratelimit.Decision) {
		op := porcupine.Operation{ClientId: client, Call: r.ticks.Add(1), Input: in}
		runtime.Gosched()
		op.Output = f()
		runtime.Gosched()
		op.Return = r.ticks.Add(1)
		r.mu.Lock()
		defer r.mu.Unlock()
		history = append(history, op)
	}
	now := int64(epoch)
	for range 3 {
		do(0, ordersInput{what: "clock", now: now}, func() ratelimit.Decision {
			r.clock.Set(time.UnixMicro(now))
			return ratelimit.Decision{}
		})
		var clients sync.WaitGroup
		start := make(chan struct{})
		for number := range 4 {
			mine := rand.New(rand.NewPCG(seed, rnd.Uint64()))
			clients.Go(func() {
				<-start
				r.order(t, number+1, mine, do)
			})
		}
		close(start)
		clients.Wait()
		now += []int64{1, 20e6, 30e6, 60e6, 60e6 + 1}[rnd.IntN(5)]
	}
	return r, history
}

// order makes some operations of one client.
func (r *recording) order(t *testing.T, client int, rnd *rand.Rand, do func(int, ordersInput, func() ratelimit.Decision)) {
	var made []ratelimit.Reservation
	var inputs []ordersInput
	told := func(d ratelimit.Decision, err error) ratelimit.Decision {
		if err != nil {
			t.Error(err)
		}
		return ratelimit.Decision{Allowed: d.Allowed, Delay: d.Delay}
	}
	for range 3 {
		in := ordersInput{key: []string{"a", "a", "b"}[rnd.IntN(3)], cost: 1, within: -1}
		c := ratelimit.Charge{Key: []byte(in.key), Cost: in.cost}
		switch action := rnd.IntN(10); {
		case action == 0:
			in.what = "reset"
			do(client, in, func() ratelimit.Decision { return told(ratelimit.Decision{}, r.one.Reset(t.Context(), c.Key)) })
		case action == 1:
			in.what, in.within = "block", rnd.Int64N(2)*30e6
			do(client, in, func() ratelimit.Decision {
				return told(ratelimit.Decision{}, r.one.Block(t.Context(), micros(in.within), c.Key))
			})
		case action < 4 && len(made) > 0:
			in = inputs[0]
			in.what = "cancel"
			do(client, in, func() ratelimit.Decision { made[0].Cancel(); return ratelimit.Decision{} })
			made, inputs = made[1:], inputs[1:]
		case action < 6:
			in.what = "take"
			do(client, in, func() ratelimit.Decision { return told(r.one.Take(t.Context(), c)) })
		default:
			in.what, in.within, in.call = "reserve", 300e6, int(r.calls.Add(1))
			do(client, in, func() ratelimit.Decision {
				m, err := r.one.ReserveWithin(t.Context(), micros(in.within), c)
				made, inputs = append(made, m), append(inputs, in)
				return told(m.Decision(), err)
			})
		}
	}
}
