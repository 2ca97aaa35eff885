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

// tagAt is where users' keys are in the names of counters, if s keeps states in hashes, or
// else 0.
func (s *Store) tagAt() int {
	if s.layout == inStrings {
		return 0
	}
	return len(s.prefix) + 1
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
