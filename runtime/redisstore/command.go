package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitgen/ratelimitgen/internal/rediskey"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// command is what the server is asked for one call. All that a call of one policy needs
// is in it, so that it is one allocation.
type command struct {
	script *script              // nil: the one that decides
	keys   []string             // names of counters
	args   []any                // of the script; nil to delete the counter
	tagAt  int                  // where users' keys are in the names, if states are kept in hashes; else 0
	read   func(*command) error // of the reply; nil if that says nothing
	ops    []ratelimit.Op       // for read

	within  deadline
	once    onceCmd  // the first that is sent
	sent    *onceCmd // the latest; nil if no client has seen one
	breaker *breaker
	answers int64 // of the breaker, when the command began

	left  bool          // by the caller, while it is under way
	ahead bool          // readCommonReply found calls ahead
	done  chan struct{} // closed when there is a reply or an error; nil if sent by the caller
	alarm *alarm        // of a call that waits for a lane; nil if it has to have its own
	reply any
	err   error

	parts []*command // that were joined; see join
	rare  bool       // that is to be sent by itself; see divide

	// Of a call of one policy.
	key   [1]string
	text  string
	arg   [1]any
	words [6]any

	// Of a call of one key, if states are kept in hashes.
	home, field [1]string
}

// recycled has commands that were joined with others and answered. No client has seen
// them, and who sent the answer is done with them.
var recycled = sync.Pool{New: func() any { return new(command) }}

// recycle has c, which was answered, used again if no client has seen it: a hook may keep
// what it sees.
func (c *command) recycle() {
	if c.sent == nil {
		*c = command{}
		recycled.Put(c)
	}
}

// prompt returns a client that heeds the deadlines of contexts in all that it waits
// for, the pool of its connections, a dial or a reply, and that uses the connections of
// client; nil if there is none.
func prompt(client redis.UniversalClient, timeout time.Duration) redis.UniversalClient {
	switch c := client.(type) {
	case *redis.Client:
		o := c.Options()
		if heeds(o.ContextTimeoutEnabled, o.ReadTimeout, o.WriteTimeout) {
			return c
		}
		// A copy of the client with options of its own. Its timeouts are those of
		// single reads and writes.
		if o.ReadTimeout > 0 {
			timeout = min(timeout, o.ReadTimeout)
		}
		c = c.WithTimeout(timeout)
		c.Options().ContextTimeoutEnabled = true
		return c
	case *redis.ClusterClient:
		if o := c.Options(); heeds(o.ContextTimeoutEnabled, o.ReadTimeout, o.WriteTimeout) {
			return c
		}
	case *redis.Ring:
		if o := c.Options(); heeds(o.ContextTimeoutEnabled, o.ReadTimeout, o.WriteTimeout) {
			return c
		}
	}
	return nil
}

// heeds reports whether a client with these options heeds the deadlines of contexts. With
// a negative timeout (-2 for the user) it sets no deadline of a connection at all.
func heeds(enabled bool, timeouts ...time.Duration) bool {
	return enabled && slices.Min(timeouts) >= 0
}

// idleTime is for how long a goroutine waits for the next command.
const idleTime = time.Second

// ask has the server do c, and the reply read.
func (s *Store) ask(ctx context.Context, c *command) error {
	if err := s.breakerOf(ctx, c.keys[0]).admit(c); err != nil {
		s.failures[Open].Add(1)
		return err
	}
	wait := s.patience(ctx)
	early, hasty := false, false // the caller leaves before our deadline, and long before
	if d, ok := ctx.Deadline(); ok {
		left := time.Until(d)
		early, hasty = left < wait, left < s.timeout/10
		wait = min(wait, left)
	}
	c.within.set(ctx, wait)
	c.tagAt = s.tagAt()
	if s.inFlight.Add(1) > s.maxInFlight {
		s.inFlight.Add(-1)
		c.breaker.untold(c)
		return s.count(Overload, fmt.Errorf("not asked: %d commands are in flight already", s.maxInFlight))
	}
	err := s.outcome(c, early)
	if !c.left {
		c.within.stop()
	}
	if err == nil {
		if c.read != nil {
			if err := c.read(c); err != nil {
				return s.failed(ctx, c, s.count(Malformed, err))
			}
		}
		s.answers.Add(1)
		s.answered(ctx, c)
		return nil
	}

	class := classify(err)
	if _, elsewhen := serverTime(err); elsewhen {
		s.answered(ctx, c)
		return &Error{class, s.name, err} // and asked once more, see run
	}
	switch {
	case class == Timeout && (early || ctx.Err() != nil):
		cause := context.DeadlineExceeded
		if ctx.Err() != nil {
			cause = ctx.Err()
		}
		if hasty || cause == context.Canceled {
			c.breaker.untold(c)
		} else {
			_ = s.failed(ctx, c, s.count(Timeout, cause))
		}
		return fmt.Errorf("%s: no answer: %w", s.name, cause)
	case class == Timeout && !time.Now().Before(c.within.at):
		err = fmt.Errorf("no answer within %v", s.timeout)
	case class == Invalid:
		err = fmt.Errorf("keys %q: %w", c.keys, err)
	}
	return s.failed(ctx, c, s.count(class, err))
}

// outcome has c sent, and returns by its deadline. The reply is set if it returns nil. If
// early is set, the deadline is that of the caller.
func (s *Store) outcome(c *command, early bool) error {
	if s.pipelines > 0 && c.args != nil && c.script == nil {
		l := &c.breaker.lanes
		if !s.enter(l, c) {
			err := c.waitOnLane()
			if c.left {
				s.withdraw(l, c)
			}
			return err
		}
		defer s.exit(l, 1)
	}
	if s.direct != nil {
		if early {
			c.within.start()
		} else {
			c.within.share(&s.alarm)
		}
		s.send(s.direct, c)
		return c.err
	}
	c.within.start()
	// A client that does not heed deadlines is left waiting with a goroutine of ours.
	c.done = make(chan struct{})
	select {
	case s.idle <- c:
	default:
		go s.work(c)
	}
	return c.wait(c.within.done)
}

// wait waits for c, which is sent by another goroutine, until it is late.
func (c *command) wait(late <-chan struct{}) error {
	err := context.DeadlineExceeded
	select {
	case <-c.done:
	case <-late:
	case <-c.within.Context.Done():
		err = c.within.Context.Err()
	}
	select {
	case <-c.done: // also if it came with the deadline
		return c.err
	default:
		c.left = true
		return err
	}
}

// work sends c, and others as they come.
func (s *Store) work(c *command) {
	timer := time.NewTimer(idleTime)
	defer timer.Stop()
	for {
		s.send(s.client, c)
		timer.Reset(idleTime)
		select {
		case c = <-s.idle:
		case <-timer.C:
			return
		}
	}
}

// send sends c and sets what becomes of it.
func (s *Store) send(client redis.UniversalClient, c *command) {
	defer func() {
		// A hook of the client's may panic, and the goroutine be ours.
		if r := recover(); r != nil {
			c.err = fmt.Errorf("panic: %v", r)
		}
		s.ended(c)
	}()
	if c.args == nil {
		if key := c.keys[0]; c.tagAt > 0 {
			home, field := rediskey.SplitAt(key, c.tagAt)
			c.err = client.HDel(&c.within, home, field).Err()
		} else {
			c.err = client.Del(&c.within, key).Err()
		}
		return
	}
	c.reply, c.err = cmp.Or(c.script, s.scripts.take).run(&c.within, client, c)
}

// ended tells whoever waits for c that there is a reply or an error.
func (s *Store) ended(c *command) {
	s.inFlight.Add(-1)
	if c.done != nil {
		close(c.done)
	}
}

// count counts a failure and returns it as an error.
func (s *Store) count(class Class, err error) *Error {
	s.failures[class].Add(1)
	return &Error{class, s.name, err}
}

// answered tells whom it concerns that the server answered c.
func (s *Store) answered(ctx context.Context, c *command) {
	if !s.connected.Load() {
		s.connected.Store(true)
	}
	if closed, open := c.breaker.answered(); closed {
		s.log().LogAttrs(ctx, slog.LevelInfo, "rate limit store answers again",
			slog.String("server", c.breaker.server), slog.Duration("after", open))
	}
}

// failed tells whom it concerns that c failed by err, which it returns.
func (s *Store) failed(ctx context.Context, c *command, err *Error) error {
	if isLocal(err) {
		s.answered(ctx, c)
		return err
	}
	s.reload(ctx)
	if c.breaker.failed(c, s.threshold, err) {
		// What a server says may quote a key.
		cause := err.Code()
		if cause == "" {
			cause = err.Err.Error()
		}
		s.log().LogAttrs(ctx, slog.LevelWarn, "rate limit store does not answer; on-error decides",
			slog.String("server", c.breaker.server), slog.Int64("failures", s.threshold),
			slog.String("class", string(err.Class)), slog.String("cause", cause))
	}
	return err
}

func (s *Store) log() *slog.Logger {
	if s.logger != nil {
		return s.logger
	}
	return slog.Default()
}

// reloadInterval is the least time between two looks at who serves which slots.
const reloadInterval = time.Second

// reload has a cluster's client look again who serves which slots. It does so by
// itself when a node says that another one does, but not when a node is gone.
func (s *Store) reload(ctx context.Context) {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return
	}
	now := int64(time.Since(s.started))
	last := s.reloaded.Load()
	if now-last >= int64(reloadInterval) && s.reloaded.CompareAndSwap(last, now) {
		cluster.ReloadState(ctx) // in the background
	}
}

// breakerOf returns the breaker of the server that has the key, or that of all
// servers if that is not known.
func (s *Store) breakerOf(ctx context.Context, key string) *breaker {
	var node *redis.Client
	var err error
	switch c := s.client.(type) {
	case *redis.ClusterClient:
		if !s.connected.Load() {
			return s.whole // the client would have to ask, and we to wait for it
		}
		node, err = c.MasterForKey(ctx, key)
	case *redis.Ring:
		node, err = c.GetShardClientForKey(key)
	}
	if err != nil || node == nil {
		return s.whole
	}
	return s.breakerAt(node.Options().Addr)
}

// maxNodes bounds the breakers of nodes that have left.
const maxNodes = 1024

func (s *Store) breakerAt(addr string) *breaker {
	s.nodesMu.RLock()
	b := s.nodes[addr]
	s.nodesMu.RUnlock()
	if b != nil {
		return b
	}
	s.nodesMu.Lock()
	defer s.nodesMu.Unlock()
	if b := s.nodes[addr]; b != nil {
		return b
	}
	if len(s.nodes) >= maxNodes {
		clear(s.nodes)
	}
	b = newBreaker(addr)
	s.nodes[addr] = b
	return b
}
