// Peers compares the limiters of other projects with ours: the same policy, the same
// keys, one table. The contestants take turns in short rounds, so that what else the
// machine does hits all alike; the figures are medians of the ratios to one
// golang.org/x/time/rate.Limiter in the same round, with half the distance of the
// quartiles. The garbage collector is off while the clock runs, and runs between the
// rounds, so that nobody pays for what another leaves behind; the allocations are in
// columns of their own. It exits with status 1 if a target is missed.
//
// Gubernator takes part if the program is built with -tags gubernator.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"time"
)

func main() {
	rounds := flag.Int("rounds", 30, "how often calls are measured, at least 10")
	slice := flag.Duration("slice", 10*time.Millisecond, "how long a case runs in a round")
	asJSON := flag.Bool("json", false, "print JSON instead of tables")
	flag.Parse()
	if *rounds < 10 || *slice <= 0 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	r := measure(settings{rounds: *rounds, slice: *slice, progress: newProgress(os.Stderr)}, contestants())
	write := r.print
	if *asJSON {
		write = r.printJSON
	}
	if err := write(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(2)
	}
	if !r.met() {
		os.Exit(1)
	}
}

// measure measures everything.
func measure(s settings, all []contestant) *result {
	started := time.Now()
	debug.SetGCPercent(-1)
	r := newResult(s, all)
	all = slices.DeleteFunc(all, func(c contestant) bool { return c.open == nil })
	keys := newKeys()
	s.measureOneKey(r, all, keys[0])
	s.measureMany(r, all, keys)
	s.measureGrowth(r, all, keys)
	r.Own = ownCases()
	s.measureOwn(r.Own)
	s.done()
	r.Seconds = time.Since(started).Seconds()
	r.judge()
	return r
}

// open opens a limiter of each contestant, and returns what op makes of them, and
// what ends them.
func open(all []contestant, p policy, op func(i int, allow limiter) operation) (ops []operation, end func()) {
	var ends []func()
	for i, c := range all {
		allow, end := c.open(p)
		ops = append(ops, op(i, allow))
		if end != nil {
			ends = append(ends, end)
		}
	}
	return ops, func() {
		for _, end := range ends {
			end()
		}
	}
}

// measureOneKey measures what has one key.
func (s settings) measureOneKey(r *result, all []contestant, key string) {
	ops, end := open(all, hot, func(_ int, allow limiter) operation { return onOneKey(allow, key, true) })
	for i, f := range s.compare("one key", ops) {
		r.Peers[i].Hot, r.Peers[i].Allocs = f, new(allocations(ops[i]))
	}
	unit := ops[0]
	end()

	ops, end = open(all, once, func(i int, allow limiter) operation {
		if i == 0 {
			return unit // which is admitted
		}
		if all[i].neverRefuses {
			return nil
		}
		allow(key)
		return onOneKey(allow, key, false)
	})
	for i, f := range s.compare("one key, refused", ops) {
		if i > 0 && f != nil {
			r.Peers[i].Refused, r.Peers[i].RefusedAllocs = f, new(allocations(ops[i]))
		}
	}
	end()

	before := runtime.GOMAXPROCS(0)
	for _, processors := range []int{1, 2} {
		runtime.GOMAXPROCS(processors)
		ops, end = open(all, hot, func(_ int, allow limiter) operation { return inParallel(onOneKey(allow, key, true)) })
		for i, f := range s.compare(fmt.Sprintf("one key in parallel, GOMAXPROCS=%d", processors), ops) {
			r.Peers[i].Parallel[processors-1] = f
		}
		end()
	}
	runtime.GOMAXPROCS(before)
}

// measureMany measures what has a million keys that are known.
func (s settings) measureMany(r *result, all []contestant, keys []string) {
	var limiters []limiter
	_, end := open(all, wide, func(i int, allow limiter) operation {
		s.at("a million keys: %s", all[i].name)
		if all[i].keys != noKeys {
			r.Peers[i].BytesPerKey = new(fill(allow, keys))
		}
		limiters = append(limiters, allow)
		return nil
	})
	inOrder := func(what string, order []uint32) []*figure {
		var ops []operation
		for i, allow := range limiters {
			if i == 0 { // it looks at no key, and would be used up
				unit, _ := all[0].open(hot)
				ops = append(ops, onOneKey(unit, "", true))
			} else {
				ops = append(ops, onKeys(allow, order))
			}
		}
		for i, op := range ops {
			s.at("%s: waking %d of %d", what, i+1, len(ops))
			wake(op)
		}
		return s.compare(what, ops)
	}
	for i, f := range inOrder("a million keys, uniform", uniformOrder()) {
		r.Peers[i].Uniform = f
	}
	for i, f := range inOrder("a million keys, Zipf", zipfOrder()) {
		r.Peers[i].Zipf = f
	}
	end()
}
