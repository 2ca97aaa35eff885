package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ratelimitgen/ratelimitgen/internal/waited"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// part is the ops of a call whose keys live together.
type part struct {
	index []int // of the ops of the call
	ops   []ratelimit.Op
	keys  []string
	times []int64 // of the decisions, as far as they are known
	// resets are the ResetAfter of outcomes without the calls that are reserved ahead;
	// nil if there are none.
	resets []time.Duration
}

// reset returns after how long what was charged for the i-th op, and before, is gone.
func (p *part) reset(i int) time.Duration {
	if p.resets != nil {
		return p.resets[i]
	}
	return p.ops[i].Outcome.ResetAfter
}

// parts returns the parts of a call, in the order of its ops.
func parts(ops []ratelimit.Op, keys []string) []*part {
	var all []*part
	byTag := map[string]*part{}
	for i := range ops {
		tag := hashTag(keys[i])
		p := byTag[tag]
		if p == nil {
			p = new(part)
			byTag[tag] = p
			all = append(all, p)
		}
		p.index = append(p.index, i)
		p.ops = append(p.ops, ops[i])
		p.keys = append(p.keys, keys[i])
	}
	return all
}

func (p *part) admits() bool {
	for i := range p.ops {
		if !p.ops[i].Outcome.Allowed && p.ops[i].Policy.Mode != ratelimit.Shadow {
			return false
		}
	}
	return true
}

// takeApart decides ops whose keys live apart: it charges one part after the other,
// and if one refuses, gives back what the parts before it were charged. Until then,
// others are refused what the call does not get. All of it has the time of one call.
func (s *Store) takeApart(ctx context.Context, ops []ratelimit.Op, keys []string) error {
	start, ok := waited.Start(ctx)
	if !ok {
		start = time.Now()
		ctx = waited.Since(ctx, start)
	}
	all := parts(ops, keys)
	refused := -1
	var id uint64
	for i, p := range all {
		reserves := !ops[0].Peek && i < len(all)-1
		for j := range p.ops {
			op := &p.ops[j]
			op.Ticket = 0 // it would keep places from others while other parts refuse the call
			if reserves {
				s.refusals.isAhead(op.Policy)
			}
			if reserves && op.ID == 0 && !isPlain(form(op.Policy)) {
				if id == 0 {
					id = 1 + rand.Uint64N(math.MaxUint64)
				}
				op.ID = id
			}
		}
		var err error
		if i > 0 {
			err = s.enough(start)
		}
		if err == nil {
			err = s.takePart(ctx, p, reserves)
		}
		if err != nil {
			if i > 0 {
				s.inTime(ctx, start, func() {
					for _, before := range all[:i] {
						s.giveBack(ctx, before)
					}
				})
			}
			return err
		}
		if !ops[0].Peek && !p.admits() {
			refused = i
			break
		}
	}
	if refused >= 0 {
		if err := s.refuse(ctx, start, all, refused); err != nil {
			return err
		}
	} else if id != 0 {
		s.inTime(ctx, start, func() { s.keep(ctx, all, id) })
	}
	for _, p := range all {
		for j, i := range p.index {
			ops[i].Outcome = p.ops[j].Outcome
		}
	}
	return nil
}

// isShort reports whether too little is left of the time of a call to ask once more.
func (s *Store) isShort(start time.Time) bool { return s.timeout-time.Since(start) < s.timeout/10 }

// enough returns an error if isShort. It is not the server that failed then.
func (s *Store) enough(start time.Time) error {
	if s.isShort(start) {
		return s.count(Timeout, fmt.Errorf("too little is left of %v to ask", s.timeout))
	}
	return nil
}

// inTime does what has to be done also if the caller of a call has gone away, who waits
// for it no longer than for an answer. It reports whether it is done.
func (s *Store) inTime(ctx context.Context, start time.Time, do func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	timer := time.NewTimer(s.timeout - time.Since(start))
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-ctx.Done():
	case <-timer.C:
	}
	return false
}

// takePart decides the ops of a part as one.
func (s *Store) takePart(ctx context.Context, p *part, reserves bool) error {
	arguments := func(at time.Time) ([]any, error) {
		args, err := s.arguments(p.ops, at)
		if reserves {
			args = append([]any{"reserve"}, args...)
		}
		return args, err
	}
	return s.run(ctx, p.keys, arguments, func(c *command) error {
		reply := c.reply
		if !reserves {
			_, err := readReply(reply, p.ops)
			return err
		}
		n := len(p.ops)
		if values, ok := reply.([]any); ok && (len(values) == 5*n || len(values) == 6*n) {
			p.times, p.resets = make([]int64, n), nil
			for i := range p.times {
				p.times[i], _ = values[4*n+i].(int64)
			}
			if len(values) == 6*n {
				p.resets = make([]time.Duration, n)
				for i := range p.resets {
					µs, _ := values[5*n+i].(int64)
					p.resets[i] = micros(max(0, min(µs, maxWait)))
				}
			}
			reply = values[:4*n]
		}
		return readOutcomes(reply, p.ops)
	})
}

// refuse gives back what the parts before the i-th were charged, which refuses, and
// finds out what they say then, and what those after it do. Where there is no time for
// that, the call is refused all the same: those before are taken at what they said, and
// those after to admit it.
func (s *Store) refuse(ctx context.Context, start time.Time, all []*part, i int) error {
	for _, p := range all[i+1:] {
		for k := range p.ops {
			p.ops[k].Outcome = ratelimit.Outcome{Allowed: true}
		}
	}
	for j, p := range all {
		if j == i {
			continue
		}
		if j < i && !s.inTime(ctx, start, func() { s.giveBack(ctx, p) }) {
			continue
		}
		if s.isShort(start) {
			continue
		}
		q := *p
		q.ops = slices.Clone(p.ops)
		for k := range q.ops {
			q.ops[k].Peek, q.ops[k].Refused = true, j > i
		}
		if err := s.takePart(ctx, &q, false); err == nil {
			p.ops = q.ops
		} else if failure := (*Error)(nil); !errors.As(err, &failure) || failure.Class != Timeout {
			return err
		}
	}
	return nil
}

// giveBack gives back what a part was charged. It does so even if the caller has gone
// away; what fails stays charged.
func (s *Store) giveBack(ctx context.Context, p *part) {
	if p.times == nil {
		return
	}
	var keys []string
	var ends []func(args []any, at time.Time) ([]any, error)
	for i := range p.ops {
		op := &p.ops[i]
		if !op.Outcome.Allowed || op.Cost == 0 {
			continue
		}
		keys = append(keys, p.keys[i])
		if isPlain(form(op.Policy)) {
			charged := unused{op.Policy, p.keys[i], op.Cost, p.times[i], p.reset(i)}
			limit, capacity := limits(op.Policy, op.Limit)
			ends = append(ends, func(args []any, _ time.Time) ([]any, error) {
				return charged.append(args, limit, capacity), nil
			})
			continue
		}
		end := ratelimit.End{Policy: op.Policy, Key: op.Key, ID: op.ID, Limit: op.Limit}
		if op.Policy.Algorithm == ratelimit.LeakyBucket {
			end.What = ratelimit.EndLeave
		}
		ends = append(ends, func(args []any, at time.Time) ([]any, error) { return s.appendEnd(args, &end, at) })
	}
	if len(keys) == 0 {
		return
	}
	_ = s.run(context.WithoutCancel(ctx), keys, func(at time.Time) (args []any, err error) {
		args = append(args, "end")
		for _, end := range ends {
			if args, err = end(args, at); err != nil {
				return nil, err
			}
		}
		return args, nil
	}, nil)
}

// keep says that what was reserved under an id of our own is charged.
func (s *Store) keep(ctx context.Context, all []*part, id uint64) {
	var ends []ratelimit.End
	for _, p := range all {
		for i := range p.ops {
			if op := &p.ops[i]; op.ID == id && op.Outcome.Allowed && op.Cost > 0 {
				ends = append(ends, ratelimit.End{Policy: op.Policy, Key: op.Key, ID: id, What: ratelimit.EndKeep, Limit: op.Limit})
			}
		}
	}
	_ = s.End(context.WithoutCancel(ctx), ends) // or else it is forgotten with the charge
}
