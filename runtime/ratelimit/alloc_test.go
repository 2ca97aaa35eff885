package ratelimit_test

import (
	"testing"
	"time"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
)

func TestWrapperDoesNotAllocate(t *testing.T) {
	ctx := t.Context()
	for name, p := range roomy {
		s := newLogin(p)
		_ = s.Login(ctx, "some.user@example")
		wantAllocs(t, name, 0, func() {
			if err := s.Login(ctx, "some.user@example"); err != nil {
				t.Error(err)
			}
		})
	}
	s := newLogin(tight)
	_ = s.Login(ctx, "some.user@example")
	wantAllocs(t, "refused", 1, func() {
		if err := s.Login(ctx, "some.user@example"); err == nil {
			t.Error("admitted")
		}
	})

	p, q := roomy["token-bucket"], roomy["sliding-log"]
	p.ID, p.Global, q.ID = "all", true, "user"
	two := &transfer{ratelimit.New().MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{p, q}})}
	_ = two.Transfer(ctx, "some.user@example", 1)
	wantAllocs(t, "two policies", 0, func() { _ = two.Transfer(ctx, "some.user@example", 0) })
	wantAllocs(t, "two policies, charged", 0, func() {
		if err := two.Transfer(ctx, "some.user@example", 1); err != nil {
			t.Error(err)
		}
	})
	one := ratelimit.New().MustGate(&ratelimit.Spec{Policies: []ratelimit.Policy{perMinute("a", 1000)}})
	wantAllocs(t, "Take and Peek", 0, func() {
		var buf [64]byte
		c := ratelimit.Charge{Key: ratelimit.AppendInt(buf[:0], 7), Cost: 1}
		_, _ = one.Take(ctx, c)
		_, _ = one.Peek(ctx, c)
	})
	long := make([]byte, 500)
	wantAllocs(t, "a long key", 0, func() { _ = one.AllowN(ctx, long, 0) })
}

func TestOffGateDoesNotAllocate(t *testing.T) {
	s := newLogin(ratelimit.Policy{Limit: 5, Window: time.Minute, Mode: ratelimit.Off})
	wantAllocs(t, "off", 0, func() { _ = s.Login(t.Context(), "some.user@example") })
}

func wantAllocs(t *testing.T, name string, want float64, f func()) {
	t.Helper()
	if got := testing.AllocsPerRun(100, f); got != want {
		t.Errorf("%s: %v allocations, want %v", name, got, want)
	}
}
