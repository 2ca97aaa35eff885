package redisstore

import (
	"log/slog"
	"time"
)

// Option changes a Store that is being made.
type Option func(*Store)

// WithPrefix begins every key with prefix in place of DefaultPrefix. Stores share
// their counters iff they share server and prefix.
func WithPrefix(prefix string) Option {
	return func(s *Store) { s.prefix = prefix }
}

// WithHashes keeps what is counted of a key by all policies in one hash, in place of a
// string for each policy: see Keys above. Where calls have three policies with the same
// key, the server takes a fifth less time for each call and half of the memory for each
// key; where they have one, it takes up to a twentieth more time. Decisions are the same.
// Only where the server's clock is set back, or an update makes a window longer, may what
// was over count again that another policy has kept in the hash, which admits less.
//
// All processes that share limits need it, or none of them: with and without it they count
// apart, and together admit up to twice a limit. So does a deployment that goes over to
// it, until the windows that were begun are over.
//
// The server's user needs the commands HGET, HMGET, HSET, HDEL, PTTL and PEXPIRE in place
// of GET, SET, DEL and those that make decisions quick.
func WithHashes() Option {
	return func(s *Store) { s.layout, s.scripts = inHashes, hashScripts() }
}

// WithTimeout bounds the time that a call waits for an answer; the deadline of its
// context does too. The default is DefaultTimeout, also for values that are not above 0.
func WithTimeout(d time.Duration) Option {
	return func(s *Store) {
		if d > 0 {
			s.timeout = d
		}
	}
}

// WithMaxInFlight bounds the number of commands that are under way at a time; a call
// that finds as many ends in an error at once. A command whose caller has left at its
// deadline is under way until the client gives it up: see ReadTimeout and
// ContextTimeoutEnabled of its options. The default is DefaultMaxInFlight, also for
// values below 1.
func WithMaxInFlight(n int) Option {
	return func(s *Store) {
		if n > 0 {
			s.maxInFlight = int64(n)
		}
	}
}

// WithBreaker sets after how many failures in a row, with no answer in between, the
// server is not asked any more, but for one call at a time to try it: 100 ms later,
// then after twice as long each time, and at last every second. The first answer ends
// that. Of a cluster or ring, each node is a server of its own.
//
// Failures are those of class Timeout, Unreachable, Malformed and Refused, but for what
// is refused for the sake of its keys. Calls that their callers cancel do not count,
// nor do those that had less than a tenth of the timeout.
//
// The default is DefaultBreaker, also for values below 1.
func WithBreaker(n int) Option {
	return func(s *Store) {
		if n > 0 {
			s.threshold = int64(n)
		}
	}
}

// WithPipelines bounds the number of round trips to a server that are under way at a
// time: calls that come while there are n wait until one of them ends, and are then sent
// together, in the order in which they came. Nothing waits for more calls to come, unless
// WithLinger says so, and where there are no more than n at a time, nothing changes. A
// call then costs both sides a fraction of what it costs by itself, and takes up to the
// time of two round trips.
//
// The default is that calls do not wait for others, also for values below 1.
func WithPipelines(n int) Option {
	return func(s *Store) { s.pipelines = max(int64(n), 0) }
}

// WithLinger has calls wait for others, for d at most, while they are fewer than each of
// the round trips under way has, though one more may be made: see WithPipelines, with n
// above 1. So all have about as many calls, and under load the server and the process are
// busy at the same time. Where there are no more than n calls at a time, none waits.
//
// The default is that calls do not wait where a round trip may be made, also for values
// below 1.
func WithLinger(d time.Duration) Option {
	return func(s *Store) { s.linger = max(d, 0) }
}

// WithLogger has the Store log to l in place of slog.Default. It logs one line when it
// ceases to ask a server, at level Warn, and one when that answers again, at Info.
// They name the server and the cause, and no keys.
func WithLogger(l *slog.Logger) Option {
	return func(s *Store) { s.logger = l }
}

// WithRefusalMemory sets how many refusals the Store remembers, or about so many: a call
// that was refused, and would be refused again whatever others do, is answered without
// the server until its RetryAfter, and for a second at most. So is the same call only,
// with the same keys and costs. What is changed by this Store, or by an update of the
// limiter's, is seen at once, and what another process changes, within the second. See
// Stats.Remembered.
//
// The default is DefaultRefusalMemory. Below 1, all calls are sent to the server.
func WithRefusalMemory(entries int) Option {
	return func(s *Store) { s.refusals = newRefusals(entries) }
}
