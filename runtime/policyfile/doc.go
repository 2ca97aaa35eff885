// Package policyfile overrides the limits of a running Limiter from a YAML file.
//
// A directive in the code says what a method's limit is. A File says what it is here
// and now, by the name of the policy (ratelimit.Policy.ID), without a new build:
//
//	defaults:
//	  on-error: allow
//	limits:
//	  login:
//	    max: 100
//	    window: 1m
//
// Load and Parse read a file and report everything that is wrong with it, each problem
// with its place. Watch applies a file to a Limiter and goes on looking at it: what
// changes in the file is in force at the next decision, counters are kept, and a file
// that is not valid changes nothing. A Binding does the same without a file system.
//
// Whatever is applied is applied whole or not at all, and what a file no longer says
// goes back to what was in force before. Schema describes the files to editors.
package policyfile
