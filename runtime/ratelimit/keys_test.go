package ratelimit_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/ratelimitgen/ratelimitgen/runtime/ratelimit"
	"pgregory.net/rapid"
)

func TestAppendIPGroupsAddressesOfOneHost(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"192.0.2.1":             "192.0.2.1",
		"::ffff:192.0.2.1":      "192.0.2.1",
		"::ffff:192.0.2.1%eth0": "192.0.2.1",
		"2001:db8::1":           "2001:db8::/64",
		"2001:db8:0:0:ffff::":   "2001:db8::/64",
		"2001:db8:0:1::1":       "2001:db8:0:1::/64",
		"fe80::1%eth0":          "fe80::/64",
	} {
		r := &ratelimit.Request{Addr: netip.MustParseAddr(addr)}
		if got := ratelimit.AppendIP([]byte{}, r); string(got) != want {
			t.Errorf("AppendIP of %s = %q, want %q", addr, got, want)
		}
	}
}

func TestKeysJoinElementsOfAllKinds(t *testing.T) {
	t.Parallel()
	b := ratelimit.AppendText(make([]byte, 0, 64), `a|b\c`)
	b = ratelimit.AppendInt(b, -5)
	b = ratelimit.AppendUint(b, 1<<63)
	b = ratelimit.AppendBool(b, false)
	b = ratelimit.AppendUser(b, &ratelimit.Request{User: "eve"})
	b = ratelimit.AppendIP(b, &ratelimit.Request{Addr: netip.MustParseAddr("192.0.2.1")})
	if want := `a\|b\\c|-5|9223372036854775808|false|eve|192.0.2.1`; string(b) != want {
		t.Errorf("got %s, want %s", b, want)
	}
}

func TestAnAbsentElementMakesTheKeyAbsent(t *testing.T) {
	t.Parallel()
	for name, b := range map[string][]byte{
		"nil":           nil,
		"empty text":    ratelimit.AppendText([]byte("a"), ""),
		"no request":    ratelimit.AppendIP([]byte("a"), nil),
		"no address":    ratelimit.AppendIP([]byte("a"), &ratelimit.Request{}),
		"no user":       ratelimit.AppendUser([]byte("a"), &ratelimit.Request{}),
		"no user, nil":  ratelimit.AppendUser([]byte("a"), nil),
		"no text first": ratelimit.AppendText([]byte{}, ""),
	} {
		r := &ratelimit.Request{User: "eve", Addr: netip.MustParseAddr("192.0.2.1")}
		for _, got := range [][]byte{
			b,
			ratelimit.AppendText(b, "x"),
			ratelimit.AppendInt(b, 1),
			ratelimit.AppendUint(b, 1),
			ratelimit.AppendBool(b, true),
			ratelimit.AppendIP(b, r),
			ratelimit.AppendUser(b, r),
		} {
			if got != nil {
				t.Errorf("%s: got %q, want nil", name, got)
			}
		}
	}
}

func TestKeysOfDifferentTuplesDiffer(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tuple := rapid.SliceOfN(rapid.StringOfN(rapid.RuneFrom([]rune(`ab|\`)), 1, 4, -1), 1, 4)
		x, y := tuple.Draw(t, "x"), tuple.Draw(t, "y")
		same := strings.Join(x, "\x00") == strings.Join(y, "\x00")
		if (encode(x) == encode(y)) != same {
			t.Fatalf("%q and %q are encoded as %s and %s", x, y, encode(x), encode(y))
		}
	})
}

func encode(tuple []string) string {
	b := []byte{}
	for _, s := range tuple {
		b = ratelimit.AppendText(b, s)
	}
	return string(b)
}
