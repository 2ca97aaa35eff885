package redisstore

import (
	"context"
	"sync"
	"time"
)

// deadline is a context that is done at a time, as those of context.WithDeadline are,
// at less expense: its alarm is used again. It is not done when its parent is
// canceled, for the calls of go-redis that it is made for are over soon.
type deadline struct {
	context.Context
	at time.Time
	*alarm
}

// alarm closes done at a time.
type alarm struct {
	timer *time.Timer
	done  chan struct{}
}

var alarms = sync.Pool{New: func() any {
	a := &alarm{done: make(chan struct{})}
	a.timer = time.AfterFunc(time.Hour, func() { close(a.done) })
	a.timer.Stop()
	return a
}}

// withDeadline returns a child of ctx that is done after d. The caller ends it by stop.
func withDeadline(ctx context.Context, d time.Duration) *deadline {
	a := alarms.Get().(*alarm)
	a.timer.Reset(d)
	return &deadline{ctx, time.Now().Add(d), a}
}

func (d *deadline) stop() {
	if d.timer.Stop() {
		alarms.Put(d.alarm)
	}
}

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
