package redisstore

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// An open breaker tries the server again after these times, the first doubling up to
// the second.
const (
	firstBackoff = 100 * time.Millisecond
	lastBackoff  = time.Second
)

// breaker keeps calls from a server that does not answer. It opens after some
// failures without an answer in between. While it is open it lets one call pass at a
// time, to try the server, and it closes with the next answer.
type breaker struct {
	server   string       // address, for logs
	lanes    lanes        // to the server
	answers  atomic.Int64 // of the server
	failures atomic.Int64 // since the last answer
	open     atomic.Bool

	// The rest is guarded by mu, under which open is changed.
	mu      sync.Mutex
	since   time.Time // of open
	asked   time.Time // when the last call came while it was open
	backoff time.Duration
	next    time.Time // when the server is tried
	trial   *command  // under way, or nil
	err     *Error    // of the calls that are kept from the server
}

func newBreaker(server string) *breaker {
	return &breaker{server: server, since: time.Now()}
}

// admit returns nil if c may be sent. How that ends is then told to answered, failed
// or untold.
func (b *breaker) admit(c *command) *Error {
	c.breaker, c.answers = b, b.answers.Load()
	if !b.open.Load() {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open.Load() {
		return nil
	}
	b.asked = time.Now()
	if b.trial != nil || b.asked.Before(b.next) {
		return b.err
	}
	b.trial = c
	return nil
}

// answered is told that the server answered. It reports whether that has closed the
// breaker, and for how long it was open.
func (b *breaker) answered() (closed bool, open time.Duration) {
	b.answers.Add(1)
	if b.failures.Load() != 0 {
		b.failures.Store(0)
	}
	if !b.open.Load() {
		return false, 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open.Load() {
		return false, 0
	}
	now := time.Now()
	open = now.Sub(b.since)
	b.since, b.trial, b.err = now, nil, nil
	b.open.Store(false)
	return true, open
}

// failed is told that c failed. It reports whether that has opened the breaker, which
// n failures do. Where the server has answered another call since c began, it is not
// the server that failed.
func (b *breaker) failed(c *command, n int64, err *Error) (opened bool) {
	if !b.open.Load() {
		if b.answers.Load() != c.answers || b.failures.Add(1) < n {
			return false
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if b.open.Load() {
		if b.trial == c {
			b.trial = nil
			b.backoff = min(2*b.backoff, lastBackoff)
			b.next = now.Add(b.backoff)
		}
		return false
	}
	b.since, b.asked, b.backoff, b.next = now, now, firstBackoff, now.Add(firstBackoff)
	b.err = &Error{Open, err.Server, fmt.Errorf("not asked, since %d calls in a row failed, the last by: %w", b.failures.Load(), err.Err)}
	b.open.Store(true)
	return true
}

// untold is told that c ended, and that this says nothing about the server.
func (b *breaker) untold(c *command) {
	if !b.open.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.trial == c {
		b.trial = nil
	}
}
