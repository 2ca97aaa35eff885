package ratelimit

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// AppendText and the functions beside it write the elements of a key. Each appends
// one element to b, behind a '|' unless it is the first, and returns the extended
// slice. Text is escaped so that two lists of elements never give one key.
//
// A nil b says that an element before was absent, and stays nil; an element that
// is absent or empty makes it nil. Start from an empty slice that is not nil. No
// function allocates while b's capacity suffices, but for AppendHash of long text.
func AppendText(b []byte, s string) []byte {
	if b == nil || s == "" {
		return nil
	}
	b = separate(b)
	from := 0
	for i := 0; i < len(s); i++ {
		if s[i] == '|' || s[i] == '\\' {
			b = append(append(b, s[from:i]...), '\\')
			from = i
		}
	}
	return append(b, s[from:]...)
}

// AppendLower appends s in lower case to the key b, as strings.ToLower has it. See
// AppendText.
func AppendLower(b []byte, s string) []byte {
	if b == nil || s == "" {
		return nil
	}
	return appendLower(separate(b), s, true)
}

// AppendLowerPiece appends s in lower case to b as it is, without a '|' before it
// and not escaped: a piece of a text and no element.
func AppendLowerPiece(b []byte, s string) []byte { return appendLower(b, s, false) }

func appendLower(b []byte, s string, escape bool) []byte {
	from := len(b)
	b = append(b, s...)
	lower := b[from:]
	for i, c := range lower {
		switch {
		case 'A' <= c && c <= 'Z':
			lower[i] = c + 'a' - 'A'
		case c >= utf8.RuneSelf || escape && (c == '|' || c == '\\'):
			return appendLowerRunes(b[:from+i], s[i:], escape)
		}
	}
	return b
}

// appendLowerRunes is appendLower for text that is longer or shorter in lower case.
func appendLowerRunes(b []byte, s string, escape bool) []byte {
	for _, r := range s {
		if escape && (r == '|' || r == '\\') {
			b = append(b, '\\')
		}
		// No other rune has one of these as its lower case.
		b = utf8.AppendRune(b, unicode.ToLower(r))
	}
	return b
}

// AppendHash appends the first half of the SHA-256 of s to the key b, in 32
// hexadecimal digits. Keys are stored and shown; that of a credential such as a
// token must not give it away. It protects what cannot be guessed: a short number
// can be found by hashing all of them. It allocates if s is longer than 256 bytes.
// See AppendText.
func AppendHash(b []byte, s string) []byte {
	if b == nil || s == "" {
		return nil
	}
	var buf [256]byte
	sum := sha256.Sum256(append(buf[:0], s...))
	return hex.AppendEncode(separate(b), sum[:16])
}

// AppendInt appends v in decimal to the key b. See AppendText.
func AppendInt(b []byte, v int64) []byte {
	if b == nil {
		return nil
	}
	return strconv.AppendInt(separate(b), v, 10)
}

// AppendUint appends v in decimal to the key b. See AppendText.
func AppendUint(b []byte, v uint64) []byte {
	if b == nil {
		return nil
	}
	return strconv.AppendUint(separate(b), v, 10)
}

// AppendBool appends "true" or "false" to the key b. See AppendText.
func AppendBool(b []byte, v bool) []byte {
	if b == nil {
		return nil
	}
	return strconv.AppendBool(separate(b), v)
}

// AppendIP appends the caller's address to the key b: an IPv4 address as
// "192.0.2.1", also if it came as ::ffff:192.0.2.1, and an IPv6 address as the /64
// network it lies in, "2001:db8::/64", since one host can use all addresses of
// that. Zones are dropped. The result is nil if r is nil or has no address. See
// AppendText.
func AppendIP(b []byte, r *Request) []byte { return AppendPrefix(b, r, 32, 64) }

// AppendPrefix is AppendIP for networks of other lengths: bits4 is that of an IPv4
// network, 0..32, and bits6 that of an IPv6 network, 0..128. A network is appended
// as "192.0.2.0/24", and an address by itself where the length is all of it. The
// result is nil if the length is out of range.
func AppendPrefix(b []byte, r *Request, bits4, bits6 int) []byte {
	return appendPrefix(b, r, bits4, bits6, "")
}

func appendPrefix(b []byte, r *Request, bits4, bits6 int, tag string) []byte {
	if b == nil || r == nil || !r.Addr.IsValid() {
		return nil
	}
	addr, bits := r.Addr.Unmap().WithZone(""), bits6
	if addr.Is4() {
		bits = bits4
	}
	network, err := addr.Prefix(bits)
	if err != nil {
		return nil
	}
	b = append(separate(b), tag...)
	if bits == addr.BitLen() {
		return addr.AppendTo(b)
	}
	return network.AppendTo(b)
}

// AppendTaggedIP is AppendIP for an element that is an address or else a text: a '\\'
// before the address, which no escaped text begins with alone, keeps a user who is called
// "192.0.2.1" apart from whoever calls from there.
func AppendTaggedIP(b []byte, r *Request) []byte { return AppendTaggedPrefix(b, r, 32, 64) }

// AppendTaggedPrefix is AppendTaggedIP for networks of other lengths. See AppendPrefix.
func AppendTaggedPrefix(b []byte, r *Request, bits4, bits6 int) []byte {
	return appendPrefix(b, r, bits4, bits6, `\`)
}

// AppendUser appends the caller's user name to the key b. The result is nil if r
// is nil or has no user. See AppendText.
func AppendUser(b []byte, r *Request) []byte {
	if r == nil {
		return nil
	}
	return AppendText(b, r.User)
}

func separate(b []byte) []byte {
	if len(b) == 0 {
		return b
	}
	return append(b, '|')
}
