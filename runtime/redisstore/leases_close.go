package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// unused are units that were charged together and not used.
type unused struct {
	policy  *ratelimit.Policy // as it is counted
	key     string
	units   int64
	charged int64 // when, in µs by the server
	reset   time.Duration
}

// append appends what the script's ARGV says of them.
func (u *unused) append(args []any, limit, capacity int64) []any {
	return append(args, form(u.policy), limit, window(u.policy), capacity, u.units, "undo", u.charged, min(u.reset.Microseconds(), maxWait))
}

// Close gives the units back that WithLease took and that are not used, for a process
// that ends. The Store takes no more; it goes on deciding. A Store without WithLease need
// not be closed. An error means that some units may not have been given back: they count
// as used.
func (s *Store) Close(ctx context.Context) error {
	if s == nil || s.leases == nil {
		return nil
	}
	l := s.leases
	l.closed.Store(true)
	var all []unused
	var late error // of ctx, before units came that a call has asked for
	for i := range l.slots {
		e := l.slots[i].Load()
		if e == nil {
			continue
		}
		e.mu.Lock()
		if f := e.flight; f != nil {
			e.mu.Unlock()
			select {
			case <-f.done:
			case <-ctx.Done():
				late = fmt.Errorf("%s: units of policy %q may have been taken since: %w", s.name, e.policy.ID, ctx.Err())
			}
			e.mu.Lock()
		}
		if e.lot.units > 0 {
			all = append(all, unused{e.policy, s.key(e.policy, e.key), e.lot.units, e.lot.charged, e.lot.reset})
			e.lot.units = 0
		}
		e.mu.Unlock()
	}
	if late != nil || len(all) == 0 {
		return late
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	return s.undo(ctx, all)
}

// undo gives units back, those of keys that live together by one command for each 64.
func (s *Store) undo(ctx context.Context, all []unused) error {
	groups := [][]unused{all}
	if s.sharded {
		groups = nil
		index := map[string]int{}
		for _, u := range all {
			tag := hashTag(u.key)
			i, ok := index[tag]
			if !ok {
				i = len(groups)
				index[tag] = i
				groups = append(groups, nil)
			}
			groups[i] = append(groups[i], u)
		}
	}
	errs := make([]error, len(groups))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(len(groups), maxEnders) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(groups)); i = next.Add(1) - 1 {
				errs[i] = s.undoGroup(ctx, groups[i])
			}
		})
	}
	workers.Wait()
	return errors.Join(errs...)
}

// undoGroup gives units of keys back that live together.
func (s *Store) undoGroup(ctx context.Context, group []unused) error {
	var errs []error
	for len(group) > 0 {
		n := min(len(group), maxEnds)
		keys, args := make([]string, n), []any{"end"}
		for i := range n {
			u := &group[i]
			keys[i] = u.key
			limit, capacity := limits(u.policy, 0)
			args = u.append(args, limit, capacity)
		}
		if err := s.ask(ctx, &command{keys: keys, args: args}); err != nil {
			errs = append(errs, err)
		}
		group = group[n:]
	}
	return errors.Join(errs...)
}
