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
		steps := rapid.SampledFrom([]int64{10, 100, 1000}).Draw(t, "steps")
		for i := range steps {
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
				s.remove(p.hash, j, slidingLog)
				delete(model, k)
			default:
				e = s.insert(p, []byte(key))
				e.base, e.part = i, s.rings.add()
				model[k] = i
			}
		}
		if int(s.live) != len(model) || len(s.rings.all)-1-len(s.rings.free) > len(model) {
			t.Fatalf("%d entries and %d rings, of which %d are free, for %d keys", s.live, len(s.rings.all), len(s.rings.free), len(model))
		}
		checkPages(t, &s)
	})
}

// checkPages checks that the pages of s list each entry once, where it belongs and
// without gaps, and that each spare page has a use or waits for one.
func checkPages(t *rapid.T, s *shard) {
	listed, spares := map[uint32]bool{}, uint32(0)
	for i := range s.count {
		for b := s.pages.at(i); ; b = s.spare.at(b.next) {
			for j := range b.n {
				if s.page(b.hash[j]) != s.pages.at(i) || listed[b.slot[j]] {
					t.Fatalf("page %d lists entry %d, of hash %x", i, b.slot[j], b.hash[j])
				}
				listed[b.slot[j]] = true
			}
			if b.next == 0 {
				break
			}
			if spares++; b.n != pageLen || s.spare.at(b.next).n == 0 {
				t.Fatalf("page %d goes on behind one of %d entries with one of %d", i, b.n, s.spare.at(b.next).n)
			}
		}
	}
	for i := s.idle; i != 0; i = s.spare.at(i).next {
		if spares++; s.spare.at(i).n != 0 {
			t.Fatalf("spare page %d is not empty", i)
		}
	}
	if len(listed) != int(s.live) || spares != s.spares {
		t.Fatalf("%d entries are listed of %d, %d spare pages of %d", len(listed), s.live, spares, s.spares)
	}
}

func TestEntryAndShardSizes(t *testing.T) {
	t.Parallel()
	if n := unsafe.Sizeof(entry{}); n != 48 {
		t.Errorf("an entry takes %d bytes, want 48, of which 32 and 256 fill the allocator's classes of 1536 and 12288", n)
	}
	if n := unsafe.Sizeof(page{}); n != 64 {
		t.Errorf("a page takes %d bytes, want a cache line", n)
	}
	if n := unsafe.Sizeof(shard{}); n%64 != 0 {
		t.Errorf("a shard takes %d bytes, want whole cache lines", n)
	}
}
