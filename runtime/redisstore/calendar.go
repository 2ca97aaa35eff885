package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// calendarKey is what a calendar depends on.
type calendarKey struct {
	align ratelimit.Align
	tz    string
}

// calendar is a calendar and the bounds that were asked for last: those of nearly all
// calls.
type calendar struct {
	*ratelimit.Calendar
	latest atomic.Pointer[[5]time.Time]
}

// windows appends the bounds of the window of p's calendar that at is in, of the one
// before it and of the two after it: time for a key may be ahead of the clock, by
// ratelimit.MaxStandstill at most, and the server's clock of that of the process.
func (s *Store) windows(args []any, p *ratelimit.Policy, at time.Time) ([]any, error) {
	key := calendarKey{p.Align, p.TZ}
	known, ok := s.calendars.Load(key)
	if !ok {
		c, err := ratelimit.NewCalendar(p)
		if err != nil {
			return nil, fmt.Errorf("redisstore: policy %q: %w", p.ID, err)
		}
		known, _ = s.calendars.LoadOrStore(key, &calendar{Calendar: c})
	}
	for _, t := range known.(*calendar).around(at) {
		args = append(args, t.UnixMicro())
	}
	return args, nil
}

func (c *calendar) around(at time.Time) *[5]time.Time {
	if b := c.latest.Load(); b != nil && !at.Before(b[1]) && at.Before(b[2]) {
		return b
	}
	var b [5]time.Time
	b[1], b[2] = c.Window(at)
	b[0], _ = c.Window(b[1].Add(-time.Microsecond))
	_, b[3] = c.Window(b[2])
	_, b[4] = c.Window(b[3])
	c.latest.Store(&b)
	return &b
}

// run has the script do what the arguments say, which are made for a time, and gives its
// reply to read. Where the windows of the calendar that it was given are too far from the
// server's time, the script has done nothing, and says what time it is there: then it is
// asked once more, and later calls know.
func (s *Store) run(ctx context.Context, keys []string, arguments func(at time.Time) ([]any, error), read func(*command) error) error {
	for again := false; ; again = true {
		args, err := arguments(s.wallClock().Add(time.Duration(s.ahead.Load()) * time.Microsecond))
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		err = s.ask(ctx, &command{keys: keys, args: args, read: read})
		now, found := serverTime(err)
		if !found || again {
			return err
		}
		s.ahead.Store(now - s.wallClock().UnixMicro())
	}
}

// wallClock returns the time of the process, which only calendars look at.
func (s *Store) wallClock() time.Time {
	if s.wall != nil {
		return s.wall()
	}
	return time.Now()
}

// serverTime returns the time that the script said that it has no window for. It looks at
// nothing but what the server said, since errors of ours quote keys.
func serverTime(err error) (µs int64, found bool) {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return 0, false
	}
	_, rest, found := strings.Cut(reply.Error(), "RATELIMIT TIME ")
	if !found {
		return 0, false
	}
	digits, _, _ := strings.Cut(rest, " ")
	µs, err = strconv.ParseInt(digits, 10, 64)
	return µs, err == nil
}
