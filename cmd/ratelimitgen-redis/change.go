package main

import (
	"cmp"
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
				if k.InHash {
					pipe.HDel(o.ctx, k.Hash(), k.Field())
				} else {
					pipe.Del(o.ctx, k.String())
				}
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
	opts := []redisstore.Option{
		redisstore.WithPrefix(o.prefix), redisstore.WithTimeout(10 * time.Second),
		redisstore.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))),
	}
	stores := map[bool]*redisstore.Store{ // by whether they keep hashes
		false: redisstore.New(o.client, opts...),
		true:  redisstore.New(o.client, append(opts, redisstore.WithHashes())...),
	}
	code := exitDone
	for _, key := range keys {
		counters, err := o.toBlock(key, form, d == 0)
		if err != nil {
			return 0, err
		}
		if len(counters) == 0 && d > 0 {
			fmt.Fprintf(o.stderr, "ratelimitgen-redis: policy %s has counted nothing under %s, so that nobody knows how it counts: say it by -form (%s)\n",
				quoted(*o.policy), quoted(o.prefix), strings.Join(rediskey.Forms(), ", "))
			return exitProblem, nil
		}
		if len(counters) == 0 {
			code = o.missing(keys, []string{key}, 1)
		}
		for _, k := range counters {
			if !o.dryRun {
				if err := stores[k.InHash].Block(o.ctx, rediskey.PolicyOf(k.Form, k.Policy), k.User, d); err != nil {
					return 0, err
				}
			}
			if d == 0 {
				o.did("unblock", k, "")
			} else {
				o.did("block", k, " for "+d.String())
			}
		}
	}
	return code, nil
}

// toBlock returns the counters of the policy by which a key is to be blocked, be they there
// or not, or by which a block is to be lifted. The form is that of flags, "" if it is to be
// found out.
func (o *operator) toBlock(key, form string, lift bool) ([]rediskey.Key, error) {
	said := rediskey.Key{Prefix: o.prefix, User: key, Policy: *o.policy, Form: form}
	if o.hashes != nil {
		said.InHash = *o.hashes
		if form != "" {
			return []rediskey.Key{said}, nil
		}
	}
	found, err := o.look(key)
	if err != nil {
		return nil, err
	}
	if form != "" {
		found = slices.DeleteFunc(found, func(k rediskey.Key) bool { return k.Form != form })
		if len(found) > 0 {
			return found, nil
		}
		if !lift {
			err = o.mustBeStrings(key)
		}
		return []rediskey.Key{said}, err
	}
	if len(found) == 0 && !lift {
		if found, err = o.scan(nil); err != nil { // other keys tell how the policy counts
			return nil, err
		}
	}
	for i := range found {
		found[i].User = key
		if o.hashes != nil && !lift {
			found[i].InHash = *o.hashes
		}
	}
	slices.SortFunc(found, func(a, b rediskey.Key) int { return cmp.Or(cmp.Compare(a.Form, b.Form), compareLayouts(a, b)) })
	return slices.Compact(found), nil
}

// mustBeStrings returns an error unless a counter that is not there can be taken to be a
// string. A block in the wrong place would block nobody.
func (o *operator) mustBeStrings(key string) error {
	const how = "-hashes says that limits are kept in hashes, and -hashes=false that they are not"
	hashes, err := o.keepsHashes(key)
	switch {
	case err != nil:
		return fmt.Errorf("%w; %s", err, how)
	case hashes:
		return fmt.Errorf("key %s has no counter, and others under %s are in hashes: %s", quoted(key), quoted(o.prefix), how)
	}
	return nil
}

// did prints what was done to a counter.
func (o *operator) did(verb string, k rediskey.Key, how string) {
	past := map[string]string{"reset": "reset", "block": "blocked", "unblock": "unblocked"}[verb]
	if o.dryRun {
		past = "would " + verb
	}
	form := k.Form
	if k.InHash {
		form += ", hash"
	}
	fmt.Fprintf(o.stdout, "%s %s of %s (%s)%s\n", past, quoted(k.User), quoted(k.Policy), form, how)
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
