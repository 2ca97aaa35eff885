package ratelimit

import "strconv"

// AppendText and the functions beside it write the elements of a key. Each appends
// one element to b, behind a '|' unless it is the first, and returns the extended
// slice. Text is escaped so that two lists of elements never give one key.
//
// A nil b says that an element before was absent, and stays nil; an element that
// is absent or empty makes it nil. Start from an empty slice that is not nil. No
// function allocates while b's capacity suffices.
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
func AppendIP(b []byte, r *Request) []byte {
	if b == nil || r == nil || !r.Addr.IsValid() {
		return nil
	}
	b = separate(b)
	addr := r.Addr.Unmap()
	if addr.Is4() {
		return addr.AppendTo(b)
	}
	network, err := addr.Prefix(64)
	if err != nil {
		return nil
	}
	return network.AppendTo(b)
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
