package redisstore

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// Flags of the script's ARGV.
const (
	flagShadow = 1 << iota
	flagPeek
	flagDynamic
	flagWaits
	flagRefused
	flagEnds
)

// form is what the script and the keys call the way in which p is counted: the name
// of its algorithm, with a + where the state of the plain algorithm does not do. What
// Limiter.Update changes of a policy does not change its form.
func form(p *ratelimit.Policy) string {
	more := ends(p) || len(p.Lock) > 0
	switch p.Algorithm {
	case "", ratelimit.SlidingLog:
		if more {
			return "log+"
		}
		return "log"
	case ratelimit.FixedWindow:
		switch {
		case p.Align != "":
			return "aligned"
		case more:
			return "fixed+"
		}
		return "fixed"
	case ratelimit.TokenBucket:
		switch {
		case p.Warmup != 0:
			return "warm"
		case p.Refill == ratelimit.Interval:
			return "interval"
		case more || p.Initial != 0:
			return "bucket+"
		}
		return "bucket"
	case ratelimit.SlidingWindow:
		return "sliding"
	case ratelimit.LeakyBucket:
		return "leaky"
	case ratelimit.TimeQuota:
		return "quota"
	}
	return string(p.Algorithm)
}

// ends reports whether what p charges may change after the call was admitted.
func ends(p *ratelimit.Policy) bool {
	return p.Count || p.CostAfter || p.Algorithm == ratelimit.Concurrency || p.Algorithm == ratelimit.TimeQuota
}

// isPlain reports whether a form is one of those that have no operands.
func isPlain(form string) bool { return form == "log" || form == "fixed" || form == "bucket" }

// arguments returns what the script's ARGV says about ops, around the time at.
func (s *Store) arguments(ops []ratelimit.Op, at time.Time) ([]any, error) {
	args := make([]any, 0, 6*len(ops))
	for i := range ops {
		op := &ops[i]
		p := op.Policy
		name := form(p)
		flags := 0
		if p.Mode == ratelimit.Shadow {
			flags |= flagShadow
		}
		if op.Peek {
			flags |= flagPeek
		}
		if p.Dynamic {
			flags |= flagDynamic
		}
		plain := isPlain(name)
		if !plain {
			flags |= recordFlags(op)
		}
		limit, capacity := limits(p, op.Limit)
		args = append(args, name, limit, window(p), capacity, op.Cost, flags)
		if plain {
			continue
		}
		var err error
		if args, err = s.operands(args, p, op.ID, ticketOf(op), at); err != nil {
			return nil, err
		}
	}
	return args, nil
}

// limits returns the limit and the capacity of a call that brings a limit.
func limits(p *ratelimit.Policy, brings int64) (limit, capacity int64) {
	limit, capacity = p.Limit, p.Capacity()
	if p.Dynamic {
		limit = brings
		if p.Burst == 0 && p.Algorithm != ratelimit.TimeQuota {
			capacity = limit
		}
	}
	return limit, capacity
}

func recordFlags(op *ratelimit.Op) (flags int) {
	if op.Waits {
		flags |= flagWaits
	}
	if op.Refused {
		flags |= flagRefused
	}
	if ends(op.Policy) {
		flags |= flagEnds
	}
	return flags
}

// window is the time that the script takes for the policy's window, in µs.
func window(p *ratelimit.Policy) int64 {
	switch {
	case p.Algorithm == ratelimit.Concurrency && p.Lease == 0:
		return ratelimit.DefaultLease.Microseconds()
	case p.Algorithm == ratelimit.Concurrency:
		return p.Lease.Microseconds()
	case p.Align != "":
		return p.Align.Length().Microseconds()
	}
	return p.Window.Microseconds()
}

// ticketOf is the ticket of op, if it is one of those that have them.
func ticketOf(op *ratelimit.Op) uint64 {
	if op.Policy.Algorithm != ratelimit.Concurrency || op.ID == 0 || op.Peek {
		return 0
	}
	return op.Ticket
}

// operands appends what the script needs of a policy whose form is not plain.
func (s *Store) operands(args []any, p *ratelimit.Policy, id, ticket uint64, at time.Time) ([]any, error) {
	name := ""
	if id != 0 {
		b := binary.BigEndian.AppendUint64(nil, id)
		if ticket != 0 {
			b = binary.BigEndian.AppendUint64(b, ticket)
		}
		name = string(b)
	}
	args = append(args, name, len(p.Lock))
	for _, d := range p.Lock {
		args = append(args, d.Microseconds())
	}
	switch form(p) {
	case "sliding":
		n := int64(p.Segments)
		if n == 0 {
			n = ratelimit.DefaultSegments
		}
		args = append(args, (p.Window.Microseconds()+n-1)/n, n+1)
	case "bucket+", "interval":
		initial := p.Initial
		if initial == p.Capacity() {
			initial = 0
		}
		args = append(args, initial)
	case "warm":
		args = append(args, p.Warmup.Microseconds())
	case "aligned":
		return s.windows(args, p, at)
	}
	return args, nil
}

// mostRemaining is the greatest Outcome.Remaining that makes sense of op.
func mostRemaining(op *ratelimit.Op) int64 {
	p := op.Policy
	switch {
	case p.Dynamic && p.Burst == 0:
		return op.Limit
	case p.Algorithm == ratelimit.TimeQuota:
		return p.Limit
	}
	return p.Capacity()
}

// Supports implements [ratelimit.Supporter]: of all but custom algorithms.
func (s *Store) Supports(p *ratelimit.Policy) error {
	if p.Algorithm.IsCustom() {
		return fmt.Errorf("algorithm %s", p.Algorithm)
	}
	return nil
}
