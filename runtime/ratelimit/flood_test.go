package ratelimit_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimittest"
)

const (
	floodCap  = 100_000 // counters
	floodKept = 1000    // keys that are refused or locked when the flood comes
)

// floodKeys returns how many random keys a flood has.
func floodKeys() int {
	switch {
	case raceEnabled: // finds nothing here, where one goroutine calls
		return 300_000
	case testing.Short():
		return 1_000_000
	}
	return 10_000_000
}

// flooded is a limiter with a bound on its keys, of which some are refused or locked.
type flooded struct {
	*testing.T
	clock   *ratelimittest.Clock
	limiter *ratelimit.Limiter
	gate    *ratelimit.Gate // that the flood calls
	kept    *ratelimit.Gate // that refuses
	lock    *ratelimit.Gate // that locks
	key     [8]byte
	rnd     *rand.Rand
}

func newFlooded(t *testing.T, p ratelimit.Policy) *flooded {
	t.Helper()
	f := &flooded{T: t, clock: ratelimittest.NewClock(begin), rnd: rand.New(rand.NewPCG(1, 2))}
	f.limiter = ratelimit.New(ratelimit.WithClock(f.clock), ratelimit.WithMaxKeys(floodCap))
	gate := func(id string, p ratelimit.Policy) *ratelimit.Gate {
		p.ID = id
		gate, err := f.limiter.Gate(&ratelimit.Spec{Policies: []ratelimit.Policy{p}})
		if err != nil {
			t.Fatal(err)
		}
		return gate
	}
	refuses := p
	refuses.Limit, refuses.Window = 1, time.Hour
	f.gate = gate("flood", p)
	f.kept = gate("kept", refuses)
	f.lock = gate("lock", ratelimit.Policy{Limit: 1, Window: time.Second, Lock: []time.Duration{time.Hour}})
	for i := range floodKept / 2 {
		for _, gate := range []*ratelimit.Gate{f.kept, f.lock} {
			ratelimittest.Admits(t, gate, 1, fmt.Sprint("kept", i))
		}
	}
	return f
}

// take has a random key call.
func (f *flooded) take() ratelimit.Decision {
	binary.NativeEndian.PutUint64(f.key[:], f.rnd.Uint64())
	return f.takeKey(f.gate, f.key[:])
}

func (f *flooded) takeKey(gate *ratelimit.Gate, key []byte) ratelimit.Decision {
	d, err := gate.Take(f.Context(), ratelimit.Charge{Key: key, Cost: 1})
	if err != nil {
		f.Fatal(err)
	}
	return d
}

// checkKept fails if one of the keys is admitted that are refused or locked.
func (f *flooded) checkKept(when string) {
	f.Helper()
	for i := range floodKept / 2 {
		key := fmt.Append(nil, "kept", i)
		for _, gate := range []*ratelimit.Gate{f.kept, f.lock} {
			if err := gate.Allow(f.Context(), key); !errors.Is(err, ratelimit.ErrLimited) {
				f.Fatalf("%s: %s: %v, want it to be refused still", when, key, err)
			}
		}
	}
	if n := ratelimit.Keys(f.limiter); n > floodCap {
		f.Fatalf("%s: %d counters, want %d at most", when, n, floodCap)
	}
}

// fill has so many keys call as there is room for, each of them admitted.
func (f *flooded) fill() {
	for range floodCap - floodKept {
		if d := f.take(); !d.Allowed || d.Degraded {
			f.Fatalf("a key for which there is room: %+v", d)
		}
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC() // what finalizers and weak pointers kept
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A flood of keys, each of which calls once, frees no key that is refused, is admitted
// as often as there is room and once more what one counter admits, takes no more
// memory than the counters there may be, and does not become slower. With a limit of
// 1, every key's counter is used up by its first call.
//
// It is not parallel, for it measures memory and time.
func TestFloodOfMillionsOfKeys(t *testing.T) {
	for _, c := range []struct {
		policy ratelimit.Policy
		keys   int
	}{
		{ratelimit.Policy{Algorithm: ratelimit.TokenBucket, Limit: 5}, floodKeys()},
		{ratelimit.Policy{Algorithm: ratelimit.TokenBucket, Limit: 1}, floodKeys()},
		{ratelimit.Policy{Algorithm: ratelimit.SlidingLog, Limit: 1}, floodKeys() / 10},
		{ratelimit.Policy{Algorithm: ratelimit.SlidingWindow, Limit: 5}, floodKeys() / 50},
	} {
		p, keys := c.policy, c.keys
		t.Run(fmt.Sprintf("%s of %d", p.Algorithm, p.Limit), func(t *testing.T) {
			p.Window = time.Minute
			none := heap()
			f := newFlooded(t, p)
			f.fill()
			full := heap() - none

			part := keys / 10
			var took []time.Duration
			var admitted, owned int64
			for i := range 10 {
				start := time.Now()
				for range part {
					d := f.take()
					if d.Allowed {
						admitted++
					}
					if !d.Degraded {
						owned++
					}
				}
				took = append(took, time.Since(start))
				f.checkKept(fmt.Sprintf("after %d keys", (i+1)*part))
			}
			if admitted != p.Limit || owned != 0 {
				t.Errorf("%d of the keys without room were admitted, %d by counters of their own; want the %d of one counter", admitted, owned, p.Limit)
			}
			// The least of three, so that what else the machine does is not measured.
			if first, last := slices.Min(took[:3]), slices.Min(took[7:]); last > 5*first {
				t.Errorf("the last of %d keys took %v, the first %v", part, last, first)
			}
			after := heap() - none
			if after > full+full/10 {
				t.Errorf("%d bytes after the flood, %d with as many counters as there may be", after, full)
			}
			t.Logf("each %d keys took %v; %d bytes before, %d after", part, took, full, after)
			runtime.KeepAlive(f)
		})
	}
}

// Of the keys that share the overflow counter, all together are admitted what one key
// is.
func TestKeysThatShareACounterAreAdmittedWhatOneIs(t *testing.T) {
	t.Parallel()
	for _, p := range []ratelimit.Policy{
		{Algorithm: ratelimit.TokenBucket},
		{Algorithm: ratelimit.SlidingLog},
		{Algorithm: ratelimit.SlidingWindow},
		{Algorithm: ratelimit.FixedWindow},
	} {
		t.Run(string(p.Algorithm), func(t *testing.T) {
			t.Parallel()
			p.Limit, p.Window = 5, time.Minute
			f := newFlooded(t, p)
			f.fill()
			var admitted [1000]int64 // by key
			var total int64
			for range 10 {
				for i := range admitted {
					d := f.takeKey(f.gate, fmt.Append(nil, "shared", i))
					if !d.Degraded {
						t.Fatalf("a key without room: %+v", d)
					}
					if d.Allowed {
						admitted[i]++
						total++
					}
				}
				f.clock.Advance(time.Second) // 10 s in all: no counter has said its last
			}
			for i, n := range admitted {
				if n > p.Limit {
					t.Errorf("key %d: %d were admitted, want %d at most", i, n, p.Limit)
				}
			}
			if total != p.Limit {
				t.Errorf("%d were admitted, want %d", total, p.Limit)
			}
			f.checkKept("10 s later")
		})
	}
}

// While keys expire as fast as they come, each has a counter of its own, and none of
// those that are refused is dropped with them.
func TestFloodThatPassesIsCountedExactly(t *testing.T) {
	t.Parallel()
	for _, p := range []ratelimit.Policy{
		{Algorithm: ratelimit.TokenBucket},
		{Algorithm: ratelimit.SlidingLog},
		{Algorithm: ratelimit.SlidingWindow},
		{Algorithm: ratelimit.LeakyBucket},
	} {
		t.Run(string(p.Algorithm), func(t *testing.T) {
			t.Parallel()
			p.Limit, p.Window = 1, time.Second
			f := newFlooded(t, p)
			for i := range floodKeys() / 20 {
				f.clock.Advance(20 * time.Microsecond) // 50,000 keys in a window
				if d := f.take(); !d.Allowed || d.Degraded {
					t.Fatalf("key %d: %+v", i, d)
				}
				if d := f.takeKey(f.gate, f.key[:]); d.Allowed || d.Degraded {
					t.Fatalf("key %d, again: %+v", i, d)
				}
			}
			f.checkKept("after the flood")
		})
	}
}
