package ratelimit

import "time"

// Clock tells a Limiter's in-memory counters the time. Implementations must be
// safe for concurrent use. The default is the monotonic clock of the process.
type Clock interface {
	Now() time.Time
}
