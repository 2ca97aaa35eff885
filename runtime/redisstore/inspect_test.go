package redisstore_test

import (
	"slices"
	"testing"
	"time"

	"github.com/ratelimitgen/ratelimitgen/internal/rediskey"
	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"github.com/ratelimitgen/ratelimitgen/runtime/redisstore"
)

func TestEachFormHasAPolicyForOperators(t *testing.T) {
	t.Parallel()
	store := redisstore.New(nil)
	for _, form := range rediskey.Forms() {
		want := rediskey.Key{Prefix: "ratelimit:", User: "k", Policy: "p", Form: form}.String()
		if got := store.KeyOf(rediskey.PolicyOf(form, "p"), "k"); got != want {
			t.Errorf("a policy of form %s is at %s", form, got)
		}
	}
	for _, p := range append(recorded(), policies()...) {
		if k, ok := rediskey.Parse("ratelimit:", store.KeyOf(p, "a}b")); !ok || k.User != "a}b" || k.Policy != p.ID {
			t.Errorf("%s is parsed as %+v, %v", store.KeyOf(p, "a}b"), k, ok)
		}
	}
}

// What the script writes, operators can read.
func TestStatesOfAllFormsCanBeRead(t *testing.T) {
	t.Parallel()
	used := map[string]int64{"log": 3, "fixed": 3, "fixed+": 3, "aligned": 3, "quota": 0}
	all := append(recorded(), policies()...)
	for _, p := range all {
		f := newFake(t)
		f.at(sec)
		k, _ := rediskey.Parse(f.prefix, f.store.KeyOf(p, "k"))
		check := func(blocked bool) {
			t.Helper()
			s := rediskey.ParseState(k.Form, []byte(f.dump(p)))
			want, ok := used[k.Form]
			if !ok {
				want = -1
			}
			if !s.Known || s.Used != want || !s.Last.Equal(time.UnixMicro(epoch+sec)) || !s.Locked.IsZero() || s.Blocked.IsZero() == blocked {
				t.Errorf("%s (%s), blocked %v: %+v", p.ID, k.Form, blocked, s)
			}
		}
		op := ratelimit.Op{Policy: p, Key: "k", Cost: min(3, p.Capacity()), ID: 7}
		f.take(op)
		check(false)
		if reserves(p) && !p.Count && p.Algorithm != ratelimit.Concurrency && p.Algorithm != ratelimit.TimeQuota && p.Algorithm != ratelimit.LeakyBucket {
			op.Cost = p.Capacity()
			if _, err := f.store.Reserve(t.Context(), []ratelimit.Op{op}, time.Hour); err != nil {
				t.Fatal(err)
			}
			if s := rediskey.ParseState(k.Form, []byte(f.dump(p))); s.Ahead != 1 {
				t.Errorf("%s (%s), one ahead: %+v", p.ID, k.Form, s)
			}
			check(false)
		}
		f.block(p, time.Hour)
		check(true)
	}

	f := newFake(t)
	p := all[0] // with a lock
	for range 3 {
		f.take(ratelimit.Op{Policy: p, Key: "k", Cost: 3, ID: 7})
	}
	if s := rediskey.ParseState("log+", []byte(f.dump(p))); !s.Known || !s.Locked.Equal(time.UnixMicro(epoch+sec)) {
		t.Errorf("locked: %+v", s)
	}
	f = newFake(t)
	f.block(p, time.Second)
	if s := rediskey.ParseState("log+", []byte(f.dump(p))); !s.Known || s.Used != 0 || !s.Blocked.Equal(time.UnixMicro(epoch+sec)) {
		t.Errorf("blocked before its first call: %+v", s)
	}

	f = newFake(t)
	f.at(sec)
	places := &ratelimit.Policy{ID: "places", Algorithm: ratelimit.Concurrency, Limit: 3, Lease: time.Minute}
	f.take(waits(places, 1, 1, 2))
	f.take(waits(places, 2, 2, 3))
	want := []rediskey.Place{{Until: time.UnixMicro(epoch + 4*sec)}, {Until: time.UnixMicro(epoch + 61*sec), Units: 2}}
	if s := rediskey.ParseState("concurrency", []byte(f.dump(places))); !s.Known || !slices.Equal(s.Places, want) {
		t.Errorf("places: %+v, want %+v", s, want)
	}
	if s := rediskey.ParseState("concurrency", []byte(f.dump(places)+"x")); s.Known {
		t.Errorf("places and a byte: %+v", s)
	}
}
