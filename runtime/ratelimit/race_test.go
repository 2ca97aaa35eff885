//go:build race

package ratelimit_test

// raceEnabled is whether the race detector is on, with which calls take ten times as long.
const raceEnabled = true
