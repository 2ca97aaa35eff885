package ratelimit

import (
	"fmt"
	"math"
	"time"
)

// Algorithm names the way a policy counts: one of those below, or one that WithAlgorithm
// gives to a limiter.
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
	// interval of length W. A key's first window begins with its first call, unless
	// Policy.Align puts the windows on the calendar.
	FixedWindow Algorithm = "fixed-window"
	// SlidingWindow admits at most L units in any interval of length W. It counts in
	// parts of W/Policy.Segments, rounded up, and a unit counts until Segments parts
	// have begun after its own and ended: up to one part longer than in a SlidingLog.
	SlidingWindow Algorithm = "sliding-window"
	// LeakyBucket is a queue that is left at an even pace, one unit each W/L: at
	// most 1 + L*T/W units leave it in any interval of length T. An admitted call
	// waits for its turn. Burst units fit in, the one being served included.
	LeakyBucket Algorithm = "leaky-bucket"
	// Concurrency admits at most L units at a time: a call has its place until
	// Permit.Release, or until Policy.Lease is over.
	Concurrency Algorithm = "concurrency"
	// TimeQuota admits calls until those that have returned took L microseconds of
	// execution time in the window that they began in. What is running when the
	// quota is used up runs on. Windows begin as those of a FixedWindow.
	TimeQuota Algorithm = "time-quota"
)

// Special values of Policy.Limit.
const (
	// Unlimited admits every call, without counting.
	Unlimited int64 = math.MaxInt64
	// Blocked refuses every call.
	Blocked int64 = math.MinInt64
)

// Empty is the Policy.Initial of a bucket that begins without tokens.
const Empty int64 = -1

// Bounds of what a policy may say. Within them every product that a store forms
// stays below 2^53, the largest range in which a Lua number is exact.
const (
	// MaxLimit is the largest Limit and Burst other than Unlimited.
	MaxLimit = 1 << 30
	// MaxLogLimit is the largest Limit of a SlidingLog, which keeps every unit.
	MaxLogLimit = 4096
	// MaxPolicies is the largest number of policies of one method.
	MaxPolicies = 64
	// DefaultSegments is the number of parts of a SlidingWindow that does not say.
	DefaultSegments = 10
	// DefaultLease is the lease of a Concurrency policy that does not say.
	DefaultLease = time.Minute
	// MaxWindow is the longest Window, and the longest time that a bucket may
	// take to fill (Burst * Window / Limit).
	MaxWindow = 10 * 366 * 24 * time.Hour

	// MaxStandstill is the longest time for which time stands still for a key because
	// the clock was set back. One that was set back by more, or by more than a window
	// that is shorter, is believed: see the package comment.
	MaxStandstill = 10 * time.Second
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
	// SkipEmpty leaves the policy out: it neither decides nor is charged.
	SkipEmpty
	// SharedEmpty counts all calls without a key under one counter.
	SharedEmpty
)

// OnError says what becomes of a call when the Store that should decide it fails.
type OnError uint8

const (
	// LocalOnError decides in this process, by in-memory counters of the same
	// policy. It is the default. The Decision is marked Degraded.
	LocalOnError OnError = iota
	// AllowOnError admits. The Decision is marked Degraded.
	AllowOnError
	// DenyOnError refuses, with an *Error of kind ErrStore.
	DenyOnError
)

// Refill says how tokens come back to a bucket.
type Refill uint8

const (
	// Smooth brings one token each Window/Limit. It is the default.
	Smooth Refill = iota
	// Interval brings Limit tokens at once each Window, counted from the call that
	// found the bucket full.
	Interval
)

// Align is the unit of the calendar that is the window of a FixedWindow.
type Align string

// The units of the calendar, in the zone Policy.TZ. A day begins with its first
// instant, also where that is not midnight, and lasts for 23 or 25 hours where the
// clocks change. A week begins on Monday. Hours and shorter units are those of the
// zone; one that a change of the zone's offset cuts counts as two.
const (
	AlignSecond Align = "second"
	AlignMinute Align = "minute"
	AlignHour   Align = "hour"
	AlignDay    Align = "day"
	AlignWeek   Align = "week"
	AlignMonth  Align = "month"
)

// Policy is one limit on one method. Generated code holds them as plain data. What
// a policy says must matter: an option that its algorithm does not have is an error.
type Policy struct {
	// ID is the stable identity of the policy's counters, metrics and overrides.
	// Policies with one ID on one store share their counters and must be equal.
	ID string
	// Directive is the text the policy was generated from, for messages.
	Directive string
	// Key says in the directive's words whose calls share a counter, for messages.
	Key string
	// KeyForm says how the keys are written, for those that look for single keys, such as
	// package policyfile: a word for each element, with a blank between two. Generated
	// code has it; it is "" if nothing is known but Key. The words are
	//
	//	ip/32/64  the caller's address, by networks of these lengths
	//	user      the caller's name
	//	name      text of the request that is no address, such as the path
	//	text      other text
	//	hash      a credential, as AppendHash writes it
	//	int       an integer
	//	bool      a boolean
	//
	// An element that is one thing in some calls and another in others has the words of
	// all of them, with a '|' between two. A key of one element that is never the caller's
	// name or address is text as it is; elsewhere text is escaped. An address stands
	// behind a '\\' where the element may be text. Where methods that share a policy have
	// keys of several forms, Limiter.Policies lists all of them, with a ';' between two.
	KeyForm string
	// Global is set if all calls share one counter; the key of a call is ignored.
	Global bool
	// Algorithm is SlidingLog if empty.
	Algorithm Algorithm
	// Limit is the number of units admitted per Window: 1..MaxLimit, Unlimited or
	// Blocked. Zero and other negative values are errors. Of a SlidingLog it is at
	// most MaxLogLimit. For Concurrency it is the units in flight, and for TimeQuota
	// microseconds of execution time, at most MaxWindow.
	Limit int64
	// Dynamic is set if each call brings its limit, Charge.Limit, and Limit is 0. A
	// counter goes on whatever limits it was charged under; a bucket refills by the
	// limit of the call that looks. Not for LeakyBucket and Warmup.
	Dynamic bool
	// Window is the length of the window: 1 µs..MaxWindow, whole microseconds. It is
	// zero for Concurrency, which has none, and with Align, which says how long it is.
	Window time.Duration
	// Burst is the capacity of a token or leaky bucket, or what a CustomAlgorithm makes
	// of it, 1..MaxLimit; the limit if zero.
	Burst int64
	// Initial is the number of tokens of a new token bucket, 1..Burst, or Empty; full
	// if zero. A key's bucket is new when the key is first charged or refused, and
	// again when the bucket has been full, and the key not locked, for a Window. So calls
	// that come more rarely than that always find a new bucket: with Empty all of them
	// are refused, unless they come when RetryAfter says.
	Initial int64
	// Refill is Smooth or Interval, for a TokenBucket.
	Refill Refill
	// Warmup makes a TokenBucket start slowly after it was idle: the pace of calls
	// rises from a third to all of Limit/Window while the bucket cools down from
	// having been idle for so long. It is Guava's SmoothWarmingUp with a cold factor
	// of 3: there is no burst, and a call that costs n delays those after it.
	// Whole microseconds up to MaxWindow; off if zero.
	Warmup time.Duration
	// Segments is the number of parts of a SlidingWindow, 2..60; DefaultSegments if
	// zero.
	Segments int
	// Align puts the windows of a FixedWindow on the calendar; off if empty.
	Align Align
	// TZ is the zone of Align by its IANA name, like "Europe/Paris"; UTC if empty.
	// Limiter.Gate looks it up, and returns an error if there is no such zone.
	TZ string
	// Lock says for how long a key stays refused once this policy has refused it:
	// Lock[0] the first time, Lock[1] the next, and so on, the last for all further
	// times; off if empty. The times are whole microseconds up to MaxWindow, each
	// above the one before. Calls while the key is locked change nothing. When a key
	// has not been refused for a Window (a Lease for Concurrency, a nominal unit for
	// Align) since it was unlocked, its next lock is Lock[0] again.
	Lock []time.Duration
	// Lease is the time after which a Concurrency policy takes back the place of a
	// call that has not released it: 1 µs..MaxWindow; DefaultLease if zero. In a Store,
	// a place is renewed each half of it while the call runs, so that it is taken back
	// from a process that died.
	Lease time.Duration
	// Count is set if a charge is provisional: Permit.Release gives it back unless
	// Permit.Keep was called. Calls need a Permit then, and go through Acquire. Not
	// for Concurrency, whose places are always given back, Interval and Warmup.
	Count bool
	// CostAfter is set if calls are charged more when they end, by Permit.Charge. In
	// memory, others can be, too.
	// Not for LeakyBucket, Warmup, Concurrency and TimeQuota.
	CostAfter bool
	// Waits is set if calls wait to be admitted, by Wait, AcquireWait or Reserve. It
	// decides nothing: it is for those that configure policies, to whom MaxWait and
	// MaxQueue of others would be without effect.
	Waits bool
	// MaxWait is the longest that Wait, AcquireWait and Reserve let a call wait: one
	// that would have to wait longer is refused at once. No bound if zero.
	MaxWait time.Duration
	// MaxQueue is the largest number of calls with one key that Wait and AcquireWait
	// let wait at a time, and of those that Reserve has ahead; the next one is refused
	// at once. No bound if zero.
	MaxQueue int
	// Mode is Enforce, Shadow or Off.
	Mode Mode
	// OnEmpty says what becomes of a call without a key. A Global policy needs none.
	OnEmpty OnEmpty
	// OnError says what becomes of a call when the store fails.
	OnError OnError
	// Store names the store that keeps the counters, as WithStore named it; "" is
	// the limiter's default.
	Store string
	// Message is what to tell a client that was refused, in place of the usual words.
	Message string
	// Status is the HTTP status of a refusal, 400..599; the usual one if zero.
	Status int
}

// Capacity is the largest cost of a single call that the policy can ever admit. It
// is 1 for a TimeQuota, whose calls cost what they take, and 0 for a Dynamic policy
// without Burst, since its calls bring it.
func (p *Policy) Capacity() int64 {
	if p.Algorithm == TimeQuota && p.Limit != Blocked {
		return 1
	}
	if p.Burst > 0 && p.Limit != Unlimited && p.Limit != Blocked {
		return p.Burst
	}
	return p.Limit
}

// algorithm is the Algorithm, spelt out.
func (p *Policy) algorithm() Algorithm {
	if p.Algorithm == "" {
		return SlidingLog
	}
	return p.Algorithm
}
