// Package ratelimittest helps to test code that uses package ratelimit: a Clock to
// set, assertions about gates, and the suite that every ratelimit.Store must pass.
package ratelimittest
