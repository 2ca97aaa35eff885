package redisstore

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// run has the script do what the arguments say, which are made for a time. Where the windows of the calendar that it was
// given are too far from the server's time, it has done nothing, and says what time it
// is there: then it is asked once more, and later calls know.
func (s *Store) run(ctx context.Context, keys []string, arguments func(at time.Time) ([]any, error)) (any, error) {
	for again := false; ; again = true {
		args, err := arguments(time.Now().Add(time.Duration(s.ahead.Load()) * time.Microsecond))
		if err != nil {
			return nil, err
		}
		reply, err := s.script.run(ctx, s.client, keys, args)
		now, found := serverTime(err)
		if !found || again {
			return reply, err
		}
		s.ahead.Store(now - time.Now().UnixMicro())
	}
}

// serverTime returns the time that the script said that it has no window for.
func serverTime(err error) (µs int64, found bool) {
	if err == nil {
		return 0, false
	}
	_, rest, found := strings.Cut(err.Error(), "RATELIMIT TIME ")
	if !found {
		return 0, false
	}
	digits, _, _ := strings.Cut(rest, " ")
	µs, err = strconv.ParseInt(digits, 10, 64)
	return µs, err == nil
}
