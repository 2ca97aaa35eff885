package policyfile

import (
	"cmp"
	"net/netip"
	"slices"
)

// network is an address, or those that share its first bits. An IPv4 address stands in
// the upper half of hi.
type network struct {
	hi, lo uint64
	bits   uint8
	v4     bool
}

func networkOf(p netip.Prefix) network {
	a := p.Addr()
	if a.Is4() {
		b := a.As4()
		return network{hi: uint64(be32(b[:])) << 32, bits: uint8(p.Bits()), v4: true}
	}
	b := a.As16()
	return network{hi: be64(b[:8]), lo: be64(b[8:]), bits: uint8(p.Bits())}
}

func be32(b []byte) uint32 {
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

func be64(b []byte) uint64 { return uint64(be32(b))<<32 | uint64(be32(b[4:])) }

// contains reports whether all of q, of the same family, lies in n.
func (n *network) contains(q network) bool {
	if n.bits > q.bits {
		return false
	}
	hi, lo := mask(n.bits)
	return q.hi&hi == n.hi && q.lo&lo == n.lo
}

func mask(bits uint8) (hi, lo uint64) {
	if bits <= 64 {
		return ^uint64(0) << (64 - bits), 0
	}
	return ^uint64(0), ^uint64(0) << (128 - bits)
}

// masked returns n without what stands behind its bits.
func (n network) masked() network {
	hi, lo := mask(n.bits)
	n.hi, n.lo = n.hi&hi, n.lo&lo
	return n
}

func compareNetworks(a, b network) int {
	return cmp.Or(cmp.Compare(a.hi, b.hi), cmp.Compare(a.lo, b.lo), cmp.Compare(a.bits, b.bits))
}

// networks finds the first rule that has a network around another. Its networks, of
// one family, are sorted, so that those around any other are the one before it or
// enclose that.
type networks []enclosed

type enclosed struct {
	network
	parent int32 // the smallest network around it, or -1
	rule   int32 // the first of the rules that have it or a network around it
}

// newNetworks sorts networks with their rules.
func newNetworks(all []enclosed) networks {
	slices.SortFunc(all, func(a, b enclosed) int {
		return cmp.Or(compareNetworks(a.network, b.network), cmp.Compare(a.rule, b.rule))
	})
	all = slices.CompactFunc(all, func(a, b enclosed) bool { return a.network == b.network })
	around := int32(-1)
	for i := range all {
		e := &all[i]
		for around >= 0 && !all[around].contains(e.network) {
			around = all[around].parent
		}
		e.parent = around
		if around >= 0 {
			e.rule = min(e.rule, all[around].rule)
		}
		around = int32(i)
	}
	return all
}

// find returns the first rule that has a network around q, or -1. It takes the
// logarithm of the number of networks, and a step for each network that is around the
// one before q and not around q.
func (n networks) find(q network) int32 {
	low, high := 0, len(n)
	for low < high {
		middle := int(uint(low+high) >> 1)
		if compareNetworks(n[middle].network, q) <= 0 {
			low = middle + 1
		} else {
			high = middle
		}
	}
	for i := int32(low) - 1; i >= 0; i = n[i].parent {
		if n[i].contains(q) {
			return n[i].rule
		}
	}
	return -1
}

// parseKey reads a key that is an address or a network, as netip writes them. It is
// netip.ParsePrefix for bytes, which do not escape. An IPv4 address that is written in
// IPv6 is one of IPv4.
func parseKey(key []byte) (n network, ok bool) {
	addr, length := key, -1
	for i, c := range key {
		if c == '/' {
			addr = key[:i]
			if length, ok = parseBits(key[i+1:]); !ok {
				return n, false
			}
			break
		}
	}
	if v4, ok := parse4(addr); ok {
		if length < 0 {
			length = 32
		}
		n = network{hi: uint64(v4) << 32, bits: uint8(length), v4: true}
		return n.masked(), length <= 32
	}
	hi, lo, ok := parse6(addr)
	if !ok || length > 128 {
		return n, false
	}
	if length < 0 {
		length = 128
	}
	if hi == 0 && lo>>32 == 0xffff && length >= 96 {
		n = network{hi: lo << 32, bits: uint8(length - 96), v4: true}
		return n.masked(), true
	}
	n = network{hi: hi, lo: lo, bits: uint8(length)}
	return n.masked(), true
}

func parseBits(b []byte) (n int, ok bool) {
	if len(b) == 0 || len(b) > 3 || b[0] == '0' && len(b) > 1 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, true
}

func parse4(b []byte) (v uint32, ok bool) {
	for field := range 4 {
		n, digits := uint32(0), 0
		for ; digits < len(b) && digits < 4 && b[digits] >= '0' && b[digits] <= '9'; digits++ {
			n = 10*n + uint32(b[digits]-'0')
		}
		if digits == 0 || n > 255 || digits > 1 && b[0] == '0' {
			return 0, false
		}
		v, b = v<<8|n, b[digits:]
		if field == 3 {
			break
		}
		if len(b) == 0 || b[0] != '.' {
			return 0, false
		}
		b = b[1:]
	}
	return v, len(b) == 0
}

func parse6(b []byte) (hi, lo uint64, ok bool) {
	var groups [8]uint16
	n, gap := 0, -1
	if len(b) >= 2 && b[0] == ':' && b[1] == ':' {
		gap, b = 0, b[2:]
	}
	for len(b) > 0 {
		if n == 8 {
			return 0, 0, false
		}
		if v4, ok := parse4(b); ok && n <= 6 {
			groups[n], groups[n+1] = uint16(v4>>16), uint16(v4)
			n, b = n+2, nil
			break
		}
		digits := 0
		for ; digits < len(b) && digits < 4; digits++ {
			v, ok := hexDigit(b[digits])
			if !ok {
				break
			}
			groups[n] = groups[n]<<4 | v
		}
		if digits == 0 {
			return 0, 0, false
		}
		n, b = n+1, b[digits:]
		switch {
		case len(b) == 0:
		case b[0] != ':' || len(b) == 1:
			return 0, 0, false
		case b[1] != ':':
			b = b[1:]
		case gap >= 0:
			return 0, 0, false
		default:
			gap, b = n, b[2:]
		}
	}
	switch {
	case gap < 0 && n < 8 || gap >= 0 && n == 8:
		return 0, 0, false
	case gap >= 0:
		moved := n - gap
		copy(groups[8-moved:], groups[gap:n])
		clear(groups[gap : 8-moved])
	}
	for i := range 4 {
		hi, lo = hi<<16|uint64(groups[i]), lo<<16|uint64(groups[i+4])
	}
	return hi, lo, true
}

func hexDigit(c byte) (uint16, bool) {
	switch {
	case '0' <= c && c <= '9':
		return uint16(c - '0'), true
	case 'a' <= c && c <= 'f':
		return uint16(c-'a') + 10, true
	case 'A' <= c && c <= 'F':
		return uint16(c-'A') + 10, true
	}
	return 0, false
}
