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
// algorithms. The server's user needs the commands EVALSHA, EVAL, GET, SET, TIME and DEL,
// and the keys under the prefix; with PTTL, SETRANGE and MGET decisions take the server
// less time. [Store.Check] tells what is missing.
//
// # Keys
//
// Each policy keeps one string for each of its keys, at
//
//	<prefix>{<key>}<policy>:<form>
//
// or, with [WithHashes], one field <policy>:<form> of the hash of each key, at
// <prefix>{<key>}, which holds what the string would.
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
// A key that is blocked has 8 bytes before its state, until the next call is charged, and
// one with calls that are reserved ahead has 10 and 27 for each of them. A
// lock takes 14 bytes more, and each call that has not ended, of which nothing was given
// back, or that is in line for a place, 19, or 33 in a bucket. Of those with count and in
// a leaky bucket, 4096 calls are remembered; what older ones were charged cannot be given
// back. Places are never forgotten, and a decision about them takes the longer the more
// are taken.
//
// In the names, the bytes that are not printable ASCII, and '%', '{' and '}', written as %XX
// in key and policy, so that no key reaches another's counter or cluster slot. The
// counter that all calls share is at {%}. A policy whose form is changed
// begins anew, and one whose limit, window or burst is changed keeps what was
// counted: the next decision is made as if the new values had held since the last
// call that was admitted.
//
// A string is written together with its time to live, or keeps one that is long enough. A
// hash lives as long as the state in it that lives longest; the others stay that long.
// It ends after the time when the policy would decide as it does without the string, by
// a sixteenth of the time until then and a second, at most by half an hour. Nothing is
// written for a call that is refused, except where the server's clock was set back for
// good, by more than [ratelimit.MaxStandstill] or a shorter window, which moves what is
// recorded with it, once, where the refusal locks the key, and where a bucket that is
// not full begins to fill.
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
// reach the server; those that wait have places in the order in which they came, see
// [ratelimit.Op.Ticket].
//
// # Calls that are reserved
//
// A call that Reserve books is charged when its time has come by the server's clock,
// whichever command finds that out. Until then it is a part of the state of its keys,
// which therefore no version of this package without Reserve understands: it fails such a
// call as Invalid. A key has a thousand calls ahead at most, and a decision beside them
// takes the longer the more there are. See [Store.Reserve] for what is not supported.
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
// refuses, if a key holds anything else than a counter of the policy, if the
// reply is not understood, or if there is none by the deadline of the call, which
// WithTimeout sets. It is an [Error], which names the server and the class of the
// failure, or that of the context.
//
// After some failures in a row the server is not asked, and calls end in an error at
// once, but for one call in a while, until one of these is answered.
//
// Any client will do; one that [NewClient] makes is the one to have when a server is
// gone. The client of a Cluster or a Ring without ContextTimeoutEnabled waits for
// dials and replies beyond the deadline. Goroutines of the Store wait for it then, as
// many as there are commands in flight, which WithMaxInFlight bounds. They cost some
// microseconds for each call, and end when there has been none for a second.
//
// # Cluster and Ring
//
// The policies of one call are decided where their hash tag lives. If they share it,
// they are decided as one. If they do not, since the call is counted under different
// keys, they are asked in their order, and charged at once; when one refuses, what those
// before it were charged is given back, by a command more each. Meanwhile others may be
// refused for a call that is not admitted; nobody is admitted too much, also if the
// process dies in between. All these commands have the time of one: see WithTimeout. What
// is not given back by then is given back after the call. To decide such calls as one,
// name a hash tag in the prefix, as in WithPrefix("{limits}:"), at the price that one node
// then holds all counters.
// So it is for any client that is not a *redis.Client. A node that fails is
// not asked for a while, as above, which the calls on other nodes do not notice.
package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitgen/ratelimitgen/internal/rediskey"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// DefaultPrefix begins every key of a Store without WithPrefix.
const DefaultPrefix = rediskey.DefaultPrefix

// Defaults of a Store's options.
const (
	DefaultTimeout     = 50 * time.Millisecond
	DefaultMaxInFlight = 1024
	DefaultBreaker     = 5
)

// Variables for tests: on a machine that is busy with others, and of both layouts.
var (
	defaultTimeout = DefaultTimeout
	defaultLayout  = inStrings
	defaultScripts = stringScripts
)

// Store is a [ratelimit.Store] in Redis. It is safe for concurrent use. There is
// nothing to close but the client, which remains the caller's, unless the Store was made
// with WithLease.
type Store struct {
	client  redis.UniversalClient
	direct  redis.UniversalClient // that heeds deadlines, or nil
	name    string                // of the servers, for errors
	layout  layout
	scripts scripts
	prefix  string
	// sharded is set unless any keys can be in one command.
	sharded bool

	timeout     time.Duration
	maxInFlight int64
	threshold   int64
	pipelines   int64         // of a server that are under way at a time; 0: none are made
	linger      time.Duration // for which calls wait for others though a round trip is free
	logger      *slog.Logger  // nil: the default one

	inFlight atomic.Int64
	alarm    atomic.Pointer[alarm] // of the latest deadlines that are shared
	idle     chan *command         // to goroutines that wait for one
	answers  atomic.Int64
	failures map[Class]*atomic.Int64

	started   time.Time
	reloaded  atomic.Int64 // when, in nanoseconds since started
	connected atomic.Bool  // some server has answered
	whole     *breaker     // of all servers
	nodesMu   sync.RWMutex
	nodes     map[string]*breaker // by address, of a cluster or ring

	refusals *refusals    // nil: none are remembered
	leases   *leases      // nil: none are taken
	clock    func() int64 // of refusals and leases, in nanoseconds; nil: the process's

	calendars sync.Map         // *calendar, by calendarKey
	wall      func() time.Time // nil: the process's
	ahead     atomic.Int64     // µs by which the servers' clocks are ahead of ours, as far as calendars need to know
}

var (
	_ ratelimit.Ender     = (*Store)(nil)
	_ ratelimit.Reserver  = (*Store)(nil)
	_ ratelimit.Blocker   = (*Store)(nil)
	_ ratelimit.Supporter = (*Store)(nil)
)

// New returns a Store that asks client. It does not connect: a server that is
// not there is an error of each decision. Hooks of a client are to be added before. Those of
// a client of a single server or Sentinel without ContextTimeoutEnabled, or that sets no
// deadlines of connections, see the dials, but not the decisions: these are asked by a copy
// of the client, which go-redis makes without hooks.
func New(client redis.UniversalClient, opts ...Option) *Store {
	_, single := client.(*redis.Client)
	s := &Store{
		client:      client,
		layout:      defaultLayout,
		scripts:     defaultScripts(),
		prefix:      DefaultPrefix,
		sharded:     !single,
		timeout:     defaultTimeout,
		maxInFlight: DefaultMaxInFlight,
		threshold:   DefaultBreaker,
		idle:        make(chan *command),
		failures:    make(map[Class]*atomic.Int64),
		started:     time.Now(),
		nodes:       make(map[string]*breaker),
		refusals:    newRefusals(DefaultRefusalMemory),
	}
	var servers string
	s.name, servers = nameOf(client)
	s.whole = newBreaker(servers)
	s.reloaded.Store(-int64(reloadInterval))
	for _, c := range classes {
		s.failures[c] = new(atomic.Int64)
	}
	for _, opt := range opts {
		opt(s)
	}
	s.direct = prompt(client, s.timeout)
	return s
}

// NewClient returns a client of the servers in o, a single one, Sentinel's or a cluster,
// as [redis.NewUniversalClient] does. Where o leaves the default of go-redis, it has
// what suits a limiter: DialerRetries 1, so that a server that refuses connections is
// an error at once, DialTimeout and ReadTimeout one second. ContextTimeoutEnabled
// is set in any case: what nobody waits for does not occupy a connection.
func NewClient(o *redis.UniversalOptions) redis.UniversalClient {
	tuned := *o
	if tuned.DialerRetries == 0 {
		tuned.DialerRetries = 1
	}
	if tuned.DialTimeout == 0 {
		tuned.DialTimeout = time.Second
	}
	if tuned.ReadTimeout == 0 {
		tuned.ReadTimeout = time.Second
	}
	tuned.ContextTimeoutEnabled = true
	return redis.NewUniversalClient(&tuned)
}

// Take implements [ratelimit.Store] by one command, or where the keys live apart, one
// for each place. There is none if the call is remembered to be refused, as
// WithRefusalMemory says, or is admitted from a lease, as WithLease says. Outcomes are set only if it
// returns nil. A ctx that is done is an error, and nothing is sent.
func (s *Store) Take(ctx context.Context, ops []ratelimit.Op) error {
	if err := s.ready(ctx); err != nil || len(ops) == 0 {
		return err
	}
	if s.leases.serves(ops) {
		return s.takeLeased(ctx, ops)
	}
	return s.decide(ctx, ops)
}

// decide decides ops from the memory of refusals or by the server.
func (s *Store) decide(ctx context.Context, ops []ratelimit.Op) error {
	if s.refusals == nil || ops[0].Peek {
		_, err := s.take(ctx, ops)
		return err
	}
	sent := s.now()
	if s.refusals.recall(ops, sent) {
		return nil
	}
	generation := s.refusals.generation()
	lasts, err := s.take(ctx, ops)
	if err == nil {
		s.remember(ops, lasts, generation, sent)
	}
	return err
}

// remember keeps what was decided of ops if it is to be remembered, which most is not.
func (s *Store) remember(ops []ratelimit.Op, lasts []time.Duration, generation, sent int64) {
	if d, ok := s.refusals.bound(ops, lasts); ok {
		s.refusals.remember(ops, d, generation, sent, s.now())
	}
}

// take has the server decide ops. It returns what readReply does.
func (s *Store) take(ctx context.Context, ops []ratelimit.Op) (lasts []time.Duration, err error) {
	if s.leases != nil {
		var space [4]*ratelimit.Policy
		asked, err := s.leases.restate(ops, space[:0])
		if err != nil {
			return nil, s.count(Invalid, err)
		}
		defer restore(ops, asked)
	}
	if len(ops) == 1 && isCommon(&ops[0]) {
		c := commonCommand(s, ops)
		err := s.ask(ctx, c)
		lasts := c.lasts()
		if err == nil {
			c.recycle()
		}
		return lasts, err
	}
	return s.takeSome(ctx, ops)
}

// takeSome is take where that is more than commonCommand.
func (s *Store) takeSome(ctx context.Context, ops []ratelimit.Op) (lasts []time.Duration, err error) {
	keys := make([]string, len(ops))
	apart := false
	for i := range ops {
		keys[i] = s.key(ops[i].Policy, ops[i].Key)
		apart = apart || s.sharded && hashTag(keys[i]) != hashTag(keys[0])
	}
	if apart {
		return nil, s.takeApart(ctx, ops, keys)
	}
	if args := commonArguments(ops); args != nil {
		c := &command{keys: keys, args: args, ops: ops, read: readCommonReply}
		err := s.ask(ctx, c)
		return c.lasts(), err
	}
	err = s.run(ctx, keys, func(at time.Time) ([]any, error) { return s.arguments(ops, at) },
		func(c *command) (err error) {
			lasts, err = readReply(c.reply, ops)
			return err
		})
	return lasts, err
}

// commonCommand returns the command for one op, which isCommon.
func commonCommand(s *Store, ops []ratelimit.Op) *command {
	op := &ops[0]
	c := recycled.Get().(*command)
	c.ops, c.read = ops, readCommonReply
	// Key and argument are parts of one string.
	var space [256]byte
	b := s.keyOf(op.Policy, op.Key).Append(space[:0])
	n := len(b)
	text := string(appendCommon(b, op))
	c.key[0], c.text = text[:n], text[n:]
	c.arg[0] = &c.text
	c.keys, c.args = c.key[:], c.arg[:]
	return c
}

// Reset implements [ratelimit.Store]. It forgets what the policy counted by its
// present algorithm.
func (s *Store) Reset(ctx context.Context, p *ratelimit.Policy, key string) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	defer s.refusals.forget(p.ID, key, false) // also if it is not known whether it was done
	defer s.leases.forget(p.ID, key)
	return s.ask(ctx, &command{keys: []string{s.key(p, key)}})
}

// ready reports why nothing can be sent, or nil.
func (s *Store) ready(ctx context.Context) error {
	if s == nil || s.client == nil {
		return errors.New("redisstore: no client")
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: not asked: %w", s.name, err)
	}
	return nil
}

// nameOf returns what errors call the server or servers that client knows, and their
// addresses.
func nameOf(client redis.UniversalClient) (name, servers string) {
	name = "redis"
	switch c := client.(type) {
	case *redis.Client:
		servers = c.Options().Addr
	case *redis.ClusterClient:
		name, servers = "redis cluster", strings.Join(c.Options().Addrs, ",")
	case *redis.Ring:
		name, servers = "redis ring", strings.Join(slices.Sorted(maps.Values(c.Options().Addrs)), ",")
	default:
		return name, name
	}
	return name + " " + servers, servers
}
