package main

import (
	"slices"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/ratelimitgen/ratelimitgen/bench/report"
)

// figure is what was measured: a time per call, and its ratio to that of the unit in
// the same round, of which Low and High are the quartiles.
type figure struct {
	NS    float64 `json:"ns"`
	Ratio float64 `json:"ratio"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// series collects a figure's rounds.
type series struct{ ns, ratios []float64 }

func (s *series) add(ns, unit float64) {
	s.ns, s.ratios = append(s.ns, ns), append(s.ratios, ns/unit)
}

func (s *series) figure() figure {
	sorted := slices.Sorted(slices.Values(s.ratios))
	return figure{report.Median(s.ns), report.Median(sorted), sorted[len(sorted)/4], sorted[len(sorted)*3/4]}
}

// operation makes n calls.
type operation func(n int)

// settings say how long a run takes.
type settings struct {
	rounds int
	slice  time.Duration
	progress
}

// mostGarbage is how many bytes the calls may leave behind before the collector runs,
// which is off while the clock runs.
const mostGarbage = 1 << 30

// compare measures operations in turns: in each round every one runs for a slice, of
// which the first is the unit. An operation that is nil is left out.
func (s settings) compare(what string, ops []operation) []*figure {
	calls, all := make([]int, len(ops)), make([]series, len(ops))
	for i, op := range ops {
		if op != nil {
			s.at("%s: trial %d of %d", what, i+1, len(ops))
			calls[i] = calibrate(op, s.slice)
		}
	}
	garbage := heap()
	for round := range s.rounds {
		s.at("%s: round %d of %d", what, round+1, s.rounds)
		if allocated()-garbage > mostGarbage {
			garbage = heap()
		}
		var unit float64
		for i, op := range ops {
			if op == nil {
				continue
			}
			op(max(1, calls[i]/20)) // what the one before took from the caches
			start := time.Now()
			op(calls[i])
			ns := float64(time.Since(start)) / float64(calls[i])
			if i == 0 {
				unit = ns
			}
			all[i].add(ns, unit)
		}
	}
	figures := make([]*figure, len(ops))
	for i := range ops {
		if ops[i] != nil {
			f := all[i].figure()
			figures[i] = &f
		}
	}
	return figures
}

// calibrate returns how many calls of op take about d.
func calibrate(op operation, d time.Duration) int {
	for n := 100; ; n *= 2 {
		start := time.Now()
		op(n)
		if took := time.Since(start); took > d/8 {
			return max(1, int(float64(n)*float64(d)/float64(took)))
		}
	}
}

// wake runs op for a while. What lay idle while others came to know their keys is slow at
// first, where the system took its memory for unused meanwhile.
func wake(op operation) {
	for start := time.Now(); time.Since(start) < 500*time.Millisecond; {
		op(1000)
	}
}

// onOneKey calls allow for one key, and panics if what comes back is not admitted.
func onOneKey(allow limiter, key string, admitted bool) operation {
	return func(n int) {
		for range n {
			if allow(key) != admitted {
				panic(surprise(admitted))
			}
		}
	}
}

// onKeys calls allow for the keys of the given numbers, and goes on where it left off.
// It writes each key into a buffer, so that it is at hand as that of a request is.
func onKeys(allow limiter, order []uint32) operation {
	at := 0
	key := []byte(keyOf(0))
	return func(n int) {
		for range n {
			if at++; at == len(order) {
				at = 0
			}
			writeKey(key, order[at])
			if !allow(unsafe.String(&key[0], len(key))) {
				panic(surprise(true))
			}
		}
	}
}

func surprise(admitted bool) string {
	if admitted {
		return "a call was refused that has to be admitted"
	}
	return "a call was admitted that has to be refused"
}

// goroutines is how many call at the same time in the parallel measurements.
const goroutines = 4

// inParallel divides the calls among goroutines.
func inParallel(op operation) operation {
	return func(n int) {
		var all sync.WaitGroup
		for range goroutines {
			all.Go(func() { op(n/goroutines + 1) })
		}
		all.Wait()
	}
}

// allocations returns how many an operation makes in a call.
func allocations(op operation) float64 {
	return testing.AllocsPerRun(1000, func() { op(1) })
}
