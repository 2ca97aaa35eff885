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

// maxEnds is the largest number of ends in one command, as the server does nothing
// else meanwhile.
const maxEnds = 64

// maxEnders is how many of the places where keys live are told at a time.
const maxEnders = 8

// endings are what the script calls them.
var endings = [...]string{
	ratelimit.EndGiveBack: "back",
	ratelimit.EndKeep:     "keep",
	ratelimit.EndFinish:   "finish",
	ratelimit.EndLeave:    "leave",
	ratelimit.EndCharge:   "charge",
	ratelimit.EndRenew:    "renew",
}

// End implements [ratelimit.Ender]. The ends of keys that live together are one
// command for each 64 of them; what could not be done does not keep the others from it.
func (s *Store) End(ctx context.Context, ends []ratelimit.End) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	groups := s.groups(ends)
	if len(groups) == 1 {
		return s.endGroup(ctx, groups[0])
	}
	errs := make([]error, len(groups))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(len(groups), maxEnders) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(groups)); i = next.Add(1) - 1 {
				errs[i] = s.endGroup(ctx, groups[i])
			}
		})
	}
	workers.Wait()
	return errors.Join(errs...)
}

// endGroup does ends of keys that live together.
func (s *Store) endGroup(ctx context.Context, ends []ratelimit.End) error {
	var errs []error
	for len(ends) > 0 {
		n := min(len(ends), maxEnds)
		if err := s.end(ctx, ends[:n]); err != nil {
			errs = append(errs, err)
		}
		ends = ends[n:]
	}
	return errors.Join(errs...)
}

// groups returns ends by where their keys live.
func (s *Store) groups(ends []ratelimit.End) [][]ratelimit.End {
	if !s.sharded {
		return [][]ratelimit.End{ends}
	}
	var groups [][]ratelimit.End
	index := map[string]int{}
	for _, e := range ends {
		tag := hashTag(s.key(e.Policy, e.Key))
		i, ok := index[tag]
		if !ok {
			i = len(groups)
			index[tag] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], e)
	}
	return groups
}

func (s *Store) end(ctx context.Context, ends []ratelimit.End) error {
	keys := make([]string, len(ends))
	for i := range ends {
		keys[i] = s.key(ends[i].Policy, ends[i].Key)
	}
	return s.run(ctx, keys, func(at time.Time) ([]any, error) { return s.endArguments(ends, at) }, func(c *command) error {
		if _, ok := c.reply.(int64); !ok {
			return fmt.Errorf("reply of a shape that the script does not return: %.100q", fmt.Sprint(c.reply))
		}
		return nil
	})
}

// endArguments returns what the script's ARGV says about ends, around the time at.
func (s *Store) endArguments(ends []ratelimit.End, at time.Time) ([]any, error) {
	args := make([]any, 0, 1+10*len(ends))
	args = append(args, "end")
	for i := range ends {
		var err error
		if args, err = s.appendEnd(args, &ends[i], at); err != nil {
			return nil, err
		}
	}
	return args, nil
}

func (s *Store) appendEnd(args []any, e *ratelimit.End, at time.Time) ([]any, error) {
	p := e.Policy
	if int(e.What) >= len(endings) || isPlain(form(p)) {
		return nil, fmt.Errorf("policy %q does not know how to end a call by %d", p.ID, e.What)
	}
	limit, capacity := limits(p, e.Limit)
	if limit == ratelimit.Unlimited || limit == ratelimit.Blocked {
		limit, capacity = 1, 1 // by an update; what was charged before is given back
	}
	args = append(args, form(p), limit, window(p), capacity, e.Units, endings[e.What])
	return s.operands(args, p, e.ID, 0, at)
}
