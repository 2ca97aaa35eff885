package redisstore

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// exact bounds the integers that the script computes with.
const exact = 1 << 53

// commonArguments returns the script's ARGV for ops if all of them are what common.lua
// decides, one argument for each; nil if not.
func commonArguments(ops []ratelimit.Op) []any {
	for i := range ops {
		if !isCommon(&ops[i]) {
			return nil
		}
	}
	args := make([]any, len(ops))
	for i := range ops {
		args[i] = appendCommon(make([]byte, 0, commonSize), &ops[i])
	}
	return args
}

// isCommon reports whether common.lua decides op, if nothing rare is found on the
// server. What the script would complain of is left to plain.lua.
func isCommon(op *ratelimit.Op) bool {
	p := op.Policy
	limit, capacity := p.Limit, p.Capacity()
	if op.Peek || op.Cost < 1 || op.Cost > capacity || limit < 1 || limit > ratelimit.MaxLimit || capacity > ratelimit.MaxLimit ||
		p.Window <= 0 || p.Dynamic || p.Mode == ratelimit.Shadow {
		return false
	}
	switch form(p) {
	case "bucket":
		// The products are below 2^83.
		window := uint64(p.Window.Microseconds())
		hi, lo := bits.Mul64(uint64(capacity), window)
		return window > 0 && capacity*limit < exact && hi < uint64(limit) && quotient(hi, lo, uint64(limit)) <= uint64(ratelimit.MaxWindow.Microseconds())
	case "fixed":
		return p.Window >= 1000 && capacity == limit
	case "log":
		return p.Window >= 1000 && capacity == limit && limit <= ratelimit.MaxLogLimit
	}
	return false
}

func quotient(hi, lo, by uint64) uint64 {
	q, _ := bits.Div64(hi, lo, by)
	return q
}

// commonSize is the most that an argument takes.
const commonSize = 20 + 33

// appendCommon appends the argument for op, which isCommon.
func appendCommon(b []byte, op *ratelimit.Op) []byte {
	p := op.Policy
	window := p.Window.Microseconds()
	switch form(p) {
	case "bucket":
		w, l := pace(p)
		b = append7(append(b, 'B'), w)
		b = binary.BigEndian.AppendUint32(b, uint32(l))
		b = appendDebt(b, debtOf(p.Capacity(), w, l))
		b = appendDebt(b, debtOf(op.Cost, w, l))
	case "fixed":
		b = append(b, 'F')
	default:
		width := 3
		for width < 7 && window>>(8*width) > 0 {
			width++
		}
		b = append(b, 'L', byte(width))
	}
	b = binary.BigEndian.AppendUint32(b, uint32(p.Limit))
	b = append7(b, uint64(window))
	b = binary.BigEndian.AppendUint32(b, uint32(p.Capacity()))
	return binary.BigEndian.AppendUint32(b, uint32(op.Cost))
}

// append7 appends the 7 low bytes of n, as the script packs times.
func append7(b []byte, n uint64) []byte {
	return append(b, byte(n>>48), byte(n>>40), byte(n>>32), byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

func read7(s string) uint64 {
	var n uint64
	for i := range 7 {
		n = n<<8 | uint64(s[i])
	}
	return n
}

func read4(s string) uint64 {
	return uint64(s[0])<<24 | uint64(s[1])<<16 | uint64(s[2])<<8 | uint64(s[3])
}

// pace returns window and limit of a bucket in lowest terms: a unit takes w/l µs.
func pace(p *ratelimit.Policy) (w, l uint64) {
	w, l = uint64(p.Window.Microseconds()), uint64(p.Limit)
	a, b := w, l
	for b > 0 {
		a, b = b, a%b
	}
	return w / a, l / a
}

// debt is how long a bucket takes to refill: q + r/l µs.
type debt struct{ q, r uint64 }

// debtOf returns the debt of n units, each of w/l µs. That of a bucket's capacity is
// below 2^53 µs.
func debtOf(n int64, w, l uint64) debt {
	hi, lo := bits.Mul64(uint64(n), w)
	q, r := bits.Div64(hi, lo, l)
	return debt{q, r}
}

func appendDebt(b []byte, d debt) []byte {
	return binary.BigEndian.AppendUint32(append7(b, d.q), uint32(d.r))
}

// below returns by how many whole units of w/l µs d is below full, 0 if it is not.
func (d debt) below(full debt, w, l uint64) int64 {
	if d.q > full.q || d.q == full.q && d.r >= full.r {
		return 0
	}
	q, r := full.q-d.q, full.r
	if r < d.r {
		q, r = q-1, r+l
	}
	hi, lo := bits.Mul64(q, l)
	lo, carry := bits.Add64(lo, r-d.r, 0)
	return int64(quotient(hi+carry, lo, w)) // at most the units that full is the debt of
}

// until is the time after which d is gone, in whole µs.
func (d debt) until() int64 { return int64(d.q) + int64(min(d.r, 1)) }

// outcomeError is an outcome in a reply that makes no sense.
type outcomeError string

func (e outcomeError) Error() string {
	return fmt.Sprintf("reply holds an outcome that makes no sense: %.100q", string(e))
}

// readCommon returns what a reply of common.lua says of op.
func readCommon(reply any, op *ratelimit.Op) (o ratelimit.Outcome, err error) {
	p := op.Policy
	bucket := form(p) == "bucket"
	if n, ok := reply.(int64); ok {
		switch {
		case n < 0:
		case bucket:
			return debtOutcome(op, debt{q: uint64(n)}, true)
		case isLog(p):
			return usedOutcome(op, uint64(n), uint64(p.Window.Microseconds()), 0)
		}
		return o, outcomeError(fmt.Sprint(n))
	}
	text, _ := reply.(string)
	tag := byte(0)
	if text != "" {
		tag = text[0]
	}
	switch n := len(text); {
	case bucket && tag == 'B' && n == 30:
		return debtOutcome(op, debt{read7(text[8:]), read4(text[15:])}, true)
	case bucket && (tag == 'a' || tag == 'b') && n == 12:
		return debtOutcome(op, debt{read7(text[1:]), read4(text[8:])}, tag == 'a')
	case !bucket && (tag == 'W' || tag == 'v') && n == 12:
		return usedOutcome(op, read4(text[1:]), read7(text[5:]), 0)
	case !bucket && tag == 'w' && n == 19:
		if retry := read7(text[12:]); retry > 0 {
			return usedOutcome(op, read4(text[1:]), read7(text[5:]), retry)
		}
	}
	return o, outcomeError(fmt.Sprint(reply))
}

func isLog(p *ratelimit.Policy) bool { return form(p) == "log" }

// debtOutcome is the outcome of a bucket that owes d or, if it refuses, would with the
// cost.
func debtOutcome(op *ratelimit.Op, d debt, allowed bool) (o ratelimit.Outcome, err error) {
	p := op.Policy
	w, l := pace(p)
	full := debtOf(p.Capacity(), w, l)
	above := d.q > full.q || d.q == full.q && d.r > full.r
	if d.r >= l || d.q >= exact || above == allowed {
		return o, outcomeError(fmt.Sprint(d))
	}
	if !allowed {
		wait := int64(d.q) - int64(full.q)
		if d.r > full.r {
			wait++
		}
		o.RetryAfter = micros(wait)
		cost := debtOf(op.Cost, w, l)
		if cost.q > d.q || cost.q == d.q && cost.r > d.r {
			return o, outcomeError(fmt.Sprint(d))
		}
		if d.q -= cost.q; d.r < cost.r {
			d.q, d.r = d.q-1, d.r+l
		}
		d.r -= cost.r
	}
	o.Allowed = allowed
	o.Remaining = d.below(full, w, l)
	o.ResetAfter = micros(d.until())
	return o, nil
}

// usedOutcome is the outcome of a limit of which units are used, in times of
// microseconds. The call is refused if there is a time to retry after.
func usedOutcome(op *ratelimit.Op, used, reset, retry uint64) (o ratelimit.Outcome, err error) {
	limit := op.Policy.Limit
	if reset > uint64(maxWait) || retry > uint64(maxWait) || used > ratelimit.MaxLimit || retry == 0 && int64(used) > limit {
		return o, outcomeError(fmt.Sprint(used, reset, retry))
	}
	return ratelimit.Outcome{
		Allowed:    retry == 0,
		Remaining:  max(limit-int64(used), 0),
		ResetAfter: micros(int64(reset)),
		RetryAfter: micros(int64(retry)),
	}, nil
}

// readEach sets the outcomes of ops from a reply for each, if all of them make sense.
func readEach(ops []ratelimit.Op, reply func(i int) any) (err error) {
	outcomes := make([]ratelimit.Outcome, len(ops))
	for i := range ops {
		if outcomes[i], err = readCommon(reply(i), &ops[i]); err != nil {
			return err
		}
	}
	for i := range ops {
		ops[i].Outcome = outcomes[i]
	}
	return nil
}

// readCommonReply sets the outcomes of the ops of c from the script's reply to
// commonArguments, if all of it makes sense.
func readCommonReply(c *command) error {
	var err error
	ops := c.ops
	switch r := c.reply.(type) {
	case string, int64:
		if len(ops) == 1 {
			var o ratelimit.Outcome
			if o, err = readCommon(r, &ops[0]); err == nil {
				ops[0].Outcome = o
			}
			return err
		}
		text, _ := r.(string)
		if c.tagAt > 0 && len(text) == 7*len(ops) {
			return readEach(ops, func(i int) any { return int64(read7(text[7*i:])) })
		}
	case []any:
		if len(r) == len(ops) {
			return readEach(ops, func(i int) any { return r[i] })
		}
	}
	lasts, err := readReply(c.reply, ops) // of plain.lua, which has decided
	c.ahead = lasts != nil
	return err
}
