package ratelimittest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// model is the simplest Store: it keeps all that ever was, by the oracle's own rules.
type model struct {
	mu     sync.Mutex
	clock  Clock
	states map[string]past
}

func id(p *ratelimit.Policy, key string) string { return p.ID + "\x00" + key }

func (m *model) Take(_ context.Context, ops []ratelimit.Op) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	decideOps(m.states, m.clock.Now().UnixMicro(), ops, 0)
	return nil
}

// decideOps fills in the outcomes of ops at now, and changes states as they do. It
// reports whether the call is admitted, which is given a number if it may end.
func decideOps(states map[string]past, now int64, ops []ratelimit.Op, call int) (admitted bool) {
	admitted = true
	beliefs := make([]*beliefs, len(ops))
	for i := range ops {
		op := &ops[i]
		beliefs[i] = newBeliefs(op.Policy)
		beliefs[i].of[0] = states[id(op.Policy, op.Key)]
		op.Outcome.Allowed = beliefs[i].admits(now, modelAsk(op))
		admitted = admitted && (op.Outcome.Allowed || op.Policy.Mode == ratelimit.Shadow)
	}
	for i := range ops {
		op, b := &ops[i], beliefs[i]
		allowed := op.Outcome.Allowed
		if op.Peek {
			h, t := b.of[0].settle(op.Policy, now)
			op.Outcome = h.outcome(op.Policy, t, modelAsk(op), allowed)
			continue
		}
		op.Outcome = b.decide(now, modelAsk(op), allowed, allowed && admitted, call)[0].Outcome
		states[id(op.Policy, op.Key)] = b.of[0]
	}
	return admitted
}

func modelAsk(op *ratelimit.Op) asked {
	a := ask(op.Policy, op.Cost)
	if a.limit = op.Limit; a.capacity == 0 {
		a.capacity = op.Limit
	}
	return a
}

// Supports implements [ratelimit.Supporter]: of all that a Store can support.
func (m *model) Supports(*ratelimit.Policy) error { return nil }

func (m *model) Reset(_ context.Context, p *ratelimit.Policy, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.states, id(p, key))
	return nil
}

func TestStoreAcceptsTheModel(t *testing.T) {
	t.Parallel()
	inStores := func(p *ratelimit.Policy) bool {
		return !p.Count && !p.CostAfter && p.Algorithm != ratelimit.Concurrency && p.Algorithm != ratelimit.TimeQuota
	}
	TestStore(t, Harness{Supports: inStores, New: func(testing.TB) Subject {
		m := &model{states: map[string]past{}}
		return Subject{
			Limiter: ratelimit.New(ratelimit.WithStore("", m), ratelimit.WithClock(&m.clock)),
			SetTime: func(us int64) { m.clock.Set(time.UnixMicro(us)) },
			Dump: func(p *ratelimit.Policy, key string) []byte {
				if h := m.states[id(p, key)]; h.known() {
					return fmt.Append(nil, h)
				}
				return nil
			},
		}
	}})
}

// few is a Store of one algorithm.
type few struct {
	*model
	of ratelimit.Algorithm
}

// Supports implements [ratelimit.Supporter].
func (s few) Supports(p *ratelimit.Policy) error {
	if p.Algorithm != s.of || p.Count || p.CostAfter {
		return fmt.Errorf("only %s", s.of)
	}
	return nil
}

// TestStoreTestsStoresOfFewAlgorithms has stores that support less than one without
// Supports is taken to support: they are tested for what they do support.
func TestStoreTestsStoresOfFewAlgorithms(t *testing.T) {
	t.Parallel()
	for _, a := range []ratelimit.Algorithm{ratelimit.FixedWindow, ratelimit.TokenBucket} {
		t.Run(string(a), func(t *testing.T) {
			t.Parallel()
			supports := func(p *ratelimit.Policy) bool { return few{of: a}.Supports(p) == nil }
			TestStore(t, Harness{Supports: supports, New: func(testing.TB) Subject {
				m := &model{states: map[string]past{}}
				return Subject{
					Limiter: ratelimit.New(ratelimit.WithStore("", few{m, a}), ratelimit.WithClock(&m.clock)),
					SetTime: func(us int64) { m.clock.Set(time.UnixMicro(us)) },
				}
			}})
		})
	}
}
