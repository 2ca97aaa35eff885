package ratelimit

import (
	"fmt"
	"math"
	"math/bits"
	"time"
)

// Algorithm names the way a policy counts.
type Algorithm string

// The built-in algorithms. W is the policy's window, L its limit.
const (
	// SlidingLog admits at most L units in any interval of length W, exactly:
	// the time of each admitted unit is kept until it is W old.
	SlidingLog Algorithm = "sliding-log"
	// TokenBucket admits at most Burst + L*T/W units in any interval of length T.
	// It is the generic cell rate algorithm (GCRA, ITU-T I.371) in integers.
	TokenBucket Algorithm = "token-bucket"
	// FixedWindow admits at most L units in each window, and so at most 2L in any
	// interval of length W. A key's first window begins with its first call.
	FixedWindow Algorithm = "fixed-window"
)

// Special values of Policy.Limit.
const (
	// Unlimited admits every call, without counting.
	Unlimited int64 = math.MaxInt64
	// Blocked refuses every call.
	Blocked int64 = math.MinInt64
)

// Bounds of what a policy may say. Within them every product that a store forms
// stays below 2^53, the largest range in which a Lua number is exact.
const (
	// MaxLimit is the largest Limit and Burst other than Unlimited.
	MaxLimit = 1 << 30
	// MaxLogLimit is the largest Limit of a SlidingLog, which keeps every unit.
	MaxLogLimit = 4096
	// MaxWindow is the longest Window, and the longest time that a bucket may
	// take to fill (Burst * Window / Limit).
	MaxWindow = 10 * 366 * 24 * time.Hour
)

// Mode says what becomes of a policy's refusals.
type Mode uint8

const (
	// Enforce refuses what the policy does not admit. It is the default.
	Enforce Mode = iota
	// Shadow decides, counts and reports like Enforce, but admits.
	Shadow
	// Off does not evaluate the policy at all.
	Off
)

// String returns the mode as directives spell it.
func (m Mode) String() string {
	switch m {
	case Enforce:
		return "enforce"
	case Shadow:
		return "shadow"
	case Off:
		return "off"
	}
	return fmt.Sprintf("Mode(%d)", uint8(m))
}

// OnEmpty says what becomes of a call whose key is absent or empty.
type OnEmpty uint8

const (
	// DenyEmpty refuses the call with ErrNoKey. It is the default.
	DenyEmpty OnEmpty = iota
)

// Policy is one limit on one method. Generated code holds them as plain data.
type Policy struct {
	// ID is the stable identity of the policy's counters, metrics and overrides.
	// Policies with one ID on one store share their counters and must be equal.
	ID string
	// Directive is the text the policy was generated from, for messages.
	Directive string
	// Key says in the directive's words whose calls share a counter, for messages.
	Key string
	// Global is set if all calls share one counter; the key of a call is ignored.
	Global bool
	// Algorithm is SlidingLog if empty.
	Algorithm Algorithm
	// Limit is the number of units admitted per Window: 1..MaxLimit, Unlimited or
	// Blocked. Zero and other negative values are errors.
	Limit int64
	// Window is the length of the window: 1 µs..MaxWindow, whole microseconds.
	Window time.Duration
	// Burst is the capacity of a token bucket, 1..MaxLimit; Limit if zero. Other
	// algorithms do not take one.
	Burst int64
	// Mode is Enforce, Shadow or Off.
	Mode Mode
	// OnEmpty says what becomes of a call without a key.
	OnEmpty OnEmpty
	// Store names the store that keeps the counters, as WithStore named it; "" is
	// the limiter's default.
	Store string
}

// Capacity is the largest cost of a single call that the policy can ever admit.
func (p *Policy) Capacity() int64 {
	if p.Algorithm == TokenBucket && p.Burst > 0 && p.Limit != Unlimited && p.Limit != Blocked {
		return p.Burst
	}
	return p.Limit
}

// Validate reports what is wrong with p, or nil. New gates call it, and so does
// the generator, which turns the same text into an error at the directive.
func (p *Policy) Validate() error {
	if p.ID == "" {
		return fmt.Errorf("ratelimit: policy without an ID")
	}
	switch p.Algorithm {
	case "", SlidingLog, FixedWindow, TokenBucket:
	default:
		return fmt.Errorf("ratelimit: policy %q: unknown algorithm %q", p.ID, p.Algorithm)
	}
	if p.Mode > Off {
		return fmt.Errorf("ratelimit: policy %q: unknown mode %d", p.ID, p.Mode)
	}
	if p.OnEmpty > DenyEmpty {
		return fmt.Errorf("ratelimit: policy %q: unknown OnEmpty %d", p.ID, p.OnEmpty)
	}
	if p.Burst != 0 && p.Algorithm != TokenBucket {
		return fmt.Errorf("ratelimit: policy %q: burst is for token-bucket only", p.ID)
	}
	if p.Burst < 0 || p.Burst > MaxLimit {
		return fmt.Errorf("ratelimit: policy %q: burst %d is not in 1..%d", p.ID, p.Burst, int64(MaxLimit))
	}
	if p.Limit == Unlimited || p.Limit == Blocked {
		return nil
	}
	switch {
	case p.Limit < 1:
		return fmt.Errorf("ratelimit: policy %q: limit %d is less than 1; use Unlimited or Blocked to switch a limit off or a method shut", p.ID, p.Limit)
	case p.Limit > MaxLimit:
		return fmt.Errorf("ratelimit: policy %q: limit %d is above %d", p.ID, p.Limit, int64(MaxLimit))
	case p.Window <= 0:
		return fmt.Errorf("ratelimit: policy %q: window %v is not positive", p.ID, p.Window)
	case p.Window > MaxWindow:
		return fmt.Errorf("ratelimit: policy %q: window %v is longer than %v", p.ID, p.Window, time.Duration(MaxWindow))
	case p.Window%time.Microsecond != 0:
		return fmt.Errorf("ratelimit: policy %q: window %v is not a whole number of microseconds", p.ID, p.Window)
	case (p.Algorithm == "" || p.Algorithm == SlidingLog) && p.Limit > MaxLogLimit:
		return fmt.Errorf("ratelimit: policy %q: a sliding log keeps every call, so its limit is at most %d; use token-bucket or fixed-window for %d", p.ID, MaxLogLimit, p.Limit)
	}
	if p.Algorithm == TokenBucket {
		// burst * limit and burst * window / limit bound all arithmetic of the bucket.
		burst := p.Capacity()
		if hi, lo := bits.Mul64(uint64(burst), uint64(p.Limit)); hi != 0 || lo >= 1<<53 {
			return fmt.Errorf("ratelimit: policy %q: burst × limit = %d × %d is too large to be exact (2^53)", p.ID, burst, p.Limit)
		}
		hi, lo := bits.Mul64(uint64(burst), uint64(p.Window/time.Microsecond))
		if hi >= uint64(p.Limit) {
			return fmt.Errorf("ratelimit: policy %q: the bucket takes longer than %v to fill", p.ID, time.Duration(MaxWindow))
		}
		if fill, _ := bits.Div64(hi, lo, uint64(p.Limit)); fill > uint64(MaxWindow/time.Microsecond) {
			return fmt.Errorf("ratelimit: policy %q: the bucket takes longer than %v to fill", p.ID, time.Duration(MaxWindow))
		}
	}
	return nil
}
