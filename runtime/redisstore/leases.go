package redisstore

import (
	"fmt"
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// WithLease has the Store take up to n units of a key at a time, and decide calls from
// them in memory, without a round trip, for τ at most. However many processes do so, and
// whenever they crash, the limits hold for all of them together: what each algorithm
// admits at most, it still admits at most. The price is that some of the limit is not
// used, as docs/redis.md has it in numbers.
//
// Units are taken for calls of one policy that enforces a limit of its own, and that is a
// SlidingLog, a FixedWindow without Align or a smooth TokenBucket without Warmup, each
// without Count, CostAfter, Lock and Initial, and with a Window of at least τ. All other
// calls ask the server, where what is taken counts as used. Wherever it is met, also by
// calls with several policies, by Peek, and in Shadow mode, such a policy is counted so:
//
//   - a SlidingLog with a window that is longer by τ, since a unit may be used so much
//     later than it was charged;
//   - a FixedWindow as without leases; what was taken in a window is used in that window;
//   - a TokenBucket with a capacity that is smaller by what refills in τ, rounded up. A
//     bucket with none left by that is not leased. A call that costs more than is left
//     ends in an Error of class Invalid.
//
// All processes that share a prefix must have the same τ, and those that do not want to
// take any units, an n of 1. If they do not, the limits do not hold: a log may admit up to
// twice its limit in a window, and a bucket what refills in the difference. So it is for
// the moment in which a τ is introduced or changed.
//
// Keys that are called once strand nothing: the first call takes what it costs, and those
// that follow within τ take up to twice as many units as the one before, if at the pace of
// the calls these are used in half of τ, or as many as other calls wait for; n and half
// of what remains at most. While a key's units are being
// taken, its calls wait for that, for at most two round trips.
//
// Of a call that is decided from units in memory, Remaining says what is left of these:
// the server may have more. One that is refused is told by RetryAfter when it would be
// admitted if nothing were given back. A Reset, Block or update by this process ends its
// leases at once, one by another process within τ. τ goes by the clock of the process,
// which is not set, and is counted from before the units were asked for; on a machine
// that is suspended it may stand still.
//
// Close gives back what is not used. The default is that no units are taken, also for an
// n below 1 and a τ below a microsecond.
func WithLease(n int, τ time.Duration) Option {
	return func(s *Store) { s.leases = newLeases(int64(n), τ.Truncate(time.Microsecond)) }
}

// Bounds of what is leased.
const (
	// leasedKeys is the largest number of keys that have units.
	leasedKeys = 1 << 16
	// leaseWays is the number of places where a key's can be.
	leaseWays = 4
	// leaseWaits is how often a call waits until units were taken by another one.
	leaseWaits = 2
)

// leases are units that the server has charged, and that calls of this process use
// without it. No more than the limit is admitted, by these rules.
//
//   - Whether a policy is leased, and how it is counted then, depends on nothing but the
//     policy. All commands about it say the same of it; see restate.
//   - A unit is used once, and only before a time by the clock of the process that comes
//     τ after its command was sent, and so τ at most after it was charged. What is used in
//     an interval was charged in the interval that begins τ earlier. In a log all charges
//     of a window and τ are at most the limit. In a bucket those of T+τ are at most
//     C + L(T+τ)/W, where C is less than the capacity by at least Lτ/W. In a fixed window
//     it is used before the window that it was charged in ends: the server says how long
//     that takes from its decision, and it is counted from before that.
//   - A process that crashes uses nothing any more. What is evicted from memory is not
//     used, either, nor what is taken while a Reset or a Block is under way.
//   - What is given back was not used, and is not used after that. The state is then as
//     if it had not been charged, or a bucket has less; see undo in ends.lua.
type leases struct {
	most   int64
	lasts  time.Duration
	seed   maphash.Seed
	hits   atomic.Int64
	closed atomic.Bool

	mu    sync.Mutex // of all writes of slots; before that of a lease
	slots []atomic.Pointer[lease]
}

// lease is what is known of a key of a policy.
type lease struct {
	hash    uint64
	policy  *ratelimit.Policy // as it is counted
	version version           // of the caller's policy
	key     string
	stays   atomic.Int64 // until when it is not to be evicted

	mu      sync.Mutex
	lot     lot
	dropped bool  // no units are added any more
	asked   int64 // what was taken last; 0 if it was refused
	when    int64 // that was sent
	rest    int64 // what remained then
	demand  int64 // what those cost who waited, and were not served
	flight  *flight
}

// lot is what is left of units that were charged together.
type lot struct {
	units   int64
	until   int64 // when they are no longer used, as Store.now tells it
	at      int64 // when they came
	reset   time.Duration
	charged int64 // when, in µs by the server
}

// flight is a call that takes units, for others as well.
type flight struct {
	done    chan struct{}
	waiters []*waiter // under the mutex of the lease
	// The rest is set when done is closed.
	until   int64 // of the units that waiters were given
	refused bool
	err     *Error // of the server, for all
}

// waiter is a call that waits for a flight.
type waiter struct {
	op *ratelimit.Op
	// served is set when it was given what it costs, and gone when it has ceased to wait;
	// under the mutex of the lease, while the flight is under way.
	served, gone bool
}

func newLeases(n int64, τ time.Duration) *leases {
	if n < 1 || τ <= 0 {
		return nil
	}
	return &leases{most: n, lasts: τ, seed: maphash.MakeSeed(), slots: make([]atomic.Pointer[lease], leasedKeys)}
}

// counts returns the window and the capacity that the server counts p by, if p is leased.
func (l *leases) counts(p *ratelimit.Policy) (window time.Duration, capacity int64, ok bool) {
	window, capacity = p.Window, p.Capacity()
	if p.Dynamic || window < l.lasts || p.Limit < 1 || p.Limit > ratelimit.MaxLimit {
		return window, capacity, false
	}
	switch form(p) {
	case "log":
		window += l.lasts
		return window, capacity, window <= ratelimit.MaxWindow
	case "fixed":
		return window, capacity, true
	case "bucket":
		hi, lo := bits.Mul64(uint64(p.Limit), uint64(l.lasts.Microseconds()))
		w := uint64(window.Microseconds())
		refills, rest := bits.Div64(hi, lo, w) // at most the limit
		capacity -= int64(refills) + int64(min(rest, 1))
		return window, capacity, capacity >= 1
	}
	return window, capacity, false
}

// restate makes the policies of ops what they are counted as. It appends those that they
// were to asked, for restore.
func (l *leases) restate(ops []ratelimit.Op, asked []*ratelimit.Policy) ([]*ratelimit.Policy, error) {
	for i := range ops {
		p := ops[i].Policy
		if _, capacity, ok := l.counts(p); ok && ops[i].Cost > capacity {
			return nil, fmt.Errorf("policy %q: a cost of %d is above %d, which leases of %v leave of a capacity of %d: give it a larger burst, or shorten the leases",
				p.ID, ops[i].Cost, capacity, l.lasts, p.Capacity())
		}
	}
	for i := range ops {
		asked = append(asked, ops[i].Policy)
		ops[i].Policy = l.counted(ops[i].Policy)
	}
	return asked, nil
}

func restore(ops []ratelimit.Op, asked []*ratelimit.Policy) {
	for i := range ops {
		ops[i].Policy = asked[i]
	}
}

// counted returns the policy that the server counts p as.
func (l *leases) counted(p *ratelimit.Policy) *ratelimit.Policy {
	window, capacity, ok := l.counts(p)
	if !ok || window == p.Window && capacity == p.Capacity() {
		return p
	}
	q := *p
	q.Window = window
	if capacity != p.Capacity() {
		q.Burst = capacity
	}
	return &q
}

// serves reports whether a call may be decided from units in memory.
func (l *leases) serves(ops []ratelimit.Op) bool {
	if l == nil || len(ops) != 1 || l.most < 2 || l.closed.Load() {
		return false
	}
	op := &ops[0]
	if op.Peek || op.Cost < 1 || op.Policy.Mode != ratelimit.Enforce {
		return false
	}
	_, capacity, ok := l.counts(op.Policy)
	return ok && op.Cost <= capacity
}

func (l *leases) hash(op *ratelimit.Op) uint64 {
	const mix = 0x9e3779b97f4a7c15
	h := maphash.String(l.seed, op.Key) * mix
	h = (h ^ h>>32 ^ maphash.String(l.seed, op.Policy.ID)) * mix
	return h ^ h>>32
}

func (l *leases) places(hash uint64) []atomic.Pointer[lease] {
	i := hash % uint64(len(l.slots)/leaseWays) * leaseWays
	return l.slots[i : i+leaseWays]
}

// find returns the lease of a call, or nil.
func (l *leases) find(hash uint64, op *ratelimit.Op) *lease {
	places := l.places(hash)
	for i := range places {
		if e := places[i].Load(); e != nil && e.hash == hash && e.key == op.Key && e.version == versionOf(op.Policy) {
			return e
		}
	}
	return nil
}

// enter returns the lease of a call, which it makes if there is none. It returns nil if
// all places where it could be are taken.
func (l *leases) enter(hash uint64, op *ratelimit.Op, now int64) *lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.find(hash, op); e != nil {
		return e
	}
	places := l.places(hash)
	var oldest *lease
	place := &places[0]
	for i := range places {
		e := places[i].Load()
		if e == nil || e.hash == hash && e.key == op.Key && e.version.id == op.Policy.ID {
			place, oldest = &places[i], e // the policy has changed
			break
		}
		if oldest == nil || e.stays.Load() < oldest.stays.Load() {
			place, oldest = &places[i], e
		}
	}
	if oldest != nil {
		changed := oldest.hash == hash && oldest.key == op.Key && oldest.version.id == op.Policy.ID
		if !changed && now < oldest.stays.Load() {
			return nil
		}
		oldest.drop()
	}
	e := &lease{hash: hash, policy: l.counted(op.Policy), version: versionOf(op.Policy), key: op.Key}
	e.stays.Store(now)
	place.Store(e)
	return e
}

// drop has what is left not used any more.
func (e *lease) drop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dropped, e.lot.units = true, 0
}

// forget drops what is left of a key of a policy.
func (l *leases) forget(id, key string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	hash := l.hash(&ratelimit.Op{Policy: &ratelimit.Policy{ID: id}, Key: key})
	places := l.places(hash)
	for i := range places {
		if e := places[i].Load(); e != nil && e.hash == hash && e.key == key && e.version.id == id {
			places[i].Store(nil)
			e.drop()
		}
	}
}
