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
	var sent []*command
	var cmds []redis.Cmder
	for i := 0; i < len(batch); {
		c := batch[i]
		if c.err = c.within.over(); c.err != nil {
			s.ended(c)
			i++
			continue
		}
		i++
		if first := i - 1; !s.sharded && c.joins() {
			for i < len(batch) && batch[i].joins() && batch[i].within.over() == nil {
				i++
			}
			if i-first > 1 {
				c = join(batch[first:i])
			}
		}
		sent, cmds = append(sent, c), append(cmds, c.call(&within, "evalsha", &s.script.sha))
	}
	panicked := exec(&within, client, cmds)
	for _, c := range sent {
		err := c.once.Err()
		if panicked == nil && err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
			// By itself, whereby the server gets the script.
			panicked = exec(&within, client, []redis.Cmder{c.call(&within, "eval", &s.script.source)})
			err = c.once.Err()
		}
		if c.err = panicked; panicked == nil {
			c.err = err
		}
		if c.err == nil {
			c.reply = c.once.Val()
		}
		s.divide(client, c)
	}
}

// joins reports whether c can be one command with others: it is a call of one policy
// that common.lua decides.
func (c *command) joins() bool { return c.text != "" }

// join returns a command for the calls of several. What becomes of them is found out by
// divide.
func join(parts []*command) *command {
	all := &command{parts: parts, keys: make([]string, len(parts)), args: make([]any, 1, 1+len(parts))}
	all.args[0] = "M"
	for i, c := range parts {
		all.keys[i] = c.keys[0]
		all.args = append(all.args, &c.text)
	}
	return all
}

// divide ends c, or the commands that were joined in it.
func (s *Store) divide(client redis.UniversalClient, c *command) {
	if c.parts == nil {
		s.ended(c)
		return
	}
	replies, ok := c.reply.([]any)
	if c.err == nil && (!ok || len(replies) != len(c.parts)) {
		c.err = fmt.Errorf("reply of a shape that the script does not return: %.100q", fmt.Sprint(c.reply))
	}
	for i, part := range c.parts {
		if c.err == nil && replies[i] == nil {
			s.send(client, part) // it is rare, and nothing was done
			continue
		}
		if part.err = c.err; c.err == nil {
			part.reply = replies[i]
		}
		s.ended(part)
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
	switch len(cmds) {
	case 0:
	case 1:
		_ = client.Process(ctx, cmds[0])
	default:
		pipe := client.Pipeline()
		_ = pipe.BatchProcess(ctx, cmds...)
		_, _ = pipe.Exec(ctx)
	}
	return nil
}
