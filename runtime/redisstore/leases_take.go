package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ratelimitgen/ratelimitgen/internal/waited"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// takeLeased decides a call that leases serve.
func (s *Store) takeLeased(ctx context.Context, ops []ratelimit.Op) error {
	l, op := s.leases, &ops[0]
	hash := l.hash(op)
	if e := l.find(hash, op); e != nil {
		e.mu.Lock()
		spent := s.spend(e, op)
		e.mu.Unlock()
		if spent {
			return nil
		}
	}
	start := time.Now()
	for waits := 0; ; waits++ {
		if s.refusals != nil && s.refusals.recall(ops, s.now()) {
			return nil
		}
		e := l.enter(hash, op, s.now())
		if e == nil {
			return s.decide(waited.Since(ctx, start), ops)
		}
		e.mu.Lock()
		if s.spend(e, op) {
			e.mu.Unlock()
			return nil
		}
		f := e.flight
		if f == nil {
			f = &flight{done: make(chan struct{})}
			e.flight = f
			units := l.size(e, op, s.now())
			e.mu.Unlock()
			return s.lead(ctx, ops, e, f, units, start)
		}
		if waits == leaseWaits {
			e.mu.Unlock()
			return s.decide(waited.Since(ctx, start), ops)
		}
		w := &waiter{op: op}
		f.waiters = append(f.waiters, w)
		e.mu.Unlock()
		switch err := s.await(ctx, e, f, w, start); {
		case w.served && s.now() < f.until:
			l.hits.Add(1)
			return nil
		case err != nil:
			return err
		case f.refused:
			return s.decide(waited.Since(ctx, start), ops)
		}
	}
}

// spend decides op from what is left of e, whose mutex is held, if that is enough.
func (s *Store) spend(e *lease, op *ratelimit.Op) bool {
	if e.lot.units < op.Cost {
		return false
	}
	now := s.now()
	if now >= e.lot.until {
		return false
	}
	e.lot.give(op, now)
	s.leases.hits.Add(1)
	return true
}

// give admits op, which costs no more than there is.
func (o *lot) give(op *ratelimit.Op, now int64) {
	o.units -= op.Cost
	passed := max(time.Duration(now-o.at), 0).Truncate(time.Microsecond)
	op.Outcome = ratelimit.Outcome{Allowed: true, Remaining: o.units, ResetAfter: max(o.reset-passed, 0)}
}

// size returns how many units op is to take, of which it uses what it costs: for those
// who have waited, or for others at the pace at which units were used since some were
// taken last, half of τ long. A lot that lives longer is rarely left.
func (l *leases) size(e *lease, op *ratelimit.Op, now int64) int64 {
	e.stays.Store(max(e.stays.Load(), now))
	passed := max(now-e.when, 1)
	if passed >= int64(l.lasts) {
		e.asked, e.demand = 0, 0
	}
	units := e.demand
	if 2*e.asked > units {
		half := float64(l.lasts) / 2 / float64(passed)
		units = max(units, int64(float64(e.asked)*min(2, half)))
	}
	units = min(units, l.most, e.rest/2, e.policy.Capacity())
	if e.demand = 0; l.closed.Load() {
		return op.Cost // for nobody would give the others back
	}
	return max(units, op.Cost)
}

// lead decides a call, and takes units for others, who wait until f is done.
func (s *Store) lead(ctx context.Context, ops []ratelimit.Op, e *lease, f *flight, units int64, start time.Time) (err error) {
	defer func() {
		errors.As(err, &f.err)
		e.mu.Lock()
		defer e.mu.Unlock()
		e.serve(f, s.now())
		e.flight = nil
		close(f.done)
	}()
	op := &ops[0]
	sent := s.now()
	if units > op.Cost {
		p := &part{ops: []ratelimit.Op{*op}, keys: []string{s.key(op.Policy, op.Key)}}
		p.ops[0].Policy, p.ops[0].Cost = e.policy, units
		if err := s.takePart(waited.Since(ctx, start), p, true); err != nil {
			return err
		}
		if p.ops[0].Outcome.Allowed {
			s.fill(e, op, p, sent)
			return nil
		}
		sent = s.now()
	}
	if err := s.decide(waited.Since(ctx, start), ops); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked, e.when, e.rest = op.Cost, sent, op.Outcome.Remaining
	if !op.Outcome.Allowed {
		e.asked, f.refused = 0, true
	}
	return nil
}

// fill admits op from units that were charged for it and others.
func (s *Store) fill(e *lease, op *ratelimit.Op, charged *part, sent int64) {
	units, outcome := charged.ops[0].Cost, charged.ops[0].Outcome
	e.mu.Lock()
	defer e.mu.Unlock()
	now := s.now()
	e.asked, e.when, e.rest = units, sent, outcome.Remaining
	// What was left goes first: it is less than the cost, or it would have been used.
	if now < e.lot.until {
		units += e.lot.units
	}
	units -= op.Cost
	op.Outcome = ratelimit.Outcome{Allowed: true, Remaining: outcome.Remaining + units, ResetAfter: outcome.ResetAfter}
	lasts := s.leases.lasts
	if e.policy.Algorithm == ratelimit.FixedWindow {
		lasts = min(lasts, charged.reset(0))
	}
	if e.lot = (lot{}); e.dropped || charged.times == nil {
		return
	}
	e.lot = lot{units, sent + int64(lasts), now, charged.reset(0), charged.times[0]}
	e.stays.Store(e.lot.until)
}

// serve gives those who wait what there is, in the order in which they came.
func (e *lease) serve(f *flight, now int64) {
	e.demand, f.until = 0, e.lot.until
	for _, w := range f.waiters {
		switch {
		case w.gone:
		case w.op.Cost <= e.lot.units && now < e.lot.until:
			e.lot.give(w.op, now)
			w.served = true
		default:
			e.demand += w.op.Cost
		}
	}
}

// await waits until f is done, for a call that began at a time. It is told by w whether
// it was served.
func (s *Store) await(ctx context.Context, e *lease, f *flight, w *waiter, start time.Time) error {
	timer := time.NewTimer(s.timeout - time.Since(start))
	defer timer.Stop()
	err := context.DeadlineExceeded
	select {
	case <-f.done:
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
	}
	e.mu.Lock()
	w.gone = e.flight == f
	e.mu.Unlock()
	switch {
	case w.gone && ctx.Err() != nil:
		return fmt.Errorf("%s: no answer: %w", s.name, err)
	case w.gone:
		return s.count(Timeout, fmt.Errorf("no answer within %v", s.timeout))
	case w.served:
		return nil
	}
	if f.err != nil {
		s.failures[f.err.Class].Add(1)
		return f.err
	}
	return s.enough(start)
}

// patience returns for how long a call waits for an answer. One that has waited for
// something else before has a fifth of the timeout in any case, or asking were no use.
func (s *Store) patience(ctx context.Context) time.Duration {
	if at, ok := waited.Start(ctx); ok {
		return max(s.timeout-time.Since(at), s.timeout/5)
	}
	return s.timeout
}
