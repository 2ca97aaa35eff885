package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// Block implements [ratelimit.Blocker]. What the key has counted stays. A process with a version of this package without Block
// takes a blocked key for foreign content, and has on-error decide.
func (s *Store) Block(ctx context.Context, p *ratelimit.Policy, key string, d time.Duration) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	if d < 0 || d > ratelimit.MaxWindow {
		return fmt.Errorf("redisstore: a block of %v is not between 0 and %v", d, time.Duration(ratelimit.MaxWindow))
	}
	defer s.refusals.forget(p.ID, key, false) // also if it is not known whether it was done
	defer s.leases.forget(p.ID, key)
	// Rounded up, so that no block is none.
	µs := int64((d + time.Microsecond - 1) / time.Microsecond)
	return s.ask(ctx, &command{script: s.scripts.block, keys: []string{s.key(p, key)}, args: []any{µs}})
}
