package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
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

// measure runs a program in dir.
func measure(ctx context.Context, dir, name string, args ...string) (usage, error) {
	var out bytes.Buffer
	cmd := newCommand(ctx, dir, name, args...)
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
		return usage{}, fmt.Errorf("%s: %w\n%s", filepath.Base(name), err, out.String())
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
