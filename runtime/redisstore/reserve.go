package redisstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// maxAhead bounds the calls of one key that are reserved at a time, as in memory.
const maxAhead = 1000

// Reserve implements [ratelimit.Reserver] by one command. What a key has ahead is a part
// of its state, and no part of that of a key that has nothing ahead.
//
// An error that wraps [errors.ErrUnsupported] is that of a call with a policy that has
// Align, whose windows in the time to come the server does not know, with a TimeQuota or
// with Count, or whose keys live apart on a cluster or ring: see docs/redis.md. Nothing
// is sent then.
//
// A reservation is charged once, at most, as a call that Take admits. One whose reply is
// lost stays until its time has come, and nobody has its name.
func (s *Store) Reserve(ctx context.Context, ops []ratelimit.Op, wait time.Duration) (name string, err error) {
	if err := s.ready(ctx); err != nil || len(ops) == 0 {
		return "", err
	}
	keys := make([]string, len(ops))
	for i := range ops {
		p := ops[i].Policy
		if what := neverAhead(p); what != "" {
			return "", fmt.Errorf("%s: policy %q cannot be reserved ahead, since it has %s: %w", s.name, p.ID, what, errors.ErrUnsupported)
		}
		keys[i] = s.key(p, ops[i].Key)
		if s.sharded && hashTag(keys[i]) != hashTag(keys[0]) {
			return "", fmt.Errorf("%s: policies %q and %q cannot be reserved ahead together, since their keys live apart: name a hash tag in WithPrefix, as in \"{limits}:\": %w",
				s.name, ops[0].Policy.ID, p.ID, errors.ErrUnsupported)
		}
	}
	if s.leases != nil {
		var space [4]*ratelimit.Policy
		asked, err := s.leases.restate(ops, space[:0])
		if err != nil {
			return "", s.count(Invalid, err)
		}
		defer restore(ops, asked)
	}
	var id uint64
	for i := range ops {
		id = max(id, ops[i].ID)
	}
	if id == 0 {
		id = 1 + rand.Uint64N(math.MaxUint64)
	}
	within := max(0, min(wait, ratelimit.MaxWindow)).Microseconds()
	err = s.run(ctx, keys, func(at time.Time) ([]any, error) {
		args := append(make([]any, 0, 3+7*len(ops)), "book", idBytes(id), within)
		for i := range ops {
			most := ops[i].Policy.MaxQueue
			if most <= 0 {
				most = maxAhead
			}
			args = append(args, min(most, maxAhead))
		}
		return s.appendAhead(args, ops, id, at)
	}, func(c *command) error { return readBooking(c.reply, ops) })
	if err != nil || !isBooked(ops) {
		return "", err
	}
	return strconv.FormatUint(id, 16), nil
}

// Cancel implements [ratelimit.Reserver] by one command, which is sent at most once.
func (s *Store) Cancel(ctx context.Context, ops []ratelimit.Op, name string) error {
	if err := s.ready(ctx); err != nil || len(ops) == 0 || name == "" {
		return err
	}
	id, err := strconv.ParseUint(name, 16, 64)
	if err != nil {
		return fmt.Errorf("redisstore: %q is not the name of a reservation", name)
	}
	given := make([]ratelimit.Op, len(ops))
	keys := make([]string, len(ops))
	for i := range ops {
		p := ops[i].Policy
		keys[i] = s.key(p, ops[i].Key)
		given[i] = ratelimit.Op{Policy: p, Limit: ops[i].Limit}
		if limit := ops[i].Limit; limit < 1 || limit > ratelimit.MaxLimit {
			given[i].Limit = 1 // by an update; what is ahead was charged before
		}
		if s.leases != nil {
			given[i].Policy = s.leases.counted(p)
		}
	}
	return s.run(ctx, keys, func(at time.Time) ([]any, error) {
		return s.appendAhead([]any{"cancel", idBytes(id)}, given, id, at)
	}, nil)
}

// neverAhead returns what of p keeps its calls from being reserved.
func neverAhead(p *ratelimit.Policy) string {
	switch {
	case p.Align != "":
		return "align, whose windows in the time to come the server does not know"
	case p.Algorithm == ratelimit.TimeQuota:
		return "algorithm time-quota, whose calls cost what they take"
	case p.Count:
		return "count, which needs to know how calls end"
	}
	return ""
}

// isCharged reports whether p charges a call at once that is reserved: a place, or a turn
// in a queue.
func isCharged(p *ratelimit.Policy) bool {
	return p.Algorithm == ratelimit.Concurrency || p.Algorithm == ratelimit.LeakyBucket
}

func idBytes(id uint64) string { return string(binary.BigEndian.AppendUint64(nil, id)) }

// appendAhead appends what the script's ARGV says about ops of a call that is reserved
// under an id.
func (s *Store) appendAhead(args []any, ops []ratelimit.Op, id uint64, at time.Time) ([]any, error) {
	named := make([]ratelimit.Op, len(ops))
	for i := range ops {
		named[i] = ops[i]
		if named[i].ID = 0; isCharged(ops[i].Policy) {
			named[i].ID = id
		}
	}
	more, err := s.arguments(named, at)
	return append(args, more...), err
}

// isBooked reports whether there is something to cancel of a call.
func isBooked(ops []ratelimit.Op) bool {
	booked := false
	for i := range ops {
		op := &ops[i]
		if !op.Outcome.Allowed && op.Policy.Mode != ratelimit.Shadow {
			return false
		}
		if op.Outcome.Allowed && op.Cost > 0 && !op.Peek {
			booked = booked || op.Outcome.Delay > 0 || op.Policy.Algorithm == ratelimit.Concurrency
		}
	}
	return booked
}

// readBooking sets the outcomes of ops from the script's reply to a call that is to be
// reserved, if all of it makes sense.
func readBooking(reply any, ops []ratelimit.Op) error {
	const perOp = 4
	values, ok := reply.([]any)
	if !ok || len(values) != perOp*len(ops) {
		return fmt.Errorf("reply of a shape that the script does not return: %.100q", fmt.Sprint(reply))
	}
	outcomes := make([]ratelimit.Outcome, len(ops))
	for i := range ops {
		var n [perOp]int64
		for j := range n {
			if n[j], ok = values[perOp*i+j].(int64); !ok {
				return fmt.Errorf("reply holds %.100q in place of an integer", fmt.Sprint(values[perOp*i+j]))
			}
		}
		allowed, remaining, wait, reset := n[0], n[1], n[2], n[3]
		if allowed&^1 != 0 || remaining < 0 || remaining > mostRemaining(&ops[i]) || wait < 0 || wait > maxWait || reset < 0 || reset > maxWait ||
			allowed == 0 && wait == 0 && ops[i].Policy.Mode != ratelimit.Shadow {
			return fmt.Errorf("reply holds an outcome that makes no sense: %d", n)
		}
		o := &outcomes[i]
		o.Allowed, o.Remaining, o.ResetAfter = allowed == 1, remaining, micros(reset)
		if o.Allowed {
			o.Delay = micros(wait)
		} else {
			o.RetryAfter = micros(wait)
		}
	}
	for i := range ops {
		ops[i].Outcome = outcomes[i]
	}
	return nil
}
