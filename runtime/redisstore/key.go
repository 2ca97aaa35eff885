package redisstore

import (
	"strings"

	"github.com/ratelimitgen/ratelimitgen/internal/rediskey"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// key returns where the counter of p and userKey is.
func (s *Store) key(p *ratelimit.Policy, userKey string) string {
	return s.keyOf(p, userKey).String()
}

func (s *Store) keyOf(p *ratelimit.Policy, userKey string) rediskey.Key {
	return rediskey.Key{Prefix: s.prefix, User: userKey, Policy: p.ID, Form: form(p)}
}

// hashTag returns the part of key that decides its slot, as Redis Cluster and
// go-redis's Ring find it.
func hashTag(key string) string {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			return tag
		}
	}
	return key
}
