package redisstore

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// DefaultRefusalMemory is the number of refusals that a Store remembers without
// WithRefusalMemory.
const DefaultRefusalMemory = 4096

// Bounds of what is remembered.
const (
	// rememberedFor is the longest that a refusal is remembered, so that a Reset or an
	// Update by another process is seen.
	rememberedFor = time.Second
	// rememberedOps and rememberedKeys are the largest number of policies of a call
	// that is remembered, and of bytes of its keys.
	rememberedOps  = 16
	rememberedKeys = 1024
	// refusalWays is the number of places where a refusal can be.
	refusalWays = 4
)

// refusals are calls that the server refused, and refuses until a time whatever others
// do, so that it need not be asked. A call is answered so if it is the same: the same
// policies in the same version, keys and costs. It is remembered by these rules.
//
//   - Every policy that refuses it can admit the next unit only when time has passed:
//     other calls delay that, and nobody gives back. That leaves out Count, CostAfter,
//     Concurrency and TimeQuota, whose calls end; LeakyBucket, whose waiting calls may
//     leave; a TokenBucket that is Dynamic, which others may refill at a faster pace;
//     and policies that calls are charged to ahead of policies elsewhere in a cluster,
//     which is given back if those refuse. A policy of these kinds that admits is no
//     hindrance: the one that refuses decides.
//   - It lasts until the least RetryAfter of all policies that refuse, those in Shadow
//     mode included, and a second at most. So each keeps refusing for as long. It lasts no
//     longer than until one of them is as new, which an update may have made earlier. What
//     one says that admitted, and all Remaining, are as they were.
//   - A policy with Lock must have locked the key, and the refusal is remembered no
//     longer than that lasts: calls while it is locked change nothing. The next call
//     is for the server, which may have to lock the key again, for longer. One that has
//     not locked the key may have to at the next call, by the charges of others: such
//     calls are not remembered. So it is with a bucket with Initial, which begins to fill
//     with the first call that it refuses: the refusal is remembered until it is new.
//   - A SlidingWindow and a bucket with a Warmup whose window or limit was changed must
//     have been charged since. Until then each look converts what it finds, and the next
//     call may be admitted earlier than this one was told.
//   - No key of the call has others ahead that were reserved: they may be cancelled.
//   - A call that only peeks is neither remembered nor answered: it is asked to know
//     better, or to lock the key for a call that has waited. One that waits is answered
//     as any other: it would not lock a key, but only locked ones are remembered.
//   - Times are counted from when the call was sent, before the server decided, and the
//     RetryAfter that is told from when it was answered. So nothing is refused any
//     longer than the server would, and nobody is told to come too early.
//
// Update of this process makes another policy, and Reset and Block have all calls with
// the key forgotten, also those under way.
type refusals struct {
	seed  maphash.Seed
	slots []atomic.Pointer[refusal] // of refusalWays for each hash
	hits  atomic.Int64

	mu     sync.Mutex   // of all writes of slots
	resets atomic.Int64 // so far; written under mu

	// ahead holds the IDs of policies that are charged ahead of others elsewhere.
	ahead sync.Map
}

// refusal is a call that was refused. It does not change.
type refusal struct {
	hash  uint64
	at    int64 // when it was answered, in nanoseconds since the store began
	until int64
	ops   []refusedOp
}

// refusedOp is one policy's part of a refusal.
type refusedOp struct {
	policy  *ratelimit.Policy
	version version
	key     string
	cost    int64
	limit   int64
	outcome ratelimit.Outcome
}

// version is what tells the policy of one call from that of another. All but the ID
// and the algorithm may be changed by Limiter.Update.
type version struct {
	id                   string
	algorithm            ratelimit.Algorithm
	limit, window, burst int64
	mode                 ratelimit.Mode
	dynamic              bool
}

func versionOf(p *ratelimit.Policy) version {
	return version{p.ID, p.Algorithm, p.Limit, int64(p.Window), p.Burst, p.Mode, p.Dynamic}
}

// newRefusals returns a memory of n refusals, and nil if that is none.
func newRefusals(n int) *refusals {
	if n <= 0 {
		return nil
	}
	size := refusalWays
	for size < n {
		size *= 2
	}
	return &refusals{seed: maphash.MakeSeed(), slots: make([]atomic.Pointer[refusal], size)}
}

// hash is that of a call.
func (r *refusals) hash(ops []ratelimit.Op) uint64 {
	const mix = 0x9e3779b97f4a7c15
	var h uint64
	for i := range ops {
		op := &ops[i]
		h = (h ^ maphash.String(r.seed, op.Key)) * mix
		h = (h ^ h>>32 ^ maphash.String(r.seed, op.Policy.ID)) * mix
		h = (h ^ h>>32 ^ uint64(op.Cost)) * mix
	}
	return h ^ h>>32
}

// places returns where a refusal of this hash may be.
func (r *refusals) places(hash uint64) []atomic.Pointer[refusal] {
	i := hash % uint64(len(r.slots)/refusalWays) * refusalWays
	return r.slots[i : i+refusalWays]
}

// recall sets the outcomes of a call that is refused for certain, and reports whether
// it is.
func (r *refusals) recall(ops []ratelimit.Op, now int64) bool {
	hash := r.hash(ops)
	places := r.places(hash)
	for i := range places {
		known := places[i].Load()
		if known == nil || known.hash != hash || now >= known.until || !known.is(ops) {
			continue
		}
		known.tell(ops, now)
		r.hits.Add(1)
		return true
	}
	return false
}

// is reports whether ops are the call that was refused.
func (f *refusal) is(ops []ratelimit.Op) bool {
	if len(ops) != len(f.ops) {
		return false
	}
	for i := range ops {
		op, known := &ops[i], &f.ops[i]
		if op.Key != known.key || op.Cost != known.cost || op.Limit != known.limit ||
			versionOf(op.Policy) != known.version {
			return false
		}
		// A limiter makes a policy anew when it is changed, also if it is changed back;
		// and for each call if that brings its limit.
		if op.Policy != known.policy && !op.Policy.Dynamic {
			return false
		}
	}
	return true
}

// tell sets the outcomes to what they are now.
func (f *refusal) tell(ops []ratelimit.Op, now int64) {
	passed := max(time.Duration(now-f.at), 0).Truncate(time.Microsecond)
	for i := range ops {
		o := f.ops[i].outcome
		if !o.Allowed {
			o.RetryAfter = max(o.RetryAfter-passed, time.Microsecond)
		}
		o.ResetAfter = max(o.ResetAfter-passed, 0)
		o.Delay = max(o.Delay-passed, 0)
		ops[i].Outcome = o
	}
}

// generation is how many resets there were. What is sent after it was read may be
// remembered for as long as it stays the same.
func (r *refusals) generation() int64 { return r.resets.Load() }

// remember keeps a call that was sent and answered at these times, and is refused for d.
func (r *refusals) remember(ops []ratelimit.Op, d time.Duration, generation, sent, now int64) {
	if now >= sent+int64(d) {
		return
	}
	f := &refusal{hash: r.hash(ops), at: now, until: sent + int64(d), ops: make([]refusedOp, len(ops))}
	for i := range ops {
		op := &ops[i]
		f.ops[i] = refusedOp{op.Policy, versionOf(op.Policy), op.Key, op.Cost, op.Limit, op.Outcome}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.resets.Load() != generation {
		return // the server may have decided before
	}
	places := r.places(f.hash)
	oldest := &places[0]
	for i := range places {
		known := places[i].Load()
		if known == nil || known.hash == f.hash && known.is(ops) {
			oldest = &places[i]
			break
		}
		if known.until < oldest.Load().until {
			oldest = &places[i]
		}
	}
	oldest.Store(f)
}

// bound returns for how long from when a call was sent it is refused whatever others
// do, by the rules above, and whether it is; lasts is what readReply returned.
func (r *refusals) bound(ops []ratelimit.Op, lasts []time.Duration) (d time.Duration, ok bool) {
	if len(ops) > rememberedOps {
		return 0, false
	}
	d = rememberedFor
	size := 0
	for i := range ops {
		op := &ops[i]
		p, o := op.Policy, &op.Outcome
		if size += len(op.Key); size > rememberedKeys {
			return 0, false
		}
		if lasts != nil && lasts[i] < 0 {
			return 0, false
		}
		if saysHowLong(p) && (op.Cost > 0 || !o.Allowed) {
			if lasts == nil || lasts[i] <= 0 {
				return 0, false
			}
			d = min(d, lasts[i])
		}
		if o.ResetAfter > 0 && (!o.Allowed || p.Initial != 0 && op.Cost > 0) {
			// Then the key is as new, also if an update has made the limit so slow that it
			// would not admit the call by then.
			d = min(d, o.ResetAfter)
		}
		if o.Allowed {
			continue
		}
		if !r.lasting(p) {
			return 0, false
		}
		ok = ok || p.Mode != ratelimit.Shadow
		d = min(d, o.RetryAfter)
	}
	return d, ok
}

// lasting reports whether nothing but time ends a refusal by p.
func (r *refusals) lasting(p *ratelimit.Policy) bool {
	switch {
	case ends(p), p.Algorithm == ratelimit.LeakyBucket, p.Algorithm.IsCustom(),
		p.Algorithm == ratelimit.TokenBucket && p.Dynamic:
		return false
	}
	_, ahead := r.ahead.Load(p.ID)
	return !ahead
}

// isAhead notes that p is charged before it is known whether the call is admitted.
func (r *refusals) isAhead(p *ratelimit.Policy) {
	if r == nil {
		return
	}
	if _, known := r.ahead.LoadOrStore(p.ID, true); !known {
		r.forget(p.ID, "", true)
	}
}

// forget forgets the calls of a policy with a key, or with any key.
func (r *refusals) forget(id, key string, anyKey bool) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resets.Add(1)
	for i := range r.slots {
		known := r.slots[i].Load()
		if known == nil {
			continue
		}
		for j := range known.ops {
			if op := &known.ops[j]; op.version.id == id && (anyKey || op.key == key) {
				r.slots[i].Store(nil)
				break
			}
		}
	}
}

// now is the time for what is remembered: that of the process, which is not set back.
func (s *Store) now() int64 {
	if s.clock != nil {
		return s.clock()
	}
	return int64(time.Since(s.started))
}
