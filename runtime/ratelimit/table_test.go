package ratelimit

import (
	"strings"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// A shard holds the same keys as a map, also where all hashes collide.
func TestShardIsAMap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var s shard
		type id struct {
			place
			key string
		}
		model := map[id]int64{}
		hashes := rapid.SampledFrom([]uint32{1, 4, 1 << 20}).Draw(t, "hashes")
		for i := range rapid.Int64Range(1, 300).Draw(t, "steps") {
			key := strings.Repeat("x", rapid.SampledFrom([]int{0, 1, 23, 24, 25, 128}).Draw(t, "length"))
			if key != "" {
				key = key[1:] + rapid.SampledFrom([]string{"a", "b"}).Draw(t, "last")
			}
			code := uint32(len(key))
			if len(key) > inlineKey {
				code = longKey
			}
			p := place{hash: rapid.Uint32Range(0, hashes-1).Draw(t, "hash"), meta: rapid.Uint32Range(0, 2).Draw(t, "policy")<<8 | code}
			k := id{p, key}
			want, known := model[k]
			j, e := s.find(p, []byte(key))
			switch {
			case known != (e != nil):
				t.Fatalf("step %d: found = %t, want %t", i, e != nil, known)
			case known && (e.base != want || s.entry(j) != e):
				t.Fatalf("step %d: found another key's entry", i)
			case known:
				s.remove(j, slidingLog)
				delete(model, k)
			default:
				e = s.insert(p, []byte(key))
				e.base, e.part = i, s.rings.add()
				model[k] = i
			}
		}
		if int(s.entries) != len(model) || len(s.rings.all)-1-len(s.rings.free) > len(model) {
			t.Fatalf("%d entries and %d rings, of which %d are free, for %d keys", s.entries, len(s.rings.all), len(s.rings.free), len(model))
		}
	})
}

func TestEntryAndShardSizes(t *testing.T) {
	t.Parallel()
	if n := unsafe.Sizeof(entry{}); n != 56 {
		t.Errorf("an entry takes %d bytes, want 56, of which 32 fill the allocator's class of 1792", n)
	}
	if n := unsafe.Sizeof(shard{}); n%64 != 0 {
		t.Errorf("a shard takes %d bytes, want whole cache lines", n)
	}
}
