// Package redisstore keeps the counters of a [ratelimit.Limiter] in Redis, so that
// all processes that use one server share their limits:
//
//	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
//	limiter := ratelimit.New(ratelimit.WithStore("", redisstore.New(client)))
//
// The client is any [redis.UniversalClient]: of a single server, Sentinel, Cluster or
// Ring. The server needs nothing that Redis 6.2 and Valkey lack. A decision is one
// EVALSHA, however many policies it concerns, and takes its time from the server, so
// the clocks of the clients do not matter. It supports all policies but those of custom
// algorithms. The server's user needs the commands
// EVALSHA, EVAL, GET, SET, TIME and DEL, and the keys under the prefix.
//
// # Keys
//
// Each policy keeps one string for each of its keys, at
//
//	<prefix>{<key>}<policy>:<form>
//
// The form is one of these. What a string holds is told by its first byte, and a form
// has the same states in all versions of this package that know it.
//
//	log, fixed, bucket       a sliding log, a fixed window and a token bucket, also if
//	                         each call brings its limit: 11 bytes and up to 9 for each
//	                         admitted call (6 where the window is between 17 seconds and
//	                         71 minutes), 12 bytes, and 30
//	log+, fixed+, bucket+    the same with a lock, count, a cost after the call, or a
//	                         bucket that begins without all of its tokens: 20 bytes and
//	                         14 for each admitted call, 27, and 48
//	aligned                  a fixed window on the calendar: 34 bytes
//	interval, warm           a token bucket that refills by the interval, 48 bytes, and
//	                         one with a warmup, 55
//	sliding                  a sliding window: 41 bytes and 4 for each part, and one more
//	leaky                    41 bytes, and 14 for each place given back out of turn
//	concurrency, quota       20 and 27 bytes
//
// A lock takes 14 bytes more, and each call that has not ended, or of which nothing was
// given back, 19, or 33 in a bucket. Of those with count and in a leaky bucket, 4096
// calls are remembered; what older ones were charged cannot be given back. Places are
// never forgotten, and a decision about them takes the longer the more are taken.
//
// In the names, the bytes that are not printable ASCII, and '%', '{' and '}', written as %XX
// in key and policy, so that no key reaches another's counter or cluster slot. The
// counter that all calls share is at {%}. A policy whose form is changed
// begins anew, and one whose limit, window or burst is changed keeps what was
// counted: the next decision is made as if the new values had held since the last
// call that was admitted.
//
// A string is written together with its time to live, which ends when the policy
// would decide as it does without it. Nothing is written for a call that is
// refused, except where the server's clock was set back by more than a window,
// which moves what is recorded with it, where the refusal locks the key, and where a
// bucket that is not full begins to fill.
//
// The windows of a calendar come with the call, and the server's time chooses among
// them: that of the client's time, the one before it and the two after it. If the
// clocks differ by more, the call is sent once more, with the right ones, and the
// client remembers by how much they differ.
//
// # Calls that end
//
// What is given back and charged after the call is another command, which the limiter
// has sent without holding up the call: see [ratelimit.Ender]. It is sent at most once.
// If it is lost, a charge stays, so that nobody is admitted too much. A place is kept by
// renewing its lease each half of it; if the process that holds it dies, others get it
// when the lease is over. That is by the server's time, and in the order in which calls
// reach the server.
//
// # Errors
//
// A call that Take admits is charged exactly once, and one that ends in an error at
// most once: the command is never sent again where it may have been executed, even
// though go-redis by itself retries a command whose reply was lost.
// It is sent again where the reply says that nothing was executed: by a server that
// does not know the script, after a restart or a failover, which then gets the
// script in full, and by a node of a cluster that does not own the slot or is a
// replica.
//
// Take returns an error, and never an admission, if the server cannot be reached or
// refuses, if a key holds anything else than a counter of the policy, or if the
// reply is not understood. The error names the server. How long that takes is up to
// the client's options; note that go-redis by default tries five times, 100 ms apart,
// to connect (DialerRetries), and heeds the deadline of a context only with
// ContextTimeoutEnabled.
//
// # Cluster and Ring
//
// The policies of one call are decided where their hash tag lives. If they share it,
// they are decided as one. If they do not, since the call is counted under different
// keys, they are asked in their order, and charged at once; when one refuses, what those
// before it were charged is given back, by a command more each. Meanwhile others may be
// refused for a call that is not admitted; nobody is admitted too much, also if the
// process dies in between. To decide such calls as one, name a hash tag in the prefix,
// as in WithPrefix("{limits}:"), at the price that one node then holds all counters.
// So it is for any client that is not a *redis.Client.
package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// DefaultPrefix begins every key of a Store without WithPrefix.
const DefaultPrefix = "ratelimit:"

// Store is a [ratelimit.Store] in Redis. It is safe for concurrent use, and holds
// nothing but the client, which remains the caller's to close.
type Store struct {
	client redis.UniversalClient
	script *script
	prefix string
	// sharded is set unless any keys can be in one command.
	sharded bool

	calendars sync.Map     // *calendar, by calendarKey
	ahead     atomic.Int64 // µs by which the servers' clocks are ahead of ours, as far as calendars need to know
}

var (
	_ ratelimit.Ender     = (*Store)(nil)
	_ ratelimit.Supporter = (*Store)(nil)
)

// Option changes a Store that is being made.
type Option func(*Store)

// WithPrefix begins every key with prefix in place of DefaultPrefix. Stores share
// their counters iff they share server and prefix.
func WithPrefix(prefix string) Option {
	return func(s *Store) { s.prefix = prefix }
}

// New returns a Store that asks client. It does not connect: a server that is
// not there is an error of each decision.
func New(client redis.UniversalClient, opts ...Option) *Store {
	_, single := client.(*redis.Client)
	s := &Store{client: client, script: takeScript, prefix: DefaultPrefix, sharded: !single}
	for _, opt := range opts {
		opt(s)
	}
	return s
}

// Take implements [ratelimit.Store] by one command, or where the keys live apart, one
// for each place. Outcomes are set only if it
// returns nil. A ctx that is done is an error, and nothing is sent.
func (s *Store) Take(ctx context.Context, ops []ratelimit.Op) error {
	if err := s.ready(ctx); err != nil || len(ops) == 0 {
		return err
	}
	keys := make([]string, len(ops))
	apart := false
	for i := range ops {
		keys[i] = s.key(ops[i].Policy, ops[i].Key)
		apart = apart || s.sharded && hashTag(keys[i]) != hashTag(keys[0])
	}
	if apart {
		return s.takeApart(ctx, ops, keys)
	}
	reply, err := s.run(ctx, keys, func(at time.Time) ([]any, error) { return s.arguments(ops, at) })
	if err == nil {
		err = readOutcomes(reply, ops)
	}
	return s.explain(err, keys)
}

// Reset implements [ratelimit.Store]. It forgets what the policy counted by its
// present algorithm.
func (s *Store) Reset(ctx context.Context, p *ratelimit.Policy, key string) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	k := s.key(p, key)
	return s.explain(s.client.Del(ctx, k).Err(), []string{k})
}

// ready reports why nothing can be sent, or nil.
func (s *Store) ready(ctx context.Context) error {
	if s == nil || s.client == nil {
		return errors.New("redisstore: no client")
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: not asked: %w", s.server(), err)
	}
	return nil
}

// explain adds to err the server, and the keys where the script finds fault with
// what one of them holds.
func (s *Store) explain(err error, keys []string) error {
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), "RATELIMIT KEYS["):
		return fmt.Errorf("%s: keys %q: %w", s.server(), keys, err)
	}
	return fmt.Errorf("%s: %w", s.server(), err)
}

// server names the server or servers that the client knows.
func (s *Store) server() string {
	switch c := s.client.(type) {
	case *redis.Client:
		return "redis " + c.Options().Addr
	case *redis.ClusterClient:
		return "redis cluster " + strings.Join(c.Options().Addrs, ",")
	case *redis.Ring:
		return "redis ring " + strings.Join(slices.Sorted(maps.Values(c.Options().Addrs)), ",")
	}
	return "redis"
}
