package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"runtime"

	"github.com/ratelimitgen/ratelimitgen/bench/report"
)

// result is all that a run has found.
type result struct {
	Go         string   `json:"go"`
	OS         string   `json:"os"`
	Arch       string   `json:"arch"`
	Processors int      `json:"processors"`
	Rounds     int      `json:"rounds"`
	Slice      string   `json:"slice"`
	Seconds    float64  `json:"seconds"`
	Peers      []*row   `json:"contestants"`
	Own        []*own   `json:"own"`
	Targets    []target `json:"targets"`
}

// row is what was measured of a contestant; nil for what was not.
type row struct {
	Name     string  `json:"name"`
	Keys     string  `json:"keys"`
	Note     string  `json:"note"`
	Measured bool    `json:"measured"` // in this run
	Hot      *figure `json:"one_key,omitempty"`
	// Parallel has the figures with one processor, and with two.
	Parallel      [2]*figure `json:"one_key_parallel"`
	Refused       *figure    `json:"refused,omitempty"`
	Uniform       *figure    `json:"million_uniform,omitempty"`
	Zipf          *figure    `json:"million_zipf,omitempty"`
	Growth        *growth    `json:"first_call,omitempty"`
	BytesPerKey   *float64   `json:"bytes_per_key,omitempty"`
	Allocs        *float64   `json:"allocs,omitempty"`
	RefusedAllocs *float64   `json:"refused_allocs,omitempty"`

	ours bool
}

// target is a figure that is to be at most Limit.
type target struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Limit float64 `json:"limit"`
	// Of says whose figure Limit is, if it is that of a contestant.
	Of  string `json:"of,omitempty"`
	Met bool   `json:"met"`
}

// newResult returns a result with a row for each contestant: first those that are
// measured, in their order.
func newResult(s settings, all []contestant) *result {
	r := &result{
		Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, Processors: runtime.NumCPU(),
		Rounds: s.rounds, Slice: s.slice.String(),
	}
	var missing []*row
	for _, c := range all {
		x := &row{Name: c.name, Keys: c.keys, Note: c.note, Measured: c.open != nil, ours: c.ours}
		if x.Measured {
			r.Peers = append(r.Peers, x)
		} else {
			missing = append(missing, x)
		}
	}
	for _, e := range elsewhere {
		missing = append(missing, &row{Name: e.name, Keys: e.keys, Hot: &figure{Ratio: e.ratio, Low: e.ratio, High: e.ratio},
			Note: "not measured here: the ratio is of another machine"})
	}
	r.Peers = append(r.Peers, missing...)
	return r
}

// The names of rows that targets speak of.
const (
	nameOfOurs     = "ratelimitgen, Gate.Allow"
	nameOfMutexMap = "x/time/rate, mutex map"
	nameOfWrapper  = "generated wrapper"
)

func (r *result) row(name string) *row {
	for _, x := range r.Peers {
		if x.Name == name {
			return x
		}
	}
	panic("no contestant is called " + name)
}

// judge fills in the targets.
func (r *result) judge() {
	ours, byHand := r.row(nameOfOurs), r.row(nameOfMutexMap)
	add := func(name string, value, limit float64, of string) {
		r.Targets = append(r.Targets, target{name, value, limit, of, value <= limit})
	}
	ahead := func(name string, of func(*row) *figure, counts func(*row) bool) {
		best, whose := math.MaxFloat64, ""
		for _, x := range r.Peers {
			if f := of(x); !x.ours && x.Keys != noKeys && counts(x) && f != nil && f.Ratio < best {
				best, whose = f.Ratio, x.Name
			}
		}
		add(name, of(ours).Ratio, best, whose)
	}
	exact := func(x *row) bool { return x.Keys == exactly }
	hot := func(x *row) *figure { return x.Hot }
	add("one key, of x/time/rate", ours.Hot.Ratio, 0.55, "")
	ahead("one key, ahead of all that compare keys", hot, exact)
	ahead("one key, two processors, ahead of all that compare keys", func(x *row) *figure { return x.Parallel[1] }, exact)
	ahead("a million keys, uniform, ahead of all", func(x *row) *figure { return x.Uniform }, func(*row) bool { return true })
	ahead("first call of a key, ahead of all that keep keys", func(x *row) *figure {
		if x.Growth == nil {
			return nil
		}
		return &x.Growth.figure
	}, exact)
	add("longest call of a million first ones, ms", ours.Growth.Pause, 2, "")
	add("bytes per key, of those of the mutex map", *ours.BytesPerKey / *byHand.BytesPerKey, 0.45, "")
	add("allocations of an Allow that is admitted", *ours.Allocs, 0, "")
	add("allocations of an Allow that is refused", *ours.RefusedAllocs, 1, "")
	for _, c := range r.Own {
		if c.Target > 0 {
			add(c.Name+", of "+c.Base, c.Ratio, c.Target, "")
		}
		if c.Name == nameOfWrapper {
			add("what the wrapper adds to Allow, ns", c.NS-c.NS/c.Ratio, 5, "")
		}
	}
}

// met reports whether all targets are.
func (r *result) met() bool {
	for _, t := range r.Targets {
		if !t.Met {
			return false
		}
	}
	return true
}

func (r *result) printJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "\t")
	return e.Encode(r)
}

func (r *result) print(w io.Writer) error {
	fmt.Fprintf(w, "Peers, in memory: %d rounds of %s, %s, %s/%s, %d processors, %.0f s\n",
		r.Rounds, r.Slice, r.Go, r.OS, r.Arch, r.Processors, r.Seconds)
	fmt.Fprintf(w, "Times are ratios to one rate.Limiter in the same round (%.0f ns): medians, ± half the distance of the quartiles.\n\n",
		r.Peers[0].Hot.NS)
	for i, table := range []*report.Table{r.contestants(), r.own(), r.targets(), r.notes()} {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := table.Write(w); err != nil {
			return err
		}
	}
	return nil
}

func (r *result) contestants() *report.Table {
	table := report.New("contestant", "keys", "one key", "4 callers, 1 proc", "4 callers, 2 procs", "refused",
		"1M uniform", "1M Zipf", "first call", "ns", "longest, ms", "with GC", "B/key", "allocs", "refused")
	for _, x := range r.Peers {
		first, ns, longest, collected := "-", "-", "-", "-"
		if g := x.Growth; g != nil {
			first, ns = g.figure.String(), fmt.Sprintf("%.0f", g.NS)
			longest, collected = fmt.Sprintf("%.2f", g.Pause), fmt.Sprintf("%.2f", g.Collected)
		}
		table.Add(x.Name, x.Keys, x.Hot.String(), x.Parallel[0].String(), x.Parallel[1].String(), x.Refused.String(),
			x.Uniform.String(), x.Zipf.String(), first, ns, longest, collected,
			number(x.BytesPerKey), number(x.Allocs), number(x.RefusedAllocs))
	}
	return table
}

func (f *figure) String() string {
	switch {
	case f == nil:
		return "-"
	case f.NS == 0: // of another machine
		return fmt.Sprintf("(%.2f)", f.Ratio)
	}
	return fmt.Sprintf("%.2f ±%.2f", f.Ratio, (f.High-f.Low)/2)
}

func number(x *float64) string {
	if x == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f", *x)
}

func (r *result) own() *report.Table {
	table := report.New("ratelimitgen", "compared with", "ns", "ratio")
	for _, c := range r.Own {
		table.Add(c.Name, c.Base, fmt.Sprintf("%.0f", c.NS), c.figure.String())
	}
	return table
}

func (r *result) targets() *report.Table {
	table := report.New("target", "", "at most", "")
	for _, t := range r.Targets {
		verdict := "met"
		if !t.Met {
			verdict = "MISSED"
		}
		limit := fmt.Sprintf("%.2f", t.Limit)
		if t.Of != "" {
			limit += " (" + t.Of + ")"
		}
		table.Add(t.Name, fmt.Sprintf("%.2f", t.Value), limit, verdict)
	}
	return table
}

func (r *result) notes() *report.Table {
	table := report.New("how they count")
	for _, x := range r.Peers {
		table.Add(x.Name + ": " + x.Note)
	}
	return table
}
