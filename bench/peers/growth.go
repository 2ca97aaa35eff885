package main

import (
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

const keyCount = 1_000_000

const (
	keyPrefix = "account-"
	keyDigits = "0123456789abcdef"
)

// writeKey makes key, which keyOf returned, that of number n.
func writeKey(key []byte, n uint32) {
	for i := range 8 {
		key[len(keyPrefix)+i] = keyDigits[n>>(28-4*i)&0xf]
	}
}

// keyOf returns the key of number n: 16 bytes.
func keyOf(n uint32) string {
	key := []byte(keyPrefix + "00000000")
	writeKey(key, n)
	return string(key)
}

// newKeys returns all keys, in an order that says nothing.
func newKeys() []string {
	keys := make([]string, keyCount)
	for i, n := range rand.Perm(keyCount) {
		keys[i] = keyOf(uint32(n))
	}
	return keys
}

// orderLen is how many calls there are before an order of keys is repeated.
const orderLen = 1 << 22

func uniformOrder() []uint32 {
	order := make([]uint32, orderLen)
	for i := range order {
		order[i] = rand.Uint32N(keyCount)
	}
	return order
}

// zipfOrder prefers few keys: one call of fourteen is for the first.
func zipfOrder() []uint32 {
	z := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.01, 1, keyCount-1)
	order := make([]uint32, orderLen)
	for i := range order {
		order[i] = uint32(z.Uint64())
	}
	return order
}

// growth is what it costs a limiter to come to know a million keys.
type growth struct {
	figure
	// Pause is the longest call in milliseconds: the least of all rounds, since what
	// else the machine does makes only longer ones.
	Pause float64 `json:"pause_ms"`
	// Collected is Pause in rounds in which the garbage collector runs.
	Collected float64 `json:"pause_collected_ms"`
}

// grow has allow see each key for the first time, and returns the time per key
// and the longest call. If the calls do not wait for others, that is less the time
// for which the system had the thread wait for a processor.
func grow(allow limiter, keys []string, waits bool) (perKey float64, pause time.Duration) {
	if !waits {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	}
	const few = 256 // keys between looks at the thread's time
	count, start := len(keys), time.Now()
	last := start
	for len(keys) > 0 {
		part := keys[:min(few, len(keys))]
		keys = keys[len(part):]
		began, running := last, threadTime()
		var longest time.Duration
		for _, key := range part {
			if !allow(key) {
				panic(surprise(true))
			}
			now := time.Now()
			longest = max(longest, now.Sub(last))
			last = now
		}
		if !waits {
			longest -= max(0, last.Sub(began)-(threadTime()-running))
		}
		pause = max(pause, longest)
	}
	return float64(last.Sub(start)) / float64(count), pause
}

// clockCost returns what grow spends on the clock, in ns per key.
func clockCost() float64 {
	perKey, _ := grow(func(string) bool { return true }, make([]string, keyCount), false)
	return perKey
}

// Rounds of growth, in the last of which the garbage collector runs.
const (
	growthRounds    = 10
	collectedRounds = 3
)

// measureGrowth measures the growth of the contestants that keep keys.
func (s settings) measureGrowth(r *result, all []contestant, keys []string) {
	sums := make([]series, len(all))
	limiter, _ := all[0].open(hot)
	unit := onOneKey(limiter, "", true)
	calls := calibrate(unit, s.slice)
	for round := range growthRounds + collectedRounds {
		start := time.Now()
		unit(calls)
		unitNS := float64(time.Since(start)) / float64(calls)
		clock := clockCost()
		for i, c := range all {
			if c.keys == noKeys {
				continue
			}
			s.at("first calls of a million keys: round %d of %d, %s", round+1, growthRounds+collectedRounds, c.name)
			allow, end := c.open(few)
			keys := keys
			if c.slow {
				keys = keys[:len(keys)/10]
			}
			runtime.GC()
			g := r.Peers[i].Growth
			if g == nil {
				g = &growth{Pause: math.MaxFloat64, Collected: math.MaxFloat64}
				r.Peers[i].Growth = g
			}
			if round < growthRounds {
				perKey, pause := grow(allow, keys, c.waits)
				g.Pause = min(g.Pause, pause.Seconds()*1e3)
				sums[i].add(perKey-clock, unitNS)
			} else {
				debug.SetGCPercent(100)
				_, pause := grow(allow, keys, c.waits)
				debug.SetGCPercent(-1)
				g.Collected = min(g.Collected, pause.Seconds()*1e3)
			}
			if end != nil {
				end()
			}
		}
	}
	for i, sum := range sums {
		if g := r.Peers[i].Growth; g != nil {
			g.figure = sum.figure()
		}
	}
}

// fill has allow see each key for the first time, as strings of their own, as those
// of requests are, and returns how many bytes of memory a key takes.
func fill(allow limiter, keys []string) float64 {
	before := heap()
	for _, key := range keys {
		if !allow(strings.Clone(key)) {
			panic(surprise(true))
		}
	}
	bytes := float64(heap() - before)
	runtime.KeepAlive(allow)
	return bytes / float64(len(keys))
}

// heap returns how many bytes are in use once the garbage is collected.
func heap() int64 {
	runtime.GC()
	return allocated()
}

// allocated returns how many bytes are in use, garbage included.
func allocated() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
