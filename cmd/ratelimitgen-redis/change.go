package main

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/ratelimitgen/ratelimitgen/internal/rediskey"
	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

// reset removes counters.
func (o *operator) reset(keys []string) (int, error) {
	found, without, err := o.find(keys)
	if err != nil {
		return 0, err
	}
	for some := range slices.Chunk(found, batch) {
		if !o.dryRun {
			pipe := o.client.Pipeline()
			for _, k := range some {
				pipe.Del(o.ctx, k.String())
			}
			if _, err := pipe.Exec(o.ctx); err != nil {
				return 0, err
			}
		}
		for _, k := range some {
			o.did("reset", k, "")
		}
	}
	return o.missing(keys, without, len(found)), nil
}

// block blocks keys, or lifts that.
func (o *operator) block(keys []string, form string, d time.Duration) (int, error) {
	store := redisstore.New(o.client, redisstore.WithPrefix(o.prefix), redisstore.WithTimeout(10*time.Second),
		redisstore.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	code := exitDone
	for _, key := range keys {
		var forms []string
		if form != "" {
			forms = []string{form}
		} else {
			found, err := o.look(key)
			if err == nil && len(found) == 0 && d > 0 {
				found, err = o.scan(nil) // other keys tell how the policy counts
			}
			if err != nil {
				return 0, err
			}
			for _, k := range found {
				forms = append(forms, k.Form)
			}
			slices.Sort(forms)
			forms = slices.Compact(forms)
		}
		if len(forms) == 0 && d > 0 {
			fmt.Fprintf(o.stderr, "ratelimitgen-redis: policy %s has counted nothing under %s, so that nobody knows how it counts: say it by -form (%s)\n",
				quoted(*o.policy), quoted(o.prefix), strings.Join(rediskey.Forms(), ", "))
			return exitProblem, nil
		}
		if len(forms) == 0 {
			code = o.missing(keys, []string{key}, 1)
		}
		for _, form := range forms {
			if !o.dryRun {
				if err := store.Block(o.ctx, rediskey.PolicyOf(form, *o.policy), key, d); err != nil {
					return 0, err
				}
			}
			k := rediskey.Key{User: key, Policy: *o.policy, Form: form}
			if d == 0 {
				o.did("unblock", k, "")
			} else {
				o.did("block", k, " for "+d.String())
			}
		}
	}
	return code, nil
}

// did prints what was done to a counter.
func (o *operator) did(verb string, k rediskey.Key, how string) {
	past := map[string]string{"reset": "reset", "block": "blocked", "unblock": "unblocked"}[verb]
	if o.dryRun {
		past = "would " + verb
	}
	fmt.Fprintf(o.stdout, "%s %s of %s (%s)%s\n", past, quoted(k.User), quoted(k.Policy), k.Form, how)
}

// missing says which keys have no counter, and returns the exit status.
func (o *operator) missing(keys, without []string, found int) int {
	of := ""
	if o.policy != nil {
		of = " of policy " + quoted(*o.policy)
	}
	for _, key := range without {
		fmt.Fprintf(o.stderr, "ratelimitgen-redis: no counter%s of key %s under %s\n", of, quoted(key), quoted(o.prefix))
	}
	if len(keys) == 0 && found == 0 {
		fmt.Fprintf(o.stderr, "ratelimitgen-redis: no counter%s under %s\n", of, quoted(o.prefix))
	}
	if len(without) > 0 || found == 0 {
		return exitProblem
	}
	return exitDone
}
