package redisstore

import (
	"context"
	"fmt"
	"hash/maphash"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitgen/ratelimitgen/internal/rediskey"
)

// maxPipeline is the most commands that are sent together.
const maxPipeline = 128

// lanes are the ways to one server on which commands are sent. While all are taken,
// commands wait, and whoever comes to the end of a lane has those that wait sent
// together, in the order in which they came.
//
// If the Store lingers, a lane that is free is not taken by fewer commands than there are
// on each of the others, unless there come no more in a while. Callers that are told
// together call again one after the other: the first of them would take the lane, and all
// others wait for the next one. And where all lanes are free, each takes a part. So the
// server has one part to do while the callers of another one are told.
type lanes struct {
	mu      sync.Mutex
	taken   int64      // lanes
	sent    int64      // commands on them
	waiting []*command // for one
	alarm   *alarm     // for the next command that waits
	// later has commands sent though they are few. It runs while they wait for others.
	later *time.Timer
}

// areFew reports whether n commands are to wait for others: they are fewer than each of
// the lanes that are taken has, if these have about as many each.
func (s *Store) areFew(l *lanes, n int) bool { return s.linger > 0 && int64(n+1)*l.taken < l.sent }

// enter takes a lane for c alone, or else has c wait for one.
func (s *Store) enter(l *lanes, c *command) (alone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 && l.taken < s.pipelines && !s.areFew(l, 1) {
		l.taken++
		l.sent++
		return true
	}
	c.done = make(chan struct{})
	if a := l.alarm; a == nil || a.hasRung() {
		l.alarm = newAlarm(c.within.at)
	}
	if !c.within.at.Before(l.alarm.at) {
		c.alarm = l.alarm
	}
	if l.waiting == nil {
		l.waiting = make([]*command, 0, l.sent+1) // as many as there were before
	}
	l.waiting = append(l.waiting, c)
	s.dispatch(l, false)
	return false
}

// withdraw has c, whose caller has left, not wait any more, if it does still.
func (s *Store) withdraw(l *lanes, c *command) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting, c)
	if i < 0 {
		return // it was sent, or will be looked at in a moment
	}
	s.ended(c)
	if l.waiting = slices.Delete(l.waiting, i, i+1); len(l.waiting) == 0 {
		l.waiting = nil
		s.dispatch(l, false) // which ends what they waited for
	}
}

// dispatch has commands that wait sent on lanes that are free; few only if others are
// not waited for. l is locked.
func (s *Store) dispatch(l *lanes, few bool) {
	for len(l.waiting) > 0 && l.taken < s.pipelines {
		if !few && s.areFew(l, len(l.waiting)) {
			if l.later == nil {
				l.later = time.AfterFunc(s.linger, func() { s.sendFew(l) })
			}
			return
		}
		few = false
		free := int(s.pipelines - l.taken)
		n := min((len(l.waiting)+free-1)/free, maxPipeline)
		batch := l.waiting[:n:n]
		if l.waiting = l.waiting[n:]; len(l.waiting) == 0 {
			l.waiting = nil
		}
		l.taken++
		l.sent += int64(n)
		go s.travel(l, batch)
	}
	if l.later != nil {
		l.later.Stop()
		l.later = nil
	}
	if l.taken == 0 && l.alarm != nil {
		// It is for nobody, and who comes next may be in another bubble of
		// testing/synctest.
		l.alarm.timer.Stop()
		l.alarm = nil
	}
}

// sendFew has commands sent that have waited for others for long enough.
func (s *Store) sendFew(l *lanes) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.later != nil { // else they have been sent just now
		l.later = nil
		s.dispatch(l, true)
	}
}

// travel sends commands, which have a lane.
func (s *Store) travel(l *lanes, batch []*command) {
	s.sendAll(batch)
	// Who has been told is likely to call again, and then is sent with those that wait.
	runtime.Gosched()
	s.exit(l, len(batch))
}

// exit leaves a lane on which there were n commands. The caller does not wait for those
// that are sent on it next.
func (s *Store) exit(l *lanes, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken--
	l.sent -= int64(n)
	s.dispatch(l, false)
}

// alarm is a deadline of several commands, of which most have ended before.
type alarm struct {
	at    time.Time
	rings chan struct{} // closed at the time
	timer *time.Timer
}

func newAlarm(at time.Time) *alarm {
	a := &alarm{at: at, rings: make(chan struct{})}
	a.timer = time.AfterFunc(time.Until(at), func() { close(a.rings) })
	return a
}

func (a *alarm) hasRung() bool {
	select {
	case <-a.rings:
		return true
	default:
		return false
	}
}

// waitOnLane is wait for a command whose deadline others may share.
func (c *command) waitOnLane() error {
	if c.alarm != nil {
		select {
		case <-c.done:
			return c.err
		case <-c.within.Context.Done():
			return c.wait(nil)
		case <-c.alarm.rings:
		}
	}
	own := deadline{at: c.within.at} // c.within is for whoever sends c
	own.start()
	defer own.stop()
	return c.wait(own.done)
}

// sendAll sends commands as one pipeline, but for those whose callers have left. Of some
// nothing may be done by it: they are sent by another one.
func (s *Store) sendAll(batch []*command) {
	client := s.client
	if s.direct != nil {
		client = s.direct
	}
	var within deadline // of all that is sent, for all who wait have left by then
	within.set(batch[0].within.Context, s.timeout)
	within.start()
	defer within.stop()
	for known := true; len(batch) > 0; {
		batch, known = s.sendOnce(&within, client, batch, known)
	}
}

// sendOnce sends commands as one pipeline, but for those whose callers have left. If the
// server does not know the script, it gets it by the first, so that those behind that may
// call it by its name.
//
// It returns those of which nothing was done, and that are to be sent once more, and
// whether the server knows the script. They come to an end even if the script is flushed
// all the time, for the first of each pipeline has it.
func (s *Store) sendOnce(within *deadline, client redis.UniversalClient, batch []*command, known bool) (rest []*command, knows bool) {
	now := time.Now()
	var sent []*command
	var cmds []redis.Cmder
	for i := 0; i < len(batch); {
		c := batch[i]
		if c.err = c.within.over(now); c.err != nil {
			s.ended(c)
			i++
			continue
		}
		i++
		if first := i - 1; !s.sharded && c.joins() {
			for i < len(batch) && batch[i].joins() && batch[i].within.over(now) == nil {
				i++
			}
			if i-first > 1 {
				c = join(batch[first:i])
			}
		}
		if known || len(sent) > 0 {
			cmds = append(cmds, c.call(within, "evalsha", &s.scripts.take.sha))
		} else {
			cmds = append(cmds, c.call(within, "eval", &s.scripts.take.source))
		}
		sent = append(sent, c)
	}
	panicked := exec(within, client, cmds)
	knows = true
	for i, c := range sent {
		if c.err = panicked; panicked == nil {
			c.err = c.sent.Err()
		}
		switch {
		case c.err == nil:
			c.reply = c.sent.Val()
		case panicked == nil && (known || i > 0) && redis.HasErrorPrefix(c.err, "NOSCRIPT"):
			knows = false
			if c.parts != nil {
				rest = append(rest, c.parts...)
			} else {
				rest = append(rest, c)
			}
			continue
		case panicked == nil && len(sent) > 1 && s.sharded && isElsewhere(c.err):
			c.err = movedError{c.err}
		}
		rest = s.divide(c, rest)
	}
	return rest, knows
}

// joins reports whether c can be one command with others: it is a call of one policy
// that common.lua decides, as far as is known.
func (c *command) joins() bool { return c.text != "" && !c.rare }

// join returns a command for the calls of several. What becomes of them is found out by
// divide.
func join(parts []*command) *command {
	all := &command{parts: parts, keys: make([]string, len(parts)), args: make([]any, 1, 2), tagAt: parts[0].tagAt}
	// Those of the calls of one policy are alike.
	type limit struct{ text, field string }
	var limits []limit
	which := make([]byte, 1, 1+maxPipeline)
	which[0] = 'M'
	for i, c := range parts {
		all.keys[i] = c.keys[0]
		l := limit{text: c.text}
		if c.tagAt > 0 {
			_, l.field = rediskey.SplitAt(c.keys[0], c.tagAt)
		}
		n := slices.Index(limits, l)
		if n < 0 {
			n = len(limits)
			limits = append(limits, l)
			all.args = append(all.args, l.text)
		}
		which = append(which, byte(n+1))
	}
	if all.tagAt > 0 {
		for _, l := range limits {
			all.args = append(all.args, l.field)
		}
	}
	if !distinct(all.keys) {
		which[0] = 'm'
	}
	all.args[0] = which
	return all
}

var keysSeed = maphash.MakeSeed()

// distinct reports whether keys, at most maxPipeline, differ from each other.
func distinct(keys []string) bool {
	var table [2 * maxPipeline]uint8 // indexes of keys, from 1 on
	for i, key := range keys {
		at := maphash.String(keysSeed, key) % uint64(len(table))
		for table[at] != 0 {
			if keys[table[at]-1] == key {
				return false
			}
			at = (at + 1) % uint64(len(table))
		}
		table[at] = uint8(i + 1)
	}
	return true
}

// divide ends c, or the commands that were joined in it. To rest it appends those that
// the server leaves to be sent by themselves: they turned out to be rare, and nothing was
// done. There may be many, for instance for keys that are blocked. Where the server does
// not take the keys together, or one of them, all are left.
func (s *Store) divide(c *command, rest []*command) []*command {
	if c.parts == nil {
		s.ended(c)
		return rest
	}
	replies, ok := c.reply.([]any)
	if c.err == nil && (!ok || len(replies) != len(c.parts)) {
		c.err = fmt.Errorf("reply of a shape that the script does not return: %.100q", fmt.Sprint(c.reply))
	}
	apart := isOfKeys(c.err)
	for i, part := range c.parts {
		if apart || c.err == nil && replies[i] == nil {
			part.rare = true
			rest = append(rest, part)
			continue
		}
		if part.err = c.err; c.err == nil {
			part.reply = replies[i]
		}
		s.ended(part)
	}
	return rest
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
		if _, failure := pipe.Exec(ctx); failure != nil {
			for _, cmd := range cmds {
				if c, ok := cmd.(*onceCmd); ok && c.Err() == nil && c.Val() == nil {
					c.SetErr(failure) // a hook may leave that to us
				}
			}
		}
	}
	return nil
}
