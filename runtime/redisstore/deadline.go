package redisstore

import (
	"context"
	"sync/atomic"
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

// set makes d a child of ctx that is over after a time. It is not done then, unless it
// is started.
func (d *deadline) set(ctx context.Context, after time.Duration) {
	d.Context = ctx
	d.at = time.Now().Add(after)
}

// start has d be done when it is over. The caller ends that by stop. Its timer is not
// used again: in a bubble of testing/synctest a timer stays there.
func (d *deadline) start() {
	d.done = make(chan struct{})
	d.timer = time.AfterFunc(time.Until(d.at), d.end)
}

func (d *deadline) end() { close(d.done) }

// mostLate is how much later than it is over a deadline may be done that is shared.
const mostLate = 5 * time.Millisecond

// share is start for a deadline that may be done a little after it is over. It is done with
// others of about the same time, as a timer for each would take a good part of the time of
// a call. What is read from and written to connections goes by Deadline.
func (d *deadline) share(latest *atomic.Pointer[alarm]) {
	if d.at.Unix() < firstSecond {
		d.start() // in a bubble of testing/synctest, where others must not be
		return
	}
	a := latest.Load()
	if a == nil || d.at.After(a.at) || a.at.Sub(d.at) > mostLate {
		a = newAlarm(d.at.Add(mostLate))
		latest.Store(a)
	}
	d.done = a.rings
}

// firstSecond is in 2020. Bubbles of testing/synctest begin in 2000.
const firstSecond = 1_577_836_800

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
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

// over tells why nobody waits any more at a time, if so. It need not be started.
func (d *deadline) over(now time.Time) error {
	if !now.Before(d.at) {
		return context.DeadlineExceeded
	}
	return d.Context.Err()
}
