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
		return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.User, b.User), cmp.Compare(a.Form, b.Form), compareLayouts(a, b))
	})
	found = slices.Compact(found)
	for _, key := range keys {
		if !slices.ContainsFunc(found, func(k rediskey.Key) bool { return k.User == key }) {
			without = append(without, key)
		}
	}
	return found, without, nil
}

// scanStep is how many names a server looks at before it does what others ask.
const scanStep = 1000

// compareLayouts has counters in strings before those in hashes.
func compareLayouts(a, b rediskey.Key) int {
	switch {
	case a.InHash == b.InHash:
		return 0
	case b.InHash:
		return -1
	}
	return 1
}

// look returns the counters of the policy with a key, without a scan.
func (o *operator) look(key string) ([]rediskey.Key, error) {
	pipe := o.client.Pipeline()
	hash := pipe.Exists(o.ctx, rediskey.Key{Prefix: o.prefix, User: key}.Hash())
	var names []rediskey.Key
	var asString []*redis.IntCmd
	var asField []*redis.BoolCmd
	for _, form := range rediskey.Forms() {
		k := rediskey.Key{Prefix: o.prefix, User: key, Policy: *o.policy, Form: form}
		names = append(names, k)
		asString = append(asString, pipe.Exists(o.ctx, k.String()))
		asField = append(asField, pipe.HExists(o.ctx, k.Hash(), k.Field()))
	}
	if _, err := pipe.Exec(o.ctx); err != nil && !isReply(err) {
		return nil, err
	}
	var found []rediskey.Key
	for i, k := range names {
		if err := cmp.Or(hash.Err(), asString[i].Err()); err != nil {
			return nil, err
		}
		if asString[i].Val() > 0 {
			found = append(found, k)
		}
		// Where there is no hash, the user need not be allowed to ask for fields.
		if err := asField[i].Err(); err != nil && hash.Val() > 0 && !redis.HasErrorPrefix(err, "WRONGTYPE") {
			return nil, err
		}
		if asField[i].Val() {
			k.InHash = true
			found = append(found, k)
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
	pattern := rediskey.Pattern(o.prefix, key)
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
		for cursor := uint64(0); ; {
			names, next, err := client.Scan(ctx, cursor, pattern, scanStep).Result()
			if err != nil {
				return err
			}
			known, unknown, err := o.counters(ctx, key, names)
			if err != nil {
				return err
			}
			mu.Lock()
			found = append(found, known...)
			o.unknown = append(o.unknown, unknown...)
			seen = min(seen+scanStep, size)
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
		one, err := o.home(client, *key)
		if err != nil {
			return nil, err
		}
		err = node(o.ctx, one)
		return found, err
	}
	return nil, fmt.Errorf("a client of type %T cannot be scanned", o.client)
}

// home returns the node that has all counters of a key, which decides that by itself.
func (o *operator) home(client *redis.ClusterClient, key string) (*redis.Client, error) {
	return client.MasterForKey(o.ctx, rediskey.Key{Prefix: o.prefix, User: key}.String())
}

// counters returns the counters that some names are, or hold, of a key, nil for any: those
// of forms that this version knows, and others.
func (o *operator) counters(ctx context.Context, key *string, names []string) (known, unknown []rediskey.Key, err error) {
	add := func(parse, parseUnknown func(string) (rediskey.Key, bool), text string) {
		k, isKnown := parse(text)
		isUnknown := false
		if !isKnown {
			k, isUnknown = parseUnknown(text)
		}
		switch {
		case o.policy != nil && k.Policy != *o.policy || key != nil && k.User != *key:
		case isKnown:
			known = append(known, k)
		case isUnknown:
			unknown = append(unknown, k)
		}
	}
	var hashes []rediskey.Key
	for _, name := range names {
		if hash, ok := rediskey.ParseHash(o.prefix, name); ok {
			hashes = append(hashes, hash)
			continue
		}
		add(func(text string) (rediskey.Key, bool) { return rediskey.Parse(o.prefix, text) },
			func(text string) (rediskey.Key, bool) { return rediskey.ParseUnknown(o.prefix, text) }, name)
	}
	for some := range slices.Chunk(hashes, batch) {
		err := o.fields(ctx, some, func(hash rediskey.Key, field string) { add(hash.ParseField, hash.ParseUnknownField, field) })
		if err != nil {
			return nil, nil, err
		}
	}
	return known, unknown, nil
}

// fields calls visit with the fields of hashes, at least once with each. What is no hash,
// or is gone, has none. The client is asked, and not the node that knew the names: slots of
// a cluster may move.
func (o *operator) fields(ctx context.Context, hashes []rediskey.Key, visit func(hash rediskey.Key, field string)) error {
	const step = 100 // those of one hash; the states come with them
	pattern := rediskey.FieldPattern(o.policy)
	cursors := make(map[rediskey.Key]uint64, len(hashes))
	for _, hash := range hashes {
		cursors[hash] = 0
	}
	for len(cursors) > 0 {
		pipe := o.client.Pipeline()
		replies := make(map[rediskey.Key]*redis.ScanCmd, len(cursors))
		for hash, cursor := range cursors {
			replies[hash] = pipe.HScan(ctx, hash.Hash(), cursor, pattern, step)
		}
		if _, err := pipe.Exec(ctx); err != nil && !isReply(err) {
			return err
		}
		for hash, reply := range replies {
			pairs, next, err := reply.Result()
			if err != nil && !redis.HasErrorPrefix(err, "WRONGTYPE") {
				return err
			}
			for i := 0; i < len(pairs); i += 2 {
				visit(hash, pairs[i])
			}
			if cursors[hash] = next; next == 0 {
				delete(cursors, hash)
			}
		}
	}
	return nil
}

// keepsHashes reports whether some counters of any policy are in hashes, as far as a few
// steps of a scan tell: where all of them are, one of the first names is most likely theirs.
func (o *operator) keepsHashes(key string) (bool, error) {
	const steps = 10
	node, _ := o.client.(*redis.Client)
	if cluster, ok := o.client.(*redis.ClusterClient); ok {
		var err error
		if node, err = o.home(cluster, key); err != nil {
			return false, err
		}
	}
	cursor := uint64(0)
	for range steps {
		names, next, err := node.ScanType(o.ctx, cursor, rediskey.Pattern(o.prefix, nil), scanStep, "hash").Result()
		if err != nil {
			return false, err
		}
		for _, name := range names {
			if _, ok := rediskey.ParseHash(o.prefix, name); ok {
				return true, nil
			}
		}
		if cursor = next; cursor == 0 {
			break
		}
	}
	return false, nil
}
