package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitgen/ratelimitgen/internal/rediskey"
)

// batch is how many counters are asked about at a time.
const batch = 500

// inspect prints counters.
func (o *operator) inspect(keys []string) (int, error) {
	found, without, err := o.find(keys)
	if err != nil {
		return 0, err
	}
	now, err := o.client.Time(o.ctx).Result()
	if err != nil {
		now = time.Now() // the user may not be allowed to ask
	}
	w := tabwriter.NewWriter(o.stdout, 0, 0, 2, ' ', 0)
	if len(found) > 0 {
		fmt.Fprintln(w, "POLICY\tKEY\tFORM\tEXPIRES IN\tSTATE")
	}
	for some := range slices.Chunk(found, batch) {
		pipe := o.client.Pipeline()
		states := make([]*redis.StringCmd, len(some))
		lives := make([]*redis.DurationCmd, len(some))
		for i, k := range some {
			if k.InHash {
				states[i], lives[i] = pipe.HGet(o.ctx, k.Hash(), k.Field()), pipe.PTTL(o.ctx, k.Hash())
			} else {
				states[i], lives[i] = pipe.Get(o.ctx, k.String()), pipe.PTTL(o.ctx, k.String())
			}
		}
		if _, err := pipe.Exec(o.ctx); err != nil && !isReply(err) {
			return 0, err
		}
		for i, k := range some {
			raw, err := states[i].Bytes()
			if errors.Is(err, redis.Nil) {
				continue // expired since
			}
			// Of all other errors of the server none is about what the key holds.
			if err := cmp.Or(lives[i].Err(), err); err != nil && !redis.HasErrorPrefix(err, "WRONGTYPE") {
				return 0, err
			}
			life := "never"
			if ttl := lives[i].Val(); ttl >= 0 {
				life = rounded(ttl)
			}
			text := "not a counter: "
			if err != nil {
				text += quoted(err.Error())
			} else {
				text = describe(k.Form, raw, now)
			}
			form := k.Form
			if k.InHash {
				form += " (hash)"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", quoted(k.Policy), quoted(k.User), form, life, text)
		}
	}
	if err := w.Flush(); err != nil {
		return 0, err
	}
	return o.missing(keys, without, len(found)), nil
}

// isReply reports whether a server said err about a single command.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// describe says what a counter holds.
func describe(form string, raw []byte, now time.Time) string {
	s := rediskey.ParseState(form, raw)
	var parts []string
	if left := s.Blocked.Sub(now); left > 0 {
		parts = append(parts, "blocked for "+rounded(left))
	}
	if left := s.Locked.Sub(now); left > 0 {
		parts = append(parts, "locked for "+rounded(left))
	}
	switch {
	case !s.Known:
		parts = append(parts, fmt.Sprintf("%d bytes that ratelimitgen-redis cannot read", len(raw)))
	case s.Used >= 0 && form == "quota":
		parts = append(parts, "used "+(time.Duration(s.Used)*time.Microsecond).String())
	case s.Used >= 0:
		parts = append(parts, fmt.Sprintf("%d charged", s.Used))
	}
	if s.Known && form == "concurrency" {
		held, waiting := int64(0), 0
		for _, p := range s.Places {
			switch {
			case !p.Until.After(now): // has ended
			case p.Units > 0:
				held += p.Units
			default:
				waiting++
			}
		}
		parts = append(parts, fmt.Sprintf("%d in flight", held))
		if waiting > 0 {
			parts = append(parts, fmt.Sprintf("%d in line", waiting))
		}
	}
	if s.Ahead > 0 {
		parts = append(parts, fmt.Sprintf("%d reserved", s.Ahead))
	}
	if age := now.Sub(s.Last); !s.Last.IsZero() && s.Known {
		what := "last charged"
		switch form {
		case "fixed":
			what = "window began"
		case "concurrency":
			what = "last asked for" // by a call that got a place, or waits for one
		}
		parts = append(parts, fmt.Sprintf("%s %s ago", what, rounded(max(age, 0))))
	}
	return strings.Join(parts, ", ")
}

// rounded is a time for people.
func rounded(d time.Duration) string {
	if d >= time.Minute {
		return d.Round(time.Second).String()
	}
	return d.Round(time.Millisecond).String()
}

// quoted is text that others chose: as it is if it is one word of printable ASCII, else as
// a Go string, so that it can neither move the cursor nor look like more than one word.
func quoted(text string) string {
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\"'`\\", r) }) {
		return strconv.QuoteToASCII(text)
	}
	return text
}
