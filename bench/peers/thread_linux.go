package main

import (
	"time"

	"golang.org/x/sys/unix"
)

const threadTimeIsKnown = true

// threadTime returns how long the calling thread has been running, which excludes
// the time for which the system had it wait for a processor.
func threadTime() time.Duration {
	var t unix.Timespec
	must(unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t))
	return time.Duration(t.Nano())
}
