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

// withDeadline returns a child of ctx that is done after d. The caller ends it by stop.
// Its timer is not used again: in a bubble of testing/synctest a timer stays there.
func withDeadline(ctx context.Context, d time.Duration) *deadline {
	done := make(chan struct{})
	return &deadline{
		Context: ctx,
		at:      time.Now().Add(d),
		timer:   time.AfterFunc(d, func() { close(done) }),
		done:    done,
	}
}

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
