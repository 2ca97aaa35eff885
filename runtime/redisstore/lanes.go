package redisstore

import (
	"context"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"
)

// maxPipeline is the most commands that are sent together.
const maxPipeline = 128

// lanes are the ways to one server on which commands are sent. While all are taken,
// commands wait, and whoever comes to the end of a lane has those that wait sent
// together, in the order in which they came.
type lanes struct {
	mu      sync.Mutex
	taken   int64
	waiting []*command
}

// enter takes a lane if one of n is free, else it has c wait for one.
func (l *lanes) enter(c *command, n int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken < n {
		l.taken++
		return true
	}
	c.done = make(chan struct{})
	l.waiting = append(l.waiting, c)
	return false
}

// next returns the commands that are to be sent on a lane that has come free. If there
// are none, the lane stays free.
func (l *lanes) next() []*command {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(l.waiting), maxPipeline)
	if n == 0 {
		l.taken--
		return nil
	}
	batch := l.waiting[:n:n]
	if l.waiting = l.waiting[n:]; len(l.waiting) == 0 {
		l.waiting = nil
	}
	return batch
}

// leave gives a lane to the commands that wait for one. The caller does not wait for them.
func (s *Store) leave(l *lanes) {
	if batch := l.next(); batch != nil {
		go func() {
			for batch != nil {
				s.sendAll(batch)
				batch = l.next()
			}
		}()
	}
}

// sendAll sends commands as one pipeline, but for those whose callers have left.
func (s *Store) sendAll(batch []*command) {
	client := s.client
	if s.direct != nil {
		client = s.direct
	}
	var within deadline
	within.start(batch[0].within.Context, s.timeout)
	defer within.stop()
	sent := make([]*command, 0, len(batch))
	cmds := make([]redis.Cmder, 0, len(batch))
	for _, c := range batch {
		if c.err = c.within.over(); c.err != nil {
			s.ended(c)
			continue
		}
		sent, cmds = append(sent, c), append(cmds, c.call(&within, "evalsha", &s.script.sha))
	}
	panicked := exec(&within, client, cmds)
	for _, c := range sent {
		switch err := c.once.Err(); {
		case panicked != nil:
			c.err = panicked
		case err == nil:
			c.reply = c.once.Val()
		case redis.HasErrorPrefix(err, "NOSCRIPT"):
			s.send(client, c) // by itself, which the first of them gives the server the script by
			continue
		default:
			c.err = err
		}
		s.ended(c)
	}
}

// exec executes cmds together. What becomes of each is told by its Err; the error is that
// a hook of the client's panicked.
func exec(ctx context.Context, client redis.UniversalClient, cmds []redis.Cmder) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	if len(cmds) == 1 {
		_ = client.Process(ctx, cmds[0])
		return nil
	}
	pipe := client.Pipeline()
	_ = pipe.BatchProcess(ctx, cmds...)
	_, _ = pipe.Exec(ctx)
	return nil
}
