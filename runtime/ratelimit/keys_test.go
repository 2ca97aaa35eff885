package ratelimit_test

import (
	"crypto/sha256"
	"fmt"
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

func TestAppendPrefixGroupsAddresses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		addr         string
		bits4, bits6 int
		want         string
	}{
		{"192.0.2.129", 24, 56, "192.0.2.0/24"},
		{"192.0.2.129", 25, 56, "192.0.2.128/25"},
		{"::ffff:192.0.2.129", 24, 56, "192.0.2.0/24"},
		{"192.0.2.129", 32, 56, "192.0.2.129"},
		{"2001:db8:0:1ff::1", 24, 56, "2001:db8:0:100::/56"},
		{"fe80::1%eth0", 24, 128, "fe80::1"},
		{"192.0.2.129", 33, 56, ""},
		{"2001:db8::1", 24, 129, ""},
	} {
		r := &ratelimit.Request{Addr: netip.MustParseAddr(tt.addr)}
		got := ratelimit.AppendPrefix([]byte("k"), r, tt.bits4, tt.bits6)
		if want := "k|" + tt.want; tt.want != "" && string(got) != want || tt.want == "" && got != nil {
			t.Errorf("AppendPrefix of %s by %d and %d = %q, want %q", tt.addr, tt.bits4, tt.bits6, got, want)
		}
	}
}

// No text is an address, in whatever place of a key.
func TestATaggedAddressIsNoText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := &ratelimit.Request{Addr: netip.AddrFrom4([4]byte{192, 0, 2, 1})}
		before := rapid.SampledFrom([]string{"", "a"}).Draw(t, "before")
		list := func(last func(b []byte) []byte) string {
			b := []byte{}
			if before != "" {
				b = ratelimit.AppendText(b, before)
			}
			return string(last(b))
		}
		address := list(func(b []byte) []byte { return ratelimit.AppendTaggedIP(b, r) })
		text := rapid.StringOf(rapid.SampledFrom([]rune(`\|a192.0.2.1`))).Draw(t, "text")
		for _, s := range []string{text, address, "192.0.2.1", `\192.0.2.1`, `\\192.0.2.1`} {
			if s != "" && list(func(b []byte) []byte { return ratelimit.AppendText(b, s) }) == address {
				t.Fatalf("the text %q is the address %q", s, address)
			}
		}
	})
}

func TestAppendLowerLowersAsStringsDoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(
			rapid.StringOf(rapid.RuneFrom([]rune("aB|\\ÄßİKΣ€😀\ufffd"))),
			rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) }),
		).Draw(t, "s")
		if got, want := string(ratelimit.AppendLowerPiece([]byte("K"), s)), "K"+strings.ToLower(s); got != want {
			t.Fatalf("piece of %q: %q, want %q", s, got, want)
		}
		got, want := ratelimit.AppendLower([]byte("K"), s), ratelimit.AppendText([]byte("K"), strings.ToLower(s))
		if string(got) != string(want) || (got == nil) != (want == nil) {
			t.Fatalf("element %q: %q, want %q", s, got, want)
		}
	})
}

func TestAppendHashHidesTheText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1000)
	for s, want := range map[string]string{
		// The first halves of what sha256sum prints.
		"abc": "k|ba7816bf8f01cfea414140de5dae2223",
		long:  "k|" + hash(long),
	} {
		if got := ratelimit.AppendHash([]byte("k"), s); string(got) != want {
			t.Errorf("AppendHash of %.10q: %s, want %s", s, got, want)
		}
	}
}

func hash(s string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(s)))[:32] }

func TestKeyElementsDoNotAllocate(t *testing.T) {
	var buf [128]byte
	r := &ratelimit.Request{Addr: netip.MustParseAddr("2001:db8::1"), User: "eve"}
	for name, f := range map[string]func(){
		"text":   func() { ratelimit.AppendText(buf[:0], "a|b") },
		"lower":  func() { ratelimit.AppendLower(buf[:0], "Ann|ÄÖ") },
		"piece":  func() { ratelimit.AppendLowerPiece(buf[:0], "Ann|ÄÖ") },
		"hash":   func() { ratelimit.AppendHash(buf[:0], "Bearer 0123456789012345678901234567890123456789") },
		"prefix": func() { ratelimit.AppendPrefix(buf[:0], r, 24, 56) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
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
		"no lower text": ratelimit.AppendLower([]byte("a"), ""),
		"no credential": ratelimit.AppendHash([]byte("a"), ""),
		"no text first": ratelimit.AppendText([]byte{}, ""),
	} {
		r := &ratelimit.Request{User: "eve", Addr: netip.MustParseAddr("192.0.2.1")}
		for _, got := range [][]byte{
			b,
			ratelimit.AppendText(b, "x"),
			ratelimit.AppendLower(b, "X"),
			ratelimit.AppendHash(b, "x"),
			ratelimit.AppendPrefix(b, r, 24, 56),
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
