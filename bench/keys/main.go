// Keys measures what it costs to compute a key: by the generated code, by expr's
// virtual machine (the expression compiled once against the types of its
// environment, the machine and the environment reused), and by fmt.Sprintf, which is
// what people write by hand. The three take turns in short rounds, so that what else
// the machine does hits all alike; the figures are medians over the rounds, also the
// ratios, which are taken within each round. It exits with status 1 if a target is
// missed.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"

	"github.com/ratelimitgen/ratelimitgen/bench/report"
)

// The most that the generated code may take, as a part of the others' time.
const (
	targetVM      = 1.0 / 8
	targetSprintf = 1.0 / 4
)

// environment is what expr's machine evaluates against.
type environment struct {
	Req *Request `expr:"req"`
}

// measured is one key in three ways. The results of the machine and of Sprintf are
// strings; both must say what the key says, though a tuple is encoded otherwise.
type measured struct {
	name      string
	generated func(req *Request, n int) (length int) // n times, as a wrapper calls it
	key       func(req *Request) string
	source    string // for expr
	sprintf   func(req *Request) string
}

var keys = []measured{
	{
		"req.UserID", func(req *Request, n int) (length int) {
			for range n {
				var buf [64]byte
				length += len(serviceFieldKey(buf[:0], req))
			}
			return length
		},
		func(req *Request) string { return string(serviceFieldKey([]byte{}, req)) },
		"req.UserID",
		//lint:ignore S1025 it is what is measured
		func(req *Request) string { return fmt.Sprintf("%s", req.UserID) },
	},
	{
		"[req.UserID, req.Tenant.Name]", func(req *Request, n int) (length int) {
			for range n {
				var buf [64]byte
				length += len(serviceTupleKey(buf[:0], req))
			}
			return length
		},
		func(req *Request) string { return string(serviceTupleKey([]byte{}, req)) },
		`req.UserID + "|" + req.Tenant.Name`,
		func(req *Request) string { return fmt.Sprintf("%s|%s", req.UserID, req.Tenant.Name) },
	},
	{
		`lower(req.Email) + "|" + string(req.Shard % 16)`, func(req *Request, n int) (length int) {
			for range n {
				var buf [64]byte
				length += len(serviceJoinedKey(buf[:0], req))
			}
			return length
		},
		func(req *Request) string { return string(serviceJoinedKey([]byte{}, req)) },
		`lower(req.Email) + "|" + string(req.Shard % 16)`,
		func(req *Request) string { return fmt.Sprintf("%s|%d", strings.ToLower(req.Email), req.Shard%16) },
	},
}

func main() {
	rounds := flag.Int("rounds", 75, "how often each case is measured")
	slice := flag.Duration("slice", 5*time.Millisecond, "how long a case runs in a round")
	flag.Parse()
	if *rounds < 1 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	fmt.Printf("Keys: one goroutine, medians of %d rounds of %v, %s, %s/%s\n\n",
		*rounds, *slice, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	table := report.New("key", "generated, ns", "allocs", "target", "expr, ns", "ratio", "target", "Sprintf, ns", "ratio", "target")
	met := true
	for _, k := range keys {
		ok, err := k.measure(table, *rounds, *slice)
		if err != nil {
			fmt.Fprintln(os.Stderr, "keys:", err)
			os.Exit(2)
		}
		met = met && ok
	}
	if err := table.Write(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "keys:", err)
		os.Exit(2)
	}
	if !met {
		os.Exit(1)
	}
}

// measure adds a row and reports whether its targets are met.
func (k measured) measure(table *report.Table, rounds int, slice time.Duration) (bool, error) {
	req := &Request{UserID: "user-12345678", Email: "Ann.Example@Example.org", Shard: 35, Tenant: &Tenant{Name: "acme"}}
	program, err := expr.Compile(k.source, expr.Env(environment{}))
	if err != nil {
		return false, err
	}
	var machine vm.VM
	env := environment{req}
	run := func() (any, error) { return machine.Run(program, env) }
	byMachine, err := run()
	if err != nil {
		return false, err
	}
	if got := k.key(req); got != byMachine || got != k.sprintf(req) {
		return false, fmt.Errorf("%s: %q by the generated code, %q by expr, %q by Sprintf", k.name, got, byMachine, k.sprintf(req))
	}
	length := 0 // is used, so that nothing can be left out
	ops := []func(n int){
		func(n int) { length += k.generated(req, n) },
		func(n int) {
			for range n {
				if _, err := run(); err != nil {
					panic(err)
				}
			}
		},
		func(n int) {
			for range n {
				length += len(k.sprintf(req))
			}
		},
	}
	calls, times := make([]int, len(ops)), make([][]float64, len(ops))
	for i, op := range ops {
		calls[i] = calibrate(op, slice)
	}
	var ratios [2][]float64
	for range rounds {
		for i, op := range ops {
			start := time.Now()
			op(calls[i])
			times[i] = append(times[i], float64(time.Since(start))/float64(calls[i]))
			if i > 0 {
				last := len(times[0]) - 1
				ratios[i-1] = append(ratios[i-1], times[0][last]/times[i][last])
			}
		}
	}
	allocs := testing.AllocsPerRun(1000, func() { k.generated(req, 1) })
	overVM, overSprintf := report.Median(ratios[0]), report.Median(ratios[1])
	ns := func(i int) string { return fmt.Sprintf("%.1f", report.Median(times[i])) }
	table.Add(k.name, ns(0), fmt.Sprint(allocs), report.AtMost(allocs, 0),
		ns(1), fmt.Sprintf("%.3f", overVM), report.AtMost(overVM, targetVM),
		ns(2), fmt.Sprintf("%.3f", overSprintf), report.AtMost(overSprintf, targetSprintf))
	if length == 0 {
		return false, fmt.Errorf("%s: the key is empty", k.name)
	}
	return allocs == 0 && overVM <= targetVM && overSprintf <= targetSprintf, nil
}

// calibrate returns how many calls of op take about d.
func calibrate(op func(int), d time.Duration) int {
	for n := 100; ; n *= 2 {
		start := time.Now()
		op(n)
		if took := time.Since(start); took > d/8 {
			return max(1, int(float64(n)*float64(d)/float64(took)))
		}
	}
}
