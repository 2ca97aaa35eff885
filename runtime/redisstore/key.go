package redisstore

import (
	"strings"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

// key returns where the counter of p and userKey is. Different pairs have
// different keys: the user's part ends at the first '}', and the algorithm begins
// after the last ':'.
func (s *Store) key(p *ratelimit.Policy, userKey string) string {
	algorithm := form(p)
	var space [192]byte
	b := space[:0]
	b = append(b, s.prefix...)
	b = append(b, '{')
	if userKey == "" {
		// An empty tag would be no tag; a lone '%' stands for no other key.
		b = append(b, '%')
	}
	b = appendEscaped(b, userKey)
	b = append(b, '}')
	b = appendEscaped(b, p.ID)
	b = append(b, ':')
	b = append(b, algorithm...)
	return string(b)
}

// appendEscaped appends text in printable ASCII without braces, injectively.
func appendEscaped(b []byte, text string) []byte {
	const hex = "0123456789ABCDEF"
	for i := range len(text) {
		switch c := text[i]; {
		case c <= ' ', c > '~', c == '%', c == '{', c == '}':
			b = append(b, '%', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return b
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
