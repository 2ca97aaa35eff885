package redisstore

import (
	"context"
	"time"
)

// deadline is a context that is done at a time, as those of context.WithDeadline are,
// at less expense. It is not done when its parent is canceled, for the calls of go-redis
// that it is made for are over soon.
type deadline struct {
	context.Context
	at    time.Time
	timer *time.Timer
	done  chan struct{}
}

// start makes d a child of ctx that is done after a time. The caller ends it by stop.
// Its timer is not used again: in a bubble of testing/synctest a timer stays there.
func (d *deadline) start(ctx context.Context, after time.Duration) {
	d.Context = ctx
	d.at = time.Now().Add(after)
	d.done = make(chan struct{})
	d.timer = time.AfterFunc(after, d.end)
}

func (d *deadline) end() { close(d.done) }

func (d *deadline) stop() { d.timer.Stop() }

// Deadline implements [context.Context].
func (d *deadline) Deadline() (time.Time, bool) { return d.at, true }

// Done implements [context.Context].
func (d *deadline) Done() <-chan struct{} { return d.done }

// Err implements [context.Context].
func (d *deadline) Err() error {
	select {
	case <-d.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// over tells why nobody waits any more, if so.
func (d *deadline) over() error {
	if err := d.Err(); err != nil {
		return err
	}
	return d.Context.Err()
}
