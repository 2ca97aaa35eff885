package redisstore_test

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

// place returns the key where the state of a name is.
func place(name string) string {
	if redisstore.InHashes() {
		name, _ = redisstore.Split(name)
	}
	return name
}

// keysOf returns how many keys hold the states of n users, each of as many policies.
func keysOf(users, policies int64) int64 {
	if redisstore.InHashes() {
		return users
	}
	return users * policies
}

// longest returns for how long a state may be kept that needs it for a time, where one of
// the same key was kept for another: a hash never lives shorter for what is written.
func longest(need, before time.Duration) time.Duration {
	if redisstore.InHashes() {
		return max(need, before)
	}
	return need
}

// getState returns the state of a name.
func getState(ctx context.Context, client redis.Cmdable, name string) *redis.StringCmd {
	if redisstore.InHashes() {
		return client.HGet(ctx, place(name), field(name))
	}
	return client.Get(ctx, name)
}

// setState has a name hold a text for a while.
func setState(ctx context.Context, client redis.Cmdable, name, text string, life time.Duration) error {
	if redisstore.InHashes() {
		if err := client.HSet(ctx, place(name), field(name), text).Err(); err != nil {
			return err
		}
		return client.PExpire(ctx, place(name), life).Err()
	}
	return client.Set(ctx, name, text, life).Err()
}

func field(name string) string {
	_, field := redisstore.Split(name)
	return field
}
