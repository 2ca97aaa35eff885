//go:build !linux

package main

import "time"

var start = time.Now()

const threadTimeIsKnown = false

// threadTime returns the time of day's progress: the time for which the system had
// the thread wait for a processor is not known here, and counts.
func threadTime() time.Duration { return time.Since(start) }
