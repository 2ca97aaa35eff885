package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/ratelimitgen/ratelimitgen/bench/report"
)

// usage is what a run of a program used.
type usage struct {
	cpu, wall float64 // seconds
	// own is the peak resident memory of the program's process; children is that
	// of the largest process that it started.
	own, children memory
}

// memory is in bytes; 0 if not known.
type memory float64

func (m memory) String() string {
	if m == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f", float64(m)/1e6)
}

// measure runs a program.
func measure(cmd *exec.Cmd) (usage, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return usage{}, err
	}
	stop, peaks := make(chan struct{}), make(chan usage)
	go func() { peaks <- watch(cmd.Process.Pid, stop) }()
	err := cmd.Wait()
	wall := time.Since(start)
	close(stop)
	u := <-peaks
	if err != nil {
		return usage{}, fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, out.String())
	}
	u.wall = wall.Seconds()
	// The kernel adds up what the process and all that it waited for used.
	u.cpu = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	return u, nil
}

// median takes the median of each figure.
func median(runs []usage) usage {
	of := func(figure func(usage) float64) float64 {
		var values []float64
		for _, u := range runs {
			values = append(values, figure(u))
		}
		return report.Median(values)
	}
	return usage{
		cpu:      of(func(u usage) float64 { return u.cpu }),
		wall:     of(func(u usage) float64 { return u.wall }),
		own:      memory(of(func(u usage) float64 { return float64(u.own) })),
		children: memory(of(func(u usage) float64 { return float64(u.children) })),
	}
}

// and returns what two programs use one after the other.
func (u usage) and(v usage) usage {
	return usage{cpu: u.cpu + v.cpu, wall: u.wall + v.wall, own: max(u.own, v.own), children: max(u.children, v.children)}
}

// row is a program in a table.
type row struct {
	name string
	usage
}

// printUsage prints a table, and an empty line behind it.
func printUsage(rows ...row) error {
	table := report.New("program", "CPU s", "wall s", "own peak MB", "children's peak MB")
	for _, r := range rows {
		table.Add(r.name, fmt.Sprintf("%.2f", r.cpu), fmt.Sprintf("%.2f", r.wall), r.own.String(), r.children.String())
	}
	if err := table.Write(os.Stdout); err != nil {
		return err
	}
	fmt.Println()
	return nil
}

// load says how busy the machine is.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) == 0 {
		return "load not known"
	}
	return "load " + fields[0]
}
