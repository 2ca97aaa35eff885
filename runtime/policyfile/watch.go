package policyfile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// DefaultInterval is how often a Watcher looks at its files, unless WithInterval says
// otherwise.
const DefaultInterval = time.Second

// settling is the part of the interval for which a changed file must stay the same
// before it is read, and restless the number of intervals after which it is read though
// it has not.
const (
	settling = 10
	restless = 10
)

// Watcher applies a file to a Limiter whenever it changes. It is safe for concurrent
// use.
type Watcher struct {
	binding  *Binding
	path     string
	interval time.Duration
	onReload []func(error)
	cancel   context.CancelFunc
	done     chan struct{}

	reloading sync.Mutex // held while the file is read and applied
	sources   []source
	changedAt time.Time // when a change was seen that may go on, or zero

	mu    sync.Mutex
	err   error
	stats Stats
}

// Stats counts what a Watcher has done, for a metric and an alert on it.
type Stats struct {
	// Applied is how often files were applied, the first time included, and AppliedAt
	// when that was last.
	Applied   uint64
	AppliedAt time.Time
	// Failed is how often files could not be read or applied, so that the ones before
	// stayed in force.
	Failed uint64
}

// WatchOption changes what Watch makes; an Option is one too.
type WatchOption interface{ watch(*Watcher) error }

type watchOption func(*Watcher) error

func (o watchOption) watch(w *Watcher) error { return o(w) }

func (o Option) watch(w *Watcher) error {
	if o != nil {
		o(w.binding)
	}
	return nil
}

// WithInterval is how often the files are looked at, at least 1 ms; DefaultInterval if it is not
// given. A file that is written at once is in force after 1.1 intervals at the latest.
func WithInterval(d time.Duration) WatchOption {
	return watchOption(func(w *Watcher) error {
		if d < time.Millisecond {
			return fmt.Errorf("policyfile: the interval %v is less than %v", d, time.Millisecond)
		}
		w.interval = d
		return nil
	})
}

// OnReload has f called when a change of the files was applied, with nil, or could not
// be, with what is wrong; once for each change. It is called too when the file is wrong
// for a gate that was made later. f is called by the goroutine of the Watcher, which
// looks at nothing until f returns; it must not call Close. It may be given several
// times.
func OnReload(f func(err error)) WatchOption {
	return watchOption(func(w *Watcher) error {
		if f != nil {
			w.onReload = append(w.onReload, f)
		}
		return nil
	})
}

// Watch applies the file at path to a limiter, and again whenever the file changes,
// or one of the files of networks that it names. It returns an error, and changes
// nothing, if the file cannot be applied as it is; see Load and Binding.Apply. From then
// on a file that is gone or not valid changes nothing either: the last one that was
// applied stays in force, and OnReload and Watcher.Err tell.
//
// The files are looked at in intervals. Replace them by renaming, as Kubernetes does with a
// ConfigMap: what is written in place is applied when it has stayed the same for a tenth of the
// interval, or has gone on changing for ten.
//
// Watch starts one goroutine, which ends when ctx is done or the Watcher is closed. What
// is overridden then stays so.
func Watch(ctx context.Context, path string, limiter *ratelimit.Limiter, opts ...WatchOption) (*Watcher, error) {
	w := &Watcher{binding: Bind(limiter), path: path, interval: DefaultInterval, done: make(chan struct{})}
	for _, o := range opts {
		if o == nil {
			continue
		}
		if err := o.watch(w); err != nil {
			return nil, err
		}
	}
	if err := w.Reload(); err != nil {
		return nil, err
	}
	ctx, w.cancel = context.WithCancel(ctx)
	go w.run(ctx)
	return w, nil
}

// Close ends the Watcher and returns when its goroutine has ended. What is overridden
// stays so. It may be called several times.
func (w *Watcher) Close() {
	w.cancel()
	<-w.done
}

// Reload reads and applies the files now, whether or not they have changed. On an
// error the last file that was applied stays in force.
func (w *Watcher) Reload() error {
	w.reloading.Lock()
	defer w.reloading.Unlock()
	return w.reload()
}

// reload is Reload. The caller holds w.reloading.
func (w *Watcher) reload() error {
	f, err := load(w.path)
	w.sources, w.changedAt = f.sources, time.Time{}
	if err == nil {
		err = w.binding.Apply(f)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	if err != nil {
		w.stats.Failed++
	} else {
		w.stats.Applied++
		w.stats.AppliedAt = time.Now()
	}
	return err
}

// Check is Binding.Check: call it when all gates have been made.
func (w *Watcher) Check() error { return w.binding.Check() }

// Err returns what is wrong with the files as they were last read, and with gates that
// were made later; nil if all is in force.
func (w *Watcher) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.err, w.binding.lateErr())
}

// Stats returns what the Watcher has done so far. A Watch that returns an error leaves
// nothing to ask.
func (w *Watcher) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stats
}

func (w *Watcher) run(ctx context.Context) {
	defer close(w.done)
	defer w.cancel()
	timer := time.NewTimer(w.interval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		next := w.interval
		news, unsettled, err := w.look()
		if news {
			for _, f := range w.onReload {
				f(err)
			}
		} else if unsettled {
			next = max(w.interval/settling, time.Millisecond)
		}
		timer.Reset(next)
	}
}

// look applies the files if they have changed and no longer do; they are unsettled if
// that is still to be seen. news is set if there is something to tell.
func (w *Watcher) look() (news, unsettled bool, err error) {
	w.reloading.Lock()
	defer w.reloading.Unlock()
	changed := false
	for i := range w.sources {
		if w.sources[i].changed() {
			changed = true
		}
	}
	switch pending := !w.changedAt.IsZero(); {
	case pending && (!changed || time.Since(w.changedAt) >= restless*w.interval):
		return true, false, w.reload()
	case changed:
		if !pending {
			w.changedAt = time.Now()
		}
		return false, true, nil
	}
	before := w.binding.lateErr()
	if !w.binding.welcome() {
		return false, false, nil
	}
	if w.failed() { // which the new gates may have mended
		if err := w.reload(); err == nil {
			return true, false, nil
		}
	}
	if err := w.binding.lateErr(); err != nil && (before == nil || err.Error() != before.Error()) {
		return true, false, err
	}
	return false, false, nil
}

// failed reports whether the file that was read last is not in force.
func (w *Watcher) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err != nil
}
