// Package ratelimittest helps to test code that uses package ratelimit: a Clock to
// set, a Recorder of decisions, assertions about gates and errors, and the suite that
// every ratelimit.Store must pass.
//
// A limiter in memory needs none of it: it runs in a bubble of testing/synctest, by the
// time of the bubble.
package ratelimittest
