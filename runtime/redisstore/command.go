package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// command is what the server is asked for one call. A goroutine other than the
// caller's sends it, so that the caller can leave it at its deadline, whatever
// go-redis waits for: a connection of the pool, a dial, or a reply.
type command struct {
	ctx  context.Context
	keys []string
	args []any // of the script; nil to delete the key

	breaker *breaker
	answers int64 // of the breaker, when the command began

	done  chan struct{} // closed when there is a reply or an error
	reply any
	err   error
}

// idleTime is for how long a goroutine waits for the next command.
const idleTime = time.Second

// ask has the server decide ops by c, or delete a key if ops is nil.
func (s *Store) ask(ctx context.Context, c *command, ops []ratelimit.Op) error {
	if err := s.breakerOf(ctx, c.keys[0]).admit(c); err != nil {
		s.failures[Open].Add(1)
		return err
	}
	hasty := false // the caller, so that its deadline says nothing about the server
	if d, ok := ctx.Deadline(); ok {
		hasty = time.Until(d) < s.timeout/10
	}
	within, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	c.ctx, c.done = within, make(chan struct{})
	if !s.start(c) {
		c.breaker.untold(c)
		return s.count(Overload, fmt.Errorf("not asked: %d commands are in flight already", s.maxInFlight))
	}
	select {
	case <-c.done:
	case <-within.Done():
	}
	var err error
	select {
	case <-c.done: // also if it came with the deadline
		err = c.err
	default:
		err = within.Err()
	}

	canceled := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	switch {
	case canceled && ctx.Err() != nil:
		if hasty || ctx.Err() == context.Canceled {
			c.breaker.untold(c)
		} else {
			s.failed(ctx, c, s.count(Timeout, ctx.Err()))
		}
		return fmt.Errorf("%s: no answer: %w", s.name, ctx.Err())
	case canceled:
		return s.failed(ctx, c, s.count(Timeout, fmt.Errorf("no answer within %v", s.timeout)))
	case err != nil:
		class := classify(err)
		if class == Invalid {
			err = fmt.Errorf("keys %q: %w", c.keys, err)
		}
		return s.failed(ctx, c, s.count(class, err))
	}
	if ops != nil {
		if err := readOutcomes(c.reply, ops); err != nil {
			return s.failed(ctx, c, s.count(Malformed, err))
		}
	}
	s.answers.Add(1)
	s.answered(ctx, c)
	return nil
}

// start has a goroutine send c, unless too many are in flight.
func (s *Store) start(c *command) bool {
	if s.inFlight.Add(1) > s.maxInFlight {
		s.inFlight.Add(-1)
		return false
	}
	select {
	case s.idle <- c:
	default:
		go s.work(c)
	}
	return true
}

// work sends c, and others as they come.
func (s *Store) work(c *command) {
	timer := time.NewTimer(idleTime)
	defer timer.Stop()
	for {
		s.send(c)
		timer.Reset(idleTime)
		select {
		case c = <-s.idle:
		case <-timer.C:
			return
		}
	}
}

// send sends c and sets what becomes of it.
func (s *Store) send(c *command) {
	defer func() {
		// Nobody can recover from a panic here but us.
		if r := recover(); r != nil {
			c.err = fmt.Errorf("panic: %v", r)
		}
		s.inFlight.Add(-1)
		close(c.done)
	}()
	if c.args == nil {
		c.err = s.client.Del(c.ctx, c.keys[0]).Err()
		return
	}
	c.reply, c.err = s.script.run(c.ctx, s.client, c.keys, c.args)
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
