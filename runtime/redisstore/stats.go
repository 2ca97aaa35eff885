package redisstore

import (
	"cmp"
	"slices"
	"time"
)

// Stats are what a Store has done so far, for metrics.
type Stats struct {
	// Answers is the number of calls that a server decided.
	Answers int64
	// Remembered is the number of calls that were refused without the server, which
	// had refused them before. They are not among the Answers.
	Remembered int64
	// Leased is the number of calls that were admitted without the server, from units that
	// WithLease took. They are not among the Answers.
	Leased int64
	// Failures is the number of those that ended in an Error, by class. All classes
	// are there.
	Failures map[Class]int64
	// InFlight is the number of commands under way, those included that nobody waits
	// for any more.
	InFlight int
	// Servers are the servers that calls went to, by address.
	Servers []ServerStats
}

// ServerStats are about one server.
type ServerStats struct {
	// Server is its address. Of a cluster or ring, what could not be put down to one
	// of its nodes has the addresses that the client was made with.
	Server string
	// Open is set while the server is not asked, since calls before have failed.
	Open bool
	// Since is the time of the last change of Open, or when the server was first
	// asked.
	Since time.Time
}

// forgotten is for how long an open breaker is reported that no call came to: the
// server may have left the cluster, and is then not tried again.
const forgotten = time.Minute

// Stats returns what s has done so far.
func (s *Store) Stats() Stats {
	stats := Stats{
		Answers:  s.answers.Load(),
		Failures: make(map[Class]int64),
		InFlight: int(s.inFlight.Load()),
	}
	if s.refusals != nil {
		stats.Remembered = s.refusals.hits.Load()
	}
	if s.leases != nil {
		stats.Leased = s.leases.hits.Load()
	}
	for class, n := range s.failures {
		stats.Failures[class] = n.Load()
	}
	breakers := []*breaker{s.whole}
	s.nodesMu.Lock()
	for addr, b := range s.nodes {
		if b.isForgotten() {
			delete(s.nodes, addr)
			continue
		}
		breakers = append(breakers, b)
	}
	s.nodesMu.Unlock()
	for _, b := range breakers {
		b.mu.Lock()
		stats.Servers = append(stats.Servers, ServerStats{Server: b.server, Open: b.open.Load(), Since: b.since})
		b.mu.Unlock()
	}
	slices.SortFunc(stats.Servers, func(a, b ServerStats) int { return cmp.Compare(a.Server, b.Server) })
	return stats
}

func (b *breaker) isForgotten() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open.Load() && time.Since(b.asked) > forgotten
}
