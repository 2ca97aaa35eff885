package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitgen/ratelimitgen/internal/rediskey"
)

// find returns the counters of the keys, or of all keys if there are none, and the keys
// that have none.
func (o *operator) find(keys []string) (found []rediskey.Key, without []string, err error) {
	switch {
	case len(keys) == 0:
		found, err = o.scan(nil)
	case o.policy == nil:
		for _, key := range keys {
			some, err := o.scan(&key)
			if err != nil {
				return nil, nil, err
			}
			found = append(found, some...)
		}
	default:
		for _, key := range keys {
			some, err := o.look(key)
			if err != nil {
				return nil, nil, err
			}
			found = append(found, some...)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	slices.SortFunc(found, func(a, b rediskey.Key) int {
		return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.User, b.User), cmp.Compare(a.Form, b.Form))
	})
	found = slices.Compact(found)
	for _, key := range keys {
		if !slices.ContainsFunc(found, func(k rediskey.Key) bool { return k.User == key }) {
			without = append(without, key)
		}
	}
	return found, without, nil
}

// look returns the counters of the policy with a key, without a scan.
func (o *operator) look(key string) ([]rediskey.Key, error) {
	pipe := o.client.Pipeline()
	var names []rediskey.Key
	var replies []*redis.IntCmd
	for _, form := range rediskey.Forms() {
		k := rediskey.Key{Prefix: o.prefix, User: key, Policy: *o.policy, Form: form}
		names = append(names, k)
		replies = append(replies, pipe.Exists(o.ctx, k.String()))
	}
	if _, err := pipe.Exec(o.ctx); err != nil {
		return nil, err
	}
	var found []rediskey.Key
	for i, r := range replies {
		if r.Val() > 0 {
			found = append(found, names[i])
		}
	}
	return found, nil
}

// isWhole returns an error if the server is a node of a cluster, which has a part of the
// counters only, and scans that as if it were all. Names of several slots in one command
// are what it refuses. Where a hash tag in the prefix has all in one slot, the node that
// has them is as good as all.
func (o *operator) isWhole(client *redis.Client) error {
	name := func(user string) string { return rediskey.Key{Prefix: o.prefix, User: user}.String() }
	return client.Exists(o.ctx, name("a"), name("b")).Err()
}

// scan goes through all names on the server for the counters of a key, nil for any.
func (o *operator) scan(key *string) ([]rediskey.Key, error) {
	pattern := rediskey.Pattern(o.prefix, o.policy, key)
	var mu sync.Mutex // nodes of a cluster are scanned in parallel
	var found []rediskey.Key
	var seen, size int64
	node := func(ctx context.Context, client *redis.Client) error {
		n, err := client.DBSize(ctx).Result()
		if err != nil {
			return err
		}
		mu.Lock()
		size += n
		mu.Unlock()
		const step = 1000
		for cursor := uint64(0); ; {
			names, next, err := client.Scan(ctx, cursor, pattern, step).Result()
			if err != nil {
				return err
			}
			mu.Lock()
			for _, name := range names {
				k, known := rediskey.Parse(o.prefix, name)
				unknown := false
				if !known {
					k, unknown = rediskey.ParseUnknown(o.prefix, name)
				}
				switch {
				case o.policy != nil && k.Policy != *o.policy || key != nil && k.User != *key:
				case known:
					found = append(found, k)
				case unknown:
					o.unknown = append(o.unknown, k)
				}
			}
			seen = min(seen+step, size)
			o.say(fmt.Sprintf("scanned %d of %d names, %d counters", seen, size, len(found)))
			mu.Unlock()
			if cursor = next; cursor == 0 {
				return nil
			}
		}
	}
	switch client := o.client.(type) {
	case *redis.Client:
		if err := o.isWhole(client); err != nil {
			return nil, err
		}
		err := node(o.ctx, client)
		return found, err
	case *redis.ClusterClient:
		if key == nil {
			err := client.ForEachMaster(o.ctx, node)
			return found, err
		}
		// The key alone decides where it is.
		one, err := client.MasterForKey(o.ctx, rediskey.Key{Prefix: o.prefix, User: *key}.String())
		if err != nil {
			return nil, err
		}
		err = node(o.ctx, one)
		return found, err
	}
	return nil, fmt.Errorf("a client of type %T cannot be scanned", o.client)
}
